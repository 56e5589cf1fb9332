"""`pprint` with registered printers, lines of trees as objects, nodes by id, printed changes."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from phintys.printing import (
    ConstantPrinter,
    FunctionPrinter,
    IgnorePrinter,
    OperatorPrinter,
    PatternPrinter,
    Printer,
    get_node_by_id,
    hex_digest,
    iter_graph_nodes,
    min_informative_str,
    op_debug_information,
    pprint,
)

import phintys
import phintys.tensor as pt
from phintys.graph.features import PrintListener
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.reduce import Sum

x, y = pt.dscalars("x", "y")
v = pt.dvector("v")


class Halves(Op):
    """An op with two outputs."""

    __props__ = ()

    def make_node(self, a):
        return Apply(self, [a], [a.type(), a.type()])


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (pt.exp(x + y) * 2, "(Exp((x + y)) * 2)"),
        ((x + y) * (x - y) ** 2, "((x + y) * ((x - y) ** 2))"),
        (-(x + y), "(-(x + y))"),
        (pt.constant(3.0) + x, "(3.0 + x)"),
        (pt.dmatrix("m").T + v, "(m.T + v)"),
        (v.sum(), "sum(v, axis=None)"),
        (v * 2 > np.float32([0.1]), "Gt((v * 2), 0.1)"),
        (v[1:2], "v[1:2]"),
        (v[::-1], "v[::-1]"),
        (pt.dmatrix("m")[-1, pt.lvector("i")], "m[-1, i]"),
        (v[1:].set(pt.dvector("w")), "set_subtensor(v[1:], w)"),
        (v[v > 0].inc(1), "inc_subtensor(v[Gt(v, 0)], 1)"),
        (Halves()(v)[1], "Halves(v).1"),
        (abs(x), "|x|"),
        (pt.stack([x, y]), "[x, y]"),
        (pt.concatenate([v, v]), "join(v, v)"),
        (pt.alloc(x, 3), "alloc(x, 3)"),
        (pt.fill(v, x), "fill(v, x)"),
        (pt.cast(x, "float32"), "float32(x)"),
        (pt.dot(pt.dmatrix("m"), pt.dmatrix("n")), "(m \\dot n)"),
        (pt.switch(pt.and_(pt.eq(x, 1), x < y), x, y), "Switch(And(Eq(x, 1), Lt(x, y)), x, y)"),
        (x, "x"),
        (pt.dscalar(), "<Scalar(float64, shape=())>"),
    ],
)
def test_expressions_in_one_line(expression, text):
    assert phintys.pp(expression) == pprint(expression) == text


def test_printers_for_ops_classes_and_predicates():
    z = pt.exp(x + y) * 2
    own = pprint.clone_assign(pt.add, OperatorPrinter("PLUS", -2, "either"))
    assert own(z) == "(Exp((x PLUS y)) * 2)"
    own.assign(pt.exp, PatternPrinter("e^{%(0)s}"))
    assert own(z) == "(e^{(x PLUS y)} * 2)"
    own.assign(lambda pstate, r: r.name == "y", IgnoredName())
    assert own(z) == "(e^{(x PLUS ?)} * 2)"
    assert pprint(z) == "(Exp((x + y)) * 2)"
    by_class = pprint.clone_assign(Sum, FunctionPrinter(["total"], ["axis"]))
    assert by_class(v.sum()) == "total(v, axis=None)"
    first = pprint.clone_assign(Elemwise, IgnorePrinter())
    assert first(z) == "x"
    numbered = pprint.clone_assign(Halves, FunctionPrinter(["low", "high"]))
    assert [numbered(h) for h in Halves()(v)] == ["low(v)", "high(v)"]
    assert (
        pprint.process_graph([x, y], [z], {x: y}, True)
        == f"inputs: x, y\nreturn {pprint(z)}\nx <- y"
    )
    with pytest.raises(ValueError, match="assoc must be one of"):
        OperatorPrinter("+", 1, "middle")
    with pytest.raises(TypeError, match="does not define process"):
        pprint.clone_assign(pt.add, Printer())(x + y)
    assert ConstantPrinter().process(pt.constant([1.0, 2.0]), None) == "[1. 2.]"


class IgnoredName(Printer):
    def process(self, var, pstate):
        return "?"


def test_deep_graphs_are_printed():
    z = x
    for _ in range(3000):
        z = pt.sin(z)
    assert pprint(z).count("Sin(") == 3000
    assert len(min_informative_str(z).splitlines()) == 3001
    assert sum(1 for _ in iter_graph_nodes(z)) == 3001


def test_lines_of_trees():
    z = pt.exp(x + y) * (x + y)
    shared = (x + y).owner
    again = z.owner.inputs[1]
    lines = [*iter_graph_nodes(z)]
    assert [str(n.var) for n in lines] == ["Mul.0", "Exp.0", "Add.0", "x", "y", "Add.0"] + (
        ["x", "y"] if again.owner is not lines[2].node else []
    )
    assert [n.is_last_child for n in lines[:4]] == [True, False, True, False]
    assert lines[2].ancestor_is_last == [True, False]
    assert lines[2].parent_node is lines[1].node
    assert lines[0].output_idx == ""
    assert shared is not None
    w = x + y
    repeated = [*iter_graph_nodes(w * w)]
    assert [n.is_repeat for n in repeated] == [False, False, False, False, True]
    assert [str(n.var) for n in iter_graph_nodes(w * w, depth=2)] == [
        "Mul.0",
        "Add.0",
        "Add.0",
    ]


def test_nodes_by_id():
    z = pt.exp(x + y) * 2
    f = phintys.function([x, y], z, mode="FAST_COMPILE")
    assert get_node_by_id(z, "C").op == pt.add
    assert get_node_by_id(z, "D") is x
    assert get_node_by_id(z, "1", "int").op == pt.exp
    assert get_node_by_id(z, "ZZ") is None
    assert isinstance(get_node_by_id(f, "A"), Apply)


def test_short_descriptions():
    named = pt.exp(x)
    named.name = "e"
    assert min_informative_str(named + named * y) == "A. Add\n B. e\n C. Mul\n  <B>\n  D. y"
    a = np.arange(4.0)
    assert hex_digest(a) == hex_digest(a.copy())
    assert hex_digest(a) != hex_digest(a.astype("float32"))


def test_what_ops_say_of_their_inputs():
    @op_debug_information.register(Halves)
    def about(op, node):
        return {node: {node.inputs[0]: "cut"}}

    text = phintys.dprint(Halves()(v)[0], file="str", print_op_info=True)
    assert text.splitlines()[1] == " └─ v [id B] (cut)"
    assert "cut" not in phintys.dprint(Halves()(v)[0], file="str")


def test_a_file_that_dprint_does_not_know():
    with pytest.raises(ValueError, match="file is 'str', 'rich', None or an open file, not 'txt'"):
        phintys.dprint(x, file="txt")


def test_trees_of_rich(monkeypatch):
    rich = pytest.importorskip("rich.tree")
    tree = phintys.dprint(pt.exp(x) + y, file="rich")
    assert isinstance(tree, rich.Tree)
    (root,) = tree.children
    assert str(root.label) == "Add [id A]"
    assert [str(c.label) for c in root.children] == ["Exp [id B]", "y [id D]"]
    monkeypatch.setitem(sys.modules, "rich.tree", None)
    with pytest.raises(ImportError, match="pip install rich"):
        phintys.dprint(x, file="rich")


def test_changes_are_printed(capsys):
    graph = FunctionGraph([x, y], [pt.exp(x)], clone=False)
    listener = PrintListener()
    graph.attach_feature(listener)
    graph.replace(x, y, reason="why")
    graph.change_node_input(graph.get_output_client(0)[0], 0, pt.sin(y), reason="more")
    listener.active = False
    graph.replace(y, x)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("-- attaching to:")
    assert lines[1] == "-- changing (Exp(y).inputs[0]) from x to y, reason: why"
    assert lines[2] == "-- importing: Sin(y), reason: more"
    assert lines[3] == "-- pruning: Exp(y), reason: more"
    assert lines[4].endswith("reason: more")
    assert len(lines) == 5


def test_shapes_in_a_tree():
    text = phintys.dprint(
        pt.tensor("t", dtype="int8", shape=(2, None)) + v, print_shape=True, file="str"
    )
    found = [line.partition("] ")[2] for line in text.splitlines()]
    assert found == ["shape=(2, ?)", "shape=(2, ?)", "shape=(1, ?)", "shape=(?,)"]
