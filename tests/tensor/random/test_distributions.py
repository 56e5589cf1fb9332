"""Every distribution of numbers: numbers, states, dtypes and errors are those of NumPy or SciPy."""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
import warnings
from functools import cache, partial

import numpy as np
import pytest
from random_threads import drawn_in_threads
from scipy import stats
from tiers import few

import phintys
import phintys.tensor as pt
from phintys import bitgen
from phintys.backends.llvm.ir.words import BASES
from phintys.lowering.program import Draw, Python
from phintys.scalar import native
from phintys.tensor.random.basic import DISTRIBUTIONS
from phintys.tensor.random.distribution import Distribution, ScipyRandomVariable
from phintys.tensor.random.domains import POSITIVE, first_violated
from phintys.tensor.random.type import random_generator_type

MODES = ("FAST_COMPILE", "FAST_RUN", "C")
#: distributions of each kind, of which ``make test`` looks at more than draws of numbers
QUICK = ("binomial", "gumbel", "hypergeometric", "integers", "normal", "t", "truncexpon")
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")

#: the arguments of PyTensor's methods of generators
ARGUMENTS = {
    "bernoulli": "p, size=None",
    "beta": "alpha, beta, size=None",
    "betabinom": "n, a, b, size=None",
    "binomial": "n, p, size=None",
    "categorical": "p, size=None",
    "cauchy": "loc=0.0, scale=1.0, size=None",
    "chisquare": "df, size=None",
    "exponential": "scale=1.0, size=None",
    "gamma": "shape, rate=None, scale=None",
    "gengamma": "alpha=1.0, p=1.0, lambd=1.0, size=None",
    "geometric": "p, size=None",
    "gumbel": "loc, scale=1.0, size=None",
    "halfcauchy": "loc=0.0, scale=1.0, size=None",
    "halfnormal": "loc=0.0, scale=1.0, size=None",
    "hypergeometric": "ngood, nbad, nsample, size=None",
    "integers": "low, high=None, size=None",
    "invgamma": "shape, scale, size=None",
    "laplace": "loc=0.0, scale=1.0, size=None",
    "logistic": "loc=0, scale=1, size=None",
    "lognormal": "mean=0.0, sigma=1.0, size=None",
    "nbinom": "n, p, size=None",
    "negative_binomial": "n, p, size=None",
    "normal": "loc=0.0, scale=1.0, size=None",
    "pareto": "b, scale=1.0, size=None",
    "poisson": "lam=1.0, size=None",
    "rayleigh": "scale=1.0, *, size=None",
    "standard_normal": "*, size=None, dtype=None",
    "t": "df, loc=0.0, scale=1.0, size=None",
    "triangular": "left, mode, right, size=None",
    "truncexpon": "b, loc=0.0, scale=1.0, size=None",
    "uniform": "low=0.0, high=1.0, size=None",
    "vonmises": "mu, kappa, size=None",
    "wald": "mean=1.0, scale=1.0, size=None",
    "weibull": "shape, size=None",
}


def scipy(distribution, *names):
    """``rvs`` of a distribution of SciPy whose arguments have these names, in order."""

    def draw(rng, *args):
        *params, size = args
        given = dict(zip(names, params, strict=True))
        size = np.broadcast_shapes(*map(np.shape, params)) if size is None else size
        return distribution.rvs(**given, size=size, random_state=rng)

    return draw


def betabinom(rng, n, a, b, size):
    return rng.binomial(n, rng.beta(a, b, size), size)


