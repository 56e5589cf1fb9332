"""Compiled code on disk: one file per key, checked before it is used.

A file holds its own checksum: one that is cut off or foreign is ignored and written again.  Files
are written under a temporary name and then moved, so processes may compile the same code at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from functools import cache
from pathlib import Path

from phintys.config import cache_directory

_MAGIC = b"phintys object 1\n"
_DIGEST = 32
#: A key's folder, one of 256, keeps this many files; older ones are removed.
FOLDER_LIMIT = 64


def key_of(*parts: str) -> str:
    """A key for code that depends on ``parts``."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def own_version() -> str:
    """The state of this package: it changes with every change of a source file."""
    root = Path(__file__).parent.parent
    states = []
    for directory, _, names in os.walk(root):
        if not directory.endswith("__pycache__"):
            found = (os.stat(os.path.join(directory, name)) for name in sorted(names))
            states.append(
                (directory[len(str(root)) :], [(s.st_mtime_ns, s.st_size) for s in found])
            )
    return hashlib.sha256(repr(sorted(states)).encode()).hexdigest()


def read(name: str) -> bytes | None:
    """What is stored under a name, if it is whole."""
    path = _path(name)
    try:
        data = path.read_bytes() if path else b""
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST
    digest, payload = data[len(_MAGIC) : start], data[start:]
    whole = data.startswith(_MAGIC) and hashlib.sha256(payload).digest() == digest
    return payload if whole else None


def write(name: str, payload: bytes) -> None:
    """Store under a name.  A directory that cannot be written is no error: nothing is stored."""
    path = _path(name)
    if path is None:
        return
    import tempfile  # it is long to import, and most processes only read

    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, path)
        _remove_old(path.parent)
    except OSError:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _remove_old(folder: Path) -> None:
    files = os.listdir(folder)
    if len(files) <= FOLDER_LIMIT:
        return
    by_age = sorted((folder / file for file in files), key=lambda file: file.stat().st_mtime_ns)
    for file in by_age[:-FOLDER_LIMIT]:
        with contextlib.suppress(OSError):  # another process has removed it, or uses it
            file.unlink()


def _path(name: str) -> Path | None:
    directory = cache_directory()
    return directory / name[:2] / name if directory else None
