"""Sums in which the leading part of a function cancels other terms.

``log_ndtr(z)`` is ``-z**2 / 2`` and a small rest where z is far below 0.  In the logarithm of an
exponentially modified normal density it is added to a polynomial that is nearly ``z**2 / 2``; in
that of a truncated one, to the square of another number.  The polynomial of both is computed
without what cancels (see `phintys.tensor.polynomials`), and the rest is added.

As with logarithms, the rule that replaces sums and the gradient use the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from phintys.gradient.barriers import known_slopes
from phintys.gradient.forms import OtherForm, differentiated_as
from phintys.graph.variable import Apply, Variable
from phintys.scalar.op import TABLE, Leading
from phintys.tensor.apart import Names, Term, number, number_like
from phintys.tensor.as_written import as_written
from phintys.tensor.elemwise import cast, function_of, functions, scalar_op_name
from phintys.tensor.logarithms import LOGARITHMS, computed_from, differentiated_form, like_result
from phintys.tensor.polynomials import (
    Polynomial,
    atoms_of,
    expansion,
    is_product,
    leaves_of,
    product,
    reciprocal,
    scaled,
    slope,
    square_of,
    total,
    written,
)
from phintys.tensor.scaled import is_float, spread, sum_of

#: Terms of a sum that are looked at, at most, and factors of one.
MOST_TERMS, MOST_FACTORS = 12, 8


#: A polynomial as a variable of a dtype.
Writer = Callable[[Polynomial, str], Variable]


class Summand(NamedTuple):
    """A term of a sum, and its sign, 1 or -1."""

    sign: int
    of: Variable

    def value(self) -> Variable:
        if self.sign > 0:
            return self.of
        return functions.neg(self.of if is_float(self.of) else cast(self.of, "float64"))


class Core(NamedTuple):
    """A factor of a term that may have a leading part, and the other factors, above and below."""

    of: Variable
    sign: int
    above: list[Variable]
    below: list[Variable]

    def weighted(self, v: Variable) -> Variable:
        """The term with another variable in the place of this factor."""
        found = functions.mul(*self.above, v) if self.above else v
        for divisor in self.below:
            found = functions.true_div(found, divisor)
        return found if self.sign > 0 else functions.neg(found)


class Split(NamedTuple):
    """A term that is a polynomial and a rest where a condition holds, and another term elsewhere.

    None stands for the condition that is always true, and for the number 0.  The rest may be right
    ``everywhere``.
    """

    leading: Polynomial
    rest: Variable | None
    other: Variable
    where: Variable | None = None
    everywhere: Variable | None = None


class Opened:
    """The parts of a sum: what is looked through, and where that stops.

    Attributes
    ----------
    kept
        variables that are not looked through
    through
        the variables that were
    rests, names
        see `phintys.tensor.polynomials.expansion`
    """

    def __init__(self, kept: Container[Variable]) -> None:
        self.kept = kept
        self.through: list[Variable] = []
        self.rests: dict[Variable, Variable] = {}
        self.names: Names = []

    def polynomial(self, x: Variable) -> Polynomial:
        found = expansion(x, self.kept, self.rests, self.names)
        self.through += found.through
        return found.terms


def without_leading_parts(node: Apply) -> Variable | None:
    """The result of a sum, of which the leading part of a term cancels others; None for others."""
    return _rewritten(node, Opened(()), written)


def differentiated_sum(node: Apply, kept: Container[Variable]) -> OtherForm | None:
    """`without_leading_parts`, for the derivative."""
    opened = Opened(kept)
    result = _rewritten(node, opened, _with_slopes)
    return None if result is None else computed_from(result, node, opened.through, kept)


def differentiated_logarithm(node: Apply, kept: Container[Variable]) -> OtherForm | None:
    """That of `phintys.tensor.logarithms`; if it is a sum, that of the sum."""
    form = differentiated_form(node, kept)
    made = None if form is None else form.result.owner
    if form is None or made is None or scalar_op_name(made) not in ("add", "sub"):
        return form
    opened = Opened(kept)
    result = _rewritten(made, opened, _with_slopes)
    if result is None:
        return form
    return computed_from(result, node, opened.through, kept)._replace(absent=form.absent)


def _with_slopes(p: Polynomial, dtype: str) -> Variable:
    """A polynomial whose derivatives are polynomials that are written in the same way."""
    value = written(p, dtype)
    atoms = atoms_of(p)
    variables = [spread(cast(a.value(), dtype), value) for a in atoms]
    return known_slopes(value, variables, [written(slope(p, a), dtype) for a in atoms])


#: Terms of a sum that are looked at, at most: the work grows with the cube of their number.
MOST_SUMMANDS = 16


def _rewritten(node: Apply, opened: Opened, write: Writer) -> Variable | None:
    (out,) = node.outputs
    if not is_float(out):
        return None
    summands = _summands(out, opened)
    if len(summands) > MOST_SUMMANDS or not any(
        function_of(s.of)[0] in _COMPOUND for s in summands
    ):
        return None
    products = [_product(s, opened) for s in summands]
    cores = [p.core(opened) for p in products]
    if not _may_cancel(summands, products, cores, opened):
        return None
    terms = [scaled(opened.polynomial(s.of), s.sign) for s in summands]
    for k, core in enumerate(cores):
        others = [*summands[:k], *summands[k + 1 :]]
        beside = [*terms[:k], *terms[k + 1 :]]
        for split in () if core is None else _splits(core, beside, opened):
            found = _joined(split, others, beside, write, out.type.dtype)
            if found is not None:
                return like_result(found, node)
    found = _without_canceled_terms(summands, terms, write, out)
    return None if found is None else like_result(found, node)


def _may_cancel(
    summands: Sequence[Summand],
    products: Sequence[Product],
    cores: Sequence[Core | None],
    opened: Opened,
) -> bool:
    """Whether another term has all variables that every monomial of a term has in its polynomial.

    Of a term that is a product with a sum, or with a function that has a leading part.
    """
    leaves: list[set[Variable]] = []
    for k, (p, core) in enumerate(zip(products, cores, strict=True)):
        if core is None and not p.has_sum():
            continue
        leaves = leaves or [leaves_of(s.of, opened.kept) for s in summands]
        others = p.above_but_sums() if core is None else core.above
        common = {w for v in (*others, *p.below) for w in leaves_of(v, opened.kept)}
        if any(common <= found for j, found in enumerate(leaves) if j != k):
            return True
    return False


def _without_canceled_terms(
    summands: Sequence[Summand], terms: Sequence[Polynomial], write: Writer, out: Variable
) -> Variable | None:
    """The sum; None if no term of the polynomials of its terms vanishes.

    None too if the polynomial that remains is no product and has more terms than the sum: it might
    cancel where these do not.
    """
    dtype = out.type.dtype
    left = {t.key for t in total(terms, dtype)}
    gone = {t.key for p in terms for t in p} - left
    used = [k for k, p in enumerate(terms) if any(t.key in gone for t in p)]
    polynomial = total([terms[k] for k in used], dtype)
    if not used or (len(polynomial) > len(used) and not is_product(polynomial)):
        return None
    rest = [s.value() for k, s in enumerate(summands) if k not in used]
    found = sum_of(write(polynomial, dtype) if polynomial else None, *rest)
    return number_like(0, out) if found is None else found


def _cancelled(leading: Polynomial, beside: Sequence[Polynomial], dtype: str) -> list[int]:
    """The positions of polynomials in whose sum with ``leading`` a term of that vanishes."""
    keys = {t.key for t in leading}
    used = [k for k, p in enumerate(beside) if any(t.key in keys for t in p)]
    left = {t.key for t in total([leading, *(beside[k] for k in used)], dtype)}
    return used if not keys <= left else []


def _in_square(mixed: Term, beside: Sequence[Polynomial], dtype: str) -> tuple[list[int], float]:
    """The positions of polynomials that are a number times a square, with ``mixed``; the number."""
    terms = [(k, t) for k, p in enumerate(beside) for t in p]
    square = product([mixed], [mixed])[0].key
    for (j, s), (k, t) in combinations(terms, 2):
        if product([s], [t])[0].key == square:
            used = sorted({j, k})
            factor = square_of(total([[mixed], *(beside[n] for n in used)], dtype))
            if factor is not None:
                return used, factor
    return [], 0.0


def _joined(
    split: Split,
    others: Sequence[Summand],
    beside: Sequence[Polynomial],
    write: Writer,
    dtype: str,
) -> Variable | None:
    """The sum, in which the polynomials of the split term and others are one; None if none cancels.

    So where the condition of the split holds; everywhere, if nothing is left of the polynomials and
    the rest is right there.
    """
    used, where = _cancelled(split.leading, beside, dtype), split.where
    if not used and len(split.leading) == 1:
        used, factor = _in_square(split.leading[0], beside, dtype)
        if where is None and split.rest is not None:  # else the square and the rest may cancel
            where = (functions.ge if factor > 0 else functions.le)(split.rest, 0)
    if not used:
        return None
    polynomial = total([split.leading, *(beside[k] for k in used)], dtype)
    kept = [s.value() for k, s in enumerate(others) if k not in used]
    if not polynomial and split.everywhere is not None:
        return sum_of(split.everywhere, *kept)
    inside = sum_of(write(polynomial, dtype) if polynomial else None, split.rest)
    if where is None or inside is None:
        return sum_of(inside, *kept)
    outside = functions.add(*[others[k].value() for k in used], split.other)
    return sum_of(functions.switch(where, inside, outside), *kept)


# ---------------------------------------------------------------------------------- terms


def _summands(x: Variable, opened: Opened) -> list[Summand]:
    """The terms of a sum, also of sums in it; at most about `MOST_TERMS`."""
    found: list[Summand] = []
    stack = [Summand(1, x)]
    while stack and len(found) + len(stack) < MOST_TERMS:
        sign, v = stack.pop()
        parts = None if v in opened.kept and v is not x else _parts_of_sum(sign, v, opened)
        if parts is None:
            found.append(Summand(sign, v))
        else:
            opened.through.append(v)
            stack += reversed(parts)
    return [*found, *reversed(stack)]


def _parts_of_sum(sign: int, v: Variable, opened: Opened) -> list[Summand] | None:
    name, inputs = function_of(v) if is_float(v) else (None, [])
    if name == "add":
        return [Summand(sign, w) for w in inputs]
    if name == "sub":
        return [Summand(sign, inputs[0]), Summand(-sign, inputs[1])]
    if name == "neg":
        return [Summand(-sign, inputs[0])]
    if name == "mul" and len(inputs) == 2 and number(inputs[0]) == -1:
        return [Summand(-sign, inputs[1])]
    logarithm = _logarithm(v, opened)
    return None if logarithm is None else [Summand(sign, logarithm)]


def _logarithm(v: Variable, opened: Opened) -> Variable | None:
    """Another form of a logarithm as it is written, if that may have a leading part."""
    if not _is_logarithm_with_leading_part(v) or v.owner is None:
        return None
    form = differentiated_form(v.owner, opened.kept)
    return None if form is None else form.result


def _is_logarithm_with_leading_part(v: Variable) -> bool:
    name, stack = function_of(v)
    if name not in LOGARITHMS:
        return False
    for _ in range(MOST_FACTORS):
        if not stack:
            return False
        name, inputs = function_of(stack.pop())
        if name in _WITH_LEADING_LOGARITHMS:
            return True
        if name in ("mul", "true_div", "add", "sub", "neg"):
            stack += inputs
    return False


#: Functions of which a term may be composed that is a polynomial or has a leading part.
_COMPOUND = frozenset(
    ["neg", "mul", "true_div", "sqr", "pow", "switch", *LOGARITHMS]
    + [name for name, row in TABLE.items() if row.leading is not None]
)
#: Functions whose logarithm has a leading part.
_WITH_LEADING_LOGARITHMS = frozenset(["erf", "erfc", "ndtr", "i0"])


class Product(NamedTuple):
    """A term as a product: its sign, the factors above, and those below."""

    sign: int
    above: list[Variable]
    below: list[Variable]

    def core(self, opened: Opened) -> Core | None:
        """The only factor that may have a leading part, if there is one."""
        found = [k for k, v in enumerate(self.above) if v not in opened.kept and _is_core(v)]
        if len(found) != 1:
            return None
        (k,) = found
        return Core(self.above[k], self.sign, self.above[:k] + self.above[k + 1 :], self.below)

    def above_but_sums(self) -> list[Variable]:
        """The factors above that are not sums or squares of sums."""
        return [v for v in self.above if function_of(_base_of_square(v))[0] not in ("add", "sub")]

    def has_sum(self) -> bool:
        return len(self.above_but_sums()) < len(self.above)


def _base_of_square(v: Variable) -> Variable:
    """``x`` if ``v`` is the square of it, else ``v``."""
    name, inputs = function_of(v)
    return inputs[0] if name == "sqr" or (name == "pow" and number(inputs[1]) == 2) else v


def _product(s: Summand, opened: Opened) -> Product:
    """The factors of a term; at most about `MOST_FACTORS`."""
    found = Product(s.sign, [], [])
    sign, stack = s.sign, [s.of]
    while stack and len(found.above) + len(stack) < MOST_FACTORS:
        v = stack.pop()
        name, inputs = (None, []) if v in opened.kept else function_of(v)
        logarithm = None if v in opened.kept else _logarithm(v, opened)
        if logarithm is not None:
            stack.append(logarithm)
        elif name == "neg":
            sign, stack = -sign, [*stack, inputs[0]]
        elif name == "mul":
            stack += reversed(inputs)
        elif name == "true_div":
            stack.append(inputs[0])
            found.below.append(inputs[1])
        else:
            found.above.append(v)
    found.above.extend(reversed(stack))
    return found._replace(sign=sign)


def _is_core(v: Variable) -> bool:
    """Whether ``v`` is a function with a leading part, or a selection that may have one."""
    name, inputs = function_of(v)
    if not is_float(v):
        return False
    if name == "switch":
        return any(function_of(w)[0] in ("add", "sub") for w in inputs[1:])
    if name == "pow":
        return number(inputs[1]) is None
    return name is not None and v.owner is not None and v.owner.op.scalar_op.leading is not None


# ------------------------------------------------------------------------- leading parts


def _splits(core: Core, beside: Sequence[Polynomial], opened: Opened) -> Iterator[Split]:
    """The ways in which a term is a polynomial and a rest."""
    above = [opened.polynomial(v) for v in core.above]
    below = [reciprocal(v, opened.polynomial(v)) for v in core.below]
    weight = product([Term(core.sign, {})], *above, *below)
    if len(weight) != 1:
        return
    name, inputs = function_of(core.of)
    if name != "switch":
        found = _split_function(core, weight, opened)
        if found is not None:
            yield found
        return
    opened.through.append(core.of)
    condition, *branches = inputs
    for where, branch, other in (
        (condition, *branches),
        (functions.eq(condition, 0), *reversed(branches)),
    ):
        found = _split_branch(core, weight, branch, beside, opened)
        if found is not None:
            leading, rest = found
            yield Split(leading, rest, core.weighted(other), where)


def _split_function(core: Core, weight: Polynomial, opened: Opened) -> Split | None:
    node = core.of.owner
    assert node is not None, "a function is computed by a node"
    if not is_float(node.inputs[0]):
        return None
    opened.through.append(core.of)
    if scalar_op_name(node) == "pow":
        return _split_power(core, weight, node, opened)
    (y,) = node.inputs
    row: Leading = node.op.scalar_op.leading
    power = [opened.polynomial(y)] * row.power
    leading = product(weight, [Term(row.coefficient, {})], *power)
    everywhere = None
    if row.lowest == -np.inf and row.highest == np.inf:
        everywhere = core.weighted(row.rest(functions, y))
    where, bound = _where(row, y)
    other = core.weighted(as_written(core.of))
    if where is None:
        return Split(leading, everywhere, other, everywhere=everywhere)
    rest = row.rest(functions, functions.switch(where, y, number_like(bound, y)))
    return Split(leading, core.weighted(rest), other, where, everywhere)


def _split_power(core: Core, weight: Polynomial, node: Apply, opened: Opened) -> Split:
    """A power ``x**p`` is ``exp(p * log(x))``; the power ``x**(p - 1)`` is that over ``x``."""
    x, p = node.inputs
    more = _one_less(_beside_zero(p, x))
    below = [] if more is None else [functions.reciprocal(x)]
    leading = product(weight, *(opened.polynomial(v) for v in below))
    y = functions.mul(p if more is None else more, functions.log(x))
    where = functions.lt(functions.abs(y), 1)
    growth = functions.expm1(functions.switch(where, y, 0))
    rest = functions.mul(*below, growth) if below else growth
    return Split(leading, core.weighted(rest), core.weighted(as_written(core.of)), where)


def _beside_zero(p: Variable, x: Variable) -> Variable:
    """What the exponent ``p`` of a power of ``x`` is where x is not 0."""
    name, inputs = function_of(p)
    if name != "switch" or (condition := function_of(inputs[0]))[0] != "and_":
        return p
    at_zero = [function_of(v) for v in condition[1]]
    is_one = any(name == "eq" and v[0] is x and number(v[1]) == 0 for name, v in at_zero)
    return inputs[2] if is_one else p


def _one_less(v: Variable) -> Variable | None:
    """``x`` if ``v`` is ``x - 1``, else None."""
    name, inputs = function_of(v)
    if name not in ("add", "sub") or len(inputs) != 2:
        return None
    first, second = inputs
    if name == "sub":
        return first if number(second) == 1 else None
    return second if number(first) == -1 else first if number(second) == -1 else None


def _where(row: Leading, y: Variable) -> tuple[Variable | None, float]:
    """Where a function has its leading part, and the rest is small; and a number there."""
    if np.isfinite(row.near):
        return functions.lt(functions.abs(y), number_like(row.near, y)), 0.0
    if np.isfinite(row.lowest):
        return functions.gt(y, number_like(row.lowest, y)), row.lowest
    if np.isfinite(row.highest):
        return functions.lt(y, number_like(row.highest, y)), row.highest
    return None, 0.0


def _split_branch(
    core: Core,
    weight: Polynomial,
    branch: Variable,
    beside: Sequence[Polynomial],
    opened: Opened,
) -> tuple[Polynomial, Variable | None] | None:
    """The terms of a branch that are in other polynomials too, and the rest of the term."""
    keys = {t.key for p in beside for t in p}
    leading: list[Polynomial] = []
    rest: list[Variable] = []
    for s in _summands(branch, opened):
        terms = product(weight, scaled(opened.polynomial(s.of), s.sign))
        if any(t.key in keys for t in terms):
            leading.append(terms)
        else:
            rest.append(s.value())
    if not leading:
        return None
    left = sum_of(*rest)
    return total(leading), None if left is None else core.weighted(left)


for _name in ("add", "sub"):
    differentiated_as(getattr(functions, _name), differentiated_sum)
for _name in LOGARITHMS:
    differentiated_as(getattr(functions, _name), differentiated_logarithm)
