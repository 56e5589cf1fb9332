"""The engine: brings every node of a graph into normal form under a set of rules, in one sweep.

Nodes are visited inputs first, so a rule sees only inputs in normal form.  Equal nodes (same op,
same inputs) become one on the way: what a rule makes of the first of them stands for all.  What a
rule returns is itself brought into normal form before the sweep goes on.  The FunctionGraph learns
of all changes at once, at the end (`phintys.rewriting.install`).

Nodes of the graph whose inputs change stay the same objects, so variables in the middle of a
graph keep their identity unless they are themselves replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from phintys.config import config
from phintys.errors import RewriteError
from phintys.graph.collection import collection_paused
from phintys.graph.fgraph import FunctionGraph, Output
from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, AtomicVariable, Constant, Variable
from phintys.locks import making
from phintys.rewriting.install import install
from phintys.rewriting.invariants import check_tables
from phintys.rewriting.rewriter import GraphRewriter, Rewriter, rewrite_error
from phintys.rewriting.rule import Rule
from phintys.rewriting.table import CONSTANT, ROOT, OpEntry, RuleTable
from phintys.rewriting.trace import current_recorder

#: How many replacements may be in progress inside each other before the rules are said to diverge.
MAX_GENERATIONS = 1000


class RuleSet(GraphRewriter):
    """Rules as a graph rewriter.  Without rules it merges equal nodes, and does nothing else.

    >>> merge = RuleSet([], name="merge")
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
        """Bring the graph into normal form; whether anything changed."""
        with making, collection_paused():
            return Normalizer(self, fgraph).run()


