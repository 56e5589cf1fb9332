"""Structural equality of graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from phintys.graph.replace import clone_replace
from phintys.graph.traversal import toposort
from phintys.graph.variable import AtomicVariable, Constant, Variable


def equal_computations(
    xs: Sequence[Any],
    ys: Sequence[Any],
    in_xs: Sequence[Variable] | None = None,
    in_ys: Sequence[Variable] | None = None,
    strict_dtype: bool = True,
) -> bool:
    """Whether the graphs ``xs`` and ``ys`` are structurally equal, pairwise.

    The comparison is structural: ``x + 1`` and ``1 + x`` differ, and it does not matter whether a
    repeated subexpression is one node or several.

    Parameters
    ----------
    xs, ys
        variables; plain values are compared with each other or with constants
    in_xs, in_ys
        variables that correspond to each other, by position.  All other variables without an
        owner only equal themselves, and constants equal constants of the same type and value.
    strict_dtype
        False: constants in the graphs may differ in their dtype

    Raises
    ------
    ValueError
        if there are not as many ``xs`` as ``ys``

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> equal_computations([x + 1], [x + 1]), equal_computations([x + 1], [y + 1])
    (True, False)
    >>> equal_computations([x + 1], [y + 1], [x], [y])
    True
    """
    if len(xs) != len(ys):
        raise ValueError(f"There are {len(xs)} graphs on one side and {len(ys)} on the other.")
    in_xs, in_ys = in_xs or (), in_ys or ()
    if len(in_xs) != len(in_ys):
        return False
    x_keys: dict[Variable, Any] = {}
    y_keys: dict[Variable, Any] = {}
    for i, (x, y) in enumerate(zip(in_xs, in_ys, strict=True)):
        if not x.type.in_same_class(y.type):
            return False
        x_keys[x] = y_keys[y] = x_keys.get(x, y_keys.get(y, i))
    numbers: dict[Any, int] = {}
    key_of = leaf_key if strict_dtype else _leaf_key_without_dtype
    assign_keys([x for x in xs if isinstance(x, Variable)], x_keys, numbers, key_of)
    assign_keys([y for y in ys if isinstance(y, Variable)], y_keys, numbers, key_of)
    return all(
        x.type.in_same_class(y.type) and x_keys[x] == y_keys[y]
        if isinstance(x, Variable) and isinstance(y, Variable)
        else _equal_values(x, y)
        for x, y in zip(xs, ys, strict=True)
    )


def is_same_graph(
    var1: Variable, var2: Variable, givens: Mapping[Variable, Variable] | None = None
) -> bool:
    """Whether two variables are computed in the same way, after the replacements ``givens``."""
    if givens:
        var1, var2 = clone_replace([var1, var2], givens)
    return equal_computations([var1], [var2])


def assign_keys(
    graphs: Sequence[Variable],
    keys: dict[Variable, Any],
    numbers: dict[Any, int],
    key_of: Callable[[Variable], Any],
) -> None:
    """Add a key for every variable of the graphs to ``keys``; equal keys mean equal computations.

    ``numbers`` is a hash-consing table: it maps (op, keys of the inputs) to a small integer, so
    that a key has constant size however large the graph behind it is.  ``key_of`` computes the keys
    of leaves.
    """
    for node in toposort(graphs, keys):
        for v in node.inputs:
            if v not in keys:
                keys[v] = key_of(v)
        inputs = tuple([keys[v] for v in node.inputs])
        number = numbers.setdefault((node.op, inputs), len(numbers))
        for output in node.outputs:
            keys.setdefault(output, (number, output.index))
    for v in graphs:
        if v not in keys:
            keys[v] = key_of(v)


def leaf_key(v: Variable) -> Any:
    """The key of a leaf: type and value of a constant, the variable itself otherwise."""
    return (type(v), v.signature()) if isinstance(v, AtomicVariable) else v


def _leaf_key_without_dtype(v: Variable) -> Any:
    """Like `leaf_key`, with equal keys for constants that differ only in their dtype."""
    if not (isinstance(v, Constant) and isinstance(v.data, np.ndarray | np.generic)):
        return leaf_key(v)
    data = np.asarray(v.data)
    # Python numbers compare and hash alike across types.  NaN does not equal itself: use a string.
    return data.shape, tuple(["nan" if x != x else x for x in data.ravel().tolist()])


def _equal_values(x: Any, y: Any) -> bool:
    """Whether two values are equal, where either may be wrapped in a Constant."""
    values = [v.data if isinstance(v, Constant) else v for v in (x, y)]
    if any(isinstance(v, Variable) for v in values):
        return False
    if not any(isinstance(v, np.ndarray | np.generic) for v in values):
        return bool(values[0] == values[1])
    a, b = map(np.asarray, values)
    # equal_nan is an error for some dtypes without NaN
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc")
