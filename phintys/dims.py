"""Symbolic lengths: hash-consed integer expressions.

A `Dim` is an integer that is known when a function is called: a constant, a symbol (the length of
an input along an axis, the value of an integer scalar), or an expression of those.  Dims are
interned, so ``is`` decides equality.  Sums and products are kept in a normal form (sorted,
constants folded, like terms collected), hence ``n + 1 - 1 is n`` and ``2 * n is n + n``.

>>> n, m = Dim.symbol("n"), Dim.symbol("m")
>>> n + 1 - 1 is n
True
>>> (n * m).render()
'm*n'
>>> (n + n + 3).evaluate({n: 4})
11
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from hashlib import blake2b
from typing import Any, Union

from phintys.memo import Memo

DimLike = Union["Dim", int]

#: ops of expressions without operands
_LEAVES = frozenset(("const", "symbol"))
_NO_NAMES: frozenset[Any] = frozenset()
#: the sum or difference of two integers of smaller magnitude fits in 64 bits
_MODERATE = 2**62
#: magnitudes of integers that do not fit in 64 bits (but for the least one)
_OVERFLOW = 2**63
#: Lengths and products of lengths are taken to be at most this, but only to tell whether something
#: overflows (`Dim.is_exact`): products of lengths that are no size of an array may be more.
_LONGEST = 2**40
#: the least and the greatest integer of 64 bits
_ANY = (-_OVERFLOW, _OVERFLOW - 1)
#: the largest `Dim.size` that is counted; it doubles with each step of some programs
_HUGE = 2**30
#: characters of the longest text by which expressions are sorted
_LONG_KEY = 500

_INTERNED: Memo[tuple[Any, ...], Dim] = Memo(2048, "lengths", weak=True)


class Dim:
    """An interned integer expression.  Build with `Dim.const`, `Dim.symbol` and operators.

    ``op`` is one of ``const`` (args: the int), ``symbol`` (args: the key, any hashable),
    ``add`` / ``mul`` (args: dims, normalised), ``floordiv``, ``mod``, ``max``, ``min`` (two dims).
    """

    __slots__ = (
        "__weakref__",
        "args",
        "bound",
        "high",
        "is_exact",
        "is_moderate",
        "low",
        "names",
        "op",
        "order_key",
        "size",
        "value",
        "weight",
    )
    op: str
    args: tuple[Any, ...]
    size: int  #: number of constants and symbols in the expression, repetitions counted
    value: int | None  #: the integer, if this is a constant
    order_key: Any  #: see `_sort_key`; None before it is asked for
    #: the largest magnitude of the expression and of all parts for symbols of at most `_LONGEST`;
    #: `_OVERFLOW` if it is more
    bound: int
    #: the expression is at most this many times a product of its lengths; `_OVERFLOW` if it
    #: depends on other integers, which have any value
    weight: int
    #: the least and the greatest value, as 64 bits compute it: any if it may overflow
    low: int
    high: int
    is_exact: bool  #: whether neither it nor a part of it may overflow; see `_LONGEST`
    is_moderate: bool  #: whether it is made of lengths and small constants, and cannot overflow
    names: frozenset[Dim]  #: the symbols among the operands and in them

    def __new__(cls, op: str, args: tuple[Any, ...]) -> Dim:
        key = (op, args)
        found = _INTERNED[key]
        if found is None:
            found = object.__new__(cls)
            found.op, found.args = op, args
            found.value = args[0] if op == "const" else None
            found.order_key = None
            found._set_facts()
            found = _INTERNED.keep(key, found)
        return found

    def _set_facts(self) -> None:
        """Set what follows from the facts about the operands."""
        op, args = self.op, self.args
        if op == "const":
            self.size, self.names, self.bound = 1, _NO_NAMES, min(abs(args[0]), _OVERFLOW)
            self.weight = self.bound
            self._set_range((args[0], args[0]), True)
            self.is_moderate = self.bound < _MODERATE
        elif op == "symbol":
            self.size, self.names, self.bound = 1, _NO_NAMES, _LONGEST
            self.is_moderate = isinstance(args[0], tuple) and args[0][0] == "len"
            self.weight = 1 if self.is_moderate else _OVERFLOW
            self._set_range((0, _OVERFLOW - 1) if self.is_moderate else _ANY, True)
        else:
            self.size = min(sum([a.size for a in args]), _HUGE)
            self.names = _NO_NAMES.union(*[a.symbols() for a in args])
            self.bound = min(_bound(op, args), _OVERFLOW)
            self.weight = min(_weight(op, args), _OVERFLOW)
            self._set_range(_range(op, args), all([a.is_exact for a in args]))
            multiple = op != "mul" or (len(args) == 2 and args[0].value is not None)
            is_moderate = multiple and self.bound < _MODERATE
            self.is_moderate = is_moderate and all([a.is_moderate for a in args])

    def _set_range(self, values: tuple[int, int], is_exact: bool) -> None:
        """Set the range from that of the exact values; ``is_exact`` says so of the operands."""
        least, most = _ANY
        fits = least <= values[0] and values[1] <= most
        self.is_exact = is_exact and (fits or self.weight * _LONGEST < _OVERFLOW)
        known = fits or self.is_exact
        self.low, self.high = (max(values[0], least), min(values[1], most)) if known else _ANY

    @property
    def is_nonnegative(self) -> bool:
        """Whether it is provably at least 0."""
        return self.low >= 0

    @property
    def fits(self) -> bool:
        """Whether constants do not make the expression, or a part of it, overflow 64 bits."""
        return self.bound < _OVERFLOW

    # ----- constructors
    @staticmethod
    def const(value: int) -> Dim:
        """The constant ``value``."""
        return Dim("const", (int(value),))

    @staticmethod
    def symbol(key: Any) -> Dim:
        """The symbol with a hashable ``key``.

        A key ``("len", ...)`` stands for a length, which is known to be at least 0.
        """
        return Dim("symbol", (key,))

    # ----- comparison: by identity, which interning makes the same as by value
    __hash__ = object.__hash__  # runs in C; dims are keys of many dicts

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.op == "const" and self.args[0] == other
        return self is other

    def __bool__(self) -> bool:
        raise TypeError(f"The truth value of the symbolic length {self.render()} is not known.")

    # ----- arithmetic
    def __add__(self, other: DimLike) -> Dim:
        other = as_dim(other)
        if other.op == "const":
            if other.args[0] == 0:
                return self
            if self.op == "const":
                return Dim.const(self.args[0] + other.args[0])
        return _sum((self, other))

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return Dim.const(-self.args[0]) if self.op == "const" else _product((MINUS_ONE, self))

    def __sub__(self, other: DimLike) -> Dim:
        return self + (-as_dim(other))

    def __rsub__(self, other: DimLike) -> Dim:
        return as_dim(other) - self

    def __mul__(self, other: DimLike) -> Dim:
        return _product((self, as_dim(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> Dim:
        other = as_dim(other)
        if other.value == 1 or self.value == 0:
            return self
        if self.value is not None and other.value:
            return Dim.const(self.value // other.value)
        found = None if _may_be_zero(other) else _divide_exactly(self, other)
        if found is None:
            found = _divided_once(self, other)
        return Dim("floordiv", (self, other)) if found is None else found

    def __rfloordiv__(self, other: DimLike) -> Dim:
        return as_dim(other) // self

    def __mod__(self, other: DimLike) -> Dim:
        other = as_dim(other)
        if other.value == 1:
            return ZERO
        if self.value is not None and other.value:
            return Dim.const(self.value % other.value)
        return Dim("mod", (self, other))

    # ----- use
    def evaluate(self, symbols: Mapping[Dim, int]) -> int:
        """The value of the expression under the values of its symbols.

        Division by 0 gives 0.  KeyError names a symbol that has no value.
        """
        known: dict[Dim, int] = {}
        for part in self.parts(symbols.__contains__):
            if part in symbols:
                known[part] = symbols[part]
            elif part.op == "const":
                known[part] = part.args[0]
            elif part.op == "symbol":
                raise KeyError(part.render())
            else:
                known[part] = _EVALUATE[part.op]([known[a] for a in part.args])
        return known[self]

    def substitute(self, replace: Mapping[Dim, Dim]) -> Dim:
        """The expression with the keys of ``replace`` replaced by their values, in normal form."""
        if self.op in _LEAVES:
            return replace.get(self, self)
        known: dict[Dim, Dim] = {}
        for part in self.parts(replace.__contains__):
            known[part] = replace.get(part, part)
            if part.op not in _LEAVES and part not in replace:
                args = tuple([known[a] for a in part.args])
                if args != part.args:
                    known[part] = _BUILD[part.op](args)
        return known[self]

    def parts(self, is_known: Callable[[Dim], bool] | None = None) -> Iterator[Dim]:
        """The expression and all expressions in it, each once, operands first.

        Operands of those that are known are left out.  Expressions share parts: with a visit for
        each use of a part, the time could double with each step of a program.
        """
        seen: set[Dim] = set()
        stack = [self]
        while stack:
            part = stack[-1]
            missing = ()
            if not (part in seen or part.op in _LEAVES or (is_known and is_known(part))):
                missing = [a for a in part.args if a not in seen]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if part not in seen:
                seen.add(part)
                yield part

    def symbols(self) -> frozenset[Dim]:
        """The symbols that occur in the expression."""
        return frozenset((self,)) if self.op == "symbol" else self.names

    def render(self, name: Callable[[Any], str] = str) -> str:
        """Text of the expression; ``name`` turns a symbol's key into text."""
        known: dict[Dim, str] = {}
        for part in self.parts():
            known[part] = _text(part, [known.get(a, "") for a in part.args], name)
        return known[self]

    def __repr__(self) -> str:
        return f"Dim({self.render()})"

    def __reduce__(self) -> Any:
        return Dim, (self.op, self.args)


