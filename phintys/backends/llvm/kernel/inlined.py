"""Numbers drawn without calls, from a PCG64 whose state is in registers, as IR text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phintys.backends.llvm.ir.loops import rarely
from phintys.backends.llvm.ir.types import KernelWriter
from phintys.backends.llvm.ir.words import BASES, INTEGERS, MULTIPLIER, ZIGGURATS, Ziggurat

#: 2**-53 as LLVM writes it
_UNIT = "0x3CA0000000000000"
#: the halves of a word
_LOW, _HIGH = 2**32 - 1, -(2**32)


@dataclass(frozen=True)
class Word:
    """The type of a part of the state: its text in IR."""

    text: str


class Stream:
    """The numbers of a routine of `BASES` from a PCG64: writes the code of one after the other.

    ``bitgen`` is the address of the ``bitgen_t``.  The state is carried in values of ``types``.
    """

    types: tuple[Word, ...] = (Word("i128"),)

    def __init__(self, w: KernelWriter, routine: str, bitgen: str) -> None:
        self.w, self.base, self.bitgen = w, BASES[routine], bitgen
        self.held = w(f"load ptr, ptr {bitgen}")
        self.place = w(f"load ptr, ptr {self.held}")
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

    def start(self) -> list[str]:
        """Emit the state before the first number."""
        return [self.w(f"load i128, ptr {self.place}, align 8")]

    def keep(self, state: Sequence[str]) -> None:
        """Emit the store of a state into the bit generator."""
        self.w.line(f"store i128 {state[0]}, ptr {self.place}, align 8")

    def number(self, state: Sequence[str], parameters: Sequence[str]) -> tuple[list[str], str]:
        """Emit a number; the state after it, and the number."""
        w = self.w
        if self.base in ZIGGURATS:
            after, x = self._by_ziggurat(state, ZIGGURATS[self.base])
        else:
            wide, word = self._word(state[0])
            bits = w(f"lshr i64 {word}, 11")
            after, x = [wide], w(f"fmul double {w(f'sitofp i64 {bits} to double')}, {_UNIT}")
        if parameters:
            x = w(f"fmul double {parameters[-1]}, {x}")
        if len(parameters) == 2:
            x = w(f"fadd double {parameters[0]}, {x}")
        return after, x

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

    def _by_ziggurat(self, before: Sequence[str], shape: Ziggurat) -> tuple[list[str], str]:
        """Emit a product with an entry of the table, else a call of NumPy's function."""
        w, symbol = self.w, f"@phintys.ziggurat.{self.base}"
        w.declares.add(f"{symbol} = external global i8")
        state, word = self._word(before[0])
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
        fails = w(f"icmp uge i64 {integer}, {below}")
        return self._else_called(before, [state], ("double", x), fails)

    def _else_called(
        self,
        before: Sequence[str],
        state: Sequence[str],
        found: tuple[str, str],
        fails: str,
        parameters: Sequence[tuple[str, str]] = (),
    ) -> tuple[list[str], str]:
        """Emit a call of NumPy's function from the state ``before``, should it be needed.

        ``found`` are the type of the number, and the number if it is not.
        """
        w, (t, x) = self.w, found
        call, go, here = w.name("call"), w.name("go"), w.block
        rarely(w, fails, call, go)
        self.keep(before)
        called = w.extern(f"phintys.random.{self.base}", t, [("ptr", self.bitgen), *parameters])
        after, there = self.start(), w.block
        w.line(f"br label %{go}")
        w.label(go)
        rows = zip([*(kind.text for kind in self.types), t], [*state, x], [*after, called])
        *states, x = [w(f"phi {kind} [{a}, %{here}], [{b}, %{there}]") for kind, a, b in rows]
        return states, x


