"""`Assert` and `CheckAndRaise`: exceptions if conditions on values do not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply, Variable
from phintys.scalar.op import functions
from phintys.tensor.creation import broadcast_batches
from phintys.tensor.reduce import all as all_true
from phintys.tensor.type_other import as_symbolic

__all__ = ["Assert", "CheckAndRaise", "assert_op"]


class CheckAndRaise(Op):
    """The first input, if the others are true; else the call raises an exception.

    Inputs: a value, and conditions, which are numbers.  The conditions are checked if the result is
    used.  Rewriting removes those that are known to hold.

    Parameters
    ----------
    exc_type
        the class of the exception; TypeError if it is none
    msg
        its message

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> y = CheckAndRaise(ValueError, "negative")(x, pt.all(x >= 0))
    >>> pt.sqrt(y).eval({x: [4.0]})
    array([2.])
    >>> try:
    ...     pt.sqrt(y).eval({x: [-4.0]})
    ... except ValueError as exc:
    ...     print(exc)
    negative
    """

    # ----- class and static shape
    __props__ = ("msg", "exc_type")
    view_map = {0: [0]}

    def __init__(self, exc_type: type[BaseException], msg: str = "") -> None:
        if not (isinstance(exc_type, type) and issubclass(exc_type, Exception)):
            raise TypeError(f"exc_type must be a class of exceptions, not {exc_type!r}.")
        self.exc_type, self.msg = exc_type, msg

    def make_node(self, value: Any, *conds: Any) -> Apply:
        """The node.  TypeError if a condition is no number."""
        value = as_symbolic(value)
        return Apply(self, [value, *map(_as_condition, conds)], [value.type.make_variable()])

    def shape_rule(self, s: ShapeContext, x: Shape, *conds: Shape) -> list[Shape]:
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        value, *conds = inputs
        if not all(conds):
            raise self.exc_type(self.msg)
        output_storage[0][0] = value

    def failure(self, node: Apply) -> Exception | None:
        return self.exc_type(self.msg)

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        """A condition that does not hold raises when the function is called, not before."""
        return False

    # ----- derivatives: those of the identity
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i == 0] for i in range(len(node.inputs))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [cotangents[0], *(disconnected_type() for _ in inputs[1:])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [tangents[0]]

    # ----- batching: a condition holds if it holds for every item
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        value, *conds = batched_inputs
        batches = [c for c in conds if getattr(c.type, "ndim", 0)]
        if hasattr(value.type, "ndim"):
            core = node.inputs[0].type.ndim
            value, *_ = broadcast_batches([value, *batches], [core] + [0] * len(batches))
        return self.make_node(value, *(all_true(c) if c in batches else c for c in conds))

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        value, *conds = inputs
        for cond in conds:
            b.check(b.item(b.cast(cond, "int64")), "==", 1, self.msg)
        return value

    def __str__(self) -> str:
        return f"{type(self).__name__}{{raises={self.exc_type.__name__}, msg={self.msg!r}}}"


class Assert(CheckAndRaise):
    """`CheckAndRaise` of an AssertionError.

    >>> import phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> try:
    ...     Assert("not positive")(x, x > 0).eval({x: -1.0})
    ... except AssertionError as exc:
    ...     print(exc)
    not positive
    """

    def __init__(self, msg: str = "Assertion failed.") -> None:
        super().__init__(AssertionError, msg)

    def __str__(self) -> str:
        return f"Assert{{msg={self.msg!r}}}"


def _as_condition(x: Any) -> Any:
    """A condition as a scalar of dtype bool."""
    if isinstance(x, bool):
        x = int(x)
    return functions.cast(x, "bool")


assert_op = Assert()
