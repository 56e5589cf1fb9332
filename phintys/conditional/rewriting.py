"""Rewrites of `IfElse`: simplification, and the introduction of `LazyIfElse` for every backend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from phintys.conditional.lazy import Absent, LazyIfElse
from phintys.conditional.op import IfElse, chosen
from phintys.conditional.regions import Branch, Group, Places
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.origin import inherit
from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.database import optdb
from phintys.rewriting.rewriter import GraphRewriter
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import functions
from phintys.tensor.index_ops import Subtensor
from phintys.tensor.rules import canonicalize, specialize, stabilize
from phintys.tensor.rules.match import at, number

# ------------------------------------------------------------------------ simplification


@rule(
    "ifelse(True, a, b) -> a, ifelse(c, a, a) -> a",
    ops=[IfElse],
    law="drops_errors",
    tags=("cond_remove_identical",),
)
def useless_ifelse(ctx: Context, node: Apply) -> Replacement:
    known = number(node.inputs[0])
    if known is not None:
        return [chosen(node, v, bool(known)) for v in node.outputs]
    found: list[Variable | None] = [None] * len(node.outputs)
    kept: list[int] = []
    for k, v in enumerate(node.outputs):
        if chosen(node, v, True) is chosen(node, v, False):
            found[k] = chosen(node, v, True)
        elif ctx.uses(v):
            kept.append(k)
    if len(kept) == len(found):
        return None
    if kept:
        for k, v in zip(kept, _restricted(node, kept).outputs):
            found[k] = v
    return found


def _restricted(node: Apply, kept: Iterable[int]) -> Apply:
    """The node that computes some of the outputs."""
    outputs = [node.outputs[k] for k in kept]
    branches = [chosen(node, v, side) for side in (True, False) for v in outputs]
    op = IfElse(len(outputs), node.op.as_view, node.op.name)
    return op.make_node(node.inputs[0], *branches)


@rule(
    "ifelse(c, ifelse(c, a, b), d) -> ifelse(c, a, d)",
    ops=[IfElse],
    where=lambda producers: any(isinstance(p, IfElse) for p in producers[1:]),
    law="drops_errors",
    tags=("cond_merge_ifs_true", "cond_merge_ifs_false"),
)
def nested_ifelse(ctx: Context, node: Apply) -> Replacement:
    condition, *branches = node.inputs
    new = [_decided(v, condition, k < node.op.n_outs) for k, v in enumerate(branches)]
    if all(a is b for a, b in zip(new, branches)):
        return None
    return node.op.make_node(condition, *new).outputs


@rule(
    "ifelse(c, a, b) + ifelse(c, d, e) -> ifelse(c, a + d, b + e)",
    ops=[TABLE["add"]],
    where=lambda producers: sum(isinstance(p, IfElse) for p in producers) > 1,
    law="rounding",
    tags=("ifelse_lift_single_if_through_acceptable_ops",),
)
def merge_sum(ctx: Context, node: Apply) -> Replacement:
    """A gradient is the sum of those through both branches, of which one is zero."""
    terms: dict[Variable, list[Variable]] = {}
    for v in node.inputs:
        if v.owner is not None and isinstance(v.owner.op, IfElse):
            terms.setdefault(v.owner.inputs[0], []).append(v)
    nothing: tuple[Variable | None, list[Variable]] = (None, [])
    condition, same = max(terms.items(), key=lambda pair: len(pair[1]), default=nothing)
    if condition is None or len(same) < 2:  # `where` is not asked of long sums
        return None
    true, false = (node.op(*[_decided(v, condition, side) for v in same]) for side in (True, False))
    merged = IfElse(1).make_node(condition, true, false).outputs[0]
    merging = set(same)
    others = [v for v in node.inputs if v not in merging]
    return node.op(merged, *others) if others else merged


@rule(
    "ifelse(c, a, b)[i] -> ifelse(c, a[i], b[i])",
    ops=[Subtensor],
    where=at(0, IfElse),
    law="exact",
    tags=("local_subtensor_of_ifelse",),
)
def read_of_ifelse(ctx: Context, node: Apply) -> Replacement:
    """A branch computes only what is read, if nothing else uses its value."""
    x, *indices = node.inputs
    if x.owner is None or not isinstance(x.owner.op, IfElse) or not ctx.single_use(x):
        return None
    true, false = (node.op(chosen(x.owner, x, side), *indices) for side in (True, False))
    return IfElse(1).make_node(x.owner.inputs[0], true, false).outputs[0]


def _decided(v: Variable, condition: Variable, side: bool) -> Variable:
    """``v``, or what it is if it is selected by a condition of which the outcome is known."""
    inner = v.owner
    if inner is None or not isinstance(inner.op, IfElse) or inner.inputs[0] is not condition:
        return v
    return chosen(inner, v, side)


# -------------------------------------------------------------------------- introduction


class IntroduceLazyIfElse(GraphRewriter):
    """Moves what only one branch of `IfElse` nodes needs into a `LazyIfElse`; see `Places`."""

    def apply(self, fgraph: FunctionGraph) -> bool:
        if not any(isinstance(node.op, IfElse) for node in fgraph.apply_nodes):
            return False
        places = Places(fgraph.outputs, fgraph.toposort())
        made = _Made(places)
        for group in reversed(places.groups):  # those inside of branches first
            made.add(group)
        groups = [group for group in places.groups if group.place is None]
        new: dict[Variable, Variable] = {}
        for group in sorted(groups, key=lambda group: group.order):
            made.apply(group, new)
        old = [v for group in groups for node in group.nodes for v in node.outputs]
        pairs = [(v, new[v]) for v in old if v in new]
        fgraph.replace_all(pairs, reason="introduce_lazy_ifelse")
        return bool(pairs)


class _Made:
    """The ops that groups become, with their inputs."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.ops: dict[Group, tuple[LazyIfElse, list[Variable]]] = {}

    def add(self, group: Group) -> None:
        """Make the op of a group; those of the groups in its branches exist."""
        external: dict[Variable, None] = {}
        results: list[list[Variable]] = []
        for k, branch in enumerate(group.branches.values()):
            new = self._computed(branch, external)
            values = [pair[k] for pair in group.outputs.values()]
            external.update(_outside([v for v in values if v is not None], new))
            results.append(
                [
                    Absent(v.type).make_node().outputs[0]
                    if value is None
                    else new.get(value, value)
                    for v, value in zip(group.outputs, values)
                ]
            )
        inputs = list(external)
        orders = [io_toposort(inputs, outputs) for outputs in results]
        graphs = [
            FrozenFunctionGraph.from_toposort(inputs, outputs, order)
            for outputs, order in zip(results, orders)
        ]
        true, false = (tuple([node.origin for node in order]) for order in orders)
        op = LazyIfElse(graphs[0], graphs[1], [v.type for v in group.outputs], (true, false))
        self.ops[group] = op, inputs

    def _computed(self, branch: Branch, external: dict[Variable, None]) -> dict[Variable, Variable]:
        """The variables that are computed in a branch, as functions of those that are not.

        The latter are added to ``external``.
        """
        new: dict[Variable, Variable] = {}
        for entity in self._in_order(branch):
            if isinstance(entity, Group):
                _, inputs = self.ops[entity]
                external.update(_outside([*entity.conditions, *inputs], new))
                self.apply(entity, new)
            elif entity in self.places.aliases:
                side = self.places.aliases[entity]
                found = [chosen(entity, v, side) for v in entity.outputs]
                external.update(_outside(found, new))
                new.update((v, new.get(a, a)) for v, a in zip(entity.outputs, found))
            else:
                external.update(_outside(entity.inputs, new))
                inputs = [new.get(v, v) for v in entity.inputs]
                changed = any(a is not b for a, b in zip(inputs, entity.inputs))
                node = entity.clone_with_new_inputs(inputs) if changed else entity
                node.origin = entity.origin
                new.update(zip(entity.outputs, node.outputs))
        return new

    def _in_order(self, branch: Branch) -> list[Apply | Group]:
        """What is computed in a branch: nodes and groups, in an order of computation."""
        levels, aliases = self.places.levels, self.places.aliases
        nodes = [n for n in reversed(branch.nodes) if n in aliases or not isinstance(n.op, IfElse)]
        entities: list[Apply | Group] = [*branch.groups, *nodes]
        return sorted(entities, key=lambda e: e.order if isinstance(e, Group) else (levels[e], 0))

    def apply(self, group: Group, new: dict[Variable, Variable]) -> None:
        """Add the outputs of a group, as functions of variables among which ``new`` are renamed."""
        op, inputs = self.ops[group]
        cases = [[(new.get(v, v), side) for v, side in case] for case in group.cases]
        first = group.branches[True].nodes[0] if group.is_guard else group.nodes[-1]
        with inherit(first.origin):
            node = op.make_node(_any(cases), *[new.get(v, v) for v in inputs])
        new.update(zip(group.outputs, node.outputs))


