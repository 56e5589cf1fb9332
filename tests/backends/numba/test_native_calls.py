"""``f.vm.jit_fn``: the machine code of a function, called from Numba code."""

from __future__ import annotations

import ctypes
import gc
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys.compile.linker import NumbaLinker, get_linker
from phintys.errors import ShapeError, UnsupportedError
from phintys.tensor.from_function import wrap_py

numba = pytest.importorskip("numba")
rtsys = pytest.importorskip("numba.core.runtime").rtsys
_nrt_python = pytest.importorskip("numba.core.runtime._nrt_python")
both = pytest.mark.parametrize("mode", ["FAST_RUN", "NUMBA"])
V = np.array([0.5, 1.0, 2.0])


def values_of(f, *args):
    """The values of all inputs of the graph."""
    return [*args, *(np.asarray(s.get_value()) for s in f.get_shared())]


def is_native(jit_fn) -> bool:
    return hasattr(jit_fn, "called")


# ------------------------------------------------------------------------------------ values


@both
def test_results_are_those_of_the_function(mode):
    x, a, k = pt.dvector("x"), pt.dmatrix("a"), pt.lscalar("k")
    total = phintys.scan(lambda row, s: s + row, [a.T], [x * 0], return_updates=False)
    outputs = [
        *(pt.exp(x).sum(), a @ x + k, a.T, x, x, k, x > 1, a[:0], total, pt.constant(V)),
        *(phintys.ifelse(k > 0, x, x[::-1]), pt.cast(x, "float32"), x + 1j),
    ]
    f = phintys.function([x, a, k], outputs, mode=mode)
    given = V, np.arange(9.0).reshape(3, 3), np.array(2)
    found = f.vm.jit_fn(*given)
    assert is_native(f.vm.jit_fn)
    assert len(found) == len(outputs)
    for result, expected in zip(found, phintys.function([x, a, k], outputs)(*given)):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-12)
        assert not any(np.shares_memory(result, v) for v in given)


def test_arguments_have_any_layout_and_numbers_are_of_rank_0():
    a, k, n = pt.fmatrix("a"), pt.dscalar("k"), pt.iscalar("n")
    f = phintys.function([a, k, n], [a * k, a[n]])
    base = np.arange(24, dtype="float32").reshape(4, 6)
    records = np.zeros(3, [("byte", "i1"), ("row", "f4", 2)])
    records["row"] = base[:3, :2]
    for given in (base, base.T, base[::2, ::-3], np.asfortranarray(base), records["row"], base[:0]):
        if len(given):
            scaled, row = f.vm.jit_fn(given, 2, np.array(-1, "int32"))
            np.testing.assert_array_equal(row, given[-1])
            np.testing.assert_array_equal(scaled, given * 2)
    frozen = base.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(f.vm.jit_fn(frozen, True, 1)[0], base)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64"])
