"""Operators and methods of tensor variables."""

from __future__ import annotations

import ast
import inspect
import operator

import numpy as np
import pytest
from tensor_checks import MODES, check, check_batched, check_derivatives, evaluate

import phintys.tensor as pt
from phintys.tensor import methods, variable
from phintys.tensor.cumulative import CumOp
from phintys.tensor.methods import FUNCTIONS
from phintys.tensor.variable import TensorVariable

X = np.array([[0.25, -0.5, 0.75], [0.125, 0.5, -0.25]])
REDUCTIONS = ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "argmax", "argmin"]
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip


@pytest.mark.parametrize("op", [*OPERATORS, operator.pow], ids=lambda op: op.__name__)
def test_binary_operators(op):
    x = np.abs(X)
    check(lambda a, b: op(a, b), op, [x, x[::-1].copy()])
    check(lambda a: op(a, 2), lambda a: op(a, 2), [x])
    check(lambda a: op(2.0, a), lambda a: op(2.0, a), [x])
    check(lambda a: op(a, np.array([1.0, 2.0, 3.0])), lambda a: op(a, np.array([1.0, 2, 3])), [x])
    check(lambda a: op(np.ones((2, 3)), a), lambda a: op(np.ones((2, 3)), a), [x])
    check(lambda a: op([1.0, 2.0, 3.0], a), lambda a: op(np.array([1.0, 2.0, 3.0]), a), [x])


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
def test_bit_operators(op):
    bits, flags = np.array([1, 6, 12], "int32"), np.array([True, False, True])
    check(lambda a: op(a, 5), lambda a: op(a, np.int32(5)), [bits])
    check(lambda a: op(5, a), lambda a: op(np.int32(5), a), [bits])
    check(lambda a, b: op(a, b), op, [flags, ~flags])
    check(operator.invert, np.invert, [bits])
    check(operator.invert, np.invert, [flags])
    with pytest.raises(TypeError):
        op(pt.dvector(), pt.dvector())
    with pytest.raises(TypeError):
        ~pt.dvector()


def test_unary_operators_and_divmod():
    for op in (operator.neg, operator.abs):
        check(op, op, [X])
    for i in range(2):
        check(lambda x, i=i: divmod(x, 0.3)[i], lambda x, i=i: divmod(x, 0.3)[i], [X])
        check(lambda x, i=i: divmod(2.0, x)[i], lambda x, i=i: divmod(2.0, x)[i], [X])
    for name in ("__ceil__", "__floor__", "__trunc__"):
        assert getattr(pt.dvector(), name)().type.dtype == "float64"


def test_products():
    v = np.array([1.0, 2.0, 3.0])
    check(lambda x, v: x @ v, operator.matmul, [X, v])
    check(lambda x: x @ X.T, lambda x: x @ X.T, [X])
    check(lambda x: X.T @ x, lambda x: X.T @ x, [X])
    check(lambda x, v: x.dot(v), np.dot, [X, v])


def test_python_numbers_do_not_widen():
    f = pt.fvector("f")
    assert (f * 2.5).type.dtype == (2 / f).type.dtype == "float32"
    assert (f * np.float64(2.5)).type.dtype == (np.float64(2.5) * f).type.dtype == "float64"
    assert (np.ones(3) + f).type.dtype == "float64"
    assert (pt.ivector() / pt.ivector()).type.dtype == "float64"


def test_other_objects_have_the_last_word():
    class Other:
        def __radd__(self, left):
            return "mine"

    assert pt.dvector() + Other() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        pt.dvector() + object()


