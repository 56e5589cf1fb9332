"""`PatternNodeRewriter`: a node rewriter given by two patterns written with tuples and strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rewriter import NodeRewriter
from phintys.rewriting.unify import (
    OpPattern,
    PatternNode,
    PatternVar,
    convert_strs_to_vars,
    match_pattern,
    reify_pattern,
    rule_key,
)


class PatternNodeRewriter(NodeRewriter):
    """A node rewriter that replaces expressions matching one pattern by what another describes.

    A pattern is a tuple ``(op, input, ...)``.  The op is an op, an op class or an `OpPattern`.
    Each input is one of:

    - a pattern
    - a string: a pattern variable, which matches anything; a repeated one must match the same
    - a number: matches constants of any dtype whose elements all equal it
    - a `Constant`
    - ``{"pattern": ..., "constraint": function}``: the function of the variable must return True
    - in last place, an `Asterisk`: matches all remaining inputs

    Inputs of commutative ops match in any order.

    Parameters
    ----------
    in_pattern
        the pattern to replace; its op must have a single output
    out_pattern
        a pattern, a string, a number, or ``function(fgraph, node, {name: variable})``
    allow_multiple_clients
        whether inner nodes of a match may have other uses
    tracks, get_nodes
        ops to track instead of that of the pattern, and ``get_nodes(fgraph, node)``, which returns
        the nodes to match when a node with such an op is visited
    values_eq_approx
        value of this tag of the replacement
    allow_cast
        whether to cast a replacement of another dtype

    Raises
    ------
    TypeError
        if ``in_pattern`` is not a tuple
    ValueError
        if ``tracks`` is given without ``get_nodes``

    >>> import phintys.tensor as pt
    >>> from phintys.rewriting.walk import in2out
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [pt.log(1 + x)], clone=False)
    >>> log1p = PatternNodeRewriter((pt.log, (pt.add, 1, "x")), (pt.log1p, "x"))
    >>> in2out(log1p).rewrite(fgraph)
    >>> fgraph.toposort()
    [Log1p(x)]
    """

    def __init__(
        self,
        in_pattern: Any,
        out_pattern: Any,
        allow_multiple_clients: bool = False,
        name: str | None = None,
        tracks: Sequence[Any] = (),
        get_nodes: Callable[[FunctionGraph, Apply], Sequence[Any]] | None = None,
        values_eq_approx: Any = None,
        allow_cast: bool = True,
    ) -> None:
        if tracks and get_nodes is None:
            raise ValueError("A PatternNodeRewriter that tracks other ops needs get_nodes.")
        names: dict[str, Any] = {}
        pattern = convert_strs_to_vars(in_pattern, names)
        if not isinstance(pattern, PatternNode):
            raise TypeError(f"The pattern to replace must apply an op, not be {in_pattern!r}.")
        self.in_pattern = pattern
        self._build: Callable[..., Any] | None = None
        self.out_pattern: Any = out_pattern
        if callable(out_pattern) and not isinstance(out_pattern, Variable):
            self._build = out_pattern
        else:
            self.out_pattern = convert_strs_to_vars(out_pattern, names)
        self.allow_multiple_clients = allow_multiple_clients
        self.name = name or f"{in_pattern} -> {out_pattern}"
        self._tracks = list(tracks) or [_tracked(pattern.op_match)]
        self.get_nodes = get_nodes
        self.values_eq_approx = values_eq_approx
        self.allow_cast = allow_cast

    def tracks(self) -> Sequence[Any] | None:
        return None if None in self._tracks else self._tracks

    def transform(
        self,
        fgraph: FunctionGraph,
        node: Apply,
        enforce_tracks: bool = False,
        get_nodes: bool = True,
    ) -> Any:
        if get_nodes and self.get_nodes is not None:
            return self._transform_others(fgraph, node)
        if len(node.outputs) != 1:
            return False
        subs = match_pattern(self.in_pattern, node, None, self._inner_filter(fgraph))
        if subs is None:
            return False
        new = self._replacement(fgraph, node, subs)
        return False if new is None or new is False else [self._finish(node.outputs[0], new)]

    def _transform_others(self, fgraph: FunctionGraph, tracked: Apply) -> Any:
        assert self.get_nodes is not None
        for node in self.get_nodes(fgraph, tracked):
            if isinstance(node, Apply) and node in fgraph.apply_nodes:
                result = self.transform(fgraph, node, get_nodes=False)
                if result:
                    return dict(zip(node.outputs, result))
        return False

    def _inner_filter(self, fgraph: FunctionGraph) -> Callable[[Variable], bool] | None:
        if self.allow_multiple_clients:
            return None
        return lambda v: len(fgraph.clients.get(v, ())) <= 1

    def _replacement(self, fgraph: FunctionGraph, node: Apply, subs: dict[Any, Any]) -> Any:
        if self._build is None:
            return reify_pattern(self.out_pattern, subs)
        return self._build(fgraph, node, {var.token: value for var, value in subs.items()})

    def _finish(self, old: Variable, new: Any) -> Any:
        if not isinstance(new, Variable):
            new = old.type.filter_variable(new)
        if self.allow_cast and old.type.is_super(new.type) is not True:
            new = _cast(new, old)
        if self.values_eq_approx is not None:
            new.tag.values_eq_approx = self.values_eq_approx
        return new


def _tracked(op_match: Any) -> Any:
    """The entry of `tracks` for the op of a pattern; None if it can be any op."""
    if isinstance(op_match, PatternVar):
        return None
    return op_match.op_type if isinstance(op_match, OpPattern) else rule_key(op_match)


def _cast(new: Any, old: Variable) -> Any:
    """``new`` with the dtype of ``old``, if types have one and it differs."""
    wanted, given = getattr(old.type, "dtype", None), getattr(new.type, "dtype", None)
    return new.astype(wanted) if wanted is not None and wanted != given else new
