"""Where the nodes of a graph are computed: always, or in branches of `IfElse` nodes alone.

A *region* is a branch inside of a region, or the graph itself (None).  A node is in the innermost
region that contains all uses of its outputs.  `IfElse` nodes of a region with one condition share
their branches, so what several of them use is computed once, in the first one that needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from phintys.conditional.op import IfElse, chosen
from phintys.graph.results import array_type
from phintys.graph.variable import Apply, Variable

#: branches that are nested deeper than this are computed with the branch around them
MAX_DEPTH = 40


@dataclass(eq=False)
class Group:
    """`IfElse` nodes of one place with one condition, none of which depends on another.

    outputs
        for each variable that users outside of a branch read, the variables that it is in the true
        and in the false branch; None where it is not computed
    """

    place: Place
    condition: Variable
    level: int
    nodes: list[Apply] = field(default_factory=list)
    branches: dict[bool, Branch] = field(default_factory=dict)
    outputs: dict[Variable, list[Variable | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.branches = {side: Branch(self, side) for side in (True, False)}

    def give(self, variable: Variable, side: bool, value: Variable) -> None:
        """Make ``variable`` an output, which has the value ``value`` in a branch."""
        self.outputs.setdefault(variable, [None, None])[0 if side else 1] = value


@dataclass(eq=False)
class Branch:
    """One branch of a group.  ``nodes`` are computed in it, users first."""

    group: Group
    side: bool
    nodes: list[Apply] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    def path(self) -> list[Branch]:
        """The branches around it, outermost first, and itself."""
        found: list[Branch] = []
        place: Place = self
        while place is not None:
            found.append(place)
            place = place.group.place
        return found[::-1]

    @property
    def key(self) -> tuple[Variable, bool]:
        return self.group.condition, self.side


Place = Union[Branch, None]


class Places:
    """The place of every node of a graph that is used, and the groups of `IfElse` nodes.

    The graph is given by its outputs, and its nodes in topological order.  Nodes before it do not
    count.
    """

    def __init__(self, outputs: Iterable[Variable], order: Sequence[Apply]) -> None:
        self.places: dict[Apply, Place] = {}  # of nodes that are used
        self.groups: list[Group] = []  # a group comes before those in its branches
        self.levels: dict[Apply, int] = {}
        self.uses: dict[Variable, list[Place]] = {v: [None] for v in outputs}
        self.found: dict[tuple[Any, Variable, int], Group] = {}
        self.aliases: dict[Apply, bool] = {}  # nodes whose branch is known from their place
        for node in order:
            self.levels[node] = self._level(node)
        for node in reversed(order):
            self._put(node)

    def _level(self, node: Apply) -> int:
        """The largest number of `IfElse` nodes on a way to the results of a node."""
        before = [self.levels.get(v.owner, 0) for v in node.inputs if v.owner is not None]
        return max(before, default=0) + isinstance(node.op, IfElse)

    def _put(self, node: Apply) -> None:
        used = [v for v in node.outputs if v in self.uses]
        if not used:
            return
        exact = not all(array_type(v.type) for v in used)
        place = _common([place for v in used for place in self.uses[v]], exact)
        self._export(used, place)
        self.places[node] = place
        if place is not None:
            place.nodes.append(node)
        if not isinstance(node.op, IfElse):
            for v in node.inputs:
                self._use(v, place)
            return
        known = {} if place is None else dict(branch.key for branch in place.path())
        side = known.get(node.inputs[0])
        if side is not None:
            self.aliases[node] = side
            for v in used:
                self._use(chosen(node, v, side), place)
        else:
            self._branch(node, used, place)

    def _branch(self, node: Apply, used: list[Variable], place: Place) -> None:
        """Add a node to a group; its values are used in the branches."""
        condition, level = node.inputs[0], self.levels[node]
        self._use(condition, place)
        key = (id(place), condition, level)
        group = self.found.get(key)
        if group is None:
            group = self.found[key] = Group(place, condition, level)
            self.groups.append(group)
            if place is not None:
                place.groups.append(group)
        group.nodes.append(node)
        deep = place is not None and len(place.path()) >= MAX_DEPTH
        for side, branch in group.branches.items():
            for v in used:
                value = chosen(node, v, side)
                group.give(v, side, value)
                self._use(value, place if deep else branch)

    def _use(self, v: Variable, place: Place) -> None:
        self.uses.setdefault(v, []).append(place)

    def _export(self, variables: Iterable[Variable], place: Place) -> None:
        """Make variables that are computed at ``place`` outputs of the branches that users left."""
        for v in variables:
            for user in self.uses[v]:
                for branch in _left(place, user):
                    branch.group.give(v, branch.side, v)


def places_of(outputs: Iterable[Variable], order: Sequence[Apply]) -> Mapping[Apply, Place]:
    """The branch in which each node of a graph is computed that is not always computed."""
    if not any(isinstance(node.op, IfElse) for node in order):
        return {}
    found = Places(outputs, order).places
    return {node: place for node, place in found.items() if place is not None}


def _common(places: Iterable[Place], exact: bool) -> Place:
    """The innermost place from which all of ``places`` can be reached.

    Where that could be in several groups of one region, it is in the first one that is computed,
    or, if ``exact``, outside of them.
    """
    paths = [[] if place is None else place.path() for place in dict.fromkeys(places)]
    candidates, found = paths, None
    for depth in range(min(map(len, paths))):
        branches = {path[depth] for path in paths}
        if len({branch.key for branch in branches}) > 1 or (exact and len(branches) > 1):
            break
        found = min((path[depth] for path in candidates), key=lambda b: b.group.level)
        candidates = [path for path in candidates if path[depth] is found]
    return found


def _left(place: Place, user: Place) -> Iterator[Branch]:
    """The branches around ``place`` that are not around ``user``."""
    around = [] if user is None else user.path()
    for branch in [] if place is None else place.path():
        if branch not in around:
            yield branch
