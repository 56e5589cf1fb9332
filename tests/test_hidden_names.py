"""What a module imports for itself, such as ``typing.Any``, hides no public name of PyTensor."""

from __future__ import annotations

import types
import typing

from test_public_names import NAMES, places

#: names of modules of PyTensor, and one of Theano, which are modules here
MODULES = {name.split(":")[0] for name in NAMES}
MODULES |= {"compile.function", "compile.mode", "compile.pfunc", "xtensor.linalg"}
SPECIAL = {id(getattr(typing, name)) for name in typing.__all__}


def is_something_else(name: str) -> bool:
    """Whether a name is that of a helper for annotations, or of a module that PyTensor has not."""
    path, attribute = name.split(":")
    found = [getattr(place, attribute) for place in places(path) if hasattr(place, attribute)]
    if not found:
        return False
    is_module = isinstance(found[0], types.ModuleType) and not callable(found[0])
    return id(found[0]) in SPECIAL or (
        is_module and f"{path}.{attribute}".lstrip(".") not in MODULES
    )


def test_no_name_is_that_of_something_else() -> None:
    assert [name for name in NAMES if is_something_else(name)] == []
    assert is_something_else("scalar.op:Any") and is_something_else("tensor:convert")
