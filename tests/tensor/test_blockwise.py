"""Batches: ops applied to their items, functions of batches, derivatives through all families."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tensor_checks import MODES, assert_like, check, check_batched, check_derivatives, evaluate
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError, UnsupportedError
from phintys.graph.op import Op
from phintys.graph.type import DisconnectedType, generic
from phintys.graph.variable import Apply
from phintys.graph.vectorize import vectorize_graph
from phintys.inner.from_graph import OpFromGraph
from phintys.tensor.blockwise import Blockwise, parse_signature
from phintys.tensor.dot import Dot

RNG = np.random.default_rng(11)


class Quadratic(Op):
    """``x' a x`` and ``a x`` of a vector and a matrix, with nothing said about batches."""

    __props__ = ()
    gufunc_signature = "(n),(n,n)->(),(n)"

    def make_node(self, x, a):
        x, a = pt.as_tensor(x), pt.as_tensor(a)
        return Apply(self, [x, a], [pt.TensorType(x.dtype, ())(), x.type()])

    def perform(self, node, inputs, output_storage):
        x, a = inputs
        if a.shape != (x.size, x.size):
            raise ValueError("not square")
        output_storage[0][0] = np.asarray(x @ a @ x)
        output_storage[1][0] = a @ x

    def infer_shape(self, node, shapes):
        return [(), shapes[0]]

    def pullback(self, inputs, outputs, cotangents):
        (x, a), (g, h) = inputs, cotangents
        g = x.sum() * 0 if is_disconnected(g) else g
        h = x * 0 if is_disconnected(h) else h
        gx = g * (pt.dot(a, x) + pt.dot(x, a)) + pt.dot(h, a)
        return [gx, g * pt.outer(x, x) + pt.outer(h, x)]

    def pushforward(self, inputs, outputs, tangents):
        (x, a), (tx, ta) = inputs, tangents
        tx = x * 0 if is_disconnected(tx) else tx
        ta = a * 0 if is_disconnected(ta) else ta
        ty = pt.dot(ta, x) + pt.dot(a, tx)
        return [pt.dot(tx, pt.dot(a, x)) + pt.dot(x, ty), ty]


def is_disconnected(v):
    return isinstance(v.type, DisconnectedType)


class Evens(Op):
    """The even numbers of a vector: their count differs from item to item."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [pt.lvector()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][inputs[0] % 2 == 0]


class Opaque(Op):
    """An op with an output that is no tensor."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [generic()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = None


quadratic = Quadratic()


def quadratic_values(*batches):
    return [RNG.normal(size=(*b, *core)) for b, core in zip(batches, [(3,), (3, 3)])]


def expected_quadratic(x, a):
    y = np.squeeze(a @ x[..., None], -1)
    return np.sum(x * y, -1), y


# -------------------------------------------------------------------------------- the op


@pytest.mark.parametrize(
    "signature, parsed",
    [
        ("(m,k),(k)->(m)", ((("m", "k"), ("k",)), (("m",),))),
        ("()->()", (((),), ((),))),
        (" (a, b) -> (b), () ", ((("a", "b"),), (("b",), ()))),
    ],
)
def test_signatures(signature, parsed):
    assert parse_signature(signature) == parsed


@pytest.mark.parametrize("signature", ["", "(m)", "m->()", "(m)->", "(m))->()"])
def test_wrong_signatures(signature):
    with pytest.raises(ValueError, match="signature"):
        parse_signature(signature)


def test_static_shapes_and_errors():
    op = Blockwise(quadratic)
    x, a = pt.tensor(shape=(4, 1, 3)), pt.tensor(shape=(7, 3, 3))
    cost, y = op(x, a)
    assert cost.type.shape == (4, 7) and y.type.shape == (4, 7, 3)
    assert op.batch_ndim(cost.owner) == 2
    with pytest.raises(ShapeError, match="axis 0"):
        op(pt.tensor(shape=(4, 3)), a)
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        op(x, pt.dvector())
    with pytest.raises(ValueError, match="takes 2 inputs"):
        op(x)
    with pytest.raises(ValueError, match="needs a signature"):
        Blockwise(Evens())
    with pytest.raises(ValueError, match="not as"):
        Blockwise(Evens(), "(n)->()")(pt.lvector())
    assert op == Blockwise(Quadratic()) != Blockwise(Dot(), "(k),(k)->()")
    assert str(op) == "Blockwise{Quadratic, (n),(n,n)->(),(n)}"
    assert pickle.loads(pickle.dumps(Blockwise(Dot(), "(k),(k)->()"))) == Blockwise(
        Dot(), "(k),(k)->()"
    )


