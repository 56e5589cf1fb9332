"""Neural networks: convolutions of images."""
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.tensor.nnet import abstract_conv, corr
from phintys.tensor.nnet.abstract_conv import (
    conv2d,
    conv2d_grad_wrt_inputs,
    conv2d_grad_wrt_weights,
    conv2d_transpose,
    conv3d,
    conv3d_grad_wrt_inputs,
    conv3d_grad_wrt_weights,
    separable_conv2d,
    separable_conv3d,
)

__all__ = [
    "conv2d",
    "conv2d_grad_wrt_inputs",
    "conv2d_grad_wrt_weights",
    "conv2d_transpose",
    "conv3d",
    "conv3d_grad_wrt_inputs",
    "conv3d_grad_wrt_weights",
    "separable_conv2d",
    "separable_conv3d",
]
