"""Signals are handled in the middle of long native calls; what they raise reaches the caller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tiers import few, rest

import phintys
import phintys.tensor as pt
from phintys import config

sys.path.append(str(Path(__file__).parents[1] / "lowering"))
from segment_ops import SegmentReduce, SegmentScale

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer with signals")

#: Seconds of processor time from a signal to the exception.
PATIENCE = 1.5

#: Seconds of processor time from the start of a call to a signal.
DELAY = 0.15


class Kind(NamedTuple):
    """A function of some integers: numbers that take it seconds, others that it is tried with."""

    make: Callable[..., Any]
    long: tuple[int, ...]
    short: tuple[int, ...] = (5, 7)


def numbers(n: Any) -> Any:
    return 1e-9 * pt.arange(n)


def table(m: Any, n: Any) -> Any:
    return 1e-9 * (pt.arange(m)[:, None] + pt.arange(n))


def taken(n: Any, m: Any) -> Any:
    return pt.as_tensor_variable(np.arange(50.0))[pt.arange(n) % m]


def put(n: Any, m: Any) -> Any:
    zeros = pt.as_tensor_variable(np.zeros(50))
    return pt.inc_subtensor(zeros[pt.arange(n) % m], pt.gammaln(numbers(n) + 1))


def segments(m: Any, n: Any) -> Any:
    """``m`` segments, each of which is the whole vector."""
    return pt.zeros(m, dtype="int64"), pt.zeros(m, dtype="int64") + n


def scaled(m: Any, n: Any) -> Any:
    return SegmentScale("set")(numbers(n), *segments(m, n), numbers(m))


BILLIONS = 4 * 10**9

KINDS = {
    "elementwise": Kind(lambda n, m: pt.gammaln(numbers(n) + m), (8 * 10**7, 1)),
    "sum": Kind(lambda n, m: (numbers(n) + m).sum(), (5 * BILLIONS, 1)),
    "sum of exp": Kind(lambda n, m: pt.exp(numbers(n) + m).sum(), (BILLIONS, 1)),
    "sum of calls": Kind(lambda n, m: pt.gammaln(numbers(n) + m).sum(), (BILLIONS, 1)),
    "position": Kind(lambda n, m: pt.argmax(numbers(n) + m), (BILLIONS, 1)),
    "two long rows": Kind(lambda m, n: pt.exp(table(m, n)).sum(1), (2, BILLIONS)),
    "short rows": Kind(lambda m, n: pt.exp(table(m, n)).sum(1), (5 * 10**7, 7)),
    "rows": Kind(lambda m, n: pt.exp(table(m, n)).sum(1), (2 * 10**7, 70)),
    "softmax": Kind(lambda m, n: pt.softmax(table(m, n), 1).max(1), (2 * 10**7, 70)),
    "columns": Kind(lambda m, n: pt.exp(table(m, n)).sum(0), (BILLIONS, 3)),
    "long columns": Kind(lambda m, n: pt.exp(table(m, n)).sum(0), (300, 10**7)),
    "gather": Kind(lambda n, m: taken(n, m).sum(), (BILLIONS, 3)),
    "scatter": Kind(put, (2 * 10**8, 3)),
    "segments": Kind(
        lambda m, n: SegmentReduce("add")(numbers(n), *segments(m, n)), (10**6, 10**6)
    ),
    "map of segments": Kind(scaled, (10**6, 10**6)),
}

#: kinds of loops that ``make test`` interrupts: of one step, of rows, at positions, of segments
QUICK = ("elementwise", "two long rows", "short rows", "scatter", "segments")
C_KINDS = ["elementwise", "sum", "two long rows", "rows", "scatter", "segments"]


@contextmanager
def signals(
    handler: Callable[..., Any], first: float, interval: float = 0, of_processor: bool = False
) -> Iterator[None]:
    """A timer whose signals this handler gets; it may count processor time of this process."""
    number, timer = signal.SIGALRM, signal.ITIMER_REAL
    if of_processor:
        number, timer = signal.SIGPROF, signal.ITIMER_PROF
    before = signal.signal(number, handler)
    signal.setitimer(timer, first, interval)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


def interrupted(call: Callable[[], Any], delay: float = DELAY) -> float:
    """Seconds from a signal whose handler raises until that reaches the caller.

    All is processor time of this process, so that what other processes take does not count.
    """

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    start = time.process_time()
    with signals(handler, delay, of_processor=True), pytest.raises(KeyboardInterrupt):
        call()
    return time.process_time() - start - delay


def function_of(kind: Kind, mode: str) -> Any:
    inputs = [pt.lscalar() for _ in kind.long]
    return phintys.function(inputs, kind.make(*inputs), mode=mode)


def check(kind: Kind, mode: str, threads: int = 1) -> None:
    with config.change_flags(threads=threads):
        f = function_of(kind, mode)
    expected = f(*kind.short)
    np.testing.assert_allclose(expected, function_of(kind, "FAST_COMPILE")(*kind.short))
    assert interrupted(lambda: f(*kind.long)) < PATIENCE
    np.testing.assert_array_equal(f(*kind.short), expected)


@pytest.mark.parametrize("name", few(KINDS, *QUICK))
def test_native_code_is_interrupted(name: str) -> None:
    check(KINDS[name], "FAST_RUN")


@pytest.mark.parametrize("name", few(["elementwise", "sum of calls", "rows"], "rows"))
def test_threads_are_interrupted(name: str) -> None:
    check(KINDS[name], "FAST_RUN", threads=3)


@pytest.mark.parametrize("name", few(C_KINDS, "rows"))
def test_c_code_is_interrupted(name: str) -> None:
    check(KINDS[name], "C")


@pytest.mark.parametrize("mode", few(["FAST_RUN", "C"], "FAST_RUN"))
def test_products_are_interrupted(mode: str) -> None:
    x, y = pt.dmatrix(), pt.dmatrix()
    f = phintys.function([x, y], pt.dot(x, y), mode=mode)
    large = np.ones((4096, 4096))
    start = time.process_time()
    f(large[:, :512], large[:512])
    whole = 8 * (time.process_time() - start)  # four blocks
    f(large[:3], large)
    late = interrupted(lambda: f(large, large), DELAY / 3) if whole > DELAY else 0
    assert late < max(PATIENCE, whole / 2)
    np.testing.assert_array_equal(f(np.ones((3, 40)), np.ones((40, 50))), np.full((3, 50), 40))


@pytest.mark.parametrize("mode", few(["FAST_RUN", "C"], "FAST_RUN"))
def test_batches_of_factorisations_are_interrupted(mode: str) -> None:
    """After the matrix that LAPACK is working at."""
    x = pt.dtensor3()
    f = phintys.function([x], pt.linalg.cholesky(x), mode=mode)
    large = np.tile(4 * np.eye(1200), (12, 1, 1))
    start = time.process_time()
    f(large[:1])
    whole = 12 * (time.process_time() - start)
    late = interrupted(lambda: f(large), DELAY / 3) if whole > 2 * DELAY else 0
    assert late < max(PATIENCE, whole / 2)
    np.testing.assert_array_equal(f(large[:2, :30, :30]), np.sqrt(large[:2, :30, :30]))


@pytest.mark.parametrize("mode", few(["FAST_RUN", "C"], "FAST_RUN"))
def test_products_by_plain_loops_are_interrupted(mode: str) -> None:
    """BLAS has no integers."""
    x, y = pt.lmatrix(), pt.lmatrix()
    f = phintys.function([x, y], pt.dot(x[:, ::2], y[:, ::2]), mode=mode)
    large = np.ones((3500, 7000), np.int64)
    np.testing.assert_array_equal(f(large[:3, :10], large[:5, :8]), np.full((3, 4), 5))
    late = interrupted(lambda: f(large, large))
    assert late < PATIENCE, late


@pytest.mark.parametrize("mode", few(["NUMBA", "JAX"], "JAX"))
def test_a_handler_s_exception_arrives_after_foreign_code(mode: str) -> None:
    """Numba runs Python when it makes the arrays of results, and the handler with it."""
    x = pt.dvector()
    f = phintys.function([x], pt.tanh(pt.sin(x)), mode=mode)
    values = np.linspace(0, 1, 2_000_000)
    expected = f(values)

    def again_and_again() -> None:
        while True:
            f(values)

    for delay in (0.05, 0.08, 0.11):
        interrupted(again_and_again, delay)
    np.testing.assert_array_equal(f(values), expected)


@pytest.mark.parametrize(
    "mode, threads", [("FAST_RUN", 2), *(pytest.param(m, 1, marks=rest) for m in ("FAST_RUN", "C"))]
)
def test_a_handler_that_returns_lets_the_call_go_on(mode: str, threads: int) -> None:
    n = pt.lscalar()
    with config.change_flags(threads=threads):
        f = phintys.function([n], pt.gammaln(numbers(n) + 1).sum(), mode=mode)
    handled: list[float] = []
    expected = f(3 * 10**7)
    with signals(lambda *_: handled.append(time.perf_counter()), 0.05, 0.05):
        start = time.perf_counter()
        assert f(3 * 10**7) == expected
        end = time.perf_counter()
    # one at least, unless the machine is so fast that it was done before
    assert any(start < at < end - 0.01 for at in handled) or end - start < 0.5


def test_nothing_has_changed_after_an_interrupt() -> None:
    n = pt.lscalar()
    total = phintys.shared(np.zeros(3))
    slow = pt.gammaln(numbers(n) + 1)
    f = phintys.function([n], [total, slow.max()], updates={total: total + slow.sum()})
    f(10)
    before = total.get_value()
    x = pt.dvector()
    steps = [pt.sort(pt.exp(x))[::-1], pt.gammaln(numbers(n) + x[0]).sum()]
    g = phintys.function([x, n], steps[0] * steps[1])
    ones = np.ones(1000)
    g(ones, 10)
    tracemalloc.start()
    try:
        interrupted(lambda: g(ones, BILLIONS))
        size = tracemalloc.get_traced_memory()[0]
        for _ in range(2):
            interrupted(lambda: g(ones, BILLIONS))
            interrupted(lambda: f(BILLIONS))
        assert tracemalloc.get_traced_memory()[0] < size + 4096
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(total.get_value(), before)
    np.testing.assert_array_equal(ones, 1)


def test_other_threads_do_not_handle_signals() -> None:
    n = pt.lscalar()
    f = phintys.function([n], pt.gammaln(numbers(n) + 1).sum())
    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(f(2 * 10**7)))
    worker.start()
    assert interrupted(lambda: f(BILLIONS)) < PATIENCE
    worker.join()
    assert results == [f(2 * 10**7)]


def run(text: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root}
    command = [sys.executable, "-c", textwrap.dedent(text)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_ctrl_c_ends_a_program() -> None:
    ended = run(
        """
        import os, signal, threading
        import phintys, phintys.tensor as pt
        signal.signal(signal.SIGINT, signal.default_int_handler)
        n = pt.lscalar()
        f = phintys.function([n], pt.gammaln(1e-9 * pt.arange(n) + 1).sum())
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        f(10**11)
        """
    )
    assert "KeyboardInterrupt" in ended.stderr and ended.returncode != 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_the_thread_that_forks_is_the_child_s_main_thread() -> None:
    ended = run(
        """
        import os, signal, threading, warnings
        import phintys, phintys.tensor as pt
        warnings.simplefilter("ignore")
        n = pt.lscalar()
        f = phintys.function([n], pt.gammaln(1e-9 * pt.arange(n) + 1).sum())
        f(10)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def forking():
            child = os.fork()
            if child == 0:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    f(10**11)
                except KeyboardInterrupt:
                    os._exit(17)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread = threading.Thread(target=forking)
        thread.start()
        thread.join()
        """
    )
    assert ended.stdout == "17\n", ended.stderr
