"""Traversals of graphs.  None of them is recursive: graphs may be 100,000 nodes deep."""

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
    [Add.out, x, Mul.out, y]
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

    The others are the variables closest to the outputs that do not depend on any of
    ``ancestors_to_include``.  An ancestor that the outputs do not depend on is left out.
    """
    wanted = set(ancestors_to_include or ())
    dependents: set[Variable] = set()  # variables that depend on a wanted one
    for node in toposort(outputs):
        if any(v in wanted or v in dependents for v in node.inputs):
            dependents.update(node.outputs)

    def expand(v: Variable) -> Iterable[Variable] | None:
        return v.owner.inputs if v.owner is not None and v in dependents else None

    visited = walk(outputs, expand, bfs=False)
    return [v for v in visited if v in wanted or v not in dependents]


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

    ``deps(node)`` returns the dependencies of a node; entries that are None are skipped.  The order
    is deterministic: dependencies are visited in the given order.
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
    """``roots`` and the nodes they depend on, in topological order; ValueError if there is a cycle.

    The owners of variables in ``known`` are not visited.  The same as `walk_toposort`, but faster,
    because it calls no function for each node.
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
    """A list of what `walk_toposort` yields.  The two cache arguments are ignored."""
    return list(walk_toposort(outputs, deps))


def toposort(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Apply, None, None]:
    """The nodes that ``graphs`` depend on, in topological order; none behind ``blockers``."""
    return toposort_with_orderings(graphs, blockers=blockers)


def toposort_with_orderings(
    graphs: Iterable[Variable],
    *,
    blockers: Iterable[Variable] | None = None,
    orderings: dict[Apply, list[Apply]] | None = None,
) -> Generator[Apply, None, None]:
    """Like `toposort`; the nodes in ``orderings[node]`` come before ``node`` as well."""
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
    """The nodes between inputs and outputs, in topological order.  ``clients`` is ignored."""
    return list(toposort_with_orderings(outputs, blockers=inputs, orderings=orderings))
