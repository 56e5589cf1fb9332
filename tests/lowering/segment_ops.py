"""Ops on segments of flat data and on CSR matrices, whose loops are ragged; cases for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from phintys.graph.builder import At, Each, Row
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.lowering.reductions import identity
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.type import TensorType, typed_node

KINDS = ("add", "mul", "max", "min", "argmax", "argmin")
BITWISE = ("and", "or", "xor")
#: the reductions of each dtype
REDUCTIONS: dict[str, tuple[str, ...]] = {
    "bool": ("and", "or", "argmax"),
    "float32": KINDS,
    "float64": KINDS,
    **{f"{sign}int{bits}": KINDS + BITWISE for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
UFUNCS = {
    "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def pieces(starts: Any, stops: Any, length: int) -> Iterator[slice]:
    """The segments; raises IndexError."""
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        if start < 0 or stop > length:
            raise IndexError(f"segment {start} to {stop} of {length} elements")
        yield slice(start, max(start, stop))


class SegmentReduce(Op):
    """Reductions of the segments of a vector."""

    __props__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def make_node(self, x: Any, starts: Any, stops: Any) -> Apply:
        inputs = [as_tensor_variable(v) for v in (x, starts, stops)]
        dtype = "int64" if self.kind.startswith("arg") else inputs[0].type.dtype
        return typed_node(self, inputs, dtype)

    def shape_rule(self, s: Any, x: Any, starts: Any, stops: Any) -> list[Any]:
        s.equal(starts[0], stops[0], "starts and stops differ in length")
        return [starts]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, starts, stops = inputs
        found = [self.reduced(x[p]) for p in pieces(starts, stops, len(x))]
        output_storage[0][0] = np.array(found, node.outputs[0].type.dtype)

    def reduced(self, x: Any) -> Any:
        if self.kind.startswith("arg"):
            return getattr(np, self.kind)(x) if len(x) else 0
        first = 0j if x.dtype.kind == "c" else identity(self.kind, str(x.dtype))
        return UFUNCS[self.kind].reduce(x, dtype=x.dtype, initial=first)

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, starts, stops = inputs
        segments = b.segments(starts, stops, b.length(x, 0))
        return b.reduce_segments(self.kind, segments, lambda n, x: x, Each(x))


class CsrProduct(Op):
    """A CSR matrix times a vector, or its transpose (then ``v`` has one element per row)."""

    __props__ = ("transposed",)

    def __init__(self, transposed: bool = False) -> None:
        self.transposed = transposed

    def make_node(self, data: Any, indices: Any, indptr: Any, v: Any, columns: Any) -> Apply:
        inputs = [as_tensor_variable(x) for x in (data, indices, indptr, v, columns)]
        return typed_node(self, inputs, inputs[0].type.dtype)

    def shape_rule(self, s: Any, data: Any, indices: Any, indptr: Any, v: Any, columns: Any) -> Any:
        s.equal(data[0], indices[0], "data and indices differ in length")
        rows, outer = indptr[0] - 1, columns[0]
        s.equal(v[0], rows if self.transposed else outer, "the vector has another length")
        return [columns if self.transposed else (rows,)]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        data, indices, indptr, v, columns = inputs
        shape = (len(indptr) - 1, len(columns))
        for p in pieces(indptr[:-1], indptr[1:], len(data)):
            if any(not -shape[1] <= i < shape[1] for i in indices[p].tolist()):
                raise IndexError("index out of range")
        rows = np.repeat(np.arange(shape[0]), np.diff(indptr.astype("int64")))
        inside = slice(int(indptr[0]), int(indptr[0]) + len(rows))
        where = (rows, indices[inside].astype("int64") % max(shape[1], 1))
        matrix = scipy.sparse.coo_array((data[inside], where), shape=shape).tocsr()
        found = (matrix.T if self.transposed else matrix) @ v
        output_storage[0][0] = found.astype(data.dtype)

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        data, indices, indptr, v, columns = inputs
        b.result_shapes(node, *inputs)
        n = b.length(indptr, 0) - 1
        starts, stops = (b.slice(indptr, 0, k, 1, n) for k in (0, 1))
        segments = b.segments(starts, stops, b.length(data, 0))

        def multiply(n: Any, x: Any, y: Any) -> Any:
            return n.mul(x, y)

        if not self.transposed:
            return b.reduce_segments("add", segments, multiply, Each(data), At(v, indices))
        zeros = b.broadcast_to(b.const(0, data.dtype), b.shape(columns))
        elements = Each(data), Row(v)
        return b.update_segments(zeros, "add", segments, multiply, *elements, at=indices)


class SegmentScale(Op):
    """A vector whose segments are multiplied by a number each; ``at`` says where elements go."""

    __props__ = ("mode",)

    def __init__(self, mode: str = "set") -> None:
        self.mode = mode

    def make_node(self, x: Any, starts: Any, stops: Any, factors: Any, at: Any = None) -> Apply:
        given = [x, starts, stops, factors] + ([] if at is None else [at])
        inputs = [as_tensor_variable(v) for v in given]
        return typed_node(self, inputs, inputs[0].type.dtype)

    def shape_rule(self, s: Any, x: Any, *others: Any) -> list[Any]:
        return [x]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, starts, stops, factors, *at = inputs
        result = x.copy()
        where = at[0].astype("int64") if at else np.arange(len(x))
        for p, factor in zip(pieces(starts, stops, len(x)), factors, strict=True):
            if self.mode == "set":
                for j in range(p.start, p.stop):
                    result[where[j]] = x[j] * factor
            else:
                np.add.at(result, where[p], x[p] * factor)
        output_storage[0][0] = result

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, starts, stops, factors, *at = inputs
        segments = b.segments(starts, stops, b.length(x, 0))
        elements = Each(x), Row(factors)
        where = at[0] if at else None
        return b.update_segments(
            x, self.mode, segments, lambda n, x, y: n.mul(x, y), *elements, at=where
        )


# ----------------------------------------------------------------------------- cases

LOW, HIGH = -(2**63), 2**63 - 1
#: starts and stops of segments of a vector of so many elements
SEGMENTS: dict[str, tuple[list[int], list[int], int]] = {
    "rows": ([0, 0, 3, 3, 20, 21, 53, 120], [0, 3, 3, 20, 21, 53, 120, 150], 150),
    "overlapping": ([0, 5, 2, 149, 0, 31], [150, 90, 33, 150, 7, 48], 150),
    "no segments": ([], [], 17),
    "no elements": ([0, 0], [0, 0], 0),
    "one long": ([1], [2999], 3000),
    "backwards": ([5, 9, HIGH, 0, HIGH, 3], [2, -9, 0, LOW, LOW, 8], 40),
    "long rows": ([0, 700, 701], [700, 701, 2000], 2000),
}
WRONG: dict[str, tuple[list[int], list[int], int]] = {
    "negative start": ([0, -1, 3], [3, 2, 4], 9),
    "negative start, empty": ([0, -1], [3, -1], 9),
    "stop too large": ([0, 3], [3, 10], 9),
    "stop too large, empty": ([0, 12], [3, 10], 9),
    "extreme": ([LOW], [HIGH], 9),
    "lowest": ([LOW], [LOW], 9),
    "highest": ([HIGH], [HIGH], 9),
    "no elements": ([0], [1], 0),
}


def numbers(dtype: str, size: int) -> np.ndarray:
    """Numbers whose sums and products fit; floats with NaN and infinities at some places."""
    rng = np.random.default_rng(size)
    if dtype == "bool":
        return rng.random(size) < 0.7
    if dtype[0] in "iu":
        return rng.integers(0 if dtype[0] == "u" else -4, 9, size).astype(dtype)
    return rng.normal(size=size).astype(dtype)


def bounds(name: str, dtype: str = "int64", wrong: bool = False) -> list[np.ndarray]:
    starts, stops, _ = (WRONG if wrong else SEGMENTS)[name]
    return [np.array(starts, dtype), np.array(stops, dtype)]


class Matrix(NamedTuple):
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


def matrix(rows: int, columns: int, each: float, dtype: str, index: str) -> Matrix:
    """A random CSR matrix with about ``each`` elements in a row, and some empty rows."""
    rng = np.random.default_rng(rows)
    lengths = rng.poisson(each, rows) * (rng.random(rows) < 0.8) if columns else np.zeros(rows, int)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, max(columns, 1), indptr[-1])
    return Matrix(numbers(dtype, indptr[-1]), indices.astype(index), indptr.astype(index))


def same(found: Any, wanted: Any) -> None:
    """Assert that results agree up to the order of sums."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted)
        return
    rtol = 1e-4 if wanted.dtype.itemsize <= 4 + 4 * (wanted.dtype.kind == "c") else 1e-11
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


Compile = Callable[[list[Any], Any], Callable[..., Any]]


def variables(arrays: Sequence[Any]) -> list[Any]:
    return [TensorType(str(a.dtype), (None,) * a.ndim)(f"x{k}") for k, a in enumerate(arrays)]


def check(compile_: Compile, op: Op, *arrays: Any) -> None:
    """Compile an op for these arguments; the result must be that of `perform`, strided or not."""
    inputs = variables(arrays)
    node = op.make_node(*inputs)
    storage: list[list[Any]] = [[None]]
    op.perform(node, list(arrays), storage)
    f = compile_(inputs, node.outputs[0])
    same(f(*arrays), storage[0][0])
    strided = [np.repeat(a, 2)[::2] if a.ndim else a for a in arrays]
    same(f(*strided), storage[0][0])
