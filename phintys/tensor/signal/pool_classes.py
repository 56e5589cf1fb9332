"""Aesara's classes of pooling, as objects that are called with variables.

They are no ops: what they return are `pool_2d`, `pool_3d` and the derivatives of these.
"""

from __future__ import annotations

from phintys.gradient import pullback, pushforward
from phintys.graph.ignored import ignores
from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.signal.pool import PoolMode, Sizes, pool
from phintys.tensor.variable import TensorVariable

__all__ = [
    "AveragePoolGrad",
    "DownsampleFactorMaxGradGrad",
    "MaxPoolGrad",
    "MaxPoolRop",
    "Pool",
    "PoolGrad",
]


class _Pooling:
    """The options of pooling.

    Parameters
    ----------
    ignore_border, mode
        as for `pool_2d`
    ndim
        the number of axes of windows, 2 or 3
    openmp
        ignored
    """

    @ignores("openmp")
    def __init__(
        self,
        ignore_border: bool = False,
        mode: PoolMode = "max",
        ndim: int = 2,
        openmp: bool | None = None,
    ) -> None:
        self.ignore_border, self.ndim = bool(ignore_border), int(ndim)
        self.mode: PoolMode = mode

    def pooled(self, x: TensorVariable, ws: Sizes, stride: Sizes, pad: Sizes) -> TensorVariable:
        return pool(x, self.ndim, ws, self.ignore_border, stride, pad, self.mode)


class Pool(_Pooling):
    """The maximum, sum or average of each window.

    Called with the tensor, the lengths of windows, their distances (None: their lengths) and how
    many elements are added around the tensor (None: 0), as `pool_2d`.

    >>> import phintys.tensor as pt
    >>> Pool(ignore_border=True)(pt.arange(16).reshape((4, 4)), (2, 2)).eval()
    array([[ 5,  7],
           [13, 15]])
    """

    def __call__(
        self, x: TensorLike, ws: Sizes, stride: Sizes = None, pad: Sizes = None
    ) -> TensorVariable:
        return self.pooled(as_tensor_variable(x), ws, stride, pad)


class PoolGrad(_Pooling):
    """Base class of the cotangents of pooling: `MaxPoolGrad` and `AveragePoolGrad`."""

    def pulled(
        self, x: TensorLike, g: TensorLike, ws: Sizes, stride: Sizes, pad: Sizes
    ) -> TensorVariable:
        """The cotangent of ``x``, from ``g``, that of the result."""
        x = as_tensor_variable(x)
        found: TensorVariable = pullback(self.pooled(x, ws, stride, pad), x, as_tensor_variable(g))
        return found


class MaxPoolGrad(PoolGrad):
    """The cotangent of a tensor whose maxima are taken.

    Called with the tensor, its maxima (which are computed again), the cotangents of these, and
    windows as of `Pool`.  If several elements of a window are the maximum, each has the cotangent.

    >>> x = [[1.0, 5.0, 2.0, 3.0]]
    >>> MaxPoolGrad(ignore_border=True)(x, [[5.0, 3.0]], [[10.0, 20.0]], (1, 2)).eval()
    array([[ 0., 10.,  0., 20.]])
    """

    @ignores("openmp")
    def __init__(self, ignore_border: bool, ndim: int = 2, openmp: bool | None = None) -> None:
        super().__init__(ignore_border, "max", ndim)

    def __call__(
        self, x: TensorLike, maxout: TensorLike, gz: TensorLike, ws: Sizes, stride: Sizes = None,
        pad: Sizes = None,
    ) -> TensorVariable:  # fmt: skip
        return self.pulled(x, gz, ws, stride, pad)


class AveragePoolGrad(PoolGrad):
    """The cotangent of a tensor of which sums or averages are taken.

    Called with the tensor, the cotangents of the results, and windows as of `Pool`.

    >>> x = [[1.0, 5.0, 2.0, 3.0]]
    >>> AveragePoolGrad(ignore_border=True)(x, [[10.0, 20.0]], (1, 2)).eval()
    array([[ 5.,  5., 10., 10.]])
    """

    def __init__(
        self, ignore_border: bool, mode: PoolMode = "average_inc_pad", ndim: int = 2
    ) -> None:
        super().__init__(ignore_border, mode, ndim)

    def __call__(
        self, x: TensorLike, gz: TensorLike, ws: Sizes, stride: Sizes = None, pad: Sizes = None
    ) -> TensorVariable:
        return self.pulled(x, gz, ws, stride, pad)


class MaxPoolRop(_Pooling):
    """The tangents of maxima: called with the tensor, its tangent, and windows as of `Pool`.

    >>> x, t = [[1.0, 5.0, 2.0, 3.0]], [[10.0, 20.0, 30.0, 40.0]]
    >>> MaxPoolRop(ignore_border=True)(x, t, (1, 2)).eval()
    array([[20., 40.]])
    """

    def __call__(
        self, x: TensorLike, eval_point: TensorLike, ws: Sizes, stride: Sizes = None,
        pad: Sizes = None,
    ) -> TensorVariable:  # fmt: skip
        x = as_tensor_variable(x)
        out = self.pooled(x, ws, stride, pad)
        found: TensorVariable = pushforward(out, x, as_tensor_variable(eval_point))
        return found


class DownsampleFactorMaxGradGrad(_Pooling):
    """The tangents of maxima, which are the cotangents of ``gz`` of `MaxPoolGrad`.

    Called with the tensor, its maxima (which are computed again), its tangent, and windows as of
    `Pool`.

    >>> x, t = [[1.0, 5.0, 2.0, 3.0]], [[10.0, 20.0, 30.0, 40.0]]
    >>> DownsampleFactorMaxGradGrad(ignore_border=True)(x, [[5.0, 3.0]], t, (1, 2)).eval()
    array([[20., 40.]])
    """

    def __call__(
        self, x: TensorLike, maxout: TensorLike, gz: TensorLike, ws: Sizes, stride: Sizes = None,
        pad: Sizes = None,
    ) -> TensorVariable:  # fmt: skip
        return MaxPoolRop(self.ignore_border, self.mode, self.ndim)(x, gz, ws, stride, pad)
