"""The public elementwise functions, as they follow from the scalar tables."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import Elemwise, elementwise, scalar_elemwise
from phintys.tensor.scalar_functions import ALIASES, FUNCTIONS


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
