"""Elementwise functions: dtypes, broadcasting, operators, scalars."""

from __future__ import annotations

import itertools

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from helpers import both, compiled
from pytensor.tensor.elemwise import DimShuffle, Elemwise

DTYPES = ("bool", "int8", "int16", "int64", "uint8", "uint64", "float32", "float64", "complex64")


def dtypes_of_sums():
    for a, b in itertools.combinations_with_replacement(DTYPES, 2):
        yield [a, b, pt.vector("x", dtype=a) + pt.vector("y", dtype=b)]


def dtypes_of_differences_and_products():
    for a, b in itertools.product(DTYPES[1:], ("int8", "uint8", "float32")):
        x, y = pt.vector("x", dtype=a), pt.vector("y", dtype=b)
        yield [a, b, x - y, x * y]


def dtypes_of_quotients():
    for a, b in itertools.product(("int8", "int64", "uint8", "float32", "float64"), repeat=2):
        x, y = pt.vector("x", dtype=a), pt.vector("y", dtype=b)
        yield [a, b, x / y, x // y, x % y]


def dtypes_of_python_numbers():
    for dtype in ("int8", "uint8", "int64", "float32", "float64"):
        x = pt.vector("x", dtype=dtype)
        yield [dtype, x + 1, x + 1.5, x + 0.1, x * 1000, x + 70000, x / 2, x**2, x**0.5, 2**x]


def dtypes_of_numpy_scalars():
    x = pt.fvector("x")
    yield [x + np.float64(1), x + np.float32(1), x + np.int64(1), x + np.int8(1), x * np.array(0.5)]


def dtypes_of_functions():
    names = "exp log sqrt sin tanh sigmoid erf gammaln abs neg sign floor round sqr isnan ceil"
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "float32", "float64"):
        x = pt.vector("x", dtype=dtype)
        yield [
            dtype,
            *([name, lambda name=name, x=x: getattr(pt, name)(x)] for name in names.split()),
        ]


def dtypes_of_functions_of_bools():
    x = pt.vector("x", dtype="bool")
    for name in "exp sqrt abs sign floor sqr invert sigmoid".split():
        yield [name, lambda name=name: getattr(pt, name)(x)]
    yield lambda: -x
    yield lambda: x - x


def dtypes_of_comparisons():
    x, y = pt.ivector("x"), pt.dvector("y")
    yield [x < y, pt.eq(x, y), pt.neq(x, 1), pt.and_(x > 1, y > 1), x & 3, x | x, x ^ 1, ~x]


def floats_and_bits():
    x = pt.dvector("x")
    yield lambda: x & 1
    yield lambda: ~x
    yield lambda: pt.bitwise_and(x, x)


def shifts_and_bits():
    x, y = pt.lvector("x"), pt.lvector("y")
    values = {x: [5, -7, 12], y: [1, 2, 3]}
    yield from (both(z, values) for z in (x & y, x | y, x ^ y, ~x))
    yield lambda: x << y


