"""Compiles C text with the system's compiler and loads the library; cached on disk."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from phintys.backends import code_cache
from phintys.backends.identity import digest_of_ends, processor
from phintys.config import config
from phintys.errors import CompilerError

COMPILERS = ("cc", "gcc", "clang")

#: environment variables that change what C compilers do
_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "SDKROOT", "MACOSX_DEPLOYMENT_TARGET")


def compiler() -> str:
    """The path of the C compiler: ``config.cxx``, or the first of cc, gcc and clang in PATH.

    Raises CompilerError if there is none.
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


def build(text: str) -> ctypes.PyDLL:
    """The loaded library of a C text; from the cache if the same text was compiled before.

    Its functions are called with the GIL held, and may set an exception.

    Raises CompilerError if there is no compiler or it fails.
    """
    cc, flags = compiler(), _flags()
    name = code_cache.name_of("so", text, *_surroundings(cc, flags))
    kept = code_cache.read(name)
    with tempfile.TemporaryDirectory() as scratch:
        library = None if kept is None else _load(kept, Path(scratch))
        if library is None:
            made = _compile(cc, flags, text, Path(scratch))
            library = ctypes.PyDLL(str(made))
            code_cache.write(name, made.read_bytes())
        return library


def surroundings() -> str:
    """Everything that a library depends on, but its text; CompilerError if there is no compiler."""
    return repr(_surroundings(compiler(), _flags()))


def _surroundings(cc: str, flags: Sequence[str]) -> list[str]:
    variables = [f"{name}={os.environ.get(name, '')}" for name in _VARIABLES]
    return [*flags, *variables, *_identity(cc, *flags)]


def _flags() -> list[str]:
    """The options: floats are rounded, and integers wrap around, as in NumPy."""
    flags = ["-std=c99", "-O2", "-fPIC", "-shared", "-fno-math-errno"]
    flags += ["-ffp-contract=off", "-fwrapv"]
    return flags + config.gcc__cxxflags.split()


@cache
def _identity(cc: str, *flags: str) -> tuple[str, ...]:
    """The identity of the compiler, the system and the processor, for the key of the cache.

    With ``-###`` the drivers of gcc and clang print, without compiling, their version and the
    options they pass on, such as the processor that ``-march=native`` stands for.
    """
    path = os.path.realpath(cc)
    command = [os.path.abspath(cc), "-###", *flags, "-x", "c", "-E", "-"]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd=os.sep)
    output = (result.stdout + result.stderr).decode(errors="replace")
    return platform.platform(), path, digest_of_ends(path), output, *processor()


def _load(image: bytes, scratch: Path) -> ctypes.PyDLL | None:
    """The library of a file in the cache; None if it cannot be loaded here."""
    path = scratch / "kept.so"
    try:
        path.write_bytes(image)
        library = ctypes.PyDLL(str(path))
    except OSError:
        return None
    return library if hasattr(library, "run") and hasattr(library, "bind") else None


def _compile(cc: str, flags: list[str], text: str, scratch: Path) -> Path:
    source, target = scratch / "program.c", scratch / "program.so"
    source.write_text(text)
    command = [cc, *flags, str(source), "-o", str(target), "-lm"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        first = "\n".join(result.stderr.splitlines()[:20])
        raise CompilerError(f"{cc} failed:\n{first}")
    return target
