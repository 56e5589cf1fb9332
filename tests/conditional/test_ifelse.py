"""`ifelse`: types, values, laziness and derivatives, on every backend."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from phintys.raise_op import Assert
from tensor_checks import check_derivatives

import phintys
import phintys.tensor as pt
from phintys import ifelse, pushforward
from phintys.compile.mode import Mode
from phintys.conditional import IfElse
from phintys.conditional.lazy import LazyIfElse
from phintys.conditional.rewriting import (
    IntroduceLazyIfElse,
    merge_sum,
    nested_ifelse,
    read_of_ifelse,
    useless_ifelse,
)
from phintys.errors import ShapeError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.vectorize import vectorize_graph
from phintys.lowering.program import Branch
from phintys.rewriting.engine import RuleSet
from phintys.tensor.index_ops import Subtensor

c, d = pt.scalars("c", "d")
x, y = pt.dvectors("x", "y")
V, W = np.array([0.5, 1.0, 2.0]), np.array([0.3, -1.0, 0.1])
MODES = ["FAST_COMPILE", "FAST_RUN", "C", "JAX"]  # Numba takes seconds to compile: one test


class Recorded(Op):
    """The identity, which notes that it has run; or raises ``error``."""

    __props__ = ("label",)
    ran: list[str] = []

    def __init__(self, label, error=None):
        self.label, self.error = label, error

    def make_node(self, v):
        return phintys.Apply(self, [v], [v.type()])

    def infer_shape(self, node, shapes):
        return shapes

    def perform(self, node, inputs, output_storage):
        Recorded.ran.append(self.label)
        if self.error is not None:
            raise self.error
        output_storage[0][0] = inputs[0].copy()

    def pullback(self, inputs, outputs, cotangents):
        return [Recorded(f"d {self.label}", self.error)(cotangents[0])]


def noted(v, label, error=None):
    return Recorded(label, error)(v)


def calls(f, *args):
    """The labels of the ops that run in a call, and the results."""
    Recorded.ran.clear()
    found = f(*args)
    return sorted(Recorded.ran), found


# ---------------------------------------------------------------------------- construction


def test_types():
    z = ifelse(c, pt.tensor(shape=(2, 3)), pt.tensor(shape=(2, 4)))
    assert z.type == pt.TensorType("float64", (2, None))
    assert ifelse(c, pt.fvector(), pt.fvector(shape=(3,))).type == pt.fvector().type
    op = z.owner.op
    assert isinstance(op, IfElse) and op.n_outs == 1 and IfElse.__props__ == ("as_view", "n_outs")
    a, b = ifelse(c, [x, 1.5], [y, d], name="both")
    assert (a.owner.op.n_outs, str(a.owner.op), b.type) == (2, "if{both}", d.type)
    assert [v.type for v in a.owner.inputs[1:]] == [x.type, d.type, y.type, d.type]
    assert isinstance(ifelse(c, [x], [y]), list)
    assert ifelse(c, pt.fscalar("f"), 0.5).type.dtype == "float32"
    assert IfElse(2) == IfElse(2, name="other") != IfElse(2, as_view=True)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: ifelse(c, pt.matrix(), x), TypeError, "same number of dimensions"),
        (lambda: ifelse(c, pt.fvector(), x), TypeError, "same dtype"),
        (lambda: ifelse(c, 1, 3.5), TypeError, "same dtype"),
        (lambda: ifelse(c, pt.lscalar(), 0.5), TypeError, "same dtype"),
        (lambda: ifelse(c, [x], [x, y]), ValueError, "has 1, else_branch has 2"),
        (lambda: ifelse(x, x, y), TypeError, "must be a number"),
        (lambda: ifelse(True, x, y), TypeError, "condition of ifelse, True, .*Python bool"),
        (lambda: IfElse(2)(c, x, y), ValueError, "4 values, 2 for each branch, not 2"),
        (lambda: ifelse(c, 1.0, None), TypeError, "dimensions"),
    ],
)
def test_wrong_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---------------------------------------------------------------------------- values


@pytest.mark.parametrize("mode", MODES)
def test_values_on_every_backend(mode):
    """Branches with and without results of their own, of one shape, and of several dtypes."""
    m, n = pt.fmatrix("m"), pt.lscalar("n")
    both = ifelse(c, [x, pt.exp(x), n + 1, m], [x[::-1], y * 2, n // 2, m.T])
    outputs = [*both, ifelse(c > 1, pt.outer(x, y), pt.zeros((3, 3))), ifelse(d, d, c)]
    f = phintys.function([c, d, x, y, n, m], outputs, mode=mode)
    matrix = np.arange(4, dtype="float32").reshape(2, 2)
    for a, b in [(0, 1), (1, 0), (2, np.nan), (-0.0, -1)]:
        expected = (
            [V, np.exp(V), 8, matrix] if a else [V[::-1], W * 2, 3, matrix.T],
            [np.outer(V, W) if a > 1 else np.zeros((3, 3)), b if b != 0 else a],
        )
        found = f(a, b, V[::-1][::-1], W, 7, matrix)
        for value, want, out in zip(found, [*expected[0], *expected[1]], outputs, strict=True):
            np.testing.assert_allclose(value, want, rtol=1e-12)
            assert value.dtype == out.type.dtype
        assert not any(np.shares_memory(np.asarray(v), W) for v in found)


@pytest.mark.parametrize("mode", MODES[:3])
def test_shapes_that_differ(mode):
    """Lengths that are known when the branch has run, also in what is computed from them."""
    z = ifelse(c, pt.concatenate([x, x]), x[x > 0.7])
    f = phintys.function(
        [c, x], [z, pt.exp(z).sum(), z.shape[0] + 1, ifelse(c, x, z[:1])], mode=mode
    )
    for a, expected in [(1, np.concatenate([V, V])), (0, V[1:])]:
        found = f(a, V)
        np.testing.assert_array_equal(found[0], expected)
        np.testing.assert_allclose(found[1:3], [np.exp(expected).sum(), len(expected) + 1])
        np.testing.assert_array_equal(found[3], V if a else V[1:2])
    np.testing.assert_array_equal(f(0, V[:0])[0], V[:0])


def test_compiled_branches_are_native():
    z = ifelse(c, pt.concatenate([x, x]), x[x > 0.7])
    f = phintys.function([c, x], [z, ifelse(c, pt.log(x), x)])
    assert not phintys.explain(f).python_ops
    assert sum(isinstance(n.op, LazyIfElse) for n in f.maker.fgraph.toposort()) == 1
    (op,) = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, LazyIfElse)]
    assert op.runners and pickle.loads(pickle.dumps(op)) == op
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(0, V)[0], V[1:])


@pytest.mark.parametrize("mode", MODES)
def test_errors_of_the_other_branch_do_not_happen(mode):
    z = ifelse(c, x[4], (x + y).sum())
    f = phintys.function([c, x, y], z, mode=mode)
    assert f(0, V, W) == pytest.approx((V + W).sum())
    assert f(1, np.arange(5.0), W) == 4
    with pytest.raises(IndexError, match="4 is out of bounds"):
        f(1, V, W)
    with pytest.raises(ValueError, match="5"):
        f(0, np.arange(5.0), W)


# ---------------------------------------------------------------------------- laziness


@pytest.mark.parametrize("mode", MODES)
def test_only_the_branch_that_is_taken_runs(mode):
    """What both branches, the condition, or other results need runs always, and once."""
    shared, always = noted(x * 2, "shared"), noted(x + 1, "always")
    first = noted(shared + always, "first")
    second = noted(shared - 1, "second", None)
    inner = ifelse(d, noted(second, "inner"), noted(second * 2, "not inner"))
    z = ifelse(c, first * 2, inner)
    f = phintys.function([c, d, x], [z, always.sum()], mode=mode)
    assert calls(f, 1, 0, V)[0] == ["always", "first", "shared"]
    ran, found = calls(f, 0, 1, V)
    assert ran == ["always", "inner", "second", "shared"]
    np.testing.assert_allclose(found[0], 2 * V - 1)
    assert calls(f, 0, 0, V)[0] == ["always", "not inner", "second", "shared"]


@pytest.mark.parametrize("mode", MODES[:3])
def test_what_several_branches_share(mode):
    """A value that the true branches of several nodes use, one after the other, runs once."""
    heavy = noted(x * 3, "heavy", None)
    first = ifelse(c, heavy.sum(), d)
    last = ifelse(c, noted(heavy * first, "last"), x)
    f = phintys.function([c, d, x], [last, first + 1], mode=mode)
    ran, found = calls(f, 1, 5, V)
    assert ran == ["heavy", "last"]
    np.testing.assert_allclose(found[0], 3 * V * (3 * V).sum())
    ran, found = calls(f, 0, 5, V)
    assert ran == []
    np.testing.assert_array_equal(found[0], V)
    assert found[1] == 6


def test_nested_values_leave_two_branches():
    heavy = noted(x * 3, "heavy", None)
    first = ifelse(c, ifelse(d, heavy.sum(), c), d)
    last = ifelse(c, ifelse(d, heavy * first, x), x + first)
    f = phintys.function([c, d, x], last)
    for a, b in np.ndindex(2, 2):
        ran, found = calls(f, a, b, V)
        assert ran == ["heavy"] * bool(a and b)
        start = (3 * V).sum() if a and b else a or b
        expected = 3 * V * start if a and b else V if a else V + start
        np.testing.assert_allclose(found, expected)


@pytest.mark.needs("numba")
def test_numba():
    """Laziness, an error, and results that differ in shape, or are arguments."""
    heavy = noted(x, "heavy", None)
    first = ifelse(c, heavy[3], d)
    f = phintys.function(
        [c, d, x], [ifelse(c, heavy * first, x[:2]), ifelse(c, x, x)], mode="NUMBA"
    )
    ran, found = calls(f, 0, 5, V)
    assert ran == []
    np.testing.assert_array_equal(found[0], V[:2])
    assert calls(f, 1, 5, np.arange(4.0))[0] == ["heavy"]
    np.testing.assert_array_equal(f(1, 5, np.arange(4.0))[0], [0, 3, 6, 9])
    g = phintys.function([c, x], ifelse(c, x[3], x.sum()), mode="NUMBA")
    with pytest.raises(IndexError, match="3 is out of bounds"):
        g(1, V)


def test_python_errors_and_chains():
    """A long chain of branches; only the one that is taken raises."""
    n, z = pt.lscalar("n"), x
    for k in range(30):
        z = ifelse(pt.eq(n, k), noted(x * k, str(k), ArithmeticError(k) if k == 7 else None), z)
    f = phintys.function([n, x], z)
    assert calls(f, 29, V)[0] == ["29"]
    assert calls(f, 15, V)[0] == ["15"]
    with pytest.raises(ArithmeticError, match="7"):
        f(7, V)
    np.testing.assert_array_equal(f(-1, V), V)


@pytest.mark.parametrize("mode", MODES)
def test_branches_and_checks_in_loops(mode):
    """What a step does not need is not computed, and a check of one branch is not made in it."""

    def step(t, s):
        checked = Assert("too large")(s, s < 99)
        return ifelse(pt.eq(t % 2, 0), noted(checked * 2, "even"), s + 1)

    found = phintys.scan(step, pt.arange(4), outputs_info=d, return_updates=False)
    f = phintys.function([d], found, mode=mode)
    ran, values = calls(f, 1.0)
    assert ran == ["even", "even"]
    np.testing.assert_array_equal(values, [2, 3, 6, 7])
    with pytest.raises(AssertionError, match="too large"):
        f(49.0)


def test_objects():
    a, b = phintys.generic("a"), phintys.generic("b")
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        f = phintys.function([c, a, b], ifelse(c, a, b), mode=mode)
        assert f(1, "yes", {}) == "yes" and f(0, "yes", "no") == "no"
        f = phintys.function([c, a, b], ifelse(c, noted(a, "copied"), b), mode=mode)
        assert calls(f, 1, {"x": 1}, {}) == (["copied"], {"x": 1})
        assert calls(f, 0, {"x": 1}, {}) == ([], {})


# ---------------------------------------------------------------------------- rewriting


def test_rules():
    def rewritten(rule, z):
        fgraph = FunctionGraph(outputs=[z], copy_inputs=False)
        RuleSet([rule]).apply(fgraph)
        return fgraph.outputs[0]

    assert rewritten(useless_ifelse, ifelse(pt.constant(2), x, y)) is x
    assert rewritten(useless_ifelse, ifelse(pt.constant(0.0), x, y)) is y
    assert rewritten(useless_ifelse, ifelse(c, x, x)) is x
    assert rewritten(useless_ifelse, ifelse(c, [x, x], [y, x])[0]).owner.op.n_outs == 1
    z = rewritten(read_of_ifelse, ifelse(c, [x, y], [y, x])[1][2:])
    assert [v.owner.inputs[0] for v in z.owner.inputs[1:]] == [y, x]
    pair = pt.stack([(chosen := ifelse(c, x, y))[0], chosen[1]])
    kept = rewritten(read_of_ifelse, pair)
    assert {type(v.owner.op) for v in kept.owner.inputs} == {Subtensor}
    z = rewritten(nested_ifelse, ifelse(c, ifelse(c, x, y), ifelse(c, x + 1, y + 1)))
    assert z.owner.inputs[1] is x and z.owner.inputs[2].owner.inputs[0] is y


def test_introduction_merges_nodes_and_knows_conditions():
    z = ifelse(c, pt.exp(x), pt.sin(y)) + ifelse(c, pt.exp(2 * x), y)
    last = ifelse(c, pt.exp(z) + ifelse(c, x, pt.log(y)), y)
    for out, expected in [
        (z, [["Exp", "Exp", "Mul"], ["Sin"]]),
        (last, [["Add", "Add", "Exp", "Exp", "Exp", "Mul"], []]),
    ]:
        fgraph = FunctionGraph([c, x, y], [out])
        assert IntroduceLazyIfElse().apply(fgraph)
        (node,) = [n for n in fgraph.toposort() if isinstance(n.op, LazyIfElse)]
        graphs = node.op.inner_graphs.values()
        assert [sorted(str(n.op) for n in g.toposort()) for g in graphs] == expected
    assert not IntroduceLazyIfElse().apply(FunctionGraph([x], [x + 1]))


# ------------------------------------------------------------------- derivatives, batches


def test_derivatives():
    def build(a, b):
        z = ifelse(a[0] > 0.4, [pt.exp(a) * b, a.sum()], [a * b, b.prod()])
        return pt.concatenate([z[0], z[1][None]])

    for start in (V, W):
        check_derivatives(build, [start, W])
    assert phintys.grad(ifelse(c, x, y).sum(), c, disconnected_inputs="ignore").eval({c: 1.0}) == 0
    found = phintys.pushforward(ifelse(c, [x, x], [y, y]), [x], [y])
    f = phintys.function([c, x, y], found, on_unused_input="ignore")
    np.testing.assert_array_equal(f(1, V, W), [W, W])
    np.testing.assert_array_equal(f(0, V, W), [0 * W, 0 * W])


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_gradients_of_one_branch_are_computed(mode):
    """Also through ops of users, in nested branches, twice, and for what both branches use."""
    shared = noted(x * 2, "shared")
    inner = ifelse(d, noted(shared, "one"), noted(shared * x, "two")[:3])
    z = ifelse(c, noted(pt.log(shared), "log") * x[5], inner * noted(x, "three")).sum() ** 2
    g = phintys.grad(z, x)
    f = phintys.function([c, d, x], [z, g, phintys.grad(g.sum(), x)], mode=mode)
    long, orders = np.arange(1.0, 7), ("", "d ", "d d ")
    assert set(calls(f, 1, 0, long)[0]) == {p + n for p in orders for n in ("shared", "log")}
    ran, found = calls(f, 0, 1, V)
    assert set(ran) == {p + n for p in orders for n in ("shared", "one", "three")}
    total = (2 * V**2).sum()
    np.testing.assert_allclose(found[0], total**2)
    np.testing.assert_allclose(found[1], 8 * V * total)
    assert not {"one", "d one", "log"} & set(calls(f, 0, 0, V)[0])


def test_sums_of_gradients_are_merged():
    z = ifelse(c, pt.exp(x), pt.sin(x)) + ifelse(c, x, y) + y
    fgraph = FunctionGraph(outputs=[z], copy_inputs=False)
    RuleSet([merge_sum]).apply(fgraph)
    assert sum(isinstance(n.op, IfElse) for n in fgraph.toposort()) == 1
    f = phintys.function([c, x, y], [z, fgraph.outputs[0]])
    for a in (0, 1):
        np.testing.assert_allclose(*f(a, V, W))


def test_a_sum_of_many_terms_without_branches():
    fgraph = FunctionGraph([x], [pt.add(*[pt.exp(k * x) for k in range(2, 14)])])
    assert not RuleSet([merge_sum]).apply(fgraph)


def test_batches():
    cs, xs = pt.vector("cs"), pt.dmatrix("xs")
    z = ifelse(c, [x, x.sum()], [y, y.max()])
    f = phintys.function(
        [c, cs, xs, y],
        [
            *phintys.vectorize_graph(z, {x: xs}),
            *phintys.vectorize_graph(z, {c: cs, x: xs}),
            phintys.vectorize_graph(ifelse(c, x, y), {c: cs, x: xs}),
        ],
    )
    rows = np.stack([V, 2 * V])
    found = f(0, [0, 1], rows, W)
    for value, want in zip(found, [[W, W], [0.3, 0.3], [W, 2 * V], [0.3, 7.0], [W, 2 * V]]):
        np.testing.assert_allclose(value, want)
    np.testing.assert_allclose(f(1, [0, 1], rows, W)[0], rows)


@pytest.mark.parametrize("optimizer", [None, "merge", "fast_compile"])
def test_one_branch_is_computed_in_a_step_of_a_loop(optimizer):
    def step(j):
        return ifelse(j < 3, x[j], pt.constant(-1.0, dtype="float64"))

    rows = phintys.scan(step, pt.arange(5), return_updates=False)
    f = phintys.function([x], rows, mode=phintys.compile.Mode("py", optimizer))
    np.testing.assert_array_equal(f(V), [*V, -1, -1])


def test_a_branch_whose_results_only_a_check_needs():
    """The first axis has length 1, so its position is known; that it has is checked."""
    one = pt.tensor("one", dtype="float64", shape=(1, None))
    first = ifelse(c > 0, [one, x[None]], [x[None] * 2, one])[0]
    row = pt.specify_shape(first, (1, None)).shape[0] // 2
    out = ifelse(d > 0, pt.inc_subtensor(one[row], x), one)
    f = phintys.function([c, d, one, x], out, mode=Mode("llvm", None))
    np.testing.assert_array_equal(f(1.0, 1.0, V[None], W), (V + W)[None])


@pytest.mark.parametrize("mode", MODES)
def test_results_are_no_constants_of_a_branch(mode):
    """They are the caller's: a later call is not changed by what is written into them."""
    x, c = pt.dvector("x"), pt.iscalar("c")
    kept = pt.constant([1.0, 2.0, 3.0])
    f = phintys.function(
        [c, x], [phintys.ifelse(c, kept, x), phintys.ifelse(c, kept[1:], x)], mode=mode
    )
    for found in f(1, np.zeros(2)):
        if isinstance(found, np.ndarray):
            found += 1
    np.testing.assert_array_equal(f(1, np.zeros(2))[0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f(1, np.zeros(2))[1], [2.0, 3.0])


def test_batch_of_conditions_needs_values_of_equal_lengths():
    c, x, y = pt.bscalar("c"), pt.dvector("x"), pt.dvector("y")
    batch = pt.bvector("batch")
    out = vectorize_graph(phintys.ifelse(c, x, y), {c: batch})
    f = phintys.function([batch, x, y], out)
    np.testing.assert_array_equal(f([1, 0], [1.0, 2.0], [3.0, 4.0]), [[1, 2], [3, 4]])
    with pytest.raises(ShapeError):
        f([1, 0], [1.0], [3.0, 4.0])
    with pytest.raises(ShapeError):
        f([1, 0], [1.0, 2.0], [3.0])


@pytest.mark.parametrize("mode", MODES)
def test_long_lengths_within_a_branch_are_no_lengths_outside(mode):
    x = pt.dtensor3("x")
    rolled = ifelse(pt.any(y > 0), x, pt.roll(x, shift=-1))
    f = phintys.function([x, y], pushforward(rolled, x, pt.ones_like(x)), mode=mode)
    for sign in (1.0, -1.0):
        np.testing.assert_array_equal(f(np.ones((2, 3, 4)), [sign]), np.ones((2, 3, 4)))


def test_long_lengths_of_branches_are_not_computed_to_compare_them():
    z = x
    for k in range(4):
        z = pt.concatenate([z[: 20 + k], pt.exp(z[20 + k :])])
    condition = pt.scalar("c", dtype="bool")
    f = phintys.function([condition, x], ifelse(condition, z, 2 * x))
    assert [type(step) for step in f.program.steps] == [Branch]
    np.testing.assert_array_equal(f(True, np.ones(20)), np.ones(20))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_gradients_of_sums_of_choices_with_other_conditions(first, second):
    u, p, q = pt.dscalar("u"), pt.bscalar("p"), pt.bscalar("q")
    v = u * 2.0
    g = phintys.grad(ifelse(p, v * v, 3 * u) + ifelse(q, v * 3.0, u * 5), u)
    found = phintys.function([p, q, u], g)(first, second, 2.0)
    assert found == (16 if first else 3) + (6 if second else 5)
