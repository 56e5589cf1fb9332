"""Constructors of variables by rank and dtype: ``vector("x")``, ``dmatrix("A")``, ``fscalars``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from phintys.config import config
from phintys.graph.type import several
from phintys.scalar import dtypes
from phintys.tensor.aliases import DTypeLike, ShapeOfType, StaticShape
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable

__all__ = [
    "tensor",
]

PREFIXES = {
    "b": "int8", "w": "int16", "i": "int32", "l": "int64",
    "f": "float32", "d": "float64", "c": "complex64", "z": "complex128",
}  # fmt: skip
SHAPES: dict[str, StaticShape] = {
    "scalar": (), "vector": (None,), "matrix": (None, None), "row": (1, None), "col": (None, 1),
    **{f"tensor{n}": (None,) * n for n in range(3, 8)},
}  # fmt: skip

Constructor = Callable[..., TensorVariable]


def tensor(
    name: str | None = None,
    *,
    dtype: DTypeLike | None = None,
    shape: ShapeOfType | None = None,
    **kwargs: Any,
) -> TensorVariable:
    """A tensor variable.

    Parameters
    ----------
    name : a label
    dtype : floatX unless given
    shape : for each axis a length, or None where it is not known; required

    >>> tensor("x", dtype="float32", shape=(None, 3)).type
    TensorType(float32, shape=(None, 3))
    """
    if isinstance(name, str) and name in dtypes.ALL:
        raise ValueError(f"The first argument of tensor is the name; write dtype={name!r}.")
    return _variable(name, dtype, shape, **kwargs)


def _variable(
    name: str | None, dtype: DTypeLike | None, shape: ShapeOfType | None, **kwargs: Any
) -> TensorVariable:
    return TensorType(config.floatX if dtype is None else dtype, shape=shape, **kwargs)(name=name)


def _constructor(kind: str, shape: StaticShape) -> Constructor:
    def make(
        name: str | None = None, *, dtype: DTypeLike | None = None, shape: StaticShape = shape
    ) -> TensorVariable:
        return _variable(name, dtype, _checked(kind, shape))

    make.__name__ = make.__qualname__ = kind
    make.__doc__ = (
        f"A variable of static shape {shape}: ``{kind}(name=None, dtype=floatX, shape={shape})``."
    )
    return make


def _checked(kind: str, shape: Sequence[int | None]) -> StaticShape:
    default = SHAPES[kind]
    shape = tuple(shape)
    if len(shape) != len(default):
        raise ValueError(f"The shape of a {kind} has {len(default)} entries, got {shape}.")
    if any(n not in (None, d) for d, n in zip(default, shape) if d is not None):
        raise ValueError(f"The shape of a {kind} is {default}, which {shape} contradicts.")
    return tuple(d if n is None else n for d, n in zip(default, shape))


def _several(make: Constructor, name: str) -> Callable[..., TensorVariable | list[TensorVariable]]:
    def plural(
        *names: str | int | Sequence[str], dtype: DTypeLike | None = None
    ) -> TensorVariable | list[TensorVariable]:
        return several(make if dtype is None else partial(make, dtype=dtype), names)

    plural.__name__ = plural.__qualname__ = name
    plural.__doc__ = (
        f"Variables, one for each name: ``{name}('x', 'y')``, or for each letter of one name: "
        f"``{name}('xy')``.  ``{name}('x')`` is one variable, ``{name}(2)`` a list of two without "
        "names."
    )
    return plural


def _plural(kind: str) -> str:
    return {"matrix": "matrices"}.get(kind, f"{kind}s")


def _all() -> dict[str, Callable[..., Any]]:
    """All constructors by name: those of floatX, then those with a dtype prefix."""
    found: dict[str, Callable[..., Any]] = {}
    for kind, shape in SHAPES.items():
        found[kind] = _constructor(kind, shape)
        found[_plural(kind)] = _several(found[kind], _plural(kind))
        for letter, dtype in PREFIXES.items():
            found[letter + kind] = TensorType(dtype, shape)
            plural = letter + _plural(kind)
            found[plural] = _several(found[letter + kind], plural)
    return found


CONSTRUCTORS = _all()
_FAMILIES = {"int": "bwil", "float": "fd", "complex": "cz"}
_KINDS: dict[str, StaticShape] = {
    "": (), "_scalar": (), "_vector": (None,), "_matrix": (None, None),
}  # fmt: skip
#: tuples of types by name: ``int_vector_types``; ``int_types`` are those of scalars
TYPES: dict[str, tuple[TensorType, ...]] = {
    f"{family}{kind}_types": tuple(TensorType(PREFIXES[letter], shape) for letter in letters)
    for family, letters in _FAMILIES.items()
    for kind, shape in _KINDS.items()
}
