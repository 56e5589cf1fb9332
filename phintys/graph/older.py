"""The older spellings of an op's methods, beside those of `Op`.

An op of a user may define ``L_op`` or ``grad`` in place of `Op.pullback`, and ``R_op`` in place of
`Op.pushforward`; who calls the older methods of an op gets the results of the newer ones.  Nodes
may be run one by one through thunks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from phintys.errors import MethodNotDefined
from phintys.graph.origin import stacklevel
from phintys.graph.type import DisconnectedType, disconnected_type
from phintys.graph.variable import Apply, Variable


class OlderInterface:
    """Base of `Op`: derivatives and execution under their older names."""

    # ----- reverse mode
    def L_op(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Older name of `Op.pullback`."""
        op: Any = self
        return _without_none(op.pullback(inputs, outputs, output_grads))

    def grad(self, inputs: Sequence[Variable], output_grads: Sequence[Variable]) -> list[Variable]:
        """Older form of `Op.pullback`, without the outputs."""
        op: Any = self
        return _without_none(op.pullback(inputs, op.make_node(*inputs).outputs, output_grads))

    def _older_pullback(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], given: Sequence[Variable]
    ) -> list[Variable]:
        """What ``L_op`` or ``grad`` of a subclass returns; MethodNotDefined if it has neither.

        They give a FutureWarning.
        """
        if type(self).L_op is not OlderInterface.L_op:
            self._warn_of_older("pullback", "L_op")
            return self.L_op(inputs, outputs, given)
        if type(self).grad is not OlderInterface.grad:
            self._warn_of_older("pullback", "grad")
            return self.grad(inputs, given)
        raise MethodNotDefined(
            f"{type(self).__name__} has no pullback: {self} is not differentiable."
        )

    # ----- forward mode
    def R_op(self, inputs: Sequence[Variable], eval_points: Sequence[Any]) -> list[Any]:
        """Older form of `Op.pushforward`, with None for "no tangent"."""
        op: Any = self
        tangents = _without_none(eval_points)
        results = op.pushforward(inputs, op.make_node(*inputs).outputs, tangents)
        return [None if _is_missing(r) else r for r in results]

    def _older_pushforward(
        self, inputs: Sequence[Variable], given: Sequence[Variable]
    ) -> list[Variable]:
        """What ``R_op`` of a subclass returns; MethodNotDefined if it has none.

        It gives a FutureWarning.
        """
        if type(self).R_op is OlderInterface.R_op:
            raise MethodNotDefined(f"{type(self).__name__} has no pushforward.")
        self._warn_of_older("pushforward", "R_op")
        points = [None if _is_missing(t) else t for t in given]
        return _without_none(self.R_op(inputs, points))

    def _warn_of_older(self, method: str, older: str) -> None:
        """Give the FutureWarning that the class defines ``older`` in place of ``method``."""
        message = f"{type(self).__name__} should implement `{method}` instead of `{older}`."
        warnings.warn(message, FutureWarning, stacklevel=stacklevel())

    # ----- running one node in Python
    #: whether the class defines `make_thunk` or `make_py_thunk`: they take the place of `perform`
    has_own_thunk: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.has_own_thunk = (
            cls.make_thunk is not OlderInterface.make_thunk
            or cls.make_py_thunk is not OlderInterface.make_py_thunk
        )

    def make_thunk(
        self,
        node: Apply,
        storage_map: dict[Variable, list[Any]],
        compute_map: dict[Variable, list[bool]] | None = None,
        no_recycling: Sequence[Variable] = (),
        impl: str | None = None,
    ) -> Callable[[], None]:
        """A function without arguments that runs `Op.perform` between storage cells."""
        return self.make_py_thunk(node, storage_map, compute_map, no_recycling)

    def make_py_thunk(
        self,
        node: Apply,
        storage_map: dict[Variable, list[Any]],
        compute_map: dict[Variable, list[bool]] | None = None,
        no_recycling: Sequence[Variable] = (),
        debug: bool = False,
    ) -> Callable[[], None]:
        """See `make_thunk`."""
        op: Any = self
        op.prepare_node(node, storage_map, compute_map, "py")
        sources = [storage_map[v] for v in node.inputs]
        targets = [storage_map[v] for v in node.outputs]
        done = [] if compute_map is None else [compute_map[v] for v in node.outputs]

        def thunk() -> None:
            op.perform(node, [s[0] for s in sources], targets)
            for cell in done:
                cell[0] = True

        return thunk

    def prepare_node(
        self, node: Apply, storage_map: Any, compute_map: Any, impl: str | None
    ) -> None:
        """Called before a node is run for the first time; ``impl`` is ``"py"``."""


def _is_missing(g: Any) -> bool:
    return g is None or isinstance(g.type, DisconnectedType)


def _without_none(given: Sequence[Any]) -> list[Any]:
    """Derivatives, with variables of `DisconnectedType` in place of None."""
    return [disconnected_type() if g is None else g for g in given]
