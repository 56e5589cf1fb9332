"""Products keep the order in which they do not overflow; complex infinities keep their parts."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt

CASES = {
    "(x / y) * z": (lambda x, y, z: (x / y) * z, (1e200, 1e200, 1e200)),
    "x / (y / z)": (lambda x, y, z: x / (y / z), (1e200, 1e200, 1e200)),
    "x * (y / z)": (lambda x, y, z: x * (y / z), (1e200, 1e200, 1e200)),
    "x / y / z": (lambda x, y, z: x / y / z, (1e200, 1e200, 1e200)),
    "x * (y * z)": (lambda x, y, z: x * (y * z), (1e200, 1e200, 1e-200)),
    "x / (y * c)": (lambda x, y, z: x / (y * 1e200), (1e-200, 1e-300, 1.0)),
    "c / (x / c)": (lambda x, y, z: 1e200 / (x / 1e200), (1e300, 1.0, 1.0)),
    "x * c * c": (lambda x, y, z: x * 1e200 * 1e200, (1e-300, 1.0, 1.0)),
    "x / c": (lambda x, y, z: x / 1e-320, (1e-300, 1.0, 1.0)),
    "x / c / c": (lambda x, y, z: x / 1e200 / 1e200, (1e300, 1.0, 1.0)),
    "(x * c) * (y * c)": (lambda x, y, z: (x * 1e-200) * (y * 1e-200), (1e200, 1e200, 1.0)),
    "x + c + c": (lambda x, y, z: x + 1e308 + 1e308, (-1e308, 1.0, 1.0)),
    "c * x + c * x": (lambda x, y, z: 1e308 * x + (-1e308) * y + 1e308 * x, (1.0, 1.0, 1.0)),
}
MODES = ["FAST_COMPILE", "FAST_RUN"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_intermediate_results_stay_finite(case, mode):
    expression, values = CASES[case]
    variables = pt.dvectors("x", "y", "z")
    f = phintys.function(
        variables, expression(*variables), mode=mode, on_unused_input="ignore"
    )  # fmt: skip
    arrays = [np.full(3, v) for v in values]
    expected = expression(*arrays)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(f(*arrays), expected, rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "expression",
    [lambda z, r: z + z, lambda z, r: z + z + z, lambda z, r: -z, lambda z, r: r - z],
)
def test_signs_and_multiples_of_complex_infinities(expression, mode):
    z, r = pt.zvector("z"), pt.dvector("r")
    f = phintys.function([z, r], expression(z, r), mode=mode, on_unused_input="ignore")
    values = np.array([complex(np.inf, 1), complex(1, np.inf), complex(np.nan, 1), 2 - 3j])
    real = np.full(4, 0.3)
    found, expected = f(values, real), expression(values, real)
    np.testing.assert_array_equal(found.real, expected.real)
    np.testing.assert_array_equal(found.imag, expected.imag)


def test_complex_exponents():
    z = pt.zvector("z")
    values = np.array([2 - 3j, 1j])
    f = phintys.function([z], [z ** (2 + 1j) / z, z ** (3 + 0j) / z])
    for found, expected in zip(f(values), [values ** (1 + 1j), values**2]):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
