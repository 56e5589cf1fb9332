"""Arguments of drawn programs: values by dtype, layouts in memory, and both as Python text."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

#: dtype -> weight
DTYPES = {
    "float64": 40, "float32": 15, "int64": 10, "int32": 8, "bool": 6, "int8": 4, "int16": 3,
    "uint8": 4, "uint16": 2, "uint32": 3, "uint64": 3, "complex128": 2, "complex64": 1,
    "float16": 2,
}  # fmt: skip
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_UNALIGNED = "np.frombuffer(b'0' + a.tobytes(), 'u1')[1:].view(a.dtype).reshape(a.shape)"
#: how an array of a wanted value lies in memory: name -> (what is stored, text that undoes it)
LAYOUTS: dict[str, tuple[Any, str]] = {
    "contiguous": (lambda a: a, "{}"),
    "reversed": (lambda a: a[::-1], "{}[::-1]"),
    "every other": (lambda a: np.repeat(a, 2, axis=-1), "{}[..., ::2]"),
    "rows apart": (lambda a: np.repeat(a, 2, axis=0), "{}[::2]"),
    "transposed": (lambda a: a.T, "{}.T"),
    "inner reversed": (lambda a: a[..., ::-1], "{}[..., ::-1]"),
    "other byte order": (lambda a: a, "(lambda a: a.astype(a.dtype.newbyteorder()))({})"),
    "unaligned, read-only": (lambda a: a, f"(lambda a: {_UNALIGNED})({{}})"),
}


@dataclass(frozen=True)
class Argument:
    """An array as a program of NumPy: ``stored`` and what is done with it."""

    stored: np.ndarray
    made: str = "{}"
    repeated: tuple[int, ...] | None = None

    def value(self) -> np.ndarray:
        """The array, in its layout."""
        if self.repeated is not None:
            return np.broadcast_to(self.stored, self.repeated)
        stored = np.ascontiguousarray(self.stored).reshape(self.stored.shape)
        return eval(self.made.format("a"), {"a": stored, "np": np})

    def text(self) -> str:
        """An expression of Python for it."""
        base = literal(self.stored)
        if self.repeated is not None:
            return f"np.broadcast_to({base}, {self.repeated})"
        return self.made.format(base)


def native(a: Any) -> np.ndarray:
    """An array in the byte order of the machine."""
    a = np.asarray(a)
    return a.astype(a.dtype.newbyteorder("="), copy=False)


def literal(a: np.ndarray) -> str:
    """An array as Python text that gives the same bits (NaNs lose their payload)."""
    if a.size == 0:
        return f"np.zeros({a.shape}, {str(a.dtype)!r})"
    first = a.reshape(-1)[0]
    if a.size > 1 and (a == first).all():
        return f"np.full({a.shape}, {number(first)}, {str(a.dtype)!r})"
    return f"np.array({nested(a)}, {str(a.dtype)!r})"


def nested(a: np.ndarray) -> str:
    """The elements as nested lists."""
    if a.ndim == 0:
        return number(a[()])
    return "[" + ", ".join(nested(row) for row in a) + "]"


def number(x: Any) -> str:
    """One element as Python text."""
    if isinstance(x, np.complexfloating):
        return f"complex({number(x.real)}, {number(x.imag)})"
    text = repr(x.item())
    return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}.get(text, text)


# ----------------------------------------------------------------------------- drawing


def draw_dtype(rng: random.Random) -> str:
    """A dtype, common ones more often."""
    return rng.choices(list(DTYPES), list(DTYPES.values()))[0]


def draw_argument(
    rng: random.Random, dtype: str, shape: tuple[int, ...], special: float = 0.0
) -> Argument:
    """Random values of a dtype and shape, in a random layout."""
    if shape and rng.random() < 0.07 and 0 not in shape:
        drawn = [n if rng.random() < 0.5 else 1 for n in shape]
        return Argument(draw_values(rng, dtype, tuple(drawn), special), repeated=shape)
    values = draw_values(rng, dtype, shape, special)
    return in_layout(values, rng.choice(list(LAYOUTS)) if shape and rng.random() < 0.3 else "")


def in_layout(values: np.ndarray, layout: str = "") -> Argument:
    """An array in one of `LAYOUTS`."""
    if not layout:
        return Argument(values)
    store, made = LAYOUTS[layout]
    return Argument(np.array(store(values)), made)


def draw_values(
    rng: random.Random, dtype: str, shape: tuple[int, ...], special: float = 0.0
) -> np.ndarray:
    """Random values of a dtype; a share of them are special ones."""
    gen = np.random.default_rng(rng.getrandbits(32))
    kind = np.dtype(dtype).kind
    if kind == "b":
        values = gen.integers(0, 2, shape).astype(dtype)
    elif kind in "iu":
        values = gen.integers(0 if kind == "u" else -6, 7, shape).astype(dtype)
    elif kind == "f":
        values = _floats(gen, shape).astype(dtype)
    else:
        values = (_floats(gen, shape) + 1j * _floats(gen, shape)).astype(dtype)
    values = np.asarray(values)
    if special and kind != "b":
        chosen = gen.random(shape) < special
        values = np.where(chosen, gen.choice(special_values(dtype), shape), values).astype(dtype)
    return values


def _floats(gen: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.round(gen.uniform(0.3, 2.2, shape) * gen.choice([-1, 1], shape), 6)


def special_values(dtype: str) -> np.ndarray:
    """Extremes of a dtype."""
    kind = np.dtype(dtype).kind
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.max, info.max - 1, info.min, info.min + 1, 0, 1], dtype)
    if kind == "c":
        parts = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan)
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    info_f = np.finfo(dtype)
    wild = [np.nan, np.inf, -np.inf, 0.0, -0.0, info_f.max, -info_f.max, info_f.tiny]
    wild += [info_f.smallest_subnormal, -info_f.smallest_subnormal, 0.0, 1.0, -1.0, 0.5]
    with np.errstate(over="ignore"):
        return np.array([*wild, 30.0, -30.0, 800.0, -800.0, 1e-30], dtype)
