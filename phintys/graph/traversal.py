"""Walking graphs.  Everything here is iterative: graphs may be 100,000 nodes deep."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from phintys.graph.variable import Apply, Constant, Variable

T = TypeVar("T")


def walk(
    nodes: Iterable[T],
    expand: Callable[[T], Iterable[T] | None],
    bfs: bool = True,
    return_children: bool = False,
) -> Generator[Any, None, None]:
    """Visit ``nodes`` and what ``expand`` leads to, each once, breadth or depth first.

    With ``return_children`` the items are pairs (node, what it expanded to).
    """
    queue = deque(nodes)
    seen: set[int] = set()
    keep: list[T] = []  # identities stay valid only while the objects live
    take = queue.popleft if bfs else queue.pop
    while queue:
        node = take()
        if id(node) in seen:
            continue
        seen.add(id(node))
        keep.append(node)
        children = expand(node)
        yield (node, children) if return_children else node
        if children:
            queue.extend(children)


def ancestors(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Variable, None, None]:
    """The variables that ``graphs`` depend on, themselves included.

    Depth first, and of several graphs or inputs the last one first.  Blockers are included, what
    lies behind them is not.
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
    """The nodes that ``graphs`` depend on, each once."""
    stop = set(blockers or ())
    seen: set[Apply] = set()
    for v in ancestors(graphs, stop):
        if v.owner is not None and v not in stop and v.owner not in seen:
            seen.add(v.owner)
            yield v.owner


def graph_inputs(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Variable, None, None]:
    """The variables without an owner that ``graphs`` depend on, constants included."""
    yield from (v for v in ancestors(graphs, blockers) if v.owner is None)


def explicit_graph_inputs(
    graph: Variable | Iterable[Variable],
) -> Generator[Variable, None, None]:
    """The inputs a user has to give: no constants and no shared variables."""
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
    """Variables that suffice to compute ``outputs``: the given ancestors, and what else is needed.

    The latter are the variables closest to the outputs that do not depend on any of
    ``ancestors_to_include``.  Of these, the ones that are not needed are left out.
    """
    wanted = set(ancestors_to_include or ())
    behind: set[Variable] = set()  # what depends on a wanted variable other than itself
    for node in toposort(outputs):
        if any(v in wanted or v in behind for v in node.inputs):
            behind.update(node.outputs)

    def expand(v: Variable) -> Iterable[Variable] | None:
        return v.owner.inputs if v.owner is not None and v in behind else None

    visited = walk(outputs, expand, bfs=False)
    return [v for v in visited if v in wanted or v not in behind]


def vars_between(
    ins: Iterable[Variable], outs: Iterable[Variable]
) -> Generator[Variable, None, None]:
    """The variables from ``outs`` back to ``ins``, with all outputs of the nodes in between."""
    stop = set(ins)

    def expand(v: Variable) -> Iterable[Variable] | None:
        if v.owner is None or v in stop:
            return None
        return [*v.owner.inputs, *v.owner.outputs]

    yield from walk(outs, expand, bfs=False)


def orphans_between(
    ins: Iterable[Variable], outs: Iterable[Variable]
) -> Generator[Variable, None, None]:
    """The variables without an owner that ``outs`` need and ``ins`` does not list."""
    given = set(ins)
    yield from (v for v in vars_between(given, outs) if v.owner is None and v not in given)


def applys_between(
    ins: Iterable[Variable], outs: Iterable[Variable]
) -> Generator[Apply, None, None]:
    """The nodes between ``ins`` and ``outs``, each once."""
    yield from apply_ancestors(outs, ins)


def get_var_by_name(graphs: Iterable[Variable], target_var_id: str) -> tuple[Variable, ...]:
    """All variables of the graphs with a name (or auto_name)."""
    return tuple(
        v for v in ancestors(graphs) if target_var_id in (v.name, v.__dict__.get("auto_name_"))
    )


# ------------------------------------------------------------------ topological orders


def walk_toposort(
    graphs: Iterable[T | None], deps: Callable[[T], Iterable[T | None] | None]
) -> Generator[T, None, None]:
    """Every node after those ``deps`` gives for it; ValueError if there is a cycle.

    Deterministic: dependencies are visited in the order they are given.  None among them is
    skipped.
    """
    done: set[T] = set()
    active: set[T] = set()
    for root in graphs:
        if root is None or root in done:
            continue
        active.add(root)
        stack: list[tuple[T, Iterator[T | None]]] = [(root, iter(deps(root) or ()))]
        while stack:
            node, rest = stack[-1]
            for d in rest:
                if d is None or d in done:
                    continue
                if d in active:
                    raise ValueError(f"The graph contains a cycle through {d}.")
                active.add(d)
                stack.append((d, iter(deps(d) or ())))
                break
            else:
                stack.pop()
                active.discard(node)
                done.add(node)
                yield node


def sorted_nodes(
    roots: Iterable[Apply | None], known: Container[Variable] = frozenset()
) -> list[Apply]:
    """The nodes that ``roots`` depend on and themselves, inputs first; nothing behind ``known``.

    The order of `walk_toposort`, without a call for each node.
    """
    done: set[Apply] = set()
    active: set[Apply] = set()
    order: list[Apply] = []
    for root in roots:
        if root is None or root in done:
            continue
        active.add(root)
        stack = [(root, iter(root.inputs))]
        while stack:
            node, rest = stack[-1]
            for v in rest:
                owner = v.owner
                if owner is None or owner in done or v in known:
                    continue
                if owner in active:
                    raise ValueError(f"The graph contains a cycle through {owner}.")
                active.add(owner)
                stack.append((owner, iter(owner.inputs)))
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
    """A list of what `walk_toposort` yields.  The two cache arguments are accepted and ignored."""
    return list(walk_toposort(outputs, deps))


def toposort(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Apply, None, None]:
    """The nodes that ``graphs`` depend on, inputs first."""
    return toposort_with_orderings(graphs, blockers=blockers)


def toposort_with_orderings(
    graphs: Iterable[Variable],
    *,
    blockers: Iterable[Variable] | None = None,
    orderings: dict[Apply, list[Apply]] | None = None,
) -> Generator[Apply, None, None]:
    """Like `toposort`, where ``orderings[node]`` lists nodes that must come before ``node`` too."""
    stop = set(blockers or ())
    roots = [v.owner for v in graphs if v not in stop]
    if not orderings:
        yield from sorted_nodes(roots, stop)
        return

    def owners_and_extra(node: Apply) -> list[Apply | None]:
        return [*(v.owner for v in node.inputs if v not in stop), *orderings.get(node, ())]

    yield from walk_toposort(roots, owners_and_extra)


def io_toposort(
    inputs: Iterable[Variable],
    outputs: Iterable[Variable],
    orderings: dict[Apply, list[Apply]] | None = None,
    clients: Any = None,
) -> list[Apply]:
    """The nodes between inputs and outputs, inputs first."""
    return list(toposort_with_orderings(outputs, blockers=inputs, orderings=orderings))
