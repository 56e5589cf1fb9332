"""``python -m tests.scalar.slopes [NAME ...]``: how exact the derivatives of rows are, everywhere.

Prints for each row of the scalar table the largest errors of its first and second derivatives, in
float64 and float32, and where they occur.  It exits with 1 if one is above its limit.

The arguments are 0 and positive and negative numbers of all magnitudes, as far as the function is
defined.  The truth is mpmath's; at an end of the domain it is the limit.  An error is relative to
the size of the derivative plus what it changes if all arguments change by their own size, plus the
smallest normal number.  A second derivative is not asked for where a first one is infinite.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from rows import REFERENCE, arity
from slope_references import EXCEPTIONS, PLACES, REACHES, VALUES, Interval, derivative_of

from phintys.scalar import Composite, scalars
from phintys.scalar.op import TABLE, Undefined, functions

#: magnitudes of arguments, as powers of 10
POWERS = (-30, -8, -3, 0, 1, 2, 3, 6, 9)
NEXT_TO_ONE = 1 - 1e-9
#: at most so many points of a function
MOST_POINTS = 200
#: the largest error of derivatives by dtype and order
LIMITS = {("float64", 1): 1e-12, ("float64", 2): 1e-9, ("float32", 1): 1e-5, ("float32", 2): 1e-5}
#: the same for derivatives in parameters that are computed by quadrature: of first order only
PARAMETER = 1e-7
PARAMETERS = {"gammainc": [0], "gammaincc": [0], "chi2sf": [1], "betainc": [0, 1]}
#: rows of choice, whose derivatives at jumps are conventions; products with gamma(x), which
#: overflows; inverses in parameters; derivatives of other rows in parameters, measured there
LEFT_OUT = {
    *("switch", "clip", "heaviside", "copysign", "mod", "fmod", "int_div", "mul_without_zeros"),
    *("gammal", "gammau", "gammaincinv", "gammainccinv", "betaincinv", "hyp2f1"),
    *("gammainc_der", "gammainc_der2", "betainc_der_a", "betainc_der_b", "betainc_der_aa"),
    *("betainc_der_ab", "betainc_der_bb", "hyp2f1_der_a", "hyp2f1_der_c", "hyp2f1_der_aa"),
    *("hyp2f1_der_ab", "hyp2f1_der_ac", "hyp2f1_der_cc"),
}

#: the arguments in which an output is differentiated, one or two
Order = tuple[int, ...]
Point = tuple[float, ...]

# --------------------------------------------------------------------------- the points


def reach(name: str) -> Sequence[Interval]:
    """The interval of the numbers that are tested, for each argument."""
    op = TABLE[name]
    if name in REACHES:
        return REACHES[name]
    domain = op.facts.get("domain", (-math.inf, math.inf))
    exact = math.inf in domain or domain in ((0, 1), (-1, 1), (0, 2), (-math.inf, 0))
    if arity(op) == 1 and exact:
        return [domain]
    return [(-math.inf, math.inf)] * arity(op)


def values_in(interval: Interval) -> list[float]:
    """The numbers to test in an interval, as float32 holds them (but for `NEXT_TO_ONE`)."""
    lo, hi = interval
    sizes = [float(np.float32(10.0**k)) for k in POWERS]
    found = [x for x in (*(-v for v in sizes), 0.0, *sizes) if lo <= x <= hi]
    ends = [side * NEXT_TO_ONE for side in (-1, 1)]
    return found + [x for x in ends if -1 <= lo <= x <= hi <= 1]


def grid(name: str, most: int = MOST_POINTS) -> list[Point]:
    """The points of a row: all combinations of arguments, or ``most`` drawn of them."""
    values = [VALUES.get((name, i)) or values_in(r) for i, r in enumerate(reach(name))]
    full = list(itertools.product(*values))
    if len(full) <= most:
        return full
    rng = np.random.default_rng(sum(map(ord, name)))
    return [full[k] for k in rng.choice(len(full), most, replace=False)]


# ---------------------------------------------------------------------------- the truth

#: order -> the weight of the function at each number of steps from the point
DIFFERENCES: dict[int, dict[int, float]] = {
    0: {0: 1.0},
    1: {-1: -0.5, 1: 0.5},
    2: {-1: 1.0, 0: -2.0, 1: 1.0},
    3: {-2: -0.5, -1: 1.0, 1: -1.0, 2: 0.5},
}
#: how near to the end of a domain limits are taken, in decimal places
NEAR, NEARER = 60, 90
#: what references raise outside of their domains, or where they do not converge
NO_VALUE = (ValueError, ZeroDivisionError, TypeError, OverflowError, mp.libmp.NoConvergence)


class Unknown(Exception):
    """There is no derivative at a point, or mpmath does not find it."""


class Truth(NamedTuple):
    """A derivative, and the sum of its size and of its changes with relative changes of inputs."""

    value: Any
    scale: Any


class Neighbourhood(NamedTuple):
    """A row's reference around a point: partial derivatives by central differences."""

    name: str
    at: Sequence[Any]
    steps: Sequence[Any]

    def partial(self, order: Order) -> Any:
        """The derivative in the arguments ``order``."""
        f, left = derivative_of(self.name, order)
        counts = [left.count(i) for i in range(len(self.at))]
        total = mp.mpf(0)
        for moves in itertools.product(*(DIFFERENCES[n] for n in counts)):
            weight = math.prod(DIFFERENCES[n][k] for n, k in zip(counts, moves))
            total += weight * self._value(f, moves)
        return total / math.prod(h**n for h, n in zip(self.steps, counts))

    def _value(self, f: Callable[..., Any], moves: Sequence[int]) -> Any:
        try:
            y = f(*(x + k * h for x, k, h in zip(self.at, moves, self.steps)))
        except NO_VALUE:
            raise Unknown from None
        if isinstance(y, mp.mpc) or not mp.isfinite(y):
            raise Unknown
        return mp.mpf(y)

    def check_smooth(self, i: int) -> None:
        """`Unknown` if the slope in argument ``i`` jumps: the curvature is that of a kink."""
        bend = abs(self.partial((i, i)) * self.at[i])
        if bend > mp.mpf(10) ** (PLACES - 10) * (1 + abs(self.partial((i,)))):
            raise Unknown


