"""Neighbours: vectors of one array at constant distances along the innermost loop.

``x[i - 1] + x[i] + x[i + 1]`` needs three vectors that overlap, at most one of which is aligned.
A load that crosses cache lines takes as long as two, and those of 64 bytes all do.  So the first
half of these vectors is not loaded: they are elements of the one in the middle and of that of the
iteration before, which is kept in a register::

    middle                        = x[i : i + W]
    x[i - 1 : i - 1 + W]          = the last element of kept, the first W - 1 of middle
    kept, in the next iteration,  = middle

The other half is loaded, because loads and shuffles use different units of the processor.  The same
elements are loaded as without it, none outside of the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.types import Type
from phintys.backends.llvm.kernel.lanes import Lanes, Place
from phintys.dims import ONE, coefficients
from phintys.lowering.program import Inst, Operand


def near(operands: Sequence[Operand], numbers: Iterable[int], most: int) -> list[dict[int, int]]:
    """Groups of operands that differ by constants, as number -> distance from the group's first.

    Only the operands of these numbers; distances are ascending, at most ``most``, not all 0.
    """
    alike: dict[object, list[int]] = {}
    for number in numbers:
        operand = operands[number]
        if not operand.extra:
            alike.setdefault((operand.slot, operand.strides), []).append(number)
    found: dict[object, list[tuple[int, int]]] = {}
    for key, several in alike.items():
        for number in several if len(several) > 1 else ():
            terms = coefficients(operands[number].offset)
            constant = terms.pop(ONE, 0)
            found.setdefault((key, *terms.items()), []).append((constant, number))
    return [group for members in found.values() for group in _split(sorted(members), most)]


def _split(members: list[tuple[int, int]], most: int) -> list[dict[int, int]]:
    groups: list[dict[int, int]] = []
    first = 0
    for constant, number in members:
        if not groups or constant - first > most:
            groups.append({})
            first = constant
        groups[-1][number] = constant - first
    return [group for group in groups if any(group.values())]


class _Group(NamedTuple):
    """The operand in the middle, the distances of those before it, and the type of vectors.

    The operand with the largest distance comes first.  ``words`` is the type of vectors as
    integers: only of those LLVM knows the instruction for consecutive elements.
    """

    middle: int
    before: dict[int, int]
    type: Type

    @property
    def words(self) -> Type:
        return self.type.of(f"int{self.type.bits}")


def _group(distances: dict[int, int], types: dict[int, Type]) -> _Group:
    distinct = sorted(set(distances.values()))
    half = distinct[len(distinct) // 2]
    middle = next(n for n, distance in distances.items() if distance == half)
    before = {n: half - distance for n, distance in distances.items() if distance < half}
    return _Group(middle, before, types[middle])


class Neighbours:
    """The groups of neighbours that an innermost loop loads."""

    def __init__(self, lanes: Lanes, insts: Sequence[Inst], width: int) -> None:
        self.lanes = lanes
        self.groups: list[_Group] = []
        if not all(_is_plain(i) for i in insts):
            return
        loads = [i for i in insts if i.op == "load" and lanes.is_packed(i)]
        types = {i.operand: Type(i.dtype, width) for i in loads}
        wide = [n for n, t in sorted(types.items()) if _is_wide(t)]
        self.groups = [_group(found, types) for found in near(lanes.kernel.operands, wide, width)]

    @property
    def types(self) -> list[str]:
        """The types of the vectors that are kept from one iteration to the next."""
        return [group.words.text for group in self.groups]

    @property
    def shuffled(self) -> set[int]:
        """The operands that are not loaded."""
        return {number for group in self.groups for number in group.before}

    def start(self, place: Place) -> list[str]:
        """Emit the vectors to keep for an iteration, of which only the last elements matter."""
        w, kept = self.lanes.w, []
        for group in self.groups:
            t, (first, distance) = group.words, next(iter(group.before.items()))
            x = self.lanes.load_packed(place, first, t._replace(width=distance))
            if distance > 1:
                order = [*["poison"] * (t.width - distance), *range(distance)]
                x = w.shuffled(t._replace(width=distance), x, order)
            kept.append(x if distance > 1 else w.splat(t, x))
        return kept

    def load(self, place: Place, kept: Sequence[str]) -> list[str]:
        """Emit the loads of an iteration; returns the vectors to keep for the next one."""
        w, result = self.lanes.w, []
        for group, last in zip(self.groups, kept, strict=True):
            t, words = group.type, group.words
            middle = self.lanes.load_packed(place, group.middle, words)
            result.append(middle)
            place.loaded[group.middle] = w(f"bitcast {words.text} {middle} to {t.text}")
            for number, distance in group.before.items():
                start = t.width - distance
                x = w.shuffled(words, last, range(start, start + t.width), middle)
                place.loaded[number] = w(f"bitcast {words.text} {x} to {t.text}")
        return result


def _is_wide(t: Type) -> bool:
    """Whether vectors are so wide that unaligned ones cross cache lines."""
    return t.kind in "iuf" and t.width * t.bytes >= costs.NEIGHBOUR_BYTES


def _is_plain(inst: Inst) -> bool:
    """Whether an instruction does not use computed indices, which inactive lanes must not."""
    return inst.op != "wrap" and (inst.operand < 0 or len(inst.args) == (inst.op != "load"))
