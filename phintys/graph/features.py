"""Features: objects attached to a FunctionGraph that are told of every change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from phintys.errors import AlreadyThere, InconsistencyError, ReplacementDidNotRemoveError
from phintys.graph.variable import Apply, Constant, Variable

#: Methods of a feature that a FunctionGraph calls.
CALLBACKS = ("on_import", "on_change_input", "on_prune", "on_validate", "orderings")


class Feature:
    """Base of features.  Override what you need; what is not overridden costs nothing.

    ``provides`` names methods that the graph offers as its own while the feature is attached:
    ``fgraph.name(...)`` calls ``feature.name(fgraph, ...)``.
    """

    provides: ClassVar[tuple[str, ...]] = ()

    def on_attach(self, fgraph: Any) -> None:
        """Attached to ``fgraph``; raise `AlreadyThere` to decline."""

    def on_detach(self, fgraph: Any) -> None:
        """Detached from ``fgraph``."""

    def on_import(self, fgraph: Any, node: Apply, reason: Any) -> None:
        """A node entered the graph."""

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        """Input ``i`` of ``node`` changed from ``var`` to ``new_var``."""

    def on_prune(self, fgraph: Any, node: Apply, reason: Any) -> None:
        """A node left the graph."""

    def on_validate(self, fgraph: Any) -> None:
        """Raise `InconsistencyError` if the graph is not legal."""

    def orderings(self, fgraph: Any) -> dict[Apply, list[Apply]]:
        """Nodes that have to be executed before a node, in addition to its inputs."""
        return {}

    def clone(self) -> Feature:
        """The feature for a copy of the graph.  Features with state must override this."""
        return self

    def overrides(self, name: str) -> bool:
        """Whether this feature has a method of its own under ``name``."""
        return getattr(type(self), name, None) is not getattr(Feature, name) and hasattr(self, name)


class Bookkeeper(Feature):
    """A feature that is told of the nodes present when it is attached, and when it is detached."""

    def on_attach(self, fgraph: Any) -> None:
        for node in fgraph.toposort():
            self.on_import(fgraph, node, "on_attach")

    def on_detach(self, fgraph: Any) -> None:
        for node in fgraph.toposort():
            self.on_prune(fgraph, node, "Bookkeeper.detach")


class History(Feature):
    """Records changes, so that the graph can be taken back to a checkpoint."""

    provides = ("checkpoint", "revert")

    def __init__(self) -> None:
        self.changes: list[tuple[Apply, int, Variable, Any]] = []
        self._reverting = False

    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(f, History) for f in fgraph._features):
            raise AlreadyThere("A History is attached already.")
        self.changes.clear()

    def clone(self) -> History:
        return type(self)()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"changes": []}  # what is pickled cannot be taken back

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        if not self._reverting:
            self.changes.append((node, i, var, reason))

    def checkpoint(self, fgraph: Any) -> int:
        """A mark to return to."""
        return len(self.changes)

    def revert(self, fgraph: Any, checkpoint: int) -> None:
        """Undo every change since the checkpoint, without type checks (types may have narrowed)."""
        self._reverting = True
        try:
            while len(self.changes) > checkpoint:
                node, i, var, reason = self.changes.pop()
                fgraph.change_node_input(node, i, var, reason=("Revert", reason), check=False)
        finally:
            self._reverting = False


class FullHistory(Feature):
    """Records every change; `start`, `end`, `next`, `prev` and `goto` step through them."""

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
        """The graph as it was after change ``checkpoint`` (-1: before all)."""
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
        self.goto(-1)

    def end(self) -> None:
        self.goto(len(self.bw) - 1)

    def next(self) -> None:
        self.goto(min(self.pointer + 1, len(self.bw) - 1))

    def prev(self) -> None:
        self.goto(max(self.pointer - 1, -1))


class Validator(Feature):
    """Gives a graph ``validate()`` and ``consistent()``."""

    provides = ("validate", "consistent")

    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(f, Validator) for f in fgraph._features):
            raise AlreadyThere("A Validator is attached already.")

    def validate(self, fgraph: Any) -> None:
        """Let every feature check the graph; `InconsistencyError` if one objects."""
        fgraph.execute_callbacks("on_validate")

    def consistent(self, fgraph: Any) -> bool:
        """Whether `validate` passes."""
        try:
            self.validate(fgraph)
        except InconsistencyError:
            return False
        return True


class ReplaceValidate(History, Validator):
    """Replacements that are rolled back if the graph does not validate afterwards."""

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
        """Replace one variable; roll back and raise if the graph becomes illegal."""
        self.replace_all_validate(fgraph, [(r, new_r)], reason=reason, **kwargs)

    def replace_all_validate(
        self,
        fgraph: Any,
        replacements: Iterable[tuple[Variable, Variable]],
        reason: Any = None,
        verbose: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Replace several variables; roll back all of it and raise if the graph becomes illegal."""
        mark = self.checkpoint(fgraph)
        try:
            for r, new_r in replacements:
                fgraph.replace(r, new_r, reason=reason, **kwargs)
            self.validate(fgraph)
        except Exception:
            self.revert(fgraph, mark)
            raise

    def replace_all_validate_remove(
        self,
        fgraph: Any,
        replacements: Iterable[tuple[Variable, Variable]],
        remove: Sequence[Apply],
        reason: Any = None,
        warn: bool = True,
        **kwargs: Any,
    ) -> None:
        """Like `replace_all_validate`; also checks that the nodes ``remove`` left the graph."""
        mark = self.checkpoint(fgraph)
        self.replace_all_validate(fgraph, replacements, reason=reason, **kwargs)
        left = [node for node in remove if node in fgraph.apply_nodes]
        if left:
            self.revert(fgraph, mark)
            raise ReplacementDidNotRemoveError(
                f"{reason} was to remove {', '.join(str(n.op) for n in left)}, still in use."
            )


class PreserveVariableAttributes(Feature):
    """Passes the name and the ``values_eq_approx`` tag of a variable to its replacement."""

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        if var.name is not None and new_var.name is None and not isinstance(new_var, Constant):
            new_var.name = var.name
        approx = getattr(var.tag, "values_eq_approx", None)
        if approx is not None and not hasattr(new_var.tag, "values_eq_approx"):
            new_var.tag.values_eq_approx = approx


class NoOutputFromInplace(Feature):
    """Forbids that the given outputs are computed in the memory of something else."""

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
    """Forbids that an output is computed in the memory of the given inputs."""

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
