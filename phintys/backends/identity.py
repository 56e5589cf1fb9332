"""What compiled code depends on besides the program: parts of the keys of the cache.

Everything is told by contents, never by times of files, and without importing LLVM.  Each function
works once in a process; two threads that ask at once get the same answer.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

#: So much of a large library is read at its start and at its end.  There its segments, sections
#: and build number are described, which no two builds have in common.
_END = 1 << 16
#: So much is read at once: larger buffers would be new pages of memory for each file.
_CHUNK = 1 << 16
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)

#: Files of this package that code depends on end so.
_SOURCES = (".py", ".pyc", ".ll", ".h")


@cache
def own_version() -> str:
    """A digest of the source files of this package."""
    return digest_of_sources(str(Path(__file__).parent.parent))


def digest_of_sources(root: str) -> str:
    """A digest of names and contents of the source files in a folder."""
    digest, start = hashlib.sha256(), len(root)
    for path in sorted(_sources(root)):
        size = _add_contents(digest, path)
        digest.update(b"\0%d\0%s\0" % (size, os.fsencode(path[start:])))
    return digest.hexdigest()


def _add_contents(digest: Any, path: str) -> int:
    """The size of a file whose contents are added to a digest."""
    size, read = 0, _CHUNK
    # there are some 250 files: with file objects, or their sizes, it would take half as long again
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
    """The source files in a folder and its folders; not the bytecode that Python keeps of them."""
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
    """Digests of what tells llvmlite's version, and of the library that LLVM is in."""
    spec = find_spec("llvmlite")
    if spec is None or not spec.origin:
        return ""
    folder = Path(spec.origin).parent
    files = [folder / "_version.py", *sorted((folder / "binding").glob("*llvmlite.*"))]
    return " ".join(digest_of_ends(str(file)) for file in files if file.is_file())


def digest_of_ends(path: str) -> str:
    """A digest of the size of a file, its start and its end."""
    with open(path, "rb", buffering=0) as file:
        start = file.read(_END)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(len(start), size - _END))
        return hashlib.sha256(b"%d " % size + start + file.read(_END)).hexdigest()


@cache
def processor() -> tuple[str, ...]:
    """What NumPy and the system know of the processor."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features
    except ImportError:  # NumPy 1
        from numpy.core._multiarray_umath import __cpu_features__ as features
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