def _any(cases: Sequence[Sequence[tuple[Variable, bool]]]) -> Variable:
    """Whether all conditions of one of some cases have their outcomes."""
    if len(cases) == 1 and len(cases[0]) == 1 and cases[0][0][1]:
        return cases[0][0][0]
    is_met = {True: functions.neq, False: functions.eq}
    found = [reduce(functions.and_, [is_met[side](v, 0) for v, side in case]) for case in cases]
    return reduce(functions.or_, found)


def _outside(
    variables: Iterable[Variable], inside: dict[Variable, Variable]
) -> dict[Variable, None]:
    """Those of some variables that are neither computed inside nor constants."""
    return dict.fromkeys(v for v in variables if v not in inside and not isinstance(v, Constant))


RULES = (useless_ifelse, nested_ifelse, merge_sum, read_of_ifelse)
for _rule in RULES:
    canonicalize.register(_rule.name, _rule, *_rule.tags, "fast_run", "fast_compile")
    for _db in (stabilize, specialize):
        _db.register(_rule.name, _rule, *_rule.tags, "fast_run")


def _register_phases() -> None:
    optdb.register("introduce_lazy_ifelse", IntroduceLazyIfElse(), "minimum_compile", position=3.7)
    optdb.mark_own()


optdb.fill_later(_register_phases)
