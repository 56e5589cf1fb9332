"""The pullback of a `Scan`: one loop that runs backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from phintys.gradient.reverse import add
from phintys.gradient.rules import is_null, zeros_like
from phintys.graph.replace import graph_replace
from phintys.graph.traversal import ancestors
from phintys.graph.type import DisconnectedType, NullType, disconnected_type
from phintys.loop.influence import backwards, is_continuous, links, positions, reached
from phintys.loop.parts import BUFFERS, Part, apply_parts
from phintys.loop.recorded import elements_of, recorded, shapes_from, to_record
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import alloc
from phintys.tensor.elemwise import functions
from phintys.tensor.shape import length, shape_tuple
from phintys.tensor.type import TensorType


def pull_back(
    op: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    cotangents: Sequence[Any],
    wanted: Sequence[bool],
) -> list[Any]:
    """The cotangents of the outer inputs of a loop, from those of its outer outputs."""
    reverse = _Reverse(op, inputs, outputs, cotangents, wanted)
    found: list[Any] = [disconnected_type() for _ in inputs]
    for k, p in enumerate(reverse.parts):
        if reverse.wanted[k]:
            found[p.outer] = reverse.cotangent(k, p)
    return found


class _Reverse:
    """The loop that computes the pullback of another loop.

    Its iteration ``r`` undoes iteration ``t = T - 1 - r`` of the ``T`` that were executed.  It gets
    the inputs and outputs of that iteration from the inputs and outputs of the forward loop, and
    computes again what it needs besides.

    - The cotangent of a buffer is a buffer with the rows in reverse order: row ``t + offset`` is
      row ``r + lag - offset``.  The iteration reads the cotangent of a row that ``t`` wrote, and
      adds to that of a row that ``t`` read.
    - The cotangent of a sequence is an output, in reverse order.
    - The cotangent of a constant is a sum over the iterations.
    - The cotangent of an untraced state is an untraced state.
    """

    def __init__(
        self,
        op: Any,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool],
    ) -> None:
        self.op, self.inputs, self.outputs = op, inputs, outputs
        self.parts = positions(op)
        self.given = [_defined(g, v) for g, v in zip(cotangents, outputs, strict=True)]
        self.wanted = [wanted[p.outer] and p.kind != "nit_sot" for p in self.parts]
        edges = links(self.parts, op.pattern)
        self.moved = reached(edges, [k for k, w in enumerate(self.wanted) if w])
        ends = [k for k, p in enumerate(self.parts) if self._result(p, self.given) is not None]
        self.felt = reached(backwards(edges), ends)
        self.seeds = self._seeds()
        variables, self.found = self._differentiated()
        count = op.info.n_inner_inputs
        self.inner, self.known = variables[:count], variables[count:]
        self.backward = self._backward()
        self.results = self._run()

    def _result(self, part: Part, of: Sequence[Any]) -> Any:
        """The entry of a list for the outer output of a part; None if it has none."""
        return None if part.result is None else of[part.result]

    # ----- one iteration
    def _seeds(self) -> dict[int, Any]:
        """Variables for the cotangents of inner outputs, where there is something to propagate."""
        active = [p for k, p in enumerate(self.parts) if k in self.moved and k in self.felt]
        outputs = self.op.fgraph.outputs
        return {
            o: outputs[o].type.tangent_type.make_variable()
            for p in active
            for o in p.outputs
            if is_continuous(outputs[o])
        }

    def _differentiated(self) -> tuple[list[Any], list[Any]]:
        """Variables of the inner inputs and outputs; the cotangents of the inputs, or None.

        A state whose cotangent is not defined makes those undefined of what it was computed from.
        """
        info = self.op.info
        wanted = [False] * info.n_inner_inputs
        for p, w in zip(self.parts, self.wanted, strict=True):
            for i in p.inputs:
                wanted[i] = w or any(o in self.seeds for o in p.outputs)
        seeds = dict(self.seeds)
        while True:
            given = [seeds.get(o) for o in range(info.n_inner_outputs)]
            variables, found = self.op.pullback_graph(given, wanted)
            undefined = {
                o: found[i]
                for p in self.parts
                for i in p.inputs
                for o in p.outputs
                if o in seeds and found[i] is not None and is_null(found[i])
            }
            if all(is_null(seeds[o]) for o in undefined):
                return variables, found
            seeds.update(undefined)

    def undefined(self, part: Part) -> Any:
        """A variable of `NullType` if the cotangent of a part is not defined, else None."""
        found = [self.found[i] for i in part.inputs]
        return next((g for g in found if g is not None and is_null(g)), None)

    # ----- the parts of the reverse loop
    @cached_property
    def steps(self) -> Any:
        """The number of forward iterations; that of a while loop is a length of its results."""
        if not self.op.info.as_while:
            return self.inputs[0]
        for p in self.parts:
            if p.kind in ("mit_sot", "sit_sot"):
                return length(self._result(p, self.outputs), 0) - p.lag
            if p.kind == "nit_sot":
                return length(self._result(p, self.outputs), 0)
        (anything,) = recorded(self.op, self.inputs, self.inner, [as_tensor_variable(0)])
        return length(anything, 0)

    def _undone(self) -> Any:
        """The number of iterations of the reverse loop."""
        most = self.op.truncate_gradient
        return self.steps if most == -1 else functions.minimum(self.steps, most)

    def _backward(self) -> dict[int, Part]:
        """For each part whose cotangent the reverse loop computes the part that computes it."""
        found = {}
        for k, p in enumerate(self.parts):
            if self.undefined(p) is not None:
                continue
            if p.kind != "nit_sot" and self._takes_part(p):
                found[k] = self._cotangent_part(p)
        return found

    def _cotangent_part(self, p: Part) -> Part:
        """The part that computes the cotangent of a part."""
        if p.kind in BUFFERS:
            return self._buffer(p)
        if p.kind == "untraced_sit_sot":
            return self._state(p)
        return self._rows(p) if p.kind == "seq" else self._sum(p)

    def _takes_part(self, p: Part) -> bool:
        """Whether the reverse loop computes the cotangent of a part."""
        if p.outputs:
            return any(o in self.seeds for o in p.outputs)
        return any(self.found[i] is not None for i in p.inputs)

    def _final(self, part: Part) -> Any:
        """The cotangent of an outer output."""
        given = self._result(part, self.given)
        return zeros_like(self._result(part, self.outputs)) if given is None else given

    def _buffer(self, p: Part) -> Part:
        """The buffer of the cotangents of a buffer."""
        rows = self._final(p)[: self.steps + p.lag][::-1]
        written = {offset: self.seeds[o] for offset, o in zip(p.writes, p.outputs)}
        terms = {k: self.found[i] for k, i in zip(p.reads, p.inputs) if self.found[i] is not None}
        row = TensorType(rows.type.dtype, rows.type.shape[1:])
        before = written | {k: row.make_variable() for k in terms if k not in written}
        after = {k: add(before[k], [before[k], g]) for k, g in terms.items() if k not in written}
        after |= {k: g for k, g in terms.items() if k in written}
        if p.kind == "mit_mot":  # what was overwritten had no influence
            after |= {k: zeros_like(g) for k, g in written.items() if k not in terms}
        reads, writes = (tuple([p.lag - k for k in of]) for of in (before, after))
        if not after:  # the forward loop only writes
            return Part("seq", rows, [*before.values()])
        return Part("mit_mot", rows, [*before.values()], [*after.values()], reads, writes)

    def _state(self, p: Part) -> Part:
        """The cotangent of an untraced state."""
        (i,), (o,) = p.inputs, p.outputs
        new = zeros_like(self.seeds[o]) if self.found[i] is None else self.found[i]
        return Part("untraced_sit_sot", self._final(p), [self.seeds[o]], [new])

    def _rows(self, p: Part) -> Part:
        """The cotangents of the rows of a sequence."""
        return Part("nit_sot", self._undone(), [], [self.found[p.inputs[0]]])

    def _sum(self, p: Part) -> Part:
        """The cotangent of a constant: a sum that starts with zeros."""
        zero, term = zeros_like(self.inputs[p.outer]), self.found[p.inputs[0]]
        total = zero.type.make_variable()
        rows = alloc(zero, self._undone() + 1, *shape_tuple(zero))
        return Part("sit_sot", rows, [total], [add(total, [total, term])], (0,), (1,))

    # ----- the loop
    def _run(self) -> dict[int, Any]:
        """The outer outputs of the reverse loop, for each part that has a cotangent."""
        parts = list(self.backward.values())
        given = self._given_by_step(parts) if parts else None
        if given is None:
            return {}
        name = f"grad_of_{self.op.name or 'scan_fn'}"
        options = {"name": name, "truncate_gradient": -1}
        found = apply_parts(self.op, self._undone(), [*parts, *given], **options)
        return dict(zip(self.backward, found))

    def _given_by_step(self, parts: Sequence[Part]) -> list[Part] | None:
        """What the reverse iteration gets of the forward one: sequences and constants.

        In the outputs of ``parts`` variables are replaced that the forward loop does not show.
        None if an object is needed that the forward loop does not keep.
        """
        traces = self._traces()
        hidden = [v for v in self.known if v not in traces]
        if not set(hidden).isdisjoint(ancestors(_outputs(parts))):
            again = dict(zip(self.known, self.op.bind(self.inner), strict=True))
            _replace_outputs(parts, {v: again[v] for v in hidden})
        constants = {
            self.inner[p.inputs[0]]: self.inputs[p.outer] for p in self.parts if p.kind == "non_seq"
        }
        lost = [v for v in self.inner if v not in traces and v not in constants]
        values = to_record(_outputs(parts), lost, self.inner)
        if values is None:
            return None
        elements = self._elements(parts, traces)
        values += elements
        shown = {v: v.type.make_variable() for v in values}
        _replace_outputs(parts, shown)
        runs = recorded(self.op, self.inputs, self.inner, values)
        traces.update((shown[v], rows) for v, rows in zip(values, runs))
        traces.update(
            (self.seeds[o], self._final(p))
            for p in self.parts
            for o in p.outputs
            if p.kind == "nit_sot" and o in self.seeds
        )
        used = set(ancestors(_outputs(parts)))
        return [
            *(Part("seq", self._backwards(rows), [v]) for v, rows in traces.items() if v in used),
            *(Part("non_seq", x, [v]) for v, x in constants.items() if v in used),
        ]

    def _elements(self, parts: Sequence[Part], traces: Mapping[Any, Any]) -> list[Any]:
        """The elements and rows of states that the outputs of ``parts`` need, and not the states.

        They are recorded, so that the forward loop need not keep the states of all steps.  Where
        only the shape of a state is needed, it is that of its cotangent.
        """
        found: list[Any] = []
        for p in () if self.op.info.as_while else self.parts:  # a second run of it would stay
            if p.kind == "sit_sot" and p.outputs[0] in self.seeds:
                state, seed = self.inner[p.inputs[0]], self.seeds[p.outputs[0]]
                if state in traces and state.type.ndim:
                    _replace_outputs(parts, shapes_from(_outputs(parts), state, seed))
                    found += elements_of(_outputs(parts), state, self.inner)
        return found

    def _traces(self) -> dict[Any, Any]:
        """The rows of the forward iterations, in order, for inner variables that have them."""
        found = {}
        for p in self.parts:
            if p.kind == "seq":
                found[self.inner[p.inputs[0]]] = self.inputs[p.outer]
            elif p.kind == "nit_sot":
                found[self.known[p.outputs[0]]] = self._result(p, self.outputs)
            elif p.kind in BUFFERS:
                # no later iteration overwrites the row of the first offset, nor those before it
                last = min(p.writes, default=p.lag + 1)
                rows = self._result(p, self.outputs)
                at = [(k, self.inner[i]) for k, i in zip(p.reads, p.inputs) if k < last]
                at += [(k, self.known[o]) for k, o in zip(p.writes, p.outputs) if k == last]
                found.update((v, rows[k:]) for k, v in at)
        return found

    def _backwards(self, rows: Any) -> Any:
        """The rows of the iterations, the last one first."""
        return rows[: self.steps][::-1]

    # ----- results
    def cotangent(self, k: int, part: Part) -> Any:
        """The cotangent of the outer input of a part."""
        x = self.inputs[part.outer]
        undefined = self.undefined(part)
        if undefined is not None:
            return undefined
        if k not in self.backward:
            if k not in self.felt:
                return disconnected_type()
            kept = part.kind == "mit_mot" and not part.outputs  # the output is the input
            return self._final(part) if kept else zeros_like(x)
        if k not in self.results:
            return NullType(f"The gradient of {self.op} needs an untraced state of each step.")()
        found = self.results[k]
        if part.kind == "seq":
            first = None if self.op.truncate_gradient == -1 else self.steps - self._undone()
            return zeros_like(x)[first : self.steps].set(found[::-1])
        if part.kind == "mit_mot":
            return self._final(part)[: self.steps + part.lag].set(found[::-1])
        if part.kind in BUFFERS:
            return self._of_first_rows(part, found)
        return found[-1] if part.kind == "non_seq" else found

    def _of_first_rows(self, part: Part, found: Any) -> Any:
        """The cotangent of a buffer of which the loop overwrites all but the first rows.

        ``found`` is that of the whole buffer, in reverse order; None if the first rows have only
        that of the output.
        """
        rows = self._final(part) if found is None else found[::-1]
        return zeros_like(self.inputs[part.outer])[: part.lag].set(rows[: part.lag])


def _defined(g: Any, v: Any) -> Any:
    """The cotangent of an output in its dtype; None if it has none."""
    return None if isinstance(g.type, DisconnectedType) else v.type.cast_tangent(g)


def _outputs(parts: Sequence[Part]) -> list[Any]:
    return [v for p in parts for v in p.outputs]


def _replace_outputs(parts: Sequence[Part], replace: dict[Any, Any]) -> None:
    """Replace variables in the graphs of the outputs of parts."""
    replaced = iter(graph_replace(_outputs(parts), replace, strict=False))
    for p in parts:
        p.outputs = [next(replaced) for _ in p.outputs]
