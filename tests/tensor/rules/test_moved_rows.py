"""Rules for whole rows apply too where ops that move elements stand after or between.

Such ops are indexed reads, transposes and reshapes.  Other rules move them to the inputs of
functions, which must not hide a softmax or a sum of exponentials from the rules that make it
accurate.
"""

from __future__ import annotations

import numpy as np
import pytest
from expressions import build, evaluate
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys.gradient import grad
from phintys.graph.traversal import io_toposort
from phintys.rewriting import rewrite_graph
from phintys.rewriting.equilibrium import EquilibriumGraphRewriter
from phintys.rewriting.rule import Equation
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.rules import RULES

MOVES = {
    "nothing": lambda x: x,
    "x[None]": lambda x: x[None],
    "x[..., None]": lambda x: x[..., None],
    "x.T": lambda x: x.T,
    "x[0]": lambda x: x[0],
    "x[..., 0]": lambda x: x[..., 0],
    "x[:1]": lambda x: x[:1],
    "x[..., ::-1]": lambda x: x[..., ::-1],
    "x[[0, 1, 0]]": lambda x: x[np.array([0, 1, 0])],
    "x[[0, 1], [1, 0]]": lambda x: x[np.array([0, 1]), np.array([1, 0])],
    "reshape": lambda x: x.reshape((-1,)),
    "reshape and drop": lambda x: x.reshape((2, -1, 1))[:, :, 0],
    "squeeze": lambda x: x[..., np.array([0])].squeeze(-1),
    "join_dims": lambda x: pt.join_dims(x, 0, 2),
    "split_dims": lambda x: pt.split_dims(x, (1, 2), 0),
    "diagonal": pt.diagonal,
    "take_along_axis": lambda x: pt.take_along_axis(x, pt.zeros_like(x[..., :1], "int64"), -1),
    "broadcast_to": lambda x: pt.broadcast_to(x, (2, *x.shape)),
    "specify_shape": lambda x: pt.specify_shape(x, (2, *[None] * (x.ndim - 1))),
}
#: moves, as seen from the result
AFTER = {**MOVES, "stack": lambda x: pt.stack([x, x])}
#: values of the variables of the examples: exponentials of some are 0
VALUES = {
    "M": np.array([[-1e3, 0.1, 0.2], [0.3, 0.5, -1e3]]),
    "N": np.array([[0.2, 0.1, 0.4], [-0.3, 0.5, 1.5]]),
    "v": np.array([-1e3, 0.1]),
    "w": np.array([0.3, 0.7]),
}


def is_of_rows(text):
    nodes = io_toposort([], [build(text)[0]])
    return not all(isinstance(n.op, Elemwise | DimShuffle) for n in nodes)


ROWS = sorted(
    {
        text.partition("|")[0].strip()
        for r in RULES
        if r.law == "accurate" and r.phase == "stabilize" and not isinstance(r, Equation)
        for text in r.tested_on
    }
)
ROWS = [t for t in ROWS if is_of_rows(t) and {v.name for v in build(t)[1]} <= VALUES.keys()]
#: the example that ``make test`` takes with every move, the others as they are
WITH_ALL_MOVES = "log(special.softmax(M, axis=1))"


def fits(move, x):
    """What a move makes of an expression, or None if that has too few axes or elements."""
    try:
        moved = move(x)
        evaluate([moved], {v: VALUES[v.name] for v in variables(moved)})
    except (IndexError, ValueError):
        return None
    return moved


def variables(x):
    found = {v for n in io_toposort([], [x]) for v in n.inputs if v.owner is None}
    return sorted((v for v in found if v.name in VALUES), key=lambda v: v.name)


def values(x, inputs):
    return [x]


def derivatives(x, inputs):
    return grad(pt.sum(pt.cos(x)), inputs)


def accurate(between, text):
    """The example with a move before its last function, as it is and in accurate form."""
    whole, _ = build(text)
    if between is MOVES["nothing"]:
        return whole, rewrite_graph(whole, include=("stabilize",), clone=True)
    (inner,) = whole.owner.inputs
    moved = fits(between, inner)
    stable = rewrite_graph(whole, include=("stabilize",), clone=True)
    return (None, None) if moved is None else (whole.owner.op(moved), between(stable))


def cases():
    """The examples with each move that they have enough axes and elements for."""
    for text in ROWS:
        single = len(build(text)[0].owner.inputs) == 1
        for name in MOVES if single else ["nothing"]:
            out, stable = accurate(MOVES[name], text)
            if out is not None:
                marks = [] if name == "nothing" or text == WITH_ALL_MOVES else [rest]
                yield pytest.param(text, name, out, stable, id=f"{text}-{name}", marks=marks)


CASES = list(cases())


def test_every_move_fits_an_example():
    assert {c.values[1] for c in CASES} == {*MOVES}


def check(out, expected, of):
    """Assert that both have the same finite values, or derivatives: what ``of`` makes of them."""
    inputs = variables(out)
    given = {v: VALUES[v.name] for v in inputs}
    for make in of:
        fast = rewrite_graph(make(out, inputs), include=("fast_run",), clone=True)
        with np.errstate(all="ignore"):
            found, wanted = evaluate(fast, given), evaluate(make(expected, inputs), given)
        for a, b in zip(found, wanted):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
            assert np.isfinite(a).all()


@pytest.mark.parametrize("text, between, out, stable", CASES)
def test_moved_rows(text, between, out, stable):
    for name, move in AFTER.items():
        moved = fits(move, out)
        if moved is None:
            continue
        try:
            check(moved, move(stable), [values, derivatives])
        except AssertionError as error:
            raise AssertionError(f"{name}, {between} of {text}: {error}") from error


def test_several_logarithms_and_other_terms():
    p = pt.special.softmax(m := pt.dmatrix("M"), axis=1)
    stable = pt.special.log_softmax(m, axis=1)
    expected = stable[0][None] + stable[:, 0][:, None] + 2 * stable.T[:2, :2].sum() + pt.sqr(p)
    out = pt.log(p[0])[None] + pt.log(p[:, 0])[:, None] + 2 * pt.log(p.T[:2, :2]).sum() + pt.sqr(p)
    check(out, expected, [values, derivatives])


@pytest.mark.parametrize("n", [2, 40])
def test_any_number_of_logarithms_of_one_softmax(n):
    p, stable = pt.special.softmax(m := pt.dmatrix("m"), axis=1), pt.special.log_softmax(m, axis=1)
    value = np.linspace(0, 1, 3 * n).reshape(n, 3)
    value[:, 0] = -1e3
    found = grad(sum(pt.log(p[t, 0]) for t in range(n)), m)
    expected = grad(sum(stable[t, 0] for t in range(n)), m)
    results = phintys.function([m], [found, expected])(value)
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_graphs_without_rows_are_not_searched(monkeypatch):
    x = pt.dmatrix("M")
    tried = []
    monkeypatch.setattr(EquilibriumGraphRewriter, "apply", lambda *args: tried.append(args))
    for out, expected in ((pt.log(pt.exp(x)), 0), (pt.special.softmax(x, axis=1), 1)):
        rewrite_graph(out, include=("rows",), clone=True)
        assert len(tried) == expected