class Integers(Stream):
    """Integers from the first parameter on, over a span, by Lemire's multiplication.

    For a span of at most 32 bits a word gives two numbers: the second half of the last word, with a
    flag in the lowest bit, is a part of the state.  NumPy's function is called if a product is
    rejected, for numbers by masks, and if all words are in the range.

    Source: D. Lemire, Fast Random Integer Generation in an Interval (2019).
    """

    types = (Word("i128"), Word("i64"))

    def start(self) -> list[str]:
        return [*super().start(), self.w(f"load i64, ptr {self._half()}, align 8")]

    def keep(self, state: Sequence[str]) -> None:
        super().keep(state)
        self.w.line(f"store i64 {state[1]}, ptr {self._half()}, align 8")

    def _half(self) -> str:
        return self.w(f"getelementptr i8, ptr {self.held}, i64 8")

    def number(self, state: Sequence[str], parameters: Sequence[str]) -> tuple[list[str], str]:
        w, (first, span, _, masked) = self.w, parameters
        only, some, short, long, go = (w.name(n) for n in ("only", "some", "short", "long", "go"))
        is_short = w(f"icmp ule i64 {span}, {_LOW}")
        rarely(w, w(f"icmp eq i64 {span}, 0"), only, some)
        edges = [(*state, "0", "-1", w.block)]  # nothing is drawn
        w.line(f"br label %{go}")
        w.label(some)
        w.branch(is_short, short, long)
        for label, scaled in ((short, self._by_half), (long, self._by_word)):
            w.label(label)
            edges.append((*scaled(state, span), w.block))
            w.line(f"br label %{go}")
        w.label(go)
        *after, high, low = [
            w(f"phi {kind} {', '.join(f'[{edge[k]}, %{edge[-1]}]' for edge in edges)}")
            for k, kind in enumerate(("i128", "i64", "i64", "i64"))
        ]
        fails = w(f"or i1 {self._rejects(span, low, is_short)}, {w(f'icmp ne i64 {masked}, 0')}")
        fails = w(f"or i1 {fails}, {w(f'icmp eq i64 {span}, -1')}")  # the length would be 2**64
        given, x = [("i64", p) for p in parameters], w(f"add i64 {first}, {high}")
        return self._else_called(state, after, ("i64", x), fails, given)

    def _rejects(self, span: str, low: str, is_short: str) -> str:
        """Emit whether the lower half of a product says that words are not equally likely."""
        w, check, go, here = self.w, self.w.name("check"), self.w.name("go"), self.w.block
        rarely(w, w(f"icmp ule i64 {low}, {span}"), check, go)
        length = w.extern("llvm.umax.i64", "i64", [("i64", w(f"add i64 {span}, 1")), ("i64", "1")])
        beyond = w(f"sub i64 {w(f'select i1 {is_short}, i64 {_LOW}, i64 -1')}, {span}")
        below = w(f"icmp ult i64 {low}, {w(f'urem i64 {beyond}, {length}')}")
        w.line(f"br label %{go}")
        w.label(go)
        return w(f"phi i1 [false, %{here}], [{below}, %{check}]")

    def _by_word(self, state: Sequence[str], span: str) -> tuple[str, str, str, str]:
        """Emit the state after a word, and the halves of its product with the length."""
        w = self.w
        wide, word = self._word(state[0])
        factors = [w(f"zext i64 {x} to i128") for x in (word, w(f"add i64 {span}, 1"))]
        product = w(f"mul i128 {factors[0]}, {factors[1]}")
        high = w(f"trunc i128 {w(f'lshr i128 {product}, 64')} to i64")
        return wide, state[1], high, w(f"trunc i128 {product} to i64")

    def _by_half(self, state: Sequence[str], span: str) -> tuple[str, str, str, str]:
        """Emit the state after half a word, and the halves of its product with the length."""
        w, (before, half) = self.w, state
        second, first, go = (w.name(n) for n in ("second", "first", "go"))
        w.branch(w(f"trunc i64 {half} to i1"), second, first)
        w.label(second)
        kept, used = w(f"lshr i64 {half}, 32"), w(f"and i64 {half}, {_HIGH}")
        w.line(f"br label %{go}")
        w.label(first)
        wide, word = self._word(before)
        low, left = w(f"and i64 {word}, {_LOW}"), w(f"or i64 {w(f'and i64 {word}, {_HIGH}')}, 1")
        w.line(f"br label %{go}")
        w.label(go)
        rows = (("i128", before, wide), ("i64", used, left), ("i64", kept, low))
        wide, half, word = (w(f"phi {t} [{a}, %{second}], [{b}, %{first}]") for t, a, b in rows)
        product = w(f"mul i64 {word}, {w(f'add i64 {span}, 1')}")
        return wide, half, w(f"lshr i64 {product}, 32"), w(f"and i64 {product}, {_LOW}")


def stream_of(w: KernelWriter, routine: str, bitgen: str) -> Stream:
    """The stream of the numbers of a routine."""
    kind = Integers if BASES[routine] == INTEGERS else Stream
    return kind(w, routine, bitgen)
