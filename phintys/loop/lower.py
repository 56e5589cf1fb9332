"""The lowering of a `Scan`: a loop over the Program of a step.

Sequences, buffers and outputs are windows: steps read and write their rows in place.  A buffer of
one row is a state, which is replaced.  Where a result has fewer rows than there were steps, its
rows are in a ring, and are put in order after the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Generic, NamedTuple

from phintys.dims import ZERO, Dim, dim_max, dim_min
from phintys.graph.builder import Builder, V, Window
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.labels import labelled
from phintys.graph.variable import Apply
from phintys.loop.arguments import Group, groups
from phintys.loop.collected import append, first_rows, stacked
from phintys.loop.info import ScanInfo
from phintys.loop.labels import result_label, step_label
from phintys.loop.lengths import outer_lengths


class Buffer(NamedTuple, Generic[V]):
    """A buffer, output or state of a loop.

    ``rows`` is the number of rows of the result, at most; ``first`` that of rows before step 0.
    ``window`` has the numbers of inner outputs in its writes.  It is None for a state.
    """

    group: Group
    value: V | None
    rows: Dim
    first: int
    window: Window[V] | None

    @property
    def keeps_rows(self) -> bool:
        """Whether rows stay in their places."""
        return self.group.kind == "mit_mot"


def lower_loop(op: Any, node: Apply, b: Builder[V], inputs: Sequence[V]) -> Any:
    """The values of the results of a `Scan`; NotImplemented for types of several arrays."""
    if any(len(v.type.parts) != 1 for v in (*node.inputs, *op.fgraph.inputs)):
        return NotImplemented
    b.requirements(node, *inputs)
    steps = b.item(inputs[0])
    buffers = _buffers(op.info, b, inputs)
    if steps.value is None or steps.value == 0:
        buffers = [_owned(b, x, node) for x in buffers]
    sequences = [
        (g, Window(inputs[g.outer_input], (0,))) for g in groups(op.info) if g.kind == "seq"
    ]
    return _Loop(node, b, steps, buffers, sequences, inputs).results()


def _buffers(info: ScanInfo, b: Builder[V], inputs: Sequence[V]) -> list[Buffer[V]]:
    """The buffers, outputs and states, in the order of the results."""
    taps = iter([*info.mit_sot_in_slices, *info.sit_sot_in_slices])
    both = iter(zip(info.normalized_mit_mot_in_slices, info.normalized_mit_mot_out_slices))
    found: list[Buffer[V]] = []
    for g in groups(info):
        value = inputs[g.outer_input]
        if g.kind == "mit_mot":
            reads, writes = next(both)
            window = Window(value, reads, tuple(zip(writes, g.inner_outputs)))
            found.append(Buffer(g, value, b.length(value, 0), 0, window))
        elif g.kind in ("mit_sot", "sit_sot"):
            found.append(_recurrent(b, g, value, next(taps)))
        elif g.kind == "nit_sot":
            found.append(Buffer(g, None, b.item(value), 0, None))
        elif g.kind == "untraced_sit_sot":
            found.append(Buffer(g, value, ZERO, 0, None))
    return found


def _owned(b: Builder[V], x: Buffer[V], node: Apply) -> Buffer[V]:
    """A state, copied if it is an object that a result must not share: there may be no steps."""
    type_ = node.inputs[x.group.outer_input].type
    if x.group.kind != "untraced_sit_sot" or x.value is None or not type_.has_state:
        return x
    copy = type_.copy_value
    (value,) = b.python(lambda found: (copy(found),), [x.value], [(None, ())], "copy")
    return x._replace(value=value)


def _recurrent(b: Builder[V], g: Group, value: V, taps: Sequence[int]) -> Buffer[V]:
    """A state with its earlier values."""
    rows, first = b.length(value, 0), -min(taps)
    if rows.value == first == 1:
        return Buffer(g, b.take(value, 0, 0), rows, first, None)
    if rows.value == first and value.ndim > 1:
        # a further row, so that a step does not write over one that it reads
        longer = b.empty(value.dtype, (rows + 1, *b.shape(value)[1:]))
        region = [(ZERO, 1, d) for d in (rows, *b.shape(value)[1:])]
        value = b.update(longer, region, value, "set")
    window = Window(value, tuple([first + t for t in taps]), ((first, g.inner_outputs[0]),))
    return Buffer(g, value, rows, first, window)


class _Loop(Generic[V]):
    """The body, the loop and its results.

    The body takes states, rows of windows and constants, and gives the next states first.
    ``number`` maps inner outputs to those of the body.
    """

    number: dict[int, int]

    def __init__(
        self,
        node: Apply,
        b: Builder[V],
        steps: Dim,
        buffers: list[Buffer[V]],
        sequences: list[tuple[Group, Window[V]]],
        inputs: Sequence[V],
    ) -> None:
        op: Any = node.op
        self.node, self.op, self.b, self.steps, self.buffers = node, op, b, steps, buffers
        self.states = [x for x in buffers if x.window is None and x.value is not None]
        self.outputs = [x for x in buffers if x.value is None]
        pairs = [*sequences, *((x.group, x.window) for x in buffers if x.window is not None)]
        self.windows = [window for _, window in pairs]
        self.read = [g for g, _ in pairs]
        constants = [g for g in groups(op.info) if g.kind == "non_seq"]
        self.constants = [inputs[g.outer_input] for g in constants]
        self.values = [x.value for x in self.states if x.value is not None]
        self.inputs = inputs
        given = [g.inner_inputs for g in (*(x.group for x in self.states), *self.read, *constants)]
        self.order = [k for numbers in given for k in numbers]

    def results(self) -> list[V]:
        """The results of the loop: of all buffers, outputs and states."""
        body = self.body([])
        collected = [x for x, fixed in zip(self.outputs, self.written(body.fixed)) if not fixed]
        return self.results_of(self.body(collected) if collected else body, collected)

    def body(self, collected: list[Buffer[V]]) -> Any:
        """The Program of a step; rows of ``collected`` outputs are appended to objects.

        Its outputs are those objects, the next states, and the other inner outputs in their order.
        """
        fgraph = self.op.thawed()
        first = [x.group.inner_outputs[0] for x in (*collected, *self.states)]
        rest = [k for k in range(len(fgraph.outputs)) if k not in first]
        self.number = {k: place for place, k in enumerate([*first, *rest])}
        step = FunctionGraph(
            [fgraph.inputs[k] for k in self.order],
            [fgraph.outputs[k] for k in self.number],
            clone=False,
        )
        with labelled(fgraph.inputs, partial(step_label, self.node)):
            return self.b.inner(
                step,
                [*self.values, *self.windows, *self.constants],
                fixed=bool(collected),
                same=self.kept_lengths(),
                appended=dict.fromkeys(range(len(collected)), append),
            )

    def written(self, found: Sequence[Any]) -> list[Any]:
        """What is ``found`` of the outputs of the body, for those that have no first values."""
        return [found[self.number[x.group.inner_outputs[0]]] for x in self.outputs]

    def kept_lengths(self) -> dict[int, int]:
        """Outputs of the body whose lengths are those of an input: states and rows keep them."""
        kept = [x.group for x in self.buffers if x.value is not None and x.group.inner_inputs]
        return {
            self.number[k]: self.order.index(g.inner_inputs[0])
            for g in kept
            for k in g.inner_outputs
        }

    def results_of(self, body: Any, collected: list[Buffer[V]]) -> list[V]:
        """The results of the loop over a body."""
        b = self.b
        written = [x for x in self.outputs if x not in collected]
        windows = [*self.windows]
        for x in written:
            place = self.number[x.group.inner_outputs[0]]
            rows = b.empty(body.dtypes[place], (x.rows, *body.shapes[place]))
            windows.append(Window(rows, (), ((0, x.group.inner_outputs[0]),)))
        windows = [
            w._replace(writes=tuple([(offset, self.number[k]) for offset, k in w.writes]))
            for w in windows
        ]
        until = self.number[len(self.number) - 1] if self.op.info.as_while else None
        objects = [
            first_rows(b, x.rows, partial(result_label, self.node, x.group)) for x in collected
        ]
        found = b.loop(self.steps, body, [*objects, *self.values], windows, self.constants, until)
        executed = b.item(found.count) if self.op.info.as_while else self.steps
        states = iter(found.states)
        stacked = {x.group: self.stacked(x, next(states)) for x in collected}
        last = dict(zip([x.group for x in self.states], states))
        made = [*self.read, *(x.group for x in written)]
        last.update(zip(made, found.windows))
        return [
            stacked[x.group] if x in collected else self.result(x, last[x.group], executed)
            for x in self.buffers
        ]

    def stacked(self, x: Buffer[V], rows: V) -> V:
        """The array of a collected output."""
        k = x.group.inner_outputs[0]
        lengths = outer_lengths(self.op, [self.b.shape(v) for v in self.inputs])[k]
        return stacked(self.b, rows, self.op.fgraph.outputs[k].type.dtype, lengths)

    def result(self, x: Buffer[V], last: V, executed: Dim) -> V:
        """The result of a buffer, output or state, from its value after the loop."""
        if x.group.kind == "untraced_sit_sot" or x.keeps_rows:
            return last
        if x.value is not None and x.window is None:
            return self.b.expand(last, 0)
        return _in_order(self.b, last, x.rows, executed + x.first)


def _in_order(b: Builder[V], ring: V, most: Dim, written: Dim) -> V:
    """The last rows of a ring, at most ``most``, if ``written`` rows have been written in all."""
    rows = b.length(ring, 0)
    spare = most - written
    if spare.value is not None and spare.value >= 0:
        return ring if written is rows else b.slice(ring, 0, 0, 1, written)
    count = dim_min(most, written)
    start = dim_max(written - count, ZERO) % rows
    first = dim_min(count, rows - start)
    parts = [b.slice(ring, 0, start, 1, first), b.slice(ring, 0, 0, 1, count - first)]
    return b.join(parts, 0)
