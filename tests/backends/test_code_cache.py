"""Files of the cache: their format, who may have written them, what is removed."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiers import rest

import phintys
from phintys.backends import code_cache, identity
from phintys.config import config

posix = pytest.mark.skipif(os.name != "posix", reason="files have no owner and mode here")
NAME = code_cache.name_of("f", "example")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("PHINTYS_CACHE_DIR")
    monkeypatch.setattr(code_cache, "_warned", set())
    with config.change_flags(cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


def name(number: int) -> str:
    return code_cache.name_of("o", str(number))


def names(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if path.suffix != ".id"}


# -------------------------------------------------------------------------------- the format


def test_the_format_is_the_documented_one(cache):
    code_cache.write(NAME, b"payload")
    digest = hashlib.sha256(NAME.encode() + b"\0payload").digest()
    expected = b"PHINTYS\x1a" + struct.pack("<IQ", 1, 7) + digest + b"payload"
    assert (cache / NAME).read_bytes() == expected
    assert code_cache.read(NAME) == b"payload"


def test_names_tell_parts_apart():
    parts = [("a", "b"), ("ab",), ("a\nb",), ("a", "", "b"), ("a\n", "b"), ("b", "a"), ("1 a",)]
    assert len({code_cache.name_of("f", *p) for p in parts}) == len(parts)
    assert code_cache.name_of("f", "a") != code_cache.name_of("o", "a")
    assert code_cache.name_of("f", "a\udcff")  # names in a user's program may hold such


def test_each_bit_counts(cache):
    code_cache.write(NAME, b"payload")
    path = cache / NAME
    whole = path.read_bytes()
    for position in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            assert code_cache.read(NAME) is None
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert code_cache.read(NAME) is None
    for more in (b"\0", b"payload", whole):
        path.write_bytes(whole + more)
        assert code_cache.read(NAME) is None
    path.write_bytes(whole)
    assert code_cache.read(NAME) == b"payload"


def test_a_file_under_another_name_is_none(cache):
    code_cache.write(NAME, b"payload")
    (cache / NAME).rename(cache / name(1))
    assert code_cache.read(name(1)) is None


# ------------------------------------------------------------------------------ who may write


@posix
def test_directories_are_made_for_their_user_alone(tmp_path):
    before = os.umask(0)
    try:
        with config.change_flags(cache_dir=str(tmp_path / "a" / "b" / "cache")):
            code_cache.write(NAME, b"payload")
            assert code_cache.read(NAME) == b"payload"
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "cache"]
    assert [path.stat().st_mode & 0o7777 for path in made] == [0o700] * 3
    assert (made[-1] / NAME).stat().st_mode & 0o7777 == 0o600


def given_away(path: Path, monkeypatch) -> None:
    """Let a file belong to another user, whoever this one is."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777, "another user"])
def test_directories_of_others_are_not_used(cache, mode, monkeypatch):
    code_cache.write(NAME, b"payload")
    if mode == "another user":
        given_away(cache, monkeypatch)
    else:
        cache.chmod(mode)
    with pytest.warns(RuntimeWarning, match="PHINTYS_CACHE_DIR") as caught:
        for _ in range(3):
            assert code_cache.read(NAME) is None
            code_cache.write(name(1), b"payload")
            assert code_cache.clear() == 0
    assert len(caught) == 1
    assert names(cache) == {NAME}


@posix
@pytest.mark.parametrize("mode", [0o755, 0o750, 0o711])
def test_others_may_read(cache, mode):
    code_cache.write(NAME, b"payload")
    cache.chmod(mode)
    assert code_cache.read(NAME) == b"payload"


@posix
def test_a_directory_in_one_that_is_open_to_all(tmp_path):
    tmp_path.chmod(0o1777)
    code_cache.write(NAME, b"payload")
    assert code_cache.read(NAME) == b"payload"


@posix
@pytest.mark.parametrize("how", [0o622, 0o606, "another user", "a link", "a pipe", "a directory"])
def test_files_of_others_are_not_read(cache, how, tmp_path, monkeypatch):
    code_cache.write(NAME, b"payload")
    path = cache / NAME
    if isinstance(how, int):
        path.chmod(how)
    elif how == "another user":
        if os.geteuid():
            pytest.skip("only root can give a file away and keep its directory")
        given_away(path, monkeypatch)
    else:
        path.rename(tmp_path / "elsewhere")
        makers = {
            "a link": lambda: path.symlink_to(tmp_path / "elsewhere"),
            "a directory": path.mkdir,
        }
        makers.get(how, lambda: os.mkfifo(path))()
    assert code_cache.read(NAME) is None
    code_cache.write(NAME, b"new")
    assert code_cache.read(NAME) == (None if how == "a directory" else b"new")
    if how == "a link":
        assert (tmp_path / "elsewhere").read_bytes().endswith(b"payload")


