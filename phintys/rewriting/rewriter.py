"""Base classes of rewriters, and rewriters made of functions and of other rewriters.

A *graph rewriter* changes a FunctionGraph.  A *node rewriter* returns replacements for the outputs
of one node; a walker (`phintys.rewriting.walk`) applies it to the nodes of a graph.
"""

from __future__ import annotations

import logging
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TextIO

from phintys.config import config
from phintys.errors import RewriteError
from phintys.graph.collection import collection_paused
from phintys.graph.destroy import DestroyHandler
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.meta import Abstract
from phintys.graph.op import Op
from phintys.graph.origin import describe, inherit
from phintys.graph.signatures import adapted_transform, required
from phintys.graph.variable import Apply, Variable
from phintys.locks import making
from phintys.rewriting.index import TrackIndex, tracked_ops
from phintys.rewriting.unify import OpPattern, same_op

_logger = logging.getLogger(__name__)

#: What a node rewriter returns; see `NodeRewriter.transform`.
TransformOutput = bool | None | Variable | Sequence[Variable | None] | dict[Any, Any]


def rewrite_error(
    name: Any, node: Apply | None, what: str, kind: type[RewriteError] = RewriteError
) -> RewriteError:
    """A `RewriteError` that names the rewrite, the node and the user's line."""
    return kind(f"Rewrite {name!s}{_place(node, f': {what}')}")


def _place(node: Apply | None, what: str) -> str:
    """Text that names a node, then ``what``, then the user's line that made it."""
    if node is None:
        return what
    where = describe(node.origin)
    return f" at {node}{what}" + (f"\n{where}" if where else "")


def rewriter_failed(exc: Exception, rewriter: Any, node: Apply | None) -> None:
    """Deal with an exception of a program's rewriter as ``config.on_opt_error`` says.

    If it is raised, it has a note that names the rewriter, the node and the user's line.
    """
    policy = config.on_opt_error
    if policy in ("warn", "pdb"):
        at = "" if node is None else f"\nnode: {node}"
        _logger.error("Rewrite failure due to: %s%s", rewriter, at, exc_info=exc)
    if policy == "pdb":
        import pdb

        pdb.post_mortem(exc.__traceback__)
    if policy == "raise" or isinstance(exc, AssertionError):
        exc.add_note(f"raised by rewrite {rewriter!s}{_place(node, '')}")
        raise exc


class Rewriter:
    """Base class of rewriters.  They compare by identity."""

    name: Any = None

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the features that this rewriter needs."""

    def print_summary(self, stream: TextIO | None = None, level: int = 0, depth: int = -1) -> None:
        """Write name and class to ``stream``, and, indented, those of the parts.

        ``depth`` is the number of levels of parts; -1: all.
        """
        out: TextIO = stream or sys.stdout
        out.write(f"{' ' * level}{self} ({type(self).__name__})\n")
        if depth != 0:
            for part in self.parts():
                part.print_summary(out, level + 2, depth - 1)

    def parts(self) -> Sequence[Rewriter]:
        """The rewriters that this one consists of."""
        return ()

    def __str__(self) -> str:
        return self.name or type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


class GraphRewriter(Rewriter, metaclass=Abstract):
    """A rewriter of whole graphs.  Subclasses define `apply`.

    >>> import phintys.tensor as pt
    >>> class SwapOperands(GraphRewriter):
    ...     def apply(self, fgraph):
    ...         for node in fgraph.toposort():
    ...             if node.op == pt.add:
    ...                 fgraph.replace(node.out, pt.add(*reversed(node.inputs)))
    >>> x, y = pt.dvectors("x", "y")
    >>> fgraph = FunctionGraph([x, y], [x + y], clone=False)
    >>> SwapOperands().rewrite(fgraph)
    >>> fgraph.toposort()
    [Add(y, x)]
    """

    @abstractmethod
    def apply(self, fgraph: FunctionGraph) -> Any:
        """Change ``fgraph`` in place."""

    def rewrite(self, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> Any:
        """Attach the required features, then `apply`; return its result.

        One thread at a time rewrites; others wait.
        """
        with making:
            self.add_requirements(fgraph)
            return self.apply(fgraph, *args, **kwargs)

    def __call__(self, fgraph: FunctionGraph) -> Any:
        return self.rewrite(fgraph)


class NodeRewriter(Rewriter, metaclass=Abstract):
    """A rewriter of single nodes.  Subclasses define `transform`, and `tracks` if possible.

    >>> import phintys.tensor as pt
    >>> from phintys.rewriting.walk import in2out
    >>> class UseSqr(NodeRewriter):
    ...     def tracks(self):
    ...         return [pt.mul]
    ...
    ...     def transform(self, fgraph, node, enforce_tracks=True):
    ...         x, y = node.inputs
    ...         return [pt.sqr(x)] if x is y else None
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [x * x], clone=False)
    >>> in2out(UseSqr()).rewrite(fgraph)
    >>> fgraph.toposort()
    [Sqr(x)]
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "transform" in vars(cls):
            cls.transform = adapted_transform(vars(cls)["transform"])

    def tracks(self) -> Sequence[Any] | None:
        """The ops, op classes and OpPatterns at which this rewriter is tried; None: at all."""
        return None

    @abstractmethod
    def transform(self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = True) -> Any:
        """The replacements for the outputs of ``node``.

        One of: False or None for "no change"; a variable, for a single output; a sequence with one
        variable per output (None for an output that is not used); or a dict from variables of the
        graph to their replacements, in which the key ``"remove"`` may list nodes that must leave
        the graph.  With ``enforce_tracks`` there is no change at an op that is not tracked.  A
        subclass may define the older forms ``transform(fgraph, node)`` and ``transform(node)``.
        """


