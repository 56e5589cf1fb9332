"""Numbers drawn without calls, from a PCG64 whose state is in registers, as IR text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phintys.backends.llvm.ir.loops import rarely
from phintys.backends.llvm.ir.types import KernelWriter
from phintys.backends.llvm.ir.words import BASES, MULTIPLIER, ZIGGURATS, Ziggurat

#: 2**-53 as LLVM writes it
_UNIT = "0x3CA0000000000000"


@dataclass(frozen=True)
class Wide:
    """The type of the state."""

    text: str = "i128"


class Stream:
    """The numbers of a routine of `BASES` from a PCG64: writes the code of one after the other.

    ``bitgen`` is the address of the ``bitgen_t``.
    """

    def __init__(self, w: KernelWriter, routine: str, bitgen: str) -> None:
        self.w, self.base, self.bitgen = w, BASES[routine], bitgen
        held = w(f"load ptr, ptr {bitgen}")
        self.place = w(f"load ptr, ptr {held}")
        self.increment = w(
            f"load i128, ptr {w(f'getelementptr i8, ptr {self.place}, i64 16')}, align 8"
        )

    @staticmethod
    def is_inlined(w: KernelWriter, routine: str, bitgen: str) -> str:
        """Emit whether the bit generator is one for which the routine is inlined."""
        symbol = f"@phintys.inlined.{routine}"
        w.declares.add(f"{symbol} = external global i8")
        next_ = w(f"load ptr, ptr {w(f'getelementptr i8, ptr {bitgen}, i64 8')}")
        return w(f"icmp eq ptr {next_}, {symbol}")

    def start(self) -> str:
        """Emit the state before the first number."""
        return self.w(f"load i128, ptr {self.place}, align 8")

    def keep(self, state: str) -> None:
        """Emit the store of a state into the bit generator."""
        self.w.line(f"store i128 {state}, ptr {self.place}, align 8")

    def number(self, state: str, parameters: Sequence[str]) -> tuple[str, str]:
        """Emit a number; the state after it, and the number."""
        w = self.w
        if self.base in ZIGGURATS:
            state, x = self._by_ziggurat(state, ZIGGURATS[self.base])
        else:
            state, word = self._word(state)
            bits = w(f"lshr i64 {word}, 11")
            x = w(f"fmul double {w(f'sitofp i64 {bits} to double')}, {_UNIT}")
        if parameters:
            x = w(f"fmul double {parameters[-1]}, {x}")
        if len(parameters) == 2:
            x = w(f"fadd double {parameters[0]}, {x}")
        return state, x

    def _word(self, state: str) -> tuple[str, str]:
        """Emit a step; the state after it, and 64 random bits."""
        w = self.w
        state = w(f"add i128 {w(f'mul i128 {state}, {MULTIPLIER}')}, {self.increment}")
        low = w(f"trunc i128 {state} to i64")
        high = w(f"trunc i128 {w(f'lshr i128 {state}, 64')} to i64")
        mixed = w(f"xor i64 {low}, {high}")
        turn = w(f"lshr i64 {high}, 58")
        words = [("i64", word) for word in (mixed, mixed, turn)]
        return state, w.extern("llvm.fshr.i64", "i64", words)

    def _by_ziggurat(self, before: str, shape: Ziggurat) -> tuple[str, str]:
        """Emit a product with an entry of the table, else a call of NumPy's function."""
        w, symbol = self.w, f"@phintys.ziggurat.{self.base}"
        w.declares.add(f"{symbol} = external global i8")
        state, word = self._word(before)
        row = w(f"and i64 {w(f'lshr i64 {word}, {shape.row}')}, 255")
        integer = w(f"lshr i64 {word}, {shape.start}")
        if shape.start + shape.bits < 64:
            integer = w(f"and i64 {integer}, {2**shape.bits - 1}")
        place = w(f"getelementptr {{i64, double}}, ptr {symbol}, i64 {row}")
        below = w(f"load i64, ptr {place}")
        factor = w(f"load double, ptr {w(f'getelementptr i8, ptr {place}, i64 8')}")
        x = w(f"fmul double {w(f'sitofp i64 {integer} to double')}, {factor}")
        if shape.sign is not None:
            sign = w(f"shl i64 {w(f'lshr i64 {word}, {shape.sign}')}, 63")
            signed = w(f"xor i64 {sign}, {w(f'bitcast double {x} to i64')}")
            x = w(f"bitcast i64 {signed} to double")
        return self._else_called(before, state, x, w(f"icmp uge i64 {integer}, {below}"))

    def _else_called(self, before: str, state: str, x: str, fails: str) -> tuple[str, str]:
        w = self.w
        call, go, here = w.name("call"), w.name("go"), w.block
        rarely(w, fails, call, go)
        self.keep(before)
        called = w.extern(f"phintys.random.{self.base}", "double", [("ptr", self.bitgen)])
        after, there = self.start(), w.block
        w.line(f"br label %{go}")
        w.label(go)
        state = w(f"phi i128 [{state}, %{here}], [{after}, %{there}]")
        return state, w(f"phi double [{x}, %{here}], [{called}, %{there}]")
