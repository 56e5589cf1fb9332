"""Arguments that `lstsq` refuses."""

from __future__ import annotations

import pytest

import phintys.tensor as pt


def test_a_vector_for_the_matrix_is_named() -> None:
    with pytest.raises(ValueError, match="lstsq takes matrices for x; v has 1 dim"):
        pt.linalg.lstsq(pt.dvector("v"), pt.dvector())
