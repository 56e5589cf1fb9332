"""Structural hash of a graph, stable across processes: the key of compiled code in the cache.

Equal fingerprints mean graphs that compute the same function of their inputs.  Classes and
functions enter the hash by their qualified names, which is sound only for those of this package:
the same version of the package has the same code.  Hence graphs with ops, types or scalar functions
that are defined elsewhere have no fingerprint, nor have graphs with constants other than arrays,
numbers and strings.

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

from phintys.graph.frozen import FrozenGraph
from phintys.graph.inner import nested_ops
from phintys.graph.meta import MetaObject
from phintys.graph.variable import Constant, Variable
from phintys.memo import WeakMemo

_PACKAGE = __name__.partition(".")[0]


class _NotStable(Exception):
    """Raised for an object without a description that is the same in every process."""


def fingerprint(fgraph: Any) -> str | None:
    """A hexadecimal SHA-256 digest of the nodes, types and constants of a FunctionGraph.

    Names of variables do not matter.  None if the graph has no fingerprint (see the module).  Takes
    time linear in the size of the graph and of its constants.
    """
    try:
        return _digest(fgraph)
    except _NotStable:
        return None


def _digest(fgraph: Any) -> str:
    texts, code = _encoded(fgraph)
    digest = hashlib.sha256("\n".join(texts).encode())
    digest.update(array("q", code).tobytes())
    return digest.hexdigest()


def _encoded(fgraph: Any) -> tuple[list[str], list[int]]:
    """The graph as a table of descriptions (of ops, types, constants) and a list of integers.

    The integers refer to descriptions and to variables by number, from 1.  A root is written as
    ``0, type, constant or 0``, a node as ``op, count, inputs..., count, output types...``, both in
    topological order; last come the outputs.  Variables are numbered in order of appearance.
    """
    texts: dict[str, int] = {}
    named: dict[int, int] = {}  # id(object) -> number: nodes share ops, and variables share types
    numbers: dict[Variable, int] = {}
    code: list[int] = []

    def number_of_text(text: str) -> int:
        return texts.setdefault(text, len(texts) + 1)

    def number_of_object(x: Any) -> int:
        number = named[id(x)] = number_of_text(description(x))
        return number

    def write_root(v: Variable) -> int:
        data = number_of_text(description(v.data)) if isinstance(v, Constant) else 0
        code.extend((0, named.get(id(v.type)) or number_of_object(v.type), data))
        number = numbers[v] = len(numbers) + 1
        return number

    for v in fgraph.inputs:
        write_root(v)
    for node in fgraph.toposort():
        given = [numbers.get(v) or write_root(v) for v in node.inputs]
        types = [named.get(id(v.type)) or number_of_object(v.type) for v in node.outputs]
        op = named.get(id(node.op)) or number_of_object(node.op)
        code += (op, len(given), *given, len(types), *types)
        for v in node.outputs:
            numbers[v] = len(numbers) + 1
    code += [numbers.get(v) or write_root(v) for v in fgraph.outputs]
    return list(texts), code


def _of_inner_graph(graph: FrozenGraph) -> str:
    """The fingerprint of a graph inside an op.

    Those of the graphs inside it are computed first, deepest first, hence without recursion.
    """
    found = _inner.get(graph)
    if found is not None:
        return found
    for op in nested_ops([node.op for node in graph.toposort()]):
        for inner in op.inner_graphs.values():
            if isinstance(inner, FrozenGraph) and inner not in _inner:
                _inner.keep(inner, _digest(inner))
    return _inner.keep(graph, _digest(graph))


#: fingerprints of graphs inside ops
_inner: WeakMemo[FrozenGraph, str] = WeakMemo("fingerprints of inner graphs")


def description(x: Any) -> str:
    """A text that determines an op, a type, a property of one, or the value of a constant."""
    if x is None or isinstance(x, bool | int | float | complex | str | bytes):
        return repr(x)
    if type(x) is np.ndarray:  # the most frequent class: skips the search of the table
        return _array(x)
    for kind, describe in _DESCRIPTIONS.items():
        if isinstance(x, kind):
            return describe(x)
    raise _NotStable


def _sequence(x: Any) -> str:
    return f"{type(x).__name__}({', '.join(map(description, x))})"


def _mapping(x: Mapping[Any, Any]) -> str:
    return f"mapping({sorted((description(k), description(v)) for k, v in x.items())})"


def _slice(x: slice) -> str:
    return f"slice({description(x.start)}, {description(x.stop)}, {description(x.step)})"


def _array(x: Any) -> str:
    if x.dtype.hasobject:
        raise _NotStable
    data = x.tobytes()
    text = data.hex() if len(data) <= 32 else hashlib.sha256(data).hexdigest()
    return f"array({x.dtype.str}, {x.shape}, {text})"


def _global(x: Any) -> str:
    """The qualified name of a class or function of this package; it must be a module attribute.

    Or of one that is built into Python, such as the class of an exception.
    """
    module, name = x.__module__ or "", x.__qualname__
    own = module.partition(".")[0] in (_PACKAGE, "builtins")
    if not own or getattr(sys.modules.get(module), name, None) is not x:
        raise _NotStable
    return f"{module}.{name}"


def _object(x: Any) -> str:
    """Class and properties of an object whose equality is determined by ``__props__``.

    An op with an inner graph may have some that compiled code does not depend on.
    """
    props = getattr(x, "__props__", None)
    if props is None:
        raise _NotStable
    ignored = getattr(x, "uncompiled_props", ())
    if ignored:
        props = [p for p in props if p not in ignored]
    return f"{_global(type(x))}({', '.join(description(getattr(x, p)) for p in props)})"


_DESCRIPTIONS: dict[Any, Callable[[Any], str]] = {
    MetaObject: _object,
    FrozenGraph: _of_inner_graph,
    np.ndarray | np.generic: _array,
    tuple | list: _sequence,
    Mapping: _mapping,
    slice: _slice,
    np.dtype: lambda x: x.str,
    type | FunctionType: _global,
}
