"""Which functions and ops have no derivative, and why: for the tables of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.op import Op
from phintys.scalar import scalars
from phintys.scalar.op import ScalarOp, Undefined, functions

ARGUMENTS = "xyzt"


def without_derivative() -> list[tuple[str, str]]:
    """Names of ops, and the reason that they state; ops for one reason are together."""
    found: dict[str, list[str]] = {}
    stack: list[type[Op]] = [Op]
    while stack:
        for cls in stack.pop().__subclasses__():
            if cls.__module__.startswith("phintys.") and not issubclass(cls, ScalarOp):
                stack.append(cls)
                reason = cls.not_differentiable
                if reason and not cls.__name__.startswith("_") and _says_so(cls):
                    found.setdefault(reason, []).append(cls.__name__)
    return sorted((", ".join(sorted(names)), reason) for reason, names in found.items())


def _says_so(cls: type[Op]) -> bool:
    """Whether a class states its reason, itself or in a private base class."""
    owner = next(b for b in cls.__mro__ if "not_differentiable" in vars(b))
    return owner is cls or owner.__name__.startswith("_")


def derivative(op: ScalarOp) -> str:
    """What the table of elementwise functions says of a derivative: yes, 0, or no, and why."""
    if op.d is None:
        return f"no: {op.not_differentiable}" if op.not_differentiable else "0"
    missing = undefined_partials(op)
    if not missing:
        return "yes"
    names = ", ".join(ARGUMENTS[i] for i in missing)
    return f"not in {names}: {next(iter(missing.values()))}"


def undefined_partials(op: ScalarOp, dtype: str = "float64") -> dict[int, str]:
    """The reasons why partial derivatives are not available, by argument."""
    for dtypes in _signatures(op, dtype):
        inputs: Sequence[Any] = [getattr(scalars, dt)() for dt in dtypes]
        try:
            out = op(*inputs)
        except TypeError:
            continue
        found = op.cotangents(functions, inputs, [out], [functions.second(out, 1.0)])
        return {i: g.why for i, g in enumerate(found) if isinstance(g, Undefined)}
    raise TypeError(f"{op} does not take {dtype}.")


def _signatures(op: ScalarOp, dtype: str) -> list[list[str]]:
    """Dtypes of arguments to try: all equal; the first an integer."""
    count = 2 if op.nin < 0 else op.nin
    return [[dtype] * count, ["int64", *[dtype] * (count - 1)]]
