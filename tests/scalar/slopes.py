"""``python -m tests.scalar.slopes [NAME ...]``: how exact the derivatives of rows are, everywhere.

Prints for each row of the scalar table the largest errors of its first and second derivatives, in
float64 and float32, with the arguments at which they occur, and exits with 1 if one is above its
limit.  The truth is mpmath's.
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

from rows import REFERENCE

from phintys.scalar import Composite, scalars
from phintys.scalar.op import TABLE, Undefined, functions

#: magnitudes of arguments, as powers of 10
POWERS = (-30, -8, -3, 0, 1, 2, 3, 6, 9)
NEXT_TO_ONE = 1 - 1e-9
#: at most so many points of a function
MOST_POINTS = 200
#: the largest error of derivatives by dtype and order
LIMITS = {("float64", 1): 1e-12, ("float64", 2): 1e-9, ("float32", 1): 1e-5, ("float32", 2): 1e-5}

Interval = tuple[float, float]
#: the arguments in which an output is differentiated, one or two
Order = tuple[int, ...]

_LINE, _POSITIVE, _UNIT = (-math.inf, math.inf), (0.0, math.inf), (0.0, 1.0)
#: where rows are defined whose facts state an interval inside of their domain
REACHES: dict[str, list[Interval]] = {
    **dict.fromkeys(["y0", "y1", "k0", "k1"], [_POSITIVE]),
    **dict.fromkeys(["rel_entr", "kl_div", "poch", "beta", "betaln", "psi_increment"], [_POSITIVE, _POSITIVE]),
    **dict.fromkeys(["jv", "yv", "iv", "ive", "kv", "kve"], [_POSITIVE, _POSITIVE]),
    **dict.fromkeys(["gammainc", "gammaincc", "gammal", "gammau"], [_POSITIVE, _POSITIVE]),
    **dict.fromkeys(["gammaincinv", "gammainccinv"], [_POSITIVE, _UNIT]),
    **dict.fromkeys(["betainc", "betaincinv"], [_POSITIVE, _POSITIVE, _UNIT]),
    "chi2sf": [_POSITIVE, _POSITIVE],
    "xlogy": [_LINE, _POSITIVE],
    "xlog1py": [_LINE, (-1.0, math.inf)],
    "pow": [_POSITIVE, _LINE],
    "zeta": [(1.0, math.inf), _POSITIVE],
}


def reach(name: str) -> list[Interval]:
    """The interval on which a row is defined, for each argument."""
    op = TABLE[name]
    n = 3 if op.nin < 0 else op.nin
    if name in REACHES:
        return REACHES[name]
    domain = op.facts.get("domain", _LINE)
    if n > 1:
        return [_LINE] * n
    return [domain if math.isinf(domain[1]) or domain in EXACT_DOMAINS else _LINE]


EXACT_DOMAINS = [(0, 1), (-1, 1), (0, 2), (-np.inf, 0)]


def values_in(interval: Interval) -> list[float]:
    """The arguments to test in an interval, as float32 holds them (but for `NEXT_TO_ONE`)."""
    lo, hi = interval
    sizes = [float(np.float32(10.0**k)) for k in POWERS]
    found = [x for x in (*(-v for v in sizes), 0.0, *sizes) if lo <= x <= hi]
    ends = [s * NEXT_TO_ONE for s in (-1, 1) if s in (lo, hi)]
    return found + ends


def grid(name: str) -> list[tuple[float, ...]]:
    """The points of a row: all combinations of arguments, or `MOST_POINTS` drawn of them."""
    full = list(itertools.product(*map(values_in, reach(name))))
    if len(full) <= MOST_POINTS:
        return full
    rng = np.random.default_rng(sum(map(ord, name)))
    return [full[k] for k in rng.choice(len(full), MOST_POINTS, replace=False)]


# -------------------------------------------------------------------------------- the truth

#: steps of differences are so many decimal places smaller than the argument
PLACES = 40
#: order -> the weight of the function at each number of steps from the point
DIFFERENCES: dict[int, dict[int, float]] = {
    0: {0: 1.0},
    1: {-1: -0.5, 1: 0.5},
    2: {-1: 1.0, 0: -2.0, 1: 1.0},
    3: {-2: -0.5, -1: 1.0, 1: -1.0, 2: 0.5},
}
#: what references raise outside of their domains, or where they do not converge
NO_VALUE = (ValueError, ZeroDivisionError, TypeError, OverflowError, mp.libmp.NoConvergence)


class Unknown(Exception):
    """There is no derivative at a point, or mpmath does not find it."""


class Truth(NamedTuple):
    """A derivative, and the sum of its size and of its changes with relative changes of inputs."""

    value: Any
    scale: Any


class Neighbourhood:
    """A function around a point: its partial derivatives by central differences."""

    def __init__(self, f: Callable[..., Any], at: Sequence[Any], steps: Sequence[Any]) -> None:
        self.f, self.at, self.steps = f, at, steps
        self.values = cache(self._value)

    def _value(self, *moves: int) -> Any:
        try:
            y = self.f(*(x + k * h for x, k, h in zip(self.at, moves, self.steps)))
        except NO_VALUE:
            raise Unknown from None
        if isinstance(y, mp.mpc) or not mp.isfinite(y):
            raise Unknown
        return mp.mpf(y)

    def partial(self, order: Order) -> Any:
        """The derivative in the arguments ``order``."""
        counts = [order.count(i) for i in range(len(self.at))]
        weights = [DIFFERENCES[n] for n in counts]
        total = mp.mpf(0)
        for moves in itertools.product(*weights):
            weight = math.prod(w[k] for w, k in zip(weights, moves))
            total += weight * self.values(*moves)
        for h, n in zip(self.steps, counts):
            total /= h**n
        return total

    def check_smooth(self, i: int) -> None:
        """`Unknown` if the slope in argument ``i`` jumps: the curvature is that of a kink."""
        bend = abs(self.partial((i, i)) * self.at[i])
        if bend > mp.mpf(10) ** (PLACES - 10) * (1 + abs(self.partial((i,)))):
            raise Unknown


def truth(name: str, point: Sequence[float], order: Order) -> Truth:
    """A derivative of a row's reference at a point; at ends of the domain it is the limit.

    Raises
    ------
    Unknown
        if there is none
    """
    sides = [end_sides(x, interval) for x, interval in zip(point, reach(name))]
    found = [_limit(name, point, order, chosen) for chosen in itertools.product(*sides)]
    first = found[0]
    for other in found[1:]:
        gap = abs(other.value - first.value)  # NaN for two infinities
        if other.value != first.value and not gap <= mp.mpf(10) ** -20 * first.scale:
            raise Unknown
    if len(order) > 1:  # there is none where a first derivative jumps
        for i in order:
            truth(name, point, (i,))
    return first


def end_sides(x: float, interval: Interval) -> list[int]:
    """The sides from which a point is approached: 0 is itself, or those inside of the domain."""
    if x == interval[0]:
        return [1]
    if x == interval[1]:
        return [-1]
    return [1, -1] if x == 0 else [0]


def _limit(name: str, point: Sequence[float], order: Order, sides: Sequence[int]) -> Truth:
    """The derivative as arguments with a side other than 0 approach the point from that side."""
    if not any(sides):
        return _beside(name, point, order, sides, 0)
    near, nearer = (_beside(name, point, order, sides, places) for places in (60, 90))
    ratio = abs(nearer.value) / abs(near.value) if near.value else mp.mpf(1)
    if 0.9 < ratio < 1.1:
        return nearer
    if sum(map(abs, sides)) > 1:
        raise Unknown
    end = mp.mpf(0) if ratio < 1 else mp.inf * mp.sign(nearer.value)
    return Truth(end, nearer.scale if ratio < 1 else mp.inf)


def _beside(
    name: str, point: Sequence[float], order: Order, sides: Sequence[int], places: int
) -> Truth:
    small = max([places, *(-math.log10(abs(x)) for x in point if x)])
    with mp.workdps(220 + 4 * int(small)):
        # each argument at a distance of its own, so that a limit which depends on them differs
        distances = [mp.mpf(10) ** -(places + places // 4 * i) for i in range(len(point))]
        at = [mp.mpf(x) + side * d for x, side, d in zip(point, sides, distances)]
        unit = mp.mpf(10) ** -PLACES
        steps = [unit * (d if side else abs(x)) for x, side, d in zip(at, sides, distances)]
        around = Neighbourhood(REFERENCE[name], at, steps)
        for i in set(order):
            around.check_smooth(i)
        value = around.partial(order)
        changes = [abs(x * around.partial((*order, i))) for i, x in enumerate(point) if x]
        return Truth(value, abs(value) + sum(changes))


# ----------------------------------------------------------------------- what rows compute


def gradient(inputs: list[Any], output: Any) -> list[Any]:
    """The derivatives of an expression, by reverse mode; None: 0, and Undefined: there is none."""
    node = Composite(inputs, [output]).make_node(*inputs)
    one = functions.second(output, 1.0)
    return node.op.cotangents(functions, inputs, node.outputs, [one])


def is_known(g: Any) -> bool:
    """Whether a derivative is an expression."""
    return g is not None and not isinstance(g, Undefined)


def computed(name: str, dtype: str, points: Sequence[Sequence[float]]) -> dict[Order, Any]:
    """The first and second derivatives of a row at points, by their order."""
    xs = [getattr(scalars, dtype)(f"x{i}") for i in range(len(points[0]))]
    arrays = [np.asarray(column, dtype) for column in zip(*points)]
    graphs: dict[Order, Any] = {}
    for i, g in enumerate(gradient(xs, TABLE[name](*xs))):
        if is_known(g):
            graphs[i,] = g
            seconds = enumerate(gradient(xs, g))
            graphs |= {(i, k): h for k, h in seconds if is_known(h)}
    with np.errstate(all="ignore"):
        return {
            order: np.broadcast_to(Composite(xs, [g]).compute(*arrays), len(points))
            for order, g in graphs.items()
        }


def error(found: float, truth: Truth, dtype: str) -> float:
    """The error of a derivative, relative to the scale of the truth."""
    info = np.finfo(dtype)
    if abs(truth.value) > mp.mpf(float(info.max)):
        expected = math.inf * int(mp.sign(truth.value))
        return 0.0 if found == expected else math.inf
    if not math.isfinite(found):
        return math.inf
    with mp.workdps(50):
        gap = abs(mp.mpf(found) - truth.value)
        return float(gap / (truth.scale + mp.mpf(float(info.tiny))))


@dataclass
class Worst:
    """The largest error of a row's derivatives of one order in a dtype."""

    size: float = -1.0
    order: Order = ()
    point: Sequence[float] = ()
    found: float = 0.0
    truth: float = 0.0
    count: int = 0
    above: int = 0


