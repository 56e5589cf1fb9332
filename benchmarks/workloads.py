"""What is measured: one formula per workload, which every library computes.

A formula is a function of a namespace ``m`` and of the arrays.  The namespace is that of a library
(`namespaces.py`): NumPy's names, and a few more, such as ``m.softmax`` and ``m.put``.  So there is
one program per workload and not one per library, and its value by NumPy is the right answer.
NumPy has no gradients: ``by_hand`` is the value and the gradients in NumPy, and tests compare it
with complex steps through the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

SIZES = ("small", "medium", "large")
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Workload:
    """One program and its data.

    Attributes
    ----------
    formula
        ``formula(m, **arrays)``: the output, or a list of them
    data
        ``data(size, rng)``: the arrays by name, in the order in which they are arguments
    sizes
        the sizes of `SIZES`; there may be fewer
    held
        names of arrays that the function keeps (shared variables), and which are not arguments
    gradient
        if given, the outputs are the value of the formula and its gradients for these names
    rate
        if not 0, a call does not return the gradients but takes a step of descent with them
    updates
        ``updates(m, **arrays)``: new values of held arrays after a call, by name
    by_hand
        ``by_hand(**arrays)``: value and gradients in NumPy, where ``gradient`` is given
    call
        how arguments are passed: "arrays", "floats", "keywords", "trusted" (no checks)
    unit
        the workload of the family that this one is a variant of: reports show the ratio
    tolerance
        relative error of a right answer
    """

    name: str
    family: str
    formula: Callable[..., Any]
    data: Callable[[Any, np.random.Generator], Arrays]
    sizes: tuple[Any, ...] = (0,)
    held: tuple[str, ...] = ()
    gradient: tuple[str, ...] = ()
    rate: float = 0.0
    updates: Callable[..., Mapping[str, Any]] | None = None
    by_hand: Callable[..., list[Any]] | None = None
    call: str = "arrays"
    unit: str = ""
    tolerance: float = 1e-9

    def arrays(self, size: str, seed: int = 0) -> Arrays:
        """The data of a size, the same for each library."""
        return self.data(self.sizes[SIZES.index(size)], np.random.default_rng(seed))

    @property
    def changes(self) -> bool:
        """Whether a call changes held arrays."""
        return bool(self.rate or self.updates)

    def has(self, size: str) -> bool:
        return SIZES.index(size) < len(self.sizes)


def outputs(result: Any) -> list[Any]:
    """The outputs of a formula as a list."""
    return list(result) if isinstance(result, list | tuple) else [result]


def answer(w: Workload, arrays: Arrays, m: Any) -> tuple[list[Any], Arrays]:
    """Outputs by NumPy, and the held arrays after the call; ``m`` is NumPy's namespace."""
    held = {name: arrays[name] for name in w.held}
    if w.by_hand:
        value, *slopes = w.by_hand(**arrays)
        if not w.rate:
            return [value, *slopes], held
        steps = {n: arrays[n] - w.rate * g for n, g in zip(w.gradient, slopes)}
        return [value], held | steps
    if w.updates:
        held |= w.updates(m, **arrays)
    return outputs(w.formula(m, **arrays)), held


def slope(w: Workload, arrays: Arrays, along: Arrays, m: Any) -> float:
    """The derivative of a formula in the direction ``along``, by a complex step: to all digits."""
    step = 1e-30
    moved = {name: arrays[name] + 1j * step * v for name, v in along.items()}
    return w.formula(m, **{**arrays, **moved}).imag / step


def single(f: Callable[..., Arrays]) -> Callable[..., Arrays]:
    """The same data in float32."""

    def data(size: Any, rng: np.random.Generator) -> Arrays:
        arrays = f(size, rng)
        return {k: a.astype("f4") if a.dtype == "f8" else a for k, a in arrays.items()}

    return data


# ---------------------------------------------------------------- calls: what a call costs


def two_numbers(_: Any, rng: np.random.Generator) -> Arrays:
    return {"x": np.array(1.25), "y": np.array(-3.5)}


def vectors(count: int, length: int) -> Callable[..., Arrays]:
    return lambda _, rng: {f"x{i}": rng.normal(size=length) for i in range(count)}


