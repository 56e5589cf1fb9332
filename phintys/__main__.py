"""The command line.

``python -m phintys doctor`` prints versions, the state of the cache, which backends work, and what
``import pytensor`` finds.
``python -m phintys cache COMMAND``, or ``phintys-cache COMMAND``, lists and removes the compiled
code that is kept on disk.
``python -m phintys native`` lists the ops that compiled functions compute in Python, and why.
``python -m phintys check_blas [N]`` times products of N x N matrices.
``python -m phintys check_threads [N]`` times a function of N elements, in one and in all threads.
"""

from __future__ import annotations

import datetime
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path


def _version(package: str) -> str:
    """The installed version of a package, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def older_package(package: str) -> str:
    """What an import of a package of an older name finds: the version that is installed, whether
    the package is this one, and its file; or "not installed"."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return "not installed"
    text = Path(spec.origin).read_text(encoding="utf-8", errors="replace")
    what = "phintys" if "phintys.compat" in text else "another package than phintys"
    return f"{_version(package)}, import finds {what}: {spec.origin}"


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
    """Print versions, what ``import pytensor`` finds, the state of the cache, and whether each
    backend gives a right answer.

    Returns the exit status: 0 if the modes FAST_RUN and FAST_COMPILE work.
    """
    print(f"python     {sys.version.split()[0]} on {sys.platform}")
    for package in ("phintys", "numpy", "scipy", "llvmlite", "numba", "jax"):
        print(f"{package:10s} {_version(package)}")
    print(f"pytensor   {older_package('pytensor')}")
    print(f"cache      {_cache()}")
    print(f"loader     {_loader()}")
    print(f"blas       {_blas()}")
    results = {mode: _backend(mode) for mode in ("FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "JAX")}
    for mode, result in results.items():
        print(f"mode {mode:13s} {result}")
    needed = ("FAST_RUN", "FAST_COMPILE")
    return 0 if all(results[m] == "works" for m in needed) else 1


def _blas() -> str:
    """The library that SciPy's BLAS comes from, as far as SciPy says it."""
    from scipy import __config__

    found = getattr(__config__, "CONFIG", {}).get("Build Dependencies", {}).get("blas", {})
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def _milliseconds(f: Callable[[], object]) -> float:
    """The least time of five calls, after one that is not measured."""
    f()
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def check_blas(n: int = 1000) -> int:
    """Print the time of a product of two ``n`` x ``n`` matrices, by NumPy and by this package.

    Returns the exit status: 1 if the results differ.
    """
    import numpy as np

    import phintys
    import phintys.tensor as pt

    a, b = np.random.default_rng(0).normal(size=(2, n, n))
    x, y = pt.dmatrices("x", "y")
    f = phintys.function([x, y], x @ y)
    print(f"blas       {_blas()}")
    for name, call in (("numpy", lambda: a @ b), ("phintys", lambda: f(a, b))):
        spent = _milliseconds(call)
        print(f"{name:10s} {spent:.2f} ms, {2e-6 * n**3 / spent:.1f} GFlop/s")
    same = np.allclose(f(a, b), a @ b)
    print("results    " + ("agree" if same else "differ"))
    return 0 if same else 1


def check_threads(n: int = 1_000_000) -> int:
    """Print the time of an elementwise function in one thread, and in one per processor."""
    import numpy as np

    import phintys
    import phintys.tensor as pt

    x, values = pt.dvector("x"), np.linspace(-1, 1, n)
    spent: list[float] = []
    for count in (1, min(os.cpu_count() or 1, 256)):
        with phintys.config.change_flags(threads=count):
            f = phintys.function([x], pt.tanh(pt.exp(x)))
        spent.append(_milliseconds(lambda f=f: f(values)))
        print(f"{count:3d} threads {spent[-1]:.2f} ms for {n} elements")
    print(f"speed-up   {spent[0] / spent[1]:.1f}")
    return 0


def native() -> int:
    """Print the ops for which mode FAST_RUN calls Python, and the reasons.  Returns 0."""
    from phintys.show.in_python import ops_in_python

    print("Mode FAST_RUN calls Python for these ops; where a reason names cases, for these cases:")
    for name, reason in ops_in_python():
        print(f"{name:30s} {reason}")
    return 0


def _list() -> int:
    """Print the files of the cache, the least recently used first."""
    from phintys.backends.code_cache import entries

    kinds = {"f": "function", "o": "machine code", "so": "library of mode C", "id": "digest"}
    for name, size, used in entries():
        when = datetime.datetime.fromtimestamp(max(used, 0)).strftime("%Y-%m-%d %H:00")
        print(f"{when}  {size:9d}  {name}  {kinds.get(name.rpartition('.')[2], 'left over')}")
    print(_cache())
    return 0


def _remove(how: str) -> int:
    """Remove files by a function of `code_cache`, and print their number."""
    from phintys.backends import code_cache

    where = code_cache.usage().path
    print(f"{getattr(code_cache, how)()} files removed from {where}")
    return 0


def _directory() -> int:
    """Print the directory of the cache."""
    from phintys.config import cache_directory

    print(cache_directory())
    return 0


def _unlock() -> int:
    """There is nothing to do: files are replaced at once, and processes do not lock the cache."""
    print("The cache has no locks.")
    return 0


CACHE_COMMANDS: dict[str, tuple[Callable[[], int], str]] = {
    "list": (_list, "print the files, the least recently used first"),
    "clear": (lambda: _remove("clear"), "remove all compiled code"),
    "cleanup": (lambda: _remove("clean_up"), "remove damaged, left over and surplus files"),
    "purge": (lambda: _remove("purge"), "remove all compiled code and the directory"),
    "unlock": (_unlock, "without effect: the cache has no locks"),
    "basecompiledir": (_directory, "print the directory"),
}


def cache(arguments: list[str] | None = None) -> int:
    """The command ``phintys-cache``; returns the exit status, 2 for an unknown command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) == 1 and arguments[0] in CACHE_COMMANDS:
        return CACHE_COMMANDS[arguments[0]][0]()
    rows = [f"  {name:15s} {what}" for name, (_, what) in CACHE_COMMANDS.items()]
    print("\n".join(["usage: phintys-cache COMMAND", *rows]))
    return 2


def main(arguments: list[str]) -> int:
    """Run the command that ``arguments`` names; return the exit status, 2 for an unknown one."""
    reports = {"doctor": doctor, "native": native}
    if len(arguments) == 1 and arguments[0] in reports:
        return reports[arguments[0]]()
    if arguments[:1] == ["cache"]:
        return cache(arguments[1:])
    checks = {"check_blas": check_blas, "check_threads": check_threads}
    if arguments and arguments[0] in checks and all(n.isdecimal() for n in arguments[1:2]):
        return checks[arguments[0]](*map(int, arguments[1:2]))
    commands = "doctor | native | cache COMMAND | check_blas [N] | check_threads [N]"
    print(f"usage: python -m phintys {commands}")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
