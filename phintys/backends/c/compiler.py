"""From C text to a loaded library, through the system's compiler and a cache on disk."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from phintys.backends import code_cache
from phintys.config import config
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
    name = f"{code_cache.key_of(text, cc, *flags, platform.platform(), sys.version)}.so"
    kept = code_cache.read(name)
    with tempfile.TemporaryDirectory() as scratch:
        library = None if kept is None else _load(kept, Path(scratch))
        if library is None:
            made = _compile(cc, flags, text, Path(scratch))
            library = ctypes.CDLL(str(made))
            code_cache.write(name, made.read_bytes())
        return library


def _load(image: bytes, scratch: Path) -> ctypes.CDLL | None:
    """The library, unless it was made for another machine."""
    path = scratch / "kept.so"
    path.write_bytes(image)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None


def _compile(cc: str, flags: list[str], text: str, scratch: Path) -> Path:
    source, target = scratch / "program.c", scratch / "program.so"
    source.write_text(text)
    command = [cc, *flags, str(source), "-o", str(target), "-lm"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        first = "\n".join(result.stderr.splitlines()[:20])
        raise CompilerError(f"{cc} failed:\n{first}")
    return target
