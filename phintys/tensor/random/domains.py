"""What the parameters of distributions may be: domains, and conditions on several parameters.

A condition is stated once, in native instructions, and is evaluated in compiled code, by NumPy and
by JAX (`ArrayInstructions`).  The conditions are those for which NumPy's methods raise; where NumPy
has no such distribution, those of ``scipy.stats``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from phintys.scalar.native import Native

#: the largest rate of `numpy.random.Generator.poisson`
POISSON_LAM_MAX = float(np.iinfo("int64").max - np.sqrt(np.iinfo("int64").max) * 10)


class Domain(NamedTuple):
    """A set of numbers.

    Attributes
    ----------
    dtype
        in which the numbers are drawn from and checked
    wrong
        NumPy's words for a number outside, with ``{}`` for the parameter
    holds
        ``holds(n, x)``: whether a number is in the domain, in native instructions; None: all are
    inside, outside
        some numbers in the domain and some others, for tests
    """

    dtype: str
    wrong: str
    holds: Callable[[Native, Any], Any] | None
    inside: tuple[float, ...]
    outside: tuple[float, ...]


class Condition(NamedTuple):
    """What parameters must satisfy: ``holds(n, *values)`` of those at some positions."""

    positions: tuple[int, ...]
    wrong: str
    holds: Callable[..., Any]


def has_no_sign(n: Native, x: Any) -> Any:
    """Whether a number is NaN, or without a negative sign, which -0.0 has."""
    return n.or_(n.gt(n.copysign(n.const(1.0, x), x), n.const(0.0, x)), n.ne(x, x))


def _not_0_or_less(n: Native, x: Any) -> Any:
    return n.not_(n.le(x, n.const(0.0, x)))


def _above_0(n: Native, x: Any) -> Any:
    return n.gt(x, n.const(0.0, x))


def _at_least_0(n: Native, x: Any) -> Any:
    return n.ge(x, n.const(0.0, x))


def _above_1(n: Native, x: Any) -> Any:
    return n.gt(x, n.const(1.0, x))


def _not_above_1(n: Native, x: Any) -> Any:
    return n.le(x, n.const(1.0, x))


_NAN, _INF = float("nan"), float("inf")
_MESSAGE_OF_P = "{0} < 0, {0} > 1 or {0} is NaN"

REAL = Domain("float64", "", None, (-1.5, 0.0, 2.0, _NAN, _INF), ())
#: NumPy's non-negative numbers: no negative sign, so not -0.0; or NaN
NON_NEGATIVE = Domain(
    "float64", "{} < 0", has_no_sign, (0.0, 0.7, 3.0, _INF, _NAN), (-1.0, -0.0, -_INF)
)
#: NumPy's positive numbers, or NaN
POSITIVE = Domain("float64", "{} <= 0", _not_0_or_less, (0.3, 1.0, 4.5, _NAN), (0.0, -0.0, -1.0))
#: non-negative numbers, without NaN
AT_LEAST_0 = Domain(
    "float64", "{0} < 0 or {0} is NaN", _at_least_0, (-0.0, 0.0, 0.7, 3.0), (-1.0, -_INF, _NAN)
)
#: positive numbers, without NaN
ABOVE_0 = Domain("float64", "{0} <= 0 or {0} is NaN", _above_0, (0.3, 1.0, 4.5), (0.0, -1.0, _NAN))
ABOVE_1 = Domain("float64", "{0} <= 1 or {0} is NaN", _above_1, (1.2, 2.0, 5.0), (1.0, 0.5, _NAN))
#: the rates of Poisson distributions
RATE = Domain(
    "float64",
    "{0} < 0, {0} is NaN or {0} is too large",
    lambda n, x: n.and_(_at_least_0(n, x), n.le(x, n.const(POISSON_LAM_MAX, x))),
    (-0.0, 0.0, 0.8, 12.0, 3e4),
    (-1.0, 1e19, _NAN, _INF),
)
#: probabilities
UNIT = Domain(
    "float64",
    _MESSAGE_OF_P,
    lambda n, x: n.and_(_at_least_0(n, x), _not_above_1(n, x)),
    (-0.0, 0.0, 0.2, 0.5, 0.9, 1.0),
    (-0.1, 1.1, _NAN),
)
#: probabilities other than 0
UNIT_ABOVE_0 = Domain(
    "float64",
    "{0} <= 0, {0} > 1 or {0} is NaN",
    lambda n, x: n.and_(_above_0(n, x), _not_above_1(n, x)),
    (0.05, 0.2, 0.5, 0.9, 1.0),
    (0.0, -0.1, 1.1, _NAN),
)
INTEGER = Domain("int64", "", None, (-3, 0, 17), ())
COUNT = Domain("int64", "{} < 0", _at_least_0, (0, 1, 5, 60), (-1, -7))
#: the numbers of things in a hypergeometric distribution
POPULATION = Domain(
    "int64",
    "{0} < 0 or {0} >= 1000000000",
    lambda n, x: n.and_(_at_least_0(n, x), n.lt(x, n.const(10**9, x))),
    (0, 1, 5, 60, 1000),
    (-1, 10**9),
)


class ArrayInstructions:
    """Native instructions on arrays: functions of a module, NumPy or ``jax.numpy``.

    >>> ArrayInstructions(np).le(np.array([0.5, 2.0]), 1.0)
    array([ True, False])
    """

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, _FUNCTIONS.get(name, name))

    def const(self, value: float, like: Any) -> Any:
        """``value`` with the dtype of ``like``."""
        return self.module.asarray(value, dtype=like.dtype)

    def cast(self, x: Any, dtype: str) -> Any:
        """``x`` converted to a dtype."""
        return x.astype(dtype)


#: native instructions whose functions have other names in NumPy
_FUNCTIONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal", "and_": "logical_and", "or_": "logical_or", "not_": "logical_not",
    "sub": "subtract", "mul": "multiply", "div": "divide",
}  # fmt: skip


def conditions_of(domains: Sequence[tuple[str, Domain]]) -> tuple[Condition, ...]:
    """The conditions that parameters, given with their names, are in their domains."""
    return tuple(
        Condition((k,), domain.wrong.format(name), domain.holds)
        for k, (name, domain) in enumerate(domains)
        if domain.holds is not None
    )


def first_violated(conditions: Sequence[Condition], values: Sequence[Any]) -> Condition | None:
    """The first condition that does not hold for all elements of arrays, or None.

    >>> conditions = conditions_of([("scale", AT_LEAST_0)])
    >>> first_violated(conditions, [np.array([1.0, -1.0])]).wrong
    'scale < 0 or scale is NaN'
    """
    n, arrays = ArrayInstructions(np), [np.asarray(v) for v in values]
    with np.errstate(all="ignore"):
        for condition in conditions:
            if not np.all(condition.holds(n, *(arrays[k] for k in condition.positions))):
                return condition
    return None
