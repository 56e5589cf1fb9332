"""Checks of ops: values, types, shapes, derivatives and batches."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from phintys.compile.function import function
from phintys.compile.mode import get_mode
from phintys.gradient import pullback, pushforward, verify_grad
from phintys.graph.op import Op
from phintys.graph.variable import Variable
from phintys.graph.vectorize import vectorize_graph
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.variable import TensorVariable
from phintys.testing.graphs import UNREWRITTEN

#: relative tolerance of values by dtype; other dtypes are compared exactly
RTOL = {
    **{"float16": 1e-2, "float32": 1e-5, "float64": 1e-9},
    **{"complex64": 1e-5, "complex128": 1e-9},
}


def available_modes() -> list[str]:
    """The names of the modes whose backends are installed.

    >>> available_modes()[:2]
    ['FAST_COMPILE', 'FAST_RUN']
    """
    needs = {
        "FAST_COMPILE": True,
        "FAST_RUN": True,
        "C": shutil.which("cc") is not None,
        "NUMBA": find_spec("numba") is not None,
        "JAX": find_spec("jax") is not None,
    }
    return [name for name, here in needs.items() if here]


def check_op(
    fun: Callable[..., Any],
    values: Sequence[Any],
    *,
    expected: Callable[..., Any] | None = None,
    modes: Sequence[Any] | None = None,
    derivatives: bool = True,
    batches: bool = True,
    rtol: float | None = None,
    atol: float = 1e-12,
    grad_rtol: float | None = None,
) -> None:
    """Raise AssertionError, with the name of the check, unless an op is right at a point.

    The value of each op's ``perform`` is compared with ``expected``, with the inferred shapes, and
    with the value in each mode, for contiguous arguments and for reversed views.  Both derivatives
    are compared with finite differences and with each other, and a batch with its items.  Errors
    of the op are raised as they are, also the one that a value does not fit the static type, and
    `GradientError` of a wrong pullback.

    Parameters
    ----------
    fun
        takes as many tensor variables as there are ``values``; returns one, or a list of them
    values
        arrays; the derivatives in those of floats are checked
    expected
        a function of arrays, which returns what ``fun`` should
    modes
        default: `available_modes`
    derivatives
        whether to check derivatives; only of outputs that are floats
    batches
        whether to check a batch: of each argument, and of it times 7/8 if it is a float
    rtol, atol
        tolerances of values; default of ``rtol``: by dtype, see `RTOL`
    grad_rtol
        tolerance of derivatives, as in `phintys.verify_grad`

    >>> import numpy as np, phintys.tensor as pt
    >>> check_op(pt.arctan2, [np.array([0.5, -1.0]), np.array([2.0, 3.0])], expected=np.arctan2)
    >>> check_op(lambda x: pt.sqrt(x) + 1e-6, [np.array([4.0])], expected=np.sqrt)
    Traceback (most recent call last):
    ...
    AssertionError: expected values, output 0:
    ...
    """
    case = _Case(fun, [np.asarray(v) for v in values], rtol, atol)
    if expected is not None:
        case.check_reference(expected)
    case.check_shapes()
    for mode in available_modes() if modes is None else modes:
        case.check_mode(mode)
    if derivatives:
        case.check_derivatives(grad_rtol)
    if batches:
        case.check_batches()


@dataclass
class _Case:
    """A function of tensors at a point."""

    fun: Callable[..., Any]
    values: list[np.ndarray]
    rtol: float | None
    atol: float

    @cached_property
    def inputs(self) -> list[TensorVariable]:
        """Inputs without static lengths, but for those of 1, which may broadcast."""
        types = [as_tensor_variable(v).type for v in self.values]
        free = [t.clone(shape=tuple(1 if n == 1 else None for n in t.shape)) for t in types]
        return [t(name=f"input {k}") for k, t in enumerate(free)]

    @cached_property
    def outputs(self) -> list[TensorVariable]:
        return _as_list(self.fun(*self.inputs))

    @cached_property
    def reference(self) -> list[np.ndarray]:
        """The values by each op's ``perform``, without rewriting."""
        return self.evaluated(UNREWRITTEN, self.outputs)

    def evaluated(
        self, mode: Any, outputs: Sequence[Variable], values: Sequence[Any] | None = None
    ) -> list[np.ndarray]:
        """The values of outputs for the arguments of this case, or for others."""
        f = function(self.inputs, list(outputs), mode=mode, on_unused_input="ignore")
        return f(*(self.values if values is None else values))

    def compare(self, found: Sequence[Any], expected: Sequence[Any], what: str) -> None:
        if len(found) != len(expected):
            raise AssertionError(f"{what}: {len(found)} values, expected {len(expected)}")
        for k, (a, b) in enumerate(zip(found, expected)):
            rtol = RTOL.get(np.asarray(a).dtype.name, 0.0) if self.rtol is None else self.rtol
            try:
                np.testing.assert_allclose(a, b, rtol=rtol, atol=self.atol if rtol else 0.0)
            except AssertionError as exc:
                raise AssertionError(f"{what}, output {k}:{exc}") from None

    # ----- values
    def check_reference(self, expected: Callable[..., Any]) -> None:
        wanted = [np.asarray(v) for v in _as_list(expected(*self.values))]
        self.compare(self.reference, wanted, "expected values")

    def check_shapes(self) -> None:
        shapes = self.evaluated("FAST_COMPILE", [v.shape for v in self.outputs])
        for k, (shape, value) in enumerate(zip(shapes, self.reference)):
            if tuple(shape) != value.shape:
                raise AssertionError(
                    f"inferred shape, output {k}: {tuple(map(int, shape))}, but the value has "
                    f"{value.shape}"
                )

    def check_mode(self, mode: Any) -> None:
        name = get_mode(mode).linker.name if not isinstance(mode, str) else mode
        f = function(self.inputs, self.outputs, mode=mode, on_unused_input="ignore")
        self.compare(f(*self.values), self.reference, f"mode {name}")
        views = [v[(slice(None, None, -1),) * v.ndim].copy() for v in self.values]
        views = [v[(slice(None, None, -1),) * v.ndim] for v in views]
        self.compare(f(*views), self.reference, f"mode {name}, reversed views")

    # ----- derivatives
    def check_derivatives(self, rtol: float | None) -> None:
        wrt = [k for k, v in enumerate(self.values) if v.dtype.kind == "f"]
        results = [v for v in self.outputs if v.type.dtype in ("float32", "float64")]
        if not wrt or not results:
            return
        for k in range(len(results)):
            verify_grad(
                lambda *xs, k=k: self._floats(wrt, xs)[k],
                [self.values[i] for i in wrt],
                rel_tol=rtol,
            )
        self._check_directions([self.inputs[k] for k in wrt], results)

    def _floats(self, wrt: Sequence[int], xs: Sequence[Variable]) -> list[TensorVariable]:
        """The float outputs as functions of float arguments; others are constants."""
        given: list[Any] = list(self.values)
        for k, x in zip(wrt, xs):
            given[k] = x
        outputs = _as_list(self.fun(*map(as_tensor_variable, given)))
        return [v for v in outputs if v.type.dtype in ("float32", "float64")]

    def _check_directions(self, wrt: list[TensorVariable], results: list[TensorVariable]) -> None:
        """The pushforward is the transpose of the pullback: ``w . J t = t . J^T w``."""
        tangents = [x * 0 + 0.5 for x in wrt]
        weights = [v * 0 + 1.5 for v in results]
        pushed = pushforward(results, wrt, tangents, disconnected_outputs="ignore")
        pulled = pullback(results, wrt, weights, disconnected_inputs="ignore")
        left = sum((p * w).sum() for p, w in zip(pushed, weights))
        right = sum((p * t).sum() for p, t in zip(pulled, tangents))
        a, b = self.evaluated("FAST_COMPILE", [cast("Variable", left), cast("Variable", right)])
        tolerance = 1e-2 if "float32" in {v.type.dtype for v in results} else 1e-6
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            raise AssertionError(f"pushforward: w . J t is {a}, by the pullback {b}")

    # ----- batches
    def check_batches(self) -> None:
        outer = [
            v.type.clone(shape=(None, *v.type.shape))(name=f"batch of {v.name}")
            for v in self.inputs
        ]
        batched = vectorize_graph(self.outputs, dict(zip(self.inputs, outer)))
        f = function(outer, batched, mode="FAST_COMPILE", on_unused_input="ignore")
        others = [(v * 0.875).astype(v.dtype) if v.dtype.kind in "fc" else v for v in self.values]
        second = self.evaluated(UNREWRITTEN, self.outputs, others)
        found = f(*map(np.stack, zip(self.values, others)))
        wanted = [np.stack(items) for items in zip(self.reference, second)]
        for k, (a, b) in enumerate(zip(batched, self.outputs)):
            if a.type.ndim == b.type.ndim:  # one value, which must be that of both items
                found[k] = np.stack([found[k]] * 2)
        self.compare(found, wanted, "batch")


