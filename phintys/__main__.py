"""The command line.

``python -m phintys doctor`` prints versions, the state of the cache, and which backends work.
``python -m phintys cache clear`` removes the compiled code that is kept on disk.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version


def _version(package: str) -> str:
    """The installed version of a package, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _backend(mode: str) -> str:
    """Compile and call a small function in ``mode``; return "works", or what went wrong."""
    import numpy as np

    import phintys
    import phintys.tensor as pt

    x = pt.dvector("x")
    try:
        f = phintys.function([x], pt.exp(x).sum(), mode=mode)
        value = f(np.zeros(3))
    except Exception as exc:  # any failure is a result of the report
        return f"{type(exc).__name__}: {str(exc).splitlines()[0]}"
    return "works" if float(np.asarray(value)) == 3.0 else f"wrong result {value}"


def _loader() -> str:
    """The loader of machine code in use; in parentheses why it is LLVM's, if it is."""
    from phintys.backends.llvm.machine import image
    from phintys.config import config

    if image.in_use():
        return "image"
    return f"llvm ({'config.loader' if config.loader == 'llvm' else image.refusal()})"


def _cache() -> str:
    """The directory of the cache, its size and limit, or why it is not used."""
    from phintys.backends.code_cache import usage
    from phintys.config import config

    found = usage()
    where = found.path or "nowhere"
    if found.fault:
        return f"{where}, not used: {found.fault}"
    size, limit = found.size / 2**20, config.cache_bytes / 2**20
    return f"{where}, {size:.1f} of {limit:.0f} MiB in {found.files} files"


def doctor() -> int:
    """Print versions, the state of the cache, and whether each backend gives a right answer.

    Returns the exit status: 0 if the modes FAST_RUN and FAST_COMPILE work.
    """
    print(f"python     {sys.version.split()[0]} on {sys.platform}")
    for package in ("phintys", "numpy", "scipy", "llvmlite", "numba", "jax"):
        print(f"{package:10s} {_version(package)}")
    print(f"cache      {_cache()}")
    print(f"loader     {_loader()}")
    results = {mode: _backend(mode) for mode in ("FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "JAX")}
    for mode, result in results.items():
        print(f"mode {mode:13s} {result}")
    needed = ("FAST_RUN", "FAST_COMPILE")
    return 0 if all(results[m] == "works" for m in needed) else 1


def clear() -> int:
    """Remove all compiled code from the cache; return the exit status."""
    from phintys.backends.code_cache import clear, usage

    print(f"{clear()} files removed from {usage().path}")
    return 0


def main(arguments: list[str]) -> int:
    """Run the command that ``arguments`` names; return the exit status, 2 for an unknown one."""
    if arguments == ["doctor"]:
        return doctor()
    if arguments == ["cache", "clear"]:
        return clear()
    print("usage: python -m phintys doctor | cache clear")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
