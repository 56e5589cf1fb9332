"""`Op`: the base class of operations.

The methods of its class define an operation: the types of its outputs (`make_node`), its values
(`perform`), the shapes of its results (`shape_rule`), both derivatives (`pullback`,
`pushforward`), batching (`vectorize_node`), and the code it is compiled to (`lower`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from phintys.dims import Dim
from phintys.errors import MethodNotDefined
from phintys.graph.builder import Builder
from phintys.graph.meta import MetaObject
from phintys.graph.older import OlderInterface
from phintys.graph.signatures import (
    adapted_do_constant_folding,
    adapted_infer_shape,
    adapted_perform,
)
from phintys.graph.traversal import toposort
from phintys.graph.type import DisconnectedType
from phintys.graph.variable import Apply, Variable, late_bound

Storage = list[list[Any]]


class Op(OlderInterface, MetaObject):
    """An operation.  Subclasses define `make_node` (or ``itypes`` and ``otypes``) and `perform`.

    Attributes
    ----------
    __props__
        names of the attributes that distinguish instances; equality and hash are derived from them,
        and equal ops must behave identically
    itypes, otypes
        types of inputs and outputs, for the default `make_node`
    default_output
        position of the output that ``op(...)`` returns, if there are several
    view_map, destroy_map
        ``{output: [inputs]}``, by position: outputs that are views of an input, or are computed in
        the memory of one, which is overwritten
    is_linear
        whether the outputs are linear in the inputs that `connection_pattern` connects to them; the
        pushforward is then the op, applied to the tangents
    handles_missing
        whether `pullback` and `pushforward` deal with derivatives that are missing.  If True, these
        are variables of DisconnectedType, and the cotangents of discrete outputs are zeros.  If
        False, they are zeros, only unconnected inputs have DisconnectedType, and the methods are
        called only if some output is continuous and has, or depends on, a derivative.
    not_differentiable
        why no derivative passes the op; empty if one does.  The documentation lists the reasons.
    in_python
        why compiled functions call `perform`: for all nodes, or for those that the text names;
        empty if they never do.  ``python -m phintys native`` lists the reasons.
    is_variadic
        whether the op is an associative operation on any number of inputs
    commutative
        whether the inputs may be permuted
    has_undefined_values
        whether elements of the results are arbitrary; `DebugMode` does not compare those

    >>> import phintys.tensor as pt
    >>> class Double(Op):
    ...     __props__ = ()
    ...     itypes = [pt.dvector]
    ...     otypes = [pt.dvector]
    ...
    ...     def perform(self, node, inputs, output_storage):
    ...         output_storage[0][0] = 2 * inputs[0]
    >>> x = pt.dvector("x")
    >>> Double()(x).eval({x: [1.0, 2.0]})
    array([2., 4.])
    """

    default_output: int | None = None
    is_linear: bool = False
    handles_missing: bool = True
    not_differentiable: str = ""
    in_python: str = ""
    is_variadic: bool = False
    commutative: bool = False
    has_undefined_values: bool = False
    view_map: dict[int, list[int]] = {}
    destroy_map: dict[int, list[int]] = {}
    itypes: Sequence[Any] | None = None
    otypes: Sequence[Any] | None = None
    __props__: ClassVar[tuple[str, ...]]
    _output_type_depends_on_input_value: bool = False

    # ----- building
    def make_node(self, *inputs: Any, **kwargs: Any) -> Apply:
        """The node that applies this op to ``inputs``, which may be variables or values.

        TypeError if an input cannot be converted to its type, ValueError if the number of inputs is
        wrong.  An override may have parameters of its own; this method takes no keywords.
        """
        if kwargs:
            raise TypeError(f"{self} takes no keyword arguments, such as {next(iter(kwargs))!r}.")
        if self.itypes is None or self.otypes is None:
            raise TypeError(
                f"{type(self).__name__} defines neither make_node nor itypes and otypes."
            )
        if len(inputs) != len(self.itypes):
            raise ValueError(f"{self} takes {len(self.itypes)} inputs, not {len(inputs)}.")
        typed = [t.filter_variable(x) for t, x in zip(self.itypes, inputs, strict=True)]
        return Apply(self, typed, [t.make_variable() for t in self.otypes])

    def __call__(
        self, *inputs: Any, name: str | None = None, return_list: bool = False, **kwargs: Any
    ) -> Any:
        """Apply the op to ``inputs``, by `make_node`; return its output or outputs.

        The result is the `default_output` if the op defines one, else the only output, else a list;
        ``return_list`` puts a single one into a list.  ``name`` becomes the name of the output.
        """
        node: Any = self.make_node(*inputs, **kwargs)
        if not isinstance(node, Apply):
            raise TypeError(f"{type(self).__name__}.make_node returned {node!r}, not an Apply.")
        if self.view_map or self.destroy_map:
            _check_maps(node)
        outputs = node.outputs
        if name is not None:
            if len(outputs) == 1:
                outputs[0].name = name
            elif self.default_output is not None:
                outputs[self.default_output].name = name
            else:
                for i, out in enumerate(outputs):
                    out.name = f"{name}_{i}"
        if self.default_output is not None:
            outputs = [outputs[self.default_output]]
        return outputs[0] if len(outputs) == 1 and not return_list else list(outputs)

    # ----- rewriting
    @property
    def rule_key(self) -> Any:
        """What rules track the op by; an op that applies another one elementwise returns that one.

        None: only rules for all ops are tried.
        """
        return self

    # ----- computing
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        """Compute the outputs: assign the value of output ``i`` to ``output_storage[i][0]``.

        Inputs must not be modified, unless ``destroy_map`` says so.  The old contents of
        ``output_storage`` are undefined.  A class may define the older form with ``params`` as a
        further parameter: what its ``get_params(node)`` returns, or the op.
        """
        raise MethodNotDefined(f"{type(self).__name__} has no perform method.")

    def lower(self, node: Apply, b: Builder[Any], *inputs: Any) -> object:
        """Express this node in primitives of the Program, with the builder ``b``.

        See ``graph/builder.py``.  Returns a value, or a list with one value per output.  The
        default returns NotImplemented: the compiled routine then calls `perform`.
        """
        return NotImplemented

    def failure(self, node: Apply) -> Exception | None:
        """The exception of a check that `lower` has made, if it fails; None: a ShapeError."""
        return None

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        """Whether rewriting may replace the node by its value if all its inputs are constants."""
        return True

    # ----- shapes
    #: ``shape_rule(s, *shapes)``: the shapes of the results, as tuples of `Dim`, from those of the
    #: inputs and the `ShapeContext` ``s``; None: the op states none
    shape_rule: Callable[..., Sequence[Sequence[Dim]]] | None = None
    #: ``infer_shape(node, shapes)``: for each result its lengths as variables, or None if they are
    #: not known, as NotImplementedError and ShapeError say for all; made from `shape_rule` if the
    #: class has one.  None: the op states none.  ``(fgraph, node, shapes)`` is an older form
    infer_shape: Callable[..., Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if "perform" in own:
            cls.perform = adapted_perform(own["perform"])
        if "do_constant_folding" in own:
            cls.do_constant_folding = adapted_do_constant_folding(own["do_constant_folding"])
        if "infer_shape" in own:
            cls.infer_shape = adapted_infer_shape(cls, own["infer_shape"])
        elif "shape_rule" in own:
            cls.infer_shape = _infer_shape

    # ----- derivatives
    # Sequences of any variables: an override names their class, such as TensorVariable.
    def pullback(
        self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]
    ) -> Sequence[Variable | None]:
        """The cotangents of the inputs, one variable per input, from those of the outputs.

        A cotangent has the type of its variable, or is a variable of `DisconnectedType` (no
        influence) or `NullType` (not defined).  None may stand for that of an input which
        `connection_pattern` excludes.  `handles_missing` says what ``cotangents`` may be.  A class
        may define the older ``L_op`` or ``grad`` instead.  `MethodNotDefined` if it defines none.
        """
        return self._older_pullback(inputs, outputs, cotangents)

    def wanted_pullback(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool],
    ) -> Sequence[Variable | None]:
        """`pullback`, of which only the cotangents of ``wanted`` inputs are used.

        An override may return None for the others, to save work.
        """
        return self.pullback(inputs, outputs, cotangents)

    def pushforward(
        self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]
    ) -> Sequence[Variable]:
        """The tangents of the outputs, one variable per output, from those of the inputs.

        `handles_missing` says what ``tangents`` may be.  An op that `is_linear` is applied to them.
        A class may define the older ``R_op`` instead.  `MethodNotDefined` if it defines neither.
        """
        if not self.is_linear:
            return self._older_pushforward(inputs, tangents)
        moved = [x if isinstance(t.type, DisconnectedType) else t for x, t in zip(inputs, tangents)]
        return self.make_node(*moved).outputs

    @property
    def is_fully_connected(self) -> bool:
        """Whether every input influences every output: `connection_pattern` is not overridden."""
        return type(self).connection_pattern is Op.connection_pattern

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """``[input][output]``: whether the output depends on the elements of the input.

        False means that no derivative passes, even if the output depends on the input's shape.
        """
        return [[True] * len(node.outputs) for _ in node.inputs]

    # ----- batching
    #: core axes of one item, as ``"(m,k),(k,n)->(m,n)"``, for `Blockwise`
    gufunc_signature: str | None = None
    #: ``(dotted name, number of inputs, number of outputs)`` of a NumPy function of batches
    gufunc_spec: tuple[str, int, int] | None = None
    #: ``perform_batched(node, inputs)``: results for inputs with leading axes, ``node`` being the
    #: node of one item; None: `Blockwise` calls `perform` for each item
    perform_batched: Callable[..., Sequence[Any]] | None = None
    #: ``lower_batched(node, b, *inputs)``: `lower` for inputs with leading axes, ``node`` being the
    #: node of one item; what the shape rule requires has been checked
    lower_batched: Callable[..., Any] | None = None

    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        """The node for inputs with additional leading dimensions; `MethodNotDefined` by default."""
        raise MethodNotDefined(f"{type(self).__name__} has no vectorize_node.")

    # ----- in place
    #: pairs (destroyed input, other input) that may be views of, or the same as, each other
    destroyhandler_tolerate_aliased: Sequence[tuple[int, int]] = ()
    destroyhandler_tolerate_same: Sequence[tuple[int, int]] = ()

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        """A variant of this op that overwrites some of the allowed inputs; else the op itself."""
        return self

    def __str__(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return str(self)


class HasMultipleInnerGraph:
    """Mixin of ops that contain graphs.  Subclasses define `inner_graphs`.

    Rewriting, fingerprints and printing find inner graphs through these methods alone.
    """

    #: whether the op computes its inner graph once: `inline_node` can replace a node of it
    is_expandable: bool = False
    #: whether rewriting does so before anything else
    is_inline: bool = False

    @property
    def inner_graphs(self) -> Mapping[str, Any]:
        """The inner graphs, as a dict from names to graphs."""
        raise MethodNotDefined(f"{type(self).__name__} does not define inner_graphs.")

    def thawed_inner_graphs(self) -> dict[str, Any]:
        """New FunctionGraphs equal to the inner graphs, by name; none if they are not rewritten."""
        return {}

    def clone_with_inner_graphs(self, graphs: Mapping[str, Any]) -> Any:
        """The op with other inner graphs, which are rewritten `thawed_inner_graphs`."""
        raise MethodNotDefined(f"{type(self).__name__} does not exchange its inner graphs.")

    def inline_node(self, node: Apply) -> list[Variable]:
        """The outputs of ``node`` as an ordinary graph on its inputs; see `is_expandable`."""
        raise MethodNotDefined(f"{type(self).__name__} cannot be replaced by its inner graph.")

    def sources(self, node: Apply) -> Mapping[Variable, Variable]:
        """The inputs of ``node`` that inputs of the inner graphs are taken from, for printing.

        Those that do not say more than the order of the inputs are left out.
        """
        return {}

    def simplify_node(self, node: Apply, used: Sequence[bool]) -> list[Variable | None] | None:
        """Replacements for the outputs of ``node`` that compute only those that are ``used``.

        None, or None for an output, if it stays.
        """
        return None


class HasInnerGraph(HasMultipleInnerGraph):
    """Mixin of ops that contain one graph.  Subclasses define ``fgraph``."""

    fgraph: Any

    @property
    def inner_graphs(self) -> Mapping[str, Any]:
        return {"": self.fgraph}

    @property
    def inner_inputs(self) -> list[Variable]:
        """The inputs of the inner graph."""
        return list(self.fgraph.inputs)

    @property
    def inner_outputs(self) -> list[Variable]:
        """The outputs of the inner graph."""
        return list(self.fgraph.outputs)


def _infer_shape(self: Op, *arguments: Any) -> list[Any]:
    """The ``infer_shape`` of an op with a `shape_rule`: of a node and shapes, which may follow a
    graph as in older systems."""
    node, shapes = arguments[-2:]
    return late_bound["infer_shape"](node, shapes)


def io_connection_pattern(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> list[list[bool]]:
    """``[input][output]``: whether the output depends on the elements of the input.

    It is derived from the connection patterns of the nodes between them.

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> io_connection_pattern([x, y], [x * 2, x + y.shape[0]])
    [[True, True], [False, False]]
    """
    reached: dict[Variable, int] = {v: 0 for v in outputs}  # bit i: input i influences it
    for i, v in enumerate(inputs):
        reached[v] = reached.get(v, 0) | 1 << i
    for node in toposort(outputs, blockers=inputs):
        bits = [reached.get(v, 0) for v in node.inputs]
        pattern = None if node.op.is_fully_connected else node.op.connection_pattern(node)
        for k, out in enumerate(node.outputs):
            found = 0
            for i, bit in enumerate(bits):
                if pattern is None or pattern[i][k]:
                    found |= bit
            reached[out] = reached.get(out, 0) | found
    return [[bool(reached[v] >> i & 1) for v in outputs] for i in range(len(inputs))]


def _check_maps(node: Apply) -> None:
    """TypeError if ``view_map`` or ``destroy_map`` names an input or output that does not exist."""
    nin, nout = len(node.inputs), len(node.outputs)
    for name in ("view_map", "destroy_map"):
        for output, inputs in getattr(node.op, name).items():
            if not 0 <= output < nout or [i for i in inputs if not 0 <= i < nin]:
                raise TypeError(
                    f"{node.op}.{name} is {getattr(node.op, name)}, for {nin} inputs and "
                    f"{nout} outputs."
                )
