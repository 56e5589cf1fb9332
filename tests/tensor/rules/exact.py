"""Exact values of expressions, and how far floats are from them.

Values are mpmath numbers with many digits, which neither overflow nor cancel.
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import count
from pathlib import Path

import mpmath
import numpy as np

from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Constant
from phintys.scalar import dtypes
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.reduce import Prod, Sum
from phintys.tensor.rules.facts import inverse_pairs
from phintys.tensor.rules.match import scalar_op_name
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax

sys.path.append(str(Path(__file__).parents[2] / "scalar"))
from rows import REFERENCE

#: 1 + exp(-800) has 70 digits after those of the 1
DIGITS = 420
#: what each result is changed by, relatively, to see which digits of the last one mean something
CHANGE = mpmath.mpf(10) ** (10 - DIGITS)
#: digits in which the changed results must agree
TRUSTED = mpmath.mpf(10) ** -20
#: less than any float, and more than what remains of numbers that cancel
NOTHING = mpmath.mpf(10) ** -400
NAN = mpmath.nan


def _exp(x):
    """The exponential; of large integers not by repeated multiplication."""
    half = mpmath.mpf(0.5)
    if abs(x) < 1e5:
        return mpmath.exp(x)
    with mpmath.extraprec(3000):
        return mpmath.exp(x - half) * mpmath.exp(half)


def _erfc(x):
    """The complement of erf; of large numbers the first term of its expansion."""
    if abs(x) < 1e10:
        return mpmath.erfc(x)
    tail = _exp(-x * x) / (abs(x) * mpmath.sqrt(mpmath.pi))
    return tail if x > 0 else 2 - tail


def _quotient(x, y):
    """``x / y``.  Zeros have no sign here, so infinite quotients are not known."""
    if y:
        return x / y
    return None if x else NAN


def _roughly(function):
    def found(x):
        with mpmath.workdps(15):
            return function(x)

    return found


SCALAR = {
    **REFERENCE,
    "add": lambda *xs: sum(xs[1:], xs[0]),
    "mul": lambda *xs: mpmath.fprod(xs),
    "true_div": lambda x, y: _quotient(x, y),
    "reciprocal": lambda x: _quotient(mpmath.mpf(1), x),
    "eq": lambda x, y: x == y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "and_": lambda x, y: x and y,
    "exp": _exp,
    "erf": lambda x: 1 - _erfc(x) if abs(x) > 100 else mpmath.erf(x),
    "erfc": _erfc,
    "expm1": lambda x: _exp(x) - 1,
    "sigmoid": lambda x: 1 / (1 + _exp(-x)),
    "softplus": lambda x: mpmath.log(1 + _exp(x)),
    "log1mexp": lambda x: mpmath.log(1 - _exp(x)),
    "logaddexp": lambda x, y: mpmath.log(_exp(x) + _exp(y)),
}
#: only the functions that undo these are applied to them: what matters is where they have values
ROUGH = ("erfinv", "erfcinv", "ndtri", "ndtri_exp")
SCALAR |= {name: _roughly(REFERENCE[name]) for name in ROUGH}
CHOICES = frozenset("eq lt le gt ge and_ switch second maximum minimum abs neg identity".split())
INVERSES = {(g.name, f.name) for g, f in inverse_pairs()}
REDUCTIONS = (Sum, Prod, Softmax, LogSoftmax, LogSumExp)


def exact(output, given):
    """The values of an expression: numbers, NaN where it has none, None where they are not known.

    An infinite input stands for a number beyond all floats: another one for each input, and for
    neighbours.
    """
    with mpmath.workdps(DIGITS):
        numbers = {v: _numbers(x, 320 + 10 * k) for k, (v, x) in enumerate(given.items())}
        found = [_values(output, numbers, k) for k in range(3)]
        return np.asarray(_each(_agreed, *found), dtype=object)


def _each(function, *arrays):
    return np.frompyfunc(function, len(arrays), 1)(*arrays)


def _numbers(values, exponent=0):
    huge = (mpmath.mpf(10) ** (exponent + k % 3) for k in count())
    return np.asarray(_each(lambda x: _number(x, huge), np.asarray(values)), dtype=object)


def _number(x, huge):
    if isinstance(x, bool | int):
        return x
    return mpmath.sign(x) * next(huge) if np.isinf(x) else mpmath.mpf(x)


def _agreed(first, *others):
    """A number that all have in common, else None."""
    if first is None or None in others:
        return None
    if any(mpmath.isnan(x) != mpmath.isnan(first) for x in others):
        return None
    if mpmath.isnan(first) or all(x == first for x in others):
        return first
    if all(abs(x) < NOTHING for x in (first, *others)):
        return mpmath.mpf(0)
    close = all(abs(x - first) <= TRUSTED * abs(first) for x in others)
    return first if close else None


def _values(output, numbers, seed):
    """The values of an expression whose results on the way are changed in their last digits."""
    rng = np.random.default_rng(seed)
    values = dict(numbers)
    for node in io_toposort(list(values), [output]):
        args = [_numbers(v.data) if isinstance(v, Constant) else values[v] for v in node.inputs]
        if _is_undone(node):
            args = [values[node.inputs[0].owner.inputs[0]], *args]
        made = np.asarray(_applied(node, args), dtype=object)
        if not _is_choice(node):
            factor = 1 + CHANGE * int(rng.integers(-2, 3))
            made = _each(lambda x, by=factor: None if x is None else x * by, made)
        values[node.outputs[0]] = np.asarray(made, dtype=object)
    return values[output]


def _is_choice(node):
    """Whether no digits of the results are new: arguments, their signs changed, truth values."""
    if not isinstance(node.op, Elemwise):
        return not isinstance(node.op, REDUCTIONS)
    return node.op.scalar_op.name in CHOICES or _is_undone(node)


def _is_undone(node):
    """Whether a function is applied to the result of the one that it is the inverse of."""
    if not isinstance(node.op, Elemwise):
        return False
    inner = scalar_op_name(node.inputs[0].owner)
    return (node.op.scalar_op.name, inner) in INVERSES


def _applied(node, args):
    op = node.op
    if isinstance(op, Elemwise):
        return _elementwise(node, args)
    if isinstance(op, Sum | Prod):
        reduce = np.add.reduce if isinstance(op, Sum) else np.multiply.reduce
        return reduce(args[0], axis=op.axes(node))
    if isinstance(op, Softmax | LogSoftmax | LogSumExp):
        return _of_rows(op, args[0])
    storage = [[None]]
    counts = [getattr(v.type, "dtype", None) in dtypes.DISCRETE for v in node.inputs]
    args[1:] = [a.astype("int64") if is_int else a for is_int, a in zip(counts, args)][1:]
    op.perform(node, args, storage)
    return storage[0][0]


def _elementwise(node, args):
    name = node.op.scalar_op.name
    if name.startswith("cast_"):
        return args[0]
    if _is_undone(node):
        return _each(lambda x, y: NAN if y is not None and mpmath.isnan(y) else x, *args)
    return _each(_real(SCALAR[name]), *args)


def _real(function):
    """A function that is NaN where it has no real value, None where that is not known."""

    @cache
    def found(*args):
        if None in args:
            return None
        if any(mpmath.isnan(x) for x in args):
            return NAN
        try:
            value = function(*args)
        except (ZeroDivisionError, ValueError):
            return NAN
        except OverflowError:
            return None
        return NAN if isinstance(value, mpmath.mpc) else value

    return found


def _of_rows(op, x):
    powers = _each(_real(_exp), x)
    total = np.add.reduce(powers, axis=op.axis, keepdims=not isinstance(op, LogSumExp))
    if isinstance(op, Softmax):
        return powers / total
    logarithm = _each(_real(mpmath.log), total)
    return x - logarithm if isinstance(op, LogSoftmax) else logarithm


# --------------------------------------------------------------------------------- errors


def errors(output, given, candidates):
    """How far each of the candidates is from the exact values, in units of the last place."""
    expected = exact(output, given)
    kind = np.dtype(output.type.dtype).type
    return [
        np.asarray(_each(lambda x, e: _error(kind(x), e), found, expected), dtype=float)
        for found in candidates
    ]


def _error(found, expected):
    if expected is None:
        return np.nan
    if mpmath.isnan(expected) or np.isnan(found):
        return 0.0 if mpmath.isnan(expected) and np.isnan(found) else np.inf
    with np.errstate(all="ignore"):
        nearest = type(found)(_float(expected))
    if found == nearest or np.isinf(found) or np.isinf(nearest):
        return 0.0 if found == nearest else np.inf
    with mpmath.workdps(DIGITS):
        distance = abs(mpmath.mpf(float(found)) - expected)
        return float(distance / mpmath.mpf(float(np.spacing(abs(nearest)))))


def _float(x):
    try:
        return float(x)
    except OverflowError:
        return float(mpmath.sign(x) * mpmath.inf)
