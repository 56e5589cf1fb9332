"""What is inferred of random expressions holds for their values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.assumptions import ALL_KEYS, AssumptionFeature, assume
from phintys.compile.mode import Mode
from phintys.graph import FunctionGraph
from phintys.graph.traversal import ancestors

PLAIN = Mode(linker="py", optimizer=None)
#: relative size of what rounding may leave in place of a zero
NOISE = 1e-4


def transposed(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


def is_inside(x: np.ndarray, first: float, last: float) -> bool:
    """Whether elements outside of some diagonals are zero, up to rounding."""
    rows, columns = np.indices(x.shape[-2:])
    outside = (columns - rows < first) | (columns - rows > last)
    return bool(np.all(np.abs(x[..., outside]) <= NOISE * np.max(np.abs(x), initial=0)))


def is_equal(x: np.ndarray, y: Any) -> bool:
    return bool(np.allclose(x, y, atol=NOISE * np.max(np.abs(x), initial=0)))


def is_square(x: np.ndarray) -> bool:
    return x.ndim > 1 and x.shape[-1] == x.shape[-2]


def is_definite(x: np.ndarray) -> bool:
    if not is_square(x) or not is_equal(x, transposed(x).conj()):
        return False
    least = np.min(np.linalg.eigvalsh(x), initial=0) if x.size else 0
    return bool(least >= -NOISE * np.max(np.abs(x), initial=0))


def is_selection(x: np.ndarray) -> bool:
    return bool(np.all((x == 0) | (x == 1)) and np.all(x.sum(-1) == 1))


def is_unique(x: np.ndarray) -> bool:
    return all(np.unique(row).size == row.size for row in x.reshape(-1, x.shape[-1]))


#: property -> whether the values of an expression have it; they are complex numbers
HOLDS: dict[str, Callable[[np.ndarray], bool]] = {
    "diagonal": lambda x: is_inside(x, 0, 0),
    "lower_triangular": lambda x: is_inside(x, -np.inf, 0),
    "upper_triangular": lambda x: is_inside(x, 0, np.inf),
    "tridiagonal": lambda x: is_inside(x, -1, 1),
    "symmetric": lambda x: is_square(x) and is_equal(x, transposed(x)),
    "positive_definite": is_definite,
    "orthogonal": lambda x: bool(
        np.allclose(transposed(x).conj() @ x, np.eye(x.shape[-1]), atol=1e-3)
    ),
    "selection": is_selection,
    "permutation": lambda x: is_square(x) and is_selection(x) and is_selection(transposed(x)),
    "square": is_square,
    "unique_indices": is_unique,
    "unit_magnitude": lambda x: bool(np.allclose(np.abs(x), 1)),
}

N = 3
DTYPES = ("float64", "float64", "float32", "int64", "complex128", "bool", "uint8")
PARTS = [slice(None), slice(None, None, -1), slice(1, None), slice(-2, None), slice(None, None, 2)]
#: positions that are written, in rows and columns: runs, one number for all, others
PLACES: list[Any] = [
    *(np.arange(N), pt.arange(N), np.arange(1, N), np.arange(N)[::-1], np.arange(N) - N),
    *(np.array([0]), np.array([1]), np.zeros(N, "int64"), np.arange(N)[:, None], 0),
]
ELEMENTWISE = "exp sin neg abs sqr sqrt sign conj real imag reciprocal cosh sigmoid invert".split()
BINARY = (pt.add, pt.mul, pt.sub, pt.true_div, pt.maximum, pt.minimum)
STRUCTURES = ("gen", "sym", "her", "pos", "diagonal", "tridiagonal", "lower triangular")


class Drawn:
    """Random matrices and expressions of them, with the values of the inputs."""

    def __init__(self, seed: int) -> None:
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.values: dict[Any, np.ndarray] = {}
        self.row = self.input((N,))
        self.pool = [self.input(s) for s in ((N, N), (N, N), (2, N, N), (N, 1), (N, 5))]

    def input(self, shape: tuple[int, ...]) -> Any:
        dtype, known = self.rng.choice(DTYPES), self.rng.random() < 0.5
        v = pt.tensor(dtype=dtype, shape=shape if known else (None,) * len(shape))
        x = 2 * self.numbers.normal(size=shape)
        self.values[v] = (np.abs(x) if dtype[0] == "u" else x).astype(dtype)
        return v

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    @property
    def offset(self) -> int:
        """That of a diagonal."""
        return self.one(-1, 0, 0, 1)

    def written(self, x: Any, y: Any) -> Any:
        """A matrix with other numbers at some positions."""
        base = self.one(x, pt.zeros((N, N)), pt.zeros(x.shape[-2:]), pt.eye(N))
        part = base[..., self.one(*PLACES), self.one(*PLACES)]
        values = self.one(1, 2.5, self.row)
        return self.one(part.set, part.inc)(values)

    def grow(self, steps: int) -> None:
        for _ in range(steps):
            try:
                made = self.one(*STEPS)(self, self.one(*self.pool), self.one(*self.pool))
            except (TypeError, ValueError, IndexError):
                continue  # shapes that do not fit
            if 2 <= made.type.ndim <= 3:
                self.pool.append(made)

    def value(self, v: Any) -> np.ndarray | None:
        """The value of an expression; None if lengths do not fit, or something is not finite."""
        used = [v, *(x for x in ancestors([v]) if x in self.pool)]
        f = phintys.function(list(self.values), used, mode=PLAIN, on_unused_input="ignore")
        try:
            found = f(*self.values.values())
        except (ValueError, IndexError, np.linalg.LinAlgError):
            return None
        return found[0] if all(np.isfinite(x).all() and x.size < 2000 for x in found) else None


def _part(g: Drawn, x: Any, y: Any) -> Any:
    """The same part of rows and columns, or others."""
    rows = g.one(*PARTS)
    return x[..., rows, g.one(rows, *PARTS)]


def _declared(g: Drawn, x: Any, y: Any) -> Any:
    lower = pt.linalg.cholesky(x @ pt.conj(x).mT + pt.eye(x.shape[-2]))
    definite = assume(lower @ pt.conj(lower).mT, positive_definite=True)
    return g.one(definite, lower, assume(pt.tril(x), lower_triangular=True))


def _masked(g: Drawn, x: Any, y: Any) -> Any:
    mask = g.one(x > 0, pt.tri(N, k=g.offset) > 0, g.row > 0, pt.eye(N) > 0)
    return pt.switch(mask, x, g.one(0, 0, 1, y))


#: new expressions of two matrices
STEPS: list[Callable[[Drawn, Any, Any], Any]] = [
    lambda g, x, y: g.one(pt.eye(N, k=g.offset), pt.eye(N, N + 1), pt.eye(N, dtype="int8")),
    lambda g, x, y: g.one(pt.tril, pt.triu)(x, g.offset),
    lambda g, x, y: g.one(pt.diag(g.row, g.offset), pt.alloc_diag(x, g.offset, 1, 2)),
    lambda g, x, y: x.mT,
    lambda g, x, y: g.one(x @ y, x @ x.mT, pt.conj(x).mT @ x, x + x.mT),
    lambda g, x, y: getattr(pt, g.one(*ELEMENTWISE))(x),
    lambda g, x, y: g.one(*BINARY)(x, g.one(y, x.mT, -1, 2, 0, g.row, g.row[:, None])),
    _part,
    Drawn.written,
    lambda g, x, y: pt.cast(x, g.one(*DTYPES, "int8", "float16", "complex64")),
    _masked,
    lambda g, x, y: g.one(pt.linalg.cholesky, pt.linalg.inv, pt.linalg.expm)(x),
    lambda g, x, y: pt.linalg.solve(
        x, y, assume_a=g.one(*STRUCTURES), lower=g.one(True, False), b_ndim=2
    ),
    lambda g, x, y: g.one(pt.linalg.block_diag, pt.linalg.kron)(x, y),
    lambda g, x, y: g.one(*g.one(pt.linalg.qr, pt.linalg.svd, pt.linalg.eigh, pt.linalg.lu)(x)),
    _declared,
]


@pytest.mark.parametrize("start", range(0, 120, 30))
@pytest.mark.filterwarnings("ignore")
def test_what_is_inferred_of_random_expressions_holds(start: int) -> None:
    count = 0
    for seed in range(start, start + 30):
        drawn = Drawn(seed)
        drawn.grow(9)
        made = [v for v in drawn.pool if v.owner is not None]
        feature = AssumptionFeature()
        FunctionGraph(list(drawn.values), made, clone=False).attach_feature(feature)
        for v in made:
            known = [key.name for key in ALL_KEYS if feature.check(v, key)]
            value = drawn.value(v) if known else None
            for name in [] if value is None else known:
                count += 1
                text = phintys.dprint(v, file="str")
                assert value is not None and HOLDS[name](value + 0j), f"{seed}: {name}\n{text}"
    assert count > 100


def test_products_of_integers_wrap_before_their_determinant_is_taken() -> None:
    x = pt.tensor(dtype="int8", shape=(2, 2))
    product = pt.linalg.kron(x, x)
    results = [pt.linalg.det(product), pt.linalg.slogdet(product)[1], pt.linalg.inv(product)]
    value = np.array([[100, 0], [0, 3]], dtype="int8")
    expected = phintys.function([x], results, mode=PLAIN)(value)
    for found, e in zip(phintys.function([x], results)(value), expected, strict=True):
        np.testing.assert_allclose(found, e, rtol=1e-5)
