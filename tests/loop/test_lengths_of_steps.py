"""Loops whose steps give results of lengths that nothing proves: the loop stays in machine code."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.graph.op import Op

NATIVE = pytest.mark.parametrize("mode", ["FAST_RUN", "C"])
COMPILED = pytest.mark.parametrize("mode", ["FAST_RUN", "C", "NUMBA", "FAST_COMPILE"])


class Reversed(Op):
    """An op of a user that says nothing of lengths."""

    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][::-1].copy()


def looped(step, *args, **kwargs):
    return phintys.scan(step, *args, return_updates=False, **kwargs)


def distance(a, b):
    """The edit distance of two vectors: each row is made by a loop over the row before."""

    def row(letter, before):
        def cell(j, left):
            changed = before[j] + pt.neq(letter, b[j])
            return pt.minimum(pt.minimum(before[j + 1], left) + 1, changed)

        first = before[0] + 1
        rest = looped(cell, sequences=pt.arange(b.shape[0]), outputs_info=first)
        return pt.concatenate([first[None], rest])

    return looped(row, sequences=a, outputs_info=pt.arange(b.shape[0] + 1))[-1, -1]


@COMPILED
def test_edit_distance(mode):
    a, b = pt.lvectors("a", "b")
    f = phintys.function([a, b], distance(a, b), mode=mode)
    sitting, kitten = ([ord(c) for c in word] for word in ("sitting", "kitten"))
    assert f(sitting, kitten) == 3
    assert f([1, 2, 3], [1, 2, 3]) == 0
    assert phintys.explain(f).python_ops == []


def ranges(k, x, **kwargs):
    """A state of as many elements as the sequence ``k`` says."""
    step = lambda n, s: (pt.arange(n) + s[0]).astype("float64")  # noqa: E731
    return looped(step, sequences=k, outputs_info=x, **kwargs)


@COMPILED
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("lengths, step, found", [([3, 4], 1, 4), ([3, 2, 3], 1, 2), ([1], 0, 1)])
def test_a_state_keeps_its_length_or_the_call_fails(mode, last, lengths, step, found):
    k, x = pt.lvector("k"), pt.dvector("x")
    out = ranges(k, x)
    f = phintys.function([k, x], out[-1] if last else out, mode=mode)
    assert phintys.explain(f).python_ops == []
    assert f([3, 3], [1.0, 2.0, 3.0])[..., -1].ravel()[-1] == 3
    text = f"The result of step {step} for output 0, the state x, of .* has shape \\({found},\\)"
    with pytest.raises(ShapeError, match=text):
        f(lengths, [1.0, 2.0, 3.0])


def part(r):
    """The first elements of a row, as many as its first one says."""
    return r[: r[0].astype("int64")]


STEPS = {
    "an op of a user": lambda r: Reversed()(pt.exp(r)) + 1,
    "a part": part,
    "two results": lambda r: [part(r), pt.exp(part(r)).sum()],
    "a mask": lambda r: r[r > 1] * 2,
    "several dtypes": lambda r: [pt.nonzero(r)[0], part(r).astype("float32"), r],
    "a matrix": lambda r: pt.outer(part(r), r),
}
ROWS = np.array([[2.0, 3.0, 0.5], [2.0, 0.5, 4.0], [2.0, 0.25, 8.0]])


@NATIVE
@pytest.mark.parametrize("name", STEPS)
def test_rows_of_unknown_lengths_are_collected(name, mode):
    m = pt.dmatrix("m")
    out = looped(STEPS[name], sequences=m)
    outputs = [*out] if isinstance(out, list) else [out]
    outputs += [v[-2:] for v in outputs] + [v.sum() for v in outputs]
    f = phintys.function([m], outputs, mode=mode)
    reference = phintys.function([m], outputs, mode="FAST_COMPILE")
    assert not any(text.startswith("Scan") for text in phintys.explain(f).python_ops)
    for rows in (ROWS, ROWS[:1], ROWS[:0]):
        for found, expected in zip(f(rows), reference(rows), strict=True):
            assert found.dtype == expected.dtype and found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-13)


@NATIVE
def test_only_the_last_rows_are_kept(mode):
    m = pt.dmatrix("m")
    f = phintys.function([m], looped(part, sequences=m)[-1], mode=mode)
    np.testing.assert_array_equal(f(ROWS), ROWS[-1, :2])


@NATIVE
def test_collected_rows_of_a_loop_that_ends_early(mode):
    m = pt.dmatrix("m")
    step = lambda r: (part(r), phintys.scan_module.until(r[1] < 1))  # noqa: E731
    out = looped(step, sequences=m)
    f = phintys.function([m], [out, out[-1]], mode=mode)
    found, last = f(ROWS)
    np.testing.assert_array_equal(found, ROWS[:2, :2])
    np.testing.assert_array_equal(last, ROWS[1, :2])


@COMPILED
def test_collected_rows_of_different_lengths_are_an_error(mode):
    m = pt.dmatrix("m")
    f = phintys.function([m], looped(part, sequences=m), mode=mode)
    text = (
        r"The result of step 1 for output 0 of .* has shape \(1,\); .* before it have shape \(2,\)"
    )
    with pytest.raises(ShapeError, match=text):
        f([[2.0, 5.0], [1.0, 5.0]])
