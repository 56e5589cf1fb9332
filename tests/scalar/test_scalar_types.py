"""Scalar types and variables, operators, preferences, pickling of rows, names."""

from __future__ import annotations

import contextlib
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import DTYPES, ROWS

import phintys
import phintys.scalar as ps
from phintys.config import config
from phintys.scalar import Composite, dtypes
from phintys.scalar.op import CLASSES, TABLE, functions


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_type_for_each_dtype(dtype: str) -> None:
    scalar_type = getattr(ps, dtype)
    assert scalar_type is ps.get_scalar_type(dtype)
    assert scalar_type("x").name == "x"
    assert scalar_type("x").dtype == dtype
    assert getattr(ps, f"convert_to_{dtype}") == ps.Cast(scalar_type)


@pytest.mark.parametrize("name", list(TABLE))
def test_pickle_gives_the_same_object(name: str) -> None:
    op = TABLE[name]
    assert pickle.loads(pickle.dumps(op)) is op
    if name in ROWS:
        assert type(op)() == op
        assert hash(type(op)()) == hash(op)
        assert pickle.loads(pickle.dumps(type(op))) is type(op)
        assert pickle.loads(pickle.dumps(type(op)())) == op


def test_names_of_the_package() -> None:
    for name in ROWS:
        assert getattr(ps, name) is TABLE[name]
    for name, cls in CLASSES.items():
        assert getattr(ps, name) is cls
    assert issubclass(ps.Exp, ps.UnaryScalarOp)
    assert issubclass(ps.LT, ps.LogicalComparison)
    assert issubclass(ps.AND, ps.BinaryBitOp)


def test_every_row_has_documentation_of_its_own() -> None:
    docs = [TABLE[name].doc for name in ROWS]
    assert all(doc.rstrip(".") and doc.endswith(".") for doc in docs)
    assert len(set(docs)) == len(docs)


OPERATORS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "true_div": lambda x, y: x / y,
    "int_div": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "pow": lambda x, y: x**y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    x, y = ps.float64("x"), ps.float64("y")
    f = OPERATORS[name]
    for out, (a, b) in ((f(x, y), (5.5, 2.0)), (f(x, 2), (5.5, 2.0)), (f(5.5, y), (5.5, 2.0))):
        found = Composite([x, y], [out]).compute(np.float64(a), np.float64(b))
        assert found == f(a, b)


def test_bit_and_unary_operators() -> None:
    n, x = ps.int64("n"), ps.float64("x")
    for f in (lambda v: ~v, lambda v: v & 3, lambda v: 8 | v, lambda v: v ^ 5, lambda v: v << 2,
              lambda v: v >> 1, lambda v: -v, abs, lambda v: +v):  # fmt: skip
        assert Composite([n], [f(n)]).compute(np.int64(-13)) == f(-13)
    assert Composite([x], [x.astype("int8")]).compute(np.float64(-2.7)) == -2


def test_operators_refuse_what_is_no_number() -> None:
    x = ps.float64("x")
    with pytest.raises(TypeError):
        x + "one"
    with pytest.raises(TypeError, match="bit operations"):
        x & x


def test_literals_take_the_smallest_dtype() -> None:
    x, n = ps.float32("x"), ps.int8("n")
    assert (x + 1.5).type == ps.float32
    assert (x + 0.1).type == ps.float64
    assert (n + 100).type == ps.int8
    assert (n + 1000).type == ps.int16
    assert (np.float64(1) * x).type == ps.float64
    assert ps.constant(2, dtype="float32").type == ps.float32
    with ps.autocast_float_as("float32"):
        assert (x + 0.1).type == ps.float32
    assert (x + 0.1).type == ps.float64


@pytest.mark.parametrize("value, expected", [
    (0.1, "float64"), (0.5, "float32"), (1e300, "float64"), (float("inf"), "float32"),
    (2**40, "int64"), (2**63, "uint64"), (True, "bool"), (1j, "complex128"),
])  # fmt: skip
def test_dtype_of_python_numbers(value: Any, expected: str) -> None:
    assert dtypes.literal_dtype(value) == expected