class Normalizer:
    """One run of a `RuleSet` over a FunctionGraph; it is the `Context` of its rules."""

    def __init__(self, rules: RuleSet, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        self._name = rules.name or "rules"
        self._table = rules.table
        self._limit = rules.max_generations
        self._recorder = current_recorder()
        self._kinds: dict[Variable, int] = {}  # of the variables in normal form: see RuleTable
        self._done: set[Apply] = set()
        self._forward: dict[Variable, Variable] = {}  # replaced variable -> replacement
        self._pending: dict[Apply, tuple[Any, Rule]] = {}  # node -> its key, the rule
        self._in_progress: dict[Any, Apply] = {}  # key -> node whose replacement is in progress
        self._waiting: set[Apply] = set()
        self._interned: dict[Any, Apply] = {}
        self._constants: dict[Any, Constant] = {}
        self._entries: dict[int, OpEntry] = {}  # by the id of an op
        self._ops: list[Any] = []  # keeps them alive, and so their ids and numbers
        self._uses = {v: len(clients) for v, clients in fgraph.clients.items()}
        self._client: dict[Variable, Apply] = {}
        self._made: dict[Apply, Rule] = {}  # node that an idempotent rule has just made
        self._deferred: set[Apply] = set()
        self._forced: set[Apply] = set()
        self._kept: set[Apply] = set()
        self._untouched: set[Apply] = set()  # in the graph before the run, with the same inputs
        self._origin = inherit(None)
        self._original: dict[Apply, list[Variable]] = {}

    # ------------------------------------------------------------------ the run
    def run(self) -> bool:
        """Rewrite the graph; whether it changed.  After an exception the graph is as before."""
        order = self.fgraph.toposort()
        self._untouched.update(order)
        self._keep_destroyers(order)
        self._kinds.update(dict.fromkeys(self.fgraph.inputs, ROOT))
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
        return install(self.fgraph, outputs, self._original, order, self._name)

    def _keep_destroyers(self, order: Sequence[Apply]) -> None:
        """In-place nodes, and nodes whose results they destroy, are not touched."""
        for node in order:
            if node.op.destroy_map:
                self._kept.add(node)
                for i in chain.from_iterable(node.op.destroy_map.values()):
                    owner = node.inputs[i].owner
                    if owner is not None:
                        self._kept.add(owner)

    def _final(self, v: Variable) -> Variable:
        v = self._current(v)
        while True:
            node = v.owner
            if node is None:
                return v if v in self._kinds else self._current(self._root(v, None))
            if node in self._deferred:
                self._force(node)
            if node not in self._done and (missing := self._step(node)):
                self._normalize(node, missing)
            w = self._current(v)
            if w is v and node not in self._deferred:
                return v
            v = w

    def _normalize(self, root: Apply, missing: Sequence[Apply]) -> None:
        """Finish a node that cannot go on before those that are ``missing``."""
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
        """Note that ``node`` cannot go on before ``missing``; an error if these wait for it."""
        self._waiting.add(node)
        for m in missing:
            if m in self._waiting:
                replaced, (_, rule) = next(
                    reversed(self._pending.items()), (node, (None, self._name))
                )
                raise rewrite_error(
                    rule, replaced, f"the replacement needs the result it replaces (in {m.op})."
                )

    def _step(self, node: Apply) -> list[Apply] | None:
        """Advance one node; the nodes that must be done first, or None when it is done."""
        kinds: list[Any] = list(map(self._kinds.get, node.inputs))
        if None in kinds:
            new, missing = self._normal_inputs(node)
            if missing:
                return missing
            if new != node.inputs and self._set_inputs(node, new):
                return self._targets(node)
            kinds = list(map(self._kinds.get, new))
        return self._settle(node, kinds)

    def _normal_inputs(self, node: Apply) -> tuple[list[Variable], list[Apply]]:
        """What stands for the inputs; and the nodes that compute those not in normal form yet."""
        normal, forward = self._kinds, self._forward
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

    def _settle(self, node: Apply, kinds: list[int]) -> list[Apply] | None:
        """Intern a node whose inputs, of these kinds, are normal; or apply a rule to it."""
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
        candidates = entry.untried if node in self._untouched else entry.every
        rules = candidates.rules and self._table.possible(node, candidates, kinds)
        if rules:
            if self._in_progress and key in self._in_progress:
                raise self._ping_pong(node)
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

    def _accept(self, node: Apply, kind: int) -> None:
        for o in node.outputs:
            self._kinds[o] = kind
        self._done.add(node)

    # ------------------------------------------------------------------ looking up
    def _current(self, v: Variable) -> Variable:
        """What stands for ``v`` now."""
        forward = self._forward
        if v not in forward:
            return v
        end = forward[v]
        while end in forward:
            end = forward[end]
        while v is not end:  # so that no chain is followed twice
            forward[v], v = end, forward[v]
        return end

    def _root(self, v: Variable, user: Apply | None) -> Variable:
        """A variable without an owner, made normal: equal constants become one."""
        if isinstance(v, Constant):
            try:
                same = self._constants.setdefault(v.merge_signature(), v)
            except TypeError:  # the value cannot be hashed
                same = v
            if same is not v:
                if count := self._uses.get(v, 0):
                    self._uses[same] = self._uses.get(same, 0) + count
                self._forward[v] = same
                return same
            self._kinds[v] = CONSTANT
            return v
        if not isinstance(v, AtomicVariable) and v not in self.fgraph.variables:
            used = f", used by {user.op}," if user is not None else ""
            raise rewrite_error(
                self._name, None, f"{v} ({v.type}){used} is neither computed nor an input."
            )
        self._kinds[v] = ROOT
        return v

    def _entry(self, op: Any) -> OpEntry:
        """The entry of an op that this run has not met."""
        self._ops.append(op)
        found = self._entries[id(op)] = self._table.entry(op)
        return found

    # ------------------------------------------------------------------ changing
    def _set_inputs(self, node: Apply, new: Sequence[Variable]) -> bool:
        """Give a node its normal inputs.  True if types changed and a new node replaces it."""
        if self._may_retype(node, new) and self._rebuild(node, new):
            return True
        if node in self._untouched:
            self._untouched.discard(node)
            self._original[node] = list(node.inputs)
        self._made.pop(node, None)
        node.inputs[:] = new
        return False

    def _may_retype(self, node: Apply, new: Sequence[Variable]) -> bool:
        if self._kept and node in self._kept:
            return False
        if node.op._output_type_depends_on_input_value:  # pyright: ignore[reportPrivateUsage]
            return True
        for old, v in zip(node.inputs, new):
            if old is not v and old.type is not v.type and old.type != v.type:
                return True
        return False

    def _rebuild(self, node: Apply, new: Sequence[Variable]) -> bool:
        """Make a node anew on narrower inputs, if that narrows its outputs."""
        with inherit(node.origin):
            try:
                fresh = node.op.make_node(*new)
            except Exception as exc:
                raise rewrite_error(
                    self._name, node, f"cannot be applied to {list(new)}: {exc}"
                ) from exc
        pairs = list(zip(node.outputs, fresh.outputs))
        if all(o.type == f.type for o, f in pairs) and fresh.inputs == new:
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
        """The nodes of the replacements of ``node`` that are not normal yet."""
        found: list[Apply] = []
        for o in node.outputs:
            v = self._current(o)
            if v is o or v in self._kinds:
                continue
            if v.owner is None:
                self._root(v, node)
            else:
                found.append(v.owner)
        return found or None

    def _wait_for_targets(self, node: Apply, key: Any, rule: Rule) -> list[Apply] | None:
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
        """A node has been replaced; what equals it will be replaced by the same."""
        self._done.add(node)
        forward = self._forward
        for o in node.outputs:
            if o not in forward:
                return
        self._interned[key] = node

    def _merge(self, node: Apply, found: Apply) -> bool:
        """Let the results of an equal node stand for those of ``node``, if their types allow it."""
        for o, f in zip(node.outputs, found.outputs):
            if o.type is not f.type and not o.type.is_super(f.type):
                return False
        self._replace(node, found.outputs)
        self._done.add(node)
        return True

    def _replace(self, node: Apply, outputs: Sequence[Variable | None]) -> None:
        """Let ``outputs`` stand for those of ``node``, and move their uses."""
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
        """The first rule that applies, with its result; and whether a rule was put off."""
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
            except RewriteError as exc:
                raise rewrite_error(rule.name, node, str(exc)) from exc
            except Exception as exc:
                raise rewrite_error(rule.name, node, f"raised {type(exc).__name__}: {exc}") from exc
            if outputs is None:
                continue
            if rule.idempotent and outputs[0] is not None and outputs[0].owner is not None:
                self._made[outputs[0].owner] = rule
            if self._recorder is not None:
                self._recorder(rule, node, outputs)
            return (rule, outputs), deferred
        return None, deferred

    def _checked(self, node: Apply, result: Any) -> list[Variable | None] | None:
        """What a rule returned as one replacement for each output; None if nothing changes.

        Types must be kept or narrowed; what is less specific is narrowed here.
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
                    raise RewriteError(
                        f"replaces a variable of type {o.type} by {new} of type {new.type}: {exc}"
                    ) from exc
        return outputs

    def _inside_chain(self, node: Apply, rule: Rule) -> bool:
        """Whether the only user of ``node`` is one at which the same rule is tried."""
        if len(node.outputs) != 1 or self._uses.get(node.outputs[0]) != 1:
            return False
        user = self.client(node.outputs[0])
        if user is None or isinstance(user.op, Output) or user in self._kept:
            return False
        return rule in (self._entries.get(id(user.op)) or self._entry(user.op)).every.outermost

    def _force_inputs(self, node: Apply) -> list[Apply]:
        """Inputs whose outermost rules were put off for ``node``, which left them alone.

        A node is listed once, however many of the inputs it computes: equal inputs become one
        after their rules were put off.
        """
        deferred = self._deferred
        put_off = list(dict.fromkeys(v.owner for v in node.inputs if v.owner in deferred))
        for n in put_off:
            self._force(n)
        return put_off

    def _force(self, node: Apply) -> None:
        self._deferred.discard(node)
        self._forced.add(node)
        self._done.discard(node)
        for o in node.outputs:
            del self._kinds[o]

    def _ping_pong(self, node: Apply) -> RewriteError:
        return self._cycle_error(node, "the rules lead back to an expression they started from")

    def _diverged(self, node: Apply) -> RewriteError:
        return self._cycle_error(
            node, f"{len(self._pending)} replacements inside each other: the rules do not terminate"
        )

    def _cycle_error(self, node: Apply, what: str) -> RewriteError:
        names = Counter(str(rule) for _, rule in self._pending.values())
        involved = ", ".join(f"{n!r} ({k} times)" for n, k in names.most_common(5))
        return rewrite_error(self._name, node, f"{what}; involved: {involved}.")

    # ------------------------------------------------------------------ uses
    def uses(self, variable: Variable) -> int:
        """How many inputs of nodes, and graph outputs, are this variable."""
        return self._uses.get(variable, 0)

    def single_use(self, variable: Variable) -> bool:
        """Whether the variable is used at most once."""
        return self._uses.get(variable, 0) <= 1

    def client(self, variable: Variable) -> Apply | None:
        """A node that uses the variable; exact if there is a single use that was always single."""
        known = self._client.get(variable)
        if known is None:
            for node, _ in self.fgraph.clients.get(variable, ()):
                return node
        return known

    def _retain(self, variable: Variable, n: int, instead_of: Variable) -> None:
        """Add ``n`` uses of another variable; a node that comes into use starts to use inputs."""
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
        return not any(o is not v and self.uses(o) for o in owner.outputs)

    def _release_inputs(self, node: Apply) -> None:
        """A node that nobody uses any more stops using its inputs."""
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
                # the outputs of one node may all fall out of use before it is looked at
                if len(owner.outputs) == 1 or owner not in work:
                    work.append(owner)


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
        raise RewriteError("returned one of the outputs it was to replace beside new ones.")
    return outputs