def test_an_integer_that_an_input_cannot_hold_is_an_error(dtype):
    k = pt.scalar("k", dtype=dtype)
    f = phintys.function([k], k)
    least, most = (int(n) for n in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    message = f"k must be an integer of dtype {dtype}, from {least} to {most}"
    for value in (-(2**63), least - 1, least, 0, most, most + 1, 2**63 - 1, 2**63, 2**64 - 1):
        if not -(2**63) <= value < 2**64:  # no integer of Numba
            continue
        given = np.int64(value) if value < 2**63 else np.uint64(value)
        if least <= value <= most:
            assert f.vm.jit_fn(given)[0] == f(value) == value
        else:
            assert isinstance(error_of(f, value), OverflowError)
            with pytest.raises(TypeError, match=message):
                f.vm.jit_fn(given)


def test_copies_of_other_arguments_are_freed_if_an_integer_does_not_fit():
    a, k = pt.dvector("a"), pt.iscalar("k")
    jit_fn = phintys.function([a, k], a * k).vm.jit_fn
    strided = np.ones(20_000)[::2]
    assert len(jit_fn(strided, 2)[0]) == 10_000

    @numba.njit
    def repeat(a, k, n):
        for _ in range(n):
            try:
                jit_fn(a, k)
            except Exception:
                n -= 1
        return n

    repeat(strided, 2**40, 1)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        assert repeat(strided, 2**40, 10) == 0
        now = rtsys.get_allocation_stats()
        kept = now.mi_alloc - before.mi_alloc - (now.mi_free - before.mi_free)
        assert kept <= 1  # Numba keeps the argument itself
    finally:
        _nrt_python.memsys_disable_stats()


@both
def test_shared_variables_are_arguments_and_updates_are_results(mode):
    x, s = pt.dvector("x"), phintys.shared(np.array(2.0), "s")
    f = phintys.function([x], x * s, updates={s: s + 1}, mode=mode)
    product, state = f.vm.jit_fn(*values_of(f, V))
    np.testing.assert_array_equal(product, V * 2)
    assert (state, s.get_value()) == (3, 2)
    (product, _) = f.vm.jit_fn(V, np.array(5.0))
    np.testing.assert_array_equal(product, V * 5)


@both
def test_numba_code_calls_it(mode):
    x, w = pt.dvector("x"), phintys.shared(V, "w")
    loss = ((x - w) ** 2).sum()
    value_and_gradient = phintys.function([x], [loss, phintys.grad(loss, x)], mode=mode).vm.jit_fn

    @numba.njit
    def descend(x, w, steps):
        for _ in range(steps):
            _, gradient = value_and_gradient(x, w)
            x = x - 0.25 * gradient
        return x

    np.testing.assert_allclose(descend(np.zeros(3), V, 60), V)


@rest
def test_results_are_arrays_like_others_in_numba_code():
    x = pt.dvector("x")
    jit_fn = phintys.function([x], [x.sum(), x + 1, pt.outer(x, x)]).vm.jit_fn

    @numba.njit
    def used(x):
        total, more, table = jit_fn(x)
        chosen = more if total > 0 else x
        rows = np.zeros((2, 3))
        rows[...] = more
        rows[0] = x
        several = [more, x]
        return chosen * 2, rows, table.T[1:] + more, several[0] + several[1], more[1] + total[()]

    expected = [(V + 1) * 2, [V, V + 1], np.outer(V, V).T[1:] + V + 1, V + V + 1, 2 + V.sum()]
    for found, wanted in zip(used(V), expected, strict=True):
        np.testing.assert_allclose(found, wanted)


def test_results_are_assigned_to_arrays():
    x = pt.dvector("x")
    jit_fn = phintys.function([x], [x.sum(), x * 2, pt.outer(x, x)]).vm.jit_fn

    @numba.njit
    def assigned(x, number, numbers, table):
        total, doubled, products = jit_fn(x)
        number[()] = total
        numbers[...] = doubled
        table[...] = products
        turned = products.copy()
        products.T[...] = products
        doubled[::-1][...] = doubled
        return turned, products, doubled

    for table in (np.zeros((3, 3)), np.zeros((3, 3)).T, np.zeros((3, 6))[:, ::2]):
        number, numbers, y = np.zeros(()), np.zeros(3), np.arange(3.0)
        _, turned, reversed_ = assigned(y, number, numbers, table)
        np.testing.assert_array_equal(table, np.outer(y, y))
        np.testing.assert_array_equal(turned, np.outer(y, y).T)
        np.testing.assert_array_equal([*numbers, number], [0, 2, 4, 3])
        np.testing.assert_array_equal(reversed_, [4, 2, 0])
    for length, expected in [(1, np.full(3, 2.0)), (3, np.full(3, 2.0)), (2, None)]:
        given = np.ones(length), np.zeros(()), np.zeros(3), np.zeros((length, length))
        if expected is None:
            with pytest.raises(ValueError, match="cannot assign a result to an array of another"):
                assigned(*given)
        else:
            assigned(*given)
            np.testing.assert_array_equal(given[2], expected)


def test_a_function_has_one_and_copies_and_pickles_have_their_own():
    x = pt.dvector("x")
    f = phintys.function([x], pt.exp(x), mode="NUMBA")
    assert f.vm.jit_fn is f.vm.jit_fn
    for other in (f.copy(), pickle.loads(pickle.dumps(f))):
        np.testing.assert_array_equal(other.vm.jit_fn(V)[0], f.vm.jit_fn(V)[0])


def test_without_inputs_and_without_results():
    s = phintys.shared(V, "s")
    assert phintys.function([], []).vm.jit_fn() == ()
    np.testing.assert_array_equal(phintys.function([], pt.zeros(3)).vm.jit_fn()[0], np.zeros(3))
    (new,) = phintys.function([], [], updates={s: s + 1}).vm.jit_fn(V)
    np.testing.assert_array_equal(new, V + 1)


def test_the_numba_function_is_of_one_process():
    jit_fn = phintys.function([], pt.zeros(3)).vm.jit_fn
    pickled = pickle.dumps(jit_fn)
    np.testing.assert_array_equal(pickle.loads(pickled)()[0], np.zeros(3))
    script = "import pickle, sys; pickle.load(sys.stdin.buffer)()"
    run = subprocess.run([sys.executable, "-c", script], input=pickled, capture_output=True)
    assert b"was made in another process" in run.stderr


# ------------------------------------------------------------------------------------ errors


def error_of(call, *args):
    with pytest.raises(Exception) as caught:
        call(*args)
    return caught.value


def failing(mode):
    x, y, a = pt.dvector("x"), pt.dvector("y"), pt.dmatrix("a")
    i = pt.lscalar("i")
    positive = phintys.raise_op.Assert("x must be positive")(x, (x > 0).all())
    static = pt.tensor("t", shape=(2,), dtype="float64")
    factor = pt.linalg.cholesky(a, on_error="raise")
    cases = [
        ([x, y], x + y, [V, V], [V, V[:2]]),
        ([x, i], x[i], [V, np.array(1)], [V, np.array(5)]),
        ([x], positive * 2, [V], [-V]),
        ([a], factor, [np.eye(2)], [-np.eye(2)]),
        ([static], static + 1, [V[:2]], [V]),
    ]
    return [(phintys.function(ins, out, mode=mode), good, bad) for ins, out, good, bad in cases]


@both
def test_errors_are_those_of_the_function(mode):
    for (f, *_), (native, good, bad) in zip(failing("FAST_RUN"), failing(mode), strict=True):
        expected, found = error_of(f, *bad), error_of(native.vm.jit_fn, *bad)
        assert type(found) is type(expected)
        if not isinstance(expected, TypeError):  # of an argument: Numba code passes no names
            assert str(found) == str(expected)
        native.vm.jit_fn(*good)


def test_numba_code_catches_errors():
    x, y = pt.dvectors("x", "y")
    add = phintys.function([x, y], x + y).vm.jit_fn

    @numba.njit
    def first_or(x, y, other):
        try:
            return add(x, y)[0][0]
        except Exception:
            return other

    assert [first_or(V, V, 7.0), first_or(V, V[:2], 7.0), first_or(V, V, 7.0)] == [1, 7, 1]
    assert isinstance(error_of(add, V, V[:2]), ShapeError)


def test_large_arguments_of_a_failed_call_are_not_kept():
    x, y = pt.dvectors("x", "y")
    jit_fn = phintys.function([x, y], x + y).vm.jit_fn
    large = np.ones(2**21 + 1)
    error = error_of(jit_fn, large, large[1:])
    assert isinstance(error, ShapeError)
    assert "x has shape" not in str(error)
    assert "x has shape (3,)" in str(error_of(jit_fn, V, V[1:]))


def fail(called, m, n):
    """Call the routine of a function of two vectors that must be of one length."""
    a = np.ones(max(m, n))
    words = np.array([a.ctypes.data, m, a.ctypes.data, n], "int64")
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *3 * [ctypes.c_void_p])
    call = kind(called.routine.address)
    assert call(called.routine.block, words.ctypes.data, words.ctypes.data) == 1


