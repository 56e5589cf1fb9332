"""The rewriting engine: brings every node of a graph into normal form under rules, in one sweep.

Nodes are visited in topological order, so the inputs that a rule sees are in normal form.  Nodes
are hash-consed on the way: equal nodes (same op, same inputs) are merged, so a rule is applied to
the first of them only.  The replacement that a rule returns is brought into normal form before the
sweep continues.  The FunctionGraph is updated once, at the end (`phintys.rewriting.install`).

A node whose inputs are replaced stays the same object, so its outputs keep their identity unless
they are replaced themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from phintys.config import config
from phintys.errors import ContradictionError, RewriteError
from phintys.graph.clients import Output
from phintys.graph.collection import collection_paused
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, AtomicVariable, Constant, Variable
from phintys.locks import making
from phintys.rewriting.install import install
from phintys.rewriting.invariants import check_tables
from phintys.rewriting.rewriter import GraphRewriter, Rewriter, rewrite_error
from phintys.rewriting.rule import Rule
from phintys.rewriting.table import CONSTANT, ROOT, OpEntry, RuleTable
from phintys.rewriting.trace import current_recorder

#: How deeply replacements may be nested before the engine reports that the rules do not terminate.
MAX_GENERATIONS = 1000


class RuleSet(GraphRewriter):
    """A graph rewriter that brings a graph into normal form under rules, and merges equal nodes.

    Parameters
    ----------
    rules
        the rules; earlier ones are tried first.  Without rules it only merges.
    name
        name of the rewriter in messages
    max_generations
        greatest nesting of replacements

    >>> import phintys.tensor as pt, phintys.tensor.rules
    >>> from phintys.rewriting.rule import equation
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [pt.log(1 + pt.exp(x))], clone=False)
    >>> RuleSet([equation("log(1 + x) -> log1p(x)", law="accurate")]).apply(fgraph)
    True
    >>> fgraph.toposort()
    [Exp(x), Log1p(Exp.0)]
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        name: str | None = None,
        max_generations: int = MAX_GENERATIONS,
    ) -> None:
        self.rules = list(rules)
        self.name = name
        self.max_generations = max_generations
        self._table: RuleTable | None = None

    @property
    def table(self) -> RuleTable:
        """The rules by op; built on first use."""
        if self._table is None:
            self._table = RuleTable(self.rules)
        return self._table

    def parts(self) -> Sequence[Rewriter]:
        return self.rules

    def apply(self, fgraph: FunctionGraph) -> bool:
        """Bring the graph into normal form; return whether it changed.

        RewriteError if a rule raises, returns something illegal, or the rules do not terminate; the
        graph is then as it was.
        """
        with making, collection_paused():
            had_clients = fgraph.has_clients
            try:
                # the state of the run, which is as large as the graph, is freed before `install`
                outputs, original, order = Normalizer(self, fgraph).run()
            finally:
                if not had_clients:  # a rule has asked for them amid changes
                    fgraph.forget_clients()
            return install(fgraph, outputs, original, order, self.name or "rules")


