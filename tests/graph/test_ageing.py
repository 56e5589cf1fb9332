"""After a pause in which modules were imported, collections of young objects leave theirs alone."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from phintys.graph.collection import collection_paused


@pytest.fixture
def imported() -> Iterator[ModuleType]:
    module, frozen = ModuleType("phintys_imported_in_a_pause"), gc.get_freeze_count()
    gc.unfreeze()  # the tests run with all that existed before frozen
    yield module
    sys.modules.pop(module.__name__, None)
    if frozen:
        gc.freeze()


def is_young(x: object) -> bool:
    return any(each is x for generation in (0, 1) for each in gc.get_objects(generation))


def pause(module: ModuleType | None) -> list[int]:
    """Something that was made in a pause, with an import or not."""
    gc.collect()
    with collection_paused():
        made = [1]
        if module is not None:
            sys.modules[module.__name__] = module
    return made


def test_objects_are_old_if_a_module_was_imported(imported: ModuleType) -> None:
    assert is_young(pause(None))
    assert not is_young(pause(imported))
    assert gc.get_freeze_count() == 0


def test_frozen_objects_stay_so(imported: ModuleType) -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    assert is_young(pause(imported))
    assert gc.get_freeze_count() > frozen // 2
