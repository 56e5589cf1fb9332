"""The mistakes whose messages are tested word by word: one function each.

Those of `BUILDING` fail while a graph is built or a function is made.  Those of `CALLING` give a
function for a mode, and the arguments it fails on; the failure must be the same on every backend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import phintys
import phintys.tensor as pt
from phintys.config import Config, config
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.rewriting.rewriter import node_rewriter
from phintys.rewriting.walk import WalkingGraphRewriter

BUILDING: dict[str, Callable[[], Any]] = {}
CALLING: dict[str, Callable[[str], tuple[Any, tuple[Any, ...], dict[str, Any]]]] = {}
#: messages that speak of another op: the product and its addition are one BLAS call there
VARIANTS = {"inner_lengths_differ_in_a_gemm": ("FAST_RUN", "C")}
#: compiled backends have no calls of ops made of graphs
VARIANTS["index_in_an_inner_graph"] = ("FAST_RUN", "C", "NUMBA", "JAX")
#: the step is machine code, which calls the op
VARIANTS["perform_raises_in_a_step"] = ("FAST_RUN", "C", "NUMBA", "JAX")
ones = np.ones


def building(case: Callable[[], Any]) -> Callable[[], Any]:
    BUILDING[case.__name__] = case
    return case


def calling(case: Any) -> Any:
    CALLING[case.__name__] = case
    return case


# ------------------------------------------------------------------- building graphs


@building
def known_lengths_differ():
    x = pt.tensor("x", dtype="float64", shape=(2,))
    y = pt.tensor("y", dtype="float64", shape=(3,))
    return x + y


@building
def inner_lengths_differ():
    a = pt.tensor("a", dtype="float64", shape=(2, 3))
    return a @ pt.tensor("b", dtype="float64", shape=(4, 5))


@building
def product_of_numbers_and_matrices():
    return pt.matmul(pt.dscalar("x"), pt.dmatrix("a"))


@building
def axis_too_large():
    return pt.dmatrix("m").sum(axis=2)


@building
def too_many_indices():
    return pt.dvector("x")[1, 2]


@building
def float_index():
    return pt.dvector("x")[1.5]


@building
def text_index():
    return pt.dvector("x")["a"]


@building
def float_index_vector():
    return pt.dvector("x")[pt.dvector("i")]


@building
def known_index_out_of_range():
    return pt.tensor("x", dtype="float64", shape=(3,))[5]


@building
def item_assignment():
    x = pt.dvector("x")
    x[0] = 1.0


@building
def truth_value():
    return bool(pt.dvector("x") > 0)


@building
def iteration_of_unknown_length():
    return list(pt.dvector("x"))


@building
def length_of_unknown():
    return len(pt.dvector("x"))


@building
def bits_of_floats():
    return pt.dvector("x") & pt.dvector("y")


@building
def minus_of_bools():
    return -pt.vector("c", dtype="bool")


@building
def reshape_to_another_size():
    return pt.tensor("x", dtype="float64", shape=(3,)).reshape((2, 2))


@building
def dimshuffle_drops_a_long_axis():
    return pt.tensor("x", dtype="float64", shape=(3, 2)).dimshuffle(0)


@building
def join_of_ranks():
    return pt.join(0, pt.dvector("x"), pt.dmatrix("m"))


@building
def set_subtensor_of_no_index():
    return pt.set_subtensor(pt.dvector("x") + 1, 0.0)


@building
def unknown_dtype():
    return pt.vector("x", dtype="floaty")


@building
def no_tensor():
    return pt.exp(object)


# ----------------------------------------------------------------- making functions


@building
def missing_input():
    x, y = pt.dvectors("x", "y")
    return phintys.function([x], x + y)


@building
def unused_input():
    x, y = pt.dvectors("x", "y")
    return phintys.function([x, y], x + 1)


@building
def the_same_input_twice():
    x = pt.dvector("x")
    return phintys.function([x, x], x + 1)


@building
def inputs_not_a_list():
    x = pt.dvector("x")
    return phintys.function(x, x + 1)


@building
def number_as_input():
    return phintys.function([1.0], pt.dvector("x"))


@building
def shared_as_input():
    s = phintys.shared(ones(3), "s")
    return phintys.function([s], s + 1)


@building
def number_as_output():
    x = pt.dvector("x")
    return phintys.function([x], [x, 2.0])


@building
def triple_as_input():
    x = pt.dvector("x")
    return phintys.function([(x, 1.0, 2.0)], x)


@building
def update_of_an_input():
    x = pt.dvector("x")
    return phintys.function([x], x, updates={x: x + 1})


@building
def update_of_another_dtype():
    n = phintys.shared(np.int64(0), "n")
    return phintys.function([], [], updates={n: n + 0.5})


@building
def update_of_another_rank():
    s = phintys.shared(ones(3), "s")
    return phintys.function([], [], updates={s: pt.outer(s, s)})


@building
def two_updates():
    s = phintys.shared(ones(3), "s")
    return phintys.function([], [], updates=[(s, s + 1), (s, s + 2)])


@building
def update_not_a_pair():
    s = phintys.shared(ones(3), "s")
    return phintys.function([], [], updates=[s])


@building
def given_for_an_input():
    x = pt.dvector("x")
    return phintys.function([x], x + 1, givens={x: ones(3)})


@building
def given_of_another_type():
    x = pt.dvector("x")
    return phintys.function([], x + 1, givens={x: pt.dmatrix("m")})


@building
def bad_policy():
    x, y = pt.dvectors("x", "y")
    return phintys.function([x, y], x, on_unused_input="explode")


@building
def mode_misspelt():
    x = pt.dvector("x")
    return phintys.function([x], x, mode="FAST_RNU")


@building
def linker_misspelt():
    return phintys.Mode("lvm")


@building
def optimizer_misspelt():
    return phintys.Mode("py", "fast_rn")


@building
def symbolic_shared_value():
    return phintys.shared(pt.dvector("x"))


@building
def shared_value_of_another_rank():
    phintys.shared(ones(3), "s").set_value(ones((3, 3)))


@building
def eval_of_an_unknown_name():
    return (pt.dvector("x") + 1).eval({"y": ones(3)})


class Doubled(Op):
    """An op for a rewrite that fails."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])


