"""Shape rules: the shapes of an op's results, as a function of the shapes of its inputs.

An op states its shapes once, in ``Op.shape_rule``, a function from the lengths of its inputs
(`Dim`) to those of its results.  It also gets a `ShapeContext`, which says what it is used for:

- `StaticShapes`: the static shapes of a new node (`static_shapes`), and errors known by then
- ``GraphShapes`` (``tensor/inferred.py``): the lengths as variables (``Op.infer_shape``)
- ``LoweredShapes`` (``lowering/shapes.py``): lengths and checks of a Program
- `ConcreteShapes`: the error of a call (`check_shapes`)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

from phintys.dims import Dim, DimLike, as_dim
from phintys.errors import ContradictionError, OutOfRangeError, ShapeError
from phintys.graph.labels import name_in_messages
from phintys.graph.variable import Apply, Constant, Variable, late_bound
from phintys.memo import Memo

Shape = tuple[Dim, ...]
Static = tuple[int | None, ...]

#: The largest number of elements of an array.
LARGEST = 2**63 - 1
_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
}


def shape_text(shape: Static) -> str:
    """A static shape as it is printed.

    >>> shape_text((2, None)), shape_text((None,))
    ('(2, ?)', '(?,)')
    """
    lengths = ", ".join("?" if n is None else str(n) for n in shape)
    return f"({lengths}{',' if len(shape) == 1 else ''})"


class Requirement(NamedTuple):
    """``left relation right`` must hold; the message says what is wrong if it does not."""

    left: Dim
    relation: str
    right: Dim
    message: str
    error: type[Exception] = ShapeError
    early: bool = False  # whether it is an error when the graph is built
    broadcasts: bool = False  # whether a length of 1 would do if it were known


class ShapeContext(ABC):
    """What a shape rule may ask and require.  Subclasses define what happens then.

    Attributes
    ----------
    inputs
        the variables that the op is applied to, for their types and for constants
    """

    asks = False  #: whether the rule has asked for values of inputs
    only_checks = False  #: whether nobody asks for the shapes of the results
    cacheable = True  #: whether the rule looks at nothing but types and what it asks for

    def __init__(self, op: Any, inputs: Sequence[Variable]) -> None:
        self.op, self.inputs = op, inputs
        self._symbols = 0

    def new_symbol(self) -> Dim:
        """A symbol for an unknown length, which no other one of this context is.

        Those of other contexts may be the same: symbols are hash-consed, and calls make contexts.
        """
        self._symbols += 1
        return Dim.symbol(("unknown", self._symbols))

    # ----- requirements
    @abstractmethod
    def require(self, wanted: Requirement) -> None:
        """Add a requirement."""

    def equal(
        self,
        a: Dim,
        b: DimLike,
        message: str,
        error: type[Exception] = ShapeError,
        broadcasts: bool = False,
        early: bool = True,
    ) -> Dim:
        """Require that two lengths are equal; return the one to use, a constant if one is.

        With ``early`` it is an error when the graph is built if both are known and differ.
        """
        b = as_dim(b)
        if a is not b:
            self.require(Requirement(a, "==", b, message, error, early, broadcasts))
        return b if a.value is None and b.value is not None else a

    def check(
        self,
        left: DimLike,
        relation: str,
        right: DimLike,
        message: str,
        error: type[Exception] = ShapeError,
        early: bool = False,
    ) -> None:
        """Require ``left relation right`` (``==``, ``>=``, ``>``) when the op is computed.

        With ``early`` it is an error when the graph is built if both are known by then.
        """
        self.require(Requirement(as_dim(left), relation, as_dim(right), message, error, early))

    def broadcast(
        self,
        shapes: Sequence[Shape],
        message: str = "Lengths along axis {} do not agree",
        early: bool = True,
        error: type[Exception] = ShapeError,
    ) -> Shape:
        """The shape that shapes of equal rank broadcast to, along lengths known to be 1.

        ``early`` and ``error`` as for `equal`.
        """
        return tuple(
            [
                self._spread(lengths, message.format(axis), early, error)
                for axis, lengths in enumerate(zip(*shapes))
            ]
        )

    def _spread(
        self, lengths: Sequence[Dim], message: str, early: bool, error: type[Exception]
    ) -> Dim:
        found = lengths[0]
        for d in lengths[1:]:
            if found.value == 1:
                found = d
            elif d.value != 1 and d is not found:
                found = self.equal(found, d, message, error, broadcasts=True, early=early)
        return found

    # ----- lengths that are values of inputs
    def constant(self, i: int) -> Any:
        """The number that all elements of input ``i`` are known to be when the graph is built."""
        return late_bound["known_constant"](self.inputs[i])

    def literal(self, i: int) -> Any:
        """The number of input ``i`` if it is a 0-d constant; None of what is computed."""
        return late_bound["literal"](self.inputs[i])

    @abstractmethod
    def value(self, i: int) -> Dim:
        """The integer in the 0-d input ``i``."""

    @abstractmethod
    def values(self, i: int) -> Shape:
        """The integers in the vector input ``i``, whose length is known when the graph is built."""

    @abstractmethod
    def lengths(self, positions: Iterable[int]) -> Shape:
        """The integers in 0-d inputs as the lengths of one array.

        Requires that they are not negative, and that the array has at most `LARGEST` elements.
        """

    @abstractmethod
    def unknown(
        self,
        number: Callable[..., int] | None = None,
        variable: Callable[..., Any] | None = None,
    ) -> Dim:
        """A length that depends on the values of inputs in another way.

        ``number(*values)`` computes it.  ``variable(*shapes)`` is a 0-d int64 variable for it, or
        None, from the lengths of the inputs as variables.  Without either the length is known only
        when the result is computed.
        """


class Answer(NamedTuple):
    """What the rule of an op says for inputs of certain types."""

    inputs: tuple[Shape, ...]
    shapes: tuple[Shape, ...]
    requirements: tuple[Requirement, ...]
    wrong: Requirement | None  # one that is known not to hold, an error now
    static: tuple[Static, ...]
    asks: bool  # whether the rule has asked for values of inputs
    types: dict[Any, Any]  # the types of the results by what else they depend on


class StaticShapes(ShapeContext):
    """Runs a rule when a graph is built; lengths and values that are not known are symbols."""

    def __init__(self, op: Any, inputs: Sequence[Variable]) -> None:
        super().__init__(op, inputs)
        self.requirements: list[Requirement] = []
        self.read: dict[tuple[str, int], Any] = {}  # what the rule has asked for

    def _read(self, kind: str, i: int) -> Any:
        self.asks = True
        found = self.read[kind, i] = late_bound[kind](self.inputs[i])
        return found

    def require(self, wanted: Requirement) -> None:
        self.requirements.append(wanted)

    def constant(self, i: int) -> Any:
        return self._read("known_constant", i)

    def literal(self, i: int) -> Any:
        return self._read("literal", i)

    def value(self, i: int) -> Dim:
        known = self._read("known_length", i)
        return Dim.symbol(("value", i)) if known is None else Dim.const(known)

    def values(self, i: int) -> Shape:
        return tuple(
            Dim.symbol(("value", i, k)) if known is None else Dim.const(known)
            for k, known in enumerate(self._read("known_entries", i))
        )

    def lengths(self, positions: Iterable[int]) -> Shape:
        found = tuple([self.value(i) for i in positions])
        for d in found:
            if d.value is not None and d.value < 0:
                raise ValueError(f"A shape has no negative lengths, got {d.value}.")
        return found

    def unknown(
        self,
        number: Callable[..., int] | None = None,
        variable: Callable[..., Any] | None = None,
    ) -> Dim:
        self.asks = True
        return self.new_symbol()

    def answer(self) -> Answer:
        """What the rule says, not cached."""
        inputs = input_dims(self.inputs)
        shapes = tuple([tuple(s) for s in self.op.shape_rule(self, *inputs)])
        static = tuple([tuple([d.value for d in s]) for s in shapes])
        wanted = tuple(self.requirements)
        impossible = any([n is not None and n < 0 for shape in static for n in shape])
        wrong = next((r for r in wanted if (r.early or impossible) and _is_contradicted(r)), None)
        return Answer(inputs, shapes, wanted, wrong, static, self.asks, {})


def _is_contradicted(r: Requirement) -> bool:
    left, right = r.left.value, r.right.value
    return not (left is None or right is None or _HOLDS[r.relation](left, right))


class Cases:
    """What a rule says for inputs of certain types, by the values that it asks for."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: tuple[Any, Memo[Any, Answer]] = (), Memo(16, "shapes of results by values")

    def keep(self, read: Mapping[Any, Any], found: Answer) -> None:
        """Keep an answer for what the rule has read; forget those that depend on other inputs."""
        reads, known = tuple(read), self.known
        if known[0] != reads:
            known = self.known = reads, Memo(16, "shapes of results by values")
        known[1].keep(tuple(read.values()), found)


