"""Ops that call the iterative solvers of SciPy on the function that an inner graph computes.

The solution is a function of the parameters, given by the equation that it solves: the graph itself
for a root, the gradient of the graph for a minimum.  Its derivatives follow from that equation, and
do not depend on how it was solved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from phintys.gradient.forward import forward_sweep
from phintys.gradient.jacobian import jacobian
from phintys.gradient.reverse import backpropagate, grad
from phintys.graph.op import io_connection_pattern
from phintys.graph.replace import graph_replace
from phintys.graph.type import DisconnectedType, disconnected_type
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.inner.from_graph import OpFromGraph
from phintys.inner.op import InnerGraphOp
from phintys.lazy import lazy_scipy_module
from phintys.scalar.type import scalar_type
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.linalg.solvers.general import solve
from phintys.tensor.reshape import reshape
from phintys.tensor.variable import TensorVariable

scipy_optimize = lazy_scipy_module("optimize")


class LRUCache1:
    """A function of an array and further arguments, which remembers its last results.

    ``fn`` returns a value, and after it maybe its first and second derivative; the methods `value`,
    `grad`, `hess` and `value_and_grad` return these.  Calls in sequence with an equal first
    argument call ``fn`` once; the further arguments are taken to be the same.

    Parameters
    ----------
    fn : the function
    copy_x : whether the array is copied: needed if the caller changes it in place
    """

    def __init__(self, fn: Callable[..., Any], copy_x: bool = False) -> None:
        self.fn, self.copy_x = fn, copy_x
        self.clear_cache()

    def clear_cache(self) -> None:
        """Forget the last results and the counts."""
        self.last_x: np.ndarray | None = None
        self.last_result: tuple[Any, ...] = ()
        self.cache_hits = self.cache_misses = 0

    def _results(self, x: np.ndarray, *args: Any) -> tuple[Any, ...]:
        if self.last_x is not None and np.array_equal(x, self.last_x):
            self.cache_hits += 1
            return self.last_result
        self.cache_misses += 1
        found = self.fn(x, *args)
        self.last_result = tuple(found) if isinstance(found, tuple | list) else (found,)
        self.last_x = x.copy() if self.copy_x else x
        return self.last_result

    def value(self, x: np.ndarray, *args: Any) -> Any:
        return self._results(x, *args)[0]

    def grad(self, x: np.ndarray, *args: Any) -> Any:
        return self._results(x, *args)[1]

    def value_and_grad(self, x: np.ndarray, *args: Any) -> tuple[Any, Any]:
        return self._results(x, *args)[:2]  # type: ignore[return-value]

    def hess(self, x: np.ndarray, *args: Any) -> Any:
        return self._results(x, *args)[2]

    def report(self) -> None:
        """Print how many calls were answered from memory."""
        print(f"LRUCache1: {self.cache_hits} hits, {self.cache_misses} misses")


#: why compiled functions compute the ops in Python
_ALGORITHM = "SciPy has the algorithm; it calls the compiled inner graph"


class ScipyWrapperOp(InnerGraphOp):
    """Base class of the ops.

    The inputs of a node are the initial value of the unknown, the parameters, and bounds.  Those of
    the inner graph are the unknown and the parameters; its outputs are the function, and those of
    its derivatives that the solver is given.  The outputs of a node are the solution and a bool:
    whether the solver reports success.

    Attributes
    ----------
    method : SciPy's name of the solver
    optimizer_kwargs : further arguments of the function of SciPy
    bound_kwargs : the names of those that are inputs of a node, as vectors
    is_minimization : whether the solution is a minimum of the graph, not a root
    """

    __props__ = ("method", "options", "bound_kwargs", "flags")
    has_graph_derivatives = False
    is_minimization: ClassVar[bool] = False

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        method: str,
        optimizer_kwargs: Mapping[str, Any] | None,
        bound_kwargs: Sequence[str] = (),
        **flags: bool,
    ) -> None:
        if not isinstance(optimizer_kwargs, Mapping | None):
            raise TypeError(f"optimizer_kwargs is a dict of options, not {optimizer_kwargs!r}.")
        super().__init__(inputs, outputs)
        self.method = method
        self.optimizer_kwargs = dict(optimizer_kwargs or {})
        self.options = _hashable(self.optimizer_kwargs, "optimizer_kwargs")
        self.bound_kwargs = tuple(bound_kwargs)
        self.flags = tuple(flags.items())
        vars(self).update(flags)

    def make_node(self, *inputs: Any) -> Apply:
        given = [v.type.filter_variable(x) for v, x in zip(self.fgraph.inputs, inputs)]
        bounds = [as_tensor_variable(x) for x in inputs[len(given) :]]
        if len(inputs) != len(self.fgraph.inputs) + len(self.bound_kwargs):
            raise ValueError(f"{self} takes {len(self.fgraph.inputs)} inputs and its bounds.")
        unknown = self.fgraph.inputs[0].type.make_variable()
        success = scalar_type("bool").make_variable()
        success.name = "success"
        return Apply(self, [*given, *bounds], [unknown, success])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0], ()]

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False

    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        """A node that solves a problem for each item of a batch; success is a tensor of bools."""
        inputs = [v.type.make_variable() for v in node.inputs]
        solution, success = self.make_node(*inputs).outputs
        core = OpFromGraph(inputs, [solution, as_tensor_variable(success)], name=str(self))
        return late_bound["blockwise"](core.make_node(*inputs), *batched_inputs)

    # ----- perform
    @cached_property
    def fn_wrapped(self) -> Callable[..., list[Any]]:
        """The compiled function of the inner graph."""
        graph = self.thawed()
        return late_bound["function"](graph.inputs, graph.outputs, on_unused_input="ignore")

    def solver(self, inputs: Sequence[Any]) -> tuple[LRUCache1, dict[str, Any]]:
        """The function of the unknown as an array of its rank, for the parameters among ``inputs``,
        and the arguments of SciPy's function besides it.
        """
        count = len(self.fgraph.inputs)
        parameters, bounds = inputs[1:count], inputs[count:]
        x, fn = inputs[0], self.fn_wrapped

        def compute(values: Any) -> list[Any]:
            return fn(np.asarray(values, x.dtype).reshape(x.shape), *parameters)

        given = {name: tuple(values) for name, values in zip(self.bound_kwargs, bounds)}
        return LRUCache1(compute, copy_x=True), {**self.optimizer_kwargs, **given}

    def store(self, found: Any, success: Any, node: Apply, inputs: Any, cells: Any) -> None:
        """Store a solution, which SciPy returns as an array of another shape, or a number."""
        x = np.asarray(found, node.outputs[0].type.dtype)
        cells[0][0], cells[1][0] = x.reshape(inputs[0].shape), np.bool_(success)

    # ----- derivatives
    @cached_property
    def implicit(self) -> tuple[list[Variable], Variable]:
        """Inputs of a graph, and what is zero at the solution."""
        graph = self.smooth
        function: Any = graph.outputs[0]
        if self.is_minimization:
            function = grad(function, graph.inputs[0], disconnected_inputs="ignore")
        return list(graph.inputs), function

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        inputs, equation = self.implicit
        reached = io_connection_pattern(inputs, [equation])
        parameters = [[row[0], False] for row in reached[1:]]
        return [[True, False], *parameters, *([[False, False]] * len(self.bound_kwargs))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """The unknown's initial value has no influence: its cotangent is zero."""
        unknowns, equation = self.implicit
        count = len(unknowns)
        multiplier = self._solved(equation, unknowns[0], cotangents[0], transposed=True)
        found = backpropagate({equation: -multiplier}, unknowns[1:])
        present = {k: g for k, v in enumerate(unknowns) if (g := found.get(v)) is not None}
        at = {unknowns[0]: outputs[0], **dict(zip(unknowns[1:], inputs[1:count]))}
        replaced = dict(zip(present, graph_replace(list(present.values()), at, strict=False)))
        rest = [replaced.get(k, disconnected_type()) for k in range(1, len(inputs))]
        return [inputs[0].zeros_like(), *rest]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        unknowns, equation = self.implicit
        pairs = zip(unknowns[1:], tangents[1:])
        start = {v: t for v, t in pairs if not isinstance(t.type, DisconnectedType)}
        (change,) = forward_sweep([equation], start)
        if change is None:
            return [outputs[0].zeros_like(), disconnected_type()]
        found = self._solved(equation, unknowns[0], -change)
        at = {unknowns[0]: outputs[0], **dict(zip(unknowns[1:], inputs[1 : len(unknowns)]))}
        return [graph_replace(found, at, strict=False), disconnected_type()]

    @staticmethod
    def _solved(equation: Any, x: Any, right: Any, transposed: bool = False) -> TensorVariable:
        """The solution of the linear system whose matrix is the Jacobian of the equation."""
        matrix = jacobian(equation, x, disconnected_inputs="ignore")
        if x.type.ndim == 0:
            return right / matrix
        matrix = reshape(matrix, (x.size, x.size))
        return reshape(solve(matrix.T if transposed else matrix, right.ravel()), x.shape)

    def __str__(self) -> str:
        flags = "".join(f", {name}={value}" for name, value in self.flags)
        return f"{type(self).__name__}(method={self.method}{flags})"


