"""Columns for every row of the scalar table."""

from __future__ import annotations

import itertools
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from matrix_cells import DTYPES, Column, every, strided

from phintys.scalar.op import TABLE, ScalarOp
from phintys.tensor.elemwise import Elemwise

sys.path.append(str(Path(__file__).parents[1] / "scalar"))
from rows import accepts, arity, domains, edges

LENGTH = 61  # no multiple of a vector register
#: quadrature and series in Python: seconds for an extreme value
SLOW = [name for name in TABLE if "_der" in name]
TABLES = ("arith", "compare", "exp_log", "trig", "parts", "normal", "gamma_beta", "bessel")
FAMILY = {
    value.name: table
    for table in TABLES
    for value in vars(import_module(f"phintys.scalar.{table}")).values()
    if isinstance(value, ScalarOp)
}
RANKS: dict[str, tuple[tuple[int | None, ...], ...]] = {
    "0-d": ((),),
    "vector": ((None,),),
    "matrix": ((None, None),),
    "broadcast": ((None, 1), (1, None), (None, None)),
}


def columns() -> list[Column]:
    """All of them: rows x dtypes x ranks."""
    return [
        _column(name, dtype, ranks)
        for name, dtype in itertools.product(TABLE, DTYPES)
        if accepts(TABLE[name], *[dtype] * arity(TABLE[name]))
        for ranks in RANKS
        if ranks != "broadcast" or arity(TABLE[name]) > 1
    ]


def _column(name: str, dtype: str, ranks: str) -> Column:
    op = TABLE[name]
    shapes = list(itertools.islice(itertools.cycle(RANKS[ranks]), arity(op)))
    rng = np.random.default_rng(sum(map(ord, name)))
    return Column(
        family=f"elementwise {FAMILY.get(name, 'cast')}",
        name=name,
        dtype=dtype,
        ranks=ranks,
        build=Elemwise(op),
        types=tuple((dtype, shape) for shape in shapes),
        arguments=_arguments(op, dtype, ranks, shapes, rng),
        expected=op.compute,
    )


def _arguments(
    op: ScalarOp, dtype: str, ranks: str, shapes: Any, rng: np.random.Generator
) -> dict[str, list[np.ndarray]]:
    pools = [pool(dtype, lo, hi, rng, op.name not in SLOW) for lo, hi in domains(op)]
    _leave_out_undefined(op, dtype, pools)

    def arrays(*lengths: int) -> list[np.ndarray]:
        return [
            every(p, tuple(n if known is None else 1 for n, known in zip(lengths, shape)), rng)
            for p, shape in zip(pools, shapes)
        ]

    if ranks == "0-d":
        return {"0-d": arrays()}
    if ranks == "broadcast":
        return {"broadcast": arrays(7, 9), "broadcast, empty": arrays(0, 9)}
    lengths = (LENGTH,) if ranks == "vector" else (7, 9)
    whole = arrays(*lengths)
    kinds = {"contiguous": whole, "empty": arrays(*(0 for _ in lengths))}
    if ranks == "vector":
        kinds["length 1"] = arrays(1)
    return {**kinds, "strided": [strided(a) for a in whole]}


def pool(dtype: str, lo: float, hi: float, rng: np.random.Generator, special: bool) -> np.ndarray:
    """Ordinary values between two bounds; for floats and integers also special ones."""
    ordinary = rng.uniform(lo, hi, 30 if special else 3)
    if np.dtype(dtype).kind in "biu":
        return edges(dtype) if special else np.ceil(ordinary).clip(0, 3).astype(dtype)
    return np.concatenate([edges(dtype)[: None if special else 0], ordinary.astype(dtype)])


def _leave_out_undefined(op: ScalarOp, dtype: str, pools: list[np.ndarray]) -> None:
    """Remove arguments for which NumPy or SciPy promise nothing, or refuse."""
    kind = np.dtype(dtype).kind
    if op.name == "pow" and kind == "i":
        pools[1] = pools[1][pools[1] >= 0]
    elif op.name == "hyp2f1" and kind in "iu":  # on AArch64 SciPy's series may have 2**63 terms
        pools[:] = [p[np.abs(p.astype("float64")) < 2**31] for p in pools]
    elif op.name in ("polygamma", "zeta"):  # an order
        pools[0] = np.arange(2, 9).astype(dtype)
    elif op.name.startswith(("cast_int", "cast_uint")) and kind in "fc":
        inside = np.isfinite(pools[0]) & (np.abs(pools[0]) < 100)
        if "uint" in op.name:
            inside &= pools[0].real >= 0
        pools[0] = pools[0][inside]
