"""The cache of compiled code under functions: bad files, full disks, rights, processes, keys."""

from __future__ import annotations

import errno
import io
import os
import pickle
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.__main__ import _cache, main
from phintys.backends import code_cache, identity
from phintys.backends.c import compiler
from phintys.backends.llvm.machine import image
from phintys.backends.llvm.machine.target import current, surroundings
from phintys.compile import native
from phintys.config import config
from phintys.rewriting.database import optdb

PROGRAM = """
import sys
import numpy as np
import phintys, phintys.tensor as pt
from phintys.backends.llvm.machine import jit

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
    monkeypatch.setattr(optdb, "_own_version", optdb.version)  # whatever other tests registered
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
    """The files of compiled code; not the digest of the sources."""
    return sorted(p for p in directory.rglob("*") if p.is_file() and p.suffix != ".id")


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


DRAWS = """
import sys
import numpy as np
import phintys, phintys.tensor as pt
from phintys.backends.llvm.machine import jit

made = []
generate = jit.generate
jit.generate = lambda text, *level: made.append(text) or generate(text, *level)
v, found, outputs, updates = pt.dvector("v"), [], [], {}
for kind in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
    rng = phintys.shared(np.random.Generator(getattr(np.random, kind)(3)))
    after, x = rng.normal(v, 2.0, size=(4, 3))
    after, y = after.integers(0, 10, size=5)
    after, z = after.gamma(pt.exp(x), scale=0.5)
    updates[rng], _ = after, outputs.extend([x, pt.exp(x).sum(axis=0), y, z])
