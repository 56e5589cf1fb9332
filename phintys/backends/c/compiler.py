"""From C text to a loaded library, through the system's compiler and a cache on disk."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from phintys.config import cache_directory, config
from phintys.errors import CompilerError

COMPILERS = ("cc", "gcc", "clang")


def compiler() -> str:
    """The C compiler: ``config.cxx``, or the first of cc, gcc and clang that is found.

    CompilerError, saying what to do, if there is none.
    """
    names = [config.cxx] if config.cxx else COMPILERS
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    tried = ", ".join(names)
    raise CompilerError(
        f"Mode 'C' needs a C compiler; none was found (tried {tried}). Install one, name it with "
        "config.cxx, or use the default mode FAST_RUN, which needs none."
    )


def build(text: str) -> ctypes.CDLL:
    """The library made of a C file; from the cache if the same text was compiled before."""
    cc = compiler()
    flags = ["-std=c99", "-O2", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=off"]
    flags += config.gcc__cxxflags.split()
    identity = "\0".join([text, cc, *flags, platform.platform(), sys.version])
    name = f"c-{hashlib.sha256(identity.encode()).hexdigest()[:40]}.so"
    folder = cache_directory()
    cached = folder / name if folder else None
    if cached and cached.exists():
        try:
            return ctypes.CDLL(str(cached))
        except OSError:  # truncated, or made for another machine: compile again
            cached.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        made = _compile(cc, flags, text, Path(scratch))
        library = ctypes.CDLL(str(made))
        if cached:
            _keep(made, cached)
    return library


def _compile(cc: str, flags: list[str], text: str, scratch: Path) -> Path:
    source, target = scratch / "program.c", scratch / "program.so"
    source.write_text(text)
    command = [cc, *flags, str(source), "-o", str(target), "-lm"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        first = "\n".join(result.stderr.splitlines()[:20])
        raise CompilerError(f"{cc} failed:\n{first}")
    return target


def _keep(made: Path, cached: Path) -> None:
    """Put a library into the cache; a cache that cannot be written is no error."""
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=cached.parent, suffix=".tmp")
        os.close(handle)
        shutil.copyfile(made, name)
        os.replace(name, cached)
    except OSError:
        return
