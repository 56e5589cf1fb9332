"""Fingerprints: equal for graphs that compute the same in every process, absent otherwise."""

from __future__ import annotations

import pickle
import subprocess
import sys

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.fingerprint import fingerprint
from phintys.scalar.op import UnaryScalarOp
from phintys.tensor.elemwise import Elemwise

x, y, z = pt.dvectors("x", "y", "z")
m = pt.dmatrix("m")
DISTINCT = {
    "add": ([x, y], [x + y]),
    "the other way": ([y, x], [x - y]),
    "subtract": ([x, y], [x - y]),
    "constant": ([x], [x + 1.5]),
    "other constant": ([x], [x + 2.5]),
    "array": ([x], [x + np.array([1.0, 2.0])]),
    "array of another dtype": ([x], [x + np.array([1.0, 2.0], "float32")]),
    "negative zero": ([x], [x * -0.0]),
    "zero": ([x], [x * 0.0]),
    "axis 0": ([m], [m.sum(axis=0)]),
    "axis 1": ([m], [m.sum(axis=1)]),
    "slice": ([m], [m[1:, ::2]]),
    "other slice": ([m], [m[1:, ::3]]),
    "index": ([m], [m[0]]),
    "two outputs": ([x, y], [x + y, x]),
    "outputs exchanged": ([x, y], [x, x + y]),
    "gradient": ([x], [phintys.grad(pt.exp(x).sum(), x)]),
    "join": ([x, y], [pt.concatenate([x, y])]),
    "clip": ([x], [pt.clip(x, 0.0, 1.0)]),
    "cast": ([x], [x.astype("int8")]),
    "set": ([x], [pt.set_subtensor(x[1:3], 0.0)]),
    "inc": ([x], [pt.inc_subtensor(x[1:3], 0.0)]),
    "float32": ([pt.fvector("x"), pt.fvector("y")], None),
}
inputs32, _ = DISTINCT["float32"]
DISTINCT["float32"] = (inputs32, [inputs32[0] + inputs32[1]])


def test_different_graphs_have_different_fingerprints():
    graphs = {name: FunctionGraph(*graph, clone=True) for name, graph in DISTINCT.items()}
    found = {name: fingerprint(graph) for name, graph in graphs.items()}
    assert None not in found.values(), [name for name, f in found.items() if f is None]
    assert len(set(found.values())) == len(DISTINCT)


def test_names_and_order_of_building_do_not_matter():
    def graph(first):
        a, b = pt.dvectors("a", "b")
        parts = [pt.exp(a), pt.log(b)] if first else [pt.log(b), pt.exp(a)][::-1]
        return FunctionGraph([a, b], [parts[0] * parts[1]])

    assert fingerprint(graph(True)) == fingerprint(graph(False)) is not None


def test_it_does_not_matter_whether_equal_ops_and_constants_are_one_object():
    def graph(ops, constants):
        a = pt.dvector("a")
        terms = [Elemwise(op)(a, pt.constant(c)) for op, c in zip(ops, constants)]
        return FunctionGraph([a], [terms[0] * terms[1]])

    one = phintys.scalar.add
    other = pickle.loads(pickle.dumps(Elemwise(one))).scalar_op
    number = np.arange(3.0)
    same = fingerprint(graph([one, one], [number, number]))
    assert fingerprint(graph([one, other], [number, number.copy()])) == same is not None
    assert fingerprint(graph([one, one], [number, number + 1])) != same


@given(
    values=st.lists(
        hnp.arrays(
            st.sampled_from(["f8", "f4", "i8", "i4", "u1"]),
            hnp.array_shapes(max_dims=2, max_side=9),
        ),
        min_size=2,
        max_size=2,
    )
)
@settings(deadline=None)
def test_constants_differ_where_dtype_shape_or_bytes_do(values):
    a = pt.dscalar("a")
    found = [fingerprint(FunctionGraph([a], [a, pt.constant(v)])) for v in values]
    same = [(v.dtype.str, v.shape, v.tobytes()) for v in values]
    assert (found[0] == found[1]) == (same[0] == same[1])
    fortran = np.asfortranarray(values[0])
    assert fingerprint(FunctionGraph([a], [a, pt.constant(fortran)])) == found[0]


def test_another_process_finds_the_same():
    program = (
        "import phintys, phintys.tensor as pt\n"
        "from phintys.graph.fgraph import FunctionGraph\n"
        "from phintys.graph.fingerprint import fingerprint\n"
        "m = pt.dmatrix('m'); cost = (pt.softmax(m, axis=1)[:, ::2] ** 2).sum()\n"
        "print(fingerprint(FunctionGraph([m], [cost, phintys.grad(cost, m)])))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout and len(runs[0].stdout.strip()) == 64


class Mine(UnaryScalarOp):
    function = "numpy.negative"


class MineTensor(Elemwise):
    pass


@pytest.mark.parametrize(
    "op", [Elemwise(Mine()), MineTensor(phintys.scalar.neg)], ids=["scalar", "tensor"]
)
def test_ops_of_users_have_none(op):
    assert fingerprint(FunctionGraph([x], [op(x)])) is None


def test_constants_without_a_text_have_none():
    from phintys.graph.type import generic
    from phintys.graph.variable import Constant

    assert fingerprint(FunctionGraph([], [Constant(generic, object())])) is None
