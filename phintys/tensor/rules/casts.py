"""Rules that remove redundant casts."""

from __future__ import annotations

import numpy as np

from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar import dtypes
from phintys.scalar.arith import Cast
from phintys.scalar.op import TABLE
from phintys.tensor.convert import constant
from phintys.tensor.elemwise import Elemwise, cast
from phintys.tensor.rules.match import some
from phintys.tensor.variable import TensorConstant


@rule(
    "cast(cast(x)) -> cast(x)",
    ops=[Cast],
    law="exact",
    tags=("local_cast_cast", "cleanup"),
    tested_on=(
        "cast(cast(f, 'float64'), 'int32')",
        "cast(cast(b, 'int8'), 'float64')",
        "cast(cast(h, 'int32'), 'float64')",
        "Cast('float64')(v)",
        "cast(cast(h, 'float64'), 'int32')",
    ),
)
def merge_casts(ctx: Context, node: Apply) -> Replacement:
    """Remove a cast to the same dtype, and a lossless cast before another cast."""
    (x,) = node.inputs
    target = node.outputs[0].type.dtype
    if x.type.dtype == target:
        return x
    if x.owner is None or type(x.owner.op) is not Elemwise:
        return None
    if type(x.owner.op.scalar_op) is not Cast:
        return None
    (source,) = x.owner.inputs
    return cast(source, target) if skippable(source.type.dtype, x.type.dtype, target) else None


#: Elementwise functions that convert all operands to the dtype of the result.
IN_ONE_DTYPE = frozenset(
    TABLE[name] for name in "add mul true_div int_div mod maximum minimum arctan2".split()
)


@rule(
    "f(x, c) -> f(x, cast(c))",
    ops=[Elemwise],
    where=some(Constant),
    law="exact",
    tags=("local_upcast_elemwise_constant_inputs",),
    tested_on=("Named('add')(v, constant([1], dtype='int8'))", "Named('maximum')(v, 1)"),
)
def convert_constants(ctx: Context, node: Apply) -> Replacement:
    """Convert constants to the dtype of the result.

    Applies to subclasses of `Elemwise`: the other rules do not give their nodes a normal form.
    """
    op, dtype = node.op, node.outputs[0].type.dtype
    if type(op) is Elemwise or op.scalar_op not in IN_ONE_DTYPE:
        return None
    if all(v.type.dtype == dtype for v in node.inputs if isinstance(v, TensorConstant)):
        return None
    return op(*(_converted(v, dtype) for v in node.inputs))


def _converted(v: Variable, dtype: str) -> Variable:
    return constant(v.data.astype(dtype)) if isinstance(v, TensorConstant) else v


def skippable(source: str, middle: str, target: str) -> bool:
    """Whether casting from ``source`` through ``middle`` equals casting directly to ``target``."""
    if not holds(middle, source):
        return False
    through_float = dtypes.kind(middle) in "fc" and dtypes.kind(source) in "iu"
    # casting a float outside the range of an integer dtype is undefined behaviour
    return not (through_float and dtypes.kind(target) in "iu" and not holds(target, source))


def holds(wide: str, narrow: str) -> bool:
    """Whether every value of ``narrow`` can be represented exactly in ``wide``."""
    if narrow == wide or narrow == "bool":
        return True
    if wide == "bool" or dtypes.upcast(wide, narrow) != wide:
        return False
    if dtypes.kind(narrow) not in "iu" or dtypes.kind(wide) in "iu":
        return True
    return 8 * np.dtype(narrow).itemsize <= np.finfo(wide).nmant + 1