def test_identity_comparison_and_truth():
    x, y = pt.dscalar("x"), pt.dscalar("x")
    assert (x == x) is True and (x == y) is False and (x != y) is True
    assert len({x, y}) == 2
    for use in (bool, int, float, complex, len, operator.index):
        with pytest.raises(TypeError):
            use(x)
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1
    with pytest.raises(TypeError, match="0-d"):
        iter(x)
    with pytest.raises(TypeError, match="not known"):
        iter(pt.dvector())
    rows = list(pt.tensor(shape=(2, None)))
    assert [r.type.shape for r in rows] == [(None,), (None,)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    x = np.abs(X) + (1.0 if name == "arccosh" else 0.0)
    check(lambda x: getattr(x, name)(), getattr(np, name), [x])


def test_values():
    check(lambda x: x.clip(-0.1, 0.5), lambda x: x.clip(-0.1, 0.5), [X])
    check(lambda x: x.copy(), np.copy, [X])
    check(lambda x: x.fill(3), lambda x: np.full(x.shape, 3, "int8"), [X])
    check(lambda x: x.astype("int32"), lambda x: x.astype("int32"), [X * 10])
    check(lambda x: x.zeros_like(), np.zeros_like, [X])
    check(lambda x: x.ones_like("int8"), lambda x: np.ones_like(x, "int8"), [X])
    check(lambda x: x.round(), np.round, [X * 10])
    check(lambda x: x.round("half_away_from_zero"), lambda x: np.array([1.0, -1.0, 2.0]),
          [np.array([0.5, -0.5, 1.5])])  # fmt: skip
    z = X + 1j
    check(lambda z: z.real, np.real, [z])
    check(lambda z: z.imag, np.imag, [z])
    check(lambda z: z.conj(), np.conj, [z])
    x = pt.dvector("x")
    assert x.conj() is x and x.transfer("cpu") is x and x.copy(name="y").name == "y"
    assert pt.full((2,), 3).get_underlying_scalar_constant() == 3
    with pytest.raises(ValueError, match="round"):
        x.round("up")


def test_reductions_are_methods():
    for name in REDUCTIONS:
        check(
            lambda x, n=name: getattr(x, n)(axis=1, keepdims=True),
            lambda x, n=name: getattr(np, n)(x, axis=1, keepdims=True),
            [X],
        )
    check(lambda x: x.ptp(axis=0), lambda x: np.ptp(x, axis=0), [X])


def test_set_and_inc():
    x = pt.dvector("x")
    value = np.arange(5.0)
    for mode in MODES:
        assert evaluate(x[1:3].set(0), [x], [value], mode).tolist() == [0, 0, 0, 3, 4]
        assert evaluate(x[1:3].inc(1), [x], [value], mode).tolist() == [0, 2, 3, 3, 4]
    with pytest.raises(TypeError, match="indexing"):
        x.set(0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "bool"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_running_sums_have_numpys_dtype(axis, dtype):
    x = (X * 40).astype(dtype)
    check(lambda x: x.cumsum(axis), lambda x: np.cumsum(x, axis), [x])
    check(lambda x: x.cumprod(axis), lambda x: np.cumprod(x, axis), [x])


def test_running_sums():
    x = pt.dmatrix("x")
    assert pt.cumsum(x).owner.op == CumOp(0, "add") and pt.cumsum(x, -1).owner.op.axis == 1
    for build in (pt.cumsum, pt.cumprod):
        for axis in (None, 0, 1):
            check_derivatives(lambda x, b=build, a=axis: b(x, a), [X])
        check_batched(lambda x, b=build: b(x, 1), [X])
    with pytest.raises(ValueError, match="out of bounds"):
        pt.cumsum(x, 2)
    with pytest.raises(ValueError, match="mode"):
        CumOp(0, "max")


@pytest.mark.parametrize("n", [0, 1, 2])
def test_differences(n):
    for axis in (0, 1, -1):
        check(lambda x, a=axis: pt.diff(x, n, a), lambda x, a=axis: np.diff(x, n, a), [X])
    check(lambda x: pt.diff(x, n), lambda x: np.diff(x, n), [np.array([1, 200, 3], "uint8")])
    check(lambda x: pt.diff(x, n), lambda x: np.diff(x, n), [np.array([True, False, False])])
    with pytest.raises(ValueError, match="negative"):
        pt.diff(pt.dvector(), -1)


def declared_methods():
    """The parameters of what `TensorVariable` declares for the type checker, by name."""
    (cls,) = [
        node
        for node in ast.parse(inspect.getsource(variable)).body
        if isinstance(node, ast.ClassDef) and node.name == "TensorVariable"
    ]
    (block,) = [node for node in cls.body if isinstance(node, ast.If)]
    return {node.name: parameters(ast.unparse(node.args)) for node in block.body}


def attached_methods():
    """The parameters of what `methods` has attached to `TensorVariable`, by name."""
    found = {}
    for name, function in vars(TensorVariable).items():
        function = getattr(function, "fget", function)
        if getattr(function, "__module__", None) == methods.__name__:
            found[name] = parameters(str(inspect.signature(function))[1:].rpartition(")")[0])
    return found


def parameters(text):
    """Parameters with their defaults, without annotations."""
    (function,) = ast.parse(f"def f({text}): ...").body
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(function.args)


def test_what_is_attached_is_declared():
    assert declared_methods() == attached_methods()
