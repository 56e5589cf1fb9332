"""Variables as terms: a function symbol for each op, a constant symbol for each leaf and number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from phintys.graph.op import Op
from phintys.graph.traversal import toposort
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.unify import rule_key
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.rules.match import literal, number
from phintys.tensor.type import TensorType


class Number(NamedTuple):
    """A constant all of whose elements are one number, along axes of length 1.

    ``text`` tells zeros of both signs, and NaN from itself.
    """

    text: str
    dtype: str
    ndim: int
    value: Any

    def variable(self) -> Variable:
        return literal(self.value, self.dtype, self.ndim)


def kind(v: Variable) -> str:
    """Dtype, rank, and which lengths are known to be 1: what a rule may know of a variable."""
    return f"{v.type.dtype}:{''.join('1' if b else 'n' for b in v.type.broadcastable)}"


def dtype_of(kind: str) -> str:
    """The dtype of the variables of a kind."""
    return kind.partition(":")[0]


def type_of_kind(text: str) -> TensorType:
    """The type of the variables of a kind, of which nothing else is known."""
    dtype, _, axes = text.partition(":")
    return TensorType(dtype, tuple(1 if axis == "1" else None for axis in axes))


def as_number(v: Variable) -> Number | None:
    """A constant, or one with additional axes, as a number; None if it is none."""
    inner = v
    while inner.owner is not None and isinstance(inner.owner.op, DimShuffle):
        inner = inner.owner.inputs[0]
    if not isinstance(inner, Constant) or not isinstance(v.type, TensorType):
        return None
    value = number(inner)
    if value is None or not all(v.type.broadcastable):
        return None
    return Number(repr(value), v.type.dtype, v.type.ndim, value)


def is_encodable(node: Apply) -> bool:
    """Whether a node is a function of tensors, with one result."""
    op = node.op
    variables = [*node.inputs, *node.outputs]
    return (
        len(node.outputs) == 1
        and bool(node.inputs)
        and not op.destroy_map
        and all(isinstance(v.type, TensorType) for v in variables)
    )


def is_chain(op: Op) -> bool:
    """Whether the op takes any number of operands, which are one operand after the other."""
    return isinstance(op, Elemwise) and bool(getattr(op.scalar_op, "associative", False))


class Term(NamedTuple):
    """What others refer to a term by, the term, and its variable."""

    name: str
    text: str
    variable: Variable


@dataclass
class Language:
    """The symbols of one e-graph."""

    names: dict[Any, str] = field(default_factory=dict)
    symbols: dict[str, Any] = field(default_factory=dict)
    arity: dict[str, int] = field(default_factory=dict)

    def symbol(self, key: Any, meaning: Any, arity: int) -> str:
        """The name of a symbol; a new one if there is none for the key."""
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = f"s{len(self.names)}"
            self.symbols[name], self.arity[name] = meaning, arity
        return name

    def function(self, op: Op, arity: int) -> str:
        """The symbol of an op with some number of operands."""
        key = rule_key(op)
        return self.symbol((type(op), key, arity), op, arity)

    def constant(self, v: Variable) -> str:
        """The term of a number or leaf."""
        found = as_number(v)
        if found is None:
            return f"({self.symbol(v, v, 0)})"
        return f"({self.symbol(found[:3], found, 0)})"

    def terms(
        self, outputs: Iterable[Variable], known: Mapping[Variable, str], short: bool = False
    ) -> list[Term]:
        """The terms of all variables that outputs depend on, operands first.

        Variables that are ``known`` are not among them.  With ``short``, terms have names, by which
        others refer to them.
        """
        wanted = list(outputs)
        names = dict(known)
        found: list[Term] = []

        def add(v: Variable, text: str) -> None:
            names[v] = f"$v{len(found)}" if short else text
            found.append(Term(names[v], text, v))

        def of(v: Variable) -> str:
            if v not in names:
                add(v, self.constant(v))
            return names[v]

        for node in toposort(wanted, blockers=list(known)):
            if is_encodable(node) and as_number(node.outputs[0]) is None:
                operands = list(node.inputs)
                while len(operands) > 2 and is_chain(node.op):
                    pair = node.op.make_node(*operands[:2])
                    add(pair.outputs[0], self.application(pair.op, map(of, operands[:2])))
                    operands[:2] = pair.outputs
                add(node.outputs[0], self.application(node.op, map(of, operands)))
        for v in wanted:
            of(v)
        return found

    def application(self, op: Op, operands: Iterable[str]) -> str:
        """The term of an op applied to operands."""
        texts = list(operands)
        return f"({self.function(op, len(texts))} {' '.join(texts)})"
