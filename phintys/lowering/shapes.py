"""Shape rules in the lowering of a graph: lengths of results, and checks of a Program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from phintys.dims import ONE, Dim
from phintys.graph.shapes import Requirement, Shape, ShapeContext, answer
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.lowering.arrays import ArrayBuilder, NotNative
from phintys.lowering.values import Value


class LoweredShapes(ShapeContext):
    """Runs the rule of a node on values; requirements become checks of the builder.

    A length broadcasts if the type knows that it is 1.  If only the value knows it, the rule gets a
    symbol for it, so that it requires the same as in `ConcreteShapes`.
    """

    def __init__(self, builder: ArrayBuilder, node: Apply, given: Sequence[Value]) -> None:
        super().__init__(node.op, node.inputs)
        self.builder, self.given = builder, given
        self.ones: dict[Dim, Dim] = {}

    def require(self, wanted: Requirement) -> None:
        left, right = self._lengths((wanted.left, wanted.right))
        self._check_known([left, right])
        message = f"{wanted.message} in {self.op}"
        is_position = issubclass(wanted.error, IndexError)
        self.builder.check(left, wanted.relation, right, message, is_position)

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
        found: Any = self.op.shape_rule(self, *map(self._typed, self.inputs, self.given))
        return [self._lengths(shape) for shape in found]

    def results(self) -> list[Shape]:
        """The lengths of the results, all of which are known."""
        found = self.run()
        for shape in found:
            self._check_known(shape)
        return [tuple(map(self.builder.short, shape)) for shape in found]

    def _typed(self, variable: Variable, value: Value) -> Shape:
        """The lengths of an input, with symbols for those of 1 that its type does not know."""
        shape = self.builder.shape(value)
        for axis in _hidden_ones(variable, shape):
            symbol = Dim.symbol(("len", "1", len(self.ones)))
            self.ones[symbol] = ONE
            shape = (*shape[:axis], symbol, *shape[axis + 1 :])
        return shape

    def _lengths(self, dims: Iterable[Dim]) -> Shape:
        return tuple([d.substitute(self.ones) if self.ones else d for d in dims])

    def _check_known(self, lengths: Iterable[Dim]) -> None:
        """Raise `NotNative` if a length is known only when the result is computed."""
        if any(map(_is_unknown, lengths)):
            raise NotNative(f"a length of {self.op} is known only when the result is computed")


class ClaimedShapes(LoweredShapes):
    """The shapes of the results of a node; what the rule requires is not checked."""

    def require(self, wanted: Requirement) -> None:
        return None

    def claimed(self) -> list[list[Dim | None]]:
        """The lengths of the results, None where they are known only when the result is."""
        return [[None if _is_unknown(d) else d for d in shape] for shape in self.run()]


def _is_unknown(d: Dim) -> bool:
    return any(_key(symbol)[0] == "unknown" for symbol in d.symbols())


def broadcasts_hidden_ones(node: Apply, given: Sequence[Value], builder: ArrayBuilder) -> bool:
    """Whether an op that broadcasts is applied to lengths of 1 that types do not know."""
    for v, value in zip(node.inputs, given):
        if _hidden_ones(v, builder.shape(value)):
            has_rule = node.op.shape_rule is not None
            return has_rule and any(r.broadcasts for r in answer(node.op, node.inputs).requirements)
    return False


def _hidden_ones(variable: Variable, shape: Shape) -> list[int]:
    """The axes along which the length is the constant 1, and the type does not know it."""
    found = [axis for axis, d in enumerate(shape) if d.value == 1]
    static = getattr(variable.type, "shape", None) if found else None
    return [axis for axis in found if static[axis] is None] if static else []


def _key(symbol: Dim) -> tuple[Any, ...]:
    return symbol.args[0]
