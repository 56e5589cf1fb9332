"""Features: objects attached to a FunctionGraph, whose callbacks it calls on every change."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar
from weakref import ReferenceType, ref

from phintys.errors import AlreadyThere, InconsistencyError, ReplacementDidNotRemoveError
from phintys.graph.ignored import ignores
from phintys.graph.variable import Apply, Constant, Variable

#: The callbacks of a feature that a FunctionGraph calls.
CALLBACKS = ("on_import", "on_change_input", "on_prune", "on_validate", "orderings")


class Feature:
    """Base class of features.  A callback that a subclass does not override is never called.

    ``provides`` names methods of the feature that become methods of the graph while it is attached:
    ``fgraph.name(...)`` calls ``feature.name(fgraph, ...)``.

    >>> from phintys.graph.fgraph import FunctionGraph
    >>> import phintys.tensor as pt
    >>> class Counter(Feature):
    ...     changes = 0
    ...
    ...     def on_change_input(self, fgraph, node, i, var, new_var, reason=None):
    ...         self.changes += 1
    >>> x, y = pt.dvectors("x", "y")
    >>> counter = Counter()
    >>> fgraph = FunctionGraph([x, y], [x * x], features=[counter], clone=False)
    >>> fgraph.replace(x, y)
    >>> counter.changes
    2
    """

    provides: ClassVar[tuple[str, ...]] = ()

    def on_attach(self, fgraph: Any) -> None:
        """Called when the feature is attached; raise `AlreadyThere` to not be attached."""

    def on_detach(self, fgraph: Any) -> None:
        """Called when the feature is detached."""

    def on_import(self, fgraph: Any, node: Apply, reason: Any) -> None:
        """Called after ``node`` was added to the graph."""

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        """Called after input ``i`` of ``node`` changed from ``var`` to ``new_var``."""

    def on_prune(self, fgraph: Any, node: Apply, reason: Any) -> None:
        """Called after ``node`` was removed from the graph."""

    def on_validate(self, fgraph: Any) -> None:
        """Raise `InconsistencyError` if the graph is not legal."""

    def orderings(self, fgraph: Any) -> dict[Apply, list[Apply]]:
        """For each node, nodes that must be executed before it besides those of its inputs."""
        return {}

    def clone(self) -> Feature:
        """The feature to attach to a copy of the graph.  Features with state must override this."""
        return self

    def overrides(self, name: str) -> bool:
        """Whether the class of this feature overrides the callback ``name``."""
        return getattr(type(self), name, None) is not getattr(Feature, name) and hasattr(self, name)


class Bookkeeper(Feature):
    """A feature that gets `on_import` for all nodes on attachment, `on_prune` on detachment."""

    def on_attach(self, fgraph: Any) -> None:
        for node in fgraph.toposort():
            self.on_import(fgraph, node, "on_attach")

    def on_detach(self, fgraph: Any) -> None:
        for node in fgraph.toposort():
            self.on_prune(fgraph, node, "Bookkeeper.detach")


class History(Feature):
    """A feature that records changes, so that the graph can be reverted to a checkpoint."""

    provides = ("checkpoint", "revert", "forget_changes")

    def __init__(self) -> None:
        self.changes: list[tuple[Apply, int, Variable, Any]] = []
        self._reverting = False
        self._graph: ReferenceType[Any] | None = None

    @property
    def history(self) -> dict[Any, list[tuple[Apply, int, Variable, Any]]]:
        """The graph that the feature is attached to -> its changes.

        Each is a node, the number of an input, the variable before the change, and the reason.
        """
        fgraph = None if self._graph is None else self._graph()
        return {} if fgraph is None else {fgraph: self.changes}

    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(f, History) for f in fgraph._features):
            raise AlreadyThere("A History is attached already.")
        self.changes.clear()
        self._graph = ref(fgraph)

    def on_detach(self, fgraph: Any) -> None:
        self._graph = None

    def clone(self) -> History:
        return type(self)()

    def __getstate__(self) -> dict[str, Any]:
        # an unpickled graph cannot be reverted
        return self.__dict__ | {"changes": [], "_graph": None}

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        if not self._reverting:
            self.changes.append((node, i, var, reason))

    def checkpoint(self, fgraph: Any) -> int:
        """The current position in the history, for `revert`."""
        return len(self.changes)

    def forget_changes(self, fgraph: Any) -> None:
        """Forget the history, which keeps the replaced variables alive: no checkpoint is left."""
        self.changes.clear()

    def revert(self, fgraph: Any, checkpoint: int) -> None:
        """Undo every change since ``checkpoint``.

        Types are not checked: an input whose type became narrower gets its wider type back.
        """
        self._reverting = True
        try:
            while len(self.changes) > checkpoint:
                node, i, var, reason = self.changes.pop()
                fgraph.change_node_input(node, i, var, reason=("Revert", reason), check=False)
        finally:
            self._reverting = False


class FullHistory(Feature):
    """A feature that records every change, and steps through them in both directions.

    ``callback()`` is called after each recorded change.
    """

    def __init__(self, callback: Any = None) -> None:
        self.fw: list[tuple[Apply, int, Variable, Any]] = []
        self.bw: list[tuple[Apply, int, Variable, Any]] = []
        self.pointer = -1
        self.fgraph: Any = None
        self.callback = callback
        self._replaying = False

    def on_attach(self, fgraph: Any) -> None:
        if self.fgraph is not None:
            raise ValueError("A FullHistory belongs to one graph.")
        self.fgraph = fgraph

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        if self._replaying:
            return
        self.bw.append((node, i, var, reason))
        self.fw.append((node, i, new_var, reason))
        self.pointer += 1
        if self.callback is not None:
            self.callback()

    def goto(self, checkpoint: int) -> None:
        """Take the graph to its state after change number ``checkpoint`` (-1: before all)."""
        self._replaying = True
        try:
            while self.pointer < checkpoint:
                self.pointer += 1
                self._apply(self.fw[self.pointer])
            while self.pointer > checkpoint:
                self._apply(self.bw[self.pointer])
                self.pointer -= 1
        finally:
            self._replaying = False

    def _apply(self, entry: tuple[Apply, int, Variable, Any]) -> None:
        node, i, var, reason = entry
        self.fgraph.change_node_input(node, i, var, reason=reason, check=False, import_missing=True)

    def start(self) -> None:
        """Take the graph to its state before all changes."""
        self.goto(-1)

    def end(self) -> None:
        """Take the graph to its state after all changes."""
        self.goto(len(self.bw) - 1)

    def next(self) -> None:
        """Apply the next change again, if there is one."""
        self.goto(min(self.pointer + 1, len(self.bw) - 1))

    def prev(self) -> None:
        """Undo the latest applied change, if there is one."""
        self.goto(max(self.pointer - 1, -1))


class Validator(Feature):
    """A feature that provides ``fgraph.validate()`` and ``fgraph.consistent()``."""

    provides = ("validate", "consistent")

    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(f, Validator) for f in fgraph._features):
            raise AlreadyThere("A Validator is attached already.")

    def validate(self, fgraph: Any) -> None:
        """Call `on_validate` of every feature; `InconsistencyError` if the graph is not legal.

        ``fgraph.validate_time`` is the time that this has taken, in seconds.
        """
        start = time.perf_counter()
        fgraph.execute_callbacks("on_validate")
        fgraph.validate_time = time.perf_counter() - start

    def consistent(self, fgraph: Any) -> bool:
        """Whether `validate` passes."""
        try:
            self.validate(fgraph)
        except InconsistencyError:
            return False
        return True


class ReplaceValidate(History, Validator):
    """A feature that provides replacements which are rolled back if the graph becomes illegal."""

    provides = (
        *History.provides,
        *Validator.provides,
        "replace_validate",
        "replace_all_validate",
        "replace_all_validate_remove",
    )

    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(f, ReplaceValidate) for f in fgraph._features):
            raise AlreadyThere("A ReplaceValidate is attached already.")
        History.on_attach(self, fgraph)
        Validator.on_attach(self, fgraph)

    def replace_validate(
        self, fgraph: Any, r: Variable, new_r: Variable, reason: Any = None, **kwargs: Any
    ) -> None:
        """Replace ``r`` by ``new_r``; undo it and raise `InconsistencyError` if that is illegal."""
        self.replace_all_validate(fgraph, [(r, new_r)], reason=reason, **kwargs)

    def replace_all_validate(
        self,
        fgraph: Any,
        replacements: Iterable[tuple[Variable, Variable]],
        reason: Any = None,
        verbose: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Replace several variables; on any exception, undo all replacements and raise it again.

        ``replacements`` are (old, new) pairs, printed if ``verbose``.  `InconsistencyError` if the
        graph becomes illegal.
        """
        mark = self.checkpoint(fgraph)
        try:
            for r, new_r in replacements:
                fgraph.replace(r, new_r, reason=reason, verbose=verbose, **kwargs)
            self.validate(fgraph)
        except Exception:
            self.revert(fgraph, mark)
            raise

    @ignores("warn")
    def replace_all_validate_remove(
        self,
        fgraph: Any,
        replacements: Iterable[tuple[Variable, Variable]],
        remove: Sequence[Apply],
        reason: Any = None,
        warn: bool = True,
        **kwargs: Any,
    ) -> None:
        """Like `replace_all_validate`; also requires that the nodes ``remove`` leave the graph.

        If one of them is still used, all replacements are undone and `ReplacementDidNotRemoveError`
        is raised.
        """
        mark = self.checkpoint(fgraph)
        self.replace_all_validate(fgraph, replacements, reason=reason, **kwargs)
        left = [node for node in remove if node in fgraph.apply_nodes]
        if left:
            self.revert(fgraph, mark)
            raise ReplacementDidNotRemoveError(
                f"{reason} did not remove {', '.join(str(n.op) for n in left)} from the graph: the "
                "results are still used."
            )


