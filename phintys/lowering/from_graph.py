"""Lowers a rewritten FunctionGraph to a Program.

It calls the ``lower`` method of each op.  An op without one, or with an output dtype that kernels
do not support, becomes a `Python` step that calls ``perform``.  No op and no type is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from phintys.dims import Dim
from phintys.errors import ContradictionError, LoweringError
from phintys.graph.builder import Builder as AnyBuilder
from phintys.graph.destroy import view_root
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.inner import expanded
from phintys.graph.labels import label_of
from phintys.graph.origin import annotate
from phintys.graph.perform import overlaps, prepare, run_node
from phintys.graph.results import array_type
from phintys.graph.type import Part, Type
from phintys.graph.variable import Apply, Constant, Variable
from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Builder, Inner, NotNative
from phintys.lowering.in_python import reason_of
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import Program
from phintys.lowering.shapes import ClaimedShapes, broadcasts_hidden_ones
from phintys.lowering.spec import verify
from phintys.lowering.strips import form_strips
from phintys.lowering.values import Composite, Shape, Value
from phintys.scalar.native import NATIVE_DTYPES


def lower_graph(
    fgraph: FunctionGraph,
    n_arguments: int | None = None,
    update_targets: Sequence[int] = (),
    release: Callable[[], None] | None = None,
) -> Program:
    """The Program of a graph, fused, with a memory plan.

    Parameters
    ----------
    fgraph
        its inputs are the ordinary ones, then the shared variables; its outputs are the results,
        then the new values of shared variables
    n_arguments
        the number of ordinary inputs; None: all that are not updated
    update_targets
        for each of the last outputs the number of the input that it becomes the new value of
    release
        a function that is called when the graph is no longer needed, to free its memory.  The
        Program has no origins then, which would keep the graph alive.

    Raises
    ------
    LoweringError
        if the results of an op's ``lower`` do not have the types of the node's outputs

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> [type(step).__name__ for step in lower_graph(FunctionGraph([x], [pt.exp(x)])).steps]
    ['Kernel']
    """
    lowering = GraphLowering(with_origins=release is None)
    fgraph = expanded(fgraph)
    for variable in fgraph.inputs:
        lowering.input(variable)
    builder, outputs = lowering.builder, lowering.run(fgraph)
    if release is not None:
        del fgraph, lowering
        release()
    return _planned(assemble(builder, outputs, update_targets, n_arguments))


def lower_inner(
    fgraph: Any,
    arguments: Sequence[tuple[str | None, Shape]],
    same: Mapping[int, int],
    appended: Mapping[int, Callable[..., Any]],
) -> Inner:
    """The Program of an op's inner graph, a FunctionGraph; see `Builder.inner`."""
    lowering, fgraph = GraphLowering(), expanded(fgraph)
    objects = [lowering.builder.input(None, (), "") for _ in appended]
    outer: dict[Dim, Dim] = {}
    for variable, (dtype, shape) in zip(fgraph.inputs, arguments, strict=True):
        value = lowering.builder.input(dtype, [d.value for d in shape], variable.name or "")
        lowering.values[variable] = value
        outer.update(zip(value.shape, shape))
    outputs = lowering.run(fgraph)
    spelled_out = lowering.builder.long_lengths.spelled_out
    shapes = [tuple(map(spelled_out, lowering.builder.shape(v))) for v in outputs]
    for k, number in same.items():
        shapes[k] = lowering.assumed(shapes[k], lowering.values[fgraph.inputs[number]].shape, outer)
    grown = [
        lowering.builder.python(append, [x, outputs[k]], [(None, ())], "collect")[0]
        for x, (k, append) in zip(objects, appended.items())
    ]
    rest = [k for k in range(len(outputs)) if k not in appended]
    outputs = [*grown, *(outputs[k] for k in rest)]
    shapes = [*[()] * len(grown), *(shapes[k] for k in rest)]
    fixed = tuple(all(d.symbols() <= outer.keys() for d in shape) for shape in shapes)
    program = _planned(assemble(lowering.builder, outputs), inner=True)
    found = tuple(
        tuple(d.substitute(outer) for d in shape) if known else shape
        for shape, known in zip(shapes, fixed)
    )
    return Inner(program, tuple(v.dtype for v in outputs), found, fixed)


def _planned(program: Program, inner: bool = False) -> Program:
    """The Program with a memory plan, and with the kernels that run in strips."""
    return verify(form_strips(plan_memory(program, inner)))