@node_rewriter([Doubled])
def broken_rewrite(fgraph, node):
    raise KeyError("a bug")


@node_rewriter([Doubled])
def rewrite_to_another_type(fgraph, node):
    return [node.inputs[0].sum()]


def _with(rewrite):
    x = pt.dvector("x")
    y = Doubled()(x)
    mode = phintys.get_mode("FAST_COMPILE").register((WalkingGraphRewriter(rewrite), 1.0))
    return phintys.function([x], y, mode=mode)


@building
def rewrite_that_raises():
    return _with(broken_rewrite)


@building
def rewrite_with_a_wrong_result():
    return _with(rewrite_to_another_type)


# ------------------------------------------------------------------------ gradients


@building
def gradient_of_a_vector():
    x = pt.dvector("x")
    return phintys.grad(x * 2, x)


@building
def disconnected_gradient():
    x, y = pt.dvectors("x", "y")
    return phintys.grad(x.sum(), y)


@building
def disconnected_option():
    x, y = pt.dvectors("x", "y")
    return phintys.grad(x.sum(), y, disconnected_inputs="nothing")


@building
def gradient_that_does_not_exist():
    v = pt.dscalar("v")
    return phintys.grad(pt.jv(v, 2.0), v)


class Opaque(Op):
    """An op without derivative."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * 2


@building
def op_without_gradient():
    x = pt.dscalar("x")
    return phintys.grad(Opaque()(x), x)


@building
def known_gradient_of_another_rank():
    x = pt.dvector("x")
    y = x * 2
    return phintys.grad(None, x, known_grads={y: pt.dscalar("g")})


# -------------------------------------------------------------------------- settings


@building
def setting_misspelt():
    config.floatx = "float32"


@building
def setting_read_misspelt():
    return config.flaotX


@building
def setting_illegal():
    config.floatX = "float63"


@building
def flags_illegal():
    return Config("profile=perhaps")


@building
def change_of_a_setting_misspelt():
    with config.change_flags(cache_dri="/"):
        pass


# --------------------------------------------------------------------------- calling


@calling
def lengths_differ(mode):
    x, y = pt.dvectors("x", "y")
    z = pt.exp(x + y)
    return phintys.function([x, y], z, mode=mode), (ones(2), ones(3)), {}


@calling
def length_one_does_not_broadcast(mode):
    x, y = pt.dvectors("x", "y")
    z = x * y
    return phintys.function([x, y], z, mode=mode), (ones(1), ones(3)), {}


@calling
def lengths_differ_from_shared(mode):
    x = pt.dvector("x")
    w = phintys.shared(ones(3), "w")
    error = x + w
    return phintys.function([x], error, updates={w: w + error}, mode=mode), (ones(2),), {}


@calling
def a_later_update_fails(mode):
    x, y = pt.dvectors("x", "y")
    v, w = phintys.shared(ones(3), "v"), phintys.shared(ones(2), "w")
    updates = {v: v + x, w: w * y}
    return phintys.function([x, y], x * 2, updates=updates, mode=mode), (ones(3), ones(5)), {}


@calling
def inner_lengths_differ_in_a_product(mode):
    a, x = pt.dmatrix("a"), pt.dvector("x")
    y = a @ x
    return phintys.function([a, x], y, mode=mode), (ones((2, 3)), ones(2)), {}


@calling
def inner_lengths_differ_in_a_batch(mode):
    a, b = pt.dtensor3("a"), pt.dmatrix("b")
    return phintys.function([a, b], a @ b.T, mode=mode), (ones((2, 2, 3)), ones((4, 2))), {}


@calling
def inner_lengths_differ_in_a_gemm(mode):
    a, b, c = pt.dmatrices("a", "b", "c")
    y = a @ b + c
    return phintys.function([a, b, c], y, mode=mode), (ones((2, 3)), ones((2, 3)), ones((2, 3))), {}


@calling
def index_out_of_range(mode):
    x, i = pt.dvector("x"), pt.lscalar("i")
    y = x[i] * 2
    return phintys.function([x, i], y, mode=mode), (ones(3), -4), {}


@calling
def vector_index_out_of_range(mode):
    x, k = pt.dmatrix("x"), pt.lvector("k")
    y = x[:, k] + 1
    return phintys.function([x, k], y, mode=mode), (ones((2, 3)), [0, 7]), {}


@calling
def assigned_index_out_of_range(mode):
    x, k = pt.dvector("x"), pt.lvector("k")
    y = pt.inc_subtensor(x[k], 1.0)
    return phintys.function([x, k], y, mode=mode), (ones(3), [0, 3]), {}


@calling
def value_does_not_fit_a_slice(mode):
    x, y = pt.dvectors("x", "y")
    z = pt.set_subtensor(x[:2], y)
    return phintys.function([x, y], z, mode=mode), (ones(3), ones(3)), {}


@calling
def reshape_does_not_fit(mode):
    x = pt.dvector("x")
    y = x.reshape((2, 2))
    return phintys.function([x], y, mode=mode), (ones(3),), {}


@calling
def joined_lengths_differ(mode):
    a, b = pt.dmatrices("a", "b")
    y = pt.join(0, a, b)
    return phintys.function([a, b], y, mode=mode), (ones((2, 3)), ones((1, 2))), {}


@calling
def split_lengths_do_not_add_up(mode):
    x = pt.dvector("x")
    a, b = pt.split(x, [2, 2], n_splits=2)
    return phintys.function([x], [a, b], mode=mode), (ones(5),), {}


@calling
def specified_length_differs(mode):
    x = pt.dvector("x")
    y = pt.specify_shape(x, (3,)) + 1
    return phintys.function([x], y, mode=mode), (ones(2),), {}


@calling
def largest_of_nothing(mode):
    x = pt.dvector("x")
    y = x.max()
    return phintys.function([x], y, mode=mode), (ones(0),), {}


@calling
def length_declared_in_the_type(mode):
    x = pt.tensor("x", dtype="float64", shape=(3,))
    return phintys.function([x], x + 1, mode=mode), (ones(2),), {}


@calling
def argument_of_another_rank(mode):
    x = pt.dvector("x")
    return phintys.function([x], x + 1, mode=mode, name="f"), (ones((2, 2)),), {}


@calling
def argument_would_lose_precision(mode):
    x = pt.fvector("x")
    return phintys.function([x], x + 1, mode=mode), (np.full(2, 0.1),), {}


@calling
def float_for_an_integer(mode):
    n = pt.lscalar("n")
    return phintys.function([n], n + 1, mode=mode), (1.5,), {}


@calling
def text_for_a_tensor(mode):
    x = pt.dvector("x")
    return phintys.function([x], x + 1, mode=mode), ("abc",), {}


@calling
def too_few_arguments(mode):
    x, y = pt.dvectors("x", "y")
    return phintys.function([x, y], x + y, mode=mode), (ones(2),), {}


@calling
def too_many_arguments(mode):
    x, y = pt.dvectors("x", "y")
    return phintys.function([x, y], x + y, mode=mode), (ones(2),) * 3, {}


@calling
def keyword_misspelt(mode):
    rate, x = pt.dscalar("rate"), pt.dvector("x")
    return phintys.function([x, rate], x * rate, mode=mode), (ones(2),), {"rat": 1.0}


@calling
def argument_given_twice(mode):
    x = pt.dvector("x")
    return phintys.function([x], x + 1, mode=mode), (ones(2),), {"x": ones(2)}


@calling
def ambiguous_keyword(mode):
    x, y = pt.dvector("x"), pt.dvector("x")
    return phintys.function([x, y], x + y, mode=mode), (ones(2),), {"x": ones(2)}


class Failing(Op):
    """A user's op whose ``perform`` raises."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def infer_shape(self, node, shapes):
        return shapes

    def perform(self, node, inputs, output_storage):
        raise ArithmeticError("the user's own message")


