"""The shape rule of every op: the shapes that follow from it agree with those of values.

The nodes are those of the matrix's expressions, and some more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from matrix_structured import columns

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.gradient import barriers
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.perform import run_node
from phintys.graph.shapes import check_shapes, result_shapes
from phintys.graph.traversal import graph_inputs, io_toposort
from phintys.graph.variable import Apply, Constant
from phintys.lowering.from_graph import lower_graph
from phintys.lowering.interpret import interpret
from phintys.scalar.op import TABLE
from phintys.tensor import blas, fourier
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.cumulative import CumOp
from phintys.tensor.lengths import checked_lengths
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.solvers.triangular import SolveTriangular
from phintys.tensor.nonzero import some_true
from phintys.tensor.others import ProdOthers
from phintys.tensor.ranges import ARange, ARangeLength
from phintys.tensor.reduce import CAReduce, ProdWithoutZeros
from phintys.tensor.shape import Shape, TensorFromScalar
from phintys.tensor.static import as_length
from phintys.tensor.type import TensorType

#: classes without instances
BASES = """
    _Positions _Order _Exponentials FixedOpCAReduce _SameDtype _Extreme _Logical BlasOp AddingOp
    ViewOp RandomVariable SolveBase
"""
#: ops that take inputs of any lengths
LENIENT = """
    SearchsortedOp Unique UnravelIndex FillDiagonalOffset JoinDims
    ARange ARangeLength AllocEmpty Any_ All Prod ProdWithoutZeros Sum CAReduce CumOp Eye Lengths
    LogSoftmax LogSumExp Softmax MakeVector ScalarFromTensor TensorFromScalar Shape Shape_i SortOp
    ArgSortOp ExtractDiag Fourier Subtensor DisconnectedGrad ZeroGrad UndefinedGrad GradClip
    GradScale SomeTrue
