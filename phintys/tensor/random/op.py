"""`RandomVariable`: the op that draws from a distribution."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from phintys import bitgen
from phintys.config import config
from phintys.dims import Dim
from phintys.errors import MethodNotDefined
from phintys.gradient.barriers import grad_undefined
from phintys.graph.equality import equal_computations
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes, static_shapes
from phintys.graph.type import DisconnectedType, disconnected_type
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import DTypeLike, Length, TensorLike
from phintys.tensor.blockwise import parse_signature
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import dimshuffle
from phintys.tensor.inferred import infer_shape
from phintys.tensor.join import concatenate
from phintys.tensor.random.type import GeneratorLike, as_rng, random_generator_type
from phintys.tensor.random.utils import (
    Size,
    explicit_expand_dims,
    normalize_size_param,
    rv_size_is_none,
)
from phintys.tensor.random.variable import shared_rng
from phintys.tensor.shape import shape_tuple
from phintys.tensor.static import as_length, known_length
from phintys.tensor.type import TensorType
from phintys.tensor.utils import safe_signature
from phintys.tensor.variable import TensorVariable


class RNGConsumerOp(Op):
    """Base class of ops that take a random generator and return it after drawing."""

    @abstractmethod
    def update(self, node: Apply) -> dict[Variable, Variable]:
        """Input generator -> the output that is the generator after drawing."""


class RandomVariable(RNGConsumerOp):
    """Numbers drawn from a distribution.

    The inputs of its nodes are ``(rng, size, *parameters)``, the outputs ``(next_rng, draw)``.
    ``size`` is None (`NoneConst`) or an int64 vector.  Parameters have equally many batch axes,
    which broadcast where their length is known to be 1; a given size says their lengths.

    Subclasses set the attributes below and `rng_fn`; the default draws by a method of NumPy.

    Parameters
    ----------
    name
        of the distribution, and of the method of `numpy.random.Generator` that the default `rng_fn`
        calls
    ndim_supp, ndims_params
        the ranks of one draw, and of each parameter for one draw; they follow from the signature
    dtype
        of the draws; ``"floatX"``, which is the default, becomes config.floatX
    inplace
        whether draws change the state of the input generator
    signature
        core axes of parameters and draws, as ``"(),()->()"``

    >>> import numpy as np, phintys
    >>> class HalfNormal(RandomVariable):
    ...     name = "halfnormal"
    ...     signature = "()->()"
    ...     dtype = "floatX"
    ...
    ...     @classmethod
    ...     def rng_fn(cls, rng, scale, size):
    ...         return abs(rng.normal(0.0, scale, size))
    >>> f = phintys.function([], HalfNormal()(2.0, size=3, rng=np.random.default_rng(1)))
    >>> f() > 0
    array([ True,  True,  True])
    """

    __props__ = ("name", "signature", "dtype", "inplace")
    not_differentiable = "there is no derivative of random numbers in their parameters"
    default_output = 1
    _output_type_depends_on_input_value = True
    name: str | None = None
    ndim_supp: int | None = None
    ndims_params: Sequence[int] | None = None
    dtype: str | None = None
    inplace: bool = False
    signature: str | None = None

    # ----- class and static shape
    def __init__(
        self,
        name: str | None = None,
        ndim_supp: int | None = None,
        ndims_params: Sequence[int] | None = None,
        dtype: str | None = None,
        inplace: bool | None = None,
        signature: str | None = None,
    ) -> None:
        self.name = name or self.name
        self.signature = signature or self.signature
        self.dtype = dtype or self.dtype or "floatX"
        self.inplace = self.inplace if inplace is None else inplace
        supp = self.ndim_supp if ndim_supp is None else ndim_supp
        params = self.ndims_params if ndims_params is None else ndims_params
        if self.signature is None and supp is not None and params is not None:
            self.signature = safe_signature(params, [supp])
        if self.signature is None:
            raise ValueError(f"{type(self).__name__} needs a signature.")
        self.inputs_sig, (self.output_sig,) = parse_signature(self.signature)
        self.ndim_supp = len(self.output_sig)
        self.ndims_params = tuple(len(core) for core in self.inputs_sig)
        if self.inplace:
            self.destroy_map = {0: [0]}

    def make_node(self, rng: GeneratorLike, size: Size, *dist_params: TensorLike) -> Apply:
        rng, size = as_rng(rng), normalize_size_param(size)
        params = [as_tensor_variable(p) for p in dist_params]
        ranks = self._ranks()
        if len(params) != len(ranks):
            raise ValueError(f"{self} takes {len(ranks)} parameters, not {len(params)}.")
        for p, core in zip(params, ranks):
            if p.type.ndim < core:
                raise ValueError(f"A parameter of {self} has at least {core} dimensions: {p.type}.")
        length = None if rv_size_is_none(size) else size.type.shape[0]
        params = explicit_expand_dims(params, ranks, length)
        inputs = [rng, size, *params]
        dtype = config.floatX if self.dtype == "floatX" else dtypes.as_dtype(self.dtype)
        _, shape = static_shapes(self, inputs)
        return Apply(self, inputs, [rng.type.make_variable(), TensorType(dtype, shape)()])

    def shape_rule(self, s: ShapeContext, rng: Shape, size: Shape, *params: Shape) -> list[Shape]:
        batches = [p[: len(p) - core] for p, core in zip(params, self._ranks())]
        has_size = not rv_size_is_none(s.inputs[1])
        batch = s.broadcast(batches, early=not has_size)
        if has_size:
            found, batch = batch, s.values(1)
            for axis, n in enumerate(batch):
                s.check(n, ">=", 0, "A length is negative", early=True)
                if batches and found[axis].value != 1:
                    message = f"Lengths along axis {axis} do not agree"
                    s.equal(found[axis], n, message, broadcasts=True, early=False)
        return [(), (*batch, *self._supp_rule(s, params))]

    def _supp_rule(self, s: ShapeContext, params: Sequence[Shape]) -> Shape:
        """The shape of one draw: lengths of parameters with the same letter in the signature."""
        named: dict[str, Dim] = {}
        for p, core in zip(params, self.inputs_sig):
            for n, letter in zip(p[len(p) - len(core) :], core):
                message = f"Lengths called {letter} in {self.signature} do not agree"
                known = named.setdefault(letter, n)
                named[letter] = s.equal(known, n, message, early=False)
        wanted = self.output_sig
        if all(letter in named for letter in wanted):
            return tuple([named[letter] for letter in wanted])
        if s.only_checks:
            return tuple([s.unknown() for _ in wanted])
        found = self._core_shape(s.inputs[2:])
        return tuple([self._given_length(s, k, n) for k, n in enumerate(found)])

    def _core_shape(self, params: Sequence[Variable], shapes: Any = None) -> list[Length]:
        """`_supp_shape_from_params`, with lengths that are parameters as scalars.

        A parameter has axes of length 1 in the place of batch axes of others.
        """
        found = self._supp_shape_from_params(params, shapes)
        return [self._scalar_length(n) for n in found]

    def _scalar_length(self, n: Any) -> Length:
        if not isinstance(n, Variable) or n.type.ndim == 0:
            return n
        if any(k != 1 for k in n.type.shape):
            raise ValueError(f"All draws of {self} have one shape, but {n} may be several lengths.")
        return dimshuffle(n, [])

    def _given_length(self, s: ShapeContext, k: int, n: Length) -> Dim:
        """Length ``k`` of a draw, which `_supp_shape_from_params` gives."""
        s.asks, s.cacheable = True, False  # it may depend on values of parameters
        known = known_length(n)
        if known is not None:
            return Dim.const(known)
        params = s.inputs[2:]
        return s.unknown(None, lambda *shapes: self._core_shape(params, shapes[2:])[k])

    def _ranks(self) -> Sequence[int]:
        return self.ndims_params or ()

    def _supp_shape_from_params(
        self,
        dist_params: Sequence[Variable],
        param_shapes: Sequence[Sequence[Variable]] | None = None,
    ) -> Sequence[Length]:
        """The shape of one draw, if the signature does not determine it: subclasses override this.

        Entries are variables, or ints where they are known.  ``param_shapes`` are the lengths of
        the parameters as variables, or None.  Parameters have batch axes; a parameter whose batch
        axes have length 1 may itself be a length.
        """
        raise MethodNotDefined(f"{type(self).__name__} defines no _supp_shape_from_params.")

    def _infer_shape(
        self,
        size: Size,
        dist_params: Sequence[TensorLike],
        param_shapes: Sequence[Sequence[Length]] | None = None,
    ) -> tuple[TensorVariable, ...]:
        """The shape of draws for a size and parameters, as 0-d variables.

        ``param_shapes`` are the shapes of the parameters, if they are known.

        >>> import phintys.tensor as pt
        >>> rows, columns = pt.random.normal._infer_shape(None, [pt.dvector(), pt.zeros((3, 1))])
        >>> rows.eval()
        array(3)
        """
        given = [as_tensor_variable(p) for p in dist_params]
        node = self.make_node(random_generator_type.make_variable(), size, *given)
        params = self.dist_params(node)
        shapes = [shape_tuple(p) for p in given] if param_shapes is None else param_shapes
        padded = [
            (*([as_length(1)] * (p.type.ndim - len(s))), *map(as_length, s))
            for p, s in zip(params, shapes, strict=True)
        ]
        size_shape = [as_length(n) for n in getattr(self.size_param(node).type, "shape", ())]
        return infer_shape(node, [(), size_shape, *padded])[1] or ()

    def rng_param(self, node: Apply) -> Variable:
        """The input of a node that is the generator."""
        return node.inputs[0]

    def size_param(self, node: Apply) -> Variable:
        """The input of a node that is the size: `NoneConst` or an int64 vector."""
        return node.inputs[1]

    def dist_params(self, node: Apply) -> Sequence[Variable]:
        """The inputs of a node that are the parameters."""
        return node.inputs[2:]

    def batch_ndim(self, node: Apply) -> int:
        """The number of batch axes of the draws of a node."""
        return int(node.outputs[1].type.ndim) - (self.ndim_supp or 0)

    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    # ----- perform
    def rng_fn(self, rng: np.random.Generator, *args: Any, **kwargs: Any) -> Any:
        """The numbers: ``rng_fn(rng, *parameters, size)``.

        The default calls the method ``name`` of `numpy.random.Generator`.
        """
        return getattr(np.random.Generator, str(self.name))(rng, *args, **kwargs)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        rng, size, *params = inputs
        shape = None if size is None else tuple(int(n) for n in size)
        check_shapes(node, inputs)
        if not self.inplace:
            rng, _ = bitgen.opened(rng)
        draw = self.rng_fn(rng, *params, shape)
        output_storage[0][0] = rng
        output_storage[1][0] = np.asarray(draw, dtype=node.outputs[1].type.dtype)

    def do_constant_folding(self, fgraph: FunctionGraph, node: Apply) -> bool:
        return False

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False, False], [False, False], *[[False, True] for _ in node.inputs[2:]]]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        if isinstance(cotangents[1].type, DisconnectedType):
            return [disconnected_type() for _ in inputs]
        params = [grad_undefined(self, k, x) for k, x in enumerate(inputs[2:], start=2)]
        return [disconnected_type(), disconnected_type(), *params]

    def pushforward(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], tangents: Sequence[Variable]
    ) -> list[Variable]:
        for k, t in enumerate(tangents):
            if not isinstance(t.type, DisconnectedType):
                return [disconnected_type(), grad_undefined(self, k, inputs[k])]
        return [disconnected_type(), disconnected_type()]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        """The node for batched parameters; lengths of new axes are added to a given size."""
        rng, size, *params = batched_inputs
        old = self.size_param(node)
        if not rv_size_is_none(old) and equal_computations([old], [size]):
            new = max(p.type.ndim - v.type.ndim for p, v in zip(params, self.dist_params(node)))
            whole = self.make_node(rng, None, *params)
            shapes = [(), (), *(shape_tuple(p) for p in self.dist_params(whole))]
            lengths = list((infer_shape(whole, shapes)[1] or ())[:new])
            size = concatenate([as_tensor_variable(lengths), size]) if lengths else size
        return self.make_node(rng, size, *params)

    # ----- user function
    def __call__(
        self,
        *args: Any,
        size: Size = None,
        name: str | None = None,
        rng: GeneratorLike | None = None,
        dtype: DTypeLike | None = None,
        return_next_rng: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The draw, or with ``return_next_rng`` the pair of the generator after it and the draw.

        Parameters
        ----------
        args
            the parameters of the distribution
        size
            the batch shape, which includes that of the parameters; None: that of the parameters
        name
            of the variable of the draw
        rng
            a variable of a generator, or a generator; None: a new shared one
        dtype
            of the draw; ValueError unless both it and the distribution's own are floats, or neither
        """
        op = self._in_dtype(dtype)
        rng = shared_rng() if rng is None else rng
        next_rng, draw = op.make_node(rng, size, *args, **kwargs).outputs
        draw.name = name or draw.name
        return (next_rng, draw) if return_next_rng else draw

    def _in_dtype(self, dtype: DTypeLike | None) -> RandomVariable:
        """This op for draws of a dtype; None: its own, where floatX is config.floatX."""
        own = config.floatX if self.dtype == "floatX" else str(self.dtype)
        dtype = own if dtype is None else dtypes.as_dtype(dtype)
        if (dtype in dtypes.FLOAT) != (own in dtypes.FLOAT) or dtype in dtypes.COMPLEX:
            raise ValueError(f"{self} draws numbers like those of {own}, not {dtype}.")
        if dtype == self.dtype:
            return self
        return self.with_props(dtype=dtype)

    def with_props(self, **changes: Any) -> Self:
        """An op like this one with other values of some of its ``__props__``.

        >>> import phintys.tensor as pt
        >>> pt.random.normal.with_props(dtype="float32").dtype
        'float32'
        """
        props = {name: getattr(self, name) for name in self.__props__}
        return type(self)(**(props | changes))

    def __str__(self) -> str:
        return f'{self.name}_rv{{"{self.signature}"}}'
