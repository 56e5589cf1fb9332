"""Sums of products in Einstein's notation against NumPy, and the order of their products."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_checks import (
    MODES,
    assert_like,
    check_batched,
    check_derivatives,
    compiled,
    evaluate,
)

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.graph.replace import clone_replace
from phintys.graph.vectorize import vectorize_graph
from phintys.inner import OpFromGraph
from phintys.tensor.contraction_path import FEW, contraction_path
from phintys.tensor.dot import Dot
from phintys.tensor.einsum import Einsum
from phintys.tensor.type import TensorType

RNG = np.random.default_rng(5)
#: subscripts and shapes of the operands
CASES = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->ji", (3, 3, 2)),
    ("ij->", (2, 3)),
    ("ba", (2, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("b...i,b...i->b...", (2, 3, 4), (2, 3, 4)),
    ("i...->...", (2, 3, 4)),
    ("ijkl,klm->mij", (2, 3, 4, 5), (4, 5, 6)),
    ("i,j,k->ijk", (2,), (3,), (4,)),
    (",ij->ij", (), (2, 3)),
    ("ijj,j", (2, 3, 3), (3,)),
    ("iij,jik->k", (2, 2, 3), (3, 2, 4)),
    ("ij,ij->ij", (1, 3), (2, 3)),
    ("i,i", (1,), (3,)),
    ("ij,jk", (2, 1), (3, 4)),
    ("ij,kj->ik", (1, 1), (1, 1)),
    ("aa,a...,a...->...", (2, 2), (2, 3), (2, 1)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("ij,jk->ik", (0, 2), (2, 3)),
    ("ab,bc,cd,de,ef,fg,gh,hi", (2, 3), (3, 2), (2, 4), (4, 2), (2, 2), (2, 3), (3, 2), (2, 2)),
]


def draw(shape, dtype="float64"):
    if np.dtype(dtype).kind in "iub":
        return RNG.integers(0, 3, shape).astype(dtype)
    value = RNG.normal(size=shape)
    return (value + 1j * RNG.normal(size=shape) if dtype == "complex128" else value).astype(dtype)


def variables(values, static):
    """Lengths of 1 are known, the others only with ``static``."""
    shapes = [v.shape if static else tuple(1 if n == 1 else None for n in v.shape) for v in values]
    return [TensorType(v.dtype.name, s)() for v, s in zip(values, shapes)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("static", [False, True], ids=["any lengths", "known lengths"])
def test_values(static, mode):
    inputs, outputs, values, expected = [], [], [], []
    for subscripts, *shapes in CASES:
        given = [draw(s) for s in shapes]
        own = variables(given, static)
        inputs += own
        values += given
        outputs.append(pt.einsum(subscripts, *own))
        expected.append(np.einsum(subscripts, *given))
    found = evaluate(outputs, inputs, values, mode)
    for case, out, a, b in zip(CASES, outputs, found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, case
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=str(case))
        assert all(n in (None, m) for n, m in zip(out.type.shape, b.shape, strict=True))
        assert not static or None not in out.type.shape


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "C", "JAX"])
def test_dtypes(mode):
    """Operands are cast before they are multiplied: bytes do not overflow beside floats."""
    dtypes = "bool int8 float64 float32 complex128".split()
    values = [draw((2, 3), dtype) for dtype in dtypes]
    strided = np.asarray(draw((3, 4)).T[::2])
    inputs = variables([*values, strided], False)
    *xs, s = inputs
    pairs = [(x, x) for x in xs] + [(xs[1], xs[3]), (xs[0], xs[1])]
    arrays = dict(zip(inputs, [*values, strided], strict=True))
    f = compiled(mode, inputs, [pt.einsum("ij,ij->j", *p) for p in pairs] + [s.T @ s])
    for p, found in zip(pairs, f(*values, strided)):
        expected = np.einsum("ij,ij->j", *(arrays[x] for x in p))
        assert_like(found, expected)
    big = np.array([100, 100], "int8"), np.array([100, 100], "int8"), np.array([0.5, 0.5])
    found = evaluate(pt.einsum("i,i,i", *big), mode="FAST_RUN")
    assert_like(found, np.einsum("i,i,i", *big))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_subscripts(data):
    lengths = {k: data.draw(st.integers(1, 3)) for k in "abcd"}
    terms = data.draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=4))
    order = data.draw(st.permutations(sorted({*"".join(terms)})))
    output = "".join(order[: data.draw(st.integers(0, 4))])
    values = [draw([lengths[k] for k in t]) for t in terms]
    text = f"{','.join(terms)}->{output}"
    expected = np.einsum(text, *values)
    for static in (False, True):
        inputs = variables(values, static)
        out = pt.einsum(text, *inputs, optimize=data.draw(st.sampled_from([None, False, "greedy"])))
        assert_like(evaluate(out, inputs, values, "FAST_COMPILE"), expected)


def test_lists_of_numbers_as_labels():
    x, y = draw((2, 3)), draw((3, 4))
    for labels in ([[0, 1], [1, 2], [2, 0]], [[0, 1], [1, 2]], [[..., 1], [1, 2], [2, ...]]):
        arguments = [x, labels[0], y, *labels[1:]]
        assert_like(pt.einsum(*arguments).eval(), np.einsum(*arguments))


@pytest.mark.parametrize(
    "subscripts, shapes, message",
    [
        ("ij,jk->iik", [(2, 3), (3, 4)], "'i' twice"),
        ("ij->k", [(2, 3)], "'k'"),
        ("ij,jk", [(2, 3)], "2 operands"),
        ("ijk", [(2, 3)], "rank 2"),
        ("i...", [()], "rank 0"),
        ("i...->i", [(2, 3)], "no '...'"),
        ("i", [(2, 3)], "rank 2"),
        ("i-j", [(2, 3)], "is no text"),
        ("i.j", [(2, 3)], "is no text"),
    ],
)
def test_texts_that_are_not_valid(subscripts, shapes, message):
    with pytest.raises(ValueError, match=message):
        pt.einsum(subscripts, *map(draw, shapes))


@pytest.mark.parametrize(
    "subscripts, shapes",
    [
        ("ij,jk->ik", [(2, 3), (4, 5)]),
        ("ij,ij->", [(2, 3), (3, 2)]),
        ("ij,ij->ij", [(2, 3), (1, 3)]),
        ("ijk,ikj->i", [(1, 2, 3), (1, 2, 3)]),
        ("ii", [(2, 3)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (5, 6)]),
        ("i...,i...->...", [(2, 3), (2, 4)]),
    ],
)
def test_lengths_that_differ(subscripts, shapes):
    """Lengths of one operand may be known, or of none; a 1 that is not known does not broadcast."""
    values = [draw(s) for s in shapes]
    unknown = [TensorType("float64", (None,) * v.ndim)() for v in values]
    known = TensorType("float64", values[-1].shape)()
    for mode in MODES:
        f = phintys.function(unknown, pt.einsum(subscripts, *unknown), mode=mode)
        with pytest.raises(ShapeError):
            f(*values)
    if 1 in shapes[-1]:
        return
    mixed = [*unknown[:-1], known]
    with pytest.raises(ShapeError):
        evaluate(pt.einsum(subscripts, *mixed), mixed, values)


def test_a_length_of_one_that_one_operand_knows():
    """The other operand may have any length, which is that of the result."""
    x, y = TensorType("float64", (None, 1))(), TensorType("float64", (None, None))()
    values = draw((4, 1)), draw((3, 5))
    for text in ("ij,jk->ik", "ij,jk->ijk", "ij,jk->j"):
        out = pt.einsum(text, x, y)
        assert_like(evaluate(out, [x, y], values), np.einsum(text, *values))
        checked = phintys.function([x, y], [phintys.grad(out.sum(), x), out.shape[-1]])
        assert checked(*values)[0].shape == (4, 1)


def test_an_op_that_learns_of_a_length_of_one():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    out = pt.einsum("ij,jk->ik", x, y)
    column = TensorType("float64", (None, 1))()
    moved = clone_replace(out, {x: column})
    values = draw((4, 1)), draw((3, 5))
    assert_like(evaluate(moved, [column, y], values), np.einsum("ij,jk->ik", *values))


@pytest.mark.parametrize(
    "subscripts, shapes",
    [
        ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)]),
        ("ii,ij->j", [(2, 2), (2, 3)]),
        ("...i,...i->...", [(2, 1, 3), (4, 3)]),
        ("ijk,jik->", [(2, 3, 2), (3, 2, 2)]),
    ],
)
def test_derivatives_and_batches(subscripts, shapes):
    values = [draw(s) for s in shapes]
    if 1 not in shapes[0]:
        check_derivatives(lambda *x: pt.einsum(subscripts, *x), values)
        check_batched(lambda *x: pt.einsum(subscripts, *x), values)
        return
    inputs = variables(values, True)
    cost = (pt.einsum(subscripts, *inputs) ** 2).sum()
    first, second = evaluate(phintys.grad(cost, inputs), inputs, values)
    product = np.einsum(subscripts, *values)
    assert_like(first, 2 * np.einsum("ab,bi->ai", product, values[1])[:, None])
    assert_like(second, 2 * np.einsum("ab,ai->bi", product, values[0][:, 0]))


# ---------------------------------------------------------------- the order of products


def lengths_of(text, *numbers):
    return dict(zip(text, numbers, strict=True))


def work(terms, output, sizes, path):
    """The number of multiplications of a path."""
    terms, total = list(terms), 0
    for step in path:
        chosen = [terms[k] for k in step]
        terms = [t for k, t in enumerate(terms) if k not in step]
        union = frozenset().union(*chosen)
        total += int(np.prod([sizes[k] for k in union]))
        terms.append(union & frozenset(output).union(*terms))
    assert len(terms) == 1
    return total


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_no_path_is_better_than_the_optimal_one(data):
    sizes = {k: data.draw(st.integers(1, 20)) for k in "abcde"}
    texts = st.lists(st.text("abcde", min_size=1, max_size=3), min_size=2, max_size=5)
    terms = [frozenset(t) for t in data.draw(texts)]
    output = frozenset(data.draw(st.text("".join(sorted(set().union(*terms))), max_size=2)))
    best = work(terms, output, sizes, contraction_path(terms, output, sizes, "optimal"))
    for optimize in (False, "greedy"):
        assert best <= work(terms, output, sizes, contraction_path(terms, output, sizes, optimize))


def test_many_terms(monkeypatch):
    """Without opt_einsum the order is that of the greedy search."""
    count = FEW + 3
    letters = "abcdefghijklmnop"
    terms = [frozenset(letters[k : k + 2]) for k in range(count)]
    sizes = {k: 2 + 7 * (n % 3) for n, k in enumerate(letters)}
    output = frozenset((letters[0], letters[count]))
    left = work(terms, output, sizes, contraction_path(terms, output, sizes, False))
    monkeypatch.setattr("phintys.tensor.contraction_path.find_spec", lambda name: None)
    greedy = contraction_path(terms, output, sizes)
    assert greedy == contraction_path(terms, output, sizes, "greedy")
    assert work(terms, output, sizes, greedy) < left
    with pytest.raises(ValueError, match="opt_einsum"):
        contraction_path(terms, output, sizes, "branch-2")
    monkeypatch.undo()
    pytest.importorskip("opt_einsum")
    for optimize in (True, "branch-2", "dp"):
        assert work(terms, output, sizes, contraction_path(terms, output, sizes, optimize)) <= left
    assert "opt_einsum" in sys.modules


def test_a_path_of_the_user():
    values = [draw((2, 3)), draw((3, 4)), draw((4, 5))]
    expected = np.einsum("ij,jk,kl->il", *values)
    for path in ([(1, 2), (0, 1)], ["einsum_path", (0, 1, 2)], [(0, 2), (0, 1)]):
        out = pt.einsum("ij,jk,kl->il", *values, optimize=path)
        assert out.owner.op.optimized
        assert_like(out.eval(), expected)
    for path in ([(0, 1)], [(0, 3), (0, 1)], [(0, 0), (0, 1)]):
        with pytest.raises(ValueError, match=r"does not fit|leaves"):
            pt.einsum("ij,jk,kl->il", *values, optimize=path)


def test_lengths_that_become_known_decide_the_order():
    x, y, z = pt.dmatrices("x", "y", "z")
    out = pt.einsum("ij,jk,kl->il", x, y, z)
    assert not out.owner.op.optimized
    shapes = (500, 2), (2, 500), (500, 2)
    known = [TensorType("float64", s)() for s in shapes]
    moved = clone_replace(out, dict(zip((x, y, z), known)))
    f = phintys.function(known, moved, mode="FAST_COMPILE")
    first = f.maker.fgraph.toposort()[0]
    assert isinstance(first.op, Dot) and first.outputs[0].type.shape == (2, 2)
    values = [draw(s) for s in shapes]
    assert_like(f(*values), values[0] @ (values[1] @ values[2]))


def test_the_op_is_equal_to_one_that_computes_the_same():
    x, y = pt.dmatrices("x", "y")
    ops = [
        pt.einsum(t, x, y).owner.op for t in ("ij,jk", "ij,jk->ik", "ij , jk -> ik", "ij,jk->ki")
    ]
    assert ops[0] == ops[1] == ops[2] != ops[3]
    assert isinstance(ops[0], OpFromGraph) and isinstance(ops[0], Einsum)
    batched = vectorize_graph(pt.einsum("ij,jk", x, y), {x: pt.dtensor3()})
    assert batched.owner.op.subscripts == "...ij,...jk->...ik"


def chain(*factors):
    """Lengths of the factors of the products of a compiled chain, in order of computation."""
    variables = [TensorType("float64", s)() for s in factors]
    out = variables[0]
    for v in variables[1:]:
        out = pt.dot(out, v)
    f = phintys.function(variables, out, mode="FAST_COMPILE")
    values = [draw(tuple(3 if n is None else n for n in s)) for s in factors]
    expected = values[0]
    for v in values[1:]:
        expected = expected @ v
    assert_like(f(*values), expected)
    nodes = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Dot)]
    return [n.outputs[0].type.shape for n in nodes]


def test_chains_are_computed_in_the_cheapest_order():
    n = None
    assert chain((n, n), (n, n), (n,)) == [(n,), (n,)]
    assert chain((n,), (n, n), (n, n)) == [(n,), (n,)]
    assert chain((9, 2), (2, 9), (9, 2)) == [(2, 2), (9, 2)]
    assert chain((2, 9), (9, 2), (2, 9)) == [(2, 2), (2, 9)]
    assert chain((n, n), (n, n), (n, n)) == [(n, n), (n, n)]
    lengths = (30, 35, 15, 5, 10, 20, 25)  # an example of textbooks
    best = [(5, 20), (5, 25), (30, 5), (30, 25), (35, 5)]
    assert sorted(chain(*pairwise(lengths))) == best


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_random_chains(data):
    """Products of random trees: vectors at the ends, lengths known or not."""
    count = data.draw(st.integers(3, 6))
    lengths = [data.draw(st.integers(1, 4)) for _ in range(count + 1)]
    shapes = list(pairwise(lengths))
    shapes[0] = shapes[0][data.draw(st.integers(0, 1)) :]
    shapes[-1] = shapes[-1][: data.draw(st.integers(1, 2))]
    values = [draw(s) for s in shapes]
    inputs = [
        TensorType("float64", tuple(n if data.draw(st.booleans()) else None for n in s))()
        for s in shapes
    ]
    terms = list(zip(inputs, values))
    while len(terms) > 1:
        k = data.draw(st.integers(0, len(terms) - 2))
        (x, a), (y, b) = terms[k : k + 2]
        terms[k : k + 2] = [(pt.dot(x, y), np.dot(a, b))]
    ((out, expected),) = terms
    assert_like(evaluate(out, inputs, values, "FAST_COMPILE"), expected)


@pytest.mark.parametrize("length", [None, 2])
def test_a_long_chain_takes_linear_time(length):
    x = pt.tensor("x", shape=(length, length), dtype="float64")
    out = x
    for _ in range(2000):
        out = pt.dot(out, x)
    f = phintys.function([x], pt.dot(out, x[0]), mode="FAST_COMPILE")
    np.testing.assert_array_equal(f(np.eye(2)), [1, 0])


def test_a_product_that_is_used_twice_is_not_taken_apart():
    x, y, v = pt.dmatrix("x"), pt.dmatrix("y"), pt.dvector("v")
    product = pt.dot(x, y)
    f = phintys.function([x, y, v], [pt.dot(product, v), product], mode="FAST_COMPILE")
    shapes = [n.outputs[0].type.ndim for n in f.maker.fgraph.toposort() if isinstance(n.op, Dot)]
    assert sorted(shapes) == [1, 2]
    whole = phintys.function([x, v], pt.dot(pt.dot(x, v), pt.dot(v, x)), mode="FAST_COMPILE")
    a, b = draw((3, 3)), draw((3,))
    assert_like(whole(a, b), (a @ b) @ (b @ a))
