"""Loops lose the parts that are not needed, and those that are equal to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.congruence import alike
from phintys.graph.traversal import ancestors
from phintys.graph.variable import Apply, Constant, Variable
from phintys.loop.influence import positions
from phintys.loop.parts import Part
from phintys.loop.whole import Whole, taken_apart


def simplified(node: Apply, used: Sequence[bool]) -> list[Variable | None] | None:
    """Replacements for the outputs of a loop, of which only some are ``used``; None if it stays."""
    op: Any = node.op
    needed = needed_parts(op, used)
    loop = taken_apart(node)
    loop.parts = [p for k, p in enumerate(loop.parts) if k in needed]
    changed = _inline_numbers(loop)
    twins = merge_twins(loop)
    if len(needed) == len(positions(op)) and not changed and not twins:
        return None
    found = loop.replacements()
    for dropped, twin in twins:
        if dropped.result is not None and twin.result is not None:
            found[node.outputs[dropped.result]] = found[node.outputs[twin.result]]
    return [found.get(v) for v in node.outputs]


def needed_parts(op: Any, used: Sequence[bool]) -> set[int]:
    """The positions of the parts that the results that are ``used`` depend on."""
    parts, inner = positions(op), op.fgraph
    owner = {inner.inputs[i]: k for k, p in enumerate(parts) for i in p.inputs}
    found = {k for k, p in enumerate(parts) if p.result is not None and used[p.result]}
    todo = [inner.outputs[o] for k in found for o in parts[k].outputs]
    todo += inner.outputs[-1:] if op.info.as_while else []
    seen = set(todo)
    while todo:
        v = todo.pop()
        part = owner.get(v)
        following = [] if v.owner is None else v.owner.inputs
        if part is not None and part not in found:
            found.add(part)
            following = [inner.outputs[o] for o in parts[part].outputs]
        todo += [x for x in dict.fromkeys(following) if x not in seen]
        seen.update(following)
    return found


def _inline_numbers(loop: Whole) -> bool:
    """Move constant numbers into the inner graph; return whether there were any."""
    numbers = [p for p in loop.of_kind("non_seq") if _is_number(p.outer)]
    if numbers:
        loop.replace({p.inputs[0]: p.outer for p in numbers})
        loop.parts = [p for p in loop.parts if not (p.kind == "non_seq" and _is_number(p.outer))]
    return bool(numbers)


def _is_number(v: Any) -> bool:
    return isinstance(v, Constant) and getattr(v.type, "ndim", None) == 0


# ------------------------------------------------------------------------------- twins


def merge_twins(loop: Whole) -> list[tuple[Part, Part]]:
    """Drop parts that are equal to others; returns pairs of a dropped part and its twin.

    States are equal if they start with the same values, and their next values are equal if they
    are.
    """
    starts = [_start(p) for p in loop.parts]
    if len(set(starts)) == len(starts):
        return []
    first: dict[int, Part] = {}
    found = [first.setdefault(number, p) for number, p in zip(_classes(loop, starts), loop.parts)]
    pairs = [(p, q) for p, q in zip(loop.parts, found) if p is not q]
    if pairs:
        loop.replace({v: w for p, q in pairs for v, w in zip(p.inputs, q.inputs)})
        gone = {id(p) for p, _ in pairs}
        loop.parts = [p for p in loop.parts if id(p) not in gone]
    return pairs


def _start(p: Part) -> Any:
    """What two parts have in common if they start equal, and what computes them may be equal."""
    if p.kind == "untraced_sit_sot":  # of objects, such as generators
        return id(p)
    ops = [None if v.owner is None else v.owner.op for v in p.outputs]
    return p.kind, p.outer, p.reads, p.writes, *ops


def _classes(loop: Whole, starts: Sequence[Any]) -> list[int]:
    """For each part the number of its class: those of one class are equal in every step."""
    inner = list(ancestors([*loop.expressions(), *(v for p in loop.parts for v in p.inputs)]))
    number = {v: k for k, v in enumerate(inner, len(loop.parts))}
    place = {v: (k, i) for k, p in enumerate(loop.parts) for i, v in enumerate(p.inputs)}
    labels: list[Any] = [("part", start) for start in starts]
    operands = [[number[v] for v in p.outputs] for p in loop.parts]
    for v in inner:
        if v in place:
            part, position = place[v]
            labels.append(("input", position))
            operands.append([part])
        else:
            labels.append(_made_by(v))
            operands.append([] if v.owner is None else [number[x] for x in v.owner.inputs])
    return alike(labels, operands)


def _made_by(v: Any) -> Any:
    """What two variables have in common if equal operands make them equal."""
    if v.owner is not None:
        return v.owner.op, v.index, len(v.owner.inputs), *(o.type for o in v.owner.outputs)
    if not isinstance(v, Constant):
        return v
    try:
        hash(signature := v.merge_signature())
    except TypeError:  # the value is not hashable
        return v
    return signature
