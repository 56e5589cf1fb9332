"""Steps that are done block after block of a matrix's rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hand_built import Builder, Failed, native
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program_of
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys import config
from phintys.backends.llvm import costs
from phintys.backends.llvm.routine.blocks import Blocks, in_blocks
from phintys.backends.llvm.routine.entry import emit_entry
from phintys.backends.llvm.runtime.libraries import _blas_threads
from phintys.dims import Dim
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Call, Kernel, Loop

pytestmark = pytest.mark.widths

rng = np.random.default_rng(3)


@pytest.fixture
def short():
    """However small the matrices are, there are several blocks, of a few rows each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "ROW_BLOCK_SMALL", 0)
        patch.setattr(costs, "ROW_BLOCK_BYTES", 256)
        patch.setattr(costs, "ROW_BLOCK_THREADS", 1 << 20)
        patch.setattr(costs, "ROW_BLOCK_MULTIPLE", 1)
        yield


def found(program):
    return [step for step in in_blocks(program.steps) if isinstance(step, Blocks)]


def calls(step):
    return [s.step for s in step.slices if isinstance(s.step, Call)]


def agree(program, args, tolerance=1e-9):
    """What the blocks compute is what the interpreter does."""
    results = native(program)(*args)
    for result, expected in zip(results, interpret(program, *args), strict=True):
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
    return results


# ------------------------------------------------------------------------- models


def logistic(X, y, b, a):
    eta = pt.dot(X, b)
    return (y * eta - pt.log1p(pt.exp(eta))).sum() - 0.5 * (b * b).sum() - a


def poisson(X, y, b, a):
    eta = pt.dot(X, b) + a
    return (y * eta - pt.exp(eta)).sum()


def normal(X, y, b, a):
    r = (y - pt.dot(X, b)) / pt.exp(a)
    return (-0.5 * r * r - a).sum()


def student(X, y, b, a):
    r = (y - 2 * pt.dot(X, b)) * a
    return -pt.log1p(r * r).mean()


MODELS = [logistic, poisson, normal, student]


def arguments(n, k, dtype="float64"):
    X, y = rng.normal(size=(n, k)), rng.integers(0, 2, n)
    return [np.asarray(v, dtype) for v in (X, y, rng.normal(size=k), 0.25)]


def symbols(dtype="float64"):
    return [
        pt.tensor(name, dtype=dtype, shape=(None,) * n) for name, n in zip("Xyba", (2, 1, 1, 0))
    ]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (31, 3), (100, 5), (64, 40)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("model", MODELS)
def test_value_and_gradient(short, model, dtype, shape):
    X, y, b, a = symbols(dtype)
    value = model(X, y, b, a)
    program = program_of([X, y, b, a], [value, *phintys.grad(value, [b, a])])
    assert [len(calls(step)) for step in found(program)] == [2]
    with np.errstate(over="ignore"):
        agree(program, arguments(*shape, dtype), 1e-9 if dtype == "float64" else 2e-4)


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (5, 0)])
@pytest.mark.parametrize("model", [logistic, poisson, normal])
def test_empty_matrices(short, model, shape):
    X, y, b, a = symbols()
    value = model(X, y, b, a)
    program = program_of([X, y, b, a], [value, *phintys.grad(value, [b, a])])
    assert found(program)
    agree(program, arguments(*shape))


def test_products_with_the_hessian_are_in_the_same_blocks(short):
    X, y, b, a = symbols()
    v = pt.vector("v")
    gradient = phintys.grad(poisson(X, y, b, a), b)
    program = program_of([X, y, b, a, v], [gradient, phintys.grad((gradient * v).sum(), b)])
    assert [len(calls(step)) for step in found(program)] == [4]
    agree(program, [*arguments(30, 4), rng.normal(size=4)])


def test_what_needs_a_total_waits_for_all_blocks(short):
    X, b = pt.matrix("X"), pt.vector("b")
    twice = pt.dot(X.T, pt.dot(X, pt.dot(X.T, pt.dot(X, b))))
    program = program_of([X, b], twice)
    assert [len(calls(step)) for step in found(program)] == [2, 2]
    agree(program, [rng.normal(size=(20, 3)), rng.normal(size=3)])


