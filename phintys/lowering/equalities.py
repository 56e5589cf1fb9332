"""Equivalence classes of lengths (union-find)."""

from __future__ import annotations

from phintys.dims import Dim


class Equalities:
    """Equalities between Dims, with one representative for each class of equal Dims.

    The representative is a constant if there is one, else the Dim that is known earliest in the
    call, so that no step waits for a length that is known earlier under another name.

    >>> n, m = Dim.symbol("n"), Dim.symbol("m")
    >>> equalities = Equalities()
    >>> equalities.unify(n, m)
    >>> equalities.find(n + 1) is equalities.find(m + 1)
    True
    """

    def __init__(self) -> None:
        self.replace: dict[Dim, Dim] = {}
        self.defined: dict[Dim, int] = {}  # symbol -> id of the value that defines it
        self.cache: dict[Dim, Dim] = {}

    def define(self, symbol: Dim, time: int) -> Dim:
        """Record the id of the value that defines a symbol; others are known from the start."""
        self.defined.setdefault(symbol, time)
        return symbol

    def find(self, dim: Dim) -> Dim:
        """The Dim with every part replaced by the representative of its class."""
        if not self.replace or dim.op == "const":
            return dim
        found = self.cache.get(dim)
        if found is None:
            found = dim
            for _ in range(len(self.replace) + 1):
                new = found.substitute(self.replace)
                if new is found:
                    break
                found = new
            self.cache[dim] = found
        return found

    def unify(self, a: Dim, b: Dim) -> None:
        """Merge the classes of two representatives.

        An expression is not replaced by a longer one: otherwise lengths grow with each replacement
        of one of their parts.
        """
        if a is b or (a.value is not None and b.value is not None):
            return
        keep, drop = (a, b) if self._rank(a) <= self._rank(b) else (b, a)
        if keep.size > drop.size > 1 or drop in keep.parts():
            return
        self.replace[drop] = keep
        self.cache.clear()

    def _rank(self, dim: Dim) -> tuple[int, int, int]:
        time = max((self.defined.get(s, -1) for s in dim.symbols()), default=-2)
        return (time, 0 if dim.op in ("const", "symbol") else 1, len(dim.symbols()))