@posix
def test_a_link_to_the_directory(cache, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(0o700)
    cache.symlink_to(tmp_path / "real")
    code_cache.write(NAME, b"payload")
    assert code_cache.read(NAME) == b"payload"
    if os.geteuid() == 0:
        os.chown(cache, 12345, -1, follow_symlinks=False)
        with pytest.warns(RuntimeWarning, match="another user"):
            assert code_cache.read(NAME) is None


@pytest.mark.parametrize("path", ["", "a\0b", "/proc/nowhere", "/dev/null"])
def test_paths_that_are_none(path, monkeypatch):
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with config.change_flags(cache_dir=path):
        code_cache.write(NAME, b"payload")
        assert code_cache.read(NAME) is None
        assert code_cache.clear() == 0
        assert code_cache.usage().fault


# ---------------------------------------------------------------------------- what is removed


def test_the_least_recently_used_goes_first(cache):
    """Also what was read lately stays, although it was written first."""
    code_cache.write(name(0), bytes(4000))
    start = time.time() - 10**6
    for number in range(1, 6):
        code_cache.write(name(number), bytes(4000))
        os.utime(cache / name(number), (start + number, start + number))
    os.utime(cache / name(0), (start, start))
    assert code_cache.read(name(0)) == bytes(4000)
    with config.change_flags(cache_bytes=5 * 4096):  # of which a part is kept free
        code_cache.write(name(6), bytes(4000))
    assert names(cache) == {name(0), name(4), name(5), name(6)}


def test_use_is_noted_once_an_hour(cache):
    code_cache.write(NAME, b"payload")
    path = cache / NAME
    now = time.time()
    for age, noted in ((3000, False), (4000, True), (-4000, True), (10**7, True)):
        os.utime(path, (now - age, now - age))
        before = path.stat().st_mtime_ns
        assert code_cache.read(NAME) == b"payload"
        assert (path.stat().st_mtime_ns != before) is noted
        assert not noted or abs(path.stat().st_mtime - now) < 60


def test_only_our_files_are_removed(cache):
    code_cache.write(name(0), bytes(3000))
    others = ["notes.txt", "a" * 64, f"{name(1)}.bak", ".hidden"]
    for other in others:
        (cache / other).write_bytes(bytes(10**5))
    old, new = cache / "phintys-00", cache / "phintys-01"  # files that are being written
    for path in (old, new):
        path.write_bytes(bytes(3000))
    os.utime(old, (0, 0))
    with config.change_flags(cache_bytes=9000):
        code_cache.write(name(2), bytes(3000))
        assert names(cache) == {*others, name(0), name(2), new.name}
        code_cache.write(name(3), bytes(8000))
        assert names(cache) == {*others, name(3), new.name}
        code_cache.write(name(4), bytes(9000))  # larger than all
        assert names(cache) == {*others, name(3), new.name}


def test_a_time_to_come_is_no_recent_use(cache):
    for number, when in ((0, time.time() + 10**6), (1, 10**6)):
        code_cache.write(name(number), bytes(4000))
        os.utime(cache / name(number), (when, when))
    with config.change_flags(cache_bytes=3 * 4096):
        code_cache.write(name(2), bytes(4000))
    assert names(cache) == {name(1), name(2)}


def test_no_bytes_are_no_cache(cache):
    code_cache.write(NAME, b"payload")
    with config.change_flags(cache_bytes=0):
        assert code_cache.read(NAME) is None
        code_cache.write(name(1), b"payload")
    assert names(cache) == {NAME}


@rest
def test_the_directory_is_seldom_looked_through(cache, monkeypatch):
    """And yet its size stays below the limit, up to the part that one look stands for."""
    looked = []
    look = code_cache._Folder.files
    monkeypatch.setattr(code_cache._Folder, "files", lambda f: looked.append(1) or look(f))
    with config.change_flags(cache_bytes=300 * 4096):
        for number in range(1500):
            code_cache.write(name(number), b"code")
            assert len(names(cache)) < 400
    assert 40 < len(looked) < 160  # a sixteenth of the limit, 18 files, for each


SHARING = """
import sys
from phintys.backends import code_cache
from phintys.config import config
config.cache_bytes = 40 * 4096
wrong = 0
for turn in range(400):
    number = turn * int(sys.argv[1]) % 61
    name, payload = code_cache.name_of("o", str(number)), b"%d" % number * 1000
    found = code_cache.read(name)
    wrong += found not in (None, payload)
    if found is None:
        code_cache.write(name, payload)
print(wrong)
"""


def test_processes_write_and_remove_at_once(cache):
    env = {**os.environ, "PHINTYS_CACHE_DIR": str(cache)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SHARING, str(step)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for step in (1, 7, 11)
    ]
    assert [p.communicate(timeout=120) for p in processes] == [("0\n", "")] * 3
    left = names(cache)
    assert 10 < len(left) < 61 and all(code_cache._OURS.fullmatch(n) for n in left)


# --------------------------------------------------------------------------------- identities


def test_sources_are_known_by_their_contents(tmp_path):
    root = tmp_path / "package"
    (root / "inner").mkdir(parents=True)
    for path, text in (("a.py", "x = 1"), ("inner/b.ll", "; one"), ("inner/c.py", "")):
        (root / path).write_text(text)
    first = identity.digest_of_sources(str(root))
    os.utime(root / "a.py", (0, 0))
    (root / "notes.md").write_text("no source")
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "a.pyc").write_text("no source either")
    assert identity.digest_of_sources(str(root)) == first

    times = (root / "a.py").stat()
    (root / "a.py").write_text("x = 2")  # as long as before, at the same time
    os.utime(root / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    second = identity.digest_of_sources(str(root))
    (root / "inner" / "c.py").rename(root / "inner" / "d.py")
    third = identity.digest_of_sources(str(root))
    assert len({first, second, third}) == 3


def test_all_sources_of_the_package_are_part_of_the_key():
    root = Path(phintys.__file__).parent
    kinds = {".py", ".ll", ".h"}
    paths = [p for p in root.rglob("*") if p.suffix in kinds and "__pycache__" not in p.parts]
    assert {str(p) for p in paths} == set(identity._sources(str(root)))
    assert root / "backends/llvm/runtime/runtime.ll" in paths


def test_large_libraries_are_known_by_their_ends(tmp_path):
    path = tmp_path / "library.so"
    found = set()
    contents = [
        bytes(300_000),
        bytes(300_001),
        b"\1" + bytes(299_999),
        bytes(299_999) + b"\1",
        b"",
        b"1",
    ]
    for data in contents:
        path.write_bytes(data)
        found.add(identity.digest_of_ends(str(path)))
    assert len(found) == len(contents)
