"""Rewrites that programs name: objects, and what an import of the others says."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from phintys.graph.rewriting.basic import GraphRewriter, NodeRewriter, in2out

import phintys
import phintys.tensor as pt
from phintys.compat.rewrites import ABSENT, LOOPS, OWN, SIMPLIFICATIONS, reason
from phintys.compile.mode import Mode
from phintys.graph.fgraph import FunctionGraph
from phintys.loop.op import Scan
from phintys.rewriting.database import RewriteDatabaseQuery, optdb

x, y = pt.dvectors("x", "y")

#: module -> names of PyTensor's and Aesara's rewrites that rules of this package carry as tags
TAGS = {
    "tensor.rewriting.basic": "local_fill_sink local_fill_to_alloc constant_folding",
    "tensor.rewriting.elemwise": "flatten_nested_add_mul constant_fold_branches_of_add_mul "
    "local_dimshuffle_merge",
    "tensor.rewriting.linalg": "reassociate_matmul_chain",
    "tensor.rewriting.math": "log1msigm_to_softplus local_log_div local_sign_prod local_sumsqr2dot "
    "local_useless_sign local_useless_conj local_mul_pow_to_pow_add local_elemwise_sub_zeros "
    "useless_Arcsinh_of_Sinh useless_Sinh_of_Arcsinh useless_Arccosh_of_Cosh local_mul_zero",
    "tensor.rewriting.ofg": " ".join(OWN),
    "tensor.rewriting.subtensor": "local_subtensor_merge",
    "scan.rewriting.push_out": " ".join(LOOPS),
    "scan.rewriting.io": " ".join(SIMPLIFICATIONS),
}


@pytest.mark.parametrize("path, names", TAGS.items())
def test_rewrites_are_objects(path, names):
    module = import_module(f"phintys.{path}")
    for name in names.split():
        rewriter = getattr(module, name)
        assert isinstance(rewriter, NodeRewriter) and rewriter.tracks() != []
        assert isinstance(in2out(rewriter), GraphRewriter)
        fgraph = FunctionGraph([x], [pt.floor(x)], clone=False)
        assert not rewriter.transform(fgraph, fgraph.toposort()[0])


def test_what_an_import_says():
    with pytest.raises(ImportError, match="local_dot_to_dot22': products of matrices stay"):
        from phintys.tensor.rewriting.blas import local_dot_to_dot22  # noqa: F401
    with pytest.raises(ImportError, match="in-place"):
        from phintys.scan.rewriting import scan_make_inplace  # noqa: F401
    module = import_module("phintys.tensor.rewriting.blas")
    assert not hasattr(module, "local_dot_to_dot22") and not hasattr(module, "no_such_rewrite")
    assert all(reason(pattern.split("|")[0].replace("*", "x")) for pattern in ABSENT)


def test_rewriters_of_loops():
    sums, _ = phintys.scan(
        lambda a, s, t: (s + pt.exp(a), t + a),
        sequences=[x],
        outputs_info=[pt.constant(np.array(0.0)), pt.constant(np.array(0.0))],
        return_updates=False,
    )
    fgraph = FunctionGraph([x], [sums], clone=False)
    (loop,) = [n for n in fgraph.toposort() if isinstance(n.op, Scan)]
    module = import_module("phintys.scan.rewriting")
    assert module.scan_remove_unused.transform(fgraph, loop)
    assert module.scan_push_out_seq.transform(fgraph, loop)
    in2out(module.scan_push_out_seq).rewrite(fgraph)
    assert pt.exp in {n.op for n in fgraph.toposort()}
    np.testing.assert_allclose(fgraph.outputs[0].eval({x: [0.0, 0.0]}), [1.0, 2.0])


def test_graphs_of_ops_are_expanded():
    from phintys.tensor.rewriting.ofg import inline_ofg_expansion, late_inline_OpFromGraph

    for inline, rewriter, ops in (
        (True, inline_ofg_expansion, {pt.exp}),
        (False, late_inline_OpFromGraph, {pt.exp}),
        (False, inline_ofg_expansion, None),
    ):
        op = phintys.OpFromGraph([x], [pt.exp(x)], inline=inline)
        fgraph = FunctionGraph([y], [op(y)], clone=False)
        in2out(rewriter).rewrite(fgraph)
        assert {n.op for n in fgraph.toposort()} == ({op} if ops is None else ops)


#: the positions of PyTensor 3.3.8
POSITIONS = {
    "CheckStackTrace": -1,
    "ShapeOpt": 0.1,
    "merge1": 0,
    "merge1.1": 0.65,
    "merge1.2": 1.2,
    "Print1.21": 1.21,
    "Print1.51": 1.51,
    "add_mul_fusion": 48,
    "elemwise_fusion": 49,
    "merge2": 49,
    "add_destroy_handler": 49.5,
    "inplace_elemwise": 50.5,
    "merge3": 100,
}


def test_positions_beside_which_programs_register():
    assert {name: optdb.position(name) for name in POSITIONS} == POSITIONS


def test_what_stands_at_these_positions(capsys):
    query = RewriteDatabaseQuery(include=["merge", "inplace", "fusion", "Print1.21", "ShapeOpt"])
    f = phintys.function([x], pt.exp(x) + pt.exp(x), mode=Mode("py", query))
    assert len(f.maker.fgraph.apply_nodes) == 2
    assert "PrintCurrentFunctionGraph: Post-canonicalize" in capsys.readouterr().out
    assert hasattr(f.maker.graph, "shape_feature") and hasattr(f.maker.graph, "destroyers")
    plain = phintys.function([x], pt.exp(x), mode="FAST_COMPILE").maker.graph
    assert not hasattr(plain, "shape_feature") and not hasattr(plain, "destroyers")
