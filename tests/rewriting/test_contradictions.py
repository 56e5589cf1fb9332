"""Contradictory known lengths: the error is raised where the program gets to the operation."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import OutOfRangeError, ShapeError
from phintys.tensor.join import Split
from phintys.tensor.reshape import Reshape

v = pt.vector("v")
i = pt.iscalar("i")
FOUR = pt.switch(pt.eq(i, i), 4, i) + i * 0  # known to rewriting alone
TABLE = pt.exp(pt.alloc(v, FOUR, 3))
THREE = pt.specify_shape(v, 3)
LATE_THREE, LATE_FOUR = pt.alloc(v[0], FOUR - 1), pt.alloc(v[1], FOUR)
TWICE = (pt.outer(LATE_THREE, LATE_FOUR) + pt.outer(LATE_FOUR, LATE_THREE)).sum()
RECTANGLE = pt.exp(pt.alloc(v[0], FOUR, 3))
BATCH = pt.exp(pt.alloc(v[0], 2, FOUR, 3))
SQUARE = pt.exp(pt.alloc(v[0], FOUR, FOUR))
MASK = pt.gt(THREE, 0)
FOUR_LENGTHS = pt.specify_shape(pt.cast(v, "int64"), (FOUR,))

WRONG = {
    "index": (TABLE[5].sum(), IndexError),
    "index of sum": (TABLE.sum(1)[5], IndexError),
    "positions": (TABLE.sum(1)[[5, 6]].sum(), IndexError),
    "written row": (pt.set_subtensor(TABLE[5], v).sum(), IndexError),
    "inner lengths": (pt.dot(THREE, pt.exp(pt.alloc(v[0], FOUR))), ShapeError),
    "lengths of products of batches": (pt.matmul(BATCH, BATCH).sum(), ShapeError),
    "inverse": (pt.linalg.inv(RECTANGLE).sum(), ShapeError),
    "factor": (pt.linalg.cholesky(RECTANGLE).sum(), ShapeError),
    "right sides": (pt.linalg.solve(SQUARE, THREE).sum(), ShapeError),
    "mask": (RECTANGLE[MASK].sum(), IndexError),
    "written mask": (pt.set_subtensor(RECTANGLE[MASK], 1.0).sum(), IndexError),
    "known shape": (pt.specify_shape(RECTANGLE, (5, 3)).sum(), ShapeError),
    "gradient of known shape": (
        phintys.grad(pt.specify_shape(RECTANGLE, (5, 3)).sum(), v).sum(), ShapeError
    ),
    "lengths of another rank": (Reshape(2)(RECTANGLE, FOUR_LENGTHS).sum(), ShapeError),
    "lengths of other pieces": (Split(2, 0)(RECTANGLE, FOUR_LENGTHS)[0].sum(), ShapeError),
    "dropped axis": (pt.squeeze(RECTANGLE, 0).sum(), (ShapeError, TypeError)),
    "last step": (
        phintys.scan(
            lambda a, b: a * b, [pt.alloc(v, FOUR - 4, 3)], [v], return_updates=False
        )[-1].sum(),
        IndexError,
    ),
    "too many steps": (
        phintys.scan(
            lambda a: a * 2, pt.alloc(v[0], FOUR), n_steps=9, return_updates=False
        ).sum(),
        ShapeError,
    ),
    "sides of a system": (
        pt.linalg.solve(pt.eye(FOUR), pt.zeros(FOUR - 1) + v[0]).sum(), ShapeError
    ),
    "gradient": (phintys.grad(TWICE, v).sum(), ShapeError),
    "value and gradient": (TWICE + phintys.grad(TWICE, v).sum(), ShapeError),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "JAX"])
def test_call_raises_the_error_of_the_program(name: str, mode: str) -> None:
    wrong, error = WRONG[name]
    f = phintys.function([v, i], wrong, mode=mode)
    with pytest.raises(error):
        f(np.ones(3), 4)


@pytest.mark.parametrize("name", WRONG)
def test_branch_that_is_not_taken_raises_nothing(name: str) -> None:
    wrong, error = WRONG[name]
    f = phintys.function([v, i], phintys.ifelse(i > 4, wrong, v[0]))
    assert f(np.ones(3), 4) == 1
    with pytest.raises(error):
        f(np.ones(3), 5)


def test_index_that_is_known_to_be_wrong_is_an_error_of_the_user() -> None:
    with pytest.raises(OutOfRangeError, match="Index 3 is out of range for axis 0"):
        THREE[3]
