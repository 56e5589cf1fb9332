"""Scalar ops: one row per elementwise function, and the scalar types they work on.

The names are those of ``pytensor.scalar``: an instance (``exp``) and a class (``Exp``) for each row,
a type for each dtype (``float64``).
"""

from __future__ import annotations

from phintys.scalar import arith, bessel, compare, dtypes, erf_gamma, exp_log, parts, trig
from phintys.scalar.arith import CASTS, Cast
from phintys.scalar.dtypes import upcast
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
)
from phintys.scalar.scalars import TYPES, cast, functions
from phintys.scalar.type import (
    ScalarConstant,
    ScalarType,
    ScalarVariable,
    as_scalar,
    constant,
)
from phintys.scalar.type import scalar_type as get_scalar_type

discrete_dtypes = dtypes.DISCRETE
continuous_dtypes = dtypes.CONTINUOUS
float_dtypes = dtypes.FLOAT
complex_dtypes = dtypes.COMPLEX
integer_dtypes = dtypes.INTEGER
all_dtypes = dtypes.ALL
discrete_types = tuple(map(get_scalar_type, dtypes.DISCRETE))
continuous_types = tuple(map(get_scalar_type, dtypes.CONTINUOUS))

globals().update(CLASSES)
globals().update(TYPES)
globals().update({name: op for name, op in TABLE.items() if not name.startswith("cast_")})
globals().update({f"convert_to_{dtype}": op for dtype, op in CASTS.items()})
floor_div = TABLE["int_div"]
