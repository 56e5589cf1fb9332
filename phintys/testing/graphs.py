"""Assertions about graphs, and about what rewriting makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.compile.callable import Function
from phintys.compile.function import function
from phintys.compile.mode import Mode
from phintys.graph.equality import equal_computations
from phintys.graph.replace import clone_replace
from phintys.graph.variable import Apply, Variable
from phintys.rewriting import rewrite_graph
from phintys.show import dprint

#: evaluates a graph as it is, by each op's ``perform``
UNREWRITTEN = Mode("py", None)


def assert_equal_computations(
    xs: Sequence[Any],
    ys: Sequence[Any],
    in_xs: Sequence[Variable] | None = None,
    in_ys: Sequence[Variable] | None = None,
    strict_dtype: bool = True,
    original: Any = None,
) -> None:
    """Raise AssertionError, with both graphs, unless they are structurally equal.

    Parameters
    ----------
    xs, ys, in_xs, in_ys, strict_dtype
        as in `phintys.graph.equality.equal_computations`
    original
        a graph that the message shows too, for instance the one before rewriting

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> assert_equal_computations([x + 1], [y + 1], [x], [y])
    """
    if equal_computations(xs, ys, in_xs, in_ys, strict_dtype):
        return
    sides = [("found", xs), ("expected", ys)]
    if original is not None:
        sides.append(("original", original if isinstance(original, list | tuple) else [original]))
    raise AssertionError(
        "The graphs differ.\n" + "\n".join(f"{name}:\n{_drawn(graph)}" for name, graph in sides)
    )


def _drawn(graph: Sequence[Any]) -> str:
    variables = [v for v in graph if isinstance(v, Variable)]
    plain = [repr(v) for v in graph if not isinstance(v, Variable)]
    trees = [dprint(variables, file="str").rstrip("\n")] if variables else []
    return "\n".join([*trees, *plain])


class RewriteTester:
    """A graph before and after rewriting, and assertions about both.

    Parameters
    ----------
    inputs, outputs
        the graph
    include, exclude
        tags of the rewrites that are applied and left out, as in `phintys.rewrite_graph`
    custom_rewrite
        a rewriter that is applied after them
    clone
        whether the graph is copied before

    ``rewritten`` is the list of outputs after rewriting.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> tester = RewriteTester([x], [pt.log(pt.exp(x))])
    >>> tester.assert_graph([x])
    >>> tester.assert_eval([[1.0, 2.0]])
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        include: Sequence[str] = ("canonicalize", "stabilize", "specialize"),
        exclude: Sequence[str] = (),
        custom_rewrite: Any = None,
        clone: bool = True,
    ) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.rewritten: list[Variable] = rewrite_graph(
            self.outputs,
            include=tuple(include),
            exclude=tuple(exclude),
            custom_rewrite=custom_rewrite,
            clone=clone,
        )

    def assert_graph(self, expected: Sequence[Variable], strict_dtype: bool = True) -> None:
        """The rewritten graph equals ``expected``, which is a function of the same inputs."""
        assert_equal_computations(
            self.rewritten, expected, self.inputs, self.inputs, strict_dtype, self.outputs
        )

    def assert_eval(
        self, values: Sequence[Any], rtol: float = 1e-7, atol: float = 0.0, mode: Any = None
    ) -> None:
        """Both graphs have the same values in ``mode``; by default they are not rewritten again."""
        mode = UNREWRITTEN if mode is None else mode
        graphs = clone_replace([*self.outputs, *self.rewritten])
        found = function(self.inputs, graphs, mode=mode, on_unused_input="ignore")(*values)
        for before, after in zip(found, found[len(self.outputs) :]):
            np.testing.assert_allclose(after, before, rtol=rtol, atol=atol)


class OptimizationTestMixin:
    """Assertions about the ops of a compiled function.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> f = phintys.function([x], pt.exp(x).sum())
    >>> OptimizationTestMixin().assertFunctionContains1(f, pt.exp)
    """

    def assertFunctionContains(
        self, f: Function, op: Any, min: int = 1, max: float = float("inf")
    ) -> None:
        """Between ``min`` and ``max`` nodes of the rewritten graph have this op."""
        self._assert_count(f, lambda node: node.op == op, op, min, max)

    def assertFunctionContains0(self, f: Function, op: Any) -> None:
        """No node has this op."""
        self.assertFunctionContains(f, op, min=0, max=0)

    def assertFunctionContains1(self, f: Function, op: Any) -> None:
        """One node has this op."""
        self.assertFunctionContains(f, op, min=1, max=1)

    def assertFunctionContainsN(self, f: Function, op: Any, N: int) -> None:
        """``N`` nodes have this op."""
        self.assertFunctionContains(f, op, min=N, max=N)

    def assertFunctionContainsClass(
        self, f: Function, op: type, min: int = 1, max: float = float("inf")
    ) -> None:
        """Between ``min`` and ``max`` nodes have an op of this class."""
        self._assert_count(f, lambda node: isinstance(node.op, op), op, min, max)

    def assertFunctionContainsClassN(self, f: Function, op: type, N: int) -> None:
        """``N`` nodes have an op of this class."""
        self.assertFunctionContainsClass(f, op, min=N, max=N)

    def _assert_count(
        self, f: Function, wanted: Callable[[Apply], bool], op: Any, least: int, most: float
    ) -> None:
        nodes = f.maker.fgraph.toposort()
        count = sum(map(wanted, nodes))
        if not least <= count <= most:
            raise AssertionError(
                f"{count} nodes have {op}; expected {least} to {most}.\n{dprint(f, file='str')}"
            )
