"""Short names for long lengths."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakMethod

from phintys.dims import Dim, dim_max

#: The largest `Dim.size` of a length or of an integer that is an expression.  The text of an
#: expression, and the code that computes it, repeat the parts that it uses several times.
LONGEST = 50


class LongLengths:
    """Replaces long lengths by symbols, each of which stands for a length that is computed once.

    The length of ``concatenate([x[:2], x[2:]])`` mentions the one of ``x`` twice.  In a chain of
    such steps expressions of the lengths of the inputs would double with each step.

    Parameters
    ----------
    named
        a method that makes a symbol for the value of an expression.  Its object, which has these
        names, is referred to weakly: then it is freed as soon as it is no longer used.
    """

    def __init__(self, named: Callable[[Dim], Dim]) -> None:
        self._named = WeakMethod(named)
        self._short: dict[Dim, Dim] = {}
        self._long: dict[Dim, Dim] = {}  # symbol -> the expression that it stands for

    def shortened(self, dim: Dim) -> Dim:
        """An expression of the same value that is not long."""
        if dim.size <= LONGEST:
            return dim
        for part in dim.parts(self._short.__contains__):
            if part not in self._short:
                short = part.substitute(self._short)
                self._short[part] = short if short.size <= LONGEST else self._symbol(short)
        return self._short[dim]

    def _symbol(self, dim: Dim) -> Dim:
        named = self._named()
        assert named is not None, "lengths are named while their builder is in use"
        symbol = named(dim)
        self._long[symbol] = dim
        return dim_max(symbol, 0) if dim.is_nonnegative else symbol

    def spelled_out(self, dim: Dim) -> Dim:
        """The expression in terms of other symbols."""
        while not self._long.keys().isdisjoint(dim.symbols()):
            dim = dim.substitute(self._long)
        return dim
