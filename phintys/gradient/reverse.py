"""Reverse mode: from the cotangents of outputs to those of what they depend on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from phintys.errors import DisconnectedInputError, NullTypeGradError
from phintys.graph.op import Op
from phintys.graph.origin import describe, inherit
from phintys.graph.traversal import toposort
from phintys.graph.type import DisconnectedType, NullType, disconnected_type
from phintys.graph.variable import Apply, Variable

OnDisconnected = Literal["raise", "warn", "ignore"]
ReturnDisconnected = Literal["zero", "none", "disconnected"]


def grad(
    cost: Variable | None,
    wrt: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
    add_names: bool = True,
    known_grads: Mapping[Variable, Variable] | None = None,
    return_disconnected: ReturnDisconnected = "zero",
    null_gradients: Literal["raise", "return"] = "raise",
) -> Any:
    """The gradient of a scalar ``cost`` with respect to variables of its graph.

    Parameters
    ----------
    cost
        0-d variable; may be None if ``known_grads`` is given
    wrt
        a variable, or a list or tuple of variables; the result has the same form
    consider_constant
        variables (by identity) behind which nothing is differentiated
    disconnected_inputs
        what to do if ``cost`` does not depend on one of ``wrt``: raise `DisconnectedInputError`, warn, or
        ignore it
    add_names
        name the results ``(dcost/dx)`` where both have names
    known_grads
        gradients that are known already, by variable
    return_disconnected
        the gradient of what is disconnected: ``"zero"``, ``"none"`` (None) or ``"disconnected"`` (a variable of
        `DisconnectedType`)
    null_gradients
        raise `NullTypeGradError` where a gradient is not defined, or return the NullType variable

    Gradients of integer variables are float (floatX) zeros, unless something continuous depends on
    them.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> phintys.grad(x**2, x).eval({x: 3.0})
    array(6.)
    """
    variables = [wrt] if isinstance(wrt, Variable) else list(wrt)
    starts = _start(cost, known_grads)
    for v in variables:
        if not isinstance(v, Variable):
            raise TypeError(f"wrt must be variables of the graph, not {v!r}.")
    found = _backpropagate(starts, variables, consider_constant or ())
    results: list[Any] = []
    for v in variables:
        g = found.get(v)
        if g is None or isinstance(g.type, DisconnectedType):
            results.append(_disconnected(cost, v, disconnected_inputs, return_disconnected))
            continue
        if isinstance(g.type, NullType) and null_gradients == "raise":
            raise NullTypeGradError(
                f"The gradient with respect to {v} is not defined: {g.type.why_null}"
                f"\n{describe(v.origin)}".rstrip()
            )
        if add_names and cost is not None and cost.name and v.name and g.name is None:
            g.name = f"(d{cost.name}/d{v.name})"
        results.append(g)
    if isinstance(wrt, Variable):
        return results[0]
    return tuple(results) if isinstance(wrt, tuple) else results


def pullback(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    cotangents: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
) -> Any:
    """The product of ``cotangents`` with the Jacobian of ``f`` (a vector-Jacobian product).

    ``f`` and ``cotangents`` have equal shapes, one cotangent per output.  The result has the form of ``wrt``.
    """
    outputs = [f] if isinstance(f, Variable) else list(f)
    given = [cotangents] if not isinstance(cotangents, list | tuple) else list(cotangents)
    if len(outputs) != len(given):
        raise ValueError(f"{len(outputs)} outputs need as many cotangents, not {len(given)}.")
    known: dict[Variable, Any] = {}
    for out, g in zip(outputs, given):
        g = out.type.filter_variable(g) if not isinstance(g, Variable) else g
        known[out] = known[out] + g if out in known else g
    return grad(
        None,
        wrt,
        consider_constant=consider_constant,
        disconnected_inputs=disconnected_inputs,
        known_grads=known,
        return_disconnected=return_disconnected,
    )


def Lop(
    f: Any,
    wrt: Any,
    eval_points: Any,
    consider_constant: Any = None,
    disconnected_inputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
) -> Any:
    """Older name of `pullback`."""
    return pullback(
        f, wrt, eval_points, consider_constant, disconnected_inputs, return_disconnected
    )


def subgraph_grad(
    wrt: Sequence[Variable],
    end: Sequence[Variable],
    start: Mapping[Variable, Variable] | None = None,
    cost: Variable | None = None,
    details: bool = False,
) -> Any:
    """Backpropagate one piece of a graph.

    From ``cost`` and / or known gradients ``start`` back to the variables ``end`` (where the next piece
    begins) and to the parameters ``wrt`` met on the way.  Returns (gradients of wrt, gradients of
    end); with ``details`` also those of ``start`` and of the cost alone.
    """
    if start is None and cost is None:
        raise ValueError("subgraph_grad needs start, cost or both.")
    wrt, end = list(wrt), list(end)
    targets = [*wrt, *(v for v in end if v not in wrt)]

    def part(known: Any, of: Variable | None) -> list[Any]:
        return grad(
            of,
            targets,
            known_grads=known,
            consider_constant=end,
            disconnected_inputs="ignore",
        )

    start_grads = part(start, None) if start is not None else None
    cost_grads = part(None, cost) if cost is not None else None
    if start_grads is None or cost_grads is None:
        total = start_grads if cost_grads is None else cost_grads
    else:
        total = [a + b for a, b in zip(start_grads, cost_grads)]
    assert total is not None
    by_variable = dict(zip(targets, total))
    pair = [by_variable[v] for v in wrt], [by_variable[v] for v in end]
    return (*pair, start_grads, cost_grads) if details else pair


# ------------------------------------------------------------------------ the sweep


def _start(
    cost: Variable | None, known_grads: Mapping[Variable, Variable] | None
) -> dict[Variable, Variable]:
    starts: dict[Variable, Variable] = {}
    for v, g in dict(known_grads or {}).items():
        if not isinstance(g, Variable):
            g = v.type.filter_variable(g)
        if getattr(g.type, "dtype", "float64")[0] in "iub":
            raise TypeError(
                f"The known gradient of {v} must be of a float dtype, not {g.type.dtype}."
            )
        starts[v] = g
    if cost is None:
        if not starts:
            raise ValueError("grad needs a cost, known_grads, or both.")
        return starts
    if isinstance(cost.type, NullType):
        raise ValueError(f"The gradient of a NaN cost was asked for: {cost.type.why_null}")
    if getattr(cost.type, "ndim", 0) != 0:
        raise TypeError(
            f"grad needs a scalar cost; {cost} has {cost.type.ndim} dimensions (type {cost.type}). "
            "Reduce it first, e.g. with .sum() or .mean(), or use jacobian."
            f"\n{describe(cost.origin)}".rstrip()
        )
    if cost not in starts:
        starts[cost] = _ones_like(cost)
    return starts


def _ones_like(v: Any) -> Variable:
    dtype = getattr(v.type, "dtype", None)
    return v.ones_like(dtype="floatX" if dtype is not None and dtype[0] in "iub" else dtype)


def _zeros_like(v: Any) -> Any:
    dtype = getattr(v.type, "dtype", None)
    if dtype is None:
        return disconnected_type()
    return v.zeros_like(dtype="floatX" if dtype[0] in "iub" else dtype)


def connection_pattern(node: Apply) -> list[list[bool]] | None:
    """A node's connection pattern, checked; None if everything is connected."""
    if type(node.op).connection_pattern is Op.connection_pattern:
        return None
    pattern = node.op.connection_pattern(node)
    ok = (
        isinstance(pattern, list)
        and len(pattern) == len(node.inputs)
        and all(isinstance(row, list) and len(row) == len(node.outputs) for row in pattern)
    )
    if not ok:
        raise TypeError(
            f"{node.op}.connection_pattern must return a list with one list of bools per input, "
            f"not {pattern!r}."
        )
    return pattern


