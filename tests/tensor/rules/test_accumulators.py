"""Rules on reductions keep the dtypes of accumulator and result."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode

#: expressions of a matrix, a vector and a number, to be summed or multiplied along the last axis
TERMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fill": lambda x, v, s: pt.alloc(s, v.shape[0]),
    "written": lambda x, v, s: pt.set_subtensor(v[:], s),
    "vector": lambda x, v, s: pt.stack([s, s, s + s, s]),
    "length 1": lambda x, v, s: v[:, None],
    "factor": lambda x, v, s: s * v,
    "negated": lambda x, v, s: pt.neg(v + 1),
    "nested": lambda x, v, s: x,
}
DTYPES = ("bool", "int8", "int32", "int64", "float32", "float64")
#: products of these overflow in int32; halves are lost if terms, not sums, become integers
VALUES = {
    "i": [120, -77, 101, 55, 99, 3],
    "f": [120.5, -77.25, 1.5, 0.5, 99.75, 3.5],
    "b": [1, 0, 1, 1, 1, 0],
}


def _reduced(reduce: Any, term: str, x: Any, v: Any, s: Any, **dtypes: str) -> Any:
    out = reduce(TERMS[term](x, v, s), axis=-1, **dtypes)
    return reduce(out, axis=-1, **dtypes) if term == "nested" else out


@cache
def case(term, given):
    """Inputs, outputs for each dtype of result and accumulator, arguments, expected values."""
    v, s = pt.vector("v", dtype=given), pt.scalar("s", dtype=given)
    x = pt.matrix("x", dtype=given)
    outputs = []
    for reduce, out, acc in itertools.product((pt.sum, pt.prod), DTYPES, DTYPES):
        try:
            outputs.append(_reduced(reduce, term, x, v, s, dtype=out, acc_dtype=acc))
        except TypeError:
            continue  # the accumulator is narrower than the input
    assert outputs
    values = np.array(VALUES[np.dtype(given).kind], given)
    arguments = (np.stack([values, values]), values, values[0])
    f = phintys.function([x, v, s], outputs, mode=Mode("py", None), on_unused_input="ignore")
    return [x, v, s], outputs, arguments, f(*arguments)


@pytest.mark.parametrize("mode", few(["LLVM", "PY", "C", "JAX"], "LLVM", "PY"))
@pytest.mark.parametrize("given", few(DTYPES, "bool", "int8", "float32"))
@pytest.mark.parametrize("term", TERMS)
def test_accumulators(term, given, mode):
    """Rewritten, on each backend, as without rewriting in NumPy."""
    inputs, outputs, arguments, expected = case(term, given)
    f = phintys.function(inputs, outputs, mode=mode, on_unused_input="ignore")
    for found, right, y in zip(f(*arguments), expected, outputs, strict=True):
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found, right, rtol=1e-5, err_msg=str(y.owner.op))


@pytest.mark.parametrize("mode", ["LLVM", "PY", "C"])
def test_functions_of_stacked_tensors_are_added_in_the_accumulator(mode):
    x, y, z = pt.fvectors("x", "y", "z")
    out = (pt.stack([x, y, z]) * 2).sum(axis=0)
    whole = (pt.stack([x, y, z], axis=1) * 2).sum()
    f = phintys.function([x, y, z], [out, whole], mode=mode)
    found = f(*np.array([[1e8, 1.5e38], [1, 1.5e38], [-1e8, -1.5e38]], "float32"))
    np.testing.assert_array_equal(found[0], np.array([2, 3e38], "float32"))
    np.testing.assert_array_equal(found[1], np.float32(3e38))
