"""`RandomVariable` subclasses of users."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
from phintys.tensor.random.op import RandomVariable


class Ones(RandomVariable):
    """A vector of ones, whose length is a parameter."""

    name = "ones"
    signature = "()->(k)"
    dtype = "float64"

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        return [dist_params[0]]

    def rng_fn(self, rng, n, size=None):
        return np.ones(int(n))


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_a_length_that_is_the_value_of_a_parameter_is_not_kept_for_other_values(mode):
    ones = Ones()
    for n in (3, 5, 3):
        draw = ones(np.int64(n), rng=phintys.shared(np.random.default_rng(1)))
        assert draw.type.shape == (n,)
        np.testing.assert_array_equal(draw.eval(mode=mode), np.ones(n))
