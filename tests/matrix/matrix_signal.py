"""Columns for convolutions of signals and images."""

from __future__ import annotations

from typing import Any

from matrix_lines import Line

import phintys.tensor as pt

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
