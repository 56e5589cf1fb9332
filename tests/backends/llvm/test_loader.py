"""What puts code into memory: images where they are allowed, else LLVM, else a clear error."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.backends.llvm.machine import image, jit
from phintys.compile import native
from phintys.config import config

needs_images = pytest.mark.skipif(bool(image.refusal()), reason="images are for Linux on x86-64")


@pytest.fixture(autouse=True)
def made(tmp_path, monkeypatch):
    """A cache of its own; a list that grows with each module that is generated."""
    monkeypatch.setenv("PHINTYS_CACHE_DIR", str(tmp_path))
    native._recent.clear()
    generated = []
    generate = jit.generate

    def counted(*args, **kwargs):
        generated.append(generate(*args, **kwargs))
        return generated[-1]

    monkeypatch.setattr(jit, "generate", counted)
    yield generated
    native._recent.clear()


def forget_what_is_allowed():
    image.refusal.cache_clear()
    image.refused_memory.cache_clear()


@contextmanager
def refusing(call):
    """Our own loader gets no executable memory, whatever the system allows."""

    def no_rights(*args):
        ctypes.set_errno(errno.EACCES)
        return -1

    def no_mapping(*args):
        raise PermissionError(errno.EACCES, "no mapping")

    forget_what_is_allowed()
    with pytest.MonkeyPatch.context() as patch:
        if call == "mprotect":
            patch.setattr(image, "_protect", lambda: no_rights)
        else:
            patch.setattr(image.mmap, "mmap", no_mapping)
        yield
    forget_what_is_allowed()


def example():
    """A function with a kernel, BLAS, a vector function and runtime checks, and its loader."""
    native._recent.clear()
    x = pt.dmatrix("x")
    f = phintys.function([x], [pt.tanh(x).sum(0), x @ x, pt.softmax(x, axis=1) * 0.125])
    value = np.linspace(-1, 1, 9).reshape(3, 3)
    softmax = np.exp(value) / np.exp(value).sum(1, keepdims=True) / 8
    for result, right in zip(f(value), [np.tanh(value).sum(0), value @ value, softmax]):
        np.testing.assert_allclose(result, right, rtol=1e-12)
    with pytest.raises(ValueError):
        f(np.ones((2, 3)))
    return f.loader


@pytest.mark.parametrize("where", ["generated", "kept"])
def test_functions_that_llvm_loads(made, where):
    with config.change_flags(loader="llvm"):
        assert example() == "llvm"
        if where == "kept":
            before = len(made)
            assert example() == "llvm"
            assert len(made) == before
    assert all(isinstance(code, jit.ObjectFile) for code in made)


@needs_images
@pytest.mark.parametrize("call", ["mprotect", "mmap"])
def test_llvm_takes_over_without_executable_memory(made, call):
    """Also where the cache was filled with images; and images are found again when allowed."""
    assert example() == "image"
    images = list(made)
    with refusing(call):
        assert "Errno 13" in image.refusal()
        assert example() == "llvm"
        anew = made[len(images) :]
        assert anew and all(isinstance(code, jit.ObjectFile) for code in anew)
        assert example() == "llvm"
    assert example() == "image"
    assert len(made) == len(images) + len(anew)


@needs_images
def test_llvm_takes_over_where_an_image_cannot_be_made(made, monkeypatch):
    def unknown(file):
        raise image.UnknownObject("a relocation of type 99")

    monkeypatch.setattr(image, "link", unknown)
    assert example() == "llvm"
    generated = len(made)
    assert example() == "llvm" and len(made) == generated


def test_where_nobody_gets_executable_memory(monkeypatch):
    """LLVM would end the process, so it is not asked."""
    monkeypatch.setattr(jit, "_llvm_can_load", lambda: False)
    with refusing("mprotect"), pytest.raises(RuntimeError, match=r"execmem.*FAST_COMPILE"):
        example()


def run(program, **environment):
    """The output of a program in another process."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    env = {**os.environ, **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(sys.platform != "linux", reason="a right of Linux is given up")
def test_a_process_that_gave_up_the_right():
    """Linux (since 6.3) lets a process forbid itself to make memory executable."""
    done = run("""
        import ctypes
        if ctypes.CDLL(None).prctl(65, *[ctypes.c_ulong(k) for k in (1, 0, 0, 0)]):
            raise SystemExit("older")
        import phintys, phintys.tensor as pt
        x = pt.dscalar("x")
        assert phintys.function([x], x + 1, mode="FAST_COMPILE")(1.0) == 2.0
        phintys.function([x], x + 1)
    """)
    if done.stderr.strip() == "older":
        pytest.skip("this kernel is older than 6.3")
    assert done.returncode == 1
    assert "RuntimeError: Compiled functions cannot be loaded" in done.stderr


def test_a_whole_process_with_llvm_s_loader():
    """Everything is loaded by LLVM, the routines of the package too; a thread is in a kernel at
    the end."""
    done = run(
        """
        import threading, time
        import numpy as np
        import phintys, phintys.tensor as pt
        from phintys.backends.llvm.machine import image
        image.refused_memory()
        image.Loaded.__init__ = None  # whoever makes an image fails
        x, n = pt.dmatrix("x"), pt.lscalar("n")
        f = phintys.function([x], [pt.tanh(x @ x).sum(0), pt.softmax(x, axis=1)])
        first, second = f(np.eye(3))
        np.testing.assert_allclose(first, np.tanh(np.ones(3)))
        slow = phintys.function([n], pt.sin(pt.arange(n) * 1.0).sum())
        started = threading.Event()
        def work():
            started.set()
            while True:
                slow(10**7)
        threading.Thread(target=work, daemon=True).start()
        started.wait()
        time.sleep(0.1)
        print(f.loader, slow.loader)
        """,
        PHINTYS_FLAGS="loader=llvm",
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["llvm", "llvm"], "")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_libraries_that_llvm_loaded_leave_nothing():
    """A linker that all libraries shared would keep 9 KB of each."""

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    with config.change_flags(loader="llvm"):
        code = jit.generate("define i64 @f() {\n  ret i64 7\n}")
    signature = ctypes.CFUNCTYPE(ctypes.c_int64)
    for start in (True, False):
        before = resident()
        for _ in range(100 if start else 500):
            library = jit.load(code)
            assert signature(library.address("f"))() == 7
    assert resident() - before < 1.5


def test_the_report_says_who_loads(capsys):
    from phintys.__main__ import main

    x = pt.dvector("x")
    with config.change_flags(loader="llvm"):
        assert "loader llvm" in str(phintys.explain(phintys.function([x], x + 1.5)))
        main(["doctor"])
    assert "loader     llvm (config.loader)" in capsys.readouterr().out
    assert "loader" not in str(phintys.explain(phintys.function([x], x + 1.5, mode="FAST_COMPILE")))
