"""Modes JAX and NUMBA against the reference: rows, op families, updates, extension, errors."""

from __future__ import annotations

import itertools
import sys
from types import ModuleType

import numpy as np
import pytest
import scipy.special
import transpiler_cases as cases
from tiers import rest
from transpiler_cases import assert_same, compare, data

import phintys
import phintys.tensor as pt
from phintys.backends import source
from phintys.errors import CompilerError, ShapeError, UnsupportedError
from phintys.graph.op import Op
from phintys.graph.type import Type
from phintys.graph.variable import Apply
from phintys.scalar.composite import Composite
from phintys.scalar.op import TABLE, UnaryScalarOp
from phintys.scalar.type import scalar_type
from phintys.tensor import blas
from phintys.tensor.elemwise import Elemwise, elementwise
from phintys.tensor.type import TensorType

DTYPES = ("float64", "int64", "bool")


@pytest.fixture(params=["JAX", "NUMBA"])
def mode(request):
    return request.param


def matrices(*values):
    """A variable of unknown shape for each array."""
    return [TensorType(v.dtype.name, (None,) * v.ndim)() for v in values]


def compare_values(mode, build, *values):
    """`compare` for what ``build`` makes of variables for the values."""
    inputs = matrices(*values)
    compare(mode, inputs, build(*inputs), values)


# --------------------------------------------------------------------------- scalar rows


def module_of(name):
    """The name of the module of ``phintys.scalar`` that defines a row."""
    modules = {k: m for k, m in vars(phintys.scalar).items() if isinstance(m, ModuleType)}
    return next(k for k, m in modules.items() if any(v is TABLE[name] for v in vars(m).values()))


MODULES = {
    module: [*rows]
    for module, rows in itertools.groupby(sorted(cases.ROWS, key=module_of), module_of)
}


@rest
@pytest.mark.parametrize("module", MODULES)
def test_rows_of_floats(mode, module):
    names = [n for n in MODULES[module] if cases.accepts(n, "float64")]
    compare(mode, *cases.row_graph(names, "float64"), names)


def batches(names, size):
    it = iter(names)
    while batch := list(itertools.islice(it, size)):
        yield batch


def composite(names, dtype):
    """One scalar op that computes all these rows, of scalars of one dtype."""
    inputs, outputs, values = [], [], []
    for name in names:
        given = cases.arguments(name, dtype)
        variables = [scalar_type(dtype)() for _ in given]
        inputs += variables
        values += given
        outputs.append(TABLE[name](*variables))
    return Composite(inputs, outputs), values


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8"])
def test_rows_of_other_dtypes_in_composites(mode, dtype):
    """Rows that are computed in a dtype, and have a native form: several share a kernel.

    The others are computed in floats, or covered by `test_fallbacks`.  Of dtypes that differ from
    others only in the types of the source, a third is compiled.
    """
    names = [n for n in cases.ROWS if cases.accepts(n, dtype) and is_computed_in(n, dtype)]
    for batch in batches(names if dtype == "int64" else names[::3], 12):
        op, values = composite(batch, dtype)
        inputs = matrices(*values)
        compare(mode, inputs, Elemwise(op)(*inputs, return_list=True), values, batch)


def is_computed_in(name, dtype):
    op = TABLE[name]
    given = [dtype] * cases.arity(op)
    return op.has_native(*given) and dtype in op.signature(given)[0]


def test_casts(mode):
    for dtype in ("float64", "int64", "bool"):
        x = np.array([0, 1, 3, -2] if dtype != "float64" else [0.0, 1.5, 3.25, -2.75], dtype)
        names = ["bool", "int8", "int32", "int64", "float32", "float64", "complex128"]
        names += ["uint8", "uint64"] if dtype != "float64" else []
        compare_values(mode, lambda v, names=names: cases.casts(v, names), x)


#: functions of two floats
PAIRS = [n for n, op in TABLE.items() if cases.arity(op) == 2 and cases.accepts(n, "float64")]
#: those that are JAX's own, or made of such, and NaN at poles and infinities (docs/limits.md)
NAN_IN_JAX = frozenset("beta betaln chi2sf gammainc gammaincc gammal gammau".split())


def test_special_values(mode):
    x = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 800.0, -800.0, 0.5, 2.5])
    names = ["exp", "log", "log1p", "sqrt", "sign", "sigmoid", "softplus", "tanh", "isnan", "abs"]
    names += ["isinf", "floor", "round_half_to_even", "reciprocal", "erf", "expm1", "log1mexp"]
    compare_values(mode, lambda v: [elementwise(n)(v) for n in names], x)
    a, b = (m.ravel() for m in np.meshgrid(x, x))
    pairs = [n for n in PAIRS if mode != "JAX" or n not in NAN_IN_JAX]
    compare_values(mode, lambda v, w: [elementwise(n)(v, w) for n in pairs], a, b)


