"""The greatest errors of the special functions of ``vecmath``, and their times beside SciPy's.

    python benchmarks/accuracy.py [--points N] [--keep K] [function ...]

Prints, per function and dtype: the greatest error in ulps against mpmath, that of SciPy, the number
of points, nanoseconds per element over 100,000 numbers, and SciPy's.  N points (500) are drawn from
each of the ranges of `RANGES`.  Errors of betaln, and below 0, where gammaln and psi have zeros,
are in ulps of 1 at least.

Those of float64 include the points of ``accuracy_points.txt``: the worst that were found among
100,000 and more in each range, before and after roundings were corrected there.  Each line has a
function, its arguments, and the exact value as a sum of two floats, in hexadecimal.  With
``--keep`` the K worst points of each function are added to it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import mpmath as mp
import numpy as np
from scipy import special
from vecmath import Compiled

from phintys.backends.llvm.vecmath import BINARY, CALLED
from phintys.scalar import numeric

DIGITS = 45
POINTS = Path(__file__).with_name("accuracy_points.txt")
NAMES = sorted(CALLED | {"log1mexp"})
#: Lanes of the functions that are tested.
LANES = {"float64": 8, "float32": 16}
WITH_POLES = {"gammaln", "psi", "trigamma"}


def _erfcinv(p: mp.mpf) -> mp.mpf:
    """The inverse of erfc on (0, 1], by Newton's method for the logarithm of erfc."""
    if p > 0.5:
        return mp.erfinv(1 - p)
    x = mp.sqrt(-mp.log(p))
    for _ in range(80):
        value = mp.erfc(x)
        step = (mp.log(value) - mp.log(p)) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.mpf(10) ** (3 - DIGITS) * x:
            return x
    raise ArithmeticError(f"erfcinv of {p}")


def _log_ndtr(x: mp.mpf) -> mp.mpf:
    tail = mp.erfc(abs(x) / mp.sqrt(2)) / 2
    return mp.log(tail) if x < 0 else mp.log1p(-tail)


def _erfinv(x: mp.mpf) -> mp.mpf:
    return mp.sign(x) * _erfcinv(1 - abs(x)) if abs(x) > 0.5 else mp.erfinv(x)


def _ndtri(p: mp.mpf) -> mp.mpf:
    return -mp.sqrt(2) * _erfcinv(2 * p) if p < 0.5 else mp.sqrt(2) * _erfcinv(2 * (1 - p))


def _betaln(x: mp.mpf, y: mp.mpf) -> mp.mpf:
    with mp.workdps(DIGITS + 2 * max(0, int(mp.log10(max(x, y))))):
        return mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y)


REFERENCE: dict[str, Callable[..., mp.mpf]] = {
    "gammaln": lambda x: mp.log(abs(mp.gamma(x))) if abs(x) < 1e5 else mp.re(mp.loggamma(x)),
    "gamma": mp.gamma,
    "psi": mp.digamma,
    "trigamma": lambda x: mp.psi(1, x),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "ndtr": lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
    "log_ndtr": _log_ndtr,
    "ndtri": _ndtri,
    "erfinv": _erfinv,
    "erfcinv": lambda p: _erfcinv(p) if p <= 1 else -_erfcinv(2 - p),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "betaln": _betaln,
    "log1mexp": lambda x: mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x)),
}

Draw = Callable[[np.random.Generator, int], np.ndarray]


def _uniform(low: float, high: float) -> Draw:
    return lambda rng, n: rng.uniform(low, high, n)


def _powers(low: float, high: float, sign: float = 1, origin: float = 0) -> Draw:
    """``origin`` plus ``sign`` times numbers of all magnitudes from 2**low to 2**high."""
    return lambda rng, n: origin + sign * np.exp2(rng.uniform(low, high, n))


_GAMMA = [
    _uniform(0, 3), _uniform(0, 10), _powers(-20, 20), _powers(-100, 120), _powers(-25, -3, 1, 1),
    _powers(-25, -3, -1, 1), _powers(-25, -3, 1, 2), _powers(-25, -3, -1, 2), _uniform(-20, 0),
]  # fmt: skip
_BESSEL = [_uniform(-20, 20), _uniform(0, 6), _powers(-20, 20)]
RANGES: dict[str, list[Draw]] = {
    "gammaln": _GAMMA,
    "gamma": [*_GAMMA[:2], _powers(-1020, 7.41), _uniform(8, 171), _uniform(-30, 0)],
    "psi": _GAMMA,
    "trigamma": _GAMMA,
    "erfcx": [_uniform(-26, 0), _uniform(-2, 3), _powers(-20, 10), _powers(-20, 4, -1)],
    "ndtr": [_uniform(-37, 8), _uniform(-2, 3), _powers(-20, 3), _powers(-20, 5, -1)],
    "log_ndtr": [_uniform(-38, 8), _uniform(-2, 3), _powers(-20, 3), _powers(-20, 30, -1)],
    "ndtri": [_uniform(0, 1), _powers(-1070, 0), _powers(-30, -2, 1, 0.5), _powers(-50, 0, -1, 1)],
    "erfinv": [_uniform(-1, 1), _powers(-1000, 0), _powers(-50, 0, -1, 1)],
    "erfcinv": [_uniform(0, 2), _powers(-1070, 1), _powers(-50, -1, -1, 2)],
    "i0e": _BESSEL,
    "i1e": _BESSEL,
    "betaln": [_powers(-3, 4), _powers(-30, 30), _uniform(0, 20), _powers(3, 60), _powers(-90, 90)],
    "log1mexp": [_uniform(-40, 0), _uniform(-2, 0), _powers(-1000, 9, -1)],
}
#: The open intervals on which inverses are defined.
INSIDE = {"ndtri": (0, 1), "erfinv": (-1, 1), "erfcinv": (0, 2)}


