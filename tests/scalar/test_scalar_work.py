"""No function takes longer for some numbers than for others: steps do not grow with the arguments.

Work is counted: lines of Python, steps of loops in LLVM, and what SciPy is asked for, of whose
functions zeta (a term for each unit below 0) and yv (a step for each order) are not bounded.
"""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from rows import ROWS, arity
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.backends.llvm import runtime
from phintys.backends.llvm.machine.jit import compile_ir
from phintys.scalar import numeric
from phintys.scalar.bessel import LONG_ARGUMENT, LONG_ORDER
from phintys.scalar.op import TABLE

OURS = [n for n in ROWS if getattr(TABLE[n].nfunc, "__module__", "").startswith("phintys")]
ORDINARY = [0.0, -0.0, 1.0, 1e-300, -1e-300, 5e-324, 0.5, -0.5, 170.5, -800.5, np.inf, np.nan]
LARGE = [-1e5 - 0.5, 1e9, -2e9 - 0.5, -2e9, -1e15 - 0.5, 4e15 + 0.5, 1e100, -1e100, 1e300, -1e300]
EXTREMES = {
    1: [*ORDINARY, *LARGE],
    2: [0.0, 0.5, -0.5, 2.0, -3.5, 1e-300, -800.5, 1e5, -1e5 - 0.5, -2e9 - 0.5, 2e9, 1e300],
    3: [0.0, 0.5, -3.5, 1 - 1e-9, 1e5, -2e9 - 0.5, 1e300],
    4: [0.5, -3.5, 1 - 1e-9, 1e5, -2e9 - 0.5, 1e300],
}


def computed(name: str, values: tuple[float, ...]) -> Any:
    arguments = [np.asarray(v) for v in values]
    if name == "polygamma":
        arguments[0] = np.asarray(int(max(-1e9, min(arguments[0].item(), 1e9))))
    with np.errstate(all="ignore"):
        return TABLE[name].nfunc(*arguments)


def test_the_functions_that_are_ours_are_found() -> None:
    assert {"tri_gamma", "polygamma", "zeta", "yv", "hyp2f1_der_a", "gammainc_der"} <= {*OURS}


#: The same lines as betainc_der_bb and hyp2f1_der_cc.
SAME = {"betainc_der_aa", "betainc_der_ab", "hyp2f1_der_aa", "hyp2f1_der_ab", "hyp2f1_der_ac"}


DIFFERENT = [n for n in OURS if n not in SAME]
#: Seconds for each.
LONG = {"hyp2f1_der_c", "hyp2f1_der_cc"}


@pytest.mark.parametrize("name", few(DIFFERENT, *{*DIFFERENT} - LONG))
def test_lines_of_python(name: str, lines_run: Any) -> None:
    n = arity(TABLE[name])
    computed(name, (0.5,) * n)  # imports SciPy
    for values in itertools.product(EXTREMES[n], repeat=n):
        assert lines_run(computed, name, values) < 6000, values


@pytest.mark.parametrize("name", ["zeta", "tri_gamma", "polygamma", "yv"])
def test_what_scipy_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.special

    asked: list[tuple[Any, Any]] = []

    def spy(function: Any) -> Any:
        def wrapped(x: Any, q: Any) -> Any:
            asked.append((x, q))
            return np.ones(np.broadcast_shapes(np.shape(x), np.shape(q)))

        return wrapped

    for function in ("zeta", "yv", "polygamma"):
        monkeypatch.setattr(scipy.special, function, spy(function))
    n = arity(TABLE[name])
    for values in itertools.product(EXTREMES[n], repeat=n):
        computed(name, values)
    assert asked
    for x, q in asked:
        if name == "yv":
            long = (np.abs(x) > LONG_ORDER) & (x == np.floor(x)) & (q > LONG_ARGUMENT)
            assert not np.any(long & (np.abs(x) < q / 2)), (x, q)
        else:
            found_at_once = (q == np.floor(q)) | np.isnan(q) | (x != np.floor(x)) | ~(x > 1)
            assert np.all((q >= -64) | found_at_once), (x, q)


