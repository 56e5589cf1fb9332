"""The law of every rule holds at extreme numbers: huge, tiny, zeros with signs, infinite, NaN."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from exact import errors
from expressions import draw, evaluate, folded
from test_laws import (
    ANY_RANK,
    EQUATIONS,
    FUNCTIONS,
    build,
    split_domain,
    where_it_applies,
)
from tiers import rest

import phintys
from phintys.graph.traversal import ancestors, io_toposort
from phintys.rewriting.check import check_rule, rewritten, sides
from phintys.rewriting.rule import equation
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.type import TensorType

#: dtypes of x, y and z beside float64 and float32: rules may or may not apply to them
OTHERS = [
    *([dtype] * 3 for dtype in ("int8", "uint8", "int64", "uint64", "bool")),
    ["int8", "uint8", "int64"],
    ["uint8", "int8", "bool"],
    ["int64", "float32", "int8"],
    ["float32", "int8", "uint8"],
    ["float32", "float64", "int8"],
    ["bool", "uint8", "float32"],
]
RTOL = {"float32": 4e-6, "float64": 8e-15}
#: the most points at which an expression is evaluated
POINTS = 400
#: names whose values are lengths and positions
COUNTED = frozenset("nk")


def floats(dtype, few=False):
    """Numbers of both signs, and NaN; fewer for expressions with several inputs."""
    info = np.finfo(dtype)
    large = 800 if dtype == "float64" else 100
    found = [0, info.smallest_subnormal, info.tiny * 100, 1, large, info.max / 8, np.inf]
    found += [0.3, 3] if few else [info.eps / 16, 1e-5, 0.3, 3, 40, 4 / info.eps]
    return np.array([*found, *(-np.array(found)), np.nan], dtype)


def integers(dtype):
    info = np.iinfo(dtype)
    found = [info.min, info.min + 1, -2, -1, 0, 1, 2, 3, info.max - 1, info.max]
    return np.array(sorted({n for n in found if n >= info.min}), dtype)


def extremes(dtype, few=False):
    """Extreme numbers of a dtype."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind == "c":
        parts = np.array([0, -0.0, 1, -2.5, 800, 1e-300, np.inf, np.nan])
        return np.array([complex(x, y) for x in parts for y in parts], dtype)
    return floats(dtype, few) if kind == "f" else integers(dtype)


#: domains whose rules are not tested at some of these numbers
WITHOUT = {
    "below inf": lambda x: x == np.inf,  # a row with an infinite element is NaN
    "with a negative": lambda x: (x == -x) & (x != 0),  # the least integer is its own negative
    "orders": lambda x: (x < 0) | ((x > 0) & (x < 1e-30)),  # Bessel functions of scipy are NaN
}


def within(domain, values):
    """The extreme numbers at which rules of a domain are tested."""
    return values[~WITHOUT[domain](values)] if domain in WITHOUT else values


def combinations(inputs, domain):
    """All combinations of extreme numbers, or a part of them, as equally long vectors."""
    axes = [within(domain, extremes(v.type.dtype, len(inputs) > 1)) for v in inputs]
    found = [m.ravel() for m in np.meshgrid(*axes, indexing="ij")]
    if found[0].size <= POINTS:
        return found
    chosen = np.random.default_rng(0).choice(found[0].size, POINTS, replace=False)
    return [m[chosen] for m in found]


def ordinary(inputs, domain):
    """Numbers of ordinary sizes, as vectors of one length."""
    rng = np.random.default_rng(0)
    shape = (40,)
    scale = 10.0 ** rng.integers(-3, 3, shape)
    if domain == "orders":
        return [np.abs(rng.normal(size=shape)).astype(v.type.dtype) for v in inputs]
    return [
        (rng.normal(size=shape) * scale).astype(v.type.dtype)
        if np.dtype(v.type.dtype).kind in "fc"
        else rng.choice(extremes(v.type.dtype), shape)
        for v in inputs
    ]


def mixtures(inputs, domain):
    """Ordinary values with extreme numbers at one place, at some, and at all."""
    rng = np.random.default_rng(0)
    for share in [0.0] * 12 + [0.3] * 12 + [1.0] * 6:
        yield [mixed(rng, v, domain, share) for v in inputs]


def mixed(rng, v, domain, share):
    value = np.array(draw(rng, v, domain))
    if v.name in COUNTED or not value.size:
        return value
    chosen = rng.random(value.shape) < share
    chosen.flat[rng.integers(value.size)] = True
    found = within(domain, extremes(value.dtype.name))
    return np.where(chosen, rng.choice(found, value.shape), value)


def is_pointwise(inputs, out, rule):
    nodes = io_toposort([], [out, *rewritten(rule, [out])])
    return all(v.type.ndim == 1 for v in inputs) and all(isinstance(n.op, Elemwise) for n in nodes)


def applies(rule, out):
    """Whether a rule applies to an expression."""
    try:
        return bool(rewritten(rule, [out]))
    except AssertionError:
        return False


def check(rule, inputs, out, domain="reals"):
    pointwise = bool(inputs) and is_pointwise(inputs, out, rule)
    drawn = mixtures(inputs, domain)
    if pointwise:
        drawn = [combinations(inputs, domain), ordinary(inputs, domain)]
    computed = {v.type.dtype for v in ancestors([out]) if isinstance(v.type, TensorType)}
    rtol = RTOL["float32" if "float32" in computed else "float64"]
    failures = check_rule(
        rule, inputs, [out], drawn, evaluate, rtol, errors=errors, pointwise=pointwise
    )
    dtypes = ", ".join(v.type.dtype for v in inputs)
    assert not failures, "\n".join([f"of {dtypes}:", *map(str, failures)])