#: what draws the same numbers, where that is no method of NumPy of the same name
REFERENCES = {
    "invgamma": np.errstate(divide="ignore")(
        lambda rng, shape, scale, size: np.divide(1, rng.gamma(shape, np.divide(1, scale), size))
    ),
    "gamma": lambda rng, shape, scale, size: rng.gamma(shape, scale, size),
    "chisquare": lambda rng, df, size: rng.gamma(df / 2, 2.0, size),
    "rayleigh": lambda rng, scale, size: (
        np.sqrt(rng.gamma(1.0, 2.0, np.shape(scale) if size is None else size)) * scale
    ),
    "standard_normal": lambda rng, size: rng.standard_normal(size),
    "standard_cauchy": lambda rng, size: REFERENCES["cauchy"](rng, 0.0, 1.0, size),
    "standard_exponential": lambda rng, size: rng.standard_exponential(size),
    "standard_gamma": lambda rng, shape, size: rng.standard_gamma(shape, size),
    "halfnormal": scipy(stats.halfnorm, "loc", "scale"),
    "cauchy": scipy(stats.cauchy, "loc", "scale"),
    "halfcauchy": scipy(stats.halfcauchy, "loc", "scale"),
    "gumbel": scipy(stats.gumbel_r, "loc", "scale"),
    "pareto": scipy(stats.pareto, "b", "scale"),
    "truncexpon": scipy(stats.truncexpon, "b", "loc", "scale"),
    "t": scipy(stats.t, "df", "loc", "scale"),
    "standard_t": scipy(stats.t, "df"),
    "gengamma": lambda rng, alpha, p, lambd, size: scipy(stats.gengamma, "a", "c", "scale")(
        rng, alpha / p, p, lambd, size
    ),
    "beta_binomial": scipy(stats.betabinom, "n", "a", "b"),
    "negative_binomial": scipy(stats.nbinom, "n", "p"),
    "bernoulli": scipy(stats.bernoulli, "p"),
}

modes = pytest.mark.parametrize("mode", MODES)


def domains(distribution):
    """Domain by name of the parameters."""
    if isinstance(distribution, Distribution):
        return {name: spec[0] for name, spec in distribution.parameters.items()}
    others = ("size", "rng", "dtype", "return_next_rng", "kwargs", "rate")
    own = inspect.signature(distribution).parameters
    fixed = getattr(distribution, "keywords", {})
    return {n: POSITIVE for n in own if n not in others and n not in fixed}


NAMES = [
    name
    for name, d in DISTRIBUTIONS.items()
    if name in ARGUMENTS or isinstance(d, partial | Distribution)
    if not any(getattr(d, "ndims_params", ())) and not getattr(d, "ndim_supp", 0)
]
names = pytest.mark.parametrize("name", NAMES)
some = pytest.mark.parametrize("name", few(NAMES, *QUICK))


def reference(name):
    """A function of a NumPy generator, parameters and size that draws the same numbers."""
    own = getattr(DISTRIBUTIONS[name], "name", name)
    if own in REFERENCES:
        return REFERENCES[own]
    return lambda rng, *args: getattr(rng, own)(*args)


def generator(seed=3, kind="PCG64"):
    return np.random.Generator(getattr(np.random, kind)(seed))


def assert_same_state(a, b):
    assert random_generator_type.values_eq(a, b)


def assert_same_numbers(found, wanted, name, mode):
    """Equal bits; to rounding where elementary functions are applied to draws."""
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype or found.size == 0  # SciPy's empty results are floats
    own = getattr(DISTRIBUTIONS[name], "name", name)
    if own in ROUNDED:  # docs/howto/random.md says how much
        np.testing.assert_allclose(found, wanted, rtol=1e-11)
    else:
        np.testing.assert_array_equal(found, wanted)


#: functions of draws that SciPy computes with NumPy's elementary functions
ROUNDED = ("cauchy", "halfcauchy", "gumbel", "pareto", "truncexpon", "gengamma", "standard_cauchy")


@cache
def function(name, mode, shapes, size=None, dtype=None):
    """A function of a generator and parameters that returns the next generator and the draw.

    Of the shapes of the parameters, only lengths of 1 are known to it.
    """
    rng, own = pt.random.rng(), domains(DISTRIBUTIONS[name])
    params = {
        key: pt.tensor(key, dtype=d.dtype, shape=shape)
        for (key, d), shape in zip(own.items(), shapes, strict=True)
    }
    given = {} if dtype is None else {"dtype": dtype}
    drawn = getattr(rng, name)(**params, size=size, **given)
    return phintys.function([rng, *params.values()], list(drawn), mode=mode)


