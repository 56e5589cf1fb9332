"""`Op`: the base class of operations.

The methods of its class define an operation: the types of its outputs (`make_node`), its values
(`perform`), the shapes of its results (`infer_shape`), both derivatives (`pullback`,
`pushforward`), batching (`vectorize_node`), and the code it is compiled to (`lower`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from phintys.errors import MethodNotDefined
from phintys.graph.meta import MetaObject
from phintys.graph.variable import Apply, Variable

Storage = list[list[Any]]


class Op(MetaObject):
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
    view_map: dict[int, list[int]] = {}
    destroy_map: dict[int, list[int]] = {}
    itypes: Sequence[Any] | None = None
    otypes: Sequence[Any] | None = None
    __props__: ClassVar[tuple[str, ...]]
    _output_type_depends_on_input_value: bool = False

    # ----- building
    def make_node(self, *inputs: Any) -> Apply:
        """The node that applies this op to ``inputs``, which may be variables or values.

        TypeError if an input cannot be converted to its type, ValueError if the number of inputs is
        wrong.
        """
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
        with ``return_list`` always a list.  ``name`` becomes the name of the output.
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
        if return_list:
            return list(outputs)
        if self.default_output is not None:
            return outputs[self.default_output]
        return outputs[0] if len(outputs) == 1 else list(outputs)

    # ----- computing
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        """Compute the outputs: assign the value of output ``i`` to ``output_storage[i][0]``.

        Inputs must not be modified, unless ``destroy_map`` says so.  The old contents of
        ``output_storage`` are undefined.
        """
        raise MethodNotDefined(f"{type(self).__name__} has no perform method.")

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        """Express this node in primitives of the Program, with the builder ``b``.

        See ``lowering/builder.py``.  Returns a value, or a list with one value per output.  The
        default returns NotImplemented: the compiled routine then calls `perform`.
        """
        return NotImplemented

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        """Whether rewriting may replace the node by its value if all its inputs are constants."""
        return True

    # ----- shapes.  infer_shape(self, node, shapes) is optional; None means "not known".
    infer_shape: Callable[..., Any] | None = None

    # ----- derivatives
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """The cotangents of the inputs, one variable per input, from those of the outputs.

        A cotangent has the type of its variable, or is a variable of `DisconnectedType` (no
        influence) or `NullType` (not defined).  A class may define the older ``L_op`` or ``grad``
        instead.  `MethodNotDefined` if it defines none of them.
        """
        cls = type(self)
        if cls.L_op is not Op.L_op:
            return self.L_op(inputs, outputs, cotangents)
        if cls.grad is not Op.grad:
            return self.grad(inputs, cotangents)
        raise MethodNotDefined(
            f"{type(self).__name__} has no pullback: {self} is not differentiable."
        )

    def wanted_pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
        wanted: Sequence[bool],
    ) -> list[Variable]:
        """`pullback`, of which only the cotangents of ``wanted`` inputs are used.

        An override may return variables of `DisconnectedType` for the others, to save work.
        """
        return self.pullback(inputs, outputs, cotangents)

    def L_op(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Older name of `pullback`."""
        return self.pullback(inputs, outputs, output_grads)

    def grad(self, inputs: Sequence[Variable], output_grads: Sequence[Variable]) -> list[Variable]:
        """Older form of `pullback`, without the outputs."""
        return self.pullback(inputs, self(*inputs, return_list=True), output_grads)

    def pushforward(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], tangents: Sequence[Variable]
    ) -> list[Variable]:
        """The tangents of the outputs, one variable per output, from those of the inputs.

        A variable of `DisconnectedType` stands for "no tangent".  A class may define the older
        ``R_op`` instead.  `MethodNotDefined` if it defines neither.
        """
        if type(self).R_op is Op.R_op:
            raise MethodNotDefined(f"{type(self).__name__} has no pushforward.")
        from phintys.graph.type import DisconnectedType, disconnected_type

        points = [None if isinstance(t.type, DisconnectedType) else t for t in tangents]
        results = self.R_op(inputs, points)
        return [disconnected_type() if r is None else r for r in results]

    def R_op(self, inputs: Sequence[Variable], eval_points: Sequence[Any]) -> list[Any]:
        """Older form of `pushforward`, in which None stands for "no tangent"."""
        from phintys.graph.type import DisconnectedType, disconnected_type

        tangents = [disconnected_type() if p is None else p for p in eval_points]
        results = self.pushforward(inputs, self(*inputs, return_list=True), tangents)
        return [None if isinstance(r.type, DisconnectedType) else r for r in results]

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
    def vectorize_node(self, node: Apply, *batched_inputs: Variable) -> Apply:
        """The node for inputs with additional leading dimensions; `MethodNotDefined` by default."""
        raise MethodNotDefined(f"{type(self).__name__} has no vectorize_node.")

    # ----- in place
    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        """A variant of this op that overwrites some of the allowed inputs; else the op itself."""
        return self

    # ----- running one node in Python
    def make_thunk(
        self,
        node: Apply,
        storage_map: dict[Variable, list[Any]],
        compute_map: dict[Variable, list[bool]] | None = None,
        no_recycling: Sequence[Variable] = (),
        impl: str | None = None,
    ) -> Callable[[], None]:
        """A function without arguments that runs `perform` on storage cells.

        ``storage_map`` maps each variable to a list with one element, its value.  ``compute_map``
        maps each output to a list with one bool, which the function sets.
        """
        return self.make_py_thunk(node, storage_map, compute_map, no_recycling)

    def make_py_thunk(
        self,
        node: Apply,
        storage_map: dict[Variable, list[Any]],
        compute_map: dict[Variable, list[bool]] | None = None,
        no_recycling: Sequence[Variable] = (),
        debug: bool = False,
    ) -> Callable[[], None]:
        """See `make_thunk`."""
        self.prepare_node(node, storage_map, compute_map, "py")
        sources = [storage_map[v] for v in node.inputs]
        targets = [storage_map[v] for v in node.outputs]
        done = [] if compute_map is None else [compute_map[v] for v in node.outputs]

        def thunk() -> None:
            self.perform(node, [s[0] for s in sources], targets)
            for cell in done:
                cell[0] = True

        return thunk

    def prepare_node(
        self, node: Apply, storage_map: Any, compute_map: Any, impl: str | None
    ) -> None:
        """Called before a node is run for the first time; ``impl`` is ``"py"``."""

    def __str__(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return str(self)


class HasMultipleInnerGraph:
    """Mixin of ops that contain graphs.  Subclasses define `inner_graphs`."""

    @property
    def inner_graphs(self) -> Mapping[str, Any]:
        """The inner graphs, as a dict from names to graphs."""
        raise MethodNotDefined(f"{type(self).__name__} does not define inner_graphs.")


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


def _check_maps(node: Apply) -> None:
    """TypeError if ``view_map`` or ``destroy_map`` names an input or output that does not exist."""
    for name in ("view_map", "destroy_map"):
        for output, inputs in getattr(node.op, name).items():
            if not (0 <= output < node.nout and all(0 <= i < node.nin for i in inputs)):
                raise TypeError(
                    f"{node.op}.{name} is {getattr(node.op, name)}, for {node.nin} inputs and "
                    f"{node.nout} outputs."
                )
