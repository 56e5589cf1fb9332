"""Routines: functions on arrays that Programs call, written in a small subset of Python.

    @routine("float32 float64", failure=(ArithmeticError, "The sum is infinite."))
    def add_up(n: int, x: Array, total: Array) -> int:
        s = 0.0
        for i in range(n):
            s += x[i]
        total[0] = s
        return 1 if s - s != 0.0 else 0

A routine becomes C or machine code; as a Python function it says what it means.  It can call
functions of LAPACK and BLAS (`libraries`) and other functions of the subset.  `language` describes
the subset.
"""

from phintys.routines.language import (
    ROUTINES,
    Array,
    Longs,
    Pack,
    Packs,
    Positions,
    Real,
    Routine,
    routine,
)

__all__ = [
    "ROUTINES",
    "Array",
    "Longs",
    "Pack",
    "Packs",
    "Positions",
    "Real",
    "Routine",
    "routine",
]
