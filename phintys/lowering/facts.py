"""Which lengths are known to be equal."""

from __future__ import annotations

from phintys.dims import Dim


class Facts:
    """Equalities between Dims, with one representative for each class.

    A constant represents before a symbol, a symbol that is known early in the call before one that
    is known late: so no step has to wait for a length that it could have from elsewhere.

    >>> n, m = Dim.symbol("n"), Dim.symbol("m")
    >>> facts = Facts()
    >>> facts.unify(n, m)
    >>> facts.find(n + 1) is facts.find(m + 1)
    True
    """

    def __init__(self) -> None:
        self.replace: dict[Dim, Dim] = {}
        self.defined: dict[Dim, int] = {}  # symbol -> id of the value that defines it
        self.cache: dict[Dim, Dim] = {}

    def define(self, symbol: Dim, time: int) -> Dim:
        """Note when a symbol becomes known; symbols never defined are known from the start."""
        self.defined.setdefault(symbol, time)
        return symbol

    def find(self, dim: Dim) -> Dim:
        """The representative of a Dim."""
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
        """Take two representatives as equal."""
        if a is b or (a.value is not None and b.value is not None):
            return
        keep, drop = (a, b) if self._rank(a) <= self._rank(b) else (b, a)
        if drop in _parts(keep):
            return
        self.replace[drop] = keep
        self.cache.clear()

    def _rank(self, dim: Dim) -> tuple[int, int, int]:
        time = max((self.defined.get(s, -1) for s in dim.symbols()), default=-2)
        return (time, 0 if dim.op in ("const", "symbol") else 1, len(dim.symbols()))


def _parts(dim: Dim) -> set[Dim]:
    """A Dim and all expressions in it."""
    parts: set[Dim] = set()
    stack = [dim]
    while stack:
        d = stack.pop()
        parts.add(d)
        if d.op not in ("const", "symbol"):
            stack.extend(d.args)
    return parts
