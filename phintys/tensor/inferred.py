"""Lengths as variables, from shape rules: ``Op.infer_shape``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from phintys.dims import Dim
from phintys.graph.shapes import Answer, Cases, Shape, StaticShapes, node_key, plain_answer
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.memo import Memo
from phintys.tensor.aliases import Length
from phintys.tensor.convert import constant
from phintys.tensor.elemwise import functions
from phintys.tensor.lengths import checked_lengths, is_length
from phintys.tensor.static import as_length, entries, known_length
from phintys.tensor.variable import TensorVariable


class GraphShapes(StaticShapes):
    """Runs a rule on variables: ``variables`` holds those that symbols stand for.

    Requirements are not checked, but for `lengths`.  A symbol without a variable is a length that
    is known only when the result is.
    """

    def __init__(
        self, op: Any, inputs: Sequence[Variable], shapes: Sequence[Sequence[Length]]
    ) -> None:
        super().__init__(op, inputs)
        self.shapes = shapes
        self.variables: dict[Dim, TensorVariable] = {}
        self.asked: dict[tuple[str, tuple[int, ...]], Shape] = {}  # what the rule has asked for

    def ask(self, kind: str, places: tuple[int, ...]) -> Shape:
        """The lengths that inputs are: constants, else symbols, whose variables are recorded."""
        found = [self.inputs[i] for i in places]
        if kind == "entries":
            found = entries(found[0])
        elif kind == "lengths":
            found = checked_lengths(found)
        self.asked[kind, places] = dims = tuple(
            [self._symbol(n, kind, places, k) for k, n in enumerate(found)]
        )
        return dims

    def _symbol(self, variable: Variable, *place: Any) -> Dim:
        known = known_length(variable)
        if known is not None:
            return Dim.const(known)
        symbol = Dim.symbol(("len" if is_length(variable) else "value", *place))
        self.variables[symbol] = as_length(variable)
        return symbol

    def constant(self, i: int) -> Any:
        self.cacheable = False
        return super().constant(i)

    def value(self, i: int) -> Dim:
        return self.ask("value", (i,))[0]

    def values(self, i: int) -> Shape:
        return self.ask("entries", (i,))

    def lengths(self, positions: Iterable[int]) -> Shape:
        return self.ask("lengths", tuple(positions))

    def unknown(
        self,
        number: Callable[..., int] | None = None,
        variable: Callable[..., Any] | None = None,
    ) -> Dim:
        self.cacheable = False
        symbol = super().unknown(number, variable)
        if variable is not None:
            self.variables[symbol] = variable(*self.shapes)
        return symbol

    def cached_answer(self) -> Answer:
        """What the rule says; cached by the types of inputs, and what it asks for."""
        key = node_key(self.op, self.inputs)
        cases = _cases[key] or _cases.keep(key, Cases())
        reads, answers = cases.known
        found = answers[tuple([self.ask(*read) for read in reads])] if reads else None
        if found is None:
            self.asked = {}
            found = self.answer()
            if self.cacheable:
                cases.keep(self.asked, found)
        return found


_cases: Memo[Any, Cases] = Memo(256, "lengths of results")


def infer_shape(node: Apply, shapes: Sequence[Sequence[Length]]) -> list[tuple[Any, ...] | None]:
    """For each result of a node its lengths as variables; None if one is not known before it.

    ``shapes`` are the lengths of the inputs, as variables or numbers.
    """
    variables: dict[Dim, Any] = {}
    found = plain_answer(node.op, node.inputs)
    if found is None:
        context = GraphShapes(node.op, node.inputs, shapes)
        found, variables = context.cached_answer(), dict[Dim, Any](context.variables)
    for dims, lengths in zip(found.inputs, shapes):
        variables.update(zip(dims, lengths))
    results = [[as_variable(d, variables) for d in shape] for shape in found.shapes]
    return [None if None in shape else tuple(shape) for shape in results]


late_bound["infer_shape"] = infer_shape


def as_variable(dim: Dim, variables: Mapping[Dim, Any]) -> TensorVariable | None:
    """The value of a Dim as a 0-d int64 variable; None if a symbol has no variable."""
    if dim.value is not None:
        return constant(dim.value, dtype="int64")
    found = variables.get(dim)
    if found is not None or dim.op == "symbol":
        return found
    # the recursion is as deep as the expression of one length
    parts: list[Any] = [as_variable(d, variables) for d in dim.args]
    return None if None in parts else reduce(_FUNCTIONS[dim.op], map(as_length, parts))


_FUNCTIONS = {
    "add": functions.add,
    "mul": functions.mul,
    "floordiv": functions.int_div,
    "mod": functions.mod,
    "max": functions.maximum,
    "min": functions.minimum,
}