class GraphLowering:
    """Maps the variables of a graph to values; `node` lowers one node.

    A variable whose values consist of several arrays has a value for the parts, or one for the
    object, or both; each is made of the other by a `Python` step when it is first needed.
    """

    def __init__(self, with_origins: bool = True) -> None:
        self.with_origins = with_origins
        self.builder = Builder()
        self.builder.lower_inner = lower_inner
        self.values: dict[Variable, Value] = {}
        self.composites: dict[Variable, Composite] = {}

    def input(self, variable: Variable) -> Value:
        """Add an argument of the Program for an input of the graph."""
        dtype, shape = array_type(variable.type) or (None, ())
        value = self.builder.input(dtype, shape, variable.name or "")
        self.values[variable] = value
        return value

    def value(self, variable: Variable) -> Value:
        """The value of a variable: an array or an object; a constant's is made at its first use."""
        found = self.values.get(variable)
        if found is None:
            found = self.values[variable] = self._made(variable)
        return found

    def _made(self, variable: Variable) -> Value:
        """The value of a constant, or of a variable whose parts have been computed."""
        known = array_type(variable.type)
        if isinstance(variable, Constant):
            if known is None:
                return self.builder.object(variable.data)
            return self.builder.const(variable.data, known[0])
        composite = self.composites.get(variable)
        if composite is None:
            raise LoweringError(f"{variable} is computed by no node of the graph.")
        join = variable.type.join
        parts = [self._owned(part) for part in composite.parts]
        return self.builder.python(lambda *parts: (join(parts),), parts, [(None, ())], "join")[0]

    def _owned(self, part: Value) -> Value:
        """A part that shares no memory with an argument or a constant."""
        slot = part.base.owner.own_slot()
        return part if slot is None or slot.kind == "temp" else self.builder.contiguous(part)

    def argument(self, variable: Variable) -> Value | Composite:
        """What ``lower`` gets for an input."""
        parts = variable.type.parts
        if len(parts) == 1:
            return self.value(variable)
        found = self.composites.get(variable)
        if found is None:
            split = variable.type.split
            if isinstance(variable, Constant):
                data = zip(split(variable.data), parts, strict=True)
                values = [self.builder.const(array, part.dtype) for array, part in data]
            else:
                whole = [self.value(variable)]
                values = self.builder.python(lambda x: tuple(split(x)), whole, parts, "split")
            found = self.composites[variable] = Composite(*values)
        return found

    def output(self, variable: Variable) -> Value:
        """The value of an output of the graph."""
        if isinstance(variable, Constant) and array_type(variable.type) is None:
            data = variable.data
            return self.builder.python(lambda: (data,), [], [(None, ())], "constant")[0]
        return self.value(variable)

    def run(self, fgraph: Any) -> list[Value]:
        """Lower all nodes; return the values of the outputs."""
        for node in fgraph.toposort():
            self.node(node)
        taken = set(fgraph.inputs)
        outputs: list[Value] = []
        for v in fgraph.outputs:
            value, root = self.output(v), view_root(v)
            if _is_copied(v.type) and (root in taken or isinstance(root, Constant)):
                value = self._copied(v, value)
            taken.add(root)
            outputs.append(value)
        return outputs

    def _copied(self, variable: Variable, value: Value) -> Value:
        """A copy of an object that an argument, a constant or another output is."""
        copy = variable.type.copy_value
        return self.builder.python(lambda x: (copy(x),), [value], [(None, ())], "copy")[0]

    def assumed(self, found: Shape, wanted: Shape, known: Container[Dim]) -> Shape:
        """Lengths, of which those that are not ``known`` are checked to be the ``wanted`` ones."""
        if len(found) != len(wanted):
            return found
        lengths: list[Dim] = []
        for axis, (d, n) in enumerate(zip(found, wanted)):
            is_known = all(symbol in known for symbol in d.symbols())
            if not is_known:
                self.builder.check(d, "==", n, f"axis {axis} of a state has another length")
            lengths.append(d if is_known else n)
        return tuple(lengths)

    def node(self, node: Apply) -> None:
        """Lower one node."""
        if self.with_origins:
            self.builder.origin = node
        results = self._lowered(node)
        if results is None:
            results = self._performed(node)
        for variable, value in zip(node.outputs, results, strict=True):
            if isinstance(value, Composite):
                self._check_parts(node, variable, value.parts)
                self.composites[variable] = value
                continue
            if value.dtype is not None and array_type(variable.type) is not None:
                self._check_parts(node, variable, [value])
            self.values[variable] = value

    def _lowered(self, node: Apply) -> list[Value | Composite] | None:
        """The values that the op's ``lower`` returns; None if the op cannot be lowered, or is known
        to fail: then it raises its error if it is computed."""
        dtypes = [part.dtype for v in node.outputs for part in v.type.parts]
        if any(d is not None and d not in NATIVE_DTYPES for d in dtypes):
            return None
        try:
            # of the class: an op may have an attribute ``lower``, which triangle it reads
            lower, inputs = type(node.op).lower, [self.argument(v) for v in node.inputs]
            builder: AnyBuilder[Value] = self.builder
            self._check_ones(node, inputs)
            results = lower(node.op, node, builder, *inputs)
        except (NotNative, ContradictionError):
            return None
        if results is NotImplemented:
            return None
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        for result in results:
            if not isinstance(result, (Value, Composite)):
                raise LoweringError(f"{node.op}: lower returned {result!r}, which is no Value.")
        if len(results) != len(node.outputs):
            raise LoweringError(
                f"{node.op}: lower returned {len(results)} values for {len(node.outputs)} outputs."
            )
        return None if any(map(self._contradicts, results, node.outputs)) else results

    def _check_ones(self, node: Apply, inputs: Sequence[Value | Composite]) -> None:
        """Check lengths that would broadcast because the values know that they are 1."""
        arrays = [v for v in inputs if isinstance(v, Value)]
        if len(arrays) == len(inputs) and broadcasts_hidden_ones(node, arrays, self.builder):
            self.builder.requirements(node, *arrays)

    def _contradicts(self, value: Value | Composite, variable: Variable) -> bool:
        """Whether a known length of a value differs from the static one of its variable."""
        found = array_type(variable.type)
        if found is None or isinstance(value, Composite):
            return False
        lengths = [self.builder.canonical(d).value for d in value.shape]
        return any(None not in pair and pair[0] != pair[1] for pair in zip(lengths, found[1]))

    def _check_parts(self, node: Apply, variable: Variable, values: Sequence[Value]) -> None:
        """Check the number, dtypes and ranks of the parts of a result."""
        parts = variable.type.parts
        if len(parts) != len(values):
            raise LoweringError(
                f"{node.op}: lower returned {len(values)} parts for {variable} of type "
                f"{variable.type}, whose values have {len(parts)}."
            )
        for part, value in zip(parts, values):
            self._check(node, variable, part, value)

    def _check(self, node: Apply, variable: Variable, part: Part, value: Value) -> None:
        """Check the dtype and rank of a result; add checks of the static lengths of its type."""
        dtype, shape = part
        if value.dtype != dtype or value.ndim != len(shape):
            raise LoweringError(
                f"{node.op}: lower returned a value of dtype {value.dtype} and rank {value.ndim} "
                f"for {variable} of type {variable.type}."
            )
        for axis, length in enumerate(shape):
            if length is not None and value.shape[axis].value != length:
                message = f"{node.op}: axis {axis} of the result has not its static length {length}"
                self.builder.unify(value.shape[axis], length, message)

    def _performed(self, node: Apply) -> list[Value]:
        """The results of a `Python` step that calls ``perform``."""
        op = node.op
        prepare(node)
        given = [v for v in node.inputs if not isinstance(v, Constant)]
        outputs = [array_type(v.type) or (None, ()) for v in node.outputs]
        args = [self.value(v) for v in given]
        results = self.builder.python(Perform(node), args, outputs, str(op))
        if op.shape_rule is not None and all(len(v.type.parts) == 1 for v in node.inputs):
            self._check_claims(node, results)
        return results

    def _check_claims(self, node: Apply, results: Sequence[Value]) -> None:
        """Check that the results of a `Python` step have the lengths that the shape rule says.

        They are lengths of this Program then, and known before the step runs.
        """
        shapes = ClaimedShapes(self.builder, node, [self.value(v) for v in node.inputs]).claimed()
        for value, lengths in zip(results, shapes):
            for axis, n in enumerate(lengths):
                if n is not None and value.dtype is not None:
                    message = f"{node.op}: axis {axis} of the result has not the length it should"
                    self.builder.check(value.shape[axis], "==", n, message)