def is_tracked(tracks: Sequence[Any] | None, op: Op) -> bool:
    """Whether a rewriter with these tracks is tried at an op."""
    return tracks is None or bool(TrackIndex([(None, tracks)])[op])


# -------------------------------------------------------------------- from functions


class FromFunctionNodeRewriter(NodeRewriter):
    """A node rewriter made of a function ``(fgraph, node)``; see `node_rewriter`."""

    def __init__(
        self,
        fn: Callable[..., Any],
        tracks: Sequence[Any] | None = None,
        requirements: Sequence[Callable[[], Any]] | None = (),
    ) -> None:
        self.fn = fn
        self._takes_node_only = isinstance(fn, FunctionType) and required(fn) == 1
        self._tracks = None if tracks is None else tracked_ops(tracks)
        self._index = TrackIndex[None]([(None, self._tracks)], by="op")
        self.requirements = tuple(requirements or ())
        self.name = self.__name__ = getattr(fn, "__name__", str(fn))
        self.__doc__ = fn.__doc__

    def tracks(self) -> Sequence[Any] | None:
        return self._tracks

    def transform(self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = True) -> Any:
        if enforce_tracks and not self._index[node.op]:
            return False
        return self.fn(node) if self._takes_node_only else self.fn(fgraph, node)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for feature in self.requirements:
            fgraph.attach_feature(feature())


def node_rewriter(
    tracks: Sequence[Any] | None,
    inplace: bool = False,
    requirements: Sequence[Callable[[], Any]] | None = (),
) -> Callable[[Callable[..., Any]], FromFunctionNodeRewriter]:
    """Decorate a function ``(fgraph, node)``, or ``(node)``, to make a `NodeRewriter`.

    The function returns replacements, as `NodeRewriter.transform`.

    Parameters
    ----------
    tracks
        op instances, op classes, `OpPattern`s, or tuples of them; None: every op
    inplace
        whether the rewrite introduces in-place ops: attaches a `DestroyHandler`
    requirements
        functions without arguments, such as classes, that make the features that the rewrite needs

    Raises
    ------
    ValueError
        if ``tracks`` is empty
    TypeError
        if an entry of ``tracks`` is not an op, op class or `OpPattern`

    >>> import phintys.tensor as pt
    >>> from phintys.rewriting.walk import in2out
    >>> @node_rewriter([pt.mul])
    ... def use_sqr(fgraph, node):
    ...     x, y = node.inputs
    ...     return [pt.sqr(x)] if x is y else None
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [x * x], clone=False)
    >>> in2out(use_sqr).rewrite(fgraph)
    >>> fgraph.toposort()
    [Sqr(x)]
    """
    if tracks is not None:
        _check_tracks(tracks)

    def decorate(fn: Callable[..., Any]) -> FromFunctionNodeRewriter:
        needed = tuple(requirements or ())
        return FromFunctionNodeRewriter(
            fn, tracks, (*needed, DestroyHandler) if inplace else needed
        )

    return decorate


