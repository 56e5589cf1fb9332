"""The graphs that products build, which programs take apart, and the vector form they get."""

from __future__ import annotations

import numpy as np
import pytest
from expressions import build, canonical, text_of

import phintys
import phintys.tensor as pt
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import applys_between
from phintys.rewriting import optdb
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import Dot
from phintys.tensor.math import _matmul

#: the tag of the rules that make the vector form
VECTORS = "local_eager_useless_unbatched_blockwise"

#: expression: the graph that is built, the canonical one
LAYOUTS = {
    "matmul(M, Q)": ("Matmul(M, Q)", "Dot(M, Q)"),
    "matmul(M, v)": (
        "Squeeze{axis=1}(Matmul(M, ExpandDims{axis=1}(v)))",
        "Dot(M, v)",
    ),
    "matmul(v, Q)": (
        "Squeeze{axis=1}(Matmul(MatrixTranspose(Q), ExpandDims{axis=1}(v)))",
        "Dot(v, Q)",
    ),
    "matmul(v, w)": (
        "Squeeze{axes=(0, 1)}(Matmul(ExpandDims{axis=0}(v), ExpandDims{axis=1}(w)))",
        "Dot(v, w)",
    ),
    "matmul(K, Q)": (
        "Matmul(K, ExpandDims{axis=0}(Q))",
        "Matmul(K, ExpandDims{axis=0}(Q))",
    ),
    "matmul(K, w)": (
        "Squeeze{axis=2}(Matmul(K, ExpandDims{axis=0}(ExpandDims{axis=1}(w))))",
        "Matvec(K, ExpandDims{axis=0}(w))",
    ),
    "matmul(v, K)": (
        "Squeeze{axis=2}(Matmul(MatrixTranspose(K), ExpandDims{axis=0}(ExpandDims{axis=1}(v))))",
        "Vecmat(ExpandDims{axis=0}(v), K)",
    ),
    "matvec(Q, M)": (
        "Squeeze{axis=2}(Matmul(ExpandDims{axis=0}(Q), ExpandDims{axis=2}(M)))",
        "Dot(M, MatrixTranspose(Q))",
    ),
    "vecmat(M, Q)": (
        "Squeeze{axis=2}(Matmul(ExpandDims{axis=0}(MatrixTranspose(Q)), ExpandDims{axis=2}(M)))",
        "Dot(M, Q)",
    ),
    "vecdot(M, M)": (
        "Squeeze{axes=(1, 2)}(Matmul(ExpandDims{axis=1}(M), ExpandDims{axis=2}(M)))",
        "Vecdot(M, M)",
    ),
    "dot(M, Q)": ("Dot(M, Q)", "Dot(M, Q)"),
    "dot(M, v)": ("Squeeze{axis=1}(Dot(M, ExpandDims{axis=1}(v)))", "Dot(M, v)"),
    "dot(v, Q)": ("Squeeze{axis=0}(Dot(ExpandDims{axis=0}(v), Q))", "Dot(v, Q)"),
    "dot(v, w)": (
        "Squeeze{axis=0}(Squeeze{axis=0}(Dot(ExpandDims{axis=0}(v), ExpandDims{axis=1}(w))))",
        "Dot(v, w)",
    ),
    "dot(M.T, w)": (
        "Squeeze{axis=1}(Dot(MatrixTranspose(M), ExpandDims{axis=1}(w)))",
        "Dot(w, M)",
    ),
}


@pytest.mark.parametrize("expression", LAYOUTS)
def test_products_of_matrices_are_built(expression):
    out, _ = build(expression)
    assert text_of(out) == LAYOUTS[expression][0]


@pytest.mark.parametrize("expression", LAYOUTS)
def test_compiled_products_take_vectors(expression):
    out, inputs = build(expression)
    f = phintys.function(inputs, out, mode="FAST_COMPILE")
    assert text_of(f.maker.fgraph.outputs[0]) == LAYOUTS[expression][1]


def shapes_of_products(x, y):
    return [(x, y), (x, y[:1]), (x[1:], y), (x[1:], y[:1])]


@pytest.mark.parametrize("lengths", [(1, 1, 1), (0, 1, 3), (1, 0, 1), (3, 1, 1), (None, 1, None)])
def test_known_lengths_do_not_change_the_graph(lengths):
    m, k, n = lengths
    open_shapes = shapes_of_products((None, None), (None, None))
    for shapes, plain in zip(shapes_of_products((m, k), (k, n)), open_shapes):
        for product in (pt.dot, pt.matmul):
            known, unknown = (
                product(*(pt.tensor(name, shape=s) for name, s in zip("xy", given)))
                for given in (shapes, plain)
            )
            assert text_of(known) == text_of(unknown)


def products_in(graph):
    """The ops of the products in a graph."""
    found = [node.op for node in applys_between([], graph)]
    return [op for op in found if isinstance(getattr(op, "core_op", op), Dot)]


@pytest.mark.parametrize("expression", ["M @ v", "v @ Q", "v @ w", "M @ Q", "K @ w"])
def test_the_layout_is_kept_where_the_tag_is_excluded(expression):
    """Programs derive densities of products by finding this op in canonical graphs."""
    out, _ = build(expression)
    assert _matmul == Blockwise(Dot(), "(m,n),(n,p)->(m,p)")
    fgraph = FunctionGraph(outputs=[out], clone=False)
    optdb.query("+canonicalize", f"-{VECTORS}").rewrite(fgraph)
    assert products_in(fgraph.outputs) == [_matmul]
    assert products_in([canonical(build(expression)[0])]) != [_matmul]


def test_vectors_are_found_in_sums_and_in_gradients():
    """An axis that is added to a sum is not moved to its terms before the product is found."""
    A, x, y = pt.dmatrix("A"), pt.dvector("x"), pt.dvector("y")
    f = phintys.function([A, x, y], A @ (x + y))
    assert f.maker.fgraph.outputs[0].owner.op == Dot()
    g = phintys.function([A, x], phintys.grad(pt.exp(A @ x).sum(), [A, x]))
    ops = [node.op for node in g.maker.fgraph.toposort()]
    assert ops.count(Dot()) == 2
    a, v = np.arange(6.0).reshape(2, 3) / 10, np.array([1.0, -1.0, 0.5])
    e = np.exp(a @ v)
    for found, expected in zip(g(a, v), (np.outer(e, v), a.T @ e)):
        np.testing.assert_allclose(found, expected)


def test_operands_without_axes_are_errors():
    s, v, M = pt.dscalar("s"), pt.dvector("v"), pt.dmatrix("M")
    for product, error in ((pt.matmul, ValueError), (pt.vecdot, IndexError)):
        for x, y in ((s, v), (v, s), (s, s), (M, s)):
            with pytest.raises(error, match="0"):
                product(x, y)
    for product, x, y in ((pt.matvec, v, v), (pt.matvec, M, s), (pt.vecmat, v, v)):
        with pytest.raises(ValueError, match="needs at least"):
            product(x, y)
