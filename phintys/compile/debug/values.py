"""The values of expressions for the arguments of one call, computed by ``perform``."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from phintys.compile.debug.hooks import with_defined_values
from phintys.graph.perform import run_node
from phintys.graph.traversal import sorted_nodes
from phintys.graph.variable import Apply, Constant, Variable

_PACKAGE = __name__.partition(".")[0] + "."


class Unknown(Exception):
    """The value of a variable that depends on something else than the inputs that are given."""


class Values:
    """The values of variables; each node is computed once.

    A node that raises has an exception as its value, as has what depends on it.
    """

    def __init__(self, given: Mapping[Variable, Any]) -> None:
        self.known: dict[Variable, Any] = dict(given)

    def of(self, variables: Sequence[Variable]) -> list[Any]:
        """The values of variables, of which some may be exceptions."""
        for node in sorted_nodes([v.owner for v in variables if v not in self.known], self.known):
            if node.outputs[0] not in self.known:
                self.known.update(zip(node.outputs, self._computed(node)))
        return [self._value(v) for v in variables]

    def _value(self, v: Variable) -> Any:
        if isinstance(v, Constant):
            return v.data
        return self.known.get(v, _UNKNOWN)

    def _computed(self, node: Apply) -> list[Any]:
        inputs = [self._value(v) for v in node.inputs]
        failed = next((x for x in inputs if isinstance(x, Exception)), None)
        if failed is not None:
            return [failed] * len(node.outputs)
        try:
            return run_safely(node, inputs)
        except Exception as exc:  # an error is a result, which is compared with others
            return [exc] * len(node.outputs)

    def evaluate(self, variables: Sequence[Variable], given: Mapping[Variable, Any]) -> list[Any]:
        """The values of variables; raises what a node raises.  The form that `Side` needs.

        ``given`` are the values of all inputs, or those of a few variables to begin with.
        """
        same = all(self.known.get(v, self) is x for v, x in given.items())
        found = (self if same else Values(given)).of(variables)
        for value in found:
            if isinstance(value, Exception):
                raise value
        return found


_UNKNOWN = Unknown("The value depends on inputs that are not known.")


def is_of_package(op: Any) -> bool:
    """Whether the class of an op is defined in this package."""
    return type(op).__module__.startswith(_PACKAGE)


def run_safely(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    """The results of a node, without effect on ``inputs``, whatever the op declares."""
    if not is_of_package(node.op):
        inputs = [copy.deepcopy(x) for x in inputs]
    return with_defined_values(node, run_node(node, inputs))
