"""`SymbolicOp`: ops whose graph a method builds for the types of the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from phintys.errors import MethodNotDefined
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Variable
from phintys.inner.from_graph import OpFromGraph


class SymbolicOp(OpFromGraph):
    """An `OpFromGraph` whose graph is built for the inputs that it is applied to.

    A subclass defines `build_inner_graph`.  It may define `filter_inputs`, which makes variables of
    arguments, and derivatives in place of those of the graph: `pullback`, `pushforward`.  Its
    constructor sets its ``__props__`` and passes the other arguments on.

    Parameters
    ----------
    input_types
        the types of the inputs; None: the graph is built when the op is applied
    **kwargs
        options of `OpFromGraph`

    >>> import phintys.tensor as pt
    >>> class Scaled(SymbolicOp):
    ...     __props__ = ("factor",)
    ...
    ...     def __init__(self, factor, **kwargs):
    ...         self.factor = factor
    ...         super().__init__(**kwargs)
    ...
    ...     def build_inner_graph(self, x):
    ...         return [self.factor * x]
    >>> x = pt.dvector("x")
    >>> Scaled(3)(x).owner
    Scaled{factor=3}(x)
    >>> Scaled(3)(x).eval({x: [1.0, 2.0]})
    array([3., 6.])
    """

    # ----- class and static shape
    #: whether rewriting replaces the op by its graph, before anything else
    inline: bool = False
    # what an op without a graph has; OpFromGraph sets them
    fgraph: Any = None
    is_inline = False
    shared_inputs: tuple[Variable, ...] = ()
    pullback_overrides = pushforward_overrides = given_pattern = None
    destroyed: tuple[Any, ...] = ()
    origins: tuple[Any, ...] = ()
    name: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the text of the class, where the metaclass derives another from all props."""
        super().__init_subclass__(**kwargs)
        if vars(cls).get("__str__", SymbolicOp.__str__).__module__ != cls.__module__:
            cls.__str__ = SymbolicOp.__str__
            cls._props_dict = _own_props

    def __init__(self, input_types: Sequence[Type[Any]] | None = None, **kwargs: Any) -> None:
        self._options: dict[str, Any] = {"inline": self.inline, "strict": True, **kwargs}
        if input_types is not None:
            self._build(input_types)

    def build_inner_graph(self, *inputs: Any) -> Sequence[Variable]:
        """The outputs as functions of variables for the inputs; a single one need not be a list."""
        raise MethodNotDefined(f"{type(self).__name__} does not define build_inner_graph.")

    @staticmethod
    def filter_inputs(*inputs: Any) -> Sequence[Variable]:
        """The arguments of a call as variables."""
        for x in inputs:
            if not isinstance(x, Variable):
                raise TypeError(f"Expected a variable, not {x!r}.")
        return inputs

    def _build(self, types: Sequence[Type[Any]]) -> None:
        inputs = [t.make_variable() for t in types]
        found = self.build_inner_graph(*inputs)
        outputs = [found] if isinstance(found, Variable) else list(found)
        super().__init__(inputs, outputs, **self._options)

    def _built(self, types: Sequence[Type[Any]]) -> Self:
        """A copy whose graph is for inputs of some types."""
        copy = self.clone()
        copy._build(types)
        return copy

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        variables = self.filter_inputs(*inputs)
        op = self._built([v.type for v in variables])
        return super(SymbolicOp, op).__call__(*variables, **kwargs)

    def make_node(self, *inputs: Any) -> Apply:
        if self.fgraph is not None:
            return super().make_node(*inputs)
        variables = self.filter_inputs(*inputs)
        return self._built([v.type for v in variables]).make_node(*variables)

    @property
    def input_types(self) -> list[Any]:
        return [] if self.fgraph is None else super().input_types

    @property
    def inner_graphs(self) -> Mapping[str, Any]:
        return {} if self.fgraph is None else {"": self.fgraph}

    def __str__(self) -> str:
        shown = _own_props(self) or {"inline": self.inline}
        label = self.name or type(self).__name__
        return f"{label}{{{', '.join(f'{name}={value}' for name, value in shown.items())}}}"


def _own_props(op: SymbolicOp) -> dict[str, Any]:
    """The arguments of the constructor that make an equal op without a graph."""
    own = [name for name in op.__props__ if name not in SymbolicOp.__props__]
    return {name: getattr(op, name) for name in own}


class FinalizedOpFromGraph(OpFromGraph):
    """An `OpFromGraph` whose graph is not rewritten by itself: it is as it should be compiled."""

    def thawed_inner_graphs(self) -> dict[str, Any]:
        return {}
