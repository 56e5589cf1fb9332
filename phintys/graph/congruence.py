"""Classes of values that are computed alike, also where the computations are circular."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence


def alike(labels: Sequence[Hashable], operands: Sequence[Sequence[int]]) -> list[int]:
    """The number of the class of each value: the largest classes of which no two members differ.

    Two values differ if their labels do, or the classes of operands at some position.  The classes
    are found by splitting those of equal labels, in time ``n log n`` (Hopcroft's algorithm).

    Parameters
    ----------
    labels
        what each value is made by; values with equal labels have equally many operands
    operands
        the positions of the operands of each value, which may depend on it themselves

    >>> alike(["x", "f", "f"], [[], [2], [1]])
    [0, 1, 1]
    >>> alike(["x", "y", "f", "f"], [[], [], [0], [1]])
    [0, 1, 2, 3]
    """
    users: list[list[tuple[int, int]]] = [[] for _ in labels]
    for value, used in enumerate(operands):
        for position, operand in enumerate(used):
            users[operand].append((position, value))
    numbers: dict[Hashable, int] = {}
    found = [numbers.setdefault(label, len(numbers)) for label in labels]
    members: list[set[int]] = [set() for _ in numbers]
    for value, number in enumerate(found):
        members[number].add(value)
    todo = list(range(len(members)))  # classes whose users may have to be split
    while todo:
        for part in _uses(members[todo.pop()], users, found):
            whole = members[found[part[0]]]
            if len(part) == len(whole):
                continue
            # the smaller part becomes a class: each value moves at most log n times
            moved = set(part) if 2 * len(part) <= len(whole) else whole.difference(part)
            whole -= moved
            for value in moved:
                found[value] = len(members)
            todo.append(len(members))
            members.append(moved)
    return found


def _uses(
    operands: set[int], users: Sequence[Sequence[tuple[int, int]]], found: Sequence[int]
) -> Iterator[list[int]]:
    """The values with an operand in a set, those of one position and class together.

    Classes may be split meanwhile: those at a position are looked up after all before it.
    """
    together: dict[int, list[int]] = {}
    for operand in operands:
        for position, value in users[operand]:
            together.setdefault(position, []).append(value)
    for values in together.values():
        parts: dict[int, list[int]] = {}
        for value in values:
            parts.setdefault(found[value], []).append(value)
        yield from parts.values()
