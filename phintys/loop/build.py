"""The variables of a loop: the results of a node of a `Scan`, or of its only step."""

from __future__ import annotations

from typing import Any, NamedTuple

from phintys.graph.replace import graph_replace
from phintys.graph.variable import Variable
from phintys.loop.info import ScanInfo
from phintys.loop.op import Scan
from phintys.loop.sequences import Rows
from phintys.loop.states import Output
from phintys.loop.step import Loop, Updates, constants_of
from phintys.tensor.axes import expand_dims
from phintys.tensor.static import known_length

#: the kinds of outputs of `phintys.scan`, in the order of the results of a `Scan`
KINDS = ("mit_sot", "sit_sot", "nit_sot", "untraced_sit_sot")


class Result(NamedTuple):
    """An output of a loop.

    ``rows`` are its values after every step; ``history`` begins with the values before the first
    one, or is the last value if ``is_value``.
    """

    rows: Any
    history: Any
    is_value: bool = False

    @property
    def last(self) -> Any:
        """The value after the last step; that before the first one if there are no steps."""
        return self.history if self.is_value else self.history[-1]


def results_of(
    loop: Loop, name: str | None, truncate_gradient: int, mode: Any = None
) -> tuple[list[Result], Updates]:
    """The outputs of a loop, and the new values of shared variables.

    A single step is a loop too, as in PyTensor, unless the number of steps was given.
    """
    if loop.is_counted and known_length(loop.steps) == 1:
        return _one_step(loop)
    loop.updates = {**loop.default_updates, **loop.updates}
    return _applied(loop, name or "scan_fn", truncate_gradient, mode)


def _one_step(loop: Loop) -> tuple[list[Result], Updates]:
    """The results of a single step, without a loop."""
    replace: dict[Variable, Any] = {r.row: r.array[0] for r in loop.rows}
    for output in loop.outputs:
        replace.update(zip(output.earlier, output.values_before(), strict=True))
    new = graph_replace([*loop.results, *loop.updates.values()], replace, strict=False)
    results = [
        Result(x if output.kind == "untraced_sit_sot" else expand_dims(x, 0), x, True)
        for output, x in zip(loop.outputs, new)
    ]
    return results, dict(zip(loop.updates, new[len(results) :]))


def _applied(
    loop: Loop, name: str, truncate_gradient: int, mode: Any
) -> tuple[list[Result], Updates]:
    """The results of a node of a `Scan`."""
    updated = [Output(v, [-1], [v]) for v in loop.updates]
    pairs = [*zip(loop.outputs, loop.results), *zip(updated, loop.updates.values())]
    pairs.sort(key=lambda pair: KINDS.index(pair[0].kind))
    outputs = [output for output, _ in pairs]
    results = [result for _, result in pairs]
    if loop.condition is not None:
        results.append(loop.condition)
    read = [*(r.row for r in loop.rows), *(v for output in outputs for v in output.earlier)]
    constants = constants_of(results, read, loop.constants, loop.start)
    info = _info(loop, outputs, len(constants))
    inputs = [*read, *constants]
    op = Scan(inputs, results, info, mode, truncate_gradient=truncate_gradient, name=name)
    rows = [_cut(r, loop.steps) for r in loop.rows]
    node = op.make_node(loop.steps, *rows, *_starts(loop, outputs), *constants)
    found = dict(zip(map(id, outputs), map(_result, outputs, node.outputs)))
    last = {v: found[id(output)].last for v, output in zip(loop.updates, updated)}
    return [found[id(output)] for output in loop.outputs], last


def _cut(rows: Rows, steps: Any) -> Any:
    """The rows that steps get, under the name of all rows."""
    found = rows.array[:steps]
    found.name = rows.array.name
    return found


def _info(loop: Loop, outputs: list[Output], n_constants: int) -> ScanInfo:
    kinds = [output.kind for output in outputs]
    return ScanInfo(
        n_seqs=len(loop.rows),
        mit_mot_in_slices=(),
        mit_mot_out_slices=(),
        mit_sot_in_slices=tuple([tuple(o.taps) for o in outputs if o.kind == "mit_sot"]),
        sit_sot_in_slices=((-1,),) * kinds.count("sit_sot"),
        n_nit_sot=kinds.count("nit_sot"),
        n_untraced_sit_sot=kinds.count("untraced_sit_sot"),
        n_non_seqs=n_constants,
        as_while=loop.condition is not None,
    )


def _starts(loop: Loop, outputs: list[Output]) -> list[Variable]:
    """The inputs that outputs have: buffers, first values of untraced states, lengths."""
    buffers = [o.buffer(loop.steps) for o in outputs if o.kind in ("mit_sot", "sit_sot")]
    untraced = [o.initial for o in outputs if o.kind == "untraced_sit_sot"]
    return [*buffers, *untraced, *(loop.steps for o in outputs if o.kind == "nit_sot")]


def _result(output: Output, v: Any) -> Result:
    if output.kind == "untraced_sit_sot":
        return Result(v, v, True)
    return Result(v if output.kind == "nit_sot" else v[output.count :], v)
