"""OpFromGraph: values on every backend, construction, captured variables, equality, copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from tensor_checks import check, evaluate

import phintys
import phintys.tensor as pt
from phintys import OpFromGraph
from phintys.compile.builders import construct_nominal_fgraph, infer_shape
from phintys.errors import MissingInputError, ShapeError, UnusedInputError
from phintys.graph.equality import equal_computations
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply, NominalVariable
from phintys.tensor.type import TensorType

x, y = pt.dvectors("x", "y")
m = pt.dmatrix("m")


def example(**options):
    """Two outputs that share a subexpression."""
    e = pt.exp(x)
    return OpFromGraph([x, y], [e * y + 1, e.sum()], **options)


# ------------------------------------------------------------------------------- values


@pytest.mark.parametrize("inline", [False, True])
def test_ops_of_different_graphs(mode, inline):
    """They are not equal, and keep apart in one function."""
    square, cube = (OpFromGraph([x], [x**k], inline=inline) for k in (2, 3))
    assert square != cube and square == OpFromGraph([y], [y**2], inline=inline)
    out = [square(y), cube(y), phintys.grad(square(y).sum(), y), phintys.grad(cube(y).sum(), y)]
    f = phintys.function([y], out, mode=mode)
    for found, wanted in zip(f(np.array([2.0, 3.0])), ([4, 9], [8, 27], [4, 6], [12, 27])):
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("inline", [False, True])
def test_lengths_that_are_known_to_be_1_where_the_op_is_applied(mode, inline):
    """They broadcast, and their derivatives are sums."""
    row, n = pt.tensor("row", shape=(1,)), np.array([1.0, 2.0, 3.0])
    out = OpFromGraph([x, y], [x * y], inline=inline)(row, y)
    tangent = phintys.pushforward(out, row, pt.ones_like(row))
    f = phintys.function([row, y], [out, phintys.grad(out.sum(), row), tangent], mode=mode)
    for found, wanted in zip(f([2.0], n), (2 * n, [6.0], n)):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("inline", [False, True])
def test_values(mode, inline):
    f = phintys.function([x, y], example(inline=inline)(x, 2 * y), mode=mode)
    for n in (0, 1, 5, 1000):
        a, b = np.linspace(-2, 2, n), np.linspace(3, 5, 2 * n)[::-2]
        first, second = f(a, b)
        np.testing.assert_allclose(first, np.exp(a) * 2 * b + 1)
        np.testing.assert_allclose(second, np.exp(a).sum())


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])  # tests/matrix has all backends
def test_other_dtypes(mode):
    dtypes = ["bool", "int8", "uint16", "int64", "float32", "complex128"]
    inputs = [TensorType(dtype, (None, 1))() for dtype in dtypes]
    outputs = [o for v in inputs for o in OpFromGraph([v], [v + v, v.T, pt.ones_like(v)])(v)]
    values = [np.array([[1], [0], [1]], dtype) for dtype in dtypes]
    expected = [o for v in values for o in (v + v, v.T, np.ones_like(v))]
    for found, wanted in zip(phintys.function(inputs, outputs, mode=mode)(*values), expected):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_special_values_and_scalars():
    s = pt.dscalar("s")
    op = OpFromGraph([s], [pt.log(s), 1 / s])
    for value in (0.0, -1.0, np.nan, np.inf):
        with np.errstate(all="ignore"):
            expected = np.log(value), np.divide(1, value)
        for each in ("FAST_RUN", "FAST_COMPILE"):
            np.testing.assert_array_equal(evaluate(op(s), [s], [value], each), expected)


def test_shapes_broadcast_and_static_lengths():
    def build(a, b):
        p, q = a.type(), b.type()
        return OpFromGraph([p, q], [p * pt.specify_broadcastable(q, 0) + p.shape[0]])(a, b)

    check(build, lambda a, b: a * b + a.shape[0], [np.ones((3, 4)), np.arange(4.0)[None]])


def test_integers_that_are_lengths(mode):
    n = pt.lscalar("n")
    op = OpFromGraph([n, x], [pt.zeros(n) + x.sum(), pt.arange(n)])
    f = phintys.function([n, x], op(n, x), mode=mode)
    for k in (3, 0, 5):
        first, second = f(k, [1.0, 2.0])
        np.testing.assert_array_equal(first, np.full(k, 3.0))
        np.testing.assert_array_equal(second, np.arange(k))


def test_outputs_that_are_inputs_or_constants(mode):
    one = pt.constant(np.arange(3.0))
    op = OpFromGraph([x, y], [x, one, y + 1, y + 1, x])
    found = phintys.function([x, y], op(x, y), mode=mode)([1.0, 2.0], [3.0])
    for a, b in zip(found, ([1, 2], [0, 1, 2], [4], [4], [1, 2])):
        np.testing.assert_array_equal(a, b)


def test_results_do_not_share_memory_with_arguments(mode):
    f = phintys.function([x], OpFromGraph([x], [x, x[::-1]])(x), mode=mode)
    value = np.arange(4.0)
    for r in f(value):
        assert not np.may_share_memory(np.asarray(r), value)


def test_the_graph_may_end_at_expressions():
    between = pt.exp(x)
    op = OpFromGraph([between, y], [between * y])
    np.testing.assert_allclose(evaluate(op(x, y), [x, y], [[2.0], [3.0]]), [6.0])


def test_a_scalar_variable_as_input():
    s = phintys.scalar.float64("s")
    op = OpFromGraph([s, x], [pt.tensor_from_scalar(s) * x])
    out = op(pt.scalar_from_tensor(pt.dscalar("d") * 0 + 2), x)
    d = next(v for v in phintys.graph.explicit_graph_inputs(out) if v.name == "d")
    np.testing.assert_array_equal(evaluate(out, [d, x], [0.0, [1.0, 2.0]]), [2.0, 4.0])


# -------------------------------------------------------------------------- construction


def test_inputs_are_filtered():
    op = example()
    out = op([1.0, 2.0], x)[0]
    assert out.owner.inputs[0].type.dtype == "float64"
    assert example()(pt.specify_shape(x, (3,)), y)[0].type == x.type  # as the inner graph says
    with pytest.raises(TypeError, match="input 1 must be of type"):
        op(x, m)
    with pytest.raises(ValueError, match="takes 2 inputs, not 3"):
        op(x, y, y)


@pytest.mark.parametrize("inline", [False, True])
def test_narrower_inputs_make_narrower_graphs_where_it_is_inlined(inline):
    op = OpFromGraph([x], [pt.stack([x, x])], inline=inline)
    out = op(pt.specify_shape(x, (3,)))
    np.testing.assert_array_equal(evaluate(out, [x], [[1.0, 2.0, 3.0]]), [[1, 2, 3]] * 2)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: OpFromGraph([x], [x * y]), MissingInputError, "y .* is not among its inputs"),
        (lambda: OpFromGraph([x, x], [x]), UnusedInputError, "given twice"),
        (lambda: OpFromGraph([x, 2], [x]), TypeError, "must be Variables, not 2"),
        (lambda: OpFromGraph([x], [1.0]), TypeError, "must be Variables"),
        (lambda: OpFromGraph([x], []), ValueError, "needs outputs"),
        (lambda: OpFromGraph([x], [x], updates={}), TypeError, "no option 'updates'"),
        (lambda: OpFromGraph([x], [x], pullback=3), TypeError, "pullback must be None"),
        (lambda: OpFromGraph([x], [x], pullback=[None] * 2), ValueError, "2 entries"),
        (lambda: OpFromGraph([x], [x], pullback=disconnected_type()), TypeError, "must be None"),
        (
            lambda: OpFromGraph([x], [x], pullback=max, lop_overrides=max),
            TypeError,
            "under two names",
        ),
        (
            lambda: OpFromGraph([x], [x], connection_pattern=[[True, True]]),
            ValueError,
            "one row per input",
        ),
        (
            lambda: OpFromGraph([x, y], [x], on_unused_input="raise"),
            UnusedInputError,
            "Input 1, y .* is not used",
        ),
        (lambda: OpFromGraph([x], [x], on_unused_input="no"), ValueError, "on_unused_input"),
        (
            lambda: OpFromGraph([x], [x * phintys.shared(1.0, "s")], strict=True),
            MissingInputError,
            "strict=True",
        ),
    ],
)
def test_wrong_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_unused_inputs():
    op = OpFromGraph([x, y], [x + 1], mode="FAST_RUN")
    np.testing.assert_array_equal(evaluate(op(x, y), [x, y], [[1.0], [5.0]]), [2.0])
    with pytest.warns(UserWarning, match="is not used"):
        OpFromGraph([x, y], [x + 1], on_unused_input="warn")


# -------------------------------------------------------------------------- captured


def test_shared_variables_are_captured_and_updated(mode):
    s = phintys.shared(np.array(2.0), "s")
    op = OpFromGraph([x], [x * s, s + 1])
    assert op.shared_inputs == (s,) and len(op.input_types) == 1
    scaled, new = op(x)
    f = phintys.function([x], scaled, updates={s: new}, mode=mode)
    assert [float(f([1.0])[0]) for _ in range(3)] == [2.0, 3.0, 4.0]
    node = scaled.owner
    assert op.make_node(*node.inputs).inputs == node.inputs
    assert OpFromGraph([x], [x * s, s + 1]) == op
    other = phintys.shared(np.array(2.0), "s")
    assert OpFromGraph([x], [x * other, other + 1]) != op


def test_gradients_pass_through_captured_variables():
    s = phintys.shared(np.array(2.0), "s")
    op = OpFromGraph([x], [x * s**2], pullback=lambda inputs, outputs, g: [7 * g[0]])
    found = phintys.grad(op(x).sum(), [x, s])
    np.testing.assert_allclose(evaluate(found, [x], [[1.0, 2.0]])[0], [7.0, 7.0])
    np.testing.assert_allclose(evaluate(found[1], [x], [[1.0, 2.0]]), 12.0)


# -------------------------------------------------------------------- equality and copies


def test_equality_is_that_of_the_graphs():
    op = example(name="one")
    e = pt.exp(y)
    assert op == OpFromGraph([y, x], [e * x + 1, e.sum()]) and hash(op) == hash(example())
    for other in (
        OpFromGraph([y, x], [pt.exp(x) * y + 1, pt.exp(x).sum()]),
        OpFromGraph([x, y], [pt.exp(x) * y + 2, pt.exp(x).sum()]),
        OpFromGraph([x, y], [pt.exp(x) * y + 1]),
        example(inline=True),
        example(pullback=max),
        example(pushforward=max),
        example(connection_pattern=[[True, True], [True, True]]),
        example(destroy_map={0: [0]}),
    ):
        assert op != other


def test_equal_ops_merge():
    out = example()(x, y)[0] + example(name="b")(x, y)[0] * 2
    f = phintys.function([x, y], out, mode="FAST_COMPILE")
    assert sum(isinstance(n.op, OpFromGraph) for n in f.maker.fgraph.toposort()) == 1


def test_subclasses_add_to_what_is_compared():
    class Labelled(OpFromGraph):
        __props__ = ("label",)

        def __init__(self, label, inputs, outputs):
            super().__init__(inputs, outputs, inline=True)
            self.label = label

        def update(self, node):
            return {node.inputs[0]: node.outputs[0]}

    one = Labelled("a", [x], [x + 1])
    assert one == Labelled("a", [y], [y + 1])
    assert one != Labelled("b", [x], [x + 1]) and one != Labelled("a", [x], [x + 2])
    new = one.clone_with_inner_graph(one.fgraph.unfreeze())
    assert type(new) is Labelled and new == one and new.label == "a"


def test_the_frozen_graph():
    op = example()
    assert [v.type for v in op.inner_inputs] == [x.type, y.type]
    assert all(isinstance(v, NominalVariable) for v in op.inner_inputs)
    assert len(op.inner_outputs) == 2 and op.inner_graphs == {"": op.fgraph}
    bound = op.fgraph.bind([x, y])
    e = pt.exp(x)
    assert equal_computations(bound, [e * y + 1, e.sum()])
    assert (
        equal_computations(op.fgraph.unfreeze().outputs, bound, op.fgraph.unfreeze().inputs)
        is False
    )
    changed = op.fgraph.unfreeze()
    changed.replace(changed.outputs[0], changed.outputs[0] * 2)
    doubled = op.clone_with_inner_graph(changed)
    np.testing.assert_allclose(
        evaluate(doubled(x, y)[0], [x, y], [[0.0], [3.0]]), 2 * np.array([4.0])
    )
    with pytest.raises(ValueError, match="has 2 outputs; the new one has 1"):
        op.clone_with_inner_graph(FunctionGraph([x, y], [x + y]))
    assert OpFromGraph([x, y], [x, y], fgraph=op.fgraph) == op


def test_copies_and_pickles():
    op = example(name="named", inline=True, connection_pattern=[[True, True], [True, False]])
    for same in (pickle.loads(pickle.dumps(op)), copy.copy(op), copy.deepcopy(op), op.clone()):
        assert same == op and hash(same) == hash(op) and same.name == "named"
        assert [str(phintys.graph.origin.locate(o)) for o in same.origins] == [
            str(phintys.graph.origin.locate(o)) for o in op.origins
        ]
    out = pickle.loads(pickle.dumps(op(x, y)[0]))
    assert out.owner.op == op
    f = pickle.loads(pickle.dumps(phintys.function([x, y], op(x, y), mode="FAST_COMPILE")))
    np.testing.assert_allclose(f([0.0], [3.0])[0], [4.0])


def test_graphs_with_ops_are_cloned_and_replaced():
    out = example()(x, y)[0]
    z = phintys.clone_replace(out, {x: y * 2})
    np.testing.assert_allclose(evaluate(z, [y], [[1.0]]), [np.exp(2) + 1])


# ---------------------------------------------------------------------------- shapes


def test_shapes_are_inferred():
    n = pt.lscalar("n")
    op = OpFromGraph([x, n], [pt.outer(x, x), pt.zeros(n), x.sum(), x[x > 0]])
    outputs = op(x, n)
    found = op.infer_shape(outputs[0].owner, [(x.shape[0],), ()])
    assert [None if s is None else len(s) for s in found] == [2, 1, 0, None]
    shapes = [v.shape for v in outputs]
    f = phintys.function([x, n], shapes)
    assert [tuple(s) for s in f([1.0, -1.0, 2.0], 4)] == [(3, 3), (4,), (), (2,)]
    lengths = phintys.function([x, n], shapes[:2], on_unused_input="ignore")
    ops = {type(v.op).__name__ for v in lengths.maker.fgraph.toposort()}
    assert not ops & {"Dot", "OpFromGraph", "Alloc"}
    assert infer_shape([pt.exp(x).sum(), x], [x], [(n,)]) == [(), (n,)]


def test_wrong_lengths_name_the_line_of_the_inner_node(mode):
    inner = x + y  # the line that fails
    op = OpFromGraph([x, y], [inner * 2], name="adding")
    f = phintys.function([x, y], op(x, y), mode=mode)
    with pytest.raises((ShapeError, ValueError)) as caught:
        f(np.ones(2), np.ones(3))
    notes = "\n".join(getattr(caught.value, "__notes__", []))
    assert "inner = x + y  # the line that fails" in notes


def test_nominal_graphs():
    fgraph = construct_nominal_fgraph([x, y], [x + y], replace={y: y * 2})
    assert [v.id for v in fgraph.inputs] == [0, 1]
    with pytest.raises(MissingInputError):
        construct_nominal_fgraph([x], [x + y])


def test_printing():
    op = OpFromGraph([x], [example(name="inner")(x, 2 * x)[1]], name="outer")
    text = phintys.dprint(op(y), file="str")
    assert text.splitlines()[:6] == [
        "outer{inline=False} [id A]",
        " └─ y [id B]",
        "",
        "Inner graphs:",
        "",
        "outer{inline=False} [id A]",
    ]
    assert text.count("inner{inline=False}") == 2 and "Exp" in text
    assert phintys.dprint(op(y), file="str", print_inner_graphs=False).count("\n") == 2
    assert phintys.pp(op(y)) == "outer{inline=False}(y)"


# --------------------------------------------------------------------------- objects


class Draw(Op):
    """A new generator and a draw, as a random variable has them; the generator is a dict."""

    __props__ = ()

    def make_node(self, rng, v):
        return Apply(self, [rng, v], [rng.type(), v.type()])

    def perform(self, node, inputs, output_storage):
        rng, v = inputs
        output_storage[0][0], output_storage[1][0] = {"n": rng["n"] + 1}, v * rng["n"]

    def infer_shape(self, node, shapes):
        return [None, shapes[1]]

    def connection_pattern(self, node):
        return [[False, False], [False, True]]

    def pullback(self, inputs, outputs, cotangents):
        return [disconnected_type(), 2 * cotangents[1]]


class Variate(OpFromGraph):
    """As PyMC's symbolic random variables: the second output is the value, the first an update."""

    default_output = 1

    def update(self, node):
        return {node.inputs[0]: node.outputs[0]}


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_objects_pass_through(mode, inline):
    rng = phintys.generic("rng")
    op = Variate([rng, x], Draw()(rng, x + 1), inline=inline, strict=True, name="Variate")
    state = phintys.shared({"n": 3}, name="state")
    node = op.make_node(state, x)
    assert op(state, x).owner.op == op and op(state, x).index == 1
    assert op.connection_pattern(node) == [[False, False], [False, True]]
    draw = node.outputs[1]
    (new,) = op.update(node).values()
    results = [draw, draw.shape, phintys.grad(draw.sum(), x)]
    f = phintys.function([x], results, updates={state: new}, mode=mode)
    for n in (3, 4, 5):
        found = f([1.0, 2.0])
        for a, b in zip(found, ([2.0 * n, 3.0 * n], [2], [2.0, 2.0])):
            np.testing.assert_array_equal(a, b)
    assert state.get_value() == {"n": 6}