def arguments(name: str, dtype: str, count: int) -> list[np.ndarray]:
    """The arguments of a function, ``count`` from each of its ranges."""
    x = points(name, dtype, count)
    return [x, np.random.default_rng(0).permutation(x)] if name in BINARY else [x]


def points(name: str, dtype: str, count: int) -> np.ndarray:
    """``count`` numbers from each range of a function."""
    rng = np.random.default_rng(len(name))
    x = np.concatenate([draw(rng, count) for draw in RANGES[name]]).astype(dtype)
    low, high = INSIDE.get(name, (-np.inf, np.inf))
    return x[(x > low) & (x < high) & (x != 0)]


def exact_values(name: str, args: Sequence[np.ndarray]) -> np.ndarray:
    """The exact values as sums of two floats: an array of two rows."""
    with mp.workdps(DIGITS):
        exact = [REFERENCE[name](*(mp.mpf(float(v)) for v in row)) for row in zip(*args)]
        heads = [float(e) for e in exact]
        return np.array([heads, [float(e - h) for e, h in zip(exact, heads)]])


def hard_points(name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """The arguments of a function in the table, and the exact values like `exact_values`."""
    lines = (line.split() for line in POINTS.read_text().splitlines())
    rows = [[float.fromhex(v) for v in values] for first, *values in lines if first == name]
    *args, heads, tails = np.array(rows).T
    return args, np.array([heads, tails])


def keep(name: str, args: Sequence[np.ndarray], exact: np.ndarray) -> None:
    """Add points to the table."""
    lines = set(POINTS.read_text().splitlines())
    lines |= {
        " ".join([name, *(float(v).hex() for v in row)]) for row in zip(*args, *exact, strict=True)
    }
    POINTS.write_text("\n".join(sorted(lines)) + "\n")


def errors(
    name: str, args: Sequence[np.ndarray], found: np.ndarray, exact: np.ndarray
) -> np.ndarray:
    """The errors of results in ulps."""
    heads, tails = exact
    small = (name in BINARY) | ((name in WITH_POLES) & (args[0] < 0))
    with np.errstate(all="ignore"):
        rounded = heads.astype(found.dtype)
        size = np.where(small, np.maximum(np.abs(rounded), 1), np.abs(rounded))
        distance = np.abs(found.astype("float64") - heads - tails) / np.spacing(size)
    return np.where(np.isinf(rounded), np.where(found == rounded, 0, np.inf), distance)


def by_scipy(name: str, *args: np.ndarray) -> np.ndarray:
    own = {"trigamma": numeric.tri_gamma, "log1mexp": numeric.log1mexp}
    function = own.get(name) or getattr(special, name)
    with np.errstate(all="ignore"):
        return np.asarray(function(*args), args[0].dtype)


def nanoseconds(call: Callable[[], object], count: int) -> float:
    """The least time of some calls, per element."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) / count * 1e9


def measure(name: str, dtype: str, count: int, kept: int = 0) -> None:
    compiled = Compiled(name, dtype, LANES[dtype])
    args = arguments(name, dtype, count)
    exact = exact_values(name, args)
    if dtype == "float64":
        hard, values = hard_points(name)
        args = [np.concatenate(pair) for pair in zip(args, hard)]
        exact = np.concatenate([exact, values], axis=1)
    ours, theirs = (errors(name, args, f, exact) for f in (compiled(*args), by_scipy(name, *args)))
    if dtype == "float64" and kept:
        worst = np.argsort(ours)[-kept:]
        keep(name, [a[worst] for a in args], exact[:, worst])
    sign = -1 if name == "log1mexp" else 1
    many = [sign * np.abs(x[:100_000]) for x in arguments(name, dtype, 100_000)]
    out = np.empty_like(many[0])
    length = len(out) // 16 * 16
    places = many[0].ctypes.data, many[-1].ctypes.data, out.ctypes.data
    own = nanoseconds(lambda: compiled.run(*places, length), length)
    other = nanoseconds(lambda: by_scipy(name, *many), len(out))
    print(
        f"{name:10}{dtype:9}{ours.max():8.2f}{theirs.max():12.4g}{len(args[0]):8}"
        f"{own:9.2f}{other:9.2f}{other / own:8.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--keep", type=int, default=0)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    print("                       ulps       SciPy  points       ns    SciPy   ratio")
    for dtype in LANES:
        for name in given.names or NAMES:
            measure(name, dtype, given.points, given.keep)


if __name__ == "__main__":
    main()
