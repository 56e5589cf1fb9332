"""The pushforward of a `Scan`: one loop that computes states and their tangents together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from phintys.gradient.rules import is_null, zeros_like
from phintys.graph.replace import graph_replace
from phintys.graph.type import DisconnectedType, disconnected_type
from phintys.loop.influence import is_continuous, links, positions, reached
from phintys.loop.parts import Part, apply_parts, parts_of


def push_forward(
    op: Any, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """The tangents of the outer outputs of a loop, from those of its outer inputs."""
    return _Forward(op, inputs, outputs, tangents).tangents()


class _Forward:
    """The loop that computes states and their tangents.

    For each part of the loop that has tangents it has a second part of the same kind.
    """

    def __init__(
        self, op: Any, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]
    ) -> None:
        self.op, self.inputs, self.outputs = op, inputs, outputs
        self.parts = positions(op)
        self.given = [
            None if isinstance(t.type, DisconnectedType) else x.type.cast_tangent(t)
            for x, t in zip(inputs, tangents, strict=True)
        ]
        starts = [k for k, p in enumerate(self.parts) if self._has_tangent(p)]
        self.moved = reached(links(self.parts, op.pattern), starts)
        self.seeds = {
            i: op.fgraph.inputs[i].type.tangent_type.make_variable()
            for k, p in enumerate(self.parts)
            for i in p.inputs
            if k in self.moved and is_continuous(op.fgraph.inputs[i])
        }
        self.inner, self.computed, self.found = self._differentiated()
        self.results = self._run()

    def _has_tangent(self, p: Part) -> bool:
        """Whether the outer input of a part has a tangent."""
        given = p.kind != "nit_sot" and self.given[p.outer] is not None
        return given and is_continuous(self.inputs[p.outer])

    def _differentiated(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Variables of the inner inputs; the inner outputs, and their tangents or None.

        A state whose tangent is not defined makes those undefined that are computed from it.
        """
        count, seeds = self.op.info.n_inner_inputs, dict(self.seeds)
        while True:
            variables, found = self.op.pushforward_graph([seeds.get(i) for i in range(count)])
            undefined = {
                i: found[o]
                for p in self.parts
                for o in p.outputs
                for i in p.inputs
                if found[o] is not None and is_null(found[o]) and i in seeds
            }
            if all(is_null(seeds[i]) for i in undefined):
                break
            seeds.update(undefined)
        inner, known = variables[:count], variables[count:]
        outputs = self.op.bind(inner)
        present = [t for t in found if t is not None and not is_null(t)]
        again = dict(zip(known, outputs, strict=True))
        computed = dict(zip(present, graph_replace(present, again, strict=False), strict=True))
        return inner, outputs, [computed.get(t, t) for t in found]

    def undefined(self, p: Part) -> Any:
        """A variable of `NullType` if the tangent of a part is not defined, else None."""
        found = [self.found[o] for o in p.outputs]
        return next((t for t in found if t is not None and is_null(t)), None)

    def _tangent_part(self, p: Part) -> Part | None:
        """The part of the tangents of a part; None if they are zero, or not defined."""
        if self.undefined(p) is not None:
            return None
        seeds = [self.seeds[i] for i in p.inputs if i in self.seeds]
        found: list[Any] = [self.found[o] for o in p.outputs]
        if p.kind == "nit_sot":
            return None if found[0] is None else Part("nit_sot", self.inputs[p.outer], [], found)
        if not seeds and all(t is None for t in found):
            return None
        x = self.inputs[p.outer]
        outer = self.given[p.outer] if self._has_tangent(p) else zeros_like(x)
        new = [zeros_like(self.computed[o]) if t is None else t for o, t in zip(p.outputs, found)]
        return replace(p, outer=outer, inputs=seeds, outputs=new)

    def _run(self) -> dict[int, Any]:
        """The tangents of the outer outputs, by position."""
        found = [(p, t) for p in self.parts if (t := self._tangent_part(p)) is not None]
        if not found:
            return {}
        info = self.op.info
        condition = self.computed[-1] if info.as_while else None
        parts = parts_of(self.op, self.inputs, self.inner, self.computed)
        parts += [t for _, t in found]
        name = f"tangents_of_{self.op.name or 'scan_fn'}"
        results = apply_parts(self.op, self.inputs[0], parts, condition, name=name)
        pairs = zip(found, results[-len(found) :], strict=True)
        return {p.result: t for (p, _), t in pairs if p.result is not None}

    def tangents(self) -> list[Any]:
        """The tangents of the outer outputs."""
        found: list[Any] = [disconnected_type() for _ in self.outputs]
        for k, p in enumerate(self.parts):
            if p.result is not None and k in self.moved:
                found[p.result] = self._tangent(p.result, self.undefined(p))
        return found

    def _tangent(self, k: int, undefined: Any) -> Any:
        if undefined is not None:
            return undefined
        return self.results[k] if k in self.results else zeros_like(self.outputs[k])
