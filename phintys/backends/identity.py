"""Identities of what compiled code depends on besides the program, for keys of the cache.

They are computed from the contents of files, and without importing LLVM.
Results are cached per process.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from phintys.backends.code_cache import name_of, read, write

#: Bytes that are read at the start and at the end of a large library.  They contain its program and
#: section headers and its build id, which differ between builds.
_END = 1 << 16
#: bytes per read; with larger buffers the allocator would map new pages for each file
_CHUNK = 1 << 16
#: nanoseconds; more than the resolution of the times of files
_SETTLED = 10 * 10**9
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)

#: suffixes of the files of this package that compiled code depends on
_SOURCES = (".py", ".pyc", ".ll", ".h")


@cache
def own_version() -> str:
    """The digest of the source files of this package."""
    return known_digest(str(Path(__file__).parent.parent))


def known_digest(root: str) -> str:
    """`digest_of_sources`, looked up in the cache on disk by the state of the files.

    The state of a file is its size, its number in the file system, and the times of its last change
    and of that of its attributes.  A digest is stored only if all files are older than `_SETTLED`:
    a later change of one has other times then.
    """
    files = _states(root)
    key = name_of("id", root, repr(files))
    found = read(key)
    if found is not None:
        return found.decode()
    newest = max([max(times) for _, _, _, *times in files], default=0)
    digest = digest_of_sources(root)
    if newest < time.time_ns() - _SETTLED:
        write(key, digest.encode())
    return digest


def _states(root: str) -> list[tuple[str, int, int, int, int]]:
    """The path, size, number and times of each source file in a folder."""
    found = []
    for path in sorted(_sources(root)):
        s = os.stat(path)
        found.append((path[len(root) :], s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns))
    return found


def digest_of_sources(root: str) -> str:
    """The digest of the names and contents of the source files in a folder."""
    digest, start = hashlib.sha256(), len(root)
    for path in sorted(_sources(root)):
        size = _add_contents(digest, path)
        digest.update(b"\0%d\0%s\0" % (size, os.fsencode(path[start:])))
    return digest.hexdigest()


def _add_contents(digest: Any, path: str) -> int:
    """Add the contents of a file to a digest; return its size."""
    size, read = 0, _CHUNK
    # descriptors instead of file objects: a third faster for the package's 250 files
    descriptor = os.open(path, _READ)
    try:
        while read == _CHUNK:
            data = os.read(descriptor, _CHUNK)
            digest.update(data)
            read = len(data)
            size += read
    finally:
        os.close(descriptor)
    return size


def _sources(folder: str) -> list[str]:
    """The paths of the source files in a folder, recursively, without ``__pycache__``."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SOURCES):
                found.append(entry.path)
            elif entry.is_dir() and entry.name != "__pycache__":
                found += _sources(entry.path)
    return found


@cache
def llvm_version() -> str:
    """Digests of llvmlite's ``_version.py`` and of the library that contains LLVM."""
    spec = find_spec("llvmlite")
    if spec is None or not spec.origin:
        return ""
    folder = Path(spec.origin).parent
    files = [folder / "_version.py", *sorted((folder / "binding").glob("*llvmlite.*"))]
    return " ".join(digest_of_ends(str(file)) for file in files if file.is_file())


def digest_of_ends(path: str) -> str:
    """The digest of the size, the start and the end of a file."""
    with open(path, "rb", buffering=0) as file:
        start = file.read(_END)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(len(start), size - _END))
        return hashlib.sha256(b"%d " % size + start + file.read(_END)).hexdigest()


@cache
def processor() -> tuple[str, ...]:
    """The features of the processor according to NumPy, and its model according to the system."""
    from numpy._core._multiarray_umath import __cpu_features__ as features

    known = [name for name, present in features.items() if present]
    try:
        with open("/proc/cpuinfo") as file:
            block = file.read(16384).split("\n\n")[0]
    except OSError:
        import platform

        return (*known, platform.processor())
    constant = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")
    return (*known, *(line for line in block.splitlines() if line.startswith(constant)))


def python() -> tuple[object, ...]:
    """The version and build of Python."""
    return sys.implementation.cache_tag, sys.version_info[:3], getattr(sys, "abiflags", "")