def inside(name, shapes, turn):
    """Finite parameters in their domains that satisfy the relations, of some shapes."""
    distribution, gen = DISTRIBUTIONS[name], np.random.default_rng(turn)
    conditions = getattr(distribution, "conditions", ())
    own = domains(distribution)
    numbers = [
        [v for v in d.inside if np.isfinite(v) and not draws_nothing(k, v)] for k, d in own.items()
    ]
    first = [gen.choice(v) for v in numbers]
    while first_violated(conditions, first) is not None:
        first = [gen.choice(v) for v in numbers]
    params = [np.full(s, x, d.dtype) for x, s, d in zip(first, shapes, own.values())]
    for _ in range(30):  # change elements, as long as the relations hold
        k = gen.integers(len(params)) if params else 0
        if params and params[k].size:
            place = gen.integers(params[k].size)
            before = params[k].flat[place]
            params[k].flat[place] = gen.choice(numbers[k])
            if first_violated(conditions, params) is not None:
                params[k].flat[place] = before
    return params


def never_ends(name, number):
    """Whether NumPy before 2.1 draws for ever."""
    return name == "zipf" and number > 1e9 and np.lib.NumpyVersion(np.__version__) < "2.1.0"


def draws_nothing(parameter, number):
    """Whether SciPy draws nothing: the scale is 0."""
    return parameter in ("scale", "lambd") and number == 0


def layouts(count):
    """Shapes of ``count`` parameters, and a size."""
    mixed = [(2, 1), (), (3,), (1, 3)]
    return [
        ([()] * count, None),
        ([()] * count, ()),
        ([()] * count, (5, 2)),
        ([()] * count, (0,)),
        ([(40,)] * count, None),
        ([(0,)] * count, None),
        (mixed[:count], None),
        (mixed[:count], (4, 2, 3)),
        ([(3,)] * count, (0, 3)),
    ]


@modes
@some
def test_numbers_and_states(name, mode):
    draw, count = reference(name), len(domains(DISTRIBUTIONS[name]))
    chosen = layouts(count)[-2:] if mode == "C" else layouts(count)  # a compiler takes long
    for turn, (shapes, size) in enumerate(chosen):
        known = tuple(tuple(n if n == 1 else None for n in s) for s in shapes)
        f = function(name, mode, known, size)
        rng, expected = generator(turn), generator(turn)
        for call in range(3):
            params = inside(name, shapes, 10 * turn + call)
            rng, found = f(rng, *params)
            assert_same_numbers(found, draw(expected, *params, size), name, mode)
            assert_same_state(rng, expected)


@modes
@names
@pytest.mark.parametrize("kind", few(BIT_GENERATORS, "PCG64"))
def test_every_bit_generator(name, mode, kind):
    count = len(domains(DISTRIBUTIONS[name]))
    f = function(name, mode, ((),) * count, (101,))
    rng, expected = generator(5, kind), generator(5, kind)
    for turn in range(3):
        params = inside(name, [()] * count, turn)
        rng, found = f(rng, *params)
        assert_same_numbers(found, reference(name)(expected, *params, (101,)), name, mode)
        assert_same_state(rng, expected)


def test_half_a_word_that_is_left_is_used():
    """Integers of 32 bits leave the other half of a word in the generator."""
    for mode in MODES:
        rng = pt.random.rng()
        after, x = rng.integers(0, 10, size=3)
        after, y = after.uniform(size=2)
        after, z = after.integers([0, 5, -(2**62)], [2**32, 6, 2**62], size=(4, 3))
        f = phintys.function([rng], [after, x, y, z], mode=mode)
        given, expected = generator(), generator()
        after, *found = f(given)
        np.testing.assert_array_equal(found[0], expected.integers(0, 10, 3))
        np.testing.assert_array_equal(found[1], expected.uniform(size=2))
        wanted = expected.integers([0, 5, -(2**62)], [2**32, 6, 2**62], (4, 3))
        np.testing.assert_array_equal(found[2], wanted)
        assert_same_state(after, expected)