def _check_tracks(tracks: Sequence[Any]) -> None:
    """ValueError if there are no tracks, TypeError if one cannot be tracked."""
    flat = tracked_ops(tracks)
    if not flat:
        raise ValueError("node_rewriter needs ops to track; write None to be tried at every op.")
    for tracked in flat:
        is_class = isinstance(tracked, type) and issubclass(tracked, Op)
        if not (is_class or isinstance(tracked, Op | OpPattern)):
            raise TypeError(
                f"node_rewriter tracks ops, op classes and OpPatterns; {tracked!r} is none of them."
            )


class FromFunctionGraphRewriter(GraphRewriter):
    """A graph rewriter made of a function ``(fgraph)``; see `graph_rewriter`."""

    def __init__(
        self, fn: Callable[..., Any], requirements: Sequence[Callable[[], Any]] = ()
    ) -> None:
        self.fn = fn
        self.requirements = tuple(requirements)
        self.name = self.__name__ = getattr(fn, "__name__", str(fn))
        self.__doc__ = fn.__doc__

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for feature in self.requirements:
            fgraph.attach_feature(feature())

    def apply(self, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> Any:
        return self.fn(fgraph, *args, **kwargs)


def graph_rewriter(fn: Callable[..., Any]) -> FromFunctionGraphRewriter:
    """Decorate a function ``(fgraph)`` to make a `GraphRewriter`.

    >>> import phintys.tensor as pt
    >>> @graph_rewriter
    ... def count_nodes(fgraph):
    ...     return len(fgraph.apply_nodes)
    >>> x = pt.dvector("x")
    >>> count_nodes.rewrite(FunctionGraph([x], [pt.exp(x) + 1]))
    2
    """
    return FromFunctionGraphRewriter(fn)


def inplace_graph_rewriter(fn: Callable[..., Any]) -> FromFunctionGraphRewriter:
    """Like `graph_rewriter`, for passes that introduce in-place ops: attaches a DestroyHandler."""
    return FromFunctionGraphRewriter(fn, (DestroyHandler,))


# -------------------------------------------------------------------- sequences

FailureCallback = Callable[..., None]


def _is_of_a_program(rewriter: Any) -> bool:
    """Whether a graph rewriter is none of this package: a function, or a class from elsewhere."""
    own = type(rewriter).__module__.startswith(__name__.partition(".")[0] + ".")
    return not own or isinstance(rewriter, FromFunctionGraphRewriter)


class SequentialGraphRewriter(GraphRewriter):
    """A graph rewriter that runs several, one after the other.

    If one raises, ``failure_callback(exception, self, rewriter)`` is called, and the next one runs
    unless it raises.  Without a callback, ``config.on_opt_error`` says what happens if it is a
    program's own, and exceptions of others are raised.
    """

    def __init__(self, *rewrites: Any, failure_callback: FailureCallback | None = None) -> None:
        if len(rewrites) == 1 and isinstance(rewrites[0], list | tuple):
            rewrites = tuple(rewrites[0])
        self.data: list[Any] = list(rewrites)
        self.failure_callback = failure_callback

    def parts(self) -> Sequence[Rewriter]:
        return self.data

    def apply(self, fgraph: FunctionGraph) -> None:
        with collection_paused():
            for rewriter in self.data:
                try:
                    rewriter.rewrite(fgraph)
                except Exception as exc:
                    if self.failure_callback is None:
                        self.warn(exc, self, rewriter)
                    else:
                        self.failure_callback(exc, self, rewriter)

    @classmethod
    def warn(cls, exc: Exception, self: Any, rewriter: Any) -> None:
        """The default failure callback."""
        if isinstance(exc, RewriteError):
            raise exc
        if not _is_of_a_program(rewriter):
            exc.add_note(f"raised in rewrite {rewriter!s}")
            raise exc
        rewriter_failed(exc, rewriter, None)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> Any:
        return self.data[i]

    def __iter__(self) -> Any:
        return iter(self.data)

    def __contains__(self, item: object) -> bool:
        return item in self.data

    def append(self, rewriter: Any) -> None:
        """Add a rewriter at the end."""
        self.data.append(rewriter)

    def insert(self, i: int, rewriter: Any) -> None:
        """Add a rewriter at position ``i``."""
        self.data.insert(i, rewriter)


class SequentialNodeRewriter(NodeRewriter):
    """A node rewriter that tries several in order, and returns the first change.

    With ``apply_all_rewrites`` those not applied yet are then tried at the node that computes the
    new outputs, and so on.
    """

    def __init__(
        self, *rewriters: Any, apply_all_rewrites: bool = False, profile: bool = False
    ) -> None:
        if len(rewriters) == 1 and isinstance(rewriters[0], list | tuple):
            rewriters = tuple(rewriters[0])
        self.rewrites: list[NodeRewriter] = list(rewriters)
        self.apply_all_rewrites = apply_all_rewrites
        self.profile = profile
        self._index = TrackIndex[NodeRewriter]((r, r.tracks()) for r in self.rewrites)

    def parts(self) -> Sequence[Rewriter]:
        return self.rewrites

    def tracks(self) -> Sequence[Any] | None:
        merged: list[Any] = []
        for rewriter in self.rewrites:
            tracks = rewriter.tracks()
            if tracks is None:
                return None
            merged.extend(tracks)
        return merged

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for rewriter in self.rewrites:
            rewriter.add_requirements(fgraph)

    def transform(self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = False) -> Any:
        latest: Any = None
        tried: set[int] = set()
        while True:
            result = self._first_change(fgraph, node, tried)
            if result is None:
                return latest
            latest = result
            follow = result[0] if isinstance(result, list | tuple) else None
            if not self.apply_all_rewrites or follow is None or follow.owner is None:
                return latest
            if len(result) > 1 and any(o is not f for o, f in zip(follow.owner.outputs, result)):
                return latest  # several nodes compute the new outputs: there is no node to go on at
            node = follow.owner

    def _first_change(self, fgraph: FunctionGraph, node: Apply, tried: set[int]) -> Any:
        for rewriter in self._index[node.op]:
            if id(rewriter) in tried:
                continue
            with inherit(node.origin):
                result = rewriter.transform(fgraph, node, enforce_tracks=False)
            if result is None or result is False:
                continue
            tried.add(id(rewriter))
            return [result] if isinstance(result, Variable) else result
        return None


# -------------------------------------------------------------------- simple node rewriters


class SubstitutionNodeRewriter(NodeRewriter):
    """A node rewriter that replaces ``op1`` by ``op2`` on the same inputs.

    Walkers with ``ignore_newtrees="auto"`` do not apply it to its own results.
    """

    reentrant = False

    def __init__(self, op1: Op, op2: Op, transfer_tags: bool = True) -> None:
        self.op1 = op1
        self.op2 = op2
        self.transfer_tags = transfer_tags
        self.name = f"{op1} -> {op2}"

    def tracks(self) -> Sequence[Any] | None:
        return [self.op1]

    def transform(self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = True) -> Any:
        if not same_op(node.op, self.op1):
            return False
        new = self.op2.make_node(*node.inputs)
        if self.transfer_tags:
            for old, fresh in zip(node.outputs, new.outputs):
                fresh.tag.__update__(old.tag)
        return new.outputs


class RemovalNodeRewriter(NodeRewriter):
    """A node rewriter that replaces the result of an op with one input and output by the input."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.name = f"{op}(x) -> x"

    def tracks(self) -> Sequence[Any] | None:
        return [self.op]

    def transform(self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = True) -> Any:
        if not same_op(node.op, self.op):
            return False
        if len(node.inputs) != 1 or len(node.outputs) != 1:
            raise ValueError(
                f"{self.op} has {len(node.inputs)} inputs and {len(node.outputs)} outputs; only an "
                "op with one of each can be removed."
            )
        return [node.inputs[0]]
