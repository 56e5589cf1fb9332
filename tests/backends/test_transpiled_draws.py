"""Random numbers in modes NUMBA and JAX: NumPy's numbers, and streams of JAX's own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from distribution_cases import MISSING, PARAMETERS
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.random.type import random_generator_type

transpilers = pytest.mark.parametrize("mode", ["NUMBA", "JAX"])


def generator(seed=3):
    return np.random.default_rng(seed)


@transpilers
def test_states_and_failures(mode):
    rng, mean, sd = phintys.shared(generator()), pt.dvector("mean"), pt.dscalar("sd")
    first, x = rng.normal(mean, sd, size=(2, 3))
    second, y = first.normal(x.sum(axis=0), 0.1)
    f = phintys.function([mean, sd], [x, y], updates={rng: second}, mode=mode)
    found = [[np.asarray(v) for v in f(np.arange(3.0), 2.0)] for _ in range(3)]
    assert len({v.tobytes() for row in found for v in row}) == 6
    state = rng.get_value()
    for arguments, error in (((np.arange(3.0), -1.0), ValueError), ((np.zeros(4), 1), ShapeError)):
        with pytest.raises(error):
            f(*arguments)
    assert random_generator_type.values_eq(rng.get_value(), state)
    rng.set_value(generator())
    for row in found:
        for value, again in zip(row, f(np.arange(3.0), 2.0), strict=True):
            np.testing.assert_array_equal(value, again)


@transpilers
def test_inputs_results_and_constants(mode):
    rng = pt.random.rng()
    after, x = rng.normal(size=4)
    constant = pt.random.normal(size=2, rng=generator(4))
    f = phintys.function([rng], [rng, after, x, constant], mode=mode)
    given = generator()
    same, new, numbers, fixed = f(given)
    assert random_generator_type.values_eq(given, generator())
    assert random_generator_type.values_eq(same, given)
    assert same.bit_generator is not given.bit_generator
    assert not random_generator_type.values_eq(new, given)
    _, _, again, fixed_again = f(given)
    np.testing.assert_array_equal(numbers, again)
    np.testing.assert_array_equal(fixed, fixed_again)
    assert not np.array_equal(f(new)[2], numbers)


@pytest.mark.needs("numba")
def test_numba_has_the_numbers_of_numpy():
    rng = phintys.shared(generator())
    following, x = rng.normal([1.0, 2.0], 3.0, size=(5, 2))
    f = phintys.function([], x, updates={rng: following}, mode="NUMBA")
    expected = generator()
    for _ in range(2):
        np.testing.assert_array_equal(f(), expected.normal([1.0, 2.0], 3.0, (5, 2)))
    assert random_generator_type.values_eq(rng.get_value(), expected)


@pytest.mark.needs("jax")
def test_the_numbers_of_jax_are_normal():
    from scipy.stats import kstest, norm

    rng = phintys.shared(generator())
    following, x = rng.normal(2.0, 3.0, size=20_000)
    f = phintys.function([], x, updates={rng: following}, mode="JAX")
    many = np.concatenate([np.asarray(f()) for _ in range(3)])
    assert kstest(many, norm(2.0, 3.0).cdf).pvalue > 1e-3
    assert len(np.unique(many)) == many.size
    assert abs(np.corrcoef(many[:20_000], many[20_000:40_000])[0, 1]) < 0.03


@pytest.mark.needs("jax")
def test_a_distribution_that_jax_does_not_have_runs_in_python():
    class Sum(RandomVariable):
        name, signature, dtype = "sum", "()->()", "float64"

        @classmethod
        def rng_fn(cls, rng, a, size):
            return a + rng.random(size)

    rng = pt.random.rng()
    x = Sum()(1.0, size=3, rng=rng)
    with pytest.warns(UserWarning, match="JAX has no values of type RandomGeneratorType"):
        f = phintys.function([rng], x, mode="JAX")
    np.testing.assert_array_equal(f(generator()), 1.0 + generator().random(3))


@transpilers
def test_there_is_no_warning(mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = phintys.function([], pt.random.normal(size=2), mode=mode)
        assert np.asarray(f()).shape == (2,)


@rest
@pytest.mark.needs("numba")
def test_numba_has_the_numbers_of_numpy_for_every_distribution():
    rng, found = pt.random.rng("rng"), []
    for name, rows in {**PARAMETERS, **{k: [v] for k, v in MISSING.items()}}.items():
        after, x = getattr(found[-1][0] if found else rng, name)(*rows[0])
        found.append((after, x))
    draws = [x for _, x in found]
    expected = phintys.function([rng], [found[-1][0], *draws], mode="FAST_COMPILE")(generator())
    f = phintys.function([rng], [found[-1][0], *draws], mode="NUMBA")
    after, *numbers = f(generator())
    assert random_generator_type.values_eq(after, expected[0])
    for value, wanted in zip(numbers, expected[1:], strict=True):
        np.testing.assert_array_equal(value, wanted)
