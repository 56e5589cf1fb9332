"""What a step function returns: outputs, updates of shared variables, and a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.variable import Variable
from phintys.tensor.convert import as_argument
from phintys.tensor.math import neq


class until:
    """The condition of a while loop, which a step function returns last.

    The step in which it is true is the last one; its results are kept.  ValueError if the condition
    is not 0-d.

    >>> import phintys, phintys.tensor as pt
    >>> def step(x):
    ...     return 2 * x, until(2 * x > 50)
    >>> powers = phintys.scan(step, outputs_info=pt.dscalar("x"), n_steps=99, return_updates=False)
    """

    def __init__(self, condition: Any) -> None:
        found = as_argument(condition, "The condition of until")
        if found.type.ndim != 0:
            raise ValueError(f"The condition {found} of until must be 0-d, not {found.type}.")
        self.condition = found if found.type.dtype == "bool" else neq(found, 0)


def get_updates_and_outputs(ls: Any) -> tuple[Variable | None, list[Any], dict[Any, Any]]:
    """``(condition, outputs, updates)``, from what a step function has returned.

    It may return outputs (a variable, or a list of them), then updates (a dict, or a list of
    pairs), then `until`; each of these may be left out.  ValueError if it returns anything else.

    >>> import phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> get_updates_and_outputs(x)
    (None, [x], {})
    """
    parts: list[Any] = list(ls) if isinstance(ls, list | tuple) and not _is_updates(ls) else [ls]
    condition = None
    if parts and isinstance(parts[-1], until):
        condition = parts.pop().condition
    updates = dict(parts.pop()) if parts and _is_updates(parts[-1]) else {}
    wrong = [key for key in updates if not hasattr(key, "get_value")]
    if wrong:
        raise ValueError(
            f"A dict that a step function returns has updates: its keys are shared variables, not "
            f"{wrong[0]!r}. Return outputs as a list."
        )
    if len(parts) == 1 and isinstance(parts[0], list | tuple):
        parts = list(parts[0])
    for part in parts:
        if not isinstance(part, Variable):
            raise ValueError(_explained(part, ls))
    return condition, parts, updates


def _is_updates(x: Any) -> bool:
    """Whether ``x`` is a dict of updates, or a list of pairs."""
    if isinstance(x, dict):
        return True
    return (
        isinstance(x, list | tuple)
        and len(x) > 0
        and all(isinstance(p, list | tuple) and len(p) == 2 for p in x)
        and all(hasattr(p[0], "get_value") for p in x)
    )


def _explained(part: Any, returned: Any) -> str:
    """The message for a part of what was returned that is no variable."""
    if isinstance(part, dict | until) or (isinstance(part, Sequence) and _is_updates(part)):
        return (
            "The step function must return the outputs first, then the updates, and until(...) "
            f"last; it has returned {returned!r}."
        )
    hint = "" if part is None else " Make a number or an array a variable with tensor.constant."
    return (
        "The step function must return variables, updates of shared variables (a dict) and "
        f"until(...); it has returned {part!r}.{hint}"
    )
