"""What the tests of tensor ops share: both modes against NumPy, derivatives, batches."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

import phintys
from phintys.graph.vectorize import vectorize_graph
from phintys.tensor.shape import shape_tuple
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable

MODES = ("FAST_COMPILE", "FAST_RUN")
BACKENDS = ("FAST_COMPILE", "FAST_RUN", "C", "NUMBA", "JAX")
RTOL = {"float16": 1e-2, "float32": 2e-5, "complex64": 2e-5}


def symbols(values, static=False):
    """One variable per array; lengths known only with ``static``."""
    return [TensorType(v.dtype.name, v.shape if static else (None,) * v.ndim)() for v in values]


def compiled(mode, inputs, outputs):
    """A function in one of `BACKENDS`."""
    return phintys.function(inputs, outputs, mode=mode, on_unused_input="ignore")


def evaluate(outputs, inputs=(), values=(), mode="FAST_RUN"):
    """Values of one or several expressions."""
    f = phintys.function(list(inputs), outputs, mode=mode, on_unused_input="ignore")
    return f(*values)


def assert_like(found, expected, dtype=None):
    """Equal shape and dtype, and equal values up to rounding."""
    expected = np.asarray(expected, dtype=dtype)
    found = np.asarray(found)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    rtol = RTOL.get(expected.dtype.name, 1e-12)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, equal_nan=True)


def check(build, reference, values, dtype=None):
    """``build(*variables)`` gives what ``reference(*values)`` gives, in each mode."""
    check_all([("the only case", build, reference, values)], dtype)


def check_all(cases, dtype=None):
    """`check` of each of ``cases``; each mode compiles one function for all of them.

    A case is a name, which errors carry as a note, and the arguments of `check`.
    """
    variants = [v for case in cases for v in _variants(*case)]
    inputs = [x for v in variants for x in v.inputs]
    arguments = [a for v in variants for a in v.values]
    for mode in MODES:
        asked = [v.lengths if mode == "FAST_COMPILE" else None for v in variants]
        outputs = [[v.out, *(lengths or ())] for v, lengths in zip(variants, asked, strict=True)]
        found = iter(evaluate(list(itertools.chain(*outputs)), inputs, arguments, mode))
        for v, lengths in zip(variants, asked, strict=True):
            value = next(found)
            inferred = None if lengths is None else tuple(int(next(found)) for _ in lengths)
            with _noted(f"{v.name}, {mode}"):
                _assert_right(v, value, inferred, dtype)


class _Variant(NamedTuple):
    """One graph of a case of `check_all`, and what it gives."""

    name: str
    inputs: list
    values: list
    out: TensorVariable
    #: what ``infer_shape`` of the outermost node says; None if it says nothing, or is not asked
    lengths: list | None
    expected: np.ndarray


def _variants(name, build, reference, values):
    """Without known lengths, and with them."""
    values = [np.asarray(v) for v in values]
    with np.errstate(all="ignore"):
        expected = reference(*values)
    for static in (False, True):
        inputs = symbols(values, static)
        full_name = f"{name}, lengths {'known' if static else 'unknown'}"
        with _noted(full_name):
            out = build(*inputs)
            lengths = _inferred_shape(out) if static else None
        yield _Variant(full_name, inputs, values, out, lengths, expected)


def _inferred_shape(out):
    """The lengths that ``infer_shape`` of the outermost node finds; None if it finds none."""
    node = out.owner
    if node is None or node.op.infer_shape is None:
        return None
    shapes = [shape_tuple(x) if hasattr(x.type, "ndim") else () for x in node.inputs]
    found = node.op.infer_shape(node, shapes)[out.index]
    return None if found is None else list(found)


def _assert_right(variant, value, inferred, dtype):
    """The value has what the reference, the type of the result, and ``infer_shape`` say."""
    assert_like(value, variant.expected, dtype)
    assert value.dtype == variant.out.type.dtype
    static = zip(variant.out.type.shape, value.shape, strict=True)
    assert all(n in (None, m) for n, m in static)
    assert inferred in (None, value.shape), f"infer_shape says {inferred}"


@contextmanager
def _noted(text):
    """An error in the block carries this text as a note."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


def check_derivatives(build, values, mode="FAST_RUN"):
    """Pullback against finite differences, pushforward against the pullback."""
    values = [np.asarray(v, dtype="float64") for v in values]
    rng = np.random.default_rng(1)
    phintys.verify_grad(build, values, rng=rng, mode=mode)
    inputs = symbols(values)
    out = build(*inputs)
    u, *tangents = symbols([np.zeros((0,) * out.type.ndim), *values])
    pushed = phintys.pushforward(out, inputs, tangents)
    pulled = phintys.pullback(out, inputs, u)
    shape = evaluate(out, inputs, values, "FAST_COMPILE").shape
    weights = [rng.normal(size=shape), *(rng.normal(size=v.shape) for v in values)]
    forward, *backward = evaluate(
        [pushed, *pulled], [*inputs, u, *tangents], [*values, *weights], mode
    )
    left = np.sum(forward * weights[0])
    right = sum(np.sum(b * t) for b, t in zip(backward, weights[1:], strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)


def check_batched(build, values):
    """The vectorized graph gives what the items of a batch give one by one."""
    values = [np.asarray(v) for v in values]
    inputs = symbols(values)
    out = build(*inputs)
    batches = [np.stack([v, v[::-1] if v.ndim else v + 1]) for v in values]
    batched = symbols(batches)
    found = evaluate(
        vectorize_graph(out, dict(zip(inputs, batched, strict=True))), batched, batches
    )
    f = phintys.function(inputs, out, on_unused_input="ignore")
    assert_like(found, np.stack([f(*(b[i] for b in batches)) for i in range(2)]))
