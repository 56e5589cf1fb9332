"""`RandomVariable` subclasses of users, and the helpers for their authors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import phintys
import phintys.tensor as pt
from phintys.errors import MethodNotDefined, ShapeError
from phintys.graph.variable import Constant
from phintys.tensor.random.basic import NormalRV, ScipyRandomVariable
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.random.utils import (
    broadcast_params,
    compute_batch_shape,
    custom_rng_deepcopy,
    default_supp_shape_from_params,
    normalize_size_param,
    params_broadcast_shapes,
    supp_shape_from_ref_param_shape,
)
from phintys.tensor.utils import safe_signature

MODES = ("FAST_COMPILE", "FAST_RUN", "C")
modes = pytest.mark.parametrize("mode", MODES)


def rng():
    return pt.random.shared_rng(seed=1)


def evaluated(variables, inputs):
    """The values of variables, as ints where they are 0-d."""
    f = phintys.function(list(inputs), list(variables), on_unused_input="ignore")
    return [x.tolist() for x in f(*inputs.values())]


# ----- subclasses


class Scaled(RandomVariable):
    """Twice normal numbers around parameters."""

    name = "scaled"
    signature = "()->()"

    @classmethod
    def rng_fn(cls, rng, loc, size):
        return 2.0 * rng.normal(loc, 1.0, size)


class Ones(RandomVariable):
    """Vectors of ones, whose length is a parameter, plus another parameter."""

    name = "ones"
    signature = "(),()->(k)"
    dtype = "float64"

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        return [dist_params[0]]

    @classmethod
    def rng_fn(cls, rng, n, x, size):
        batch = np.broadcast_shapes(np.shape(n), np.shape(x)) if size is None else size
        return np.zeros((*batch, int(np.ravel(n)[0]))) + np.asarray(x)[..., None] + 1.0


@modes
@pytest.mark.parametrize("size", [None, (), 2, (3, 2), (0, 2)])
def test_numbers_come_from_the_method_of_the_class(mode, size):
    loc = 1.0 if size == () else [1.0, 2.0]
    draw = Scaled()(loc, size=size, rng=rng())
    assert draw.type.dtype == phintys.config.floatX
    expected = 2.0 * np.random.default_rng(1).normal(loc, 1.0, size)
    np.testing.assert_array_equal(draw.eval(mode=mode), expected)


@modes
def test_a_result_of_another_shape_is_an_error(mode):
    class Wrong(Scaled):
        @classmethod
        def rng_fn(cls, rng, loc, size):
            return np.zeros(7)

    for loc, size in ((1.0, None), ([1.0, 2.0], None), (1.0, (2, 2))):
        with pytest.raises((TypeError, ShapeError), match=r"scaled_rv.*shape \(7,\)"):
            Wrong()(loc, size=size, rng=rng()).eval(mode=mode)


@modes
@pytest.mark.parametrize(
    "draw",
    [
        lambda: pt.random.normal(np.zeros(3), 1.0, size=2, rng=rng()),
        lambda: pt.random.normal(np.zeros(2), np.ones(3), size=2, rng=rng()),
        lambda: pt.random.multivariate_normal(np.zeros(3), np.eye(2), size=2, rng=rng()),
    ],
)
def test_a_size_that_does_not_fit_is_an_error_of_the_call(mode, draw):
    """PyTensor builds such draws, and programs derive a density from them without drawing."""
    x = draw()
    assert x.type.shape[0] == 2
    lengths = phintys.function([], x.shape[0], mode=mode)
    assert lengths() == 2
    f = phintys.function([], x, mode=mode)
    with pytest.raises(ShapeError, match="do not agree"):
        f()


@modes
def test_a_length_that_is_the_value_of_a_parameter_is_not_kept_for_other_values(mode):
    for n in (3, 5, 3):
        draw = Ones()(np.int64(n), 0.0, rng=rng())
        assert draw.type.shape == (n,)
        np.testing.assert_array_equal(draw.eval(mode=mode), np.ones(n))


@modes
@pytest.mark.parametrize("size", [None, (4, 2)])
def test_a_length_that_is_a_parameter_beside_batches(mode, size):
    n = pt.lscalar("n")
    draw = Ones()(n, [1.0, 2.0], size=size, rng=rng())
    f = phintys.function([n], [draw, draw.shape], mode=mode)
    for length in (3, 0):
        found, shape = f(length)
        assert tuple(shape) == found.shape == (*(size or (2,)), length)
    with pytest.raises(ValueError, match="may be several lengths"):
        Ones()(pt.lvector("n"), 1.0, rng=rng())


def test_what_a_class_must_say():
    class NoSignature(RandomVariable):
        name = "none"

    class NoShape(RandomVariable):
        name = "no_shape"
        signature = "()->(k)"

    with pytest.raises(ValueError, match="needs a signature"):
        NoSignature()
    with pytest.raises(MethodNotDefined, match="_supp_shape_from_params"):
        NoShape()(1.0, rng=rng())


def test_properties_of_an_op():
    op = RandomVariable("normal", 0, [0, 0])
    assert (op.signature, op.dtype, op.inputs_sig, op.output_sig) == (
        "(),()->()",
        "floatX",
        ((), ()),
        (),
    )
    assert op(0.0, 1.0, rng=rng()).eval() == np.random.default_rng(1).normal()
    vector = RandomVariable("vector", 1, [0, 1], "int64", True)
    assert vector.signature == "(),(i10)->(o00)"
    assert vector.destroy_map == {0: [0]}
    assert vector == RandomVariable("vector", 1, (0, 1), "int64", True) != op


@modes
def test_scipy_draws(mode):
    class Semicircular(ScipyRandomVariable):
        name = "semicircular"
        signature = "(),()->()"

        @classmethod
        def rng_fn_scipy(cls, rng, loc, scale, size):
            return scipy.stats.semicircular.rvs(loc, scale, size=size, random_state=rng)

    for loc, size in ((1.0, None), (1.0, ()), ([1.0], None), ([1.0, 2.0], (3, 2)), (1, (1, 1))):
        draw = Semicircular()(loc, 0.1, size=size, rng=rng())
        found = draw.eval(mode=mode)
        expected = Semicircular.rng_fn_scipy(np.random.default_rng(1), loc, 0.1, size)
        assert found.shape == (np.shape(loc) if size is None else size)
        np.testing.assert_array_equal(found, np.reshape(expected, found.shape))


# ----- shapes


def test_the_shape_of_draws_as_variables():
    m, v = pt.dmatrix("m"), pt.dvector("v")
    values = {m: np.zeros((2, 3)), v: np.zeros(3)}
    op = NormalRV()
    assert evaluated(op._infer_shape(None, [m, v]), values) == [2, 3]
    assert evaluated(op._infer_shape(pt.constant([2, 3]), [m, v]), {}) == [2, 3]
    assert evaluated(op._infer_shape(None, [m, v], [(4, 5), (5,)]), {}) == [4, 5]
    node = op(m, v, rng=rng()).owner
    _, inferred = op.infer_shape(
        node, [(), (), (pt.constant(6), pt.constant(7)), (1, pt.constant(7))]
    )
    assert evaluated(inferred, {}) == [6, 7]


def test_helpers_of_authors():
    m, v = pt.dmatrix("m"), pt.dvector("v")
    values = {m: np.zeros((2, 3)), v: np.zeros(3)}
    assert evaluated([compute_batch_shape([m, v], [0, 0])], values) == [[2, 3]]
    assert evaluated([compute_batch_shape([v], [1])], values) == [[]]
    shapes = params_broadcast_shapes([(2, 3), (3,)], [0, 0], use_pytensor=False)
    assert shapes == [(2, 3), (2, 3)]
    for shape in params_broadcast_shapes([m.shape, v.shape], [0, 0]):
        assert evaluated(shape, values) == [2, 3]
    with pytest.raises(ValueError, match="broadcast"):
        params_broadcast_shapes([(2, 3), (4,)], [0, 0], use_pytensor=False)
    with pytest.raises(ValueError, match="broadcast"):
        broadcast_params([np.zeros((2, 3)), np.zeros(4)], [0, 0])
    for p in (*broadcast_params([m, v], [0, 0]), *broadcast_params([m, np.zeros(3)], [0, 0])):
        assert np.shape(evaluated([p], values)[0]) == (2, 3)
    arrays = broadcast_params([np.zeros(3), np.zeros((2, 3, 3))], [1, 2])
    assert [x.shape for x in arrays] == [(2, 3), (2, 3, 3)]
    assert default_supp_shape_from_params(1, [m, v], 1, [(1, 2), (3,)]) == (3,)
    found = supp_shape_from_ref_param_shape(ndim_supp=1, dist_params=[m], ref_param_idx=0)
    assert evaluated(found, values) == [3]
    for ndim, message in ((0, "must be positive"), (2, "fewer than 2")):
        with pytest.raises(ValueError, match=message):
            supp_shape_from_ref_param_shape(ndim_supp=ndim, dist_params=[v], ref_param_idx=0)
    given = np.random.default_rng(1)
    assert custom_rng_deepcopy(given).normal() == given.normal()
    assert safe_signature([0, 2, 1], [1, 0]) == "(),(i10,i11),(i20)->(o00),()"
    assert safe_signature([], [0]) == "->()"


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_lengths_of_a_constant_size_are_known_whatever_its_dtype(dtype):
    """So that a length of 1 in it broadcasts."""
    size = np.array([1, 3], dtype)
    assert pt.random.normal(size=size).type.shape == (1, 3)
    assert pt.random.normal(size=pt.constant(size)).type.shape == (1, 3)
    assert isinstance(normalize_size_param(size), Constant)
    assert normalize_size_param(pt.constant(size)).type.dtype == "int64"
