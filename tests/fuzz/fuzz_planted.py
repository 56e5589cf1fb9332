"""Faults that are put into the library on purpose: the fuzzer must find each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phintys.backends.llvm.kernel import reductions
from phintys.lowering.arrays import ArrayBuilder
from phintys.scalar.op import TABLE
from phintys.tensor import index_ops
from phintys.tensor.cumulative import CumOp
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.join import Join

PLANTED: dict[str, Callable[[], None]] = {}


def planted(name: str) -> Any:
    """Register a function that puts a fault in."""

    def register(function: Callable[[], None]) -> Callable[[], None]:
        PLANTED[name] = function
        return function

    return register


@planted("slices start one too early")
def _slices() -> None:
    right = index_ops.slice_dims

    def wrong(*arguments: Any) -> Any:
        first, step, length = right(*arguments)
        return (first - 1 if step.value == -2 else first), step, length

    index_ops.slice_dims = wrong


@planted("the greatest element is at least 0")
def _identity() -> None:
    right = reductions._identity
    reductions._identity = lambda op, t: 0.0 if op == "max" else right(op, t)


@planted("of several values for one place one is added")
def _lost() -> None:
    right = ArrayBuilder.scatter

    def wrong(self: Any, base: Any, indices: Any, axes: Any, value: Any, mode: str) -> Any:
        return right(self, base, indices, axes, value, "set" if mode == "add" else mode)

    ArrayBuilder.scatter = wrong  # type: ignore[method-assign]


@planted("of two arguments of a join the second comes first")
def _join() -> None:
    right = Join.lower

    def wrong(self: Any, node: Any, b: Any, *parts: Any) -> Any:
        turned = parts[::-1] if len(parts) == 2 else parts
        return right(self, node, b, *turned)

    Join.lower = wrong  # type: ignore[method-assign]


@planted("pushforwards of products are twice as large")
def _pushforward() -> None:
    right = Elemwise.pushforward

    def wrong(self: Any, *arguments: Any) -> Any:
        twice = self.scalar_op.name == "mul"
        return [2 * t if twice else t for t in right(self, *arguments)]

    Elemwise.pushforward = wrong  # type: ignore[method-assign]


@planted("both derivatives of tanh are a hundredth too large")
def _derivative() -> None:
    row = TABLE["tanh"].__class__
    right = row.partials

    def wrong(self: Any, *arguments: Any) -> Any:
        return [1.01 * d for d in right(self, *arguments)]

    row.partials = wrong  # type: ignore[method-assign]


@planted("transposed shapes")
def _shapes() -> None:
    DimShuffle.infer_shape = lambda self, node, shapes: [  # type: ignore[method-assign]
        tuple(np.int64(1) if o == "x" else shapes[0][::-1][o] for o in self.new_order)
    ]


@planted("an error of a millionth in tanh")
def _tanh() -> None:
    TABLE["tanh"].__class__.native = staticmethod(
        lambda n, x: n.mul(n.tanh(x), n.const(1.000001, x))
    )


@planted("the reference sums all but the last")
def _reference() -> None:
    right = CumOp.perform

    def wrong(self: Any, node: Any, inputs: Any, output_storage: Any) -> None:
        right(self, node, inputs, output_storage)
        out = output_storage[0][0]
        if out.ndim == 1 and out.size > 1:
            out[-1] = out[-2]

    CumOp.perform = wrong  # type: ignore[method-assign]
