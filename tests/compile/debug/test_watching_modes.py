"""NanGuardMode, MonitorMode, the mode that is active while rewriting, ``Mode.function_maker``."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import Mode, config, get_mode, ifelse, scan
from phintys.compile.debug.monitormode import MonitorMode, detect_nan
from phintys.compile.debug.nanguardmode import (
    NanGuardMode,
    contains_inf,
    contains_nan,
    flatten,
)
from phintys.compile.function import FunctionMaker
from phintys.graph.fgraph import FunctionGraph
from phintys.inner import OpFromGraph
from phintys.rewriting.graph import get_active_mode
from phintys.rewriting.rewriter import graph_rewriter

# -------------------------------------------------------------------------- NanGuardMode


def guarded(expression, value, **options):
    x = pt.dvector("x")
    f = phintys.function([x], expression(x), mode=NanGuardMode(**options))
    return f(np.array(value))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize(
    ("expression", "value", "message"),
    [
        (lambda x: pt.log(x) + 1, [-1.0, 2.0], r"NaN detected in output 0 of the node Log\(x\)"),
        (lambda x: pt.log(x) + 1, [0.0], r"Inf detected in output 0 of the node Log\(x\)"),
        (lambda x: pt.exp(x).sum(), [30.0], r"Big value detected in output 0 of the node Exp"),
        (pt.exp, [np.nan], r"NaN detected in the input x \(type Vector"),
        (pt.exp, [-np.inf], "Inf detected in the input x"),
        (pt.exp, [-1e11], "Big value detected in the input x"),
    ],
)
def test_the_first_bad_value_is_reported(expression, value, message):
    with pytest.raises(AssertionError, match=message) as info:
        guarded(expression, value)
    assert "test_watching_modes.py" in str(info.value)
    if "node" in message:
        assert "while computing" in info.value.__notes__[0]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_what_is_an_error_can_be_chosen():
    assert np.isnan(guarded(pt.log, [-1.0], nan_is_error=False))
    assert guarded(pt.exp, [-np.inf], inf_is_error=False) == 0
    assert guarded(lambda x: x * 2, [1e11], big_is_error=False) == 2e11
    assert guarded(pt.exp, []).size == 0
    with config.change_flags(NanGuardMode__big_is_error=False):
        assert guarded(lambda x: x * 2, [1e11]) == 2e11
    f = phintys.function([x := pt.dvector("x")], pt.log(x), mode="NanGuardMode")
    with config.change_flags(NanGuardMode__action="warn"), pytest.warns(UserWarning, match="NaN"):
        f([-1.0])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_variables_can_be_exempt():
    x = pt.dvector("x")
    x.tag.nan_guard_mode_check = False
    y = pt.where(pt.isnan(x), 0.0, x)
    assert phintys.function([x], y, mode=NanGuardMode())([np.nan, 1.0]).tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_nodes_of_inner_graphs_are_guarded():
    x = pt.dvector("x")
    op = OpFromGraph([x], [pt.where(x > 0, pt.log(x), 0.0)])
    f = phintys.function([x], op(x), mode=NanGuardMode())
    with pytest.raises(AssertionError, match=r"NaN .* Log\(x\)"):
        f([-1.0])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_steps_of_loops_and_branches_are_guarded():
    x, c = pt.dvector("x"), pt.bscalar("c")
    total = scan(lambda a, b: pt.log(a) + b, [x], [pt.zeros(())], return_updates=False)
    f = phintys.function([x], total[-1], mode=NanGuardMode())
    assert f([1.0, 1.0]) == 0
    with pytest.raises(AssertionError, match=r"NaN detected in output 0 of the node Log\("):
        f([1.0, -1.0])
    g = phintys.function([x, c], ifelse(c, pt.log(x), x), mode=NanGuardMode())
    assert g([-1.0], 0).tolist() == [-1]
    with pytest.raises(AssertionError, match=r"the node Log\("):
        g([-1.0], 1)


def test_memory_that_is_not_initialised_is_no_fault():
    n, y = pt.lscalar("n"), pt.dvector("y")
    z = pt.set_subtensor(pt.empty((n,))[:2], y).sum() * 0
    for mode in (NanGuardMode(), "DebugMode"):
        f = phintys.function([n, y], z, mode=mode)
        for size in (2, 50, 1000):
            assert f(size, [1.0, 2.0]) == 0


def test_other_values_are_passed_over():
    assert flatten([1, (2, [3]), {4}]) == [1, 2, 3, 4]
    for value in (None, slice(None), np.random.default_rng(1), np.arange(3), [], "nan"):
        assert not contains_nan(value)
        assert not contains_inf(value)
    assert contains_nan([np.zeros(2), np.array(np.nan)])
    assert contains_inf(complex(0, np.inf))


# --------------------------------------------------------------------------- MonitorMode


def test_functions_around_each_node():
    seen = []

    def before(fgraph, i, node, fn):
        seen.append(("before", i, str(node.op), fn.outputs[0][0]))
        assert isinstance(fgraph, FunctionGraph)
        assert fgraph.toposort()[i] is node
        if i == 1:
            fn.inputs[0][0] = fn.inputs[0][0] * 10

    def after(fgraph, i, node, fn):
        seen.append(("after", i, str(node.op), fn.outputs[0][0].tolist()))

    x = pt.dvector("x")
    mode = MonitorMode(before, after)
    f = phintys.function([x], pt.sum(x * x), mode=mode)
    assert f([1.0, 2.0]) == 50
    assert seen == [
        ("before", 0, "Sqr", None),
        ("after", 0, "Sqr", [1, 4]),
        ("before", 1, "Sum{axes=None}", None),
        ("after", 1, "Sum{axes=None}", 50),
    ]
    assert isinstance(mode.including("fusion"), MonitorMode)
    assert isinstance(mode.clone(optimizer="o1"), MonitorMode)


def test_functions_around_nodes_of_steps_and_branches():
    seen = []

    def after(fgraph, i, node, fn):
        assert fgraph.toposort()[i] is node
        seen.append(str(node.op))

    x, n = pt.dvector("x"), pt.lscalar("n")
    product = scan(lambda a, s: a * s, [x], [pt.ones(())], return_updates=False)[-1]
    branch = ifelse(n > 0, pt.cos(x), pt.sin(x))
    f = phintys.function([x, n], [product, branch], mode=MonitorMode(post_func=after))
    for k, taken, other in ((1, "Cos", "Sin"), (-1, "Sin", "Cos")):
        seen.clear()
        f([2.0, 3.0, 4.0], k)
        assert (seen.count("Mul"), seen.count(taken), seen.count(other)) == (3, 1, 0)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_nan_in_a_step_is_detected(capsys):
    x = pt.dvector("x")
    roots = scan(lambda a, s: pt.sqrt(s - a), [x], [pt.ones(())], return_updates=False)
    phintys.function([x], roots, mode=MonitorMode(post_func=detect_nan))([0.0, 3.0])
    first = capsys.readouterr().out.split("***")[2]
    assert "Sqrt(Sub(" in first
    assert "test_watching_modes.py" in first


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_detect_nan(capsys):
    x = pt.dvector("x")
    f = phintys.function([x], pt.log(x)[:1], mode=MonitorMode(post_func=detect_nan))
    f([1.0, -2.0])
    assert capsys.readouterr().out == ""
    f([-1.0, 2.0])
    out = capsys.readouterr().out
    assert out.count("*** NaN detected ***") == 1
    assert "Log(" in out
    assert "Inputs : [array([-1.])]" in out


@pytest.mark.parametrize("make", [MonitorMode, NanGuardMode])
def test_only_the_reference_runs_node_by_node(make):
    with pytest.raises(ValueError, match="runs a function node by node"):
        make(linker="jax")
    assert make(linker="vm").linker.name == "py"
    again = pickle.loads(pickle.dumps(make(optimizer="fast_compile")))
    assert type(again) is make


# --------------------------------------------------------------------- modes while rewriting


def test_nan_guard_mode_checks_what_nodes_read():
    """A shared variable that is only updated may hold NaN."""
    state, x = phintys.shared(np.array([np.nan])), pt.dvector("x")
    f = phintys.function([x], x + 1, updates={state: x * 2}, mode="NanGuardMode")
    assert f([1.0]).tolist() == [2]
    assert state.get_value().tolist() == [2]
    f = phintys.function([x], x + state, updates={state: x * 2}, mode="NanGuardMode")
    state.set_value([np.nan])
    with pytest.raises(AssertionError, match="NaN detected in the input"):
        f([1.0])


def test_the_active_mode():
    found = []
    note = graph_rewriter(lambda fgraph: found.append(get_active_mode(fgraph)))
    mode = Mode("py").register((note, 0.5))
    x = pt.dvector("x")
    f = phintys.function([x], x + 1, mode=mode)
    assert found == [mode]
    assert get_active_mode(f.maker.fgraph) is get_mode(None)


def test_the_maker_of_a_mode():
    class OwnMaker(FunctionMaker):
        made = 0

        def create(self, *args, **kwargs):
            type(self).made += 1
            return super().create(*args, **kwargs)

    class OwnMode(Mode):
        @property
        def function_maker(self):
            return OwnMaker

    assert Mode().function_maker is FunctionMaker
    x = pt.dvector("x")
    f = phintys.function([x], x + 1, mode=OwnMode("py").excluding("fusion"))
    assert isinstance(f.maker, OwnMaker)
    assert OwnMaker.made == 1
    assert f([1.0]).tolist() == [2]
