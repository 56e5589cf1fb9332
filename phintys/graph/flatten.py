"""Pickling and deep-copying graphs of any depth without recursion, in linear time.

Pickle and deepcopy recurse along references, so a chain of 100,000 nodes would overflow the stack.
Instead, the first object of a graph that is pickled or copied lists all its ancestors in
topological order; when the turn of each comes, the objects it refers to are in the memo already.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Container
from copy import deepcopy
from typing import Any

from phintys.graph.origin import locate
from phintys.memo import WeakMemo

# ------------------------------------------------------------------------ pickle


class _Dump:
    """The state of one pickler: which variables and nodes it has been given, by ``id``.

    A pickler offers no place for state.  So this object is made a part of the pickle: the memo of
    the pickler then keeps it alive exactly as long as it keeps the nodes, whose ids stay valid.
    """

    __slots__ = ("__weakref__", "done", "pending")

    def __init__(self) -> None:
        self.done: set[int] = set()  # objects whose `__reduce__` was called
        self.pending: set[int] = set()  # objects listed as ancestors, not yet asked for

    def __reduce__(self) -> Any:
        return tuple, ()  # it is not needed to read the pickle


class _Current(threading.local):
    """The pickler that is at work in this thread."""

    dump: weakref.ref[_Dump] | None = None


_current = _Current()


def reduce_node(node: Any) -> Any:
    """The implementation of ``__reduce__`` of `Variable` and `Apply`."""
    return reduce_after(node, ancestors_first, _reduce_one)


def reduce_after(
    item: Any,
    ancestors_of: Callable[[Any, Container[int]], list[Any]],
    reduce_one: Callable[[Any], tuple[Any, tuple[Any, ...], Any]],
) -> Any:
    """A value of ``__reduce__`` by which an object is pickled after those that it refers to.

    Parameters
    ----------
    item
        the object
    ancestors_of
        ``ancestors_of(item, known)``: the objects to pickle before it, each after those that it
        refers to itself, and ``item`` last; those whose ``id`` is in ``known`` are left out
    reduce_one
        ``reduce_one(item)``: function, arguments and state of ``__reduce__`` for ``item`` alone
    """
    dump = None if _current.dump is None else _current.dump()
    key = id(item)
    if dump is not None and key in dump.pending:
        dump.pending.discard(key)
        dump.done.add(key)
        return reduce_one(item)
    if dump is None or key in dump.done:  # a pickler reduces an object once: this is a new pickler
        dump = _Dump()
        _current.dump = weakref.ref(dump)
    ancestors = ancestors_of(item, dump.done)
    dump.done.add(key)
    build, args, state = reduce_one(item)
    if len(ancestors) == 1:
        return build, args, state
    ancestors.pop()
    dump.pending.update(map(id, ancestors))
    return _after_ancestors, (tuple(ancestors), build, args, dump), state


def _after_ancestors(ancestors: Any, build: Any, args: Any, dump: Any) -> Any:
    """Build an object when a pickle is read; its ancestors, being an argument, exist by then."""
    return build(*args)


def _reduce_one(node: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """The ``__reduce__`` value (function, arguments, state) of an object whose parents are pickled.

    Tags and attributes may refer back to the object, so they are state, which follows it.
    """
    if hasattr(node, "inputs"):
        outputs = [(type(v), v.type, _fields(v)) for v in node.outputs]
        return _make_apply, (type(node), node.op, node.inputs, outputs), _state(node)
    if node.owner is not None:
        return _output_of, (node.owner, node.index), None
    return _make_variable, (type(node), node.type, _fields(node)), _state(node)


# ------------------------------------------------------------------------ deepcopy


def deepcopy_node(node: Any, memo: dict[int, Any]) -> Any:
    """The implementation of ``__deepcopy__`` of `Variable` and `Apply`: copies ancestors first."""
    for item in ancestors_first(node, memo):
        if id(item) in memo:  # the outputs of a node are copied with it
            continue
        if item is not node and (item.immutable or not item.get_parents()):
            memo[id(item)] = deepcopy(item, memo)  # the class may override __deepcopy__
        else:
            _copy_one(item, memo)
    return memo[id(node)]


def _copy_one(item: Any, memo: dict[int, Any]) -> None:
    """Add to ``memo`` the copy of an object whose parents are copied."""
    if hasattr(item, "inputs"):
        inputs = [memo[id(v)] for v in item.inputs]
        outputs = [(type(v), v.type, deepcopy(_fields(v), memo)) for v in item.outputs]
        copy = _make_apply(type(item), item.op, inputs, outputs)
        memo.update((id(old), new) for old, new in zip(item.outputs, copy.outputs, strict=True))
    elif item.owner is not None:
        memo[id(item)] = memo[id(item.owner)].outputs[item.index]
        return
    else:
        copy = _make_variable(type(item), item.type, deepcopy(_fields(item), memo))
    memo[id(item)] = copy
    restore(copy, deepcopy(_state(item), memo))


# ------------------------------------------------------------------------ both


def ancestors_first(node: Any, known: Container[int] = ()) -> list[Any]:
    """The variables and nodes that ``node`` depends on, each after its parents; itself last.

    Objects whose ``id`` is in ``known`` are left out, with the ancestors that only they have.
    """
    order: list[Any] = []
    seen: set[int] = {id(node)}
    stack: list[tuple[Any, Any]] = [(node, iter(node.get_parents()))]
    while stack:
        item, parents = stack[-1]
        for p in parents:
            key = id(p)
            if key not in seen and key not in known:
                seen.add(key)
                stack.append((p, iter(p.get_parents())))
                break
        else:
            stack.pop()
            order.append(item)
    return order


#: attributes in slots that `_make_variable` and `_metadata` handle, not `_fields`
_BASE_FIELDS = frozenset(
    ("type", "owner", "index", "_tag", "origin", "_signature", "__weakref__", "__dict__")
)


#: attributes in slots that may refer back to the object, so that they are state
_STATE_FIELDS = frozenset(("_default_update",))


_slots_of: WeakMemo[type, tuple[tuple[str, ...], bool]] = WeakMemo("classes of variables")


def _slots(cls: type) -> tuple[tuple[str, ...], bool]:
    """The names that subclasses of Variable add to ``__slots__``; whether there is `_signature`."""
    found = _slots_of.get(cls)
    if found is None:
        slots = [name for base in cls.__mro__ for name in base.__dict__.get("__slots__", ())]
        fields = tuple(name for name in slots if name not in _BASE_FIELDS)
        found = _slots_of.keep(cls, (fields, "_signature" in slots))
    return found


def _fields(variable: Any) -> tuple[Any, ...]:
    """The values of the slots that subclasses of Variable add; None for those that are state."""
    names, _ = _slots(type(variable))
    return tuple([None if n in _STATE_FIELDS else getattr(variable, n) for n in names])


def _state(node: Any) -> Any:
    """The argument of `restore`: metadata of an object, and for an Apply also of its outputs."""
    metadata = _metadata(node)
    outputs = [_metadata(v) for v in node.outputs] if hasattr(node, "outputs") else []
    return (metadata, outputs) if metadata or any(outputs) else None


def _metadata(node: Any) -> tuple[Any, ...] | None:
    """Tag, origin and attributes that are state; None in the usual case that there are none."""
    attributes = {k: v for k, v in node.__dict__.items() if not k.startswith("_cached")}
    for name in _STATE_FIELDS:
        if getattr(node, name, None) is not None:
            attributes[name] = getattr(node, name)
    if node._tag is None and node.origin is None and not attributes:
        return None
    return node._tag, locate(node.origin), attributes or None


def restore(node: Any, state: Any) -> None:
    """The implementation of ``__setstate__`` of `Variable` and `Apply`; see `_state`."""
    if state is None:
        return
    metadata, of_outputs = state
    _set_metadata(node, metadata)
    for v, metadata in zip(node.outputs if of_outputs else (), of_outputs, strict=True):
        _set_metadata(v, metadata)


def _set_metadata(node: Any, metadata: Any) -> None:
    if metadata is None:
        return
    node._tag, node.origin, attributes = metadata
    for name, value in (attributes or {}).items():
        setattr(node, name, value)


def _make_variable(cls: Any, type_: Any, fields: tuple[Any, ...]) -> Any:
    variable = cls.__new__(cls)
    variable.type, variable.owner, variable.index = type_, None, None
    variable._tag = variable.origin = None
    names, has_signature = _slots(cls)
    for name, value in zip(names, fields, strict=True):
        setattr(variable, name, value)
    if has_signature:
        variable._signature = None
    return variable


def _make_apply(cls: Any, op: Any, inputs: Any, outputs: Any) -> Any:
    node = cls.__new__(cls)
    node.op, node.inputs, node.outputs, node.number = op, list(inputs), [], 0
    node._tag = node.origin = None
    for i, description in enumerate(outputs):
        v = _make_variable(*description)
        v.owner, v.index = node, i
        node.outputs.append(v)
    return node


def _output_of(node: Any, index: int) -> Any:
    return node.outputs[index]
