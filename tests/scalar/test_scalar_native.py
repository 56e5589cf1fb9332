"""The native form of every row, run by a builder that computes with NumPy, against its value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rows import CASTS, ROWS, accepts, arity, edges, grid

import phintys
import phintys.tensor as pt
from phintys.scalar import numeric, pairs
from phintys.scalar.dtypes import is_complex
from phintys.scalar.native import (
    INSTRUCTIONS,
    LIBM_CALLS,
    NATIVE_DTYPES,
    OWN_CALLS,
    SCIPY_CALLS,
    NoForm,
    form_of,
)
from phintys.scalar.op import TABLE

NATIVE = sorted(NATIVE_DTYPES)


def _floor_of_integers(f: Any) -> Any:
    def computed(a: Any, b: Any) -> Any:
        return np.where(b == 0, 0, f(a, np.where(b == 0, 1, b))).astype(a.dtype)

    return computed


def _special(name: str) -> Any:
    from scipy import special

    return getattr(numeric, OWN_CALLS[name]) if name in OWN_CALLS else getattr(special, name)


def _softplus(a: Any) -> Any:
    return np.logaddexp(a, np.zeros_like(a))


COMPUTED: dict[str, Any] = {
    "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "idiv": _floor_of_integers(np.floor_divide), "imod": _floor_of_integers(np.remainder),
    "fma": lambda a, b, c: a * b + c, "min": np.minimum, "max": np.maximum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "shl": np.left_shift, "shr": np.right_shift,
    "complex": numeric.complex_from_parts, "select": np.where, "pow": np.power,
    "sigmoid": lambda a: _special("expit")(a),
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "softplus": _softplus, "log1mexp": numeric.log1mexp, "erf": lambda a: _special("erf")(a),
    "erfc": lambda a: _special("erfc")(a),
}  # fmt: skip


class Numbers:
    """A `Native` whose values are arrays; it checks what a generator may rely on."""

    def const(self, value: Any, like: Any) -> Any:
        return np.asarray(value, like if isinstance(like, str) else like.dtype)

    def cast(self, x: Any, dtype: str) -> Any:
        if x.dtype == dtype:
            return x
        pair = is_complex(dtype) or x.dtype.kind == "c"
        return pairs.cast(self, x, dtype) if pair else x.astype(dtype)

    def dtype(self, x: Any) -> str:
        return x.dtype.name

    def call(self, name: str, *args: Any) -> Any:
        assert len(args) == (LIBM_CALLS | SCIPY_CALLS)[name]
        if any(a.dtype.kind == "c" for a in args):
            raise NoForm(name)
        assert len({a.dtype for a in args}) == 1
        wide = [a.astype("float64") for a in args]
        return _special(name)(*wide).astype(args[0].dtype)

    def __getattr__(self, name: str) -> Any:
        row = INSTRUCTIONS[name.rstrip("_")]
        compute = COMPUTED.get(row.name) or getattr(np, row.name)

        def instruction(*args: Any) -> Any:
            assert len(args) == row.arity, row
            typed = args[1:] if row.name == "select" else args
            form = form_of(row, typed[0].dtype.name)
            if form is not None:
                return form(self, *args)
            assert row.name != "select" or args[0].dtype == bool
            assert len({a.dtype for a in typed}) == 1, (row, [a.dtype for a in typed])
            assert typed[0].dtype.kind in row.kinds, (row, typed[0].dtype)
            out = np.asarray(compute(*args))
            assert out.dtype == row.result_dtype(typed[0].dtype.name), row
            return out

        return instruction


def run(name: str, arguments: list[np.ndarray]) -> Any:
    with np.errstate(all="ignore"):
        return TABLE[name].emit(Numbers(), *arguments)


#: logit rounds more than once near its zero; SciPy computes betaincinv of float32 less exactly
LOOSE = {"logit", "betaincinv"}


def assert_equal_values(name: str, found: np.ndarray, arguments: list[np.ndarray]) -> None:
    op = TABLE[name]
    with np.errstate(all="ignore"):
        expected = op.compute(*arguments)
    found = np.broadcast_to(found, expected.shape)
    assert found.dtype == expected.dtype
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected)
        return
    info = np.finfo(expected.dtype)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    atol = 4 * info.eps if name in LOOSE else info.tiny
    np.testing.assert_allclose(found, expected, rtol=6 * info.eps, atol=atol)


def combinations(name: str, dtype: str) -> list[tuple[str, ...]]:
    n = arity(TABLE[name])
    if name == "polygamma":
        return [("int8", dtype)]
    mixed = ("int64", *[dtype] * (n - 1))
    return [(dtype,) * n] if n == 1 else [(dtype,) * n, mixed]


@pytest.mark.parametrize("dtype", NATIVE)
@pytest.mark.parametrize("name", [n for n in ROWS if TABLE[n].native is not None])
def test_native_form(name: str, dtype: str) -> None:
    tried = 0
    for dtypes in combinations(name, dtype):
        if not accepts(TABLE[name], *dtypes):
            continue
        arguments = grid(*(edges(dt)[: 20 if len(dtypes) < 3 else 8] for dt in dtypes))
        if name == "polygamma":
            arguments[0] = np.abs(arguments[0]) % 5
        found = run(name, arguments)
        assert (found is not NotImplemented) == TABLE[name].has_native(*dtypes)
        if found is not NotImplemented:
            tried += 1
            assert_equal_values(name, found, arguments)
    if not tried:
        pytest.skip(f"{name} has no native form for {dtype}")


@pytest.mark.parametrize("dtype", NATIVE)
@pytest.mark.parametrize("name", CASTS)
def test_native_cast(name: str, dtype: str) -> None:
    x = edges(dtype)
    target = np.dtype(name.removeprefix("cast_"))
    if x.dtype.kind == "f" and target.kind in "iu":
        x = x[np.isfinite(x) & (np.abs(x) < 100) & ((x > -1) | (target.kind == "i"))]
    found = run(name, [x])
    assert_equal_values(name, found, [x])


def test_integer_powers_are_left_to_numpy() -> None:
    """They raise for negative exponents, which instructions cannot."""
    assert not TABLE["pow"].has_native("int64", "int64")
    assert TABLE["pow"].has_native("float64", "int64")


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_factorials_of_polygamma_do_not_overflow_in_float32(dtype):
    order, x = pt.tensor("order", dtype="int8", shape=(None,)), pt.vector("x", dtype=dtype)
    n = np.arange(1, 100, dtype="int8")
    f, g = (
        phintys.function([order, x], pt.polygamma(order, x), mode=mode)
        for mode in ("FAST_RUN", "NUMPY")
    )
    np.testing.assert_allclose(f(n, n.astype(dtype)), g(n, n.astype(dtype)), rtol=1e-6)
