"""`ifelse`: the values of one of two branches, of which only that one is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.errors import MethodNotDefined
from phintys.gradient.guards import Guard, Guarding
from phintys.gradient.rules import is_null, zeros_like
from phintys.graph.op import Op, Storage
from phintys.graph.type import DisconnectedType, HasDataType, HasShape, Type, disconnected_type
from phintys.graph.variable import Apply, Variable
from phintys.inner.from_graph import OpFromGraph
from phintys.tensor.aliases import TensorLike
from phintys.tensor.axes import shape_padright
from phintys.tensor.convert import as_argument
from phintys.tensor.creation import broadcast_batches
from phintys.tensor.elemwise import functions
from phintys.tensor.shape import length, specify_shape
from phintys.tensor.static import (
    as_length,
    get_underlying_scalar_constant_value,
    known_length,
)
from phintys.tensor.type import TensorType
from phintys.tensor.type_other import as_symbolic
from phintys.tensor.variable import TensorVariable

__all__ = ["IfElse", "ifelse"]


class IfElse(Guarding, Op):
    """The first ``n_outs`` of the values if the condition holds, else the others.

    Inputs: the condition, a number; ``n_outs`` values for when it is not 0; ``n_outs`` values for
    when it is 0.  When a function is compiled, what only one branch needs is moved into a
    `LazyIfElse`, which computes it if that branch is taken.

    Parameters
    ----------
    n_outs
        the number of outputs
    as_view
        whether results may share memory with inputs; results are copied in any case
    name
        a label; equality ignores it
    """

    # ----- class and static shape
    __props__ = ("as_view", "n_outs")

    def __init__(self, n_outs: int, as_view: bool = False, name: str | None = None) -> None:
        self.n_outs, self.as_view, self.name = int(n_outs), bool(as_view), name

    def make_node(self, condition: Any, *branches: Any) -> Apply:
        """The node; both branches have ``n_outs`` values of equal dtypes and ranks.

        ValueError for another number of values.  TypeError if the condition is no number, or the
        types of both branches do not fit.
        """
        n = self.n_outs
        if len(branches) != 2 * n:
            raise ValueError(
                f"{self} takes a condition and {2 * n} values, {n} for each branch, not "
                f"{len(branches)} values."
            )
        condition = as_argument(condition, "The condition of ifelse")
        if condition.type.ndim != 0:
            raise TypeError(
                f"The condition of ifelse must be a number, not an array: {condition} has type "
                f"{condition.type}. Use switch for an array of conditions."
            )
        pairs = [_converted(a, b) for a, b in zip(branches[:n], branches[n:])]
        outputs = [common_type(a.type, b.type).make_variable() for a, b in pairs]
        thens, elses = [a for a, _ in pairs], [b for _, b in pairs]
        return Apply(self, [condition, *thens, *elses], outputs)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        condition, n = node.inputs[0], self.n_outs
        pairs = zip(shapes[1 : n + 1], shapes[n + 1 :], strict=True)
        return [_shape(condition, a, b) for a, b in pairs]

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        start = 1 if inputs[0] else self.n_outs + 1
        for cell, value in zip(output_storage, inputs[start:]):
            cell[0] = value

    # ----- derivatives: that of the branch that is not taken is zero; see `gradient/guards.py`
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        rows = [[i == k for k in range(self.n_outs)] for i in range(self.n_outs)]
        return [[False] * self.n_outs, *rows, *rows]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        condition, *branches = inputs
        known = [k for k, g in enumerate(cotangents) if _is_derivative(g)]
        found = [disconnected_type() if not is_null(g) else g for g in cotangents] * 2
        for side in (0, 1):
            places = [side * self.n_outs + k for k in known]
            pairs = [(cotangents[k], zeros_like(branches[i])) for k, i in zip(known, places)]
            for i, g in zip(places, self._selected(condition, pairs, bool(side))):
                found[i] = g
        return [disconnected_type(), *found]

    def guarded(self, v: Variable) -> tuple[Guard, Variable] | None:
        node = v.owner
        if node is None:
            return None
        for side in (True, False):
            if _is_zero(chosen(node, v, not side)):
                return Guard(node.inputs[0], side, IfElse(1)), chosen(node, v, side)
        return None

    def restricted(self, guard: Guard, value: Variable, zeros: Variable) -> Variable:
        pair = (value, zeros) if guard.side else (zeros, value)
        return IfElse(1).make_node(guard.condition, *pair).outputs[0]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        condition, *branches = inputs
        found: list[Any] = [disconnected_type() for _ in outputs]
        pairs: dict[int, tuple[Any, Any]] = {}
        for k in range(self.n_outs):
            places = (k, k + self.n_outs)
            both = [tangents[i + 1] for i in places]
            nulls = [t for t in both if is_null(t)]
            if nulls:
                found[k] = nulls[0]
            elif any(_is_derivative(t) for t in both):
                zeros = [zeros_like(branches[i]) for i in places]
                filled = [t if _is_derivative(t) else z for t, z in zip(both, zeros)]
                pairs[k] = (filled[0], filled[1])
        for k, t in zip(pairs, self._selected(condition, list(pairs.values()), False)):
            found[k] = t
        return found

    def _selected(
        self, condition: Variable, pairs: Sequence[tuple[Any, Any]], swapped: bool
    ) -> list[Variable]:
        """For each pair the first if the condition holds, else the second; the other way round."""
        if not pairs:
            return []
        first, second = ([p[i] for p in pairs] for i in ((1, 0) if swapped else (0, 1)))
        op = IfElse(len(pairs), self.as_view, self.name)
        return list(op(condition, *first, *second, return_list=True))

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        """The node for a batch; for a batch of conditions `switch`, which computes both branches.

        MethodNotDefined for a batch of conditions, and values that are no tensors; ShapeError if
        values of both branches then have other lengths.
        """
        condition, *branches = batched_inputs
        pairs = list(zip(branches[: self.n_outs], branches[self.n_outs :]))
        ranks = [getattr(v.type, "ndim", None) for v in node.outputs]
        if condition.type.ndim == 0:
            pairs = [_as_batches(a, b, n) for (a, b), n in zip(pairs, ranks)]
            return self.make_node(condition, *(a for a, _ in pairs), *(b for _, b in pairs))
        if None in ranks:
            raise MethodNotDefined(f"{self} has a batch of conditions, and values without axes.")
        inputs = [v.type.make_variable() for v in batched_inputs]
        condition, *branches = inputs
        pairs = list(zip(branches[: self.n_outs], branches[self.n_outs :]))
        chosen = [
            functions.switch(shape_padright(condition, n or 0), _of_lengths(a, b, n or 0), b)
            for (a, b), n in zip(pairs, ranks)
        ]
        return OpFromGraph(inputs, chosen, inline=True).make_node(*batched_inputs)

    def __str__(self) -> str:
        labels = [self.name, "inplace" if self.as_view else None]
        return f"if{{{','.join([text for text in labels if text])}}}"


def chosen(node: Apply, output: Variable, side: bool) -> Variable:
    """The input of an `IfElse` node that an output is if the condition has an outcome."""
    start = 1 if side else 1 + node.op.n_outs
    return node.inputs[start + node.outputs.index(output)]


# ------------------------------------------------------------------------- two branches


def common_type(a: Type[Any], b: Type[Any]) -> Type[Any]:
    """The narrowest type that the values of both types have; lengths that differ are not known.

    TypeError if dtypes or ranks differ, or there is none.

    >>> import phintys.tensor as pt
    >>> common_type(pt.tensor(shape=(2, 3)).type, pt.tensor(shape=(2, 4)).type)
    TensorType(float64, shape=(2, None))
    """
    if a.is_super(b):
        return a
    if b.is_super(a):
        return b
    ndims = [t.ndim if isinstance(t, HasShape) else None for t in (a, b)]
    if ndims[0] != ndims[1]:
        raise TypeError(
            f"Both branches of ifelse must have the same number of dimensions, not {a} and {b}."
        )
    dtypes = [t.dtype if isinstance(t, HasDataType) else None for t in (a, b)]
    if dtypes[0] != dtypes[1]:
        raise TypeError(f"Both branches of ifelse must have the same dtype, not {a} and {b}.")
    if type(a) is not type(b) or not (isinstance(a, HasShape) and isinstance(b, HasShape)):
        raise TypeError(f"The branches of ifelse have types that do not fit: {a} and {b}.")
    return a.clone(shape=tuple([n if n == m else None for n, m in zip(a.shape, b.shape)]))


def _converted(a: Any, b: Any) -> tuple[Variable, Variable]:
    """Two values of a branch each as variables; a number takes the dtype of the other one."""
    if isinstance(a, Variable) or not isinstance(b, Variable):
        a = as_symbolic(a)
        return a, b if isinstance(b, Variable) else _like(b, a)
    return _like(a, b), b


def _like(value: Any, other: Variable) -> Variable:
    """A value as a constant, in the type of ``other`` if that has it, whatever its lengths."""
    type_ = other.type
    if isinstance(type_, TensorType):
        type_ = type_.clone(shape=(None,) * type_.ndim)
    try:
        return type_.filter_variable(value)
    except (TypeError, ValueError):
        return as_symbolic(value)


def _is_zero(v: Variable) -> bool:
    """Whether all elements of a variable are known to be 0."""
    if not isinstance(v.type, TensorType):
        return False
    found = get_underlying_scalar_constant_value(v, raise_not_constant=False)
    return not isinstance(found, Variable) and bool(found == 0)


def _is_derivative(g: Variable) -> bool:
    return not isinstance(g.type, DisconnectedType) and not is_null(g)


def _shape(condition: Variable, a: Any, b: Any) -> Any:
    """The shape of an output, from those of both branches; None if one is not known."""
    if a is None or b is None:
        return None
    return tuple([n if n is m else _length(condition, n, m) for n, m in zip(a, b, strict=True)])


def _length(condition: Variable, a: Any, b: Any) -> Variable:
    a, b = as_length(a), as_length(b)
    known = known_length(a)
    if known is not None and known == known_length(b):
        return a
    return IfElse(1).make_node(condition, a, b).outputs[0]


def _as_batches(a: Any, b: Any, ndim: int | None) -> tuple[Any, Any]:
    """Both values with the same leading axes, if one of them has any."""
    if ndim is None or a.type.ndim == b.type.ndim:
        return a, b
    first, second = broadcast_batches((a, b), (ndim, ndim))
    return first, second


def _of_lengths(a: TensorVariable, b: TensorVariable, ndim: int) -> TensorVariable:
    """``a``, whose last ``ndim`` lengths are asserted to be those of ``b``: `switch` broadcasts."""
    first = b.type.ndim - ndim
    lengths = [length(b, axis) for axis in range(first, b.type.ndim)]
    return specify_shape(a, [*[None] * (a.type.ndim - ndim), *lengths])


# ------------------------------------------------------------------------- user function


def ifelse(
    condition: TensorLike, then_branch: Any, else_branch: Any, name: str | None = None
) -> Any:
    """The value of one of two branches; only that branch is computed.

    Parameters
    ----------
    condition : a number; the branch of 0 and False is ``else_branch``, of others ``then_branch``
    then_branch, else_branch : a variable or value each, or a list of them each, of equal lengths
    name : a label for the node

    The values of both branches have equal dtypes and numbers of dimensions; a Python number takes
    the dtype of the value in the other branch.  Static lengths that differ are unknown in the
    result.  Returns a variable, or a list of variables if a list of values is given.

    ValueError if the branches have different numbers of values.  TypeError if their types do not
    fit, or the condition is an array (see `switch`).

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> y = ifelse(x.sum() > 0, pt.log(x), -x)
    >>> y.eval({x: [-1.0, -2.0]})
    array([1., 2.])
    >>> phintys.grad(y.sum(), x).eval({x: [0.5, 0.25]})
    array([2., 4.])
    """
    single = not (isinstance(then_branch, list | tuple) or isinstance(else_branch, list | tuple))
    thens, elses = (
        list(branch) if isinstance(branch, list | tuple) else [branch]
        for branch in (then_branch, else_branch)
    )
    if len(thens) != len(elses):
        raise ValueError(
            f"Both branches of ifelse must have the same number of values; then_branch has "
            f"{len(thens)}, else_branch has {len(elses)}."
        )
    found = IfElse(len(thens), name=name)(condition, *thens, *elses, return_list=True)
    return found[0] if single else found
