"""`Variable`, `Apply` and `Type` take type arguments, in annotations and at run time.

The project's type checker reads this module too: `assert_type` is an error to it where the
inferred type differs.
"""

from __future__ import annotations

from typing import Any, assert_type

import phintys.tensor as pt
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Variable
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable


def scalar_name(node: Apply[Elemwise]) -> str:
    assert_type(node.op, Elemwise)
    return node.op.scalar_op.name


def rank(variable: Variable[TensorType, Apply[Elemwise]]) -> int:
    assert_type(variable.type, TensorType)
    assert_type(variable.owner.op, Elemwise)
    return variable.type.ndim


def kind(variable: Variable[Any, None]) -> None:
    assert_type(variable.owner, None)
    return variable.owner


def test_annotated_functions():
    x: TensorVariable = pt.exp(pt.dmatrix("x"))
    assert_type(x.type, TensorType)
    node: Any = x.owner
    assert (scalar_name(node), rank(node.outputs[0]), kind(node.inputs[0])) == ("exp", 2, None)


def test_arguments_at_run_time():
    written: Any
    for written in (Apply[Elemwise], Variable[TensorType, Apply[Elemwise]], Type[float]):
        assert written.__args__
