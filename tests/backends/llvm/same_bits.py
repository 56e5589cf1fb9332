"""Prints a digest of the results of every kind of kernel, for `test_same_bits`.

    python same_bits.py forwards|backwards CALLS [BLOCK]

BLOCK is about the nanoseconds of work after which loops let Python handle signals.  Every function
is called that many times, the functions taking turns in the order that is asked
for, with arguments at different places in memory.  A function whose results change is named.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import phintys
import phintys.tensor as pt
from phintys import config
from phintys.backends.llvm import costs
from phintys.tensor.type import TensorType

sys.path.append(str(Path(__file__).parents[2] / "lowering"))
from segment_ops import KINDS as KINDS_OF_SEGMENTS
from segment_ops import SEGMENTS, CsrProduct, SegmentReduce, bounds, matrix, variables

FLOATS = "float64", "float32"


class Case(NamedTuple):
    name: str
    inputs: list[Any]
    outputs: list[Any]
    values: list[np.ndarray]
    threads: int = 1


def arrays(*ranks: int, dtype: str = "float64") -> list[Any]:
    return [TensorType(dtype, (None,) * rank)(f"x{k}") for k, rank in enumerate(ranks)]


def normal(*shape: int, dtype: str = "float64") -> np.ndarray:
    """Numbers that depend on the shape alone."""
    return np.random.default_rng(shape).normal(size=shape).astype(dtype)


def whole(*shape: int, below: int, dtype: str = "int64") -> np.ndarray:
    return np.random.default_rng(shape).integers(0, below, shape).astype(dtype)


def elementwise() -> Iterator[Case]:
    for dtype in FLOATS:
        (x,) = arrays(2, dtype=dtype)
        chain = [pt.exp(x) + pt.log1p(x * x), pt.tanh(x) / (1 + pt.erf(x)), pt.sin(x) ** 2]
        for shape in ((3, 5), (40, 61)):
            yield Case(f"elementwise {dtype} {shape}", [x], chain, [normal(*shape, dtype=dtype)])
        (x,) = arrays(2, dtype=dtype)
        yield Case(f"tiles {dtype}", [x], [x + x.T], [normal(300, 300, dtype=dtype)])
    for dtype in ("int8", "uint16", "int32"):
        (x,) = arrays(1, dtype=dtype)
        yield Case(f"integers {dtype}", [x], [x * 3 + 1], [whole(77, below=30, dtype=dtype)])


def reductions() -> Iterator[Case]:
    for dtype in FLOATS:
        for shape in ((2000, 7), (64, 31), (50, 33), (6, 1200), (3, 4)):
            (x,) = arrays(2, dtype=dtype)
            values = [normal(*shape, dtype=dtype)]
            for axis in (None, 0, 1):
                outputs = [f(x, axis=axis) for f in (pt.sum, pt.var, pt.prod, pt.max, pt.argmax)]
                yield Case(f"reductions {dtype} {shape} {axis}", [x], outputs, values)
            rows = [pt.softmax(x, 1), pt.logsumexp(x, axis=1), pt.log_softmax(x, axis=1)]
            slope = phintys.grad(pt.softmax(x, 1).max(axis=1).sum(), x)
            yield Case(f"rows {dtype} {shape}", [x], [*rows, slope], values)
        (x,) = arrays(3, dtype=dtype)
        outputs = [x.sum(axis) for axis in (0, 1, 2, (0, 1), (0, 2), (1, 2))]
        yield Case(f"cube {dtype}", [x], outputs, [normal(9, 21, 13, dtype=dtype)])


def products() -> Iterator[Case]:
    sizes = [(m, n, k) for m in (3, 8, 40) for n in (1, 2, 31, 32, 33) for k in (1, 5, 32, 33, 200)]
    for dtype in FLOATS:
        for m, n, k in [*sizes, (120, 130, 110)]:
            x, y = arrays(2, 2, dtype=dtype)
            values = [normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)]
            yield Case(f"product {dtype} {m} {n} {k}", [x, y], [x @ y, y.T @ x.T], values)
        for m, k in ((5, 3), (17, 32), (17, 33), (300, 70), (2, 1000)):
            x, y, z = arrays(2, 1, 1, dtype=dtype)
            values = [normal(m, k, dtype=dtype), normal(k, dtype=dtype), normal(m, dtype=dtype)]
            outputs = [x @ y, z @ x, x + pt.outer(z, y), pt.dot(y, y)]
            yield Case(f"vectors {dtype} {m} {k}", [x, y, z], outputs, values)
        x, y = arrays(3, 3, dtype=dtype)
        for n in (8, 40):
            values = [normal(6, n, n, dtype=dtype), normal(6, n, n, dtype=dtype) / 2]
            yield Case(f"batch {dtype} {n}", [x, y], [x @ y], values)


def blocks() -> Iterator[Case]:
    x, b, y = arrays(2, 1, 1)
    misfit = ((pt.tanh(x @ b) - y) ** 2).sum()
    values = [normal(3000, 60), normal(60), normal(3000)]
    yield Case("blocks of rows", [x, b, y], [misfit, phintys.grad(misfit, b)], values)


def positions() -> Iterator[Case]:
    for dtype in FLOATS:
        x, y = arrays(1, 2, dtype=dtype)
        i = pt.lvector("i")
        outputs = [pt.exp(x[i]), pt.inc_subtensor(x[i], 0.1), y[i] * 2, pt.inc_subtensor(y[i], 0.1)]
        outputs.append(phintys.grad((x[i] ** 3).sum() + pt.log(1 + y[i] ** 2).sum(), x))
        values = [normal(50, dtype=dtype), normal(50, 21, dtype=dtype), whole(333, below=50)]
        yield Case(f"positions {dtype}", [x, y, i], outputs, values)


def layouts() -> Iterator[Case]:
    for dtype in (*FLOATS, "int16", "uint8"):
        (x,) = arrays(2, dtype=dtype)
        base = whole(90, 140, below=100, dtype=dtype)
        views = {"transposed": base.T, "steps": base[::-1, ::3], "one column": base[:, 3:4]}
        for name, view in views.items():
            yield Case(f"{name} {dtype}", [x], [(x * x).sum(axis=1), x + 1], [view])


def segments() -> Iterator[Case]:
    for dtype in FLOATS:
        inputs = variables([normal(1, dtype=dtype), *bounds("rows")])
        outputs = [SegmentReduce(kind)(*inputs) for kind in KINDS_OF_SEGMENTS]
        for name in ("overlapping", "one long", "long rows"):
            values = [normal(SEGMENTS[name][2], dtype=dtype), *bounds(name)]
            yield Case(f"segments {dtype} {name}", inputs, outputs, values)
            yield Case(f"segments {dtype} {name} threads", inputs, outputs, values, threads=3)
        a, v = matrix(40, 20, 9, dtype, "int32"), normal(20, dtype=dtype)
        inputs = variables([*a, v, v])
        yield Case(f"csr {dtype}", inputs, [CsrProduct()(*inputs)], [*a, v, v])


def draws() -> Iterator[Case]:
    x, y = arrays(2, 1)
    rng = np.random.default_rng(3)
    drawn = pt.random.normal(x, pt.exp(y), rng=rng)
    yield Case("draws", [x, y], [drawn, pt.tanh(drawn).sum(axis=0)], [normal(70, 33), normal(33)])


def threads() -> Iterator[Case]:
    (x,) = arrays(2)
    outputs = [pt.erf(pt.tanh(pt.exp(-x * x))).sum(), pt.softmax(pt.erf(x), axis=1)]
    yield Case("threads", [x], outputs, [normal(2000, 9)], threads=3)
    (x,) = arrays(1)
    yield Case("threads, sum", [x], [pt.erf(pt.tanh(pt.exp(-x * x))).sum()], [normal(70_000)], 2)


KINDS: list[Callable[[], Iterator[Case]]] = [
    elementwise, reductions, products, blocks, positions, layouts, segments, draws, threads,
]  # fmt: skip


def moved(value: np.ndarray, by: int) -> np.ndarray:
    """A contiguous array as one that starts ``by`` elements after a multiple of 64 bytes."""
    if not value.flags.c_contiguous:
        return value
    memory = np.empty(value.nbytes + 64 + by * value.itemsize, "uint8")
    start = -memory.ctypes.data % 64 + by * value.itemsize
    result = memory[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    result[...] = value
    return result


def digest(results: list[np.ndarray]) -> str:
    parts = (np.ascontiguousarray(r).tobytes() for r in results)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def made(case: Case) -> Any:
    with config.change_flags(threads=case.threads):
        return phintys.function(case.inputs, case.outputs)


def main(order: str, calls: int) -> None:
    cases = [case for kind in KINDS for case in kind()]
    if order == "backwards":
        cases.reverse()
    functions = [made(case) for case in cases]
    found: dict[str, set[str]] = {case.name: set() for case in cases}
    for call in range(calls):
        for case, f in zip(cases, functions):
            values = [moved(v, call % 5) for v in case.values]
            found[case.name].add(digest(f(*values)))
    for name in sorted(found):
        print(f"{name}: {' '.join(sorted(found[name]))}")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        costs.POLL_NANOSECONDS, costs.DENSE_NANOSECONDS = int(sys.argv[3]), 0
    main(sys.argv[1], int(sys.argv[2]))
