"""Reverse-mode differentiation: gradients and vector-Jacobian products."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from phintys.errors import DisconnectedInputError, NullTypeGradError
from phintys.gradient.forms import other_form
from phintys.gradient.guards import guard_again, unguarded
from phintys.gradient.rules import ask, connection_pattern, is_null, zeros_like
from phintys.graph.collection import collection_paused
from phintys.graph.origin import describe, inherit, stacklevel
from phintys.graph.traversal import toposort
from phintys.graph.type import NullType, disconnected_type
from phintys.graph.variable import Apply, Variable

OnDisconnected = Literal["raise", "warn", "ignore"]
ReturnDisconnected = Literal["zero", "none", "disconnected"]
NullGradients = Literal["raise", "return"]
Pattern = list[list[bool]] | None


def grad(
    cost: Variable | None,
    wrt: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
    add_names: bool = True,
    known_grads: Mapping[Variable, Variable] | None = None,
    return_disconnected: ReturnDisconnected = "zero",
    null_gradients: NullGradients = "raise",
) -> Any:
    """The gradient of a scalar ``cost`` with respect to variables of its graph.

    Parameters
    ----------
    cost
        0-d real variable; may be None if ``known_grads`` is given
    wrt
        a variable, or a list or tuple of variables; the result has the same form
    consider_constant
        variables through which nothing is differentiated
    disconnected_inputs
        what to do if ``cost`` does not depend on one of ``wrt``: raise `DisconnectedInputError`,
        warn, or ignore it
    add_names
        name the results ``(dcost/dx)`` where both have names
    known_grads
        a dict from variables to their gradients, which are used instead of computed ones
    return_disconnected
        the gradient of a variable that ``cost`` does not depend on: ``"zero"``, ``"none"`` (None)
        or ``"disconnected"`` (a variable of `DisconnectedType`)
    null_gradients
        what to do if a gradient is not defined: ``"raise"`` `NullTypeGradError`, or ``"return"``
        the variable of `NullType`

    A gradient has the shape and dtype of its variable.  That of an integer variable is of dtype
    floatX: zero, unless something continuous depends on it.  That of a complex variable is
    ``d cost / d Re + i d cost / d Im``.

    Raises
    ------
    TypeError
        if ``cost`` is not a real scalar
    DisconnectedInputError, NullTypeGradError
        see ``disconnected_inputs`` and ``null_gradients``

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> phintys.grad(x**2, x).eval({x: 3.0})
    array(6.)
    """
    starts = _known(known_grads)
    if cost is not None:
        starts.setdefault(cost, _seed(cost))
    elif not starts:
        raise ValueError("grad needs a cost, known_grads, or both.")
    variables = variables_of(wrt, "wrt")
    found = backpropagate(starts, variables, consider_constant, fixed=set(known_grads or ()))
    results = _results(
        found, variables, cost, disconnected_inputs, return_disconnected, null_gradients
    )
    if add_names and cost is not None and cost.name:
        for v, g in zip(variables, results):
            if v.name and g is not None and g.name is None:
                g.name = f"(d{cost.name}/d{v.name})"
    return in_form_of(wrt, results)


def pullback(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    cotangents: Any,
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
) -> Any:
    """The product of ``cotangents`` with the Jacobian of ``f`` (a vector-Jacobian product).

    Parameters
    ----------
    f
        a variable, or a list of variables, which may depend on each other
    wrt
        a variable, or a list or tuple of variables; the result has the same form
    cotangents
        one for each of ``f``, of the same shape and a float or complex dtype
    consider_constant, disconnected_inputs, return_disconnected
        see `grad`

    Each result has the shape of its variable and the dtype that `grad` describes.

    Raises
    ------
    TypeError, ValueError
        if a cotangent has a wrong dtype or rank, or their number is wrong
    DisconnectedInputError, NullTypeGradError
        see `grad`

    >>> import phintys, phintys.tensor as pt
    >>> x, u = pt.dvector("x"), pt.dvector("u")
    >>> phintys.pullback(x**2, x, u).eval({x: [1.0, 2.0], u: [1.0, 10.0]})
    array([ 2., 40.])
    """
    outputs, variables = variables_of(f, "f"), variables_of(wrt, "wrt")
    given = list(cotangents) if isinstance(cotangents, list | tuple) else [cotangents]
    if len(outputs) != len(given):
        raise ValueError(f"{len(outputs)} outputs need as many cotangents, not {len(given)}.")
    starts: dict[Variable, Any] = {}
    for out, g in zip(outputs, given):
        g = derivative_of(out, g, "cotangent")
        starts[out] = add(out, [starts[out], g]) if out in starts else g
    found = backpropagate(starts, variables, consider_constant)
    results = _results(found, variables, f, disconnected_inputs, return_disconnected, "raise")
    return in_form_of(wrt, results)


def Lop(
    f: Any,
    wrt: Any,
    eval_points: Any,
    consider_constant: Any = None,
    disconnected_inputs: OnDisconnected = "raise",
    return_disconnected: ReturnDisconnected = "zero",
) -> Any:
    """Older name of `pullback`, with ``cotangents`` called ``eval_points``; gives a FutureWarning.

    >>> import warnings, phintys, phintys.tensor as pt
    >>> x, u = pt.dvector("x"), pt.dvector("u")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FutureWarning)
    ...     product = phintys.Lop(x**2, x, u)
    >>> product.eval({x: [1.0, 2.0], u: [1.0, 10.0]})
    array([ 2., 40.])
    """
    warnings.warn("Lop is deprecated, use pullback instead.", FutureWarning, stacklevel=2)
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
    """The gradients of one section of a graph, so that a graph can be differentiated in sections.

    Parameters
    ----------
    wrt
        a list of variables in this section, such as parameters
    end
        a list of the variables where this section ends: nothing is differentiated through them
    start
        a dict from variables where this section starts to their gradients, from the section before
    cost
        0-d real variable; ``start``, ``cost`` or both are given
    details
        also return the contributions of ``start`` and of ``cost``, each as a list of the gradients
        of ``wrt`` and then ``end``, or None

    Returns the pair (gradients of ``wrt``, gradients of ``end``), two lists.  Gradients of
    variables without influence are zero.

    Raises
    ------
    ValueError
        if neither ``start`` nor ``cost`` is given
    TypeError
        if ``wrt`` or ``end`` is not a list

    >>> import phintys, phintys.tensor as pt
    >>> x, w1, w2 = pt.dscalars("x", "w1", "w2")
    >>> h = x * w1
    >>> (g2,), (gh,) = phintys.subgraph_grad([w2], [h], cost=(h * w2) ** 2)
    >>> (g1,), _ = phintys.subgraph_grad([w1], [x], start={h: gh})
    >>> [g.eval({x: 1.0, w1: 2.0, w2: 3.0}).item() for g in (g1, g2)]
    [36.0, 24.0]
    """
    if start is None and cost is None:
        raise ValueError("subgraph_grad needs start, cost or both.")
    for name, given in (("wrt", wrt), ("end", end)):
        if not isinstance(given, list | tuple):
            raise TypeError(f"{name} must be a list of variables, not {given!r}.")
    targets = list(dict.fromkeys([*wrt, *end]))

    def gradients(of: Variable | None, known: Any) -> list[Any]:
        return grad(
            of,
            targets,
            known_grads=known,
            consider_constant=end,
            disconnected_inputs="ignore",
        )

    contributions = [
        None if start is None else gradients(None, start),
        None if cost is None else gradients(cost, None),
    ]
    given = [c for c in contributions if c is not None]
    total = {v: add(v, terms) for v, terms in zip(targets, zip(*given))}
    pair = [total[v] for v in wrt], [total[v] for v in end]
    return (*pair, *contributions) if details else pair


# ------------------------------------------------------------- arguments and results


def variables_of(given: Any, what: str) -> list[Variable]:
    """One variable or several as a list; TypeError, naming the argument ``what``, otherwise."""
    found = list(given) if isinstance(given, list | tuple | set | dict) else [given]
    for v in found:
        if not isinstance(v, Variable):
            raise TypeError(f"{what} must be a variable or a list of variables, not {v!r}.")
    return found


def in_form_of(given: Any, results: list[Any]) -> Any:
    """``results`` as a single variable, a tuple or a list, like ``given``."""
    if isinstance(given, Variable):
        return results[0]
    return tuple(results) if isinstance(given, tuple) else results


def derivative_of(v: Any, g: Any, what: str) -> Any:
    """``g`` as a variable that is a derivative of ``v``; ``what`` names it in messages.

    TypeError if it is discrete, ValueError if its rank is not that of ``v``.
    """
    if not isinstance(g, Variable):
        return v.type.tangent_type.filter_variable(g)
    if g.type.is_discrete:
        raise TypeError(f"The {what} of {v} must be of a float dtype; {g} is of type {g.type}.")
    if getattr(g.type, "ndim", None) != getattr(v.type, "ndim", None):
        raise ValueError(
            f"The {what} of {v} (type {v.type}) must have its rank; {g} is of type {g.type}."
        )
    return g


def _known(known_grads: Mapping[Variable, Any] | None) -> dict[Variable, Any]:
    """``known_grads`` with checked values."""
    return {v: derivative_of(v, g, "known gradient") for v, g in dict(known_grads or {}).items()}


def _seed(cost: Any) -> Any:
    """The gradient of a cost with respect to itself, 1; TypeError if it is not a real scalar."""
    if not isinstance(cost, Variable):
        raise TypeError(f"grad needs a scalar cost that is a variable, not {cost!r}.")
    made = describe(cost.origin or (cost.owner and cost.owner.origin))
    if isinstance(cost.type, NullType):
        raise ValueError(f"A NaN cost has no gradient: {cost.type.why_null}")
    if getattr(cost.type, "ndim", 0) != 0:
        raise TypeError(
            f"grad needs a scalar cost; {cost} has {cost.type.ndim} dimensions (type {cost.type}). "
            f"Reduce it first, e.g. with .sum() or .mean(), or use jacobian.\n{made}".rstrip()
        )
    if cost.type.is_complex:
        raise TypeError(
            f"grad needs a real cost; {cost} is of type {cost.type}. Take its real, imag or abs."
            f"\n{made}".rstrip()
        )
    return cost.type.tangent_ones(cost)


def _results(
    found: Mapping[Variable, Any],
    variables: Sequence[Variable],
    f: Any,
    disconnected_inputs: OnDisconnected,
    return_disconnected: ReturnDisconnected,
    null_gradients: NullGradients,
) -> list[Any]:
    """The gradients of ``variables``, with the options of `grad` applied."""
    results = [found[v] for v in variables]
    for i, (v, g) in enumerate(zip(variables, results)):
        if g is None:
            results[i] = disconnected(f, v, v, disconnected_inputs, return_disconnected)
        elif is_null(g) and null_gradients == "raise":
            raise NullTypeGradError(
                f"The gradient with respect to {v} is not defined: {g.type.why_null}"
                f"\n{describe(v.origin)}".rstrip()
            )
    return results


def disconnected(
    f: Any, wrt: Any, like: Any, policy: OnDisconnected, result: ReturnDisconnected
) -> Any:
    """The result where ``f`` does not depend on ``wrt``; zeros have the shape of ``like``.

    ``policy`` and ``result`` are `grad`'s ``disconnected_inputs`` and ``return_disconnected``.
    """
    message = (
        f"{_names(f)} does not depend on {_names(wrt)}, or only through a shape, an index or an "
        "operation without derivative. Pass 'ignore' to get zeros."
    )
    if policy == "raise":
        raise DisconnectedInputError(f"{message}\n{describe(like.origin)}".rstrip())
    if policy == "warn":
        warnings.warn(message, stacklevel=stacklevel())
    elif policy != "ignore":
        raise ValueError(f"disconnected_inputs must be raise, warn or ignore, not {policy!r}.")
    if result == "zero":
        return zeros_like(like)
    if result == "none":
        return None
    if result == "disconnected":
        return disconnected_type()
    raise ValueError(f"return_disconnected must be zero, none or disconnected, not {result!r}.")


def _names(given: Any) -> str:
    """Variables with their types, for messages; None stands for the graph of ``known_grads``."""
    if given is None:
        return "The graph of known_grads"
    names = ", ".join(f"{v} (type {v.type})" for v in variables_of(given, "f"))
    return names or "An empty list of outputs"


# ------------------------------------------------------------------------ the sweep


@collection_paused()
def backpropagate(
    starts: Mapping[Variable, Any],
    wrt: Sequence[Variable],
    constant: Sequence[Variable] | None = None,
    fixed: Collection[Variable] = (),
) -> dict[Variable, Any]:
    """The cotangent of each of ``wrt``, given those of ``starts``; None for one without influence.

    Nothing is propagated through the variables ``constant``.  The variables ``fixed`` keep the
    cotangent that ``starts`` gives: contributions from the graph are not added to it.
    """
    stop = set(variables_of([] if constant is None else constant, "consider_constant"))
    nodes, reached = _connected(starts, wrt, stop)
    terms: dict[Variable, list[Any]] = {v: [g] for v, g in starts.items()}
    wanted = reached.difference(fixed)
    kept = stop.union(wrt, fixed)
    for node, pattern in reversed(nodes):
        cotangents = [
            _collect(terms, out) if out in reached and out not in stop else None
            for out in node.outputs
        ]
        if cotangents.count(None) == len(cotangents):
            continue
        guards, cotangents = unguarded(cotangents)
        for v, g in _pulled_back(node, pattern, cotangents, wanted, kept):
            terms.setdefault(v, []).append(guard_again(guards, g, v))
    return {v: _collect(terms, v) for v in wrt}


def _pulled_back(
    node: Apply,
    pattern: Pattern,
    cotangents: Sequence[Any],
    wanted: Collection[Variable],
    kept: Collection[Variable],
) -> list[tuple[Variable, Any]]:
    """Pairs (variable of ``wanted``, term of its cotangent), from the cotangents of the outputs.

    The variables are inputs of ``node``, or of the graph that is differentiated in its place.
    """
    form = other_form(node, kept)
    if form is None:
        needed = [v in wanted for v in node.inputs]
        found = pull_back_node(node, pattern, cotangents, needed)
        return [(node.inputs[i], g) for i, g in found if needed[i]]
    leaves = [v for v in form.leaves if v in wanted]
    (g,) = cotangents
    pulled = backpropagate({form.result: g}, leaves, list(form.leaves))
    found = [(v, g) for v, g in pulled.items() if g is not None]
    return found + [(v, zeros_like(v)) for v in form.absent if v in wanted]


def _connected(
    roots: Iterable[Variable], wrt: Sequence[Variable], stop: set[Variable]
) -> tuple[list[tuple[Apply, Pattern]], set[Variable]]:
    """The nodes on paths from ``wrt`` to ``roots``, in topological order, and the variables there.

    Nodes come with their connection patterns.  Paths through ``stop`` do not count.
    """
    reached = set(wrt)
    nodes: list[tuple[Apply, Pattern]] = []
    for node in toposort(roots, blockers=stop):
        hits = [i for i, v in enumerate(node.inputs) if v in reached]
        if not hits:
            continue
        pattern = connection_pattern(node)
        outputs = [
            out
            for k, out in enumerate(node.outputs)
            if out not in stop and (pattern is None or any(pattern[i][k] for i in hits))
        ]
        if outputs:
            reached.update(outputs)
            nodes.append((node, pattern))
    return nodes, reached


def pull_back_node(
    node: Apply, pattern: Pattern, cotangents: Sequence[Any], needed: Sequence[bool]
) -> list[tuple[int, Any]]:
    """Pairs (position of an input, its cotangent), from the cotangents of the outputs.

    A cotangent that is None stands for "no influence".  Inputs that are not ``needed`` may be
    missing in the result, disconnected ones are.
    """
    connected = _connected_inputs(node, pattern, cotangents)
    for g in cotangents:
        if g is not None and is_null(g):
            return [(i, g) for i, yes in enumerate(connected) if yes]
    wanted = needed if pattern is None else [n and c for n, c in zip(needed, connected)]
    with inherit(node.origin):
        found = _cotangents(node, cotangents, wanted)
    pairs = []
    for i, g in enumerate(found):
        if g is None:
            continue
        if connected[i]:
            pairs.append((i, g))
        elif not is_null(g) and pattern is not None and not any(pattern[i]):
            raise ValueError(
                f"{node.op}: connection_pattern says that input {i} is not connected, but pullback "
                f"returned a gradient of type {g.type} for it. The two must agree."
            )
    return pairs


def _connected_inputs(node: Apply, pattern: Pattern, cotangents: Sequence[Any]) -> list[bool]:
    """Whether each input influences an output that has a cotangent."""
    if pattern is None:
        return [True] * len(node.inputs)
    return [any(p and g is not None for p, g in zip(row, cotangents)) for row in pattern]


def _cotangents(node: Apply, given: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """The cotangents of the ``wanted`` inputs; an op is asked only if it has continuous outputs."""
    outputs = node.outputs
    if node.op.handles_missing:
        given = [
            disconnected_type() if g is None else zeros_like(out) if out.type.is_discrete else g
            for out, g in zip(outputs, given)
        ]
        return ask(node, "pullback", given, node.inputs, wanted)
    continuous = [None if out.type.is_discrete else g for out, g in zip(outputs, given)]
    if continuous.count(None) == len(outputs):
        return [zeros_like(v) if w else None for v, w in zip(node.inputs, wanted)]
    given = [zeros_like(out) if g is None else g for out, g in zip(outputs, continuous)]
    return ask(node, "pullback", given, node.inputs, wanted)


def _collect(terms: dict[Variable, list[Any]], v: Any) -> Any:
    """The sum of the terms of a variable's cotangent, stored back; None if there are none."""
    found = terms.get(v)
    if not found:
        return None
    if len(found) > 1:
        with inherit(v.origin or (v.owner.origin if v.owner else None)):
            guards, values = unguarded(found)
            found[:] = [guard_again(guards, add(v, values), v)]
    return found[0]


def add(v: Variable, terms: Sequence[Any]) -> Any:
    """The sum of derivatives of ``v``; undefined (`NullType`) if one of them is."""
    null = next((t for t in terms if is_null(t)), None)
    if null is not None or len(terms) == 1:
        return null or terms[0]
    return v.type.tangent_sum(terms)
