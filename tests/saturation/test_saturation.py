"""Equality saturation: its equations hold, and it finds what the documentation says."""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.saturation.cost import graph_cost
from phintys.saturation.language import kind
from phintys.saturation.laws import laws
from phintys.saturation.translate import translated
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import functions
from phintys.tensor.reduce import Sum
from phintys.tensor.type import TensorType

RNG = np.random.default_rng(2)
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "saturation.md"
ROWS = re.findall(
    r"^\| `(.*)` \| `(.*)` \| ([\d,]+) \| ([\d,]+) \|$", PAGE.read_text(), re.MULTILINE
)
NO_REWRITING = Mode("py", None)


def variables():
    found = {n: pt.dmatrix(n) for n in "ABC"} | {n: pt.dvector(n) for n in "uvw"}
    return found | {"s": pt.dscalar("s")}


def value(v, n=4):
    return RNG.uniform(0.2, 0.9, (n,) * v.ndim).astype(v.dtype)


@pytest.fixture
def egglog():
    return pytest.importorskip("egglog")


def test_a_call_of_python_costs_more_than_a_product_and_less_than_a_few():
    A = pt.dmatrix("A")
    called = phintys.wrap_py([pt.dmatrix], pt.dmatrix)(np.negative)(A)
    product = graph_cost([A @ A])
    assert graph_cost([-A]) < product < graph_cost([called]) < 4 * product


@pytest.mark.parametrize(
    "expression, becomes, before, after",
    [pytest.param(*r, id=r[0], marks=() if crc32(r[0].encode()) % 4 == 0 else rest) for r in ROWS],
)
def test_the_examples_of_the_documentation(egglog, expression, becomes, before, after):
    from phintys.saturation.search import saturated

    given = variables()
    plain = eval(expression, {**given, "pt": pt})
    ordered = phintys.rewrite_graph(plain, include=("canonicalize", "stabilize"), clone=True)
    (found,) = saturated([ordered])
    assert phintys.pp(found) == becomes
    assert [f"{graph_cost([v]):,.0f}" for v in (ordered, found)] == [before, after]
    f = phintys.function(
        list(given.values()), [plain, found], mode=NO_REWRITING, on_unused_input="ignore"
    )
    wanted, got = f(*map(value, given.values()))
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_the_documentation_has_examples():
    assert len(ROWS) >= 10


def assert_equal_sides(pairs, variables):
    """The sides of equations have equal values, of all in one function."""
    variables = list(dict.fromkeys(variables))
    f = phintys.function(
        variables, [v for pair in pairs for v in pair], mode=NO_REWRITING, on_unused_input="ignore"
    )
    with np.errstate(all="ignore"):
        found = f(*map(value, variables))
    for left, right, pair in zip(found[::2], found[1::2], pairs):
        assert left.shape == right.shape
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9, err_msg=str(pair))


def test_the_laws_hold():
    types = {
        n: TensorType("float64", (None,) * r) for n, r in zip("ABCuvwxyzs", [2] * 3 + [1] * 6 + [0])
    }
    pairs, inputs = [], []
    for law in laws():
        left, right, given = law.sides(types)
        assert kind(left) == kind(right), law
        pairs.append((left, right))
        inputs += given
    assert_equal_sides(pairs, inputs)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_translated_rules_hold(dtype):
    """Those that are functions too: a rule that looks at more than kinds would fail here."""
    ops = [Dot(), Sum(axis=0), Sum(axis=None), pt.diagonal(pt.dmatrix()).owner.op]
    ops += [
        getattr(functions, n) for n in "add mul true_div exp log log1p sqrt sigmoid neg".split()
    ]
    found = translated({f"{dtype}:{k}" for k in ("nn", "n", "")}, ops)
    names = {i.name for i in found}
    assert {"log1p(exp(x)) -> softplus(x)", "dot(A, B).T -> dot(B.T, A.T)"} <= names
    assert len(names) > 60 and any(i.replaces for i in found)
    if dtype == "float64":
        assert_equal_sides(
            [(i.left, i.right) for i in found], [v for i in found for v in i.variables]
        )
    for i in found:
        assert kind(i.left) == kind(i.right)


def test_no_accurate_form_is_lost(egglog):
    x, y = pt.dvectors("x", "y")
    f = phintys.function(
        [x, y], [pt.log(1 + pt.exp(x)), pt.log(pt.exp(x) + pt.exp(y))], mode="EGGLOG"
    )
    soft, summed = f([800.0, -800.0], [800.0, -800.0])
    np.testing.assert_allclose(soft, [800.0, 0.0])
    np.testing.assert_allclose(summed, np.array([800.0, -800.0]) + np.log(2))


def test_functions_of_the_mode(egglog):
    """Several results, a gradient, a node with two results, integers, and a shared variable."""
    given = variables()
    A, B, v = given["A"], given["B"], given["v"]
    state = phintys.shared(np.ones(4), name="state")
    cost = ((A @ B) @ v + B @ v + state).sum()
    largest, at = pt.max_and_argmax(A @ v + B @ v)
    outputs = [
        cost,
        *phintys.grad(cost, [A, B, v]),
        largest,
        at,
        pt.trace(A @ B).astype("int64") + 1,
    ]
    updates = {state: state + A @ v + A @ state}
    values = [value(x) for x in (A, B, v)]
    results = []
    for mode in ("EGGLOG", "FAST_COMPILE"):
        state.set_value(np.ones(4))
        f = phintys.function([A, B, v], outputs, updates=updates, mode=mode)
        results.append([*f(*values), state.get_value()])
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_what_it_leaves_alone(egglog):
    """Inputs as results, constants, mixed dtypes, broadcast rows whose sum is no product."""
    from phintys.saturation.search import saturated

    x, row, f = pt.dmatrix("x"), pt.drow("row"), pt.fvector("f")
    outputs = [x, pt.constant(2.0), f + f.astype("float64"), (x * row).sum(1), x * row + x]
    new = saturated(outputs)
    assert new[:2] == outputs[:2]
    values = value(x), value(row)[:1], value(f)
    g = phintys.function([x, row, f], [*outputs, *new], mode=NO_REWRITING)
    found = g(*values)
    for a, b in zip(found[:5], found[5:], strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_without_the_package(monkeypatch):
    monkeypatch.setattr("phintys.saturation.rewriter.find_spec", lambda name: None)
    x = pt.dvector("x")
    with pytest.raises(ImportError, match="egglog"):
        phintys.function([x], pt.exp(x) + 3.25, mode=Mode("py", "egglog"))
