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

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Union

from phintys.memo import Memo

DimLike = Union["Dim", int]

_INTERNED: Memo[tuple[Any, ...], Dim] = Memo(2048, "lengths", weak=True)


class Dim:
    """An interned integer expression.  Build with `Dim.const`, `Dim.symbol` and operators.

    ``op`` is one of ``const`` (args: the int), ``symbol`` (args: the key, any hashable),
    ``add`` / ``mul`` (args: dims, normalised), ``floordiv``, ``mod``, ``max``, ``min`` (two dims).
    """

    __slots__ = ("__weakref__", "args", "op", "order_key", "size", "value")
    op: str
    args: tuple[Any, ...]
    size: int  #: number of constants and symbols in the expression, repetitions counted
    value: int | None  #: the integer, if this is a constant

    def __new__(cls, op: str, args: tuple[Any, ...]) -> Dim:
        key = (op, args)
        found = _INTERNED[key]
        if found is None:
            found = object.__new__(cls)
            found.op, found.args = op, args
            found.value = args[0] if op == "const" else None
            found.size = 1 if op in ("const", "symbol") else sum([a.size for a in args])
            found.order_key = None
            found = _INTERNED.keep(key, found)
        return found

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
        quotient = _divide_exactly(self, other)
        return Dim("floordiv", (self, other)) if quotient is None else quotient

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
        if self in symbols:
            return symbols[self]
        if self.op == "const":
            return self.args[0]
        if self.op == "symbol":
            raise KeyError(self.render())
        values = [a.evaluate(symbols) for a in self.args]
        return _EVALUATE[self.op](values)

    def substitute(self, replace: Mapping[Dim, Dim]) -> Dim:
        """The expression with the keys of ``replace`` replaced by their values, in normal form."""
        found = replace.get(self)
        if found is not None:
            return found
        if self.op in ("const", "symbol"):
            return self
        args = tuple(a.substitute(replace) for a in self.args)
        return self if args == self.args else _BUILD[self.op](args)

    def symbols(self) -> set[Dim]:
        """The symbols that occur in the expression."""
        if self.op == "symbol":
            return {self}
        if self.op == "const":
            return set()
        return set().union(*(a.symbols() for a in self.args))

    def render(self, name: Callable[[Any], str] = str) -> str:
        """Text of the expression; ``name`` turns a symbol's key into text."""
        if self.op == "const":
            return str(self.args[0])
        if self.op == "symbol":
            return name(self.args[0])
        parts = [a.render(name) for a in self.args]
        if self.op == "mul":
            return "*".join(f"({p})" if a.op == "add" else p for a, p in zip(self.args, parts))
        if self.op == "add":
            return " + ".join(parts)
        return f"{self.op}({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"Dim({self.render()})"

    def __reduce__(self) -> Any:
        return Dim, (self.op, self.args)


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
    if a is b:
        return a
    difference = a - b
    if is_nonnegative(difference):
        return a
    if is_nonnegative(-difference):
        return b
    return Dim("max", _ordered((a, b)))


def dim_min(a: DimLike, b: DimLike) -> Dim:
    """The smaller of two lengths; one of them, where the comparison is provable."""
    a, b = as_dim(a), as_dim(b)
    if a is b:
        return a
    difference = a - b
    if is_nonnegative(difference):
        return b
    if is_nonnegative(-difference):
        return a
    return Dim("min", _ordered((a, b)))


def total(dims: Any) -> Dim:
    """The sum of an iterable of lengths; 0 if it is empty.  Linear, unlike `sum`."""
    return _sum(tuple(as_dim(d) for d in dims))


def product(dims: Any) -> Dim:
    """The product of an iterable of lengths; 1 if it is empty."""
    return _product(tuple(as_dim(d) for d in dims))


def _sort_key(d: Dim) -> tuple[int, str]:
    # the recursion is bounded: an expression is as deep as one shape computation, not as a graph
    if d.order_key is None:
        d.order_key = (d.op != "const", d.render(repr))
    return d.order_key


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


def _divide_exactly(a: Dim, b: Dim) -> Dim | None:
    """``a / b`` where the factors of ``b`` are factors of ``a``, else None."""
    fa = list(a.args) if a.op == "mul" else [a]
    for f in b.args if b.op == "mul" else (b,):
        if f in fa:
            fa.remove(f)
        elif f.value and fa and fa[0].value is not None and fa[0].value % f.value == 0:
            fa[0] = Dim.const(fa[0].value // f.value)
        else:
            return None
    return _product(tuple(fa))


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


def is_nonnegative(d: Dim) -> bool:
    """Whether ``d >= 0`` is provable: for lengths, and for expressions of nonnegative dims."""
    if d.op == "const":
        return d.args[0] >= 0
    if d.op == "symbol":
        return isinstance(d.args[0], tuple) and d.args[0][0] == "len"
    if d.op == "max":
        return any(is_nonnegative(a) for a in d.args)
    return all(is_nonnegative(a) for a in d.args)


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


#: The sum or difference of two integers of smaller magnitude fits in 64 bits.
_MODERATE = 2**62


def _is_moderate(bound: DimLike | None) -> bool:
    """Whether a slice bound is made of lengths and small constants, so that it cannot overflow."""
    if bound is None:
        return True
    bound = as_dim(bound)
    if bound.value is not None:
        return abs(bound.value) < _MODERATE
    if bound.op == "symbol":
        return is_nonnegative(bound)
    multiple = len(bound.args) == 2 and bound.args[0].value is not None
    return (bound.op != "mul" or multiple) and all(map(_is_moderate, bound.args))


def _clipped(bound: DimLike | None, limit: Dim, n: Dim, sign: int) -> list[Dim]:
    """Candidates for a slice bound, which is their maximum (sign 1) or minimum (sign -1)."""
    if bound is None:
        return [limit]
    found = from_end(bound, n)
    within = found - limit if sign > 0 else limit - found
    return [found] if is_nonnegative(within) else [found, limit]


def from_end(position: DimLike, n: Dim) -> Dim:
    """An index into ``n`` elements as an offset from the start; a negative one gets ``n`` added."""
    position = as_dim(position)
    if position.value is not None:
        return position if position.value >= 0 else n + position
    if is_nonnegative(position):
        return position
    return position - n * dim_max(dim_min(position, ZERO), MINUS_ONE)


def _count(distances: Sequence[Dim], step: Dim, forward: bool) -> Dim:
    """``ceil(min(distances) / abs(step))``, the number of elements; at least 0."""
    if any(is_nonnegative(-d) for d in distances):
        return ZERO
    least = dim_max(reduce(dim_min, _ordered(tuple(dict.fromkeys(distances)))), ZERO)
    if step.value is not None and abs(step.value) < _MODERATE:
        size = step if forward else -step
        return (least + (size - 1)) // size
    size = step if forward else -dim_max(step, 1 - 2**63)  # -(-2**63) would overflow
    return dim_max((least - 1) // size + 1, ZERO)
