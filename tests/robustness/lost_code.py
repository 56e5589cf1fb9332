"""Faults of CPython where its allocator fails, shown without Phintys, and how tests survive them.

In CPython 3.12 and 3.13 the instruction MAKE_FUNCTION, which makes lambdas, nested functions and
generator expressions, releases the code object twice if there is no memory for the function object
(issue 122752 of CPython).  The MemoryError is raised as it should be, but the code object is freed,
and the process crashes where the line is run again, most often in ``PyFunction_NewWithQualName``.

    python tests/robustness/lost_code.py          crashes if the interpreter has the fault
    python tests/robustness/lost_code.py --held   does not

In CPython 3.13 ``locals()`` in a function crashes if there is no memory for its result.  NumPy
calls it when it prints an array.

    python tests/robustness/lost_code.py --locals   crashes if the interpreter has the fault
"""

from __future__ import annotations

import ctypes
import gc
import sys
from _testcapi import remove_mem_hooks, set_nomemory
from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import signature
from types import CodeType, FunctionType
from typing import Any

import numpy as np

arrayprint: Any = import_module(f"numpy.{'_core' if hasattr(np, '_core') else 'core'}.arrayprint")


def is_lost() -> bool:
    """Whether a code object loses a reference where this interpreter cannot make a function."""
    (code,) = nested_code([_make])
    before = sys.getrefcount(code)
    _fail(_make)
    lost = sys.getrefcount(code) < before
    if lost:
        _hold(code)
    return lost


def hold_code() -> int:
    """How many code objects get one more reference, so that they survive one failure each.

    They are all that are nested in functions; none if the interpreter does not have the fault.
    """
    if not is_lost():
        return 0
    codes = nested_code([x for x in gc.get_objects() if isinstance(x, FunctionType)])
    for code in codes:
        _hold(code)
    return len(codes)


def print_without_locals() -> None:
    """NumPy finds the options of printing, those that are not None, without ``locals()``."""
    names = tuple(signature(arrayprint._make_options_dict).parameters)

    def options(*values: Any, **named: Any) -> dict[str, Any]:
        given = {**dict(zip(names, values)), **named}
        return {name: value for name, value in given.items() if value is not None}

    arrayprint._make_options_dict = options


def nested_code(functions: Iterable[FunctionType]) -> list[CodeType]:
    """The code objects of lambdas, functions and generator expressions inside functions."""
    found: list[CodeType] = []
    outer = [f.__code__ for f in functions]
    while outer:
        constants = outer.pop().co_consts
        inner = [c for c in constants if isinstance(c, CodeType)]
        found += inner
        outer += inner
    return found


def _hold(code: CodeType) -> None:
    """Add a reference that is never given back."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))


def _make() -> Callable[[], int]:
    return lambda: 1


def _locals() -> dict[str, Any]:
    return locals()


def _fail(make: Callable[[], object]) -> None:
    """Call a function whose first allocation fails."""
    set_nomemory(0, 1)
    try:
        make()
    except MemoryError:
        pass
    finally:
        remove_mem_hooks()


def main() -> None:
    if "--locals" in sys.argv:
        _fail(_locals)
    if "--held" in sys.argv:
        hold_code()
    _fail(_make)
    blocks = [bytes(size) for size in range(512) for _ in range(100)]  # take what was freed
    print(f"no crash: {_make()()}")
    del blocks


if __name__ == "__main__":
    main()
