"""The array API without its public suite: names, values, promotion, operators, items, caches."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiers import rest

import phintys
import phintys.array_api as xp
import phintys.tensor as pt
from phintys.array_api.array import BINARY as OPERATORS
from phintys.array_api.array import COMPARISONS, Array
from phintys.array_api.evaluation import _compiled
from phintys.tensor import standard
from phintys.tensor.standard.elementwise import BINARY, ROUNDING, UNARY

FOLDER = Path(__file__).parent
#: the functions of the standard, version 2024.12, with the names of their parameters
SIGNATURES = (FOLDER / "signatures.txt").read_text().split("\n")[:-1]
DTYPES = [
    "bool",
    "int8",
    "int64",
    "uint8",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
#: of which ``make test`` tries the functions of elements
FIRST = ("int8", "float32")


def expected_failures():
    lines = (FOLDER / "expected_failures.txt").read_text().split("\n")
    return [line for line in lines if line and not line.startswith("#")]


# ---------------------------------------------------------------------------------- names


def differs(namespace, signature):
    """Whether a function has other parameters than the standard says."""
    name, _, parameters = signature.removesuffix(")").partition("(")
    function = namespace
    for part in name.split("."):
        function = getattr(function, part)
    found = inspect.signature(function).parameters.values()
    by_position = {p.name for p in found if p.kind is p.POSITIONAL_ONLY}
    wanted = [p for p in parameters.split(", ") if p]
    names = [p.name for p in found]
    other_names = [p for p in names if p not in by_position] != [
        p for p in wanted if p not in by_position
    ]
    return other_names or len(names) != len(wanted)


@pytest.mark.parametrize("namespace", [xp, standard], ids=["eager", "symbolic"])
def test_signatures(namespace):
    """But for those that the list of expected failures of the public suite names."""
    failures = "".join(expected_failures())
    checked = [s for s in SIGNATURES if f"[{s.partition('(')[0]}]" not in failures]
    assert len(checked) > 150
    assert [s for s in checked if differs(namespace, s)] == []


def test_expected_failures_have_reasons():
    """Each block of the list begins with a comment."""
    blocks = (FOLDER / "expected_failures.txt").read_text().strip().split("\n\n")
    assert blocks and all(block.startswith("# ") for block in blocks)
    assert all(line.startswith("array_api_tests/") for line in expected_failures())


def test_namespaces():
    x = pt.dvector("x")
    assert x.__array_namespace__() is standard
    assert x.__array_namespace__(api_version="2023.12") is standard
    assert xp.ones(2).__array_namespace__(api_version=None) is xp
    for array in (x, xp.ones(2)):
        with pytest.raises(ValueError, match=r"versions of the array API are .*2024.12"):
            array.__array_namespace__(api_version="1999.01")


def test_nothing_is_imported_before_it_is_used():
    code = (
        "import sys, phintys\n"
        "late = ('phintys.array_api', 'phintys.tensor.standard', 'phintys.tensor.fourier',\n"
        "        'phintys.tensor.numpy_protocols', 'phintys.tensor.numpy_functions')\n"
        "print([name for name in late if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# --------------------------------------------------------------------------------- values

SHAPES = [((0,), (1,)), ((2, 1), (3,))]
#: NumPy's functions under the names of the standard, which NumPy has since version 2
OLD_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "atan2": "arctan2", "bitwise_invert": "invert", "pow": "power",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}  # fmt: skip
#: where NumPy's result has another dtype, or its function raises
FLOATS = [dt for dt in DTYPES if np.dtype(dt).kind in "fc"]
ONLY_FLOATS = {*"divide reciprocal signbit copysign nextafter atan2 hypot logaddexp".split()}


def numpys(name):
    return getattr(np, OLD_NAMES.get(name, name))


def sample(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2 if dtype == "bool" else 5, shape)
    if np.dtype(dtype).kind in "fc":
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5, -1.5])
        values = np.where(rng.random(shape) < 0.4, rng.choice(special, shape), values + 0.25)
    return np.asarray(values, dtype)


def assert_same(found, expected, dtype=None):
    assert isinstance(found, Array)
    expected = np.asarray(expected, dtype)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    rtol = 1e-5 if expected.dtype in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose(found.value, expected, rtol=rtol, atol=rtol, equal_nan=True)


def is_defined(name, dtype, arity):
    """Whether the standard defines the function for the dtype, as far as NumPy does."""
    dtype = np.dtype(dtype)
    if name in (*ROUNDING, "round") and dtype.kind in "biu":
        return True
    if name in ONLY_FLOATS and dtype not in FLOATS:
        return False
    if dtype.kind == "b" and not name.startswith(
        ("bitwise", "logical", "equal", "not_equal", "is")
    ):
        return False
    try:
        with np.errstate(all="ignore"):
            found = numpys(name)(*[np.ones(1, dtype)] * arity)
    except TypeError:
        return False
    # NumPy computes functions of small integers in float16, which the standard does not have
    return dtype in FLOATS or found.dtype.kind != "f"


def cases(names, arity):
    """Functions with the dtypes that they are defined for, of which `FIRST` are not rest."""
    return [
        pytest.param(name, dtype, marks=[] if dtype in FIRST else [rest])
        for name in names
        for dtype in DTYPES
        if is_defined(name, dtype, arity)
    ]


@pytest.mark.parametrize("name, dtype", cases([*UNARY, *ROUNDING, "round"], 1))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unary(name, dtype):
    for shape in ((), (2, 3)):
        x = sample(dtype, shape)
        if name == "expm1" and dtype in ("complex64", "complex128"):
            x = np.where(np.isfinite(x), x, 1).astype(dtype)  # NumPy gives NaN for infinities
        keeps = name in (*ROUNDING, "round") and np.dtype(dtype).kind in "biu"
        assert_same(getattr(xp, name)(xp.asarray(x)), x if keeps else numpys(name)(x))


@pytest.mark.parametrize("name, dtype", cases(BINARY, 2))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_binary(name, dtype):
    """Of two arrays, and of an array and a Python number, which takes its dtype."""
    number = {"b": True, "i": 2, "u": 2, "f": 2.5, "c": 2.5 + 1j}[np.dtype(dtype).kind]
    function = getattr(xp, name)
    for a, b in SHAPES:
        x, y = sample(dtype, a), sample(dtype, b, 1)
        assert_same(function(xp.asarray(x), xp.asarray(y)), numpys(name)(x, y))
    x, typed = sample(dtype, (3,)), np.asarray(number, dtype)
    assert_same(function(xp.asarray(x), number), numpys(name)(x, typed))
    assert_same(function(number, xp.asarray(x)), numpys(name)(typed, x))


def test_expm1_of_complex_infinities():
    """Where the real part is infinite NumPy's expm1 is NaN; here it is exp(x) - 1."""
    x = np.array([complex(np.inf, 0), complex(-np.inf, np.inf), complex(-np.inf, np.nan), 1e-9j])
    found = xp.expm1(xp.asarray(x)).value
    assert found[0] == complex(np.inf, 0) and found[1] == found[2] == -1
    assert found[3] == np.expm1(x[3])


