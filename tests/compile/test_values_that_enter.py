"""What users hand in: each kind of value gives right results or a clear error, on every backend."""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.io import In
from phintys.graph.op import Op
from phintys.graph.variable import Apply

PLAIN = np.arange(1.0, 7.0).reshape(2, 3)


class Odd(np.ndarray):
    """An array whose operators are not those of arrays."""

    def __mul__(self, other):
        raise AssertionError("an operator of the caller's class was used")

    __array_ufunc__ = None


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return PLAIN.copy()


def unaligned(value):
    memory = np.zeros(value.nbytes + 1, "uint8")
    out = memory[1:].view(value.dtype).reshape(value.shape)
    out[...] = value
    assert not out.flags.aligned
    return out


def read_only(value):
    out = value.copy()
    out.flags.writeable = False
    return out


def memmap(path):
    PLAIN.tofile(path)
    return np.memmap(path, "float64", "r+", shape=PLAIN.shape)


ACCEPTED = {
    "plain": PLAIN,
    "big-endian": PLAIN.astype(">f8"),
    "unaligned": unaligned(PLAIN),
    "unaligned and big-endian": unaligned(PLAIN.astype(">f8")),
    "read-only": read_only(PLAIN),
    "Fortran order": np.asfortranarray(PLAIN),
    "strided": np.repeat(PLAIN, 2, axis=1)[:, ::2],
    "reversed": PLAIN[::-1, ::-1].copy()[::-1, ::-1],
    "stride 0": np.broadcast_to(np.array([1.0, 2.0, 3.0]), (2, 3)),
    "all strides 0": np.broadcast_to(np.array(2.0), (2, 3)),
    "a field of records": np.rec.fromarrays([PLAIN, PLAIN > 2]).f0,
    "matrix": PLAIN.copy().view(np.matrix),
    "subclass": PLAIN.copy().view(Odd),
    "of length 0": PLAIN[:0],
    "of length 1": PLAIN[:1, :1],
    "a dtype with metadata": PLAIN.astype(np.dtype("float64", metadata={"unit": "m"})),
    "float32": PLAIN.astype("float32"),
    "int8": PLAIN.astype("int8"),
    "bool": PLAIN > 2,
    "big-endian int16": PLAIN.astype(">i2"),
}
#: what only arguments, givens and constants may be: of shared variables it decides the type
CONVERTED = {
    "lists": PLAIN.tolist(),
    "tuples of arrays": tuple(PLAIN),
    "rows of numbers": [list(map(int, row)) for row in PLAIN],
    "array-like": ArrayLike(),
}
MASKED = np.ma.MaskedArray(PLAIN, PLAIN > 3)
REFUSED = {
    "masked": (MASKED, "mask would be lost"),
    "masked without a mask": (np.ma.MaskedArray(PLAIN), "mask would be lost"),
    "object": (PLAIN.astype(object), "object|array of numbers"),
    "datetime": (PLAIN.astype("int64").astype("datetime64[s]"), "datetime64"),
    "timedelta": (PLAIN.astype("int64").astype("timedelta64[s]"), "timedelta64"),
    "text": (PLAIN.astype(str), "U|str"),
    "bytes": (PLAIN.astype(bytes), "S|bytes"),
    "records": (np.rec.fromarrays([PLAIN, PLAIN > 2]), "record"),
}
REFUSED_ARGUMENTS = {
    "complex": (PLAIN.astype(complex), "complex128"),
    "longdouble": (PLAIN.astype("longdouble"), "float128|longdouble"),
    "rows of masked": (list(MASKED), "mask would be lost"),
    "rows of rows of masked": ((PLAIN, MASKED), "mask would be lost"),
    "ragged": ([[1.0], [1.0, 2.0]], "inhomogeneous"),
    "None": (None, "needs numbers"),
    "an object": (object(), "needs numbers"),
    "a string": ("12", "needs numbers"),
    "one masked": (np.ma.masked, "mask would be lost"),
    "of rank 1": (PLAIN[0], "rank"),
}


def expressions(x):
    return [x * 2, x[::-1], x.sum(axis=0), x.T]


def assert_right(results, value):
    plain = np.array(value, dtype="float64", subok=False)
    for found, expected in zip(results, [plain * 2, plain[::-1], plain.sum(0), plain.T]):
        assert isinstance(found, np.ndarray) == isinstance(results[0], np.ndarray)
        assert type(found) is not Odd
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.fixture(scope="module")
def of_an_argument():
    """A function of one argument for each mode."""
    made = {}

    def get(mode):
        if mode not in made:
            x = pt.dmatrix("x")
            made[mode] = phintys.function([In(x, name="data")], expressions(x), mode=mode)
        return made[mode]

    return get