@given(
    st.floats(width=16) | st.floats(width=32) | st.floats(),
    st.sampled_from(["float16", "float32", "float64", "complex64"]),
)
def test_a_dtype_holds_a_number_if_numpy_keeps_it(value: float, dtype: str) -> None:
    with np.errstate(all="ignore"):
        kept = complex(np.dtype(dtype).type(value)) == value
    with dtypes.autocast_float_as(dtype, "float64"):
        assert dtypes.literal_dtype(value) == (dtype if kept or value != value else "float64")


def test_settings_of_literals_nest_and_stay_in_their_thread() -> None:
    single, double = ps.autocast_float_as("float32"), ps.autocast_float_as("float64")

    def seen() -> str:
        return dtypes.literal_dtype(0.5)

    with single, ThreadPoolExecutor(1) as pool:
        with double:
            assert seen() == "float64" and ps.autocast_float.dtypes == ("float64",)
            with double, single:
                assert seen() == "float32"
            assert seen() == "float64"
        assert dtypes.literal_dtype(0.1) == "float32"
        assert pool.submit(dtypes.literal_dtype, 0.1).result() == "float64"
    assert dtypes.literal_dtype(0.1) == "float64"


@pytest.mark.parametrize("policy", ["custom", "numpy+floatX", "numpy2"])
@pytest.mark.parametrize("value", [1, 300, -(2**40), 0.5, 0.1, 1e30, float("nan")])
def test_autocasters_give_the_dtypes_of_literals(policy: str, value: float) -> None:
    cast = ps.autocast_int if isinstance(value, int) else ps.autocast_float
    for floatx in ("float32", "float64"):
        with config.change_flags(cast_policy=policy, floatX=floatx):
            expected = ps.constant(value)
            assert cast(value).dtype == expected.type.dtype == ps.convert(value).dtype
            np.testing.assert_array_equal(cast(value), expected.data)


@given(st.integers() | st.floats() | st.complex_numbers(), st.permutations(dtypes.ALL[1:]))
def test_an_autocaster_takes_the_first_dtype_that_holds_the_number(
    value: complex, choices: list[str]
) -> None:
    try:
        found = ps.NumpyAutocaster(choices)(value)
    except OverflowError:
        assert isinstance(value, int) and abs(value) > 2**63
        return
    with np.errstate(all="ignore"):
        for dtype in choices[: choices.index(found.dtype.name)]:
            with contextlib.suppress(OverflowError, ValueError, TypeError):
                assert np.array(value, dtype).item() != value
    same = found.item() == value or value != value
    assert same or found.dtype == choices[-1]


def test_what_no_dtype_holds_is_refused() -> None:
    for choices, value in (
        (("int8", "int16"), 70000),
        (("uint8",), -1),
        (("int8",), 0.5),
        (("int64",), float("inf")),
        (("float64",), 1j),
        (("float64",), 10**400),
    ):
        with pytest.raises(OverflowError):
            ps.NumpyAutocaster(choices)(value)
    for wrong in ("1", None, np.ones(2)):
        with pytest.raises(TypeError, match="not a number"):
            ps.NumpyAutocaster(("float64",))(wrong)


@pytest.mark.parametrize("name", ["mod", "floor", "fmod", "gammaln"])
def test_what_is_not_defined_for_complex_numbers(name: str) -> None:
    with pytest.raises(ps.ComplexError, match=f"{name} of complex128.*not supported"):
        TABLE[name](*[ps.complex128()] * TABLE[name].nin)
    assert issubclass(ps.ComplexError, TypeError)


def test_arity_is_checked() -> None:
    x = ps.float64("x")
    with pytest.raises(TypeError, match="exp takes 1 arguments, not 2"):
        ps.exp(x, x)
    with pytest.raises(TypeError, match="at least one argument"):
        ps.add()


