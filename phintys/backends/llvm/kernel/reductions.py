"""Accumulators of reductions, as vectors that are combined at the end.

The *state* of a reduction is one vector, or two for ``argmax`` and ``argmin``: the best value of
each lane and its position.  Every lane starts with the identity, so lanes without a value do not
affect the result.
"""

from __future__ import annotations

from typing import NamedTuple

from phintys.backends.llvm.ir.instructions import combine
from phintys.backends.llvm.ir.types import KernelWriter, Type, select

State = tuple[str, ...]
_FLOATS = ("float32", "float64")


class Reduction(NamedTuple):
    """A reduction ``op`` of values of one dtype."""

    op: str
    dtype: str
    position: str = "int64"  # the dtype of positions

    @property
    def positional(self) -> bool:
        """Whether the result is a position, not a value."""
        return self.op in ("argmax", "argmin")

    def narrow(self) -> Reduction:
        """The reduction with positions as narrow as the values, so that lanes match."""
        return self._replace(position=f"int{8 * Type(self.dtype).bytes}")

    def types(self, width: int) -> tuple[Type, ...]:
        """The types of the state."""
        value = Type(self.dtype, width)
        return (value, value.of(self.position)) if self.positional else (value,)

    def identity(self, width: int) -> State:
        """The initial state of a reduction."""
        types = self.types(width)
        state = (types[0].literal(_identity(self.op.removeprefix("arg"), types[0])),)
        return (*state, types[1].literal(0)) if self.positional else state

    def combine(self, w: KernelWriter, width: int, x: State, y: State) -> State:
        """Emit the combination of two states, lane by lane."""
        value, *rest = self.types(width)
        if not rest:
            if self.op == "add" and self.dtype in _FLOATS:  # a product is contracted into it
                return (w(f"fadd contract {value.text} {x[0]}, {y[0]}"),)
            return (combine(w, self.op, value, x[0], y[0]),)
        flag = value.of("bool").text
        better = self._better(w, value, y[0], x[0])
        worse = self._better(w, value, x[0], y[0])
        before = w(f"icmp slt {rest[0].text} {y[1]}, {x[1]}")
        tie = w(f"xor {flag} {w(f'or {flag} {better}, {worse}')}, {value.of('bool').literal(1)}")
        take = w(f"or {flag} {better}, {w(f'and {flag} {tie}, {before}')}")
        return self.choose(w, width, take, y, x)

    def update(self, w: KernelWriter, width: int, state: State, x: str, position: str) -> State:
        """Emit the state after one more value in each lane; positions must increase."""
        if not self.positional:
            return self.combine(w, width, state, (x,))
        better = self._better(w, self.types(width)[0], x, state[0])
        return self.choose(w, width, better, (x, position), state)

    def choose(self, w: KernelWriter, width: int, mask: str, x: State, y: State) -> State:
        """Emit a select: ``x`` in the lanes where ``mask``, else ``y``."""
        types = self.types(width)
        return tuple(select(w, t, mask, a, b) for t, a, b in zip(types, x, y, strict=True))

    def result(self, w: KernelWriter, width: int, state: State) -> str:
        """Emit the horizontal reduction of the lanes to one scalar, by halves."""
        while width > 1:
            width //= 2
            state = self.combine(
                w, width, self._part(w, width, state, 0), self._part(w, width, state, width)
            )
        return state[-1]

    def _part(self, w: KernelWriter, width: int, state: State, start: int) -> State:
        """Emit the extraction of ``width`` of the ``2 * width`` lanes, from ``start`` on."""
        types = self.types(2 * width)
        if width == 1:
            return tuple(
                w(f"extractelement {t.text} {x}, i64 {start}") for t, x in zip(types, state)
            )
        lanes = ", ".join(f"i32 {start + lane}" for lane in range(width))
        return tuple(
            w(f"shufflevector {t.text} {x}, {t.text} poison, <{width} x i32> <{lanes}>")
            for t, x in zip(types, state)
        )

    def _better(self, w: KernelWriter, t: Type, x: str, y: str) -> str:
        """Emit the test whether ``x`` is strictly better than ``y``; NaN is better than numbers."""
        up = self.op == "argmax"
        if t.kind == "f":
            wins = w(f"fcmp {'ugt' if up else 'ult'} {t.text} {x}, {y}")
            return w(f"and {t.of('bool').text} {wins}, {w(f'fcmp ord {t.text} {y}, {y}')}")
        sign = "s" if t.kind == "i" else "u"
        return w(f"icmp {sign}{'gt' if up else 'lt'} {t.text} {x}, {y}")


def _identity(op: str, t: Type) -> float:
    if op in ("max", "min"):
        least = op == "max"
        if t.kind == "f":
            return float("-inf" if least else "inf")
        if t.kind == "i":
            return -(2 ** (t.bits - 1)) if least else 2 ** (t.bits - 1) - 1
        return 0 if least else 2**t.bits - 1
    return float({"add": 0, "or": 0, "xor": 0, "mul": 1, "and": -1}[op])
