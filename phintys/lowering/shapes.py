"""Shape rules in the lowering of a graph: lengths of results, and checks of a Program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from phintys.dims import Dim, DimLike
from phintys.graph.shapes import Requirement, Shape, ShapeContext
from phintys.graph.variable import Apply, late_bound
from phintys.lowering.arrays import ArrayBuilder, NotNative
from phintys.lowering.values import Value


class LoweredShapes(ShapeContext):
    """Runs the rule of a node on values; requirements become checks of the builder."""

    def __init__(self, builder: ArrayBuilder, node: Apply, given: Sequence[Value]) -> None:
        super().__init__(node.op, node.inputs)
        self.builder, self.given = builder, given

    def require(self, wanted: Requirement) -> None:
        self._check_known([wanted.left, wanted.right])
        message = f"{wanted.message} in {self.op}"
        is_position = issubclass(wanted.error, IndexError)
        self.builder.check(wanted.left, wanted.relation, wanted.right, message, is_position)

    def equal(self, a: Dim, b: DimLike, message: str, *args: Any, **kwargs: Any) -> Dim:
        super().equal(a, b, message, *args, **kwargs)
        return self.builder.short(a)

    def value(self, i: int) -> Dim:
        return self.builder.item(self.given[i])

    def values(self, i: int) -> Shape:
        found = zip(self.builder.items(self.given[i]), late_bound["known_entries"](self.inputs[i]))
        return tuple([d if known is None else Dim.const(known) for d, known in found])

    def lengths(self, positions: Iterable[int]) -> Shape:
        return self.builder.lengths([self.given[i] for i in positions])

    def unknown(
        self,
        number: Callable[..., int] | None = None,
        variable: Callable[..., Any] | None = None,
    ) -> Dim:
        return self.new_symbol()

    def run(self) -> list[Shape]:
        """What the rule says; the requirements have been checked."""
        found: Any = self.op.shape_rule(self, *[self.builder.shape(v) for v in self.given])
        return list(found)

    def results(self) -> list[Shape]:
        """The lengths of the results, all of which are known."""
        found = self.run()
        for shape in found:
            self._check_known(shape)
        return [tuple(map(self.builder.short, shape)) for shape in found]

    def _check_known(self, lengths: Iterable[Dim]) -> None:
        """Raise `NotNative` if a length is known only when the result is computed."""
        if any(key[0] == "unknown" for d in lengths for key in map(_key, d.symbols())):
            raise NotNative(f"a length of {self.op} is known only when the result is computed")


def _key(symbol: Dim) -> tuple[Any, ...]:
    return symbol.args[0]
