"""The cache of compiled code on disk: one file per key, verified before it is used.

A file in the cache is code that will be executed.  So the directory is used only if it belongs to
this user (or to root) and nobody else may write to it; the same holds for each file in it; and
links are not followed.  A truncated, foreign or unreadable file is a miss.  If the disk is full or
the directory is removed, everything is a miss.  `read` and `write` do not raise.

The format of a file, all integers little-endian::

    offset  bytes
    0       8      50 48 49 4e 54 59 53 1a   "PHINTYS" and the end of a text file
    8       4      version of this format, 1
    12      8      n, the number of bytes of the payload
    20      32     SHA-256 of: the name of the file in ASCII, a zero byte, the payload
    52      n      the payload; nothing follows it

The name of a file is the SHA-256 of its key in 64 hexadecimal digits, a dot and a kind:

    f       a function: machine code, and the contents of its block of pointers
    o       machine code only; both are written by `llvm.machine.stored`
    so      a shared library as the C compiler wrote it
    id      the digest of the source files of this package, in hexadecimal digits

Files are written under a temporary name and then renamed, so several processes may write the same
file at the same time.  The modification time of a file is the time of its last use, to the hour.
``config.cache_bytes`` limits the total size; the least recently used files are removed first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import struct
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

from phintys.config import cache_directory, config

_MAGIC = b"PHINTYS\x1a"
_VERSION = 1
_HEADER = struct.Struct("<8sIQ32s")

_OURS = re.compile(r"[0-9a-f]{64}\.(f|o|so|id)")
_TEMPORARY = "phintys-"

#: the resolution of the time of last use; a temporary file older than this was left by a process
#: that was killed
_HOUR = 3600
#: the space that a file takes on disk is a multiple of this
_BLOCK = 4096
#: The directory is scanned about once per 1/16 of the limit that is written, and 1/16 of the limit
#: is then free.
_SHARE = 16

_POSIX = os.name == "posix"
_EVERY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# do not follow links, and do not block on pipes
_READ = os.O_RDONLY | _EVERY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _EVERY

#: exceptions of file operations; a path with a zero byte gives a ValueError
_FAILURES = (OSError, ValueError, MemoryError)

_warned: set[str] = set()


def name_of(kind: str, *parts: str) -> str:
    """The name of the file for code that depends on ``parts``: their digest and ``kind``.

    ``kind`` is f, o, so or id.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(data) + data)
    return f"{digest.hexdigest()}.{kind}"


def read(name: str) -> bytes | None:
    """The payload stored under a name; None if there is none, or it is damaged or not trusted."""
    try:
        with _folder() as folder:
            data = None if folder is None else folder.read(name)
    except _FAILURES:
        return None
    if data is None or len(data) < _HEADER.size:
        return None
    payload = data[_HEADER.size :]
    return payload if data[: _HEADER.size] == _header(name, payload) else None