def add(m: Any, x: Any, y: Any) -> Any:
    return x + y


def total(m: Any, *arrays: Any, **named: Any) -> Any:
    first, *others = (*arrays, *named.values())
    return sum(others, first)


def momentum(m: Any, x: Any, count: Any, mean: Any) -> Any:
    return x * 3.0


def momentum_updates(m: Any, x: Any, count: Any, mean: Any) -> Mapping[str, Any]:
    return {"count": count + x, "mean": 0.75 * mean + 0.25 * x}


ADD = Workload("add of 0-d arrays", "calls", add, two_numbers)
CALLS = [
    ADD,
    replace(ADD, name="add of Python floats", call="floats", unit=ADD.name),
    replace(ADD, name="add by keywords", call="keywords", unit=ADD.name),
    replace(ADD, name="add, trusted", call="trusted", unit=ADD.name),
    Workload("add of vectors of 10", "calls", total, vectors(2, 10)),
    Workload("sum of 10 vectors of 4", "calls", total, vectors(10, 4)),
    Workload("sum of 30 vectors of 4", "calls", total, vectors(30, 4)),
    Workload(
        "two shared updates",
        "calls",
        momentum,
        lambda _, rng: {"x": np.array(0.5), "count": np.array(0.0), "mean": rng.normal(size=5)},
        held=("count", "mean"),
        updates=momentum_updates,
    ),
]

# ---------------------------------------------------------------- elementwise

LENGTHS = (100, 10_000, 1_000_000)


def pairs(n: int, rng: np.random.Generator) -> Arrays:
    return {"x": rng.normal(size=n), "y": rng.uniform(0.5, 2.0, size=n)}


def costly(m: Any, x: Any, y: Any) -> Any:
    a = m.exp(-0.5 * x * x)
    b = m.log(a + y)
    return m.tanh(b - x) * m.sqrt(a + 1.0) + m.log1p(b * b)


def cheap(m: Any, x: Any, y: Any) -> Any:
    a = 2.0 * x - y
    b = a * y + 0.5
    return (a - b) * (b + x) - 3.0 * a + y * y


def waves(m: Any, x: Any, y: Any) -> Any:
    return m.sin(x) * m.cos(y) + m.where(x > 0, m.sin(x + y), m.cos(x - y))


def log_density(m: Any, x: Any, mu: Any, sigma: Any) -> Any:
    z = (x - mu) / sigma
    return m.sum(-0.5 * z * z - m.log(sigma) - 0.5 * math.log(2 * math.pi))


def columns(shape: tuple[int, int], rng: np.random.Generator) -> Arrays:
    n, k = shape
    scale = rng.uniform(0.5, 2.0, size=(n, 1))
    return {"x": rng.normal(size=shape), "mu": rng.normal(size=k), "sigma": scale}


COSTLY = Workload("exp-log chain", "elementwise", costly, pairs, LENGTHS)
CHEAP = Workload("cheap chain", "elementwise", cheap, pairs, LENGTHS)
ELEMENTWISE = [
    COSTLY,
    replace(COSTLY, name="exp-log chain, float32", data=single(pairs), tolerance=1e-4,
            unit=COSTLY.name),
    CHEAP,
    replace(CHEAP, name="cheap chain, float32", data=single(pairs), tolerance=1e-4,
            unit=CHEAP.name),
    Workload("sin, cos and where", "elementwise", waves, pairs, LENGTHS),
    Workload("sum of normal log-densities", "elementwise", log_density, columns,
             ((20, 5), (1000, 40), (20_000, 80))),
]  # fmt: skip

# ---------------------------------------------------------------- layouts of operands

SQUARES = (16, 128, 1024)


def square(view: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Arrays]:
    """Two n x n operands, the second seen through ``view`` of a 2n x 2n array."""

    def data(n: int, rng: np.random.Generator) -> Arrays:
        y = view(rng.uniform(0.5, 2.0, size=(2 * n, 2 * n)))
        return {"x": rng.normal(size=(n, n)), "y": y}

    return data


