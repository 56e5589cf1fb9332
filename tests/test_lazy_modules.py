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


def test_paths_of_linkers_import_no_backend():
    """Programs ask which linker a mode has where jax and numba are not installed."""
    script = """
        import sys
        sys.modules["jax"] = sys.modules["numba"] = None  # imports of them fail
        import phintys
        from phintys.link.c.type import CType
        from phintys.link.jax import JAXLinker
        from phintys.link.jax.linker import JAXLinker as same
        from phintys.link.mlx.linker import MLXLinker
        from phintys.link.numba import NumbaLinker
        from phintys.link.pytorch.linker import PytorchLinker
        assert JAXLinker is same
        assert "phintys.backends.jax" not in sys.modules
        assert "phintys.backends.numba" not in sys.modules
        linker = phintys.get_mode("FAST_RUN").linker
        classes = JAXLinker, NumbaLinker, MLXLinker, PytorchLinker, CType
        assert not isinstance(linker, classes)
        assert not isinstance(phintys.tensor.dvector("x").type, CType)
        try:
            phintys.link.jax.jax_funcify
        except phintys.errors.CompilerError as exc:
            assert "needs the package jax" in str(exc)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


@pytest.mark.needs("numba")
def test_paths_of_linkers_have_the_names_of_their_backend():
    import phintys.link.numba

    from phintys.backends.numba import numba_funcify

    assert phintys.link.numba.numba_funcify is numba_funcify
    assert phintys.link.numba.dispatch.numba_funcify is numba_funcify