def counted_zeta() -> tuple[Any, Any]:
    """The zeta function of compiled code, and the number of terms that it has added up."""
    text = (Path(runtime.__file__).parent / "zeta.ll").read_text()
    count = "%n = load i64, ptr @terms\n  %n.next = add i64 %n, 1\n  store i64 %n.next, ptr @terms"
    assert text.count("more:\n") == 1
    text = "@terms = external global i64\n" + text.replace("more:\n", f"more:\n  {count}\n")
    terms = ctypes.c_int64(0)
    given = {"terms": ctypes.addressof(terms)}
    library = compile_ir(lambda: text, given.get, name="counted_zeta")
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_int)(
        library.address("phintys.zeta")
    )
    call.keep = library  # type: ignore[attr-defined]
    return call, terms


def test_steps_of_the_zeta_function_of_compiled_code() -> None:
    zeta, terms = counted_zeta()
    exponents = [1.5, 2.0, 3.0, 50.0, 1e3, 1e5, 1e7, 2e9, 1e15, 1e300]
    for x, q in itertools.product(exponents, [*EXTREMES[1], *EXTREMES[2], *exponents]):
        terms.value = 0
        zeta(x, q, 0)
        assert terms.value < 200, (x, q)


@pytest.mark.parametrize("q", [-0.5, -1e-20, -7.9, -64.5, -1e5 - 0.25, -2e9 - 0.5, -1e15 - 0.5])
@pytest.mark.parametrize("x", [2, 3, 8, 13])
def test_zeta_below_zero(x: int, q: float) -> None:
    zeta, _ = counted_zeta()
    with mp.workdps(60):
        u = mp.mpf(q) - mp.floor(q)
        exact = mp.zeta(x, u) + (-1) ** x * (mp.zeta(x, 1 - u) - mp.zeta(x, 1 - mp.mpf(q)))
        parts = abs(exact) + mp.zeta(x, u)  # which cancel where x is odd
        for found in (numeric.zeta(np.float64(x), np.float64(q)), zeta(x, q, 0)):
            assert abs(mp.mpf(float(found)) - exact) < parts * 1e-14


@pytest.mark.parametrize(("n", "x"), [(12000, 3e10), (12001, 3e10), (12002, 5e10), (-12003, 5e10)])
def test_yv_of_large_orders(n: int, x: float) -> None:
    """The phase x has an absolute error of its rounding."""
    import phintys.tensor as pt

    a, b = pt.dscalars("a", "b")
    with mp.workdps(40):
        exact = float(mp.bessely(n, mp.mpf(x)))
    found = [numeric.yv(np.float64(n), np.float64(x))]
    found += [phintys.function([a, b], pt.yv(a, b), mode=m)(float(n), x) for m in (None, "C")]
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_zeta_of_nan_is_nan() -> None:
    """SciPy's is infinite at the poles."""
    x = pt.dvector("x")
    for q in (-1.0, 0.0, 0.5, np.nan):
        for mode in ("FAST_COMPILE", "FAST_RUN", "C"):
            f = phintys.function([x], pt.zeta(x, q), mode=mode)
            np.testing.assert_array_equal(f([np.nan, np.nan]), [np.nan, np.nan])


def test_zeta_of_enormous_exponents():
    """The first term is all of it; SciPy's function is NaN."""
    x, q = pt.dvectors("x", "q")
    exponents = np.array([1.8e19, 1e16, 1e300, np.inf, np.inf, 1e20])
    bases = np.array([5.0, 1.0, 0.5, 3.0, 1.0, np.nan])
    for mode in ("FAST_COMPILE", "FAST_RUN", "C"):
        found = phintys.function([x, q], pt.zeta(x, q), mode=mode)(exponents, bases)
        np.testing.assert_array_equal(found, [0, 1, np.inf, 0, 1, np.nan])