def _bound(op: str, args: Sequence[Dim]) -> int:
    """The largest magnitude of an expression or of an operand; see `Dim.bound`."""
    bounds = [a.bound for a in args]
    most = max(bounds)
    if op == "add":
        return sum(bounds)
    if op == "mul" and args[0].value is not None:
        return bounds[0] * max(bounds[1:])
    return most


def _weight(op: str, args: Sequence[Dim]) -> int:
    """The weight of an expression; see `Dim.weight`."""
    weights = [a.weight for a in args]
    if op == "add":
        return sum(weights)
    if op == "mul":
        return math.prod(weights)
    if op == "floordiv":
        return weights[0]
    if op == "mod":
        return weights[1]
    both = op == "min" and all([a.low >= 0 for a in args])
    return min(weights) if both else max(weights)


def _range(op: str, args: Sequence[Dim]) -> tuple[int, int]:
    """The least and the greatest value of an expression, for values of its operands in range."""
    lows, highs = [a.low for a in args], [a.high for a in args]
    if op == "add":
        return sum(lows), sum(highs)
    if op == "max" or op == "min":
        return _EVALUATE[op](lows), _EVALUATE[op](highs)
    if op == "mul":
        c = args[0].value
        low, high = _range_of_product(args if c is None else args[1:])
        return (low, high) if c is None else (min(c * low, c * high), max(c * low, c * high))
    by = args[1]
    if op == "mod":
        return (0, max(by.high - 1, 0)) if by.low >= 0 else _ANY
    if by.value is not None and by.value > 0:
        return lows[0] // by.value, highs[0] // by.value
    most = max(-lows[0], highs[0])
    return (0, highs[0]) if lows[0] >= 0 and by.low >= 0 else (-most, most)