@cache
def truth(name: str, point: Point, order: Order) -> Truth:
    """A derivative of a row's reference at a point; at ends of the domain it is the limit.

    Raises
    ------
    Unknown
        if there is none
    """
    if any(mp.isinf(truth(name, point, (i,)).value) for i in order if len(order) > 1):
        raise Unknown
    sides = [_sides(x, interval) for x, interval in zip(point, reach(name))]
    first, *others = (_limit(name, point, order, chosen) for chosen in itertools.product(*sides))
    for other in others:
        gap = abs(other.value - first.value)  # NaN for two infinities
        if other.value != first.value and not gap <= mp.mpf(10) ** -20 * first.scale:
            raise Unknown
    return first


def _sides(x: float, interval: Interval) -> list[int]:
    """The sides from which a number is approached; 0: it is taken as it is."""
    ends = [1] * (x == interval[0]) + [-1] * (x == interval[1])
    return ends or ([1, -1] if x == 0 else [0])


def _limit(name: str, point: Point, order: Order, sides: Sequence[int]) -> Truth:
    """The derivative as arguments with a side other than 0 approach the point from that side."""
    if not any(sides):
        return _beside(name, point, order, sides, 0)
    near, nearer = (_beside(name, point, order, sides, places) for places in (NEAR, NEARER))
    ratio = abs(nearer.value) / abs(near.value) if near.value else mp.mpf(1)
    if 0.9 < ratio < 1.1:
        return nearer
    if sum(map(abs, sides)) > 1:
        raise Unknown
    if ratio < 1:
        return Truth(mp.mpf(0), nearer.scale)
    return Truth(mp.inf * mp.sign(nearer.value), mp.inf)