"""


def x3(x: Any) -> Any:
    """A matrix of 4 columns as a batch of matrices."""
    return x.reshape((x.shape[0], 2, -1))


#: expressions of ops that the matrix has none of; ``x`` is a matrix, ``v`` a vector, ``n`` a number
MORE = {
    "diagonals": lambda x, v, n: [pt.diagonal(x, k) for k in (-9, -1, 0, 2)],
    "repeat": lambda x, v, n: pt.repeat(v, pt.cast(v * 0 + 2, "int64")),
    "products of others": lambda x, v, n: ProdOthers((1,))(x, x + 1),
    "cumulative": lambda x, v, n: [CumOp(0)(x), CumOp(1, "mul")(x), pt.sort(x), pt.argsort(x, 0)],
    "lengths": lambda x, v, n: list(checked_lengths([n, v.shape[0]])),
    "ranges": lambda x, v, n: [pt.arange(1, n), pt.arange(0.5, n, 1.5), pt.arange(5, -n, -2)],
    "numbers of elements": lambda x, v, n: ARangeLength()(n, pt.constant(9), n - 1),
    "empty": lambda x, v, n: [pt.empty((n, 2)), pt.eye(n, 2, 1), pt.alloc(v, n, v.shape[0])],
    "scalars": lambda x, v, n: [TensorFromScalar()(pt.scalar_from_tensor(n)), Shape()(x)],
    "reductions": lambda x, v, n: [ProdWithoutZeros(0)(x), CAReduce(TABLE["add"], 1)(x)],
    "products": lambda x, v, n: [
        *(blas.Dot22()(x, x.T), blas.Dot22Scalar()(x, x.T, 2.0), blas.Ger()(x.T, 2.0, v, x[:, 0])),
        *(blas.Gemv()(x[:, 0], 2.0, x, v, 1.0), blas.BatchedDot()(x3(x), x3(x))),
    ],
    "barriers": lambda x, v, n: [
        *(getattr(barriers, f)(x) for f in ("disconnected_grad", "zero_grad", "undefined_grad")),
        *(barriers.grad_clip(x, -1, 1), barriers.grad_scale(x, 2)),
    ],
    "slices": lambda x, v, n: [x[n:], x[::n, 1:-1], v[-n:n:-1], x[:, 1], v[:: -n]],
    "reshape": lambda x, v, n: [x.reshape((-1,)), x.reshape((x.shape[1], -1)), v.reshape((1, -1))],
    "split": lambda x, v, n: pt.split(v, [n, v.shape[0] - n]),
    "masks": lambda x, v, n: [
        *(x[x > 0], pt.set_subtensor(v[v > 0], 1.0), x[:, v > 0], some_true(v < 9)),
    ],
    "specified": lambda x, v, n: pt.specify_shape(v, (v.shape[0],)),
    "written": lambda x, v, n: [pt.inc_subtensor(x[1:], x[1:]), pt.set_subtensor(x[n], v)],
    "elementwise": lambda x, v, n: [x + pt.sqr(x), x * v, pt.switch(x > 0, x, v)],
    "factors": lambda x, v, n: [Cholesky()(x @ x.T), SolveTriangular(b_ndim=1)(x.T @ x, v)],
    "draws": lambda x, v, n: [
        pt.random.normal(x, pt.exp(v), rng=np.random.default_rng(1)),
        pt.random.normal(v, size=(n, v.shape[0]), rng=np.random.default_rng(1)),
    ],
    "transforms": lambda x, v, n: [fourier.fft(x, n, 0), fourier.rfft(v), fourier.irfft(x, 5)],
    "searches": lambda x, v, n: [pt.searchsorted(v, x), pt.permute_row_elements(x, pt.argsort(v))],
    "distinct": lambda x, v, n: [
        *pt.unique(x, True, True, True, axis=0), *pt.unique(x, True, True, True),
    ],
    "positions": lambda x, v, n: [
        pt.ravel_multi_index((pt.arange(n), n - pt.arange(2)), (n, n + 1)),
        *pt.unravel_index(pt.arange(n), (n, n)),
    ],
    "diagonals filled": lambda x, v, n: [
        pt.fill_diagonal(x, v[0]), pt.fill_diagonal_offset(x, v[0], n),
        pt.fill_diagonal(x3(x)[:2, :, :2], v[0]),
    ],
    "axes": lambda x, v, n: [
        *(pt.join_dims(x, 0, k) for k in range(3)),
        *(pt.split_dims(v, (n, 2)), pt.split_dims(x, (n, 2), 1), pt.split_dims(v[:1], ())),
    ],
    "dropped": lambda x, v, n: v[n:][: n - 1].dimshuffle(()),
}  # fmt: skip


def rule_ops() -> dict[str, type[Op]]:
    """The ops of this package that have a shape rule, by name."""
    found, stack = {}, [Op]
    while stack:
        cls = stack.pop()
        stack += cls.__subclasses__()
        if cls.shape_rule is not None and cls.__module__.startswith("phintys."):
            found[cls.__name__] = cls
    return {name: cls for name, cls in sorted(found.items()) if name not in BASES.split()}


def expressions() -> Iterator[tuple[list[Any], list[Any], list[np.ndarray]]]:
    """Results, inputs, and values of the inputs."""
    rng = np.random.default_rng(3)
    for build in MORE.values():
        x, v, n = pt.dmatrix("x"), pt.dvector("v"), pt.lscalar("n")
        out = build(x, v, n)
        values = [rng.normal(size=(5, 4)), rng.normal(size=4), np.array(2)]
        yield (list(out) if isinstance(out, list | tuple) else [out]), [x, v, n], values
    lines = {}
    for column in columns():
        lines.setdefault((column.family, column.name, column.ranks), column)
    for column in lines.values():
        for arguments in column.arguments.values():
            variables = column.variables()
            yield [column.build(*variables)], variables, list(arguments)


@cache
def examples() -> dict[type[Op], list[tuple[Apply, list[Any]]]]:
    """Nodes of each op, with values of their inputs."""
    found: dict[type[Op], list[tuple[Apply, list[Any]]]] = {}
    for outputs, variables, arguments in expressions():
        known = dict(zip(variables, arguments, strict=True))
        with np.errstate(all="ignore"):
            for node in computed(outputs, known):
                some = found.setdefault(type(node.op), [])
                if len(some) < 60 and node.op.shape_rule is not None:
                    some.append((node, [known[v] for v in node.inputs]))
    return found


def computed(outputs: Sequence[Any], known: dict[Any, Any]) -> list[Apply]:
    """Compute outputs by ``perform``, into ``known``; return the nodes."""
    known.update((v, v.data) for v in graph_inputs(outputs) if isinstance(v, Constant))
    nodes = list(io_toposort(list(known), outputs))
    for node in nodes:
        known.update(zip(node.outputs, run_node(node, [known[v] for v in node.inputs])))
    return nodes


def alone(node: Apply) -> tuple[list[Any], Apply, list[int]]:
    """The node with new inputs, but for constants; these inputs and their positions."""
    places = [k for k, v in enumerate(node.inputs) if not isinstance(v, Constant)]
    fresh = list(node.inputs)
    for k in places:
        fresh[k] = node.inputs[k].type(f"input {k}")
    return [fresh[k] for k in places], node.clone_with_new_inputs(fresh), places


def inferred(node: Apply, values: Sequence[Any]) -> list[tuple[int, ...] | None]:
    """The shapes by ``infer_shape``, for values of the inputs."""
    known = dict(zip(node.inputs, values, strict=True))
    shapes = []
    for v, x in zip(node.inputs, values, strict=True):
        lengths = np.shape(x) if isinstance(v.type, TensorType) else ()
        symbols = [TensorType("int64", ())() for _ in lengths]
        known.update(zip(symbols, map(np.asarray, lengths)))
        shapes.append(tuple(symbols))
    results = []
    for shape in node.op.infer_shape(node, shapes):
        lengths = [] if shape is None else [as_length(n) for n in shape]
        computed(lengths, known)
        results.append(None if shape is None else tuple(int(known[n]) for n in lengths))
    return results


def test_every_rule_has_examples():
    assert [n for n, cls in rule_ops().items() if not examples().get(cls)] == []


@pytest.mark.parametrize("name", rule_ops())
def test_shapes_agree(name):
    for node, values in examples()[rule_ops()[name]]:
        with np.errstate(all="ignore"):
            expected = [np.shape(value) for value in run_node(node, values)]
        for v, shape in zip(node.outputs, expected, strict=True):
            static = getattr(v.type, "shape", ())
            assert len(static) == len(shape)
            assert all(n in (None, m) for n, m in zip(static, shape, strict=True))
        inputs, same, places = alone(node)
        assert all(s in (None, e) for s, e in zip(inferred(same, values), expected, strict=True))
        assert result_shapes(node, values) == expected
        program = lower_graph(FunctionGraph(inputs, same.outputs, clone=False))
        found = interpret(program, *(values[k] for k in places))
        assert [np.shape(value) for value in found] == expected


def wrong_lengths(node: Apply, values: Sequence[Any]) -> tuple[list[Any], Exception] | None:
    """Values that the rule of a node refuses because of a length, and its error."""
    for k, x in enumerate(values):
        for axis, known in enumerate(getattr(node.inputs[k].type, "shape", ())):
            if known is not None or isinstance(node.inputs[k], Constant) or not x.size:
                continue
            n = x.shape[axis]
            for wrong in (n - 1, n + 1, 0):
                others = list(values)
                others[k] = np.take(x, np.arange(wrong) % n, axis)
                try:
                    check_shapes(node, others)
                except (ValueError, IndexError) as exc:
                    return others, exc
    return None


@pytest.mark.parametrize("name", [n for n in rule_ops() if n not in LENIENT.split()])
def test_wrong_lengths(name):
    """Compiled code and ``perform`` refuse what the rule refuses, with its message."""
    found = (wrong_lengths(alone(node)[1], values) for node, values in examples()[rule_ops()[name]])
    at = next(k for k, wrong in enumerate(found) if wrong is not None)
    node, values = examples()[rule_ops()[name]][at]
    inputs, same, places = alone(node)
    values, expected = wrong_lengths(same, values)
    for linker in ("py", "llvm"):
        f = phintys.function(inputs, same.outputs, mode=Mode(linker, None))
        with pytest.raises(type(expected)) as caught:
            f(*(values[k] for k in places))
        assert str(caught.value) == str(expected)


@pytest.mark.parametrize("name", LENIENT.split())
def test_ops_that_take_any_lengths(name):
    assert all(wrong_lengths(*e) is None for e in examples()[rule_ops()[name]])


def test_lengths_that_are_values_are_not_cached_by_type():
    """Constants and unknown numbers in turn, for single items and in batches of batches."""
    counts = [3, 5, None, 3]
    variables = [pt.lscalar() if k is None else pt.constant(k, dtype="int64") for k in counts]
    zero, one = (pt.constant(k, dtype="int64") for k in (0, 1))
    ranges = Blockwise(ARange("int64"), "(),(),()->(n)")
    makers = [
        lambda n: pt.zeros((n,)),
        lambda n: ranges(zero, n, one),
        lambda n: Blockwise(ranges, "(),(),()->(n)")(zero, n, one),
        lambda n: pt.random.normal(size=(n,), rng=np.random.default_rng(1)),
    ]
    for make in makers:
        assert [make(n).type.shape for n in variables] == [(k,) for k in counts]