_type_of = attrgetter("type")


def _weight(found: Answer | Cases) -> float:
    """The size of a cache entry, whose key holds the types of all operands of a sum."""
    return 1 + len(found.inputs) / 8 if isinstance(found, Answer) else 1


_known: Memo[Any, Answer | Cases] = Memo(1024, "shapes of results", weigh=_weight)
_input_dims: Memo[Any, Shape] = Memo(512, "lengths of inputs")


def input_dims(inputs: Sequence[Variable]) -> tuple[Shape, ...]:
    """The lengths of inputs: constants where their types say so, else symbols."""
    found: list[Shape] = []
    for i, v in enumerate(inputs):
        static: Static = getattr(v.type, "shape", None) or ()
        dims = _input_dims[i, static]
        if dims is None:
            dims = tuple(
                Dim.symbol(("len", i, axis)) if n is None else Dim.const(n)
                for axis, n in enumerate(static)
            )
            dims = _input_dims.keep((i, static), dims)
        found.append(dims)
    return tuple(found)


def node_key(op: Any, inputs: Sequence[Variable]) -> tuple[Any, ...]:
    """A key for an op and the types of its inputs."""
    return (op.equality_key(op), *map(_type_of, inputs))


def answer(op: Any, inputs: Sequence[Variable]) -> Answer:
    """What a rule says; cached by the types of inputs, and the known values that it asks for."""
    try:
        key = node_key(op, inputs)
    except AttributeError:
        hash(op)  # its TypeError names the attribute of __props__ that is missing
        raise
    known = _known[key]
    if isinstance(known, Answer):  # it does not depend on values
        return known
    if known is not None:
        reads, answers = known.known
        found = answers[tuple([late_bound[kind](inputs[i]) for kind, i in reads])]
        if found is not None:
            return found
    context = StaticShapes(op, inputs)
    found = context.answer()
    if context.cacheable:
        _keep(key, context.read, found)
    elif found.asks:
        _known.keep(key, Cases())  # so that `plain_answer` need not ask again
    return found


