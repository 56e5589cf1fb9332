"""Functions are pickled, copied, forked, and called by several threads."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
import threading

import cloudpickle
import numpy as np
import pytest

import phintys
import phintys.tensor as pt

MODES = ["FAST_COMPILE", "FAST_RUN", *(["C"] if shutil.which("cc") else []), "NUMBA", "JAX"]
LOAD = """
import pickle, sys
import numpy as np
f = pickle.load(sys.stdin.buffer)
pickle.dump((f(np.arange(3.0)), f(np.arange(3.0)), f.name), sys.stdout.buffer)
"""


def counting(mode):
    """A function whose shared variable grows by its argument."""
    x = pt.dvector("x")
    s = phintys.shared(np.ones(3), "s")
    f = phintys.function([x], [(x * s).sum(), s + 1], updates={s: s + x}, mode=mode, name="count")
    return f, s


def same(left, right):
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_a_pickled_function_has_its_own_state(mode, dumps):
    f, s = counting(mode)
    f(np.arange(3.0))
    g = pickle.loads(dumps(f))
    before = s.get_value()
    same(g(np.arange(3.0)), f(np.arange(3.0)))
    g(np.arange(3.0))
    np.testing.assert_array_equal(s.get_value(), before + np.arange(3.0))
    assert g.name == "count"


@pytest.mark.parametrize("mode", MODES)
def test_a_fresh_process_loads_a_function(mode):
    f, _ = counting(mode)
    done = subprocess.run(
        [sys.executable, "-c", LOAD], input=pickle.dumps(f), capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    first, second, name = pickle.loads(done.stdout)
    same(first, f(np.arange(3.0)))
    same(second, f(np.arange(3.0)))
    assert name == "count"


@pytest.mark.parametrize("mode", MODES)
def test_deepcopy_has_its_own_state(mode):
    f, s = counting(mode)
    g = copy.deepcopy(f)
    f(np.ones(3))
    same(g(np.arange(3.0)), [3.0, np.full(3, 2.0)])
    np.testing.assert_array_equal(s.get_value(), np.full(3, 2.0))


@pytest.mark.parametrize("mode", MODES)
def test_copy_shares_state(mode):
    f, s = counting(mode)
    g = f.copy(name="other")
    f(np.ones(3))
    g(np.ones(3))
    np.testing.assert_array_equal(s.get_value(), np.full(3, 3.0))
    assert (f.name, g.name) == ("count", "other")


@pytest.mark.parametrize("mode", MODES)
def test_copy_without_updates(mode):
    f, s = counting(mode)
    g = f.copy(delete_updates=True)
    same(g(np.arange(3.0)), [3.0, np.full(3, 2.0)])
    np.testing.assert_array_equal(s.get_value(), np.ones(3))
    f(np.ones(3))
    np.testing.assert_array_equal(s.get_value(), np.full(3, 2.0))


@pytest.mark.parametrize("mode", MODES)
def test_copy_with_other_shared_variables(mode):
    f, s = counting(mode)
    t = phintys.shared(np.full(3, 5.0), "t")
    g = f.copy(swap={s: t})
    same(g(np.ones(3)), [15.0, np.full(3, 6.0)])
    np.testing.assert_array_equal(t.get_value(), np.full(3, 6.0))
    np.testing.assert_array_equal(s.get_value(), np.ones(3))
    assert g.get_shared() == [t]


def test_swap_refuses_what_does_not_fit():
    f, s = counting("FAST_RUN")
    with pytest.raises(TypeError, match="cannot take the place of s"):
        f.copy(swap={s: phintys.shared(np.ones((3, 3)))})
    with pytest.raises(TypeError, match="swap exchanges shared variables"):
        f.copy(swap={s: pt.dvector()})
    with pytest.raises(ValueError, match="is not a shared variable of this function"):
        f.copy(swap={phintys.shared(np.ones(3), "u"): s})


@pytest.mark.parametrize("mode", MODES)
def test_threads_call_one_function(mode):
    """Buffers belong to a call, so calls at the same time do not disturb each other."""
    x = pt.dmatrix("x")
    y = pt.tanh(x @ x.T) + pt.softmax(x @ x.T, 1)
    f = phintys.function([x], [y, y.sum(0)], mode=mode)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(n, 5)) for n in (3, 40, 7, 60)]
    expected = [f(v) for v in values]
    wrong: list[int] = []

    def work(k):
        for _ in range(30):
            for a, b in zip(f(values[k]), expected[k]):
                if not np.array_equal(a, b):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_threads_compile_at_the_same_time():
    results: dict[int, float] = {}

    def work(k):
        x = pt.dvector("x")
        f = phintys.function([x], (pt.exp(x) * (k + 1)).sum())
        results[k] = float(f(np.zeros(2)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {k: 2.0 * (k + 1) for k in range(6)}


FORK = """
import os, pickle, sys
import numpy as np
f = pickle.load(sys.stdin.buffer)
value = np.arange(3.0)
child = os.fork()
if child == 0:
    total, more = f(value)
    os._exit(0 if total == 3.0 and (more == 2).all() else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert f(value)[0] == 3.0  # the child's update is its own
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("mode", [m for m in MODES if m != "JAX"])
def test_a_forked_process_calls_a_function(mode):
    """JAX itself does not support fork."""
    f, _ = counting(mode)
    done = subprocess.run(
        [sys.executable, "-c", FORK], input=pickle.dumps(f), capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("mode", MODES)
def test_a_function_is_freed_when_it_is_dropped(mode):
    import gc
    import weakref

    f, _ = counting(mode)
    f(np.ones(3))
    watched = weakref.ref(f)
    del f
    gc.collect()
    assert watched() is None
