"""`Elemwise`, a scalar function applied to every element, and `DimShuffle`, for axes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.exceptions import AxisError

from phintys.config import config
from phintys.dims import ONE
from phintys.errors import DroppedAxisError, ShapeError, did_you_mean
from phintys.graph.builder import Builder, V
from phintys.graph.ignored import ignores
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes, static_shapes
from phintys.graph.type import DisconnectedType, NullType
from phintys.graph.variable import Apply, Variable
from phintys.memo import Memo
from phintys.scalar import dtypes
from phintys.scalar.broadcasting import broadcast_shapes, broadcast_to
from phintys.scalar.conversion import converted
from phintys.scalar.op import TABLE, ScalarOp, Undefined
from phintys.tensor import convert
from phintys.tensor.aliases import Arrays, DTypeLike, Place, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorConstant, Tensors, TensorVariable

# ============================================================================ DimShuffle


class DimShuffle(Op):
    """Permute, drop and insert axes.

    Parameters
    ----------
    input_ndim
        rank of the input
    new_order
        for each axis of the result an input axis, or ``"x"`` for a new axis of length 1.
        Input axes that are not listed are dropped; their length must be 1.
    """

    # ----- class and static shape
    __props__ = ("input_ndim", "new_order")
    is_linear = True
    handles_missing = False
    view_map = {0: [0]}

    def __init__(self, *, input_ndim: int, new_order: Sequence[Place]) -> None:
        self.input_ndim = input_ndim
        self.new_order: tuple[Place, ...] = tuple(
            ["x" if o == "x" else operator.index(o) for o in new_order]
        )
        self.shuffle = [o for o in self.new_order if not isinstance(o, str)]
        self.drop = [i for i in range(input_ndim) if i not in self.shuffle]
        self.augment = [i for i, o in enumerate(self.new_order) if o == "x"]
        if len(set(self.shuffle)) != len(self.shuffle):
            raise ValueError(f"An axis is listed twice in the new order {self.new_order}.")
        for o in self.shuffle:
            if not 0 <= o < input_ndim:
                raise ValueError(
                    f"The new order {self.new_order} names axis {o} of {input_ndim} axes."
                )
        in_order = self.shuffle == sorted(self.shuffle)
        self.is_transpose = not in_order
        self.is_squeeze = bool(self.drop) and not self.augment and in_order
        self.is_expand_dims = bool(self.augment) and not self.drop and in_order
        self.is_left_expand_dims = self.is_expand_dims and self.augment == list(
            range(len(self.augment))
        )
        self.is_matrix_transpose = not self.drop and self.new_order == (
            *range(input_ndim - 2),
            input_ndim - 1,
            input_ndim - 2,
        )
        self._hash = hash((DimShuffle, self.input_ndim, self.new_order))
        self._memo: Memo[TensorType, TensorType] = Memo(32, "types of results")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DimShuffle)
            and type(self) is type(other)
            and self.new_order == other.new_order
            and self.input_ndim == other.input_ndim
        )

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        out_type = self._memo[x.type]
        if out_type is None:
            out_type = self._memo.keep(x.type, self._infer(x))
        return Apply(self, [x], [out_type.variable_type(out_type, None, None, None)])

    def _infer(self, x: TensorVariable) -> TensorType:
        if x.ndim != self.input_ndim:
            raise TypeError(f"{self} takes {self.input_ndim} dimensions; {x} has {x.ndim}.")
        try:
            return x.type.clone(shape=static_shapes(self, [x])[0])
        except ShapeError as exc:
            raise DroppedAxisError(str(exc)) from None

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        for axis in self.drop:
            s.equal(x[axis], 1, f"Wrong length of the dropped axis {axis}")
        return [tuple([ONE if isinstance(o, str) else x[o] for o in self.new_order])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        (x,) = inputs
        if self.drop:
            check_shapes(node, inputs)
        out = x.transpose([*self.shuffle, *self.drop])
        shape = list(out.shape[: len(self.shuffle)])
        for axis in self.augment:
            shape.insert(axis, 1)
        output_storage[0][0] = out.reshape(shape)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        (g,) = cotangents
        back: list[Place] = ["x"] * self.input_ndim
        for i, o in enumerate(self.new_order):
            if not isinstance(o, str):
                back[o] = i
        return [dimshuffle(g, back)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        batch = x.ndim - self.input_ndim
        moved: list[Place] = ["x" if o == "x" else o + batch for o in self.new_order]
        return DimShuffle(input_ndim=x.ndim, new_order=[*range(batch), *moved]).make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (x,) = inputs
        for axis in reversed(self.drop):
            x = b.squeeze(x, axis)
        rank = {o: i for i, o in enumerate(sorted(self.shuffle))}
        x = b.permute(x, [rank[o] for o in self.shuffle])
        for axis in self.augment:
            x = b.expand(x, axis)
        return x

    def __str__(self) -> str:
        if self.is_expand_dims:
            return f"ExpandDims{{{_axes_text(self.augment)}}}"
        if self.is_squeeze:
            return f"Squeeze{{{_axes_text(self.drop)}}}"
        if self.is_matrix_transpose:
            return "MatrixTranspose"
        if self.is_transpose and not self.augment and not self.drop:
            return f"Transpose{{axes={tuple(self.shuffle)}}}"
        return f"DimShuffle{{order=[{','.join(map(str, self.new_order))}]}}"


_shuffles: Memo[Any, DimShuffle] = Memo(128, "shuffles", weak=True)


def dimshuffle(x: TensorLike, *pattern: int | str | Sequence[int | str]) -> TensorVariable:
    """Rearrange the axes of ``x``: ``dimshuffle(x, 1, "x", 0)`` or ``dimshuffle(x, (1, "x", 0))``.

    Each entry is an axis of ``x`` or ``"x"``, a new axis of length 1.  Axes that are not named are
    dropped and must have length 1.
    """
    x = as_tensor_variable(x)
    first = pattern[0] if len(pattern) == 1 else None
    given: Sequence[Any] = first if isinstance(first, list | tuple) else pattern
    ndim = x.type.ndim
    order: tuple[Place, ...] = tuple(["x" if o == "x" else axis_of(o, ndim) for o in given])
    if order == tuple(range(ndim)):
        return x
    return _shuffle(ndim, order)(x)


def _axes_text(axes: Sequence[int]) -> str:
    """``axis=0``, or ``axes=(0, 2)``."""
    return f"axis={axes[0]}" if len(axes) == 1 else f"axes={tuple(axes)}"


def _shuffle(ndim: int, order: tuple[Place, ...]) -> DimShuffle:
    """The memoized `DimShuffle` with this order."""
    op = _shuffles[ndim, order]
    if op is None:
        op = _shuffles.keep((ndim, order), DimShuffle(input_ndim=ndim, new_order=order))
    return op


def axis_of(axis: Any, ndim: int) -> int:
    """An axis of ``ndim`` as a non-negative int.

    AxisError of NumPy, a ValueError and IndexError, if it is out of range; TypeError if it is no
    integer.
    """
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(axis, ndim)
    return axis % ndim


@cache
def _padding(given: int, ndim: int) -> DimShuffle:
    left: list[Place] = ["x"] * (ndim - given)
    return _shuffle(given, (*left, *range(max(given - ndim, 0), given)))


def pad_left(x: TensorVariable, ndim: int) -> TensorVariable:
    """``x`` with new axes on the left, so that it has ``ndim`` axes."""
    return _padding(x.type.ndim, ndim)(x)


convert.pad_left.append(pad_left)

# ============================================================================== Elemwise


class Elemwise(Op):
    """A scalar op applied to every element, with broadcasting.

    Inputs of lower rank get axes of length 1 on the left.  An axis broadcasts only where its length
    is known to be 1 when the graph is built; lengths that differ at run time are an error.

    Parameters
    ----------
    scalar_op
        the function of one element
    inplace_pattern
        ``{output: input}`` whose memory may be reused (accepted in users' graphs; the
        compiler plans storage itself)
    name, nfunc_spec, openmp
        a label; a NumPy function's ``(name, nin, nout)``, that of the scalar op by default;
        accepted for compatibility
    """

    # ----- class and static shape
    __props__ = ("scalar_op", "inplace_pattern")
    __match_args__ = ("scalar_op",)

    @ignores("openmp")
    def __init__(
        self,
        scalar_op: ScalarOp,
        inplace_pattern: dict[int, int] | None = None,
        name: str | None = None,
        nfunc_spec: tuple[str, int, int] | None = None,
        openmp: bool | None = None,
    ) -> None:
        self.scalar_op = scalar_op
        self.inplace_pattern = dict(inplace_pattern or {})
        self.destroy_map = {o: [i] for o, i in self.inplace_pattern.items()}
        self.name = name
        self.nfunc_spec = nfunc_spec or scalar_op.nfunc_spec
        self.__doc__ = scalar_op.doc or type(self).__doc__
        self._hash = hash((type(self), scalar_op, tuple(sorted(self.inplace_pattern.items()))))
        self._memo: Memo[Any, tuple[TensorType, ...]] = Memo(64, "types of results")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Elemwise)
            and type(self) is type(other)
            and self.scalar_op == other.scalar_op
            and self.inplace_pattern == other.inplace_pattern
        )

    @property
    def rule_key(self) -> Op:
        return self.scalar_op

    @property
    def in_python(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.scalar_op.in_python

    @property
    def commutative(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return bool(self.scalar_op.commutative)

    if TYPE_CHECKING:  # of a function with one result

        def __call__(
            self,
            *inputs: TensorLike,
            name: str | None = None,
            return_list: Literal[False] = False,
            **kwargs: Any,
        ) -> TensorVariable: ...

    def outer(self, x: TensorLike, y: TensorLike) -> TensorVariable:
        """The function of each element of ``x`` and each of ``y``: the axes of ``x`` come first.

        TypeError if it is no function of two numbers.

        >>> import phintys.tensor as pt
        >>> pt.add.outer([1, 2], [10, 20]).eval()
        array([[11, 21],
               [12, 22]])
        """
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        self.scalar_op.check_arity(2)
        return self(dimshuffle(x, *range(x.type.ndim), *["x"] * y.type.ndim), y)

    def make_node(self, *inputs: TensorLike) -> Apply:
        args: Sequence[Any] = inputs  # `Apply` checks that they are variables
        out_types = self._memo[config.floatX, *[getattr(x, "type", None) for x in inputs]]
        if out_types is None:  # the memo has types of tensors of equal rank
            args = _operands(self._typed_numbers(inputs))
            key = (config.floatX, *[a.type for a in args])
            out_types = self._memo[key]
            if out_types is None:
                out_types = self._memo.keep(key, self._infer(args))
        return Apply(self, args, [TensorVariable(t, None, None, None) for t in out_types])

    def _typed_numbers(self, inputs: Sequence[TensorLike]) -> Sequence[TensorLike]:
        """The inputs with Python numbers as constants where other inputs decide their dtypes.

        Floats without any variable or array get floatX, so that precision is not lost without
        notice.  Numbers that are not negative get uint64 in remainders and the like of uint64, as
        in NumPy: int8 and uint64 together are float64.
        """
        numbers = [x for x in inputs if type(x) in NUMBERS]
        if len(numbers) == len(inputs):
            dtype = dtypes.float_choices()[-1]
            return [convert.constant(x, dtype=dtype) if type(x) is float else x for x in inputs]
        if not numbers or not self.scalar_op.facts.get("unsigned_literals"):
            return inputs
        others = [x for x in inputs if type(x) not in NUMBERS]
        if any(getattr(x, "dtype", None) != "uint64" for x in others):
            return inputs
        fits = [type(x) is int and 0 <= x < 2**64 for x in inputs]
        return [convert.constant(x, dtype="uint64") if fit else x for x, fit in zip(inputs, fits)]

    def _infer(self, args: Tensors) -> tuple[TensorType, ...]:
        found = self.scalar_op.output_dtypes(*(a.type.dtype for a in args))
        return tuple(map(TensorType, found, static_shapes(self, args)))

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        return [s.broadcast(shapes)] * self.scalar_op.nout

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        first = inputs[0].shape if inputs else ()
        if any([x.shape != first for x in inputs]):
            check_shapes(node, inputs)
        results = self.scalar_op.compute(*inputs)
        if len(output_storage) == 1:
            results = (results,)
        for cell, value, out in zip(output_storage, results, node.outputs):
            if value.ndim != out.type.ndim:
                value = broadcast_to(value, broadcast_shapes(*(x.shape for x in inputs)))
            value = converted(value, out.type.dtype)
            fresh = value.base is None
            for x in inputs:
                fresh = fresh and value is not x
            cell[0] = value if fresh else value.copy()

    # ----- derivative
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Sequence[Variable]
    ) -> list[Variable | None]:
        return self._pull_back(inputs, outputs, cotangents, [True] * len(inputs))

    def wanted_pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors, wanted: Sequence[bool]
    ) -> Sequence[Variable | None]:
        if type(self).pullback is not Elemwise.pullback:
            return self.pullback(inputs, outputs, cotangents)
        return self._pull_back(inputs, outputs, cotangents, wanted)

    def _pull_back(
        self,
        inputs: Tensors,
        outputs: Tensors,
        cotangents: Sequence[Variable],
        wanted: Sequence[bool],
    ) -> list[Variable | None]:
        found = self.scalar_op.wanted_cotangents(functions, inputs, outputs, cotangents, wanted)
        return [_cotangent(x, g) if w else None for x, g, w in zip(inputs, found, wanted)]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        given = [None if isinstance(t.type, DisconnectedType) else t for t in tangents]
        found = self.scalar_op.tangents(functions, inputs, outputs, given)
        pairs = zip(outputs, found if len(outputs) > 1 else [found])
        return [_tangent(out, t) for out, t in pairs]

    @property
    def is_variadic(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return bool(self.scalar_op.is_variadic)

    @property
    def is_fully_connected(self) -> bool:
        own = type(self).connection_pattern is not Elemwise.connection_pattern
        return not own and bool(self.scalar_op.is_fully_connected)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        pattern: list[list[bool]] = self.scalar_op.connection_pattern(node)
        return pattern

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return self.make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V | list[V]:
        return self.scalar_op.lower(node, b, *inputs)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_hash", "_memo", "__doc__")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["scalar_op"], state["inplace_pattern"], state["name"])

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.inplace_pattern and elementwise(self.scalar_op) is self:
            return elementwise, (self.scalar_op,)
        return Elemwise, (self.scalar_op, self.inplace_pattern, self.name)

    def __str__(self) -> str:
        return self.name or str(self.scalar_op).capitalize()


def _operands(inputs: Sequence[TensorLike]) -> list[TensorVariable]:
    """The inputs as tensors of equal rank; numbers become constants of that rank directly."""
    ndim = 0
    for x in inputs:
        if isinstance(x, TensorVariable) and x.type.ndim > ndim:
            ndim = x.type.ndim
    args = [
        x
        if isinstance(x, TensorVariable)
        else convert.constant(x, ndim=ndim)
        if type(x) in NUMBERS
        else as_tensor_variable(x)
        for x in inputs
    ]
    ndims = [a.type.ndim for a in args]
    if not ndims or min(ndims) == (ndim := max(ndims)):
        return args
    return [a if a.type.ndim == ndim else pad_left(a, ndim) for a in args]


NUMBERS = frozenset((int, float, complex))
_elementwise: Memo[ScalarOp, Elemwise] = Memo(256, "elementwise functions", weak=True)


def elementwise(scalar_op: ScalarOp | str) -> Elemwise:
    """The memoized `Elemwise` of a scalar op, given itself or by name."""
    if isinstance(scalar_op, str):
        scalar_op = TABLE[scalar_op]
    found = _elementwise[scalar_op]
    if found is None:
        found = _elementwise.keep(scalar_op, Elemwise(scalar_op))
    return found


def scalar_elemwise(
    *symbol: Callable[..., Any],
    nfunc: str | None = None,
    nin: int | None = None,
    nout: int | None = None,
    symbolname: str | None = None,
) -> Any:
    """A decorator: the `Elemwise` of the scalar op that has the name of a function.

    Its documentation is that of the function, whose body is not used.

    Parameters
    ----------
    nfunc, nin, nout : a NumPy function, as in ``nfunc_spec`` of `Elemwise`
    symbolname : the name of the scalar op; that of the function by default

    ValueError if there is no scalar op of this name.

    >>> @scalar_elemwise
    ... def cos(angle):
    ...     "The cosine of an angle in radians."
    >>> cos([0.0]).eval(), cos.__doc__
    (array([1.]), 'The cosine of an angle in radians.')
    """

    def construct(function: Callable[..., Any]) -> Elemwise:
        name = symbolname or function.__name__
        if name not in TABLE:
            raise ValueError(f"There is no scalar op {name!r}.{did_you_mean(name, TABLE)}")
        spec = (nfunc, nin or TABLE[name].nin, nout or TABLE[name].nout) if nfunc else None
        found = Elemwise(TABLE[name], nfunc_spec=spec)
        found.__doc__ = function.__doc__ or found.__doc__
        return found

    return construct(*symbol) if symbol else construct


class _Functions:
    """The elementwise functions as attributes, for derivatives: ``functions.exp(x)``."""

    def __getattr__(self, name: str) -> Elemwise:
        if name.startswith("__"):
            raise AttributeError(name)
        found = elementwise(name)
        setattr(self, name, found)
        return found

    @staticmethod
    def of(op: ScalarOp | str) -> Elemwise:
        return elementwise(op)

    @staticmethod
    def cast(x: TensorVariable, dtype: str) -> TensorVariable:
        """`cast`, which converts constants of one element immediately."""
        if isinstance(x, TensorConstant) and x.type.dtype != dtype and x.data.size == 1:
            return convert.constant(x.data, dtype=dtype)
        return cast(x, dtype)


functions = _Functions()


def cast(x: TensorLike, dtype: DTypeLike) -> TensorVariable:
    """``x`` with another dtype; ``x`` itself if it has that dtype.

    Float to int truncates.  Complex to real raises TypeError: take `real`, `imag` or `abs`.
    """
    x = as_tensor_variable(x)
    dtype = dtypes.as_dtype(dtype)
    if x.type.dtype == dtype:
        return x
    if dtypes.is_complex(x.type.dtype) and not dtypes.is_complex(dtype):
        raise TypeError(f"{x} is complex: take its real, imag or abs before casting to {dtype}.")
    return elementwise(f"cast_{dtype}")(x)


# ------------------------------------------------------------------------ derivatives


def sum_to(g: TensorVariable, x: TensorVariable) -> TensorVariable:
    """``g`` summed over the axes along which ``x`` was broadcast (known length 1 in ``x``)."""
    axes = [i for i, (n, m) in enumerate(zip(x.type.shape, g.type.shape)) if n == 1 and m != 1]
    if not axes:
        return g
    summed = sums[0](g, axes)
    order: list[Place] = []
    for i in range(x.ndim):
        order.append("x" if i in axes else i - sum(a < i for a in axes))
    return dimshuffle(summed, order)


#: ``sums[0](x, axes)`` is the sum; set by `phintys.tensor.reduce` to avoid an import cycle.
sums: list[Callable[[TensorVariable, Sequence[int]], TensorVariable]] = []


def _cotangent(x: TensorVariable, g: TensorVariable | Undefined | None) -> Variable:
    """The cotangent of the tensor ``x``, from the result ``g`` of a scalar op's pullback."""
    if g is None:
        return zeros_of(x)
    if isinstance(g, Undefined):
        return NullType(g.why)()
    return sum_to(match_dtype(g, x), x)


