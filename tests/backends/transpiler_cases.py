"""Graphs on which modes JAX and NUMBA are compared with the reference: rows and op families."""

from __future__ import annotations

import numpy as np

import phintys
import phintys.tensor as pt
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import Elemwise, elementwise
from phintys.tensor.reduce import CAReduce, ProdWithoutZeros
from phintys.tensor.type import TensorType

ROWS = [name for name in TABLE if not name.startswith("cast_")]
#: relative and absolute error allowed, by dtype of the result
TOLERANCE = {"float32": (2e-4, 2e-6), "complex64": (2e-4, 2e-6)}


def assert_same(found, expected, what=""):
    """Equal shapes, dtypes, and values up to rounding."""
    assert isinstance(expected, np.ndarray | np.generic)
    found = np.asarray(found)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), what
    rtol, atol = TOLERANCE.get(expected.dtype.name, (1e-10, 1e-12))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=str(what))


def compare(mode, inputs, outputs, values, names=None):
    """A function in ``mode`` gives what the reference gives."""
    expected = phintys.function(inputs, outputs, mode="PY", on_unused_input="ignore")(*values)
    found = phintys.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*values)
    assert len(found) == len(expected) == len(outputs)
    for k, (a, b) in enumerate(zip(found, expected)):
        assert_same(a, b, names[k] if names else outputs[k])


# --------------------------------------------------------------------------------- rows


def arity(op):
    """The number of arguments to test with."""
    return 3 if op.nin < 0 else op.nin


def accepts(name, dtype):
    """Whether a row is defined for a dtype."""
    op = TABLE[name]
    try:
        op.output_dtypes(*[dtype] * arity(op))
    except TypeError:
        return False
    return True


def arguments(name, dtype, count=5):
    """Arguments in the domain of a row."""
    op = TABLE[name]
    domain = op.facts.get("domain", (-5.0, 5.0))
    intervals = domain if isinstance(domain[0], tuple) else [domain] * arity(op)
    rng = np.random.default_rng(sum(map(ord, name)))
    found = [_converted(rng.uniform(*_inside(lo, hi), count), dtype) for lo, hi in intervals]
    if name == "polygamma":
        found[0] = np.arange(count).astype(dtype) if dtype != "bool" else found[0]
    return found


def _inside(lo, hi):
    lo = (min(hi, 5.0) - 10.0) if np.isinf(lo) else lo
    hi = lo + 8.0 if np.isinf(hi) else hi
    margin = 0.02 * (hi - lo)
    return lo + margin, hi - margin


