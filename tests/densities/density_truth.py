"""The truths of densities: computed with as many digits as it takes, and stored.

``truths/NAME.npz`` holds for each dtype the points, the numbers and their conditions.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

import density_series as mp
import mpmath
import numpy as np
from density_row import LABELS, Density
from mpmath import mpf

FOLDER = Path(__file__).parent / "truths"
DTYPES = ("float64", "float32")
FIRST_DIGITS = 50
MOST_DIGITS = 6400
#: the coefficients of a series
Terms = dict[tuple[int, ...], mpf]
#: what differs less between two numbers of digits is right
CLOSE = mpf(10) ** -17
#: smaller numbers are zero in every dtype, and larger ones infinite
SMALLEST, LARGEST = mpf(10) ** -330, mpf(10) ** 320
#: the bits of numbers and of conditions that are kept: enough to judge by
BITS = {"float64": 44, "float32": 28}
BITS_OF_CONDITIONS = 8
DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Truths:
    """Arrays with a row for each point; numbers and conditions have a column for each quantity.

    A condition is the number's absolute value plus its relative derivatives in all inputs.  NaN
    stands for what does not exist, such as a derivative at a kink.  ``directional`` has the
    Hessian's product with the density's tangents, then the derivative in their direction.
    """

    points: np.ndarray
    numbers: np.ndarray
    conditions: np.ndarray
    directional: np.ndarray


def truths(density: Density, dtype: str) -> Truths:
    """The stored truths, or those that are computed now if the stored ones have other points."""
    points = density.points(dtype)
    stored = load(density, dtype)
    if stored is not None and np.array_equal(stored.points, points):
        return stored
    return compute(density, points, dtype)


def compute(density: Density, points: np.ndarray, dtype: str) -> Truths:
    found = np.array([exact(density, point) for point in points])
    n = len(density.quantities)
    numbers, conditions, directional = np.split(found, [n, 2 * n], axis=1)
    bits = BITS[dtype]
    return Truths(
        points,
        short(numbers, bits),
        short(conditions, BITS_OF_CONDITIONS),
        short(directional, bits),
    )


def exact(density: Density, point: np.ndarray) -> list[float]:
    """The quantities at a point, their conditions, and the directional derivatives.

    The number of digits is doubled until nothing changes.

    Raises
    ------
    ArithmeticError
        if `MOST_DIGITS` are too few
    """
    digits = FIRST_DIGITS
    before = None
    while digits <= MOST_DIGITS:
        with contextlib.suppress(ZeroDivisionError):
            found = with_digits(density, point, digits)
            if before and all(agree(*pair) for pair in zip(before, found, strict=True)):
                return [float(q) for q in found]
            before = found
        digits *= 2
    raise ArithmeticError(f"{density.name} at {point}: {MOST_DIGITS} digits are too few")


def with_digits(density: Density, point: np.ndarray, digits: int) -> list[mpf]:
    """What `exact` returns, computed with this number of digits."""
    with mpmath.workdps(digits):
        inputs = [
            int(x) if kind in LABELS else mp.variable(k, float(x))
            for k, (kind, x) in enumerate(zip(density.kinds, point, strict=True))
        ]
        terms = mp.series(density.truth(mp, *inputs)).terms
        first = [(k,) for k in density.differentiated]
        places = [(), *first, *(2 * place for place in first)]
        numbers = [derivative(terms, place) for place in places]
        conditions = [condition(terms, place, point) for place in places]
        return [*numbers, *conditions, *directional(density, terms, point)]


def directional(density: Density, terms: Terms, point: np.ndarray) -> list[mpf]:
    """The Hessian's product with the tangents, and the derivative in their direction."""
    wrt = density.differentiated
    tangents = [float(t) for t in density.tangents(point)]
    places = [*((k,) for k in wrt), ()] if wrt else []
    return [
        mpmath.fsum(
            t * derivative(terms, (*place, k)) for t, k in zip(tangents, wrt, strict=True) if t
        )
        for place in places
    ]


def derivative(terms: Terms, place: tuple[int, ...]) -> mpf:
    """The derivative in the inputs ``place``: the coefficient times factorials."""
    factor = math.prod(math.factorial(place.count(k)) for k in set(place))
    return factor * terms.get(tuple(sorted(place)), mpf(0))


def condition(terms: Terms, place: tuple[int, ...], point: np.ndarray) -> mpf:
    """|q| + the sum of |x_i dq/dx_i|, for the derivative q in ``place``."""
    slopes = [abs(float(x) * derivative(terms, (*place, k))) for k, x in enumerate(point) if x != 0]
    return abs(derivative(terms, place)) + mpmath.fsum(slopes)


def agree(a: mpf, b: mpf) -> bool:
    """Whether two numbers are the same double, up to its last digit."""
    if mpmath.isnan(a) or mpmath.isnan(b):
        return bool(mpmath.isnan(a) and mpmath.isnan(b))
    if abs(a) < SMALLEST or abs(a) > LARGEST:
        return float(a) == float(b)
    return bool(abs(a - b) <= CLOSE * abs(a))


def short(numbers: np.ndarray, bits: int) -> np.ndarray:
    """The numbers with this many bits; what is next to infinity or to zero stays as it is."""
    mantissas, exponents = np.frexp(numbers)
    with np.errstate(over="ignore"):
        rounded = np.ldexp(np.round(np.ldexp(mantissas, bits)), exponents - bits)
    return np.where(np.isinf(rounded), numbers, rounded)


def load(density: Density, dtype: str) -> Truths | None:
    path = FOLDER / f"{density.name}.npz"
    if not path.exists():
        return None
    with np.load(path) as stored:
        return Truths(*(stored[f"{dtype}_{part}"] for part in Truths.__annotations__))


def store(density: Density) -> None:
    """Compute the truths in all dtypes and write them."""
    write(density, {d: compute(density, density.points(d), d) for d in DTYPES})


def write(density: Density, found: dict[str, Truths]) -> None:
    """Write the truths by dtype; the same truths give the same bytes."""
    FOLDER.mkdir(exist_ok=True)
    with zipfile.ZipFile(FOLDER / f"{density.name}.npz", "w") as file:
        for dtype, part in itertools.product(found, Truths.__annotations__):
            buffer = io.BytesIO()
            np.save(buffer, getattr(found[dtype], part))
            entry = zipfile.ZipInfo(f"{dtype}_{part}.npy", DATE)
            file.writestr(entry, buffer.getvalue(), zipfile.ZIP_LZMA)