def _tangent(out: TensorVariable, t: TensorVariable | Undefined | None) -> Variable:
    if isinstance(t, Undefined):
        return NullType(t.why)()
    return zeros_of(out) if t is None else match_dtype(functions.second(out, t), out)


def match_dtype(g: TensorVariable, x: TensorVariable) -> TensorVariable:
    """A derivative cast to the dtype of its variable, unless the variable is discrete."""
    if dtypes.is_discrete(x.type.dtype) or g.type.dtype == x.type.dtype:
        return g
    if dtypes.is_complex(g.type.dtype) and not dtypes.is_complex(x.type.dtype):
        g = functions.real(g)
    return cast(g, x.type.dtype)


def conjugate(x: TensorVariable) -> TensorVariable:
    """``x``, conjugated if it is complex: cotangents need the adjoint, not the transpose."""
    return functions.conj(x) if dtypes.is_complex(x.type.dtype) else x


def zeros_of(x: TensorVariable) -> TensorVariable:
    """A zero derivative in the shape of ``x``, with dtype floatX if ``x`` is discrete."""
    dtype = config.floatX if dtypes.is_discrete(x.type.dtype) else x.type.dtype
    type_ = convert.literal_type(dtype, x.type.ndim)
    return functions.second(x, TensorConstant(type_, np.zeros((1,) * x.type.ndim, dtype)))


def one() -> TensorConstant:
    """The length 1 as a shape entry."""
    return convert.constant(1, dtype="int64")


# ==================================================================== what computes a variable


def scalar_op_name(node: Apply | None) -> str | None:
    """The name of the scalar function that an elementwise node applies, or None."""
    if node is None or type(node.op) is not Elemwise:
        return None
    return node.op.scalar_op.name


def function_of(v: Variable) -> tuple[str | None, list[Variable]]:
    """The name of the elementwise function that computes a variable, and its arguments."""
    return scalar_op_name(v.owner), [] if v.owner is None else list(v.owner.inputs)
