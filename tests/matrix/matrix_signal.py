"""Columns and nodes for convolutions of signals and images."""

from __future__ import annotations

from typing import Any

import numpy as np
from matrix_lines import Line

import phintys.tensor as pt
from phintys.tensor.nnet.corr import CorrMM, CorrMM_gradInputs, CorrMM_gradWeights
from phintys.tensor.nnet.unshared import FittingFilters

NUMBERS = ("int64", "float64", "complex128")
CONV = {"border_mode": ((1, 0), (1, 1)), "subsample": (1, 2), "filter_dilation": (2, 1)}


def _convolutions() -> list[Line]:
    common: dict[str, Any] = {"numpy": None, "special": False}
    floats = {**common, "dtypes": ("float32", "complex128")}
    nn = pt.nnet

    def images(m: Any, w: Any, g: Any) -> Any:
        return nn.conv2d_grad_wrt_inputs(g, w, (None, None, g.shape[2] + 1, g.shape[3] + 1))

    def filters(m: Any, x: Any, g: Any) -> Any:
        return nn.conv2d_grad_wrt_weights(x, g, (None, None, 3, 3))

    return [
        Line(
            "signal", "convolve1d", "nm nk", lambda m, x, y: pt.signal.convolve1d(x, y, "same"),
            dtypes=NUMBERS, kinds=("contiguous", "strided", "empty"), **common,
        ),
        Line(
            "signal", "convolve2d", "knm k2p", lambda m, x, y: pt.signal.convolve2d(x, y),
            dtypes=NUMBERS, kinds=("contiguous", "strided"), **common,
        ),
        Line(
            "signal", "conv2d", "k2nm p222",
            lambda m, x, w: nn.conv2d(x, w, **CONV), kinds=("contiguous", "strided"), **floats,
        ),
        Line(
            "signal", "conv2d_grad_wrt_inputs", "p222 kpnm", images,
            kinds=("contiguous", "strided"), **floats,
        ),
        Line(
            "signal", "conv2d_grad_wrt_weights", "k257 kp35", filters,
            kinds=("contiguous", "strided"), **floats,
        ),
    ]  # fmt: skip


LINES = _convolutions()

RNG = np.random.default_rng(1)
SIGNAL, KERNEL = RNG.uniform(0.3, 2, (3, 4)), RNG.uniform(0.3, 2, (2, 2))
IMAGES, FILTERS, RESULTS = (
    RNG.uniform(0.3, 2, s) for s in ((2, 2, 4, 3), (2, 1, 2, 2), (2, 2, 3, 2))
)
CORRELATION: dict[str, Any] = {**CONV, "num_groups": 2}

#: differentiable expressions at points without ties, for `matrix_nodes`
SMOOTH: dict[str, Any] = {
    "Convolve1d": (lambda x, y: pt.signal.convolve1d(x, y, "same"), [SIGNAL, KERNEL[0]]),
    "Convolve2d": (lambda x, y: pt.signal.convolve2d(x, y), [SIGNAL, KERNEL]),
    "CorrMM": (lambda x, w: CorrMM(**CORRELATION)(x, w), [IMAGES, FILTERS]),
    "CorrMM_gradWeights": (
        lambda x, g: CorrMM_gradWeights(**CORRELATION)(x, g, 2, 2),
        [IMAGES, RESULTS],
    ),
    "CorrMM_gradInputs": (
        lambda w, g: CorrMM_gradInputs(**CORRELATION)(w, g, 4, 3),
        [FILTERS, RESULTS],
    ),
    "FittingFilters": (
        lambda w, x: FittingFilters(**CORRELATION)(w, x),
        [RNG.uniform(0.3, 2, (2, *RESULTS.shape[2:], *FILTERS.shape[1:])), IMAGES],
    ),
}
