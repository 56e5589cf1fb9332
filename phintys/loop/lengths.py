"""The lengths in a loop: of what its inner graph computes, and of its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from phintys.conditional.regions import places_of
from phintys.dims import Dim, dim_min
from phintys.graph.fgraph import FrozenFunctionGraph
from phintys.graph.shapes import Answer, ConcreteShapes, Shape, ShapeContext, answer, input_dims
from phintys.graph.variable import Apply, Variable
from phintys.loop.arguments import Group, groups
from phintys.loop.info import ScanInfo

#: lengths as functions of those of the inner inputs; None: they depend on values
Partial = tuple[Dim | None, ...]


def inner_lengths(fgraph: FrozenFunctionGraph) -> list[Partial]:
    """The lengths of the outputs of a graph, in the symbols of `input_dims` of its inputs."""
    found = _lengths_inside(fgraph.inputs, fgraph.toposort())
    return [found[v] if v in found else _static(v) for v in fgraph.outputs]


def _lengths_inside(inputs: Sequence[Any], nodes: Sequence[Any]) -> dict[Variable, Partial]:
    found: dict[Variable, Partial] = dict(zip(inputs, input_dims(inputs)))
    for node in nodes:
        for v, lengths in zip(node.outputs, _of_node(node, found)):
            found[v] = lengths
    return found


def _static(v: Any) -> Partial:
    """The lengths that the type of a variable says."""
    shape = getattr(v.type, "shape", None) or ()
    return tuple([None if n is None else Dim.const(n) for n in shape])


def _of_node(node: Any, found: Mapping[Variable, Partial]) -> list[Partial]:
    static = [_static(v) for v in node.outputs]
    if node.op.shape_rule is None or all([None not in lengths for lengths in static]):
        return static
    said = answer(node.op, node.inputs)
    known = _known_in(said, node, found)
    return [
        tuple([a if a is not None else _replaced(d, known) for a, d in zip(lengths, shape)])
        for lengths, shape in zip(static, said.shapes)
    ]


def _known_in(said: Answer, node: Any, found: Mapping[Variable, Partial]) -> dict[Dim, Dim]:
    """The lengths that symbols in the answer for a node stand for."""
    known: dict[Dim, Dim] = {}
    for v, dims in zip(node.inputs, said.inputs):
        pairs = zip(dims, found[v] if v in found else _static(v))
        known.update((d, n) for d, n in pairs if d.value is None and n is not None)
    return known


def _replaced(d: Dim, known: Mapping[Dim, Dim]) -> Dim | None:
    return d.substitute(known) if d.symbols() <= known.keys() else None


def keeps_lengths(op: Any) -> bool:
    """Whether the results of all steps surely have the same lengths, and states those they had."""
    inner: FrozenFunctionGraph = op.fgraph
    nodes: list[Any] = list(inner.toposort())
    found = _lengths_inside(inner.inputs, nodes)
    pairs = _required(nodes, places_of(inner.outputs, nodes), found)
    members = [(g, [found[inner.inputs[i]] for i in g.inner_inputs]) for g in groups(op.info)]
    for _, given in members:  # rows of one buffer
        pairs += [pair for other in given[1:] for pair in zip(given[0], other)]
    root = _representatives(pairs)
    for g, given in members:
        for v in (inner.outputs[k] for k in g.inner_outputs):
            lengths = found[v] if v in found else _static(v)
            if None in lengths or (given and list(map(root, lengths)) != list(map(root, given[0]))):
                return False
    return True


def _required(
    nodes: Sequence[Any], lazy: Collection[Any], found: Mapping[Variable, Partial]
) -> list[tuple[Dim | None, Dim | None]]:
    """Lengths that nodes require to be equal; those of ``lazy`` may not be computed."""
    pairs = []
    for node in nodes:
        if node in lazy or node.op.shape_rule is None:
            continue
        said = answer(node.op, node.inputs)
        known = _known_in(said, node, found)
        equal = [r for r in said.requirements if r.relation == "=="]
        pairs += [(_replaced(r.left, known), _replaced(r.right, known)) for r in equal]
    return pairs


def _representatives(pairs: Sequence[tuple[Dim | None, Dim | None]]) -> Callable[[Any], Any]:
    """A function with the same value for lengths that are equal; pairs with None say nothing."""
    parent: dict[Dim, Dim] = {}

    def root(d: Any) -> Any:
        while d in parent:
            d = parent[d]
        return d

    for a, b in pairs:
        first, second = root(a), root(b)
        if first is not None and second is not None and first is not second:
            parent[first] = second
    return root


# ------------------------------------------------------------------------------ results


def loop_shapes(s: ShapeContext, op: Any, shapes: Sequence[Shape]) -> list[Shape]:
    """The shapes of the results of a `Scan`, and what it requires of its inputs.

    A result has a row for each executed step, after the first rows of its buffer, but at most as
    many rows as the buffer.
    """
    steps = s.value(0)
    s.check(steps, ">=", 0, "The number of steps is negative", early=True)
    info: ScanInfo = op.info
    known = outer_lengths(op, shapes)
    results: list[Shape] = []
    executed = s.unknown() if info.as_while else steps
    buffers = iter(zip(info.tap_array, (*info.mit_mot_out_slices, *[()] * len(shapes))))
    for g in groups(info):
        rows = shapes[g.outer_input]
        if g.kind == "seq":
            s.check(rows[0], ">=", steps, f"{_named(g)} is shorter than the number of steps")
        elif g.kind == "mit_mot":
            results.append(_read_and_written(s, g, rows, steps, next(buffers), known))
        elif g.kind in ("mit_sot", "sit_sot"):
            first = -min(next(buffers)[0])
            s.check(rows[0], ">=", first, f"{_named(g)} has too few first values", early=True)
            _same_rows(s, g, rows, known)
            results.append((dim_min(rows[0], first + executed), *rows[1:]))
        elif g.kind == "nit_sot":
            count = s.value(g.outer_input)
            s.check(count, ">=", dim_min(steps, 1), f"{_named(g)} has too few rows", early=True)
            row = [s.unknown() if n is None else n for n in known[g.inner_outputs[0]]]
            results.append((dim_min(count, executed), *row))
        elif g.kind == "untraced_sit_sot":
            results.append(rows)
    return results


def _named(g: Group) -> str:
    return f"{KINDS[g.kind]} {g.outer_input}"


#: what messages call the input of a group
KINDS = {
    "seq": "The sequence in input",
    "mit_mot": "The buffer in input",
    "mit_sot": "The state in input",
    "sit_sot": "The state in input",
    "nit_sot": "The output of the length in input",
    "untraced_sit_sot": "The untraced state in input",
    "non_seq": "The constant in input",
}


def outer_lengths(op: Any, shapes: Sequence[Shape]) -> list[Partial]:
    """The lengths of what a step computes, as functions of those of the inputs of the loop."""
    known: dict[Dim, Dim] = {}
    symbols = input_dims(op.fgraph.inputs)
    for g in groups(op.info):
        outer = shapes[g.outer_input]
        rows = outer if g.kind in ("untraced_sit_sot", "non_seq") else outer[1:]
        for i in g.inner_inputs:
            known.update((d, n) for d, n in zip(symbols[i], rows) if d.value is None)
    return [
        tuple([None if d is None else _replaced(d, known) for d in lengths])
        for lengths in op.step_lengths
    ]


def _read_and_written(
    s: ShapeContext,
    g: Group,
    rows: Shape,
    steps: Dim,
    taps: tuple[Sequence[int], Sequence[int]],
    known: Sequence[Partial],
) -> Shape:
    """The shape of a buffer with several outputs, whose rows do not wrap around."""
    offsets = [0, *taps[0], *taps[1]]
    span = max(offsets) - min(offsets)
    s.check(rows[0], ">=", steps + span, f"{_named(g)} has too few rows")
    _same_rows(s, g, rows, known)
    return rows


def _same_rows(s: ShapeContext, g: Group, rows: Shape, known: Sequence[Partial]) -> None:
    """Require that the rows that a step writes have the lengths of those of the buffer."""
    for k in g.inner_outputs:
        for axis, (wanted, n) in enumerate(zip(rows[1:], known[k])):
            if n is not None:
                s.equal(wanted, n, f"{_named(g)} and the result of a step differ along axis {axis}")


def empty_rows(node: Apply, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The results of a node without rows; lengths that only a step would tell are 0."""
    context = ConcreteShapes(node.op, node.inputs, inputs)
    return [
        np.empty((0, *[_number(d, context.lengths_of) for d in shape[1:]]), v.type.dtype)
        for v, shape in zip(node.outputs, context.run())
        if hasattr(v.type, "dtype")
    ]


def _number(d: Dim, known: Mapping[Dim, int]) -> int:
    return d.evaluate(known) if d.symbols() <= known.keys() else 0
