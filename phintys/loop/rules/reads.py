"""Which rows of the results of a loop are read: positions are compared as `Dim`.

A position counts from the end of a result if it is a negative number, or differs from the length
of the result by a number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from phintys.dims import ZERO, Dim, dim_max, dim_min
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Variable
from phintys.loop.parts import Part
from phintys.loop.rules.buffers import rows_of_buffer
from phintys.loop.whole import Whole
from phintys.tensor.elemwise import Elemwise, functions
from phintys.tensor.index_list import literal
from phintys.tensor.index_ops import Subtensor
from phintys.tensor.lengths import Lengths
from phintys.tensor.raise_op import CheckAndRaise
from phintys.tensor.rules.match import scalar_op_name
from phintys.tensor.rules.reading import index_of, read
from phintys.tensor.shape import ScalarFromTensor, Shape_i, TensorFromScalar, shape_i
from phintys.tensor.static import static_length


class Numbers:
    """Integers that a graph computes, as `Dim`; those computed by other ops are symbols."""

    def __init__(self) -> None:
        self.known: dict[Variable, Dim] = {}

    def __call__(self, v: Any) -> Dim:
        value = literal(v)
        if value is not None:
            return Dim.const(value)
        todo = [v]
        while todo:
            w = todo[-1]
            operands = [] if w in self.known else _operands(w)
            missing = [x for x in operands if x not in self.known]
            if not missing:
                todo.pop()
                self.known.setdefault(w, self._combined(w, [self.known[x] for x in operands]))
            todo += missing
        return self.known[v]

    def _combined(self, v: Any, operands: list[Dim]) -> Dim:
        value = literal(v)
        if value is not None:
            return Dim.const(value)
        if not operands:
            is_length = v.owner is not None and isinstance(v.owner.op, Shape_i)
            return self.symbol(v, is_length)
        found, *others = operands
        name = scalar_op_name(v.owner)
        for d in others:
            found = _FUNCTIONS[name](found, d)  # type: ignore[index]
        return -found if name == "neg" else found

    def symbol(self, v: Any, is_length: bool) -> Dim:
        """The symbol for a variable that is not known yet."""
        return self.known.setdefault(
            v, Dim.symbol(("len" if is_length else "value", len(self.known)))
        )


_FUNCTIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": dim_max,
    "minimum": dim_min,
}
_SIGNED = ("int8", "int16", "int32", "int64")


def _operands(v: Any) -> list[Any]:
    """The integers that a `Dim` of ``v`` is made of; none if it is a symbol or a number."""
    node = v.owner
    if node is None or v.type.dtype not in _SIGNED:
        return []
    if isinstance(node.op, ScalarFromTensor | TensorFromScalar):
        return list(node.inputs)
    if isinstance(node.op, Lengths):
        return [node.inputs[v.index]]
    if not isinstance(node.op, Elemwise) or v.type.ndim:
        return []
    name = scalar_op_name(node)
    if name == "cast_int64":
        return [x for x in node.inputs if x.type.dtype in _SIGNED]
    fits = v.type.dtype == "int64" or _is_less(node, name)
    return list(node.inputs) if fits and (name == "neg" or name in _FUNCTIONS) else []


def _is_less(node: Apply, name: str | None) -> bool:
    """Whether a node computes ``n - k`` of an input and a number.

    It does not overflow if ``n`` is a number of steps, whatever its type.
    """
    if len(node.inputs) != 2 or name not in ("add", "sub"):
        return False
    a, b = (
        node.inputs if name == "sub" or literal(node.inputs[1]) is not None else node.inputs[::-1]
    )
    k = literal(b)
    is_input = a.owner is None and literal(a) is None
    return is_input and k is not None and (k <= 0 if name == "add" else k >= 0)


class ResultLengths:
    """The lengths of the results of a loop along their first axes."""

    def __init__(self, loop: Whole) -> None:
        self.loop, self.numbers = loop, Numbers()
        given = loop.steps
        while len(found := _operands(given)) == 1 and scalar_op_name(given.owner) != "neg":
            (given,) = found  # it is converted
        if literal(given) is None and not found:
            self.numbers.symbol(given, True)  # the loop requires that it is not negative
        self.steps = self.numbers(loop.steps)

    def most(self, p: Part) -> Dim:
        """The rows that a result has if all are kept, and no condition ends the loop."""
        return self.steps + p.lag

    def kept(self, p: Part) -> Dim | None:
        """The largest number of rows that a result may have; None if it is not known."""
        if p.kind == "nit_sot":
            return self.numbers(p.outer)
        known = p.outer.type.shape[0]
        if known is not None:
            return Dim.const(known)
        rows = rows_of_buffer(p.outer)
        return None if rows is None else self.numbers(rows)

    def length(self, p: Part) -> Dim | None:
        """The number of rows of a result; None if it is not known before the loop."""
        kept = None if self.loop.condition is not None else self.kept(p)
        return None if kept is None else dim_min(kept, self.most(p))


#: distances from the end of the start and the stop of a slice, or of a position and None
Bounds = tuple[int | None, int | None]


class Read(NamedTuple):
    """A read of a result, or of a part of it; bounds that are None stay as they are."""

    node: Apply
    bounds: Bounds = (None, None)

    def of(self, new: Any) -> Variable:
        """The same read of ``new``, which has the rows at the end that it needs."""
        first, *others = index_of(self.node)
        given = (first.start, first.stop) if isinstance(first, slice) else (first, None)
        a: Any
        a, b = (p if j is None else _at(new, j) for p, j in zip(given, self.bounds))
        return read(new, [slice(a, b, first.step) if isinstance(first, slice) else a, *others])


class Uncut(NamedTuple):
    """A read of all rows but the first one, of a result that has one row now, the last."""

    node: Apply

    def of(self, new: Any) -> Variable:
        """The row."""
        return new


class LastState(NamedTuple):
    """A read of the last row, which must be that after a step."""

    node: Apply
    steps: Variable

    def of(self, new: Any) -> Variable:
        """The row; an IndexError if there are no steps."""
        last = read(new, [-1, *index_of(self.node)[1:]])
        return CheckAndRaise(IndexError, NO_STEPS)(last, functions.gt(self.steps, 0))


#: a read of a result that has fewer rows now
AnyRead = Read | Uncut | LastState
NO_STEPS = "A loop of no steps has no last row; phintys.foldl gives the initial value then."


def _at(v: Any, distance: int) -> Any:
    """The position at a distance from the end of the first axis."""
    known = static_length(v, 0)
    if known is not None:
        return known - distance
    return -1 if distance == 1 else shape_i(v, 0) - distance


def rows_at_end(
    fgraph: FunctionGraph, out: Variable, length: Dim | None, numbers: Numbers
) -> tuple[int, list[Read]] | None:
    """How many rows at the end all uses of a result together need, and its reads; None if unknown.

    A part ``x[s:]`` of which only rows at the end are read needs ``s`` further rows, so that the
    reads still fail if there are fewer steps.  In reverse order the rows are those at the start.
    """
    reads: list[Read] = []
    most, todo = 0, [(out, 0, length, False)]
    for v, before, n, in_reverse in todo:
        for client, _ in fgraph.clients[v]:
            if type(client.op) is not Subtensor or client.inputs[0] is not v:
                return None
            first = index_of(client)[0]
            if in_reverse:
                stop = _stop(first)
                if stop is None:
                    return None
                most = max(most, before + stop)
                reads.append(Read(client))
                continue
            if is_reverse(first):
                reads.append(Read(client))
                todo.append((client.outputs[0], before, n, True))
                continue
            found = _from_end(first, n, numbers)
            if found is not None:
                rows, bounds = found
                most = max(most, before + rows)
                reads.append(Read(client, bounds))
                continue
            cut = _cut_at_ends(first, n, numbers)
            if cut is None:
                return None
            missing, bounds = cut
            reads.append(Read(client, bounds))
            shorter = None if n is None else n - missing
            todo.append((client.outputs[0], before + missing, shorter, False))
    return most, reads


def is_reverse(e: Any) -> bool:
    """Whether an index is ``::-1``."""
    ends = isinstance(e, slice) and e.start is None and e.stop is None
    return ends and e.step is not None and literal(e.step) == -1


def _from_end(e: Any, n: Dim | None, numbers: Numbers) -> tuple[int, Bounds] | None:
    """The rows at the end that an index needs, and its `Read.bounds`; None if it is not known."""
    if not isinstance(e, slice):
        j = _distance(e, n, numbers)
        return None if j is None or j < 1 else (j, (_moved(e, j), None))
    step = 1 if e.step is None else literal(e.step)
    if not step or (e.start if step > 0 else e.stop) is None:
        return None
    bounds = [None if p is None else _distance(p, n, numbers) for p in (e.start, e.stop)]
    found = [j for p, j in zip((e.start, e.stop), bounds) if p is not None]
    known = [j for j in found if j is not None and j >= 0]
    if len(known) < len(found):
        return None
    k = literal(e.start)
    if step == 1 and e.stop is None and k is not None and 0 <= k < max(known):
        return None  # it needs most of the rows; what is read of them may need fewer
    return max(known), (_moved(e.start, bounds[0]), _moved(e.stop, bounds[1]))


def _cut_at_ends(e: Any, n: Dim | None, numbers: Numbers) -> tuple[int, Bounds] | None:
    """How many rows a slice ``s:`` or ``s:-t`` leaves out, and its `Read.bounds`, else None."""
    if not isinstance(e, slice) or (e.step is not None and literal(e.step) != 1):
        return None
    start = 0 if e.start is None else literal(e.start)
    left = 0 if e.stop is None else _distance(e.stop, n, numbers)
    if start is None or start < 0 or left is None or left < 0:
        return None
    return start + left, (None, _moved(e.stop, left))


def _moved(p: Any, distance: int | None) -> int | None:
    """The distance of a position from the end, or None if it is given as such."""
    k = literal(p)
    return None if p is None or (k is not None and k < 0) else distance


def _distance(p: Any, n: Dim | None, numbers: Numbers) -> int | None:
    """``j`` if a position is ``-j``, or ``n - j``, of ``n`` rows; else None."""
    k = literal(p)
    if k is not None and k < 0:
        return -k
    if n is None:
        return None
    at = numbers(p)
    found = [(rows - at).value for rows in (n, dim_max(ZERO, n))]
    return found[0] if found[0] is not None else found[1]


def rows_at_start(fgraph: FunctionGraph, out: Variable, most: int | None) -> int | None:
    """How many rows at the start all uses of a result need; None if unknown, or over ``most``."""
    rows = 0
    for client, _ in fgraph.clients[out]:
        if type(client.op) is not Subtensor or client.inputs[0] is not out:
            return None
        first = index_of(client)[0]
        found = _stop(first)
        if found is None or (most is not None and found > most):
            return None
        rows = max(rows, found)
    return rows


def needs_all_rows(fgraph: FunctionGraph, out: Variable, lengths: ResultLengths, p: Part) -> bool:
    """Whether a use of a result needs other rows than some at the start, or some at the end."""
    length = lengths.length(p)
    return (
        rows_at_end(fgraph, out, length, lengths.numbers) is None
        and rows_at_start(fgraph, out, lengths.most(p).value) is None
    )


def _stop(e: Any) -> int | None:
    """The position after those that an index reads, counted from the start; None if unknown."""
    if not isinstance(e, slice):
        k = literal(e)
        return None if k is None or k < 0 else k + 1
    start, stop, step = (None if p is None else literal(p) for p in (e.start, e.stop, e.step))
    if stop is None or stop < 0 or (e.start is not None and (start is None or start < 0)):
        return None
    return stop if e.step is None or (step is not None and step > 0) else None
