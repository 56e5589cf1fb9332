"""Which ops of the language compiled functions compute in Python, and why."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from phintys.graph.op import Op
from phintys.scalar.op import TABLE, ScalarOp

#: the packages that define ops
_PACKAGES = "assumptions conditional gradient inner loop tensor typed_list"


def op_classes() -> list[type[Op]]:
    """The classes of the ops of this package, base classes too, but not those of scalar ops."""
    for package in _PACKAGES.split():
        found = import_module(f"phintys.{package}")
        for module in walk_packages(found.__path__, f"{found.__name__}."):
            import_module(module.name)
    classes: list[type[Op]] = []
    stack: list[type[Op]] = [Op]
    while stack:
        for cls in stack.pop().__subclasses__():
            if cls.__module__.startswith("phintys.") and not issubclass(cls, ScalarOp):
                stack.append(cls)
                classes.append(cls)
    return sorted(set(classes), key=lambda cls: cls.__name__)


def ops_in_python() -> Iterator[tuple[str, str]]:
    """The names of ops, and why compiled functions call ``perform`` of them, sorted by names.

    Elementwise functions, which follow the others, have the names that they have in
    `phintys.scalar.op.TABLE`.  An op whose class is not listed is never computed in Python.

    >>> dict(ops_in_python())["Eig"]
    'a driver of LAPACK whose results are complex for real matrices: NumPy calls it'
    """
    for cls in op_classes():
        reason = cls.in_python
        if isinstance(reason, str) and reason and not cls.__name__.startswith("_"):
            yield cls.__name__, reason
    yield from [(name, op.in_python) for name, op in sorted(TABLE.items()) if op.in_python]
