"""Which ops of a Program run in Python, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from phintys.graph.op import Op
from phintys.lowering.program import Branch, Loop, Program, Python, inner_programs


class InPython(NamedTuple):
    """A call of Python.

    ``name`` is the op, or what is done to an object (``split``, ``join``, ``copy``); ``place`` says
    which steps of a Program it is inside of, see `nested_programs`.
    """

    name: str
    reason: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}{self.name}"


def reason_of(op: Any) -> str:
    """Why compiled functions call ``perform`` of an op: what the op says, or has not.

    >>> from phintys.tensor.fourier import Fourier
    >>> reason_of(Fourier("rfft", 0, "backward"))
    "NumPy's pocketfft computes the transform"
    """
    if op.in_python:
        return str(op.in_python)
    if type(op).lower is Op.lower:
        return "the op has no method `lower`"
    return "the op's method `lower` does not express this node"


def nested_programs(program: Program) -> Iterator[tuple[str, Program]]:
    """A Program, and those inside of its loops and branches, with their places.

    The place of the Program is ``""``, that of the body of a loop in it ``"each step: "``, those of
    branches ``"if true: "`` and ``"if false: "``.
    """
    stack = [("", program)]
    while stack:
        place, found = stack.pop()
        yield place, found
        inside = [
            (place + title, inner)
            for step in found.steps
            for title, inner in zip(_TITLES.get(type(step), ()), inner_programs(step))
        ]
        stack += reversed(inside)


_TITLES: dict[type, tuple[str, ...]] = {
    Loop: ("each step: ",),
    Branch: ("if true: ", "if false: "),
}


def calls_of_python(program: Program) -> list[InPython]:
    """The calls of Python in a Program, and in the loops and branches inside of it."""
    return [
        InPython(step.name, getattr(step.function, "reason", _OBJECT), place)
        for place, found in nested_programs(program)
        for step in found.steps
        if isinstance(step, Python)
    ]


_OBJECT = "an object is made, copied or taken apart"
