"""Loops applied to batches, by `vectorize_graph`."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import evaluate, symbols
from test_scan_derivatives import every_kind, of_matrices, scan, stopped, untraced, values

import phintys
import phintys.tensor as pt
from phintys import grad
from phintys.graph.traversal import ancestors
from phintys.graph.vectorize import vectorize_graph
from phintys.tensor.blockwise import Blockwise


def check_items(build, given, which):
    """The results for a batch of the inputs ``which`` are those of its items."""
    inputs = symbols(given)
    outputs = build(*inputs)
    outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
    batches = [np.stack([v, 0.7 * v]) if k in which else v for k, v in enumerate(given)]
    new = symbols(batches)
    replace = {inputs[k]: new[k] for k in which}
    new = [new[k] if k in which else v for k, v in enumerate(inputs)]
    found = vectorize_graph(list(outputs), replace)
    together = evaluate(found, new, batches, "FAST_COMPILE")
    for i in range(2):
        items = [b[i] if k in which else b for k, b in enumerate(batches)]
        expected = evaluate(list(outputs), inputs, items, "FAST_COMPILE")
        for a, b in zip(together, expected, strict=True):
            np.testing.assert_allclose(a[i] if a.ndim > b.ndim else a, b, rtol=1e-12)
    return found


def gradients(*inputs):
    return grad(sum((out**2).sum() for out in every_kind(*inputs)), list(inputs))


@pytest.mark.parametrize(
    "build, shapes",
    [
        (every_kind, [6, (), 3, ()]),
        (gradients, [6, (), 3, ()]),
        (of_matrices, [(3, 2), 3, (3, 3), (2, 3)]),
        (untraced, [3, (), ()]),
    ],
)
def test_every_combination(build, shapes):
    given = values(*shapes)
    for which in [*([k] for k in range(len(given))), range(len(given))]:
        found = check_items(build, given, which)
        assert not any(isinstance(v.owner and v.owner.op, Blockwise) for v in ancestors(found))


def test_a_condition_that_differs_between_items():
    """Only loops that stop at the same step are one array."""
    given = [np.array([-0.2, 0.1, 0.2, 0.5, 0.6]), *values((), ())]
    for which in ([1], [2], [0]):
        check_items(stopped, given, which)


def test_lengths_of_a_batch_that_broadcast():
    x, s0 = pt.tensor3("x", shape=(None, 1, None)), pt.dvector("s0")
    a, s = pt.dvector("a"), pt.dscalar("s")
    out = scan(lambda a, s: a + s, [a], [s])
    found = vectorize_graph(out, {a: x, s: s0})
    f = phintys.function([x, s0], found)
    xs = np.arange(6.0).reshape(2, 1, 3)
    expected = np.cumsum(xs, axis=2) + np.array([1.0, 2, 3, 4])[:, None]
    np.testing.assert_array_equal(f(xs, [1.0, 2, 3, 4]), expected)


def test_numbers_of_steps_in_a_batch():
    n, ns, s0 = pt.lscalar("n"), pt.lvector("ns"), pt.dscalar("s0")
    last = scan(lambda s: 2 * s, outputs_info=[s0], n_steps=n)[-1]
    f = phintys.function([ns, s0], vectorize_graph(last, {n: ns}), mode="FAST_COMPILE")
    np.testing.assert_array_equal(f([3, 3], 1.0), [8, 8])
    np.testing.assert_array_equal(f([1, 2], 1.0), [2, 4])
