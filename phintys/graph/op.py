"""`Op`: what an operation is, in one class.

Everything about an operation hangs off its class: how it is typed (`make_node`), what it computes
(`perform`), the shapes of its results (`infer_shape`), both derivatives (`pullback`,
`pushforward`), how it batches (`vectorize_node`), and what it becomes in machine code (`lower`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from phintys.errors import MethodNotDefined
from phintys.graph.meta import MetaObject
from phintys.graph.older import OlderInterface
from phintys.graph.type import DisconnectedType
from phintys.graph.variable import Apply, Variable

Storage = list[list[Any]]


class Op(OlderInterface, MetaObject):
    """An operation.  Subclasses write `make_node` (or ``itypes`` and ``otypes``) and `perform`.

    Attributes
    ----------
    __props__
        names of the attributes that distinguish instances; equality and hash follow from them, and
        equal ops are taken to behave identically
    itypes, otypes
        types of inputs and outputs, in place of a `make_node`
    default_output
        the output that ``op(...)`` returns, if it has several
    view_map, destroy_map
        ``{output: [inputs]}``: outputs that are views of an input, or are computed in its memory
    is_linear
        whether the outputs are linear in the inputs that `connection_pattern` connects to them; the
        pushforward is then the op, applied to the tangents
    handles_missing
        whether `pullback` and `pushforward` deal with derivatives that are missing.  If True, these
        are variables of DisconnectedType, and the cotangents of discrete outputs are zeros.  If
        False, they are zeros, only unconnected inputs have DisconnectedType, and the methods are
        called only if some output is continuous and has, or depends on, a derivative.
    is_variadic
        whether the op is an associative operation on any number of inputs
    commutative
        whether the inputs may be permuted
    """

    default_output: int | None = None
    is_linear: bool = False
    handles_missing: bool = True
    is_variadic: bool = False
    commutative: bool = False
    view_map: dict[int, list[int]] = {}
    destroy_map: dict[int, list[int]] = {}
    itypes: Sequence[Any] | None = None
    otypes: Sequence[Any] | None = None
    __props__: ClassVar[tuple[str, ...]]
    _output_type_depends_on_input_value: bool = False

    # ----- building
    def make_node(self, *inputs: Any) -> Apply:
        """The application of this op to ``inputs``, converted and checked.

        TypeError if an input does not fit, ValueError if there are too many or too few.
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
        """Apply the op.  One output gives a variable, several a list or the `default_output`."""
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

    # ----- rewriting
    @property
    def rule_key(self) -> Any:
        """What rules know the op by; an op that lifts another one over arrays gives that one."""
        return self

    # ----- computing
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        """Compute: put the value of output ``i`` into ``output_storage[i][0]``.

        What is already there may be a stale array; inputs must not be written to, unless
        ``destroy_map`` says so.
        """
        raise MethodNotDefined(f"{type(self).__name__} has no perform method.")

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        """This node as primitives of the Program, through the builder (``lowering/builder.py``).

        Returns one value per output (a single one may come without a list), or NotImplemented: then
        `perform` is called from the compiled routine.
        """
        return NotImplemented

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        """Whether the node may be computed while rewriting, if all its inputs are constants."""
        return True

    # ----- shapes.  infer_shape(self, node, shapes) is optional: its absence means "unknown".
    infer_shape: Callable[..., Any] | None = None

    # ----- derivatives
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Cotangents of the inputs, one per input, from those of the outputs.

        A variable of type DisconnectedType says "no influence", one of type NullType "not defined".
        None may stand for what is not asked for: inputs that `connection_pattern` excludes.
        ``cotangents`` see `handles_missing`.
        """
        return self._older_pullback(inputs, outputs, cotangents)

    def wanted_pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
        wanted: Sequence[bool],
    ) -> Sequence[Variable | None]:
        """`pullback`, where only the cotangents of ``wanted`` inputs are used.

        The others may be None, which saves the work of building them.
        """
        return self.pullback(inputs, outputs, cotangents)

    def pushforward(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], tangents: Sequence[Variable]
    ) -> list[Variable]:
        """Tangents of the outputs from those of the inputs, see `handles_missing`."""
        if not self.is_linear:
            return self._older_pushforward(inputs, tangents)
        moved = [x if isinstance(t.type, DisconnectedType) else t for x, t in zip(inputs, tangents)]
        return list(self(*moved, return_list=True))

    @property
    def is_fully_connected(self) -> bool:
        """Whether `connection_pattern` need not be asked: every input influences every output."""
        return type(self).connection_pattern is Op.connection_pattern

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """``[input][output]``: whether the elements of the input influence those of the output."""
        return [[True] * len(node.outputs) for _ in node.inputs]

    # ----- batching
    #: core axes of one item, as ``"(m,k),(k,n)->(m,n)"``, for `Blockwise`
    gufunc_signature: str | None = None
    #: ``(dotted name, number of inputs, number of outputs)`` of a NumPy function of batches
    gufunc_spec: tuple[str, int, int] | None = None
    #: ``perform_batched(node, inputs)``: results for inputs with leading axes, ``node`` being the
    #: node of one item; None: `Blockwise` calls `perform` for each item
    perform_batched: Callable[[Apply, Sequence[Any]], Sequence[Any]] | None = None
    #: ``lower_batched(node, b, *inputs)``: `lower` for inputs with leading axes
    lower_batched: Callable[..., Any] | None = None

    def vectorize_node(self, node: Apply, *batched_inputs: Variable) -> Apply:
        """The node on inputs that have additional leading dimensions."""
        raise MethodNotDefined(f"{type(self).__name__} does not say how it is vectorized.")

    # ----- in place
    #: pairs (destroyed input, other input) that may be views of, or the same as, each other
    destroyhandler_tolerate_aliased: Sequence[tuple[int, int]] = ()
    destroyhandler_tolerate_same: Sequence[tuple[int, int]] = ()

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        """This op, computing in the memory of some of the allowed inputs if it can."""
        return self

    def __str__(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return str(self)


class HasMultipleInnerGraph:
    """Mixin of ops that contain graphs: they provide ``inner_graphs``."""

    @property
    def inner_graphs(self) -> Mapping[str, Any]:
        """The graphs by name."""
        raise MethodNotDefined(f"{type(self).__name__} does not say what its inner graphs are.")


class HasInnerGraph(HasMultipleInnerGraph):
    """Mixin of ops that contain one graph: they provide ``fgraph``."""

    fgraph: Any

    @property
    def inner_graphs(self) -> Mapping[str, Any]:
        return {"": self.fgraph}

    @property
    def inner_inputs(self) -> list[Variable]:
        return list(self.fgraph.inputs)

    @property
    def inner_outputs(self) -> list[Variable]:
        return list(self.fgraph.outputs)


def _check_maps(node: Apply) -> None:
    """TypeError if ``view_map`` or ``destroy_map`` names an input or output that there is not."""
    for name in ("view_map", "destroy_map"):
        for output, inputs in getattr(node.op, name).items():
            if not (0 <= output < node.nout and all(0 <= i < node.nin for i in inputs)):
                raise TypeError(
                    f"{node.op}.{name} is {getattr(node.op, name)}, for {node.nin} inputs and "
                    f"{node.nout} outputs."
                )
