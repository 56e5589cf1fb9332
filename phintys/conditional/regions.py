"""Where the nodes of a graph are computed: always, or in branches of `IfElse` nodes alone.

A *region* is a branch inside of a region, or the graph itself (None).  A node is in the innermost
region that contains all uses of its outputs.  `IfElse` nodes of a region with one condition share
their branches, so what several of them use is computed once, in the first one that needs it.  What
branches of several conditions use, and may fail, is in the branch of a *guard*: a group without
`IfElse` nodes before these branches, whose condition holds if one of them is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from phintys.conditional.op import IfElse, chosen
from phintys.graph.results import array_type
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.scalar.op import ScalarOp
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.reduce import CAReduce
from phintys.tensor.shape import Shape, Shape_i

#: branches that are nested deeper than this are computed with the branch around them
MAX_DEPTH = 40
#: what is needed in more cases than this is computed always
MAX_CASES = 8
#: ops that do not fail if they have one array
SAFE = (Elemwise, DimShuffle, Shape, Shape_i)

#: conditions with their outcomes, all of which are met in one case in which something is needed
Case = tuple[tuple[Variable, bool], ...]
#: the place of a group in the order of computation, together with levels of nodes
Order = tuple[float, int]


@dataclass(eq=False)
class Group:
    """`IfElse` nodes of one place with one condition, none of which depends on another; or a guard.

    cases
        the true branch is taken in each of these; for `IfElse` nodes, where their condition holds
    outputs
        for each variable that users outside of a branch read, the variables that it is in the true
        and in the false branch; None where it is not computed
    """

    place: Place
    cases: tuple[Case, ...]
    order: Order
    nodes: list[Apply] = field(default_factory=list)
    branches: dict[bool, Branch] = field(default_factory=dict)
    outputs: dict[Variable, list[Variable | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.branches = {side: Branch(self, side) for side in (True, False)}

    @property
    def conditions(self) -> list[Variable]:
        return list(dict.fromkeys(condition for case in self.cases for condition, _ in case))

    @property
    def is_guard(self) -> bool:
        return not self.nodes

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
    def key(self) -> tuple[Any, bool]:
        """The condition and its outcome; a guard shares its branches with no other group."""
        return self.group if self.group.is_guard else self.group.conditions[0], self.side

    @property
    def cases(self) -> tuple[Case, ...]:
        """Where the branch is taken."""
        group = self.group
        return group.cases if group.is_guard else (((group.conditions[0], self.side),),)


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
        self.uses: dict[Variable, dict[Place, None]] = {v: {None: None} for v in outputs}
        self.found: dict[Any, Group] = {}
        self.fallible = fallible(order)
        # those that cannot fail first: conditions are placed after all that may need them
        order = sorted(order, key=self.fallible.__contains__)
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
        users = list(dict.fromkeys(place for v in used for place in self.uses[v]))
        place = _common(users, exact)
        if node in self.fallible and not exact:
            place = self._guarded(node, users, place)
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
        condition = node.inputs[0]
        self._use(condition, place)
        group = self._group(place, (((condition, True),),), (self.levels[node], 0))
        group.nodes.append(node)
        deep = place is not None and len(place.path()) >= MAX_DEPTH
        for side, branch in group.branches.items():
            for v in used:
                value = chosen(node, v, side)
                group.give(v, side, value)
                self._use(value, place if deep else branch)

    def _group(self, place: Place, cases: tuple[Case, ...], order: Order) -> Group:
        key = (id(place), frozenset(cases), order)
        group = self.found.get(key)
        if group is None:
            group = self.found[key] = Group(place, cases, order)
            self.groups.append(group)
            if place is not None:
                place.groups.append(group)
        return group

    def _guarded(self, node: Apply, users: Sequence[Place], place: Place) -> Place:
        """The place of a node: ``place``, which contains all users, or the branch of a guard in it.

        There is a guard if all users are in branches, whose conditions do not depend on the node.
        """
        depth = len(_path(place))
        paths = [_path(user) for user in users]
        if depth >= MAX_DEPTH or any(len(path) == depth for path in paths):
            return place
        found = _united([case for path in paths for case in self._cases(path[depth:], place)])
        if () in found or len(found) > MAX_CASES:
            return place
        conditions = dict.fromkeys(condition for case in found for condition, _ in case)
        owners = [node, *(v.owner for v in conditions if v.owner is not None)]
        level = max(self.levels.get(owner, 0) for owner in owners) + 0.5
        orders = [path[depth].group.order for path in paths]
        # before other guards that use the node
        order = level, min([0, *(k for other, k in orders if other == level)]) - 1
        if order >= min(orders):
            return place
        for condition in conditions:
            self._use(condition, place)
        return self._group(place, found, order).branches[True]

    def _cases(self, path: Sequence[Branch], place: Place) -> list[Case]:
        """Where a branch is taken, as far as the conditions on its path are known at ``place``."""
        found: list[Case] = [()]
        for k, branch in enumerate(path):
            if k and not all(self._is_known(v, place) for v in branch.group.conditions):
                break
            found = [(*case, *more) for case in found for more in branch.cases]
            if len(found) > MAX_CASES:
                break
        return found

    def _is_known(self, v: Variable, place: Place) -> bool:
        """Whether a condition is, or may be, computed at ``place`` or around it."""
        around: list[Place] = [None, *_path(place)]
        users = self.uses.get(v, {})
        if any(branch in users for branch in around):
            return True
        if v.owner is not None and v.owner in self.places:
            return self.places[v.owner] in around
        return v.owner not in self.fallible

    def _use(self, v: Variable, place: Place) -> None:
        self.uses.setdefault(v, {})[place] = None

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


def _path(place: Place) -> list[Branch]:
    """The branches around a place, outermost first."""
    return [] if place is None else place.path()


def _united(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Fewer cases that are met where one of ``cases`` is; an empty one is always met.

    A case is left out if it has all outcomes of another one.  There may be more, if more than
    `MAX_CASES` are returned.
    """
    found: dict[Case, None] = {}
    for case in cases:
        while case and (*case[:-1], (case[-1][0], not case[-1][1])) in found:
            case = case[:-1]
        found[case] = None
    kept: dict[frozenset[tuple[Variable, bool]], Case] = {}
    for case in sorted(found, key=len):
        outcomes = frozenset(case)
        if len(kept) <= MAX_CASES and not any(other <= outcomes for other in kept):
            kept[outcomes] = case
    return tuple(kept.values())


