"""Drawing a program: statements are built and evaluated as they are drawn.

The values at hand make it possible to draw arguments that fit (shapes, positions, lengths); the
program is symbolic all the same.  What is drawn depends on the seed alone.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fuzz_numpy import HELPERS, NUMPY, UNORDERED, difference
from fuzz_program import Input, Program, Statement, environment, evaluate_text, perform_missing
from fuzz_values import INTEGERS, Argument, draw_argument, draw_dtype, in_layout, native

from phintys.tensor.type import TensorType

SIZES = (0, 1, 2, 3, 4, 5, 17, 33, 65, 130, 1030)  # 130 is too long for int8
WEIGHTS = (3, 5, 10, 10, 6, 6, 4, 2, 1, 1, 0.5)
#: elements of a value at most
LARGEST = 5000
#: what building a graph of arguments that do not fit may raise
REFUSALS = (TypeError, ValueError, IndexError, OverflowError)


class Fault(Exception):
    """Something wrong that was found while drawing; the program so far shows it."""

    def __init__(self, where: str, message: str, drawer: Drawer, program: Program) -> None:
        super().__init__(f"{where}: {message}")
        self.where, self.message, self.drawer, self.program = where, message, drawer, program


@dataclass(frozen=True, eq=False)
class Item:
    """A variable with its value."""

    name: str
    var: Any
    value: np.ndarray

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def kind(self) -> str:
        return self.value.dtype.kind

    @property
    def static(self) -> tuple[int | None, ...]:
        return self.var.type.shape


class Drawer:
    """Grows a program statement by statement."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.program = Program()
        self.names = environment()
        self.arrays: dict[str, Any] = {"pt": NUMPY, "np": np, **HELPERS}
        self.known: dict[Any, Any] = {}
        self.items: list[Item] = []
        rng = self.rng
        self.sizes = rng.choices(SIZES, WEIGHTS, k=rng.choice((1, 2, 2, 3)))
        self.special = rng.choice((0.0, 0.0, 0.0, 0.0, 0.15, 0.5))
        self.extreme = self.special > 0
        self.static = rng.choice((0.0, 0.3, 0.3, 1.0))
        self.main_dtype = draw_dtype(rng)

    # ----- small choices
    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.rng.randrange(len(options))]

    def size(self) -> int:
        """One of the few lengths of this program, or 1."""
        return 1 if self.chance(0.1) else self.choice(self.sizes)

    def dtype(self) -> str:
        return self.main_dtype if self.chance(0.5) else draw_dtype(self.rng)

    def shape(self, ndim: int | None = None) -> tuple[int, ...]:
        """A random shape of at most `LARGEST` elements."""
        ndim = self.choice((0, 1, 1, 2, 2, 2, 3)) if ndim is None else ndim
        shape = [self.size() for _ in range(ndim)]
        while np.prod(shape, dtype=int) > LARGEST // 2:
            shape[shape.index(max(shape))] = 2
        return tuple(shape)

    # ----- inputs
    def input(self, dtype: str, shape: tuple[int, ...], value: Any = None) -> Item:
        """A new argument or shared variable; not one that is so large that it takes long."""
        if np.prod(shape, dtype=float) > 10 * LARGEST:
            raise Unfit
        shared = self.chance(0.1)
        name = f"{'s' if shared else 'x'}{len(self.program.inputs)}"
        static = tuple(self._static(n) for n in shape)
        if value is not None:
            argument = in_layout(np.asarray(value, dtype))
        else:
            argument = self._repeated(dtype, shape)
        made = Input(name, dtype, static, argument)
        self.program.inputs.append(made)
        return self._declare(name, made.make(), native(argument.value()))

    def _repeated(self, dtype: str, shape: tuple[int, ...]) -> Argument:
        """A new argument, or one that another input has: the call may get one array twice."""
        same = [i.value for i in self.program.inputs if i.dtype == dtype]
        same = [a for a in same if a.value().shape == shape]
        if same and self.chance(0.1):
            return self.choice(same)
        return draw_argument(self.rng, dtype, shape, self.special)

    def _static(self, n: int) -> int | None:
        if n == 1:
            return 1 if self.chance(0.7) else None
        return n if self.chance(self.static) else None

    def _declare(self, name: str, var: Any, value: Any) -> Item:
        self.names[name] = var
        self.known[var] = value
        value = np.asarray(value)
        small = value.ndim == 0 and value.dtype.kind in "iu"
        self.arrays[name] = value[()] if small else value  # a NumPy integer wraps around
        item = Item(name, var, value)
        self.items.append(item)
        return item

    # ----- items
    def item(
        self,
        accept: Callable[[Item], bool] = lambda item: True,
        kinds: str = "biufc",
        ndim: int | None = None,
        least: int = 0,
        make: Callable[[], Item] | None = None,
    ) -> Item:
        """One that fits, later ones more often; otherwise, or sometimes, a new input."""
        fitting = [
            i
            for i in self.items
            if i.kind in kinds
            and (i.ndim == ndim if ndim is not None else i.ndim >= least)
            and accept(i)
        ]
        if fitting and self.chance(0.85):
            back = int(self.rng.expovariate(0.4)) + 1
            return fitting[-back] if back <= len(fitting) else self.choice(fitting)
        if make is not None:
            return make()
        for _ in range(8):
            dtype = self.dtype()
            rank = ndim if ndim is not None else self.choice((0, 1, 1, 2, 2, 2, 3))
            shape = self.shape(max(rank, least))
            if np.dtype(dtype).kind in kinds:
                made = self.input(dtype, shape)
                if accept(made):
                    return made
        raise Unfit

    def like(self, shape: tuple[int, ...], kinds: str = "biufc") -> Item:
        """One that broadcasts to a shape, statically; a new input if there is none."""

        def fits(item: Item) -> bool:
            pairs = zip(item.shape[::-1], shape[::-1])
            return (
                item.ndim <= len(shape)
                and all(n == m or (n == 1) for n, m in pairs)
                and all(s == 1 or n != 1 for s, n in zip(item.static, item.shape))
            )

        def make() -> Item:
            some = shape[self.rng.randrange(len(shape) + 1) if self.chance(0.2) else 0 :]
            some = tuple(1 if self.chance(0.12) else n for n in some)
            dtype = self.dtype()
            while np.dtype(dtype).kind not in kinds:
                dtype = draw_dtype(self.rng)
            return self.input(dtype, some)

        return self.item(fits, kinds, make=make)

    # ----- numbers
    def integer(self, n: int) -> str:
        """Text of a 0-d integer expression of value ``n``: literal, input, length, or computed."""
        way = self.rng.random()
        if way < 0.35:
            return str(n)
        if way < 0.5:
            return self._base_integer(n) or self._integer_input(n)
        if way < 0.72:
            return self._integer_input(n)
        return self._computed_integer(n)

    def _base_integer(self, n: int) -> str | None:
        found = [
            f"{i.name}.shape[{axis}]"
            for i in self.items
            for axis in range(i.ndim)
            if i.shape[axis] == n
        ]
        found += [i.name for i in self.items if i.ndim == 0 and i.kind in "iu" and i.value == n]
        return self.choice(found) if found else None

    def _integer_input(self, n: int) -> str:
        dtype = self.choice([d for d in INTEGERS if np.iinfo(d).min <= n <= np.iinfo(d).max])
        return self.input(dtype, (), n).name

    def _computed_integer(self, n: int) -> str:
        m = self.rng.randrange(max(0, n - 3), n + 4) if n >= 0 else n
        base = self._base_integer(m) or self._integer_input(m)
        ways = [f"({base} + {n - m})", f"({base} - {m - n})", f"pt.cast({base} + {n - m}, 'int32')"]
        if n >= 0:
            double = self._base_integer(2 * n) or self._base_integer(2 * n + 1)
            ways += [f"({double} // 2)"] * 2 if double else []
            ways += [f"pt.minimum({base}, {n})"] if m >= n else [f"pt.maximum({base}, {n})"]
            ways += [
                f"pt.sum({i.name})"
                for i in self.items
                if i.ndim == 1 and i.kind in "biu" and 0 < i.value.size < 9 and i.value.sum() == n
            ]
        return self.choice(ways)

    def lengths(self, shape: Sequence[int]) -> str:
        """Text of a shape: a tuple of numbers."""
        return "(" + "".join(f"{self.integer(n)}, " for n in shape) + ")"

    def axis(self, ndim: int) -> int:
        return self.rng.randrange(-ndim, ndim)

    # ----- statements
    def add(self, text: str, numpy: str | None = None) -> Item | None:
        """A statement; None if its arguments do not fit or its value is of no use."""
        return self.restate(Statement(f"v{len(self.program.statements)}", text, numpy))

    def restate(self, statement: Statement) -> Item | None:
        """The same for a statement that has a name."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            var = self._build(statement)
            if not isinstance(getattr(var, "type", None), TensorType) or var in self.known:
                return None
            value = self._perform(statement, var)
            if value is None or not self._useful(value):
                return None
            self._judge(statement, var, value)
        self.program.statements.append(statement)
        return self._declare(statement.name, var, value)

    def _build(self, statement: Statement) -> Any:
        try:
            return evaluate_text(statement.text, self.names)
        except REFUSALS:
            return None
        except Exception as exc:
            raise self._fault("build", f"{type(exc).__name__}: {exc}", statement) from exc

    def _perform(self, statement: Statement, var: Any) -> Any:
        try:
            perform_missing([var], self.known)
        except MemoryError:
            return None
        except REFUSALS:
            if self.chance(0.3):
                raise Failing(self, statement) from None
            return None
        except Exception as exc:
            raise self._fault("perform", f"{type(exc).__name__}: {exc}", statement) from exc
        return self.known[var]

    def _useful(self, value: Any) -> bool:
        if value.size > LARGEST or value.ndim > 5:
            return False
        if value.dtype.kind not in "fc" or self.special or not value.size:
            return True
        finite = np.isfinite(value)
        tame = finite.all() and np.abs(value).max() < 1e6
        return bool(tame) or self.chance(0.1)

    def _judge(self, statement: Statement, var: Any, value: Any) -> None:
        """The value against the static type, and against NumPy."""
        static = var.type
        fits = len(static.shape) == value.ndim and all(
            n in (None, m) for n, m in zip(static.shape, value.shape)
        )
        if not isinstance(value, np.ndarray) or value.dtype != static.dtype or not fits:
            raise self._fault(
                "type", f"type: {value.dtype} {value.shape} is no {static}", statement
            )
        if self.extreme and UNORDERED.search(statement.text):
            return
        try:
            expected = evaluate_text(statement.numpy or statement.text, self.arrays)
        except Exception:
            return  # nothing to compare with
        wrong = difference(value, expected, statement.text)
        if wrong:
            raise self._fault("NumPy", f"value: {wrong}", statement)

    def _fault(self, where: str, message: str, statement: Statement) -> Fault:
        return Fault(where, message, self, self.ending_with(statement))

    def ending_with(self, statement: Statement) -> Program:
        """The program so far, with this as its only output."""
        statements = [*self.program.statements, statement]
        return Program(self.program.inputs, statements, [statement.name]).pruned()


class Unfit(Exception):
    """There is no argument that fits."""


class Failing(Exception):
    """A statement that is built, but raises when it is evaluated."""

    def __init__(self, drawer: Drawer, statement: Statement) -> None:
        super().__init__(statement.text)
        self.drawer, self.statement = drawer, statement
