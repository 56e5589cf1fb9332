"""What tests/conftest.py and pyproject.toml set up for all tests: warnings, missing packages."""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest


def warn(module: str, message: str = "text", category: type[Warning] = RuntimeWarning) -> None:
    warnings.warn_explicit(message, category, "file.py", 1, module)


@pytest.mark.parametrize(
    "module", ["phintys.tensor.math", __name__, "tensor_checks", "tests.fuzz.fuzz_run", "<string>"]
)
def test_a_warning_at_a_line_of_ours_is_an_error(module):
    for category in (RuntimeWarning, DeprecationWarning, FutureWarning, UserWarning):
        with pytest.raises(category):
            warn(module, category=category)


@pytest.mark.parametrize("module", ["numpy.linalg", "jax._src.core", "importlib._bootstrap"])
@pytest.mark.parametrize("category", [RuntimeWarning, DeprecationWarning, UserWarning])
def test_a_warning_at_a_line_of_another_package_is_none(module, category):
    with warnings.catch_warnings(record=True):
        warn(module, category=category)


def test_flags_of_blas_are_no_errors():
    warn("phintys.tensor.math", "invalid value encountered in matmul")
    with pytest.raises(RuntimeWarning):
        warn("phintys.tensor.math", "invalid value encountered in log")


@pytest.mark.needs("numpy", "no_such_package")
def test_what_needs_a_missing_package_is_skipped():
    raise AssertionError("this package is not there")


@pytest.mark.parametrize("mode, package", [("JAX", "jax"), ("NUMBA", "numba"), ("FAST_RUN", "")])
def test_cases_of_modes_whose_package_is_missing_are_skipped(mode, package, monkeypatch, request):
    monkeypatch.setitem(sys.modules, package, None)
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    item = SimpleNamespace(
        callspec=SimpleNamespace(params={"other": 1, "mode": mode}), iter_markers=lambda name: []
    )
    skips = pytest.raises(pytest.skip.Exception, match=f"{package} is not installed")
    with skips if package else nullcontext():
        conftest.pytest_runtest_setup(item)
