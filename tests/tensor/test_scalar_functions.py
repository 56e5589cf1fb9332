"""The public elementwise functions, as they follow from the scalar tables."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tensor_checks import check_derivatives

import phintys
import phintys.tensor as pt
from phintys.errors import NullTypeGradError
from phintys.gradient import grad_not_implemented
from phintys.scalar import BinaryScalarOp, upgrade_to_float
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import Elemwise, elementwise, scalar_elemwise
from phintys.tensor.scalar_functions import ALIASES, FUNCTIONS
from phintys.tensor.shape import scalar_from_tensor, tensor_from_scalar


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ALIASES])
def test_every_row_is_a_function(name: str) -> None:
    function = FUNCTIONS[name]
    assert isinstance(function, Elemwise)
    assert function is elementwise(TABLE[name])
    assert function.__name__ == name
    assert TABLE[name].doc in (function.__doc__ or "")
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(alias: str) -> None:
    assert FUNCTIONS[alias] is FUNCTIONS[ALIASES[alias]]
    assert alias in FUNCTIONS[alias].__doc__


def test_documentation_says_what_the_row_says() -> None:
    assert "Derivative: yes" in FUNCTIONS["exp"].__doc__
    assert "Range: 0 to inf" in FUNCTIONS["exp"].__doc__
    assert "Native code: yes" in FUNCTIONS["exp"].__doc__
    assert "Native code: no" in FUNCTIONS["gcd"].__doc__
    assert "none, it steps along the grid of floats" in FUNCTIONS["nextafter"].__doc__
    assert "Derivative: 0" in FUNCTIONS["lt"].__doc__


def test_undefined_derivative_is_an_error_with_its_reason() -> None:
    v, x = pt.dscalar("v"), pt.dscalar("x")
    with pytest.raises(phintys.errors.NullTypeGradError, match="Bessel function in its order"):
        phintys.grad(FUNCTIONS["jv"](v, x), v)
    found = phintys.grad(FUNCTIONS["jv"](v, x), x).eval({v: 1.0, x: 0.5})
    np.testing.assert_allclose(found, 0.4539328904747795)


def test_composite_of_several_outputs() -> None:
    from phintys.scalar import Composite, exp, float64

    a, b = float64("a"), float64("b")
    op = Elemwise(Composite([a, b], [exp(a * b), a - b]))
    x, y = pt.dvector("x"), pt.dvector("y")
    first, second = op(x, y)
    at = {x: np.array([1.0, 2.0]), y: np.array([0.5, 0.1])}
    np.testing.assert_allclose(first.eval(at), np.exp([0.5, 0.2]))
    np.testing.assert_allclose(second.eval(at), [0.5, 1.9])
    found = phintys.grad((first + 2 * second).sum(), x).eval(at)
    np.testing.assert_allclose(found, np.exp([0.5, 0.2]) * [0.5, 0.1] + 2)


def test_float_x_is_looked_up_each_time() -> None:
    from phintys.config import config

    n = pt.lscalar("n")
    with config.change_flags(floatX="float32"):
        assert (n / n).dtype == "float32"
    assert (n / n).dtype == "float64"


def test_a_function_is_named_by_a_symbol():
    @scalar_elemwise(symbolname="exp", nfunc="exp")
    def power_of_e(x):
        """e to the power x."""

    assert power_of_e == pt.exp and power_of_e.__doc__ == "e to the power x."
    assert power_of_e.nfunc_spec == ("exp", 1, 1)
    assert pt.exp.__doc__ != power_of_e.__doc__
    with pytest.raises(ValueError, match=r"no scalar op 'expp'\. Did you mean 'exp'"):
        scalar_elemwise(symbolname="expp")(power_of_e)


class ByGrad(BinaryScalarOp):
    """``x**2 * y``, with derivatives in PyTensor's way."""

    def impl(self, x, y):
        return x**2 * y

    def grad(self, inputs, output_grads):
        (x, y), (g,) = inputs, output_grads
        return [g * 2 * x * y, g * x**2]


class ByLOp(ByGrad):
    grad = None

    def L_op(self, inputs, outputs, output_grads):
        (x, _), (z,), (g,) = inputs, outputs, output_grads
        return [g * 2 * z / x, g * x**2]


class ByPullback(ByLOp):
    L_op = None

    def pullback(self, inputs, outputs, cotangents):
        return ByLOp.L_op(self, inputs, outputs, cotangents)


@pytest.mark.parametrize("cls", [ByGrad, ByLOp, ByPullback])
def test_derivatives_that_a_class_of_a_user_defines_for_scalars(cls):
    op = Elemwise(cls(upgrade_to_float, name="mine"))
    x, y = np.array([1.0, 2.0]), np.array([[3.0, 4.0], [5.0, 6.0]])
    check_derivatives(lambda x, y: op(x, y) ** 2, [x, y])
    a, b = pt.dscalars("a", "b")
    scalar = phintys.grad(
        tensor_from_scalar(op.scalar_op(*map(scalar_from_tensor, (a, b)))), [a, b]
    )
    assert [float(g.eval({a: 2.0, b: 3.0})) for g in scalar] == [12.0, 4.0]


def test_a_derivative_that_a_class_of_a_user_does_not_know():
    class Unknown(ByGrad):
        def grad(self, inputs, output_grads):
            known, _ = super().grad(inputs, output_grads)
            return [known, grad_not_implemented(self, 1, inputs[1])]

    x, y = pt.dvectors("x", "y")
    cost = Elemwise(Unknown(upgrade_to_float))(x, y).sum()
    np.testing.assert_array_equal(phintys.grad(cost, x).eval({x: [2.0], y: [3.0]}), [12.0])
    with pytest.raises(NullTypeGradError):
        phintys.grad(cost, y)


def test_both_directions_take_the_derivative_of_a_class_that_also_has_one_in_the_table():
    class Mine(type(TABLE["exp"])):
        def L_op(self, inputs, outputs, output_grads):
            return [3 * output_grads[0]]

    x = pt.dvector("x")
    y = Elemwise(Mine(upgrade_to_float, name="mine"))(x)
    (forward,) = phintys.pushforward([y], [x], [pt.ones_like(x)])
    for found in (phintys.grad(y.sum(), x), forward):
        np.testing.assert_array_equal(found.eval({x: [1.0, 2.0]}), [3.0, 3.0])