def write(name: str, payload: bytes) -> None:
    """Store a payload under a name.  Does nothing if the cache cannot be used."""
    size, limit = _HEADER.size + len(payload), config.cache_bytes
    if size > limit - limit // _SHARE:
        return
    with contextlib.suppress(*_FAILURES), _folder(create=True) as folder:
        if folder is not None:
            folder.write(name, _header(name, payload), payload)
            if _is_due(name, size, limit):
                folder.remove_least_used(limit - limit // _SHARE)


def _header(name: str, payload: bytes) -> bytes:
    digest = hashlib.sha256(name.encode() + b"\0")
    digest.update(payload)
    return _HEADER.pack(_MAGIC, _VERSION, len(payload), digest.digest())


def _is_due(name: str, size: int, limit: int) -> bool:
    """Whether to scan the directory, to enforce the limit, after this file was written.

    A process does not know how much other processes have written, so the decision is random, with a
    probability proportional to the size of the file: on average one scan per 1/16 of the limit.
    The name of the file, a digest, serves as the random number.
    """
    return int(name[:8], 16) * limit < _on_disk(size) * _SHARE << 32


def _on_disk(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


# --------------------------------------------------------------------------- the directory


class Usage(NamedTuple):
    """The state of the cache: its directory, number of files, their bytes, why it is not used."""

    path: Path | None
    files: int
    size: int
    fault: str | None


def usage() -> Usage:
    """The state of the cache, for ``python -m phintys doctor``."""
    path = cache_directory()
    if path is None:
        return Usage(None, 0, 0, "there is no home directory")
    if config.cache_bytes <= 0:
        return Usage(path, 0, 0, "config.cache_bytes is 0")
    try:
        _make(path)
        with _opened(path) as folder:
            fault, found = folder.fault(), folder.files()
    except _FAILURES as error:
        return Usage(path, 0, 0, str(error))
    if fault is None and not os.access(path, os.W_OK):
        fault = "nothing can be written there"
    return Usage(path, len(found), sum(_on_disk(file.size) for file in found), fault)


def clear() -> int:
    """Remove all files of the cache; return their number."""
    with contextlib.suppress(*_FAILURES), _folder() as folder:
        return 0 if folder is None else sum(folder.remove(file.name) for file in folder.files())
    return 0


class Entry(NamedTuple):
    """A file of the cache: its name, size in bytes, and the time of its last use."""

    name: str
    size: int
    used: float


def entries() -> list[Entry]:
    """The files of the cache, the least recently used first."""
    with contextlib.suppress(*_FAILURES), _folder() as folder:
        return [Entry(f.name, f.size, f.used) for f in (folder.files() if folder else [])]
    return []


def clean_up() -> int:
    """Remove files that no process can use; return their number.

    They are those that are damaged or of another version of the format, those that killed
    processes left, and the least recently used ones beyond ``config.cache_bytes``.
    """
    before = len(entries())
    with contextlib.suppress(*_FAILURES), _folder() as folder:
        if folder is None:
            return 0
        for file in folder.files():
            if not _OURS.fullmatch(file.name) or read(file.name) is None:
                folder.remove(file.name)
        folder.remove_least_used(config.cache_bytes)
    return before - len(entries())


def purge() -> int:
    """Remove all files of the cache; return their number.

    The directory is removed too, if nothing else is in it.
    """
    count = clear()
    path = cache_directory()
    if path is not None:
        with contextlib.suppress(OSError):
            path.rmdir()
    return count


@contextlib.contextmanager
def _folder(create: bool = False) -> Generator[_Folder | None, None, None]:
    """The open cache directory, or None if it cannot be used (a warning says why)."""
    path = cache_directory()
    if path is None or config.cache_bytes <= 0:
        yield None
        return
    if create:
        _make(path)
    with _opened(path) as folder:
        fault = folder.fault()
        if fault:
            _warn(path, fault)
        yield None if fault else folder


def _make(path: Path) -> None:
    """Make a directory, and its missing parents, with mode 0700."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            with contextlib.suppress(FileExistsError):  # another process has just made it
                folder.mkdir(0o700)


def _warn(path: Path, fault: str) -> None:
    """Warn that a directory is not used, once per process and directory."""
    if str(path) in _warned:
        return
    _warned.add(str(path))
    text = (
        f"Compiled code is neither read from {path} nor kept there: {fault}. Make it a directory "
        f"of your own (chmod 700 {path}), or name another one by PHINTYS_CACHE_DIR."
    )
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _fault(state: os.stat_result) -> str | None:
    """The reason why a file or directory cannot be trusted; None if it can."""
    if not _POSIX:
        return None
    if state.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user, number {state.st_uid}"
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(state.st_mode):
        return f"others may write to it, its mode is {stat.S_IMODE(state.st_mode):o}"
    return None


@contextlib.contextmanager
def _opened(path: Path) -> Generator[_Folder, None, None]:
    """A directory opened by descriptor, so that replacing the path has no effect on it."""
    if not _POSIX:
        yield _Folder(path, None)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _file(descriptor: int, mode: str, buffering: int = -1) -> Any:
    """A file object that owns a descriptor; closes the descriptor if it cannot be made."""
    try:
        return os.fdopen(descriptor, mode, buffering=buffering)
    except BaseException:
        os.close(descriptor)
        raise


class _File(NamedTuple):
    used: float  # time of last use; -1 for a temporary file that a killed process left
    size: int
    name: str


class _Folder:
    """An open directory; on Windows its path."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path, self.descriptor = path, descriptor

    def fault(self) -> str | None:
        """The reason why the directory cannot be trusted; None if it can."""
        if self.descriptor is None:
            return None
        return _fault(os.lstat(self.path)) or _fault(os.fstat(self.descriptor))

    def at(self, name: str) -> str:
        """The argument for `os.open`: a name relative to the descriptor, or on Windows a path."""
        return str(self.path / name) if self.descriptor is None else name

    def read(self, name: str) -> bytes | None:
        descriptor = os.open(self.at(name), _READ, dir_fd=self.descriptor)
        with _file(descriptor, "rb", 0) as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode) or _fault(state):
                return None
            if abs(time.time() - state.st_mtime) > _HOUR:
                with contextlib.suppress(OSError):
                    os.utime(self.at(name), dir_fd=self.descriptor)
            return file.readall()

    def write(self, name: str, *data: bytes) -> None:
        temporary = f"{_TEMPORARY}{os.urandom(12).hex()}"
        descriptor = os.open(self.at(temporary), _WRITE, 0o600, dir_fd=self.descriptor)
        try:
            with _file(descriptor, "wb") as file:
                for part in data:
                    file.write(part)
            os.replace(
                self.at(temporary),
                self.at(name),
                src_dir_fd=self.descriptor,
                dst_dir_fd=self.descriptor,
            )
        except BaseException:
            self.remove(temporary)
            raise

    def remove(self, name: str) -> bool:
        """Remove a file; False if it is gone already, or cannot be removed (in use on Windows)."""
        try:
            os.unlink(self.at(name), dir_fd=self.descriptor)
        except OSError:
            return False
        return True

    def files(self) -> list[_File]:
        """The files of the cache, least recently used first; other files are ignored."""
        now, found = time.time(), []
        with os.scandir(self.path if self.descriptor is None else self.descriptor) as entries:
            for entry in entries:
                temporary = entry.name.startswith(_TEMPORARY)
                if not temporary and not _OURS.fullmatch(entry.name):
                    continue
                with contextlib.suppress(OSError):  # another process may have removed it
                    state = entry.stat(follow_symlinks=False)
                    used = state.st_mtime
                    if used > now + _HOUR:  # a time in the future would never be the oldest
                        used = 0.0
                    if temporary and used > now - _HOUR:
                        continue
                    found.append(_File(-1 if temporary else used, state.st_size, entry.name))
        return sorted(found)

    def remove_least_used(self, limit: int) -> None:
        """Remove least recently used files until the others take at most ``limit`` bytes."""
        found = self.files()
        size = sum(_on_disk(file.size) for file in found)
        for file in found:
            if size <= limit and file.used >= 0:
                return
            if self.remove(file.name):
                size -= _on_disk(file.size)
