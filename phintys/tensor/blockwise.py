"""`Blockwise`, which applies an op to every item of a batch, and `vectorize`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from phintys.config import config
from phintys.dims import Dim
from phintys.errors import ShapeError, UnsupportedError
from phintys.gradient.forward import push_forward_node
from phintys.gradient.reverse import pull_back_node
from phintys.gradient.rules import connection_pattern
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.replace import graph_replace
from phintys.graph.results import declared_result
from phintys.graph.shapes import (
    Requirement,
    Shape,
    ShapeContext,
    check_shapes,
    plain_answer,
    result_shapes,
)
from phintys.graph.traversal import ancestors, variable_depends_on
from phintys.graph.type import DisconnectedType, NullType, disconnected_type
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.graph.vectorize import vectorize_graph
from phintys.inner.from_graph import OpFromGraph
from phintys.memo import Memo
from phintys.scalar.conversion import converted
from phintys.scalar.type import ScalarType, as_scalar
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import Alloc
from phintys.tensor.elemwise import DimShuffle, dimshuffle, functions, pad_left, sum_to
from phintys.tensor.shape import length
from phintys.tensor.static import as_length, entries, known_length
from phintys.tensor.type import TensorType, typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["vectorize"]

CoreDims = tuple[tuple[str, ...], ...]
#: variables, each with its number of batch axes
Batches = Sequence[tuple[TensorVariable, int]]


def parse_signature(signature: str) -> tuple[CoreDims, CoreDims]:
    """Names of the core axes of inputs and outputs.

    >>> parse_signature("(m,k),(k)->(m)")
    ((('m', 'k'), ('k',)), (('m',),))
    """
    group = r"\([^()]*\)"
    text = signature.replace(" ", "")
    if not re.fullmatch(rf"({group}(,{group})*)?->{group}(,{group})*", text):
        raise ValueError(f"{signature!r} is not a signature such as '(m,k),(k)->(m)'.")
    left, right = (
        tuple(
            tuple(name for name in part.split(",") if name)
            for part in re.findall(r"\(([^()]*)\)", side)
        )
        for side in text.split("->")
    )
    return left, right


class Blockwise(Op):
    """An op applied to every item of a batch.

    The leading axes of the inputs are batch axes; they broadcast as in `Elemwise`, where lengths
    are known to be 1.

    Parameters
    ----------
    core_op
        the op of one item
    signature
        core axes of inputs and outputs, as ``"(m,k),(k,n)->(m,n)"``; None: the op's
        ``gufunc_signature``
    name
        a label
    gufunc_spec
        (name, inputs, outputs) of a NumPy or SciPy function that computes batches
    destroy_map
        as for `Op`
    """

    # ----- class and static shape
    __props__ = ("core_op", "signature", "gufunc_spec", "destroyed")
    __match_args__ = ("core_op",)

    def __init__(
        self,
        core_op: Op,
        signature: str | None = None,
        name: str | None = None,
        gufunc_spec: tuple[str, int, int] | None = None,
        destroy_map: Mapping[int, Sequence[int]] | None = None,
        **kwargs: Any,
    ) -> None:
        signature = signature or core_op.gufunc_signature
        if signature is None:
            raise ValueError(f"Blockwise of {core_op} needs a signature: the op has none.")
        self.core_op, self.signature, self.name = core_op, signature, name
        spec = gufunc_spec or core_op.gufunc_spec
        self.gufunc_spec = None if spec is None else (spec[0], spec[1], spec[2])
        self.inputs_sig, self.outputs_sig = parse_signature(signature)
        self.default_output = core_op.default_output
        self.destroy_map = {o: list(inputs) for o, inputs in (destroy_map or {}).items()}
        self.destroyed = tuple(sorted((o, tuple(i)) for o, i in self.destroy_map.items()))
        self._memo: Memo[Any, tuple[str, ...]] = Memo(32, "dtypes of results")

    @property
    def in_python(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        missing = self.core_op.lower_batched is None
        return self.core_op.in_python or ("the op of one item has no lowering" if missing else "")

    def make_node(self, *inputs: TensorLike) -> Apply:
        args = [as_tensor_variable(x) for x in inputs]
        if len(args) != len(self.inputs_sig):
            raise ValueError(f"{self} takes {len(self.inputs_sig)} inputs, not {len(args)}.")
        counts = [x.type.ndim - len(sig) for x, sig in zip(args, self.inputs_sig)]
        for x, sig, count in zip(args, self.inputs_sig, counts):
            if count < 0:
                raise ValueError(f"{self} takes at least {len(sig)} dimensions for {x}: {x.type}.")
        batch_ndim = max(counts, default=0)
        padded = [
            x if n == batch_ndim else pad_left(x, x.type.ndim + batch_ndim - n)
            for x, n in zip(args, counts)
        ]
        return typed_node(self, padded, *self._dtypes_of(padded, batch_ndim))

    def _dtypes_of(self, args: Sequence[Variable], n: int) -> Sequence[str]:
        """The dtypes of the results: those of the core op, which are kept by the types of inputs.

        They are not kept if its shapes depend on values, as its dtypes might then.
        """
        key = (config.floatX, *[x.type for x in args])
        found = self._memo[key]
        if found is None:
            found = tuple([o.type.dtype for o in self._core_node(args, n).outputs])
            if self.core_op.shape_rule is not None and plain_answer(self, args) is not None:
                self._memo.keep(key, found)
        return found

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        n = len(shapes[0]) - len(self.inputs_sig[0]) if shapes else 0
        batch = s.broadcast([x[:n] for x in shapes])
        items = [x[n:] for x in shapes]
        if self.core_op.shape_rule is None:
            found = self._stated_otherwise(s, n, items)
        else:
            found = self.core_op.shape_rule(ItemShapes(s, n), *items)
        return [(*batch, *lengths) for lengths in found]

    def _stated_otherwise(self, s: ShapeContext, n: int, items: Sequence[Shape]) -> list[list[Dim]]:
        """Shapes of one item, of an op without a rule: by names, static types, ``infer_shape``."""
        s.cacheable = False  # static types may depend on constants
        core = self._core_node(s.inputs, n)
        named: dict[str, Dim] = {}
        for sig, lengths in zip(self.inputs_sig, items):
            for name, d in zip(sig, lengths):
                named.setdefault(name, d)

        def length(k: int, axis: int) -> Dim:
            known = core.outputs[k].type.shape[axis]
            if known is not None:
                return Dim.const(known)
            found = named.get(self.outputs_sig[k][axis])
            if found is not None:
                return found
            return s.unknown(None, lambda *shapes: self._core_length(core, n, shapes, k, axis))

        return [[length(k, i) for i in range(len(sig))] for k, sig in enumerate(self.outputs_sig)]

    def _core_node(self, args: Sequence[Variable], n: int) -> Apply:
        """The core op applied to one item; inputs without batch axes are used as they are."""
        node: Apply = self.core_op.make_node(*[_first_item(x, n) for x in args])
        for out, sig in zip(node.outputs, self.outputs_sig, strict=True):
            if not isinstance(out.type, TensorType) or out.type.ndim != len(sig):
                raise ValueError(f"{self.core_op} gives {out.type}: not as {self.signature} says.")
        return node

    def batch_ndim(self, node: Apply) -> int:
        """The number of batch axes."""
        return node.outputs[0].type.ndim - len(self.outputs_sig[0])

    def core_node(self, node: Apply) -> Apply:
        """The core op applied to new variables that represent one item."""
        found = getattr(node.tag, "core_node", None)
        if found is None:
            counts = [self.batch_ndim(node) or 0] * len(node.inputs)
            items = [
                TensorType(x.type.dtype, x.type.shape[n:])() for x, n in zip(node.inputs, counts)
            ]
            found = node.tag.core_node = self.core_op.make_node(*items)
        return found

    def _core_of(self, outputs: Tensors) -> Apply:
        """`core_node` of the node with these outputs."""
        node = outputs[0].owner
        assert node is not None
        return self.core_node(node)

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        n = self.batch_ndim(node)
        batch = np.broadcast_shapes(*(x.shape[:n] for x in inputs))
        for cell, value, out in zip(
            output_storage, self._compute(node, inputs, batch), node.outputs
        ):
            value = converted(np.asarray(value), out.type.dtype)
            shared = any(np.may_share_memory(value, x) for x in inputs)
            cell[0] = value.copy() if shared else value

    def _compute(self, node: Apply, inputs: Arrays, batch: tuple[int, ...]) -> Sequence[np.ndarray]:
        core = self.core_node(node)
        whole = self.core_op.perform_batched
        if whole is not None:
            return whole(core, inputs)
        if self.gufunc_spec is not None:
            found = _named_function(self.gufunc_spec[0])(*inputs)
            return found if self.gufunc_spec[2] > 1 else (found,)
        return self._loop(node, core, inputs, batch)

    def _loop(
        self, node: Apply, core: Apply, inputs: Arrays, batch: tuple[int, ...]
    ) -> list[np.ndarray]:
        """Call the core op's ``perform`` for each item in a loop."""
        n = len(batch)
        items = [np.broadcast_to(x, (*batch, *x.shape[n:])) for x in inputs]
        results: list[Any] = [None] * len(core.outputs)
        for place in np.ndindex(batch):
            storage: Storage = [[None] for _ in core.outputs]
            self.core_op.perform(core, [np.array(x[place]) for x in items], storage)
            for k, (value,) in enumerate(storage):
                value = declared_result(core, k, value)
                if results[k] is None:
                    results[k] = np.empty((*batch, *value.shape), value.dtype)
                if results[k].shape[n:] != value.shape:
                    raise ShapeError(
                        f"Items of a batch have results of shapes {results[k].shape[n:]} and "
                        f"{value.shape} in {self}."
                    )
                results[k][place] = value
        if results and results[0] is None:
            try:
                shapes = result_shapes(node, inputs)
            except ShapeError as exc:
                raise ShapeError(f"{exc}  This is an empty batch of shape {batch}.") from exc
            return [np.empty(s, o.type.dtype) for s, o in zip(shapes, node.outputs)]
        return results

    def _core_length(
        self, core: Apply, n: int, shapes: Sequence[Sequence[TensorVariable]], k: int, axis: int
    ) -> TensorVariable | None:
        """A length by ``infer_shape`` of the core op; None if it depends on values of an item."""
        if self.core_op.infer_shape is None:
            return None
        found = self.core_op.infer_shape(core, [s[n:] for s in shapes])[k]
        if found is None or variable_depends_on(as_tensor_variable(found[axis]), core.inputs):
            return None
        return found[axis]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return self.core_op.connection_pattern(self.core_node(node))

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Sequence[Variable]
    ) -> list[Variable]:
        core = self._core_of(outputs)
        items = [_item(g, out) for g, out in zip(cotangents, core.outputs)]
        found = pull_back_node(core, connection_pattern(core), items, [True] * core.nin)
        return self._batched(dict(found), core, inputs, outputs, (items, cotangents), inputs)

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        core = self._core_of(outputs)
        items = [_item(t, x) for t, x in zip(tangents, core.inputs)]
        found = enumerate(push_forward_node(core, items))
        return self._batched(dict(found), core, inputs, outputs, (items, tangents), outputs)

    def _batched(
        self,
        found: Mapping[int, Variable | None],
        core: Apply,
        inputs: Tensors,
        outputs: Tensors,
        seeds: tuple[Sequence[Variable | None], Sequence[Variable]],
        like: Tensors,
    ) -> list[Variable]:
        """The derivatives for a batch, from those for one item, in the shapes of ``like``."""
        replace: dict[Variable, Variable] = dict(
            zip([*core.inputs, *core.outputs], [*inputs, *outputs])
        )
        replace.update((item, seed) for item, seed in zip(*seeds) if item is not None)
        results = [
            disconnected_type() if (v := found.get(k)) is None else v for k in range(len(like))
        ]
        defined = [k for k, v in enumerate(results) if not isinstance(v.type, _NO_VALUE)]
        batched = vectorize_graph([results[k] for k in defined], replace)
        for k, v in zip(defined, batched):
            x = like[k]
            v = dimshuffle(v, ["x"] * (x.type.ndim - v.type.ndim) + list(range(v.type.ndim)))
            v = sum_to(v, x)
            spread = any(m == 1 and n != 1 for m, n in zip(v.type.shape, x.type.shape))
            results[k] = functions.second(x, v) if spread else v
        return results

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return self.make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        batched = self.core_op.lower_batched
        if batched is None:
            return NotImplemented
        if self.core_op.shape_rule is not None:
            b.result_shapes(node, *inputs)
        return batched(self.core_node(node), b, *inputs)

    def __str__(self) -> str:
        return self.name or f"Blockwise{{{self.core_op}, {self.signature}}}"


