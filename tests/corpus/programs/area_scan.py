"""Loops: arguments, shapes, gradients, wrong steps."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
from helpers import both, compiled
from pytensor.scan.utils import until
from pytensor.scan.views import foldl, foldr, map, reduce

scan = pytensor.scan


def powers():
    x = pt.dvector("x")
    states = scan(
        lambda s, x: s * x,
        outputs_info=pt.ones_like(x),
        non_sequences=x,
        n_steps=3,
        return_updates=False,
    )
    yield both(states, {x: [2.0, 3.0]})
    yield both(states[-1], {x: [2.0, 3.0]})


def updates_are_returned():
    results, updates = scan(
        lambda s: s + 1, outputs_info=pt.as_tensor(0.0, dtype="float64"), n_steps=3
    )
    yield both(results)
    yield [type(updates).__name__, len(updates)]


def sequences():
    x, y = pt.dvector("x"), pt.dvector("y")
    values = {x: [1.0, 2.0, 3.0], y: [10.0, 20.0]}
    yield both(scan(lambda a, b: a + b, sequences=[x, y], return_updates=False), values)
    yield both(scan(lambda a: a * 2, sequences=x, return_updates=False), values)
    yield both(
        scan(lambda a: a * 2, sequences=[x], go_backwards=True, return_updates=False), values
    )
    yield both(
        scan(lambda a, b: a - b, sequences=dict(input=x, taps=[0, 1]), return_updates=False), values
    )
    yield both(
        scan(lambda a, b: a - b, sequences=dict(input=x, taps=[-1, 0]), return_updates=False),
        values,
    )


def states_with_taps():
    x0 = pt.as_tensor(np.array([0.0, 1.0]))
    info = dict(initial=x0, taps=[-2, -1])
    yield both(scan(lambda a, b: a + b, outputs_info=info, n_steps=6, return_updates=False))
    yield lambda: scan(
        lambda a, b: a + b, outputs_info=dict(initial=pt.dscalar("s"), taps=[-2, -1]), n_steps=6
    )
    yield lambda: scan(lambda a: a, outputs_info=dict(initial=x0, taps=[0]), n_steps=6)
    yield lambda: scan(lambda a: a, outputs_info=dict(initial=x0, taps=[1]), n_steps=6)


def several_outputs():
    x = pt.dvector("x")
    a, b = scan(
        lambda x, s: (s + x, x * 2),
        sequences=x,
        outputs_info=[pt.as_tensor(0.0, dtype="float64"), None],
        return_updates=False,
    )
    yield [both(a, {x: [1.0, 2.0]}), both(b, {x: [1.0, 2.0]})]
    yield lambda: scan(lambda x, s: s + x, sequences=x, outputs_info=[None, None])
    single = scan(lambda x: x, sequences=x, return_list=True, return_updates=False)
    yield [type(single).__name__, len(single)]


def loops_that_end_early():
    limit = pt.dscalar("limit")
    y = scan(
        lambda s, limit: (s * 2, until(s > limit)),
        outputs_info=pt.as_tensor(1.0, dtype="float64"),
        non_sequences=limit,
        n_steps=100,
        return_updates=False,
    )
    yield both(y, {limit: 10.0})
    yield both(y[-1], {limit: 10.0})
    yield both(y.shape, {limit: 10.0})


def numbers_of_steps():
    n = pt.lscalar("n")
    y = scan(
        lambda s: s + 1,
        outputs_info=pt.as_tensor(0.0, dtype="float64"),
        n_steps=n,
        return_updates=False,
    )
    yield [both(y, {n: 3}), both(y, {n: 0}), both(y, {n: 1})]
    x = pt.dvector("x")
    z = scan(lambda a: a + 1, sequences=x, n_steps=2, return_updates=False)
    yield both(z, {x: [1.0, 2.0, 3.0]})
    yield lambda: z.eval({x: [1.0]})
    yield lambda: scan(lambda s: s + 1, outputs_info=pt.dscalar("s"), n_steps="a")
    yield scan(lambda a: a, sequences=pt.vector("v", shape=(4,)), return_updates=False)


def steps_that_are_wrong():
    x, i = pt.dvector("x"), pt.lscalar("i")
    yield lambda: scan(lambda s: pt.cast(s, "float32"), outputs_info=pt.dscalar("s"), n_steps=2)
    yield lambda: scan(lambda s: s * 0.5, outputs_info=i, n_steps=2)
    yield lambda: scan(lambda s: pt.stack([s, s]), outputs_info=pt.dscalar("s"), n_steps=2)
    yield lambda: scan(lambda a: a, n_steps=None)
    yield lambda: scan(lambda a, b: a, sequences=x)
    yield lambda: scan(lambda a: "text", sequences=x)
    yield lambda: scan(lambda a: None, sequences=x)
    yield lambda: scan("no function", sequences=x)
    yield lambda: scan(lambda a: a, sequences=pt.dscalar("s"))
    yield lambda: scan(lambda a: a, sequences=dict(taps=[0]))


def initial_states_broadcast():
    x = pt.dvector("x")
    yield lambda: scan(
        lambda s: s + x, outputs_info=pt.zeros((1,)), n_steps=2, return_updates=False
    )
    yield lambda: scan(
        lambda s: s + x, outputs_info=pt.zeros((2,)), n_steps=2, return_updates=False
    )
    yield lambda: scan(lambda a, s: s + a, sequences=x, outputs_info=0.0, return_updates=False)
    yield lambda: scan(
        lambda a, s: s + a, sequences=x, outputs_info=np.float64(0), return_updates=False
    )


def outer_variables_are_found():
    x, w = pt.dvector("x"), pytensor.shared(2.0, name="w")
    y = scan(lambda a: a * w + x[0], sequences=x, return_updates=False)
    yield both(y, {x: [1.0, 2.0]})
    yield lambda: scan(lambda a: a * w, sequences=x, strict=True)
    yield lambda: scan(
        lambda a, w: a * w, sequences=x, non_sequences=[w], strict=True, return_updates=False
    )


def updates_of_shared_values():
    count = pytensor.shared(0, name="count")
    _, updates = scan(lambda: {count: count + 1}, n_steps=4)
    f = pytensor.function([], [], updates=updates)
    f()
    yield count.get_value()


def views():
    x = pt.dvector("x")
    values = {x: [1.0, 2.0, 3.0]}
    zero = pt.as_tensor(0.0, dtype="float64")
    yield both(map(lambda a: a**2, x, return_updates=False), values)
    yield both(reduce(lambda a, s: a + s, x, zero, return_updates=False), values)
    yield both(foldl(lambda a, s: a - s, x, zero, return_updates=False), values)
    yield both(foldr(lambda a, s: a - s, x, zero, return_updates=False), values)


def gradients():
    x, w = pt.dvector("x"), pt.dscalar("w")
    y = scan(
        lambda a, s, w: pt.tanh(s * w + a),
        sequences=x,
        outputs_info=pt.as_tensor(0.0, dtype="float64"),
        non_sequences=w,
        return_updates=False,
    )
    values = {x: [0.1, 0.2, 0.3], w: 0.7}
    yield both(pytensor.grad(y[-1], w), values)
    yield both(pytensor.grad(y.sum(), x), values)
    yield both(pytensor.grad(pytensor.grad(y[-1], w), w), values)
    yield both(pytensor.gradient.jacobian(y, x), values)


def truncated_gradients():
    w = pt.dscalar("w")
    y = scan(
        lambda s, w: s * w,
        outputs_info=pt.as_tensor(1.0, dtype="float64"),
        non_sequences=w,
        n_steps=4,
        truncate_gradient=2,
        return_updates=False,
    )
    yield both(pytensor.grad(y[-1], w), {w: 2.0})


def loops_in_loops():
    M = pt.dmatrix("M")
    y = scan(
        lambda row: scan(lambda a: a**2, sequences=row, return_updates=False).sum(),
        sequences=M,
        return_updates=False,
    )
    yield both(y, {M: [[1.0, 2.0], [3.0, 4.0]]})
    yield both(pytensor.grad(y.sum(), M), {M: [[1.0, 2.0], [3.0, 4.0]]})


def draws_in_loops():
    rng = pytensor.shared(np.random.default_rng(1))

    def step(rng):
        next_rng, x = pt.random.normal(rng=rng).owner.outputs
        return next_rng, x

    last, draws = scan(step, outputs_info=[rng, None], n_steps=3, return_updates=False)
    f = pytensor.function([], draws, updates={rng: last})
    yield [f(), f()]


def the_op():
    x = pt.dvector("x")
    y = scan(
        lambda a, s: a + s,
        sequences=x,
        outputs_info=pt.as_tensor(0.0, dtype="float64"),
        name="sums",
        return_updates=False,
    )
    op = y.owner.inputs[0].owner.op
    yield [
        type(op).__name__,
        op.info.n_seqs,
        op.info.n_sit_sot,
        op.info.n_nit_sot,
        op.info.n_non_seqs,
    ]
    yield [len(op.inner_inputs), len(op.inner_outputs), op.name, op.info.as_while]


def compiled_loops():
    x, n = pt.dvector("x"), pt.lscalar("n")
    zero = pt.as_tensor(0.0, dtype="float64")
    y = scan(lambda a, s: 0.5 * s + a, sequences=x, outputs_info=zero, return_updates=False)
    yield compiled(y[-1], {x: np.arange(5.0)})
    yield compiled(y[-2:], {x: np.arange(5.0)})
    yield compiled(y[::2].sum(), {x: np.arange(5.0)})
    z = scan(
        lambda k, s, x: s + x[k],
        sequences=pt.arange(n),
        outputs_info=zero,
        non_sequences=x,
        return_updates=False,
    )
    yield compiled(z, {x: np.arange(5.0), n: np.array(3)})


def checkpoints():
    from pytensor.scan.checkpoints import scan_checkpoints

    x = pt.dscalar("x")
    result, _ = scan_checkpoints(
        fn=lambda s, x: s * x,
        outputs_info=[pt.ones_like(x)],
        non_sequences=x,
        n_steps=6,
        save_every_N=2,
    )
    yield both(result, {x: 2.0})
    yield both(pytensor.grad(result[-1], x), {x: 2.0})


def steps_that_return_dicts_or_conditions():
    x = pt.dvector("x")
    total = pytensor.shared(0.0, name="total")
    y, updates = scan(lambda a: (a * 2, {total: total + a}), sequences=x)
    f = pytensor.function([x], y, updates=updates)
    yield [f([1.0, 2.0]), total.get_value()]
    z, more = scan(lambda a: (a, {}, until(a > 1)), sequences=x)
    yield [both(z, {x: [1.0, 2.0, 3.0]}), len(more)]


def conditionals():
    from pytensor.ifelse import ifelse

    c, x, y = pt.bscalar("c"), pt.dvector("x"), pt.dvector("y")
    values = {c: 1, x: [1.0], y: [2.0, 3.0]}
    yield both(ifelse(c, x, y), values)
    yield both(ifelse(c, x, y), {**values, c: 0})
    yield both(ifelse(pt.eq(c, 1), x.sum(), y.sum()), values)
    yield ifelse(c, pt.vector("a", shape=(3,)), pt.vector("b", shape=(3,)))
    yield ifelse(c, pt.vector("a", shape=(3,)), pt.vector("b", shape=(4,)))
    yield lambda: ifelse(c, x, pt.dmatrix("m"))
    yield lambda: ifelse(c, x, pt.fvector("f"))
    yield lambda: ifelse(c, [x, y], [x])
    yield lambda: ifelse(x, x, y)
    yield both(pytensor.grad(ifelse(c, x.sum(), y.sum()), x), values)