@modes
def test_integers_of_a_size_of_nothing_have_any_bounds(mode):
    """As NumPy's, which does not read them; so nothing can be chosen of nothing."""
    low, n = pt.lvector("low"), pt.lscalar("n")
    rng = pt.random.rng()
    after, x = rng.integers(low, 5, size=(n, 2))
    f = phintys.function([rng, low, n], [after, x], mode=mode)
    state, found = f(generator(), [7, 5], 0)
    assert found.shape == (0, 2)
    assert_same_state(state, generator())
    with pytest.raises(ValueError, match="low >= high"):
        f(generator(), [7, 5], 1)
    chosen = pt.random.choice(low, size=0, rng=generator())
    assert phintys.function([low], chosen, mode=mode)(np.zeros(0, "int64")).shape == (0,)


# ----- dtypes


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
@pytest.mark.parametrize(
    "name", few([n for n in NAMES if isinstance(DISTRIBUTIONS[n], Distribution)], *QUICK)
)
def test_narrow_dtypes_are_rounded_draws(name, mode):
    shapes = [()] * len(domains(DISTRIBUTIONS[name]))
    params = inside(name, shapes, 1)
    own = function(name, mode, tuple(shapes), (50,))(generator(), *params)[1]
    floats = own.dtype == "float64"
    for dtype in ["float32"] if floats else ["int32", "uint8", "bool"]:
        found = function(name, mode, tuple(shapes), (50,), dtype)(generator(), *params)[1]
        np.testing.assert_array_equal(found, own.astype(dtype))
        assert found.dtype == dtype
    for wrong in ["int64", "complex128"] if floats else ["float64", "complex64"]:
        with pytest.raises(ValueError, match="draws numbers like those of"):
            function(name, mode, tuple(shapes), (50,), wrong)


@modes
@some
def test_parameters_of_float32_are_converted_first(name, mode):
    own = domains(DISTRIBUTIONS[name])
    params = inside(name, [(3,)] * len(own), 1)
    narrow = [p.astype("float32") if p.dtype == "float64" else p for p in params]
    wide = [p.astype(d.dtype) for p, d in zip(narrow, own.values())]
    rngs = [pt.random.rng(), pt.random.rng()]
    draws = [
        getattr(rng, name)(**dict(zip(own, given)))[1] for rng, given in zip(rngs, (narrow, wide))
    ]
    found, expected = phintys.function(rngs, draws, mode=mode)(generator(), generator())
    np.testing.assert_array_equal(found, expected)


@names
def test_floatx(name):
    own = domains(DISTRIBUTIONS[name])
    params = {key: np.float32(1.25) for key in own} if all_floats(name) else {}
    with phintys.config.change_flags(floatX="float32"):
        draw = DISTRIBUTIONS[name](**(params or dict(zip(own, inside(name, [()] * len(own), 1)))))
    assert draw.type.dtype == ("float32" if all_floats(name) else "int64")


def all_floats(name):
    """Whether the numbers of a distribution are floats."""
    own = getattr(DISTRIBUTIONS[name], "func", DISTRIBUTIONS[name])
    return getattr(own, "dtype", "floatX") == "floatX"


# ----- errors

NUMBERS = {
    "float64": [-np.inf, -1.5, -0.0, 0.0, 1e-300, 0.5, 1.0, 2.0, 1e10, 1e19, np.inf, np.nan],
    "int64": [-(2**62), -1, 0, 1, 2, 10**9 - 1, 10**9],
}