LAWS = {
    "exact": {
        "abs(abs(x)) -> abs(x)": True,
        "x + 0 -> x": False,  # -0 + 0 is 0
        "maximum(x, y) -> switch(gt(x, y), x, y)": False,  # of NaN and 0
    },
    "rounding": {
        "x + 0 -> x": True,
        "log(x) -> log2(x) * 0.6931471805599453": True,
        "x - y -> x + -1.0000000001 * y": False,
        "x * 0 -> maximum(minimum(x, 0), 0)": False,  # of inf
        "log(x) -> log1p(x + -1)": False,
        "log1p(exp(x)) -> softplus(x)": True,  # the exponential overflows
        "exp(x) + -1 -> expm1(x)": True,  # as different as roundings of the exponential make it
        "exp(x) + -1 -> expm1(x) * 1.0000000000001": False,
    },
    "finite": {
        "x * 0 -> maximum(minimum(x, 0), 0)": True,
        "x - y + y -> x": True,
        "abs(-1 * x) -> -1 * x": False,
    },
    "accurate": {
        "exp(x) + -1 -> expm1(x)": True,
        "exp(x) + -1 -> expm1(x) * 1.0000000000001": False,
        "exp(x) + -1 -> exp(x) + -1.0000000000000002": False,
        "log1p(exp(x)) -> maximum(x, 0)": False,
        "log1p(exp(x)) -> switch(gt(x, 50), nan, softplus(x))": False,
        "log1p(-1 * exp(x)) -> log1mexp(-1 * abs(x))": False,  # of positive numbers
        "exp(log(x)) -> x": False,  # of negative numbers
        "sqrt(sqr(x) + sqr(y)) -> hypot(x, y)": False,  # of inf and NaN
        "hypot(x, y) -> sqrt(sqr(x) + sqr(y))": False,  # the squares overflow
    },
}
CASES = [(law, text, holds) for law, found in LAWS.items() for text, holds in found.items()]


@pytest.mark.parametrize("law, text, holds", CASES)
def test_wrong_rules_are_found(law, text, holds):
    rule = equation(text, law=law)
    if holds:
        check(rule, *left_side(rule, itertools.repeat("float64")))
    else:
        with pytest.raises(AssertionError, match="the left side is"):
            check(rule, *left_side(rule, itertools.repeat("float64")))


def all_examples():
    """Rules with their examples; ``make test`` runs the first example of each."""
    return [
        pytest.param(r, text, id=f"{r.name} at {text}", marks=[rest] if k else [])
        for r in FUNCTIONS
        for k, text in enumerate(r.tested_on or ())
    ]


def in_other_dtypes(expression):
    """An expression of text in float32, and in other dtypes if it has variables of any dtype."""
    yield build(expression, "vectors", "float32")
    for dtypes in OTHERS:
        try:
            out, inputs = build(expression, "vectors", dtypes)
        except TypeError:
            continue
        if {v.name for v in inputs} & ANY_RANK:
            yield out, inputs


@pytest.mark.parametrize("rule, text", all_examples())
def test_example(rule, text):
    """In float64, and in the other dtypes that the rule applies to."""
    expression, domain = split_domain(text)
    out, inputs = build(expression)
    check(rule, inputs, where_it_applies(rule, out), domain)
    for out, inputs in in_other_dtypes(expression):
        out = where_it_applies(rule, out)
        if applies(rule, out):
            check(rule, inputs, out, domain)


def left_side(rule, dtypes):
    """The inputs and the left side of an equation; its own types stay."""
    given, typed = sides(rule)[0], rule.types or {}
    inputs = [
        TensorType(v.type.dtype if v.name in typed else dtype, (None,))(v.name)
        for v, dtype in zip(given, dtypes, strict=False)
    ]
    return inputs, folded(rule.lhs(*inputs))


@pytest.mark.parametrize("rule", EQUATIONS, ids=str)
def test_equation(rule):
    """In float64 and float32, and in the other dtypes that the rule applies to."""
    domain = rule.tested_on or "reals"
    for dtype in ("float64",) if rule.types else ("float64", "float32"):
        check(rule, *left_side(rule, itertools.repeat(dtype)), domain)
    for dtypes in [] if rule.types else OTHERS:
        try:
            inputs, left = left_side(rule, dtypes)
        except TypeError:
            continue
        if applies(rule, left):
            check(rule, inputs, left, domain)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("switch(gt(x, 0), 0, y) * y", np.int16(200 * 200 - 2**16)),  # in int16, not in uint8
        ("1 / (1 + exp(x))", np.float32(1)),  # the opposite of -128 is no int8
        ("switch(gt(x, 0), x, y) + switch(gt(x, 0), x, y)", np.int16(400)),
    ],
)
def test_functions_of_narrow_integers(text, expected):
    out, inputs = build(text, "scalars", ["int8", "uint8", "int8"])
    given = {"x": np.int8(-128), "y": np.uint8(200)}
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        f = phintys.function(inputs, out, mode=mode)
        found = f(*(given[v.name] for v in inputs))
        assert found == expected and found.dtype == expected.dtype