def sum_of_two():
    x, y = pt.dvectors("x", "y")
    return phintys.function([x, y], x + y).vm.jit_fn.called


def test_the_error_of_a_call_in_a_thread_of_numba():
    called = sum_of_two()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(fail, called, 2, 3).result()
    assert isinstance(called.error(2), MemoryError)
    assert "x has shape (2,), y has shape (3,)" in str(called.error(1))
    assert "arguments are not known" in str(called.error(1))
    # two failures of threads that have ended: which one is it?
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        for length, pool in ((2, first), (4, second)):
            pool.submit(fail, called, length, 3).result()
    assert "arguments are not known" in str(called.error(1))


@pytest.mark.parametrize("status", [1, 2, 3])
def test_a_thread_never_gets_the_error_of_another_one(status):
    called = sum_of_two()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(fail, called, 2, 3).result()
        assert "x has shape" not in str(called.error(status))
        error = pool.submit(called.error, 1).result()
    assert "x has shape (2,), y has shape (3,)" in str(error)


def test_the_arguments_of_failures_are_bounded_together():
    called, each = sum_of_two(), 2**19  # 4 MiB an argument
    with ExitStack() as stack:
        pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(4)]
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for pool in pools:
                pool.submit(fail, called, each, each - 1).result()
            assert tracemalloc.get_traced_memory()[0] - before < 2**24 + 2**20
        finally:
            tracemalloc.stop()
        errors = [pool.submit(called.error, 1).result() for pool in pools]
    assert [type(error) for error in errors] == 4 * [ShapeError]
    named = [f"x has shape ({each},)" in str(error) for error in errors]
    assert named == [False, False, True, True]