def test_small_logarithms_of_probabilities_have_all_digits(mode):
    x = np.linspace(-60, 37, 195)
    inputs = pt.dvector(), pt.fvector()
    f = phintys.function(inputs, [pt.log_ndtr(v) for v in inputs], mode=mode)
    found = f(x, x.astype("float32"))
    np.testing.assert_allclose(found[0], scipy.special.log_ndtr(x), rtol=1e-13)
    x = x[x < 12]  # those above are subnormal in float32
    expected = scipy.special.log_ndtr(x.astype("float32").astype("float64"))
    np.testing.assert_allclose(found[1][: len(x)], expected, rtol=1e-6)
    if mode == "JAX":  # Numba has no float16
        half = pt.vector(dtype="float16")
        compare(mode, [half], [pt.log_ndtr(half)], [np.linspace(-9, 1, 30).astype("float16")])


def test_integers_divided_by_zero(mode):
    least = np.iinfo("int64").min
    a, b = (m.ravel() for m in np.meshgrid([7, -7, 0, least], [2, -2, 0, -1]))
    compare_values(
        mode, lambda v, w: [elementwise(n)(v, w) for n in ("int_div", "mod", "fmod")], a, b
    )


# --------------------------------------------------------------------------- op families


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_broadcasting(mode, dtype):
    values = [data(s, dtype, k) for k, s in enumerate([(2, 3), (1, 3), (2, 1), ()])]
    inputs = [TensorType(dtype, s)() for s in [(None, None), (1, None), (None, 1), ()]]
    compare(mode, inputs, cases.broadcasts(*inputs), values)
    values = [data(s, dtype, k) for k, s in enumerate([(0, 3), (1, 3), (0, 1), ()])]
    compare(mode, inputs, cases.broadcasts(*inputs)[:3], values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(mode, dtype):
    compare_values(mode, cases.reductions, data((2, 3), dtype))


def test_reductions_of_nothing(mode):
    compare_values(mode, cases.empty_reductions, data((0, 3), "float64"))
    compare_values(mode, lambda x: [pt.sum(x), pt.max(x), pt.argmax(x)], data((), "float64"))


def test_reductions_see_nan(mode):
    x = np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, np.nan]])
    compare_values(mode, lambda v: [pt.max(v, 1), pt.min(v, 0), pt.argmax(v, 1), pt.argmin(v)], x)


def test_shuffles(mode):
    compare_values(mode, cases.shuffles, data((2, 3), "float64"))


def test_created(mode):
    compare_values(mode, cases.created, data((2, 3), "float64"))


def test_joined(mode):
    compare_values(mode, cases.joined, data((2, 3), "float32"), data((2, 3), "float32", 1))


def test_basic_indices(mode):
    compare_values(mode, cases.basic_indices, data((4, 5), "float64"), np.array(-2))


def test_index_tensors(mode):
    i, j = np.array([0, -1, 2, 0]), np.array([1, 3, 1, 1])
    compare_values(mode, cases.index_tensors, data((4, 5), "float64"), i, j)