def _connected_nodes(
    roots: Iterable[Variable], wrt: Sequence[Variable], stop: Iterable[Variable]
) -> tuple[list[Apply], set[Variable]]:
    """Nodes through which ``roots`` depend on ``wrt``, inputs first, and the variables on the way."""
    reached = set(wrt)
    nodes: list[Apply] = []
    blocked = set(stop)
    for node in toposort(roots, blockers=blocked):
        pattern = None
        hit = False
        for i, v in enumerate(node.inputs):
            if v not in reached or v in blocked:
                continue
            pattern = pattern or connection_pattern(node) or _all
            for k, out in enumerate(node.outputs):
                if pattern is _all or pattern[i][k]:  # type: ignore[index]
                    reached.add(out)
                    hit = True
        if hit:
            nodes.append(node)
    return nodes, reached


_all: Any = object()


def _backpropagate(
    starts: dict[Variable, Variable], wrt: Sequence[Variable], constant: Sequence[Variable]
) -> dict[Variable, Any]:
    """The gradient of every variable of ``wrt`` that ``starts`` reach."""
    # what is wanted although it is held constant gets a gradient; nothing passes through it
    stop = set(constant)
    nodes, reached = _connected_nodes(starts, wrt, stop)
    terms: dict[Variable, list[Any]] = {v: [g] for v, g in starts.items()}
    for node in reversed(nodes):
        cotangents = [_collect(terms, out) if out in reached else None for out in node.outputs]
        if all(g is None for g in cotangents):
            continue
        _propagate(node, cotangents, terms, reached)
    return {v: _collect(terms, v) for v in wrt}