@pytest.mark.parametrize("name", [*ACCEPTED, *CONVERTED])
def test_arguments(mode, of_an_argument, name):
    value = {**ACCEPTED, **CONVERTED}[name]
    f = of_an_argument(mode)
    assert_right(f(value), value)
    assert_right(f(data=value), value)


def test_memory_mapped_arguments(mode, of_an_argument, tmp_path):
    value = memmap(tmp_path / "data")
    assert_right(of_an_argument(mode)(value), PLAIN)
    np.testing.assert_array_equal(value, PLAIN)


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_ARGUMENTS])
def test_refused_arguments(mode, of_an_argument, name):
    value, message = {**REFUSED, **REFUSED_ARGUMENTS}[name]
    f = of_an_argument(mode)
    for call in (lambda: f(value), lambda: f(data=value)):
        with pytest.raises(TypeError, match=f"Bad argument 0 'data'.*(?:{message})"):
            call()
    assert_right(f(PLAIN), PLAIN)


@pytest.mark.parametrize("name", ACCEPTED)
def test_shared_values(name):
    value = ACCEPTED[name]
    for borrow in (False, True):
        s = phintys.shared(value, borrow=borrow)
        assert type(s.get_value(borrow=True)) is np.ndarray
        assert s.get_value(borrow=True).dtype.isnative
        x = s.astype("float64")
        for mode in ("FAST_RUN", "FAST_COMPILE"):
            assert_right(phintys.function([], expressions(x), mode=mode)(), value)
        t = phintys.shared(np.zeros((1, 1)))
        f = phintys.function([], expressions(t))
        t.set_value(value, borrow=borrow)
        assert_right(f(), value)


def test_shared_values_of_every_mode(mode):
    t = phintys.shared(np.zeros((1, 1)))
    f = phintys.function([], expressions(t), mode=mode)
    for value in [*ACCEPTED.values(), *CONVERTED.values()]:
        t.set_value(value)
        assert_right(f(), value)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_shared_values(name):
    value, message = REFUSED[name]
    with pytest.raises(TypeError, match=message):
        phintys.shared(value)
    t = phintys.shared(PLAIN)
    for borrow in (False, True):
        with pytest.raises(TypeError, match=message):
            t.set_value(value, borrow=borrow)
    np.testing.assert_array_equal(t.get_value(), PLAIN)


@pytest.mark.parametrize("name", [*ACCEPTED, *CONVERTED])
def test_constants_givens_and_updates(name):
    value = {**ACCEPTED, **CONVERTED}[name]
    x, s = pt.dmatrix("x"), phintys.shared(PLAIN)
    for make in (pt.constant, pt.as_tensor_variable, lambda v: pt.constant(v, dtype="float64")):
        c = make(value)
        assert type(c.data) is np.ndarray
        assert c.data.dtype.isnative
        assert c.data.dtype.name == c.type.dtype
        for mode in ("FAST_RUN", "FAST_COMPILE"):
            f = phintys.function([], expressions(c.astype("float64")), mode=mode)
            assert_right(f(), value)
    assert_right(phintys.function([], expressions(x), givens={x: value})(), value)
    phintys.function([], [], updates={s: value})()
    assert_right(expressions_of(s), value)
    assert_right([e.eval({x: value}) for e in expressions(x)], value)


def expressions_of(s):
    return phintys.function([], expressions(s))()


@pytest.mark.parametrize("name", REFUSED)
def test_refused_constants_givens_and_updates(name):
    value, message = REFUSED[name]
    x, s = pt.dmatrix("x"), phintys.shared(PLAIN)
    entries = [
        lambda: pt.constant(value),
        lambda: pt.as_tensor_variable(value),
        lambda: x + value,
        lambda: x[0].set(value[0]) if value.dtype.names is None else pt.constant(value),
        lambda: phintys.function([], x * 2, givens={x: value}),
        lambda: phintys.function([], [], updates={s: value}),
        lambda: (x * 2).eval({x: value}),
        lambda: x.type.filter(value),
        lambda: x.type.filter(value, strict=True),
        lambda: x.type.filter_variable(value),
    ]
    for entry in entries:
        with pytest.raises(TypeError):
            entry()
    if "masked" in name:
        for entry in entries[:-2]:
            with pytest.raises(TypeError, match=message):
                entry()