class Normalizer:
    """The state of one run of a `RuleSet` over a FunctionGraph, and the `Context` of its rules."""

    def __init__(self, rules: RuleSet, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        self._name = rules.name or "rules"
        self._table = rules.table
        self._limit = rules.max_generations
        self._recorder = current_recorder()
        # Variables in normal form, with their producers: see RuleTable.
        self._producers: dict[Variable, int] = {}
        # Nodes that are in normal form, or replaced by something in normal form.
        self._done: set[Apply] = set()
        # Replaced variable -> replacement, which may be replaced itself.
        self._forward: dict[Variable, Variable] = {}
        # Node whose replacement is not in normal form yet -> its key in `_interned`, the rule.
        self._pending: dict[Apply, tuple[Any, Rule]] = {}
        # The inverse of `_pending`: key -> node.
        self._in_progress: dict[Any, Apply] = {}
        # Nodes on the stack of `_normalize` that wait for nodes above them.
        self._waiting: set[Apply] = set()
        # Hash-consing table: (number of the op, inputs) -> the node that stands for all equal ones.
        self._interned: dict[Any, Apply] = {}
        self._constants: dict[Any, Constant] = {}
        # id(op) -> entry.  `_ops` keeps the ops alive, and so their ids and numbers.
        self._entries: dict[int, OpEntry] = {}
        self._ops: list[Any] = []
        # Number of uses of each variable, with replacements taken into account.
        self._uses: dict[Variable, int] = {}
        # A node that uses a variable: its first use before the run, or in the run.
        self._client: dict[Variable, Apply] = {}
        # Node made by an idempotent rule, which need not be tried at it.
        self._made: dict[Apply, Rule] = {}
        # See `Context`.
        self.moved: dict[Apply, int] = {}
        self.lengths: dict[tuple[Variable, int], Variable] = {}
        # Nodes at which an `outermost` rule was not tried, because a user tries the same rule.
        self._deferred: set[Apply] = set()
        # Nodes at which it was deferred and is tried after all, because the user kept them.
        self._forced: set[Apply] = set()
        # In-place nodes and the nodes whose results they destroy, which must not be changed.
        self._kept: set[Apply] = set()
        self._origin = inherit(None)
        # Nodes of the graph with changed inputs -> their inputs before the run.
        self._original: dict[Apply, list[Variable]] = {}

    # ------------------------------------------------------------------ the run
    def run(self) -> tuple[list[Variable], dict[Apply, list[Variable]], list[Apply]]:
        """Rewrite the nodes of the graph; return the new outputs, and what `install` needs.

        After an exception the nodes are as before.
        """
        order = self.fgraph.toposort()
        self._find_uses(order)
        self._keep_destroyers(order)
        self._producers.update(dict.fromkeys(self.fgraph.inputs, ROOT))
        done = self._done
        try:
            with self._origin:
                for node in order:
                    if node not in done and (missing := self._step(node)):
                        self._normalize(node, missing)
                outputs = [self._final(v) for v in self.fgraph.outputs]
            if config.check_rewrites:
                check_tables(self)
        except BaseException:
            for node, inputs in self._original.items():
                node.inputs[:] = inputs
            raise
        return outputs, self._original, order

    def _find_uses(self, order: Sequence[Apply]) -> None:
        """Find the number of uses and the first use of each variable before the run."""
        self._uses = self.fgraph.use_counts()
        results = [self.fgraph.get_output_client(i)[0] for i in range(len(self.fgraph.outputs))]
        users = chain(reversed(results), reversed(order))
        self._client = {v: node for node in users for v in node.inputs}

    def _keep_destroyers(self, order: Sequence[Apply]) -> None:
        """Mark in-place nodes, and the nodes whose results they destroy, as not to be changed."""
        for node in order:
            if node.op.destroy_map:
                self._kept.add(node)
                for i in chain.from_iterable(node.op.destroy_map.values()):
                    owner = node.inputs[i].owner
                    if owner is not None:
                        self._kept.add(owner)

    def _final(self, v: Variable) -> Variable:
        """The normal form of an output of the graph."""
        v = self._current(v)
        while True:
            node = v.owner
            if node is None:
                return v if v in self._producers else self._current(self._root(v, None))
            if node in self._deferred:
                self._force(node)
            if node not in self._done and (missing := self._step(node)):
                self._normalize(node, missing)
            w = self._current(v)
            if w is v and node not in self._deferred:
                return v
            v = w

    def _normalize(self, root: Apply, missing: Sequence[Apply]) -> None:
        """Finish ``root``, which waits for the nodes ``missing``, and all they wait for."""
        self._wait(root, missing)
        stack = [root, *missing]
        while stack:
            node = stack[-1]
            if node in self._pending:
                self._finish_pending(node)
            elif node not in self._done and (more := self._step(node)):
                self._wait(node, more)
                stack.extend(more)
                continue
            stack.pop()
            self._waiting.discard(node)

    def _wait(self, node: Apply, missing: Sequence[Apply]) -> None:
        """Record that ``node`` waits for ``missing``; RewriteError if one of these waits for it."""
        self._waiting.add(node)
        for m in missing:
            if m in self._waiting:
                replaced, (_, rule) = next(
                    reversed(self._pending.items()), (node, (None, self._name))
                )
                raise rewrite_error(
                    rule, replaced, f"the replacement depends on what it replaces (in {m.op})."
                )

    def _step(self, node: Apply) -> list[Apply] | None:
        """Advance one node; return the nodes that must be done first, or None if it is done."""
        producers: list[Any] = list(map(self._producers.get, node.inputs))
        if None in producers:
            new, missing = self._normal_inputs(node)
            if missing:
                return missing
            if new != node.inputs and self._set_inputs(node, new):
                return self._targets(node)
            producers = list(map(self._producers.get, new))
        return self._settle(node, producers)

    def _normal_inputs(self, node: Apply) -> tuple[list[Variable], list[Apply]]:
        """The inputs with replacements followed, and the nodes of those not in normal form yet."""
        normal, forward = self._producers, self._forward
        inputs: list[Variable] = []
        missing: list[Apply] = []
        for v in node.inputs:
            if v in forward:
                v = self._current(v)
            if v not in normal:
                if v.owner is None:
                    v = self._root(v, node)
                else:
                    missing.append(v.owner)
            inputs.append(v)
        return inputs, missing

    def _settle(self, node: Apply, producers: list[int]) -> list[Apply] | None:
        """Merge, replace or intern a node whose inputs are normal; return as `_step` does.

        ``producers`` are those of its inputs.
        """
        entry = self._entries.get(id(node.op)) or self._entry(node.op)
        if not entry.mergeable or (self._kept and node in self._kept):
            if self._deferred and (forced := self._force_inputs(node)):
                return forced
            self._accept(node, entry.number)
            return None
        key = (entry.number, *node.inputs)
        found = self._interned.get(key)
        if found is not None and found is not node and self._merge(node, found):
            return None
        deferred = False
        candidates = entry.every
        if candidates is not entry.untried and self._is_untouched(node):
            candidates = entry.untried
        rules = candidates.rules and self._table.possible(node, candidates, producers)
        if rules:
            if self._in_progress and key in self._in_progress:
                raise self._cycle(node)
            self._origin.move(node.origin)
            applied, deferred = self._try_rules(node, rules)
            if applied is not None:
                rule, outputs = applied
                self._replace(node, outputs)
                return self._wait_for_targets(node, key, rule)
        if deferred:
            self._deferred.add(node)
        elif self._deferred:
            forced = self._force_inputs(node)
            if forced:
                return forced
        self._interned[key] = node
        self._accept(node, entry.number)
        return None

    def _accept(self, node: Apply, number: int) -> None:
        """Mark a node as in normal form; ``number`` is that of its op."""
        for o in node.outputs:
            self._producers[o] = number
        self._done.add(node)

    # ------------------------------------------------------------------ looking up
    def _current(self, v: Variable) -> Variable:
        """The replacement of ``v``, followed to its end; ``v`` itself if it is not replaced."""
        forward = self._forward
        if v not in forward:
            return v
        end = forward[v]
        while end in forward:
            end = forward[end]
        while v is not end:  # path compression: the next lookup takes one step
            forward[v], v = end, forward[v]
        return end

    def _root(self, v: Variable, user: Apply | None) -> Variable:
        """The normal form of a variable without an owner: equal constants are merged.

        RewriteError if it is neither an input nor a constant; ``user`` is a node that uses it.
        """
        if isinstance(v, Constant):
            try:
                same = self._constants.setdefault(v.merge_signature(), v)
            except TypeError:  # the value is not hashable
                same = v
            if same is not v:
                if count := self._uses.get(v, 0):
                    self._uses[same] = self._uses.get(same, 0) + count
                self._forward[v] = same
                return same
            self._producers[v] = CONSTANT
            return v
        if not isinstance(v, AtomicVariable) and v not in self.fgraph.variables:
            used = f", used by {user.op}," if user is not None else ""
            raise rewrite_error(
                self._name, None, f"{v} ({v.type}){used} is neither computed nor an input."
            )
        self._producers[v] = ROOT
        return v

    def _entry(self, op: Any) -> OpEntry:
        """The entry of an op that is not in `_entries` yet."""
        self._ops.append(op)
        found = self._entries[id(op)] = self._table.entry(op)
        return found

    # ------------------------------------------------------------------ changing
    def _set_inputs(self, node: Apply, new: Sequence[Variable]) -> bool:
        """Set the inputs of a node; True if a new node replaces it instead, for narrower types."""
        if self._may_retype(node, new) and self._rebuild(node, new):
            return True
        if self._is_untouched(node):
            self._original[node] = list(node.inputs)
        self._made.pop(node, None)
        node.inputs[:] = new
        return False

    def _is_untouched(self, node: Apply) -> bool:
        """Whether a node was in the graph before the run, and has the same inputs still."""
        return node in self.fgraph.apply_nodes and node not in self._original

    def _may_retype(self, node: Apply, new: Sequence[Variable]) -> bool:
        """Whether new inputs may change the types of the outputs.

        Only by their types: a length of 1 that rewriting finds in a value does not broadcast.
        """
        if self._kept and node in self._kept:
            return False
        for old, v in zip(node.inputs, new):
            if old is not v and old.type is not v.type and old.type != v.type:
                return True
        return False

    def _rebuild(self, node: Apply, new: Sequence[Variable]) -> bool:
        """Replace a node by one that ``make_node`` makes from narrower inputs.

        Only if that narrows its outputs or converts its inputs; returns whether it did.  A node
        that is known to fail now keeps its wider outputs: it raises its error if it is computed.
        """
        with inherit(node.origin):
            try:
                fresh = node.op.make_node(*new)
            except ContradictionError:
                return False
            except Exception as exc:
                raise rewrite_error(
                    self._name, node, f"cannot be applied to {list(new)}: {exc}"
                ) from exc
        pairs = list(zip(node.outputs, fresh.outputs))
        if all(o.type == f.type for o, f in pairs) and _are_equal(fresh.inputs, new):
            return False
        if not all(o.type.is_super(f.type) for o, f in pairs):
            return False
        for o, f in pairs:
            f.name = o.name
            if o._tag is not None:  # pyright: ignore[reportPrivateUsage]
                f.tag.__update__(o.tag)
        self._replace(node, fresh.outputs)
        self._done.add(node)
        return True

    def _targets(self, node: Apply) -> list[Apply] | None:
        """The nodes that compute replacements of ``node`` and are not in normal form; or None."""
        found: list[Apply] = []
        for o in node.outputs:
            v = self._current(o)
            if v is o or v in self._producers:
                continue
            if v.owner is None:
                self._root(v, node)
            else:
                found.append(v.owner)
        return found or None

    def _wait_for_targets(self, node: Apply, key: Any, rule: Rule) -> list[Apply] | None:
        """Finish a replaced node, or make it pending and return the nodes it waits for."""
        targets = self._targets(node)
        if not targets:
            self._finish(node, key)
            return None
        self._pending[node] = (key, rule)
        self._in_progress[key] = node
        if len(self._pending) > self._limit:
            raise self._diverged(node)
        return targets

    def _finish_pending(self, node: Apply) -> None:
        key, _ = self._pending.pop(node)
        del self._in_progress[key]
        self._finish(node, key)

    def _finish(self, node: Apply, key: Any) -> None:
        """Mark a replaced node as done, and intern it, so that equal nodes are replaced alike."""
        self._done.add(node)
        forward = self._forward
        for o in node.outputs:
            if o not in forward:
                return
        self._interned[key] = node

    def _merge(self, node: Apply, found: Apply) -> bool:
        """Replace ``node`` by an equal node if the types allow it; return whether it did."""
        for o, f in zip(node.outputs, found.outputs):
            if o.type is not f.type and not o.type.is_super(f.type):
                return False
        if node in self.moved:
            self.moved[found] = max(self.moved[node], self.moved.get(found, 0))
        self._replace(node, found.outputs)
        self._done.add(node)
        return True

    def _replace(self, node: Apply, outputs: Sequence[Variable | None]) -> None:
        """Replace the outputs of ``node`` by ``outputs``, and update the numbers of uses."""
        uses, used = self._uses, False
        for o, new in zip(node.outputs, outputs):
            count = uses.get(o, 0)
            used = used or count > 0
            if new is None:
                continue
            target = self._current(new)
            if count:
                self._retain(target, count, o)
                uses[o] = 0
            self._forward[o] = target
        if used:
            self._release_inputs(node)

    # ------------------------------------------------------------------ rules
    def _try_rules(
        self, node: Apply, rules: Sequence[Rule]
    ) -> tuple[tuple[Rule, list[Variable | None]] | None, bool]:
        """The first rule that applies, with its replacements; and whether a rule was deferred.

        A rule whose replacement is known to fail does not apply: the node raises the error of the
        program, if it is computed.
        """
        deferred = False
        made_by = self._made.get(node)
        for rule in rules:
            if rule is made_by:
                continue
            if rule.outermost and node not in self._forced and self._inside_chain(node, rule):
                deferred = True
                continue
            try:
                result = rule.function(self, node)
                outputs = None if result is None else self._checked(node, result)
            except ContradictionError:
                continue
            except RewriteError as exc:
                raise rewrite_error(rule.name, node, str(exc)) from exc
            except Exception as exc:
                raise rewrite_error(rule.name, node, f"raised {type(exc).__name__}: {exc}") from exc
            if outputs is None:
                continue
            if rule.idempotent and outputs[0] is not None and outputs[0].owner is not None:
                self._made[outputs[0].owner] = rule
            if self._recorder is not None:
                pairs = zip(node.outputs, outputs)
                self._recorder(rule, node, [(o, new) for o, new in pairs if new is not None])
            return (rule, outputs), deferred
        return None, deferred

    def _checked(self, node: Apply, result: Any) -> list[Variable | None] | None:
        """The result of a rule as one replacement per output; None if nothing changes.

        A replacement of a wider type is narrowed.  RewriteError if it is illegal;
        ContradictionError if types differ because the node itself is known to fail.
        """
        if isinstance(result, Variable) and len(node.outputs) == 1:
            o = node.outputs[0]
            if result.type is o.type:
                return None if result is o else [result]
        outputs = None if result is False else _as_list(node, result)
        for i, (o, new) in enumerate(zip(node.outputs, outputs or ())):
            if new is None:
                if self.uses(o):
                    raise RewriteError(f"returned None for output {i}, which is in use.")
            elif new.type is not o.type and not o.type.is_super(new.type):
                try:
                    outputs[i] = o.type.filter_variable(new)  # type: ignore[index]
                except TypeError as exc:
                    node.op.make_node(*node.inputs)  # raises, if the node is known to fail
                    raise RewriteError(
                        f"replaces a variable of type {o.type} by {new} of type {new.type}: {exc}"
                    ) from exc
        return outputs

    def _inside_chain(self, node: Apply, rule: Rule) -> bool:
        """Whether ``node`` has a single use, in a node at which the same rule is tried."""
        if len(node.outputs) != 1 or self._uses.get(node.outputs[0]) != 1:
            return False
        user = self.client(node.outputs[0])
        if user is None or isinstance(user.op, Output) or user in self._kept:
            return False
        return rule in (self._entries.get(id(user.op)) or self._entry(user.op)).every.outermost

    def _force_inputs(self, node: Apply) -> list[Apply]:
        """The nodes of inputs whose outermost rules were deferred to ``node``, which kept them.

        They are marked as not done, and the deferred rules are enabled.  A node is listed once even
        if it computes several inputs.
        """
        deferred = self._deferred
        forced = list(dict.fromkeys(v.owner for v in node.inputs if v.owner in deferred))
        for n in forced:
            self._force(n)
        return forced

    def _force(self, node: Apply) -> None:
        """Mark a node as not done, and enable its deferred rules."""
        self._deferred.discard(node)
        self._forced.add(node)
        self._done.discard(node)
        for o in node.outputs:
            del self._producers[o]

    def _cycle(self, node: Apply) -> RewriteError:
        return self._cycle_error(node, "the rules lead back to an expression they started from")

    def _diverged(self, node: Apply) -> RewriteError:
        return self._cycle_error(
            node, f"{len(self._pending)} nested replacements: the rules do not terminate"
        )

    def _cycle_error(self, node: Apply, what: str) -> RewriteError:
        names = Counter(str(rule) for _, rule in self._pending.values())
        involved = ", ".join(f"{n!r} ({k} times)" for n, k in names.most_common(5))
        return rewrite_error(self._name, node, f"{what}; involved: {involved}.")

    # ------------------------------------------------------------------ uses
    def uses(self, variable: Variable) -> int:
        """The number of uses of a variable, as an input of a node or an output of the graph."""
        return self._uses.get(variable, 0)

    def single_use(self, variable: Variable) -> bool:
        """Whether the variable has at most one use."""
        return self._uses.get(variable, 0) <= 1

    def client(self, variable: Variable) -> Apply | None:
        """A node that uses the variable.

        It is reliable only if the variable has one use and never had more during this run.
        """
        return self._client.get(variable)

    def _retain(self, variable: Variable, n: int, instead_of: Variable) -> None:
        """Add ``n`` uses of a variable that replaces ``instead_of``.

        If it was not used before, the uses of its node's inputs are added too, and so on.
        """
        uses, client, forward = self._uses, self._client, self._forward
        before = uses.get(variable, 0)
        uses[variable] = before + n
        if before:
            return
        user = self.client(instead_of)
        if user is not None:
            client[variable] = user
        work = [variable]
        while work:
            v = work.pop()
            owner = v.owner
            if owner is None or (len(owner.outputs) > 1 and not self._is_only_use(v, owner)):
                continue
            for x in owner.inputs:
                x = self._current(x) if x in forward else x
                before = uses.get(x, 0)
                uses[x] = before + 1
                if not before:
                    client[x] = owner
                    work.append(x)

    def _is_only_use(self, v: Variable, owner: Apply) -> bool:
        """Whether no other output of ``owner`` is used."""
        return not any(o is not v and self.uses(o) for o in owner.outputs)

    def _release_inputs(self, node: Apply) -> None:
        """Subtract the uses of a node's inputs if the node has no use left, and so on."""
        work, uses, forward = [node], self._uses, self._forward
        while work:
            node = work.pop()
            if any(map(uses.get, node.outputs)):
                continue
            for v in node.inputs:
                v = self._current(v) if v in forward else v
                left = uses[v] = uses.get(v, 0) - 1
                owner = v.owner
                if left or owner is None:
                    continue
                # a node with several outputs may be reached once per output
                if len(owner.outputs) == 1 or owner not in work:
                    work.append(owner)


def _are_equal(inputs: Sequence[Variable], others: Sequence[Variable]) -> bool:
    """Whether variables are the same, up to equal constants, which ``make_node`` may make anew."""
    return len(inputs) == len(others) and all(
        v is w or (isinstance(v, Constant) and v.equals(w)) for v, w in zip(inputs, others)
    )


def _as_list(node: Apply, result: Any) -> list[Variable | None] | None:
    """The replacements as a list with one entry per output; None if nothing changes."""
    if isinstance(result, Variable):
        if len(node.outputs) == 1:
            return None if result is node.outputs[0] else [result]
        result = [result]
    if not isinstance(result, list | tuple):
        raise RewriteError(
            f"returned {result!r}; return None, a variable, or a list with one variable per output."
        )
    outputs: list[Any] = list(result)
    if len(outputs) != len(node.outputs):
        raise RewriteError(f"returned {len(outputs)} variables for {len(node.outputs)} outputs.")
    for new in outputs:
        if not (new is None or isinstance(new, Variable)):
            raise RewriteError(f"returned {new!r}, which is not a variable.")
    kept = [new is None or new is o for new, o in zip(outputs, node.outputs)]
    if all(kept):
        return None
    if any(k and new is not None for k, new in zip(kept, outputs)):
        raise RewriteError("returned new variables together with an output of the node itself.")
    return outputs
