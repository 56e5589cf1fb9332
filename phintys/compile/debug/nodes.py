"""Checks of one node: what its op declares, its shapes, layouts of memory, its compiled code."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phintys.compile.debug.faults import (
    BadDestroyMap,
    BadThunkOutput,
    BadViewMap,
    InvalidValueError,
)
from phintys.compile.debug.hooks import with_defined_values
from phintys.compile.debug.replacements import RTOL
from phintys.compile.debug.values import Values, is_of_package
from phintys.compile.nodes import Compute
from phintys.graph.destroy import destroyed_inputs
from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.perform import run_node, watched
from phintys.graph.results import array_type, declared_result
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.check import Side
from phintys.tensor.convert import as_tensor_variable

#: how long to look for elements that two arrays share, see `numpy.shares_memory`
_MAX_WORK: Any = 10**5
PREALLOCATED = ("initial", "previous", "c_contiguous", "f_contiguous", "strided", "wrong_size")


@dataclass(frozen=True)
class Options:
    """What `DebugMode` checks; the fields are described there."""

    check_c_code: bool
    check_py_code: bool
    check_isfinite: bool
    check_preallocated_output: frozenset[str]
    require_matching_strides: int
    warn_input_not_reused: bool
    preallocated_ndim: int


@dataclass
class NodeChecks:
    """Checks of the nodes of one function; ``compiled`` makes the compiled form of a node.

    It returns None for a node that compiled code runs through ``perform``.
    """

    options: Options
    compiled: Callable[[Apply], Compute | None]
    _previous: dict[Variable, Any] = field(default_factory=dict[Variable, Any])
    _checked: set[Apply] = field(default_factory=set[Apply])

    def run(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        """The results of a node; raises a `DebugModeError` if one of the checks fails."""
        op: Any = node.op
        if isinstance(op, HasMultipleInnerGraph):
            with watched(lambda fgraph: self._run_inner):
                run_node(node, [copied(x) for x in inputs])
        first = self._check_memory(node, inputs) if self.options.check_py_code else None
        results = with_defined_values(node, run_node(node, [copied(x) for x in inputs]))
        if first is not None and not node.op.has_undefined_values:
            _check_repeated(node, inputs, first, results)
        self._check_values(node, results)
        _check_shapes(node, inputs, results)
        if self.options.check_py_code:
            for name, moved in _layouts(inputs):
                others = run_node(node, moved)
                _compare(node, inputs, "perform", results, f"perform with {name} inputs", others)
            self._check_preallocated(node, inputs, results)
        if self.options.check_c_code:
            self._check_compiled(node, inputs, results)
        return results

    def _run_inner(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        """The results of a node of a graph inside an op.

        All is checked when it runs first, values always: a loop runs it at every step.
        """
        if node not in self._checked:
            self._checked.add(node)
            return self.run(node, inputs)
        results = with_defined_values(node, run_node(node, inputs))
        self._check_values(node, results)
        return results

    # ----- what the op declares
    def _check_memory(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        """Check ``destroy_map`` and ``view_map`` in one run of ``perform``; return its results."""
        given = [copied(x) for x in inputs]
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        try:
            node.op.perform(node, list(given), storage)
        except Exception:  # `run_node` raises it, with the message that users get
            run_node(node, [copied(x) for x in inputs])
            raise
        destroyed = destroyed_inputs(node.op)
        for i, (v, before, after) in enumerate(zip(node.inputs, inputs, given)):
            if i not in destroyed and not _is_unchanged(v.type, before, after):
                raise BadDestroyMap(node, i, before, after, "perform")
        values = [cell[0] for cell in storage]
        if not _may_return_views(node.op):
            for k in range(len(values)):
                self._check_views(node, k, given, values)
        for v, value in zip(node.outputs, values):
            _check_type(node, v, value)
        return values

    def _check_views(
        self, node: Apply, k: int, inputs: Sequence[Any], values: Sequence[Any]
    ) -> None:
        """Check with what output ``k`` shares memory."""
        op = node.op
        declared = [*op.view_map.get(k, ()), *op.destroy_map.get(k, ())]
        shared = [i for i, x in enumerate(inputs) if _share_memory(values[k], x)]
        if any(i not in declared for i in shared):
            aliases = [i for i in shared if i not in declared]
            raise BadViewMap(node, k, values[k], in_alias_idx=aliases)
        for j in range(k):
            if not shared and _share_memory(values[k], values[j]):
                raise BadViewMap(node, k, values[k], out_alias_idx=[j])
        idle = [i for i in declared if i not in shared and _has_elements(values[k])]
        if idle and self.options.warn_input_not_reused:
            warnings.warn(
                f"{op} declares that output {k} is in the memory of inputs {idle}, which it is not "
                "(config.DebugMode__warn_input_not_reused).",
                stacklevel=2,
            )

    # ----- values
    def _check_values(self, node: Apply, results: Sequence[Any]) -> None:
        for v, value in zip(node.outputs, results):
            if self.options.check_isfinite:
                check_finite(v, value)

    def _check_preallocated(
        self, node: Apply, inputs: Sequence[Any], results: Sequence[Any]
    ) -> None:
        """Run ``perform`` with arrays in the output cells, which it may use or replace."""
        wanted = self.options.check_preallocated_output
        for kind, axes in _buffer_kinds(wanted, self.options.preallocated_ndim, results):
            buffers = [self._buffer(v, x, kind, axes) for v, x in zip(node.outputs, results)]
            storage = [[b] for b in buffers]
            given = [copied(x) for x in inputs]
            node.op.perform(node, given, storage)
            found = [declared_result(node, k, cell[0]) for k, cell in enumerate(storage)]
            _compare(node, inputs, "perform", results, f"perform into {kind} outputs", found)
        if wanted & {"previous", "ALL"}:
            pairs = zip(node.outputs, results)
            self._previous.update((v, x.copy()) for v, x in pairs if isinstance(x, np.ndarray))

    def _buffer(self, v: Variable, value: Any, kind: str, steps: tuple[int, ...]) -> Any:
        """An array to compute a result into; None where there is none."""
        if not isinstance(value, np.ndarray) or kind == "initial":
            return None
        if kind == "previous":
            return self._previous.get(v)
        if kind == "wrong_size":
            return _garbage(tuple(n + 1 for n in value.shape), value.dtype)
        if kind == "f_contiguous":
            return _garbage(value.shape, value.dtype).copy(order="F")
        if kind == "strided":
            return _strided(_garbage(value.shape, value.dtype), steps)
        return _garbage(value.shape, value.dtype)

    def _check_compiled(self, node: Apply, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        compute = self.compiled(node)
        if compute is None:
            return
        found = compute([copied(x) for x in inputs])
        _compare(node, inputs, "perform", results, "compiled code", found)
        if not self.options.require_matching_strides:
            return
        for v, a, b in zip(node.outputs, results, found):
            if isinstance(a, np.ndarray) and a.size > 1 and a.strides != b.strides:
                error = BadThunkOutput(v, "perform", a, "compiled code", b, inputs)
                if self.options.require_matching_strides > 1:
                    raise error
                warnings.warn(f"Strides differ. {error}", stacklevel=2)


# ------------------------------------------------------------------- values of one node


def check_finite(v: Variable, value: Any) -> None:
    """`InvalidValueError` if an array has NaN or infinite elements."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and not np.isfinite(value).all():
        raise InvalidValueError(v, value, hint="It is not finite (config.DebugMode__check_finite).")