def limit_of(dtype: str, order: Order) -> float:
    return LIMITS[dtype, len(order)]


known = cache(truth)


def measured(name: str, dtype: str, points: Sequence[tuple[float, ...]]) -> dict[int, Worst]:
    """The largest errors of first and second derivatives, by the number of differentiations."""
    worst = {1: Worst(), 2: Worst()}
    points = [p for p in points if dtype == "float64" or float(NEXT_TO_ONE) not in map(abs, p)]
    for order, results in computed(name, dtype, points).items():
        entry = worst[len(order)]
        for point, found in zip(points, results.tolist()):
            try:
                exact = known(name, point, order)
            except Unknown:
                continue
            size = error(found, exact, dtype)
            entry.count += 1
            entry.above += size > limit_of(dtype, order)
            if size > entry.size:
                entry.size, entry.order, entry.point = size, order, point
                entry.found, entry.truth = found, float(exact.value)
    return worst


def differentiable() -> Iterator[str]:
    """The rows that have a derivative."""
    for name in REFERENCE:
        if TABLE[name].d is not None:
            yield name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="rows; all, if none is given")
    names = parser.parse_args().names or list(differentiable())
    failed = 0
    for name in names:
        points = grid(name)
        for dtype in ("float64", "float32"):
            for number, worst in measured(name, dtype, points).items():
                if not worst.count:
                    continue
                failed += worst.above > 0
                at = ", ".join(f"{x:.10g}" for x in worst.point)
                print(
                    f"{'ABOVE' if worst.above else 'ok':5} {name:12} {dtype} {number} {worst.size:8.1e}"
                    f"  {worst.above}/{worst.count} d{worst.order} at ({at}):"
                    f" {worst.found:.17g}, not {worst.truth:.17g}",
                    flush=True,
                )
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
