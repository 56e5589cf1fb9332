"""Arguments of `ScalarType`: numbers of Python and NumPy, and arrays without axes."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.io import In
from phintys.scalar.type import scalar_type


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "float64", "complex64"])
def test_numbers_of_numpy(dtype: str, mode: str) -> None:
    x = scalar_type(dtype)("x")
    number = np.dtype(dtype).type(1)
    f = phintys.function([In(x, value=number)], pt.tensor_from_scalar(x) + 1, mode=mode)
    for found in (f(number), f(x=number), f(np.array(number)), f(number.item()), f()):
        assert found == number + 1
