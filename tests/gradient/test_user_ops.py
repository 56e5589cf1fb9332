"""Rules of users' ops: every accepted form, and a clear error for every mistake."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import evaluate

import phintys
import phintys.tensor as pt
from phintys import grad, pullback, pushforward
from phintys.errors import (
    DisconnectedInputError,
    MethodNotDefined,
    NullTypeGradError,
    ShapeError,
)
from phintys.gradient import grad_not_implemented
from phintys.graph.op import Op
from phintys.graph.type import Type, disconnected_type
from phintys.graph.variable import Apply

x, t, v = pt.dscalar("x"), pt.dscalar("t"), pt.dvector("v")


class Cube(Op):
    """x ** 3, without derivative."""

    __props__ = ()

    def make_node(self, x):
        x = pt.as_tensor(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(inputs[0] ** 3)


class WithPullback(Cube):
    def pullback(self, inputs, outputs, cotangents):
        return [3 * inputs[0] ** 2 * cotangents[0]]


class WithLop(Cube):
    def L_op(self, inputs, outputs, output_grads):
        return [3 * outputs[0] / inputs[0] * output_grads[0]]


class WithGrad(Cube):
    def grad(self, inputs, output_grads):
        return [3 * inputs[0] ** 2 * output_grads[0]]


class WithBoth(WithPullback):
    def pushforward(self, inputs, outputs, tangents):
        return [3 * inputs[0] ** 2 * tangents[0]]


class WithRop(WithGrad):
    def R_op(self, inputs, eval_points):
        if eval_points[0] is None:
            return [None]
        return [3 * inputs[0] ** 2 * eval_points[0]]


@pytest.mark.filterwarnings("ignore:.* should implement:FutureWarning")
@pytest.mark.parametrize("cls", [WithPullback, WithLop, WithGrad, WithBoth, WithRop])
def test_every_form_of_a_rule(cls):
    y = cls()(x * 2)
    assert grad(y, x).eval({x: 1.0}) == 24.0
    for by_op in (True, False):
        p = pushforward(y, x, t, use_op_pushforward=by_op)
        assert p.eval({x: 1.0, t: 10.0}) == 240.0
    phintys.verify_grad(cls(), [np.array([[0.5, 2.0]])])
    second = pushforward(grad(y, x), x, t)
    assert second.eval({x: 1.0, t: 1.0}) == 48.0
    rows = phintys.jacobian(cls()(v), v).eval({v: [1.0, 2.0]})
    np.testing.assert_allclose(rows, np.diag([3.0, 12.0]))


def test_no_rule():
    for ask in (lambda: grad(Cube()(x), x), lambda: pushforward(Cube()(x), x, t)):
        with pytest.raises(
            MethodNotDefined, match=r"Cube has no pullback(.|\n)*made at .*test_user_ops"
        ):
            ask()
    assert evaluate(grad(Cube()(x) * t, t), [x, t], [2.0, 1.0]) == 8.0


def test_no_rule_is_not_implemented():
    """As in PyTensor: programs that can do without a gradient catch this exception."""
    with pytest.raises(NotImplementedError, match="Cube is not differentiable"):
        grad(Cube()(x), x)


def faulty(rule, result, pattern=None, outputs=1):
    """An op whose rule returns ``result(derivatives given to it)``."""

    class Faulty(Op):
        __props__ = ()

        def make_node(self, *inputs):
            inputs = [pt.as_tensor(x) for x in inputs]
            return Apply(self, inputs, [inputs[0].type() for _ in range(outputs)])

        def perform(self, node, inputs, storage):
            for cell in storage:
                cell[0] = inputs[0].copy()

    setattr(Faulty, rule, lambda self, inputs, outs, given: result(given))
    if pattern is not None:
        Faulty.connection_pattern = lambda self, node: pattern
    return Faulty()


MISTAKES = {
    "None": (lambda g: [None], TypeError, "returned None at position 0"),
    "a number": (lambda g: [3.0], TypeError, r"returned 3\.0 at position 0, not a variable"),
    "too many": (lambda g: [g[0], g[0]], ValueError, r"one variable per \w+ \(1\), not 2"),
    "too few": (lambda g: [], ValueError, r"one variable per \w+ \(1\), not 0"),
    "no list": (lambda g: g[0], ValueError, "must return a list"),
    "integers": (lambda g: [pt.constant(1)], TypeError, "never integers"),
    "other rank": (lambda g: [g[0].dimshuffle("x")], ValueError, "the ranks differ"),
    "complex": (lambda g: [g[0] * 1j], TypeError, "return the real part"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("rule", ["pullback", "pushforward"])
def test_mistakes_in_rules_are_named(name, rule):
    result, error, message = MISTAKES[name]
    y = faulty(rule, result)(x)
    with pytest.raises(error, match=message) as caught:
        grad(y, x) if rule == "pullback" else pushforward(y, x, t)
    assert str(caught.value).startswith(f"Faulty.{rule} ")
    assert "test_user_ops.py" in str(caught.value)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_other_lengths_are_an_error_of_the_call(mode):
    """PyTensor builds such gradients, which programs may replace or never compute."""
    u = pt.dvector("u", shape=(2,))
    y = faulty("pullback", lambda g: [pt.constant(np.ones(3))])(u)
    found = grad(y.sum(), u)
    assert found.type == u.type
    f = phintys.function([u], found + u, mode=mode)
    with pytest.raises(ShapeError, match="Wrong length along axis 0"):
        f([1.0, 2.0])


def test_derivatives_are_cast_to_the_dtype_of_the_variable():
    f = pt.fscalar("f")
    y = faulty("pullback", lambda g: [g[0].astype("float64") * np.float64(2)])(f)
    assert grad(y, f).type.dtype == "float32"
    y = faulty("pullback", lambda g: [g[0].astype("float32")])(x)
    assert grad(y, x).type.dtype == "float64"


def test_connection_patterns():
    one = lambda g: [g[0]]  # noqa: E731
    with pytest.raises(DisconnectedInputError, match="does not depend on x"):
        grad(faulty("pullback", one, [[False]])(x), x)
    with pytest.raises(DisconnectedInputError, match="does not depend on x"):
        grad(faulty("pullback", lambda g: [disconnected_type()])(x), x)
    both = faulty("pullback", lambda g: [g[0], g[0]], [[False], [True]])
    with pytest.raises(
        ValueError, match="Faulty: connection_pattern says that input 0 is not conn"
    ):
        grad(both(x, t), t)
    honest = faulty("pullback", lambda g: [disconnected_type(), g[0]], [[False], [True]])
    assert grad(honest(x, t), t).eval({t: 1.0, x: 1.0}) == 1.0
    for pattern in ([True], [[True, False]], [], [[True], [True]], None):
        broken = faulty("pullback", one, [[True]])
        type(broken).connection_pattern = lambda self, node, p=pattern: p
        with pytest.raises(TypeError, match=r"Faulty.connection_pattern must return one list per"):
            grad(broken(x), x)


def test_outputs_without_cotangent_are_disconnected():
    seen = []

    def rule(given):
        seen.extend(type(g.type).__name__ for g in given)
        return [given[1]]

    a, b = faulty("pullback", rule, outputs=2)(x)
    assert grad(b * 3.0, x).eval({x: 1.0}) == 3.0
    assert seen == ["DisconnectedType", "TensorType"]
    del a


def test_connection_through_one_of_several_outputs():
    op = faulty("pullback", lambda g: [g[0], g[1]], [[True, False], [False, True]], outputs=2)
    a, b = op(x, t)
    assert grad(a * 2.0, x).eval({x: 1.0, t: 1.0}) == 2.0
    with pytest.raises(DisconnectedInputError):
        grad(a * 2.0, t)
    assert grad(a * b, [x, t])[1].eval({x: 3.0, t: 1.0}) == 3.0


def test_integer_outputs_stop_gradients():
    class Count(Cube):
        def make_node(self, x):
            x = pt.as_tensor(x)
            return Apply(self, [x], [pt.lscalar()])

        def pullback(self, inputs, outputs, cotangents):
            return [inputs[0] * cotangents[0]]

    np.testing.assert_array_equal(grad(Count()(v) * 2.0, v).eval({v: [1.0, 2.0]}), [0.0, 0.0])


def test_what_an_op_does_not_know():
    class Half(Cube):
        def make_node(self, x, y):
            return Apply(self, [pt.as_tensor(x), pt.as_tensor(y)], [pt.dscalar()])

        def pullback(self, inputs, outputs, cotangents):
            return [cotangents[0], grad_not_implemented(self, 1, inputs[1], "Too hard.")]

    assert grad(Half()(x, t), x).eval({x: 1.0, t: 1.0}) == 1.0
    with pytest.raises(
        NullTypeGradError, match=r"Half does not know its gradient in input 1. Too ha"
    ):
        grad(Half()(x, t), t)
    with pytest.raises(NullTypeGradError, match=r"Too hard"):
        pushforward(Half()(x, t), t, x)
    assert evaluate(pushforward(Half()(x, t), x, t), [x, t], [1.0, 5.0]) == 5.0


class Doubles(Type):
    """Python floats."""

    __props__ = ()

    def filter(self, data, strict=False, allow_downcast=None):
        return float(data)


class Twice(Op):
    """2 a, of the type above."""

    __props__ = ()
    itypes = (Doubles(),)
    otypes = (Doubles(),)

    def perform(self, node, inputs, outputs):
        outputs[0][0] = 2 * inputs[0]

    def pullback(self, inputs, outputs, cotangents):
        return [Twice()(cotangents[0])]


def test_types_without_ones_need_known_gradients():
    a, g = Doubles()("a"), Doubles()("g")
    y = Twice()(Twice()(a))
    with pytest.raises(TypeError, match=r"no ones_like(.|\n)*known_grads"):
        grad(y, a)
    assert grad(None, a, known_grads={y: g}).eval({g: 1.5}) == 6.0
    assert pullback(y, a, g).eval({g: 1.5}) == 6.0
    with pytest.raises(TypeError, match="no zeros_like"):
        grad(x, a, disconnected_inputs="ignore")
    assert grad(x, a, disconnected_inputs="ignore", return_disconnected="none") is None


@pytest.mark.parametrize("cls, older", [(WithLop, "L_op"), (WithGrad, "grad")])
def test_older_names_of_the_pullback_warn(cls, older):
    """PyTensor gives a FutureWarning when such a method is called for a gradient."""
    with pytest.warns(FutureWarning, match=f"should implement `pullback` instead of `{older}`"):
        grad(cls()(x), x)


def test_older_name_of_the_pushforward_warns():
    with pytest.warns(FutureWarning, match="should implement `pushforward` instead of `R_op`"):
        pushforward(WithRop()(x), x, t)
