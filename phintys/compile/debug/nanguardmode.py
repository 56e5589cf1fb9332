"""`NanGuardMode`: an error at the first NaN, infinity or huge number of a call.

>>> import phintys, phintys.tensor as pt
>>> x = pt.dvector("x")
>>> f = phintys.function([x], 2 / pt.log(x), mode=NanGuardMode())
>>> f([1.0, 2.0])
Traceback (most recent call last):
    ...
AssertionError: Inf detected in output 0 of the node True_div(..., Log(x)), made at ...
"""

from __future__ import annotations

import pdb
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from phintys.compile.debug.hooks import (
    HookedLinker,
    require_reference,
    with_defined_values,
)
from phintys.compile.mode import Mode
from phintys.config import config
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import describe
from phintys.graph.perform import RunNode, run_node
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.trace import expression

#: numbers of a larger magnitude are huge
HUGE = 1e10


def flatten(values: Any) -> list[Any]:
    """The elements of nested lists, tuples and sets; another object in a list of its own.

    >>> flatten([1, (2, [3])])
    [1, 2, 3]
    """
    if not isinstance(values, list | tuple | set):
        return [values]
    found: list[Any] = []
    stack = [iter(values)]
    while stack:
        for x in stack[-1]:
            if isinstance(x, list | tuple | set):
                stack.append(iter(x))
                break
            found.append(x)
        else:
            stack.pop()
    return found


def _numbers(value: Any) -> Iterator[np.ndarray]:
    """The non-empty arrays of numbers that a value consists of."""
    for x in flatten(value):
        if isinstance(x, np.ndarray | np.generic | float | complex | int):
            array = np.asarray(x)
            if array.dtype.kind in "iufc" and array.size:
                yield array
        elif hasattr(x, "data") and isinstance(x.data, np.ndarray):  # a sparse matrix
            yield from _numbers(x.data)


def contains_nan(arr: Any, node: Apply | None = None, var: Variable | None = None) -> bool:
    """Whether an array, a number, or one in a list, is NaN; ``node`` and ``var`` are ignored."""
    return any(bool(np.isnan(x).any()) for x in _numbers(arr) if x.dtype.kind in "fc")


def contains_inf(arr: Any, node: Apply | None = None, var: Variable | None = None) -> bool:
    """Whether an array, a number, or one in a list, is infinite; see `contains_nan`."""
    return any(bool(np.isinf(x).any()) for x in _numbers(arr) if x.dtype.kind in "fc")


def contains_big(arr: Any) -> bool:
    """Whether an array, a number, or one in a list, is finite and larger than 1e10 in magnitude."""
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = [np.abs(x) for x in _numbers(arr) if x.dtype.kind in "fc"]
        return any(bool(((x > HUGE) & ~np.isinf(x)).any()) for x in sizes)


class _NanGuardLinker(HookedLinker):
    def __init__(self, nan: bool, inf: bool, big: bool) -> None:
        self.nan, self.inf, self.big = nan, inf, big

    def hook(self, fgraph: FunctionGraph) -> RunNode:
        return self.run_guarded

    def check_input(self, v: Variable, value: Any) -> None:
        found = self.fault(v, value)
        if found:
            made = describe(v.origin, indent="")
            self.act(f"{found} detected in the input {v} (type {v.type}). {made}")

    def run_guarded(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        results = with_defined_values(node, run_node(node, inputs))
        for k, (v, value) in enumerate(zip(node.outputs, results)):
            found = self.fault(v, value)
            if found:
                made = describe(node.origin, indent="")
                self.act(f"{found} detected in output {k} of the node {expression(v, 2)}, {made}")
        return results

    def fault(self, v: Variable, value: Any) -> str:
        """What is wrong with the value of a variable; empty if nothing is, or it is exempt."""
        if not getattr(v.tag, "nan_guard_mode_check", True):
            return ""
        if self.nan and contains_nan(value):
            return "NaN"
        if self.inf and contains_inf(value):
            return "Inf"
        return "Big value" if self.big and contains_big(value) else ""

    def act(self, message: str) -> None:
        """Raise, warn or start the debugger, as ``config.NanGuardMode__action`` says."""
        action = config.NanGuardMode__action
        if action == "raise":
            raise AssertionError(message)
        if action == "warn":
            warnings.warn(message, stacklevel=2)
            return
        sys.stdout.write(message + "\n")
        pdb.set_trace()


class NanGuardMode(Mode):
    """A mode that raises AssertionError at the first NaN, infinity or huge number of a call.

    The message names the node that made it and the line of the user's program; a note lists the
    values of its inputs.  Nodes of graphs inside ops, such as the steps of a loop, are checked one
    by one; so are inputs of the function that nodes read.  A variable with
    ``v.tag.nan_guard_mode_check = False`` is not checked.

    Parameters
    ----------
    nan_is_error, inf_is_error, big_is_error
        whether to look for NaN, infinities, and numbers of a magnitude over 1e10; None: the
        settings ``NanGuardMode__nan_is_error``, ...  The setting ``NanGuardMode__action`` says what
        to do when one is found: ``raise``, ``warn``, or ``pdb``.
    optimizer, db
        see `Mode`
    linker
        accepted for compatibility, ValueError for backends that do not run node by node
    """

    def __init__(
        self,
        nan_is_error: bool | None = None,
        inf_is_error: bool | None = None,
        big_is_error: bool | None = None,
        optimizer: Any = "default",
        linker: Any = None,
        db: Any = None,
    ) -> None:
        require_reference("NanGuardMode", linker)
        nan = config.NanGuardMode__nan_is_error if nan_is_error is None else nan_is_error
        inf = config.NanGuardMode__inf_is_error if inf_is_error is None else inf_is_error
        big = config.NanGuardMode__big_is_error if big_is_error is None else big_is_error
        super().__init__(_NanGuardLinker(bool(nan), bool(inf), bool(big)), optimizer, db)