def operators_with_numbers_on_the_left():
    x = pt.dvector("x")
    results = (1 - x, 2 / x, 2**x, 7 // x, 7 % x, divmod(7, x)[1], 1 + x, 3 * x, -x, abs(x))
    yield from (both(y, {x: [0.5, -2.0, 3.0]}) for y in results)
    yield lambda: +x


def division_and_modulo_of_negative_numbers():
    x, y = pt.dvector("x"), pt.lvector("y")
    values = {x: [-7.5, 7.5, -7.0], y: [-7, 7, 8]}
    yield from (both(z, values) for z in (x // 2, x % 2, x % -2, y // 3, y % 3, y // -3, y % -3))


def integer_division_by_zero():
    y = pt.lvector("y")
    yield (y // 0).eval({y: [1, -1, 0]}).shape


def power_of_integers():
    x = pt.lvector("x")
    yield both(x**3, {x: [2, -2, 0]})
    yield both(x ** pt.constant(np.array([1, 2, 3])), {x: [2, -2, 0]})
    yield both(pt.pow(x, 0.5), {x: [4, 9, 0]})
    yield both(pt.power(2.0, x), {x: [4, -1, 0]})


def broadcasting_of_static_ones():
    r, c, m = pt.row("r"), pt.col("c"), pt.matrix("m", shape=(3, 4))
    yield [r + c, r + m, c + m, m + pt.dvector("v"), m + pt.dvector("v", shape=(1,)) * 1]


def broadcasting_of_unknown_ones_fails():
    x, y = pt.dvector("x"), pt.dvector("y")
    f = pytensor.function([x, y], x + y)
    yield lambda: f([1.0, 2.0], [1.0])
    yield lambda: f([1.0, 2.0], [1.0, 2.0, 3.0])


def static_lengths_that_disagree():
    x, y = pt.dvector("x", shape=(2,)), pt.dvector("y", shape=(3,))
    yield lambda: x + y
    yield lambda: pt.switch(x > 0, y, y)


def outer_forms():
    x, y = pt.dvector("x"), pt.dvector("y")
    values = {x: [1.0, 2.0], y: [3.0, 4.0, 5.0]}
    yield both(pt.outer(x, y), values)
    yield both(x[:, None] - y[None, :], values)


def clip_and_where():
    x = pt.dvector("x")
    yield both(pt.clip(x, -1, 1), {x: [-3.0, 0.5, 2.0]})
    yield both(x.clip(0, np.inf), {x: [-3.0, 0.5, 2.0]})
    yield both(pt.where(x > 0, x, 0), {x: [-3.0, 0.5, 2.0]})
    yield both(pt.switch(pt.lt(x, 0), -1, 1), {x: [-3.0, 0.5, 2.0]})


def minimum_of_nan():
    x, y = pt.dvector("x"), pt.dvector("y")
    values = {x: [np.nan, 1.0, 2.0], y: [1.0, np.nan, 3.0]}
    yield both(pt.minimum(x, y), values)
    yield both(pt.maximum(x, y), values)


def rounding():
    x = pt.dvector("x")
    values = {x: [0.5, 1.5, -0.5, 2.5001, -2.7]}
    yield from (both(f(x), values) for f in (pt.round, pt.floor, pt.ceil, pt.trunc, pt.iround))
    yield both(pt.round(x, mode="half_away_from_zero"), values)
    yield lambda: pt.round(x, mode="no such mode")


def many_terms():
    x = pt.dvector("x")
    yield both(pt.add(x, x, 1, x), {x: [1.0, 2.0]})
    yield both(pt.mul(x, 2, x, x), {x: [1.0, 2.0]})
    yield lambda: pt.add()
    yield lambda: pt.exp()
    yield lambda: pt.exp(x, x)


def casts():
    x = pt.dvector("x")
    for dtype in ("int8", "uint8", "bool", "float32", "complex128", "floatX"):
        yield both(pt.cast(x, dtype), {x: [1.7, 0.0, 100.2]})
        yield both(x.astype(dtype), {x: [1.7, 0.0, 100.2]})
    yield lambda: pt.cast(x, "no such dtype")
    yield lambda: pt.cast(pt.zvector("z"), "float64")


def complex_numbers():
    z = pt.zvector("z")
    values = {z: [1 + 2j, -3j, 2.0]}
    yield from (both(f(z), values) for f in (pt.real, pt.imag, pt.angle, pt.conj, abs, pt.exp))
    yield both(z.real + z.imag, values)
    yield both(pt.complex(z.real, z.imag), values)
    yield both(pt.complex_from_polar(abs(z), pt.angle(z)), values)


def truth_values_and_identity():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    yield [x == x, x == y, x != y, x in [y, x]]
    yield lambda: bool(x < y)
    yield lambda: int(x)
    yield lambda: len(pt.dvector("v"))
    yield lambda: list(pt.dvector("v"))
    yield lambda: 1 if x else 0


def conversion_of_arguments():
    for value in (1, 1.5, 0.1, 300, 2**40, 1j, np.float32(1), np.array([1, 2]), [1.0, 2], (1, 2)):
        yield lambda value=value: pt.as_tensor_variable(value)
    yield lambda: pt.as_tensor([pt.dscalar("x"), 2])
    yield lambda: pt.as_tensor([[1, pt.lscalar("i")], [3, 4]])
    for value in (True, None, "text", {}, object(), [1, "a"]):
        yield lambda value=value: pt.as_tensor_variable(value)


def conversion_with_a_rank():
    x = pt.dvector("x")
    yield [pt.as_tensor_variable(x, ndim=2), pt.as_tensor_variable(x, ndim=1)]
    yield lambda: pt.as_tensor_variable(pt.dmatrix("m"), ndim=1)
    yield pt.as_tensor_variable(pt.row("r"), ndim=1)
    yield pt.as_tensor_variable([1, 2], dtype="float32", name="named").name


def elemwise_as_a_class():
    x, y = pt.dvector("x"), pt.dmatrix("y")
    op = Elemwise(ps.add)
    yield [op == pt.add, str(op), str(pt.exp), repr(pt.add)]
    yield lambda: op.nin
    yield both(op(x, y), {x: [1.0, 2.0], y: [[1.0, 2.0]]})
    yield isinstance((x + y).owner.op, Elemwise)
    yield [
        str((x + y).owner.op.scalar_op),
        isinstance((x + y).owner.inputs[0].owner.op, DimShuffle),
    ]


def scalar_variables():
    a, b = ps.float64("a"), ps.int8("b")
    yield [a + b, a * 2, b / b, ps.exp(a), ps.add(a, b, a), -b, a < b]
    yield (a + b).eval({a: 1.5, b: 2})
    yield [pt.tensor_from_scalar(a), pt.scalar_from_tensor(pt.dscalar("x"))]
    yield lambda: pt.scalar_from_tensor(pt.dvector("x"))


def composites_of_scalars():
    a, b = ps.float64("a"), ps.float64("b")
    op = Elemwise(ps.Composite([a, b], [a * b + 1, a - b]))
    x = pt.dvector("x")
    yield [both(y, {x: [1.0, 2.0]}) for y in op(x, x + 1)]


def identities_of_rewriting():
    x = pt.dvector("x")
    values = {x: np.array([0.5, 2.0, 3.0])}
    for y in (x * 1, x + 0, x - x, x / x, x**1, x**0, x**2, -pt.neg(x), pt.log(pt.exp(x)), x * 0):
        yield compiled(y, values)


def stable_forms():
    x = pt.dvector("x")
    values = {x: np.array([-800.0, -1e-9, 1e-9, 40.0, 800.0])}
    for y in (pt.log1p(pt.exp(x)), pt.log(1 + pt.exp(x)), 1 / (1 + pt.exp(-x)), pt.exp(x) - 1):
        yield compiled(y, values)
    yield compiled(pt.log(pt.sigmoid(x)), values)
    yield compiled(pt.log(1 - pt.sigmoid(x)), values)


def special_functions():
    x = pt.dvector("x")
    names = "gammaln psi tri_gamma erf erfc erfcx erfinv i0 i1 j0 j1 expm1 log1p log1mexp softplus"
    for name in names.split():
        yield [name, both(getattr(pt, name)(x), {x: [0.3, 0.6, 0.9]})]
    for name in "betainc".split():
        yield both(getattr(pt, name)(x + 1, x + 2, x), {x: [0.3, 0.6, 0.9]})
    yield both(pt.gammainc(x + 1, x), {x: [0.3, 0.6]})
    yield both(pt.hyp2f1(x, x + 1, x + 2, x / 2), {x: [0.3, 0.6]})


def isclose_and_allclose():
    x, y = pt.dvector("x"), pt.dvector("y")
    values = {x: [1.0, np.nan, np.inf, 0.0], y: [1.0 + 1e-9, np.nan, np.inf, 1e-3]}
    yield both(pt.isclose(x, y), values)
    yield both(pt.isclose(x, y, equal_nan=True), values)
    yield both(pt.allclose(x, y), values)
    yield both(pt.isclose(x, y, atol=1e-2), values)


def integers_that_wrap():
    x = pt.bvector("x")
    yield both(x + x, {x: np.array([100, -100], "int8")})
    yield both(x * 2, {x: np.array([100, -100], "int8")})
    yield both(-x, {x: np.array([-128, 1], "int8")})
    yield both(x.astype("uint8"), {x: np.array([-1, 1], "int8")})
