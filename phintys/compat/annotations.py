"""Names of types that PyTensor's modules have for annotations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, Union

from phintys.graph.op import Op
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rewriter import GraphRewriter, NodeRewriter

C = TypeVar("C", bound=type)
T = TypeVar("T")
V = TypeVar("V", bound="Variable | None")
OpType = TypeVar("OpType", bound=Op)
OptionalApplyType = TypeVar("OptionalApplyType", bound="Apply | None")

StorageCellType: TypeAlias = list[Any]
InputStorageType: TypeAlias = list[StorageCellType]
OutputStorageType: TypeAlias = list[StorageCellType]
StorageMapType: TypeAlias = dict[Variable, StorageCellType]
ComputeMapType: TypeAlias = dict[Variable, list[bool]]


class ThunkType(Protocol):
    """A function without arguments that computes between storage cells."""

    inputs: list[StorageCellType]
    outputs: list[StorageCellType]
    lazy: bool

    def __call__(self) -> Any: ...


ClientType: TypeAlias = tuple[Apply, int]
ReplaceTypes: TypeAlias = Union[
    Iterable[tuple[Variable, Variable]], dict[Variable, Variable], dict[Any, Any]
]
NodeAndChildren: TypeAlias = tuple[Any, Union[Iterable[Any], None]]
RemoveKeyType: TypeAlias = Literal["remove"]
TransformOutputType: TypeAlias = Union[bool, Sequence[Variable], dict[Any, Any], None]
RewritesType: TypeAlias = Union[GraphRewriter, NodeRewriter]
OpPatternOpTypeType: TypeAlias = Union[type[Op], tuple[type[Op], ...]]
PatternElement: TypeAlias = Union[str, int, float, tuple[Any, ...], Variable, Op, type[Op]]
ThunkAndContainersType: TypeAlias = tuple[ThunkType, list[Any], list[Any]]
IDTypesType: TypeAlias = Literal["id", "int", "CHAR", "auto", ""]
KIND: TypeAlias = Literal["quicksort", "mergesort", "heapsort", "stable"]
KIND_VALUES = ("quicksort", "mergesort", "heapsort", "stable")