def _keep(key: Any, read: Mapping[Any, Any], found: Answer) -> None:
    cases = _known.keep(key, Cases() if read else found)
    if isinstance(cases, Cases):
        cases.keep(read, found)


def plain_answer(op: Any, inputs: Sequence[Variable]) -> Answer | None:
    """What a rule says that does not ask for values of inputs; None if it does."""
    known = _known[node_key(op, inputs)] or answer(op, inputs)
    return known if isinstance(known, Answer) and not known.asks else None


def checked_answer(op: Any, inputs: Sequence[Variable]) -> Answer:
    """What a rule says; ShapeError if lengths are known to be wrong."""
    found = answer(op, inputs)
    if found.wrong is not None:
        raise _contradiction(op, inputs, found.wrong)
    return found


def static_shapes(op: Any, inputs: Sequence[Variable]) -> tuple[Static, ...]:
    """The static shapes of the results of an op; ShapeError if lengths are known to be wrong."""
    return checked_answer(op, inputs).static


def _contradiction(op: Any, inputs: Sequence[Variable], wrong: Requirement) -> ContradictionError:
    """The error of a requirement that is known not to hold when a node is built."""
    context = StaticShapes(op, inputs)
    context.answer()
    shapes = [getattr(v.type, "shape", None) for v in inputs]
    read = {i: value for (_, i), value in context.read.items()}
    numbers = wrong.left.evaluate({}), wrong.right.evaluate({})
    error = OutOfRangeError if issubclass(wrong.error, IndexError) else ShapeError
    return error(_failure(op, wrong, numbers, inputs, shapes, read))


# ------------------------------------------------------------------------------ of values


