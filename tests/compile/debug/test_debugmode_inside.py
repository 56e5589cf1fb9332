"""DebugMode names the rule or the node at fault inside loops, branches and inner graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.debug.debugmode import (
    BadDestroyMap,
    BadOptimization,
    BadViewMap,
    DebugMode,
    InvalidValueError,
)
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.loop import until
from phintys.rewriting.rewriter import node_rewriter
from phintys.rewriting.walk import in2out

V = np.array([0.1, 0.2])
x = pt.dvector("x")


def scan(*args: Any, **kwargs: Any) -> Any:
    return phintys.scan(*args, **kwargs, return_updates=False)


#: expressions of x that apply a function somewhere inside
PLACES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "loop": lambda f: scan(lambda s: f(s) + 1, outputs_info=x, n_steps=3)[-1],
    "map": lambda f: scan(lambda s: f(x * s) + 1, x),
    "while": lambda f: scan(lambda s: (f(s) + 1, until(s.sum() > 9)), outputs_info=x, n_steps=3)[
        -1
    ],
    "branch": lambda f: phintys.ifelse(x.sum() > 0, f(x + 1), x),
    "inner graph": lambda f: phintys.OpFromGraph([x], [f(x + 1)])(x) * 2,
    "loop in inner graph": lambda f: phintys.OpFromGraph(
        [x], [scan(lambda s: f(s) + 1, outputs_info=x, n_steps=2)[-1]]
    )(x),
}


class OnVectors(Op):
    __props__ = ()
    itypes = otypes = (pt.dvector,)


class Views(OnVectors):
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0][::-1]


class Destroys(OnVectors):
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        inputs[0][:] = 0
        output_storage[0][0] = inputs[0].copy()


class Longer(OnVectors):
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] * 2

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return [(shapes[0][0] + 1,)]


class Narrow(OnVectors):
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0].astype("float32")


FAULTS: dict[type[Op], type[Exception]] = {
    Views: BadViewMap,
    Destroys: BadDestroyMap,
    Longer: InvalidValueError,
    Narrow: InvalidValueError,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op", FAULTS, ids=lambda op: op.__name__)
def test_wrong_ops(op: type[Op], place: str):
    mode = DebugMode(check_c_code=False, stability_patience=1)
    f = phintys.function([x], PLACES[place](lambda v: op()(v + 1)), mode=mode)
    with pytest.raises(FAULTS[op], match=op.__name__):
        f(V)


@node_rewriter([pt.exp])
def exp_is_exp2(fgraph: Any, node: Apply) -> list[Any]:
    return [pt.exp2(*node.inputs)]


@node_rewriter([pt.cos])
def cos_is_a_sine(fgraph: Any, node: Apply) -> list[Any]:
    return [pt.sin(pt.as_tensor(node.inputs[0]) + np.pi / 2)]


@pytest.mark.parametrize("place", PLACES)
def test_wrong_rules(place: str):
    """Of two rules that are applied, the one that changes values."""
    mode = DebugMode(check_c_code=False, stability_patience=1)
    mode = mode.register((in2out(cos_is_a_sine), 0.4), (in2out(exp_is_exp2), 0.5))
    f = phintys.function([x], PLACES[place](lambda v: pt.cos(v) + pt.exp(v)), mode=mode)
    with pytest.raises(BadOptimization, match="The rewrite exp_is_exp2 changes a value") as info:
        f(V)
    assert str(info.value.reason) == "exp_is_exp2"


def test_memory_that_a_step_has_not_written_yet_is_not_checked(monkeypatch):
    """A loop inside a loop sets the first element of an array that is not initialised."""
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, np.nan, dtype))
    rows, s = pt.dmatrix("rows"), pt.dscalar("s")
    out = scan(lambda row, a: scan(lambda e, b: b * e, row, a)[-1], rows, s)
    f = phintys.function([rows, s], [out, *phintys.grad(out.sum(), [rows, s])], mode="DebugMode")
    np.testing.assert_array_equal(f(np.ones((3, 2)), 0.5)[0], [0.5, 0.5, 0.5])


def test_code_of_nodes_whose_results_have_different_static_shapes():
    """``x[:n]`` is of length 0 in one place, of unknown or other length in another one."""
    x, s = pt.dvector("x"), pt.dscalar("s")
    out = scan(lambda e, a: a * e, x[:0], s)
    f = phintys.function([x, s], phintys.grad((out**2).sum(), x), mode="DebugMode")
    np.testing.assert_array_equal(f([1.0, 2.0], 0.5), [0.0, 0.0])
