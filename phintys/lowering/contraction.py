"""Contracts products and sums into fused multiply-adds.

``a * b + c`` becomes one ``fma`` instruction if nothing else uses the product.  The product then is
no value of its own.  So every kernel that computes a value, once stored and once recomputed, or in
vectors and one by one, gets the same bits, as it must: ``exp(x - max(x))`` is NaN if ``x - max(x)``
is the rounding error of a huge ``x``.  A generator does not contract other sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from phintys.lowering.builder import Builder
from phintys.lowering.elementwise import Map
from phintys.lowering.program import Inst
from phintys.lowering.values import Value

FLOATS = frozenset(("float32", "float64"))


def contract(builder: Builder, roots: Sequence[Value], values: Sequence[Value]) -> bool:
    """Contract the sums among values; returns whether arguments of values have changed.

    ``values`` are those that the roots need, arguments before users.
    """
    uses = Counter(a.id for value in values for a in value.args)
    kept = {v.base.id for v in roots}
    changed = False
    for value in values:
        if not isinstance(value, Map) or not _has_sum(value.body):
            continue
        for position in _terms(value):
            arg = value.args[position]
            if uses[arg.id] == 1 and arg.id not in kept and _is_product(builder, arg, value):
                _inline(value, position)
                changed = True
        value.body, value.result = contracted(value.body, value.result, len(value.args))
    return changed


def _has_sum(body: Sequence[Inst]) -> bool:
    return any([_is_sum(inst) for inst in body])


def _is_sum(inst: Inst) -> bool:
    return inst.op in ("add", "sub") and inst.dtype in FLOATS


def _terms(value: Map) -> list[int]:
    """The arguments that are only added or subtracted, and only once."""
    uses = _uses(value.body, value.result)
    sums = filter(_is_sum, value.body)
    return [a for inst in sums for a in inst.args if a < len(value.args) and uses[a] == 1]


def _uses(body: Sequence[Inst], result: int) -> Counter[int]:
    uses = Counter(a for inst in body for a in inst.args)
    uses[result] += 1
    return uses


def _is_product(builder: Builder, arg: Value, value: Value) -> bool:
    """Whether an argument is a product, of the dtype and shape of the value."""
    if not isinstance(arg, Map) or arg.dtype != value.dtype:
        return False
    last = arg.result - len(arg.args)
    is_product = last >= 0 and arg.body[last].op == "mul"
    return is_product and builder.shape(arg) == builder.shape(value)


def _inline(value: Map, position: int) -> None:
    """Replace an argument by the instructions that compute it."""
    arg = value.args[position]
    assert isinstance(arg, Map)
    own, other = len(value.args), len(arg.args)
    value.args = (*value.args[:position], *value.args[position + 1 :], *arg.args)
    # in the order of the new positions: the other arguments, those of arg, its body, the own body
    start = own - 1 + other
    inner = [*range(own - 1, start), *range(start, start + len(arg.body))]
    outer = [k - (k > position) for k in range(own)]
    outer[position] = inner[arg.result]
    outer += range(start + len(arg.body), start + len(arg.body) + len(value.body))
    value.body = (*_moved(arg.body, inner), *_moved(value.body, outer))
    value.result = outer[value.result]


def _moved(body: Iterable[Inst], positions: Sequence[int]) -> Iterable[Inst]:
    """Instructions whose arguments are at new positions."""
    return [inst._replace(args=tuple([positions[a] for a in inst.args])) for inst in body]


def contracted(body: tuple[Inst, ...], result: int, count: int) -> tuple[tuple[Inst, ...], int]:
    """Instructions and the position of their result, with sums of products as ``fma``.

    The first ``count`` positions are arguments.  A product with other uses stays.

    >>> body = Inst("mul", "float64", (0, 1)), Inst("sub", "float64", (2, 3))
    >>> [(inst.op, inst.args) for inst in contracted(body, 4, 3)[0]]
    [('neg', (0,)), ('fma', (3, 1, 2))]
    """
    products = _products_in_sums(body, result, count)
    if not products:
        return body, result
    new: list[Inst] = []
    positions = list(range(count))

    def emit(op: str, dtype: str, *args: int) -> int:
        new.append(Inst(op, dtype, args))
        return count + len(new) - 1

    absorbed = frozenset(products.values())
    for at, inst in enumerate(body, start=count):
        if at in absorbed:
            positions.append(-1)  # nothing refers to it
            continue
        product = products.get(at)
        if product is None:
            new += _moved((inst,), positions)
            positions.append(count + len(new) - 1)
            continue
        a, b = (positions[k] for k in body[product - count].args)
        left = inst.args[0] == product
        c = positions[inst.args[left]]
        if inst.op == "sub" and left:
            c = emit("neg", inst.dtype, c)
        elif inst.op == "sub":
            a = emit("neg", inst.dtype, a)
        positions.append(emit("fma", inst.dtype, a, b, c))
    return tuple(new), positions[result]


def _products_in_sums(body: Sequence[Inst], result: int, count: int) -> dict[int, int]:
    """The position of the product that each sum absorbs: the first without other uses."""
    uses = _uses(body, result)
    found: dict[int, int] = {}
    for at, inst in enumerate(body, start=count):
        if not _is_sum(inst):
            continue
        for a in inst.args:
            if a >= count and uses[a] == 1 and body[a - count].op == "mul":
                found[at] = a
                break
    return found
