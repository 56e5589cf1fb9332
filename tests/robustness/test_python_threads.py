"""Threads that make, call and drop functions; forks; daemon threads at the end; interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import threading

import pytest
from tiers import few

import phintys.tensor as pt
from phintys.config import config
from phintys.errors import UnsupportedError

THREADS = 16

PRELUDE = """
import faulthandler, gc, os, sys, threading, time
faulthandler.enable()
sys.setswitchinterval(1e-5)
import numpy as np
import numpy.testing
import phintys
import phintys.tensor as pt

def together(*tasks):
    "Run tasks at the same time; the first exception."
    barrier, errors = threading.Barrier(len(tasks)), []
    def run(task):
        barrier.wait()
        try:
            task()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=(t,)) for t in tasks]
    for t in threads: t.start()
    for t in threads: t.join()
    if errors: raise errors[0]

def make(k):
    x, y = pt.dmatrices("x", "y")
    loss = (pt.tanh(pt.dot(x, y)) * (k + 1) - pt.exp(-x).sum(axis=1, keepdims=True)).sum()
    return phintys.function([x, y], [loss, phintys.grad(loss, x), pt.softmax(x, axis=1) + k])

rng = np.random.default_rng(0)
A, B = rng.normal(size=(7, 5)), rng.normal(size=(5, 6))
STRIDED = np.asfortranarray(A)

def expected(k):
    z = np.tanh(A @ B)
    e = np.exp(A - A.max(1, keepdims=True))
    gradient = (k + 1) * (1 - z**2) @ B.T + 6 * np.exp(-A)
    loss = ((k + 1) * z - np.exp(-A).sum(1, keepdims=True)).sum()
    return loss, gradient, e / e.sum(1, keepdims=True) + k

def check(f, k, a=A):
    for got, want in zip(f(a, B), expected(k)):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
"""


def run(program, tmp_path, prelude=PRELUDE, **settings):
    """Run a program in a process of its own, with an empty cache."""
    environment = {**os.environ, "PHINTYS_CACHE_DIR": str(tmp_path), **settings}
    result = subprocess.run(
        [sys.executable, "-c", prelude + program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "Exception ignored" not in result.stderr, result.stderr[-3000:]
    return result.stdout


@pytest.mark.parametrize("different", few([False, True], True))
def test_threads_make_functions_at_the_same_time(tmp_path, different):
    """First without anything known or kept, then from the cache."""
    program = f"""
made = {{}}
def task(n):
    k = n * {int(different)}
    made[n] = f = make(k)
    check(f, k)
    check(f, k, STRIDED)
    phintys.explain(f)
together(*(lambda n=n: task(n) for n in range({THREADS})))
for n, f in made.items():
    check(f, n * {int(different)})
    assert [str(v.type) for v in f.maker.fgraph.outputs] == [
        str(v.type) for v in made[0].maker.fgraph.outputs]
"""
    run(program, tmp_path)
    run(program, tmp_path)


def test_threads_call_one_function_for_the_first_time_together(tmp_path):
    program = f"""
f = make(1)
def task(n):
    for _ in range(30):
        check(f, 1, (A, STRIDED)[n % 2])
        f.program, f.maker.fgraph
together(*(lambda n=n: task(n) for n in range({THREADS})))
"""
    run(program, tmp_path)


@pytest.mark.parametrize("callers", few([4, THREADS - 1], 4))
def test_threads_drop_functions_that_others_call(tmp_path, callers):
    """Code stays as long as a call is in it, and goes afterwards."""
    program = f"""
from phintys.backends.llvm.machine import image
from phintys.compile import native
import weakref
alive = []
original = image.Loaded.__init__
def counted(self, *args):
    alive.append(weakref.ref(self))
    original(self, *args)
image.Loaded.__init__ = counted

x = pt.dvector("x")
def make_long(k):
    return phintys.function([x], pt.exp(pt.sin(x) + k).sum())
cell = [make_long(0)]
v = np.linspace(0, 1, 3_000_000)
want = [np.exp(np.sin(v) + k).sum() for k in range(4)]
stop = threading.Event()
def call():
    while not stop.is_set():
        k, f = cell[0].k if hasattr(cell[0], "k") else 0, None
        got = cell[0](v)
        assert any(abs(got - w) < 1e-9 * w for w in want), got
def drop():
    for n in range(24):
        f = make_long(n % 4)
        cell[0] = f
        del f
        native._recent.clear()
        gc.collect()
    stop.set()
together(drop, *[call] * {callers})
before = sum(r() is not None for r in alive)
cell.clear(); native._recent.clear(); gc.collect()
after = sum(r() is not None for r in alive)
assert len(alive) >= 24 and after < before <= after + 2, (len(alive), before, after)
"""
    run(program, tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.parametrize("children", few([2, 6], 2))
def test_a_child_process_makes_and_calls_functions(tmp_path, children):
    """While other threads of the parent are making functions."""
    program = (
        f"children = {children}\n"
        + """
old = make(0)
stop = threading.Event()
def busy(start):
    k = start
    while not stop.is_set():
        check(make(k), k)
        k += 4
