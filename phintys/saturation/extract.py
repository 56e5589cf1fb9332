"""The cheapest variable of each class of an e-graph."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from phintys.errors import PhintysError
from phintys.graph.op import Op
from phintys.graph.variable import Apply, Variable
from phintys.memo import Memo
from phintys.saturation.cost import node_cost
from phintys.saturation.language import Language, Number

#: the most times that all nodes are visited
MOST_ROUNDS = 12


class Node(NamedTuple):
    """A function symbol applied to classes; the class that the result is in."""

    symbol: str
    operands: tuple[str, ...]
    own: str


class Best(NamedTuple):
    """A variable, and the costs of all classes that compute it: common ones count once."""

    variable: Variable
    parts: Mapping[str, float]
    total: float


def read(text: str, language: Language) -> tuple[list[Node], dict[str, str]]:
    """The nodes of a serialized e-graph, without those that are not to be computed.

    And the classes of the terms that were added, by name.
    """
    nodes = json.loads(text)["nodes"]
    found = []
    for node in nodes.values():
        if node["op"] in language.symbols and not node["subsumed"]:
            operands = tuple(nodes[child]["eclass"] for child in node["children"])
            found.append(Node(node["op"], operands, node["eclass"]))
    facts = [node["children"] for node in nodes.values() if node["op"] == "Place"]
    places = {nodes[name]["op"].strip('"'): nodes[term]["eclass"] for name, term in facts}
    return sorted(found), places


def cheapest(nodes: list[Node], language: Language) -> dict[str, Best]:
    """The cheapest variable of each class."""
    best: dict[str, Best] = {}
    built: dict[Any, Variable | None] = {}
    for _ in range(MOST_ROUNDS):
        changed = False
        for node in nodes:
            new = _candidate(node, best, built, language)
            old = best.get(node.own)
            if new is not None and (old is None or new.total < old.total):
                best[node.own], changed = new, True
        if not changed:
            break
    return best


def _candidate(
    node: Node, best: Mapping[str, Best], built: dict[Any, Variable | None], language: Language
) -> Best | None:
    """The variable that a node computes from the best ones of its operands; None if it has none."""
    operands = [best.get(k) for k in node.operands]
    given = [b for b in operands if b is not None]
    if len(given) < len(operands) or any(node.own in b.parts for b in given):
        return None
    old = best.get(node.own)
    parts: dict[str, float] = {}
    for b in given:
        parts.update(b.parts)
    below = sum(parts.values())
    if old is not None and below >= old.total:
        return None
    key = (node.symbol, *(b.variable for b in given))
    if key not in built:
        built[key] = _variable(language.symbols[node.symbol], [b.variable for b in given])
    v = built[key]
    if v is None or (old is not None and not _is_alike(v, old.variable)):
        return None
    parts[node.own] = 0.0 if v.owner is None or not given else _cost(v.owner)
    return Best(v, parts, below + parts[node.own])


def _variable(meaning: Any, operands: list[Variable]) -> Variable | None:
    if isinstance(meaning, Number):
        return meaning.variable()
    if not isinstance(meaning, Op):
        return meaning
    try:
        return meaning.make_node(*operands).outputs[0]
    except (TypeError, ValueError, PhintysError):
        return None


def _is_alike(v: Variable, w: Variable) -> bool:
    """Whether two variables have the same dtype, and the same lengths that are known to be 1."""
    return v.type.dtype == w.type.dtype and v.type.broadcastable == w.type.broadcastable


def _cost(node: Apply) -> float:
    key = (node.op, *(v.type for v in node.inputs))
    found = _costs[key]
    return _costs.keep(key, node_cost(node)) if found is None else found


_costs: Memo[Any, float] = Memo(4096, "costs of nodes")
