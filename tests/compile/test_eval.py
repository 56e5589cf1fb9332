"""`Variable.eval`: which functions it keeps."""

from __future__ import annotations

import pytest

import phintys.tensor as pt
from phintys.compile import function as function_module


@pytest.fixture
def compiled(monkeypatch):
    """How many functions have been compiled."""
    made = []
    original = function_module.function

    def counted(*args, **kwargs):
        made.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(function_module, "function", counted)
    return made


def test_other_givens_of_the_same_text_give_other_results():
    x, a = pt.dscalars("x", "a")
    z = x * 2
    assert z.eval({a: 2.0}, givens={x: a + 1}) == 6
    assert z.eval({a: 2.0}, givens={x: a + 100}) == 204
    assert z.eval({a: 2.0}, givens=[(x, a + 1000)]) == 2004


def test_equal_settings_share_a_function(compiled):
    x = pt.dscalar("x")
    y = x + 1
    for mode in (None, "FAST_COMPILE", None, "fast_compile"):
        assert y.eval({x: 1.0}, mode=mode) == 2
    assert len(compiled) == 2


def test_a_changed_default_mode_is_followed(compiled):
    from phintys.config import config

    y = pt.dscalar("x") + 1
    (x, _) = y.owner.inputs
    y.eval({x: 1.0})
    with config.change_flags(mode="FAST_COMPILE"):
        assert y.eval({x: 1.0}) == 2
    assert len(compiled) == 2