f = phintys.function([v], outputs, updates=updates, mode=sys.argv[1])
numbers = [x.tobytes().hex() for _ in range(2) for x in f(np.arange(3.0))]
"""


def test_a_second_process_draws_the_same_numbers(tmp_path):
    """It loads the function, and compiles nothing."""
    env = {**os.environ, "PHINTYS_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", DRAWS + "print(len(made), *numbers)", "FAST_RUN"]
    (first, *numbers), (second, *again) = (
        subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert (int(first) > 0, int(second)) == (True, 0)
    assert numbers == again
    expected = np.random.default_rng(3).normal(np.arange(3.0), 2.0, (4, 3))
    assert numbers[0] == expected.tobytes().hex()


def test_libraries_know_that_they_were_cached(cache):
    from phintys.backends.llvm.machine.jit import compile_ir

    text = "define double @thrice(double %x) {\n %y = fmul double %x, 3.0\n ret double %y\n}"
    assert [compile_ir(text).cached for _ in range(2)] == [False, True]


# ----------------------------------------------------------- files that are whole, and wrong

GARBAGE = {
    "empty": lambda payload: b"",
    "noise": lambda payload: bytes(range(256)) * 20,
    "a pickle": lambda payload: pickle.dumps(("Image", payload)),
    "cut off": lambda payload: payload[: len(payload) // 2],
    "one byte more": lambda payload: payload + b"\0",
    "an unknown kind": lambda payload: b"\x07" + payload[1:],
    "no routine": lambda payload: payload.replace(b"phintys.entry", b"phintys.extry"),
    "unknown symbols": lambda payload: payload.replace(b"Py", b"Qy"),
}


@pytest.mark.parametrize("garbage", GARBAGE)
def test_files_with_a_valid_checksum_and_garbage_in_them(cache, garbage):
    check("FAST_RUN", 1.25)
    good = {p.name: code_cache.read(p.name) for p in files(cache)}
    for name, payload in good.items():
        if name.endswith(".f") or "symbols" not in garbage:
            code_cache.write(name, GARBAGE[garbage](payload))
    check("FAST_RUN", 1.25)
    assert all(code_cache.read(name) == good[name] for name in good if name.endswith(".f"))


@pytest.mark.skipif("C" not in BACKENDS, reason="no C compiler")
@pytest.mark.parametrize("garbage", ["empty", "noise", "another library"])
def test_libraries_with_a_valid_checksum_and_garbage_in_them(cache, tmp_path_factory, garbage):
    check("C", 1.125)
    (path,) = files(cache)
    payload = b"" if garbage == "empty" else bytes(5000)
    if garbage == "another library":
        made = tmp_path_factory.mktemp("c") / "other.so"
        command = ["cc", "-shared", "-x", "c", "-", "-o", str(made)]
        subprocess.run(command, input=b"int other;", check=True)
        payload = made.read_bytes()
    good = code_cache.read(path.name)
    code_cache.write(path.name, payload)
    check("C", 1.125)
    assert len(code_cache.read(path.name)) == len(good)


# -------------------------------------------------------------------------------- full disks


OPERATIONS = ["os.open", "os.replace", "os.scandir", "os.unlink", "os.utime", "os.fstat"]
OPERATIONS += ["read", "write", "close"]


@pytest.mark.parametrize("mode", BACKENDS)
@pytest.mark.parametrize("failing", OPERATIONS)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_every_operation_on_files_fails(cache, monkeypatch, failing, mode, number):
    """No error, and right results: as long as it fails, and after it."""
    check(mode, 3.75)
    for k in range(16):
        code_cache.write(code_cache.name_of("o", str(k)), bytes(4000))
    for path in files(cache):
        os.utime(path, (10**9, 10**9))
    before = files(cache)
    with monkeypatch.context() as patch, config.change_flags(cache_bytes=16 * 4096):
        failures = fail(patch, failing, number)
        check(mode, 3.75)  # is read
        check(mode, 4.75)  # is written, and others are removed
    assert failures
    if failing in ("os.open", "os.replace", "write", "close"):
        assert files(cache) == before, "what was written in part is removed"
    check(mode, 4.75)
    assert set(files(cache)) - set(before)
    check(mode, 4.75)


def fail(patch, operation: str, number: int) -> list:
    """Let an operation of the cache fail; the calls that did."""
    failures = []

    def fails(*args, **kwargs):
        failures.append(args)
        raise OSError(number, os.strerror(number))

    def closes(file):
        """An open file would fail again where it is freed, in another test."""
        io.FileIO.close(file)
        fails(file)

    fake = types.SimpleNamespace(**vars(os))
    if operation.startswith("os."):
        setattr(fake, operation.removeprefix("os."), fails)
    else:
        method = "readall" if operation == "read" else operation
        failure = closes if operation == "close" else fails
        failing = type("Failing", (io.FileIO,), {method: failure})
        fake.fdopen = lambda descriptor, mode, **_: failing(descriptor, mode)
    patch.setattr(code_cache, "os", fake)
    return failures


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit to set")
def test_a_real_limit_to_the_size_of_files(tmp_path):
    """A file is cut off while it is written, by the system itself."""
    prelude = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))\n"
    command = [sys.executable, "-c", prelude + PROGRAM, "FAST_RUN"]
    expected = answer(run_program("FAST_RUN", tmp_path / "whole"))[1]
    env = {**os.environ, "PHINTYS_CACHE_DIR": str(tmp_path / "cut")}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert answer(process)[1] == expected
    assert all(p.stat().st_size <= 600 and p.suffix == ".o" for p in files(tmp_path / "cut"))


@pytest.mark.parametrize("mode", BACKENDS)
def test_the_directory_is_removed_meanwhile(cache, mode):
    check(mode, 6.5)
    shutil.rmtree(cache)
    check(mode, 6.5)
    assert files(cache)
    for _ in range(2):
        shutil.rmtree(cache)
        cache.write_text("a file")
        check(mode, 6.5)
        cache.unlink()
        cache.mkdir()


# --------------------------------------------------------------------------- who owns a file


@pytest.mark.skipif(os.name != "posix", reason="files have no owner and mode here")
@pytest.mark.parametrize("mode", BACKENDS)
def test_a_directory_open_to_all_is_not_used(cache, mode, monkeypatch):
    monkeypatch.setattr(code_cache, "_warned", set())
    check(mode, 7.5)
    stored = {p: p.read_bytes() for p in files(cache)}
    cache.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=f"chmod 700 {cache}"):
        check(mode, 7.5)
    check(mode, 8.5)  # warned once: another time would be an error here
    assert {p: p.read_bytes() for p in files(cache)} == stored
    cache.chmod(0o700)
    check(mode, 8.5)
    assert len(files(cache)) > len(stored)


@pytest.mark.skipif(os.name != "posix", reason="files have no owner and mode here")
def test_a_warning_that_is_an_error_leaves_nothing_half_done(cache, monkeypatch):
    monkeypatch.setattr(code_cache, "_warned", set())
    cache.chmod(0o777)
    with pytest.raises(RuntimeWarning):
        check("FAST_RUN", 9.5)
    check("FAST_RUN", 9.5)


# -------------------------------------------------------------------------------------- keys


@pytest.mark.skipif("C" not in BACKENDS, reason="no C compiler")
def test_what_libraries_of_the_c_backend_depend_on(cache, monkeypatch, tmp_path_factory):
    wrapper = tmp_path_factory.mktemp("bin") / "cc"
    script = '#!/bin/sh\n{}exec cc "$@"\n'

    def compiled_with(line: str) -> int:
        wrapper.write_text(script.format(line))
        wrapper.chmod(0o755)
        compiler._identity.cache_clear()
        check("C", 10.5)
        return len(files(cache))

    with config.change_flags(cxx=str(wrapper)):
        assert compiled_with("") == compiled_with("") == 1
        assert compiled_with("# another version\n") == 2
        assert compiled_with("test $1 = '-###' && echo version 2 >&2\n") == 3
        with config.change_flags(gcc__cxxflags="-O1"):
            assert compiled_with("") == 4
        monkeypatch.setenv("CPATH", str(cache))
        assert compiled_with("") == 5
        monkeypatch.setattr(compiler, "processor", lambda: ("another",))
        assert compiled_with("") == 6


def test_what_the_key_of_machine_code_contains():
    text = surroundings(current())
    parts = [identity.own_version(), identity.llvm_version(), np.__version__, *identity.processor()]
    assert parts[0] and parts[1] and all(repr(part)[1:-1] in text for part in parts)


def test_settings_that_change_machine_code_change_its_key():
    changes = [{}, {"cpu": "x86-64-v2"}, {"vector_bits": 128}, {"vector_bits": 256}]
    changes += [{"loader": "llvm"}] if image.in_use() else []
    keys = set()
    for change in changes:
        with config.change_flags(**{"vector_bits": 0, **change}):
            keys.add(surroundings(current()))
    assert len(keys) == len(changes)


def test_where_the_cache_is_changes_no_key(cache, tmp_path_factory):
    """A directory that was moved is as good as before, and so is another limit."""
    check("FAST_RUN", 11.5)
    moved = tmp_path_factory.mktemp("moved") / "cache"
    shutil.copytree(cache, moved)
    before = {p.name: p.stat().st_mtime_ns for p in files(moved)}
    with config.change_flags(cache_dir=str(moved), cache_bytes=10**6):
        check("FAST_RUN", 11.5)
    assert {p.name: p.stat().st_mtime_ns for p in files(moved)} == before


def test_doctor_tells_about_the_cache(cache, monkeypatch):
    check("FAST_RUN", 12.5)
    assert re.fullmatch(rf"{cache}, 0\.0 of 512 MiB in [1-9] files", _cache())
    with config.change_flags(cache_bytes=0):
        assert _cache() == f"{cache}, not used: config.cache_bytes is 0"
    with config.change_flags(cache_dir="/proc/nowhere"):
        assert _cache().startswith("/proc/nowhere, not used: ")
    if os.name == "posix":
        cache.chmod(0o707)
        assert "not used: others may write to it, its mode is 707" in _cache()


def test_the_cache_can_be_cleared(cache, capsys):
    check("FAST_RUN", 13.5)
    (cache / "notes.txt").write_text("not ours")
    count = len(files(cache)) - 1
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"{count} files removed from {cache}\n"
    assert [p.name for p in files(cache)] == ["notes.txt"]
    check("FAST_RUN", 13.5)