def test_several_matrices_of_one_number_of_rows(short):
    X, Z, y = pt.matrix("X"), pt.matrix("Z"), pt.vector("y")
    b, c = pt.vector("b"), pt.vector("c")
    scale = pt.dot(Z, c)
    r = (y - pt.dot(X, b)) * pt.exp(-scale)
    value = (-0.5 * r * r - scale).sum()
    program = program_of([X, Z, y, b, c], [value, *phintys.grad(value, [b, c])])
    assert [len(calls(step)) for step in found(program)] == [4]
    sizes = [(50, 3), (50, 6), 50, 3, 6]
    agree(program, [rng.normal(size=s) for s in sizes])


@pytest.mark.parametrize("shape", [(0, 3, 2), (1, 1, 1), (30, 4, 3), (30, 2, 1), (25, 3, 80)])
def test_several_columns(short, shape):
    X, W, Y = pt.matrix("X"), pt.matrix("W"), pt.matrix("Y")
    eta = pt.dot(X, W)
    softmax = (Y * eta).sum() - pt.logsumexp(eta, axis=1).sum()
    squares = -pt.sqr(Y - eta).sum()
    n, k, columns = shape
    sizes = [(n, k), (k, columns), (n, columns)]
    for value in (softmax, squares):
        program = program_of([X, W, Y], [value, phintys.grad(value, W)])
        assert [len(calls(step)) for step in found(program)] == [2]
        agree(program, [rng.normal(size=s) for s in sizes])


def test_columns_that_mean_different_things(short):
    X, W, y = pt.matrix("X"), pt.matrix("W"), pt.vector("y")
    eta = pt.dot(X, W)
    r = (y - eta[:, 0]) * pt.exp(-eta[:, 1])
    value = (-0.5 * r * r - eta[:, 1]).sum()
    program = program_of([X, W, y], [value, phintys.grad(value, W)])
    assert [len(calls(step)) for step in found(program)] == [2]
    agree(program, [rng.normal(size=s) for s in [(40, 3), (3, 2), 40]])


def test_groups_are_gathered_and_their_gradient_is_scattered(short):
    X, y, b = pt.matrix("X"), pt.vector("y"), pt.vector("b")
    g, i = pt.vector("g"), pt.lvector("i")
    eta = pt.dot(X, b) + g[i]
    value = (y * eta - pt.exp(eta)).sum()
    program = program_of([X, y, b, g, i], [value, *phintys.grad(value, [b, g])])
    assert len(found(program)) == 1
    X, y, b, _ = arguments(60, 4)
    g, i = rng.normal(size=5), rng.integers(-5, 5, 60)
    agree(program, [X, y, b, g, i])
    for bad in (0, 30, 59):
        wrong = i.copy()
        wrong[bad] = 5
        with pytest.raises(Failed):
            native(program)(X, y, b, g, wrong)


def test_nan_and_infinity_stay_where_they_are(short):
    X, y, b, a = symbols()
    eta = pt.dot(X, b)
    largest, total = eta.max(initial=-np.inf), pt.exp(a * eta).sum()
    program = program_of(
        [X, y, b, a], [largest, total, pt.dot(X.T, y * eta)], on_unused_input="ignore"
    )
    assert found(program)
    for row in (0, 17, 39):
        for value in (np.nan, np.inf):
            X, y, b, a = arguments(40, 3)
            X[row, 1], b[1] = value, 1.0
            agree(program, [X, y, b, a])


def test_shared_variables_and_updates(short):
    X, y, b, a = arguments(50, 4)
    held, matrix = phintys.shared(b, "b"), phintys.shared(X, "X")
    _, target, _, scale = symbols()
    value = normal(matrix, target, held, scale)
    new = held + 0.01 * phintys.grad(value, held)
    f = phintys.function([target, scale], value, updates=[(held, new)])
    order = [v.get_value() for v in f.get_shared()]
    cells = [[v] for v in order]
    f_blocks = native(f.program, cells)
    assert found(f.program)
    for _ in range(3):
        np.testing.assert_allclose(f_blocks(y, a)[0], f(y, a))
    after = next(c[0] for c in cells if c[0].ndim == 1)
    np.testing.assert_allclose(after, held.get_value())


def test_blocks_within_a_loop(short):
    X, y, b, a = symbols()
    descent = b + 0.01 * phintys.grad(normal(X, y, b, a), b)
    body = program_of([b, X, y, a], descent)
    assert found(body)
    p = Builder()
    start, *held = (p.input("float64", (None,) * ndim) for ndim in (1, 2, 1, 0))
    last = p.output("float64", start.shape)
    p.add(Loop(Dim.const(6), body, ((start, last),), constants=tuple(held)))
    X, y, b, a = arguments(40, 3)
    agree(p.program(last), [b, X, y, a])


