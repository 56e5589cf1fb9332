"""Reading a value from the array it has been written into.

``y = set(x[1:-1], v)`` followed by steps that use ``v`` and other parts of ``y``: kept as an array
of its own, ``v`` would be stored, read to be written into ``y``, and read again.  If ``v`` covers
most of ``y``, and ``y`` is read in any case, its other readers take it from there, and ``v`` is
computed where it is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from phintys.dims import Dim
from phintys.lowering.builder import Builder
from phintys.lowering.prerequisites import Prerequisites
from phintys.lowering.values import Gather, Map, Reduce, Update, Value, View, needed_in_memory

_READERS = (Map, Reduce, Gather, Update)


def read_from_updates(
    prerequisites: Prerequisites, roots: Sequence[Value], values: Sequence[Value]
) -> bool:
    """Whether anything has changed: values that an update writes are read from it from now on,
    where that saves memory traffic.

    ``values`` are those that the roots need, in order.
    """
    builder = prerequisites.builder
    updates = [v for v in values if isinstance(v, Update)]
    if not updates:
        return False
    consumers: dict[int, list[Value]] = {}
    for value in values:
        for arg in dict.fromkeys(value.args):
            consumers.setdefault(arg.id, []).append(value)
    kept = {v.args[0].id if isinstance(v, View) else v.id for v in roots}
    changed = False
    for update in updates:
        value = update.args[1]
        if value.id in kept or not _writes_most(builder, update):
            continue
        if not prerequisites.are_none(update):
            continue  # what the update waits for may depend on the readers
        readers = [c for c in consumers[value.id] if c is not update]
        if readers and _is_read(update, consumers) and _only_elements(value, readers):
            view = builder.part_of(update)
            for reader in readers:
                reader.args = tuple([view if a is value else a for a in reader.args])
            consumers[value.id] = [update]
            changed = True
    return changed


def _writes_most(builder: Builder, update: Update) -> bool:
    """Whether an update sets a large part, each of whose elements is one of a computed value."""
    base, value = update.args[:2]
    plain = update.mode == "set" and not update.gathered and isinstance(value, Map)
    # a base that is older than the value cannot depend on what reads the value
    if not plain or value.dtype != update.dtype or base.id > value.id:
        return False
    region = tuple(map(builder.canonical, update.region))
    if update.axes != tuple(range(len(region))) or builder.shape(value) != region:
        return False
    return all(map(_is_most, region, builder.shape(update)))


def _is_most(part: Dim, whole: Dim) -> bool:
    """Whether a length is, as far as can be told, at least half of another."""
    if part.value is None or whole.value is None:
        return part.value is whole.value
    return 2 * part.value >= whole.value


def _is_read(update: Update, consumers: dict[int, list[Value]]) -> bool:
    """Whether an update is more than what another update starts from."""
    readers = consumers.get(update.id, ())
    return any(not isinstance(c, Update) or update in c.args[1:] for c in readers)


def _only_elements(value: Value, readers: Sequence[Value]) -> bool:
    """Whether readers want elements of a value and not its memory."""
    return all(isinstance(r, _READERS) and value not in needed_in_memory(r) for r in readers)