def _beside(name: str, point: Point, order: Order, sides: Sequence[int], places: int) -> Truth:
    """The derivative at a distance of ``10**-places`` to the given sides of the point."""
    small = max([places, *(-math.log10(abs(x)) for x in point if x)])
    differences = 1 + len(derivative_of(name, order)[1])
    with mp.workdps(100 + PLACES * differences + (differences + 1) * math.ceil(small)):
        # each argument at a distance of its own, so that a limit which depends on them differs
        distances = [mp.mpf(10) ** -(places + places // 4 * i) for i in range(len(point))]
        at = [mp.mpf(x) + side * d for x, side, d in zip(point, sides, distances)]
        unit = mp.mpf(10) ** -PLACES
        steps = [unit * (d if side else abs(x)) for x, side, d in zip(at, sides, distances)]
        around = Neighbourhood(name, at, steps)
        for i in set(derivative_of(name, order)[1]):
            around.check_smooth(i)
        value = around.partial(order)
        changing = [i for i, x in enumerate(point) if x and (name, i) not in VALUES]
        changes = [abs(point[i] * around.partial((*order, i))) for i in changing]
        return Truth(value, abs(value) + sum(changes))


# ------------------------------------------------------------------- what rows compute


def gradient(inputs: list[Any], output: Any) -> list[Any]:
    """The derivatives of an expression, by reverse mode; None: 0, and Undefined: there is none."""
    node = Composite(inputs, [output]).make_node(*inputs)
    one = functions.second(output, 1.0)
    return node.op.cotangents(functions, inputs, node.outputs, [one])


def is_known(g: Any) -> bool:
    """Whether a derivative is an expression."""
    return g is not None and not isinstance(g, Undefined)


def derivatives(name: str, xs: list[Any]) -> dict[Order, Any]:
    """The first and second derivatives of a row that are to be measured, as expressions."""
    found: dict[Order, Any] = {}
    parameters = PARAMETERS.get(name, [])
    for i, g in enumerate(gradient(xs, TABLE[name](*xs))):
        if not is_known(g) or xs[i].type.dtype[0] != "f":
            continue
        found[i,] = g
        for k, h in enumerate(gradient(xs, g)):
            if is_known(h) and not {i, k} & {*parameters} and xs[k].type.dtype[0] == "f":
                found[i, k] = h
    return found


def variables(name: str, dtype: str) -> list[Any]:
    """The arguments of a row: floats, or integers where `VALUES` has integers alone."""
    kinds = ["int8" if (name, i) == ("polygamma", 0) else dtype for i in range(arity(TABLE[name]))]
    return [getattr(scalars, kind)(f"x{i}") for i, kind in enumerate(kinds)]


def computed(name: str, dtype: str, points: Sequence[Point]) -> dict[Order, Any]:
    """The first and second derivatives of a row at points, by their order."""
    xs = variables(name, dtype)
    columns = [np.asarray(column, x.type.dtype) for x, column in zip(xs, zip(*points))]
    with np.errstate(all="ignore"):
        return {
            order: np.broadcast_to(Composite(xs, [g]).compute(*columns), len(points)).astype(dtype)
            for order, g in derivatives(name, xs).items()
        }


# -------------------------------------------------------------------------- the errors


def error(found: float, exact: Truth, dtype: str) -> float:
    """The error of a derivative, relative to the scale of the truth."""
    info = np.finfo(dtype)
    if abs(exact.value) > mp.mpf(float(info.max)):
        expected = math.inf * int(mp.sign(exact.value))
        return 0.0 if found == expected else math.inf
    if not math.isfinite(found):
        return math.inf
    with mp.workdps(50):
        gap = abs(mp.mpf(found) - exact.value)
        return float(gap / (exact.scale + mp.mpf(float(info.tiny))))


def limit_of(name: str, dtype: str, order: Order) -> float:
    """The largest error that is allowed."""
    if dtype == "float64" and {*order} & {*PARAMETERS.get(name, [])}:
        return PARAMETER
    return LIMITS[dtype, len(order)]


@dataclass
class Worst:
    """The largest error of a row's derivatives of one order in a dtype, over its limit."""

    size: float = -1.0
    share: float = -1.0
    text: str = ""
    count: int = 0
    above: int = 0

    def add(self, size: float, limit: float, text: str) -> None:
        """Count one error."""
        self.count += 1
        self.above += size > limit
        if size / limit > self.share:
            self.size, self.share, self.text = size, size / limit, text


def measured(name: str, dtype: str, points: Sequence[Point]) -> dict[int, Worst]:
    """The largest errors of first and second derivatives, by the number of differentiations."""
    worst = {1: Worst(), 2: Worst()}
    points = [p for p in points if dtype == "float64" or NEXT_TO_ONE not in map(abs, p)]
    for order, results in computed(name, dtype, points).items():
        for point, found in zip(points, results.tolist()):
            try:
                exact = truth(name, point, order)
            except Unknown:
                continue
            at = ", ".join(f"{x:.10g}" for x in point)
            text = f"d{list(order)} at ({at}): {found:.17g}, not {mp.nstr(exact.value, 17)}"
            limit = limit_of(name, dtype, order)
            worst[len(order)].add(error(found, exact, dtype), limit, text)
    return worst


def differentiable() -> Iterator[str]:
    """The rows whose derivatives are measured."""
    for name in REFERENCE:
        xs = variables(name, "float64")
        if TABLE[name].d is not None and name not in LEFT_OUT and derivatives(name, xs):
            yield name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="rows; all, if none is given")
    failed = 0
    for name in parser.parse_args().names or differentiable():
        points = grid(name)
        for dtype in ("float64", "float32"):
            for number, worst in measured(name, dtype, points).items():
                if worst.count:
                    verdict = f"{worst.above} above" if worst.above else "ok"
                    head = f"{name:20} {dtype} {number} {worst.size:8.1e} {verdict:>10}"
                    why = EXCEPTIONS.get((name, dtype, number), "")
                    failed += worst.above > 0 and not why
                    print(
                        f"{head} of {worst.count:3} {worst.text} {why and f'({why})'}", flush=True
                    )
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
