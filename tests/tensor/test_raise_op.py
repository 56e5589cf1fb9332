"""`Assert`, `CheckAndRaise`, `Print` and `PdbBreakpoint`."""

from __future__ import annotations

import inspect
from typing import Any, cast

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.op import Op
from phintys.scalar.type import scalar_type
from phintys.tensor.debugging import PdbBreakpoint, Print
from phintys.tensor.raise_op import Assert, CheckAndRaise, assert_op

x, y = pt.dvectors("x", "y")
c = pt.dscalar("c")
V = np.array([0.5, 1.0, 2.0])
MODES = ["FAST_COMPILE", "FAST_RUN", "C", "NUMBA", "JAX"]


class Broken(Exception):
    """An exception of a user."""


class Checked(CheckAndRaise):
    """A check of a user, after an op of a user: the reference cannot explain how it fails."""

    __props__ = ("msg", "exc_type", "extra")

    def __init__(self, msg: Any, extra: Any = False):
        super().__init__(Broken, msg)
        self.extra = extra


class Halved(Op):
    __props__ = ()
    itypes = otypes = [pt.dscalar]

    def perform(self, node: Any, inputs: Any, output_storage: Any):
        output_storage[0][0] = np.asarray(inputs[0] / 2)

    def infer_shape(self, node: Any, shapes: Any):
        return shapes


def test_construction():
    z = Assert("msg")(x, c > 0, True, 1, c)
    op = z.owner.op
    assert Assert.__props__ == ("msg", "exc_type") and isinstance(op, CheckAndRaise)
    assert (op.msg, op.exc_type, z.type) == ("msg", AssertionError, x.type)
    assert [v.type for v in z.owner.inputs[1:]] == [scalar_type("bool")] * 4
    assert assert_op == Assert() != CheckAndRaise(AssertionError, assert_op.msg)
    assert CheckAndRaise(ValueError, "m") == CheckAndRaise(ValueError, "m")
    assert str(CheckAndRaise(ValueError, "m")) == "CheckAndRaise{raises=ValueError, msg='m'}"
    with pytest.raises(TypeError, match="class of exceptions"):
        CheckAndRaise(cast(Any, "ValueError"))
    with pytest.raises(TypeError):
        Assert()(x, y > 0)


@pytest.mark.parametrize("mode", MODES)
def test_exceptions_on_every_backend(mode: str):
    """The class and the message; also of a check in the graph of another op, and of a user."""
    inner = phintys.OpFromGraph([x, c], [Assert("small")(x, pt.all(x < 9))])
    first = CheckAndRaise(Broken, "negative")(inner(x, c), pt.all(x >= 0), c < 100)
    last = Checked("halved")(first, Halved()(c) > 1)
    f = phintys.function([x, c], [pt.sqrt(last), last.sum()], mode=mode)
    found = f(V, 4.0)
    np.testing.assert_allclose(found[0], np.sqrt(V))
    for values, number, error, message in [
        (-V, 4.0, Broken, "negative"),
        (V, 100.0, Broken, "negative"),
        (9 * V, 4.0, AssertionError, "small"),
        (V, 1.0, Broken, "halved"),
    ]:
        with pytest.raises(error, match=f"^{message}"):
            f(values, number)
    np.testing.assert_allclose(f(V, 4.0)[1], V.sum())


def test_checks_are_native_and_survive():
    z = pt.exp(Assert("positive")(x, pt.all(x > 0)) * 2)
    f = phintys.function([x, y], [z + y, z * 2])
    assert not phintys.explain(f).python_ops
    assert sum(isinstance(n.op, Assert) for n in f.maker.fgraph.toposort()) == 1
    with pytest.raises(AssertionError, match="positive"):
        f(-V, V)
    mode = phintys.get_mode("FAST_RUN").including("local_remove_all_assert")
    np.testing.assert_allclose(phintys.function([x], z, mode=mode)(-V), np.exp(-2 * V))


def test_the_phases_keep_checks():
    z = Assert("positive")(x, pt.all(x > 0))
    kept = phintys.rewrite_graph(z, include=["canonicalize", "stabilize", "specialize"])
    assert isinstance(kept.owner.op, Assert)
    assert phintys.rewrite_graph(z, include=["canonicalize", "local_remove_all_assert"]) is x


def test_known_conditions():
    always = phintys.function(
        [x], Assert()(x, True, pt.constant(3.0), 1 - pt.constant(0))
    )  # a constant once it is folded

    assert not always.maker.fgraph.apply_nodes
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        never = phintys.function([x], Assert("never")(x, np.array(False)), mode=mode)
        with pytest.raises(AssertionError, match="never"):
            never(V)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "JAX"])
def test_checks_in_branches(mode):
    z = phintys.ifelse(c, Assert("taken")(x, pt.all(x > 0)), x * 2)
    f = phintys.function([c, x], z, mode=mode)
    np.testing.assert_array_equal(f(0, -V), -2 * V)
    with pytest.raises(AssertionError, match="taken"):
        f(1, -V)