def _hashable(value: Any, place: str) -> Any:
    """A value of which dicts, lists and arrays are replaced by tuples.

    TypeError, which names ``place``, if it contains another value that has no hash.
    """
    if isinstance(value, Mapping):
        return tuple(sorted((k, _hashable(v, f"{place}[{k!r}]")) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_hashable(v, f"{place}[{k}]") for k, v in enumerate(value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"{place} is a {type(value).__name__}, which has no hash. Ops are compared by their "
            "options: these may be numbers, texts, functions, arrays, and lists, tuples and dicts "
            "of such values."
        ) from None
    return value


class ScipyScalarWrapperOp(ScipyWrapperOp):
    """Base class of the ops whose unknown is a number."""


class ScipyVectorWrapperOp(ScipyWrapperOp):
    """Base class of the ops whose unknown is an array."""


def _derivatives(function: Any, x: Any, jac: bool, hess: bool) -> list[Any]:
    """The function, with its derivative and its second derivative in ``x`` if these are wanted."""
    wanted = [function]
    if jac or hess:
        wanted.append(jacobian(function, x, disconnected_inputs="ignore"))
    if hess:
        wanted.append(jacobian(wanted[1], x, disconnected_inputs="ignore"))
    return wanted


class MinimizeOp(ScipyVectorWrapperOp):
    """The op of `minimize`.

    ``x`` is the unknown, ``args`` the other variables that ``objective`` depends on.
    """

    in_python = _ALGORITHM

    is_minimization = True
    jac: bool
    hess: bool

    def __init__(
        self,
        x: Variable,
        *args: Variable,
        objective: Variable,
        method: str,
        jac: bool = True,
        hess: bool = False,
        optimizer_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        outputs = _derivatives(objective, x, jac, hess)
        super().__init__([x, *args], outputs, method, optimizer_kwargs, jac=jac, hess=hess)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        function, given = self.solver(inputs)
        size = inputs[0].size
        if self.hess:
            given["hess"] = lambda x: function.hess(x).reshape(size, size)
        found = scipy_optimize.minimize(
            lambda x: float(function.value(x)),
            inputs[0].ravel(),
            method=self.method,
            jac=(lambda x: function.grad(x).ravel()) if self.jac else None,
            **given,
        )
        self.store(found.x, found.success, node, inputs, output_storage)


class MinimizeScalarOp(ScipyScalarWrapperOp):
    """The op of `minimize_scalar`, with the arguments of `MinimizeOp` and the names of bounds."""

    in_python = _ALGORITHM

    is_minimization = True

    def __init__(
        self,
        x: Variable,
        *args: Variable,
        objective: Variable,
        method: str,
        optimizer_kwargs: Mapping[str, Any] | None = None,
        bound_kwargs: Sequence[str] = (),
    ) -> None:
        super().__init__([x, *args], [objective], method, optimizer_kwargs, bound_kwargs)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        function, given = self.solver(inputs)
        found = scipy_optimize.minimize_scalar(
            lambda x: float(function.value(np.asarray(x))), method=self.method, **given
        )
        self.store(found.x, found.success, node, inputs, output_storage)


class RootOp(ScipyVectorWrapperOp):
    """The op of `root`.

    ``variables`` is the unknown, ``args`` the other variables that ``equations`` depend on.
    """

    in_python = _ALGORITHM

    jac: bool

    def __init__(
        self,
        variables: Variable,
        *args: Variable,
        equations: Variable,
        method: str,
        jac: bool = True,
        optimizer_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        outputs = _derivatives(equations, variables, jac, False)
        super().__init__([variables, *args], outputs, method, optimizer_kwargs, jac=jac)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        function, given = self.solver(inputs)
        size = inputs[0].size
        found = scipy_optimize.root(
            lambda x: function.value(x).ravel(),
            inputs[0].ravel(),
            method=self.method,
            jac=(lambda x: function.grad(x).reshape(size, size)) if self.jac else None,
            **given,
        )
        self.store(found.x, found.success, node, inputs, output_storage)


class RootScalarOp(ScipyScalarWrapperOp):
    """The op of `root_scalar`, with the arguments of `RootOp` and the names of bounds."""

    in_python = _ALGORITHM

    jac: bool
    hess: bool

    def __init__(
        self,
        variables: Variable,
        *args: Variable,
        equation: Variable,
        method: str,
        jac: bool = False,
        hess: bool = False,
        optimizer_kwargs: Mapping[str, Any] | None = None,
        bound_kwargs: Sequence[str] = (),
    ) -> None:
        outputs = _derivatives(equation, variables, jac, hess)
        flags = {"jac": jac, "hess": hess}
        super().__init__(
            [variables, *args], outputs, method, optimizer_kwargs, bound_kwargs, **flags
        )

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        function, given = self.solver(inputs)
        derivatives = {"fprime": function.grad, "fprime2": function.hess}
        wanted = {"fprime": self.jac, "fprime2": self.hess}
        given |= {
            name: lambda x, f=derivative: float(f(np.asarray(x)))
            for name, derivative in derivatives.items()
            if wanted[name]
        }
        found = scipy_optimize.root_scalar(
            lambda x: float(function.value(np.asarray(x))),
            method=self.method,
            **{"x0": float(inputs[0]), **given},
        )
        self.store(found.root, found.converged, node, inputs, output_storage)
