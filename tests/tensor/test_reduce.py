"""Reductions: values, dtypes, empty axes, ties, zeros, derivatives."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tensor_checks import (
    MODES,
    assert_like,
    check,
    check_all,
    check_batched,
    check_derivatives,
    evaluate,
    symbols,
)
from tiers import few

import phintys
import phintys.tensor as pt
from phintys import array_api
from phintys.compile.mode import Mode
from phintys.graph.equality import equal_computations
from phintys.tensor import reduce
from phintys.tensor.others import ProdOthers, products_of_others
from phintys.tensor.reduce import (
    Argmax,
    CAReduce,
    Max,
    Min,
    Prod,
    ProdWithoutZeros,
    Sum,
    minimum_node,
)

RNG = np.random.default_rng(0)
SHAPES = {"0-d": (), "vector": (5,), "matrix": (3, 4), "one": (1, 4), "cube": (2, 3, 4)}
SIMPLE = {
    "sum": (pt.sum, np.sum),
    "prod": (pt.prod, np.prod),
    "max": (pt.max, np.max),
    "min": (pt.min, np.min),
    "all": (pt.all, np.all),
    "any": (pt.any, np.any),
    "mean": (pt.mean, np.mean),
    "var": (pt.var, np.var),
    "std": (pt.std, np.std),
    "ptp": (pt.ptp, np.ptp),
    "argmax": (pt.argmax, np.argmax),
    "argmin": (pt.argmin, np.argmin),
}
DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex128",
]


def sample(shape, dtype):
    values = RNG.normal(size=shape) * 3
    if dtype.startswith("complex"):
        return np.asarray(values + 1j * RNG.normal(size=shape), dtype)
    return np.asarray(np.abs(values) if dtype.startswith("u") else values).astype(dtype)


def axes_of(ndim):
    yield None
    yield from range(-max(ndim, 1), max(ndim, 1))  # a 0-d array has the axes 0 and -1 too
    if ndim > 1:
        yield (0, ndim - 1)
        yield (-1, 0)
        yield ()


@pytest.mark.parametrize("name", few(SIMPLE, "sum", "max", "all", "var", "argmin"))
@pytest.mark.parametrize("kind", few(SHAPES, "0-d", "matrix"))
def test_axes_and_keepdims(name, kind):
    build, reference = SIMPLE[name]
    x = sample(SHAPES[kind], "float64")
    axes = [a for a in axes_of(x.ndim) if not (name.startswith("arg") and isinstance(a, tuple))]
    check_all(
        (
            f"axis {axis}, {kwargs}",
            lambda x, a=axis, k=kwargs: build(x, axis=a, **k),
            lambda x, a=axis, k=kwargs: reference(x, axis=a if x.ndim else None, **k),
            [x],
        )
        for axis in axes
        for kwargs in ([{}] if name == "ptp" else [{"keepdims": False}, {"keepdims": True}])
    )


def expected_dtype(name, dtype):
    if name in ("all", "any"):
        return "bool"
    if name.startswith("arg"):
        return "int64"
    if name in ("sum", "prod") and dtype in ("bool", "int8", "int64"):
        return "int64"
    if name in ("sum", "prod") and dtype.startswith("u"):
        return "uint64"
    if name in ("mean", "var", "std") and np.dtype(dtype).kind in "biu":
        return "float64"
    return "float64" if name in ("var", "std") and dtype == "complex128" else dtype


@pytest.mark.parametrize("dtype", few(DTYPES, "bool", "int8", "uint64", "float16", "complex128"))
@pytest.mark.parametrize("name", few(SIMPLE, "sum", "max", "all", "var", "argmin", "ptp"))
def test_dtypes(name, dtype):
    build, reference = SIMPLE[name]
    x = sample((3, 4), dtype)
    if dtype == "complex128" and name in ("max", "min", "ptp", "argmax", "argmin"):
        with pytest.raises(TypeError, match="complex"):
            build(pt.as_tensor(x))
        return
    if dtype == "bool" and name == "ptp":
        with pytest.raises(TypeError):
            build(pt.as_tensor(x))
        return
    if dtype == "bool" and name in ("var", "std"):
        check(lambda x: build(x, axis=1), lambda x: reference(x.astype(float), axis=1), [x])
        return
    wanted = expected_dtype(name, dtype)
    wide = "float64" if wanted.startswith("float") else wanted
    with np.errstate(all="ignore"):
        check(
            lambda x: build(x, axis=1),
            lambda x: np.asarray(reference(x.astype(wide) if name in ("mean", "var", "std")
                                           and dtype != "complex128" else x, axis=1)),
            [x],
            dtype=wanted,
        )  # fmt: skip


def test_accumulators():
    x = pt.fvector("x")
    assert (pt.sum(x).owner.op.dtype, pt.sum(x).owner.op.acc_dtype) == ("float32", "float64")
    assert pt.sum(pt.ivector("i"), dtype="float32").owner.op.acc_dtype == "int64"
    assert pt.sum(x, dtype="float64").type.dtype == "float64"
    value = np.full(10_000_000, 0.1, "float32")
    exact = value.astype("float64").sum()
    for mode in MODES:
        found = evaluate(pt.sum(x), [x], [value], mode)
        assert found.dtype == np.float32
        assert abs(found - exact) <= np.spacing(np.float32(exact))
    with pytest.raises(TypeError, match="too narrow"):
        pt.sum(pt.dvector(), acc_dtype="float32")
    with pytest.raises(TypeError, match="too narrow"):
        pt.sum(pt.ivector(), acc_dtype="int8")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty(shape, mode):
    value = np.zeros(shape)
    x = pt.tensor("x", shape=(None,) * len(shape))
    assert evaluate(pt.sum(x), [x], [value], mode) == 0
    assert evaluate(pt.prod(x), [x], [value], mode) == 1
    assert evaluate(pt.all(x), [x], [value], mode)
    assert not evaluate(pt.any(x), [x], [value], mode)
    for build in (pt.max, pt.min, pt.argmax, pt.argmin):
        with pytest.raises(ValueError, match="empty"):
            evaluate(build(x), [x], [value], mode)
    assert evaluate(pt.max(x, initial=-np.inf), [x], [value], mode) == -np.inf
    assert evaluate(pt.min(x, initial=np.inf), [x], [value], mode) == np.inf
    if shape == (0, 3):
        assert evaluate(pt.max(x, axis=1), [x], [value], mode).shape == (0,)


def test_initial_of_integers():
    i, b = pt.ivector("i"), pt.vector("b", dtype="bool")
    for mode in MODES:
        assert evaluate(pt.max(i, initial=-np.inf), [i], [np.zeros(0, "int32")], mode) == -(2**31)
        assert not evaluate(pt.max(b, initial=-np.inf), [b], [np.zeros(0, bool)], mode)
        assert evaluate(pt.min(b, initial=np.inf), [b], [np.zeros(0, bool)], mode)
    for wrong in (np.inf, 2**31):
        with pytest.raises(OverflowError):
            pt.max(i, initial=wrong)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    "dtype",
    few(["bool", "int8", "uint8", "int64", "float32", "float64"], "bool", "int8", "float32"),
)
def test_initial_is_one_more_element(name, dtype):
    ours, numpys = getattr(pt, name), getattr(np, name)
    numbers = {"b": [0, 1], "f": [0, 1, 2.5, -np.inf, np.inf, np.nan]}.get(dtype[0], [0, 1, 2.5])
    check_all(
        (
            f"initial {initial}, shape {value.shape}, {kwargs}",
            lambda x, n=initial, k=kwargs: ours(x, initial=n, **k),
            lambda x, n=initial, k=kwargs: numpys(x, initial=x.dtype.type(n), **k),
            [value.astype(dtype)],
        )
        for initial in numbers
        for value in (np.zeros((0, 2)), np.array([[0, 1], [1, 3]]))
        for kwargs in ({"axis": 0}, {"axis": (0, 1), "keepdims": True})
    )


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod", "mean", "argmax", "argmin", "ptp"])
def test_nan_propagates(name):
    x = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0], [np.inf, 1.0, -np.inf]])
    build, reference = SIMPLE[name]
    check(lambda x: build(x, axis=1), lambda x: reference(x, axis=1), [x])


def test_argmax_of_several_axes():
    x = RNG.normal(size=(3, 4, 5))
    check(
        lambda x: pt.argmax(x, axis=(2, 0)),
        lambda x: x.transpose(1, 0, 2).reshape(4, -1).argmax(-1),
        [x],
    )
    check(lambda x: pt.argmax(x, axis=(0, 1, 2)), np.argmax, [x])


def test_extreme_values_of_small_integers():
    """-128 has no opposite in int8, so that min is not the negative of max of negatives."""
    x = np.array([-128, 5, 127], "int8")
    check(pt.min, np.min, [x])
    check(pt.argmin, np.argmin, [x])
    check(pt.argmin, np.argmin, [np.array([3, 0, 255], "uint8")])


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("ddof", [0, 1])
def test_variance(ddof, corrected):
    x = RNG.normal(size=(3, 5)) + 1e6
    for build, reference in ((pt.var, np.var), (pt.std, np.std)):
        found = evaluate(build(pt.as_tensor(x), axis=0, ddof=ddof, corrected=corrected))
        np.testing.assert_allclose(found, reference(x, axis=0, ddof=ddof), rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_the_variance_of_equal_numbers_is_not_negative(mode):
    """The correction may be greater than the sum of squares by rounding."""
    for n in (2, 5, 10, 11):
        rows = np.repeat(RNG.normal(size=(300, 1)), n, axis=1)
        (x,) = symbols([rows], static=True)
        found = evaluate(pt.var(x, axis=1, corrected=True), [x], [rows], mode)
        assert found.min() >= 0 and found.max() < 1e-28


def test_norms():
    x = RNG.normal(size=(3, 4))
    for order in (1, 2, 3, 0, np.inf, -np.inf):
        check(
            lambda x, o=order: x.norm(o, axis=1),
            lambda x, o=order: np.linalg.norm(x, o, axis=1),
            [x],
        )


# --------------------------------------------------------------------------- derivatives

DIFFERENTIABLE = ["sum", "prod", "max", "min", "mean", "var", "std", "ptp"]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name):
    build, _ = SIMPLE[name]
    x = RNG.permutation(np.linspace(0.5, 3, 12)).reshape(3, 4)
    for axis in (None, 0, -1, (0, 1)):
        check_derivatives(lambda x, a=axis: build(x, axis=a), [x])


def product_of_others(x):
    return np.array([np.prod(np.delete(x, i)) for i in range(x.size)])


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_derivative_of_product_with_zeros(zeros):
    value = np.array([2.0, 3.0, 5.0])
    value[:zeros] = 0
    x = pt.dvector("x")
    for mode in MODES:
        found = evaluate(phintys.grad(pt.prod(x), x), [x], [value], mode)
        assert_like(found, product_of_others(value))
    check_derivatives(pt.prod, [value])


PRODUCTS = {
    "no zero": [2.0, 3.0, 5.0, 0.5],
    "one zero": [2.0, 0.0, 5.0, 0.5],
    "two zeros": [0.0, 3.0, 0.0, 0.5],
    "three zeros": [0.0, 3.0, -0.0, 0.0],
    "only zeros": [0.0, 0.0],
    "far apart": [1e-200, 3.0, 1e200, 0.0, 1e-20],
    "odd": [2.0, 0.0, 3.0, -1.0, 0.5, 7.0, -2.0],
    "one": [2.0],
    "one, zero": [0.0],
    "none": [],
}


def without(value, *positions):
    """The product of all but the elements at some positions; 0 where two of these are one."""
    return np.prod(np.delete(value, positions)) if len({*positions}) == len(positions) else 0.0


@pytest.mark.parametrize("mode", [*MODES, "C"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_higher_derivatives_of_a_product_at_zeros(name, mode):
    value = np.array(PRODUCTS[name])
    x, t = pt.dvector("x"), pt.dvector("t")
    n = range(len(value))
    hessian = phintys.hessian(pt.prod(x), x)
    expected = np.array([[without(value, i, j) for j in n] for i in n]).reshape(len(n), len(n))
    assert_like(evaluate(hessian, [x], [value], mode), expected)
    forward = phintys.pushforward(phintys.pushforward(pt.prod(x), x, t), x, t)
    weights = np.linspace(-1, 2, len(n))
    found = evaluate(forward, [x, t], [value, weights], mode)
    assert_like(found, weights @ expected @ weights)
    third = phintys.grad((hessian * pt.outer(t, t)).sum(), x)
    parts = [[[without(value, i, j, k) for k in n] for j in n] for i in n]
    expected = np.einsum("ijk,i,j->k", np.reshape(parts, (len(n),) * 3), weights, weights)
    assert_like(evaluate(third, [x, t], [value, weights], mode), expected)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2), ()])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_second_derivative_of_a_product_over_axes(axis, dtype):
    """Against finite differences of the first, and as the product of slices."""
    value = RNG.integers(-2, 3, (2, 3, 2)).astype(dtype)
    x, t = pt.tensor3("x", dtype=dtype), pt.tensor3("t", dtype=dtype)
    weights = RNG.normal(size=value.shape).astype(dtype)
    along = phintys.pushforward(pt.prod(x, axis=axis), x, t)
    twice = phintys.pushforward(along, x, t)
    step = 1e-3  # a product of at most 12 small integers: its fourth derivative is bounded
    wide = value.astype(np.result_type(dtype, "float64"))

    def product(s):
        return np.prod(wide + s * weights, axis=axis)

    size = np.abs(product(0)) + np.prod(np.abs(wide) + 2, axis=axis)
    expected = (product(step) - 2 * product(0) + product(-step)) / step**2
    for mode in MODES:
        found = evaluate(twice, [x, t], [value, weights], mode)
        assert found.dtype == dtype
        assert np.all(np.abs(found - expected) < 1e-4 * size * (1 + np.abs(expected)))


def test_derivatives_of_a_product_of_integers_are_zero():
    x = pt.lvector("x")
    g = phintys.grad(pt.prod(x).astype("float64"), x)
    assert_like(evaluate(g, [x], [np.array([2, 0])]), [0.0, 0.0])
    with pytest.raises(TypeError, match="floating"):
        ProdOthers((0,))(x)


def test_second_derivatives_of_products_in_a_batch():
    for x in ([2.0, 0.0, 3.0], [0.0, 0.0, 4.0], [1.0, 2.0, 3.0]):
        check_batched(lambda x: phintys.hessian(pt.prod(x), x), [x])
        check_batched(lambda x, h: ProdOthers((0,))(x, h), [x, x[::-1]])


def test_work_of_products_of_others_is_linear(lines_run):
    """Levels of pairs, each of which NumPy computes; they are half as long as those before."""
    short, long = ({0: np.ones(n), 1: np.ones(n)} for n in (2**8, 2**16))
    assert lines_run(products_of_others, long) < 3 * lines_run(products_of_others, short)


def test_derivative_of_product_without_zeros():
    x = pt.dvector("x")
    cost = pt.prod(x, no_zeros_in_input=True)
    assert_like(evaluate(phintys.grad(cost, x), [x], [np.array([2.0, 3.0])]), [3.0, 2.0])
    value = np.array([[0.0, 2.0], [3.0, 4.0]])
    check(ProdWithoutZeros(axis=1), lambda x: np.where(x == 0, 1, x).prod(1), [value])
    found = evaluate(phintys.grad(ProdWithoutZeros()(x), x), [x], [np.array([0.0, 2.0, 3.0])])
    assert_like(found, [0.0, 3.0, 2.0])


@pytest.mark.parametrize("build", [pt.max, pt.min])
def test_ties_all_get_the_gradient(build):
    x = pt.dvector("x")
    value = np.array([2.0, 2.0, 2.0])
    for mode in MODES:
        assert_like(evaluate(phintys.grad(build(x), x), [x], [value], mode), np.ones(3))


def test_gradients_of_discrete_results_are_zero():
    x = pt.dvector("x")
    for build in (pt.argmax, pt.any, pt.all):
        cost = build(x).astype("float64") * x[0]
        found = evaluate(phintys.grad(cost, x), [x], [np.array([1.0, 2.0, 3.0])])
        expected = np.array([float(evaluate(build(x), [x], [np.array([1.0, 2, 3])])), 0, 0])
        assert_like(found, expected)


# ------------------------------------------------------------------------------ structure


@pytest.mark.parametrize("name", SIMPLE)
def test_batched(name):
    build, _ = SIMPLE[name]
    check_batched(lambda x: build(x, axis=0), [RNG.normal(size=(3, 4))])
    check_batched(build, [RNG.normal(size=(3, 4))])


def test_ops_compare_print_and_pickle():
    x = pt.dmatrix("x")
    ops = [
        Sum(axis=(0,)), Prod(no_zeros_in_input=True), ProdWithoutZeros(axis=1), Max(axis=(0,)),
        Min(axis=None, initial=True), reduce.All(0), reduce.Any_(0), Argmax(axis=(1,)),
        reduce.Argmin(), CAReduce(Sum().scalar_op, axis=0),
    ]  # fmt: skip
    for op in ops:
        copy = pickle.loads(pickle.dumps(op))
        assert copy == op and hash(copy) == hash(op) and str(copy) == str(op)
        out = op(x)
        assert pickle.loads(pickle.dumps(out)).owner.op == out.owner.op
    assert len(set(ops)) == len(ops)
    assert str(pt.sum(x, axis=-1).owner.op) == "Sum{axis=1}"
    assert str(reduce.Any_(0)) == "Any{axis=0}"


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in ("sum", "prod", "max", "min", "all", "any")
        for dtype in DTYPES
        if not (dtype == "complex128" and name in ("max", "min"))
    ],
)
def test_known_reductions_are_those_made_anew(name, dtype):
    """Functions take ops that were made before; a class makes a new one each time."""
    build = minimum_node if name == "min" else SIMPLE[name][0]
    fresh = {"sum": Sum, "prod": Prod, "max": Max, "min": Min, "all": reduce.All}
    cls = fresh.get(name, reduce.Any_)
    for shape in SHAPES.values():
        x = pt.as_tensor(sample(shape, dtype))
        for axis in axes_of(len(shape)):
            first, again, anew = build(x, axis=axis), build(x, axis=axis), cls(axis)(x)
            assert first.owner.op is again.owner.op == anew.owner.op
            assert first is not again
            assert first.type == anew.type
            assert pickle.loads(pickle.dumps(first.owner.op)) == anew.owner.op


@pytest.mark.parametrize("axis", [1, np.int8(1), [1], (np.int64(1),), np.array([1]), (-1,)])
def test_axes_of_any_kind_make_one_op(axis):
    x = pt.dmatrix("x")
    assert pt.sum(x, axis=axis).owner.op is pt.sum(x, axis=(1,)).owner.op
    assert pt.sum(x, axis=axis).owner.op == Sum((1,), "float64", "float64")


@pytest.mark.parametrize("floatX", ["float32", "float64"])
def test_floatX_of_a_reduction_is_that_of_now(floatX):
    with phintys.config.change_flags(floatX=floatX):
        assert pt.sum(pt.lvector("x"), dtype="floatX").type.dtype == floatX
        assert pt.prod(pt.lvector("x"), dtype="floatX").type.dtype == floatX


def test_misuse():
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        pt.sum(x, axis=2)
    with pytest.raises(ValueError, match="twice"):
        pt.sum(x, axis=(0, -2))
    with pytest.raises(TypeError, match="axis"):
        pt.sum(x, axis=0.5)
    with pytest.raises(ValueError, match="out of bounds for array of dimension 0"):
        pt.sum(x[0, 0], axis=1)
    with pytest.raises(ValueError, match="twice"):
        pt.sum(x[0, 0], axis=(0, -1))


def test_helpers_for_authors():
    x = pt.dmatrix("x")
    assert reduce.makeKeepDims(x, pt.sum(x, axis=-1), -1).type.shape == (None, 1)
    assert reduce.normalize_reduce_axis(None, 3) is None
    assert reduce.normalize_reduce_axis((-1, 0), 3) == (0, 2)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "C"])
def test_means_do_not_overflow_where_their_sums_would(mode):
    values = {
        "int64": [2**62, 2**62],
        "uint64": [2**63, 2**63],
        "int8": [127] * 300,
        "float16": [100.0] * 5000,
    }
    for dtype, numbers in values.items():
        x = pt.vector("x", dtype=dtype)
        f = phintys.function([x], [x.mean(), x.var()], mode=mode)
        mean, var = f(np.array(numbers, dtype))
        assert mean == numbers[0]
        assert var == 0
        assert mean.dtype == ("float16" if dtype == "float16" else "float64")


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "C"])
def test_extremes_over_nothing_are_an_error_of_fills_too(mode):
    x = pt.dvector("x")
    for extreme in (pt.max, pt.min):
        f = phintys.function([x], extreme(pt.zeros_like(x)), mode=mode)
        with pytest.raises(ValueError, match="empty"):
            f(np.ones(0))
        assert f(np.ones(2)) == 0


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.mean])
def test_complex_results_are_not_made_real(reduce):
    with pytest.raises(TypeError, match="imaginary parts"):
        reduce(pt.zvector("z"), dtype="float64")


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_gradient_of_a_product_that_underflows(mode):
    """The product is 0 or subnormal, its derivatives are not."""
    x = pt.dvector("x")
    f = phintys.function([x], phintys.grad(x.prod(), x), mode=mode)
    np.testing.assert_allclose(f([1e-200, 1e-200]), [1e-200, 1e-200])
    np.testing.assert_allclose(f([1e-200, 1e200, 1e200])[0], np.inf)
    np.testing.assert_allclose(f([1.5, -0.5, 5e-324])[2], -0.75)


@pytest.mark.parametrize("name, second, expected", [("sum", 0.25, 3), ("prod", 1.5, 1)])
def test_joined_floats_are_reduced_before_the_result_is_rounded(name, second, expected):
    """The rule for joins reduced integers: generated examples compare integers without rounding."""
    x, y = pt.dvector("x"), pt.dvector("y")
    out = getattr(pt.stack([x, y]), name)(dtype="int64", acc_dtype="float64")
    f = phintys.function([x, y], out)
    assert f([1.5, 0.75], [second, 0.75]) == expected


# ------------------------------------------------------------------------- min and argmin


def nodes_of(inputs, out, mode="FAST_RUN"):
    f = phintys.function(inputs, out, mode=mode)
    return [n.op for n in f.maker.fgraph.toposort()]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}])
def test_minimum_is_the_negated_maximum_of_negated_numbers(dtype, options):
    """The layout in which programs that derive densities of minima look for it."""
    x = pt.tensor("x", dtype=dtype, shape=(None, 3))
    assert equal_computations([pt.min(x, **options)], [-pt.max(-x, **options)])
    assert type(pt.min(x, initial=2).owner.inputs[0].owner.op) is Min


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_minimum_of_unsigned_numbers_is_one_node(dtype):
    assert type(pt.min(pt.tensor("x", dtype=dtype, shape=(3,))).owner.op) is Min


def test_argmin_of_floats_is_argmax_of_negated_numbers():
    x, k = pt.dmatrix("x"), pt.lmatrix("k")
    assert equal_computations([pt.argmin(x, axis=1)], [pt.argmax(-x, axis=1)])
    assert type(pt.argmin(k, axis=1).owner.op) is reduce.Argmin


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_one_reduction_computes_a_minimum(mode, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 3))
    assert nodes_of([x], pt.min(x), mode) == [Min()]
    assert nodes_of([x], pt.argmin(x, axis=0), mode) == [reduce.Argmin((0,))]
    kept = pt.min(x, axis=0, keepdims=True)
    assert nodes_of([x], kept, mode) == nodes_of([x], reduce.keep_dims(Min(0)(x), (0,)), mode)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": 0, "keepdims": True}])
def test_derivative_of_a_minimum_has_no_negations(mode, options):
    x = pt.dmatrix("x")
    axes = reduce.normalize_axes(options.get("axis"), 2)
    plain = Min(axes)(x)
    plain = reduce.keep_dims(plain, axes) if options.get("keepdims") else plain
    derivatives = [
        phintys.grad((pt.sqr(x) * found).sum() + pt.sqr(found).sum(), x)
        for found in (pt.min(x, **options), plain)
    ]
    counts = [len(nodes_of([x], d, mode)) for d in derivatives]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_minimum_of_the_smallest_integer(mode, dtype):
    """Its negative is itself, so that ``-max(-x)`` would be another number."""
    least = np.iinfo(dtype).min
    values = np.array([[5, least, -3], [7, 1, least + 1]], dtype)
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    graphs = [pt.min(x), pt.min(x, axis=1, keepdims=True)]
    simplified = phintys.rewrite_graph(graphs, include=("canonicalize",), clone=True)
    found = phintys.function([x], [*graphs, *simplified], mode=mode)(values)
    for whole, rows in (found[:2], found[2:]):
        assert whole == least
        np.testing.assert_array_equal(rows, values.min(axis=1, keepdims=True))


@pytest.mark.parametrize("mode", MODES)
def test_the_negative_of_the_maximum_of_negative_unsigned_integers(mode):
    """They wrap around: it is no minimum."""
    x = pt.tensor("x", dtype="uint8", shape=(None,))
    f = phintys.function([x], -pt.max(-x), mode=mode)
    assert f(np.array([0, 5], "uint8")) == 5


def test_one_node_without_rewrites():
    """The functions of the array API compute without rewrites."""
    values = np.array([[5, -128], [7, 1]], "int8")
    x = pt.tensor("x", dtype="int8", shape=(None, None))
    f = phintys.function([x], minimum_node(x, axis=0), mode=Mode("py", None))
    np.testing.assert_array_equal(f(values), [5, -128])
    assert array_api.min(array_api.asarray(values)) == -128


@pytest.mark.parametrize("mode", MODES)
def test_minimum_of_zeros_and_nan(mode):
    x = pt.dmatrix("x")
    f = phintys.function([x], [pt.min(x, axis=1), pt.argmin(x, axis=1)], mode=mode)
    values = np.array([[0.0, 2.0], [-0.0, 1.0], [np.nan, -np.inf], [np.inf, np.inf]])
    least, where = f(values)
    np.testing.assert_array_equal(least, values.min(axis=1))
    np.testing.assert_array_equal(np.signbit(least)[:2], [False, True])
    np.testing.assert_array_equal(where, values.argmin(axis=1))
