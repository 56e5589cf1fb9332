"""Walkers: graph rewriters that apply a node rewriter to the nodes of a FunctionGraph."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

from phintys.errors import (
    InconsistencyError,
    RewriteError,
    RewriteTypeError,
    RewriteValueError,
)
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import inherit
from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.index import TrackIndex
from phintys.rewriting.rewriter import (
    FailureCallback,
    GraphRewriter,
    NodeRewriter,
    Rewriter,
    SequentialNodeRewriter,
    rewrite_error,
    rewriter_failed,
)
from phintys.rewriting.trace import current_recorder

Pairs = list[tuple[Variable, Any]]


class DispatchingFeature(Feature):
    """A feature that calls the given functions on changes of a graph; None: no call."""

    def __init__(
        self,
        importer: Callable[[Apply], None] | None,
        pruner: Callable[[Apply], None] | None = None,
        chin: Callable[..., None] | None = None,
        name: str | None = None,
    ) -> None:
        self.importer, self.pruner, self.chin = importer, pruner, chin
        self.name = name

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        if self.importer is not None:
            self.importer(node)

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        if self.pruner is not None:
            self.pruner(node)

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        if self.chin is not None:
            self.chin(node, i, var, new_var, reason)


class NodeProcessingGraphRewriter(GraphRewriter):
    """Base class of graph rewriters that apply a node rewriter to nodes.

    Parameters
    ----------
    node_rewriter
        the node rewriter
    ignore_newtrees
        whether the nodes that a rewrite adds are not visited; ``"auto"``: true if the rewriter's
        attribute ``reentrant`` is false
    failure_callback
        called with ``(exception, self, replacements, node_rewriter, node)`` when a rewrite fails;
        by default ``config.on_opt_error`` says what happens.  A replacement that a feature of the
        graph rejects (`InconsistencyError`) is not a failure: it is undone.  What is no replacement
        is a `RewriteError`.
    """

    def __init__(
        self,
        node_rewriter: NodeRewriter | None,
        ignore_newtrees: bool | Literal["auto"] = False,
        failure_callback: FailureCallback | None = None,
    ) -> None:
        self.node_rewriter = node_rewriter
        if ignore_newtrees == "auto":
            ignore_newtrees = not getattr(node_rewriter, "reentrant", True)
        self.ignore_newtrees = bool(ignore_newtrees)
        self.failure_callback = failure_callback

    def parts(self) -> Sequence[Rewriter]:
        return () if self.node_rewriter is None else (self.node_rewriter,)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        if self.node_rewriter is not None:
            self.node_rewriter.add_requirements(fgraph)

    # ----- following the graph while it changes
    def attach_updater(
        self,
        fgraph: FunctionGraph,
        importer: Callable[[Apply], None] | None,
        pruner: Callable[[Apply], None] | None,
        chin: Callable[..., None] | None = None,
        name: str | None = None,
    ) -> DispatchingFeature | None:
        """Attach a `DispatchingFeature`; None if no function is left to call.

        ``importer(node)`` is called for added nodes, unless `ignore_newtrees`, ``pruner(node)`` for
        removed nodes, and ``chin(node, i, old, new, reason)`` for changed inputs.
        """
        if self.ignore_newtrees:
            importer = None
        if importer is None and pruner is None and chin is None:
            return None
        updater = DispatchingFeature(importer, pruner, chin, name)
        fgraph.attach_feature(updater)
        return updater

    def detach_updater(self, fgraph: FunctionGraph, updater: DispatchingFeature | None) -> None:
        """Undo `attach_updater`."""
        if updater is not None:
            fgraph.remove_feature(updater)

    # ----- one node
    def process_node(
        self,
        fgraph: FunctionGraph,
        node: Apply,
        node_rewriter: NodeRewriter | None = None,
        enforce_tracks: bool = True,
    ) -> bool:
        """Apply a node rewriter at a node; return whether it replaced something.

        The default of ``node_rewriter`` is that of the walker.
        """
        rewriter = node_rewriter or self.node_rewriter
        if rewriter is None:
            raise ValueError("There is no node rewriter to try.")
        pairs: Pairs = []
        try:
            with inherit(node.origin):
                result = rewriter.transform(fgraph, node, enforce_tracks=enforce_tracks)
                if result is None or result is False:
                    return False
                pairs, remove = _replacements(fgraph, node, result)
                if not pairs:
                    return False
                _replace(fgraph, pairs, remove, rewriter)
        except InconsistencyError:
            return False
        except Exception as exc:
            self._failed(exc, pairs, rewriter, node)
            return False
        recorder = current_recorder()
        if recorder is not None:
            recorder(rewriter, node, pairs)
        return True

    def _failed(self, exc: Exception, pairs: Pairs, rewriter: NodeRewriter, node: Apply) -> None:
        if isinstance(exc, RewriteError):
            raise rewrite_error(rewriter, node, str(exc), type(exc)) from exc
        pairs = pairs or [(v, None) for v in node.outputs]
        callback = self.failure_callback or self.warn
        callback(exc, self, pairs, rewriter, node)

    @classmethod
    def warn(
        cls, exc: Exception, nav: Any, repl_pairs: Pairs, node_rewriter: Any, node: Apply
    ) -> None:
        """The default failure callback: ``config.on_opt_error`` says what happens."""
        rewriter_failed(exc, node_rewriter, node)

    @classmethod
    def warn_inplace(
        cls, exc: Exception, nav: Any, repl_pairs: Pairs, node_rewriter: Any, node: Apply
    ) -> None:
        """A failure callback like `warn`, which ignores `InconsistencyError`."""
        if not isinstance(exc, InconsistencyError):
            cls.warn(exc, nav, repl_pairs, node_rewriter, node)

    @classmethod
    def warn_ignore(
        cls, exc: Exception, nav: Any, repl_pairs: Pairs, node_rewriter: Any, node: Apply
    ) -> None:
        """A failure callback that ignores all exceptions."""

    ignore = warn_ignore


def _replacements(fgraph: FunctionGraph, node: Apply, result: Any) -> tuple[Pairs, Sequence[Apply]]:
    """The result of a node rewriter as (old, new) pairs, and the nodes that must be removed."""
    remove: Sequence[Apply] = ()
    if isinstance(result, dict):
        replacements: dict[Any, Any] = dict(result)
        remove = replacements.pop("remove", ())
        pairs = list(replacements.items())
    else:
        pairs = _pairs_of_outputs(fgraph, node, result)
    for old, new in pairs:
        if not (isinstance(old, Variable) and isinstance(new, Variable)):
            raise RewriteTypeError(f"asks to replace {old!r} by {new!r}: both must be variables.")
    return [(old, new) for old, new in pairs if old is not new], remove


def _pairs_of_outputs(fgraph: FunctionGraph, node: Apply, result: Any) -> list[tuple[Any, Any]]:
    """(old, new) pairs from a result with one replacement per output; RewriteError if illegal."""
    if isinstance(result, Variable):
        result = [result]
    if not isinstance(result, list | tuple):
        raise RewriteTypeError(
            f"gave wrong type of replacement: {result!r}. Return False, one variable per output, "
            "or a dict."
        )
    if len(result) != len(node.outputs):
        raise RewriteValueError(
            f"gave wrong number of replacements: {len(result)} for {len(node.outputs)} outputs."
        )
    pairs: list[tuple[Any, Any]] = []
    for i, (old, new) in enumerate(zip(node.outputs, result)):
        if new is not None:
            pairs.append((old, new))
        elif fgraph.clients.get(old):
            raise RewriteValueError(f"returned None for output {i}, which is in use.")
    return pairs


def _replace(fgraph: Any, pairs: Pairs, remove: Sequence[Apply], reason: Any) -> None:
    """Apply replacements to the graph; they are undone if it becomes illegal."""
    if remove:
        fgraph.replace_all_validate_remove(pairs, remove=remove, reason=reason)
    else:
        fgraph.replace_all_validate(pairs, reason=reason)


# ------------------------------------------------------------------------------- walking

Order = Literal["in_to_out", "out_to_in", "dfs"]


class NodeQueue:
    """The nodes that are still to be visited, as far as ``index`` tracks their ops.

    Orders: ``in_to_out`` visits inputs first and new nodes last; ``dfs`` inputs first and new nodes
    next; ``out_to_in`` outputs first and new nodes next.
    """

    def __init__(self, index: TrackIndex[Any], nodes: Iterable[Apply], order: Order) -> None:
        self._index = index
        self._queue = deque(n for n in nodes if index[n.op])
        if order == "dfs":
            self._queue.reverse()
        self._take = self._queue.popleft if order == "in_to_out" else self._queue.pop
        self.current: Apply | None = None

    def add(self, node: Apply, *change: Any) -> None:
        """Queue a node that was added to the graph, or whose inputs changed."""
        if node is not self.current and self._index[node.op]:
            self._queue.append(node)

    def next(self, fgraph: FunctionGraph) -> Apply | None:
        """The next node that is still in the graph; None at the end."""
        while self._queue:
            self.current = self._take()
            if self.current in fgraph.apply_nodes:
                return self.current
        return None


#: Limits beyond which a rewriter is reported not to terminate: the length of a chain of
#: replacements that leads to a node, and the number of new nodes that one original node leads to.
MAX_GENERATIONS, MAX_DESCENDANTS = 1000, 20_000


class Descent:
    """Records which nodes new nodes descend from, to detect a rewriter that does not terminate."""

    def __init__(self, queue: NodeQueue) -> None:
        self._queue = queue
        #: new node -> the original node it descends from, and the number of replacements since
        self._origins: dict[Apply, tuple[Apply, int]] = {}
        self._descendants: Counter[Apply] = Counter()

    def add(self, node: Apply) -> None:
        """Queue a node that was added to the graph while the current node was rewritten."""
        current = self._queue.current
        if current is not None and current is not node:
            first, generation = self._origins.get(current, (current, 0))
            self._origins[node] = first, generation + 1
            self._descendants[first] += 1
        self._queue.add(node)

    def check(self, node: Apply, rewriter: Any) -> None:
        """RewriteError if a limit is exceeded at ``node``."""
        first, generation = self._origins.get(node, (node, 0))
        if generation > MAX_GENERATIONS or self._descendants[first] > MAX_DESCENDANTS:
            raise rewrite_error(
                rewriter,
                node,
                f"does not terminate: {generation} successive replacements, and "
                f"{self._descendants[first]} new nodes come from {first}. The rewriter must not "
                "apply to its own results without end; or pass ignore_newtrees=True.",
            )


class WalkingGraphRewriter(NodeProcessingGraphRewriter):
    """A graph rewriter that applies a node rewriter to every node once.

    New nodes are visited too, unless ``ignore_newtrees``.  ``order`` is one of `NodeQueue`;
    ValueError otherwise.  RewriteError if the rewriter does not terminate (`MAX_GENERATIONS`,
    `MAX_DESCENDANTS`).
    """

    def __init__(
        self,
        node_rewriter: NodeRewriter,
        order: Order = "in_to_out",
        ignore_newtrees: bool | Literal["auto"] = False,
        failure_callback: FailureCallback | None = None,
    ) -> None:
        if order not in ("in_to_out", "out_to_in", "dfs"):
            raise ValueError(f"order must be 'in_to_out', 'out_to_in' or 'dfs', not {order!r}.")
        super().__init__(node_rewriter, ignore_newtrees, failure_callback)
        self.order: Order = order
        self._index = TrackIndex[None]([(None, node_rewriter.tracks())])

    def apply(self, fgraph: FunctionGraph, start_from: Sequence[Variable] | None = None) -> None:
        """Visit the nodes that ``start_from`` (default: the outputs of the graph) depends on."""
        nodes = fgraph.toposort()
        if start_from is not None:
            nodes = io_toposort(fgraph.inputs, start_from)
        queue = NodeQueue(self._index, nodes, self.order)
        descent = Descent(queue)
        updater = self.attach_updater(fgraph, descent.add, None, name=str(self))
        try:
            node = queue.next(fgraph)
            while node is not None:
                descent.check(node, self.node_rewriter)
                self.process_node(fgraph, node)
                node = queue.next(fgraph)
        finally:
            self.detach_updater(fgraph, updater)


def walking_rewriter(
    order: Order,
    *node_rewriters: NodeRewriter,
    name: str | None = None,
    failure_callback: FailureCallback | None = None,
    **kwargs: Any,
) -> WalkingGraphRewriter:
    """A `WalkingGraphRewriter` for one or several node rewriters.

    ``in2out``, ``out2in`` and ``dfs_rewriter`` are this function with the first argument given.
    ValueError if there is no node rewriter.

    >>> import phintys.tensor as pt
    >>> from phintys.rewriting.rewriter import SubstitutionNodeRewriter
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [pt.exp(pt.exp(x))], clone=False)
    >>> in2out(SubstitutionNodeRewriter(pt.exp, pt.log)).rewrite(fgraph)
    >>> fgraph.toposort()
    [Log(x), Log(Log.0)]
    """
    if not node_rewriters:
        raise ValueError("Give at least one node rewriter.")
    combined = (
        node_rewriters[0] if len(node_rewriters) == 1 else SequentialNodeRewriter(*node_rewriters)
    )
    walker = WalkingGraphRewriter(combined, order, failure_callback=failure_callback, **kwargs)
    walker.name = name or combined.name
    return walker


in2out = partial(walking_rewriter, "in_to_out")
out2in = partial(walking_rewriter, "out_to_in")
dfs_rewriter = partial(walking_rewriter, "dfs")


class OpKeyGraphRewriter(NodeProcessingGraphRewriter):
    """A walker for a rewriter with tracks; inputs first, new nodes next.

    TypeError if the rewriter is tried at every op.
    """

    def __init__(
        self,
        node_rewriter: NodeRewriter,
        ignore_newtrees: bool = False,
        failure_callback: FailureCallback | None = None,
    ) -> None:
        if node_rewriter.tracks() is None:
            raise TypeError(f"{node_rewriter} has no tracks, which OpKeyGraphRewriter needs.")
        super().__init__(node_rewriter, ignore_newtrees, failure_callback)
        self._walker = WalkingGraphRewriter(node_rewriter, "dfs", ignore_newtrees, failure_callback)

    def apply(self, fgraph: FunctionGraph) -> None:
        self._walker.apply(fgraph)


# ------------------------------------------------------- expressions that are not in a graph


def pre_greedy_node_rewriter(
    fgraph: FunctionGraph, rewrites: Sequence[NodeRewriter], out: Variable
) -> Variable:
    """Apply node rewriters to an expression outside of ``fgraph``; return the new ``out``.

    Nodes are visited inputs first.  Nodes of ``fgraph`` are not changed; those of the expression
    are changed in place.
    """
    index = TrackIndex[NodeRewriter]((r, r.tracks()) for r in rewrites)
    replacements: dict[Variable, Variable] = {}
    order = [n for n in io_toposort(fgraph.variables, [out]) if n not in fgraph.apply_nodes]
    for node in order:
        node.inputs[:] = [replacements.get(v, v) for v in node.inputs]
        _rewrite_outside(fgraph, node, index, replacements)
    return replacements.get(out, out)


def _rewrite_outside(
    fgraph: FunctionGraph,
    node: Apply,
    index: TrackIndex[NodeRewriter],
    replacements: dict[Variable, Variable],
) -> None:
    """Apply rewriters to a node, and to the node of its replacement; add to ``replacements``."""
    originals = list(node.outputs)
    for rewriter in index[node.op]:
        with inherit(node.origin):
            result = rewriter.transform(fgraph, node, enforce_tracks=False)
        if result is None or result is False:
            continue
        new: dict[Any, Any] = (
            result if isinstance(result, dict) else dict(zip(node.outputs, result))
        )
        previous = [replacements.get(o, o) for o in originals]
        current = [new.get(v, v) for v in previous]
        replacements.update(zip(originals, current))
        owner = current[0].owner
        if owner is None or isinstance(current[0], Constant) or owner in fgraph.apply_nodes:
            return
        node = owner


def get_clients_at_depth(fgraph: FunctionGraph, node: Apply, depth: int) -> Iterable[Apply]:
    """The nodes that are reached from ``node`` by ``depth`` steps to a user, each once."""
    level: dict[Apply, None] = {node: None}
    for _ in range(depth):
        level = {
            client: None
            for n in level
            for v in n.outputs
            for client, _ in fgraph.clients.get(v, ())
            if client in fgraph.apply_nodes
        }
    yield from level