def _as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


class OpContractTestMixin:
    """Tests of equality, hashing and printing of an op, for a test class to inherit.

    The class sets ``ops``, a list of different instances; ``other_op`` differs from all of them.
    """

    ops: Sequence[Op] = ()
    other_op: Op | None = None

    def clone(self, op: Op) -> Op:
        """An equal op, which is another object."""
        props = {name: getattr(op, name) for name in getattr(op, "__props__", ())}
        return type(op)(**props)

    def test_eq(self) -> None:
        assert self.ops, "the class attribute `ops` is empty"
        for i, a in enumerate(self.ops):
            assert a == self.clone(a)
            assert a != self.other_op
            assert all(a != b for b in self.ops[:i])

    def test_hash(self) -> None:
        assert all(hash(op) == hash(self.clone(op)) for op in self.ops)

    def test_name(self) -> None:
        for op in self.ops:
            assert str(op) == str(self.clone(op))
            assert str(op)


class InferShapeTester:
    """Compares shapes that are inferred with those of values; see also `check_op`.

    >>> import numpy as np, phintys.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> out = x.T
    >>> tester = InferShapeTester()
    >>> tester._compile_and_check([x], [out], [np.ones((2, 3))], type(out.owner.op))
    """

    mode: Any = None

    def setup_method(self) -> None:
        """Called by pytest before each test."""

    def _compile_and_check(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[TensorVariable],
        numeric_inputs: Sequence[Any],
        cls: type | tuple[type, ...],
        excluding: Sequence[str] | None = None,
        warn: bool = True,
        check_topo: bool = True,
    ) -> None:
        """Raise AssertionError if a shape is wrong, or if an op of ``cls`` is run to find it.

        ``excluding`` are tags of rewrites that are left out; ``warn`` is ignored.
        """
        mode = get_mode(self.mode).excluding(*(excluding or ()))
        values = function(list(inputs), list(outputs), mode=mode, on_unused_input="ignore")
        shapes = function(
            list(inputs), [v.shape for v in outputs], mode=mode, on_unused_input="ignore"
        )
        if check_topo:
            run = [node for node in shapes.maker.fgraph.toposort() if isinstance(node.op, cls)]
            assert not run, f"The shape is found by computing the value: {run}"
        for shape, value in zip(shapes(*numeric_inputs), values(*numeric_inputs), strict=True):
            assert tuple(shape) == np.shape(value), (tuple(shape), np.shape(value))
