"""Conventions of PyTensor that programs rely on: names, ranks, identity, permissions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import phintys
import phintys.scalar as ps
import phintys.tensor as pt
from phintys.errors import NotScalarConstantError
from phintys.graph.destroy import DestroyHandler
from phintys.graph.fgraph import FunctionGraph
from phintys.scalar.op import TABLE
from phintys.tensor import math as functions
from phintys.tensor import nnet
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.subtensor import as_index_literal
from phintys.tensor.type_other import NoneConst, SliceConstant, slicetype

# ------------------------------------------------------------------- types and variables


def test_types_that_do_not_exist() -> None:
    for dtype in ("longdouble", "clongdouble", "str", "datetime64[s]", "object"):
        with pytest.raises(TypeError, match="not supported"):
            pt.TensorType(dtype, ())
    with pytest.raises(ValueError, match="at most 64 dimensions"):
        pt.TensorType("int8", (None,) * 65)
    assert pt.TensorType("int8", (None,) * 64).ndim == 64
    assert pt.TensorType("int8", (True, False, 3)).shape == (1, None, 3)
    assert not pt.bscalar.is_valid_value(300, strict=False)


def test_shapes_and_names_that_do_not_fit() -> None:
    make: Callable[..., Any]
    for make in (pt.row, pt.drow, pt.col, pt.dcol, pt.TensorType("int8", (2, None))):
        with pytest.raises(ValueError, match="contradicts"):
            make("x", shape=(3, 3))
    assert pt.row("x", shape=(None, 3)).type.shape == (1, 3)
    assert pt.TensorType("int8", (2, None))("x", shape=(2, 3)).type.shape == (2, 3)
    with pytest.raises(ValueError, match="contradicts"):  # what is known is not forgotten
        pt.drow("x", shape=(None, 3))
    for make in (pt.vector, pt.dvector, pt.vectors):
        with pytest.raises(TypeError, match="name of a variable"):
            make(3.5)


def test_lengths_that_are_not_known_are_printed_as_question_marks() -> None:
    x = pt.dmatrix("x", shape=(None, 3))
    assert str(x.type) == "Matrix(float64, shape=(?, 3))"
    assert (x + pt.drow()).type.shape == (None, 3)
    assert x.type.broadcastable == (False, False)


def test_a_rank_adds_axes_on_the_left_or_drops_them() -> None:
    m = pt.tensor("m", dtype="float64", shape=(1, 1, None))
    for ndim in range(1, 6):
        assert pt.as_tensor(m, ndim=ndim).type.shape == ((1,) * 5 + (None,))[6 - ndim :]
        shape = pt.as_tensor(np.ones((1, 1, 3)), ndim=ndim).type.shape
        assert shape == ((1,) * 5 + (3,))[6 - ndim :]
    np.testing.assert_array_equal(pt.as_tensor(m, ndim=1).eval({m: [[[1.0, 2.0]]]}), [1, 2])
    for value in (m, np.ones((2, 1, 1)), pt.dmatrix("d")):
        with pytest.raises(ValueError, match="cannot be given ndim=0"):
            pt.as_tensor(value, ndim=0)


def test_conversion_takes_the_argument_about_named_dimensions() -> None:
    x = pt.dvector("x")
    assert pt.as_tensor(x, allow_xtensor_conversion=True) is x
    for value in (1.5, [1.0, 2.0], np.ones(2), [x, x]):
        found = pt.as_tensor(value, allow_xtensor_conversion=True)
        assert found.type == pt.as_tensor(value).type


def test_comparison_is_identity_whatever_the_other_object_is() -> None:
    x = pt.dscalar("x")
    value: Any
    for value in (np.ones(2), np.float64(1), np.array(None), 1, "x", None, x.type):
        assert (x == value) is False and (x != value) is True
        assert (pt.constant(1.0) == value) is False


# -------------------------------------------------------------------------------- functions


@pytest.mark.parametrize("name", [n for n in TABLE if TABLE[n].nfunc_spec])
def test_functions_of_numpy_and_scipy_are_named(name: str) -> None:
    """`nfunc_spec` names the function that computes the values, as in PyTensor."""
    function, nin, nout = TABLE[name].nfunc_spec or ("", 0, 0)
    module, _, attribute = f"numpy.{function}".replace("numpy.scipy.", "scipy.").rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    assert found is TABLE[name].nfunc and nout == 1
    assert not isinstance(found, np.ufunc) or found.nin == nin


class Entropy(ps.UnaryScalarOp):
    nfunc_spec = ("scipy.special.entr", 1, 1)


def test_a_function_that_computes_the_values_of_an_own_op() -> None:
    op = Elemwise(Entropy(ps.upgrade_to_float, name="entropy"))
    np.testing.assert_allclose(op([1, 0, 2]).eval(), [0, 0, -2 * np.log(2)])
    assert op.nfunc_spec == Entropy.nfunc_spec and pt.exp.nfunc_spec == ("exp", 1, 1)
    assert pt.mul.nfunc_spec == ("multiply", 2, 1) and pt.cosm1.nfunc_spec is None


def test_names_of_the_module_of_mathematics_are_those_of_functions() -> None:
    """``Any`` is the reduction, not that of `typing`; ``dot`` the function, not its module."""
    x = pt.matrix("x", dtype="bool")
    node = pt.any(x, axis=0).owner
    assert node is not None and isinstance(node.op, functions.Any)
    assert functions.dot is pt.dot and functions.tensordot is pt.tensordot
    np.testing.assert_array_equal(
        functions.Any(axis=0)(x).eval({x: [[True, False]]}), [True, False]
    )


def test_the_fast_sigmoid_is_accurate() -> None:
    at = np.linspace(-800.0, 800.0, 9)
    np.testing.assert_allclose(nnet.ultra_fast_sigmoid(at).eval(), scipy.special.expit(at))


def test_sums_and_products_of_any_number() -> None:
    x = pt.dvector("x")
    assert functions.variadic_add(x) is x and functions.variadic_mul(x) is x
    assert functions.variadic_add().eval() == 0 and functions.variadic_mul().eval() == 1
    assert functions.variadic_add(x, 1, x).owner.op == pt.add
    assert functions.variadic_mul(x, 2, x).owner.op == pt.mul


def test_indices_of_constants_become_numbers() -> None:
    three = pt.constant(3)
    given: Any
    for given, expected in [
        (1, 1), (None, None), (three, 3), (ps.as_scalar(3), 3),
        (slice(1, three), slice(1, 3)), (slice(None, None, three), slice(None, None, 3)),
        (NoneConst, None), (SliceConstant(slicetype, slice(1, 2)), slice(1, 2)),
    ]:  # fmt: skip
        assert as_index_literal(given) == expected
    for given in (pt.lscalar(), slice(pt.lscalar()), pt.constant([1, 2])):
        with pytest.raises(NotScalarConstantError):
            as_index_literal(given)
    for given in ("a", 1.5):
        with pytest.raises(TypeError):
            as_index_literal(given)


# -------------------------------------------------------------------------------- in place


@pytest.mark.parametrize("write", [pt.set_subtensor, pt.inc_subtensor])
def test_a_value_may_share_the_memory_that_is_overwritten_if_that_is_permitted(
    write: Callable[..., Any],
) -> None:
    x = pt.dvector("x")
    for tolerated in (False, True):
        y = x * 2
        out = write(y[1:], y[:-1], inplace=True, tolerate_inplace_aliasing=tolerated)
        fgraph = FunctionGraph([x], [out], clone=False)
        fgraph.attach_feature(DestroyHandler())
        assert fgraph.consistent() == tolerated
        assert out.owner.op.destroyhandler_tolerate_aliased == ((0, 1),) * tolerated
        if tolerated:
            f = phintys.function([x], out, accept_inplace=True)
            one = phintys.function([x], write(y[1:], y[:-1]))
            np.testing.assert_array_equal(f([1.0, 2.0, 3.0]), one([1.0, 2.0, 3.0]))
