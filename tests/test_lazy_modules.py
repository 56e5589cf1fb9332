"""Modules that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import phintys
from phintys.lazy import lazy_scipy_module


def test_modules_of_scipy_are_imported_on_first_use():
    script = """
        import sys
        from phintys.utils import lazy_scipy_module
        stats = lazy_scipy_module("stats")
        assert "scipy.stats" not in sys.modules
        assert stats.norm.cdf(0.0) == 0.5
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
    with pytest.raises(AttributeError, match="no_such_function"):
        _ = lazy_scipy_module("special").no_such_function


def test_modes_and_modules_are_attributes_of_compile():
    package = phintys.compile
    assert package.FAST_COMPILE is phintys.get_mode("FAST_COMPILE")
    assert package.maker.FunctionMaker is package.FunctionMaker
    for name in ("NO_MODE", "no_module"):
        with pytest.raises(AttributeError, match=name):
            getattr(package, name)


def test_ifelse_is_a_function_and_a_module():
    from phintys.ifelse import IfElse, ifelse

    x = phintys.tensor.dscalar("x")
    for make in (phintys.ifelse, ifelse):
        assert isinstance(make(x > 0, x, -x).owner.op, IfElse)
