"""What tests of several folders need.

Tests marked ``widths`` run with vectors of the processor's own width, and in the rest with those of
the two others.  ``own_width`` takes a test of a marked module out, because it takes long or has
nothing to do with vectors.

Plugins say which tests are for the rest by name (`dear`), which cases run on backends that compile
slowly (`slow_backends`) or need a package (`missing_packages`), for which no folder is taken
(`plain_folders`), that each test runs an assertion (`assertions`), which warnings are errors
(`our_warnings`), that the user's settings do not count (`own_settings`), how a failed test is run
alone (`run_alone`), and that a test draws the same numbers in each run (`same_draws`).
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from own_settings import pytest_report_header  # noqa: F401  # isort: skip  (before the package)
import pytest
from hypothesis import settings

from phintys.backends.llvm.machine.target import current
from phintys.config import config
from phintys.graph.collection import collection_paused

# Numba and JAX read them when they are imported, also in processes that tests start: less time in
# LLVM
os.environ.setdefault("NUMBA_OPT", "0")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
#: folders whose helpers all tests may import
HELPERS = ("", "tensor", "scalar", "matrix", "gradient", "backends", "lowering", "planted")
sys.path += [str(Path(__file__).parent / folder) for folder in HELPERS]

# a test may take long where others take the processor; each run draws the same examples
settings.register_profile("phintys", deadline=None, derandomize=True)
settings.load_profile("phintys")


pytest_plugins = [
    *("assertions", "dear", "slow_backends", "missing_packages", "plain_folders"),
    *("our_warnings", "run_alone", "same_draws"),
]


def pytest_collection_finish() -> None:
    """The items of all tests are many objects: collections of garbage leave them out."""
    freeze_heap()


def freeze_heap() -> None:
    """The collector, and who asks it for objects, leave out all objects that there are now."""
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = metafunc.definition.get_closest_marker
    if marked("widths") and not marked("own_width"):
        others = [bits for bits in (128, 256, 512) if bits != current().register_bits]
        widths = [pytest.param(bits, id=f"{bits}bits", marks=pytest.mark.rest) for bits in others]
        metafunc.parametrize("vector_bits", [pytest.param(0, id="own"), *widths], indirect=True)


@pytest.fixture(autouse=True)
def vector_bits(request: pytest.FixtureRequest):
    """The test runs under this setting of ``config.vector_bits``; 0: that of the whole run."""
    changes = {"vector_bits": request.param} if getattr(request, "param", 0) else {}
    with config.change_flags(**changes):
        yield


@pytest.fixture
def frozen_heap():
    """The test sees only its own objects in the collector.

    Then garbage is freed, also what was frozen before it became garbage.
    """
    freeze_heap()
    yield
    gc.unfreeze()
    freeze_heap()


@pytest.fixture(params=["auto", pytest.param("llvm", marks=pytest.mark.rest)], scope="module")
def each_loader(request):
    """For whole modules: tests run with each way of putting code into memory.

    Processes that they start do too.
    """
    flags = f"{os.environ.get('PHINTYS_FLAGS', '')},loader={request.param}"
    with pytest.MonkeyPatch.context() as patch, config.change_flags(loader=request.param):
        patch.setenv("PHINTYS_FLAGS", flags)
        yield request.param


@pytest.fixture
def lines_run():
    """How many lines of Python a task runs: work, measured the same on every machine."""

    def count(task, *args, **kwargs):
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            lines += 1
            return trace

        before = sys.gettrace()
        with collection_paused():  # finalizers of earlier tests are no work of this task
            sys.settrace(trace)
            try:
                task(*args, **kwargs)
            finally:
                sys.settrace(before)
        return lines

    return count


@pytest.fixture(params=["FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "JAX"])
def mode(request: pytest.FixtureRequest):
    """Each backend's mode in turn."""
    return request.param
