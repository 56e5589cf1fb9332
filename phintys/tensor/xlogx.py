"""``x log(x)`` and ``x log(y)``, which are 0 where x is 0."""

from __future__ import annotations

from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import functions
from phintys.tensor.variable import TensorVariable


def xlogx(x: TensorLike) -> TensorVariable:
    """``x log(x)``; 0 at 0, NaN below it.

    >>> xlogx([0.0, 1.0, 2.0]).eval()
    array([0.        , 0.        , 1.38629436])
    """
    x = as_tensor_variable(x)
    return functions.xlogy(x, x)


def xlogy0(x: TensorLike, y: TensorLike) -> TensorVariable:
    """``x log(y)``; 0 where ``x`` is 0 and ``y`` is not NaN: `xlogy`.

    >>> xlogy0([0.0, 2.0], 0.0).eval()
    array([  0., -inf])
    """
    return functions.xlogy(x, y)