def _collect(terms: dict[Variable, list[Any]], v: Variable) -> Any:
    """The sum of the gradient terms of a variable; None if there are none."""
    found = terms.get(v)
    if not found:
        return None
    if len(found) > 1:
        null = [t for t in found if isinstance(t.type, NullType)]
        if null:
            found[:] = null[:1]
        else:
            with inherit(v.origin or (v.owner.origin if v.owner else None)):
                found[:] = [_add(found)]
    return found[0]


def _add(terms: list[Any]) -> Any:
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    return total


def _propagate(
    node: Apply, cotangents: list[Any], terms: dict[Variable, list[Any]], reached: set[Variable]
) -> None:
    null = next((g for g in cotangents if g is not None and isinstance(g.type, NullType)), None)
    given = [disconnected_type() if g is None else g for g in cotangents]
    if null is None:
        with inherit(node.origin):
            found = node.op.pullback(node.inputs, node.outputs, given)
        _check(node, found)
    else:
        found = [null] * len(node.inputs)
    pattern = connection_pattern(node)
    for i, (v, g) in enumerate(zip(node.inputs, found)):
        connected = pattern is None or any(
            p and c is not None for p, c in zip(pattern[i], cotangents)
        )
        if not connected:
            if not isinstance(g.type, DisconnectedType | NullType):
                _contradiction(node, i, "is not connected", "a gradient")
            continue
        if v not in reached or isinstance(g.type, DisconnectedType):
            continue
        terms.setdefault(v, []).append(g)


def _contradiction(node: Apply, i: int, says: str, got: str) -> None:
    raise ValueError(
        f"{node.op}: connection_pattern says that input {i} {says}, but pullback returned {got} for "
        "it. The two must agree."
    )


def _check(node: Apply, found: Any) -> None:
    if not isinstance(found, list | tuple) or len(found) != len(node.inputs):
        count = len(found) if isinstance(found, list | tuple) else found
        raise ValueError(
            f"{node.op}.pullback must return one variable per input ({len(node.inputs)}), not {count}."
        )
    for i, (v, g) in enumerate(zip(node.inputs, found)):
        if g is None:
            raise TypeError(
                f"{node.op}.pullback returned None for input {i}. Return zeros, "
                "disconnected_type() or grad_undefined(...)."
            )
        if not isinstance(g, Variable):
            raise TypeError(f"{node.op}.pullback returned {g!r} for input {i}, not a variable.")
        if isinstance(g.type, DisconnectedType | NullType):
            continue
        dtype = getattr(g.type, "dtype", "float64")
        if dtype[0] in "iub":
            raise TypeError(
                f"{node.op}.pullback returned a gradient of dtype {dtype} for input {i}; gradients are "
                "never integers."
            )
        if getattr(g.type, "ndim", None) != getattr(v.type, "ndim", None):
            raise ValueError(
                f"{node.op}.pullback returned a gradient of type {g.type} for input {i} of type {v.type}: "
                "the ranks differ."
            )


def _disconnected(
    cost: Any, v: Variable, policy: OnDisconnected, result: ReturnDisconnected
) -> Any:
    message = (
        f"{cost if cost is not None else 'The output'} does not depend on {v} (type {v.type}), or only through its shape, "
        "an index or an operation without derivative. Pass disconnected_inputs='ignore' to get zeros."
    )
    if policy == "raise":
        raise DisconnectedInputError(f"{message}\n{describe(v.origin)}".rstrip())
    if policy == "warn":
        warnings.warn(message, stacklevel=3)
    elif policy != "ignore":
        raise ValueError(f"disconnected_inputs must be raise, warn or ignore, not {policy!r}.")
    if result == "zero":
        return _zeros_like(v)
    if result == "none":
        return None
    if result == "disconnected":
        return disconnected_type()
    raise ValueError(f"return_disconnected must be zero, none or disconnected, not {result!r}.")
