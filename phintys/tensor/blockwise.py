"""`Blockwise`, which applies an op to every item of a batch, and `vectorize`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from phintys.errors import ShapeError, UnsupportedError
from phintys.gradient.forward import push_forward_node
from phintys.gradient.reverse import pull_back_node
from phintys.gradient.rules import connection_pattern
from phintys.graph.op import Op
from phintys.graph.traversal import variable_depends_on
from phintys.graph.type import DisconnectedType, NullType, disconnected_type
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.graph.vectorize import vectorize_graph
from phintys.scalar.conversion import converted
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.elemwise import (
    broadcast_static,
    check_broadcast,
    dimshuffle,
    functions,
    one,
    sum_to,
)
from phintys.tensor.type import TensorType

__all__ = ["vectorize"]

CoreDims = tuple[tuple[str, ...], ...]


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

    def __init__(
        self,
        core_op: Op,
        signature: str | None = None,
        name: str | None = None,
        gufunc_spec: tuple[str, int, int] | None = None,
        destroy_map: Any = None,
        **kwargs: Any,
    ) -> None:
        signature = signature or core_op.gufunc_signature
        if signature is None:
            raise ValueError(f"Blockwise of {core_op} needs a signature: the op has none.")
        self.core_op, self.signature, self.name = core_op, signature, name
        spec = gufunc_spec or core_op.gufunc_spec
        self.gufunc_spec = None if spec is None else tuple(spec)
        self.inputs_sig, self.outputs_sig = parse_signature(signature)
        self.default_output = core_op.default_output
        self.destroy_map = {o: list(inputs) for o, inputs in (destroy_map or {}).items()}
        self.destroyed = tuple(sorted((o, tuple(i)) for o, i in self.destroy_map.items()))

    def make_node(self, *inputs: Any) -> Apply:
        args = [as_tensor_variable(x) for x in inputs]
        if len(args) != len(self.inputs_sig):
            raise ValueError(f"{self} takes {len(self.inputs_sig)} inputs, not {len(args)}.")
        counts = [x.type.ndim - len(sig) for x, sig in zip(args, self.inputs_sig)]
        for x, sig, count in zip(args, self.inputs_sig, counts):
            if count < 0:
                raise ValueError(f"{self} takes at least {len(sig)} dimensions for {x}: {x.type}.")
        batch_ndim = max(counts, default=0)
        core = self._core_node(args, counts)
        padded = [
            dimshuffle(x, ["x"] * (batch_ndim - n) + list(range(x.type.ndim)))
            for x, n in zip(args, counts)
        ]
        batch = broadcast_static([x.type.shape[:batch_ndim] for x in padded], self, padded)
        outputs = [
            TensorType(o.type.dtype, batch + o.type.shape).make_variable() for o in core.outputs
        ]
        return Apply(self, padded, outputs)

    def _core_node(self, args: Sequence[Any], counts: Sequence[int]) -> Apply:
        """The core op applied to one item; inputs without batch axes are used as they are."""
        items = [
            TensorType(x.type.dtype, x.type.shape[n:])() if n else x for x, n in zip(args, counts)
        ]
        node: Apply = self.core_op.make_node(*items)
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

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        batch = self._batch_shape(node, inputs)
        for cell, value, out in zip(
            output_storage, self._compute(node, inputs, batch), node.outputs
        ):
            value = converted(np.asarray(value), out.type.dtype)
            shared = any(np.may_share_memory(value, x) for x in inputs)
            cell[0] = value.copy() if shared else value

    def _batch_shape(self, node: Apply, inputs: Sequence[Any]) -> tuple[int, ...]:
        n = self.batch_ndim(node)
        leading = [np.empty(x.shape[:n], np.bool_) for x in inputs]
        if leading and n:
            check_broadcast(node, leading)
        return np.broadcast_shapes(*(x.shape for x in leading))

    def _compute(self, node: Apply, inputs: Sequence[Any], batch: tuple[int, ...]) -> Any:
        core = self.core_node(node)
        whole = self.core_op.perform_batched
        if whole is not None:
            return whole(core, inputs)
        if self.gufunc_spec is not None:
            found = _named_function(self.gufunc_spec[0])(*inputs)
            return found if self.gufunc_spec[2] > 1 else (found,)
        return self._loop(node, core, inputs, batch)

    def _loop(
        self, node: Apply, core: Apply, inputs: Sequence[Any], batch: tuple[int, ...]
    ) -> list[np.ndarray]:
        """Call the core op's ``perform`` for each item in a loop."""
        n = len(batch)
        items = [np.broadcast_to(x, (*batch, *x.shape[n:])) for x in inputs]
        results: list[Any] = [None] * len(core.outputs)
        for place in np.ndindex(batch):
            storage: list[list[Any]] = [[None] for _ in core.outputs]
            self.core_op.perform(core, [np.array(x[place]) for x in items], storage)
            for k, (value,) in enumerate(storage):
                if results[k] is None:
                    results[k] = np.empty((*batch, *value.shape), value.dtype)
                if results[k].shape[n:] != value.shape:
                    raise ShapeError(
                        f"Items of a batch have results of shapes {results[k].shape[n:]} and "
                        f"{value.shape} in {self}."
                    )
                results[k][place] = value
        if results and results[0] is None:
            return [self._empty(node, k, inputs, batch) for k in range(len(results))]
        return results

    def _empty(
        self, node: Apply, k: int, inputs: Sequence[Any], batch: tuple[int, ...]
    ) -> np.ndarray:
        """The result of an empty batch."""
        named = self._named_lengths([x.shape for x in inputs])
        known = node.outputs[k].type.shape[len(batch) :]
        shape = [named.get(s, m) for s, m in zip(self.outputs_sig[k], known)]
        if None in shape:
            raise ShapeError(
                f"The shape of output {k} of {self} is not known for an empty batch {batch}."
            )
        return np.empty((*batch, *shape), node.outputs[k].type.dtype)

    def _named_lengths(self, shapes: Sequence[Any]) -> dict[str, Any]:
        """The length of every core axis that the signature names in an input."""
        named: dict[str, Any] = {}
        for sig, shape in zip(self.inputs_sig, shapes):
            for name, length in zip(sig, shape[len(shape) - len(sig) :]):
                named.setdefault(name, length)
        return named

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        n = self.batch_ndim(node)
        batch = [self._batch_length(node, shapes, axis) for axis in range(n)]
        named = self._named_lengths(shapes)
        inferred = self._core_shapes(node, [s[n:] for s in shapes])
        found: list[Any] = []
        for out, sig, core in zip(node.outputs, self.outputs_sig, inferred):
            lengths = [named.get(name) for name in sig]
            for k, known in enumerate(out.type.shape[n:]):
                if known is not None:
                    lengths[k] = constant(known, dtype="int64")
                elif lengths[k] is None:
                    lengths[k] = core[k]
            found.append(None if any(s is None for s in lengths) else (*batch, *lengths))
        return found

    def _batch_length(self, node: Apply, shapes: Sequence[Any], axis: int) -> Any:
        known = node.outputs[0].type.shape[axis]
        if known is not None:
            return constant(known, dtype="int64")
        free = [s[axis] for s, x in zip(shapes, node.inputs) if x.type.shape[axis] != 1]
        return free[0] if free else one()

    def _core_shapes(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Output shapes from the core op, with None where they depend on the values of an item."""
        core = self.core_node(node)
        unknown = [[None] * o.type.ndim for o in core.outputs]
        if self.core_op.infer_shape is None:
            return unknown
        found = self.core_op.infer_shape(core, shapes)
        return [
            blank
            if f is None
            else [None if variable_depends_on(as_tensor_variable(m), core.inputs) else m for m in f]
            for f, blank in zip(found, unknown)
        ]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return self.core_op.connection_pattern(self.core_node(node))

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        core = self.core_node(outputs[0].owner)
        items = [_item(g, out) for g, out in zip(cotangents, core.outputs)]
        found = pull_back_node(core, connection_pattern(core), items, [True] * core.nin)
        seeds = items, cotangents
        return self._batched(dict(found), core, inputs, outputs, seeds, inputs)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        core = self.core_node(outputs[0].owner)
        items = [_item(t, x) for t, x in zip(tangents, core.inputs)]
        found = enumerate(push_forward_node(core, items))
        return self._batched(dict(found), core, inputs, outputs, (items, tangents), outputs)

    def _batched(
        self, found: dict[int, Any], core: Apply, inputs: Any, outputs: Any, seeds: Any, like: Any
    ) -> list[Variable]:
        """The derivatives for a batch, from those for one item, in the shapes of ``like``."""
        replace = dict(zip([*core.inputs, *core.outputs], [*inputs, *outputs]))
        replace.update((item, seed) for item, seed in zip(*seeds) if item is not None)
        results = [
            disconnected_type() if found.get(k) is None else found[k] for k in range(len(like))
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
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        return self.make_node(*batched_inputs)

    # ----- lowering
    @property
    def lowers_complex(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.core_op.lowers_complex

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        batched = self.core_op.lower_batched
        return NotImplemented if batched is None else batched(self.core_node(node), b, *inputs)

    def __str__(self) -> str:
        return self.name or f"Blockwise{{{self.core_op}, {self.signature}}}"


_NO_VALUE = (DisconnectedType, NullType)


def _item(v: Any, core: Any) -> Any:
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


def vectorize_by_items(node: Apply, *batched_inputs: Any) -> Apply:
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


def vectorize(func: Callable[..., Any], signature: str | None = None) -> Callable[..., Any]:
    """A function of batches from ``func``, which is written for single items.

    ``signature`` names the axes of one item, as ``"(m,k),(k)->(m)"``; None: every argument is 0-d.

    >>> import phintys.tensor as pt
    >>> normalized = vectorize(lambda x: x / x.sum(), signature="(n)->(n)")
    >>> normalized(pt.as_tensor([[1.0, 3.0], [2.0, 2.0]])).eval()
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """

    def batched(*inputs: Any) -> Any:
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
        found = vectorize_graph(outputs, dict(zip(items, args)))
        return tuple(found) if isinstance(outputs, tuple) else found

    return batched
