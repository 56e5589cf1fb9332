"""The exceptions of `DebugMode`.  Each names the rule or the node at fault, and the values.

Their arguments are those of PyTensor's exceptions of the same names, and are attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.errors import PhintysError
from phintys.graph.origin import describe
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.trace import expression


class DebugModeError(PhintysError):
    """What `DebugMode` has found: base class of the exceptions in this module."""


class BadThunkOutput(DebugModeError):
    """Two ways to compute a variable give different values.

    Attributes: the variable ``r``; the names of the two ways, ``thunk1`` and ``thunk2``, their
    values ``val1`` and ``val2``; ``inputs_val``, the values of the inputs of the node.
    """

    def __init__(
        self,
        r: Variable,
        thunk1: Any,
        val1: Any,
        thunk2: Any,
        val2: Any,
        inputs_val: Sequence[Any] = (),
    ) -> None:
        self.r, self.inputs_val = r, tuple(inputs_val)
        self.thunk1, self.val1, self.thunk2, self.val2 = thunk1, val1, thunk2, val2
        super().__init__(self.str_diagnostic())

    def offending_op(self) -> Any:
        """The op that computes the variable."""
        return self.r.owner.op if self.r.owner is not None else None

    def str_diagnostic(self) -> str:
        """The text of the error."""
        head = f"Two values of {expression(self.r, 2)} (type {self.r.type}) differ:"
        given = [f"  input {k}: {value_text(x)}" for k, x in enumerate(self.inputs_val)]
        values = difference_text(str(self.thunk1), self.val1, str(self.thunk2), self.val2)
        return _lines(head, values, *given, _made(self.r.owner))


class BadOptimization(DebugModeError):
    """A variable and its replacement by a rewrite have different values.

    Attributes: the variables ``old_r`` and ``new_r``, their values ``old_r_val`` and ``new_r_val``,
    the rewrite ``reason``, and descriptions ``old_graph`` and ``new_graph`` of both expressions.
    """

    def __init__(
        self,
        old_r: Variable,
        new_r: Variable | None = None,
        old_r_val: Any = None,
        new_r_val: Any = None,
        reason: Any = None,
        old_graph: str | None = None,
        new_graph: str | None = None,
    ) -> None:
        self.old_r, self.new_r, self.reason = old_r, new_r, reason
        self.old_r_val, self.new_r_val = old_r_val, new_r_val
        self.old_graph = expression(old_r, 4) if old_graph is None else old_graph
        after = "" if new_r is None else expression(new_r, 4)
        self.new_graph = after if new_graph is None else new_graph
        super().__init__(self.str_diagnostic())

    def str_diagnostic(self) -> str:
        """The text of the error."""
        law, file = getattr(self.reason, "law", ""), getattr(self.reason, "file", "")
        return _lines(
            f"The rewrite {self.reason} changes a value{f' (its law: {law})' if law else ''}.",
            f"  before: {self.old_graph}",
            f"  after:  {self.new_graph}",
            difference_text("before", self.old_r_val, "after", self.new_r_val),
            f"  the rewrite is defined at {file}:{self.reason.line}" if file else "",
            _made(self.old_r.owner),
        )


class BadDestroyMap(DebugModeError):
    """An op has changed an input that it does not declare in ``destroy_map``."""

    def __init__(self, node: Apply, idx: int, old_val: Any, new_val: Any, perform: str) -> None:
        self.node, self.idx, self.perform = node, idx, perform
        self.old_val, self.new_val = old_val, new_val
        super().__init__(
            _lines(
                f"{node.op} has changed its input {idx}, {node.inputs[idx]}, in {perform}; its "
                f"destroy_map is {node.op.destroy_map}.",
                difference_text("before", old_val, "after", new_val),
                _made(node),
            )
        )


class BadViewMap(DebugModeError):
    """A result shares memory with an input, or another result, and ``view_map`` says otherwise."""

    def __init__(
        self,
        node: Apply,
        output_idx: int,
        out_storage: Any,
        in_alias_idx: Any = None,
        out_alias_idx: Any = None,
    ) -> None:
        self.node, self.output_idx, self.out_storage = node, output_idx, out_storage
        self.in_alias_idx, self.out_alias_idx = in_alias_idx, out_alias_idx
        others = f"inputs {in_alias_idx}" if in_alias_idx else f"outputs {out_alias_idx}"
        super().__init__(
            _lines(
                f"Output {output_idx} of {node.op} shares memory with {others}; its view_map is "
                f"{node.op.view_map}, its destroy_map {node.op.destroy_map}.",
                _made(node),
            )
        )


class StochasticOrder(DebugModeError):
    """Rewriting the same graph twice gives different graphs."""


class InvalidValueError(DebugModeError):
    """A value is not one of its variable's type, has not the inferred shape, or is not finite.

    Attributes: the variable ``r``, its value ``v``, the node ``client_node`` that uses it, and
    ``hint`` and ``specific_hint``, which say what is wrong.
    """

    def __init__(
        self,
        r: Variable,
        v: Any = None,
        client_node: Apply | None = None,
        hint: str = "none",
        specific_hint: str = "none",
    ) -> None:
        self.r, self.v, self.client_node = r, v, client_node
        self.hint, self.specific_hint = hint, specific_hint
        said = [h for h in (hint, specific_hint) if h != "none"]
        super().__init__(
            _lines(
                f"The value of {expression(r, 2)} (type {r.type}) is wrong: {' '.join(said)}",
                f"  value: {value_text(v)}",
                f"  used by {client_node.op}" if client_node is not None else "",
                _made(r.owner) if r.owner is not None else describe(r.origin, indent="  "),
            )
        )


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _made(node: Apply | None) -> str:
    return "" if node is None else describe(node.origin, indent="  ")


def value_text(value: Any) -> str:
    """A value as a short text, with dtype, shape and strides of an array."""
    if not isinstance(value, np.ndarray):
        return f"{value!r} ({type(value).__name__})"
    with np.printoptions(threshold=8, edgeitems=3):
        shown = str(value).replace("\n", " ")
    return f"{shown} ({value.dtype}, shape {value.shape}, strides {value.strides})"


def difference_text(name1: str, val1: Any, name2: str, val2: Any) -> str:
    """Two values as text, with the place of the largest difference between arrays of numbers."""
    lines = [f"  {name1}: {value_text(val1)}", f"  {name2}: {value_text(val2)}"]
    arrays = isinstance(val1, np.ndarray) and isinstance(val2, np.ndarray)
    if arrays and val1.shape == val2.shape and val1.size and val1.dtype.kind in "iufc":
        with np.errstate(all="ignore"):
            size = np.abs(np.subtract(val1, val2, dtype=np.result_type(val1, val2, float)))
        same = (val1 == val2) | (np.isnan(val1) & np.isnan(val2))
        size = np.where(same, 0, np.where(np.isnan(size), np.inf, size))
        place = tuple(int(i) for i in np.unravel_index(int(np.argmax(size)), size.shape))
        lines.append(f"  largest difference: {size[place]}, at {place}")
    return "\n".join(lines)
