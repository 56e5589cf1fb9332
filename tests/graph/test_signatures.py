"""Ops and node rewriters of users whose methods have the parameters of older systems."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.linker import PerformLinker
from phintys.compile.mode import Mode
from phintys.errors import ShapeError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.replace import clone_replace
from phintys.graph.variable import Apply
from phintys.rewriting.pattern import PatternNodeRewriter
from phintys.rewriting.rewriter import NodeRewriter, SequentialNodeRewriter, node_rewriter
from phintys.rewriting.walk import WalkingGraphRewriter, in2out
from phintys.scalar import BinaryScalarOp, ScalarOp, float64, mul, true_div, upgrade_to_float
from phintys.tensor.elemwise import Elemwise

VALUES = np.array([3.0, 1.0])


class Twice(Op):
    """Twice a tensor; without shapes."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = 2 * inputs[0]


# ------------------------------------------------------------------------------ infer_shape


def with_graph() -> type[Op]:
    class Older(Twice):
        def infer_shape(self, fgraph, node, shapes):
            assert fgraph is None
            return [shapes[0]]

    return Older


def by_super() -> type[Op]:
    class Again(with_graph()):  # type: ignore[misc]
        def infer_shape(self, fgraph, node, shapes):
            return super().infer_shape(fgraph, node, shapes)

    return Again


def newer() -> type[Op]:
    class Newer(Twice):
        def infer_shape(self, node, shapes):
            return [shapes[0]]

    return Newer


def of_an_elementwise_op() -> type[Op]:
    class Sum(Elemwise):
        def infer_shape(self, fgraph, node, shapes):
            return super().infer_shape(fgraph, node, shapes)

    return lambda: Sum(pt.exp.scalar_op)  # type: ignore[return-value]


