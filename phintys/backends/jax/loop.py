"""JAX functions of loops: `jax.lax.scan` if the number of steps is known, else `while_loop`.

The number of steps is known at trace time if it depends on shapes and constants.  A result has a
row for each step, so a number of steps that depends on values, as that of a while loop does, is
possible only where results keep fewer rows than there are steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from phintys.backends.jax.dispatch import (
    collecting,
    is_concrete,
    jax_funcify,
    one_or_tuple,
    require,
)
from phintys.errors import UnsupportedError
from phintys.graph.shapes import check_shapes
from phintys.loop.influence import positions
from phintys.loop.op import Scan
from phintys.loop.parts import BUFFERS, Part

#: the values of inner inputs, by position
Inputs = dict[int, Any]


@jax_funcify.register(Scan)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    with op.labels(node):
        graph = jax_funcify(op.expanded)

    def loop(*args: Any) -> Any:
        known = is_concrete(args[0])
        if known:
            check_shapes(node, args)
        run = _counted if known and not op.info.as_while else _open
        return one_or_tuple(run(_Loop(op, graph, args)))

    return loop


class _Carry(NamedTuple):
    """What a step passes to the next one."""

    rings: list[Any]  # arrays of rows that steps read and write
    windows: list[list[Any]]  # for each part that is stacked the rows that a step may touch
    untraced: list[Any]
    passed: Any  # whether all checks have passed
    stopped: Any  # the condition of a while loop


class _Loop:
    """The inner graph of a loop, and the values of its outer inputs.

    ``rings`` are the parts whose rows are carried as one array, ``stacked`` those of which JAX
    stacks the row that each step gives.  The rows that steps touch slide along a buffer that is
    stacked: XLA copies an array that is carried if steps read it and write into it.
    """

    def __init__(self, op: Any, graph: Any, args: Sequence[Any]) -> None:
        self.op, self.graph, self.args = op, graph, args
        self.errors: set[tuple[type[Exception], str]] = set()  # of the checks in the inner graph
        self.parts = positions(op)
        self.constants = {p.inputs[0]: args[p.outer] for p in self.parts if p.kind == "non_seq"}
        self.sequences = [p for p in self.parts if p.kind == "seq"]
        self.untraced = [p for p in self.parts if p.kind == "untraced_sit_sot"]
        self.traced = [p for p in self.parts if p.kind in BUFFERS or p.kind == "nit_sot"]
        self.rings, self.stacked = self.traced, []
        self.dtypes = [getattr(v.type, "dtype", None) for v in op.fgraph.outputs]

    def stack(self, steps: int) -> None:
        """Stack the parts that keep all rows of a number of steps."""
        self.stacked = [p for p in self.traced if self.rows(p) >= p.lag + steps]
        self.rings = [p for p in self.traced if p not in self.stacked]

    def rows(self, p: Part) -> int:
        """The number of rows that are kept of a part."""
        x = self.args[p.outer]
        if p.kind != "nit_sot":
            return int(x.shape[0])
        if not is_concrete(x):
            raise UnsupportedError("The number of rows of a result of a loop depends on values.")
        return int(x)

    def outer(self, p: Part) -> Any:
        """The outer input of a part as a JAX array."""
        return jnp.asarray(self.args[p.outer])

    def windows(self) -> list[list[Any]]:
        """The rows that the first step may touch."""
        return [[self.outer(p)[k] for k in range(_touched(p))] for p in self.stacked]

    def first(self, windows: list[list[Any]]) -> _Carry:
        """What the first step gets."""
        return _Carry(
            [self.ring(p) for p in self.rings],
            windows,
            [self.outer(p) for p in self.untraced],
            jnp.asarray(True),
            jnp.asarray(False),
        )

    def ring(self, p: Part) -> Any:
        """The rows of a part before the first step, with memory for those that are kept."""
        return self.empty(p, self.rows(p)) if p.kind == "nit_sot" else self.outer(p)

    def nothing(self, p: Part) -> Any:
        """No rows of what a step computes for a part."""
        return self.outer(p)[:0] if p.kind in BUFFERS else self.empty(p, 0)

    def empty(self, p: Part, rows: int) -> Any:
        """Memory for rows of what a step computes for a part."""
        given: Inputs = {}
        for q in self.parts:
            if q.inputs:
                x = self.outer(q)
                shape = x.shape[1:] if q.kind in BUFFERS or q.kind == "seq" else x.shape
                given |= dict.fromkeys(q.inputs, jax.ShapeDtypeStruct(shape, x.dtype))
        found = jax.eval_shape(lambda inputs: self._computed(inputs)[0], given)[p.outputs[0]]
        return jnp.zeros((rows, *found.shape), found.dtype)

    # ----- a step
    def entering(self, steps: int) -> list[Any]:
        """For each part that is stacked the rows that enter its window, one after each step."""
        found = []
        for p in self.stacked:
            if p.kind == "mit_mot":  # the row that enters last may not be there, and is not used
                rows = self.outer(p)
                found.append(jnp.concatenate([rows[_touched(p) :], rows[:1]])[:steps])
            else:
                found.append(None)
        return found

    def step(
        self, t: Any, rows: Sequence[Any], entering: Sequence[Any], carry: _Carry
    ) -> tuple[_Carry, list[Any]]:
        """What step ``t`` passes to the next one, and the rows to stack."""
        inputs: Inputs = {p.inputs[0]: x for p, x in zip(self.sequences, rows)}
        inputs |= {p.inputs[0]: x for p, x in zip(self.untraced, carry.untraced)}
        for p, ring in zip(self.rings, carry.rings):
            inputs |= {i: _row(ring, t + k) for k, i in zip(p.reads, p.inputs)}
        for p, window in zip(self.stacked, carry.windows):
            inputs |= {i: window[k] for k, i in zip(p.reads, p.inputs)}
        found, passed = self._computed(inputs)
        slid = [
            _slid(p, window, row, found)
            for p, window, row in zip(self.stacked, carry.windows, entering)
        ]
        following = _Carry(
            [self._written(p, ring, t, found) for p, ring in zip(self.rings, carry.rings)],
            [window for window, _ in slid],
            [found[p.outputs[0]] for p in self.untraced],
            carry.passed & passed,
            found[-1].astype(bool) if self.op.info.as_while else carry.stopped,
        )
        return following, [row for _, row in slid]

    def _computed(self, inputs: Inputs) -> tuple[list[Any], Any]:
        """The inner outputs, and whether the checks in the inner graph have passed."""
        given = inputs | self.constants
        with collecting() as checks:
            found = self.graph(*(given[i] for i in range(len(given))))
            conditions = [check.passed for check in checks]
            passed = jnp.all(jnp.stack(conditions)) if checks else jnp.asarray(True)
        self.errors = {(check.error, check.message) for check in checks}
        pairs = zip(found, self.dtypes, strict=True)
        return [x if dtype is None else jnp.asarray(x, dtype) for x, dtype in pairs], passed

    def _written(self, p: Part, ring: Any, t: Any, found: Sequence[Any]) -> Any:
        """An array with the rows that step ``t`` has computed."""
        for k, o in zip(p.writes or (0,), p.outputs):
            ring = lax.dynamic_update_index_in_dim(ring, found[o], (t + k) % ring.shape[0], 0)
        return ring

    # ----- results
    def results(self, end: _Carry, executed: Any, stacked: Sequence[Any] = ()) -> list[Any]:
        """The outer outputs, after a number of steps."""
        several = (IndexError, "A check in a loop has failed.")
        error, message = next(iter(self.errors)) if len(self.errors) == 1 else several
        require(end.passed, message, error)
        found = {p.result: x for p, x in zip(self.untraced, end.untraced)}
        for p, rows, window in zip(self.stacked, stacked, end.windows):
            found[p.result] = self._joined(p, rows, window)
        for p, ring in zip(self.rings, end.rings):
            found[p.result] = ring if p.kind == "mit_mot" else self._newest_last(p, ring, executed)
        return [found[k] for k in range(len(found))]

    def _joined(self, p: Part, rows: Any, window: Sequence[Any]) -> Any:
        """All rows of a part that is stacked."""
        if p.lag == 0 and p.kind != "mit_mot":
            return rows
        outer = self.outer(p)
        if p.kind != "mit_mot":
            return jnp.concatenate([outer[: p.lag], rows]) if len(rows) else outer[: p.lag]
        if not len(rows):
            return outer
        last = [row[None] for row in window[: p.lag]]
        return jnp.concatenate([rows, *last, outer[len(rows) + p.lag :]])

    def _newest_last(self, p: Part, ring: Any, executed: Any) -> Any:
        """The rows that are kept of a part; UnsupportedError if their number depends on values."""
        count, written = ring.shape[0], p.lag + executed
        least = 1 if is_concrete(self.args[0]) and self.args[0] > 0 else 0
        if not is_concrete(executed) and count > p.lag + least:
            raise UnsupportedError(
                "JAX compiles for fixed shapes, and the number of rows of a result of a loop "
                "depends on values. Use only the last row of the result."
            )
        if is_concrete(executed) and written < count:
            return ring[:written]
        return jnp.roll(ring, -(written % count), axis=0) if count else ring


def _touched(p: Part) -> int:
    """The number of rows that the window of a part has."""
    return p.lag + 1 if p.kind == "mit_mot" else p.lag


def _slid(
    p: Part, window: Sequence[Any], entering: Any, found: Sequence[Any]
) -> tuple[list[Any], Any]:
    """The window of a part after a step, and the row that leaves it or that the step gives."""
    if p.kind != "mit_mot":
        row = found[p.outputs[0]]
        return ([*window, row][1:] if window else []), row
    rows = list(window)
    for k, o in zip(p.writes, p.outputs):
        rows[k] = found[o]
    return [*rows[1:], entering], rows[0]


def _row(ring: Any, place: Any) -> Any:
    return lax.dynamic_index_in_dim(ring, place % ring.shape[0], keepdims=False)


def _counted(loop: _Loop) -> list[Any]:
    """The outer outputs of a loop whose number of steps is known."""
    steps = int(loop.args[0])
    loop.stack(steps)
    if steps == 0:
        nothing = [loop.nothing(p) for p in loop.stacked]
        return loop.results(loop.first([[] for _ in nothing]), 0, nothing)
    rows = [loop.outer(p)[:steps] for p in loop.sequences]
    first, given = loop.first(loop.windows()), (jnp.arange(steps), rows, loop.entering(steps))
    end, stacked = lax.scan(lambda carry, x: loop.step(*x, carry), first, given, steps)
    return loop.results(end, steps, stacked)


def _open(loop: _Loop) -> list[Any]:
    """The outer outputs of a loop whose number of steps depends on values."""
    sequences = [loop.outer(p) for p in loop.sequences]

    def goes_on(state: tuple[Any, _Carry]) -> Any:
        t, carry = state
        return (t < loop.args[0]) & ~carry.stopped

    def step(state: tuple[Any, _Carry]) -> tuple[Any, _Carry]:
        t, carry = state
        return t + 1, loop.step(t, [_row(x, t) for x in sequences], [], carry)[0]

    no_steps = is_concrete(loop.args[0]) and loop.args[0] <= 0
    if no_steps or any(len(x) == 0 for x in sequences):
        return loop.results(loop.first([]), 0)
    executed, end = lax.while_loop(goes_on, step, (jnp.asarray(0), loop.first([])))
    return loop.results(end, executed)