def test_floor_divide_of_infinities():
    x = xp.asarray([np.inf, -np.inf, 1.0, 1.0, np.inf, 7.0])
    y = xp.asarray([2.0, 2.0, np.inf, -np.inf, np.inf, -2.0])
    found = xp.floor_divide(x, y)
    assert_same(found, [np.inf, -np.inf, 0.0, -0.0, np.nan, -4.0])
    assert np.signbit(found.value).tolist()[2:4] == [False, True]


M = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
N = M.astype("int8")
C = M + 1j * M[::-1]
#: calls of functions of one or two arrays, on NumPy as well; of equal names unless given
CALLS = [
    ("all", lambda f, x: f(x, axis=1), M),
    ("any", lambda f, x: f(x, keepdims=True), M),
    ("argmax", lambda f, x: f(x, axis=1), M),
    ("argmin", lambda f, x: f(x, axis=0, keepdims=True), M),
    ("argsort", lambda f, x: f(x, axis=0), M),
    ("broadcast_to", lambda f, x: f(x, (4, 2, 3)), M),
    ("broadcast_arrays", lambda f, x: f(x, x[:1])[1], M),
    ("concat", lambda f, x: f([x, x], axis=1), M),
    ("concat", lambda f, x: f([x, x], axis=None), M),
    ("count_nonzero", lambda f, x: f(x, axis=1), M),
    ("cumulative_sum", lambda f, x: f(x, axis=1, include_initial=True), N),
    ("cumulative_prod", lambda f, x: f(x, axis=0), M),
    ("diff", lambda f, x: f(x, axis=0, prepend=x), M),
    ("expand_dims", lambda f, x: f(x, axis=1), M),
    ("flip", lambda f, x: f(x, axis=1), M),
    ("isfinite", lambda f, x: f(x), C),
    ("matmul", lambda f, x: f(x, x.T), M),
    ("matrix_transpose", lambda f, x: f(x), M),
    ("max", lambda f, x: f(x, axis=(0, 1)), M),
    ("mean", lambda f, x: f(x, axis=0), M),
    ("meshgrid", lambda f, x: f(x[0, :], x[1, :], indexing="xy")[1], M),
    ("min", lambda f, x: f(x, axis=1), M),
    ("moveaxis", lambda f, x: f(x, 0, 1), M),
    ("nonzero", lambda f, x: f(x)[1], M),
    ("permute_dims", lambda f, x: f(x, (1, 0)), M),
    ("prod", lambda f, x: f(x), N),
    ("repeat", lambda f, x: f(x, 2, axis=1), M),
    ("reshape", lambda f, x: f(x, (3, -1)), M),
    ("roll", lambda f, x: f(x, (1, 2), axis=(0, 1)), M),
    ("searchsorted", lambda f, x: f(x[0, 1:], x, side="right"), M),
    ("sort", lambda f, x: f(x, axis=1), M),
    ("squeeze", lambda f, x: f(x[:1, :], axis=0), M),
    ("stack", lambda f, x: f([x, x], axis=2), M),
    ("std", lambda f, x: f(x, axis=1, correction=0.5), M),
    ("sum", lambda f, x: f(x, axis=0), N),
    ("sum", lambda f, x: f(x, axis=0), C),
    ("take", lambda f, x: f(x, [1, 1], axis=1), M),
    ("tensordot", lambda f, x: f(x, x, axes=((0,), (0,))), M),
    ("tile", lambda f, x: f(x, (2, 1)), M),
    ("tril", lambda f, x: f(x, k=-1), M),
    ("triu", lambda f, x: f(x, k=1), M),
    ("unique_values", lambda f, x: f(x), M // 2),
    ("unique_all", lambda f, x: f(x).indices, M // 2),
    ("unique_inverse", lambda f, x: f(x).inverse_indices, M // 2),
    ("unique_counts", lambda f, x: f(x).counts, M // 2),
    ("unstack", lambda f, x: f(x, axis=1)[2], M),
    ("var", lambda f, x: f(x, axis=0, correction=1), M),
    ("vecdot", lambda f, x: f(x, x, axis=-1), C),
    ("where", lambda f, x: f(x > 2, x, 0.5), M),
    ("linalg.cholesky", lambda f, x: f(x @ x.T), M),
    ("linalg.eig", lambda f, x: f(x @ x.T).eigenvalues * 1j, M[:2]),
    ("linalg.eigh", lambda f, x: f(x @ x.T).eigenvalues, M),
    ("linalg.eigvals", lambda f, x: f(x @ x.T) * 1j, M[:2]),
    ("linalg.eigvalsh", lambda f, x: f(x @ x.T), M),
    ("linalg.qr", lambda f, x: f(x, mode="complete").R ** 2, M),
    ("linalg.svd", lambda f, x: f(x).S, M),
    ("linalg.svdvals", lambda f, x: f(x), M),
    ("linalg.det", lambda f, x: f(x @ x.T), M),
    ("linalg.inv", lambda f, x: f(x @ x.T), M),
    ("linalg.slogdet", lambda f, x: f(x @ x.T).logabsdet, M),
    ("linalg.solve", lambda f, x: f(x @ x.T, x), M),
    ("linalg.cross", lambda f, x: f(x, x[::-1, :]), M),
    ("linalg.diagonal", lambda f, x: f(x, offset=1), M),
    ("linalg.matrix_norm", lambda f, x: f(x), M),
    ("linalg.matrix_norm", lambda f, x: f(x, ord=-1), M),
    ("linalg.matrix_norm", lambda f, x: f(x, ord=np.inf, keepdims=True), M),
    ("linalg.matrix_norm", lambda f, x: f(x, ord="nuc"), M),
    ("linalg.matrix_power", lambda f, x: f(x @ x.T, 3), M),
    ("linalg.matrix_rank", lambda f, x: f(x, rtol=0.9), M),
    ("linalg.pinv", lambda f, x: f(x), M),
    ("linalg.outer", lambda f, x: f(x[0, :], x[1, :]), M),
    ("linalg.trace", lambda f, x: f(x), N),
    ("linalg.vector_norm", lambda f, x: f(x, axis=1, ord=3), M),
    ("linalg.vector_norm", lambda f, x: f(x), C),
    ("fft.fft", lambda f, x: f(x), M),
    ("fft.ifft", lambda f, x: f(x, n=5, axis=0), C),
    ("fft.fftn", lambda f, x: f(x, norm="ortho"), C),
    ("fft.ifftn", lambda f, x: f(x, s=(3, 2), axes=(0, 1)), C),
    ("fft.rfft", lambda f, x: f(x, n=4), M),
    ("fft.irfft", lambda f, x: f(x), C),
    ("fft.rfftn", lambda f, x: f(x), M),
    ("fft.irfftn", lambda f, x: f(x, axes=(1, 0)), C),
    ("fft.hfft", lambda f, x: f(x), C),
    ("fft.ihfft", lambda f, x: f(x, norm="forward"), M),
    ("fft.fftshift", lambda f, x: f(x, axes=1), M),
    ("fft.ifftshift", lambda f, x: f(x), M),
]
#: calls of functions without array arguments
CREATION = [
    ("arange", lambda f: f(2, 11, 3)),
    ("arange", lambda f: f(3)),
    ("arange", lambda f: f(0.5, 2.0, 0.25, dtype="float32")),
    ("eye", lambda f: f(2, 3, k=1)),
    ("full", lambda f: f((2, 2), 7)),
    ("linspace", lambda f: f(0, 1, num=4, endpoint=False)),
    ("ones", lambda f: f((2, 0))),
    ("zeros", lambda f: f(3, dtype="int8")),
    ("fft.fftfreq", lambda f: f(5, d=0.5)),
    ("fft.rfftfreq", lambda f: f(4)),
]


def function_of(namespace, name):
    for part in name.split("."):
        namespace = getattr(namespace, part, None)
    return namespace


@pytest.mark.parametrize(("name", "call", "x"), CALLS)
def test_function(name, call, x):
    reference = function_of(np, name)
    if reference is None:
        pytest.skip(f"NumPy {np.__version__} has no {name}")
    expected = call(reference, x)
    if name == "take":
        call = lambda f, x: f(x, xp.asarray([1, 1]), axis=1)  # noqa: E731
    assert_same(call(function_of(xp, name), xp.asarray(x)), expected)


@pytest.mark.parametrize(("name", "call"), CREATION)
def test_creation(name, call):
    assert_same(call(function_of(xp, name)), call(function_of(np, name)))


def test_unique_counts_each_nan():
    found = xp.unique_all(xp.asarray([np.nan, 1.0, np.nan, 1.0]))
    assert found.counts.value.tolist() == [2, 1, 1]
    assert found.inverse_indices.value.tolist() == [1, 0, 2, 0]
    assert xp.unique_all(xp.ones((0,))).counts.shape == (0,)


def test_cross_takes_vectors_of_length_3():
    for shape in ((2, 4), (2, 2), (2, 1)):
        with pytest.raises(ValueError, match="length"):
            xp.linalg.cross(xp.ones(shape), xp.ones(shape))


def test_descending_order_is_stable():
    x = xp.asarray([1, 3, 1, 3])
    assert xp.argsort(x, descending=True).value.tolist() == [1, 3, 0, 2]
    assert xp.sort(x, descending=True).value.tolist() == [3, 3, 1, 1]


# ------------------------------------------------------------------------------ the array


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_operators(operator):
    dtype = "int8" if operator in ("and", "or", "xor", "lshift", "rshift") else "float32"
    values = np.array([[1, 2], [3, 1]], dtype)
    x, name = xp.asarray(values), f"__{operator}__"
    assert_same(getattr(x, name)(x), getattr(values, name)(values))
    if operator != "matmul":
        assert_same(getattr(x, name)(2), getattr(values, name)(np.asarray(2, dtype)))
    assert getattr(x, name)("text") is NotImplemented
    if operator not in COMPARISONS:
        reflected = f"__r{operator}__"
        assert_same(getattr(x, reflected)(x), getattr(values, reflected)(values))


def test_numbers_take_the_dtypes_of_arrays():
    """And raise where the dtype cannot hold them."""
    for dtype, number, wanted in [
        ("float32", 0.1, "float32"),
        ("float32", 1j, "complex64"),
        ("uint8", 3, "uint8"),
        ("int8", 0.5, "float64"),
    ]:
        x = xp.ones(2, dtype=dtype)
        assert (x * number).dtype == (number * x).dtype == wanted
        symbolic = standard.multiply(pt.vector("x", dtype=dtype), number)
        assert symbolic.dtype == wanted
        assert xp.result_type(x, number) == wanted
    with pytest.raises(OverflowError):
        xp.ones(2, dtype=xp.int8) + 300


def test_items():
    x = xp.reshape(xp.arange(12), (3, 4))
    n = x.value.copy()
    for key in [1, -1, (1, 2), slice(None, None, -1), (..., 1), (None, 2), (slice(1, 9), 0)]:
        assert_same(x[key], n[key])
    assert_same(x[x > 5], n[n > 5])
    assert_same(x[xp.asarray([2, 0]), 1], n[np.array([2, 0]), 1])
    x[1, 1:3] = 7
    x[x == 0] = -1
    x[-1] = xp.asarray([5, 5, 6, 6])
    n[1, 1:3], n[n == 0], n[-1] = 7, -1, [5, 5, 6, 6]
    assert_same(x, n)
    zero = xp.asarray(1.5)
    zero[...] = 2
    zero[xp.asarray(True)] = zero + 1
    assert float(zero) == 3.0 and zero.ndim == 0
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(TypeError, match="cannot be an element"):
        x[0] = 0.5


def test_conversions():
    assert int(xp.asarray(3)) == 3 and float(xp.asarray(2.5)) == 2.5
    assert bool(xp.asarray(True)) and complex(xp.asarray(1j)) == 1j
    assert [10, 20][xp.asarray(1)] == 20
    assert len(xp.ones((2, 3))) == 2 and [int(v) for v in xp.arange(2)] == [0, 1]
    for convert in (bool, int, float, complex):
        with pytest.raises(TypeError, match="Only 0-d arrays"):
            convert(xp.ones(2))
    with pytest.raises(TypeError, match="Only arrays of integers"):
        [10][xp.asarray(0.0)]
    with pytest.raises(TypeError):
        len(xp.asarray(1))
    with pytest.raises(TypeError):
        hash(xp.asarray(1))


def test_asarray():
    assert xp.asarray([1, 2.5]).dtype == "float64" and xp.asarray([[1], [2]]).dtype == "int64"
    assert xp.asarray(2**63).dtype == "uint64" and xp.asarray([]).dtype == "float64"
    assert xp.asarray([xp.asarray(1, dtype=xp.int8)]).dtype == "int8"
    values = np.arange(3)
    shared, copied = xp.asarray(values), xp.asarray(values, copy=True)
    values[0] = 9
    assert int(shared[0]) == 9 and int(copied[0]) == 0
    assert xp.asarray(shared, copy=False).value is shared.value
    for call in (
        lambda: xp.asarray([1], copy=False),
        lambda: xp.asarray(shared, dtype=xp.float32, copy=False),
        lambda: xp.zeros(2, device="gpu"),
        lambda: shared.to_device("gpu"),
        lambda: shared.T,
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match="made by asarray"):
        Array()


def test_other_libraries():
    """NumPy reads arrays, and both ways through DLPack; operators with its arrays are refused."""
    x = xp.arange(3)
    assert np.asarray(x).tolist() == [0, 1, 2]
    assert np.from_dlpack(x).tolist() == [0, 1, 2]
    assert_same(xp.from_dlpack(np.ones(2)), np.ones(2))
    assert x.__dlpack_device__() == (1, 0) and x.to_device("cpu") is x
    with pytest.raises(TypeError):
        np.ones(3) + x


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["integral"] == xp.int64
    assert info.dtypes(kind="unsigned integer").keys() == {"uint8", "uint16", "uint32", "uint64"}
    assert info.capabilities()["boolean indexing"]
    assert xp.finfo(xp.complex64).bits == 32 and xp.iinfo(xp.ones(1, dtype=xp.int8)).max == 127
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.ones(1), xp.float32)
    assert xp.isdtype(xp.float32, ("integral", "real floating"))
    with pytest.raises(ValueError, match="kinds of dtypes"):
        xp.isdtype(xp.float32, "number")


# -------------------------------------------------------------------------------- compiling


def test_compiled_once_for_all_lengths():
    """A function is compiled for dtypes, ranks and options, not for lengths, numbers, positions."""

    def use(n):
        x = xp.ones((n, 2))
        x[n - 1, 0] = n
        return xp.sum(xp.roll(xp.reshape(x[n - 2 :, :], (-1, 2)), n, axis=0) * (n + 0.5))

    use(3)
    before = _compiled.count
    assert float(use(7)) == 10 * 7.5
    assert _compiled.count == before


def test_settings_are_part_of_the_key():
    assert xp.zeros(2).dtype == "float64"
    with phintys.config.change_flags(floatX="float32"):
        assert xp.zeros(2).dtype == xp.asarray(1.5).dtype == "float32"
        assert xp.asarray(1j).dtype == "complex64"
    assert xp.zeros(2).dtype == "float64"


def test_nan_stays():
    """Functions are compiled as they are written: no rule makes ``x - mean(x)`` 0."""
    assert np.isnan(float(xp.std(xp.asarray(np.nan))))


def test_symbolic_functions_are_those_of_graphs():
    x = pt.matrix("x", dtype="float32")
    namespace = x.__array_namespace__()
    out = namespace.sum(namespace.concat([x, namespace.exp(x) * 2], axis=0), axis=0)
    found = phintys.function([x], out)(np.ones((2, 3), "float32"))
    np.testing.assert_allclose(found, np.full(3, 2 + 4 * np.e), rtol=1e-6)
    assert phintys.grad(out.sum(), x).type == x.type
