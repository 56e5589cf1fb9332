"""A text that tells a graph: equal texts in two processes mean graphs that compute the same.

It names classes and functions of this package, whose code is the same wherever its version is.
Ops, types and scalar functions that users write have no such name, so graphs with them have no
fingerprint; neither have graphs with constants that are not arrays, numbers or texts.

>>> from phintys.scalar import add, float64
>>> from phintys.graph.fgraph import FunctionGraph
>>> x, y, z = float64("x"), float64("y"), float64("z")
>>> one, other = FunctionGraph([x, y], [add(x, y)]), FunctionGraph([z, y], [add(z, y)])
>>> fingerprint(one) == fingerprint(other)
True
>>> fingerprint(one) == fingerprint(FunctionGraph([y, x], [add(x, y)]))
False
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from phintys.graph.meta import MetaObject
from phintys.graph.variable import Constant, Variable

_PACKAGE = __name__.partition(".")[0]


class _NoName(Exception):
    """Something that has no meaning outside this process."""


def fingerprint(fgraph: Any) -> str | None:
    """A digest of nodes, types and constants; names of variables do not matter.  None: see above.

    Linear in the size of the graph and of its constants.
    """
    try:
        texts, code = _encoded(fgraph)
    except _NoName:
        return None
    digest = hashlib.sha256("\n".join(texts).encode())
    digest.update(array("q", code).tobytes())
    return digest.hexdigest()


def _encoded(fgraph: Any) -> tuple[list[str], list[int]]:
    """The texts of ops, types and constants, and what refers to them by number, from 1.

    A root is ``0, type, constant or 0``; a node is ``op, length, inputs..., length, types...``;
    variables are numbered as they appear.
    """
    texts: dict[str, int] = {}
    named: dict[int, int] = {}  # by identity: many nodes share an op, many variables a type
    numbers: dict[Variable, int] = {}
    code: list[int] = []

    def number_of(text: str) -> int:
        return texts.setdefault(text, len(texts) + 1)

    def name(x: Any) -> int:
        number = named[id(x)] = number_of(name_of(x))
        return number

    def root(v: Variable) -> int:
        data = number_of(name_of(v.data)) if isinstance(v, Constant) else 0
        code.extend((0, named.get(id(v.type)) or name(v.type), data))
        number = numbers[v] = len(numbers) + 1
        return number

    for v in fgraph.inputs:
        root(v)
    for node in fgraph.toposort():
        given = [numbers.get(v) or root(v) for v in node.inputs]
        types = [named.get(id(v.type)) or name(v.type) for v in node.outputs]
        code += (named.get(id(node.op)) or name(node.op), len(given), *given, len(types), *types)
        for v in node.outputs:
            numbers[v] = len(numbers) + 1
    code += [numbers.get(v) or root(v) for v in fgraph.outputs]
    return list(texts), code


def name_of(x: Any) -> str:
    """A text for an op, a type, a property of one, or the value of a constant."""
    if x is None or isinstance(x, bool | int | float | complex | str | bytes):
        return repr(x)
    if type(x) is np.ndarray:  # most constants; the table below costs them more than their text
        return _array(x)
    for kind, name in _NAMES.items():
        if isinstance(x, kind):
            return name(x)
    raise _NoName


def _sequence(x: Any) -> str:
    return f"{type(x).__name__}({', '.join(map(name_of, x))})"


def _mapping(x: Mapping[Any, Any]) -> str:
    return f"mapping({sorted((name_of(k), name_of(v)) for k, v in x.items())})"


def _slice(x: slice) -> str:
    return f"slice({name_of(x.start)}, {name_of(x.stop)}, {name_of(x.step)})"


def _array(x: Any) -> str:
    if x.dtype.hasobject:
        raise _NoName
    data = x.tobytes()
    text = data.hex() if len(data) <= 32 else hashlib.sha256(data).hexdigest()
    return f"array({x.dtype.str}, {x.shape}, {text})"


def _global(x: Any) -> str:
    """A class or function of this package that is found under its own name."""
    module, name = x.__module__ or "", x.__qualname__
    own = module.partition(".")[0] == _PACKAGE
    if not own or getattr(sys.modules.get(module), name, None) is not x:
        raise _NoName
    return f"{module}.{name}"


def _object(x: Any) -> str:
    """An object that is equal to another one if class and properties are."""
    props = getattr(x, "__props__", None)
    if props is None:
        raise _NoName
    return f"{_global(type(x))}({', '.join(name_of(getattr(x, p)) for p in props)})"


_NAMES: dict[Any, Callable[[Any], str]] = {
    MetaObject: _object,
    np.ndarray | np.generic: _array,
    tuple | list: _sequence,
    Mapping: _mapping,
    slice: _slice,
    np.dtype: lambda x: x.str,
    type | FunctionType: _global,
}
