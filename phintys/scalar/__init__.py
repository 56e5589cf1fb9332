"""Scalar ops: one row per elementwise function, and the scalar types they work on.

The names are those of ``pytensor.scalar``: an instance (``exp``) and a class (``Exp``) for each
row, a type for each dtype (``float64``).
"""

from __future__ import annotations

# ruff: noqa: F401, F403
# pyright: reportUnusedImport=false
from phintys.errors import ComplexError
from phintys.scalar import arith, bessel, compare, dtypes, exp_log, gamma_beta, normal, parts, trig
from phintys.scalar.arith import CASTS, Cast
from phintys.scalar.autocast import *
from phintys.scalar.composite import Composite, ScalarInnerGraphOp
from phintys.scalar.dtypes import autocast_float_as, upcast
from phintys.scalar.gamma_beta import betainc_grad, gammainc_grad, gammaincc_grad, hyp2f1_grad
from phintys.scalar.loop import Grad2F1Loop, ScalarLoop
from phintys.scalar.numeric import round_half_away_from_zero as round_half_away_from_zero_
from phintys.scalar.op import (
    CLASSES,
    TABLE,
    BinaryBitOp,
    BinaryScalarOp,
    FixedLogicalComparison,
    LogicalComparison,
    ScalarOp,
    UnaryBitOp,
    UnaryScalarOp,
    functions,
)
from phintys.scalar.preferences import *
from phintys.scalar.scalars import *
from phintys.scalar.type import (
    ScalarConstant,
    ScalarType,
    ScalarVariable,
    as_scalar,
    constant,
)
from phintys.scalar.type import scalar_type as get_scalar_type

globals().update(CLASSES)
globals().update({name: op for name, op in TABLE.items() if not name.startswith("cast_")})
globals().update({f"convert_to_{dtype}": op for dtype, op in CASTS.items()})
#: other names of rows
floor_div, mod_check = TABLE["int_div"], TABLE["mod"]
round_half_away_from_zero_vec = round_half_away_from_zero_
scalar_abs, scalar_maximum, scalar_minimum = (TABLE[n] for n in ("abs", "maximum", "minimum"))
ScalarMaximum, ScalarMinimum = CLASSES["Maximum"], CLASSES["Minimum"]
