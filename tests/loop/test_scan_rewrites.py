"""Rewrites of loops: the same values, from loops that do and keep less."""

from __future__ import annotations

import numpy as np
import pytest
from test_scan_derivatives import FORMS, loops, scan, values

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.errors import ShapeError
from phintys.loop import Scan, ScanInfo, until
from phintys.loop.unused import simplified
from phintys.rewriting import rewrite_graph

REWRITTEN, PLAIN = Mode("py", "fast_run"), Mode("py", None)
x, y0 = pt.dvectors("x", "y0")
s0, w = pt.dscalars("s0", "w")
xs, W, U = pt.dmatrices("xs", "W", "U")
h0 = pt.dvector("h0")


def rewritten(inputs, outputs, *arguments):
    """The nodes of the loops that are left; results are those of the graph without rewriting."""
    f = phintys.function(inputs, outputs, mode=REWRITTEN, on_unused_input="ignore")
    plain = phintys.function(inputs, outputs, mode=PLAIN, on_unused_input="ignore")
    for a, b in zip(f(*arguments), plain(*arguments), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    return loops(*f.maker.fgraph.outputs)


def inner(node):
    """The names of the elementwise functions in a step, and of other ops."""
    found = [n.op for n in node.op.fgraph.toposort()]
    return {getattr(getattr(op, "scalar_op", None), "name", None) or str(op) for op in found}


@pytest.mark.parametrize("build", FORMS, ids=lambda f: f.__name__)
def test_values_and_derivatives_stay(build):
    inputs = [
        pt.tensor(dtype=v.dtype, shape=(None,) * v.ndim) for v in map(np.asarray, FORMS[build])
    ]
    found = build(*inputs)
    total = sum((r**2).sum() for r in (found if isinstance(found, list) else [found]))
    first = phintys.grad(total, inputs)
    second = phintys.grad(sum(pt.sin(g).sum() for g in first), inputs)
    rewritten(inputs, [total, *first, *second], *FORMS[build])


def test_costly_functions_of_sequences_are_computed_before_the_loop():
    out = scan(lambda a, s, w: s * pt.exp(a * w) + a, [x], [s0], [w])
    (node,) = rewritten([x, s0, w], [out], *values(4, (), ()))
    assert inner(node) == {"mul", "add"}


def test_what_depends_on_constants_is_computed_once():
    out = scan(lambda a, s, w: s * pt.tanh(w) + a, [x], [s0], [w])
    (node,) = rewritten([x, s0, w], [out], *values(4, (), ()))
    assert "tanh" not in inner(node)
    assert rewritten([x, s0, w], [out], *values(0, (), ()))


def test_outputs_that_no_step_reads_are_computed_after_the_loop():
    def step(a, s, w):
        new = s * w + a
        return new, pt.log1p(pt.sqr(new)) * pt.cos(s)

    states, read = scan(step, [x], [s0, None], [w])
    (node,) = rewritten([x, s0, w], [states, read], *values(4, (), ()))
    assert inner(node) == {"mul", "add"}
    rewritten([x, s0, w], [states, read], *values(0, (), ()))


def test_outputs_of_lower_rank_keep_no_rows_of_states():
    """Unless all rows are kept for others."""
    n = pt.lscalar("n")
    states, sums = scan(lambda a: (a * 1.5, pt.sqr(a).sum()), None, [y0, None], n_steps=n)
    for outs, rows in [([sums], 2), ([states[-1], sums], 2), ([states.max(), sums], None)]:
        (node,) = rewritten([y0, n], outs, *values(3), np.array(5))
        assert node.op.outer_sitsot(node.inputs)[0].type.shape[0] in (rows, 1 if rows else None)
        assert node.op.info.n_nit_sot == (rows is not None)
    known = phintys.clone_replace(sums, {n: pt.constant(60, dtype="int64")})
    (node,) = rewritten([y0], [known], *values(3))
    assert node.op.outer_sitsot(node.inputs)[0].type.shape[0] == 1


def test_loops_whose_steps_are_independent_vanish():
    first, second = scan(lambda a, w: (a * w, pt.constant(2.0) * w), [x], [None, None], [w])
    assert not rewritten([x, w], [first, second], *values(4, ()))
    assert not rewritten([x, w], [first, second], *values(0, ()))


def test_sums_of_outer_products_become_matrix_products():
    states = scan(lambda a, h, W, U: pt.tanh(W @ h + U @ a), [xs], [h0], [W, U])
    grads = phintys.grad((states**2).sum(), [W, U])
    arguments = values((5, 2), 3, (3, 3), (3, 2))
    found = rewritten([xs, h0, W, U], grads, *arguments)
    assert len(found) == 2
    for node in found:
        assert all(v.type.ndim <= 1 for v in node.op.fgraph.outputs)


def test_factors_of_sums_of_products_are_rows_of_sequences():
    """They are not transposed in each step."""
    first, rows = pt.dmatrix("first"), pt.dtensor3("rows")
    states = scan(lambda a, h, W, U: pt.tanh(h @ W + a @ U), [rows], [first], [W, U])
    grads = phintys.grad((states**2).sum(), [W, U])
    found = rewritten([rows, first, W, U], grads, *values((5, 4, 2), (4, 3), (3, 3), (2, 3)))
    (reverse,) = [node for node in found if len(node.op.fgraph.outputs) == 2]
    assert "DimShuffle" not in {type(n.op).__name__ for n in reverse.op.fgraph.apply_nodes}


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_only_the_rows_that_are_used_are_kept(count):
    """Reads from the end fail as before if there are no steps."""
    older = scan(lambda a, p, q, w: p * w + q + a, [x], [dict(initial=y0, taps=[-2, -1])], [w])
    read = [older[-1], older[-2:]]
    arguments = [*values(count, 2), np.array(0.3)]
    f = phintys.function([x, y0, w], read, mode=REWRITTEN)
    (node,) = loops(*f.maker.fgraph.outputs)
    assert node.outputs[0].type.shape[0] in (None, 4)
    if count == 0:
        with pytest.raises(IndexError):
            f(*arguments)
    else:
        rewritten([x, y0, w], read, *arguments)
    (buffer,) = node.op.outer_mitsot(node.inputs)
    assert buffer.type.shape[0] == 4


def test_while_loops_keep_the_last_rows():
    out = scan(lambda a, s, w: (s * w + a, until(a > 0.5)), [x], [s0], [w])
    for stop in (0.9, 0.1):
        arguments = [np.array([0.1, 0.2, stop, 0.3]), *values((), ())]
        (node,) = rewritten([x, s0, w], [out[-1]], *arguments)
    assert node.op.outer_sitsot(node.inputs)[0].type.shape == (1,)


def test_equal_loops_are_merged_and_parts_that_are_not_used_are_dropped():
    one = scan(lambda a, s, w: (s * w + a, s - a), [x], [s0, None], [w])
    two = scan(lambda a, s, t, w: (s * w + a, t * a), [x], [s0, pt.ones(())], [w])
    (node,) = rewritten([x, s0, w], [one[0], *two], *values(4, (), ()))
    assert (node.op.info.n_seqs, node.op.info.n_sit_sot, node.op.info.n_nit_sot) == (1, 2, 0)
    (node,) = rewritten([x, s0, w], [one[0]], *values(4, (), ()))
    assert node.op.info.n_nit_sot == 0
    assert not rewritten([x, s0, w], [two[1]], *values(4, (), ()))[0].op.info.n_non_seqs


def chains(n):
    """A loop with two chains of states, which differ in their first states only."""

    def step(a, *states):
        p, q = states[:n], states[n:]
        return [p[0] + a, *(s + a for s in p[:-1]), pt.sin(q[0]), *(s + a for s in q[:-1])]

    return scan(step, [x], [s0] * (2 * n))


def test_states_that_differ_through_many_others_stay(lines_run):
    (node,) = rewritten([x, s0], chains(6), *values(4, ()))
    assert node.op.info.n_sit_sot == 1 + 6

    def work(n):
        (node,) = loops(*rewrite_graph(chains(n), include=("merge",)))
        return lines_run(simplified, node, [True] * len(node.outputs))

    _, small, large = map(work, (6, 6, 48))  # the first one fills caches
    assert large < 13 * small


def test_loops_that_depend_on_each_other_stay():
    one = scan(lambda a, s: s + pt.sin(a), [x], [s0])
    two = scan(lambda a, s: s * a, [one], [s0], n_steps=x.shape[0])
    assert len(rewritten([x, s0], [one, two], *values(4, ()))) == 2


def test_short_loops_are_unrolled():
    def step(a, p, q, w):
        return p * w + pt.sin(q) + a, p - q

    two = pt.tensor("two", dtype="float64", shape=(2,))
    for first, count in ((two, 0), (y0, 1)):  # where a check of the first rows is left, the loop is
        outputs = scan(step, [x], [dict(initial=first, taps=[-2, -1]), None], [w], n_steps=3)
        assert len(rewritten([x, first, w], outputs, *values(5, 2, ()))) == count
        total = sum(out.sum() for out in outputs)
        grads = phintys.grad(total, [x, first, w])
        assert bool(rewritten([x, first, w], grads, *values(5, 2, ()))) == bool(count)


@pytest.mark.parametrize(
    "step, count",
    [
        (lambda a: pt.concatenate([a, a]), 1),
        (lambda a: a[a > 1], 1),
        (lambda a: [a * 2, pt.zeros(a.shape[0] + 1)[pt.cast(a[0], "int64") :]], 1),
        (lambda a: y0 + a, 0),
        (lambda a: pt.sqrt(y0 * 2) - a[::-1], 0),
        (lambda a: pt.switch(y0.sum() > 0, pt.sin(y0), a), 0),
    ],
)
def test_loops_whose_lengths_may_change_are_not_unrolled(step, count):
    outputs = scan(step, None, [x, None][: 1 + isinstance(step(x), list)], n_steps=3)
    out = outputs[-1] if isinstance(outputs, list) else outputs
    f = phintys.function([x, y0], out, mode=REWRITTEN, on_unused_input="ignore")
    assert len(loops(*f.maker.fgraph.outputs)) == count


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "JAX"])
def test_a_state_keeps_its_length(mode):
    for step in (lambda a: pt.concatenate([a, a]), lambda a: a[a > 1]):
        out = scan(step, None, [x], n_steps=3)
        for read in (out, out[-1], out[0]):
            f = phintys.function([x], read, mode=mode)
            with pytest.raises(ShapeError, match=r"(?s)state.*Scan\{"):
                f([1.0, 2.0])


def test_buffers_may_be_longer_or_shorter_than_results_need():
    a, s = pt.dscalars("a", "s")
    state = Scan([a, s], [a + s], ScanInfo(1, (), (), (), ((-1,),), 0, 0, 0, False))
    buffer = pt.tensor("buffer", dtype="float64", shape=(10,))
    assert not rewritten([x, buffer], [state(2, x, buffer)], *values(3, 10))
    pair = Scan([a], [2 * a, 3 * a], ScanInfo(1, (), (), (), (), 2, 0, 0, False))
    one, all_rows = pair(x.shape[0], x, 1, x.shape[0])
    rewritten([x], [one[-2:], all_rows[-1]], *values(5))


def test_numbers_become_part_of_the_step():
    out = scan(lambda a, s, c: s * c + a, [x], [s0], [pt.constant(0.5)])
    (node,) = rewritten([x, s0], [out], *values(4, ()))
    assert node.op.info.n_non_seqs == 0
