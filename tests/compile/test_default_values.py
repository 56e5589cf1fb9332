"""Default values of inputs."""

from __future__ import annotations

import pytest

import phintys
import phintys.tensor as pt


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("cell", [lambda s: s, lambda s: s.container])
def test_a_shared_variable_is_a_default(mode, cell):
    x, s = pt.dscalar("x"), phintys.shared(3.0)
    f = phintys.function([phintys.In(x, value=cell(s))], x * 2, mode=mode)
    assert f() == 6.0
    assert f(4.0) == 8.0
    s.set_value(5.0)
    assert f() == 10.0
