"""Derivatives."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
from helpers import both
from pytensor import gradient as G
from pytensor.gradient import grad

X = np.array([0.5, -1.0, 2.0])


def grads_of_functions():
    x = pt.dvector("x")
    names = "exp sin tanh sqr abs sigmoid softplus erf log1p expm1 arctan sinh neg sign floor ceil"
    for name in names.split():
        yield [name, both(grad(getattr(pt, name)(x).sum(), x), {x: X})]


def grads_of_two_arguments():
    x, y = pt.dvector("x"), pt.dvector("y")
    values = {x: abs(X), y: X[::-1]}
    costs = (
        x * y,
        x / y,
        x**y,
        pt.maximum(x, y),
        pt.minimum(x, y),
        x % y,
        x // y,
        pt.arctan2(x, y),
        pt.logaddexp(x, y),
        pt.switch(x > y, x, y),
    )
    for cost in costs:
        yield [both(g, values) for g in grad(cost.sum(), [x, y], disconnected_inputs="ignore")]


def grads_at_ties():
    x = pt.dvector("x")
    value = {x: [1.0, 3.0, 3.0]}
    yield both(grad(x.max(), x), value)
    yield both(grad(pt.maximum(x, 3.0).sum(), x), value)
    yield both(grad(pt.minimum(x, 3.0).sum(), x), value)
    yield both(grad(pt.clip(x, 1, 3).sum(), x), value)
    yield both(grad(abs(x - 1).sum(), x), value)
    yield both(grad(pt.sqrt(x - 1).sum(), x), value)
    yield both(grad(x.prod(), x), {x: [0.0, 2.0, 3.0]})
    yield both(grad(pt.sort(x)[-1], x), value)


def costs_that_are_wrong():
    x, i = pt.dvector("x"), pt.lscalar("i")
    yield lambda: grad(x, x)
    yield lambda: grad(i, i)
    yield lambda: grad(x.sum(), pt.dvector("other"))
    yield lambda: grad(x.sum(), "x")
    yield lambda: grad(None, x)
    yield lambda: grad(x.sum(), [])
    yield lambda: grad(pt.zscalar("z"), x)
    yield lambda: grad(x.sum(), None)
    yield lambda: grad(1.0, x)


def disconnected_inputs():
    x, y = pt.dvector("x"), pt.dvector("y")
    yield lambda: grad(x.sum(), y)
    yield both(grad(x.sum(), y, disconnected_inputs="ignore"), {x: X, y: X})
    yield grad(x.sum(), y, disconnected_inputs="ignore", return_disconnected="none")
    yield grad(x.sum(), y, disconnected_inputs="ignore", return_disconnected="disconnected")
    yield lambda: grad(x.sum(), y, disconnected_inputs="no such choice")
    yield lambda: grad(
        x.sum(), y, disconnected_inputs="ignore", return_disconnected="no such choice"
    )
    yield lambda: grad(y.shape[0].astype("float64"), y)
    yield lambda: grad(x[pt.lscalar("i")], pt.lscalar("i"))


def integer_inputs():
    i, x = pt.lvector("i"), pt.dvector("x")
    yield both(grad((i * x).sum(), i), {i: [1, 2, 3], x: X})
    yield both(grad((i**2).sum().astype("float64"), i), {i: [1, 2, 3]})
    yield lambda: grad((i**2).sum(), i)
    yield both(grad(pt.cast(x, "int64").sum().astype("float64"), x), {x: X})


def known_gradients():
    x = pt.dvector("x")
    y = x**2
    yield lambda: grad(None, x, known_grads={y: np.array([1.0, 2.0, 3.0])})
    yield both(grad(None, x, known_grads={y: pt.as_tensor([1.0, 2.0, 3.0])}), {x: X})
    yield both(grad(y.sum(), x, known_grads={x: pt.ones_like(x)}), {x: X})
    yield lambda: grad(None, x, known_grads={y: pt.dscalar("s")})
    yield lambda: grad(None, x, known_grads={y: pt.fvector("f")})


def constants_of_gradients():
    x = pt.dvector("x")
    y = x**2
    yield both(grad((x * y).sum(), x, consider_constant=[y]), {x: X})
    yield lambda: grad((x * G.disconnected_grad(x)).sum(), x)
    yield both(grad((x * G.disconnected_grad(x)).sum(), x), {x: X})
    yield both(grad((x * G.zero_grad(x)).sum(), x), {x: X})
    yield both(grad(G.grad_clip(x * 5, -1, 1).sum(), x), {x: X})
    yield both(grad(G.grad_scale(x, 3).sum(), x), {x: X})
    yield both(grad(pt.zeros_like(x).sum(), x, disconnected_inputs="ignore"), {x: X})
    yield lambda: grad(G.undefined_grad(x).sum(), x)


def jacobians_and_hessians():
    x = pt.dvector("x")
    yield both(G.jacobian(x**2, x), {x: X})
    yield both(G.jacobian(pt.outer(x, x).flatten(), x), {x: X})
    yield both(G.hessian((x**3).sum(), x), {x: X})
    yield lambda: G.jacobian(pt.outer(x, x), x)
    yield lambda: G.hessian(x, x)
    yield lambda: G.jacobian("text", x)
    yield lambda: G.jacobian(x, pt.dvector("y"))
    yield both(G.jacobian(x.sum(), x), {x: X})
    yield both(G.jacobian(x**2, x, vectorize=True), {x: X})


def operators():
    x, v = pt.dvector("x"), pt.dvector("v")
    values = {x: X, v: [1.0, 2.0, 3.0]}
    yield both(G.pushforward(x**2, x, v), values)
    yield both(G.pullback(x**2, x, v), values)
    yield both(G.Rop(x**2, x, v), values)
    yield both(G.Lop(x**2, x, v), values)
    yield lambda: G.pushforward(x**2, x, pt.dscalar("s"))
    yield lambda: G.pullback(x**2, x, pt.dmatrix("m"))
    yield lambda: G.pushforward(x**2, pt.dvector("y"), v)


def results_by_kind_of_wrt():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    yield type(grad(x * y, [x, y])).__name__
    yield type(grad(x * y, (x, y))).__name__
    yield grad(x * y, x)
    yield type(G.jacobian(pt.stack([x, y]), [x, y])).__name__
    yield type(G.Rop([x * y], [x], [y])).__name__


def dtypes_of_gradients():
    for dtype in ("float32", "float64", "int8", "bool", "complex128"):
        x = pt.vector("x", dtype=dtype)
        yield [dtype, lambda x=x: grad((x * pt.dvector("y")).sum(), x)]
        yield [dtype, lambda x=x: grad(pt.exp(x * 1.0).sum(), x)]
    yield grad(pt.fvector("x").sum(), pt.fvector("x"), disconnected_inputs="ignore")
    a = pt.fvector("a")
    yield [grad(a.sum(), a), grad((a * 2.0).sum().astype("float64"), a), grad(a.mean(), a)]


def static_shapes_of_gradients():
    x = pt.matrix("x", shape=(2, None))
    y = pt.vector("y", shape=(3,))
    yield [
        grad(x.sum(), x),
        grad((x * 2).sum(), x),
        grad(y.sum(), y),
        grad((y[None] * x[:, :3]).sum(), y),
    ]


def second_derivatives():
    x = pt.dscalar("x")
    for f in (pt.exp, pt.sin, pt.gammaln, pt.sigmoid, pt.sqrt):
        g = grad(f(x), x)
        yield [both(grad(g, x), {x: 0.7}), both(grad(grad(g, x), x), {x: 0.7})]


def grads_through_branches_that_are_nan():
    x = pt.dvector("x")
    f = pytensor.function(
        [x],
        grad(pt.where(x > 0, pt.log(x), 0.0).sum(), x),
        mode=pytensor.compile.mode.Mode("py", "fast_run"),
    )
    yield f(np.array([1.0, 2.0, 0.5]))


def subgraph_gradients():
    x, w = pt.dvector("x"), pt.dvector("w")
    h = x * w
    cost = (h**2).sum()
    dh = grad(cost, h)
    wgrads, ends = G.subgraph_grad([w], [x], start={h: dh})
    yield [both(g, {x: X, w: X}) for g in (*wgrads, *ends)]


def verified_gradients():
    from pytensor.gradient import numeric_grad, verify_grad

    rng = np.random.default_rng(0)
    yield verify_grad(lambda x: pt.sin(x).sum(), [X], rng=rng)
    yield lambda: verify_grad(lambda x: pt.sin(x) * G.zero_grad(x), [X], rng=rng)
    yield lambda: verify_grad(lambda x: x, [X.astype("float16")], rng=rng)
    n = numeric_grad(lambda x: (x**2).sum(), [X])
    yield [round(v, 3) for v in n.gf[0].tolist()]


def null_gradients():
    x = pt.dvector("x")
    y = G.undefined_grad(x) * 2
    yield lambda: grad(y.sum(), x, null_gradients="raise")
    yield lambda: grad(y.sum(), x, null_gradients="return")


def the_dict_of_gradients():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    yield lambda: grad(x * y, wrt=[x, y, x])
    yield [both(g, {x: 2.0, y: 3.0}) for g in grad(x * y, wrt=[x, y, x])]
    add_names = grad(pt.mul(x, y), x, add_names=True)
    yield add_names.name


def grads_of_shapes_and_joins():
    x = pt.dmatrix("x")
    value = {x: np.arange(6.0).reshape(2, 3)}
    for y in (
        x.T,
        x.reshape((3, 2)),
        x.flatten(),
        pt.concatenate([x, x * 2]),
        pt.stack([x, x]),
        x[:, ::-1],
        pt.repeat(x, 2, axis=0),
        pt.tile(x, (1, 2)),
        pt.roll(x, 1),
        pt.diag(x),
        pt.cumsum(x, axis=1),
        pt.pad(x, 1),
        pt.tril(x),
        pt.broadcast_to(x, (2, 2, 3)),
        pt.take(x, [0, 0], axis=0),
    ):
        yield both(
            grad((y * (1 + pt.arange(y.size).reshape(y.shape, ndim=y.ndim))).sum(), x), value
        )


def grads_of_reductions():
    x = pt.dmatrix("x")
    value = {x: np.arange(6.0).reshape(2, 3) + 1}
    for y in (
        x.sum(0),
        x.mean(1),
        x.prod(0),
        x.var(),
        x.std(1),
        x.max(0),
        x.min(),
        pt.logsumexp(x, axis=0),
    ):
        yield both(grad(y.sum(), x), value)