# ------------------------------------------------------------------ what is left alone


def test_threads_take_kernels_instead():
    X, y, b, a = symbols()
    gradient = phintys.grad(poisson(X, y, b, a), b)
    program = program_of([X, y, b, a], gradient)
    assert "%block." in emit_entry(program).ir.replace("%block.at", "")
    with config.change_flags(threads=2):
        assert "%block." not in emit_entry(program).ir.replace("%block.at", "")


@pytest.mark.parametrize("threads", [1, 4, 5, 64])
def test_many_threads_of_blas_take_whole_matrices(monkeypatch, threads):
    """Whatever is done, the sums of blocks differ in rounding, so that one can tell."""
    X, y, b, a = symbols()
    program = program_of([X, y, b, a], phintys.grad(poisson(X, y, b, a), b))
    args = arguments(9000, 30)

    def value(count):
        monkeypatch.setattr(_blas_threads(), "value", count)
        return native(program)(*args)[0]

    same = np.array_equal(value(threads), value(1))
    assert same == (threads <= costs.ROW_BLOCK_THREADS)
    np.testing.assert_allclose(value(threads), value(1), rtol=1e-9)


def test_one_product_or_products_with_columns_stay_as_they_are():
    X, y, b, _ = symbols()
    assert not found(program_of([X, y, b], [pt.exp(pt.dot(X, b)).sum(), y]))
    columns = pt.dot(X, pt.tanh(pt.dot(X.T, y)))  # rows of X.T are columns in memory
    assert not found(program_of([X, y], columns))


@pytest.mark.own_width
def test_the_steps_of_long_programs_are_looked_at_in_linear_time(lines_run):
    def lines(count):
        X, start = pt.matrix("X"), pt.vector("b")
        b = start
        for _ in range(count):
            b = pt.dot(X.T, pt.tanh(pt.dot(X, b)))
        steps = program_of([X, start], b).steps
        return lines_run(lambda: list(in_blocks(steps)))

    assert lines(40) < 2.6 * lines(20)


# --------------------------------------------------------------------- any such Program


