"""A small language of integers for testing rewriting: no tensor is needed."""

from __future__ import annotations

from typing import Any

from phintys.graph.op import Op
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Constant, Variable


class Int(Type):
    """Integers; ``small`` ones are a narrower type."""

    __props__ = ("small",)

    def __init__(self, small: bool = False) -> None:
        self.small = small

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> int:
        if not isinstance(data, int):
            raise TypeError(f"{data!r} is not an integer.")
        return data

    def is_super(self, otype: Any) -> bool:
        return isinstance(otype, Int) and (not self.small or otype.small)

    def convert_variable(self, var: Variable) -> Variable | None:
        if self.is_super(var.type):
            return var
        return narrow(var) if isinstance(var.type, Int) else None


class Text(Type):
    """Another type, to which nothing converts."""

    __props__ = ()

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> str:
        if not isinstance(data, str):
            raise TypeError(f"{data!r} is not a string.")
        return data


integer, small, text = Int(), Int(small=True), Text()


class Function(Op):
    """A named function of integers."""

    __props__ = ("name",)

    def __init__(self, name: str, fn: Any = None, commutative: bool = False, nout: int = 1) -> None:
        self.name, self.fn, self.nout = name, fn, nout
        self.commutative = commutative

    def make_node(self, *inputs: Any) -> Apply:
        args = [x if isinstance(x, Variable) else const(x) for x in inputs]
        return Apply(self, args, [integer() for _ in range(self.nout)])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        results = self.fn(*inputs)
        for cell, value in zip(output_storage, results if self.nout > 1 else [results]):
            cell[0] = value

    def __str__(self) -> str:
        return self.name


class Narrow(Op):
    __props__ = ()

    def make_node(self, x: Variable) -> Apply:
        return Apply(self, [x], [small()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]


class Lifted(Op):
    """A function lifted over something: rules see the function."""

    __props__ = ("function", "mark")

    def __init__(self, function: Function, mark: int = 0) -> None:
        self.function, self.mark = function, mark

    @property
    def rule_key(self) -> Function:
        return self.function

    def make_node(self, *inputs: Any) -> Apply:
        return self.function.make_node(*inputs).op and Apply(
            self, [x if isinstance(x, Variable) else const(x) for x in inputs], [integer()]
        )

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        self.function.perform(node, inputs, output_storage)


class Overwrite(Op):
    """Adds one in the memory of its input."""

    __props__ = ()
    destroy_map = {0: [0]}

    def make_node(self, x: Variable) -> Apply:
        return Apply(self, [x], [integer()])


narrow = Narrow()
overwrite = Overwrite()


def const(value: int) -> Constant:
    return Constant(integer, value)


add = Function("add", lambda *xs: sum(xs), commutative=True)
sub = Function("sub", lambda x, y: x - y)
neg = Function("neg", lambda x: -x)
f = Function("f", lambda x: 3 * x + 1)
g = Function("g", lambda x: x * x)
h = Function("h", lambda x, y: x - 2 * y)
divmod_ = Function("divmod", lambda x, y: divmod(x, y or 1), nout=2)


def mul_all(*xs: int) -> int:
    result = 1
    for x in xs:
        result *= x
    return result


mul = Function("mul", mul_all, commutative=True)


def evaluate(outputs: list[Variable], given: dict[Variable, Any]) -> list[Any]:
    """Values of variables, by running every node."""
    from phintys.graph.traversal import io_toposort

    values = dict(given)

    def value(v: Variable) -> Any:
        return v.data if isinstance(v, Constant) else values[v]

    for node in io_toposort(list(given), outputs):
        cells = [[None] for _ in node.outputs]
        node.op.perform(node, [value(v) for v in node.inputs], cells)
        values.update((o, c[0]) for o, c in zip(node.outputs, cells))
    return [value(v) for v in outputs]


def show(v: Variable) -> str:
    """A variable as text, for comparing graphs (small ones only)."""
    if v.owner is None:
        return str(v.data) if isinstance(v, Constant) else str(v.name)
    suffix = f".{v.index}" if len(v.owner.outputs) > 1 else ""
    return f"{v.owner.op}({', '.join(map(show, v.owner.inputs))}){suffix}"
