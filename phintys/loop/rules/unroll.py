"""Short loops of a known number of steps become their steps, one after the other."""

from __future__ import annotations

from typing import Any

from phintys.conditional.regions import fallible, places_of
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.replace import graph_replace
from phintys.graph.variable import Apply
from phintys.loop.lengths import keeps_lengths
from phintys.loop.parts import BUFFERS, Part
from phintys.loop.rules.buffers import has_first_rows, keeps_all_rows
from phintys.loop.whole import Replacements, Whole, depending, nodes_of, taken_apart
from phintys.tensor.basic import stack
from phintys.tensor.index import set_subtensor
from phintys.tensor.static import known_length

#: the largest number of steps, and of nodes of all steps
MOST_STEPS, MOST_NODES = 4, 40


def unroll(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Replace a loop of at most `MOST_STEPS` steps by these; a while loop if it has one step.

    Not if a branch of a step computes what is the same in all steps and may fail: conditions of
    several steps would need it, and where one of these depends on another it would be computed
    always.  Not if lengths may differ between steps, which the loop checks.
    """
    steps = node.inputs[0]
    op: Any = node.op
    count = known_length(steps)
    if count is None or (op.info.as_while and count != 1):
        return None
    if not 0 < count <= MOST_STEPS or count * len(op.fgraph.apply_nodes) > MOST_NODES:
        return None
    loop = taken_apart(node)
    if _branches_share(loop) or not keeps_lengths(op):
        return None
    kept = [p for p in loop.parts if p.kind in ("mit_sot", "sit_sot", "nit_sot")]
    if not all(keeps_all_rows(p, steps) and has_first_rows(p) for p in kept):
        return None
    return _Steps(loop, count).results()


def _branches_share(loop: Whole) -> bool:
    """Whether a branch in a step computes what may fail from constants of the loop alone."""
    nodes = nodes_of(loop)
    lazy = places_of(loop.expressions(), nodes)
    varying = depending(nodes, [v for p in loop.parts if p.kind != "non_seq" for v in p.inputs])
    invariant = [node for node in lazy if node.outputs[0] not in varying]
    return bool(invariant) and not fallible(nodes).isdisjoint(invariant)


class _Steps:
    """The steps of a loop; ``rows`` holds the current value of each row of a buffer."""

    def __init__(self, loop: Whole, count: int) -> None:
        self.loop, self.count = loop, count
        self.rows: dict[tuple[int, int], Any] = {}
        self.states = {k: p.outer for k, p in enumerate(loop.parts)}
        for t in range(count):
            self._step(t)

    def _step(self, t: int) -> None:
        given = {
            v: x
            for k, p in enumerate(self.loop.parts)
            for v, x in zip(p.inputs, self._inputs(k, p, t), strict=True)
        }
        found = iter(graph_replace(self.loop.expressions(), given, strict=False))
        for k, p in enumerate(self.loop.parts):
            new = [next(found) for _ in p.outputs]
            if p.kind == "untraced_sit_sot":
                (self.states[k],) = new
            else:
                offsets = p.writes or (0,) * len(new)
                self.rows.update(((k, t + at), x) for at, x in zip(offsets, new, strict=True))

    def _inputs(self, k: int, p: Part, t: int) -> list[Any]:
        if p.kind in BUFFERS:
            return [self.rows.get((k, t + at), p.outer[t + at]) for at in p.reads]
        if p.kind == "seq":
            return [p.outer[t]]
        return [self.states[k] for _ in p.inputs]

    def results(self) -> Replacements:
        outputs = self.loop.node.outputs
        parts = [(k, p) for k, p in enumerate(self.loop.parts) if p.result is not None]
        return {outputs[p.result]: self._result(k, p) for k, p in parts}  # type: ignore[index]

    def _result(self, k: int, p: Part) -> Any:
        if p.kind == "untraced_sit_sot":
            return self.states[k]
        written = sorted(at for part, at in self.rows if part == k)
        new = stack([self.rows[k, at] for at in written])
        if p.kind == "nit_sot":
            return new
        first, last = written[0], written[-1]
        found = p.outer if p.kind == "mit_mot" else self._returned_rows(p)
        if last - first + 1 == len(written):
            return set_subtensor(found[first : last + 1], new)
        for at in written:
            found = set_subtensor(found[at], self.rows[k, at])
        return found

    def _returned_rows(self, p: Part) -> Any:
        """The rows of a state's buffer that the loop returns: those behind are not written."""
        rows = self.count + p.lag
        known = p.outer.type.shape[0]
        return p.outer if known is None or known == rows else p.outer[:rows]
