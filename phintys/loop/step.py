"""What `phintys.scan` is asked for: the loop, with the step that its function describes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from phintys.conditional.regions import places_of
from phintys.errors import MissingInputError
from phintys.graph.shared import SharedVariable, recording
from phintys.graph.traversal import ancestors, graph_inputs, toposort
from phintys.graph.variable import Apply, Constant, Variable, new_number
from phintys.loop.checks import check_state
from phintys.loop.results import get_updates_and_outputs
from phintys.loop.sequences import Rows, as_list, rows_of, steps_of
from phintys.loop.states import Output, outputs_of
from phintys.scalar.type import ScalarType
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.type import TensorType

#: new values of shared variables
Updates = dict[Any, Any]


@dataclass
class Loop:
    """What `scan` was asked for, and what the step function has returned.

    ``results`` are the values after a step of ``outputs``; ``constants`` are the variables that the
    step takes besides; ``updates`` are new values of shared variables, ``default_updates`` those of
    shared variables that the step function has made.  Nodes that it has made have numbers above
    ``start``.  ``is_counted`` says whether the number of steps was given, not that of rows.
    """

    steps: Any
    is_counted: bool
    rows: list[Rows]
    outputs: list[Output]
    constants: list[Variable]
    results: list[Variable]
    updates: Updates
    default_updates: Updates
    condition: Variable | None
    start: int


def described(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any,
    n_steps: Any,
    go_backwards: bool,
) -> Loop:
    """The loop, of which ``fn`` has described a step."""
    if not callable(fn):
        raise TypeError(f"scan needs a function that describes a step, not {fn!r}.")
    rows, outputs = rows_of(sequences, go_backwards), outputs_of(outputs_info)
    steps = steps_of(n_steps, rows)
    given = [_as_variable(x) for x in as_list(non_sequences)]
    earlier = [v for output in outputs for v in output.earlier]
    arguments = [*(r.row for r in rows), *earlier, *given]
    _check_signature(fn, arguments)
    start = new_number()
    with recording() as made:
        returned = fn(*arguments)
    condition, results, updates = get_updates_and_outputs(returned)
    outputs = outputs or [Output() for _ in results]
    if len(results) != len(outputs):
        raise ValueError(
            f"The step function of scan returns {len(results)} outputs, and outputs_info describes "
            f"{len(outputs)}. It needs an entry for each output: None for one that steps do not "
            f"read.\n  returned: {returned!r}"
        )
    for k, (output, result) in enumerate(zip(outputs, results)):
        if output.initial is not None:
            check_state(f"Output {k}", output.initial, output.earlier[0].type, result)
    for v, new in updates.items():
        check_state(f"The update of {v}", v, v.type, new)
    constants = [v for v in dict.fromkeys(given) if not isinstance(v, Constant)]
    defaults = _default_updates([*results, *updates.values()], made)
    return Loop(
        *(steps, n_steps is not None, rows, outputs, constants),
        *(results, updates, defaults, condition, start),
    )


def _check_signature(fn: Callable[..., Any], arguments: Sequence[Variable]) -> None:
    """TypeError, which lists the arguments, if a step function takes another number of them."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # it has none
        return
    try:
        signature.bind(*arguments)
    except TypeError as exc:
        raise TypeError(
            f"The step function of scan is called with {len(arguments)} arguments, the rows of "
            f"sequences, then earlier values, then non_sequences: {', '.join(map(str, arguments))}."
            f" Its parameters are {signature}: {exc}."
        ) from None


def _default_updates(results: Sequence[Variable], made: Sequence[Any]) -> Updates:
    """The default updates of those of the shared variables ``made`` that ``results`` use.

    A generator without one, as draws without a generator make, goes on to the next step: otherwise
    each step would draw the same numbers.
    """
    found = _after_draws(results, [v for v in made if v.default_update is None])
    found.update((v, v.default_update) for v in made if v.default_update is not None)
    used: set[Variable] = set()
    pending = list(results) if found else []
    while pending:
        new = [v for v in graph_inputs(pending) if v in found and v not in used]
        used.update(new)
        pending = [found[v] for v in new]
    return {v: new for v, new in found.items() if v in used}


def _after_draws(results: Sequence[Variable], made: Sequence[Any]) -> Updates:
    """The generators ``made`` after the draws from them; without those of which several draw."""
    draws: dict[Any, list[Variable]] = {}
    for node in toposort(results) if made else ():
        for before, after in node.op.update(node).items() if is_draw(node) else ():
            draws.setdefault(before, []).append(after)
    found: Updates = {}
    for v in made:
        last = v
        while len(draws.get(last, ())) == 1:
            (last,) = draws[last]
        if last is not v and last not in draws:
            found[v] = last
    return found


def _as_variable(x: Any) -> Variable:
    return x if isinstance(x, Variable) else as_tensor_variable(x)


def check_shared(loop: Loop, strict: bool) -> None:
    """MissingInputError if the step uses a shared variable that is not given, and ``strict``."""
    if not strict:
        return
    given = {*loop.constants, *loop.updates}
    for v in ancestors([*loop.results, *loop.updates.values()], loop.constants):
        if isinstance(v, SharedVariable) and v not in given:
            raise MissingInputError(
                f"The step function of scan uses the shared variable {v}, which is not in "
                "non_sequences, and strict=True."
            )


def constants_of(
    results: Sequence[Variable], read: Sequence[Variable], given: Sequence[Variable], start: int
) -> list[Variable]:
    """What steps take besides ``read``: shared variables, then others, those ``given`` first.

    Others are the variables closest to ``results`` that do not depend on ``read`` or ``given``,
    except those that depend on constants alone.  Of the nodes with a number above ``start`` two
    kinds belong to the step in any case: those that only a branch of `ifelse` needs, which must not
    be computed unless the branch is taken, and draws, whose density programs derive from the loop.
    """
    step = {*read, *given}
    nodes = list(toposort(results, blockers=step))
    lazy = places_of(results, nodes)
    varies, fixed = set(step), set[Variable]()
    for node in nodes:
        belongs = node in lazy or is_draw(node)
        if any(v in varies for v in node.inputs) or (belongs and node.number > start):
            varies.update(node.outputs)
        elif all(isinstance(v, Constant) or v in fixed for v in node.inputs):
            fixed.update(node.outputs)
    used = [v for node in nodes if node.outputs[0] in varies for v in node.inputs]
    captured = [
        v
        for v in dict.fromkeys([*used, *results])
        if v not in varies and v not in fixed and not isinstance(v, Constant)
    ]
    found = [*(v for v in given if v not in read), *captured]
    return sorted(found, key=lambda v: not isinstance(v, SharedVariable))


def is_draw(node: Apply) -> bool:
    """Whether a node draws numbers and returns the next generator."""
    if all(isinstance(v.type, TensorType | ScalarType) for v in node.outputs):
        return False
    from phintys.tensor.random.op import RNGConsumerOp  # imported by what made the generator

    return isinstance(node.op, RNGConsumerOp)