def test_overrides_of_ops_with_objects():
    rng = phintys.generic("rng")

    def rule(inputs, outputs, cotangents):
        return [disconnected_type(), 10 * cotangents[1]]

    op = OpFromGraph([rng, x], Draw()(rng, x), pullback=rule)
    draw = op(phintys.shared({"n": 3}), x)[1]
    np.testing.assert_array_equal(evaluate(phintys.grad(draw.sum(), x), [x], [[1.0]]), [10.0])


@pytest.mark.parametrize("name", ["full", "broadcast_to", "alloc of zeros", "empty"])
def test_shapes_that_are_inputs(name):
    """A result depends on the vector that is its shape, whatever computes the vector."""
    rows, value = phintys.shared(4), pt.dscalar("value")
    makers = {
        "full": pt.full,
        "broadcast_to": lambda shape, v: pt.broadcast_to(v, shape),
        "alloc of zeros": lambda shape, v: pt.zeros(shape) + v,
        "empty": lambda shape, v: pt.empty(shape) * 0 + v,
    }
    for shape in (pt.stack([rows]), pt.as_tensor([rows, rows]), rows[None], pt.dmatrix("m").shape):
        op = OpFromGraph([shape, value], [makers[name](shape, value)], strict=True)
        lengths = [3] * shape.type.shape[0]
        found = op(np.array(lengths), 1.5).eval()
        assert found.shape == tuple(lengths)
        assert name == "empty" or (found == 1.5).all()