def test_perform_of_a_scalar_node() -> None:
    x, n = ps.float32("x"), ps.int8("n")
    node = ps.add.make_node(x, n)
    storage: list[list[Any]] = [[None]]
    node.op.perform(node, [np.float32(1.5), np.int8(2)], storage)
    assert storage[0][0] == np.float32(3.5)
    assert type(storage[0][0]) is np.float32


# -------------------------------------------------------------------- users' own scalar ops


class Twice(ps.UnaryScalarOp):
    """A scalar op as users of PyTensor write it."""

    def impl(self, x: Any) -> Any:
        return 2 * x


def test_own_scalar_op_with_a_preference() -> None:
    twice = Twice(ps.upgrade_to_float, name="twice")
    assert twice(ps.int8("n")).type == ps.float32
    np.testing.assert_array_equal(twice.compute(np.arange(3, dtype="int64")), [0.0, 2.0, 4.0])
    assert twice == Twice(ps.upgrade_to_float, name="twice")
    assert twice != Twice(ps.same_out, name="twice")
    assert pickle.loads(pickle.dumps(twice)) == twice


@pytest.mark.parametrize("name, given, expected", [
    ("upcast_out", "int8 float32", "float32"), ("upcast_out_min8", "bool bool", "int8"),
    ("same_out", "int8", "int8"), ("same_out_min8", "bool", "int8"),
    ("upgrade_to_float", "int8", "float32"), ("upgrade_to_float", "int64", "float64"),
    ("upgrade_to_float64", "int8", "float64"), ("float_out", "int8", "float64"),
    ("int_out", "float32", "int64"), ("real_out", "complex64", "float32"),
    ("same_out_nobool", "bool", None), ("upcast_out_nobool", "bool bool", None),
    ("same_out_nocomplex", "complex64", None), ("upcast_out_no_complex", "complex64 int8", None),
    ("same_out_float_only", "int8", None), ("upgrade_to_float_no_complex", "complex64", None),
])  # fmt: skip
def test_preferences(name: str, given: str, expected: str | None) -> None:
    types = [ps.get_scalar_type(dtype) for dtype in given.split()]
    if expected is None:
        with pytest.raises(TypeError):
            getattr(ps, name)(*types)
    else:
        assert getattr(ps, name)(*types) == (ps.get_scalar_type(expected),)


@pytest.mark.parametrize("name", ["jv", "iv", "kv", "kve"])
def test_bessel_functions_of_complex_numbers_keep_the_precision_of_the_order(name: str) -> None:
    z = ps.complex64("z")
    orders = {
        "int8": "complex64",
        "float32": "complex64",
        "int64": "complex128",
        "float64": "complex128",
    }
    for order, expected in orders.items():
        result = getattr(functions, name)(ps.get_scalar_type(order)(), z)
        assert result.type.dtype == expected


def test_specific_out() -> None:
    twice = Twice(ps.specific_out(ps.float64), name="twice")
    assert twice(ps.int8("n")).type == ps.float64


def test_variables_by_the_dozen() -> None:
    x, y = ps.floats("x", "y")
    assert (x.type, y.name) == (ps.float64, "y")
    assert [v.name for v in ps.ints("abc")] == ["a", "b", "c"]


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C"])
def test_graphs_of_scalars_are_compiled(mode: str) -> None:
    """Rules about tensors are not tried at scalar ops."""
    x, y = ps.float64("x"), ps.float64("y")
    expressions = {
        2 * x: 6.0,
        x + 0: 3.0,
        x + x - y: 4.0,
        y - (-x): 5.0,
        x * y / x: 2.0,
        functions.log(1 + functions.exp(x)): np.log(1 + np.exp(3.0)),
    }
    f = phintys.function([x, y], list(expressions), mode=mode)
    np.testing.assert_allclose(f(3.0, 2.0), list(expressions.values()), rtol=1e-15)
