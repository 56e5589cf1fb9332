"""Distributions of vectors, `choice` and `permutation`: NumPy's numbers and states."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.graph.vectorize import vectorize_graph
from phintys.tensor.random.multivariate import (
    ChoiceWithoutReplacement,
    MultivariateHypergeometricRV,
    MvNormalRV,
    PermutationRV,
)
from phintys.tensor.random.type import random_generator_type

modes = pytest.mark.parametrize("mode", ("FAST_COMPILE", "FAST_RUN", "C"))

MEAN = np.array([0.5, -1.0, 2.0])
COV = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]])
COVS = np.stack([COV, 2.0 * COV, np.eye(3)])
P = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
TABLE = np.arange(10.0).reshape(5, 2)


def check(mode, name, args, kwargs, numpys=None, exact=True):
    """Three calls of a function that draws from a shared generator; ``numpys(rng)`` draws by NumPy.

    Returns the variable of the draw.
    """
    rng = pt.random.shared_rng(seed=3)
    next_rng, x = getattr(rng, name)(*args, **kwargs)
    f = phintys.function([], x, updates={rng: next_rng}, mode=mode)
    expected = np.random.default_rng(3)
    for _ in range(3):
        found = f()
        wanted = numpys(expected) if numpys else getattr(expected, name)(*args, **kwargs)
        assert found.shape == np.shape(wanted)
        if exact:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert random_generator_type.values_eq(rng.get_value(), expected)
    known = zip(x.type.shape, found.shape, strict=True)
    assert all(n in (None, m) for n, m in known)
    return x


def each(draw, *batches, shape=()):
    """Draws with one item of each batch after the other."""
    core = [len(np.shape(b)) - n for b, n in batches]
    outer = np.broadcast_shapes(shape, *(np.shape(b)[:k] for (b, _), k in zip(batches, core)))
    full = [
        np.broadcast_to(b, outer + np.shape(b)[k:]) for (b, _), k in zip(batches, core, strict=True)
    ]
    return np.array([draw(*(b[i] for b in full)) for i in np.ndindex(outer)]).reshape(
        *outer, *np.shape(batches[0][0])[core[0] :]
    )


# ----- vectors


@modes
@pytest.mark.parametrize("method", ["cholesky", "svd", "eigh"])
@pytest.mark.parametrize("size", [None, (), 4, (2, 0), (2, 3)])
def test_multivariate_normal_with_one_matrix(mode, method, size):
    args = MEAN, COV
    x = check(mode, "multivariate_normal", args, {"size": size, "method": method})
    assert x.type.dtype == phintys.config.floatX


@modes
@pytest.mark.parametrize("method", ["cholesky", "svd", "eigh"])
@pytest.mark.parametrize("size", [None, (2, 3)])
def test_multivariate_normal_with_batches(mode, method, size):
    means = MEAN + np.arange(3.0)[:, None]
    for mean, cov in ((MEAN, COVS), (means, COV), (means, COVS)):

        def numpys(rng, mean=mean, cov=cov):
            def draw(mean, cov):
                return rng.multivariate_normal(mean, cov, method=method)

            return each(draw, (mean, 1), (cov, 2), shape=size or ())

        kwargs = {"size": size, "method": method}
        check(mode, "multivariate_normal", (mean, cov), kwargs, numpys, exact=False)


@modes
def test_matrices_that_have_no_factor(mode):
    cov = pt.dmatrix("cov")
    args = np.zeros(2), cov
    rng = pt.random.shared_rng(seed=1)
    f = phintys.function([cov], pt.random.multivariate_normal(*args, rng=rng), mode=mode)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        f(-np.eye(2))
    with pytest.raises(ShapeError, match="n in"):
        f(np.eye(3))
    singular = np.ones((2, 2))
    for method in ("svd", "eigh"):
        draw = pt.random.multivariate_normal(*args, rng=rng, method=method)
        found = phintys.function([cov], draw, mode=mode)(singular)
        np.testing.assert_allclose(found[0], found[1])
    with pytest.raises(ValueError, match="'svd' or 'eigh', not 'lu'"):
        pt.random.multivariate_normal(*args, method="lu")
    assert MvNormalRV(method="svd") != MvNormalRV(method="eigh")
    assert MvNormalRV(method="svd")(*args, rng=rng).owner.op.method == "svd"


@modes
@pytest.mark.parametrize("size", [None, (), 4, (2, 2), (0, 2)])
@pytest.mark.parametrize("alphas", [[1.0, 2.0, 3.0], [0.05, 0.01, 0.02]])
def test_dirichlet(mode, size, alphas):
    check(mode, "dirichlet", (alphas,), {"size": size})


@modes
@pytest.mark.parametrize("size", [None, (2, 2), (0, 2)])
@pytest.mark.parametrize(
    "alphas", [[[1.0, 2.0, 3.0], [4.0, 0.01, 0.5]], [[1.0, 2.0, 3.0], [0.05, 0.01, 0.02]]]
)
def test_dirichlet_of_rows(mode, size, alphas):
    def draws(rng):
        return each(rng.dirichlet, (np.array(alphas), 1), shape=size or ())

    check(mode, "dirichlet", (alphas,), {"size": size}, draws)


@modes
def test_concentrations_that_are_wrong(mode):
    alphas = pt.dmatrix("alphas")
    draw = pt.random.dirichlet(alphas, rng=pt.random.shared_rng(seed=1))
    f = phintys.function([alphas], draw, mode=mode)
    for wrong in ([[1.0, -1.0]], [[1.0, -1.0], [1.0, 2.0]]):
        with pytest.raises(ValueError, match="alpha <"):
            f(np.array(wrong))
    assert f(np.zeros((2, 0))).shape == (2, 0)
    assert np.isnan(f(np.array([[np.nan, 1.0], [1.0, 2.0]]))[0]).all()


@modes
@pytest.mark.parametrize("size", [None, (3, 2), (0, 2)])
def test_multinomial(mode, size):
    p = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    check(mode, "multinomial", (5, p[0]), {})
    check(mode, "multinomial", (5, p[0]), {"size": size})
    check(mode, "multinomial", ([5, 6], p[0]), {"size": size})
    check(mode, "multinomial", ([5, 6], p), {"size": size})


@modes
@pytest.mark.parametrize("method", ["marginals", "count"])
def test_multivariate_hypergeometric(mode, method):
    op = MultivariateHypergeometricRV(method=method)
    colors = np.array([[3, 4, 5], [1, 0, 9]])
    rng = pt.random.rng("rng")
    f = phintys.function([rng], op(colors, [[2], [7]], rng=rng), mode=mode)
    expected = np.random.default_rng(2)
    wanted = each(
        lambda c, n: expected.multivariate_hypergeometric(c, int(n), method=method),
        (colors, 1),
        (np.array([[2], [7]]), 0),
    )
    np.testing.assert_array_equal(f(np.random.default_rng(2)), wanted)
    with pytest.raises(ValueError, match="'marginals' or 'count'"):
        MultivariateHypergeometricRV(method="other")


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_counts_that_are_wrong(mode):
    n, p = pt.lscalar("n"), pt.dvector("p")
    rng = pt.random.shared_rng(seed=1)
    f = phintys.function([n, p], pt.random.multinomial(n, p, rng=rng), mode=mode)
    for args, message in (
        ((-1, [0.5, 0.5]), "n < 0"),
        ((3, [-0.1, 0.5]), "pvals < 0"),
        ((3, [0.8, 0.9, 0.1]), "sum"),
    ):
        with pytest.raises(ValueError, match=message):
            f(args[0], np.array(args[1]))
    g = phintys.function([n], pt.random.multivariate_hypergeometric([1, 2], n, rng=rng), mode=mode)
    with pytest.raises(ValueError, match="nsample > sum"):
        g(4)
    with pytest.raises(TypeError, match="n of multinomial"):
        pt.random.multinomial(2.5, [0.5, 0.5], rng=rng)


# ----- items


@modes
def test_permutation(mode):
    for x in (5, np.int64(0), np.arange(4.0), TABLE, np.zeros((0, 2))):
        draw = check(mode, "permutation", (x,), {})
        assert draw.type.dtype == pt.as_tensor(x).type.dtype

        def numpys(rng, x=x):
            rows = [rng.permutation(x) for _ in range(6)]
            return np.reshape(rows, (2, 3, *np.shape(rows[0])))

        check(mode, "permutation", (x,), {"size": (2, 3)}, numpys)


@modes
def test_permutations_of_what_is_known_later(mode):
    rng, n, v = pt.random.shared_rng(seed=3), pt.lscalar("n"), pt.dvector("v")
    f = phintys.function([n], pt.random.permutation(n, size=(2,), rng=rng), mode=mode)
    assert [f(k).shape for k in (3, 0, -2)] == [(2, 3), (2, 0), (2, 0)]
    m = pt.dmatrix("m")
    rows = vectorize_graph(pt.random.permutation(v, rng=rng), {v: m})
    expected = np.random.default_rng(3)
    found = phintys.function([m], rows, mode=mode)(TABLE.T)
    np.testing.assert_array_equal(found, [expected.permutation(row) for row in TABLE.T])
    with pytest.raises(ValueError, match="may be several lengths"):
        vectorize_graph(pt.random.permutation(n, rng=rng), {n: pt.lvector()})
    for wrong in (2.5, pt.dscalar()):
        for function in (pt.random.permutation, pt.random.choice):
            with pytest.raises(TypeError, match="integers below an integer"):
                function(wrong, rng=rng)
    assert PermutationRV(signature="(x)->(x)") == PermutationRV(signature="(x)->(x)")


@modes
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("p", [None, P])
@pytest.mark.parametrize("a", [5, np.arange(5.0) ** 2, TABLE])
@pytest.mark.parametrize("size", [None, (), 3, (2, 2), (1, 0)])
def test_choice(mode, replace, p, a, size):
    draw = check(mode, "choice", (a,), {"size": size, "replace": replace, "p": p})
    if size is not None and not replace:
        assert isinstance(draw.owner.op, ChoiceWithoutReplacement)
        assert draw.owner.op.has_p_param == (p is not None)


@modes
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("size", [None, 3, (2, 2)])
def test_choice_along_an_axis(mode, replace, size):
    cube = np.arange(24.0).reshape(2, 4, 3)
    for axis in (0, 1, 2, -1):
        n = 1 if not replace and size is not None else size
        check(mode, "choice", (cube,), {"size": n, "replace": replace, "axis": axis})
    p = P[:4] / P[:4].sum()
    kwargs = {"size": size, "replace": replace, "axis": 1, "p": p}
    check(mode, "choice", (cube,), kwargs)


@modes
def test_choices_of_what_is_known_later(mode):
    rng, n, a, p = pt.random.shared_rng(seed=3), pt.lscalar("n"), pt.dvector("a"), pt.dvector("p")
    draw = pt.random.choice(a, size=(n, 2), replace=False, p=p, rng=rng)
    f = phintys.function([a, p, n], [draw, draw.shape], mode=mode)
    for k in (1, 2, 0):
        found, shape = f(np.arange(5.0), P, k)
        wanted = np.random.default_rng(3).choice(np.arange(5.0), (k, 2), replace=False, p=P)
        np.testing.assert_array_equal(found, wanted)
        assert tuple(shape) == found.shape
    for args, error, message in (
        ((np.arange(5.0), P, 3), ValueError, "larger sample"),
        ((np.arange(4.0), P, 1), ShapeError, "Wrong length"),
        ((np.arange(5.0), 2 * P, 1), ValueError, "sum to 1"),
    ):
        with pytest.raises(error, match=message):
            f(*args)
    m = pt.dmatrix("m")
    rows = vectorize_graph(pt.random.choice(a, size=2, replace=False, rng=rng), {a: m})
    expected = np.random.default_rng(3)
    found = phintys.function([m], rows, mode=mode)(TABLE.T)
    np.testing.assert_array_equal(found, [expected.choice(r, 2, replace=False) for r in TABLE.T])


def test_there_is_no_derivative():
    alphas = pt.dvector("alphas")
    draw = pt.random.dirichlet(alphas, rng=pt.random.rng())
    with pytest.raises(phintys.gradient.NullTypeGradError, match="dirichlet_rv"):
        phintys.grad(draw[0], alphas)