def test_derivatives_and_batches():
    z = Assert("positive")(x, pt.all(x > 0), c > 1)
    assert phintys.grad((z**2).sum(), x).eval({x: V, c: 2}).tolist() == [1, 2, 4]
    pushed = phintys.function([x, y, c], phintys.pushforward(z, x, y), on_unused_input="ignore")
    assert pushed(V, V, 2).tolist() == V.tolist()
    xs, cs = pt.dmatrix("xs"), pt.dvector("cs")
    batched = phintys.vectorize_graph(z, {x: xs})
    both = phintys.vectorize_graph(z, {c: cs})
    f = phintys.function([x, xs, c, cs], [batched, both], on_unused_input="ignore")
    found = f(V, [V, 2 * V], 2, [2, 3, 4])
    np.testing.assert_array_equal(found[0], [V, 2 * V])
    np.testing.assert_array_equal(found[1], [V, V, V])
    for wrong in [(V, [V, -V], 2, [2]), (V, [V], 1, [2]), (V, [V], 2, [2, 0])]:
        with pytest.raises(AssertionError):
            f(*wrong)


def test_other_values():
    """Integers, an object and a random generator are checked too."""
    n, thing = pt.lscalar("n"), phintys.generic("thing")
    f = phintys.function([n, thing], [Assert("n")(n, n), Assert("n")(thing, n > 1)])
    assert f(2, "it") == [2, "it"]
    with pytest.raises(AssertionError):
        f(0, "it")
    start = np.random.default_rng(1)
    rng = phintys.shared(start)
    following, draw = Assert()(rng, n > 1), n
    g = phintys.function([n], draw, updates={rng: following})
    g(2)
    assert rng.get_value().normal() == start.normal()


# ------------------------------------------------------------------------- printing


@pytest.mark.parametrize("mode", [m for m in MODES if m != "NUMBA"])  # there through perform
def test_print(mode: str, capfd: pytest.CaptureFixture[str]):
    """Lines appear in the order of the graph, each once, and once more in the next call."""
    first = Print("first", attrs=("shape", "sum"))(pt.exp(x))
    last = Print("last")(first * 2 + Print("number")(c))
    f = phintys.function([x, c], [last.sum(), first], mode=mode)
    np.testing.assert_allclose(f(V, 1.0)[1], np.exp(V))
    lines = [line.partition(" = ")[0] for line in capfd.readouterr().out.splitlines()]
    assert sorted(lines) == ["first shape", "first sum", "last __str__", "number __str__"]
    assert lines[-1] == "last __str__" and lines.index("first sum") == 1 + lines.index(
        "first shape"
    )
    f(V, 1.0)
    assert len(capfd.readouterr().out.splitlines()) == 4


def test_print_attributes(capsys: pytest.CaptureFixture[str]):
    shown = []
    noted = Print("noted", global_fn=lambda op, value: shown.append((op.message, value.tolist())))
    assert Print.__props__ == ("message", "attrs", "global_fn") and Print("a") == Print("a")
    assert phintys.grad((noted(x) ** 2).sum(), x).eval({x: V}).tolist() == [1, 2, 4]
    assert shown == [("noted", V.tolist())]
    branch = phintys.ifelse(c, Print("taken")(x), x)
    f = phintys.function([c, x], branch)
    f(0, V)
    assert capsys.readouterr().out == ""
    f(1, V)
    assert capsys.readouterr().out == "taken __str__ = [0.5 1.  2. ]\n"
    assert Print()(3).eval() == 3


def test_breakpoint(monkeypatch: pytest.MonkeyPatch):
    stops = []
    monkeypatch.setattr(PdbBreakpoint, "stop", lambda op, values: stops.append(list(values)))
    stop = PdbBreakpoint("here")
    a, b = stop(c > 1, x, x * 2)
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        f = phintys.function([c, x], [a + b, phintys.grad((a * b).sum(), x)], mode=mode)
        np.testing.assert_array_equal(f(0, V)[0], 3 * V)
        assert not stops
        np.testing.assert_array_equal(f(2, V)[1], 4 * V)
        ((first, second),) = stops
        np.testing.assert_array_equal(first * 2, second)
        stops.clear()
    assert stop(c, x).type == x.type and PdbBreakpoint.__props__ == ("name",)
    with pytest.raises(TypeError, match="must be a number"):
        stop(x, x)
    with pytest.raises(ValueError, match="needs a value"):
        stop(c)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_changed_values_are_used(monkeypatch: pytest.MonkeyPatch, capsys: Any, mode: str):
    def assign():  # in the debugger, whose current frame is the caller's
        frame = inspect.currentframe()
        assert frame and frame.f_back
        monitored = frame.f_back.f_locals["monitored"]
        monitored[0] = monitored[0] * 10

    monkeypatch.setattr("pdb.set_trace", assign)
    f = phintys.function([c, x], PdbBreakpoint("here")(c > 1, x), mode=mode)
    np.testing.assert_array_equal(f(2, V), 10 * V)
    assert "Breakpoint 'here': the values are in the list 'monitored'" in capsys.readouterr().out