def corner(a: np.ndarray) -> np.ndarray:
    n = len(a) // 2
    return a[:n, :n]


LAYOUT = Workload("contiguous", "layouts", cheap, square(lambda a: corner(a).copy()), SQUARES)
VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "part of a matrix": corner,
    "transposed": lambda a: corner(a).copy().T,
    "every second": lambda a: a[::2, ::2],
    "reversed": lambda a: corner(a).copy()[::-1, ::-1],
    "one row": lambda a: corner(a)[:1].copy(),
    "one column": lambda a: corner(a)[:, :1].copy(),
}
LAYOUTS = [
    LAYOUT,
    *(replace(LAYOUT, name=k, data=square(v), unit=LAYOUT.name) for k, v in VIEWS.items()),
]

# ---------------------------------------------------------------- rows and reductions


def matrix(shape: tuple[int, int], rng: np.random.Generator) -> Arrays:
    return {"x": rng.normal(size=shape) * 2.0}


def cube(shape: tuple[int, ...], rng: np.random.Generator) -> Arrays:
    return {"x": rng.normal(size=shape)}


def standardize(m: Any, x: Any) -> Any:
    centred = x - m.mean(x, axis=1, keepdims=True)
    return centred / m.sqrt(m.mean(centred * centred, axis=1, keepdims=True) + 1e-5)


def reduction(name: str, axis: int | None) -> Callable[..., Any]:
    return lambda m, x: getattr(m, name)(x, axis=axis)


ROW_SIZES = ((12, 16), (400, 800), (3000, 1200))
ROWS = [
    Workload("softmax", "rows", lambda m, x: m.softmax(x), matrix, ROW_SIZES),
    Workload("log-softmax", "rows", lambda m, x: m.log_softmax(x), matrix, ROW_SIZES),
    Workload("logsumexp", "rows", lambda m, x: m.logsumexp(x), matrix, ROW_SIZES),
    Workload("standardized rows", "rows", standardize, matrix, ROW_SIZES),
]
CUBES = ((5, 6, 20), (60, 50, 80), (150, 200, 220))
REDUCTIONS = [
    Workload(f"{name} of {'all' if axis is None else f'axis {axis}'}", "reductions",
             reduction(name, axis), cube, CUBES)
    for name, axes in (("sum", (None, 0, 1, 2)), ("max", (0, 2)), ("argmax", (1, 2)))
    for axis in axes
]  # fmt: skip

# ---------------------------------------------------------------- gathers and scatters


def groups(size: tuple[int, int], rng: np.random.Generator) -> Arrays:
    n, k = size
    return {
        "x": rng.normal(size=k),
        "y": rng.normal(size=n),
        "group": rng.integers(0, k, size=n),
    }


def misfit(m: Any, x: Any, y: Any, group: Any) -> Any:
    r = x[group] - y
    return m.sum(r * r)


def misfit_by_hand(x: Any, y: Any, group: Any) -> list[Any]:
    r = x[group] - y
    return [r @ r, np.bincount(group, 2 * r, len(x))]


def smooth(m: Any, x: Any, y: Any) -> Any:
    """Writes inner parts of an array again and again; no operand may be changed."""
    for k in range(1, 5):
        x = m.put(x, slice(k, -k), 0.5 * (x[k - 1 : -k - 1] + y[k + 1 : len_or_none(k)]))
    return x


def len_or_none(k: int) -> int | None:
    return None if k == 1 else 1 - k


GATHER_SIZES = ((60, 7), (20_000, 300), (500_000, 5000))
INDEXING = [
    Workload("gather", "indexing", lambda m, x, y, group: x[group] * y, groups, GATHER_SIZES),
    Workload("gather, value and gradient", "indexing", misfit, groups, GATHER_SIZES,
             gradient=("x",), by_hand=misfit_by_hand),
    Workload("chain of writes", "indexing", smooth, pairs, LENGTHS),
]  # fmt: skip

# ---------------------------------------------------------------- sorts and running sums