def test_scatter_of_bools_and_integers(mode):
    i = np.array([0, 1, 1])
    for dtype in ("bool", "int64"):
        compare_values(
            mode,
            lambda x, i: [pt.inc_subtensor(x[i], x[0]), pt.set_subtensor(x[1], x[0, 0])],
            data((3, 2), dtype),
            i,
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(mode, dtype):
    compare_values(mode, cases.products, data((2, 3), dtype), data((2, 3), dtype, 1))


def test_products_of_mixed_dtypes(mode):
    compare_values(mode, lambda x, y: [pt.dot(x, y)], data((2, 3), "float32"), data(3, "int64"))


def test_batches(mode):
    a, b = data((2, 1, 3, 4), "float64"), data((5, 4, 2), "float64", 1)
    inputs = [TensorType("float64", (None, 1, None, None))(), pt.dtensor3()]
    x, y = inputs
    outputs = [
        pt.matmul(x, y),
        pt.matmul(y, pt.zeros((2,)) + y[0, 0]),
        x.sum() + pt.dot(y[0], y[1].T),
    ]
    outputs.append(pt.vectorize(lambda m, i: m[i], "(n,m),()->(m)")(y, pt.arange(5) % 4))
    compare(mode, inputs, outputs, [a, b])


def test_products_with_addition_diagonals_repetition_order(mode):
    def build(x, y, v):
        out = [blas.gemm(x, 2.0, x, y, 0.0), blas.gemv(v, 1.0, x, v, 3.0), blas.ger(x, 2.0, v, v)]
        out += [blas._dot22(x, y), blas._dot22scalar(x, y, 2.0)]
        out += [blas._batched_dot(x[None], y[None]), pt.diagonal(x, 1), pt.repeat(x, 2, axis=1)]
        return [*out, pt.repeat(v, [0, 1, 2]), pt.sort(x, axis=0), pt.argsort(v, kind="stable")]

    values = [data((3, 3), "float64"), data((3, 3), "float64", 1), data(3, "float64", 2)]
    compare_values(mode, build, *values)


def test_softmax(mode):
    compare_values(mode, cases.softmaxes, data((2, 3), "float64"))
    compare_values(mode, cases.softmaxes, np.array([[-np.inf, 800.0], [-np.inf, -np.inf]]))


def test_complex_numbers(mode):
    x = data((2, 3), "float64") + 1j * data((2, 3), "float64", 1)
    compare_values(
        mode,
        lambda v: [pt.exp(v) * v, pt.real(v), pt.conj(v), v.sum(axis=0), pt.abs(v), pt.dot(v, v.T)],
        x,
    )


def test_arrays_of_any_layout(mode):
    x = np.asfortranarray(data((4, 6), "float64"))[::2, ::-1]
    x.flags.writeable = False
    compare_values(mode, lambda v: [v + 1, v.T, v.sum(axis=1), v[0], pt.dot(v, v.T)], x)


# -------------------------------------------------------------------- gradients, updates


def logistic_loss():
    x, y, w = pt.dmatrix("x"), pt.lvector("y"), pt.dmatrix("w")
    hidden = pt.tanh(pt.dot(x, w))
    scores = pt.special.log_softmax(hidden, axis=1)
    return [x, y, w], -scores[pt.arange(y.shape[0]), y].mean()


def test_gradients_of_a_classifier(mode):
    inputs, loss = logistic_loss()
    outputs = [loss, *phintys.grad(loss, [inputs[0], inputs[2]])]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(4, 3)), np.array([0, 1, 1, 0]), rng.normal(size=(3, 2))]
    compare(mode, inputs, outputs, values)


def test_updates_of_shared_variables(mode):
    (x, y, w), loss = logistic_loss()
    rng = np.random.default_rng(0)
    start = rng.normal(size=(3, 2))
    values = [rng.normal(size=(4, 3)), np.array([0, 1, 1, 0])]
    found = []
    for name in ("PY", mode):
        weights = phintys.shared(start)
        cost = phintys.graph_replace([loss], {w: weights})[0]
        step = weights - 0.5 * phintys.grad(cost, weights)
        f = phintys.function([x, y], cost, updates={weights: step}, mode=name)
        losses = [float(f(*values)) for _ in range(5)]
        found.append((losses, np.asarray(weights.get_value())))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-10)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-10)
    assert found[0][0][-1] < found[0][0][0]


def test_a_failed_call_leaves_shared_variables(mode):
    total, x, i = phintys.shared(1.0), pt.dvector(), pt.lscalar()
    f = phintys.function([x, i], x[i], updates={total: total + 1}, mode=mode)
    with pytest.raises(IndexError):
        f(np.ones(2), 5)
    assert float(total.get_value()) == 1.0
    f(np.ones(2), 1)
    assert float(total.get_value()) == 2.0


def test_constants_and_inputs_as_outputs(mode):
    x = pt.dvector()
    constant = pt.constant(np.arange(3.0))
    f = phintys.function([x], [x, constant, constant + 1, x * 2], mode=mode)
    value = np.ones(3)
    for found, expected in zip(f(value), [value, np.arange(3.0), np.arange(3.0) + 1, value * 2]):
        assert_same(found, expected)


def test_no_outputs(mode):
    total = phintys.shared(1.0)
    f = phintys.function([], [], updates={total: total * 2}, mode=mode)
    assert f() == []
    assert float(total.get_value()) == 2.0


@pytest.mark.needs("jax")
def test_results_of_jax_stay_with_jax():
    import jax

    x = pt.dvector()
    assert isinstance(phintys.function([x], x + 1, mode="JAX")(np.ones(2)), jax.Array)


# ----------------------------------------------------------------------------- extension