def _is_copied(type_: Type[Any]) -> bool:
    """Whether an object must not be in two places: two outputs, or an argument and an output."""
    return type_.has_state or len(type_.parts) > 1


class Perform:
    """Calls ``perform`` of a node: takes its inputs that are not constants, returns a tuple.

    ``reason`` says why it is called.
    """

    def __init__(self, node: Apply):
        self.node = node
        self.reason = reason_of(node.op)
        self.template = [v.data if isinstance(v, Constant) else None for v in node.inputs]
        self.positions = [i for i, v in enumerate(node.inputs) if not isinstance(v, Constant)]
        self.types = [array_type(v.type) for v in node.outputs]
        self.labels = [label_of(v) for v in node.inputs]

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        inputs = list(self.template)
        for position, value in zip(self.positions, values):
            inputs[position] = value
        try:
            results = run_node(self.node, inputs)
        except Exception as exc:
            annotate(exc, self.node, inputs, self.labels)
            raise
        return tuple(self.result(i, value, inputs) for i, value in enumerate(results))

    def result(self, number: int, value: Any, inputs: list[Any]) -> Any:
        """A result, copied if it may share memory with an input: views without elements do."""
        if self.types[number] is None:
            return value
        is_own = value.size and value.flags.writeable and not overlaps(value, inputs)
        return value if is_own else value.copy()
