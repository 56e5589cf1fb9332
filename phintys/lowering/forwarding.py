"""Replaces reads of a value by reads of the array that it is written to.

This is the inverse of store-to-load forwarding, and saves memory traffic for arrays.
In ``y = set(x[1:-1], v)``, followed by steps that use ``v`` and other parts of ``y``, the value
``v`` would be stored in an array of its own, copied into ``y``, and read again.  If ``v`` covers
most of ``y``, and ``y`` is read in any case, the other readers of ``v`` read it from ``y``, and
``v`` is only computed where it is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from phintys.dims import Dim
from phintys.lowering.builder import Builder
from phintys.lowering.elementwise import Map
from phintys.lowering.prerequisites import Prerequisites
from phintys.lowering.updates import Update
from phintys.lowering.values import Value


def read_from_updates(
    prerequisites: Prerequisites, roots: Sequence[Value], values: Sequence[Value]
) -> bool:
    """Replace readers of values that updates write by readers of the updates, if that pays off.

    ``values`` are those that the roots need, in order.  Returns whether anything has changed.
    """
    builder = prerequisites.builder
    updates = [v for v in values if isinstance(v, Update)]
    if not updates:
        return False
    consumers: dict[int, list[Value]] = {}
    for value in values:
        for arg in dict.fromkeys(value.args):
            consumers.setdefault(arg.id, []).append(value)
    kept = {v.base.id for v in roots}
    changed = False
    for update in updates:
        value = update.args[1]
        if value.id in kept or not _writes_most(builder, update):
            continue
        if not prerequisites.are_none(update):
            continue  # the update may depend on the readers
        readers = [c for c in consumers[value.id] if c is not update]
        if readers and _is_read(update, consumers) and _only_elements(value, readers):
            view = builder.written_region(update)
            prerequisites.set_as_of(view, update)
            for reader in readers:
                reader.args = tuple([view if a is value else a for a in reader.args])
            consumers[value.id] = [update]
            changed = True
    return changed


def _writes_most(builder: Builder, update: Update) -> bool:
    """Whether an update sets at least half of each axis to the elements of a `Map`, one to one."""
    base, value = update.args[:2]
    plain = update.is_slice_set and isinstance(value, Map)
    # the base must not depend on readers of the value; an older base cannot
    if not plain or value.dtype != update.dtype or base.id > value.id:
        return False
    region = tuple(map(builder.canonical, update.region))
    if update.axes != tuple(range(len(region))) or builder.shape(value) != region:
        return False
    return all(map(_is_most, region, builder.shape(update)))


def _is_most(part: Dim, whole: Dim) -> bool:
    """Whether a length is at least half of another; true if both are symbolic, false if one is."""
    if part.value is None or whole.value is None:
        return part.value is whole.value
    return 2 * part.value >= whole.value


def _is_read(update: Update, consumers: dict[int, list[Value]]) -> bool:
    """Whether an update is read, not only updated further."""
    readers = consumers.get(update.id, ())
    return any(not isinstance(c, Update) or update in c.args[1:] for c in readers)


def _only_elements(value: Value, readers: Sequence[Value]) -> bool:
    """Whether readers use a value elementwise, so that none needs it in memory."""
    return all(r.in_kernels and value not in r.needed_in_memory() for r in readers)
