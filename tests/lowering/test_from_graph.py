"""FunctionGraphs as Programs, against ``perform``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phintys.tensor as pt
from phintys.errors import LoweringError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.perform import Runner
from phintys.graph.variable import Apply
from phintys.lowering.from_graph import lower_graph
from phintys.lowering.fuse import MAX_OPERANDS
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Kernel, Program, Python
from phintys.lowering.spec import verify

RNG = np.random.default_rng(4)
INPUTS = {
    "x": (pt.dmatrix, RNG.normal(size=(3, 4))),
    "y": (pt.dvector, RNG.normal(size=4)),
    "s": (pt.dscalar, np.array(1.5)),
    "i": (pt.lscalar, np.array(2)),
    "v": (pt.lvector, np.array([0, 2, 1, 0])),
    "f": (pt.fmatrix, RNG.normal(size=(3, 4)).astype("float32")),
    "z": (pt.zmatrix, RNG.normal(size=(3, 4)) + 1j),
    "b": (lambda name: pt.vector(name, dtype="bool"), np.array([True, False, True, True])),
}

GRAPHS: dict[str, Callable[..., list[Any]]] = {
    "elementwise": lambda x, y, s: [pt.exp(x) * y + s, -x, x**2 / y, pt.maximum(x, s)],
    "mixed dtypes": lambda x, f, v: [x + f, f * v, v // 2, v % 3, v / 2, f + 1],
    "comparison": lambda x, y, b: [x > y, pt.switch(x > 0, x, y), b & (y > 0), ~b],
    "reductions": lambda x, b: [
        x.sum(axis=0), x.sum(axis=1), x.sum(), x.mean(axis=0), x.max(axis=1), x.min(),
        pt.prod(x, axis=0), b.sum(), pt.all(b), pt.any(b),
    ],
    "shapes": lambda x: [x.shape, x.shape[0], x.shape[0] * x.shape[1], x.size],
    "allocation": lambda x, s, i: [pt.zeros(x.shape) + s, pt.alloc(s, 3, i), pt.ones((i, 2))],
    "reshape": lambda x: [x.reshape((-1,)), x.reshape((4, 3)), x.reshape((x.shape[1], -1)) * 2],
    "dimshuffle": lambda x, y: [x.T, x.dimshuffle(1, "x", 0), x.T + x.T, y.dimshuffle("x", 0) + x],
    "dot": lambda x, y, f: [pt.dot(x, y), pt.dot(x.T, x), pt.dot(y, y), pt.dot(f, y)],
    "softmax": lambda x: [pt.exp(x) / pt.exp(x).sum(axis=1, keepdims=True)],
    "complex": lambda z, x: [*[z * 2] * 2, z.T, z.shape, z.shape[0] + x],
    "constants": lambda x: [x + np.arange(4.0), pt.constant(np.eye(3)), pt.constant(2.0)],
    "inputs": lambda x, y: [x, x, y],
}  # fmt: skip


def lowered(
    inputs: list[Any], outputs: list[Any], *args: Any, **kwargs: Any
) -> tuple[Program, FunctionGraph]:
    fgraph = FunctionGraph(inputs, outputs)
    return verify(lower_graph(fgraph, *args, **kwargs)), fgraph


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_programs_compute_what_perform_computes(name: str) -> None:
    make = GRAPHS[name]
    names = make.__code__.co_varnames[: make.__code__.co_argcount]
    inputs = [INPUTS[n][0](n) for n in names]
    program, fgraph = lowered(inputs, make(*inputs))
    values = [INPUTS[n][1] for n in names]
    expected = Runner(fgraph)(values)
    for result, array in zip(interpret(program, *values), expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-6 if name == "mixed dtypes" else 1e-12)
        assert np.asarray(result).dtype == np.asarray(array).dtype


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_no_graph_needs_python(name: str) -> None:
    make = GRAPHS[name]
    names = make.__code__.co_varnames[: make.__code__.co_argcount]
    inputs = [INPUTS[n][0](n) for n in names]
    program, _ = lowered(inputs, make(*inputs))
    assert not [s for s in program.steps if isinstance(s, Python)]


class Scripted(Op):
    """An op with a given ``perform`` or ``lower``."""

    __props__ = ()

    def __init__(self, compute: Any = None, lowering: Any = None, **maps: Any):
        self.compute, self.lowering = compute, lowering
        self.__dict__.update(maps)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [pt.dvector()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = self.compute(*inputs)

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        return NotImplemented if self.lowering is None else self.lowering(b, *inputs)


def run(op: Op, value: Any) -> Any:
    x = pt.dvector("x")
    program, _ = lowered([x], [op(x)])
    return interpret(program, value)[0]


def test_op_without_lowering_is_performed() -> None:
    assert run(Scripted(lambda x: x[::-1] * 2), np.arange(3.0)).tolist() == [4, 2, 0]


def test_results_do_not_share_memory_with_arguments() -> None:
    value = np.arange(3.0)
    perform = Scripted(lambda x: x)
    x = pt.dvector("x")
    program, _ = lowered([x], [perform(x)])
    (step,) = (s for s in program.steps if isinstance(s, Python))
    (result,) = step.function(value)
    assert not np.shares_memory(result, value)


def test_destroyed_inputs_are_copied() -> None:
    def increment(x: Any) -> Any:
        x += 1
        return x

    value = np.zeros(3)
    assert run(Scripted(increment, destroy_map={0: [0]}), value).tolist() == [1, 1, 1]
    assert value.tolist() == [0, 0, 0]


def test_results_of_another_kind_are_refused_and_of_another_width_converted() -> None:
    assert run(Scripted(lambda x: x.astype("float32")), np.ones(2)).dtype == "float64"
    with pytest.raises(TypeError, match="perform returned complex128"):
        run(Scripted(lambda x: x * 1j), np.ones(2))
    with pytest.raises(TypeError, match="perform returned an array of rank 2"):
        run(Scripted(lambda x: x[None]), np.ones(2))


def test_an_exception_says_which_op_raised_it() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run(Scripted(lambda x: 1 // 0), np.ones(2))
    assert any("Scripted" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    "lowering",
    [
        lambda b, x: b.expand(x, 0),
        lambda b, x: b.cast(x, "float32"),
        lambda b, x: [x, x],
    ],
)
def test_a_lowering_that_contradicts_the_types_is_an_error(lowering: Any) -> None:
    with pytest.raises(LoweringError, match="Scripted"):
        run(Scripted(lowering=lowering), np.ones(2))


def test_steps_know_their_nodes() -> None:
    x, y = pt.dvector("x"), pt.dvector("y")
    program, _ = lowered([x, y], [pt.exp(x) + y])
    assert len(program.origins) == len(program.steps)
    assert all(isinstance(origin, Apply) for origin in program.origins)


def test_updates_and_arguments_are_numbered() -> None:
    x, shared = pt.dvector("x"), pt.dvector("shared")
    fgraph = FunctionGraph([x, shared], [x.sum(), shared + x])
    program = verify(lower_graph(fgraph, 1, [1]))
    assert (program.n_arguments, program.updates) == (1, [1])
    assert [s.name for s in program.inputs] == ["x", "shared"]


def test_static_lengths_of_types_are_used() -> None:
    x = pt.tensor("x", dtype="float64", shape=(None, 3))
    y = pt.tensor("y", dtype="float64", shape=(2, None))
    program, _ = lowered([x, y], [x + y])
    assert [d.value for d in program.outputs[0].shape] == [2, 3]


@pytest.mark.parametrize("op", [pt.add, pt.mul])
@pytest.mark.parametrize("dtypes", [("float64",), ("int8",), ("int8", "int64", "float32")])
def test_a_long_sum_or_product_is_not_one_kernel(op, dtypes):
    """Kernels are bounded, and the order of the terms stays."""
    count = 150
    inputs = [pt.vector(dtype=dtypes[i % len(dtypes)]) for i in range(count)]
    fgraph = FunctionGraph(inputs, [op(*inputs)])
    values = [RNG.integers(1, 3, 5).astype(v.dtype) for v in inputs]
    program = verify(lower_graph(fgraph))
    kernels = [step for step in program.steps if isinstance(step, Kernel)]
    if len(dtypes) == 1:
        assert max(len(k.operands) for k in kernels) <= MAX_OPERANDS
    (found,), (wanted,) = interpret(program, *values), Runner(fgraph)(values)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
