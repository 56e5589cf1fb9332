"""Classes of PyTensor's C interface: what they mean without C code."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from phintys.link.c.op import COp, ExternalCOp, OpenMPOp
from phintys.link.c.params_type import Params, ParamsType
from phintys.link.c.type import CDataType, CEnumType, CType, EnumList, EnumType, generic

import phintys
import phintys.tensor as pt
from phintys.errors import MethodNotDefined

x = pt.dvector("x")
OPERATIONS = EnumList("ADD", ("SUB", "minus"))


class Step(COp):
    """``x + step`` or ``x - step``; the parameters are attributes of the op."""

    __props__ = ("step", "kind")
    params_type = ParamsType(step=pt.dscalar, kind=OPERATIONS)
    itypes = [pt.dvector]
    otypes = [pt.dvector]

    def __init__(self, step, kind):
        self.step, self.kind = step, kind

    def perform(self, node, inputs, output_storage, params):
        sign = 1 if params.kind == params.params_type.ADD else -1
        output_storage[0][0] = inputs[0] + sign * params.step

    def c_code(self, node, name, inputs, outputs, sub):
        return "no compiler sees this"


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("kind, expected", [("ADD", 3.0), ("minus", -1.0), (1, -1.0)])
def test_op_with_parameters(mode, kind, expected):
    f = phintys.function([x], Step(2.0, kind)(x), mode=mode)
    assert f([1.0]) == [expected]


def test_op_with_c_code_alone():
    class Native(COp):
        __props__ = ()
        itypes = [pt.dvector]
        otypes = [pt.dvector]

        def c_code(self, node, name, inputs, outputs, sub):
            return "..."

    with pytest.raises(MethodNotDefined, match="Native has no perform"):
        phintys.function([x], Native()(x))([1.0])
    assert Native().c_headers() == [] and Native().c_code_cache_version() == ()
    assert OpenMPOp().openmp is False
    assert ExternalCOp("a.c", "run").func_files == ["a.c"]


def test_enumerations():
    assert (OPERATIONS.ADD, OPERATIONS["SUB"], OPERATIONS.fromalias("minus")) == (0, 1, 1)
    assert OPERATIONS.has_alias("minus") and OPERATIONS.get_aliases() == ("minus",)
    assert str(OPERATIONS) == "EnumList<int>(ADD:0, SUB(minus):1)"
    assert EnumList("ADD", ("SUB", "minus")) == OPERATIONS != EnumList("ADD", "SUB")
    assert hash(EnumList("ADD", ("SUB", "minus"))) == hash(OPERATIONS)
    assert pickle.loads(pickle.dumps(OPERATIONS)) == OPERATIONS
    assert EnumType(A=1, B=2.5)["B"] == 2.5 and CEnumType("A", "B").B == 1
    assert OPERATIONS.filter("minus") == OPERATIONS.filter(1) == 1
    for wrong in (7, "times", None):
        with pytest.raises(TypeError, match="takes its numbers"):
            OPERATIONS.filter(wrong)
    with pytest.raises(AttributeError, match="no constant 'MUL'"):
        OPERATIONS.MUL  # noqa: B018
    for make, error in (
        (lambda: EnumList("a"), AttributeError),
        (lambda: EnumList("A", "A"), TypeError),
        (lambda: EnumType(A="one"), TypeError),
    ):
        with pytest.raises(error):
            make()


def test_parameters():
    type_ = ParamsType(step=pt.dvector, kind=OPERATIONS)
    params = type_.get_params(step=[1, 2], kind="minus")
    assert (type_.fields, type_.length, type_.ADD) == (("kind", "step"), 2, 0)
    assert params.kind == params["kind"] == 1 and params.step.dtype == "float64"
    assert type_.get_type("kind") == OPERATIONS and type_.get_field(OPERATIONS) == "kind"
    assert type_.enum_from_alias("minus") == type_.get_enum("SUB") == 1
    assert type_.values_eq(params, type_.filter(params)) and type_ == ParamsType(
        kind=OPERATIONS, step=pt.dvector
    )
    assert type_.extended(axis=pt.lscalar).fields == ("axis", "kind", "step")
    for make, error in (
        (lambda: ParamsType(), ValueError),
        (lambda: ParamsType(a=3), TypeError),
        (lambda: Params(type_, kind=0), TypeError),
        (lambda: type_.get_params(kind=0), KeyError),
        (lambda: type_.filter(3), TypeError),
    ):
        with pytest.raises(error):
            make()


def test_types():
    class Text(CType):
        __props__ = ()

        def filter(self, data, strict=False, allow_downcast=None):
            return str(data)

    assert phintys.function([v := Text()("v")], v)(3) == "3"
    assert not isinstance(x.type, CType)
    assert generic("anything").type == phintys.generic
    assert CDataType("int*") == CDataType("int*")
    with pytest.raises(TypeError, match="takes capsules"):
        CDataType("int*").filter(np.ones(2))
