"""Every distribution in mode JAX: numbers distributed like those of NumPy, and reproducible."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from distribution_cases import COV, MISSING, PARAMETERS, P
from scipy import stats
from tiers import few, rest

import phintys
import phintys.tensor as pt
from phintys.tensor.random.basic import DISTRIBUTIONS
from phintys.tensor.random.type import random_generator_type

pytest.importorskip("jax")

SIZE = 5_000
CASES = [(name, k) for name, rows in PARAMETERS.items() for k in range(len(rows))]
#: those that XLA compiles fast
CHEAP = "choice exponential integers normal power triangular uniform weibull".split()


def drawn(name, params, mode, dtype=None):
    """A function of a generator that draws many numbers."""
    rng = pt.random.rng("rng")
    size = {"size": (SIZE,)} if "multi" in name or name in ("dirichlet", "permutation") else {}
    size = size or {"size": SIZE}
    next_rng, x = getattr(rng, name)(*params, **size, **({"dtype": dtype} if dtype else {}))
    return phintys.function([rng], [x, next_rng], mode=mode)


def test_every_distribution_is_here():
    assert sorted([*PARAMETERS, *MISSING]) == sorted(DISTRIBUTIONS)


@pytest.mark.parametrize(
    "case", few(CASES, *((name, 0) for name in CHEAP)), ids=lambda case: f"{case[0]}-{case[1]}"
)
def test_the_numbers_are_distributed_like_those_of_numpy(case):
    name, k = case
    params = PARAMETERS[name][k]
    f, reference = (drawn(name, params, mode) for mode in ("JAX", "FAST_RUN"))
    found, after = f(np.random.default_rng(1))
    found, (wanted, _) = np.asarray(found), reference(np.random.default_rng(2))
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    for x, y in zip(found.reshape(SIZE, -1).T, wanted.reshape(SIZE, -1).T, strict=True):
        if np.ptp(y) == 0:
            np.testing.assert_array_equal(x, y)
        else:
            assert stats.ks_2samp(x, y, method="asymp").pvalue > 1e-4
    again, same = f(np.random.default_rng(1))
    np.testing.assert_array_equal(found, again)
    assert random_generator_type.values_eq(after, same)
    if np.ptp(wanted, axis=0).any():
        assert not np.array_equal(f(after)[0], found)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param("dirichlet", {}, marks=rest),
        pytest.param("multinomial", {}, marks=rest),
        ("multivariate_normal", {"method": "cholesky"}),
        pytest.param("multivariate_normal", {"method": "svd"}, marks=rest),
        pytest.param("multivariate_normal", {"method": "eigh"}, marks=rest),
    ],
)
def test_moments_of_vectors(name, given):
    params, rng = PARAMETERS[name][0], pt.random.rng("rng")
    _, x = getattr(rng, name)(*params, size=(SIZE,), **given)
    found = np.asarray(phintys.function([rng], x, mode="JAX")(np.random.default_rng(1)))
    wanted = phintys.function([rng], x)(np.random.default_rng(2))
    np.testing.assert_allclose(found.mean(axis=0), wanted.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.cov(found.T), np.cov(wanted.T), atol=0.25)


FLOAT32 = ["normal", "beta", "gamma", "vonmises", "cauchy", "triangular"]


@pytest.mark.parametrize("name", few(FLOAT32, "normal", "cauchy", "triangular"))
def test_float32(name):
    found, _ = drawn(name, PARAMETERS[name][0], "JAX", dtype="float32")(np.random.default_rng(1))
    wanted, _ = drawn(name, PARAMETERS[name][0], "FAST_RUN")(np.random.default_rng(2))
    assert found.dtype == "float32"
    assert stats.ks_2samp(np.asarray(found), wanted).pvalue > 1e-4


@rest
def test_batches_are_independent():
    rng, p = pt.random.rng("rng"), np.stack([P, P[::-1]])
    draws = [
        rng.permutation(6, size=(50,))[1],
        pt.random.choice(9, size=(4, 2), replace=False, rng=rng),
        pt.random.choice(np.arange(5.0), size=3, replace=False, p=P, rng=rng),
        pt.random.categorical(p, size=(500, 2), rng=rng),
        pt.random.dirichlet(np.ones((2, 3)), rng=rng),
        pt.random.multinomial([3, 50], p, rng=rng),
        pt.random.multivariate_normal(np.zeros((4, 1, 3)), np.stack([COV, np.eye(3)]), rng=rng),
    ]
    f = phintys.function([rng], draws, mode="JAX")
    found = [np.asarray(x) for x in f(np.random.default_rng(1))]
    assert [x.shape for x in found] == [tuple(x.type.shape) for x in draws]
    orders, chosen, probable, categories, dirichlets, counts, normals = found
    assert len(np.unique(orders, axis=0)) > 40
    assert (np.sort(orders, axis=1) == np.arange(6)).all()
    assert len(np.unique(chosen)) == 8
    assert len(np.unique(probable)) == 3
    assert categories.mean(axis=0)[0] > categories.mean(axis=0)[1]
    np.testing.assert_allclose(dirichlets.sum(axis=1), 1.0)
    assert not np.array_equal(*dirichlets)
    np.testing.assert_array_equal(counts.sum(axis=1), [3, 50])
    assert len(np.unique(normals)) == normals.size


@pytest.mark.parametrize("name", sorted(MISSING))
def test_what_jax_lacks_runs_in_python(name):
    rng = pt.random.rng("rng")
    _, x = getattr(rng, name)(*MISSING[name])
    with pytest.warns(UserWarning, match="JAX has no values of type RandomGeneratorType"):
        f = phintys.function([rng], x, mode="JAX")
    expected = getattr(np.random.default_rng(3), name)(*MISSING[name])
    np.testing.assert_array_equal(f(np.random.default_rng(3)), expected)


@rest
def test_parameters_that_are_wrong():
    rng, x, cov = pt.random.rng("rng"), pt.dscalar("x"), pt.dmatrix("cov")
    for draw in (
        pt.random.binomial(3, x, rng=rng),
        pt.random.triangular(0.0, x, 1.0, rng=rng),
        pt.random.dirichlet(pt.stack([1.0, x]), rng=rng),
        pt.random.categorical(pt.stack([1.0, x]), rng=rng),
        pt.random.multinomial(3, pt.stack([x, 1.0]), rng=rng),
    ):
        f = phintys.function([rng, x], draw, mode="JAX")
        with pytest.raises(ValueError):
            f(np.random.default_rng(1), -2.0)
    f = phintys.function([rng, cov], rng.multivariate_normal(np.zeros(2), cov)[1], mode="JAX")
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        f(np.random.default_rng(1), -np.eye(2))


@rest
def test_generators_from_seeds_and_from_others():
    seed, rng = pt.lscalar("seed"), pt.random.rng("rng")
    draws = [g.normal(size=3)[1] for g in pt.random.default_rng(seed).spawn(3)[1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = phintys.function([seed], draws, mode="JAX")
        after, (child,) = rng.spawn(1)
        g = phintys.function([rng], [after, child, *child.normal(size=2)], mode="JAX")
    found = [np.asarray(f(k)).tobytes() for k in (3, 4, 3, 2**40 + 3)]
    assert len(set(found)) == 3
    assert found[0] == found[2]
    assert len({np.asarray(x).tobytes() for x in f(3)}) == 3
    with pytest.raises(ValueError, match="negative"):
        f(-1)
    states = g(np.random.default_rng(1))[:3]
    assert len({s.normal() for s in states}) == 3
    with pytest.warns(UserWarning, match="JAX has no values"):
        h = phintys.function([], pt.random.default_rng().normal()[1], mode="JAX")
    assert h() != h()