def fallible(order: Iterable[Apply]) -> set[Apply]:
    """The nodes that may fail, or use the results of such nodes; they are in topological order."""
    found: set[Apply] = set()
    for node in order:
        if not _is_safe(node) or any(v.owner in found for v in node.inputs):
            found.add(node)
    return found


def _is_safe(node: Apply) -> bool:
    """Whether a node cannot fail."""
    op = node.op
    if isinstance(op, CAReduce):
        return not op.needs_elements
    if isinstance(op, Elemwise) and not _is_safe_function(op.scalar_op, node):
        return False
    arrays = {v for v in node.inputs if getattr(v.type, "ndim", 1)}
    return isinstance(op, IfElse) or (isinstance(op, SAFE) and len(arrays) <= 1)


def _is_safe_function(function: ScalarOp, node: Apply) -> bool:
    """Whether an elementwise function cannot fail; Python code may, and powers of integers."""
    if function.name == "pow" and dtypes.kind(node.outputs[0].type.dtype) == "i":
        return False  # an exponent may be negative
    return function.has_native(*[v.type.dtype for v in node.inputs])


def _common(places: Iterable[Place], exact: bool) -> Place:
    """The innermost place from which all of ``places`` can be reached.

    Where that could be in several groups of one region, it is in the first one that is computed,
    or, if ``exact``, outside of them.
    """
    paths = [_path(place) for place in dict.fromkeys(places)]
    candidates, found = paths, None
    for depth in range(min(map(len, paths))):
        branches = {path[depth] for path in paths}
        if len({branch.key for branch in branches}) > 1 or (exact and len(branches) > 1):
            break
        found = min((path[depth] for path in candidates), key=lambda b: b.group.order)
        candidates = [path for path in candidates if path[depth] is found]
    return found


def _left(place: Place, user: Place) -> Iterator[Branch]:
    """The branches around ``place`` that are not around ``user``."""
    around = _path(user)
    for branch in _path(place):
        if branch not in around:
            yield branch
