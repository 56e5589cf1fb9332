"""The greatest errors of the special functions of ``vecmath``, and their times beside SciPy's.

    python benchmarks/accuracy.py [--points N] [function ...]

Prints, per function and dtype: the greatest error in ulps against mpmath, that of SciPy, the number
of points, nanoseconds per element over 100,000 numbers, and SciPy's.  Points are drawn from each of
the ranges of `RANGES`.  Errors of betaln, and below 0, where gammaln and psi have zeros, are in
ulps of 1 at least.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np
from scipy import special
from vecmath import Compiled, ulps

from phintys.backends.llvm.vecmath import BINARY, CALLED
from phintys.scalar import numeric

DIGITS = 45
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


def errors(name: str, args: Sequence[np.ndarray], found: np.ndarray) -> np.ndarray:
    """The errors of results in ulps."""
    with mp.workdps(DIGITS):
        exact = [REFERENCE[name](*(mp.mpf(float(v)) for v in row)) for row in zip(*args)]
        relative = ulps(found, exact, found.dtype.name)
        if name not in WITH_POLES | BINARY:
            return relative
        least = np.spacing(np.maximum(np.abs(found), 1))
        absolute = [float(abs(mp.mpf(float(y)) - e)) for y, e in zip(found, exact)]
        small = (args[0] < 0) | (name in BINARY)
        return np.where(small, np.array(absolute) / least, relative)


def by_scipy(name: str, *args: np.ndarray) -> np.ndarray:
    function = numeric.tri_gamma if name == "trigamma" else getattr(special, name)
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


def measure(name: str, dtype: str, count: int) -> None:
    compiled = Compiled(name, dtype, LANES[dtype])
    args = arguments(name, dtype, count)
    ours, theirs = errors(name, args, compiled(*args)), errors(name, args, by_scipy(name, *args))
    many = [np.abs(x[:100_000]) for x in arguments(name, dtype, 100_000)]
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
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    print("                       ulps       SciPy  points       ns    SciPy   ratio")
    for dtype in LANES:
        for name in given.names or sorted(CALLED):
            measure(name, dtype, given.points)


if __name__ == "__main__":
    main()
