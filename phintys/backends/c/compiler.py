"""From C text to a loaded library, through the system's compiler and a cache on disk."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from phintys.backends import code_cache
from phintys.backends.identity import digest_of_ends, processor
from phintys.config import config
from phintys.errors import CompilerError

COMPILERS = ("cc", "gcc", "clang")

#: Variables of the environment that compilers look at.
_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "SDKROOT", "MACOSX_DEPLOYMENT_TARGET")


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


def build(text: str) -> ctypes.PyDLL:
    """The library made of a C file; from the cache if the same text was compiled before.

    Its functions are called with the interpreter's lock, and may leave an exception set.
    """
    cc = compiler()
    flags = ["-std=c99", "-O2", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=off"]
    flags += config.gcc__cxxflags.split()
    variables = [f"{name}={os.environ.get(name, '')}" for name in _VARIABLES]
    name = code_cache.name_of("so", text, *flags, *variables, *_identity(cc, *flags))
    kept = code_cache.read(name)
    with tempfile.TemporaryDirectory() as scratch:
        library = None if kept is None else _load(kept, Path(scratch))
        if library is None:
            made = _compile(cc, flags, text, Path(scratch))
            library = ctypes.PyDLL(str(made))
            code_cache.write(name, made.read_bytes())
        return library


@cache
def _identity(cc: str, *flags: str) -> tuple[str, ...]:
    """The compiler, the system and the processor.

    The driver of gcc and clang says with ``-###``, and without compiling, which version it is and
    what it passes on: the processor, say, that ``-march=native`` means here.
    """
    path = os.path.realpath(cc)
    command = [os.path.abspath(cc), "-###", *flags, "-x", "c", "-E", "-"]
    told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd=os.sep)
    output = (told.stdout + told.stderr).decode(errors="replace")
    return platform.platform(), path, digest_of_ends(path), output, *processor()


def _load(image: bytes, scratch: Path) -> ctypes.PyDLL | None:
    """The library, unless it was made for another machine."""
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
