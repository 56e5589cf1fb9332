"""Names and pattern variables in the text of rules: functions, classes of ops, types."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from phintys.gradient.barriers import ViewOp
from phintys.graph.variable import Variable
from phintys.rewriting.rule import Rule, equation, set_pattern_defaults
from phintys.scalar.op import TABLE
from phintys.tensor.as_written import AsWritten
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.creation import Alloc
from phintys.tensor.dot import Dot
from phintys.tensor.einsum import Einsum
from phintys.tensor.elemwise import DimShuffle, Elemwise, functions
from phintys.tensor.index_ops import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from phintys.tensor.join import Join, Split
from phintys.tensor.others import ProdOthers
from phintys.tensor.reduce import All, Any_, Argmax, CAReduce, Max, Min, Prod, Sum
from phintys.tensor.reshape import Reshape
from phintys.tensor.rules.match import is_float
from phintys.tensor.shape import (
    MakeVector,
    ScalarFromTensor,
    Shape,
    SpecifyShape,
    TensorFromScalar,
)
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax
from phintys.tensor.type import TensorType

#: The op classes that patterns can name.
OPS: tuple[type, ...] = (
    *(AdvancedIncSubtensor, AdvancedSubtensor, All, Alloc, Any_, Argmax, AsWritten, CAReduce),
    DimShuffle,
    *(Blockwise, Dot, Einsum, Elemwise),
    *(IncSubtensor, Join, LogSoftmax, LogSumExp, MakeVector, Max, Min, Prod, ProdOthers, Reshape),
    *(ScalarFromTensor, Shape, Softmax, SpecifyShape, Split, Subtensor, Sum, TensorFromScalar),
    ViewOp,
)

#: The names that have a meaning in the text of a rule; all others are pattern variables.
NAMES: dict[str, Any] = {
    **{name: getattr(functions, name) for name in TABLE if not name.startswith("cast_")},
    **{"nan": nan, "inf": inf},
    **{cls.__name__: cls for cls in OPS},
    "__add__": functions.add,
    "__sub__": functions.sub,
    "__mul__": functions.mul,
    "__truediv__": functions.true_div,
    "__pow__": functions.pow,
    "__neg__": functions.neg,
}


def _variable(name: str) -> Variable:
    """A pattern variable; it matches any rank and dtype that the option ``when`` accepts."""
    return TensorType("float64", ())(name)


set_pattern_defaults(variable=_variable, namespace=NAMES)


def stable(text: str, name: str = "", tested_on: str = "reals", **options: Any) -> Rule:
    """A rule of the stabilize phase for real floats; ``name`` is the name of PyTensor's rewrite."""
    options = {"phase": "stabilize", "law": "accurate", "when": is_float} | options
    tags = (name,) if name else ()
    return equation(text, deferred=True, tags=tags, tested_on=tested_on, **options)
