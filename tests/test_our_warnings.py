"""Which warnings are errors in tests."""

from __future__ import annotations

import warnings

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
    with warnings.catch_warnings(record=True) as found:
        warn(module, category=category)
    assert [w.category for w in found] == [category]


def test_a_flag_that_blas_sets_is_no_error():
    with warnings.catch_warnings(record=True) as found:
        warn("phintys.tensor.math", "invalid value encountered in matmul")
        with pytest.raises(RuntimeWarning):
            warn("phintys.tensor.math", "invalid value encountered in log")
    assert not found