def _check_type(node: Apply, v: Variable, value: Any) -> None:
    """Check that what ``perform`` has stored is a value of the type of an output."""
    known = array_type(v.type)
    if known is None:
        if value is None or not v.type.is_valid_value(value):
            raise InvalidValueError(v, value, hint="It is not a value of the type.")
        return
    try:
        declared_result(node, v.index or 0, value)
    except (TypeError, ValueError) as exc:
        raise InvalidValueError(v, value, hint=str(exc)) from exc
    dtype = getattr(value, "dtype", None)
    if dtype is not None and dtype != known[0]:
        raise InvalidValueError(v, value, hint=f"{node.op}.perform has stored an array of {dtype}.")


def _check_repeated(
    node: Apply, inputs: Sequence[Any], first: Sequence[Any], second: Sequence[Any]
) -> None:
    """`BadThunkOutput` if two runs of ``perform`` on the same values have other results."""
    for v, a, b in zip(node.outputs, first, second):
        if array_type(v.type) is not None and not v.type.values_eq(a, b):
            raise BadThunkOutput(v, "perform", a, "perform once more", b, inputs)


def _check_shapes(node: Apply, inputs: Sequence[Any], results: Sequence[Any]) -> None:
    """Compare the shapes of results with those that the op's ``infer_shape`` says."""
    if node.op.infer_shape is None:
        return
    shapes = [_shape_of(v, x) for v, x in zip(node.inputs, inputs)]
    alone = node.clone_with_new_inputs(
        [v if isinstance(v, Constant) else v.type.make_variable() for v in node.inputs]
    )
    inferred = node.op.infer_shape(alone, shapes)
    values = Values(dict(zip(alone.inputs, inputs)))
    for v, value, lengths in zip(node.outputs, results, inferred, strict=True):
        if lengths is None or not isinstance(value, np.ndarray):
            continue
        found = values.of([as_tensor_variable(n) for n in lengths])
        failed = next((x for x in found if isinstance(x, Exception)), None)
        shape = () if failed else tuple(int(n) for n in found)
        if failed or shape != value.shape:
            said = f"{failed}" if failed else f"the shape {shape}"
            raise InvalidValueError(
                v, value, hint=f"infer_shape of {node.op} says {said}, it has {value.shape}."
            )


def _shape_of(v: Variable, value: Any) -> tuple[Any, ...]:
    if array_type(v.type) is None:
        return ()
    return tuple(as_tensor_variable(np.int64(n)) for n in np.shape(value))


