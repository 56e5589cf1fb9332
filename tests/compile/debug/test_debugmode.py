"""DebugMode: wrong rules and ops are caught, with their names; right ones are not reported."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import OpFromGraph, config, get_mode, ifelse
from phintys.compile.debug.debugmode import (
    BadDestroyMap,
    BadOptimization,
    BadThunkOutput,
    BadViewMap,
    DebugMode,
    DebugModeError,
    InvalidValueError,
    StochasticOrder,
)
from phintys.graph.op import Op
from phintys.rewriting.database import RewriteDatabaseQuery
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.rewriter import graph_rewriter, node_rewriter
from phintys.rewriting.rule import rule
from phintys.rewriting.walk import in2out

NO_CODE = {"check_c_code": False, "stability_patience": 1}
NO_REWRITES = RewriteDatabaseQuery(include=["minimum_compile"])


class OnVectors(Op):
    """An op from a vector to a vector; subclasses define ``perform``."""

    __props__ = ()
    itypes, otypes = [pt.dvector], [pt.dvector]


def call(op, value=(1.0, 2.0, 3.0), **options):
    """Apply an op to a vector in DebugMode."""
    x = pt.dvector("x")
    f = phintys.function([x], op(x), mode=DebugMode(NO_REWRITES, **{**NO_CODE, **options}))
    return f(np.array(value))


# ----------------------------------------------------------------------------------- rules


def with_rewriter(rewriter, expression, value, **options):
    """The function of an expression of ``x`` with one more rewriter, called."""
    x = pt.dvector("x")
    mode = DebugMode(**{**NO_CODE, **options}).register((rewriter, 1.3))
    return phintys.function([x], expression(x), mode=mode)(np.array(value))


@node_rewriter([pt.exp])
def exp_is_linear(fgraph, node):
    return [node.inputs[0] + 1]


def test_a_wrong_node_rewriter_is_named():
    def expression(x):
        return pt.log(x) * pt.exp(x)  # the user's line

    with pytest.raises(BadOptimization, match="The rewrite exp_is_linear changes") as info:
        with_rewriter(in2out(exp_is_linear), expression, [1.0, 2.0])
    assert info.value.old_r.owner.op == pt.exp
    assert info.value.new_r.owner.op == pt.add
    assert "the user's line" in str(info.value)
    np.testing.assert_allclose(info.value.old_r_val, np.exp([1, 2]))
    assert str(info.value.reason) == "exp_is_linear"


def test_zeros_elsewhere_do_not_hide_a_fault():
    """An underflow excuses a difference only where the rewrite is concerned."""
    with pytest.raises(BadOptimization, match="exp_is_linear"):
        with_rewriter(in2out(exp_is_linear), lambda x: pt.exp(x - 1).sum(), [1.0, 2.0])


def test_a_fault_shows_only_for_some_arguments():
    x = pt.dvector("x")
    mode = DebugMode(**NO_CODE).register((in2out(exp_is_linear), 1.3))
    f = phintys.function([x], pt.exp(x), mode=mode)
    assert f(np.zeros(2)).tolist() == [1, 1]
    with pytest.raises(BadOptimization):
        f(np.ones(2))


def test_the_law_of_a_rule_is_respected():
    """0 * x is 0 under the law "finite", for infinite x too; under the law "exact" it is not."""

    def result(law):
        @rule("no_product", ops=[pt.mul], law=law)
        def no_product(ctx, node):
            return pt.zeros_like(node.inputs[1])

        x = pt.dvector("x")
        rewriter = RuleSet([no_product], name="mine")
        mode = DebugMode(NO_REWRITES, **NO_CODE, check_isfinite=False).register((rewriter, 1.3))
        return phintys.function([x], pt.mul(0.0, x), mode=mode)([np.inf, 1.0])

    assert result("finite").tolist() == [0, 0]
    with pytest.raises(BadOptimization, match=r"no_product changes a value \(its law: exact\)"):
        result("exact")


def test_a_wrong_graph_rewriter_is_found_by_its_stage():
    @graph_rewriter
    def doubled(fgraph):
        fgraph.replace(fgraph.outputs[0], fgraph.outputs[0] * 2, reason="doubled")

    with pytest.raises(BadOptimization, match="The rewrite doubled changes a value"):
        with_rewriter(doubled, pt.tanh, [1.0])


def test_an_override_of_the_comparison():
    """What a rewrite stores as ``tag.values_eq_approx`` decides."""

    @node_rewriter([pt.exp])
    def nearly(fgraph, node):
        new = pt.tanh(node.inputs[0])
        new.tag.values_eq_approx = lambda a, b: True
        return [new]

    def expression(x):
        return pt.exp(x) > 0

    assert with_rewriter(in2out(nearly), expression, [1.0]).tolist() == [True]


def test_rewriting_that_is_not_reproducible():
    number = itertools.count()

    @node_rewriter([pt.exp])
    def by_chance(fgraph, node):
        return [pt.expm1(node.inputs[0]) + 1] if next(number) % 2 else None

    with pytest.raises(StochasticOrder, match="by_chance"):
        with_rewriter(in2out(by_chance), pt.exp, [1.0], stability_patience=3)


def test_right_rewrites_are_not_reported():
    x, m = pt.dvector("x"), pt.fmatrix("m")
    s = phintys.shared(np.array([2.0, 0.5]), "s")
    loss = pt.log1p(pt.exp(m @ x)).sum() + pt.log(pt.softmax(x * s)).mean() + (m / m.sum(0)).max()
    outputs, updates = [loss, phintys.grad(loss, x)], {s: s + x}
    mode = DebugMode(check_preallocated_output="ALL", stability_patience=2, check_isfinite=False)
    f = phintys.function([x, m], outputs, updates=updates, mode=mode)
    matrix = np.random.default_rng(1).normal(size=(3, 2)).astype("float32")
    plain = phintys.function([x, m], outputs)([0.5, -1.5], matrix)
    for a, b in zip(f([0.5, -1.5], matrix), plain):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert s.get_value().tolist() == [2.5, -1.0]
    f([np.inf, 800.0], matrix)
    with pytest.raises(phintys.errors.ShapeError):
        f([1.0, 2.0, 3.0], matrix)


# ------------------------------------------------------------------------------------- ops


class Destroys(OnVectors):
    def perform(self, node, inputs, output_storage):
        inputs[0][0] = 7
        output_storage[0][0] = inputs[0] * 2


class DeclaresIt(Destroys):
    destroy_map = {0: [0]}

    def perform(self, node, inputs, output_storage):
        inputs[0] *= 2
        output_storage[0][0] = inputs[0]


class Views(OnVectors):
    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][::-1]


class DeclaresView(Views):
    view_map = {0: [0]}


class TwoOfOne(OnVectors):
    otypes = [pt.dvector, pt.dvector]

    def perform(self, node, inputs, output_storage):
        both = np.zeros(6)
        output_storage[0][0], output_storage[1][0] = both[:4], both[2:]


class Narrow(OnVectors):
    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0].astype("float32")


class Rank(OnVectors):
    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][None].copy()


class Infinite(OnVectors):
    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] / 0


class Flat(OnVectors):
    """Reads memory as if it were contiguous."""

    def perform(self, node, inputs, output_storage):
        base = inputs[0] if inputs[0].base is None else inputs[0].base
        output_storage[0][0] = base.ravel()[: inputs[0].size].copy()


class UsesOutput(OnVectors):
    """Adds to what it finds in the output cell."""

    def perform(self, node, inputs, output_storage):
        z = output_storage[0][0]
        if z is None or z.shape != inputs[0].shape:
            z = np.zeros_like(inputs[0])
        z += inputs[0]
        output_storage[0][0] = z


class WrongShape(OnVectors):
    def infer_shape(self, node, shapes):
        return [(shapes[0][0] + 1,)]

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] + 1


class Forgets(OnVectors):
    def perform(self, node, inputs, output_storage):
        pass


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(
    ("op", "error", "message", "options"),
    [
        (Destroys(), BadDestroyMap, "Destroys has changed its input 0, x, in perform", {}),
        (Views(), BadViewMap, r"Output 0 of Views shares memory with inputs \[0\]", {}),
        (TwoOfOne(), BadViewMap, r"Output 1 of TwoOfOne shares memory with outputs \[0\]", {}),
        (Narrow(), InvalidValueError, "Narrow.perform has stored an array of float32", {}),
        (Rank(), InvalidValueError, "Rank.perform returned an array of rank 2", {}),
        (Forgets(), InvalidValueError, "Forgets.perform returned no value for output 0", {}),
        (Infinite(), InvalidValueError, "It is not finite", {}),
        (WrongShape(), InvalidValueError, r"infer_shape of WrongShape says the shape \(4,\)", {}),
        (Flat(), BadThunkOutput, "perform with (strided|reversed) inputs", {}),
        (
            UsesOutput(),
            BadThunkOutput,
            "perform into c_contiguous outputs",
            {"check_preallocated_output": "c_contiguous:wrong_size"},
        ),
        (UsesOutput(), BadThunkOutput, "into strided", {"check_preallocated_output": ["strided"]}),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Op) else "",
)
def test_wrong_ops_are_named(op, error, message, options):
    with pytest.raises(error, match=message) as info:
        call(op, **options)
    assert isinstance(info.value, DebugModeError)
    assert "test_debugmode.py" in str(info.value)


@pytest.mark.filterwarnings("error")
class DestroysNumber(Op):
    itypes, otypes = (pt.dscalar,), (pt.dscalar,)

    def perform(self, node, inputs, output_storage):
        inputs[0][...] = 7
        output_storage[0][0] = inputs[0] * 2


@pytest.mark.parametrize("where", ["loop", "branch"])
def test_wrong_ops_in_inner_graphs_are_named(where):
    x, wrong = pt.dvector("x"), DestroysNumber()
    if where == "loop":
        y = phintys.scan(lambda a, s: wrong(a) + s, x, x[0] * 0, return_updates=False)
    else:
        y = ifelse(x[0] > 0, wrong(x[0] * x[1]), x[0])
    f = phintys.function([x], y, mode=DebugMode(NO_REWRITES, **NO_CODE))
    with pytest.raises(BadDestroyMap, match="DestroysNumber has changed its input 0"):
        f([1.0, 2.0])


def test_values_of_later_steps_must_be_finite():
    x = pt.dvector("x")
    y = phintys.scan(lambda a, s: 1 / (s - a), x, x[0] * 0 + 1, return_updates=False)
    f = phintys.function([x], y, mode=DebugMode(**NO_CODE))
    assert np.isfinite(f([0.0, 2.0])).all()
    with (
        np.errstate(divide="ignore"),
        pytest.raises(InvalidValueError, match=r"(?i)(reciprocal|div).* It is not finite"),
    ):
        f([0.0, 1.0])


def test_right_ops_are_not_reported():
    every = {"check_preallocated_output": "ALL"}
    assert call(DeclaresView(), **every).tolist() == [3, 2, 1]
    assert call(DeclaresView(), ()).tolist() == []
    inner = OpFromGraph([w := pt.dvector()], [w[::-1]])
    assert call(inner, **every).tolist() == [3, 2, 1]
    assert call(lambda v: ifelse(v[0] > 0, v, -v), **every).tolist() == [1, 2, 3]
    x = pt.dvector("x")
    mode = DebugMode(NO_REWRITES, **NO_CODE, **every)
    f = phintys.function([x], DeclaresIt()(x + 1), mode=mode, accept_inplace=True)
    assert f([1.0, 2.0]).tolist() == [4, 6]


def test_an_op_that_does_not_use_the_declared_memory():
    class Copies(DeclaresView):
        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0][::-1].copy()

    with pytest.warns(UserWarning, match="Copies declares that output 0 is in the memory"):
        call(Copies())
    with config.change_flags(DebugMode__warn_input_not_reused=False):
        call(Copies())


def test_an_op_whose_results_differ_from_call_to_call():
    class Counts(OnVectors):
        calls = itertools.count()

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] + next(self.calls)

    with pytest.raises(BadThunkOutput, match="Counts"):
        call(Counts())


# --------------------------------------------------------------------------- compiled code


def test_wrong_code_is_found():
    class Lowered(OnVectors):
        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] + 1

        def lower(self, node, b, x):
            return b.map(lambda n, x: n.sub(x, n.const(1.0, x)), x)

    with pytest.raises(BadThunkOutput, match="Lowered") as info:
        call(Lowered(), check_c_code=True)
    assert (info.value.thunk1, info.value.thunk2) == ("perform", "compiled code")
    assert isinstance(info.value.offending_op(), Lowered)
    assert info.value.val1.tolist() == [2, 3, 4]
    assert info.value.val2.tolist() == [0, 1, 2]
    assert info.value.inputs_val[0].tolist() == [1, 2, 3]
    assert call(Lowered(), check_c_code=False).tolist() == [2, 3, 4]


def test_strides_of_results():
    with pytest.warns(UserWarning, match="Strides differ"):
        call(lambda x: x[::-1], check_c_code=True, require_matching_strides=1)
    with pytest.raises(BadThunkOutput):
        call(lambda x: x[::-1], check_c_code=True, require_matching_strides=2)


# ---------------------------------------------------------------------------------- the mode


def test_names_settings_and_pickles():
    with config.change_flags(DebugMode__patience=3, DebugMode__check_finite=False):
        mode = get_mode("DEBUG_MODE")
    assert isinstance(mode, DebugMode)
    assert mode.stability_patience == 3
    assert not mode.options.check_isfinite
    assert get_mode("DebugMode").stability_patience == 10
    derived = mode.excluding("fusion")
    assert isinstance(derived, DebugMode)
    assert isinstance(pickle.loads(pickle.dumps(derived)), DebugMode)
    assert mode.provided_optimizer != derived.provided_optimizer
    for wrong in (
        {"check_preallocated_output": "sideways"},
        {"stability_patience": 0},
        {"check_c_code": False, "check_py_code": False},
    ):
        with pytest.raises(ValueError):
            DebugMode(**wrong)


def test_arguments_must_be_finite():
    with pytest.raises(InvalidValueError, match="The value of x"):
        call(pt.exp, [1.0, np.nan])
    assert np.isnan(call(pt.exp, [np.nan], check_isfinite=False)).all()


def test_nodes_of_other_types():
    """Random generators, lengths and constants pass the checks."""
    rng = phintys.shared(np.random.default_rng(3), "rng")
    x = pt.dmatrix("x")
    draws = pt.random.normal(size=(2,), rng=rng) if callable(getattr(pt, "random", None)) else None
    n = x.shape[0] + 1 - 1
    outputs = [
        x.shape[0],
        pt.ones((2, n)),
        x.T.reshape((n, -1)),
        *([] if draws is None else [draws]),
    ]
    f = phintys.function([x], outputs, mode=DebugMode(stability_patience=1))
    assert f(np.ones((3, 2)))[0] == 3


def test_functions_are_copied_and_pickled():
    x = pt.dvector("x")
    f = phintys.function([x], pt.exp(pt.log(x)), mode=DebugMode(**NO_CODE))
    for g in (f.copy(), pickle.loads(pickle.dumps(f))):
        np.testing.assert_allclose(g([1.0, 2.0]), [1, 2])


def test_faults_can_be_made_by_hand():
    node = Destroys()(pt.dvector("x")).owner
    error = BadDestroyMap(node, 0, np.zeros(2), np.ones(2), "perform")
    assert (error.node, error.idx) == (node, 0)
    assert "largest difference: 1.0" in str(error)
