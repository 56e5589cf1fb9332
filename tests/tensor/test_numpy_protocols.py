"""NumPy's ufuncs and functions on symbolic variables, enumerated from the tables and from NumPy."""

from __future__ import annotations

import contextlib
import operator

import numpy as np
import pytest
import scipy.special
from tensor_checks import assert_like, check, evaluate, symbols

import phintys.tensor as pt
from phintys.tensor.numpy_protocols import ACCUMULATIONS, REDUCTIONS, function_table, ufunc_table
from phintys.tensor.variable import TensorVariable

V = np.array([0.5, -1.5, 2.25])
W = np.array([1.5, 0.25, -2.0])
M = np.arange(6.0).reshape(2, 3) - 1.5
N = np.array([[3, 1, 2], [0, 5, 4]])

# --------------------------------------------------------------------------------- ufuncs

ARGUMENTS = {
    "matmul": (M, M.T),
    "matvec": (M, V),
    "vecmat": (V, M.T),
    "float_power": (np.abs(V), W),
    "power": (np.abs(V), W),
    **dict.fromkeys(("arccosh", "log", "log2", "log10", "log1p", "sqrt"), (np.abs(V) + 1,)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), (V / 4,)),
}


def arguments(ufunc):
    """Floats, or integers where the ufunc takes no floats."""
    if ufunc.__name__ in ARGUMENTS:
        return ARGUMENTS[ufunc.__name__]
    try:
        ufunc(*(V, W)[: ufunc.nin])
    except TypeError:
        return (np.array([1, 6, 4]), np.array([2, 3, 1]))[: ufunc.nin]
    return (V, W)[: ufunc.nin]


@pytest.mark.parametrize("ufunc", ufunc_table(), ids=lambda u: u.__name__)
def test_ufunc(ufunc):
    values = arguments(ufunc)
    inputs = symbols(values)
    expected = ufunc(*values)
    if ufunc.nout == 1:
        assert_like(evaluate(ufunc(*inputs), inputs, values), expected)
    else:
        for found, value in zip(evaluate(list(ufunc(*inputs)), inputs, values), expected):
            assert_like(found, value)


def test_ufuncs_of_complex_numbers():
    inputs, values, found, expected = [], [], [], []
    for ufunc in ufunc_table():
        given = [x + 1j * x[..., ::-1] for x in ARGUMENTS.get(ufunc.__name__, (V, W))[: ufunc.nin]]
        with contextlib.suppress(TypeError):  # NumPy has no form for them, or (of rint) the table
            known, variables = ufunc(*given), symbols(given)
            found.append(ufunc(*variables))
            expected.append(known)
            inputs += variables
            values += given
    for result, value in zip(evaluate(found, inputs, values), expected, strict=True):
        assert_like(result, value)
    assert len(found) > 40


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduce(name):
    ufunc = getattr(np, name)
    check(lambda x: ufunc.reduce(x), lambda x: ufunc.reduce(x), [M])
    check(lambda x: ufunc.reduce(x, axis=(0, 1)), lambda x: ufunc.reduce(x, axis=(0, 1)), [M])
    check(
        lambda x: ufunc.reduce(x, axis=1, keepdims=True),
        lambda x: ufunc.reduce(x, axis=1, keepdims=True),
        [M],
    )


@pytest.mark.parametrize("name", ACCUMULATIONS)
def test_accumulate(name):
    ufunc = getattr(np, name)
    check(lambda x: ufunc.accumulate(x), lambda x: ufunc.accumulate(x), [M])
    check(lambda x: ufunc.accumulate(x, axis=1), lambda x: ufunc.accumulate(x, axis=1), [M])


def test_outer():
    check(np.multiply.outer, np.multiply.outer, [V, M])


