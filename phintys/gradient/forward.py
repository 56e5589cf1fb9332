"""Forward-mode differentiation: Jacobian-vector products."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from phintys.errors import MethodNotDefined, NullTypeGradError
from phintys.gradient.barriers import disconnected_grad
from phintys.gradient.forms import other_form
from phintys.gradient.reverse import (
    OnDisconnected,
    Pattern,
    ReturnDisconnected,
    add,
    backpropagate,
    derivative_of,
    disconnected,
    in_form_of,
    pull_back_node,
    variables_of,
)
from phintys.gradient.rules import ask, connection_pattern, is_null, zeros_like
from phintys.graph.origin import inherit
from phintys.graph.traversal import toposort
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply, Variable


def pushforward(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    tangents: Any,
    disconnected_outputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
    use_op_pushforward: bool = True,
) -> Any:
    """The product of the Jacobian of ``f`` with ``tangents`` (a Jacobian-vector product).

    Every node is differentiated by its op's ``pushforward``; an op without one (or every op, with
    ``use_op_pushforward=False``) by two pullbacks.

    Parameters
    ----------
    f
        a variable, or a list or tuple of variables; the result has the same form
    wrt
        a variable, or a list of variables
    tangents
        one for each of ``wrt``, of the same shape and a float or complex dtype
    disconnected_outputs
        what to do if an output does not depend on ``wrt``: ``"raise"`` `DisconnectedInputError`,
        ``"warn"`` or ``"ignore"``
    return_disconnected
        the tangent of such an output: ``"zero"``, ``"none"`` (None) or ``"disconnected"`` (a
        variable of `DisconnectedType`)

    Each result has shape and dtype of its output; the dtype is floatX for integer outputs.

    Raises
    ------
    TypeError, ValueError
        if a tangent has a wrong dtype or rank, or their number is wrong
    NullTypeGradError
        if a derivative is not defined

    >>> import phintys, phintys.tensor as pt
    >>> x, t = pt.dvector("x"), pt.dvector("t")
    >>> phintys.pushforward(x**2, x, t).eval({x: [1.0, 2.0], t: [1.0, 10.0]})
    array([ 2., 40.])
    """
    outputs, inputs = variables_of(f, "f"), variables_of(wrt, "wrt")
    given = list(tangents) if isinstance(tangents, list | tuple) else [tangents]
    if len(inputs) != len(given):
        raise ValueError(f"{len(inputs)} variables need as many tangents, not {len(given)}.")
    start = {v: derivative_of(v, t, "tangent") for v, t in zip(inputs, given)}
    found = forward_sweep(outputs, start, use_op_pushforward)
    for i, out in enumerate(outputs):
        if found[i] is None:
            found[i] = disconnected(out, inputs, out, disconnected_outputs, return_disconnected)
        elif is_null(found[i]):
            raise NullTypeGradError(
                f"The tangent of {out} is not defined: {found[i].type.why_null}"
            )
    return in_form_of(f, found)


def pushforward_through_pullback(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    tangents: Sequence[Variable],
    disconnected_outputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
) -> list[Any]:
    """The tangents of ``outputs`` by two pullbacks of each node: a list, as of `pushforward`.

    That works because a pullback is linear in the cotangents; see J. Towns, "A new trick for
    calculating Jacobian vector products", 2017.

    >>> import phintys, phintys.tensor as pt
    >>> x, t = pt.dvector("x"), pt.dvector("t")
    >>> (y,) = pushforward_through_pullback([x**2], [x], [t])
    >>> y.eval({x: [1.0, 2.0], t: [1.0, 10.0]})
    array([ 2., 40.])
    """
    return pushforward(
        list(outputs),
        list(inputs),
        list(tangents),
        disconnected_outputs,
        return_disconnected,
        False,
    )


def Rop(
    f: Any,
    wrt: Any,
    eval_points: Any,
    disconnected_outputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
    use_op_rop_implementation: bool = True,
) -> Any:
    """Older name of `pushforward`, with ``tangents`` called ``eval_points``; gives a FutureWarning.

    >>> import warnings, phintys, phintys.tensor as pt
    >>> x, t = pt.dvector("x"), pt.dvector("t")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FutureWarning)
    ...     product = phintys.Rop(x**2, x, t)
    >>> product.eval({x: [1.0, 2.0], t: [1.0, 10.0]})
    array([ 2., 40.])
    """
    warnings.warn("Rop is deprecated, use pushforward instead.", FutureWarning, stacklevel=2)
    return pushforward(
        f, wrt, eval_points, disconnected_outputs, return_disconnected, use_op_rop_implementation
    )


def forward_sweep(
    outputs: Sequence[Variable],
    start: Mapping[Variable, Any],
    by_op: bool = True,
    stop: Collection[Variable] = (),
) -> list[Any]:
    """The tangents of ``outputs``, given those of ``start``; None for an independent output.

    Nothing is pushed to the variables ``stop`` from what computes them.
    """
    tangents = dict(start)
    for node in toposort(outputs, blockers=[*start, *stop]):
        given = [tangents.get(v) for v in node.inputs]
        if all(t is None for t in given):
            continue
        with inherit(node.origin):
            form = other_form(node, start)
            if form is None:
                found = push_forward_node(node, given, by_op)
            else:
                known = {v: t for v in form.leaves if (t := tangents.get(v)) is not None}
                found = forward_sweep([form.result], known, by_op, form.leaves)
                if found == [None] and any(v in tangents for v in form.absent):
                    found = [zeros_like(node.outputs[0])]
        for out, t in zip(node.outputs, found):
            if out not in tangents and t is not None:
                tangents[out] = t
    return [tangents.get(out) for out in outputs]


def push_forward_node(node: Apply, given: Sequence[Any], by_op: bool = True) -> list[Any]:
    """Tangents of the outputs of a node (or None), from those of its inputs (or None)."""
    null = next((t for t in given if t is not None and is_null(t)), None)
    if null is not None:
        return [null] * node.nout
    pattern = connection_pattern(node)
    connected = [
        any(t is not None and (pattern is None or pattern[i][k]) for i, t in enumerate(given))
        for k in range(node.nout)
    ]
    if not any(connected):
        return [None] * node.nout
    if by_op:
        try:
            found = _tangents(node, pattern, given, connected)
            return [t if yes else None for t, yes in zip(found, connected)]
        except MethodNotDefined:
            pass  # the op has no such rule
    return [
        _by_two_pullbacks(node, pattern, k, given) if yes else None
        for k, yes in enumerate(connected)
    ]


def _tangents(
    node: Apply, pattern: Pattern, given: Sequence[Any], wanted: Sequence[bool]
) -> list[Any]:
    """The tangents of the ``wanted`` outputs; an op is asked only if one is continuous."""
    if pattern is not None:  # an index that is computed from x has a tangent, which nothing uses
        given = [t if any(row) else None for row, t in zip(pattern, given)]
    if node.op.handles_missing:
        given = [disconnected_type() if t is None else t for t in given]
        return ask(node, "pushforward", given, node.outputs, wanted)
    discrete = [out.type.is_discrete for out in node.outputs]
    known = [zeros_like(out) if d else None for out, d in zip(node.outputs, discrete)]
    asked = [w and not d for w, d in zip(wanted, discrete)]
    if not any(asked):
        return known
    given = [
        t
        if t is not None
        else zeros_like(v)
        if pattern is None or any(pattern[i])
        else disconnected_type()
        for i, (v, t) in enumerate(zip(node.inputs, given))
    ]
    found = ask(node, "pushforward", given, node.outputs, asked)
    return [t if new else zeros for t, new, zeros in zip(found, asked, known)]


def _by_two_pullbacks(node: Apply, pattern: Pattern, k: int, given: Sequence[Any]) -> Any:
    """The tangent ``J t`` of output ``k``, as the derivative of ``<J^T v, t>`` with respect to v.

    That works because the pullback ``J^T v`` is linear in v.
    """
    out = node.outputs[k]
    if out.type.is_discrete:
        return zeros_like(out)
    # The value of v does not matter.  disconnected_grad hides from the op's rule that it is zero.
    v = disconnected_grad(zeros_like(out))
    cotangents = [v if i == k else None for i in range(len(node.outputs))]
    terms: dict[Variable, list[Any]] = {}
    needed = [t is not None for t in given]
    for i, g in pull_back_node(node, pattern, cotangents, needed):
        if needed[i]:
            if is_null(g):
                return g
            terms.setdefault(g, []).append(given[i])
    if not terms:
        return None
    starts = {g: add(g, ts) for g, ts in terms.items()}
    found = backpropagate(starts, [v], [*node.inputs, *node.outputs])[v]
    return zeros_like(out) if found is None else found
