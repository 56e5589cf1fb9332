"""Numba functions of indexing, and of setting and incrementing parts of tensors.

The generated source checks every index, because Numba does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.backends.numba.dispatch import (
    compiled,
    define,
    in_object_mode,
    nested,
    numba_funcify,
    tuple_of,
)
from phintys.backends.numba.elemwise import numpy_name, place
from phintys.backends.numba.scalar import has_source, scalar_lines
from phintys.scalar.op import TABLE
from phintys.scalar.type import ScalarType
from phintys.tensor.index_layout import Layout
from phintys.tensor.index_list import FULL, parts
from phintys.tensor.index_ops import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)

OUT_OF_RANGE = "raise IndexError('An index is out of range.')"


class Bounds:
    """The source of 0-d indices ``i0``, ``i1``, ... of the given types, as int64.

    A uint64 that does not fit becomes the largest int64, which is out of range for every axis.
    """

    def __init__(self, types: Sequence[Any]) -> None:
        self.types = types

    def __call__(self, k: int) -> str:
        read = f"i{k}" if isinstance(self.types[k], ScalarType) else f"i{k}[()]"
        if self.types[k].dtype == "uint64":
            read = f"min({read}, np.uint64({np.iinfo('int64').max}))"
        return f"np.int64({read})"

    def slice(self, e: slice) -> str:
        return ":".join("" if p is None else self(p) for p in parts(e))

    def step_check(self, e: slice) -> list[str]:
        if e.step is None:
            return []
        return [f"if {self(e.step)} == 0: raise ValueError('The step of a slice is 0.')"]


# --------------------------------------------------------- integers and slices (scalars)


def _region(op: Any, indices: Sequence[Any]) -> tuple[list[str], str]:
    """Lines that check a basic index of ``x``, and the source of the index."""
    lines, entries, bound = [], [], Bounds([v.type for v in indices])
    for axis, e in enumerate(op.idx_list):
        if isinstance(e, slice):
            lines += bound.step_check(e)
            entries.append(bound.slice(e))
        else:
            lines.append(f"j{axis} = {bound(e)}")
            n = f"x.shape[{axis}]"
            lines.append(f"if j{axis} < -{n} or j{axis} >= {n}: {OUT_OF_RANGE}")
            entries.append(f"j{axis}")
    return lines, ", ".join(entries)


@numba_funcify.register(Subtensor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    names = [f"i{k}" for k in range(len(node.inputs) - 1)]
    checks, key = _region(op, node.inputs[1:])
    out = node.outputs[0].type
    if not op.idx_list:
        read = ["return x"]
    elif out.ndim:
        read = [f"return x[{key}]"]
    else:
        read = [
            f"out = np.empty((), np.{numpy_name(out.dtype)})",
            f"out[()] = x[{key}]",
            "return out",
        ]
    return compiled(define("subtensor", ["x", *names], [*checks, *read]))


@numba_funcify.register(IncSubtensor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    x, y = node.inputs[0].type, node.inputs[1].type
    combine = _combination(op, x.dtype, y.dtype)
    if combine is None:
        return in_object_mode(op, node, **kwargs)
    step, (value,), env = combine
    names = [f"i{k}" for k in range(len(node.inputs) - 2)]
    checks, key = _region(op, node.inputs[2:])
    ndim = x.ndim - sum(isinstance(e, int) for e in op.idx_list)
    indices = [f"k{a}" for a in range(ndim)]
    lengths = [f"part.shape[{a}]" for a in range(ndim)]
    offset = ndim - y.ndim
    target = f"part[{', '.join(indices)}]" if ndim else f"out[{key or '()'}]"
    inner = [
        f"a = {target}",
        f"b = y[{place(y.shape, indices[offset:])}]",
        *step,
        f"{target} = {value}",
    ]
    view = [f"part = out[{key or ':'}]"] if ndim else []
    fits = _fits(y.shape, lengths[offset:])
    body = [*checks, "out = x.copy()", *view, *fits, *nested(indices, lengths, inner), "return out"]
    return compiled(define("inc_subtensor", ["x", "y", *names], body), **env)


def _fits(shape: Sequence[int | None], lengths: Sequence[str]) -> list[str]:
    """Lines that raise unless ``y`` has these lengths, except where it has static length 1."""
    return [
        f"if y.shape[{a}] != {n}: raise ValueError('The value does not fit.')"
        for a, (known, n) in enumerate(zip(shape, lengths))
        if known != 1
    ]


def _combination(op: Any, x: str, y: str) -> Any:
    """Lines that combine an element ``a`` with a new one ``b`` (set or add), as `scalar_lines`.

    None if the dtypes are not supported.
    """
    if not has_source(TABLE["add"], [x, x]) or not has_source(TABLE[f"cast_{x}"], [y]):
        return None
    cast, (new,), _ = scalar_lines(TABLE[f"cast_{x}"], ["b"], [y], [x])
    if op.set_instead_of_inc:
        return cast, [new], {}
    step, found, env = scalar_lines(TABLE["add"], ["a", "c"], [x, x], [x])
    return [*cast, f"c = {new}", *step], found, env


# ------------------------------------------------------------------------- index tensors


class Gather:
    """Source of loops over the elements that an advanced index selects.

    lines
        lines that set ``part`` to ``source`` with its slices applied, and the lengths of the loops
    indices, lengths
        index variables and lengths of the loops, in the order of the result's axes
    checks
        lines of the innermost loop that compute and check the positions
    element
        the selected element of ``part``
    """

    def __init__(self, op: Any, types: Sequence[Any], ndim: int) -> None:
        layout = Layout(op.idx_list, types, ndim)
        self.lines = self._slices(layout, Bounds(types), ndim)
        index = [f"k{a}" for a in range(layout.index_ndim)]
        rest = [f"r{a}" for _, a in layout.slices]
        for a in range(layout.index_ndim):
            self.lines += self._index_length(layout, types, a)
        lengths = [f"len_{k}" for k in index], [f"part.shape[{a}]" for _, a in layout.slices]
        self.indices = list(layout.arrange(index, rest))
        self.lengths = list(layout.arrange(*lengths))
        self.checks: list[str] = []
        places = {a: f"r{a}" for _, a in layout.slices}
        for p, axis in zip(layout.positions, layout.axes):
            shape = types[p].shape
            own = index[layout.index_ndim - len(shape) :]
            where = place(shape, own)
            self.checks += [
                f"j{axis} = np.int64(i{p}[{where}])",
                f"n{axis} = part.shape[{axis}]",
                f"if j{axis} < -n{axis} or j{axis} >= n{axis}: {OUT_OF_RANGE}",
            ]
            places[axis] = f"j{axis}"
        self.element = f"part[{', '.join(places[a] for a in range(ndim))}]"

    def _slices(self, layout: Layout, bound: Bounds, ndim: int) -> list[str]:
        """Lines that set ``part`` to ``source`` with the slices of the index applied."""
        taken = {a: e for e, a in layout.slices if e != FULL}
        lines = [line for e in taken.values() for line in bound.step_check(e)]
        entries = [bound.slice(taken[a]) if a in taken else ":" for a in range(ndim)]
        return [*lines, f"part = source[{', '.join(entries)}]" if taken else "part = source"]

    def _index_length(self, layout: Layout, types: Sequence[Any], axis: int) -> list[str]:
        """Lines that set the length of an axis of the broadcast index arrays."""
        name, message = f"len_k{axis}", f"Lengths of index tensors along axis {axis} do not agree"
        lines: list[str] = []
        for p in layout.positions:
            own = axis - (layout.index_ndim - types[p].ndim)
            if own < 0 or types[p].shape[own] == 1:
                continue
            n = f"i{p}.shape[{own}]"
            check = f"if {n} != {name}: raise ValueError({message!r})"
            lines.append(check if lines else f"{name} = {n}")
        return lines or [f"{name} = 1"]


def _has_mask(op: Any, types: Sequence[Any], ndim: int) -> bool:
    return Layout(op.idx_list, types, ndim).has_mask


@numba_funcify.register(AdvancedSubtensor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    x, out = node.inputs[0].type, node.outputs[0].type
    types = [v.type for v in node.inputs[1:]]
    if _has_mask(op, types, x.ndim):
        return in_object_mode(op, node, **kwargs)
    gather = Gather(op, types, x.ndim)
    target = f"out[{', '.join(gather.indices) or '()'}]"
    body = [
        "source = x",
        *gather.lines,
        f"out = np.empty({tuple_of(gather.lengths)}, np.{numpy_name(out.dtype)})",
        *nested(gather.indices, gather.lengths, [*gather.checks, f"{target} = {gather.element}"]),
        "return out",
    ]
    names = [f"i{k}" for k in range(len(types))]
    return compiled(define("advanced_subtensor", ["x", *names], body))


@numba_funcify.register(AdvancedIncSubtensor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    x, y = node.inputs[0].type, node.inputs[1].type
    types = [v.type for v in node.inputs[2:]]
    combine = _combination(op, x.dtype, y.dtype)
    if combine is None or op.ignore_duplicates or _has_mask(op, types, x.ndim):
        return in_object_mode(op, node, **kwargs)
    step, (value,), env = combine
    gather = Gather(op, types, x.ndim)
    offset = len(gather.indices) - y.ndim
    inner = [
        *gather.checks,
        f"a = {gather.element}",
        f"b = y[{place(y.shape, gather.indices[offset:])}]",
        *step,
        f"{gather.element} = {value}",
    ]
    body = [
        "out = x.copy()",
        "source = out",
        *gather.lines,
        *_fits(y.shape, gather.lengths[offset:]),
        *nested(gather.indices, gather.lengths, inner),
        "return out",
    ]
    names = [f"i{k}" for k in range(len(types))]
    return compiled(define("advanced_inc_subtensor", ["x", "y", *names], body), **env)