class ConcreteShapes(ShapeContext):
    """Runs a rule on values, and raises the error of a requirement that does not hold.

    An axis broadcasts only if its length is known to be 1 in the type, so lengths that are not
    known there are symbols.
    """

    def __init__(self, op: Any, inputs: Sequence[Variable], given: Sequence[Any]) -> None:
        super().__init__(op, inputs)
        self.given = given
        self.dims = input_dims(inputs)
        self.lengths_of = _bound(self.dims, given)
        self.read: dict[int, Any] = {}

    def require(self, wanted: Requirement) -> None:
        try:
            left, right = (d.evaluate(self.lengths_of) for d in (wanted.left, wanted.right))
        except KeyError:  # a length that is not known
            return
        if not _HOLDS[wanted.relation](left, right):
            shapes = [getattr(x, "shape", None) for x in self.given]
            numbers = left, right
            raise wanted.error(_failure(self.op, wanted, numbers, self.inputs, shapes, self.read))

    def value(self, i: int) -> Dim:
        self.asks = True
        self.read[i] = int(self.given[i])
        return Dim.const(self.read[i])

    def values(self, i: int) -> Shape:
        self.asks = True
        self.read[i] = tuple(self.given[i].tolist())
        return tuple(map(Dim.const, self.read[i]))

    def lengths(self, positions: Iterable[int]) -> Shape:
        found = [self.value(i) for i in positions]
        check_lengths([d.evaluate({}) for d in found])
        return tuple(found)

    def unknown(
        self,
        number: Callable[..., int] | None = None,
        variable: Callable[..., Any] | None = None,
    ) -> Dim:
        self.asks = True
        symbol = self.new_symbol()
        return symbol if number is None else Dim.const(number(*self.given))

    def results(self) -> list[tuple[int, ...]]:
        """The shapes of the results; ShapeError if one is known only when it is computed."""
        try:
            return [tuple(d.evaluate(self.lengths_of) for d in shape) for shape in self.run()]
        except KeyError as exc:
            raise ShapeError(f"The shape of a result of {self.op} is not known.") from exc

    def run(self) -> Sequence[Sequence[Dim]]:
        """Run the rule."""
        return self.op.shape_rule(self, *self.dims)


class _Checks(ConcreteShapes):
    """Raises the error of a requirement that does not hold, and no more."""

    only_checks = True


def check_shapes(node: Apply, given: Sequence[Any]) -> None:
    """Raise the error of the first requirement of a node's rule that values do not fulfil."""
    found = plain_answer(node.op, node.inputs)
    if found is not None:
        bound = _bound(found.inputs, given) if found.requirements else {}
        if all(
            _HOLDS[r.relation](r.left.evaluate(bound), r.right.evaluate(bound))
            for r in found.requirements
        ):
            return
    _Checks(node.op, node.inputs, given).run()


def result_shapes(node: Apply, given: Sequence[Any]) -> list[tuple[int, ...]]:
    """The shapes of the results of a node for values of its inputs; errors as `check_shapes`."""
    return ConcreteShapes(node.op, node.inputs, given).results()


def check_lengths(lengths: Sequence[int]) -> None:
    """Raise ShapeError if no array can have these lengths."""
    if any(n < 0 for n in lengths):
        raise ShapeError(f"A length is negative in the shape {tuple(lengths)}.")
    if prod(max(n, 1) for n in lengths) > LARGEST:
        raise ShapeError(f"An array of shape {tuple(lengths)} has too many elements.")


def _bound(dims: Sequence[Shape], given: Sequence[Any]) -> dict[Dim, int]:
    """The lengths of values, by the Dims that stand for them."""
    return {d: n for shape, x in zip(dims, given) if shape for d, n in zip(shape, x.shape)}


_HINT = (
    "  A length of 1 broadcasts only if it is known when the graph is built: declare it in the "
    "type (shape=(1, ...)) or use specify_broadcastable."
)


def _failure(
    op: Any,
    wanted: Requirement,
    numbers: tuple[int, int],
    inputs: Sequence[Variable],
    shapes: Sequence[Any],
    values: Mapping[int, Any],
) -> str:
    """The message of a requirement that does not hold, with shapes and values of inputs."""
    said = []
    for i, (v, shape) in enumerate(zip(inputs, shapes)):
        if values.get(i) is not None:
            said.append(f"{_name(v)} is {_text(values[i])}")
        elif shape:
            said.append(f"{_name(v)} has shape {shape}")
    pair = f" ({numbers[0]}, not {numbers[1]})" if wanted.relation == "==" else ""
    hint = _HINT if wanted.broadcasts and 1 in numbers else ""
    return f"{wanted.message}{pair} in {op}: {', '.join(said)}.{hint}"


def _name(v: Variable) -> str:
    """The text of a variable; the value of a constant is no name."""
    return "a constant" if isinstance(v, Constant) and v.name is None else name_in_messages(v)


def _text(value: Any) -> str:
    """A number, or the numbers of a vector, of which some may not be known."""
    if not isinstance(value, tuple):
        return str(value)
    return f"[{', '.join('?' if n is None else str(n) for n in value)}]"
