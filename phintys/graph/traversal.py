"""Traversals of graphs.  None of them is recursive: graphs may be 100,000 nodes deep."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Sequence
from typing import Any, TypeVar

from phintys.graph.variable import Apply, Constant, Variable

T = TypeVar("T")


def walk(
    nodes: Iterable[T],
    expand: Callable[[T], Iterable[T] | None],
    bfs: bool = True,
    return_children: bool = False,
) -> Generator[Any, None, None]:
    """Yield ``nodes`` and everything reachable by ``expand``, each once, breadth or depth first.

    ``expand(node)`` returns the successors of a node, or None; it is called after the node has been
    yielded.  With ``return_children`` the items are pairs (node, successors).
    """
    queue = deque(nodes)
    seen: set[int] = set()
    keep: list[T] = []  # keeps the objects alive, and so their ids unique
    take = queue.popleft if bfs else queue.pop
    while queue:
        node = take()
        if id(node) in seen:
            continue
        seen.add(id(node))
        keep.append(node)
        if not return_children:
            yield node
        children = expand(node)
        if return_children:
            yield node, children
        if children:
            queue.extend(children)


def ancestors(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Variable, None, None]:
    """The variables that ``graphs`` depend on, including themselves, each once.

    The order is depth first; of several graphs or inputs the last one comes first.  ``blockers``
    are included, their inputs are not visited.

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> list(ancestors([x * y + x]))
    [Add.0, x, Mul.0, y]
    """
    stop = set(blockers or ())
    seen: set[Variable] = set()
    stack = list(graphs)
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        yield v
        if v.owner is not None and v not in stop:
            stack.extend(v.owner.inputs)


def apply_ancestors(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Apply, None, None]:
    """The nodes that ``graphs`` depend on, each once, in the order of `ancestors`."""
    stop = set(blockers or ())
    seen: set[Apply] = set()
    for v in ancestors(graphs, stop):
        if v.owner is not None and v not in stop and v.owner not in seen:
            seen.add(v.owner)
            yield v.owner


def graph_inputs(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Variable, None, None]:
    """The variables without an owner that ``graphs`` depend on, including constants.

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> list(graph_inputs([x * y + x]))
    [x, y]
    """
    yield from (v for v in ancestors(graphs, blockers) if v.owner is None)


def explicit_graph_inputs(
    graph: Variable | Iterable[Variable],
) -> Generator[Variable, None, None]:
    """The variables whose values a caller has to give: neither constants nor shared variables.

    >>> import phintys, phintys.tensor as pt
    >>> x, w = pt.dvector("x"), phintys.shared(1.0, "w")
    >>> list(explicit_graph_inputs(2 * x + w))
    [x]
    """
    graphs = [graph] if isinstance(graph, Variable) else graph
    for v in graph_inputs(graphs):
        if not isinstance(v, Constant) and not hasattr(v, "get_value"):
            yield v


def variable_depends_on(variable: Variable, depends_on: Variable | Iterable[Variable]) -> bool:
    """Whether ``variable`` depends on (or is) one of the given variables."""
    targets = {depends_on} if isinstance(depends_on, Variable) else set(depends_on)
    return any(v in targets for v in ancestors([variable]))


def apply_depends_on(apply: Apply, depends_on: Apply | Iterable[Apply]) -> bool:
    """Whether ``apply`` depends on (or is) one of the given nodes."""
    targets = {depends_on} if isinstance(depends_on, Apply) else set(depends_on)
    return apply in targets or any(n in targets for n in apply_ancestors(apply.inputs))


def truncated_graph_inputs(
    outputs: Sequence[Variable], ancestors_to_include: Iterable[Variable] | None = None
) -> list[Variable]:
    """Variables that suffice to compute ``outputs``, among them the given ancestors.

    The others are the variables closest to the outputs that depend neither on one of
    ``ancestors_to_include`` nor on one found before; they are searched in the order of `ancestors`.
    An ancestor that the outputs do not depend on is left out.  Without ``ancestors_to_include``
    they are the outputs.

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> truncated_graph_inputs([pt.exp(x) * pt.log(y)], [x])
    [Log.0, x]
    """
    wanted = set(ancestors_to_include or ())
    if not wanted:
        return list(dict.fromkeys(outputs))
    dependent = _Dependents(outputs)
    for v in wanted:
        dependent.add(v)
    nested = wanted & dependent.found
    found: dict[Variable, None] = {}
    stack = list(outputs)
    seen: set[Variable] = set()
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if v.owner is not None and v in (nested if v in wanted else dependent.found):
            stack.extend(v.owner.inputs)
        if v in wanted or v not in dependent.found:
            found[v] = None
            dependent.add(v)
    return list(found)


class _Dependents:
    """The variables of a graph that depend on those that were added: ``found``."""

    def __init__(self, outputs: Iterable[Variable]) -> None:
        self.found: set[Variable] = set()
        self._users: dict[Variable, list[Apply]] = {}
        for node in apply_ancestors(outputs):
            for v in node.inputs:
                self._users.setdefault(v, []).append(node)

    def add(self, v: Variable) -> None:
        """Find the variables that depend on ``v``; linear in those not found before."""
        stack = [v]
        while stack:
            new = [o for node in self._users.pop(stack.pop(), ()) for o in node.outputs]
            stack.extend(o for o in new if o not in self.found)
            self.found.update(new)


def vars_between(
    ins: Iterable[Variable], outs: Iterable[Variable]
) -> Generator[Variable, None, None]:
    """The variables from ``outs`` back to ``ins``, with all outputs of the nodes between them."""
    stop = set(ins)

    def expand(v: Variable) -> Iterable[Variable] | None:
        if v.owner is None or v in stop:
            return None
        return [*v.owner.inputs, *v.owner.outputs]

    yield from walk(outs, expand, bfs=False)


def orphans_between(
    ins: Iterable[Variable], outs: Iterable[Variable]
) -> Generator[Variable, None, None]:
    """The variables without an owner that ``outs`` depend on and that are not in ``ins``."""
    given = set(ins)
    yield from (v for v in vars_between(given, outs) if v.owner is None and v not in given)


def applys_between(
    ins: Iterable[Variable], outs: Iterable[Variable]
) -> Generator[Apply, None, None]:
    """The nodes between ``ins`` and ``outs``, each once."""
    yield from apply_ancestors(outs, ins)


def get_var_by_name(graphs: Iterable[Variable], target_var_id: str) -> tuple[Variable, ...]:
    """The variables of the graphs whose name or `auto_name` is ``target_var_id``."""
    return tuple(
        v for v in ancestors(graphs) if target_var_id in (v.name, v.__dict__.get("auto_name_"))
    )


# ------------------------------------------------------------------ topological orders


def walk_toposort(
    graphs: Iterable[T | None], deps: Callable[[T], Iterable[T | None] | None]
) -> Generator[T, None, None]:
    """``graphs`` and what they depend on, in topological order; ValueError if there is a cycle.

    ``deps(node)`` returns the dependencies of a node; entries that are None are skipped.  First
    come the nodes without dependencies, in the order in which a search finds them that takes the
    last of several first; then each node as soon as its last dependency has been yielded.

    >>> list(walk_toposort("a", {"a": "bc", "b": "de", "c": "fg"}.get))
    ['g', 'f', 'e', 'd', 'c', 'b', 'a']
    """
    needed: dict[T, list[T]] = {}  # the dependencies of each node
    users: dict[T, list[T]] = {}
    stack = [node for node in graphs if node is not None]
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        needed[node] = [d for d in deps(node) or () if d is not None]
        for d in needed[node]:
            users.setdefault(d, []).append(node)
        stack.extend(needed[node])
    missing = {node: len(found) for node, found in needed.items()}
    ready = deque(node for node, count in missing.items() if count == 0)
    while ready:
        node = ready.popleft()
        del missing[node]
        yield node
        for user in users.get(node, ()):
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    if missing:
        raise ValueError(f"The graph contains a cycle through {_on_cycle(missing, needed)}.")


def _on_cycle(rest: Container[T], needed: dict[T, list[T]]) -> T:
    """A node of a cycle, where each node in ``rest`` depends on another one in it."""
    seen: set[T] = set()
    node = next(n for n in needed if n in rest)
    while node not in seen:
        seen.add(node)
        node = next(d for d in needed[node] if d in rest)
    return node


def sorted_nodes(
    roots: Iterable[Apply | None], known: Container[Variable] = frozenset()
) -> list[Apply]:
    """``roots`` and the nodes they depend on, in topological order; ValueError if there is a cycle.

    The owners of variables in ``known`` are not visited.  The order is depth first; of several
    roots or inputs the last one comes first, as in `ancestors`.
    """
    done: set[Apply] = set()
    active: set[Apply] = set()
    order: list[Apply] = []
    for root in reversed(list(roots)):
        if root is None or root in done:
            continue
        active.add(root)
        stack = [(root, reversed(root.inputs))]
        while stack:
            node, rest = stack[-1]
            for v in rest:
                owner = v.owner
                if owner is None or owner in done or v in known:
                    continue
                if owner in active:
                    raise ValueError(f"The graph contains a cycle through {owner}.")
                active.add(owner)
                stack.append((owner, reversed(owner.inputs)))
                break
            else:
                stack.pop()
                done.add(node)
                order.append(node)
    return order


def general_toposort(
    outputs: Iterable[T | None],
    deps: Callable[[T], Iterable[T | None] | None],
    compute_deps_cache: Any = None,
    deps_cache: Any = None,
) -> list[T]:
    """A list of what `walk_toposort` yields.  The two cache arguments are ignored."""
    return list(walk_toposort(outputs, deps))


def toposort(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Apply, None, None]:
    """The nodes that ``graphs`` depend on, in topological order; none behind ``blockers``.

    The order is depth first; of several graphs or inputs the last one comes first.
    """
    return toposort_with_orderings(graphs, blockers=blockers)


def toposort_with_orderings(
    graphs: Iterable[Variable],
    *,
    blockers: Iterable[Variable] | None = None,
    orderings: dict[Apply, list[Apply]] | None = None,
) -> Generator[Apply, None, None]:
    """Like `toposort`; the nodes in ``orderings[node]`` come before ``node`` as well.

    With ``orderings`` the order is that of `walk_toposort` over variables and nodes.
    """
    stop = set(blockers or ())
    if not orderings:
        yield from sorted_nodes([v.owner for v in graphs if v not in stop], stop)
        return

    def needed(item: Variable | Apply) -> list[Variable | Apply | None]:
        if isinstance(item, Apply):
            return [*item.inputs, *orderings.get(item, ())]
        return [] if item in stop else [item.owner]

    yield from (item for item in walk_toposort(graphs, needed) if isinstance(item, Apply))


def io_toposort(
    inputs: Iterable[Variable],
    outputs: Iterable[Variable],
    orderings: dict[Apply, list[Apply]] | None = None,
    clients: Any = None,
) -> list[Apply]:
    """The nodes between inputs and outputs, in topological order.  ``clients`` is ignored."""
    return list(toposort_with_orderings(outputs, blockers=inputs, orderings=orderings))
