"""Routines: what the subset of Python means in each generator, and as a step of Programs."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
import scipy.linalg

import phintys
import phintys.tensor as pt
from phintys.backends import c, llvm
from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Builder, NotNative
from phintys.lowering.interpret import StepFailure, interpret
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import External
from phintys.lowering.spec import IllegalProgram, verify
from phintys.lowering.text import parse_program, render_program
from phintys.routines import Array, Longs, Pack, Packs, Positions, Real, Routine, routine
from phintys.routines.language import (
    LANES,
    PARTS,
    across,
    cos,
    exp,
    in_numbers,
    load_square,
    local,
    rounded,
    scatter,
    sin,
    spread,
    sqrt,
    store_square,
)
from phintys.routines.libraries import LAPACK, row

FAILURE = (ArithmeticError, "it fails")
getrf = row("lapack getrf int int array int ints status")
geqrf = row("lapack geqrf int int array int array array int status")
missing = row("lapack nosuchfunction int status")
LIMIT = 5


def _collatz(n: int) -> int:
    count = 0
    while n != 1 and count < 1000:
        if n % 2 == 0:  # noqa: SIM108
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    return count


def _clipped(x: Real, low: Real) -> Real:
    if x < low or x != x:
        return low
    return x


@routine("float32 float64", FAILURE)
def everything(n: int, x: Array, y: Array, counts: Longs, places: Positions) -> int:
    """Every statement and operator of the subset."""
    largest = -inf
    found = False
    for i in range(n):
        largest = _clipped(x[i], largest)
        found = found or (x[i] == 0.0 and not i == 0)  # noqa: SIM201
    for i in range(1, n, 2):
        y[i] = sqrt(x[i] * x[i]) / 2.0
        y[i - 1] = -x[i - 1] + 1.0
    rest = y[n - n % 2 :]
    if n % 2 == 1:
        rest[0] = nan if found else largest
    for i in range(n):
        counts[i] = _collatz(i + 1)
        places[i] = counts[i] * 2 - i
        if i >= LIMIT:
            y[i] += 1.0
            continue_ = i + 1
            places[i] = places[i] + continue_ // 2
    return 0 if n < 100 else n


@routine(LAPACK, FAILURE)
def factor_rows(n: int, a: Array, pivots: Positions) -> int:
    """The factors of the transpose of a matrix, with integer pivots."""
    return getrf(n, n, a, n, pivots)


@routine(LAPACK, FAILURE)
def orthogonal(m: int, n: int, lwork: int, a: Array, tau: Array, work: Array) -> int:
    """A decomposition with a workspace."""
    return geqrf(m, n, a, m, tau, work, lwork)


@routine("float64 complex128", FAILURE)
def parts(n: int, x: Array) -> int:
    """Complex arrays are pairs."""
    for i in range(n * PARTS):
        x[i] = x[i] * 2.0
    x[0] = 1.0 * x[0] + 0.0
    return 0


LENGTH = 9


def _root(x: Pack) -> Pack:
    return 1.0 / sqrt(x)


@routine("float32 float64 complex64", FAILURE)
def waves(n: int, x: Array, y: Array) -> int:
    """Functions of numbers."""
    for i in range(n * PARTS):
        y[i] = exp(x[i]) * sin(2.0 * x[i]) + cos(x[i])
    return 0


def _in_lanes(n: int, s: Packs) -> None:
    total = s[0] * 0.0
    for i in range(n):
        total += s[i] * s[i] - 1.0
    s[n] = -_root(total)


@routine("float32 float64", FAILURE, grouped=True)
def norms(count: int, n: int, x: Array, y: Array) -> int:
    """A number for each item, computed for `LANES` items at once."""
    if n >= LENGTH or count < 1:
        return count
    for group in range((count + LANES - 1) // LANES):
        work = local(LENGTH * LANES)
        for i in range(n):
            for lane in range(LANES):
                item = group * LANES + lane
                work[i * LANES + lane] = x[(item if item < count else 0) * n + i]
        _in_lanes(n, work)
        for lane in range(LANES):
            if group * LANES + lane < count:
                y[group * LANES + lane] = work[n * LANES + lane]
    return 0


def _largest(n: int, s: Packs) -> None:
    number = spread(0.0)
    place = number
    best = abs(s[0])
    for i in range(1, n):
        number += 1.0
        larger = abs(s[i]) > best + rounded(best * 0.0)
        place = number if larger else place
        best = abs(s[i]) if larger else best
    s[n] = place


_largest_in_numbers = in_numbers(_largest)


@routine("float32 float64", FAILURE, grouped=True)
def largest(count: int, alone: int, n: int, x: Array, y: Array) -> int:
    """The element of the largest size of each item, for `LANES` items at once or one by one."""
    size = 1 if alone == 1 else LANES
    work = local(LENGTH * LANES)
    for group in range((count + size - 1) // size):
        for i in range(n):
            for lane in range(size):
                item = group * size + lane
                work[i * size + lane] = x[(item if item < count else 0) * n + i]
        if alone == 1:
            _largest_in_numbers(n, work)
        else:
            _largest(n, work)
        for lane in range(size):
            item = group * size + lane
            if item < count:
                y[item] = x[item * n + int(work[n * size + lane])]
    return 0


def _sum_across(n: int, x: Array, s: Packs) -> None:
    """The sum of each of `LANES` items, but for negative elements; what is there is overwritten."""
    for i in range(n):
        y = across(x[i:], n)
        s[i] = 0.0 if y < 0.0 else y
    for i in range(1, n):
        s[0] = s[0] + s[i]


@routine("float32 float64", FAILURE, grouped=True)
def positive_sums(count: int, n: int, x: Array, y: Array) -> int:
    """Sums of full groups, read across items; zeros for the other items."""
    work = local(LENGTH * LANES)
    for group in range((count + LANES - 1) // LANES):
        first = group * LANES
        full = count - first >= LANES
        if full:
            _sum_across(n, x[first * n :], work)
        for lane in range(LANES if full else count - first):
            y[first + lane] = work[lane] if full else 0.0
    return 0


def _running(n: int, x: Array, y: Array, s: Packs) -> None:
    """The running sums of each of `LANES` items; the packs for one item are 2 apart."""
    whole = n // LANES
    for k in range(whole):
        load_square(x[k * LANES :], n, s[k * LANES * 2 :], 2)
    for i in range(whole * LANES, n):
        s[2 * i] = across(x[i:], n)
    for i in range(1, n):
        s[2 * i] = s[2 * i] + s[2 * i - 2]
    for k in range(whole):
        store_square(s[k * LANES * 2 :], 2, y[k * LANES :], n)
    for i in range(whole * LANES, n):
        scatter(s[2 * i], y[i:], n)


@routine("float32 float64", FAILURE, grouped=True)
def running_sums(count: int, n: int, x: Array, y: Array) -> int:
    """Running sums of full groups; zeros for the other items."""
    work = local(72 * LANES)
    for group in range((count + LANES - 1) // LANES):
        first = group * LANES
        if count - first >= LANES:
            _running(n, x[first * n :], y[first * n :], work)
        else:
            for i in range(first * n, count * n):
                y[i] = 0.0
    return 0


@routine("float64", FAILURE, grouped=True)
def norms_with_space(count: int, n: int, x: Array, y: Array, space: Array) -> int:
    """The sums of squares; they are in the workspace first."""
    for k in range(count):
        for i in range(n):
            space[i] = x[k * n + i] * x[k * n + i]
        y[k] = 0.0
        for i in range(n):
            y[k] += space[i]
    return 0


def program_of(b, outputs):
    program = verify(plan_memory(verify(assemble(b, outputs))))
    text = render_program(program)
    assert render_program(verify(parse_program(text))) == text
    return program


def fail(args, step):
    raise StepFailure(step, "native")


def compiled_by_llvm(program):
    return llvm.compile_program(program, [], lambda args, kwargs: fail(args, -1), fail)


def runs(program, *values):
    """The results of the interpreter and of both generators."""
    values = [np.asarray(v) for v in values]
    found = compiled_by_llvm(program)(*values), c.compile_program(program, fail)(values)
    return interpret(program, *values), *found


@pytest.mark.widths
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 6, 9])
def test_the_subset(n, dtype):
    b = Builder()
    x = b.input(dtype, (None,))
    k = b.length(x, 0)
    writes = [(dtype, (k,)), ("int64", (k,)), ("int32", (k,))]
    program = program_of(b, b.external(everything, dtype, (k,), [x], writes=writes))
    value = np.linspace(-2, 3, n).astype(dtype)
    if n == 9:
        value[4] = 0.0
    reference, *others = runs(program, value)
    if n == 6:
        np.testing.assert_array_equal(reference[1], [0, 1, 7, 2, 5, 8])
        np.testing.assert_allclose(reference[0], [3, 0.5, 1, 0.5, -1 + 1e-7, 2.5], atol=1e-6)
    if n == 9:
        assert np.isnan(reference[0][-1])
    for found in others:
        for r, f in zip(reference, found, strict=True):
            assert r.dtype == f.dtype
            np.testing.assert_array_equal(r, f)


@pytest.mark.widths
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_functions_of_numbers(dtype):
    b = Builder()
    x = b.input(dtype, (None,))
    k = b.length(x, 0)
    program = program_of(b, b.external(waves, dtype, (k,), [x], writes=[(dtype, (k,))]))
    value = np.linspace(-3, 2, 14, dtype="float32").view(dtype if "c" in dtype else "float32")
    value = value.astype(dtype)
    part = value.view("float32") if dtype == "complex64" else value
    expected = np.exp(part) * np.sin(2 * part) + np.cos(part)
    for found in runs(program, value):
        np.testing.assert_allclose(found[0].view(part.dtype), expected, rtol=2e-6, atol=1e-6)


def test_batches_and_strides():
    """Items of a batch are read with their strides, and copied if they are not contiguous."""
    b = Builder()
    x = b.input("float64", (None, None, None))
    views = [b.slice(x, 0, 3, -2, 2), b.permute(x, (1, 0, 2)), b.permute(x, (2, 1, 0))]
    outputs = []
    for v in views:
        p, q, k = b.shape(v)
        writes = [("float64", (k,)), ("int64", (k,)), ("int32", (k,))]
        outputs += b.external(everything, "float64", (k,), [v], (), writes, (p, q), k)
    value = np.random.default_rng(0).normal(size=(4, 3, 5))
    for found in runs(program_of(b, outputs), value):
        for view, y in zip(
            (value[3:0:-2], value.transpose(1, 0, 2), value.transpose(2, 1, 0)), found[::3]
        ):
            plain = np.where(np.arange(view.shape[-1]) % 2, abs(view) / 2, 1 - view)
            if view.shape[-1] % 2:
                plain[..., -1] = view.max(-1)
            plain[..., LIMIT:] += 1
            np.testing.assert_allclose(y, plain)


@pytest.mark.widths
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(), (1,), (7,), (150,), (0,), (3, 5), (2, 0)], ids=str)
def test_groups(batch, dtype):
    """Items of a batch have the same bits in each lane, and at each place of a group."""
    b = Builder()
    x = b.input(dtype, (None,) * (len(batch) + 1))
    *outer, n = b.shape(x)
    once = b.external(norms, dtype, (n,), [x], (), [(dtype, ())], outer)[0]
    wide = b.broadcast_to(b.expand(x, 0), (2, *outer, n))
    copied = b.external(norms, dtype, (n,), [wide], (), [(dtype, ())], (2, *outer))[0]
    value = np.random.default_rng(0).uniform(1, 2, size=(*batch, 8)).astype(dtype)
    if batch and value.size:
        value[...] = value[(0,) * len(batch)]
    expected = -1 / np.sqrt((value * value - 1).sum(-1))
    for found, again in runs(program_of(b, [once, copied]), value):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert len(np.unique(found)) <= 1
        np.testing.assert_array_equal(again, [found, found])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_selection_in_lanes(dtype):
    """Comparisons select lane by lane; the same function computes one item with numbers."""
    b = Builder()
    x = b.input(dtype, (None, None))
    batch, n = b.shape(x)
    outputs = [
        b.external(largest, dtype, (alone, n), [x], (), [(dtype, ())], (batch,))[0]
        for alone in (0, 1)
    ]
    program = program_of(b, outputs)
    for count in (1, 9, 20):
        value = np.random.default_rng(count).normal(size=(count, 5)).astype(dtype)
        expected = value[np.arange(count), np.argmax(np.abs(value), axis=1)]
        for found in runs(program, value):
            np.testing.assert_array_equal(found, [expected, expected])


@pytest.mark.widths
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reading_across_items(dtype):
    b = Builder()
    x = b.input(dtype, (None, None))
    batch, n = b.shape(x)
    y = b.external(positive_sums, dtype, (n,), [x], (), [(dtype, ())], (batch,))
    program = program_of(b, y)
    for count in (1, 16, 48):
        value = (np.arange(count * 5).reshape(count, 5) * (-1) ** np.arange(5)).astype(dtype)
        expected = np.maximum(value, 0).sum(1)
        one, found, alone = (results[0] for results in runs(program, value))
        np.testing.assert_array_equal([one, alone], [expected, expected])
        np.testing.assert_array_equal(found, expected if count > 1 else [0])


@pytest.mark.widths
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_squares_of_items(dtype):
    b = Builder()
    x = b.input(dtype, (None, None))
    batch, n = b.shape(x)
    y = b.external(running_sums, dtype, (n,), [x], (), [(dtype, (n,))], (batch,))
    program = program_of(b, y)
    for length in (3, 8, 35):  # in squares, and beside them
        value = np.arange(32.0 * length).reshape(32, length).astype(dtype)
        for (found,) in runs(program, value):
            np.testing.assert_array_equal(found, np.cumsum(value, axis=1))


def test_a_group_fails():
    b = Builder()
    x = b.input("float64", (None, None))
    batch, n = b.shape(x)
    y = b.external(norms, "float64", (n,), [x], (), [("float64", ())], (batch,))
    program = program_of(b, y)
    with pytest.raises(StepFailure, match="norms returned"):
        interpret(program, np.ones((2, LENGTH)))
    with pytest.raises(StepFailure, match="step 0: native"):
        compiled_by_llvm(program)(np.ones((2, LENGTH)))


@pytest.mark.parametrize("dtype", LAPACK.split())
def test_integer_pivots(dtype):
    b = Builder()
    a = b.input(dtype, (None, None))
    n = b.length(a, 0)
    program = program_of(b, b.external(factor_rows, dtype, (n,), (), [a], [("int32", (n,))]))
    value = np.random.default_rng(0).normal(size=(5, 5)).astype(dtype)
    expected, pivots = scipy.linalg.lu_factor(value.T)
    for factors, found in runs(program, value):
        np.testing.assert_allclose(factors.T, expected, rtol=1e-4)
        np.testing.assert_array_equal(found, pivots + 1)


@pytest.mark.parametrize("dtype", LAPACK.split())
def test_workspaces(dtype):
    """One block for the whole batch, of a length that depends on lengths of inputs."""
    b = Builder()
    a = b.input(dtype, (None, None, None))
    batch, n, m = b.shape(a)
    scratch = [(dtype, n), (dtype, n * 32)]
    integers = (m, n, n * 32)
    found = b.external(orthogonal, dtype, integers, (), [a], (), (batch,), scratch=scratch)
    program = program_of(b, found)
    assert sorted(str(slot.shape) for slot in program.slots if slot.kind == "temp") == sorted(
        str((length,)) for _, length in scratch
    )
    value = np.random.default_rng(0).normal(size=(4, 3, 7)).astype(dtype)
    expected = [scipy.linalg.qr(x.T, mode="r")[0] for x in value]
    for (found,) in runs(program, value):
        np.testing.assert_allclose(np.triu(found.swapaxes(1, 2)), expected, rtol=1e-4)
    for (found,) in runs(program, value[:0]):
        assert found.shape == (0, 3, 7)


def test_groups_share_a_workspace():
    b = Builder()
    x = b.input("float64", (None, None, None))
    *batch, n = b.shape(x)
    (y,) = b.external(
        norms_with_space,
        "float64",
        (n,),
        [x],
        (),
        [("float64", ())],
        batch,
        scratch=[("float64", n)],
    )
    value = np.random.default_rng(0).normal(size=(3, 50, 5))
    for (found,) in runs(program_of(b, [y]), value):
        np.testing.assert_allclose(found, (value**2).sum(-1))


def test_complex_arrays_are_pairs():
    for dtype in ("float64", "complex128"):
        b = Builder()
        x = b.input(dtype, (None,))
        program = program_of(b, b.external(parts, dtype, (b.length(x, 0),), (), [x]))
        value = np.array([1.0, 2.0, 3.0]) * (1 if dtype == "float64" else 1 + 2j)
        for (found,) in runs(program, value):
            np.testing.assert_array_equal(found, 2 * value)


def test_failures():
    b = Builder()
    x = b.input("float64", (None,))
    k = b.length(x, 0)
    writes = [("float64", (k,)), ("int64", (k,)), ("int32", (k,))]
    program = program_of(b, b.external(everything, "float64", (k,), [x], writes=writes))
    with pytest.raises(StepFailure, match="everything returned 100"):
        interpret(program, np.zeros(100))
    with pytest.raises(StepFailure, match="step 0: native"):
        compiled_by_llvm(program)(np.zeros(100))
    with pytest.raises(StepFailure, match="step 0: native"):
        c.compile_program(program, fail)([np.zeros(100)])


def test_routines_of_one_name_are_apart():
    """A second definition, as in a notebook; names of the package are never taken."""

    def defined(factor):
        if factor == 2:

            @routine("float64", FAILURE)
            def in_order(n: int, x: Array) -> int:
                x[0] = x[0] * 2.0
                return 0
        else:

            @routine("float64", FAILURE)
            def in_order(n: int, x: Array) -> int:
                x[0] = x[0] * 3.0
                return 0

        return in_order

    b = Builder()
    x = b.input("float64", (1,))
    outputs = [b.external(defined(k), "float64", (1,), (), [x])[0] for k in (2, 3)]
    program = verify(plan_memory(assemble(b, outputs)))
    for found in (
        interpret(program, np.ones(1)),
        compiled_by_llvm(program)(np.ones(1)),
        c.compile_program(program, fail)([np.ones(1)]),
    ):
        np.testing.assert_array_equal(np.ravel(found), [2, 3])
    v = pt.dvector("v")
    np.testing.assert_array_equal(pt.sort(v * 1.5).eval({v: [4.0, 2.0]}), [3, 6])


def _helper_of_another_module():
    def _clipped(x: Real, low: Real) -> Real:
        return low

    return _clipped


_other = _helper_of_another_module()


def _two_of_one_name(x: Real) -> Real:
    return _clipped(x, 1.0) + _other(x, 2.0)


def test_functions_of_one_name():
    """A routine does not take one function for another one."""
    made = Routine(_two_of_one_name, ("float64",), FAILURE)
    with pytest.raises(SyntaxError, match=r"_other\(x, 2.0\)' is a call of another function"):
        _ = made.functions


def test_a_routine_without_source():
    space = {"Array": Array}
    text = "def made(n: int, x: Array) -> int:\n    return 0"
    exec(compile(text, "<nowhere>", "exec"), space)  # some process may know a "<string>"
    assert not Routine(space["made"], ("float64",), FAILURE).is_available("float64")


def test_what_is_not_available():
    b = Builder()
    x = b.input("float64", (None,))

    def absent(n: int, x: Array) -> int:
        return missing(n)

    absent.__globals__["missing"] = missing
    made = Routine(absent, ("float64",), FAILURE)
    assert not made.is_available("float64")
    with pytest.raises(LookupError, match="install a newer SciPy"):
        missing.address("float64")
    with pytest.raises(NotNative):
        b.external(made, "float64", (1,), (), [x])
    with pytest.raises(NotNative):
        b.external(everything, "int64", (1,), (), [x])
    with pytest.raises(TypeError, match="is called by routines"):
        missing(1)


def wrong_type(n: int, x: Array) -> int:
    n = 1.0
    return n


def wrong_operand(n: int, x: Array) -> int:
    return n + x[0]


def wrong_step(n: int, x: Array) -> int:
    for i in range(0, n, n):
        x[i] = 0.0
    return 0


def wrong_statement(n: int, x: Array) -> int:
    del n
    return 0


def wrong_call(n: int, x: Array) -> int:
    return print(n)


def wrong_arguments(n: int, x: Array) -> int:
    return _collatz(x[0])


def wrong_count(n: int, x: Array) -> int:
    return getrf(n)


def wrong_condition(n: int, x: Array) -> int:
    if n:
        return 1
    return 0


def wrong_element(n: int, x: Array) -> int:
    x[0] = n
    return 0


def wrong_result(n: int, x: Array) -> int:
    return x[0]


def wrong_index(n: int, x: Array) -> int:
    x[x[0]] = 0.0
    return 0


def wrong_sides(n: int, x: Array) -> int:
    x[0] = 0.0 if n == 0 else n
    return 0


def wrong_lanes(n: int, x: Packs) -> int:
    x[0] = x[0] if n > 0 else x[1]
    return 0


def wrong_operands_of_packs(n: int, x: Packs) -> int:
    x[0] = x[0] + n
    return 0


def wrong_local(n: int, x: Array) -> int:
    local(n * LANES)
    return 0


def wrong_constant(n: int, x: Array) -> int:
    return FAILURE


def wrong_target(n: int, x: Array) -> int:
    m, k = n, 2
    return m + k


def wrong_loop(n: int, x: Array) -> int:
    for n in range(3):
        x[n] = 0.0
    return 0


def wrong_counter(n: int, x: Array) -> int:
    for i in range(n):
        x[i] = 0.0
        i += 1
    return 0


def wrong_expression(n: int, x: Array) -> int:
    return [n][0]


def wrong_type_of_result(n: int, x: Array) -> bool:
    return n == 0


def wrong_parameter(n: float, x: Array) -> int:
    return 0


WRONG = [f for name, f in list(globals().items()) if name.startswith("wrong_")]


@pytest.mark.parametrize("function", WRONG, ids=lambda f: f.__name__)
def test_what_is_not_in_the_subset(function):
    with pytest.raises(SyntaxError, match=r"test_routines.py, wrong_.* is not in the subset"):
        Routine(function, ("float64",), FAILURE).functions  # noqa: B018


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("factor_rows float64 uw [len(0, 0)]", "factor_rows float64 uw []", "other parameters"),
        ("factor_rows float64", "factor_rows int64", "no version for int64"),
        ("= output int32", "= output int64", "dtype"),
        ("$0 = %1 {; 0; }", "$0 = %1 {1; 0; }", "strides and batch differ"),
        ("factor_rows float64 uw", "factor_rows float64 ru", "read before it is filled"),
    ],
)
def test_illegal_steps(old, new, message):
    b = Builder()
    a = b.input("float64", (None, None))
    n = b.length(a, 0)
    program = program_of(b, b.external(factor_rows, "float64", (n,), (), [a], [("int32", (n,))]))
    assert any(isinstance(step, External) for step in program.steps)
    text = render_program(program)
    assert old in text
    with pytest.raises(IllegalProgram, match=message):
        verify(parse_program(text.replace(old, new)))


def test_operands_out_of_order():
    x = pt.dmatrix()
    f = phintys.function([x], pt.linalg.solve_triangular(x, x))
    text = render_program(f.program)
    with pytest.raises(IllegalProgram, match="roles out of order"):
        verify(parse_program(text.replace(" ru ", " ur ")))
