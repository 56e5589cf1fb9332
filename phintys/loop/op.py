"""`Scan`: the op that computes its inner graph at every step of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any

from phintys.errors import ShapeError
from phintys.graph.builder import Builder, V
from phintys.graph.labels import labelled
from phintys.graph.origin import raised_by_node
from phintys.graph.perform import Runner
from phintys.graph.shapes import (
    Shape,
    ShapeContext,
    Static,
    check_shapes,
    checked_answer,
    static_shapes,
)
from phintys.graph.variable import Apply, Variable
from phintys.inner import InnerGraphOp
from phintys.loop.arguments import Group, ScanMethodsMixin, groups
from phintys.loop.batches import batched_node
from phintys.loop.checks import check_inner_graph, check_missing, checked_inputs, checked_truncation
from phintys.loop.forward import push_forward
from phintys.loop.influence import connection_pattern
from phintys.loop.info import ScanInfo
from phintys.loop.labels import result_label, step_label
from phintys.loop.lengths import Partial, empty_rows, inner_lengths, loop_shapes
from phintys.loop.lower import lower_loop
from phintys.loop.reference import run_loop
from phintys.loop.reverse import pull_back
from phintys.loop.unused import simplified
from phintys.tensor.static import static_lengths
from phintys.tensor.type import TensorType


class Scan(ScanMethodsMixin, InnerGraphOp):
    """A loop: at every step the inner graph is computed, from its own results of earlier steps.

    Parameters
    ----------
    inputs, outputs
        the inner graph: ``inputs`` are rows of the sequences, the rows that the step reads of each
        buffer, untraced states, constants; ``outputs`` are the rows that it writes into each buffer
        (mit-mot, mit-sot, sit-sot), rows of the outputs that are not read (nit-sot), untraced
        states, and the condition of a while loop
    info
        how many there are of each kind, and which steps they refer to
    truncate_gradient
        the number of last steps that a pullback goes through; -1: all
    name
        a label, which equality ignores
    mode, typeConstructor, profile, allow_gc, strict
        attributes without effect: the inner graph is compiled with the graph around it

    A node has the inputs ``n_steps``, sequences, buffers (mit-mot, mit-sot, sit-sot), untraced
    states, the lengths of the nit-sot outputs, constants; and the outputs mit-mot, mit-sot,
    sit-sot, nit-sot, untraced states.

    A state is kept in a buffer of ``n`` rows, the first ``m`` of which are given, where ``-m`` is
    the smallest tap.  Step ``t`` reads the rows ``(t + m + tap) % n`` and writes the row
    ``(t + m) % n``.  The result has the last ``min(n, m + number of steps)`` rows, the newest one
    last; so has that of a nit-sot, with ``m = 0``.  The rows of a mit-mot buffer stay in their
    places; its taps count from the row of step 0.  Sequences may be longer than the number of
    steps.

    ValueError (`ShapeError` for lengths) if the number of inputs, dtypes, ranks or lengths do not
    fit, or the number of steps is negative.

    >>> import phintys.tensor as pt
    >>> x, state = pt.dscalars("x", "state")
    >>> op = Scan([x, state], [x + state], ScanInfo(1, (), (), (), ((-1,),), 0, 0, 0, False))
    >>> xs, buffer = pt.dvectors("xs", "buffer")
    >>> sums = op(xs.shape[0], xs, buffer)
    >>> sums.eval({xs: [1.0, 2.0, 3.0], buffer: [10.0, 0.0, 0.0, 0.0]})
    array([10., 11., 13., 16.])
    >>> sums.eval({xs: [1.0, 2.0, 3.0], buffer: [10.0, 0.0]})  # two rows in turns
    array([13., 16.])
    """

    # ----- class and static shape
    __props__ = ("info", "truncate_gradient")
    uncompiled_props = ("truncate_gradient",)
    has_graph_derivatives = False  # they are those of all steps

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        info: ScanInfo,
        mode: Any = None,
        typeConstructor: Any = None,
        truncate_gradient: int = -1,
        name: str | None = None,
        profile: str | bool | None = None,
        allow_gc: bool = True,
        strict: bool = True,
    ) -> None:
        check_inner_graph(info, inputs, outputs)
        try:
            super().__init__(inputs, outputs, name)
        except ValueError:
            check_missing(inputs, outputs)
            raise
        self.info = info
        self.truncate_gradient = checked_truncation(truncate_gradient)
        self.mode, self.profile, self.allow_gc, self.strict = mode, profile, allow_gc, strict

    def make_node(self, *inputs: Any) -> Apply:
        given = checked_inputs(self, inputs)
        shapes = checked_answer(self, given).static
        results = [g for g in groups(self.info) if g.outer_output is not None]
        types = [self._result_type(g, n, given) for g, n in zip(results, shapes, strict=True)]
        return Apply(self, given, [t.make_variable() for t in types])

    def _result_type(self, g: Group, shape: Static, inputs: Sequence[Variable]) -> Any:
        """The type of the result of a group, with the static shape of its rows.

        Their number is not part of it, as in PyTensor: programs put the buffer of a loop with
        another number of rows in the place of a result.
        """
        if g.kind == "untraced_sit_sot":
            return self.fgraph.inputs[g.inner_inputs[0]].type
        row = self.fgraph.outputs[g.inner_outputs[0]] if g.inner_outputs else inputs[g.outer_input]
        return TensorType(row.type.dtype, (None, *shape[1:]))

    @cached_property
    def step_lengths(self) -> list[Partial]:
        """The lengths of the inner outputs, as functions of those of the inner inputs."""
        return inner_lengths(self.fgraph)

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        return loop_shapes(s, self, shapes)

    # ----- perform
    @cached_property
    def runner(self) -> Runner:
        """Computes a step, node by node."""
        return Runner(self.expanded)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        try:
            check_shapes(node, inputs)
        except ShapeError as exc:
            raise self._failure(node, inputs, exc) from None
        for cell, value in zip(output_storage, self._results(node, inputs), strict=True):
            cell[0] = value

    def _results(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        with self.labels(node):
            name = partial(result_label, node)
            return run_loop(
                self.info, self.runner, inputs, lambda k: empty_rows(node, inputs)[k], name
            )

    def labels(self, node: Apply) -> AbstractContextManager[None]:
        """A context in which messages call the inputs of ``expanded`` as in the user's step."""
        return labelled(self.expanded.inputs, partial(step_label, node))

    def _failure(self, node: Apply, inputs: Sequence[Any], exc: ShapeError) -> ShapeError:
        """The ShapeError of a node of the inner graph, which says more, if there is one."""
        try:
            self._results(node, inputs)
        except Exception as found:
            if isinstance(found, ShapeError) and raised_by_node(found):
                return found
        return exc

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> Any:
        return lower_loop(self, node, b, inputs)

    # ----- derivatives
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return connection_pattern(self)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return pull_back(self, inputs, outputs, cotangents, [True] * len(inputs))

    def wanted_pullback(self, inputs: Any, outputs: Any, cotangents: Any, wanted: Any) -> list[Any]:
        return pull_back(self, inputs, outputs, cotangents, wanted)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return push_forward(self, inputs, outputs, tangents)

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        return batched_node(self, node, batched_inputs)

    # ----- rewriting
    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False  # it may take any time

    def simplify_node(self, node: Apply, used: Sequence[bool]) -> list[Variable | None] | None:
        return simplified(node, used)

    # ----- printing
    def sources(self, node: Apply) -> dict[Variable, Variable]:
        return {
            self.fgraph.inputs[i]: node.inputs[g.outer_input]
            for g in groups(self.info)
            for i in g.inner_inputs
        }

    def __str__(self) -> str:
        name = self.name or "scan_fn"
        return f"Scan{{{name}, while_loop={self.info.as_while}, inplace=none}}"


@static_lengths.register
def _(op: Scan, out: Variable) -> Static:
    node: Any = out.owner
    return static_shapes(op, node.inputs)[node.outputs.index(out)]
