"""Every op for which a compiled function calls Python says why; reports show these calls."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import numpy as np
from matrix_nodes import alone, examples

import phintys
import phintys.tensor as pt
from phintys.__main__ import main
from phintys.compile.function import FunctionMaker
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.lowering.from_graph import Perform, lower_graph
from phintys.lowering.in_python import calls_of_python
from phintys.lowering.program import Python, all_steps
from phintys.scalar.op import TABLE
from phintys.show.in_python import op_classes, ops_in_python
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.reduce import ProdWithoutZeros
from phintys.tensor.type import TensorType

DTYPES = "bool int8 int64 uint8 uint64 float16 float32 float64 complex64 complex128"


def performed(inputs: list, outputs: list) -> list[Op]:
    """The ops whose ``perform`` a function calls."""
    steps, _ = all_steps(FunctionMaker(inputs, outputs, "FAST_RUN").program)
    functions = [step.function for step, _ in steps if isinstance(step, Python)]
    return [f.node.op for f in functions if isinstance(f, Perform)]


def performed_of_examples() -> Iterator[Op]:
    """The same of functions of the examples of each op, and of some ops of complex numbers."""
    for nodes in examples().values():
        copies = [alone(node) for node, _ in nodes]
        inputs = [v for given, _, _ in copies for v in given]
        yield from performed(inputs, [v for _, node, _ in copies for v in node.outputs])
    z = pt.zmatrix("z")
    outputs = [pt.cumprod(z, axis=0), pt.prod(z), ProdWithoutZeros()(z), pt.linalg.pinv(z)]
    yield from performed([z], outputs)


def test_every_op_that_is_computed_in_python_says_why():
    found = list(performed_of_examples())
    silent = {str(op) for op in found if not op.in_python}
    assert not silent, "these ops need a lowering, or a reason: Op.in_python"
    seen = {name for op in found for name in names(op)}
    assert {name for name, _ in ops_in_python()} - {*seen, *TABLE} == set()


def names(op: Op) -> list[str]:
    """The names of the class of an op, and of the op that it applies to items."""
    return [type(found).__name__ for found in (op, getattr(op, "core_op", None))]


def in_python(name: str) -> list[str]:
    """The dtypes of arguments for which an elementwise function is computed in Python."""
    op = Elemwise(TABLE[name])
    found = []
    for dtype in DTYPES.split():
        inputs = [TensorType(dtype, (None,))() for _ in range(max(op.scalar_op.nin, 2))]
        inputs = inputs[: op.scalar_op.nin] if op.scalar_op.nin > 0 else inputs
        try:
            node = op.make_node(*inputs)
        except TypeError:  # the function is not defined for it
            continue
        program = lower_graph(FunctionGraph(inputs, node.outputs, clone=False))
        found += [dtype] * bool(calls_of_python(program))
    return found


def test_every_row_that_is_computed_in_python_says_why():
    found = {name: in_python(name) for name in TABLE}
    silent = {name for name, dtypes in found.items() if dtypes and not TABLE[name].in_python}
    native = {name for name, dtypes in found.items() if not dtypes and TABLE[name].in_python}
    assert (silent, native) == (set(), set())


def test_the_command_lists_the_reasons(capsys):
    assert main(["native"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [tuple(re.split(" +", line, maxsplit=1)) for line in lines] == list(ops_in_python())
    known = {cls.__name__ for cls in op_classes()} | set(TABLE)
    assert {name for name, _ in ops_in_python()} <= known and len(lines) > 40


class Reversed(Op):
    """An op of a user, without lowering."""

    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def shape_rule(self, s, x):
        return [x]

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][::-1].copy()


def steps_of_reversals() -> phintys.compile.Function:
    """A loop whose steps call Python, between kernels."""
    x = pt.dvector("x")
    last = phintys.scan(
        lambda s: Reversed()(pt.exp(s)) + 1, outputs_info=x, n_steps=200, return_updates=False
    )[-1]
    return phintys.function([x], last, name="reversals")


def test_reports_show_what_steps_of_loops_call():
    report = phintys.explain(steps_of_reversals())
    assert report.python_ops == ["each step: Reversed"]
    assert report.python_reasons == ["the op has no method `lower`"]
    assert "python   each step: Reversed: the op has no method `lower`" in str(report)
    assert any(re.match("each step: loops .*: exp", text) for text in report.kernels)


def test_reports_show_what_branches_call():
    x, c = pt.dvector("x"), pt.bscalar("c")
    f = phintys.function([c, x], phintys.ifelse(c, Reversed()(x), pt.exp(x)))
    report = phintys.explain(f)
    assert report.python_ops == ["if true: Reversed"]
    assert any(text.startswith("if false: loops") for text in report.kernels)
    np.testing.assert_array_equal(f(1, [1.0, 2.0]), [2.0, 1.0])


def test_a_logger_names_the_calls(caplog):
    with caplog.at_level(logging.INFO, "phintys.compile.native"):
        steps_of_reversals()
    assert caplog.messages == [
        "reversals computes each step: Reversed in Python: the op has no method `lower`."
    ]
