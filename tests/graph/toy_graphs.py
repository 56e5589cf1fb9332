"""Types and ops as a user would write them, random graphs of them, and a way to compute those.

Values are one-element lists, so that views and in-place operations really share memory.
"""

from __future__ import annotations

from hypothesis import strategies as st

from phintys.graph.op import Op
from phintys.graph.traversal import toposort
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Constant, Variable

MODULUS = 10_007


class Interval(Type):
    """Cells with an integer from ``low`` to ``high``."""

    __props__ = ("low", "high")

    def __init__(self, low=0, high=MODULUS):
        self.low, self.high = low, high

    def filter(self, data, strict=False, allow_downcast=None):
        cell = [data] if isinstance(data, int) and not strict else data
        if not (isinstance(cell, list) and len(cell) == 1 and self.low <= cell[0] <= self.high):
            raise TypeError(f"{data!r} is not a value of {self}")
        return cell

    def is_super(self, otype):
        inside = isinstance(otype, Interval) and self.low <= otype.low and otype.high <= self.high
        return True if inside else None

    def convert_variable(self, var):
        if self.is_super(var.type):
            return var
        if not isinstance(var.type, Interval):
            return None
        low, high = max(self.low, var.type.low), min(self.high, var.type.high)
        return Narrow(Interval(low, high))(var) if low <= high else None


class CellConstant(Constant):
    def signature(self):
        return (self.type, tuple(self.data))


Interval.constant_type = CellConstant


class Narrow(Op):
    """Its input, which must be in a smaller interval."""

    __props__ = ("target",)

    def __init__(self, target):
        self.target = target

    def make_node(self, x):
        return Apply(self, [x], [self.target.make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = list(self.target.filter(inputs[0]))


class Mix(Op):
    """A combination of its inputs that depends on their order and on ``key``."""

    __props__ = ("key",)

    def __init__(self, key):
        self.key = key

    def make_node(self, *inputs):
        return Apply(self, [cell.filter_variable(x) for x in inputs], [cell.make_variable()])

    def perform(self, node, inputs, output_storage):
        total = self.key
        for (x,) in inputs:
            total = (31 * total + x) % MODULUS
        output_storage[0][0] = [total]


class Halve(Op):
    """Two outputs: the half, and what is left."""

    __props__ = ()
    itypes = (Interval(),)
    otypes = (Interval(), Interval())

    def perform(self, node, inputs, output_storage):
        output_storage[0][0], output_storage[1][0] = ([r] for r in divmod(inputs[0][0], 2))


class Same(Op):
    """A view of its input."""

    __props__ = ()
    view_map = {0: [0]}
    itypes = (Interval(),)
    otypes = (Interval(),)

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0]


class Increase(Op):
    """The first input plus the others and one, computed in the memory of the first."""

    __props__ = ()
    destroy_map = {0: [0]}

    def make_node(self, *inputs):
        return Apply(self, [cell.filter_variable(x) for x in inputs], [cell.make_variable()])

    def perform(self, node, inputs, output_storage):
        target = inputs[0]
        target[0] = (sum(x for (x,) in inputs) + 1) % MODULUS
        output_storage[0][0] = target


cell = Interval()
f, g, h = Mix(1), Mix(2), Mix(3)
halve, same, increase = Halve(), Same(), Increase()


def evaluate(inputs, outputs, values, order=None, replaced=None, pure=True):
    """The integers that ``outputs`` are.

    ``replaced`` maps variables to what is to be used instead, computed from the original ones.
    ``pure=False`` lets in-place operations write to the memory of their inputs.
    """
    known = {v: [x] for v, x in zip(inputs, values, strict=True)}
    replaced = replaced or {}
    order = list(toposort([*outputs, *replaced.values()])) if order is None else order

    def value(v, table):
        return table[v] if v in table else list(v.data)

    def run(node, cells):
        cells = [list(c) for c in cells] if pure else cells
        storage = [[None] for _ in node.outputs]
        node.op.perform(node, cells, storage)
        return [s[0] for s in storage]

    for node in order:
        results = run(node, [value(v, known) for v in node.inputs])
        known.update(zip(node.outputs, results, strict=True))
    if replaced:
        changed = known | {old: value(new, known) for old, new in replaced.items()}
        for node in toposort(outputs, replaced):
            for o, r in zip(
                node.outputs, run(node, [value(v, changed) for v in node.inputs]), strict=True
            ):
                if o not in replaced:
                    changed[o] = r
        known = changed
    return [value(v, known)[0] for v in outputs]


@st.composite
def graphs(draw, max_nodes=12, ops=(f, g, halve)):
    """Inputs and outputs of a random graph in which variables are shared."""
    inputs = [cell(f"x{i}") for i in range(draw(st.integers(1, 4)))]
    variables = [*inputs, cell.make_constant(draw(st.integers(0, 9)))]
    for _ in range(draw(st.integers(0, max_nodes))):
        op = draw(st.sampled_from(ops))
        arity = 1 if op.itypes else draw(st.integers(1, 3))
        operands = [draw(st.sampled_from(variables)) for _ in range(arity)]
        variables += op(*operands, return_list=True)
    outputs = draw(st.lists(st.sampled_from(variables), min_size=1, max_size=3))
    return inputs, outputs


def chain(length, x=None):
    """A deep graph: each node uses the one before."""
    x = cell("x") if x is None else x
    v = x
    for i in range(length):
        v = (f, g)[i % 2](v, x)
    return x, v


def variables_of(outputs) -> list[Variable]:
    """All variables of a graph, inputs first."""
    found: dict[Variable, None] = {}
    for node in toposort(outputs):
        found.update(dict.fromkeys([*node.inputs, *node.outputs]))
    found.update(dict.fromkeys(outputs))
    return list(found)