@pytest.mark.parametrize("make, count", [(with_graph, 1), (by_super, 2), (newer, 0)])
def test_forms_of_infer_shape(mode, make, count):
    """That with a graph was called with two arguments: RewriteError, TypeError."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        op = make()()
    assert [w.category for w in seen] == [DeprecationWarning] * count
    assert all(w.filename == __file__ for w in seen)
    x = pt.dvector("x")
    f = phintys.function([x], [op(x).shape, op(x)[-1] * 1], mode=mode)
    shape, last = f(VALUES)
    assert (shape.tolist(), last) == ([2], 2.0)


def test_infer_shape_of_ops_of_the_package_takes_a_graph():
    with pytest.warns(DeprecationWarning, match="parameter fgraph"):
        op = of_an_elementwise_op()()
    x = pt.dvector("x")
    n = x.shape[0]
    assert op.infer_shape(None, op(x).owner, [(n,)]) == [(n,)]
    assert pt.exp.infer_shape(None, pt.exp(x).owner, [(n,)]) == [(n,)]


@pytest.mark.parametrize("error", [NotImplementedError, ShapeError])
def test_shapes_that_are_not_known(error):
    """It was an error of the function."""

    class Unknown(Twice):
        def infer_shape(self, node, shapes):
            raise error("not known")

    x = pt.dvector("x")
    f = phintys.function([x], Unknown()(x).shape)
    assert f(VALUES).tolist() == [2]
    assert any(isinstance(n.op, Unknown) for n in f.maker.fgraph.apply_nodes)


# -------------------------------------------------------------------------- other methods


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C"])
def test_perform_with_params(mode):
    """It was called without them: TypeError."""

    class Times(Twice):
        __props__ = ("factor",)

        def __init__(self, factor):
            self.factor = factor

        def perform(self, node, inputs, output_storage, params):
            output_storage[0][0] = params.factor * inputs[0]

    class Scaled(Times):
        def get_params(self, node):
            return 7.0

        def perform(self, node, inputs, output_storage, params):
            output_storage[0][0] = params * inputs[0]

    x = pt.dvector("x")
    f = phintys.function([x], [Times(3.0)(x), Scaled(3.0)(x)], mode=mode)
    three, seven = f(VALUES)
    assert (three.tolist(), seven.tolist()) == ([9.0, 3.0], [21.0, 7.0])


def test_constant_folding_of_a_node():
    class Kept(Twice):
        def do_constant_folding(self, node):
            return False

    f = phintys.function([], Kept()(VALUES))
    assert [type(n.op) for n in f.maker.fgraph.apply_nodes] == [Kept]
    assert f().tolist() == [6.0, 2.0]


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C"])
def test_scalar_op_with_several_results(mode):
    """``output_types`` of a class was not called, and its results were taken for one."""

    class Both(ScalarOp):
        nin, nout = 2, 2

        def output_types(self, types):
            return [types[0], types[1]]

        def impl(self, x, y):
            return x + y, x * y

        def grad(self, inputs, gs):
            x, y = inputs
            return [gs[0] + gs[1] * y, gs[0] + gs[1] * x]

    x, y = pt.dvectors("x", "y")
    total, product = Elemwise(Both())(x, y)
    gradient = phintys.grad((total + product).sum(), x)
    found = phintys.function([x, y], [total, product, gradient], mode=mode)(VALUES, VALUES + 1)
    assert [v.tolist() for v in found] == [[7.0, 3.0], [12.0, 2.0], [5.0, 3.0]]


def test_scalar_op_of_older_guides(mode):
    class Weighted(BinaryScalarOp):
        def impl(self, x, y):
            return 3.0 * x + y

        def grad(self, inputs, gs):
            return [3.0 * gs[0], gs[0]]

        def c_code(self, node, name, inputs, outputs, sub):
            raise AssertionError("C code of nodes is not used.")

    x = pt.dvector("x")
    y = Elemwise(Weighted(upgrade_to_float, name="weighted"))(x, x)
    f = phintys.function([x], [y, phintys.grad(y.sum(), x)], mode=mode)
    assert [v.tolist() for v in f(VALUES)] == [[12.0, 4.0], [4.0, 4.0]]


def test_linker_that_makes_thunks():
    """``make_all`` of a subclass of PerformLinker was not called."""
    seen = []

    class Spy(PerformLinker):
        def make_all(self, input_storage=None, output_storage=None, storage_map=None):
            made = super().make_all(input_storage, output_storage, storage_map)
            seen.append(len(made[3]))
            return made

    x = pt.dvector("x")
    assert phintys.function([x], 2 * x, mode=Mode(Spy(), None))(VALUES).tolist() == [6.0, 2.0]
    assert len(seen) == 1


# ------------------------------------------------------------------------- node rewriters


def without_factor(node: Apply) -> Any:
    """``x * y / y`` as ``x``."""
    top, y = node.inputs
    if top.owner is None or top.owner.op not in (pt.mul, mul) or y not in top.owner.inputs:
        return False
    a, b = top.owner.inputs
    return [a if b is y else b]


class Base(NodeRewriter):
    def tracks(self):
        return [pt.true_div]


class Two(Base):
    def transform(self, fgraph, node):
        return without_factor(node)


class One(Base):
    def transform(self, node):
        return without_factor(node)


class Three(Base):
    def transform(self, fgraph, node, enforce_tracks=True):
        return without_factor(node)


class Keywords(Base):
    def transform(self, fgraph, node, **options):
        return without_factor(node)


class BySuper(Two):
    def transform(self, fgraph, node, enforce_tracks=True):
        return super().transform(fgraph, node, enforce_tracks=enforce_tracks)


FUNCTIONS = {
    "function": node_rewriter([pt.true_div])(lambda fgraph, node: without_factor(node)),
    "function of a node": node_rewriter([pt.true_div])(lambda node: without_factor(node)),
}
REWRITERS = {c.__name__: c for c in (Two, One, Three, Keywords, BySuper)} | {
    name: (lambda r=r: r) for name, r in FUNCTIONS.items()
}


@pytest.mark.parametrize("name", REWRITERS)
@pytest.mark.parametrize("walk", [in2out, WalkingGraphRewriter, SequentialNodeRewriter])
def test_forms_of_transform(name, walk):
    """Those without ``enforce_tracks`` were called with it: RewriteError."""
    x, y = pt.dvectors("x", "y")
    fgraph = FunctionGraph([x, y], [x * y / y], clone=False)
    rewriter = walk(REWRITERS[name]())
    (in2out(rewriter) if walk is SequentialNodeRewriter else rewriter).rewrite(fgraph)
    assert fgraph.outputs == [x]


def test_forms_of_transform_called_by_a_program():
    x, y = pt.dvectors("x", "y")
    node = (x * y / y).owner
    assert Two().transform(None, node) == One().transform(node) == [x]
    assert One().transform(None, node, True) == Two().transform(None, node, True) == [x]


@pytest.mark.parametrize(
    "rewriter",
    [
        node_rewriter([true_div])(lambda fgraph, node: without_factor(node)),
        PatternNodeRewriter((true_div, (mul, "x", "y"), "y"), "x"),
    ],
    ids=["function", "pattern"],
)
def test_rewriters_of_scalar_nodes(rewriter):
    """A rewriter that tracks a scalar op was tried at tensors only."""
    x, y = float64("x"), float64("y")
    fgraph = FunctionGraph([x, y], [true_div(mul(x, y), y)], clone=False)
    WalkingGraphRewriter(rewriter).rewrite(fgraph)
    assert fgraph.outputs == [x]


def test_rewriters_of_scalar_nodes_are_not_tried_at_tensors():
    seen = []
    rewriter = node_rewriter([mul])(lambda fgraph, node: seen.append(node))
    x = pt.dvector("x")
    in2out(rewriter).rewrite(FunctionGraph([x], [x * x], clone=False))
    assert seen == []


# ------------------------------------------------------------------------------- copies

#: functions of a vector whose lengths are those of the vector
LENGTHS = {
    "ones": lambda x: pt.ones((x.shape[0],)),
    "arange": lambda x: pt.arange(x.shape[0]),
    "arange of twice": lambda x: pt.arange(x.shape[0] * 2)[::2],
    "eye": lambda x: pt.eye(x.shape[0]),
    "repeat": lambda x: pt.repeat(pt.ones(1), x.shape[0]),
    "slice": lambda x: pt.arange(200)[: x.shape[0]],
    "draw": lambda x: pt.random.normal(size=(x.shape[0],)),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_copies_with_other_lengths(name):
    """The copies of some nodes had the static lengths of the replaced variable: ShapeError."""
    x, y = pt.vector("x", shape=(100,)), pt.vector("y", shape=(50,))
    copy = clone_replace(LENGTHS[name](x), {x: y}, rebuild_strict=False)
    assert copy.type.shape[0] in (None, 50)
    assert len(phintys.function([y], copy, on_unused_input="ignore")(np.ones(50))) == 50
