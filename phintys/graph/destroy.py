"""Features that reject illegal in-place operations, and order readers before writers.

An op declares in ``view_map`` that an output is a view of an input, and in ``destroy_map`` that it
computes an output in the memory of an input, which it *destroys*.  Variables that are views of each
other have a common *root*: the variable that owns the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from phintys.errors import AlreadyThere, InconsistencyError
from phintys.graph.clients import Output
from phintys.graph.features import Bookkeeper, Feature
from phintys.graph.ignored import ignores
from phintys.graph.op import Op
from phintys.graph.traversal import toposort_with_orderings
from phintys.graph.variable import Apply, Constant, Variable


class ProtocolError(Exception):
    """An op declares a ``view_map`` that is not supported."""


class DestroyHandler(Bookkeeper):
    """A feature that rejects graphs with conflicting in-place operations.

    `on_validate` raises `InconsistencyError` if a constant or an output of the graph is destroyed,
    if memory is destroyed twice, or if memory would have to be read after it was destroyed.
    `orderings` makes the execution order place all readers before the destroyer.

    The graph gets the attribute ``destroy_handler`` and the methods ``destroyers`` and
    ``has_destroyers``.

    Parameters
    ----------
    do_imports_on_attach
        whether to process the nodes that are in the graph already
    algo
        ignored: there is one algorithm
    """

    provides = ("destroyers", "has_destroyers")

    @ignores("algo")
    def __init__(self, do_imports_on_attach: bool = True, algo: str | None = None) -> None:
        self.do_imports_on_attach = do_imports_on_attach
        self.fgraph: Any = None
        self._destroying: dict[Apply, None] = {}

    # ----- the feature
    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(f, DestroyHandler) for f in fgraph._features):
            raise AlreadyThere("A DestroyHandler is attached already.")
        if self.fgraph is not None:
            raise ValueError("A DestroyHandler belongs to one graph; use clone().")
        self.fgraph = fgraph
        fgraph.destroy_handler = self
        if self.do_imports_on_attach:
            super().on_attach(fgraph)

    def on_detach(self, fgraph: Any) -> None:
        super().on_detach(fgraph)
        del fgraph.destroy_handler
        self.fgraph = None

    def clone(self) -> DestroyHandler:
        return type(self)(self.do_imports_on_attach)

    def on_import(self, fgraph: Any, node: Apply, reason: Any) -> None:
        if node.op.destroy_map:
            self._destroying[node] = None
        for source in node.op.view_map.values():
            if len(source) > 1:
                raise ProtocolError(
                    f"{node.op}: an output can be a view of one input, not of inputs {source}."
                )

    def on_prune(self, fgraph: Any, node: Apply, reason: Any) -> None:
        self._destroying.pop(node, None)

    def on_validate(self, fgraph: Any) -> None:
        orderings = self.orderings(fgraph)
        try:
            for _ in toposort_with_orderings(fgraph.outputs, orderings=orderings):
                pass
        except ValueError as exc:
            raise InconsistencyError(
                "No order of execution keeps every value until it has been read: in-place "
                "operations depend on each other in a cycle."
            ) from exc

    def orderings(self, fgraph: Any) -> dict[Apply, list[Apply]]:
        """For each destroying node, the nodes that read the memory before it.

        `InconsistencyError` if memory is destroyed that must not be.
        """
        found: dict[Apply, list[Apply]] = {}
        destroyed: dict[Variable, Apply] = {}
        for node in self._destroying:
            before: dict[Apply, None] = {}
            for i in destroyed_inputs(node.op):
                root = view_root(node.inputs[i])
                _check_root(root, node, destroyed.setdefault(root, node))
                before.update((reader, None) for reader in self._readers(root, node, i))
            if before:
                found[node] = list(before)
        return found

    def _readers(self, root: Variable, destroyer: Apply, destroyed: int) -> Iterator[Apply]:
        """The other nodes that use the memory of ``root``, which ``destroyer`` overwrites."""
        for v in views(self.fgraph, root):
            for client, i in self.fgraph.clients[v]:
                if isinstance(client.op, Output):
                    raise InconsistencyError(
                        f"{destroyer.op} would overwrite {v}, which is output {client.op.idx}."
                    )
                if client is not destroyer:
                    yield client
                elif i != destroyed and not _tolerates(destroyer, destroyed, i, v):
                    raise InconsistencyError(
                        f"{destroyer.op} would overwrite its input {destroyed} while it reads the "
                        f"same memory through input {i}."
                    )

    # ----- queries
    def destroyers(self, fgraph: Any, r: Variable) -> list[Apply]:
        """The nodes that overwrite the memory of ``r``."""
        root = view_root(r)
        return [
            node
            for node in self._destroying
            if any(view_root(node.inputs[i]) is root for i in destroyed_inputs(node.op))
        ]

    def has_destroyers(self, fgraph: Any, protected_list: Iterable[Variable]) -> bool:
        """Whether the memory of one of the variables is overwritten."""
        roots = {view_root(v) for v in protected_list}
        return any(
            view_root(node.inputs[i]) in roots
            for node in self._destroying
            for i in destroyed_inputs(node.op)
        )


def destroyed_inputs(op: Op) -> list[int]:
    """The positions of the inputs that an op overwrites."""
    return list(dict.fromkeys(i for ins in op.destroy_map.values() for i in ins))


def view_root(v: Variable) -> Variable:
    """The variable that owns the memory of ``v``: itself, unless it is a view."""
    while v.owner is not None:
        source = v.owner.op.view_map.get(v.index)
        if not source:
            break
        v = v.owner.inputs[source[0]]
    return v


def views(fgraph: Any, root: Variable) -> list[Variable]:
    """``root`` and all variables of the graph that are views of it."""
    found = [root]
    for v in found:  # the loop appends to it
        for client, i in fgraph.clients[v]:
            found += [client.outputs[o] for o, ins in client.op.view_map.items() if i in ins]
    return found


def _check_root(root: Variable, node: Apply, first: Apply) -> None:
    """Raise if ``node`` destroys a constant, or memory that ``first`` destroys already."""
    if isinstance(root, Constant):
        raise InconsistencyError(f"{node.op} would overwrite the constant {root}.")
    if first is not node:
        raise InconsistencyError(f"{first.op} and {node.op} would both overwrite {root}.")


def _tolerates(node: Apply, destroyed: int, other: int, v: Variable) -> bool:
    """Whether the op allows its input ``other`` to share the memory of its destroyed input."""
    pairs = [*node.op.destroyhandler_tolerate_aliased]
    if v is node.inputs[destroyed]:
        pairs += node.op.destroyhandler_tolerate_same
    return (destroyed, other) in pairs


class Supervisor(Feature):
    """A feature that rejects graphs which overwrite the memory of the given variables.

    Attach it before in-place operations are introduced: if the graph violates it already, every
    later validation fails.
    """

    def __init__(self, protected: Iterable[Variable]) -> None:
        self.protected: Sequence[Variable | int] = list(protected)
        self.fgraph: Any = None

    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(f, Supervisor) for f in fgraph._features):
            raise AlreadyThere("A Supervisor is attached already.")
        self.protected = [fgraph.inputs[v] if isinstance(v, int) else v for v in self.protected]
        self.fgraph = fgraph

    def clone(self) -> Supervisor:
        """A supervisor for a copy of the graph, which refers to protected inputs by position."""
        position = {v: i for i, v in enumerate(self.fgraph.inputs)} if self.fgraph else {}
        copy = type(self)(())
        copy.protected = [v if isinstance(v, int) else position.get(v, v) for v in self.protected]
        return copy

    def on_validate(self, fgraph: Any) -> None:
        if not hasattr(fgraph, "destroy_handler"):
            return
        if not fgraph.has_destroyers(self.protected):
            return
        for v in self.protected:
            for node in fgraph.destroyers(v):
                raise InconsistencyError(f"{node.op} would overwrite the protected variable {v}.")


def inplace_candidates(
    fgraph: Any, inputs: Iterable[Variable], protected_inputs: Iterable[Variable] | None = None
) -> list[Variable]:
    """Those of ``inputs`` whose memory may be overwritten.

    Left out are constants, protected variables (by default those of a `Supervisor`), outputs of the
    graph, what is overwritten already, and views of all these.
    """
    if protected_inputs is None:
        supervisors = [f for f in fgraph._features if isinstance(f, Supervisor)]
        protected_inputs = [v for s in supervisors for v in s.protected if not isinstance(v, int)]
    taken = {view_root(v) for v in (*protected_inputs, *fgraph.outputs)}
    return [
        v
        for v in inputs
        if (root := view_root(v)) not in taken
        and not isinstance(root, Constant)
        and not fgraph.has_destroyers([v])
    ]
