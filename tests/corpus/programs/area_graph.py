"""Graphs: variables, nodes, ops of users, traversal, replacement, rewriting."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
from helpers import both, names_of_ops
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.features import Feature, ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace, graph_replace
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    MergeOptimizer,
    PatternNodeRewriter,
    in2out,
    node_rewriter,
    out2in,
)
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import (
    ancestors,
    applys_between,
    explicit_graph_inputs,
    graph_inputs,
    io_toposort,
    toposort,
    truncated_graph_inputs,
    variable_depends_on,
)
from pytensor.graph.type import Type
from pytensor.graph.utils import MissingInputError


class Double(Op):
    """Twice a vector."""

    __props__ = ("factor",)

    def __init__(self, factor=2):
        self.factor = factor

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * self.factor

    def infer_shape(self, fgraph, node, shapes):
        return shapes

    def pullback(self, inputs, outputs, output_grads):
        return [output_grads[0] * self.factor]


def variables():
    x = pt.dvector("x")
    y = x + x
    yield [x.owner, y.owner.inputs[0] is x, y.index, x.name, y.name, str(x), str(y), repr(x)]
    yield [len(y.owner.inputs), y.owner.nin, y.owner.nout, y.owner.out is y, str(y.owner)]
    z = x.clone()
    yield [z is x, z.name, z.type == x.type, x.clone(name="z").name]
    yield [isinstance(x, Variable), isinstance(pt.constant(1), Constant), hash(x) == hash(x)]
    x.tag.note = 3
    yield x.clone().tag.note
    yield x.get_parents()


def constants():
    c = pt.constant([1.0, 2.0], name="c")
    yield [c, c.data, c.name, str(c), str(pt.constant(1.5)), repr(pt.constant(2))]
    yield [c.equals(pt.constant([1.0, 2.0])), c.equals(1), c.clone() is c]
    yield c.signature() == pt.constant([1.0, 2.0]).signature()
    yield pt.constant(np.nan).signature() == pt.constant(np.nan).signature()
    yield [pt.constant(1) is pt.constant(1), pt.constant([1]) is pt.constant([1])]
    yield lambda: pt.constant(pt.dscalar("x"))
    yield lambda: pt.constant("text")
    yield [pt.constant(1, dtype="float32"), pt.constant([1, 2], ndim=2)]
    yield lambda: pt.constant(np.ones((2, 2)), ndim=1)


def ops_of_users():
    x = pt.dvector("x")
    double = Double()
    yield both(double(x), {x: [1.0, 2.0]})
    yield both(pytensor.grad(double(x).sum(), x), {x: [1.0, 2.0]})
    yield [
        double == Double(2),
        double == Double(3),
        hash(double) == hash(Double()),
        str(double),
        repr(Double(3)),
    ]
    yield both(double(x).shape, {x: [1.0, 2.0]})
    yield pytensor.function([x], double(x).shape[0])([1.0, 2.0])
    yield [double(x, name="y").name, type(double.make_node(x)).__name__, double._props_dict()]
    yield lambda: double()
    yield lambda: double(x, x)
    yield type(double(x, return_list=True)).__name__


def ops_without_methods():
    class Bare(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0].copy()

    x = pt.dvector("x")
    y = Bare()(x)
    yield both(y, {x: [1.0]})
    yield [Bare() == Bare(), str(Bare()).startswith("Bare")]
    yield lambda: pytensor.grad(y.sum(), x)
    yield pytensor.function([x], y.shape)([1.0, 2.0])
    yield lambda: Bare()(1.0)


def ops_with_declared_types():
    class Declared(Op):
        itypes = [pt.dscalar, pt.lvector]
        otypes = [pt.dvector]

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] * inputs[1]

    x, i = pt.dscalar("x"), pt.lvector("i")
    yield both(Declared()(x, i), {x: 2.0, i: [1, 2]})
    yield lambda: Declared()(i, x)
    yield lambda: Declared()(x)
    yield lambda: Declared()(x, [1, 2])


def ops_that_return_what_they_should_not():
    def op(value):
        class Wrong(Op):
            def make_node(self, x):
                return Apply(self, [x], [pt.dvector()])

            def perform(self, node, inputs, output_storage):
                output_storage[0][0] = value

        return Wrong()

    x = pt.dvector("x")
    for value in (np.ones(2, "float32"), np.ones((2, 2)), [1.0, 2.0], 1.0):
        yield lambda value=value: pytensor.function([x], op(value)(x))([1.0])


def functions_as_ops():
    @wrap_py([pt.dvector], [pt.dscalar])
    def largest(x):
        return np.asarray(x.max())

    x = pt.dvector("x")
    yield both(largest(x), {x: [1.0, 3.0]})
    yield lambda: largest(pt.dmatrix("m"))
    yield lambda: pytensor.grad(largest(x), x)


def ops_from_graphs():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    op = OpFromGraph([x, y], [x * y, x + y])
    a, b = op(x + 1, y)
    yield [
        both(a, {x: 1.0, y: 3.0}),
        both(b, {x: 1.0, y: 3.0}),
        both(pytensor.grad(a, x), {x: 1.0, y: 3.0}),
    ]
    yield [
        op == OpFromGraph([x, y], [x * y, x + y]),
        str(op),
        len(op.inner_inputs),
        len(op.inner_outputs),
    ]
    yield lambda: OpFromGraph([x], [x * y])
    yield lambda: OpFromGraph(x, [x])
    yield lambda: OpFromGraph([x], x)
    yield lambda: op(x)
    yield lambda: op(pt.dvector("v"), y)
    yield OpFromGraph([x], [x], name="named").name
    f = pytensor.function([x, y], OpFromGraph([x, y], [x * y], inline=True)(x, y))
    yield f(2.0, 3.0)


def ops_from_graphs_with_derivatives():
    x = pt.dscalar("x")
    op = OpFromGraph([x], [x**2], pullback=lambda inputs, outputs, grads: [grads[0] * 100])
    yield both(pytensor.grad(op(x), x), {x: 3.0})


def types_of_users():
    class Text(Type):
        def filter(self, value, strict=False, allow_downcast=None):
            if not isinstance(value, str):
                raise TypeError("no text")
            return value

        def __eq__(self, other):
            return type(self) is type(other)

        def __hash__(self):
            return hash(type(self))

    text = Text()
    x = text("x")
    yield [
        x.name,
        type(x).__name__,
        text.is_valid_value("a"),
        text.is_valid_value(1),
        x.type == Text(),
    ]
    f = pytensor.function([x], x)
    yield [f("a"), lambda: f(1)]
    yield text.make_constant("b").data
    yield [text.values_eq("a", "a"), text.values_eq("a", "b"), text.is_super(Text())]


def traversals():
    x, y = pt.dvector("x"), pt.dvector("y")
    z = pt.exp(x + y) * x
    yield [v.name for v in graph_inputs([z]) if v.name]
    yield [str(n.op) for n in io_toposort([x, y], [z])]
    yield [str(n.op) for n in toposort([z])]
    yield len(list(ancestors([z])))
    yield [len(list(applys_between([x], [z]))), len(list(explicit_graph_inputs([z])))]
    yield [variable_depends_on(z, x), variable_depends_on(x, z)]
    yield [v.name for v in truncated_graph_inputs([z], [x, y]) if v.name]
    yield sorted(type(v).__name__ for v in ancestors([z]))


def replacements():
    x, y = pt.dvector("x"), pt.dvector("y")
    z = pt.exp(x) + 1
    w = clone_replace(z, {x: y * 2})
    yield both(w, {y: [0.5]})
    yield [v.name for v in graph_inputs([w]) if v.name]
    yield both(graph_replace(z, {z.owner.inputs[0]: y}), {y: [0.5]})
    yield lambda: graph_replace(z, {pt.dvector("other"): y})
    yield both(graph_replace(z, {pt.dvector("other"): y}, strict=False), {x: [0.5]})
    yield lambda: clone_replace(z, {x: pt.dmatrix("m")})
    yield lambda: clone_replace(z, {x: "text"})
    yield type(clone_replace([z, x], {x: y})).__name__
    yield clone_replace(z, {}) is z


def function_graphs():
    x, y = pt.dvector("x"), pt.dvector("y")
    z = x + y * y
    fg = FunctionGraph([x, y], [z], clone=False)
    yield [len(fg.apply_nodes), len(fg.variables), fg.inputs[0] is x, str(fg), len(fg.toposort())]
    yield [len(fg.clients[x]), len(fg.clients[z]), len(fg.get_clients(y))]
    fg.replace(y, x)
    yield [str(fg), fg.outputs[0] is z, len(fg.clients[y])]
    yield lambda: fg.replace(x, pt.dmatrix("m"))
    yield lambda: fg.replace(x, "text")
    yield lambda: FunctionGraph([x], [z])
    yield lambda: FunctionGraph([], [pt.dvector("v")])
    yield [FunctionGraph(outputs=[z]).inputs[0].name, FunctionGraph([x, y], [z]).inputs[0] is x]
    yield fg.check_integrity()
    yield lambda: FunctionGraph([x, x], [x])
    yield lambda: FunctionGraph("text", [x])


def clones_of_function_graphs():
    x = pt.dvector("x")
    fg = FunctionGraph([x], [pt.exp(x)])
    other, memo = fg.clone_get_equiv()
    yield [other is fg, len(memo) >= 3, other.equiv_ok if hasattr(other, "equiv_ok") else True]
    yield [len(fg.clone().apply_nodes), str(fg.clone())]
    yield [x.owner is None, fg.outputs[0].owner.op == pt.exp]
    fg.remove_output(0)
    yield [len(fg.outputs), len(fg.apply_nodes)]
    fg.add_output(fg.inputs[0])
    yield len(fg.outputs)


def features():
    class Count(Feature):
        def __init__(self):
            self.events = []

        def on_attach(self, fgraph):
            self.events.append("attach")

        def on_import(self, fgraph, node, reason):
            self.events.append(f"import {node.op}")

        def on_change_input(self, fgraph, node, i, r, new_r, reason=None):
            self.events.append(f"change {node.op} {i} {reason}")

        def on_prune(self, fgraph, node, reason):
            self.events.append(f"prune {node.op}")

    x = pt.dvector("x")
    count = Count()
    y = pt.exp(x)
    fg = FunctionGraph([x], [pt.sin(y)], clone=False, features=[count])
    fg.replace(y, pt.log(x), reason="a reason")
    yield count.events
    fg.attach_feature(ReplaceValidate())
    fg.replace_validate(fg.inputs[0], x)
    fg.remove_feature(count)
    yield count in fg._features


def rewriters():
    @node_rewriter([pt.exp])
    def exp_to_cosh(fgraph, node):
        return [pt.cosh(node.inputs[0])]

    x = pt.dvector("x")
    for make in (out2in, in2out):
        fg = FunctionGraph([x], [pt.sin(pt.exp(x))], clone=True)
        make(exp_to_cosh).rewrite(fg)
        yield str(fg)
    fg = FunctionGraph([x], [pt.exp(pt.exp(x))])
    EquilibriumGraphRewriter([exp_to_cosh], max_use_ratio=10).rewrite(fg)
    yield str(fg)
    yield [exp_to_cosh.transform(fg, fg.outputs[0].owner), [str(o) for o in exp_to_cosh.tracks()]]


def patterns():
    x, y = pt.dvector("x"), pt.dvector("y")
    rewriter = PatternNodeRewriter(
        (pt.add, (pt.mul, "a", "b"), "b"), (pt.mul, "b", (pt.add, "a", "a"))
    )
    fg = FunctionGraph([x, y], [x * y + y])
    out2in(rewriter).rewrite(fg)
    yield str(fg)
    fg = FunctionGraph([x, y], [x * y + x])
    out2in(rewriter).rewrite(fg)
    yield str(fg)
    to_number = PatternNodeRewriter((pt.sub, "a", "a"), 0)
    fg = FunctionGraph([x], [pt.sin(x - x)])
    out2in(to_number).rewrite(fg)
    yield str(fg)


def merging():
    x = pt.dvector("x")
    fg = FunctionGraph([x], [pt.exp(x) + pt.exp(x)])
    MergeOptimizer().rewrite(fg)
    yield [len(fg.apply_nodes), str(fg)]
    fg = FunctionGraph([x], [(x + np.nan) * (x + np.nan)])
    MergeOptimizer().rewrite(fg)
    yield len(fg.apply_nodes)


def named_phases():
    x = pt.dvector("x")
    for include in (
        ("canonicalize",),
        ("canonicalize", "specialize"),
        ("stabilize",),
        ("no such tag",),
    ):
        yield [str(type(rewrite_graph(pt.log(1 + pt.exp(x)), include=include).owner.op).__name__)]
    y = rewrite_graph(x * 1 + 0, include=("canonicalize",))
    yield y is x
    yield names_of_ops(
        pytensor.function(
            [x], pt.log(1 + pt.exp(x)), mode=pytensor.compile.mode.Mode("py", "fast_run")
        )
    )


def databases():
    from pytensor.compile.mode import optdb
    from pytensor.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery, SequenceDB

    @node_rewriter([pt.exp])
    def nothing(fgraph, node):
        return None

    db = EquilibriumDB()
    db.register("nothing", nothing, "tag", "other")
    yield [
        type(db["tag"]).__name__,
        "nothing" in db,
        "no such tag" in db,
        type(db.query("+tag")).__name__,
    ]
    yield lambda: db.register("nothing", nothing, "tag")
    yield lambda: db["no such name"]
    seq = SequenceDB()
    seq.register("first", out2in(nothing), "tag", position=1)
    yield type(seq.query(RewriteDatabaseQuery(include=["tag"]))).__name__
    yield lambda: seq.register("second", "no rewriter", "tag")
    yield "canonicalize" in optdb


def errors_of_rewriters():
    @node_rewriter([pt.exp])
    def broken(fgraph, node):
        raise ValueError("broken")

    @node_rewriter([pt.exp])
    def other_dtype(fgraph, node):
        return [pt.cast(node.outputs[0], "float32")]

    @node_rewriter([pt.exp])
    def other_count(fgraph, node):
        return [node.outputs[0], node.outputs[0]]

    x = pt.dvector("x")
    for rewriter in (broken, other_dtype, other_count):
        for choice in ("raise", "ignore"):
            with pytensor.config.change_flags(on_opt_error=choice):
                fg = FunctionGraph([x], [pt.exp(x)])
                yield (
                    lambda rewriter=rewriter, fg=fg: (
                        str(out2in(rewriter).rewrite(fg) and None) + str(fg)
                    )
                )
    yield lambda: node_rewriter("text")
    yield lambda: node_rewriter([1])


def classes_of_errors():
    x = pt.dvector("x")
    yield lambda: pytensor.function([], x)
    yield issubclass(MissingInputError, Exception)
    yield lambda: Apply(Double(), [1], [x.type()])
    yield lambda: Apply(Double(), [x], [x])
    yield lambda: Apply(Double(), x, [x.type()])
    yield lambda: Apply(Double(), [x], [(x + 1)])
    yield lambda: Variable(pt.dvector, None, None, name=3)


def equal_graphs():
    from pytensor.graph.basic import equal_computations

    x, y = pt.dvector("x"), pt.dvector("y")
    yield equal_computations([x + 1], [x + 1])
    yield equal_computations([x + 1], [y + 1])
    yield equal_computations([x + 1], [y + 1], in_xs=[x], in_ys=[y])
    yield equal_computations([pt.constant(1.0)], [pt.constant(1.0)])
    yield lambda: equal_computations([x], [x, y])
    yield equal_computations([x + 1], [x + 2])


def constants_of_graphs():
    from pytensor.tensor.basic import (
        get_scalar_constant_value,
        get_underlying_scalar_constant_value,
    )
    from pytensor.tensor.exceptions import NotScalarConstantError

    x = pt.dvector("x")
    for y in (
        pt.constant(2.0),
        pt.zeros((2, 3)),
        pt.alloc(5, 2),
        pt.constant([3])[0],
        pt.vector("v", shape=(4,)).shape[0],
    ):
        yield lambda y=y: get_underlying_scalar_constant_value(y)
    yield lambda: get_scalar_constant_value(x)
    yield lambda: get_scalar_constant_value(pt.constant([1, 2]))
    yield issubclass(NotScalarConstantError, Exception)
    yield lambda: get_underlying_scalar_constant_value(pt.constant([2, 2]))


def batches_of_graphs():
    from pytensor.graph.replace import vectorize_graph

    x, M = pt.dvector("x"), pt.dmatrix("M")
    value = {M: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}
    for y in (
        x[0],
        x[[0, 2]],
        x[1:].sum(),
        pt.exp(x),
        x[x.argmax()],
        pt.set_subtensor(x[0], 0.0),
        x.shape,
        pt.stack([x, x]),
    ):
        yield both(vectorize_graph(y, {x: M}), value)
    yield lambda: vectorize_graph(Double()(x), {x: M}).eval(value)


def typed_lists():
    from pytensor.typed_list import (
        TypedListType,
        append,
        count,
        getitem,
        index_,
        insert,
        length,
        make_list,
        remove,
    )

    values = TypedListType(pt.dvector)("values")
    x = pt.dvector("x")
    f = pytensor.function([values, x], [append(values, x), length(values), getitem(values, 0)])
    yield f([np.array([1.0])], [2.0])
    yield pytensor.function([values, x], [count(values, x), index_(values, x)])(
        [np.array([1.0]), np.array([2.0])], [2.0]
    )
    yield pytensor.function([values, x], insert(values, 0, x))([np.array([1.0])], [2.0])
    yield pytensor.function([values, x], remove(values, x))([np.array([1.0])], [1.0])
    yield lambda: append(values, pt.dscalar("s"))
    yield lambda: make_list([x, pt.dscalar("s")])
    yield [str(TypedListType(pt.dvector)), TypedListType(pt.dvector) == TypedListType(pt.dvector)]
