"""The cache of compiled code: bad files, missing rights, several processes, equal keys."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile import native
from phintys.config import config

PROGRAM = """
import sys
import numpy as np
import phintys, phintys.tensor as pt
from phintys.backends.llvm import jit

x, y = pt.dvectors("x", "y")
s = phintys.shared(np.zeros(3), "s")
z = pt.tanh(x * 2) + pt.dot(pt.outer(x, y), y)
cost = (z * pt.softmax(y)).sum()
made = []
generate = jit.generate
jit.generate = lambda text, *level: made.append(text) or generate(text, *level)
outputs = [cost, *phintys.grad(cost, [x, y])]
f = phintys.function([x, y], outputs, updates={s: s + x}, mode=sys.argv[1])
results = f(np.arange(3.0), np.ones(3))
print(len(made), [r.tolist() for r in results])
"""
BACKENDS = ["FAST_RUN", *(["C"] if shutil.which("cc") else [])]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A fresh cache directory."""
    monkeypatch.delenv("PHINTYS_CACHE_DIR", raising=False)
    with config.change_flags(cache_dir=str(tmp_path)):
        yield tmp_path


def compiled(mode: str, factor: float):
    native._recent.clear()  # what is kept in memory needs no file
    x = pt.dvector("x")
    return phintys.function([x], pt.exp(x * factor) + x, mode=mode)


def check(mode: str, factor: float) -> None:
    value = np.arange(3.0)
    np.testing.assert_allclose(compiled(mode, factor)(value), np.exp(value * factor) + value)


def files(directory: Path) -> list[Path]:
    return sorted(p for p in directory.rglob("*") if p.is_file())


def run_program(mode: str, directory: Path, seed: int = 0) -> subprocess.Popen:
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PHINTYS_CACHE_DIR": str(directory)}
    command = [sys.executable, "-c", PROGRAM, mode]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen) -> tuple[int, str]:
    """The number of modules that were compiled, and the results."""
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    number, _, results = text.strip().partition(" ")
    return int(number), results


DAMAGES = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "a bit flipped": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "foreign": lambda data: b"#!/bin/sh\nexit 1\n" * 50,
    "foreign with our header": lambda data: data[:49] + b"[]\nno object file",
}


@pytest.mark.parametrize("loader", ["auto", "llvm"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_ignored_and_written_again(cache, damage, loader):
    with config.change_flags(loader=loader):
        check("FAST_RUN", 1.5)
        whole = {p: p.read_bytes() for p in files(cache)}
        assert whole
        for path, data in whole.items():
            path.write_bytes(DAMAGES[damage](data))
        check("FAST_RUN", 1.5)
    kept = {p: p.read_bytes() for p in files(cache)}
    assert kept.keys() == whole.keys()
    assert any(kept[p] == whole[p] for p in whole)


@pytest.mark.skipif("C" not in BACKENDS, reason="no C compiler")
@pytest.mark.parametrize("damage", ["empty", "cut off", "foreign"])
def test_damaged_libraries_of_the_c_backend(cache, damage, tmp_path_factory):
    """In another process: a library that is in use must not be cut off under its user."""
    directory = tmp_path_factory.mktemp("c")
    _, expected = answer(run_program("C", directory))
    for path in files(directory):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert answer(run_program("C", directory))[1] == expected
    assert answer(run_program("C", directory))[1] == expected


@pytest.mark.parametrize("mode", BACKENDS)
def test_unreadable_files_are_ignored(cache, mode):
    check(mode, 2.5)
    for path in files(cache):
        path.unlink()
        path.mkdir()  # reading and replacing it both fail, whoever the user is
    check(mode, 2.5)


@pytest.mark.parametrize("mode", BACKENDS)
@pytest.mark.parametrize("where", ["a file", "a missing root"])
def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch, mode, where):
    monkeypatch.delenv("PHINTYS_CACHE_DIR", raising=False)
    blocker = tmp_path / "file"
    blocker.write_text("not a directory")
    place = blocker if where == "a file" else Path("/proc/nowhere/cache")
    with config.change_flags(cache_dir=str(place)):
        check(mode, 3.5)
    assert blocker.read_text() == "not a directory"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("mode", BACKENDS)
def test_a_directory_without_rights(cache, mode):
    cache.chmod(0o500)
    check(mode, 4.5)
    assert not files(cache)


@pytest.mark.parametrize("mode", BACKENDS)
def test_processes_compile_the_same_function_at_once(tmp_path, mode):
    found = {answer(p)[1] for p in [run_program(mode, tmp_path, seed) for seed in range(3)]}
    assert len(found) == 1
    names = {p.suffix for p in files(tmp_path)}
    assert names <= {".f", ".o", ".so"}, "no temporary file is left"


@pytest.mark.parametrize("mode", BACKENDS)
def test_a_second_process_compiles_nothing(tmp_path, mode):
    """Whatever the order in which sets and dicts of its hash seed are walked."""
    first, expected = answer(run_program(mode, tmp_path, seed=1))
    stored = {p: p.stat().st_mtime_ns for p in files(tmp_path)}
    assert stored
    assert (first > 0) == (mode == "FAST_RUN")
    for seed in (2, 3):
        number, results = answer(run_program(mode, tmp_path, seed))
        assert (number, results) == (0, expected)
        assert {p: p.stat().st_mtime_ns for p in files(tmp_path)} == stored


def test_libraries_know_that_they_were_cached(cache):
    from phintys.backends.llvm.jit import compile_ir

    text = "define double @thrice(double %x) {\n %y = fmul double %x, 3.0\n ret double %y\n}"
    assert [compile_ir(text).cached for _ in range(2)] == [False, True]


def test_old_files_are_removed(cache, monkeypatch):
    from phintys.backends import code_cache

    monkeypatch.setattr(code_cache, "FOLDER_LIMIT", 3)
    for number in range(6):
        code_cache.write(f"aa{number}", b"code")
        os.utime(cache / "aa" / f"aa{number}", ns=(number, number))
    code_cache.write("ab0", b"another folder")
    code_cache.write("aa6", b"code")
    assert {p.name for p in files(cache)} == {"aa4", "aa5", "aa6", "ab0"}
    assert code_cache.read("aa3") is None and code_cache.read("aa4") == b"code"
