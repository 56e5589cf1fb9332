"""Running columns on a backend, many at a time, against the reference.

One function is compiled for a chunk of columns and called once for each shape kind.  If that
fails, the chunk is halved until the columns that fail are known.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Hashable, Sequence
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import matrix_elementwise
import matrix_structured
import numpy as np
from matrix_blanks import blank_of
from matrix_cells import Cell, Column
from matrix_elementwise import SLOW

import phintys
from phintys.backends.llvm.machine.target import current
from phintys.config import config
from phintys.lowering.interpret import interpret

sys.path.append(str(Path(__file__).parents[1] / "lowering"))  # for report.py
from programs import program_of

#: widths of vectors that are not the processor's own
WIDTHS = {f"llvm, {n} bits": n for n in (128, 256, 512) if n != current().register_bits}
MODES = {
    "numpy": "FAST_COMPILE",
    "llvm": "FAST_RUN",
    **dict.fromkeys(WIDTHS, "FAST_RUN"),
    "interpreter": "FAST_RUN",
    "C": "C",
    "numba": "NUMBA",
    "jax": "JAX",
}
CHUNK = 40
#: backends that take a tenth of a second and more for each column, those that repeat another, and
#: C and the interpreter, which share their Programs with llvm
SAMPLED = ("C", "interpreter", "numba", "jax", *WIDTHS)
#: what of the sample for Numba ``make test`` runs: one cheap column of a kind of op
FIRST_ON_NUMBA = {
    "mul complex128", "log2 float64", "left_shift uint8", "sum axis=0 float64", "eye bool",
    "stack float64", "x[1:-1] float32", "dot mm float32",
}  # fmt: skip
FULL = os.environ.get("PHINTYS_TESTS") == "full"
#: relative and absolute tolerance by dtype of the result
RTOL = {"float16": 4e-3, "float32": 3e-5, "complex64": 3e-5}
ATOL = {"float16": 1e-3, "float32": 1e-6, "complex64": 1e-6}


@cache
def all_columns() -> list[Column]:
    return [*matrix_elementwise.columns(), *matrix_structured.columns()]


@cache
def columns(backend: str) -> list[Column]:
    """What is run on a backend: a sample for those that compile slowly, unless `FULL`.

    The sample has one column in float64 and one in another dtype of each op; one of the two, and of
    every eighth op, for Numba, which compiles most slowly.
    """
    if FULL or backend not in SAMPLED:
        return all_columns()
    by_op: dict[tuple[str, str], list[Column]] = {}
    for c in all_columns():
        by_op.setdefault((c.family, c.name), []).append(c)
    found = []
    for (_, name), group in by_op.items():
        k = crc32(name.encode())  # does not change when other ops come and go
        if name in SLOW and backend == "interpreter":  # it calls what numpy calls
            group = [c for c in group if c.ranks == "0-d"]
        doubles = [c for c in group if c.dtype == "float64"]
        others = [c for c in group if c.dtype != "float64"]
        sample = [part[k % len(part)] for part in (doubles, others) if part]
        if backend == "numba":
            one = sample[k % len(sample)]
            sample = [one] if is_first(backend, one) or (k >> 8) % 8 == 0 else []
        found += sample
    return found


@cache
def is_first(backend: str, column: Column) -> bool:
    """Whether ``make test`` runs a column: not if it is slow, or much like another.

    All run on numpy, but those of `SLOW` in float64 only, as on llvm, which runs elementwise
    columns of other dtypes for one number of axes.  Slower backends run columns in float64.
    """
    if backend in WIDTHS:
        return False
    if backend == "numba":
        return f"{column.name} {column.dtype}" in FIRST_ON_NUMBA
    if column.dtype == "float64":
        slow = column.name in SLOW and backend not in ("numpy", "llvm")
        return not slow and (backend != "jax" or crc32(column.name.encode()) % 3 == 0)
    if column.name in SLOW or backend not in ("numpy", "llvm"):
        return False
    if backend == "numpy" or not column.family.startswith("elementwise"):
        return True
    return column.ranks == ("vector", "matrix")[crc32(f"{column.name} {column.dtype}".encode()) % 2]


@cache
def chunks(backend: str) -> dict[str, list[Column]]:
    """Columns with the same shape kinds, at most `CHUNK` together, by families and number.

    All columns of a chunk are in ``make test``, or none (`is_first`).  Apart are float16, since
    Numba has no such values and would run the whole function in Python, and blanks, which may fail
    to compile.
    """
    groups: dict[Hashable, list[Column]] = {}
    for c in columns(backend):
        is_blank = blank_of(Cell(c, c.kinds[0], backend)) is not None
        halves = "float16" in (c.dtype, c.name[5:])
        key = is_first(backend, c), frozenset(c.kinds), halves, is_blank
        groups.setdefault(key, []).append(c)
    parts = [g[start : start + CHUNK] for g in groups.values() for start in range(0, len(g), CHUNK)]
    found: dict[str, list[Column]] = {}
    for part in parts:
        families = ", ".join(dict.fromkeys(c.family for c in part))
        names = (f"{families} {k}" if k else families for k in count())
        found[next(name for name in names if name not in found)] = part
    return found


def run(backend: str, columns: Sequence[Column]) -> dict[Cell, str]:
    """For each cell what is wrong with it; empty if nothing is."""
    found: dict[Cell, str] = {}
    work = [list(columns)] if columns else []
    while work:
        part = work.pop()
        try:
            found.update(_compare(backend, part))
        except Exception as exc:
            if len(part) > 1:
                work += [part[: len(part) // 2], part[len(part) // 2 :]]
                continue
            reason = f"{type(exc).__name__}: {str(exc).splitlines()[0] if str(exc) else ''}"
            found.update((Cell(part[0], kind, backend), reason) for kind in part[0].kinds)
    return found


def _compare(backend: str, columns: Sequence[Column]) -> dict[Cell, str]:
    found: dict[Cell, str] = {}
    known = references(columns)
    with config.change_flags(vector_bits=WIDTHS.get(backend, 0)):
        results = {} if backend == "numpy" else _results(backend, columns)
    for kind in columns[0].kinds:
        for k, column in enumerate(columns):
            expected = np.asarray(known[column][kind])
            cell = Cell(column, kind, backend)
            if backend == "numpy":
                found[cell] = _judge_reference(column, kind, expected)
            else:
                found[cell] = difference(np.asarray(results[kind][k]), expected, exact_dtype=True)
    return found


def _results(backend: str, columns: Sequence[Column]) -> dict[str, list[Any]]:
    """kind -> value of each column; one compiled function, or its Program."""
    variables = [c.variables() for c in columns]
    outputs = [c.build(*vs) for c, vs in zip(columns, variables)]
    inputs = [v for vs in variables for v in vs]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Numba has no values of type")
        if backend == "interpreter":
            run = partial(interpret, program_of(inputs, outputs, on_unused_input="ignore"))
        else:
            mode = MODES[backend]
            run = phintys.function(inputs, outputs, mode=mode, on_unused_input="ignore")
    found = {}
    for kind in columns[0].kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # overflow in NumPy's own functions
            found[kind] = run(*(a for c in columns for a in c.arguments[kind]))
    return found


def references(columns: Sequence[Column]) -> dict[Column, dict[str, Any]]:
    """For each column, kind -> value of mode FAST_COMPILE."""
    missing = [c for c in columns if c not in _known]
    if missing:
        results = _results("numpy", missing)
        for k, column in enumerate(missing):
            _known[column] = {kind: values[k] for kind, values in results.items()}
    return {c: _known[c] for c in columns}


_known: dict[Column, dict[str, Any]] = {}


def _judge_reference(column: Column, kind: str, value: np.ndarray) -> str:
    """The reference itself, against the static type and NumPy."""
    static = column.build(*column.variables()).type
    if value.dtype != static.dtype:
        return f"dtype {value.dtype} where the type says {static.dtype}"
    fits = len(static.shape) == value.ndim and all(
        n in (None, m) for n, m in zip(static.shape, value.shape)
    )
    if not fits:
        return f"shape {value.shape} where the type says {static.shape}"
    if column.expected is None:
        return ""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(column.expected(*column.arguments[kind]))
    return difference(value, expected, exact_dtype=False)


def difference(found: np.ndarray, expected: np.ndarray, exact_dtype: bool) -> str:
    """What is different, in one line."""
    if exact_dtype and found.dtype != expected.dtype:
        return f"dtype {found.dtype} instead of {expected.dtype}"
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    name = found.dtype.name
    if found.dtype.kind in "biu":
        same = found == expected
    else:
        with np.errstate(all="ignore"):
            same = np.isclose(
                found, expected, rtol=RTOL.get(name, 1e-9), atol=ATOL.get(name, 1e-12),
                equal_nan=True,
            )  # fmt: skip
    if same.all():
        return ""
    where = tuple(int(i) for i in np.argwhere(~same)[0])
    wrong = int(same.size - same.sum())
    return f"{found[where]!r} instead of {expected[where]!r} at {where} ({wrong} of {same.size})"
