"""Running nodes by their ``perform``: one node, as every backend does, or a whole graph."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from phintys.errors import ShapeError
from phintys.graph.destroy import destroyed_inputs, view_root
from phintys.graph.op import Op
from phintys.graph.origin import annotate
from phintys.graph.results import declared_result
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply, Constant, Variable

#: positions of inputs that a node asks for, and the results of a node that asks for none
Attempt = tuple[list[int], list[Any]]

_PACKAGE_PREFIX = __name__.partition(".")[0] + "."


def run_node(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    """The results of ``perform``, without effect on ``inputs`` and with memory of their own.

    An input that the op overwrites is copied first, since it may belong to the caller, to a shared
    variable, to a constant, or be read by a later node.  A result that shares memory, or a state,
    with an input or an earlier result is copied, unless ``view_map`` declares that.  Ops that are
    not of this package get views of their inputs, so that assigning to the shape of one affects no
    other user of the array.

    An op with a ``make_thunk`` of its own is run by that.

    If ``perform`` raises, and lengths are not as the op's `shape_rule` requires, that is the error.
    Results are converted and checked by `declared_result`, which raises TypeError or ShapeError.
    """
    op = node.op
    inputs = _protected(op, inputs)
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    try:
        if op.has_own_thunk:
            _thunks(node)(inputs, storage)
        else:
            op.perform(node, inputs, storage)
    except Exception as exc:
        _explain_shapes(node, inputs, exc)
        raise
    return _results(node, inputs, storage)


def _protected(op: Op, inputs: Sequence[Any]) -> Sequence[Any]:
    """The values that an op is given, whose changes have no effect on ``inputs``."""
    if not type(op).__module__.startswith(_PACKAGE_PREFIX):
        inputs = [x[...] if type(x) is np.ndarray else x for x in inputs]
    if op.destroy_map:
        inputs = list(inputs)
        for i in destroyed_inputs(op):
            inputs[i] = copy.deepcopy(inputs[i])
    return inputs


def _results(node: Apply, inputs: Sequence[Any], storage: list[list[Any]]) -> list[Any]:
    """What a node has stored, as arrays of the declared types with memory of their own."""
    op = node.op
    results = [declared_result(node, k, cell[0]) for k, cell in enumerate(storage)]
    for k, (v, value) in enumerate(zip(node.outputs, results)):
        if isinstance(value, np.ndarray):
            if _is_shared(value, k, op, inputs, results):
                results[k] = value.copy()
        elif v.type.has_state and _shares_state(value, k, node, inputs, results):
            results[k] = v.type.copy_value(value)
    return results


def is_lazy(node: Apply) -> bool:
    """Whether the node's own thunk asks for its inputs one by one: its attribute ``lazy`` is true.

    Such a thunk returns the positions of the inputs that it needs next; none if it has stored its
    results.  The ``compute_map`` that ``make_thunk`` is given says which inputs it has.
    """
    return node.op.has_own_thunk and _thunks(node).is_lazy


def run_lazily(node: Apply, inputs: Sequence[Any], known: Sequence[bool]) -> Attempt:
    """The positions of inputs that a node asks for, see `is_lazy`; if there are none, its results.

    ``known`` says which inputs have values.  RuntimeError if the node asks only for some of those.
    """
    inputs = _protected(node.op, inputs)
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    asked = _thunks(node)(inputs, storage, known) or []
    missing = [k for k in asked if not known[k]]
    if asked and not missing:
        raise RuntimeError(f"{node.op} asks for inputs {list(asked)}, which it has already.")
    return (missing, []) if missing else ([], _results(node, inputs, storage))


def prepare(node: Apply) -> None:
    """Call the op's ``prepare_node``, once before `run_node`; its own ``make_thunk`` may do so."""
    if not node.op.has_own_thunk:
        node.op.prepare_node(node, None, None, "py")


class _Cells(NamedTuple):
    """A thunk, the cells of inputs and outputs, and those that say which inputs have values."""

    thunk: Callable[[], Any]
    sources: list[list[Any]]
    targets: list[list[Any]]
    flags: list[list[bool]]


class _Thunks:
    """Computes a node by the op's own ``make_thunk``.

    A thunk works between storage cells, which belong to one call at a time.  So each call takes one
    that is free, or makes another.
    """

    def __init__(self, node: Apply) -> None:
        self.node = node
        self._free: list[_Cells] = []

    @property
    def is_lazy(self) -> bool:
        """See `is_lazy`."""
        if not self._free:
            self._free.append(self._make())
        return bool(getattr(self._free[-1].thunk, "lazy", False))

    def _make(self) -> _Cells:
        node = self.node
        cells: dict[Variable, list[Any]] = {v: [None] for v in [*node.inputs, *node.outputs]}
        computed = {v: [v.owner is not node] for v in cells}
        thunk = node.op.make_thunk(node, cells, computed, list(node.outputs), impl="py")
        sources, targets = [cells[v] for v in node.inputs], [cells[v] for v in node.outputs]
        return _Cells(thunk, sources, targets, [computed[v] for v in node.inputs])

    def __call__(
        self,
        inputs: Sequence[Any],
        output_storage: list[list[Any]],
        known: Iterable[bool] = itertools.repeat(True),
    ) -> Any:
        """What the thunk returns; ``known`` says which inputs have values."""
        try:
            entry = self._free.pop()
        except IndexError:
            entry = self._make()
        for cell, value in zip(entry.sources, inputs, strict=True):
            cell[0] = value
        for flag, is_known in zip(entry.flags, known):
            flag[0] = is_known
        found = entry.thunk()
        for cell, out in zip(entry.targets, output_storage, strict=True):
            out[0] = cell[0]
        for cell in [*entry.sources, *entry.targets]:
            cell[0] = None
        self._free.append(entry)
        return found