class ItemShapes(ShapeContext):
    """Runs the rule of a core op on one item of a batch: values of an item are not known.

    Requirements are those of the batch, whose context is ``outer``.
    """

    def __init__(self, outer: ShapeContext, n: int) -> None:
        self.outer = outer
        super().__init__(outer.op, [_first_item(x, n) for x in outer.inputs])

    @property
    def asks(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.outer.asks

    @asks.setter
    def asks(self, value: bool) -> None:
        self.outer.asks = value

    @property
    def cacheable(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.outer.cacheable

    @cacheable.setter
    def cacheable(self, value: bool) -> None:
        self.outer.cacheable = value

    def require(self, wanted: Requirement) -> None:
        self.outer.require(wanted)

    def constant(self, i: int) -> Any:
        self.asks, self.cacheable = True, False
        return super().constant(i)

    def literal(self, i: int) -> Any:
        self.asks, self.cacheable = True, False
        return super().literal(i)

    def _known(self, value: int | None) -> Dim:
        self.asks, self.cacheable = True, False
        return self.outer.unknown() if value is None else Dim.const(value)

    def value(self, i: int) -> Dim:
        return self._known(known_length(self.inputs[i]))

    def values(self, i: int) -> Shape:
        return tuple([self._known(known_length(n)) for n in entries(self.inputs[i])])

    def lengths(self, positions: Iterable[int]) -> Shape:
        return tuple([self.value(i) for i in positions])

    def unknown(
        self,
        number: Callable[..., int] | None = None,
        variable: Callable[..., Any] | None = None,
    ) -> Dim:
        return self.outer.unknown()


def _first_item(x: Variable, n: int) -> Variable:
    """A variable for one item of ``x``, which has ``n`` batch axes; the item if all are equal."""
    node = x.owner
    if not n:
        return x
    is_expanded = (
        node is not None and isinstance(node.op, DimShuffle) and node.op.is_left_expand_dims
    )
    if node is not None and is_expanded and len(node.op.augment) == n:
        return node.inputs[0]
    return TensorType(x.type.dtype, x.type.shape[n:])()


_NO_VALUE = (DisconnectedType, NullType)


def _item(v: Variable, core: Variable) -> Variable | None:
    """A variable for one item of a cotangent or tangent; None if there is no cotangent."""
    if isinstance(v.type, DisconnectedType):
        return None
    if isinstance(v.type, NullType):
        return v
    return TensorType(v.type.dtype, core.type.shape)()


def _named_function(path: str) -> Callable[..., Any]:
    """The function with a dotted name, such as ``numpy.linalg.det``."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def vectorize_by_items(node: Apply, *batched_inputs: TensorVariable) -> Apply:
    """A node for batched inputs that applies any op to each item, with `Blockwise`."""
    for v in (*node.inputs, *node.outputs):
        if not isinstance(v.type, TensorType):
            raise UnsupportedError(
                f"{node.op} cannot be applied to a batch: {v} is of type {v.type}, not a tensor."
            )
    left, right = (
        ",".join(
            f"({','.join(f'{kind}{i}{k}' for k in range(v.type.ndim))})" for i, v in enumerate(vs)
        )
        for kind, vs in (("i", node.inputs), ("o", node.outputs))
    )
    return Blockwise(node.op, f"{left}->{right}").make_node(*batched_inputs)


late_bound["blockwise"] = vectorize_by_items


def has_ragged_items(node: Apply, inputs: Sequence[Variable], batched: Apply) -> bool:
    """Whether the results of ``node`` for items differ in shape: lengths depend on batched values.

    ``batched`` is the node for ``inputs``, a batch of those of ``node``.
    """
    op = node.op
    if not isinstance(batched.op, Blockwise) or batched.op.core_op != op or op.shape_rule is None:
        return False
    if all(None not in v.type.shape for v in node.outputs):
        return False
    lengths = [[TensorType("int64", ())() for _ in v.type.shape] for v in node.inputs]
    shapes = op.infer_shape(node, lengths)
    if None in shapes:
        return True
    values = {v for v, new in zip(node.inputs, inputs) if new is not v}
    found = [as_length(n) for shape in shapes for n in shape]
    return not values.isdisjoint(ancestors(found, blockers=node.inputs))


late_bound["has_ragged_items"] = has_ragged_items


def graph_by_items(
    out: Variable, roots: Sequence[Variable], batched: Sequence[Variable]
) -> TensorVariable:
    """A result for batches of the variables that it is computed from, computed item by item."""
    items = [TensorType(v.type.dtype, ())() if _is_scalar(v) else v.type() for v in roots]
    values = [as_scalar(item) if _is_scalar(v) else item for v, item in zip(roots, items)]
    graph = as_tensor_variable(graph_replace(out, dict(zip(roots, values))))
    node = OpFromGraph(items, [graph]).make_node(*items)
    return vectorize_by_items(node, *map(as_tensor_variable, batched)).out


def _is_scalar(v: Variable) -> bool:
    return isinstance(v.type, ScalarType)


late_bound["by_items"] = graph_by_items


def vectorize(func: Callable[..., Any], signature: str | None = None) -> Callable[..., Any]:
    """A function of batches from ``func``, which is written for single items.

    ``signature`` names the axes of one item, as ``"(m,k),(k)->(m)"``; None: every argument is 0-d.
    A result that is the same for all items, such as a length, is repeated for each.

    >>> import phintys.tensor as pt
    >>> normalized = vectorize(lambda x: x / x.sum(), signature="(n)->(n)")
    >>> normalized(pt.as_tensor([[1.0, 3.0], [2.0, 2.0]])).eval()
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """

    def batched(*inputs: TensorLike) -> Any:
        args = [as_tensor_variable(x) for x in inputs]
        sigs = parse_signature(signature)[0] if signature else ((),) * len(args)
        if len(sigs) != len(args):
            raise ValueError(f"{signature} has {len(sigs)} inputs, {len(args)} were given.")
        for x, sig in zip(args, sigs):
            if x.type.ndim < len(sig):
                raise ValueError(f"{x} has {x.type.ndim} dimensions, {signature} needs {len(sig)}.")
        items = [
            TensorType(x.type.dtype, x.type.shape[x.type.ndim - len(sig) :])(name=x.name)
            for x, sig in zip(args, sigs)
        ]
        outputs = func(*items)
        pairs = [(x, x.type.ndim - len(sig)) for x, sig in zip(args, sigs)]

        def for_each(v: TensorVariable, item: Variable) -> TensorVariable:
            return _repeated_for_batch(v, v.type.ndim - item.type.ndim, pairs)

        found = vectorize_graph(outputs, dict(zip(items, args)))
        if isinstance(outputs, Variable):
            return for_each(found, outputs)
        repeated = [for_each(v, item) for v, item in zip(found, outputs)]
        return tuple(repeated) if isinstance(outputs, tuple) else repeated

    return batched


def _batch_lengths(args: Batches) -> list[TensorVariable]:
    """The lengths of the batch axes, to which those of the arguments broadcast."""
    found = []
    for back in range(max((n for _, n in args), default=0), 0, -1):
        axes = [(x, n - back) for x, n in args if n >= back]
        longer = [(x, k) for x, k in axes if x.type.shape[k] != 1]
        found.append(length(*(longer or axes)[0]))
    return found


def _repeated_for_batch(v: TensorVariable, count: int, args: Batches) -> TensorVariable:
    """A result with the batch axes of ``args``; repeated where it is the same for all items.

    ``count`` is the number of batch axes that it has.
    """
    batch = _batch_lengths(args)
    missing = len(batch) - count
    ones = [n == 1 and known_length(b) != 1 for n, b in zip(v.type.shape, batch[missing:])]
    if not missing and not any(ones):
        return v
    return Alloc()(v, *batch, *(length(v, k) for k in range(count, v.type.ndim)))


late_bound["repeated_for_batch"] = _repeated_for_batch