def test_ufuncs_of_scipy():
    check(scipy.special.gammaln, scipy.special.gammaln, [np.abs(V)])
    check(scipy.special.expit, scipy.special.expit, [V])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.add(x, 1, out=np.ones(3)), "does not take the argument out"),
        (lambda x: np.add(x, 1, where=np.array([True, False, True])), "phintys.tensor.switch"),
        (lambda x: np.add.at(x, 1, 2), "numpy.add.at .*x.i..inc"),
        (lambda x: np.add.reduce(x, initial=3.0), "argument initial"),
        (lambda x: np.subtract.reduce(x), "numpy.subtract.reduce"),
        (lambda x: np.add.reduceat(x, [0, 1]), "numpy.add.reduceat"),
        (lambda x: np.frexp(x), "numpy.frexp has no symbolic form"),
        (lambda x: scipy.special.airy(x), "scipy.special.airy has no symbolic form"),
        (lambda x: np.sum(x, out=np.ones(())), "numpy.sum .* argument out"),
        (lambda x: np.ones(3).__iadd__(x), "does not take the argument out"),
        (lambda x: np.round(x, 2), "numpy.round .* argument decimals"),
        (lambda x: np.reshape(x, (3, 1), order="F"), "numpy.reshape .* argument order"),
        (lambda x: np.pad(x, 1, mode="edge", other=2), "numpy.pad .* argument other"),
        (lambda x: np.asarray(x, float), "x is symbolic: .*eval"),
        (lambda x: np.array([x, 1.0], "int64"), "x is symbolic: .*eval"),
        (lambda x: np.copyto(np.ones(3), x), r"numpy.copyto .*x\[i\].set"),
    ],
)
def test_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call(pt.dvector("x"))


def test_defaults_may_be_given():
    check(lambda x: np.exp(x, out=None, where=True), np.exp, [V])
    check(lambda x: np.sum(x, axis=None, dtype=None, out=None), np.sum, [V])


