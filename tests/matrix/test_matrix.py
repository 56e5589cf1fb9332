"""The generated matrix: op x dtype x shape kind x backend."""

from __future__ import annotations

import shutil

import matrix_run
import pytest
from matrix_blanks import BLANKS, blank_of
from matrix_cells import DTYPES, Cell
from tiers import rest

from phintys.scalar.op import TABLE

NEEDS = {
    "C": [pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")],
    "numba": [pytest.mark.needs("numba")],
    "jax": [pytest.mark.needs("jax")],
}
CHUNKS = [
    pytest.param(
        (backend, name),
        marks=[
            *NEEDS.get(backend, ()),
            *([] if matrix_run.is_first(backend, columns[0]) else [rest]),
        ],
        id=f"{backend}: {name}",
    )
    for backend in matrix_run.MODES
    for name, columns in matrix_run.chunks(backend).items()
]


@pytest.mark.parametrize("backend_and_chunk", CHUNKS)
def test_cells(backend_and_chunk):
    """Every cell is right, or is a blank with a reason; no blank for all versions is right."""
    backend, chunk = backend_and_chunk
    found = matrix_run.run(backend, matrix_run.chunks(backend)[chunk])
    blanks = {cell: blank_of(cell) for cell in found}
    wrong = {str(cell): why for cell, why in found.items() if why and blanks[cell] is None}
    assert not wrong
    right = [blank for cell, blank in blanks.items() if blank is not None and not found[cell]]
    stale = [blank for blank in right if blank.always]
    assert not stale, "these work: remove the blank"


def test_the_matrix_is_whole():
    """Every row of the scalar table, every dtype, every shape kind."""
    columns = matrix_run.all_columns()
    assert {c.name for c in columns} >= TABLE.keys()
    assert {c.dtype for c in columns} == set(DTYPES)
    kinds = {kind for c in columns for kind in c.kinds}
    assert kinds >= {"0-d", "empty", "length 1", "contiguous", "strided", "broadcast"}
    for backend in matrix_run.MODES:
        names = {c.name for c in matrix_run.columns(backend)}
        sampled = backend == "numba" and not matrix_run.FULL
        assert len(names) > len(TABLE) / 12 if sampled else names == {c.name for c in columns}
    on_numba = {f"{c.name} {c.dtype}" for c in matrix_run.columns("numba")}
    assert on_numba >= matrix_run.FIRST_ON_NUMBA


def test_every_blank_has_a_cell():
    cells = [
        Cell(c, kind, backend)
        for backend in matrix_run.MODES
        for c in matrix_run.all_columns()
        for kind in c.kinds
    ]
    for blank in BLANKS:
        assert any(blank.covers(c) for c in cells), blank