def _range_of_product(factors: Sequence[Dim]) -> tuple[int, int]:
    """The range of a product of factors that are no constants."""
    if len(factors) == 1:
        return factors[0].low, factors[0].high
    most = math.prod([max(-f.low, f.high) for f in factors])
    return (0 if all([f.low >= 0 for f in factors]) else -most), most


def are_of_one_array(lengths: Sequence[Dim]) -> bool:
    """Whether lengths are of different axes of one array, so that their product cannot overflow."""
    asked = [n for n in lengths if n.value not in (0, 1)]
    if len(asked) <= 1:
        return True
    keys = [n.args[0] for n in asked if n.op == "symbol" and n.is_nonnegative]
    return len({key[1] for key in keys}) == 1 and len(set(keys)) == len(asked)


def as_dim(x: DimLike) -> Dim:
    """A Dim from a Dim or an integer."""
    return x if isinstance(x, Dim) else Dim.const(x)


def exact_operands(d: Dim) -> tuple[list[Dim], int]:
    """The operands of an expression, and the number of operands at the end that are subtracted.

    For generated code that detects overflow of 64 bits: ``a - b`` may fit where ``-b`` does not.

    >>> n, m = Dim.symbol("n"), Dim.symbol("m")
    >>> exact_operands(n - m)
    ([Dim(n), Dim(m)], 1)
    """
    if d.op == "const" or d.op == "symbol":
        return [], 0
    negated = [a.args[1] for a in d.args if d.op == "add" and _is_opposite(a)]
    if len(negated) == len(d.args):
        return list(d.args), 0
    plain = [a for a in d.args if d.op != "add" or not _is_opposite(a)]
    return plain + negated, len(negated)


