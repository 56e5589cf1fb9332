"""Aesara's classes of convolutions, as objects that are called with variables.

They are no ops: what they return are `conv2d`, `conv3d` and the cotangents of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.nnet import abstract_conv
from phintys.tensor.nnet.corr import BorderLike
from phintys.tensor.variable import TensorVariable

__all__ = [
    "AbstractConv",
    "AbstractConv2d",
    "AbstractConv2d_gradInputs",
    "AbstractConv2d_gradWeights",
    "AbstractConv3d",
    "AbstractConv3d_gradInputs",
    "AbstractConv3d_gradWeights",
    "AbstractConv_gradInputs",
    "AbstractConv_gradWeights",
    "BaseAbstractConv",
]

Known = Sequence[Length | None] | None


class BaseAbstractConv:
    """The options of a convolution.

    Parameters
    ----------
    convdim
        the number of axes of images, 2 or 3
    imshp, kshp
        the lengths of images and filters that are known, None for others
    border_mode, subsample, filter_flip, filter_dilation, num_groups
        as for `conv2d`
    unshared
        as for `conv2d`; only with two axes

    ValueError if ``convdim`` is another number, and for ``unshared`` with three axes.
    """

    def __init__(
        self,
        convdim: int,
        imshp: Known = None,
        kshp: Known = None,
        border_mode: BorderLike = "valid",
        subsample: Sequence[int] | None = None,
        filter_flip: bool = True,
        filter_dilation: Sequence[int] | None = None,
        num_groups: int = 1,
        unshared: bool = False,
    ) -> None:
        if convdim not in (2, 3):
            raise ValueError(f"Convolutions have 2 or 3 axes, not {convdim}.")
        if unshared and convdim != 2:
            raise ValueError("Filters that differ from place to place have 2 axes.")
        self.unshared = bool(unshared)
        ones = (1,) * convdim
        self.convdim, self.imshp, self.kshp = convdim, imshp, kshp
        self.border_mode, self.filter_flip, self.num_groups = border_mode, filter_flip, num_groups
        self.subsample = tuple(ones if subsample is None else subsample)
        self.filter_dilation = tuple(ones if filter_dilation is None else filter_dilation)

    @property
    def options(self) -> dict[str, Any]:
        """The options that the functions of all three kinds take."""
        names = ("border_mode", "subsample", "filter_flip", "filter_dilation", "num_groups")
        found = {name: getattr(self, name) for name in names}
        return {**found, "unshared": True} if self.unshared else found

    def lengths(self, shape: Any, unknown: int = 2) -> list[Length | None]:
        """The shape of a result of which the last lengths are given, as a list or a vector."""
        if not isinstance(shape, Sequence):
            vector = as_tensor_variable(shape)
            shape = [vector[k] for k in range(self.convdim)]
        return [*[None] * unknown, *shape]

    def function(self, suffix: str = "") -> Any:
        """The function of this number of axes."""
        return getattr(abstract_conv, f"conv{self.convdim}d{suffix}")


class AbstractConv(BaseAbstractConv):
    """Convolutions of images with filters.

    >>> import phintys.tensor as pt
    >>> pt.nnet.AbstractConv(2)(pt.ones((1, 1, 3, 3)), pt.ones((1, 1, 2, 2))).eval()
    array([[[[4., 4.],
             [4., 4.]]]])
    """

    def __call__(self, img: TensorLike, kern: TensorLike) -> TensorVariable:
        found: TensorVariable = self.function()(img, kern, self.imshp, self.kshp, **self.options)
        return found


class AbstractConv_gradInputs(BaseAbstractConv):
    """The cotangent of the images, whose last lengths are ``shape``, from that of the result.

    ``add_assert_shape`` is ignored: lengths are always checked.
    """

    def __call__(
        self, kern: TensorLike, topgrad: TensorLike, shape: Any, add_assert_shape: bool = True
    ) -> TensorVariable:
        found: TensorVariable = self.function("_grad_wrt_inputs")(
            topgrad, kern, self.lengths(shape), self.kshp, **self.options
        )
        return found


class AbstractConv_gradWeights(BaseAbstractConv):
    """The cotangent of the filters, whose last lengths are ``shape``, from that of the result.

    ``add_assert_shape`` is ignored: lengths are always checked.
    """

    def __call__(
        self, img: TensorLike, topgrad: TensorLike, shape: Any, add_assert_shape: bool = True
    ) -> TensorVariable:
        unknown = 4 if self.unshared else 2
        found: TensorVariable = self.function("_grad_wrt_weights")(
            img, topgrad, self.lengths(shape, unknown), self.imshp, **self.options
        )
        return found


class _Of2Axes(BaseAbstractConv):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(2, *args, **kwargs)


class _Of3Axes(BaseAbstractConv):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(3, *args, **kwargs)


class AbstractConv2d(_Of2Axes, AbstractConv):
    """`AbstractConv` of images with two axes."""


class AbstractConv3d(_Of3Axes, AbstractConv):
    """`AbstractConv` of images with three axes."""


class AbstractConv2d_gradInputs(_Of2Axes, AbstractConv_gradInputs):
    """`AbstractConv_gradInputs` of images with two axes."""


class AbstractConv3d_gradInputs(_Of3Axes, AbstractConv_gradInputs):
    """`AbstractConv_gradInputs` of images with three axes."""


class AbstractConv2d_gradWeights(_Of2Axes, AbstractConv_gradWeights):
    """`AbstractConv_gradWeights` of images with two axes."""


class AbstractConv3d_gradWeights(_Of3Axes, AbstractConv_gradWeights):
    """`AbstractConv_gradWeights` of images with three axes."""
