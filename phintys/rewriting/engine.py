"""The engine: brings every node of a graph into normal form under a set of rules, in one sweep.

Nodes are visited inputs first, so a rule sees only inputs in normal form.  Equal nodes (same op,
same inputs) become one on the way.  What a rule returns is itself brought into normal form before
the sweep goes on.  The FunctionGraph learns of all changes at once, at the end
(`phintys.rewriting.install`).

Nodes of the graph whose inputs change stay the same objects, so variables in the middle of a
graph keep their identity unless they are themselves replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from phintys.errors import RewriteError
from phintys.graph.collection import collection_paused
from phintys.graph.fgraph import FunctionGraph, Output
from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, AtomicVariable, Constant, Variable
from phintys.rewriting.install import install
from phintys.rewriting.rewriter import GraphRewriter, Rewriter, rewrite_error
from phintys.rewriting.rule import Rule
from phintys.rewriting.table import OpEntry, RuleTable
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
        with collection_paused():
            return Normalizer(self, fgraph).run()


class Normalizer:
    """One run of a `RuleSet` over a FunctionGraph; it is the `Context` of its rules."""

    def __init__(self, rules: RuleSet, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        self._name = rules.name or "rules"
        self._table = rules.table
        self._limit = rules.max_generations
        self._recorder = current_recorder()
        self._normal: set[Variable] = set()
        self._done: set[Apply] = set()
        self._forward: dict[Variable, Variable] = {}  # replaced variable -> replacement
        self._pending: dict[Apply, tuple[Any, Rule]] = {}  # node -> its key, the rule
        self._in_progress: dict[Any, Apply] = {}  # key -> node whose replacement is in progress
        self._waiting: set[Apply] = set()
        self._interned: dict[Any, Apply] = {}
        self._constants: dict[Any, Constant] = {}
        self._entries: dict[int, OpEntry] = {}
        self._uses = {v: len(clients) for v, clients in fgraph.clients.items()}
        self._client: dict[Variable, Apply] = {}
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
        self._normal.update(self.fgraph.inputs)
        try:
            with self._origin:
                for node in order:
                    self._normalize(node)
                outputs = [self._final(v) for v in self.fgraph.outputs]
        except BaseException:
            for node, inputs in self._original.items():
                node.inputs[:] = inputs
            raise
        return install(self.fgraph, outputs, self._original, self._name)

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
                return v if v in self._normal else self._current(self._root(v, None))
            if node in self._deferred:
                self._force(node)
            self._normalize(node)
            w = self._current(v)
            if w is v and node not in self._deferred:
                return v
            v = w

    def _normalize(self, root: Apply) -> None:
        missing = None if root in self._done else self._step(root)
        if not missing:
            return
        self._wait(root, missing)
        stack = [root, *missing]
        while stack:
            node = stack[-1]
            if node in self._done:
                stack.pop()
                continue
            missing = self._step(node)
            if missing:
                self._wait(node, missing)
                stack.extend(missing)
            else:
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
        if node in self._pending:
            key, _ = self._pending.pop(node)
            del self._in_progress[key]
            self._done.add(node)
            return None
        normal = self._normal
        missing: list[Apply] | None = None
        changed = False
        for v in node.inputs:
            if v in normal:
                continue
            w = self._current(v)
            if w not in normal:
                if w.owner is not None:
                    missing = missing or []
                    missing.append(w.owner)
                    continue
                w = self._root(w, node)
            changed = changed or w is not v
        if missing:
            return missing
        if changed and self._set_inputs(node):
            return self._targets(node)
        return self._settle(node)

    def _settle(self, node: Apply) -> list[Apply] | None:
        """Intern a node whose inputs are normal, or apply a rule to it."""
        entry = self._entries.get(id(node.op)) or self._entry(node.op)
        if not entry.mergeable or (self._kept and node in self._kept):
            self._accept(node, None)
            return None
        key = (entry.number, *node.inputs)
        found = self._interned.get(key)
        if found is not None and found is not node and self._merge(node, found):
            return None
        deferred = False
        rules = self._table.possible(node, entry, self._entries, node in self._untouched)
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
        self._accept(node, key)
        return None

    def _accept(self, node: Apply, key: Any) -> None:
        if key is not None:
            self._interned[key] = node
        self._normal.update(node.outputs)
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
            same = self._canonical(v)
            if same is not v:
                if count := self._uses.get(v, 0):
                    self._retain(same, count, self.client(v))
                self._forward[v] = same
                v = same
        elif not isinstance(v, AtomicVariable) and v not in self.fgraph.variables:
            used = f", used by {user.op}," if user is not None else ""
            raise rewrite_error(
                self._name, None, f"{v} ({v.type}){used} is neither computed nor an input."
            )
        self._normal.add(v)
        return v

    def _canonical(self, constant: Constant) -> Constant:
        try:
            return self._constants.setdefault(constant.merge_signature(), constant)
        except TypeError:  # the value cannot be hashed
            return constant

    def _entry(self, op: Any) -> OpEntry:
        known = self._table.entry(op)
        entry = self._entries[id(op)] = known if known.op is op else known._replace(op=op)
        return entry

    # ------------------------------------------------------------------ changing
    def _set_inputs(self, node: Apply) -> bool:
        """Give a node its normal inputs.  True if types changed and a new node replaces it."""
        old = node.inputs
        new = [self._current(v) for v in old]
        if self._may_retype(node, new) and self._rebuild(node, new):
            return True
        if node in self._untouched:
            self._untouched.discard(node)
            self._original[node] = list(old)
        node.inputs[:] = new
        return False

    def _may_retype(self, node: Apply, new: Sequence[Variable]) -> bool:
        if self._kept and node in self._kept:
            return False
        if node.op._output_type_depends_on_input_value:  # pyright: ignore[reportPrivateUsage]
            return True
        return any(
            v is not w and v.type is not w.type and v.type != w.type
            for v, w in zip(node.inputs, new)
        )

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
            if v is o or v in self._normal:
                continue
            if v.owner is None:
                self._root(v, node)
            else:
                found.append(v.owner)
        return found or None

    def _wait_for_targets(self, node: Apply, key: Any, rule: Rule) -> list[Apply] | None:
        self._pending[node] = (key, rule)
        self._in_progress[key] = node
        if len(self._pending) > self._limit:
            raise self._diverged(node)
        targets = self._targets(node)
        return targets or self._step(node)

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
        used = self._is_used(node)
        for o, new in zip(node.outputs, outputs):
            if new is None:
                continue
            target = self._current(new)
            count = self._uses.get(o, 0)
            if count:
                self._retain(target, count, self.client(o))
                self._uses[o] = 0
            self._forward[o] = target
        if used:
            self._release_inputs(node)

    # ------------------------------------------------------------------ rules
    def _try_rules(
        self, node: Apply, rules: Sequence[Rule]
    ) -> tuple[tuple[Rule, list[Variable | None]] | None, bool]:
        """The first rule that applies, with its result; and whether a rule was put off."""
        deferred = False
        for rule in rules:
            if rule.outermost and node not in self._forced and self._inside_chain(node, rule):
                deferred = True
                continue
            try:
                result = rule.function(self, node)
                outputs = None if result is None or result is False else _as_list(node, result)
                if outputs is None:
                    continue
                self._check(node, outputs)
            except RewriteError as exc:
                raise rewrite_error(rule.name, node, str(exc)) from exc
            except Exception as exc:
                raise rewrite_error(rule.name, node, f"raised {type(exc).__name__}: {exc}") from exc
            if self._recorder is not None:
                self._recorder(rule, node, outputs)
            return (rule, outputs), deferred
        return None, deferred

    def _check(self, node: Apply, outputs: list[Variable | None]) -> None:
        """Types must be kept or narrowed; what is less specific is narrowed here."""
        for i, (o, new) in enumerate(zip(node.outputs, outputs)):
            if new is None:
                if self.uses(o):
                    raise RewriteError(f"returned None for output {i}, which is in use.")
            elif new.type is not o.type and not o.type.is_super(new.type):
                try:
                    outputs[i] = o.type.filter_variable(new)
                except TypeError as exc:
                    raise RewriteError(
                        f"replaces a variable of type {o.type} by {new} of type {new.type}: {exc}"
                    ) from exc

    def _inside_chain(self, node: Apply, rule: Rule) -> bool:
        """Whether the only user of ``node`` is one at which the same rule is tried."""
        if len(node.outputs) != 1 or self.uses(node.outputs[0]) != 1:
            return False
        user = self.client(node.outputs[0])
        if user is None or isinstance(user.op, Output) or user in self._kept:
            return False
        return rule in (self._entries.get(id(user.op)) or self._entry(user.op)).rules

    def _force_inputs(self, node: Apply) -> list[Apply]:
        """Inputs whose outermost rules were put off for ``node``, which left them alone."""
        owners = [v.owner for v in node.inputs if v.owner is not None]
        put_off = [n for n in dict.fromkeys(owners) if n in self._deferred]
        for n in put_off:
            self._force(n)
        return put_off

    def _force(self, node: Apply) -> None:
        self._deferred.discard(node)
        self._forced.add(node)
        self._done.discard(node)
        self._normal.difference_update(node.outputs)

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

    def _is_used(self, node: Apply) -> bool:
        return any(map(self._uses.get, node.outputs))

    def single_use(self, variable: Variable) -> bool:
        """Whether the variable is used at most once."""
        return self._uses.get(variable, 0) <= 1

    def client(self, variable: Variable) -> Apply | None:
        """A node that uses the variable; exact if there is a single use that was always single."""
        known = self._client.get(variable)
        if known is None:
            clients = self.fgraph.clients.get(variable)
            return clients.first()[0] if clients else None
        return known

    def _retain(self, variable: Variable, n: int, user: Apply | None) -> None:
        """Add ``n`` uses; a node that comes into use starts to use its inputs."""
        work, uses = [(variable, n, user)], self._uses
        while work:
            v, n, user = work.pop()
            before = uses.get(v, 0)
            uses[v] = before + n
            if before == 0 and user is not None:
                self._client[v] = user
            owner = v.owner
            if before or not n or owner is None:
                continue
            if len(owner.outputs) == 1 or self._is_only_use(v, owner):
                work.extend((self._current(x), 1, owner) for x in owner.inputs)

    def _is_only_use(self, v: Variable, owner: Apply) -> bool:
        return not any(o is not v and self.uses(o) for o in owner.outputs)

    def _release_inputs(self, node: Apply) -> None:
        """A node that nobody uses any more stops using its inputs."""
        work, uses = [node], self._uses
        while work:
            node = work.pop()
            if any(map(uses.get, node.outputs)):
                continue
            for v in map(self._current, node.inputs):
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