def _converted(x, dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return x > 0
    return np.abs(np.round(x)).astype(dtype) if kind in "iu" else x.astype(dtype)


def row_graph(names, dtype):
    """Inputs, outputs and values of a function of all these rows."""
    inputs, outputs, values = [], [], []
    for name in names:
        given = arguments(name, dtype)
        variables = [TensorType(dtype, (None,))() for _ in given]
        inputs += variables
        values += given
        outputs.append(elementwise(name)(*variables))
    return inputs, outputs, values


# ------------------------------------------------------------------------------ families


def data(shape, dtype, seed=0):
    """Numbers of a dtype: small, positive and negative, some equal, some zero."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, shape) * (0.5 if np.dtype(dtype).kind == "f" else 1)
    return np.asarray(x != 0 if dtype == "bool" else x, dtype=dtype)


def reductions(x):
    """Reductions of a matrix over all axis arguments (one, if its dtype is not float64)."""
    out = []
    for axis in (None, 0, 1, (0, 1)) if x.type.dtype == "float64" else (0,):
        out += [pt.sum(x, axis), pt.prod(x, axis), pt.all(x, axis), pt.any(x, axis)]
        out += [pt.max(x, axis), pt.min(x, axis), pt.argmax(x, axis), pt.argmin(x, axis)]
    out += [pt.sum(x, ()), pt.max(x, 1, keepdims=True)]
    out += [ProdWithoutZeros(axis=0)(x), pt.max(x, 0, initial=-np.inf)]
    if x.type.dtype in ("int64", "bool"):
        out.append(CAReduce(TABLE["xor"], axis=1)(x))
    return out


def empty_reductions(x):
    """Those that are defined for an axis of length 0."""
    out = [pt.sum(x, 0), pt.prod(x, 0), pt.all(x, 0), pt.any(x, None), pt.max(x, 1)]
    return [*out, pt.max(x, 0, initial=-np.inf), pt.argmax(x, 1)]


def shuffles(x):
    """Axes of a (2, 3) matrix rearranged, tensors under other shapes."""
    row, column = x[:1], x[:, :1]
    return [
        x.T,
        x.dimshuffle("x", 1, "x", 0),
        pt.specify_shape(row, (1, 3)).dimshuffle(1),
        pt.specify_shape(x[:1, :1], (1, 1)).dimshuffle(),
        pt.specify_shape(column, (None, 1)) + x,
        x.T.reshape((x.shape[0], -1)),
        x.flatten(),
        x.reshape((-1,))[:1].reshape(()),
        x[0, 0].reshape((1, 1)),
        x.T.T.ravel() + 1,
        pt.shape(x),
        x.shape[0] * 2 + x.shape[1],
        pt.stack([x.shape[1], x.shape[0]]),
        pt.specify_shape(x, (2, None)).sum(),
    ]


def created(x):
    """Tensors made from lengths, which depend on the shape of ``x``."""
    n, m = x.shape[0], x.shape[1]
    dtype = x.type.dtype
    return [
        pt.zeros(x.shape, dtype=dtype) + pt.ones((n, 1), dtype=dtype),
        pt.alloc(x[0], n + 1, m),
        pt.full((m,), x[0, 0]),
        pt.zeros_like(x),
        pt.arange(n, m + 4, 2),
        pt.arange(m),
        pt.arange(m, dtype="float32"),
        pt.arange(0.0, 1.0, 0.25),
        pt.eye(n, m, k=1),
        pt.eye(m, n, k=-1, dtype="int32"),
        pt.linspace(0, 1, 5),
        pt.tri(n, m),
        pt.empty((n, 2)).shape,
        pt.one_hot(pt.arange(n), m),
    ]


def joined(x, y):
    """Tensors put together and taken apart, running sums."""
    pieces = pt.split(x, [1, x.shape[1] - 1], n_splits=2, axis=1)
    return [
        pt.concatenate([x, y, x], axis=0),
        pt.concatenate([x, y], axis=1),
        pt.concatenate([x, pt.zeros((1, x.shape[1]), dtype="float64")]),
        pt.stack([x, y], axis=1),
        pt.stack([x[0, 0], y[0, 0]]),
        *pieces,
        pt.cumsum(x, axis=0),
        pt.cumsum(x, axis=1),
        pt.cumsum(x),
        pt.cumprod(x, axis=1),
        pt.diff(x),
    ]


def basic_indices(x, i):
    """Parts of a (4, 5) matrix read, set and added to, by integers and slices."""
    out = [x[1], x[-1, 2], x[i], x[i, 1:], x[1:-1, ::2], x[::-1], x[:, ::-2], x[3:1], x[:100]]
    out += [x[x.shape[0] // 2 :], x[-2:, -1], x[..., 0]]
    value = pt.constant(np.array([2, 1, 0, 3, 1]), dtype="int8").astype(x.type.dtype)
    for key in (
        1,
        (slice(1, 3),),
        (slice(None), 0),
        (i, slice(0, 2)),
        (1, 1),
        slice(None, None, -2),
    ):
        part = x[key]
        out += [pt.set_subtensor(part, x[2, 2]), pt.inc_subtensor(part, x[2, 2])]
    out += [pt.set_subtensor(x[1:3], value), pt.inc_subtensor(x[0], value)]
    return out


def index_tensors(x, i, j):
    """The same with vectors of integers."""
    out = [x[i], x[:, i], x[i, j], x[i, 1:], x[j[:, None], i[None, :]], x[1:, i], x[i, 2]]
    out += [x[[0, 2, 2]], x[np.array([[1, 0], [2, 3]])], x[i[:0]]]
    for key in (i, (slice(None), i), (i, j), (i, 0)):
        part = x[key]
        out.append(pt.inc_subtensor(part, x[1, 1]))
        out.append(pt.inc_subtensor(part, pt.ones_like(part)))
    out.append(pt.inc_subtensor(x[1:, i], pt.ones((1, 1), dtype=x.type.dtype)))
    out.append(pt.set_subtensor(x[[0, 2]], x[:2]))
    return out


def products(x, y):
    """Products of (2, 3) and (2, 3) matrices and of their rows."""
    return [
        pt.dot(x, y.T),
        pt.dot(x.T, y),
        pt.dot(x, y[0]),
        pt.dot(x[0], y.T),
        pt.dot(x[0], y[1]),
        pt.dot(x[:, :0], y.T[:0]),
        pt.dot(x[::-1, ::2], y.T[::2]),
    ]


def softmaxes(x):
    """Functions that see elements through exponentials."""
    out = []
    for axis in (None, 0, -1):
        out += [pt.special.softmax(x, axis), pt.special.log_softmax(x, axis), pt.logsumexp(x, axis)]
    return out


def casts(x, names):
    """``x`` in other dtypes."""
    return [pt.cast(x, name) for name in names]


def broadcasts(x, row, column, number):
    """Elementwise functions of operands that broadcast, with several dtypes and arguments."""
    add, where = elementwise("add"), elementwise("switch")
    return [
        x + row,
        x * column + number,
        add(x, row, column, number),
        where(elementwise("gt")(x, row), column, number),
        Elemwise(TABLE["second"])(x, row),
        row + column,
        number + number,
    ]
