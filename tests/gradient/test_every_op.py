"""Both derivatives of every op, first and second: generated for all ops of the package.

The points are the nodes of ``tests/matrix/matrix_nodes.py`` and the rows of the scalar table.  An
op without derivatives states the reason, in `Op.not_differentiable`.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from derivative_checks import (
    Point,
    check,
    check_narrow,
    derivatives,
    is_continuous,
    point_of,
    point_of_node,
)
from matrix_nodes import GROUPS, SMOOTH, examples, package_ops
from rows import ROWS, accepts, arity, points
from tiers import few, rest

import phintys
import phintys.tensor as pt
from phintys import grad, pushforward
from phintys.errors import DisconnectedInputError, NullTypeGradError
from phintys.gradient.barriers import ViewOp
from phintys.gradient.rules import is_null
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.inner import InnerGraphOp
from phintys.scalar import Composite, float64
from phintys.scalar.op import TABLE
from phintys.tensor import reduce
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.from_jax import JAXOp

#: ops that take no complex numbers, or a real number beside them
REAL = set("ARange CholeskyPullback Einsum LogSoftmax LogSumExp Lstsq Scan Softmax".split())
REAL |= set(
    "FinalizedOpFromGraph JAXOp ConnectionistTemporalClassification".split()
)  # of these types
REAL |= {"MinimizeOp", "MinimizeScalarOp", "RootOp", "RootScalarOp"}
REAL |= {"TensorInv", "TensorSolve"}  # whose graphs are for the types of the inputs
#: ops whose derivatives in other dtypes are in ``make test``
SOME = "Dot Sum Max Prod Join Subtensor AdvancedIncSubtensor Cholesky Solve Einsum".split()
#: groups of expressions whose derivatives are compiled in ``make test``
COMPILED = "shapes indices products matrices control".split()
RNG = np.random.default_rng(0)


def points_of(cls: type[Op], dtype: str, static: bool = False) -> list[Point]:
    """The points of an op for a dtype of its continuous inputs; none if it has no such inputs."""
    found = []
    for node, values in examples("complex128" if dtype == "complex128" else "float64").get(cls, []):
        try:
            point = point_of_node(node, values, dtype, static)
        except (TypeError, ValueError):  # of an op, the dtype of its result, or its inner graph
            assert dtype != "float64"
            continue
        if any(map(is_continuous, point.inputs)) and point.outputs:
            found.append(point)
    return found


OPS = {name: cls for name, cls in package_ops().items() if cls is not Elemwise}
WITH, WITHOUT = (
    [name for name, cls in OPS.items() if bool(cls.not_differentiable) is lacks]
    for lacks in (False, True)
)


@pytest.mark.parametrize("name", OPS)
def test_there_is_an_example(name):
    assert examples("float64").get(OPS[name])


@pytest.mark.parametrize("static", [False, pytest.param(True, marks=rest)])
@pytest.mark.parametrize("name", WITH)
def test_derivatives(name, static):
    given = points_of(OPS[name], "float64", static)
    assert given
    for point in given:
        assert check(point, differences=not issubclass(OPS[name], ViewOp)) == []


@pytest.mark.parametrize("name", few(WITH, *SOME))
def test_derivatives_of_complex_numbers(name):
    given = points_of(OPS[name], "complex128")
    assert bool(given) is (name not in REAL)
    for point in given:
        assert check(point, differences=not issubclass(OPS[name], ViewOp)) == []


@pytest.mark.parametrize("name", few(WITH, *SOME))
def test_derivatives_in_float32(name):
    if issubclass(OPS[name], InnerGraphOp | JAXOp):
        pytest.skip("the dtypes of its inner graph, or function, are fixed")
    pairs = zip(points_of(OPS[name], "float64"), points_of(OPS[name], "float32"), strict=True)
    for wide, narrow in pairs:
        check_narrow(wide, narrow)


def has_derivative(point):
    d = derivatives(point)
    return not all(g is None or is_null(g) for g in [*d.pulled, *d.pushed])


def test_ops_that_state_a_reason_have_no_derivative():
    given = [(name, point) for name in WITHOUT for point in points_of(OPS[name], "float64")]
    assert given
    assert [name for name, point in given if has_derivative(point)] == []


# ----------------------------------------------------------------------- scalar rows

DIFFERENTIABLE = [name for name in ROWS if TABLE[name].d is not None]


def row_point(name: str, kind: str, dtype: str = "float64", count: int = 3) -> Point:
    """The point of an elementwise function at arguments in its domain."""
    values = points(name, count)
    if kind == "matrix":  # arguments broadcast against each other
        values = [v.reshape((-1, 1) if k % 2 else (1, -1)) for k, v in enumerate(values)]
    if kind == "number":
        values = [v[0] for v in values]
    if kind == "empty":
        values = [v[:0] for v in values]
    floats = [v.dtype.kind == "f" for v in values]
    values = [v.astype(dtype) if is_float else v for v, is_float in zip(values, floats)]
    if dtype == "complex128":
        values = [v + 0.3j if is_float else v for v, is_float in zip(values, floats)]
    return point_of(Elemwise(TABLE[name]), values, static=kind == "matrix")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_of_row(name):
    for kind in ("vector", "matrix", "number", "empty"):
        point = row_point(name, kind)
        reasons = check(point)
        assert all(reasons)
        assert len(reasons) < len(point.inputs) or TABLE[name].nin > 1, "there is no derivative"
    check_narrow(row_point(name, "vector"), row_point(name, "vector", "float32"))


COMPLEX = [
    name
    for name in DIFFERENTIABLE
    if accepts(
        TABLE[name], *["complex128" if v.dtype.kind == "f" else "int64" for v in points(name)]
    )
]


@pytest.mark.parametrize("name", COMPLEX)
def test_derivatives_of_row_of_complex_numbers(name):
    reasons = check(row_point(name, "vector", "complex128"))
    assert (reasons != []) is (name in ("gamma", "psi"))  # no trigamma function


@pytest.mark.parametrize("name", [n for n in ROWS if n not in DIFFERENTIABLE])
def test_a_row_without_derivative_says_why(name):
    op = TABLE[name]
    dtype = "float64" if accepts(op, *["float64"] * arity(op)) else "int64"
    inputs = [pt.vector(dtype=dtype) for _ in range(arity(op))]
    cost = Elemwise(op)(*inputs)
    g = grad(cost.astype("float64").sum(), inputs[0], null_gradients="return")
    if op.not_differentiable:
        assert op.not_differentiable in g.type.why_null
    else:
        assert g.type.dtype == "float64" and cost.type.is_discrete


def test_derivatives_of_a_composite():
    x, y = float64("x"), float64("y")
    composite = Composite([x, y], [TABLE["mul"](TABLE["exp"](x), y), TABLE["sin"](y)])
    assert check(point_of(lambda *v: Elemwise(composite)(*v), [np.ones(3), np.arange(3.0)])) == []


# -------------------------------------------------------------- rewritten, in compiled code


def assert_compiled_alike(given: list[Point]) -> None:
    """Both derivatives of points have the values that they have without rewriting."""
    inputs, graphs, values, expected, ops = [], [], [], [], []
    for point in given:
        d = derivatives(point)
        w, t = (
            [RNG.normal(size=np.shape(x)) for x in xs]
            for xs in (point.results(), point.compute(d.wrt))
        )
        found = [g for g in [*d.pulled, *d.pushed] if g is not None and not is_null(g)]
        inputs += [*point.inputs, *d.weights, *d.tangents]
        values += [*point.values, *w, *t]
        graphs += found
        expected += point.compute(found, (d.weights, w), (d.tangents, t))
        ops += [str(point.outputs[0])] * len(found)
    f = phintys.function(inputs, graphs, on_unused_input="ignore")
    for a, b, op in zip(f(*values), expected, ops, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=op)


def dozens(names):
    """Names, twelve at a time: one function is compiled for them."""
    names = list(names)
    return [names[start : start + 12] for start in range(0, len(names), 12)]


def squared(name):
    build, values = SMOOTH[name]
    return point_of(lambda *x: build(*x) ** 2, values)


@pytest.mark.parametrize("group", few(GROUPS, *COMPILED))
def test_compiled_derivatives(group):
    assert_compiled_alike([squared(name) for name in GROUPS[group]])


@pytest.mark.parametrize("names", dozens(DIFFERENTIABLE), ids=" ".join)
def test_compiled_derivatives_of_rows(names):
    assert_compiled_alike([row_point(name, "vector") for name in names])


# ---------------------------------------------------------------- what the documentation says

DOCUMENTED = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "derivatives.py"))


def test_the_documentation_lists_all_ops_without_derivative():
    listed = {name for names, _ in DOCUMENTED["without_derivative"]() for name in names.split(", ")}
    assert {n for n in WITHOUT if not {c.__name__ for c in OPS[n].__mro__} & listed} == set()
    assert not listed & set(WITH)


@pytest.mark.parametrize("name", ROWS)
def test_the_documentation_says_which_partial_derivatives_are_missing(name):
    said = DOCUMENTED["derivative"](TABLE[name])
    if name not in DIFFERENTIABLE:
        why = TABLE[name].not_differentiable
        assert said == (f"no: {why}" if why else "0")
        return
    point = row_point(name, "vector")
    null = [g is not None and is_null(g) for g in derivatives(point).pulled]
    named = said.removeprefix("not in ").partition(":")[0].split(", ") if any(null) else []
    wrt = [v for v in point.inputs if is_continuous(v)]
    assert [("x", "y", "z", "t")[point.inputs.index(v)] for v, n in zip(wrt, null) if n] == named
    assert any(null) or said == "yes"


# ------------------------------------------------------------------------- the test itself


class WrongHalf(Op):
    """x**2, whose derivative in one direction is wrong."""

    __props__ = ("wrong",)

    def __init__(self, wrong):
        self.wrong = wrong

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, storage):
        storage[0][0] = inputs[0] ** 2

    def pullback(self, inputs, outputs, cotangents):
        (x,), (g,) = inputs, cotangents
        if self.wrong == "second":  # right in value only
            x = phintys.gradient.disconnected_grad(x)
        return [g * x * (3 if self.wrong == "pullback" else 2)]

    def pushforward(self, inputs, outputs, tangents):
        (x,), (t,) = inputs, tangents
        return [t * x * (3 if self.wrong == "pushforward" else 2)]


@pytest.mark.parametrize("wrong", ["pullback", "pushforward", "second"])
def test_a_wrong_derivative_is_found(wrong):
    with pytest.raises(AssertionError):
        check(point_of(WrongHalf(wrong), [np.arange(1.0, 4.0)]))
    assert check(point_of(WrongHalf(""), [np.arange(1.0, 4.0)])) == []


def test_a_reduction_without_rule_says_so():
    x, t = pt.dvector("x"), pt.dvector("t")
    out = reduce.CAReduce(TABLE["hypot"])(x)
    for ask in (lambda: grad(out, x), lambda: pushforward(out, x, t)):
        with pytest.raises(NullTypeGradError, match="There is no rule for hypot"):
            ask()


def test_what_only_has_a_shape_is_disconnected():
    n = pt.lscalar("n")
    with pytest.raises(DisconnectedInputError):
        grad(pt.empty((n,)).sum(), n)