class Twice(Op):
    """A user's op; ``perform`` is wrong on purpose, to see which of the two runs."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * 0


class UserScalar(UnaryScalarOp):
    """A user's scalar op with a Python implementation only."""

    def impl(self, x):
        return x * 10

    def output_dtypes(self, x):
        return [x]

    def signature(self, given):
        return tuple(given), given[0]


class RegisteredScalar(UserScalar):
    """The same, known to the frameworks with another result."""


def register(mode):
    """Teach a mode `Twice` and `RegisteredScalar`."""
    if mode == "JAX":
        from phintys.backends.jax import jax_funcify as funcify
    else:
        from phintys.backends.numba import numba_funcify as funcify

    @funcify.register(Twice)
    def _(op, node=None, **kwargs):
        def twice(x):
            return x * 2

        return twice

    @funcify.register(RegisteredScalar)
    def _(op, node=None, **kwargs):
        def hundred(x):
            return x * 100

        return hundred


def test_a_registered_op(mode):
    register(mode)
    x, s = pt.dvector(), pt.dscalar()
    outputs = [Twice()(x) + 1, Twice()(s), Elemwise(RegisteredScalar())(x)]
    f = phintys.function([x, s], outputs, mode=mode)
    for found, expected in zip(f([1.0, 2.0], 3.0), [[3.0, 5.0], 6.0, [100.0, 200.0]]):
        assert_same(found, np.array(expected))