@pytest.mark.parametrize("batches", [((4,), (4,)), ((), (4,)), ((2, 4), (4,)), ((2, 0), (0,))])
def test_values(batches):
    for k in (0, 1):
        check(
            lambda x, a, k=k: Blockwise(quadratic)(x, a)[k],
            lambda x, a, k=k: expected_quadratic(x, a)[k],
            quadratic_values(*batches),
        )


@pytest.mark.parametrize("mode", MODES)
def test_batches_broadcast_by_known_ones(mode):
    x, a = quadratic_values((4, 1), (1, 5))
    known = pt.tensor(shape=(None, 1, None)), pt.tensor(shape=(1, None, None, None))
    found = evaluate(Blockwise(quadratic)(*known), known, [x, a], mode)
    for value, wanted in zip(found, expected_quadratic(x, a)):
        assert_like(value, wanted)
    free = pt.dtensor3(), pt.dtensor4()
    with pytest.raises(ShapeError):
        evaluate(Blockwise(quadratic)(*free), free, [x, a], mode)


def test_errors_of_items():
    x, a = pt.dmatrix(), pt.dtensor3()
    with pytest.raises(ValueError, match="not square"):
        evaluate(Blockwise(quadratic)(x, a), [x, a], [np.ones((2, 3)), np.ones((2, 3, 4))])
    n = pt.lmatrix()
    evens = Blockwise(Evens(), "(n)->(m)")(n)
    assert_like(evaluate(evens, [n], [[[1, 2], [4, 5]]]), np.array([[2], [4]]))
    with pytest.raises(ShapeError, match="Items of a batch"):
        evaluate(evens, [n], [[[1, 2], [4, 6]]])
    with pytest.raises(ShapeError, match="empty batch"):
        evaluate(evens, [n], [np.zeros((0, 3), "int64")])


@pytest.mark.parametrize("result", [None, 1.5, [[1.0]]])
def test_items_of_another_type_than_declared_are_refused(result):
    class Wrong(Op):
        __props__ = ()
        itypes = otypes = (pt.dvector,)

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = result

    x = pt.dmatrix()
    with pytest.raises(TypeError, match=r"Wrong.perform returned .* output 0, whose type is"):
        evaluate(Blockwise(Wrong(), "(n)->(n)")(x), [x], [np.ones((2, 3))])


def test_functions_that_know_batches():
    class Det(Op):
        __props__ = ()
        gufunc_signature = "(m,m)->()"
        gufunc_spec = ("numpy.linalg.det", 1, 1)

        def make_node(self, a):
            return Apply(self, [pt.as_tensor(a)], [pt.dscalar()])

    check(Blockwise(Det()), np.linalg.det, [RNG.normal(size=(2, 4, 3, 3))])


@pytest.mark.parametrize("batches", [((4,), (4,)), ((), (2,)), ((2,), ())])
@pytest.mark.parametrize("k", [0, 1])
def test_derivatives(batches, k):
    values = quadratic_values(*batches)
    check_derivatives(lambda x, a: Blockwise(quadratic)(x, a)[k] ** 2, values)


def test_derivative_of_both_outputs_and_of_broadcast_inputs():
    x, a = quadratic_values((2, 1), (1, 3))

    def build(x, a):
        x, a = pt.specify_shape(x, (None, 1, None)), pt.specify_shape(a, (1, None, None, None))
        cost, y = Blockwise(quadratic)(x, a)
        return cost[..., None] * y

    check_derivatives(build, [x, a])