class Foreign:
    """An operand with arithmetic of its own."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "foreign"


def test_operands_of_other_classes():
    x = pt.dvector("x")
    assert x + Foreign() == "foreign"
    with pytest.raises(TypeError):
        np.add(x, object())


def test_operators_with_arrays():
    """An array or NumPy scalar on either side gives a variable, and its dtype counts."""
    check(lambda x: np.float64(2) * x, lambda x: np.float64(2) * x, [V.astype("float32")])
    check(lambda x: V - x, lambda x: V - x, [W])
    check(lambda x: M @ x, lambda x: M @ x, [W])
    check(lambda x: operator.lt(V, x), lambda x: operator.lt(V, x), [W])
    check(lambda x: np.array(3.0) / x, lambda x: np.array(3.0) / x, [W])
    x = y = pt.dvector("x")
    x += V
    assert isinstance(x, TensorVariable) and x is not y


def test_arrays_of_variables():
    """Without a dtype an array of variables has the dtype object; as_tensor stacks its elements."""
    x, y = pt.dscalars("x", "y")
    both = np.array([x, y])
    assert both.dtype == object and both[1] is y and np.size([x, y]) == 2
    assert_like(evaluate(pt.as_tensor(both), [x, y], [1.0, 2.0]), [1.0, 2.0])


# ------------------------------------------------------------------------------ functions

#: One call for each function of the table (by its last name): a function of arrays, and the arrays.
CALLS = {
    "all": (lambda x: np.all(x > 0, axis=1), M),
    "allclose": (lambda x, y: np.allclose(x, y, atol=10.0), V, W),
    "amax": (lambda x: np.amax(x, 0), M),
    "amin": (lambda x: np.amin(x, 0), M),
    "angle": (np.angle, V + 1j * W),
    "any": (lambda x: np.any(x > 3, axis=0, keepdims=True), M),
    "append": (lambda x, y: np.append(x, y, axis=None), V, M),
    "argmax": (lambda x: np.argmax(x, axis=1), M),
    "argmin": (lambda x: np.argmin(x, 0), M),
    "argsort": (lambda x: np.argsort(x, axis=0), N),
    "argwhere": (np.argwhere, N),
    "around": (np.around, M),
    "astype": (lambda x: np.astype(x, np.float32), V),
    "atleast_1d": (np.atleast_1d, np.array(2.0)),
    "atleast_2d": (np.atleast_2d, V),
    "atleast_3d": (np.atleast_3d, M),
    "bincount": (lambda x: np.bincount(x, minlength=8), N[0]),
    "broadcast_arrays": (lambda x, y: np.broadcast_arrays(x, y)[0], V, M),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3)), V),
    "choose": (lambda x: np.choose(x, [V, W, V, W]), N[0]),
    "clip": (lambda x: np.clip(x, -1, a_max=1.0), V),
    "column_stack": (lambda x, y: np.column_stack([x, y]), V, M.T),
    "compress": (lambda x: np.compress(np.array([True, False, True]), x, axis=1), M),
    "concatenate": (lambda x, y: np.concatenate([x, y], axis=1), M, N * 1.0),
    "copy": (np.copy, V),
    "count_nonzero": (lambda x: np.count_nonzero(x, axis=1), N),
    "cov": (lambda x: np.cov(x, ddof=0), M),
    "cumprod": (lambda x: np.cumprod(x, axis=1), M),
    "cumsum": (lambda x: np.cumsum(x), M),
    "diag": (lambda x: np.diag(x, 1), M),
    "diagonal": (lambda x: np.diagonal(x, offset=1), M),
    "diff": (lambda x: np.diff(x, 2, axis=1), M),
    "dot": (np.dot, M, V),
    "dstack": (lambda x, y: np.dstack([x, y]), V, W),
    "empty_like": (lambda x: 0 * np.empty_like(x, dtype="int8"), V),
    "expand_dims": (lambda x: np.expand_dims(x, 1), V),
    "flatnonzero": (np.flatnonzero, N),
    "flip": (lambda x: np.flip(x, 1), M),
    "fliplr": (np.fliplr, M),
    "flipud": (np.flipud, M),
    "full_like": (lambda x: np.full_like(x, 3), V),
    "geomspace": (lambda x: np.geomspace(x, 8.0, num=4), np.array(1.0)),
    "histogram": (lambda x: np.histogram(x, bins=4)[0], M.ravel()),
    "hstack": (lambda x, y: np.hstack([x, y]), M, N * 1.0),
    "i0": (np.i0, V),
    "imag": (np.imag, V + 1j * W),
    "inner": (np.inner, M, V),
    "einsum": (lambda x, y: np.einsum("ij,ij->j", x, y), M, M),
    "kron": (np.kron, M, M),
    "interp": (lambda x, y: np.interp(x, np.arange(3.0), y), M, V),
    "isclose": (lambda x, y: np.isclose(x, y, rtol=3), V, W),
    "iscomplex": (np.iscomplex, np.array([1.0, 2j])),
    "isneginf": (np.isneginf, np.array([1.0, -np.inf])),
    "isposinf": (np.isposinf, np.array([1.0, np.inf])),
    "isreal": (np.isreal, np.array([1.0, 2j])),
    "ix_": (lambda x: np.ix_(x, x)[0], N[0]),
    "linspace": (lambda x: np.linspace(x, 3.0, num=4, endpoint=False), np.array(1.0)),
    "logspace": (lambda x: np.logspace(x, 3.0, 4), np.array(1.0)),
    "matrix_transpose": (lambda x: np.matrix_transpose(x), M),
    "max": (lambda x: np.max(x, axis=1, keepdims=True), M),
    "mean": (lambda x: np.mean(x, axis=(0, 1)), M),
    "meshgrid": (lambda x, y: np.meshgrid(x, y, indexing="ij")[1], V, W),
    "median": (lambda x: np.median(x, axis=1), M),
    "min": (np.min, M),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 1), M),
    "nan_to_num": (lambda x: np.nan_to_num(x, nan=1.0), np.array([np.nan, 2.0])),
    "nonzero": (lambda x: np.nonzero(x)[1], N),
    "ones_like": (lambda x: np.ones_like(x, dtype="int8"), V),
    "outer": (np.outer, V, W),
    "pad": (lambda x: np.pad(x, 2, constant_values=1.5), M),
    "percentile": (lambda x: np.percentile(x, 30.0, axis=0), M),
    "prod": (lambda x: np.prod(x, 1), M),
    "ptp": (lambda x: np.ptp(x, 0), M),
    "quantile": (lambda x: np.quantile(x, 0.3, axis=1, keepdims=True), M),
    "ravel": (np.ravel, M),
    "ravel_multi_index": (lambda x: np.ravel_multi_index((x, x), (4, 5)), N[0]),
    "real": (np.real, V + 1j * W),
    "repeat": (lambda x: np.repeat(x, 2, axis=1), M),
    "reshape": (lambda x: np.reshape(x, (3, -1)), M),
    "roll": (lambda x: np.roll(x, (1, 2), axis=(0, 1)), M),
    "round": (np.round, M),
    "searchsorted": (lambda x, y: np.searchsorted(x, y, side="right"), np.sort(V), M),
    "sinc": (np.sinc, V),
    "sort": (lambda x: np.sort(x, axis=0), N),
    "split": (lambda x: np.concatenate(np.split(x, 3, axis=1), axis=0), M),
    "squeeze": (lambda x: np.squeeze(x, axis=0), M[:1]),
    "stack": (lambda x, y: np.stack([x, y], axis=1), V, W),
    "std": (lambda x: np.std(x, axis=1, ddof=1), M),
    "sum": (lambda x: np.sum(x, axis=1, dtype="float32"), M),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 1), M),
    "take": (lambda x: np.take(x, [0, 4], axis=1, mode="wrap"), M),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.array([[2, 1], [0, 0]])), M),
    "tensordot": (lambda x, y: np.tensordot(x, y, axes=([1], [0])), M, M.T),
    "tile": (lambda x: np.tile(x, (2, 1)), M),
    "trace": (lambda x: np.trace(x, 1), M),
    "transpose": (lambda x: np.transpose(x, (1, 0)), M),
    "trapezoid": (lambda x: np.trapezoid(x, axis=0), M),
    "tril": (lambda x: np.tril(x, -1), M),
    "tril_indices_from": (lambda x: np.tril_indices_from(x, 1)[1], M),
    "triu": (lambda x: np.triu(x, 1), M),
    "triu_indices_from": (lambda x: np.triu_indices_from(x)[0], M),
    "unique": (lambda x: np.unique(x, return_inverse=True)[1], N // 2),
    "unravel_index": (lambda x: np.unravel_index(x, (2, 3))[1], N),
    "var": (lambda x: np.var(x, axis=0), M),
    "vdot": (np.vdot, V + 1j * W, V),
    "vstack": (lambda x, y: np.vstack([x, y]), V, M),
    "where": (lambda x, y: np.where(x > 0, x, y), V, W),
    "zeros_like": (lambda x: np.zeros_like(x), N),
}  # fmt: skip
S = np.array([[4.0, 1.0], [1.0, 3.0]])
#: The same for ``numpy.linalg``.
LINALG = {
    "cholesky": (lambda x: np.linalg.cholesky(x), S),
    "eig": (lambda x: np.linalg.eig(x)[0] * 1j, S),
    "eigh": (lambda x: np.linalg.eigh(x, "U").eigenvalues, S),
    "eigvals": (lambda x: np.linalg.eigvals(x) * 1j, S),
    "eigvalsh": (lambda x: np.linalg.eigvalsh(x), S),
    "qr": (lambda x: np.linalg.qr(x).R ** 2, S),
    "svd": (lambda x: np.linalg.svd(x, full_matrices=False).S, M),
    "svdvals": (lambda x: np.linalg.svdvals(x), M),
    "det": (lambda x: np.linalg.det(x), S),
    "inv": (lambda x: np.linalg.inv(x), S),
    "slogdet": (lambda x: np.stack(np.linalg.slogdet(x)), -S),
    "solve": (lambda x, y: np.linalg.solve(x, y), S, S),
    "tensorinv": (lambda x: np.linalg.tensorinv(x, ind=1), S),
    "tensorsolve": (lambda x, y: np.linalg.tensorsolve(x, y), S, S[0]),
    "cond": (lambda x: np.linalg.cond(x, 1), S),
    "cross": (lambda x, y: np.linalg.cross(x, y), M, N * 1.0),
    "diagonal": (lambda x: np.linalg.diagonal(x, offset=1), M),
    "lstsq": (lambda x, y: np.linalg.lstsq(x, y, rcond=0.1)[1], M.T, M.T),
    "matmul": (lambda x, y: np.linalg.matmul(x, y), M, M.T),
    "matrix_norm": (lambda x: np.linalg.matrix_norm(x, ord=1), M),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 3), S),
    "matrix_rank": (lambda x: np.linalg.matrix_rank(x, hermitian=True), S),
    "matrix_transpose": (lambda x: np.linalg.matrix_transpose(x), M),
    "multi_dot": (lambda x, y: np.linalg.multi_dot([x, y]), M, M.T),
    "norm": (lambda x: np.linalg.norm(x, axis=1, keepdims=True), M),
    "outer": (lambda x, y: np.linalg.outer(x, y), V, W),
    "pinv": (lambda x: np.linalg.pinv(x, 1e-9), M),
    "tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=1), M, M.T),
    "trace": (lambda x: np.linalg.trace(x, offset=-1), M),
    "vecdot": (lambda x, y: np.linalg.vecdot(x, y, axis=0), M, N * 1.0),
    "vector_norm": (lambda x: np.linalg.vector_norm(x, ord=1, axis=0), M),
}
#: Functions whose results are not tensors of the values of their arguments.
OF_TYPES = {"numpy.iscomplexobj", "numpy.isrealobj", "numpy.ndim", "numpy.result_type"}
OF_SHAPES = {"numpy.shape", "numpy.size"}


@pytest.mark.parametrize("name", sorted(function_table().keys() - OF_TYPES - OF_SHAPES))
def test_function(name):
    module, _, last = name.rpartition(".")
    own = module == "numpy.linalg"
    if not hasattr(np.linalg if own else np, last):
        pytest.skip(f"NumPy {np.__version__} has no {name}")
    call, *values = (LINALG if own else CALLS)[last]
    check(call, call, values)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize(
    "total", [np.cumsum, np.cumprod, np.add.accumulate, np.multiply.accumulate, np.sum, np.prod]
)
def test_dtypes_of_totals(total, dtype):
    """Those of NumPy: totals of small integers do not overflow."""
    check(total, total, [np.array([100, 3, 1, 100]).astype(dtype)])


def test_round_of_integers_and_complex_numbers():
    for x in (N, N > 2, V + 1j * W):
        check(np.round, lambda x: x if x.dtype == "bool" else np.round(x), [x])


@pytest.mark.parametrize(
    ("shift", "axis"), [((1, 2), 1), (1, (0, 1)), ((1, -1), (0, 0)), ((1, 2), None), (2, None)]
)
def test_roll(shift, axis):
    check(lambda x: np.roll(x, shift, axis), lambda x: np.roll(x, shift, axis), [M])
    with pytest.raises(ValueError):
        np.roll(pt.dmatrix(), (1, 2, 3), (0, 1))


@pytest.mark.parametrize("call", [np.size, lambda x, axis: np.split(x, 2, axis)])
def test_axes_out_of_range(call):
    for axis in (2, -3):
        with pytest.raises(ValueError, match="out of bounds for array of dimension 2"):
            call(pt.dmatrix(), axis)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"ord": 1},
        {"ord": 2},
        {"ord": "nuc"},
        {"ord": np.inf, "axis": 0},
        {"ord": "fro", "axis": (1, 0), "keepdims": True},
    ],
    ids=str,
)
def test_norm(given):
    check(lambda x: np.linalg.norm(x, **given), lambda x: np.linalg.norm(x, **given), [M])
    with pytest.raises(ValueError, match="no norm of the order 3"):
        np.linalg.norm(pt.dmatrix("x"), ord=3)
    with pytest.raises(ValueError, match="not of 3 axes of x"):
        np.linalg.norm(pt.dtensor3("x"), ord=1)


def test_functions_of_types_and_shapes():
    x = pt.matrix("x", dtype="float32")
    assert np.ndim(x) == 2
    assert np.isrealobj(x) and not np.iscomplexobj(x)
    assert np.result_type(x, np.float64) == np.float64
    assert_like(evaluate(np.shape(x), [x], [M.astype("float32")]), [2, 3])
    assert_like(evaluate(np.size(x, 1), [x], [M.astype("float32")]), 3)


def dispatched():
    """All functions of NumPy that call ``__array_function__``, by qualified name."""
    found = {}
    for module in (np, np.linalg, np.fft):
        for function in vars(module).values():
            if hasattr(function, "_implementation"):
                found[f"{function.__module__}.{function.__name__}"] = function
    return found


@pytest.mark.parametrize("name", sorted(dispatched().keys() - function_table().keys()))
def test_other_functions_are_refused(name):
    """NumPy's own code never sees a variable."""
    x = pt.dvector("x")
    with pytest.raises(TypeError, match=rf"{name} has no symbolic form: write \w+"):
        x.__array_function__(dispatched()[name], (TensorVariable,), (x,), {})


def test_every_function_of_the_table_exists_in_numpy():
    since_2 = {"numpy.astype", "numpy.matrix_transpose", "numpy.trapezoid"}
    since_2 |= {f"numpy.linalg.{name}" for name in LINALG}
    assert function_table().keys() - dispatched().keys() <= since_2
