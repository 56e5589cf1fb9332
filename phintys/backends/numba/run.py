"""Compiles a FunctionGraph with Numba as one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from phintys.backends.numba.dispatch import (
    convert_node,
    is_supported,
    jit,
    numba_funcify,
    numba_typify,
    passed_as_argument,
)
from phintys.backends.numba.fusion import fused
from phintys.backends.protocol import Run, Transpiler
from phintys.backends.source import Generated, Transpiled, generate, interpreted
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.inner import expanded
from phintys.graph.variable import Constant


def compile_fgraph(fgraph: FunctionGraph) -> Run:
    """A callable from a list of input values to the list of output values, NumPy arrays.

    Numba compiles at the first call.

    >>> import numpy as np, phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> compile_fgraph(phintys.FunctionGraph([x], [x + x]))([np.ones(2)])
    [array([2., 2.])]
    """
    fgraph = expanded(fgraph)
    return interpreted(fgraph, "Numba", is_supported) or Transpiled(fgraph, Compiled(fused(fgraph)))


@numba_funcify.register(FunctionGraph)
def _(op: Any, node: Any = None, fgraph_name: str = "numba_function", **kwargs: Any) -> Any:
    graph = fused(expanded(op))
    return jit(generate(graph, convert_node, numba_typify, name=fgraph_name, **kwargs).function)


class Numba:
    """The object that obeys `Transpiler`."""

    def compile(self, fgraph: FunctionGraph) -> Run:
        return compile_fgraph(fgraph)


backend: Transpiler = Numba()


class Compiled:
    """The Numba function of a graph; Numba compiles it at the first call."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        self.generated = _generated(fgraph, passed_as_argument)
        self.function = jit(self.generated.function)

    @cached_property
    def jit_fn(self) -> Any:
        """The Numba function of the inputs alone: constants are parts of its code."""
        if not self.generated.arguments:
            return self.function
        return jit(_generated(self.fgraph, lambda constant: False).function)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The results.

        If a signal handler raises while compiled code runs, Numba raises a SystemError, whose cause
        is the exception of the handler; that is raised instead.
        """
        try:
            return list(self.function(*map(numba_typify, values), *self.generated.arguments))
        except SystemError as error:  # "returned a result with an exception set"
            if error.__cause__ is None:
                raise
            raise error.__cause__ from None


def _generated(fgraph: FunctionGraph, as_argument: Callable[[Constant], bool]) -> Generated:
    """The Python function of a graph, whose calls are of Numba functions."""
    name = "numba_function"
    return generate(fgraph, convert_node, numba_typify, name=name, as_argument=as_argument)