RUNNING = [
    Workload("sort of rows", "running", lambda m, x: m.sort(x, axis=1), matrix, ROW_SIZES),
    Workload("argsort of rows", "running", lambda m, x: m.argsort(x, axis=1), matrix, ROW_SIZES),
    Workload("cumsum of rows", "running", lambda m, x: m.cumsum(x, axis=1), matrix, ROW_SIZES),
    Workload("cumsum of columns", "running", lambda m, x: m.cumsum(x, axis=0), matrix, ROW_SIZES),
]

# ---------------------------------------------------------------- batches of small matrices


def matrices(size: tuple[int, int], rng: np.random.Generator) -> Arrays:
    """Positive definite matrices that are well conditioned, and right sides."""
    count, n = size
    x = rng.normal(size=(count, n, n))
    return {"x": x @ x.transpose(0, 2, 1) + n * np.eye(n), "b": rng.normal(size=(count, n, 1))}


def without_sides(size: tuple[int, int], rng: np.random.Generator) -> Arrays:
    return {"x": matrices(size, rng)["x"]}


def log_determinant(m: Any, x: Any) -> Any:
    return m.linalg.slogdet(x)[1]


MATRICES = [
    Workload(f"{name} {n} x {n}", "matrices", formula, data, ((10, n), (1000, n)), tolerance=1e-7)
    for n in (3, 8, 16)
    for name, formula, data in (
        ("cholesky", lambda m, x: m.linalg.cholesky(x), without_sides),
        ("inv", lambda m, x: m.linalg.inv(x), without_sides),
        ("det", lambda m, x: m.linalg.det(x), without_sides),
        ("slogdet", log_determinant, without_sides),
        ("eigh", lambda m, x: m.linalg.eigh(x)[0], without_sides),
        ("solve", lambda m, x, b: m.linalg.solve(x, b), matrices),
    )
]

# ---------------------------------------------------------------- statistical models


def regression(size: tuple[int, int], rng: np.random.Generator) -> Arrays:
    n, k = size
    x = rng.normal(size=(n, k))
    beta = rng.normal(size=k) * 0.3
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-x @ beta))).astype(float)
    return {"beta": rng.normal(size=k) * 0.1, "x": x, "y": y}


def logistic(m: Any, beta: Any, x: Any, y: Any) -> Any:
    eta = m.matmul(x, beta)
    return m.sum(y * eta - m.softplus(eta)) - 0.5 * m.sum(beta * beta)


def logistic_by_hand(beta: Any, x: Any, y: Any) -> list[Any]:
    eta = x @ beta
    value = (y * eta - np.logaddexp(0.0, eta)).sum() - 0.5 * (beta @ beta)
    return [value, (y - 1 / (1 + np.exp(-eta))) @ x - beta]


def poisson(m: Any, beta: Any, x: Any, y: Any) -> Any:
    eta = m.matmul(x, beta)
    return m.sum(y * eta - m.exp(eta))


def poisson_by_hand(beta: Any, x: Any, y: Any) -> list[Any]:
    eta = x @ beta
    rate = np.exp(eta)
    return [y @ eta - rate.sum(), (y - rate) @ x]


def homes(size: tuple[int, int], rng: np.random.Generator) -> Arrays:
    n, k = size
    return {
        "mean": np.array(1.5),
        "log_spread": np.array(-0.7),
        "slope": np.array(-0.6),
        "offset": rng.normal(size=k),
        "log_noise": np.array(-0.3),
        "county": rng.integers(0, k, size=n),
        "floor": rng.integers(0, 2, size=n).astype(float),
        "y": rng.normal(size=n),
    }


RADON = ("mean", "log_spread", "slope", "offset", "log_noise")


def radon(
    m: Any, mean: Any, log_spread: Any, slope: Any, offset: Any, log_noise: Any,
    county: Any, floor: Any, y: Any,
) -> Any:  # fmt: skip
    """Regression with an intercept for each county, not centred."""
    intercept = mean + m.exp(log_spread) * offset
    z = (y - intercept[county] - slope * floor) / m.exp(log_noise)
    prior = mean * mean + log_spread * log_spread + slope * slope + log_noise * log_noise
    return m.sum(-0.5 * z * z - log_noise) - 0.5 * m.sum(offset * offset) - 0.5 * prior


