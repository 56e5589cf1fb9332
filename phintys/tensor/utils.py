"""Names of PyTensor's ``tensor.utils``: helpers of authors of ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from numpy.typing import ArrayLike

from phintys.graph.variable import Variable
from phintys.tensor.blockwise import parse_signature
from phintys.tensor.reduce import normalize_reduce_axis
from phintys.tensor.static import known_length

__all__ = [
    "TensorLike",
    "get_static_shape_from_size_variables",
    "normalize_reduce_axis",
    "safe_signature",
]

#: what `as_tensor_variable` converts
TensorLike: TypeAlias = Variable | Sequence[Variable] | ArrayLike


def get_static_shape_from_size_variables(size_vars: Sequence[Variable]) -> tuple[int | None, ...]:
    """The lengths that are known when the graph is built, None for others.

    >>> import phintys.tensor as pt
    >>> get_static_shape_from_size_variables([pt.constant(3), pt.lscalar("n")])
    (3, None)
    """
    return tuple(known_length(n) for n in size_vars)


def _parse_gufunc_signature(  # pyright: ignore[reportUnusedFunction]
    signature: str,
) -> tuple[list[tuple[str, ...]], ...]:
    """Names of the core axes of inputs and outputs, as two lists; ValueError if it is none.

    >>> _parse_gufunc_signature("(m,k),(k)->(m)")
    ([('m', 'k'), ('k',)], [('m',)])
    """
    return tuple(list(cores) for cores in parse_signature(signature))


def safe_signature(core_inputs_ndim: Sequence[int], core_outputs_ndim: Sequence[int]) -> str:
    """The gufunc signature with these ranks of inputs and outputs, in which all axes differ.

    >>> safe_signature([0, 2], [1])
    '(),(i10,i11)->(o00)'
    """

    def side(letter: str, ranks: Sequence[int]) -> str:
        cores = [",".join(f"{letter}{k}{a}" for a in range(n)) for k, n in enumerate(ranks)]
        return ",".join(f"({core})" for core in cores)

    return f"{side('i', core_inputs_ndim)}->{side('o', core_outputs_ndim)}"