class RandomRows:
    """Grows vectors with one entry for each row of some matrices, and what follows from them."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.generator = pt.random.default_rng(seed % 7)
        self.inputs, self.args, self.known = [], [], self.rng.random() < 0.3
        self.n, self.groups = int(self.rng.choice([0, 1, 5, 33])), 3
        self.scalars = [self.input(())]
        self.rows = [self.input((self.n,)), self.input((self.n,))]
        self.shared = [self.input((self.groups,))]
        self.matrices, self.factors, self.columns = [], {}, int(self.rng.choice([1, 3]))
        for k in self.rng.choice([1, 2, 4], 2):
            matrix = self.input((self.n, k))
            self.matrices.append((matrix, [self.input((k,))]))
            self.factors[matrix] = [self.input((k, self.columns))]
        self.tables = [self.input((self.n, self.columns))]
        self.index = pt.lvector("index")
        self.inputs.append(self.index)
        self.args.append(self.rng.integers(-self.groups, self.groups, self.n))

    def input(self, shape):
        known = [int(n) if self.known else None for n in shape]
        variable = pt.tensor(f"v{len(self.inputs)}", dtype="float64", shape=known)
        self.inputs.append(variable)
        self.args.append(self.rng.normal(size=shape))
        return variable

    def pick(self, pool):
        return pool[min(int(self.rng.integers(len(pool) + 2)), len(pool) - 1)]

    def grow(self, count):
        names = """product product terms terms map map total gather scatter scaled sums turned part
        numbered table table table_terms table_terms softmax column drawn drawn_table"""
        steps = [getattr(self, name) for name in names.split()]
        for _ in range(count):
            steps[int(self.rng.integers(len(steps)))]()

    def product(self):
        matrix, vectors = self.pick(self.matrices)
        self.rows.append(pt.tanh(pt.dot(matrix, self.pick(vectors))))

    def terms(self):
        matrix, vectors = self.pick(self.matrices)
        new = pt.dot(matrix.T, self.pick(self.rows))
        kept = self.pick(vectors)
        vectors.append(new if self.rng.random() < 0.5 else kept - 0.5 * new)

    def map(self):
        a, b, c = self.pick(self.rows), self.pick(self.rows), self.pick(self.scalars)
        self.rows.append(pt.exp(-a * a) * c + b)

    def total(self):
        kind = ["sum", "max", "min", "prod"][int(self.rng.integers(4))]
        row = pt.sigmoid(self.pick(self.rows)) + 0.5
        ends = {"max": -np.inf, "min": np.inf}
        options = {"initial": ends[kind]} if kind in ends else {}
        self.scalars.append(pt.tanh(getattr(pt, kind)(row, **options)))

    def gather(self):
        self.rows.append(self.pick(self.shared)[self.index] * 0.5)

    def scatter(self):
        target = self.pick(self.shared)
        self.shared.append(pt.inc_subtensor(target[self.index], self.pick(self.rows)))

    def scaled(self):
        matrix, vectors = self.pick(self.matrices)
        self.matrices.append((pt.tanh(matrix * self.pick(self.rows)[:, None]), vectors))

    def sums(self):
        matrix, vectors = self.pick(self.matrices)
        vectors.append(pt.tanh((matrix * self.pick(self.rows)[:, None]).sum(axis=0)))

    def turned(self):
        self.rows.append(self.pick(self.rows)[::-1])

    def numbered(self):
        row = self.pick(self.rows)
        self.rows.append(row * 0.1 * pt.arange(row.shape[0]))

    def part(self):
        row, part = self.pick(self.rows), self.pick(self.rows)
        if self.rng.random() < 0.5:
            self.rows.append(pt.set_subtensor(row[1:], self.pick(self.scalars)))
        else:
            self.rows.append(pt.inc_subtensor(row[::-1], part))

    def drawn(self):
        """With parameters of a row, of all rows, or the generator after another draw."""
        row, scalar = self.pick(self.rows), self.pick(self.scalars)
        draws = [
            lambda g: g.normal(row, pt.exp(scalar)),
            lambda g: g.gamma(1 + scalar**2, scale=1.0, size=row.shape),
            lambda g: g.integers(-3, 4, size=row.shape),
        ]
        self.generator, x = draws[int(self.rng.integers(3))](self.generator)
        self.rows.append(pt.tanh(x) if self.rng.random() < 0.5 else x * 0.1)

    def drawn_table(self):
        row = self.pick(self.rows)
        self.generator, x = self.generator.uniform(size=(row.shape[0], self.columns))
        self.tables.append(x + row[:, None] if self.rng.random() < 0.5 else x)

    def table(self):
        matrix, factors = self.pick(list(self.factors.items()))
        self.tables.append(pt.dot(matrix, self.pick(factors)) * 0.5)

    def table_terms(self):
        matrix, factors = self.pick(list(self.factors.items()))
        factors.append(pt.tanh(pt.dot(matrix.T, self.pick(self.tables))))

    def softmax(self):
        table = self.pick(self.tables)
        self.tables.append(pt.special.softmax(table * self.pick(self.scalars), axis=1))

    def column(self):
        row, table = self.pick(self.rows), self.pick(self.tables)
        if self.rng.random() < 0.5:
            self.rows.append(table[:, -1] + row)
        else:
            self.tables.append(pt.set_subtensor(table[:, 0], row))

    def outputs(self):
        vectors = [v for _, pool in self.matrices for v in pool]
        matrix, pool = self.matrices[0]
        first = pt.dot(matrix, pool[0]) * self.pick(self.rows)
        factors = [v for pool in self.factors.values() for v in pool]
        pools = [self.rows, self.scalars, self.shared, vectors, self.tables, factors]
        return [pt.dot(matrix.T, first), *(self.pick(pool) for pool in pools)]


def test_the_second_of_two_blocks_has_as_many_columns():
    """Their number is computed before the first: not every path passes what is within."""
    w = pt.tensor("w", dtype="float64", shape=(4, None))
    first, second = (pt.tensor(name, dtype="float64", shape=(30, 4)) for name in "ab")
    g = w
    for x in (first, second):
        g = pt.dot(x.T, pt.tanh(pt.dot(x, g)))
    program = program_of([w, first, second], [g])
    assert len(found(program)) == 2
    agree(program, [rng.normal(size=shape) for shape in ((4, 3), (30, 4), (30, 4))])


@pytest.mark.own_width
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(4, 25))
def test_programs_compute_what_the_interpreter_does(seed, size):
    check_random_rows(seed, size)


@rest
@pytest.mark.own_width
@settings(max_examples=55, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(4, 25))
def test_more_programs_compute_what_the_interpreter_does(seed, size):
    check_random_rows(seed, size)


def check_random_rows(seed, size):
    values = RandomRows(seed)
    values.grow(size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "ROW_BLOCK_SMALL", 0)
        patch.setattr(costs, "ROW_BLOCK_BYTES", 300)
        patch.setattr(costs, "ROW_BLOCK_THREADS", 1 << 20)
        patch.setattr(costs, "ROW_BLOCK_MULTIPLE", 1)
        program = program_of(values.inputs, values.outputs(), on_unused_input="ignore")
        agree(program, values.args)


@pytest.mark.own_width
def test_most_random_programs_have_blocks():
    count = 0
    for seed in range(20):
        values = RandomRows(seed)
        values.grow(20)
        program = program_of(values.inputs, values.outputs(), on_unused_input="ignore")
        count += bool(found(program))
    assert count >= 10


# ------------------------------------------------------------ addresses read from a table


def regression():
    X, y, b = pt.dmatrix("X"), pt.dvector("y"), pt.dvector("b")
    eta = pt.dot(X, b)
    cost = (pt.log1p(pt.exp(eta)) - y * eta).sum()
    values = rng.normal(size=(40, 6)), rng.normal(size=40), rng.normal(size=6)
    return [X, y, b], [cost, phintys.grad(cost, b)], values


def recurrence():
    x, w = pt.dmatrix("x"), pt.dmatrix("w")
    h = phintys.scan(
        lambda r, h, w: pt.tanh(pt.dot(h, w) + r), x, pt.zeros_like(x[0]), w, return_updates=False
    )
    cost = h.prod(axis=0).sum()
    return [x, w], [cost, *phintys.grad(cost, [x, w])], rng.normal(size=(2, 5, 5))


def stages():
    """Temps of several sizes, some of them in branches, that matrix products keep apart."""
    x, c = pt.dmatrix("x"), pt.dscalar("c")
    y = pt.dot(x, x) @ pt.exp(x[:, :2])
    z = phintys.ifelse(c > 0, pt.cumsum(y @ y.T, axis=0), pt.dot(x, pt.cumsum(x, axis=1)))
    return [x, c], [pt.dot(z, y), z.sum(axis=0)], (rng.normal(size=(4, 4)), 1.0)


@pytest.mark.parametrize("model", [regression, recurrence, stages])
def test_addresses_in_a_table(model, short, monkeypatch):
    inputs, outputs, values = model()
    program = program_of(inputs, outputs)
    near = agree(program, values)
    monkeypatch.setattr(costs, "NEAR_BLOCKS", 0)
    assert "fill." in emit_entry(program).ir
    for one, other in zip(near, agree(program, values), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.own_width
def test_routines_of_many_steps_keep_few_values():
    """More steps do not make more values that live through a routine: LLVM's time is linear."""

    def lasting(depth):
        x = pt.dvector("x")
        y = x
        for k in range(depth):
            y = (pt.sin(y) if k % 2 else pt.cos(y)) + x
        lines = emit_entry(program_of([x], [y, phintys.grad(y.sum(), x)])).ir.splitlines()
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for number, line in enumerate(lines):
            for name in re.findall(r"(?<!label )%[\w.]+", line):
                first.setdefault(name, number)
                last[name] = number
        return sum(last[name] - first[name] > 100 for name in first)

    assert lasting(500) == lasting(1000) < 30


@pytest.mark.own_width
def test_a_step_of_a_long_routine_is_a_few_lines():
    """A kernel is called with positions in a table, however many blocks of memory it uses."""
    x = pt.dvector("x")
    y = x
    for k in range(160):
        y = (pt.sin(y) if k % 2 else pt.cos(y)) + x
    program = program_of([x], [y, phintys.grad(y.sum(), x)])
    entry = emit_entry(program)
    operands = sum(len(step.operands) for step in program.steps if isinstance(step, Kernel))
    assert operands > 10 * len(program.steps)
    assert entry.ir.count("load ptr") < operands / 5
    assert sum("positions" in kernel.ir for kernel in entry.kernels.values()) < 20
