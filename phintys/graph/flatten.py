"""Pickling and deep-copying graphs of any depth without recursion.

Pickle and deepcopy follow references, so a chain of 100,000 nodes would overflow the stack.
Instead, the first node that is met hands over all its ancestors, inputs first; each then finds
its own inputs already done.
"""

from __future__ import annotations

import threading
from typing import Any

from phintys.graph.origin import locate


class _Active(threading.local):
    """Nodes whose ancestors are already in the pickle that is being written."""

    def __init__(self) -> None:
        self.nodes: dict[int, Any] = {}


_active = _Active()


class _End:
    """The last element of a chain of ancestors: reaching it ends the bookkeeping."""

    def __reduce__(self) -> Any:
        _active.nodes = {}
        return _End, ()


def ancestors_first(node: Any) -> list[Any]:
    """Variables and Applies that ``node`` is made from, every one after its parents; itself last."""
    order: list[Any] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(node, False)]
    while stack:
        item, expanded = stack.pop()
        if expanded:
            order.append(item)
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        stack.append((item, True))
        stack.extend((p, False) for p in reversed(item.get_parents()) if id(p) not in seen)
    return order


def reduce_node(node: Any) -> Any:
    """``__reduce__`` of `Variable` and `Apply`."""
    if id(node) in _active.nodes:
        return _reduce_one(node)
    order = ancestors_first(node)
    if len(order) == 1:
        return _reduce_one(node)
    _active.nodes = {id(n): n for n in order}
    return _last, (tuple(order[:-1]), _reduced(node), _End())


def _reduced(node: Any) -> Any:
    """The last node, described instead of referred to: it is the one being reduced."""
    return _reduce_one(node)


def _last(ancestors: Any, reduced: Any, end: Any) -> Any:
    build, args, *state = reduced
    node = build(*args)
    if state:
        node.__setstate__(state[0])
    return node


def _reduce_one(node: Any) -> Any:
    if hasattr(node, "inputs"):
        return _make_apply, (
            type(node),
            node.op,
            node.inputs,
            _describe_outputs(node),
            _state(node),
        )
    if node.owner is not None:
        return _output_of, (node.owner, node.index)
    return _make_variable, (type(node), node.type, _slots(node), _state(node))


def _describe_outputs(node: Any) -> list[Any]:
    return [(type(v), v.type, v.name, _state(v)) for v in node.outputs]


def _state(node: Any) -> tuple[Any, Any, dict[str, Any]]:
    return node._tag, locate(node.origin), _clean_dict(node)


def _clean_dict(node: Any) -> dict[str, Any]:
    return {k: v for k, v in node.__dict__.items() if not k.startswith("_cached")}


def _slots(node: Any) -> dict[str, Any]:
    """Fields that subclasses of Variable add through ``__slots__``."""
    fields = {"name": node.name}
    for cls in type(node).__mro__:
        for field in cls.__dict__.get("__slots__", ()):
            if field not in _BASE_FIELDS and hasattr(node, field):
                fields[field] = getattr(node, field)
    return fields


_BASE_FIELDS = frozenset(
    "type owner index name _tag origin _signature __weakref__ __dict__".split()
)


def _restore(node: Any, state: Any) -> None:
    node._tag, node.origin, attributes = state
    node.__dict__.update(attributes)


def _make_variable(cls: Any, type_: Any, fields: dict[str, Any], state: Any) -> Any:
    node = cls.__new__(cls)
    node.type, node.owner, node.index = type_, None, None
    if "_signature" in dir(cls):
        node._signature = None
    for name, value in fields.items():
        setattr(node, name, value)
    _restore(node, state)
    return node


def _make_apply(cls: Any, op: Any, inputs: Any, outputs: Any, state: Any) -> Any:
    node = cls.__new__(cls)
    node.op, node.inputs, node.outputs = op, list(inputs), []
    for i, (variable, type_, name, own_state) in enumerate(outputs):
        v = _make_variable(variable, type_, {"name": name}, own_state)
        v.owner, v.index = node, i
        node.outputs.append(v)
    _restore(node, state)
    return node


def _output_of(node: Any, index: int) -> Any:
    return node.outputs[index]


# ------------------------------------------------------------------------ deepcopy


def deepcopy_node(node: Any, memo: dict[int, Any]) -> Any:
    """``__deepcopy__`` of `Variable` and `Apply`: copies all ancestors, inputs first."""
    from copy import deepcopy

    for item in ancestors_first(node):
        if id(item) not in memo:
            memo[id(item)] = _copy_one(item, memo, deepcopy)
    return memo[id(node)]


def _copy_one(item: Any, memo: dict[int, Any], deepcopy: Any) -> Any:
    if hasattr(item, "inputs"):
        inputs = [memo[id(v)] for v in item.inputs]
        copy = _make_apply(
            type(item),
            item.op,
            inputs,
            _describe_outputs(item),
            _copied_state(item, memo, deepcopy),
        )
        memo.update((id(old), new) for old, new in zip(item.outputs, copy.outputs))
        return copy
    if item.owner is not None:
        return memo[id(item.owner)].outputs[item.index]
    fields = {k: deepcopy(v, memo) for k, v in _slots(item).items()}
    return _make_variable(type(item), item.type, fields, _copied_state(item, memo, deepcopy))


def _copied_state(item: Any, memo: dict[int, Any], deepcopy: Any) -> Any:
    tag, origin, attributes = _state(item)
    return deepcopy(tag, memo), origin, deepcopy(attributes, memo)