def test_the_last_sixteen_failures_are_kept():
    called = sum_of_two()
    with ExitStack() as stack:
        pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(18)]
        for length, pool in enumerate(pools):
            pool.submit(fail, called, length, 30).result()
        texts = [str(pool.submit(called.error, 1).result()) for pool in pools]
    known = [f"x has shape ({length},)" in text for length, text in enumerate(texts)]
    assert known == 2 * [False] + 16 * [True]


def test_too_little_memory():
    n = pt.lscalar("n")
    f = phintys.function([n], pt.zeros((n, n)))
    assert isinstance(error_of(f.vm.jit_fn, np.array(2**31)), MemoryError)
    assert f.vm.jit_fn(np.array(2))[0].shape == (2, 2)


def test_wrong_arguments_are_named_when_numba_compiles():
    x, k = pt.dvector("x"), pt.iscalar("k")
    jit_fn = phintys.function([x, k], x * k).vm.jit_fn
    for args, message in [
        ((V,), r"1 argument\(s\) for 2 input\(s\): x, k"),
        ((V.astype("float32"), 1), "x must be an array of dtype float64 and rank 1, not array"),
        ((V[None], 1), "x must be an array of dtype float64 and rank 1, not array"),
        ((V, 1.5), "k must be an array of dtype int32 and rank 0, not float64"),
        ((V, None), "k must be an array of dtype int32 and rank 0, not none"),
    ]:
        with pytest.raises(numba.TypingError, match=message):
            jit_fn(*args)


def test_what_needs_python():
    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def doubled(a):
        return a * 2

    x, rng = pt.dvector("x"), phintys.shared(np.random.default_rng(0), "rng")
    for output, what in [(doubled(x), "doubled"), (pt.random.normal(x, rng=rng), "rng")]:
        vm = phintys.function([x], output).vm
        assert not hasattr(vm, "jit_fn")
        with pytest.raises(UnsupportedError, match=f'{what}.* needs Python.*mode "NUMBA"'):
            _ = vm.jit_fn
    half = pt.tensor("half", shape=(None,), dtype="float16")
    with pytest.raises(UnsupportedError, match="Numba has no arrays of dtype float16"):
        _ = phintys.function([half], half + 1).vm.jit_fn
    in_object_mode = phintys.function([x], doubled(x) + 1, mode="NUMBA").vm.jit_fn
    assert not is_native(in_object_mode)
    np.testing.assert_array_equal(in_object_mode(V)[0], V * 2 + 1)


def test_branches_of_different_lengths_need_python():
    x, c = pt.dvector("x"), pt.lscalar("c")

    def chosen(c, x):
        return phintys.ifelse(c > 0, x[1:], pt.concatenate([x, x]))

    totals = phintys.scan(
        lambda k, x: chosen(k, x).sum(), [pt.arange(2) - c], None, [x], return_updates=False
    )
    expected = {1: [V[1:], [7, 7]], 0: [np.tile(V, 2), [7, 3]]}
    for number, output in enumerate([chosen(c, x), totals]):
        with pytest.raises(UnsupportedError, match="lengths depend on which branch runs needs"):
            _ = phintys.function([x, c], output).vm.jit_fn
        found = phintys.function([x, c], output, mode="NUMBA").vm.jit_fn
        assert not is_native(found)
        for value, results in expected.items():
            np.testing.assert_array_equal(found(V, np.array(value))[0], results[number])


