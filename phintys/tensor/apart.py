"""Differences of expressions, in which equal terms cancel before they are computed.

``(x - m) / s - (y - m) / s`` is ``(x - y) / s``: rounding of the terms with ``m``, which may be
much larger than the difference, does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.convert import constant
from phintys.tensor.elemwise import DimShuffle, function_of, functions
from phintys.tensor.variable import TensorConstant

#: Parts of an expression that are looked at, at most, and terms into which it is expanded.
MOST_PARTS, MOST_TERMS = 40, 8

#: Functions that are products of powers of their arguments: the power of each argument.
_PRODUCTS: dict[str, tuple[int, ...]] = {
    "identity": (1,),
    "neg": (1,),
    "reciprocal": (-1,),
    "sqr": (2,),
    "true_div": (1, -1),
}


class Term(NamedTuple):
    """A number times powers of variables."""

    factor: float
    powers: dict[Variable, int]

    @property
    def key(self) -> frozenset[tuple[Variable, int]]:
        return frozenset(self.powers.items())


def difference(x: Variable, y: Variable) -> Variable:
    """``x - y``, without the terms that are in both; it may have fewer axes."""
    plain = functions.sub(x, y)
    first, second = expanded(x), expanded(y)
    if first is None or second is None:
        return plain
    rest = {t.key: t for t in first}
    for t in second:
        old = rest.get(t.key)
        left = -t.factor if old is None else old.factor - t.factor
        rest[t.key] = Term(left, t.powers)
    left_over = [t for t in rest.values() if t.factor != 0]
    if not left_over or len(left_over) == len(first) + len(second):
        return plain
    return _sum_of(left_over)


def expanded(x: Variable) -> list[Term] | None:
    """Different terms whose sum ``x`` is; None if these are many."""
    found: dict[frozenset[tuple[Variable, int]], Term] = {}
    open_terms: list[tuple[float, dict[Variable, int], list[tuple[Variable, int]]]]
    open_terms = [(1.0, {}, [(x, 1)])]
    for _ in range(MOST_PARTS):
        if not open_terms:
            return list(found.values()) if len(found) <= MOST_TERMS else None
        factor, powers, left = open_terms.pop()
        if not left:
            term = Term(factor, {v: p for v, p in powers.items() if p})
            old = found.get(term.key)
            found[term.key] = term if old is None else Term(factor + old.factor, term.powers)
            continue
        v, power = left.pop()
        known = number(v)
        name, inputs = function_of(v) if dtypes.is_float(v.type.dtype) else (None, [])
        if known:
            open_terms.append((factor * known**power, powers, left))
        elif name in ("add", "sub") and power == 1:
            for w, sign in reversed(list(zip(inputs, _signs(name, len(inputs)), strict=True))):
                open_terms.append((sign * factor, dict(powers), [*left, (w, 1)]))
        elif name == "mul" or name in _PRODUCTS:
            each = _PRODUCTS.get(name, (1,) * len(inputs))
            sign = -1 if name == "neg" and power % 2 else 1
            more = [(w, power * p) for w, p in zip(inputs, each, strict=True)]
            open_terms.append((sign * factor, powers, [*left, *reversed(more)]))
        else:
            open_terms.append((factor, {**powers, v: powers.get(v, 0) + power}, left))
    return None


def number(v: Variable) -> float | None:
    """The number that every element of a constant equals, in any number of axes; else None."""
    while v.owner is not None and type(v.owner.op) is DimShuffle:
        v = v.owner.inputs[0]
    if not isinstance(v, TensorConstant) or dtypes.is_complex(v.type.dtype):
        return None
    value = v.data if v.data.size == 1 else v.unique_value
    return None if value is None else float(value.item())


def _signs(name: str, count: int) -> list[int]:
    return [1, -1] if name == "sub" else [1] * count


def _sum_of(terms: Sequence[Term]) -> Variable:
    """The sum of terms, of which common factors are taken out."""
    first = terms[0].powers
    common = {v: p for v, p in first.items() if all(t.powers.get(v) == p for t in terms)}
    sizes = {abs(t.factor) for t in terms}
    size = sizes.pop() if len(sizes) == 1 else 1.0
    rests = [{v: p for v, p in t.powers.items() if v not in common} for t in terms]
    total: Variable | None = None
    for t, rest in zip(terms, rests, strict=True):
        value = _product(abs(t.factor) / size, rest)
        if t.factor < 0:
            total = functions.neg(value) if total is None else functions.sub(total, value)
        else:
            total = value if total is None else functions.add(total, value)
    assert total is not None, "there are terms"
    return _product(size, common, [total])


def _product(factor: float, powers: dict[Variable, int], others: Sequence[Variable] = ()) -> Variable:
    """A number times powers of variables, and times other variables."""
    above = [*others, *(_power(v, p) for v, p in powers.items() if p > 0)]
    below = [_power(v, -p) for v, p in powers.items() if p < 0]
    dtype = dtypes.upcast(*[v.type.dtype for v in (*others, *powers)]) if above or below else ""
    if factor != 1 or not above:
        above.append(constant(np.asarray(factor, dtypes.float_of(dtype or "float64"))))
    top = functions.mul(*above) if len(above) > 1 else above[0]
    if not below:
        return top
    return functions.true_div(top, functions.mul(*below) if len(below) > 1 else below[0])


def _power(v: Variable, power: int) -> Variable:
    return v if power == 1 else functions.sqr(v) if power == 2 else functions.pow(v, power)