threads = [threading.Thread(target=busy, args=(n,)) for n in range(1, 5)]
for t in threads: t.start()
import warnings
warnings.simplefilter("ignore")  # that there are threads is the point
for n in range(children):
    child = os.fork()
    if not child:
        try:
            faulthandler.dump_traceback_later(60, exit=True)
            check(old, 0)
            check(make(1000 + n), 1000 + n)
            assert gc.isenabled()
            os._exit(0)
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    time.sleep(0.05)
stop.set()
for t in threads: t.join()
"""
    )
    run(program, tmp_path)


TWO = {"PHINTYS_FLAGS": "threads=2"}
ENDINGS = {
    "vector functions": "f = phintys.function([x], pt.exp(pt.sin(x)))",
    "sums": "f = phintys.function([x], pt.tanh(x).sum())",
    "sorting": "f = phintys.function([x], pt.sort(x) + 1)",
}


@pytest.mark.parametrize("kind", few(ENDINGS, "sums"))
@pytest.mark.parametrize("settings", few([{}, TWO], TWO), ids=["one", "two"])
def test_daemon_threads_compute_while_the_process_ends(tmp_path, kind, settings):
    """Not in products: OpenBLAS waits for such a thread for ever, with NumPy alone as well."""
    program = f"""
x = pt.dvector("x")
{ENDINGS[kind]}
v = np.linspace(0, 1, 4_000_000)
f(v)
def go():
    while True: f(v)
for _ in range(3): threading.Thread(target=go, daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(3):
        run(program, tmp_path, **settings)


# ------------------------------------------------------------------------------ settings


def test_changed_settings_are_those_of_one_thread():
    seen = []

    def look():
        with config.change_flags(floatX="float16"):
            seen.append(config.floatX)
        seen.append(config.floatX)

    with config.change_flags(floatX="float32", mode="FAST_COMPILE"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert config.floatX == "float32"
        assert config.values()["mode"] == "FAST_COMPILE"
    assert seen == ["float16", "float64"]
    assert (config.floatX, config.mode) == ("float64", "FAST_RUN")


def test_assigned_settings_are_those_of_all_threads():
    seen = []
    try:
        config.on_unused_input = "warn"
        with config.change_flags(on_unused_input="ignore"):
            thread = threading.Thread(target=lambda: seen.append(config.on_unused_input))
            thread.start()
            thread.join()
            config.on_unused_input = "raise"  # within the context, and undone at its end
        assert config.on_unused_input == "warn"
    finally:
        config.on_unused_input = "raise"
    assert seen == ["warn"]
    assert config.__dict__["on_unused_input"] == "raise"


def test_contexts_of_many_threads():
    barrier, wrong = threading.Barrier(8), []

    def task(k):
        barrier.wait()
        for n in range(300):
            dtype = ("float16", "float32", "float64")[(k + n) % 3]
            with config.change_flags(floatX=dtype), config.change_flags(profile=bool(n % 2)):
                if config.floatX != dtype or pt.vector().type.dtype != dtype:
                    wrong.append(k)
            if config.floatX != "float64":
                wrong.append(k)

    threads = [threading.Thread(target=task, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert "floatX" in config.__dict__  # read as an attribute again


def test_a_function_is_rewritten_later_under_its_settings_and_changes_no_others(tmp_path):
    program = """
from phintys.config import config
def make():
    x = pt.dvector("x")
    with config.change_flags(optimizer_excluding="local_log1p"):
        return phintys.function([x], pt.log(1 + x))
make()
f = make()  # its code is known, so that it is rewritten when somebody looks
assert not f.maker._rewritten
stop, seen = threading.Event(), set()
def watch():
    while not stop.is_set():
        seen.add(config.optimizer_excluding)
thread = threading.Thread(target=watch)
thread.start()
names = [str(node.op) for node in f.maker.fgraph.apply_nodes]
stop.set()
thread.join()
assert seen == {""} and "Log1p" not in names, (seen, names)
"""
    run(program, tmp_path)


# --------------------------------------------------------------------------- interpreters


def test_free_threaded_builds_get_an_error(monkeypatch):
    from phintys.backends.interpreter import require_main_interpreter

    original = sysconfig.get_config_var
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: name == "Py_GIL_DISABLED" or original(name)
    )
    with pytest.raises(UnsupportedError, match="free-threaded"):
        require_main_interpreter()


def test_subinterpreters_get_an_error(tmp_path):
    pytest.importorskip("_xxsubinterpreters", reason="a Python without this module")
    program = f"""
import _xxsubinterpreters as interpreters
inner = '''
import sys, warnings
sys.path[:] = {[os.getcwd(), *sys.path]!r}
warnings.simplefilter("ignore")
import phintys, phintys.tensor as pt
x = pt.dscalar("x")
assert phintys.function([x], x + 1, mode="FAST_COMPILE")(1.0) == 2
for mode in ("FAST_RUN", "C"):
    try:
        phintys.function([x], x + 1, mode=mode)
    except phintys.errors.UnsupportedError as error:
        assert "subinterpreter" in str(error)
    else:
        raise AssertionError(mode)
'''
interpreters.run_string(interpreters.create(isolated=False), inner)
"""
    run(program, tmp_path, prelude="")