class PreserveVariableAttributes(Feature):
    """A feature that copies the name and the tag ``values_eq_approx`` of a replaced variable."""

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        if var.name is not None and new_var.name is None and not isinstance(new_var, Constant):
            new_var.name = var.name
        approx = getattr(var.tag, "values_eq_approx", None)
        if approx is not None and not hasattr(new_var.tag, "values_eq_approx"):
            new_var.tag.values_eq_approx = approx


class NoOutputFromInplace(Feature):
    """A feature that rejects graphs in which one of the given outputs is computed in place."""

    def __init__(self, protected_out_ids: Iterable[int]) -> None:
        self.protected_out_ids = tuple(protected_out_ids)

    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(f, NoOutputFromInplace) for f in fgraph._features):
            raise AlreadyThere("A NoOutputFromInplace is attached already.")

    def on_validate(self, fgraph: Any) -> None:
        for i in self.protected_out_ids:
            out = fgraph.outputs[i]
            if out.owner is not None and out.index in out.owner.op.destroy_map:
                raise InconsistencyError(f"Output {i} is computed in place by {out.owner.op}.")


class NoOutputInplaceOnInput(Feature):
    """A feature that rejects graphs whose outputs overwrite the memory of the given inputs."""

    def __init__(self, protected_input_idxs: Iterable[int]) -> None:
        self.protected_input_idxs = tuple(protected_input_idxs)

    def on_validate(self, fgraph: Any) -> None:
        protected = {fgraph.inputs[i] for i in self.protected_input_idxs}
        for out in fgraph.outputs:
            if out.owner is None:
                continue
            for i in out.owner.op.destroy_map.get(out.index, ()):
                if out.owner.inputs[i] in protected:
                    raise InconsistencyError(
                        f"{out.owner.op} would overwrite the protected input {out.owner.inputs[i]}."
                    )


class PrintListener(Feature):
    """A feature that prints each change of the graph, unless ``active`` is False."""

    def __init__(self, active: bool = True) -> None:
        self.active = active

    def _say(self, text: str) -> None:
        if self.active:
            sys.stdout.write(text + "\n")

    def on_attach(self, fgraph: Any) -> None:
        self._say(f"-- attaching to: {fgraph}")

    def on_detach(self, fgraph: Any) -> None:
        self._say(f"-- detaching from: {fgraph}")

    def on_import(self, fgraph: Any, node: Apply, reason: Any) -> None:
        self._say(f"-- importing: {node}, reason: {reason}")

    def on_prune(self, fgraph: Any, node: Apply, reason: Any) -> None:
        self._say(f"-- pruning: {node}, reason: {reason}")

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        self._say(f"-- changing ({node}.inputs[{i}]) from {var} to {new_var}, reason: {reason}")
