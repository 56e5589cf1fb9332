"""Inner graphs in the pipeline: rewriting, fingerprints, the cache, lowering, deep nesting."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from tensor_checks import evaluate

import phintys
import phintys.loop  # registers its phases
import phintys.tensor as pt
from phintys import FunctionGraph, OpFromGraph
from phintys.backends import llvm
from phintys.compile import native
from phintys.compile.mode import Mode
from phintys.graph.fingerprint import fingerprint
from phintys.graph.inner import expanded, nested_ops
from phintys.graph.op import HasInnerGraph, Op
from phintys.graph.origin import locate
from phintys.graph.variable import Apply
from phintys.lowering.from_graph import GraphLowering, lower_graph
from phintys.rewriting.database import RewriteDatabaseQuery, optdb
from phintys.rewriting.inner import InnerGraphRewriter
from phintys.rewriting.rewriter import node_rewriter
from phintys.rewriting.walk import in2out
from phintys.scalar.composite import Composite
from phintys.tensor.elemwise import Elemwise

x, y = pt.dvectors("x", "y")
V, W = np.array([0.5, 1.0, 2.0]), np.array([1.5, -1.0, 0.3])


def inner_ops(fgraph):
    """The names of the ops, by op with an inner graph, deepest first; last those of the graph."""
    ops = nested_ops(node.op for node in fgraph.toposort())
    return [[str(n.op) for n in op.fgraph.toposort()] for op in ops]


def rewritten(*outputs, include=("fast_run",), **options):
    fgraph = FunctionGraph([x, y], outputs)
    query = RewriteDatabaseQuery(include=include, **options)
    optdb.query(query).rewrite(fgraph)
    return fgraph


# ----------------------------------------------------------------------------- rewriting


def test_inner_graphs_are_rewritten_by_the_phases_of_the_pipeline():
    op = OpFromGraph([x, y], [pt.log(pt.exp(x)) + pt.log(1 + pt.exp(y))], name="op")
    fgraph = rewritten(op(x, y))
    assert inner_ops(fgraph) == [["Softplus", "Add"]]
    assert [str(n.op) for n in fgraph.toposort()] == ["op{inline=False}"]
    without = rewritten(op(x, y), exclude=["inner_graphs"])
    assert inner_ops(without)[0].count("Exp") == 2
    early = rewritten(op(x, y), exclude=["stabilize"])
    assert inner_ops(early)[0].count("Exp") == 1


def test_nested_graphs_are_rewritten():
    inner = OpFromGraph([x], [pt.log(pt.exp(x)) * 1 + 2])
    outer = OpFromGraph([x], [pt.log(pt.exp(inner(x)))])
    found = inner_ops(rewritten(outer(y)))
    assert found == [["Add"], ["OpFromGraph{inline=False}"]]


def test_inlined_ops_are_part_of_the_graph_before_the_first_phase():
    op = OpFromGraph([x], [pt.exp(x)], inline=True)
    outer = OpFromGraph([x], [pt.log(op(x)) + 1])
    fgraph = rewritten(pt.log(op(x)), outer(y))
    assert fgraph.outputs[0] is fgraph.inputs[0]
    assert inner_ops(fgraph) == [["Add"]]


def test_rewriting_keeps_the_lines_of_inner_nodes():
    op = OpFromGraph([x], [pt.exp(x) + 1])
    (new,) = nested_ops(n.op for n in rewritten(op(y)).toposort())
    assert [locate(o).file for o in new.origins] == [__file__] * 2


def test_unused_outputs_and_inputs_are_dropped():
    op = OpFromGraph([x, y], [pt.exp(x), pt.exp(y), x, pt.constant(1.0), pt.exp(y)])
    a, b, c, d, e = op(x, y)
    fgraph = rewritten(b + e)
    (node,) = (n for n in fgraph.toposort() if isinstance(n.op, OpFromGraph))
    assert (node.nin, node.nout) == (1, 1)
    fgraph = rewritten(c, d + 1)
    assert not any(isinstance(n.op, OpFromGraph) for n in fgraph.toposort())
    assert fgraph.outputs[0] is fgraph.inputs[0]
    np.testing.assert_allclose(
        evaluate([a, b, c, d, e], [x, y], [V, W], "FAST_COMPILE")[4], np.exp(W)
    )


def test_ops_with_overrides_and_destroy_maps_stay_whole():
    for options in ({"pullback": max}, {"destroy_map": {0: [0]}}):
        op = OpFromGraph([x, y], [pt.exp(x), pt.exp(y)], **options)
        (node,) = rewritten(op(x, y)[0]).toposort()
        assert node.nout == 2


def test_constant_folding_reaches_ops_with_constant_inputs():
    op = OpFromGraph([x], [x * 2])
    assert not rewritten(op([1.0, 2.0]), include=["canonicalize"]).toposort()
    allocating = OpFromGraph([x], [pt.alloc(x[0], 3)])
    assert rewritten(allocating([1.0, 2.0]), include=["canonicalize"]).toposort()


def test_rewriting_has_the_value_of_the_inlined_graph():
    e = pt.log(1 + pt.exp(x * y)) / x
    plain, boxed = e * 2 - x, OpFromGraph([x, y], [e])(x, y) * 2 - x
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        with phintys.config.change_flags(check_rewrites=True):
            found = evaluate(boxed, [x, y], [V, W], mode)
        np.testing.assert_allclose(found, evaluate(plain, [x, y], [V, W], mode), rtol=1e-14)


def test_an_error_of_a_rewrite_names_the_op_and_the_inner_node():
    @node_rewriter([pt.exp])
    def broken(fgraph, node):
        raise ValueError("no luck")

    query = RewriteDatabaseQuery(include=["fast_run"], extra_rewrites=[(in2out(broken), 1.2)])
    fgraph = FunctionGraph([x], [OpFromGraph([x], [pt.exp(x)], name="mine")(x)])
    with pytest.raises(ValueError, match="no luck") as caught:
        optdb.query(query).rewrite(fgraph)
    notes = "".join(caught.value.__notes__)
    assert "inside mine" in notes and "raised by rewrite broken at Exp" in notes


def test_the_phases_of_compiled_backends_end_where_graphs_are_inlined():
    def phases(op, *names):
        """The phases of the first and of the second rewriter of inner graphs."""
        found = optdb.query(RewriteDatabaseQuery(include=["fast_run", *names]))
        rewriters = [r for r in found if isinstance(r, InnerGraphRewriter)]
        return [[phase.name for phase in r.phases_for(op)] for r in rewriters]

    op = OpFromGraph([x], [x + 1])
    normal = [
        "scan_eqopt1",
        "useless",
        "vectors",
        "rows",
        "nested_axes",
        "canonicalize",
        "stabilize",
    ]
    last = ["uncanonicalize", "unused_inner_outputs"]
    assert phases(op, "inline_inner_graphs")[0] == normal
    for first, second in (phases(op), phases(Whole(), "inline_inner_graphs")):
        assert first[:7] == normal and second[-2:] == last
        assert not set(first) & set(second)


class Whole(HasInnerGraph, Op):
    """An op of a user with an inner graph, which says nothing about rewriting."""

    __props__ = ()

    def __init__(self):
        self.fgraph = FunctionGraph([x], [pt.exp(pt.log(x))])

    def make_node(self, v):
        return Apply(self, [v], [v.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0].copy()

    def infer_shape(self, node, shapes):
        return shapes


def test_other_ops_with_inner_graphs_are_left_alone(mode):
    f = phintys.function([x], Whole()(x) + 1, mode=mode)
    np.testing.assert_array_equal(f(V), V + 1)
    assert any(isinstance(n.op, Whole) for n in f.maker.fgraph.toposort())


# -------------------------------------------------------------------- fingerprint and cache


def key(out):
    return fingerprint(FunctionGraph([x, y], [out]))


def boxed(number=1.0, **options):
    return OpFromGraph([x, y], [pt.exp(x) * y + number], **options)(x, y)


def test_fingerprints_are_those_of_the_inner_graphs():
    assert key(boxed()) == key(boxed(name="label")) == key(boxed(pullback=lambda i, o, c: c))
    others = [boxed(2.0), boxed(inline=True), pt.exp(x) * y + 1.0, boxed(destroy_map={0: [1]})]
    assert len({key(boxed()), *map(key, others)}) == 5 and None not in map(key, others)
    outer = OpFromGraph([x, y], [boxed() + 1])(x, y)
    assert key(outer) not in (None, key(OpFromGraph([x, y], [boxed(3.0) + 1])(x, y)))


def test_ops_of_users_have_no_fingerprint():
    class Mine(OpFromGraph):
        pass

    assert key(Mine([x], [x + 1])(x)) is None
    assert key(OpFromGraph([x], [Whole()(x)])(x)) is None


def test_composites_have_fingerprints():
    def out(number):
        a, b = phintys.scalar.float64("a"), phintys.scalar.float64("b")
        return Elemwise(Composite([a, b], [a * b + number]))(x, y)

    assert key(out(1.0)) == key(out(1.0)) != key(out(2.0)) is not None


PROGRAM = (
    "import phintys, phintys.tensor as pt\n"
    "from phintys.graph.fingerprint import fingerprint\n"
    "x, y = pt.dvectors('x', 'y')\n"
    "op = phintys.OpFromGraph([x, y], [pt.exp(x) * y + 1.0])\n"
    "out = phintys.OpFromGraph([x, y], [op(x, 2 * y), x.sum()])(x, y)\n"
    "print(fingerprint(phintys.FunctionGraph([x, y], [*out, phintys.grad(out[0].sum(), x)])))"
)


def test_two_processes_find_the_same_fingerprint():
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(found) == 1 and len(found.pop().strip()) == 64


def test_functions_are_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("PHINTYS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(optdb, "_own_version", optdb.version)
    made = []
    generate = llvm.generate
    monkeypatch.setattr(llvm, "generate", lambda *a, **k: made.append(1) or generate(*a, **k))
    for _ in range(2):
        native._recent.clear()
        f = phintys.function([x, y], boxed(pullback=lambda i, o, c: c))
        np.testing.assert_allclose(f(V, W), np.exp(V) * W + 1)
    assert len(made) == 1 and f.maker.times["rewriting"] == 0
    native._recent.clear()


# ------------------------------------------------------------------------------- lowering


def kernels(out, mode):
    f = phintys.function([x, y], out, mode=mode)
    return [type(step).__name__ for step in f.program.steps]


@pytest.mark.parametrize("mode", ["FAST_RUN", Mode("llvm", None), Mode("llvm", "fast_compile")])
def test_the_program_is_that_of_the_plain_graph(mode):
    plain = (pt.exp(x) * y + 1.0).sum()
    assert kernels(boxed().sum(), mode) == kernels(plain, mode) == ["Check", "Kernel"]


def test_lowering_expands_by_itself():
    program = lower_graph(FunctionGraph([x, y], [boxed().sum()]))
    assert [type(s).__name__ for s in program.steps] == ["Check", "Kernel"]
    b = GraphLowering().builder
    value = b.input("float64", (None,))
    body = b.inner(FunctionGraph([x, y], [boxed()]), [value, value])
    assert [type(s).__name__ for s in body.program.steps] == ["Check", "Kernel"]


def test_expanding_leaves_other_graphs_as_they_are():
    fgraph = FunctionGraph([x], [x + 1])
    assert expanded(fgraph) is fgraph
    fgraph = FunctionGraph([x, y], [boxed()])
    copy = expanded(fgraph)
    assert copy is not fgraph and len(fgraph.toposort()) == 1
    assert [str(n.op) for n in copy.toposort()] == ["Exp", "Mul", "Add"]


@pytest.mark.parametrize("mode", ["JAX", "NUMBA"])
def test_functions_of_transpilers(mode):
    package = mode.lower()
    backend = import_module(f"phintys.backends.{package}")
    funcify = getattr(backend, f"{package}_funcify")
    table = pt.constant(np.arange(3.0))
    two = OpFromGraph([x, y], [x * y + table, x.sum()])
    node = two(x, y)[0].owner
    first, second = funcify(two, node=node)(V, W)
    np.testing.assert_allclose(first, V * W + np.arange(3.0))
    np.testing.assert_allclose(second, V.sum())
    one = OpFromGraph([x], [two(x, x)[0]])
    np.testing.assert_allclose(funcify(one, node=one(x).owner)(V), V * V + np.arange(3.0))


# ---------------------------------------------------------------------------- deep nesting


def nested(depth):
    op = OpFromGraph([x], [x * 1.5])
    for i in range(depth):
        op = OpFromGraph([x], [op(x) + float(i % 3)])
    return op


def test_graphs_nested_1000_deep():
    """Nothing recurses."""
    op = nested(1000)
    assert len(nested_ops([op])) == 1001
    assert pickle.loads(pickle.dumps(op)) == op
    out = op(x)
    assert fingerprint(FunctionGraph([x], [out])) is not None
    total = sum(i % 3 for i in range(1000))
    g = phintys.grad(out.sum(), x)
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        found = evaluate([out, g], [x], [V], mode)
        np.testing.assert_allclose(found, [1.5 * V + total, [1.5] * 3])
    assert phintys.dprint(out, file="str").count("Inner graphs") == 1
    assert op.infer_shape(out.owner, [(x.shape[0],)])[0][0].owner is not None


def test_work_on_nested_graphs_grows_linearly(lines_run):
    def work(op):
        fingerprint(FunctionGraph([x], [op(x)]))
        pickle.dumps(op)
        phintys.dprint(op(x), file="str")

    few, many = (nested(n) for n in (60, 240))
    assert lines_run(work, many) < 6 * lines_run(work, few)