def outcome(call, *args):
    """The numbers that a call draws, or the kind of its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = call(*args)
            return np.asarray(found[1] if isinstance(found, list) else found)
        except (ValueError, OverflowError) as error:
            return type(error).__name__


@modes
@pytest.mark.parametrize("name", [n for n in NAMES if domains(DISTRIBUTIONS[n])])
def test_parameters_that_are_wrong(name, mode):
    """Errors where NumPy raises, else its numbers; of single numbers and of arrays."""
    distribution = DISTRIBUTIONS[name]
    own = domains(distribution)
    base = inside(name, [()] * len(own), 0)
    for rank in (0, 1):
        f = function(name, mode, ((None,) * rank,) * len(own))
        for k, domain in enumerate(own.values()):
            for number in NUMBERS[domain.dtype]:
                if never_ends(name, number):
                    continue
                params = [np.full((3,) * rank, p, p.dtype) for p in base]
                params[k].flat[-1] = number
                wanted = outcome(reference(name), generator(), *params, None)
                found = outcome(f, generator(), *params)
                where = f"{list(own)[k]} = {number}, rank {rank}: {found}, not {wanted}"
                if isinstance(wanted, str):
                    assert isinstance(found, str), where
                elif draws_nothing(list(own)[k], number):
                    assert not isinstance(found, str), where
                else:
                    assert not isinstance(found, str), where
                    np.testing.assert_allclose(found, wanted, 1e-11, err_msg=where)


def refused(name):
    """Numbers that a distribution refuses, by the positions of its parameters."""
    distribution = DISTRIBUTIONS[name]
    if not isinstance(distribution, Distribution):
        return {}
    own = enumerate(domains(distribution).values())
    return {k: domain.outside[0] for k, domain in own if domain.outside}


@pytest.mark.parametrize("name", few([n for n in NAMES if refused(n)], *filter(refused, QUICK)))
def test_constants_are_checked_when_the_graph_is_compiled_or_run(name):
    distribution = DISTRIBUTIONS[name]
    own = domains(distribution)
    for k, number in refused(name).items():
        params = inside(name, [()] * len(own), 0)
        params[k] = np.asarray(number, params[k].dtype)
        draw = distribution(**dict(zip(own, params)), rng=generator())
        for mode in MODES:
            f = phintys.function([], draw, mode=mode)
            with pytest.raises(ValueError):
                f()


@some
def test_constants_are_checked_in_the_dtype_of_the_parameter(name):
    """Not in that of the constant: 100 - -100 does not fit int8, nor does a limit of 10**9."""
    own = domains(DISTRIBUTIONS[name])
    for numbers in itertools.product((-100, 1, 100), repeat=len(own)):
        params = [np.asarray(x, domain.dtype) for x, domain in zip(numbers, own.values())]
        wanted = outcome(reference(name), generator(), *params, None)
        draw = DISTRIBUTIONS[name](**dict(zip(own, map(np.int8, numbers))), rng=generator())
        found = outcome(phintys.function([], draw))
        where = f"{numbers}: {found}, not {wanted}"
        assert isinstance(found, str) == isinstance(wanted, str), where
        if not isinstance(wanted, str):
            np.testing.assert_allclose(found, wanted, 1e-11, err_msg=where)


def test_errors_name_the_parameter():
    sd = pt.dscalar("sd")
    for mode in MODES:
        f = phintys.function([sd], pt.random.halfnormal(0.0, sd, rng=generator()), mode=mode)
        with pytest.raises(ValueError, match=r"scale < 0 or scale is NaN") as caught:
            f(-1.0)
        assert "sd" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


def test_arguments_of_other_dtypes():
    with pytest.raises(TypeError, match="n of binomial"):
        pt.random.binomial(pt.dscalar("n"), 0.5)
    with pytest.raises(TypeError, match="low of integers"):
        pt.random.integers(pt.dscalar("low"), 5)
    with pytest.raises(TypeError, match=r"loc of normal .* complex128"):
        pt.random.normal(pt.zscalar("z"))
    with pytest.raises(TypeError, match="missing a required argument: 'p'"):
        pt.random.bernoulli()
    with pytest.raises(ValueError, match="a rate or a scale"):
        pt.random.gamma(2.0)
    with pytest.raises(ValueError, match="a rate or a scale"):
        pt.random.gamma(2.0, 1.0, 3.0)


# ----- compiled code


@some
def test_compiled_code_calls_no_python(name):
    count = len(domains(DISTRIBUTIONS[name]))
    for mode in ("FAST_RUN", "C"):
        program = function(name, mode, ((None,),) * count).program
        assert any(isinstance(s, Draw) for s in program.steps)
        assert not any(isinstance(s, Python) for s in program.steps)


@some
def test_a_numpy_without_the_functions_runs_perform(name, monkeypatch):
    monkeypatch.setattr(bitgen, "has_routine", lambda routine: False)
    own = domains(DISTRIBUTIONS[name])
    params = inside(name, [()] * len(own), 1)
    rng = phintys.shared(generator())
    draw = DISTRIBUTIONS[name](**dict(zip(own, params)), size=7, rng=rng)
    f = phintys.function([], draw)
    assert any(isinstance(s, Python) for s in f.program.steps)
    wanted = reference(name)(generator(), *params, (7,))
    np.testing.assert_allclose(f(), wanted, rtol=1e-13)
    with pytest.raises(LookupError, match="random_unknown"):
        bitgen.routine("random_unknown")


@some
def test_functions_travel(name):
    count = len(domains(DISTRIBUTIONS[name]))
    f = function(name, "FAST_RUN", ((),) * count, (101,))
    params = inside(name, [()] * count, 1)
    wanted = f(generator(), *params)[1]
    for g in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), f.copy()):
        np.testing.assert_array_equal(g(generator(), *params)[1], wanted)


@pytest.mark.parametrize("name", ["binomial", "integers", "categorical"])
def test_threads_draw_disjoint_numbers(name):
    args = {
        "binomial": ([9, 70], [0.3, 0.6]), "integers": (0, [5, 10**6]),
        "categorical": ([[0.25, 0.75], [0.5, 0.5]],),
    }[name]  # fmt: skip
    rng = phintys.shared(generator())
    next_rng, x = getattr(rng, name)(*args, size=(4000, 2))
    f = phintys.function([], x, updates={rng: next_rng})
    found = drawn_in_threads(f)
    assert len(found) == 60
    own = phintys.shared(generator())
    next_rng, x = getattr(own, name)(*args, size=(4000, 2))
    alone = phintys.function([], x, updates={own: next_rng}, mode="FAST_COMPILE")
    assert sorted(found) == sorted(alone().tobytes() for _ in found)
    assert_same_state(rng.get_value(), own.get_value())


# ----- names


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_arguments_are_those_of_pytensor(name):
    own = inspect.signature(getattr(pt.random.rng(), name))
    kept = [p for p in own.parameters.values() if p.name != "kwargs"]
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in kept]
    assert str(inspect.Signature(plain)) == f"({ARGUMENTS[name]})"


def test_the_rate_of_a_gamma_variable_keeps_its_digits():
    """1 / 5 is not a quotient of int8, which is float32."""
    assert pt.random.gamma(3, 5).owner.inputs[-1].eval() == 0.2
    assert pt.random.gamma(3, [5, 2]).owner.inputs[-1].eval().tolist() == [0.2, 0.5]
    assert pt.random.gamma(3, np.float32(5)).owner.inputs[-1].type.dtype == "float32"


def test_classes():
    basic = pt.random.basic
    for name, distribution in DISTRIBUTIONS.items():
        if isinstance(distribution, Distribution):
            assert type(distribution).__name__ in vars(basic)
            assert vars(basic)[name] is distribution
            assert distribution == type(distribution)()
    for cls in (basic.HalfNormalRV, basic.StudentTRV, basic.NegBinomialRV, basic.BernoulliRV):
        assert issubclass(cls, ScipyRandomVariable)
    assert pt.random.gamma(2.0, 4.0).owner.op.with_props(dtype="floatX") == basic._gamma
    assert basic.nbinom.name == "negative_binomial"
    assert basic.betabinom.name == "beta_binomial"


def test_every_routine_is_used():
    used = {r for d in DISTRIBUTIONS.values() for r in getattr(d, "routines", ())}
    assert used | set(BASES.values()) == set(native.DISTRIBUTIONS)


@pytest.mark.parametrize("mode", [*MODES, "JAX"])
def test_users_define_distributions_of_routines(mode):
    class MinimumRV(Distribution):
        """The smaller of two exponential numbers."""

        name = "minimum"
        parameters = {"scale": (POSITIVE,)}
        routines = ("random_standard_exponential",)

        @classmethod
        def rng_fn(cls, rng, scale, size):
            one, other = (rng.standard_exponential(size) for _ in range(2))
            return scale * np.minimum(one, other)

        def native(self, b, draw, *params):
            one, other = (draw("random_standard_exponential") for _ in range(2))
            return b.map(lambda n, x, y, scale: n.mul(scale, n.min(x, y)), one, other, *params)

    draw = MinimumRV()(2.0, size=2000, rng=generator())
    found = phintys.function([], draw, mode=mode)()
    if mode == "JAX":
        assert stats.kstest(found, stats.expon(scale=1.0).cdf).pvalue > 1e-4
    else:
        wanted = MinimumRV.rng_fn(generator(), 2.0, 2000)
        np.testing.assert_array_equal(found, wanted)


def test_users_define_distributions_of_scipy():
    class SkewNormal(ScipyRandomVariable):
        name = "skewnormal"
        signature = "(),()->()"
        dtype = "floatX"

        @classmethod
        def rng_fn_scipy(cls, rng, a, scale, size):
            return stats.skewnorm.rvs(a, scale=scale, size=size, random_state=rng)

    skew = SkewNormal()
    for size in (None, 4):
        for mode in MODES:
            draw = skew(np.float64(2), np.float64(3), size=size, rng=generator())
            wanted = stats.skewnorm.rvs(2.0, scale=3.0, size=size or (), random_state=generator())
            np.testing.assert_array_equal(phintys.function([], draw, mode=mode)(), wanted)


# ----- categorical


@modes
@pytest.mark.parametrize("size", [None, (4, 2)])
def test_categorical(mode, size):
    p = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    probabilities = pt.dmatrix("p")
    rng = pt.random.rng()
    f = phintys.function(
        [rng, probabilities], list(rng.categorical(probabilities, size=size)), mode=mode
    )
    given, expected = generator(), generator()
    for _ in range(3):
        given, found = f(given, p)
        u = expected.uniform(size=(2,) if size is None else size)
        wanted = [
            [np.searchsorted(np.cumsum(p[j]), v) for j, v in enumerate(row)]
            for row in u.reshape(-1, 2)
        ]
        np.testing.assert_array_equal(found, np.reshape(wanted, u.shape))
        assert found.dtype == "int64"
        assert_same_state(given, expected)
    for wrong in ([0.5, 0.4], [0.7, 0.4], [-0.5, 1.4], []):
        with pytest.raises(ValueError):
            f(generator(), np.array([wrong, wrong]).reshape(2, -1))
    assert f(generator(), np.ones((0, 3)) if size is None else np.ones((2, 1)))[1].size in (0, 8)


@modes
def test_categorical_checks_the_sum_of_probabilities_only(mode):
    """Differences of unordered cut points may be negative; PyTensor draws with them too."""
    p, rng = pt.dvector("p"), pt.random.rng()
    f = phintys.function([rng, p], pt.random.categorical(p, size=50, rng=rng), mode=mode)
    u = generator().uniform(size=50)
    for given, ends in (
        ([0.4, -0.1, 0.7], [0.4, 0.3]),
        ([1.2, -0.2], [1.2]),
        ([-0.5, 1.5], [-0.5]),
        ([0.5, np.nan, 0.2], [0.5]),
        ([np.nan, 1.0], []),
    ):
        wanted = np.sum([u > end for end in ends], axis=0) if ends else 0 * u
        np.testing.assert_array_equal(f(generator(), given), wanted)