def radon_by_hand(
    mean: Any, log_spread: Any, slope: Any, offset: Any, log_noise: Any,
    county: Any, floor: Any, y: Any,
) -> list[Any]:  # fmt: skip
    spread, noise = np.exp(log_spread), np.exp(log_noise)
    z = (y - (mean + spread * offset)[county] - slope * floor) / noise
    squares = z @ z
    prior = mean**2 + log_spread**2 + slope**2 + log_noise**2
    value = -0.5 * (squares + offset @ offset + prior) - len(y) * log_noise
    pull = np.bincount(county, z, len(offset)) / noise
    return [
        value,
        pull.sum() - mean,
        spread * (pull @ offset) - log_spread,
        floor @ z / noise - slope,
        spread * pull - offset,
        squares - len(y) - log_noise,
    ]


RADON_SIZES = ((50, 5), (919, 85), (100_000, 3000))
DESIGNS = ((100, 5), (10_000, 50), (80_000, 50))
MODELS = [
    Workload("logistic regression", "models", logistic, regression, DESIGNS,
             held=("x", "y"), gradient=("beta",), by_hand=logistic_by_hand),
    Workload("Poisson regression", "models", poisson, regression, DESIGNS,
             held=("x", "y"), gradient=("beta",), by_hand=poisson_by_hand),
    Workload("hierarchical regression", "models", radon, homes, RADON_SIZES,
             held=("county", "floor", "y"), gradient=RADON, by_hand=radon_by_hand),
]  # fmt: skip

# ---------------------------------------------------------------- a network of two layers

WEIGHTS = ("w1", "b1", "w2", "b2")


def network(size: tuple[int, int, int, int], rng: np.random.Generator) -> Arrays:
    batch, n, hidden, classes = size
    return {
        "x": rng.normal(size=(batch, n)),
        "target": rng.integers(0, classes, size=batch),
        "w1": rng.normal(size=(n, hidden)) / math.sqrt(n),
        "b1": rng.normal(size=hidden) * 0.1,
        "w2": rng.normal(size=(hidden, classes)) / math.sqrt(hidden),
        "b2": rng.normal(size=classes) * 0.1,
    }


def scores(m: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return m.matmul(m.maximum(m.matmul(x, w1) + b1, 0), w2) + b2


def forward(m: Any, x: Any, **weights: Any) -> Any:
    return m.softmax(scores(m, x, **weights))


def untargeted(size: Any, rng: np.random.Generator) -> Arrays:
    return {k: a for k, a in single(network)(size, rng).items() if k != "target"}


def cross_entropy(m: Any, x: Any, target: Any, **weights: Any) -> Any:
    logp = m.log_softmax(scores(m, x, **weights))
    return -m.mean(logp[m.arange(x.shape[0]), target])


def cross_entropy_by_hand(x: Any, target: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> list[Any]:
    n = np.arange(len(x))
    a = x @ w1 + b1
    h = np.maximum(a, 0)
    z = h @ w2 + b2
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    value = -np.log(p[n, target]).mean()
    p[n, target] -= 1
    p /= np.asarray(len(x), p.dtype)
    dh = (p @ w2.T) * (a > 0)
    return [value, x.T @ dh, dh.sum(axis=0), h.T @ p, p.sum(axis=0)]


BATCHES = ((8, 16, 24, 4), (64, 400, 200, 10), (512, 784, 800, 10))
NETWORKS = [
    Workload("forward", "networks", forward, untargeted, BATCHES, held=WEIGHTS, tolerance=1e-4),
    Workload("training step", "networks", cross_entropy, single(network), BATCHES,
             held=WEIGHTS, gradient=WEIGHTS, rate=0.125, by_hand=cross_entropy_by_hand,
             tolerance=1e-3),
]  # fmt: skip

WORKLOADS = {
    f"{w.family}: {w.name}": w
    for w in (
        *CALLS, *ELEMENTWISE, *ROWS, *MODELS, *NETWORKS, *INDEXING, *REDUCTIONS, *RUNNING,
        *LAYOUTS, *MATRICES,
    )
}  # fmt: skip