def test_without_numba_there_is_none(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('not here')")
    script = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import phintys, phintys.tensor as pt
        vm = phintys.function([], pt.zeros(2)).vm
        assert not hasattr(vm, "jit_fn")
        try:
            vm.jit_fn
        except TypeError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.startswith("f.vm.jit_fn needs the package numba"), run.stderr


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_a_signal_handler_ends_a_call():
    n = pt.lscalar("n")
    total = phintys.scan(
        lambda s: pt.sin(s) + 1,
        outputs_info=[pt.constant(np.zeros(()))],
        n_steps=n,
        return_updates=False,
    )
    jit_fn = phintys.function([n], total[-1]).vm.jit_fn
    jit_fn(np.array(10))

    def stop(*_):
        raise InterruptedError("time is up")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        started = time.monotonic()
        with pytest.raises(InterruptedError, match="time is up"):
            jit_fn(np.array(2**36))
        assert time.monotonic() - started < 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ----------------------------------------------------------------------------------- threads


def test_threads_without_the_gil_have_results_and_errors_of_their_own():
    x, y = pt.dvectors("x", "y")
    f = phintys.function([x, y], [pt.exp(x) + y, (x * y).sum()]).vm.jit_fn

    @numba.njit(nogil=True)
    def repeat(x, y, n):
        total = 0.0
        for _ in range(n):
            total += f(x, y)[1][()]
        return total

    repeat(V, V, 1)
    wrong: list[object] = []

    def work(k):
        a = np.full(k, 0.5)
        for _ in range(20):
            if repeat(a, a, 200) != 200 * 0.25 * k:
                wrong.append(k)
            message = str(error_of(f, a, np.ones(k + 1)))
            if f"({k},)" not in message or f"({k + 1},)" not in message:
                wrong.append(message)

    threads = [threading.Thread(target=work, args=(4 * k,)) for k in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs pthread_create")
def test_threads_that_python_does_not_know():
    """Samplers call a C function of Numba from threads of their own."""
    x, y = pt.dvectors("x", "y")
    f = phintys.function([x, y], [x @ y, pt.exp(x) * y]).vm.jit_fn
    pointer = numba.types.CPointer(numba.float64)

    @numba.cfunc(pointer(pointer))
    def task(data):
        numbers = numba.carray(data, 8)
        try:
            product, _ = f(numbers[:3], numbers[3 : int(numbers[7])])
            numbers[6] = product[()]
        except Exception:
            numbers[6] = -1.0
        return data

    given = np.array([[1, 2, k, 4, 5, 6, 0, 6 if k % 2 else 5] for k in range(16)], "float64")
    library = ctypes.CDLL(None)
    library.pthread_create.argtypes = 4 * [ctypes.c_void_p]
    library.pthread_join.argtypes = [ctypes.c_size_t, ctypes.c_void_p]
    handles = [ctypes.c_size_t() for _ in given]
    for handle, row in zip(handles, given):
        start = ctypes.addressof(handle), None, task.address, row.ctypes.data
        assert library.pthread_create(*start) == 0
    for handle in handles:
        library.pthread_join(handle, None)  # without the GIL, which failed calls take
    assert given[:, 6].tolist() == [14 + 6 * k if k % 2 else -1 for k in range(16)]


# ------------------------------------------------------------------------------------ memory


def test_code_that_calls_it_keeps_the_machine_code():
    x = pt.dvector("x")
    f = phintys.function([x], pt.exp(x).sum())
    holder = {"f": f.vm.jit_fn}
    code = weakref.ref(holder["f"].called)

    def make():
        inner = holder.pop("f")

        @numba.njit
        def twice(x):
            return 2 * inner(x)[0][()]

        return twice

    twice = make()
    expected = 2 * np.exp(V).sum()
    assert twice(V) == pytest.approx(expected)
    twice.py_func.__closure__[0].cell_contents = None  # only compiled code is left
    del f
    gc.collect()
    assert code() is not None
    assert twice(V) == pytest.approx(expected)


@pytest.mark.parametrize("calls", [0, 1])
def test_a_function_that_nothing_calls_is_freed(calls):
    x = pt.dvector("x")
    f = phintys.function([x], pt.exp(x).sum())
    jit_fn = f.vm.jit_fn
    for _ in range(calls):
        jit_fn(V)
    code = weakref.ref(jit_fn.called)
    del f, jit_fn
    gc.collect()
    gc.collect()  # what Numba's finalizers have released
    assert code() is None


def test_results_and_failures_free_their_memory():
    x, y = pt.dvectors("x", "y")
    jit_fn = phintys.function([x, y], [x + y, pt.exp(x), pt.cumsum(x)[::-1] * y.sum()]).vm.jit_fn
    a = np.ones(10_000)

    @numba.njit
    def repeat(x, y, n):
        failed = 0
        for _ in range(n):
            try:
                jit_fn(x, y)
            except Exception:
                failed += 1
        return failed

    repeat(a, a, 2)
    repeat(a[::2], a, 2)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        assert repeat(a, a, 200) == 0
        assert repeat(a[::2], a, 200) == 200
        assert tracemalloc.get_traced_memory()[0] - before < 4 * a.nbytes
    finally:
        tracemalloc.stop()


# ----------------------------------------------------------------------------------- linkers


def test_a_linker_whose_functions_have_a_numba_function_counts_as_one():
    names = ["llvm", "numba", "c", "jax", "py"]
    found = [isinstance(get_linker(name), NumbaLinker) for name in names]
    assert found == [True, True, False, False, False]
    assert not hasattr(phintys.function([], pt.zeros(2), mode="FAST_COMPILE").vm, "jit_fn")
