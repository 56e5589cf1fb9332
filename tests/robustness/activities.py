"""What users do over and over: build, compile and drop things that differ each time."""

from __future__ import annotations

import copy
import pickle

import numpy as np

import phintys
import phintys.tensor as pt
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.op import Op
from phintys.graph.type import Type
from phintys.graph.variable import Apply
from phintys.rewriting.database import EquilibriumDB, RewriteDatabaseQuery
from phintys.rewriting.graph import rewrite_graph
from phintys.rewriting.rewriter import node_rewriter
from phintys.rewriting.walk import in2out
from phintys.scalar.composite import Composite
from phintys.scalar.type import scalar_type
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.reduce import Sum


def composite(k):
    x = scalar_type("float64")("x")
    return Composite([x], [phintys.scalar.exp(x * float(k))])


def frozen(k):
    x = pt.dvector("x")
    return FrozenFunctionGraph.from_io([x], [pt.exp(x) * float(k)])


def build(k, shape):
    x = pt.tensor("x", dtype="float64", shape=shape)
    cost = (pt.exp(x * 2) + x[..., ::2].sum()).sum() + x.T.mean()
    return x, [cost, phintys.grad(cost, x)]


def lengths(k):
    build(k, (k, k + 1))


def functions_of_lengths(k):
    x, outputs = build(k, (k,))
    phintys.function([x], outputs, mode="FAST_COMPILE")(np.ones(k))


def native_functions(k):
    x, s = pt.dvector("x"), phintys.shared(np.zeros(3))
    y = pt.exp(x * float(k)) + s
    phintys.function([x], [y, phintys.grad(y.sum(), x)], updates={s: s + x})(np.ones(3))


def ranks_and_axes(k):
    x = pt.tensor("x", dtype="float64", shape=(None,) * 6)
    order = np.random.default_rng(k).permutation(6)
    y = x.transpose(*order).sum(axis=(k % 6, (k + 1 + k // 6 % 5) % 6))
    rewrite_graph(DimShuffle(input_ndim=1, new_order=(0, *"x" * (k % 40)))(y.ravel()))
    Sum(axis=(k % 6,))(x)


def composites(k):
    op = Elemwise(composite(k))
    x = pt.dvector("x")
    phintys.function([x], op(x), mode="FAST_COMPILE")(np.ones(2))
    phintys.function([x], pt.elemwise.elementwise(composite(-k))(x))(np.ones(2))


class Scale(Op):
    """A user's op with a parameter."""

    __props__ = ("factor",)
    itypes = otypes = (pt.dvector,)

    def __init__(self, factor):
        self.factor = factor

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * self.factor

    def pullback(self, inputs, outputs, cotangents):
        return [self(cotangents[0])]


def users_ops(k):
    x = pt.dvector("x")
    y = Scale(k)(x)
    phintys.function([x], [y, phintys.grad(y.sum(), x)])(np.ones(2))


def users_classes(k):
    class Length(Type):
        __props__ = ("n",)

        def __init__(self, n):
            self.n = n

        def filter(self, data, strict=False, allow_downcast=None):
            return data

    class Same(Op):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0]

    x = Length(k)("x")
    y = Same()(x)
    pickle.loads(pickle.dumps(pt.dvector("x") + 1))
    copy.deepcopy(y)
    phintys.function([x], y)(1)
    FrozenFunctionGraph.from_io([x], [y])


def rewriters(k):
    @node_rewriter([Scale])
    def double(fgraph, node):
        return [Scale(-k)(node.inputs[0])] if node.op.factor == k else None

    db = EquilibriumDB()
    db.register("double", double, "new")
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [Scale(k)(x)], clone=True)
    db.query(RewriteDatabaseQuery(["new"])).rewrite(fgraph)
    in2out(double).rewrite(fgraph)
    mode = phintys.compile.mode.get_mode("FAST_COMPILE").register((in2out(double), 40))
    phintys.function([x], Scale(k)(x), mode=mode)(np.ones(2))


def nominal_variables(k):
    frozen(k).unfreeze()
    FrozenFunctionGraph.from_io([x := pt.tensor("x", shape=(k,))], [x + k])


def evaluations(k):
    x = pt.dscalar("x")
    y = x + k
    for mode in (None, "FAST_COMPILE"):
        y.eval({x: 1}, mode=mode)


def numba_functions(k):
    x = pt.dvector("x")
    phintys.function([x], pt.exp(x * 2)[:k].sum(), mode="NUMBA")


def jax_functions(k):
    x = pt.dvector("x")
    phintys.function([x], pt.exp(x * 2)[:k].sum(), mode="JAX")(np.ones(3))


#: what users do, and how often the test does it
ACTIVITIES = {
    lengths: 300,
    functions_of_lengths: 60,
    native_functions: 40,
    ranks_and_axes: 150,
    composites: 40,
    users_ops: 60,
    users_classes: 40,
    rewriters: 40,
    nominal_variables: 100,
    evaluations: 30,
    numba_functions: 40,
    jax_functions: 6,
}
