"""Methods of users' classes that have the parameters of older systems."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

from phintys.errors import ShapeError
from phintys.graph.origin import stacklevel

_BY_POSITION = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD


def required(function: Callable[..., Any]) -> int:
    """The number of arguments that a function must be given by position.

    >>> required(lambda fgraph, node, enforce_tracks=True, *rest: None)
    2
    """
    found = signature(function).parameters.values()
    return sum(p.kind in _BY_POSITION and p.default is Parameter.empty for p in found)


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function can be given an argument by this name.

    >>> takes(lambda node, **options: None, "enforce_tracks"), takes(len, "enforce_tracks")
    (True, False)
    """
    found = signature(function).parameters
    return name in found or any(p.kind is Parameter.VAR_KEYWORD for p in found.values())


def adapted_infer_shape(cls: type, given: Any) -> Any:
    """The method ``infer_shape`` of a class of ops, from the one that is ``given`` in its body.

    It is called with a node and the shapes of its inputs, or with a graph before them.  A class
    with the older form, ``(self, fgraph, node, shapes)``, gives a DeprecationWarning; ``fgraph`` is
    None.  Shapes for which the method raises NotImplementedError or ShapeError are unknown.
    """
    if not isinstance(given, FunctionType):
        return given
    count = 2
    if required(given) == 4:
        count = 3
        warnings.warn(
            f"{cls.__qualname__}.infer_shape has a parameter fgraph, which is None: leave it out.",
            DeprecationWarning,
            stacklevel=stacklevel(),
        )

    @wraps(given)
    def infer_shape(self: Any, *arguments: Any) -> Sequence[Any]:
        try:
            return given(self, *(None, *arguments)[-count:])  # type: ignore[no-any-return]
        except (NotImplementedError, ShapeError):
            return [None] * len(arguments[-2].outputs)

    return infer_shape


def adapted_perform(given: Any) -> Any:
    """The method ``perform`` of an op, from the one that is ``given`` in the body of its class.

    It is called with a node, values and cells.  In the older form these are followed by parameters:
    what the op's ``get_params(node)`` returns, or the op, if it has no such method.
    """
    if not isinstance(given, FunctionType) or required(given) != 5:
        return given

    @wraps(given)
    def perform(self: Any, node: Any, inputs: Any, storage: Any, params: Any = None) -> None:
        if params is None:
            params = self.get_params(node) if hasattr(self, "get_params") else self
        given(self, node, inputs, storage, params)

    return perform


def adapted_do_constant_folding(given: Any) -> Any:
    """The method ``do_constant_folding`` of an op, from the one in the body of its class.

    It is called with a graph and a node.  The older form is ``(self, node)``.
    """
    if not isinstance(given, FunctionType) or required(given) != 2:
        return given

    @wraps(given)
    def do_constant_folding(self: Any, *arguments: Any) -> bool:
        return given(self, arguments[-1])  # type: ignore[no-any-return]

    return do_constant_folding


def adapted_transform(given: Any) -> Any:
    """The method ``transform`` of a node rewriter, from the one that is ``given`` in its class.

    It is called with a graph, a node and ``enforce_tracks``.  The older forms are ``(self, fgraph,
    node)`` and ``(self, node)``.
    """
    if not isinstance(given, FunctionType) or takes(given, "enforce_tracks"):
        return given
    count = required(given) - 1

    @wraps(given)
    def transform(self: Any, *arguments: Any, enforce_tracks: bool = True) -> Any:
        return given(self, *arguments[:2][-count:])

    return transform
