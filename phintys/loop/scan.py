"""`scan`: a loop over steps that a function describes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Set
from typing import Any

from phintys.graph.ignored import ignores
from phintys.graph.origin import stacklevel
from phintys.graph.variable import Variable
from phintys.loop.build import results_of
from phintys.loop.step import Updates, check_shared, described


@ignores("profile", "allow_gc")
def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    profile: str | bool = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: bool = True,
) -> Any:
    """The results of a loop whose steps ``fn`` describes.

    ``fn`` is called once, with variables for a row of each sequence, then for the earlier values of
    each output, then with ``non_sequences``.  It returns the outputs of the step: a variable or a
    list; after them it may return updates of shared variables (a dict), and `until`.

    Parameters
    ----------
    fn
        the function that describes a step
    sequences
        arrays; step ``t`` gets row ``t``.  ``dict(input=x, taps=[-1, 0])`` passes the rows
        ``t - 1`` and ``t``; the loop starts where all rows are there, and ends with the shortest
        sequence.
    outputs_info
        for each output its value before the first step, or None if steps do not read it.  A dict
        ``dict(initial=x, taps=[-2, -1])`` passes the values of the last two steps; ``x`` then has a
        first axis with these values, the oldest first.  So it has with the only tap -1 in a tuple
        or a range, such as ``range(-1, 0)``, but not with the list ``[-1]``.  A random generator,
        or a variable of another type without rows, is a state of which only the last value is
        returned.
    non_sequences
        further arguments of ``fn``.  It may also use any other variable: what does not depend on
        the step is computed once, before the loop.
    n_steps
        the number of steps, if there are no sequences, or fewer steps than rows
    truncate_gradient
        the number of last steps that gradients go back through; -1: all
    go_backwards
        whether the steps run from the last row of the sequences to the first; the results are in
        the order of the steps.  The dict of a sequence may say it for one: ``go_backwards=True``.
    name
        a label of the op
    strict
        whether it is an error if ``fn`` uses shared variables that are not in ``non_sequences``
    return_list
        whether one output is returned in a list too
    return_updates
        True: the pair of the outputs and a dict of updates, for `phintys.function`, is returned,
        with a DeprecationWarning.  False: the outputs are.
    mode
        kept as the attribute ``mode`` of the op, without effect: the loop is compiled with the
        graph around it
    profile, allow_gc
        accepted, without effect

    Returns
    -------
    For each output its values after every step, along a new first axis: one variable, or a list.
    With `until`, up to the step in which the condition is true.

    Raises
    ------
    ValueError
        if the number of steps is not known or negative, ``fn`` returns another number of outputs
        than ``outputs_info`` has, or an output has another dtype or rank than its initial value
    MissingInputError
        if ``strict`` and a shared variable is not given

    >>> import phintys, phintys.tensor as pt
    >>> x, start = pt.dvector("x"), pt.dscalar("start")
    >>> sums = phintys.scan(
    ...     lambda value, total: total + value,
    ...     sequences=x,
    ...     outputs_info=start,
    ...     return_updates=False,
    ... )
    >>> sums.eval({x: [1.0, 2.0, 3.0], start: 10.0})
    array([11., 13., 16.])
    """
    _warn_of_mode(mode)
    loop = described(fn, sequences, outputs_info, non_sequences, n_steps, go_backwards)
    check_shared(loop, strict)
    stated = set(loop.updates)
    results, updates = results_of(loop, name, truncate_gradient, mode)
    updates = updates if return_updates else _known_to_users(updates, stated)
    return returned([r.rows for r in results], updates, return_list, return_updates)


def last_values(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any,
    go_backwards: bool,
    mode: Any,
    name: str | None,
    return_updates: bool,
) -> Any:
    """What `scan` returns, with the last value of each output in place of all."""
    _warn_of_mode(mode)
    loop = described(fn, sequences, outputs_info, non_sequences, None, go_backwards)
    stated = set(loop.updates)
    results, updates = results_of(loop, name, -1, mode)
    updates = updates if return_updates else _known_to_users(updates, stated)
    return returned([r.last for r in results], updates, False, return_updates)


def _known_to_users(updates: Updates, stated: Set[Variable]) -> Updates:
    """The updates that a step function has ``stated``, or that are default ones.

    The others are those of generators that draws without a generator have made.
    """
    return {v: u for v, u in updates.items() if v in stated or v.default_update is not None}


def _warn_of_mode(mode: Any) -> None:
    if mode is not None:
        warnings.warn(
            "scan ignores mode: the loop is compiled with the graph around it.",
            FutureWarning,
            stacklevel=stacklevel(),
        )


def returned(outputs: list[Any], updates: Updates, return_list: bool, return_updates: bool) -> Any:
    """What a function that makes a loop returns: the outputs, or a pair of them and updates."""
    found: Any = outputs if return_list or len(outputs) > 1 else (outputs or [None])[0]
    if return_updates:
        warnings.warn(
            "scan will return the outputs alone; pass return_updates=False to have that now, and "
            "make shared variables that the step updates states in outputs_info.",
            DeprecationWarning,
            stacklevel=stacklevel(),
        )
        return found, updates
    if updates:
        raise ValueError(
            f"The step function of scan updates {', '.join(map(str, updates))}, which "
            "return_updates=False would lose. Make them states in outputs_info."
        )
    return found