def _compare(
    node: Apply,
    inputs: Sequence[Any],
    name1: str,
    values1: Sequence[Any],
    name2: str,
    values2: Sequence[Any],
) -> None:
    """`BadThunkOutput` if results that were computed in two ways differ more than by rounding."""
    if node.op.has_undefined_values:
        return
    given = {v: x for v, x in zip(node.inputs, inputs) if not isinstance(v, Constant)}
    reference = Values({**given, **dict(zip(node.outputs, values1))})
    for v, a, b in zip(node.outputs, values1, values2):
        if array_type(v.type) is None:
            if not v.type.values_eq_approx(a, b):
                raise BadThunkOutput(v, name1, a, name2, b, inputs)
            continue
        if differ_by_more_than_rounding(v, given, reference, np.asarray(b)):
            raise BadThunkOutput(v, name1, a, name2, b, inputs)


def differ_by_more_than_rounding(
    v: Variable, given: Mapping[Variable, Any], values: Values, other: Any, slack: float = 1
) -> bool:
    """Whether ``other`` differs from the value of ``v`` by more than rounding explains.

    ``given`` are the values from which ``values`` computes ``v``; ``slack`` times `RTOL` of its
    dtype is always tolerated.
    """

    (expected,) = values.of([v])
    dtype = expected.dtype
    if other.shape != expected.shape or other.dtype != dtype:
        return True
    if dtype.kind not in "fc":
        return not np.array_equal(other, expected)
    rtol = slack * RTOL[dtype.name]
    wrong = ~np.isclose(other, expected, rtol, rtol * 1e-3, equal_nan=True)
    if not wrong.any():
        return False
    with np.errstate(all="ignore"):
        rounding = Side([v], given, values.evaluate).rounding(0, 2)
        return bool((wrong & ~(np.abs(other - expected) <= rounding)).any())


# --------------------------------------------------------------------------------- memory


def copied(value: Any) -> Any:
    """A copy of a value that shares no memory with it."""
    return value.copy() if isinstance(value, np.ndarray) else copy.deepcopy(value)


def _is_unchanged(type_: Type[Any], before: Any, after: Any) -> bool:
    if isinstance(before, np.ndarray):
        same = np.array_equal(before, after, equal_nan=before.dtype.kind in "fc")
        return same and before.shape == after.shape
    return type_.values_eq(before, after) if type_.has_state else True


def _may_return_views(op: Any) -> bool:
    """Whether ``perform`` may return views that ``view_map`` does not declare.

    `run_node` copies those.  Ops of this package rely on that, as do ops that contain graphs: what
    a graph returns may be one of its inputs.
    """
    return is_of_package(op) or isinstance(op, HasMultipleInnerGraph)


def _has_elements(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.size > 0


def _share_memory(a: Any, b: Any) -> bool:
    """Whether two values share memory: arrays, or objects with a state."""
    if not isinstance(a, np.ndarray):
        return a is b and isinstance(a, np.random.Generator | list | dict)
    if not isinstance(b, np.ndarray) or not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, _MAX_WORK))
    except RuntimeError:  # it would take too long to find out
        return True


def _layouts(inputs: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Copies of the inputs in other layouts of memory: by columns, strided, reversed."""
    if not any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
        return
    moves: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "c_contiguous": lambda x: x.copy(order="C"),
        "f_contiguous": lambda x: x.copy(order="F"),
        "strided": lambda x: _strided(x, (2,) * x.ndim),
        "reversed": lambda x: _strided(x, (-1,) * x.ndim),
    }
    for name, move in moves.items():
        yield name, [move(x) if isinstance(x, np.ndarray) else copy.deepcopy(x) for x in inputs]


def _strided(x: np.ndarray, steps: Sequence[int]) -> np.ndarray:
    """A copy of an array whose last axes have the given steps in memory, in elements."""
    steps = ((1,) * x.ndim + tuple(steps))[len(steps) :]
    whole = _garbage(tuple(n * abs(s) for n, s in zip(x.shape, steps)), x.dtype)
    view = whole[(*(slice(None, None, s) for s in steps), ...)]
    view[...] = x
    return view


def _garbage(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of numbers that no result has by accident."""
    filler = {"f": np.nan, "c": np.nan, "b": True}.get(np.dtype(dtype).kind, 107)
    return np.full(shape, filler, dtype)


def _buffer_kinds(
    wanted: frozenset[str], ndim: int, results: Sequence[Any]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The kinds of preallocated outputs to try, each with steps of the last axes."""
    chosen = PREALLOCATED if "ALL" in wanted else [k for k in PREALLOCATED if k in wanted]
    largest = max((np.ndim(x) for x in results), default=0)
    for kind in chosen:
        if kind != "strided":
            yield kind, ()
            continue
        for steps in itertools.product((1, 2, -1), repeat=min(ndim, largest)):
            yield kind, steps
