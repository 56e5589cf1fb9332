"""Loops that write parts of their states: in the memory of these, with the reference's values."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from phintys.ifelse import ifelse
from tiers import few, rest

import phintys
import phintys.tensor as pt
from phintys.lowering.in_place import runs_in_place
from phintys.lowering.program import Loop, Program

v, A, at, n = pt.dvector("v"), pt.dmatrix("A"), pt.lvector("at"), pt.lscalar("n")
put, add = pt.set_subtensor, pt.inc_subtensor


def steps(step: Any, state: Any, first: int = 0) -> Any:
    """The states after a loop over the positions from ``first`` on."""
    found = phintys.scan(
        step, sequences=pt.arange(first, n), outputs_info=state, return_updates=False
    )
    return [rows[-1] for rows in found] if isinstance(found, list) else found[-1]


def inner(step: Any, state: Any) -> Any:
    return steps(step, state, 1)


def exchanged(i, x, y):
    return put(x[i], y[i - 1]), put(y[i], x[i - 1] + 1)


def running_sums(x, row):
    return inner(lambda j, r: put(r[j], r[j - 1] + x[j]), row)


#: what a loop writes, and whether its only, or first, state is updated in its memory
FORMS: dict[str, tuple[Any, bool]] = {
    "element": (steps(lambda i, x: put(x[i], x[i] + 1.0), v), True),
    "addition": (steps(lambda i, x: add(x[i], 2.0), v), True),
    "of neighbours": (steps(lambda i, x: put(x[i], x[i - 1] * x[i - 2]), v, 2), True),
    "slice": (steps(lambda i, x: put(x[i - 1 : i + 1], x[i - 2 : i] * 0.5 + 1), v, 2), True),
    "slice of the slice before": (steps(lambda i, x: put(x[1:], x[:-1] * 0.5 + i), v), False),
    "addition of the slice before": (steps(lambda i, x: add(x[1:], x[:-1] * 0.5), v), False),
    "reversed": (steps(lambda i, x: put(x[:], x[::-1] * 0.5), v), False),
    "sum of a prefix": (steps(lambda i, x: put(x[i], (x[:i] * A[i, :i]).sum()), v, 1), True),
    "maximum of a prefix": (steps(lambda i, x: put(x[i], x[:i].max() + x[i]), v, 1), True),
    "softmax of a suffix": (
        steps(lambda i, x: put(x[i - 1 :], pt.special.softmax(x[i - 1 :])), v, 1),
        True,
    ),
    "and a sum before": (
        steps(lambda i, x, s: (put(x[i], x[i] * 0.5), s + x.sum()), [v, pt.zeros(())]),
        True,
    ),
    "two elements": (steps(lambda i, x: put(put(x[i], x[i - 1])[i - 1], x[i]), v, 1), True),
    "row": (steps(lambda i, X: put(X[i], X[i - 1] * 0.5 + 1), A, 1), True),
    "column": (steps(lambda i, X: put(X[:, i], X[:, i - 1] * 0.5 + X[:, 0]), A, 1), True),
    "row of a column": (steps(lambda i, X: put(X[i], X[:, i] * 0.5), A), True),
    "block": (
        steps(lambda i, X: put(X[i - 1 : i + 1, :2], X[i - 1 : i + 1, -2:] * 0.5), A, 1),
        True,
    ),
    "elimination": (
        steps(lambda k, X: add(X[k + 1 :, k:], -X[k + 1 :, k][:, None] * X[k, k:] / X[k, k]), A),
        True,
    ),
    "positions": (steps(lambda i, x: put(x[at], x[at] * 0.5 + x[i]), v), True),
    "repeated positions": (steps(lambda i, x: add(x[at % 3], x[at] * 0.5 + x[i]), v), True),
    "positions in the state": (
        steps(lambda i, x: put(x[pt.cast(x[:2], "int64") % 4], x[i] * 0.5), v),
        True,
    ),
    "exchanged elements": (
        steps(lambda i, x: put(x[pt.stack([i, i - 1])], x[pt.stack([i - 1, i])]), v, 1),
        True,
    ),
    "one of two branches": (
        steps(lambda i, x: ifelse(x[i] > 0.5, put(x[i], x[i] * 0.5), x), v),
        True,
    ),
    "two branches": (
        steps(lambda i, x: ifelse(x[i] > 0.5, put(x[i], x[i - 1]), put(x[i], x[i] + 1)), v),
        True,
    ),
    "two states": (steps(exchanged, [v, v * 2], 1), True),
    "exchanged states": (steps(lambda i, x, y: (put(y[i], x[i]), put(x[i], 0.5)), [v, v]), True),
    "nested": (
        inner(lambda i, X: inner(lambda j, X: put(X[i, j], X[i - 1, j] + X[i, j - 1]), X), A),
        True,
    ),
    "row by a loop": (inner(lambda i, X: put(X[i], running_sums(X[i - 1], X[i])), A), True),
    "product": (steps(lambda i, x: put(x[i], pt.dot(A[i], x) * 0.1), v), True),
}
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def arguments(size: int) -> list[Any]:
    rng = np.random.default_rng(size)
    return [rng.random(size), rng.random((size, size)), rng.integers(0, size, 4), size]


def listed(name: str) -> list[Any]:
    outputs, _ = FORMS[name]
    return outputs if isinstance(outputs, list) else [outputs]


def compared(outputs: Any, mode: str) -> None:
    """Compare with the reference, for some lengths."""
    fast, slow = (
        phintys.function([v, A, at, n], outputs, mode=m, on_unused_input="ignore")
        for m in (mode, "FAST_COMPILE")
    )
    for size in (4, 9):
        given = arguments(size)
        for found, expected in zip(fast(*given), slow(*given), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", FORMS)
def test_values(name: str) -> None:
    compared(listed(name), "FAST_RUN")


@rest
@needs_compiler
@pytest.mark.parametrize("name", FORMS)
def test_values_in_c(name: str) -> None:
    compared(listed(name), "C")


@pytest.mark.parametrize("name", few(FORMS, "of neighbours", "elimination", "nested"))
def test_gradients(name: str) -> None:
    cost = sum((x**2).sum() for x in listed(name))
    compared(phintys.grad(cost, [v, A], disconnected_inputs="ignore"), "FAST_RUN")


def in_place(program: Program, old: Any, new: Any) -> bool:
    return runs_in_place(program, old, new, in_place)


@pytest.mark.parametrize("name", FORMS)
def test_memory(name: str) -> None:
    """A form whose first state is not updated in its memory copies it at each step."""
    outputs, expected = FORMS[name]
    f = phintys.function([v, A, at, n], outputs, on_unused_input="ignore")
    (loop,) = (step for step in f.program.steps if isinstance(step, Loop))
    arrays = [k for k, (_, final) in enumerate(loop.state) if final.ndim]
    body = loop.body
    assert in_place(body, body.inputs[arrays[0]], body.outputs[arrays[0]]) == expected


def test_gradients_keep_no_states() -> None:
    """What the gradient needs of a state that is overwritten is kept: an element of each step."""
    for step in (
        lambda i, x: put(x[i], pt.tanh(x[i - 1])),
        lambda i, x: add(x[i], pt.sin(x[i - 1]) * x[i]),
    ):
        g = phintys.grad((steps(step, v, 1) ** 2).sum(), v)
        f = phintys.function([v, n], g)
        sizes = [d.substitute({}) for d in f.program.storages]
        lengths = [size.symbols() for size in sizes]
        assert all(len(found) <= 1 for found in lengths), sizes


def test_a_loop_of_no_steps_has_no_last_state() -> None:
    f = phintys.function([v, n], steps(lambda i, x: put(x[i], 1.0), v))
    np.testing.assert_array_equal(f([2.0, 3.0], 1), [1, 3])
    with pytest.raises(IndexError, match=r"no steps has no last row; phintys\.foldl"):
        f([2.0], 0)
