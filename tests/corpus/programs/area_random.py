"""Draws and generators."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.tensor.random as ptr
from helpers import both
from pytensor.tensor.random.utils import RandomStream


def generator(seed: int = 1):
    return pytensor.shared(np.random.default_rng(seed), name="rng")


def drawn(name, *parameters, **options):
    return getattr(ptr, name)(*parameters, rng=generator(), **options).eval()


def continuous_draws():
    for name, parameters in (
        ("normal", (1.0, 2.0)),
        ("uniform", (-1.0, 3.0)),
        ("exponential", (2.0,)),
        ("beta", (2.0, 3.0)),
        ("laplace", (0.0, 2.0)),
        ("gumbel", (0.0, 1.0)),
        ("logistic", (0.0, 1.0)),
        ("lognormal", (0.0, 0.5)),
        ("cauchy", (0.0, 1.0)),
        ("halfnormal", (0.0, 1.0)),
        ("halfcauchy", (0.0, 1.0)),
        ("pareto", (2.0, 1.0)),
        ("triangular", (0.0, 0.5, 1.0)),
        ("vonmises", (0.0, 1.0)),
        ("wald", (1.0, 2.0)),
        ("weibull", (2.0,)),
        ("t", (4.0, 0.0, 1.0)),
        ("invgamma", (3.0, 1.0)),
        ("chisquare", (3.0,)),
        ("gamma", (2.0, 3.0)),
    ):
        yield [name, drawn(name, *parameters, size=3), getattr(ptr, name)(*parameters, size=3)]


def discrete_draws():
    for name, parameters in (
        ("bernoulli", (0.3,)),
        ("binomial", (10, 0.3)),
        ("poisson", (4.0,)),
        ("geometric", (0.2,)),
        ("nbinom", (3, 0.5)),
        ("hypergeometric", (5, 6, 4)),
        ("betabinom", (10, 2.0, 3.0)),
        ("integers", (2, 10)),
        ("categorical", ([0.2, 0.3, 0.5],)),
    ):
        yield [name, drawn(name, *parameters, size=4), getattr(ptr, name)(*parameters, size=4)]


def draws_of_vectors():
    mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    yield drawn("multivariate_normal", mean, cov, size=2)
    yield drawn("dirichlet", np.array([1.0, 2.0, 3.0]))
    yield drawn("multinomial", 5, np.array([0.2, 0.3, 0.5]))
    yield ptr.multivariate_normal(pt.dmatrix("mean"), pt.dmatrix("cov"))
    yield ptr.dirichlet(pt.dmatrix("a"), size=(4, 3))
    yield lambda: ptr.multivariate_normal(pt.dscalar("mean"), cov)
    yield lambda: ptr.dirichlet(1.0)


def choices_and_permutations():
    yield drawn("choice", np.array([5.0, 6.0, 7.0]), size=4)
    yield drawn("choice", 5, size=3, replace=False)
    yield drawn("choice", np.array([5, 6, 7]), size=2, p=np.array([0.1, 0.1, 0.8]))
    yield drawn("permutation", np.arange(5))
    yield drawn("permutation", 4)
    yield [
        ptr.choice(pt.dvector("a"), size=(2, 3)),
        ptr.permutation(pt.dmatrix("m")),
        ptr.permutation(5),
    ]
    yield lambda: ptr.choice(pt.dscalar("s"), size=2)
    yield lambda: drawn("choice", 2, size=3, replace=False)


def sizes():
    mu = pt.dvector("mu")
    yield [
        ptr.normal(mu),
        ptr.normal(mu, size=(3, mu.shape[0])),
        ptr.normal(size=(2, 3)),
        ptr.normal(size=()),
    ]
    yield [
        ptr.normal(size=4),
        ptr.normal(size=pt.lscalar("n")),
        ptr.normal(size=pt.lvector("s", shape=(2,))),
    ]
    yield [ptr.normal(np.zeros((2, 1)), np.ones(3)), ptr.normal(pt.zeros((4, 1)), 1.0)]
    yield lambda: ptr.normal(np.zeros((2, 3)), size=(3,))
    yield lambda: ptr.normal(np.zeros(3), size=(2,)).eval()
    yield lambda: ptr.normal(size=-1).eval()
    yield lambda: ptr.normal(size=2.5)
    yield lambda: ptr.normal(size="a")
    yield lambda: ptr.normal(size=pt.dvector("s"))


def parameters_that_are_wrong():
    yield lambda: ptr.normal("a")
    yield lambda: ptr.normal(0.0, -1.0).eval()
    yield lambda: ptr.binomial(5, 1.5).eval()
    yield lambda: ptr.normal(0.0, 1.0, 2.0)
    yield lambda: ptr.normal(no_such_parameter=1.0)
    yield lambda: ptr.normal(1j)
    yield lambda: ptr.uniform()
    yield lambda: ptr.gamma(1.0, rate=1.0, scale=1.0)
    yield lambda: ptr.beta(1.0)
    yield lambda: ptr.normal(0.0, 1.0, rng="no generator")
    yield lambda: ptr.normal(0.0, 1.0, rng=1)
    yield lambda: ptr.normal(0.0, 1.0, rng=np.random.RandomState(1))


def dtypes_of_draws():
    for name, parameters in (
        ("normal", (0.0, 1.0)),
        ("bernoulli", (0.5,)),
        ("poisson", (1.0,)),
        ("integers", (0, 3)),
    ):
        op = getattr(ptr, name)
        yield [
            name,
            op(*parameters),
            lambda op=op, p=parameters: op(*p, dtype="float32"),
            lambda op=op, p=parameters: op(*p, dtype="int32"),
        ]
    yield ptr.normal(pt.fscalar("f"), 1.0)
    with pytensor.config.change_flags(floatX="float32"):
        yield [ptr.normal(0.0, 1.0), ptr.poisson(1.0)]
    yield lambda: ptr.normal(0.0, 1.0, dtype="no such dtype")


def states():
    rng = generator()
    next_rng, x = ptr.normal(rng=rng).owner.outputs
    f = pytensor.function([], x)
    yield [f(), f()]
    g = pytensor.function([], x, updates={rng: next_rng})
    yield [g(), g()]
    rng.set_value(np.random.default_rng(1))
    yield g()
    yield type(rng.get_value()).__name__


def generators_as_inputs():
    rng = ptr.type.random_generator_type("rng")
    draw = ptr.normal(rng=rng, size=2)
    f = pytensor.function([rng], draw)
    value = np.random.default_rng(7)
    yield [f(value), f(value)]
    yield lambda: f(1)
    yield lambda: f(np.random.RandomState(1))


def methods_of_generators():
    rng = pt.random.shared_rng(seed=3)
    next_rng, x = rng.normal(0, 1, size=2)
    f = pytensor.function([], x, updates={rng: next_rng})
    yield [f(), f()]
    _, y = next_rng.uniform(size=2)
    yield pytensor.function([], [x, y])()
    yield lambda: rng.no_such_distribution(1.0)
    yield lambda: rng.gamma(2.0, scale=3.0)[1].eval()


def equal_draws_are_merged():
    rng = generator()
    a, b = ptr.normal(rng=rng), ptr.normal(rng=rng)
    f = pytensor.function([], [a, b, a - b])
    yield f()


def streams():
    srng = RandomStream(seed=5)
    f = pytensor.function([], srng.normal(size=2))
    first = f()
    srng.seed(5)
    again = f()
    yield [bool((first == again).all()), first, len(srng.updates())]
    yield lambda: RandomStream(seed="text")
    yield lambda: srng.no_such_distribution()
    u = srng.uniform(0, 1, size=(2, 2))
    yield [u, pytensor.function([], u)()]


def the_op_and_its_node():
    x = ptr.normal(pt.dvector("mu"), 1.0, name="draw")
    op = x.owner.op
    yield [
        type(op).__name__,
        op.name,
        op.ndim_supp,
        op.ndims_params,
        op.dtype,
        op.signature,
        str(op),
        op.inplace,
    ]
    yield [
        x.name,
        x.owner.outputs[1] is x,
        len(x.owner.inputs),
        x.owner.inputs[0].type.__class__.__name__,
    ]
    yield [v.type.ndim for v in op.dist_params(x.owner)]
    yield op.size_param(x.owner)
    yield op.batch_ndim(x.owner)


def ops_of_users():
    from pytensor.tensor.random.op import RandomVariable

    class Shifted(RandomVariable):
        name = "shifted"
        signature = "(),()->()"
        dtype = "floatX"

        @classmethod
        def rng_fn(cls, rng, low, shift, size):
            return low + shift + rng.random(size)

    shifted = Shifted()
    yield both(shifted(1.0, 2.0, size=3, rng=generator()))
    yield [shifted(pt.dvector("a"), 1.0), str(shifted)]
    yield lambda: shifted(1.0)


def grads_of_draws():
    mu = pt.dscalar("mu")
    x = ptr.normal(mu, 1.0)
    yield lambda: pytensor.grad(x, mu)


def shapes_of_draws_are_inferred():
    mu = pt.dmatrix("mu")
    f = pytensor.function([mu], ptr.normal(mu, 1.0).shape)
    yield f(np.zeros((2, 3)))
    n = pt.lscalar("n")
    yield pytensor.function(
        [n], ptr.multivariate_normal(np.zeros(2), np.eye(2), size=(n, 3)).shape
    )(4)


def batches_of_draws():
    mu, M = pt.dvector("mu"), pt.dmatrix("M")
    x = ptr.normal(mu.sum(), 1.0)
    y = pytensor.graph.vectorize_graph(x, {mu: M})
    yield [y, type(y.owner.op).__name__]
    yield lambda: y.eval({M: np.zeros((2, 3))}).shape


def seeds():
    yield lambda: pt.random.default_rng(1)
    yield lambda: pt.random.default_rng(None)
    yield lambda: pt.random.default_rng("text")
    yield lambda: pt.random.default_rng(np.random.default_rng(1))