class Pair(Op):
    """A user's op with two results, which is not registered."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [TensorType("float64", (None,))(), TensorType("int64", ())()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.asarray(inputs[0])[::-1] + 1
        output_storage[1][0] = np.array(len(inputs[0]))

    def infer_shape(self, node, shapes):
        return [(shapes[0][0],), ()]


def test_fallbacks(mode):
    x = np.array([1.0, 2.0, 3.0])
    v = pt.dvector()
    first, second = Pair()(v)
    compare(mode, [v], [first * 2, second + 1, Elemwise(UserScalar())(v)], [x])
    given = {name: [np.array([12, 18]), np.array([8, 27])] for name in ("gcd", "lcm")}
    given["pow"] = cases.arguments("pow", "int64")
    for name in ("hyp2f1_der_a", "gammainc_der", "betainc_der_b", "heaviside"):
        given[name] = cases.arguments(name, "float64")
    variables = {name: matrices(*values) for name, values in given.items()}
    outputs = [elementwise(name)(*variables[name]) for name in given]
    inputs, values = (list(itertools.chain(*d.values())) for d in (variables, given))
    compare(mode, inputs, outputs, values, list(given))


class DoubleType(Type):
    """Python floats."""

    __props__ = ()

    def filter(self, data, strict=False, allow_downcast=None):
        return float(data)


class AddDoubles(Op):
    __props__ = ()

    def make_node(self, x, y):
        return Apply(self, [x, y], [DoubleType()()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] + inputs[1]


def test_types_that_frameworks_do_not_have(mode):
    x, y = DoubleType()("x"), DoubleType()("y")
    with pytest.warns(UserWarning, match="one by one"):
        f = phintys.function([x, y], AddDoubles()(x, y), mode=mode)
    assert f(1.5, 2) == 3.5


# -------------------------------------------------------------------------------- errors


def failing():
    """Name -> (variables, expression, values, class of the error)."""
    x, y, i = pt.dmatrix("x"), pt.dmatrix("y"), pt.lvector("i")
    n = pt.lscalar("n")
    two = np.ones((2, 2))
    return {
        "lengths": ([x, y], x + y, [two, np.ones((3, 2))], ShapeError),
        "broadcast at run time": ([x, y], x + y, [two, np.ones((1, 2))], ShapeError),
        "inner lengths": ([x, y], pt.dot(x, y), [two, np.ones((3, 2))], ShapeError),
        "index": ([x, n], x[n], [two, np.array(2)], IndexError),
        "constant index": ([x], x[5], [two], IndexError),
        "negative index": ([x, n], x[:, n], [two, np.array(-3)], IndexError),
        "gather": ([x, i], x[i], [two, np.array([0, 2])], IndexError),
        "constant gather": ([x], x[[0, 7, 1]], [two], IndexError),
        "scatter": ([x, i], pt.inc_subtensor(x[i], 1.0), [two, np.array([5])], IndexError),
        "specified": ([x], pt.specify_shape(x, (3, None)) * 2, [two], ShapeError),
        "specified by a value": ([x, n], pt.specify_shape(x, (n, None)), [two, 3], ShapeError),
        "reshape": ([x], x.reshape((3, -1)), [two], ShapeError),
        "join": ([x, y], pt.concatenate([x, y]), [two, np.ones((2, 3))], ShapeError),
        "split": ([x], pt.split(x, [1, 2])[0], [two], ShapeError),
        "empty max": ([x], pt.max(x), [np.ones((0, 2))], ValueError),
        "empty argmax": ([x], pt.argmax(x, 0), [np.ones((0, 2))], ValueError),
        "stored": ([x, y], pt.set_subtensor(x[:1], y), [two, np.ones((2, 2))], ShapeError),
        "alloc": ([x], pt.alloc(x, 3, 2), [two], ShapeError),
        "negative power": ([i], i**i, [np.array([2, -1])], ValueError),
    }


@pytest.mark.parametrize("what", list(failing()))
def test_errors_are_those_of_the_reference(mode, what):
    inputs, expression, values, error = failing()[what]
    messages = []
    for name in ("PY", mode):
        f = phintys.function(inputs, expression, mode=name)
        with pytest.raises(error) as found:
            f(*values)
        messages.append([str(found.value), *found.value.__notes__])
    assert messages[0] == messages[1]
    assert "test_transpilers.py" in messages[1][-1]


@pytest.mark.needs("jax")
def test_lengths_that_depend_on_values_in_jax():
    n, x = pt.lscalar("n"), pt.dvector("x")
    outputs = [pt.zeros(n), pt.arange(n), x[:n], x.reshape((n, -1))]
    f = phintys.function([x, n], outputs, mode="JAX")
    for length in (2, 3, 2):
        found = f(np.arange(6.0), length)
        assert [v.shape[0] for v in found] == [length] * 4
    f = phintys.function([x], pt.zeros(pt.cast(x.sum(), "int64")), mode="JAX")
    with pytest.raises(UnsupportedError, match=r"Alloc(.|\n)*made at .*test_transpilers.py"):
        f([1.0, 2.0])
    f = phintys.function([x], x[x > 1], mode="JAX")
    with pytest.raises(UnsupportedError, match=r"made at .*test_transpilers.py"):
        f([1.0, 2.0])


@rest
@pytest.mark.needs("numba")
def test_masks_in_numba():
    x = pt.dmatrix()
    outputs = [x[x > 1], pt.set_subtensor(x[x > 1], 0.0), x[(x > 1).any(axis=1)]]
    compare("NUMBA", [x], outputs, [np.array([[1.0, 2.0], [0.0, 1.0]])])


def test_a_missing_package_is_named(monkeypatch):
    for package in ("jax", "numba"):
        for name in [m for m in sys.modules if m.startswith(f"phintys.backends.{package}")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        x = pt.dvector()
        with pytest.raises(CompilerError, match=rf"pip install .*phintys\[{package}\]"):
            phintys.function([x], x + 1, mode=package)


# -------------------------------------------------------------------------------- source


def python_of(op, node=None, **kwargs):
    """Each op as ``perform``."""

    def call(*values):
        storage = [[None] for _ in node.outputs]
        op.perform(node, values, storage)
        found = tuple(cell[0] for cell in storage)
        return found if len(found) > 1 else found[0]

    return call


def test_source_of_a_deep_graph():
    x = out = pt.dvector("x")
    for _ in range(5000):
        out = elementwise("add")(out, x)
    graph = phintys.FunctionGraph([x], [out])
    made = source.generate(graph, python_of)
    assert_same(made.function(np.ones(2))[0], np.full(2, 5001.0))
    assert made.source.count("\n") == 5000 + 2
    assert made.nodes[2].op is elementwise("add")


def test_source_has_unique_names_and_lines():
    x, y = pt.dvector("x"), pt.dvector("x")
    graph = phintys.FunctionGraph([x, y], [x + y, pt.constant(2.0, name="lambda")])
    function = source.fgraph_to_python(graph, python_of, fgraph_name="g")
    assert_same(function(np.ones(2), np.ones(2))[0], np.full(2, 2.0))
    made = source.generate(graph, python_of)
    with pytest.raises(ShapeError) as found:
        made.function(np.ones(2), np.ones(3))
    assert made.node_at(found.value.__traceback__) is graph.toposort()[0]


@pytest.mark.needs("jax")
def test_special_functions_of_jax():
    """Below 0, and where erfc is subnormal."""
    x, y = pt.dvector("x"), pt.fvector("y")
    values = np.array([-0.5, -26.6, -2.0, 0.5, 26.6, np.inf, -np.inf])
    outputs = [pt.tri_gamma(x), pt.polygamma(2, x), pt.erfcx(x), pt.erfcx(y)]
    compare("JAX", [x, y], outputs, [values, np.array([0.5, 9.3, -2.0], "f4")])