def _is_opposite(d: Dim) -> bool:
    """Whether ``d`` is ``-1 * x``."""
    return d.op == "mul" and len(d.args) == 2 and d.args[0].value == -1


def dim_max(a: DimLike, b: DimLike) -> Dim:
    """The larger of two lengths; one of them, where the comparison is provable."""
    a, b = as_dim(a), as_dim(b)
    if a is b or _is_at_most(b, a):
        return a
    if _is_at_most(a, b):
        return b
    first, other = _ordered((a, b))
    inner = _clipped_inside(other) if first is ZERO else None
    return Dim("max", (first, other)) if inner is None else dim_max(ZERO, inner)


def _clipped_inside(d: Dim) -> Dim | None:
    """``x - k``, if ``d`` is ``max(0, x) - k``, else None: both are clipped to the same length.

    >>> n = Dim.symbol(("len", 0, 0))
    >>> slice_range(1, None, 1, slice_range(2, None, 1, n)[1])[1].render(lambda key: "n")
    'max(0, -3 + n)'
    """
    if d.op != "add" or len(d.args) != 2 or not d.args[0].value or d.args[1].op != "max":
        return None
    shift, (least, x) = d.args[0], d.args[1].args
    return x + shift if shift.value < 0 and least is ZERO and _is_moderate(x) else None


def dim_min(a: DimLike, b: DimLike) -> Dim:
    """The smaller of two lengths; one of them, where the comparison is provable."""
    a, b = as_dim(a), as_dim(b)
    if a is b or _is_at_most(a, b):
        return a
    if _is_at_most(b, a):
        return b
    return Dim("min", _ordered((a, b)))


def _is_at_most(a: Dim, b: Dim) -> bool:
    """Whether one length is provably at most another one: neither overflows."""
    return a.high <= b.low or (a.is_exact and b.is_exact and (b - a).is_nonnegative)


def coefficients(d: Dim) -> dict[Dim, int]:
    """The terms of a sum, with their constant factors; that of `ONE` is the constant.

    >>> n = Dim.symbol(("len", 0, 0))
    >>> coefficients(2 * n - 3) == {n: 2, ONE: -3}
    True
    """
    terms = d.args if d.op == "add" else (d,)
    split = [(t.value, ONE) if t.value is not None else _split_coefficient(t) for t in terms]
    return {rest: c for c, rest in split}


def total(dims: Any) -> Dim:
    """The sum of an iterable of lengths; 0 if it is empty.  Linear, unlike `sum`."""
    return _sum(tuple(as_dim(d) for d in dims))


def product(dims: Any) -> Dim:
    """The product of an iterable of lengths; 1 if it is empty."""
    return _product(tuple(as_dim(d) for d in dims))


def _text(d: Dim, texts: list[str], name: Callable[[Any], str]) -> str:
    """Text of an expression with the texts of its operands."""
    if d.op == "const":
        return str(d.args[0])
    if d.op == "symbol":
        return name(d.args[0])
    if d.op == "mul":
        return "*".join(f"({t})" if a.op == "add" else t for a, t in zip(d.args, texts))
    if d.op == "add":
        return " + ".join(texts)
    return f"{d.op}({', '.join(texts)})"


def _sort_key(d: Dim) -> tuple[bool, str]:
    """What expressions are sorted by: their text, with a hash in place of each long part."""
    if d.order_key is None:
        for part in d.parts(_has_key):
            part.order_key = part.order_key or _key_of(part)
    found: Any = d.order_key
    return found


def _key_of(d: Dim) -> tuple[bool, str]:
    """The key of an expression whose operands have theirs."""
    operands = () if d.op in _LEAVES else d.args
    text = _text(d, [a.order_key[1] for a in operands], repr)
    if len(text) > _LONG_KEY:
        text = f"{d.op} {blake2b(text.encode(), digest_size=16).hexdigest()}"
    return d.op != "const", text


def _has_key(d: Dim) -> bool:
    return d.order_key is not None