def test_ops_without_a_word_about_batches():
    x, a = pt.dvector("x"), pt.dmatrix("a")
    xs, many = pt.dmatrix("xs"), pt.dtensor3("as")
    values = quadratic_values((4,), (4,))
    for replace in ({x: xs}, {a: many}, {x: xs, a: many}):
        given = [replace.get(x, x), replace.get(a, a)]
        args = [v if g.ndim == v.ndim else v[0] for g, v in zip(given, values)]
        out = vectorize_graph(quadratic(x, a)[0], replace)
        assert isinstance(out.owner.op, Blockwise)
        assert_like(evaluate(out, given, args), expected_quadratic(*args)[0])
    with pytest.raises(UnsupportedError, match="not a tensor"):
        vectorize_graph(Opaque()(x), {x: xs})


# ----------------------------------------------------------------------------- vectorize


def test_vectorize():
    x, y = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(5, 3))
    f = pt.vectorize(lambda x, y: pt.exp(x) @ y, signature="(n),(n)->()")
    check(f, lambda x, y: np.sum(np.exp(x) * y, -1), [x, y])
    check(
        pt.vectorize(lambda x, y: x * pt.switch(y > 0, 1, -1)), lambda x, y: x * np.sign(y), [x, y]
    )
    low, high = pt.vectorize(lambda v: (v.min(), v.max()), signature="(n)->(),()")(x)
    assert_like(low.eval(), x.min(-1))
    assert_like(high.eval(), x.max(-1))
    with pytest.raises(ValueError, match="needs 1"):
        f(1.0, y)
    with pytest.raises(ValueError, match="2 inputs"):
        f(x)


# ------------------------------------------------------------------- all families of ops

INDEX = np.array([2, 0, 2])
FAMILIES = {
    "elementwise": lambda x: pt.exp(x[0]) * x - x.T.sum(),
    "reductions": lambda x: x.sum(0) * x.max() + x.prod(axis=1)[0] + x.mean(),
    "any": lambda x: pt.any(x > 0, axis=0) * x[0],
    "argmax": lambda x: x.argmax(axis=1) * x[:, 0],
    "axes": lambda x: x.dimshuffle(1, "x", 0) + x[None],
    "reshape": lambda x: x.reshape((9,))[::2],
    "flatten": lambda x: pt.outer(x.flatten()[:2], x.ravel()[3:]),
    "join": lambda x: pt.concatenate([x, 2 * x[:1]], axis=0),
    "stack": lambda x: pt.stack([x[0], x[:, 1]], axis=1),
    "split": lambda x: pt.split(x, [1, 2], axis=1)[1],
    "alloc": lambda x: pt.alloc(x[0], 2, 3) + pt.zeros_like(x)[:2],
    "shape": lambda x: x * x.shape[0],
    "cumulative": lambda x: pt.cumsum(x, axis=0) * pt.cumprod(x, axis=1),
    "dot": lambda x: x @ x[0] + pt.dot(x, x.T)[0],
    "tensordot": lambda x: pt.tensordot(x[None], x, [[1], [1]]),
    "slices": lambda x: x[1:, ::-1] ** 2,
    "set": lambda x: x[0].set(x[1] ** 2),
    "inc": lambda x: x[:, 1:].inc(x[0, 0]),
    "gather": lambda x: x[INDEX] * x[:, INDEX],
    "scatter": lambda x: x[INDEX].inc(x * 2),
    "scatter set": lambda x: x[:, INDEX].set(x**2),
    "switch": lambda x: pt.switch(x > 0, x**2, -x),
    "softmax": lambda x: pt.special.softmax(x, axis=-1),
    "specify": lambda x: pt.specify_shape(x, (3, 3)) * 2,
    "constant": lambda x: x * np.arange(3.0) + pt.arange(x.shape[0]),
}
CUBE = RNG.normal(size=(3, 3))
#: families whose Jacobians and second derivatives ``make test`` looks at
QUICK = (
    *("reductions", "reshape", "split", "cumulative", "dot"),
    *("set", "gather", "scatter", "softmax"),
)


def families(*without, chosen=QUICK):
    names = [n for n in FAMILIES if n not in without]
    return pytest.mark.parametrize("name", few(names, *chosen))


@families(chosen=FAMILIES)
def test_batches_of_every_family(name):
    check_batched(FAMILIES[name], [CUBE])