def _thunks(node: Apply) -> _Thunks:
    """The thunks of a node, which keeps them; attributes with this prefix are not pickled."""
    found = node.__dict__.get("_cached_thunks")
    return node.__dict__.setdefault("_cached_thunks", _Thunks(node)) if found is None else found


def _explain_shapes(node: Apply, inputs: Sequence[Any], exc: Exception) -> None:
    """Raise the error of the node's shape rule, if a requirement does not hold."""
    if node.op.shape_rule is None or isinstance(exc, ShapeError):
        return
    try:
        check_shapes(node, inputs)
    except (ValueError, IndexError) as found:
        raise found from exc


def _is_shared(
    value: np.ndarray, k: int, op: Op, inputs: Sequence[Any], results: Sequence[Any]
) -> bool:
    """Whether result ``k`` may share memory with an input or an earlier result, undeclared.

    A read-only array does (``np.imag`` of real numbers, views of read-only inputs), and an array
    without elements that may be an input.
    """
    if k in op.view_map or k in op.destroy_map:
        return False
    if not value.flags.writeable:
        return True
    if value.base is None:  # owns its memory, of which an earlier result may be a part
        return any(x is value for x in inputs) or (k > 0 and overlaps(value, results[:k]))
    return value.size == 0 or overlaps(value, [*inputs, *results[:k]])


def overlaps(value: np.ndarray, others: Sequence[Any]) -> bool:
    """Whether an array may share memory with others."""
    return any(isinstance(x, np.ndarray) and np.may_share_memory(value, x) for x in others)


def _shares_state(
    value: Any, k: int, node: Apply, inputs: Sequence[Any], results: Sequence[Any]
) -> bool:
    """Whether result ``k``, an object, shares its state with another value, undeclared."""
    op, type_ = node.op, node.outputs[k].type
    if k in op.view_map or k in op.destroy_map:
        return False
    others = [*zip(node.inputs, inputs), *zip(node.outputs[:k], results)]
    alike = [x for v, x in others if type(v.type) is type(type_)]
    return any(type_.may_share_memory(value, x) for x in alike)


RunNode = Callable[[Apply, Sequence[Any]], list[Any]]
Step = tuple[RunNode, Apply, list[int], list[int]]


Hook = Callable[[Any], RunNode]


class _Watch(threading.local):
    """What `watched` was given in this thread; None outside of it."""

    hook: Hook | None = None


_watch = _Watch()


@contextmanager
def watched(hook: Hook) -> Generator[None]:
    """A context in which ``hook(fgraph)`` computes the nodes of every `Runner` of this thread.

    ``fgraph`` is the graph of the `Runner`.  Ops that contain graphs run those with a `Runner`, so
    their nodes are included.
    """
    before, _watch.hook = _watch.hook, hook
    try:
        yield
    finally:
        _watch.hook = before


class Runner:
    """A callable from a list of input values to a list of output values.

    Outputs may share memory with inputs and with each other, but not with constants.

    Values are kept in a flat list of cells; a cell is cleared after its last use.  ``run`` computes
    one node.
    """

    def __init__(self, fgraph: Any, run: RunNode = run_node) -> None:
        self.fgraph = fgraph
        order = fgraph.toposort()
        self.position: dict[Variable, int] = {}
        self.constants: list[tuple[int, Any]] = []
        for v in fgraph.inputs:
            self._cell(v)
        self.n_inputs = len(self.position)
        self.steps: list[Step] = []
        last_use: dict[int, int] = {}
        for k, node in enumerate(order):
            inputs = [self._cell(v) for v in node.inputs]
            outputs = [self._cell(v) for v in node.outputs]
            self.steps.append((run, node, inputs, outputs))
            last_use.update((i, k) for i in inputs + outputs)
            prepare(node)
        self.outputs = [self._cell(v) for v in fgraph.outputs]
        #: the outputs that are constants, or share their memory
        self.constant = [v if isinstance(view_root(v), Constant) else None for v in fgraph.outputs]
        keep = {*self.outputs, *(i for i, _ in self.constants), *range(self.n_inputs)}
        self.dead: list[list[int]] = [[] for _ in order]
        for i, k in last_use.items():
            if i not in keep:
                self.dead[k].append(i)
        self.size = len(self.position)

    def _cell(self, v: Variable) -> int:
        """The number of the cell of a variable; a new cell at its first use."""
        found = self.position.get(v)
        if found is None:
            found = self.position[v] = len(self.position)
            if isinstance(v, Constant):
                self.constants.append((found, v.data))
        return found

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        cells: list[Any] = [None] * self.size
        cells[: self.n_inputs] = values
        for i, data in self.constants:
            cells[i] = data
        watch = None if _watch.hook is None else _watch.hook(self.fgraph)
        for (run, node, inputs, outputs), dead in zip(self.steps, self.dead):
            given = [cells[i] for i in inputs]
            try:
                results = run(node, given) if watch is None else watch(node, given)
            except Exception as exc:
                annotate(exc, node, given)
                raise
            for i, value in zip(outputs, results):
                cells[i] = value
            for i in dead:
                cells[i] = None
        return [
            cells[i] if v is None else v.type.copy_value(cells[i])
            for i, v in zip(self.outputs, self.constant)
        ]
