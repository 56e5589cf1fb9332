"""Tests marked ``widths`` run with vectors of the processor's own width, and of the two others.

``own_width`` takes a test of a marked module out, because it takes long or has nothing to do with
vectors.
"""

from __future__ import annotations

import pytest

from phintys.backends.llvm.target import current
from phintys.config import config


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = metafunc.definition.get_closest_marker
    if marked("widths") and not marked("own_width"):
        others = [bits for bits in (128, 256, 512) if bits != current().register_bits]
        ids = ["own", *(f"{bits}bits" for bits in others)]
        metafunc.parametrize("vector_bits", [0, *others], ids=ids, indirect=True)


@pytest.fixture(autouse=True)
def vector_bits(request: pytest.FixtureRequest):
    """The test runs under this setting of ``config.vector_bits``."""
    with config.change_flags(vector_bits=getattr(request, "param", 0)):
        yield
