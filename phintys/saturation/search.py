"""The search: from variables to their cheapest forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import apply_ancestors
from phintys.graph.variable import Variable
from phintys.saturation.extract import Best, cheapest, read
from phintys.saturation.language import Language, is_encodable, kind
from phintys.saturation.limits import LIMITS, Limits
from phintys.saturation.saturate import Graph
from phintys.saturation.translate import translated


def saturate_graph(fgraph: FunctionGraph, limits: Limits) -> None:
    """Replace what a graph computes by the cheapest forms that the rules give."""
    wanted = list(dict.fromkeys(_boundary(fgraph)))
    found = saturated(wanted, limits)
    for old, new in zip(wanted, found, strict=True):
        if new is not old:
            fgraph.replace(old, new, reason="saturate", import_missing=True)


def _boundary(fgraph: FunctionGraph) -> Iterator[Variable]:
    """The computed outputs, and computed inputs of nodes that are no functions of tensors."""
    nodes = [n for n in fgraph.toposort() if not is_encodable(n)]
    for v in (*(v for n in nodes for v in n.inputs), *fgraph.outputs):
        if v.owner is not None and is_encodable(v.owner):
            yield v


def saturated(outputs: Sequence[Variable], limits: Limits = LIMITS) -> list[Variable]:
    """The cheapest forms of variables that the rules give.

    >>> import pytest; _ = pytest.importorskip("egglog")
    >>> import phintys.tensor as pt
    >>> from phintys.tensor.dot import matrix_product
    >>> x, y, v = pt.dmatrix("x"), pt.dmatrix("y"), pt.dvector("v")
    >>> saturated([matrix_product(x, v) + matrix_product(y, v)])[0].owner
    Dot(Add.0, v)
    """
    language = Language()
    terms = language.terms(outputs, {}, short=True)
    if all(t.variable.owner is None for t in terms):
        return list(outputs)
    graph = Graph(language)
    graph.add(terms)
    ops = [n.op for n in apply_ancestors(outputs) if is_encodable(n)]
    graph.equate(translated({kind(t.variable) for t in terms}, ops))
    nodes, classes = read(graph.saturate(limits), language)
    best = cheapest(nodes, language)
    places = {t.variable: classes[t.name] for t in terms}
    return [_typed(v, best.get(places[v])) for v in outputs]


def _typed(old: Variable, best: Best | None) -> Variable:
    """The new variable in the type of the old one; the old one if they do not agree."""
    if best is None or old.owner is None:
        return old
    try:
        new = old.type.filter_variable(best.variable)
    except TypeError:
        return old
    return new if old.type.broadcastable == new.type.broadcastable else old
