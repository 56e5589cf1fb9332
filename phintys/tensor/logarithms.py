"""Logarithms of products, powers, sums and selections, computed without the number itself.

The argument is written in scaled form (see `phintys.tensor.scaled`); the logarithm of ``factor *
exp(exponent)`` is ``exponent + log(factor)``.

Two users need the same result: the rule that replaces logarithms, and the gradient, which
differentiates it in the place of the logarithm.  So value and derivatives are stable together,
whatever else is computed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Sequence

from phintys.gradient.forms import OtherForm, differentiated_as
from phintys.graph.traversal import ancestors
from phintys.graph.variable import Apply, Variable
from phintys.tensor.apart import coefficient
from phintys.tensor.as_written import as_written
from phintys.tensor.elemwise import (
    DimShuffle,
    Elemwise,
    cast,
    function_of,
    functions,
    scalar_op_name,
)
from phintys.tensor.join import Join
from phintys.tensor.power_sums import is_written
from phintys.tensor.region import region
from phintys.tensor.scaled import (
    Gain,
    Scaled,
    composition_of,
    constant_log,
    is_float,
    log_of_share,
    number,
    odds_of_share,
    one_plus,
    spread,
    stated_log,
    sum_of,
)
from phintys.tensor.shape import MakeVector

#: Another form of the result of a node, from the nodes that compose its first input.
Form = Callable[[Apply, Sequence[Apply]], Variable | None]

#: The functions that are replaced, by name; the base, or None for the natural logarithm.
LOGARITHMS: dict[str, float | None] = {"log": None, "log1p": None, "log2": 2, "log10": 10}

#: Nodes that are looked at for one logarithm, at most.
MOST_NODES = 200

#: Where exponents differ by more, the smaller number is below rounding of the larger one.
FAR = 40.0


def stable_logarithm(node: Apply) -> Variable | None:
    """The result of a logarithm, computed from exponents; None where that gains nothing.

    ``node`` applies one of `LOGARITHMS`.
    """
    return _result(node, _region(node.inputs[0], ()))


def stable_power(node: Apply) -> Variable | None:
    """``x**p`` as ``exp(p log(x))`` if ``x`` has an exponent, such as ``(y / exp(z))**p``.

    Only where ``x`` underflows or overflows; elsewhere the power has more digits.
    """
    x, p = node.inputs
    found = _power_parts(node, _region(x, ()))
    if found is None:
        return None
    logarithm, positive = found
    outside = functions.or_(functions.eq(x, 0), functions.isinf(x))
    if positive is not None:
        outside = functions.and_(positive, outside)
    exponent = functions.switch(functions.eq(p, 0), 0, functions.mul(p, logarithm))
    return _beside_written(outside, functions.exp(exponent), node)


def differentiated_form(node: Apply, kept: Container[Variable]) -> OtherForm | None:
    """`stable_logarithm`, for the derivative.

    None too if that does not depend on a variable of ``kept`` as the logarithm does, but on what
    the variable is computed from.
    """
    return _other_form(node, kept, _result)


def differentiated_power(node: Apply, kept: Container[Variable]) -> OtherForm | None:
    """`stable_power`, for the derivative; see `differentiated_form`."""
    return _other_form(node, kept, _power)


def _other_form(node: Apply, kept: Container[Variable], form: Form) -> OtherForm | None:
    nodes = _region(node.inputs[0], kept)
    result = form(node, nodes)
    if result is None:
        return None
    found = computed_from(result, node, (), kept)
    leaves = set(found.leaves)
    made = [v.owner for v in variables_below(node.inputs) if v in kept and v.owner is not None]
    if any(not leaves.isdisjoint(variables_below(m.inputs)) for m in made):
        return None  # what a variable that is kept is computed from counts through it alone
    inner = [v for v in variables_below(node.inputs, leaves) if v in kept]
    reached = variables_below(found.leaves) if inner else {}
    if any(v not in reached for v in inner):
        return None
    nodes = list(dict.fromkeys([*region(node, kept), *nodes]))
    return found._replace(absent=_without_influence(nodes, found.leaves))


def computed_from(
    result: Variable, node: Apply, through: Collection[Variable], kept: Container[Variable]
) -> OtherForm:
    """``result``, which equals that of ``node``, with the leaves from which it is computed.

    These are variables of the graph of ``node``, but not those of ``through`` unless in ``kept``,
    nor what is put together: its elements may have other forms.
    """
    known = {v for v in variables_below(node.inputs) if not _is_moved(v)}.difference(through)
    found: dict[Variable, bool] = {}
    stack = [result]
    while stack:
        v = stack.pop()
        if v not in found:
            found[v] = v in known or v in kept or v.owner is None
            stack += [] if v.owner is None or found[v] else v.owner.inputs
    return OtherForm(result, [v for v, leaf in found.items() if leaf])


def form_from(
    node: Apply,
    kept: Container[Variable],
    result: Variable,
    nodes: Sequence[Apply],
) -> OtherForm | None:
    """``result`` as the form of ``node``, made from variables of ``nodes``.

    None if it does not depend on a variable of ``kept`` as the output of ``node`` does.
    """
    nodes = list(dict.fromkeys([*region(node, kept), *nodes]))
    inputs = {v for made in nodes for v in made.inputs}
    known = {*inputs, *(v for made in nodes for v in made.outputs)}
    known.update([w for v in inputs if v.owner is not None for w in v.owner.inputs])
    known.difference_update(node.outputs)
    known = _cut_below_moves(known, kept)
    used = ancestors([result], blockers=known)
    leaves = [v for v in used if v in known]
    inner = [v for v in variables_below(node.inputs, set(leaves)) if v in kept]
    if any(v in leaves for w in inner for v in variables_below([w])):
        return None
    return OtherForm(result, leaves, _without_influence(nodes, leaves))


def _without_influence(nodes: Sequence[Apply], leaves: Collection[Variable]) -> list[Variable]:
    """The variables from which ``nodes`` are computed, but ``leaves`` are not."""
    covered = set(leaves)
    for node in reversed(nodes):
        if any(v in covered for v in node.outputs):
            covered.update(node.inputs)
    made = {v for node in nodes for v in node.outputs}
    given = dict.fromkeys([v for node in nodes for v in node.inputs])
    return [v for v in given if v not in made and v not in covered and is_float(v)]


def _cut_below_moves(known: Collection[Variable], kept: Container[Variable]) -> set[Variable]:
    """The variables that ``known`` are put together from; ``kept`` ones stay.

    The elements of what is put together may have other forms.
    """
    found: set[Variable] = set()
    stack = list(known)
    while stack:
        v = stack.pop()
        if v.owner is not None and _is_moved(v) and v not in kept:
            stack += v.owner.inputs
        else:
            found.add(v)
    return found


def _is_moved(v: Variable) -> bool:
    """Whether a variable is put together from others."""
    return v.owner is not None and type(v.owner.op) in (DimShuffle, Join, MakeVector)


def logarithmic(x: Variable, kept: Container[Variable], least: Gain) -> Scaled | None:
    """``x`` in scaled form; None where that gains less than ``least``, or for ``kept`` ones."""
    return _scaled(x, _region(x, kept), least)


def _power(node: Apply, region: Sequence[Apply]) -> Variable | None:
    found = _power_parts(node, region)
    if found is None:
        return None
    logarithm, positive = found
    stable = functions.exp(functions.mul(node.inputs[1], logarithm))
    return (
        like_result(stable, node) if positive is None else _beside_written(positive, stable, node)
    )


def _beside_written(where: Variable, stable: Variable, node: Apply) -> Variable:
    """``stable`` where a condition holds, and elsewhere the power of ``node``."""
    x, p = node.inputs
    written = functions.pow(functions.switch(where, 1, x), p)
    return like_result(functions.switch(where, stable, written), node)


def _power_parts(node: Apply, region: Sequence[Apply]) -> tuple[Variable, Variable | None] | None:
    """The logarithm of the base, if that has an exponent, and where the base is positive.

    None stands for everywhere.
    """
    (x, p), (out,) = node.inputs, node.outputs
    if not is_float(x) or not is_float(out) or number(p) is not None or is_written(x):
        return None
    form = _scaled(x, region, Gain.OF_SUM)
    if form is None or form.exponent is None:
        return None
    if form.factor is None:
        return form.exponent, None
    positive = functions.gt(form.factor, 0)
    factor = functions.switch(positive, form.factor, 1)
    logarithm = functions.add(form.exponent, functions.log(cast(factor, x.type.dtype)))
    return logarithm, positive


def like_result(found: Variable, node: Apply) -> Variable:
    """A result in the dtype and shape of ``node``."""
    for v in node.inputs:
        found = spread(found, v)
    return cast(found, node.outputs[0].type.dtype)


def variables_below(
    start: Iterable[Variable], stop: Container[Variable] = ()
) -> dict[Variable, None]:
    """Variables and what they are computed from, the nearest first; at most `MOST_NODES`.

    What only those of ``stop`` are computed from is not looked at, nor these.
    """
    found: dict[Variable, None] = {}
    queue = deque(start)
    while queue and len(found) < MOST_NODES:
        v = queue.popleft()
        if v not in found and v not in stop:
            found[v] = None
            queue.extend(v.owner.inputs if v.owner is not None else ())
    return found


def _result(node: Apply, region: Sequence[Apply]) -> Variable | None:
    (x,), (out,) = node.inputs, node.outputs
    name = scalar_op_name(node)
    if name is None or not is_float(out) or not is_float(x):
        return None
    found = _whole(x, name == "log1p")
    if found is None and name != "log1p":
        found = _of_quotient_or_root(x)
    if found is None:
        found = _log_of_one_plus(x, region) if name == "log1p" else _log(x, region)
    if found is None:
        return None
    if (base := LOGARITHMS[name]) is not None:
        found = functions.mul(found, 1 / math.log(base))
    return spread(cast(found, out.type.dtype), x)


def _scaled(x: Variable, region: Sequence[Apply], least: Gain) -> Scaled | None:
    """The scaled form of ``x``; None where its exponent gains less than ``least``."""
    gains = _gains(region)
    if gains.get(x, Gain.NOTHING) < least:
        return None
    forms: dict[Variable, Scaled] = {}
    for node in region:
        out = node.outputs[0]
        compose = composition_of(node)
        if out in gains and compose is not None:
            least = Gain.OF_SUM if compose.adds else Gain.OF_PRODUCT
            given = [
                forms[v] if gains.get(v, Gain.NOTHING) >= least else Scaled(None, v)
                for v in compose.of(node)
            ]
            forms[out] = compose.form(node, given)
    return forms[x]


def _whole(x: Variable, with_one: bool) -> Variable | None:
    """The logarithm of ``x``, or of ``1 + x``, if a row states that as a whole."""
    terms = [x] if with_one else function_of(x)[1] if scalar_op_name(x.owner) == "add" else []
    rest = [v for v in terms if number(v) != 1]
    form = "y"
    if len(rest) == 1 and (with_one or len(terms) == 2):
        factor, x = coefficient(rest[0])
        form = "1 + y" if factor == 1 else "1 - y" if factor == -1 else ""
    elif with_one:
        return None
    if x.owner is None or type(x.owner.op) is not Elemwise:
        return None
    name = f"log({form})"
    if name not in x.owner.op.scalar_op.logs:
        return None
    found, _ = stated_log(name, x.owner)
    return found


def _of_quotient_or_root(x: Variable) -> Variable | None:
    """The logarithm of ``a / (a + b)``, and that of ``z + sqrt(1 + z**2)``, which is arcsinh(z)."""
    name, inputs = function_of(x)
    if name == "true_div":
        return log_of_share(x)
    if name != "add" or len(inputs) != 2:
        return None
    for z, root in (inputs, inputs[::-1]):
        name, (*inner,) = function_of(root)
        if name == "sqrt" and _is_square_plus_one(inner[0], z):
            return functions.arcsinh(z)
    return None


def _is_square_plus_one(v: Variable, z: Variable) -> bool:
    name, terms = function_of(v)
    if name != "add" or len(terms) != 2:
        return False
    return any(number(one) == 1 and _is_square(s, z) for one, s in (terms, terms[::-1]))


def _is_square(v: Variable, z: Variable) -> bool:
    name, inputs = function_of(v)
    if name == "pow":
        return inputs[0] is z and number(inputs[1]) == 2
    return bool(inputs) and inputs[0] is z and name in ("sqr", "mul") and inputs[-1] is z


def _log(x: Variable, region: Sequence[Apply]) -> Variable | None:
    form = _scaled(x, region, Gain.OF_PRODUCT)
    return None if form is None else _logarithm(form, x.type.dtype)


def _logarithm(form: Scaled, dtype: str) -> Variable | None:
    """The logarithm of a number in scaled form; None for 0."""
    logarithm = None if form.factor is None else _log_of_factor(form.factor, dtype)
    return sum_of(form.exponent, logarithm)


def _log_of_factor(factor: Variable, dtype: str) -> Variable | None:
    """``log(factor)``, None for 0; a divisor of a positive number has a logarithm of its own."""
    known = number(factor)
    if known is not None and known > 0:
        return constant_log(known, dtype)
    name, inputs = function_of(factor)
    if name == "switch" and any(_beside(v)[0] != "log" for v in inputs[1:]):
        return _log_of_selected(*inputs)
    if name == "reciprocal":
        return functions.neg(functions.log(cast(inputs[0], dtype)))
    if (share := log_of_share(factor)) is not None:
        return share
    if name == "true_div" and (known := number(inputs[0])) is not None and known > 0:
        below = functions.log(cast(inputs[1], dtype))
        above = constant_log(known, dtype)
        return functions.neg(below) if above is None else functions.sub(above, below)
    if name == "neg" and (inner := function_of(inputs[0]))[0] == "expm1":
        return functions.log1mexp(*inner[1])
    return functions.log(cast(factor, dtype))


def _log_of_selected(condition: Variable, *branches: Variable) -> Variable:
    """The logarithm of a selection, of which a branch has a logarithm of its own."""
    logarithms = []
    for k, v in enumerate(branches):
        name, x, neutral = _beside(v)
        taken = (x, neutral) if k == 0 else (neutral, x)
        logarithms.append(getattr(functions, name)(functions.switch(condition, *taken)))
    return functions.switch(condition, *logarithms)


def log_beside_one(condition: Variable, v: Variable, holds: bool) -> Variable | None:
    """The logarithm of ``v`` where a condition holds, or does not, and 0 elsewhere.

    None if ``v`` is not next to 1 or 0 as it is written, so that its logarithm is taken as it is.
    """
    odds = odds_of_share(v)
    if odds is not None:
        found, neutral = _log_of_share(v, odds), 1.0
    else:
        name, x, neutral = _beside(v)
        if name == "log":
            return None
        argument = functions.switch(condition, *((x, neutral) if holds else (neutral, x)))
        found = getattr(functions, name)(argument)
    taken = (found, 0) if holds else (0, found)
    return found if neutral == 0 else functions.switch(condition, *taken)


def _log_of_share(v: Variable, odds: Variable) -> Variable:
    """The logarithm of ``v``, which is ``1 / (1 + odds)``, also where the odds overflow."""
    near = functions.lt(functions.abs(odds), 1)
    inside = functions.neg(functions.log1p(functions.switch(near, odds, 0)))
    return functions.switch(near, inside, functions.log(as_written(v)))


def _beside(v: Variable) -> tuple[str, Variable, float]:
    """A function and its argument that give ``log(v)``, and an argument where it is finite."""
    factor, inner = coefficient(v)
    if factor == -1 and function_of(inner)[0] == "expm1":
        return "log1mexp", function_of(inner)[1][0], -1
    name, inputs = function_of(v)
    if name in ("add", "sub") and number(inputs[0]) == 1:
        rest = inputs[1] if len(inputs) == 2 else functions.add(*inputs[1:])
        return "log1p", functions.neg(rest) if name == "sub" else rest, 0
    return "log", v, 1


def _log_of_one_plus(x: Variable, region: Sequence[Apply]) -> Variable | None:
    """``log(1 + x)`` from the exponent of ``x``, or the logarithm that its function states."""
    found = one_plus(x)
    if found is not None:
        return _logarithm(found, x.type.dtype)
    form = _scaled(x, region, Gain.OF_SUM)
    if form is None or form.exponent is None:
        return None
    weight = 1.0
    if form.factor is not None:
        weight = number(form.factor) or 0.0
        if not weight:
            return _of_any_weight(form.exponent, form.factor, x.type.dtype)
    size = constant_log(abs(weight), x.type.dtype)
    exponent = form.exponent if size is None else functions.add(form.exponent, size)
    return functions.softplus(exponent) if weight > 0 else functions.log1mexp(exponent)


def _of_any_weight(exponent: Variable, factor: Variable, dtype: str) -> Variable:
    """``log(1 + factor * exp(exponent))``; where the exponent is large, the 1 does not count."""
    large = functions.add(exponent, functions.log(cast(factor, dtype)))
    near = functions.exp_diff(functions.minimum(exponent, FAR), 0)
    near = functions.log1p(functions.mul(factor, near))
    return functions.switch(functions.gt(exponent, FAR), large, near)


def _region(x: Variable, stop: Container[Variable]) -> list[Apply]:
    """The nodes that compose ``x``, in topological order; at most `MOST_NODES`."""
    order: list[Apply] = []
    seen: set[Apply] = set()
    stack: list[tuple[Variable, bool]] = [(x, False)]
    while stack:
        v, done = stack.pop()
        node = v.owner
        if node is None or (not done and (node in seen or v in stop)):
            continue
        if done:
            order.append(node)
            continue
        compose = composition_of(node)
        if compose is None or not is_float(v) or len(seen) == MOST_NODES:
            continue
        seen.add(node)
        stack.append((v, True))
        stack.extend((w, False) for w in compose.of(node) if is_float(w))
    return order


def _gains(nodes: Sequence[Apply]) -> dict[Variable, Gain]:
    """The results of nodes whose scaled form has an exponent, and where that is of use."""
    found: dict[Variable, Gain] = {}
    for node in nodes:
        compose = composition_of(node)
        if compose is None:
            continue
        gain = max([compose.gain(node), *[found.get(v, Gain.NOTHING) for v in compose.of(node)]])
        if gain > (Gain.OF_PRODUCT if compose.adds else Gain.NOTHING):
            found[node.outputs[0]] = gain
    return found


differentiated_as(functions.pow, differentiated_power)
