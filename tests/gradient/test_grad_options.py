"""`grad`: its arguments, the form of its results, what is connected, dtypes, kinks, masks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import grad
from phintys.errors import DisconnectedInputError, NullTypeGradError
from phintys.gradient import disconnected_grad, undefined_grad
from phintys.graph.traversal import apply_ancestors
from phintys.graph.type import DisconnectedType, NullType
from phintys.scalar import float64, int64

MODES = ("FAST_COMPILE", "FAST_RUN")


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


def value(out, inputs, *values, mode="FAST_COMPILE"):
    return phintys.function(list(inputs), out, mode=mode, on_unused_input="ignore")(*values)


# ------------------------------------------------------------------ cost, wrt, names


def test_the_result_has_the_form_of_wrt():
    x, y = pt.dscalars("x", "y")
    cost = x**2 * y
    assert type(grad(cost, x)) is type(x)
    assert [type(grad(cost, form([x, y]))) for form in (list, tuple)] == [list, tuple]
    assert grad(cost, []) == []
    a, b = grad(cost, [x, x])
    assert value([a, b], [x, y], 2.0, 3.0) == [12.0, 12.0]
    assert value(grad(x, x), [x], 3.0) == 1.0


def test_wrt_may_be_any_variable_of_the_graph():
    x = pt.dscalar("x")
    y = x**2
    cost = y * x
    assert value(grad(cost, y), [x], 3.0) == 3.0
    assert value(grad(cost, [x, y]), [x], 3.0) == [27.0, 3.0]
    with pytest.raises(TypeError, match="wrt must be a variable or a list of variables, not 3"):
        grad(cost, 3)
    with pytest.raises(TypeError, match="not 'x'"):
        grad(cost, ["x"])


def test_the_cost_is_a_real_scalar():
    v, z = pt.dvector("v"), pt.zscalar("z")
    with pytest.raises(TypeError, match=r"scalar cost; v has 1 dimensions .*float64.*\n.*made at"):
        grad(v, v)
    with pytest.raises(TypeError, match=r"real cost; .*complex128"):
        grad(z * z, z)
    with pytest.raises(ValueError, match=r"NaN cost .*because"):
        grad(NullType("because")(), v)
    with pytest.raises(ValueError, match="cost, known_grads, or both"):
        grad(None, v)


def test_names():
    x, u = pt.dscalar("x"), pt.dscalar()
    cost = x**2 * u
    assert grad(cost, x).name is None
    cost.name = "c"
    assert grad(cost, x).name == "(dc/dx)"
    assert grad(cost, u).name is None
    assert grad(cost, x, add_names=False).name is None
    (y := x + u).name = "y"
    y_is_its_own_gradient = grad((y * y.type("g")).sum(), y, add_names=True)
    assert y_is_its_own_gradient.name in (None, "g")


def test_options_are_checked():
    x, y = pt.dscalars("x", "y")
    for options in (
        {"disconnected_inputs": "foo"},
        {"disconnected_inputs": "ignore", "return_disconnected": "foo"},
    ):
        with pytest.raises(ValueError, match=r"must be .* not 'foo'"):
            grad(x**2, y, **options)
    with pytest.raises(TypeError, match="consider_constant"):
        grad(x**2, x, consider_constant=["y"])


# ---------------------------------------------------------------- consider_constant


def test_consider_constant_goes_by_identity():
    x = pt.dscalar("x")
    y = x**2
    cost = y * x
    assert value(grad(cost, x), [x], 3.0) == 27.0
    assert value(grad(cost, x, consider_constant=[y]), [x], 3.0) == 9.0
    assert value(grad(cost, x, consider_constant={y}), [x], 3.0) == 9.0
    assert value(grad(cost, x, consider_constant=[x**2]), [x], 3.0) == 27.0
    with pytest.raises(DisconnectedInputError):
        grad(y * 2.0, x, consider_constant=[y])


def test_what_is_constant_has_a_gradient_itself():
    x = pt.dscalar("x")
    y = x**2
    assert value(grad(y * x, y, consider_constant=[y]), [x], 3.0) == 3.0
    assert value(grad(y * x, x, consider_constant=[x]), [x], 3.0) == 27.0
    assert value(grad(y * x, [x, y], consider_constant=[y]), [x], 3.0) == [9.0, 3.0]


def test_one_of_several_outputs_is_constant():
    x = pt.dvector("x")
    a, b = pt.split(x, [1, 1], n_splits=2)
    cost = (a * b).sum()
    found = value(grad(cost, x, consider_constant=[a]), [x], [2.0, 5.0])
    np.testing.assert_array_equal(found, [0.0, 2.0])


# ---------------------------------------------------------------------- disconnected

x, i, v = pt.dscalar("x"), pt.iscalar("i"), pt.dvector("v")
DISCONNECTED = {
    "absent": (pt.dscalar() * 2.0, x),
    "shape": (v.shape[0].astype("float64"), v),
    "shape of a shape": (pt.zeros_like(v).sum(), v),
    "index": (v[i], i),
    "slice": (v[:i].sum(), i),
    "length of alloc": (pt.alloc(x, i).sum(), i),
    "length of reshape": (v.reshape((i,)).sum(), i),
    "length of arange": (pt.arange(i).sum().astype("float64"), i),
    "repeats": (pt.repeat(v, 2).sum() * 1.0, i),
    "barrier": (disconnected_grad(x) ** 2, x),
}


@pytest.mark.parametrize("name", DISCONNECTED)
def test_disconnected(name):
    cost, wrt = DISCONNECTED[name]
    with pytest.raises(DisconnectedInputError) as caught:
        grad(cost, wrt)
    assert "does not depend on" in str(caught.value)
    assert f"on {wrt.name} (type" in str(caught.value)
    assert "test_grad_options.py" in str(caught.value) or wrt.origin is None
    with pytest.warns(UserWarning, match="does not depend on") as record:
        warned = grad(cost, wrt, disconnected_inputs="warn")
    assert record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zero = grad(cost, wrt, disconnected_inputs="ignore")
    at = {"float64": np.ones(3), "int32": np.int32(2)}[wrt.type.dtype]
    at = at if wrt.type.ndim or wrt.type.dtype == "int32" else 1.0
    for g in (zero, warned):
        assert g.type.dtype == "float64" and g.type.ndim == wrt.type.ndim
        np.testing.assert_array_equal(value(g, [wrt], at), np.zeros(np.shape(at)))


def test_return_disconnected():
    cost = x**2
    quiet = {"disconnected_inputs": "ignore"}
    assert grad(cost, v, return_disconnected="none", **quiet) is None
    g = grad(cost, v, return_disconnected="disconnected", **quiet)
    assert isinstance(g.type, DisconnectedType)
    g = grad(cost, [x, v], return_disconnected="none", **quiet)
    assert g[1] is None and value(g[0], [x], 3.0) == 6.0


def test_value_and_shape_together():
    found = value(grad(v.sum() * v.shape[0], v), [v], [1.0, 2.0])
    np.testing.assert_array_equal(found, [2.0, 2.0])


def test_null_gradients():
    cost = undefined_grad(x) ** 2 + v.sum()
    with pytest.raises(NullTypeGradError, match=r"respect to x is not defined: UndefinedGrad"):
        grad(cost, x)
    g = grad(cost, [x, v], null_gradients="return")
    assert isinstance(g[0].type, NullType) and "UndefinedGrad" in g[0].type.why_null
    np.testing.assert_array_equal(value(g[1], [x, v], 0.0, [1.0, 2.0]), [1.0, 1.0])
    grad(cost, v)
    grad(undefined_grad(x) * v.sum(), v)


def test_a_null_term_wins_over_others():
    for cost in (
        undefined_grad(x) + x**2,
        x**2 + undefined_grad(x),
        undefined_grad(x) ** 2 + x + x,
    ):
        with pytest.raises(NullTypeGradError):
            grad(cost, x)


# ----------------------------------------------------------------------- known_grads


def test_known_grads():
    x = pt.dscalar("x")
    y = x**2
    cost = y * 3.0
    assert value(grad(None, x, known_grads={y: pt.constant(3.0)}), [x], 2.0) == 12.0
    assert value(grad(None, x, known_grads={y: 3.0}), [x], 2.0) == 12.0
    # a known gradient replaces the computed one
    assert value(grad(cost, x, known_grads={y: pt.constant(100.0)}), [x], 2.0) == 400.0
    assert value(grad(cost, x, known_grads={cost: pt.constant(100.0)}), [x], 2.0) == 1200.0
    assert value(grad(cost + x, x, known_grads={y: pt.constant(100.0)}), [x], 2.0) == 401.0
    w = pt.dvector("w")
    assert value(grad(cost, x, known_grads={w: w}), [x], 2.0) == 12.0
    assert value(grad(None, x, known_grads={x: 7.0}), [x], 2.0) == 7.0


def test_known_grads_are_checked():
    y = x**2
    with pytest.raises(TypeError, match=r"known gradient of .* float dtype.*int8"):
        grad(None, x, known_grads={y: pt.constant(1)})
    with pytest.raises(ValueError, match=r"known gradient of .* rank; v is of type"):
        grad(None, x, known_grads={y: v})


# -------------------------------------------------------------------- integers, complex


def test_integer_variables_have_float_gradients():
    n, b = pt.iscalar("n"), pt.scalar("b", dtype="bool")
    for cost, wrt, at, expected in [
        ((n * 1.5) ** 2, n, 3, 13.5),
        (n * n, n, 3, 0.0),
        (b * x, b, True, 2.0),
        (pt.exp(n), n, 0, 1.0),
    ]:
        g = grad(cost, wrt)
        assert g.type.dtype == "float64"
        assert value(g, [wrt, x], at, 2.0) == expected
    with phintys.config.change_flags(floatX="float32"):
        assert grad(x**2, n, disconnected_inputs="ignore").type.dtype == "float32"
        assert grad(pt.exp(n), n).type.dtype == "float64"  # as exp of int32 is


@pytest.mark.parametrize(
    "build",
    [
        lambda v: pt.cast(v, "int32") * 2.0,
        lambda v: pt.cast(v > 0, "float64"),
        lambda v: pt.cast(v, "int32").sum() * 2.0,
        lambda v: pt.cast(v, "int32")[1:] * 2.0,
        lambda v: pt.cast(v, "int32").reshape((3, 1)) * 2.0,
        lambda v: pt.cast(v, "int8").T * 2.0,
        lambda v: pt.join(0, pt.cast(v, "int8"), pt.cast(v, "int8")) * 2.0,
        lambda v: pt.cast(v, "int8").dot(pt.cast(v, "int8")) * 2.0,
        lambda v: pt.cast(v, "int8").max() * 2.0,
        lambda v: pt.cumsum(pt.cast(v, "int8")) * 2.0,
        lambda v: pt.set_subtensor(pt.cast(v, "int8")[0], 3) * 2.0,
        lambda v: pt.alloc(pt.cast(v, "int8")[0], 3) * 2.0,
        lambda v: pt.cast(pt.argmax(v), "float64"),
        lambda v: pt.floor(v) + pt.sgn(v),
        lambda v: pt.repeat(pt.cast(v, "int8"), 2) * 2.0,
        lambda v: pt.stack([pt.cast(v, "int8")[0]] * 2) * 2.0,
        lambda v: pt.diagonal(pt.cast(pt.outer(v, v), "int8")) * 2.0,
        lambda v: pt.specify_shape(pt.cast(v, "int8"), (3,)) * 2.0,
    ],
)
def test_paths_through_integers_give_zeros(build):
    g = grad(build(v).sum(), v)
    assert g.type.dtype == "float64"
    np.testing.assert_array_equal(value(g, [v], [1.0, 2.5, -3.0]), np.zeros(3))


def test_gradients_have_the_dtype_of_their_variable():
    f, d = pt.fscalar("f"), pt.dscalar("d")
    assert [g.type.dtype for g in grad((f * d) ** 2, [f, d])] == ["float32", "float64"]
    assert grad(f.astype("float64") ** 2, f).type.dtype == "float32"


@pytest.mark.parametrize(
    "build",
    [
        lambda z: (abs(z) ** 2).sum(),
        lambda z: pt.real(z * z).sum(),
        lambda z: pt.imag(z.dot(z)),
        lambda z: abs(pt.exp(z)[1:].sum()),
        lambda z: pt.real(pt.outer(z, z).T.reshape((4,)).prod()),
        lambda z: abs(pt.stack([z, 2j * z]).sum(axis=0)[0] / z[1]),
    ],
)
def test_complex_variables(build):
    """d cost / d Re + i d cost / d Im, by finite differences."""
    z = pt.zvector("z")
    at = np.array([0.5 + 0.3j, -0.2 + 0.7j])
    cost = build(z)
    assert cost.type.dtype == "float64"
    f, g = (value(out, [z], at) for out in (cost, grad(cost, z)))
    assert f.dtype == "float64" and g.dtype == "complex128"
    run = phintys.function([z], cost, mode="FAST_COMPILE")
    for k in range(2):
        step = np.zeros(2, complex)
        step[k] = 1e-6
        expected = (run(at + step) - run(at - step)) / 2e-6
        expected = expected + 1j * (run(at + 1j * step) - run(at - 1j * step)) / 2e-6
        np.testing.assert_allclose(g[k], expected, rtol=1e-7, atol=1e-9)


# ------------------------------------------------------------------ kinks and masks

y = pt.dscalar("y")
KINKS = {
    "max": (v.max(), v, [1.0, 2.0, 2.0], [0, 1, 1]),
    "min": (v.min(), v, [1.0, 1.0, 2.0], [1, 1, 0]),
    "maximum, first": (pt.maximum(x, y), x, 2.0, 1),
    "maximum, second": (pt.maximum(x, y), y, 2.0, 0),
    "minimum, first": (pt.minimum(x, y), x, 2.0, 1),
    "minimum, second": (pt.minimum(x, y), y, 2.0, 0),
    "maximum(x, 0)": (pt.maximum(x, 0), x, 0.0, 1),
    "maximum(0, x)": (pt.maximum(0, x), x, 0.0, 0),
    "abs": (abs(x), x, 0.0, 0),
    "sgn": (pt.sgn(x), x, 0.0, 0),
    "clip below": (pt.clip(x, -1, 1), x, -2.0, 0),
    "clip at the lower bound": (pt.clip(x, -1, 1), x, -1.0, 1),
    "clip at the upper bound": (pt.clip(x, -1, 1), x, 1.0, 1),
    "clip above": (pt.clip(x, -1, 1), x, 2.0, 0),
    "sqrt": (pt.sqrt(x), x, 0.0, np.inf),
    "sqr": (x**2, x, 0.0, 0),
    "softplus": (pt.softplus(x), x, 800.0, 1),
    "log sum exp": (pt.log(pt.exp(v).sum()), v, [800.0, 800.0], [0.5, 0.5]),
    "prod with a zero": (v.prod(), v, [0.0, 2.0, 3.0], [6, 0, 0]),
    "prod with two zeros": (v.prod(), v, [0.0, 0.0, 3.0], [0, 0, 0]),
}


@pytest.mark.parametrize("name", KINKS)
def test_ties_and_kinks(name, mode):
    cost, wrt, at, expected = KINKS[name]
    inputs, values = ([x, y], [at, at]) if wrt in (x, y) else ([v], [at])
    found = value(grad(cost, wrt), inputs, *values, mode=mode)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


MASKED = {
    "log": (lambda s: pt.switch(s > 0, pt.log(s), 0), [0, 1, 0]),
    "log, other side": (lambda s: pt.switch(s <= 0, 0.0, pt.log(s)), [0, 1, 0]),
    "sqrt": (lambda s: pt.switch(s > 0, pt.sqrt(s), 0.0), [0, 0.5, 0]),
    "reciprocal": (lambda s: pt.switch(pt.neq(s, 0), 1 / s, 0.0), [0, -1, -1]),
    "entropy": (lambda s: pt.switch(s > 0, s * pt.log(s), 0.0), [0, 1, 0]),
    "chain": (lambda s: pt.switch(s > 0, pt.log(pt.sqrt(s)) ** 2, 0.0), [0, 0, 0]),
    "scaled": (lambda s: 3.0 * pt.switch(s > 0, pt.log(s), s), [3, 3, 3]),
    "where": (lambda s: pt.where(s > 0, pt.log(2 * s), 0.0), [0, 1, 0]),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_branches_are_free_of_nan(name, mode):
    build, expected = MASKED[name]
    found = value(grad(build(v).sum(), v), [v], [0.0, 1.0, -1.0], mode=mode)
    np.testing.assert_array_equal(found, expected)
    for at, e in zip((0.0, 1.0, -1.0), expected):
        assert value(grad(build(x), x), [x], at, mode=mode) == e


# --------------------------------------------------------------------- the graph made


def test_gradients_of_scalar_graphs():
    a, n = float64("a"), int64("n")
    found = grad(a * a * n, [a, n])
    assert [g.type for g in found] == [float64, float64]
    assert grad(a * 2, n, disconnected_inputs="ignore").type == float64


def test_cost_is_linear_and_sums_are_one_node():
    sizes = []
    for count in (50, 100):
        terms = [(x * float(k)).sin() if hasattr(x, "sin") else pt.sin(x * k) for k in range(count)]
        g = grad(pt.add(*terms), x)
        sizes.append(sum(1 for _ in apply_ancestors([g])))
        assert len(g.owner.inputs) == count
    assert sizes[1] <= 2 * sizes[0]


def test_sharing_makes_no_duplicates():
    u = x
    for _ in range(60):
        u = u * u
    g = grad(u, x)
    assert sum(1 for _ in apply_ancestors([g])) < 400


def test_higher_order():
    d = x**5
    for _ in range(4):
        d = grad(d, x)
    assert value(d, [x], 2.0) == 240.0
    d = pt.tanh(x)
    for _ in range(3):
        d = grad(d, x)
    t = np.tanh(0.3)
    np.testing.assert_allclose(value(d, [x], 0.3), (1 - t**2) * (6 * t**2 - 2), rtol=1e-12)


@pytest.mark.parametrize("cost", [3.0, np.float64(3), "x"])
def test_a_cost_that_is_no_variable_is_refused(cost):
    with pytest.raises(TypeError, match="needs a scalar cost"):
        phintys.grad(cost, pt.dscalar("x"))