def test_a_constant_stays_what_it_was():
    """The caller may write to the array that it was made from."""
    value = PLAIN.copy()
    x, s = pt.dmatrix("x"), phintys.shared(PLAIN)
    made = [
        lambda mode: phintys.function([], pt.constant(value) * 2, mode=mode),
        lambda mode: phintys.function([], 2 * pt.as_tensor(value), mode=mode),
        lambda mode: phintys.function([], x * 2, givens={x: value}, mode=mode),
        lambda mode: phintys.function([], s * 2, updates={s: value}, mode=mode),
    ]
    for make in made:
        for mode in ("FAST_RUN", "FAST_COMPILE"):
            f = make(mode)
            value[...] = 0
            f()
            np.testing.assert_array_equal(f(), PLAIN * 2)
            value[...] = PLAIN


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = [0, 1, -1, 2, 127, 128, 255, 256, -128, -129, 2**31, 2**32, 2**53 + 1, -(2**63)]
NUMBERS += [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30, True, False]
NUMBERS += [0.0, -0.0, 1.0, 0.5, 1e300, 2.0**63, 2.0**64, -1.5, float("inf"), float("nan")]


def holds(dtype, number):
    """Whether a Python number is a value of a dtype: exactly, but to float64 integers round."""
    if isinstance(number, int) and not -(2**63) <= number < 2**64:
        return False
    if dtype == "float64" or (dtype == "float32" and not np.isfinite(number)):
        return True
    if dtype == "bool":
        return number in (0, 1)
    if dtype == "float32":
        with np.errstate(over="ignore"):
            rounded = float(np.float32(number))
        return rounded == number
    limits = np.iinfo(dtype)
    return (
        bool(np.isfinite(number)) and number == int(number) and limits.min <= number <= limits.max
    )


def too_large(dtype, number):
    """Whether a Python number that an integer dtype does not hold is out of its range; NaN is."""
    if np.dtype(dtype).kind not in "iu":
        return False
    limits = np.iinfo(dtype)
    return isinstance(number, int) or not limits.min <= number <= float(limits.max)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, "float32", "float64"])
def test_python_numbers(dtype):
    """A number that the dtype holds is taken, another one is refused, by every backend."""
    x = pt.tensor("n", dtype=dtype, shape=())
    modes = ["FAST_RUN", "FAST_COMPILE", *(["C"] if shutil.which("cc") else [])]
    functions = [phintys.function([x], x.copy(), mode=mode) for mode in modes]
    for number in NUMBERS:
        for f in functions:
            if not holds(dtype, number):
                kind = OverflowError if too_large(dtype, number) else TypeError
                with pytest.raises(kind, match="Bad argument 0 'n'"):
                    f(number)
                continue
            found = f(number)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, np.asarray(number).astype(dtype))
            if dtype.startswith("float") and isinstance(number, float):
                assert np.signbit(found) == np.signbit(number)


class Gives(Op):
    """A value in a dtype that is equal to the declared one, or nearly so."""

    __props__ = ("char",)

    def __init__(self, char):
        self.char = char

    def make_node(self, x):
        out = pt.tensor(dtype=np.dtype(self.char).name, shape=(None, None))
        return Apply(self, [x], [out])

    def infer_shape(self, node, shapes):
        return shapes

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].astype(self.char)


@pytest.mark.parametrize("char", ["q", "Q", "l", "L", ">f8", ">i2"])
def test_results_of_ops_of_users(mode, char):
    x = pt.dmatrix("x")
    for out in (Gives(char)(x), pt.maximum(Gives(char)(x), Gives(char)(x)[::-1][::-1])):
        found = np.asarray(phintys.function([x], out, mode=mode)(PLAIN))
        assert found.dtype.name == np.dtype(char).name
        np.testing.assert_array_equal(found, PLAIN)


def test_no_warning_for_what_is_accepted(of_an_argument):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in ACCEPTED.values():
            assert of_an_argument("FAST_RUN")(value)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "bool", "complex64"])
def test_empty_lists(mode, dtype):
    """They were accepted for float64 only."""
    x, m = pt.vector("x", dtype=dtype), pt.matrix("m", dtype=dtype)
    f = phintys.function([x, m], [x.copy(), m.copy()], mode=mode)
    for given in ([], ()):
        found = f(given, [[], []])
        assert [v.shape for v in found] == [(0,), (2, 0)]
        assert {v.dtype.name for v in found} == {dtype}


@pytest.mark.parametrize(
    "dtype, fits, others",
    [
        ("float32", [np.int64(3), np.float64(1.5)], [np.float64(0.1), np.float64(1e300)]),
        ("int8", [np.int64(3), np.float64(4.0), np.uint8(5)], [np.int64(300), np.float64(0.5)]),
        ("uint64", [np.int64(3), np.int8(5)], [np.int64(-1)]),
    ],
)
def test_numpy_scalars_whose_value_fits(mode, dtype, fits, others):
    """They were refused, where Python numbers of the same value are accepted."""
    x = pt.scalar("x", dtype=dtype)
    f = phintys.function([x], x.copy(), mode=mode)
    for value in fits:
        assert f(value) == value and f(value).dtype == dtype
    for value in others:
        with pytest.raises(TypeError, match="cannot hold"):
            f(value)