@calling
def perform_raises(mode):
    x = pt.dvector("x")
    y = Failing()(x * 2) + 1
    return phintys.function([x], y, mode=mode), (ones(4),), {}


# ------------------------------------------------------- steps of loops, branches, inner graphs


@calling
def index_in_a_step(mode):
    rows, state = pt.lvector("rows"), pt.dvector("state")
    picked = phintys.scan(lambda i, s: s + s[i], rows, state, return_updates=False)
    return phintys.function([rows, state], picked, mode=mode), ([0, 7], ones(2)), {}


@calling
def lengths_in_a_step_differ(mode):
    rows, state, weights = pt.dvectors("rows", "state", "weights")
    sums = phintys.scan(lambda x, s: x * (s + weights).sum() + s, rows, state, return_updates=False)
    f = phintys.function([rows, state, weights], sums, mode=mode)
    return f, (ones(2), ones(2), ones(3)), {}


@calling
def index_in_a_branch(mode):
    x, n = pt.dvector("x"), pt.lscalar("n")
    f = phintys.function([x, n], phintys.ifelse(n > 0, x[n], x[0]), mode=mode)
    return f, (ones(2), 5), {}


@calling
def index_in_an_inner_graph(mode):
    inner, k, x, n = pt.dvector("inner"), pt.lscalar("k"), pt.dvector("x"), pt.lscalar("n")
    op = phintys.OpFromGraph([inner, k], [pt.exp(inner[k])])
    return phintys.function([x, n], op(x, n), mode=mode), (ones(2), 5), {}


@calling
def perform_raises_in_a_step(mode):
    rows, state = pt.dmatrix("rows"), pt.dvector("state")
    sums = phintys.scan(lambda x, s: Failing()(s) + x, rows, state, return_updates=False)
    return phintys.function([rows, state], sums, mode=mode), (ones((2, 4)), ones(4)), {}