def _ordered(dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return tuple(sorted(dims, key=_sort_key))


def _sum(terms: tuple[Dim, ...]) -> Dim:
    """The sum in normal form: flattened, like terms collected, constants folded."""
    total = 0
    coefficients: dict[Dim, int] = {}
    stack = list(terms)
    while stack:
        t = stack.pop()
        if t.op == "const":
            total += t.args[0]
        elif t.op == "add":
            stack.extend(t.args)
        else:
            c, rest = _split_coefficient(t)
            coefficients[rest] = coefficients.get(rest, 0) + c
    parts = [
        rest if c == 1 else _product((Dim.const(c), rest)) for rest, c in coefficients.items() if c
    ]
    if total or not parts:
        parts.append(Dim.const(total))
    return parts[0] if len(parts) == 1 else Dim("add", _ordered(tuple(parts)))


def _split_coefficient(t: Dim) -> tuple[int, Dim]:
    """``t`` as (constant factor, rest)."""
    if t.op == "mul" and t.args[0].op == "const":
        rest = t.args[1:]
        return t.args[0].args[0], rest[0] if len(rest) == 1 else Dim("mul", rest)
    return 1, t


def _product(factors: tuple[Dim, ...]) -> Dim:
    """The product in normal form: flattened, constants folded.

    A constant times a sum is distributed over the sum.
    """
    if len(factors) == 2 and factors[0].op == "const" and factors[1].op in _ATOMS:
        c = factors[0].args[0]
        return factors[1] if c == 1 else Dim("mul", factors) if c else ZERO
    c = 1
    rest: list[Dim] = []
    stack = list(factors)
    while stack:
        f = stack.pop()
        if f.op == "const":
            c *= f.args[0]
        elif f.op == "mul":
            stack.extend(f.args)
        else:
            rest.append(f)
    if c == 0 or not rest:
        return Dim.const(c)
    if len(rest) == 1 and rest[0].op == "add" and c != 1:
        return _sum(tuple(_product((Dim.const(c), t)) for t in rest[0].args))
    parts = _ordered(tuple(rest))
    if c != 1:
        parts = (Dim.const(c), *parts)
    return parts[0] if len(parts) == 1 else Dim("mul", parts)


def quotient(a: Dim, b: Dim) -> Dim:
    """``a // b`` where 0 for ``b`` is an error, so that factors of both may be cancelled.

    >>> n, m = Dim.symbol(("len", 0, 0)), Dim.symbol(("len", 0, 1))
    >>> quotient(n * m, m) is n
    True
    """
    found = _divide_exactly(a, b)
    return a // b if found is None else found


def _may_be_zero(d: Dim) -> bool:
    """Whether 0 is in the range of a factor."""
    return any([f.low <= 0 <= f.high for f in (d.args if d.op == "mul" else (d,))])


def _divide_exactly(a: Dim, b: Dim) -> Dim | None:
    """``a / b`` where the factors of ``b`` are factors of ``a``, which is exact, else None."""
    if not a.is_exact:
        return None
    fa = list(a.args) if a.op == "mul" else [a]
    for f in b.args if b.op == "mul" else (b,):
        if f in fa:
            fa.remove(f)
        elif f.value and fa and fa[0].value is not None and fa[0].value % f.value == 0:
            fa[0] = Dim.const(fa[0].value // f.value)
        else:
            return None
    return _product(tuple(fa))


def _divided_once(a: Dim, b: Dim) -> Dim | None:
    """``a // b`` with one division, if ``a`` is ``x // k`` plus a constant, else None.

    >>> n = Dim.symbol(("len", 0, 0))
    >>> slice_range(None, None, 2, slice_range(None, None, 2, n)[1])[1].render(lambda key: "n")
    'floordiv(3 + n, 4)'
    """
    shift, whole = 0, a
    if a.op == "add" and len(a.args) == 2 and a.args[0].value is not None:
        shift, whole = a.args[0].value, a.args[1]
    if whole.op != "floordiv":
        return None
    x, k = whole.args[0], whole.args[1].value or 0
    if not (k > 0 and b.value and 0 < b.value * k < _MODERATE and _is_moderate(x)):
        return None
    return (x + shift * k) // (b.value * k) if abs(shift * k) < _MODERATE else None


#: ops of expressions that are a single factor of a product
_ATOMS = frozenset(("symbol", "floordiv", "mod", "max", "min"))
_EVALUATE: dict[str, Callable[[list[int]], int]] = {
    "add": sum,
    "mul": lambda v: reduce(lambda a, b: a * b, v, 1),
    "floordiv": lambda v: v[0] // v[1] if v[1] else 0,
    "mod": lambda v: v[0] % v[1] if v[1] else 0,
    "max": max,
    "min": min,
}
_BUILD: dict[str, Callable[[tuple[Dim, ...]], Dim]] = {
    "add": _sum,
    "mul": _product,
    "floordiv": lambda a: a[0] // a[1],
    "mod": lambda a: a[0] % a[1],
    "max": lambda a: dim_max(*a),
    "min": lambda a: dim_min(*a),
}

ZERO = Dim.const(0)
ONE = Dim.const(1)
MINUS_ONE = Dim.const(-1)


def slice_range(
    start: DimLike | None, stop: DimLike | None, step: DimLike, n: DimLike, forward: bool = True
) -> tuple[Dim, Dim]:
    """First position and number of elements of the slice ``start:stop:step`` of ``n`` elements.

    The first position is in range unless the number is 0.  ``forward`` says whether a symbolic step
    is positive; a constant step has its own sign.

    Clipping to the array makes each bound the maximum or minimum of two candidates, and the
    distance of the bounds the minimum of up to four differences.  Candidates that provably do not
    count are left out, so the lengths of ``x[2:]`` and ``x[:-2]`` are the same Dim.  Bounds that
    may be any 64-bit integer are clipped before they are subtracted, so that nothing overflows.

    >>> n = Dim.symbol(("len", 0, 0))
    >>> [d.render(lambda key: "n") for d in slice_range(1, -1, 1, n)]
    ['1', 'max(0, -2 + n)']
    >>> slice_range(2, None, 1, n)[1] is slice_range(None, -2, 1, n)[1]
    True
    """
    n, step = as_dim(n), as_dim(step)
    if step.value is not None:
        forward = step.value > 0
    low, high = (ZERO, n) if forward else (MINUS_ONE, n - 1)
    first, last = (low, high) if forward else (high, low)
    if not (_is_moderate(start) and _is_moderate(stop)):
        begin, end = (
            limit if bound is None else dim_min(dim_max(from_end(bound, n), low), high)
            for bound, limit in ((start, first), (stop, last))
        )
        return begin, _count([end - begin if forward else begin - end], step, forward)
    sign = 1 if forward else -1
    begins, ends = _clipped(start, first, n, sign), _clipped(stop, last, n, -sign)
    distances = [b - a if forward else a - b for b in ends for a in begins]
    return reduce(dim_max if forward else dim_min, begins), _count(distances, step, forward)


def _is_moderate(bound: DimLike | None) -> bool:
    """Whether a slice bound is made of lengths and small constants, so that it cannot overflow."""
    if bound is None:
        return True
    return as_dim(bound).is_moderate


def _clipped(bound: DimLike | None, limit: Dim, n: Dim, sign: int) -> list[Dim]:
    """Candidates for a slice bound, which is their maximum (sign 1) or minimum (sign -1)."""
    if bound is None:
        return [limit]
    found = from_end(bound, n)
    within = found - limit if sign > 0 else limit - found
    return [found] if within.is_nonnegative else [found, limit]


def from_end(position: DimLike, n: Dim) -> Dim:
    """An index into ``n`` elements as an offset from the start; a negative one gets ``n`` added."""
    position = as_dim(position)
    if position.value is not None:
        return position if position.value >= 0 else n + position
    if position.is_nonnegative:
        return position
    return position - n * dim_max(dim_min(position, ZERO), MINUS_ONE)


def _count(distances: Sequence[Dim], step: Dim, forward: bool) -> Dim:
    """``ceil(min(distances) / abs(step))``, the number of elements; at least 0."""
    if any((-d).is_nonnegative for d in distances):
        return ZERO
    least = dim_max(reduce(dim_min, _ordered(tuple(dict.fromkeys(distances)))), ZERO)
    if step.value is not None and abs(step.value) < _MODERATE:
        size = step if forward else -step
        return (least + (size - 1)) // size
    size = step if forward else -dim_max(step, 1 - 2**63)  # -(-2**63) would overflow
    return dim_max((least - 1) // size + 1, ZERO)