@families()
def test_jacobians_of_every_family(name):
    """Both derivative modes, vectorized, against a row of `grad` per element."""
    x = pt.dmatrix("x")
    out = FAMILIES[name](x).flatten()
    n = evaluate(out, [x], [CUBE]).size
    rows = [phintys.grad(out[i], x, disconnected_inputs="ignore") for i in range(n)]
    expected = np.stack(evaluate(rows, [x], [CUBE], "FAST_COMPILE"))
    for mode in MODES:
        found = evaluate(phintys.jacobian(out, x, vectorize=True), [x], [CUBE], mode)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@families("argmax", "any", "shape")
def test_second_derivatives_of_every_family(name):
    x = pt.dvector("x")
    cost = (FAMILIES[name](x.reshape((3, 3))) ** 2).sum()
    value, p = CUBE.ravel(), RNG.normal(size=9)
    gradient = phintys.grad(cost, x)
    f = phintys.function([x], gradient)
    step = 1e-6
    columns = [(f(value + step * e) - f(value - step * e)) / (2 * step) for e in np.eye(9)]
    hessian = evaluate(phintys.hessian(cost, x), [x], [value])
    np.testing.assert_allclose(hessian, np.stack(columns), rtol=1e-4, atol=1e-4)
    v = pt.dvector("v")
    product = evaluate(phintys.hessian_vector_product(cost, [x], [v])[0], [x, v], [value, p])
    np.testing.assert_allclose(product, hessian @ p, rtol=1e-8, atol=1e-10)


def test_results_that_are_the_same_for_all_items_are_repeated():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    column = pt.tensor("column", shape=(None, 1), dtype="float64")

    def of_item(a, b):
        return a.shape[0], pt.constant(2.0), b + 1, a.sum() * b

    f = pt.vectorize(of_item, "(n),()->(),(),(),()")
    values = [RNG.normal(size=(4, 3)), np.ones((5, 4)), np.ones((2, 1))]
    found = evaluate([*f(x, y), *f(x, column)], [x, y, column], values)
    sums = values[0].sum(1)
    for rows, results in ((5, found[:4]), (2, found[4:])):
        wanted = [np.full((rows, 4), k) for k in (3, 2.0, 2.0)] + [np.tile(sums, (rows, 1))]
        for value, expected in zip(results, wanted, strict=True):
            assert value.shape == (rows, 4)
            np.testing.assert_allclose(value, expected)
    assert pt.vectorize(lambda a: a.shape[0], "(n)->()")(x).type.ndim == 1


def of_lengths(x):
    return [x.shape, x.shape[0], pt.zeros(x.shape[0]), pt.eye(x.shape[0], 2), x * 2]


def test_batches_of_what_depends_on_lengths_alone_have_the_axes_of_the_batch():
    x, y, xs, ys = pt.dvector("x"), pt.dvector("y"), pt.dmatrix("xs"), pt.dtensor3("ys")
    values = RNG.normal(size=(4, 3))
    found = vectorize_graph(of_lengths(x), {x: xs})
    for mode in MODES:
        results = evaluate(found, [xs], [values], mode)
        wanted = [
            np.stack(rows) for rows in zip(*(evaluate(of_lengths(x), [x], [v]) for v in values))
        ]
        for value, expected in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(value, expected)
    few = pt.tensor("few", shape=(1, None), dtype="float64")
    found = vectorize_graph(
        [x.sum() * y.shape[0], x.sum(), y.shape[0], pt.ones(2)], {x: few, y: ys}
    )
    results = evaluate(found, [few, ys], [values[:1], np.ones((2, 5, 3))])
    assert [v.shape for v in results] == [(2, 5), (1,), (2, 5), (2,)]


def test_batches_of_an_op_of_a_graph_of_lengths():
    x, xs = pt.dvector("x"), pt.dmatrix("xs")
    op = OpFromGraph([x], of_lengths(x))
    found = vectorize_graph(op(x), {x: xs})
    shapes = [v.shape for v in evaluate(found, [xs], [np.ones((4, 3))])]
    assert shapes == [(4, 1), (4,), (4, 3), (4, 3, 2), (4, 3)]
