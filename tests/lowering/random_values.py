"""Random tensor values, each with the NumPy array that it must have."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.bitgen import copied
from phintys.graph.builder import At, Each, Row
from phintys.lowering.builder import Builder
from phintys.lowering.values import Value

UNARY = {
    "exp": lambda x: np.exp(np.minimum(x, 3.0)),
    "tanh": np.tanh,
    "neg": np.negative,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum}
REDUCTIONS = {
    "add": np.sum,
    "mul": np.prod,
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
}


class RandomValues:
    """Grows a pool of (value, array) pairs by random builder calls."""

    def __init__(self, seed: int, unknown: bool = True):
        self.rng = np.random.default_rng(seed)
        self.b = Builder()
        self.pool: list[tuple[Value, Any]] = []
        self.args: list[Any] = []
        self.states: list[tuple[Value, Any]] = []  # generators, as values and as objects
        self.sizes = [int(n) for n in self.rng.choice([1, 2, 3, 4], 3)]
        self.unknown = unknown
        for rank in (0, 1, 2, 2, 3):
            self.input(rank)

    def pick(self, minimum_rank: int = 0) -> tuple[Value, Any]:
        """One of the pool, later ones more often."""
        fitting = [p for p in self.pool if p[1].ndim >= minimum_rank and p[1].size <= 200]
        return fitting[min(int(self.rng.integers(len(fitting) + 4)), len(fitting) - 1)]

    def choice(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def add(self, value: Value, array: Any) -> None:
        array = np.asarray(array)
        if array.dtype == np.int64 and value.dtype == "int64":
            value, array = self.b.cast(value, "float64"), array.astype("float64")
        if not np.all(np.abs(array) < 1e6):
            return
        assert value.ndim == array.ndim, (value, array.shape)
        self.pool.append((value, array))

    def input(self, rank: int) -> None:
        shape = tuple(self.choice(self.sizes) for _ in range(rank))
        array = self.rng.normal(size=shape)
        known = [
            n if n == 1 or not self.unknown or self.rng.random() < 0.3 else None for n in shape
        ]
        self.args.append(array)
        self.pool.append((self.b.input("float64", known), array))

    def grow(self, count: int) -> None:
        names = """unary binary binary binary reduce reduce permute slice expand repeat diagonal
        take reshape gather update scatter join matmul python row_chain index scan draw segments
        segment_map"""
        steps = [getattr(self, name) for name in names.split()]
        for _ in range(count):
            self.choice(steps)()

    def unary(self) -> None:
        value, array = self.pick()
        name = self.choice(sorted(UNARY))
        if name == "exp":
            fn = lambda n, x: n.exp(n.min(x, n.const(3.0, like=x)))  # noqa: E731
        else:
            fn = lambda n, x: getattr(n, name)(x)  # noqa: E731
        self.add(self.b.map(fn, value), UNARY[name](array))

    def matched(self, a: Any, b: Any) -> bool:
        """Whether arrays broadcast by lengths that are constant 1."""
        (x, ax), (y, ay) = a, b
        for k in range(1, min(ax.ndim, ay.ndim) + 1):
            one = x.shape[-k].value == 1 or y.shape[-k].value == 1
            if ax.shape[-k] != ay.shape[-k] and not one:
                return False
        return True

    def binary(self) -> None:
        a, b = self.pick(), self.pick()
        if self.matched(a, b):
            name = self.choice(sorted(BINARY))
            value = self.b.map(lambda n, x, y: getattr(n, name)(x, y), a[0], b[0])
            self.add(value, BINARY[name](a[1], b[1]))

    def reduce(self) -> None:
        value, array = self.pick(1)
        axes = tuple(k for k in range(array.ndim) if self.rng.random() < 0.5) or (array.ndim - 1,)
        kind = self.choice(["add", "max", "add", "min", "mul", "argmax", "argmin"])
        if kind.startswith("arg"):
            axes = axes[:1]
        expected = REDUCTIONS[kind](array, axis=axes[0] if len(axes) == 1 else axes)
        self.add(self.b.reduce(kind, value, axes), expected)

    def permute(self) -> None:
        value, array = self.pick(2)
        order = [int(k) for k in self.rng.permutation(array.ndim)]
        self.add(self.b.permute(value, order), array.transpose(order))

    def slice(self) -> None:
        value, array = self.pick(1)
        axis = int(self.rng.integers(array.ndim))
        n = array.shape[axis]
        part = [slice(None)] * array.ndim
        if self.rng.random() < 0.5:
            length = self.b.length(value, axis)
            part[axis] = slice(None, None, -1)
            new = self.b.slice(value, axis, length - 1, -1, length)
        else:
            start = int(self.rng.integers(n))
            part[axis] = slice(start, None)
            new = self.b.slice(value, axis, start, 1, self.b.length(value, axis) - start)
        self.add(new, array[tuple(part)])

    def expand(self) -> None:
        value, array = self.pick()
        if array.ndim < 4:
            axis = int(self.rng.integers(array.ndim + 1))
            self.add(self.b.expand(value, axis), np.expand_dims(array, axis))

    def repeat(self) -> None:
        """A new axis along which values are the same, often as long as another one."""
        value, array = self.pick(1)
        if array.ndim > 3 or array.size > 50:
            return
        axis, like = (int(self.rng.integers(array.ndim + k)) for k in (1, 0))
        lengths = list(self.b.shape(value))
        lengths.insert(axis, lengths[like])
        shape = list(array.shape)
        shape.insert(axis, shape[like])
        new = self.b.broadcast_to(self.b.expand(value, axis), lengths)
        self.add(new, np.broadcast_to(np.expand_dims(array, axis), shape))

    def diagonal(self) -> None:
        value, array = self.pick(2)
        if array.shape[0] == array.shape[1]:
            self.add(self.b.diagonal(value, 0, 1), np.diagonal(array))

    def take(self) -> None:
        value, array = self.pick(1)
        axis = int(self.rng.integers(array.ndim))
        at = int(self.rng.integers(-array.shape[axis], array.shape[axis]))
        self.add(self.b.take(value, axis, at), np.take(array, at, axis))

    def reshape(self) -> None:
        value, array = self.pick(1)
        if self.rng.random() < 0.5:
            self.add(self.b.reshape(value, (-1,)), array.reshape(-1))
        else:
            shape = (1, -1, self.b.length(value, -1))
            self.add(self.b.reshape(value, shape), array.reshape(1, -1, array.shape[-1]))

    def gather(self) -> None:
        value, array = self.pick(1)
        axis = int(self.rng.integers(array.ndim))
        n = array.shape[axis]
        where = self.rng.integers(-n, n, size=self.choice([(2,), (3, 2), ()]))
        new = self.b.gather(value, [self.b.const(where)], [axis])
        rest = np.moveaxis(array, axis, 0)
        self.add(new, rest[where])

    def update(self) -> None:
        base, array = self.pick(1)
        n = array.shape[0]
        start = int(self.rng.integers(n))
        region = [(start, 1, self.b.length(base, 0) - start)]
        region += [(0, 1, self.b.length(base, k)) for k in range(1, array.ndim)]
        mode = self.choice(["set", "add"])
        value, part = self.pick()
        target = array[start:]
        if part.ndim > target.ndim or not self.matched((value, part), (base, target)):
            value, part = self.b.const(1.5), np.array(1.5)
        if np.broadcast_shapes(part.shape, target.shape) != target.shape:
            value, part = self.b.const(1.5), np.array(1.5)
        result = array.copy()
        result[start:] = part if mode == "set" else result[start:] + part
        self.add(self.b.update(base, region, value, mode), result)

    def scatter(self) -> None:
        base, array = self.pick(1)
        axis = int(self.rng.integers(array.ndim))
        n = array.shape[axis]
        where = self.rng.integers(-n, n, size=3)
        mode = self.choice(["set", "add"])
        rows = self.rng.normal(size=3).reshape((3,) + (1,) * (array.ndim - 1))
        result = np.moveaxis(array.copy(), axis, 0)
        if mode == "set":
            for at, row in zip(where, rows):
                result[at] = row
        else:
            np.add.at(result, where, np.broadcast_to(rows, (3, *result.shape[1:])))
        where_, rows_ = self.b.const(where), self.b.const(rows)
        new = self.b.scatter(base, [where_], [axis], rows_, mode)
        self.add(new, np.moveaxis(result, 0, axis))

    def join(self) -> None:
        value, array = self.pick(1)
        other = self.b.map(lambda n, x: n.neg(x), value)
        axis = int(self.rng.integers(array.ndim))
        parts = [(value, array), (other, -array)]
        self.add(
            self.b.join([p[0] for p in parts], axis), np.concatenate([p[1] for p in parts], axis)
        )

    def matmul(self) -> None:
        value, array = self.pick(2)
        order = [*range(array.ndim - 2), array.ndim - 1, array.ndim - 2]
        turned = self.b.permute(value, order)
        self.add(self.b.matmul(value, turned), array @ array.transpose(order))

    def python(self) -> None:
        value, array = self.pick()
        lengths = [1 if d.value == 1 else None for d in value.shape]
        (new,) = self.b.python(lambda x: (np.tanh(x),), [value], [("float64", lengths)])
        self.add(new, np.tanh(array))

    def row_chain(self) -> None:
        value, array = self.pick(1)
        peak = self.b.expand(self.b.reduce("max", value, (-1,)), -1)
        e = self.b.map(lambda n, x, p: n.exp(n.sub(x, p)), value, peak)
        total = self.b.expand(self.b.reduce("add", e, (-1,)), -1)
        expected = np.exp(array - array.max(-1, keepdims=True))
        result = expected / expected.sum(-1, keepdims=True)
        self.add(self.b.map(lambda n, e, s: n.div(e, s), e, total), result)

    def index(self) -> None:
        value, array = self.pick(1)
        axis = int(self.rng.integers(array.ndim))
        new = self.b.cast(self.b.index(axis, self.b.shape(value)), "float64")
        self.add(new, np.indices(array.shape)[axis].astype("float64"))

    def scan(self) -> None:
        value, array = self.pick(1)
        axis = int(self.rng.integers(array.ndim))
        kind, ufunc = self.choice([("add", np.add), ("max", np.maximum), ("mul", np.multiply)])
        self.add(self.b.scan(kind, value, axis), ufunc.accumulate(array, axis))

    def draw(self) -> None:
        """Random numbers, from the generator that is an input or from one that a draw returned."""
        if not self.states:
            self.args.append(np.random.default_rng(5))
            self.states.append((self.b.input(None), np.random.default_rng(5)))
        state, rng = self.choice(self.states)
        rng = copied(rng)
        mean, array = self.pick()
        length = self.choice([1, 2, 5])
        many = self.rng.random() < 0.5
        shape = (length, *self.b.shape(mean)) if many else self.b.shape(mean)
        scale = self.b.map(lambda n, x: n.abs(x), mean)
        flag = self.b.map(lambda n, x: n.not_(n.lt(x, n.const(0.0, x))), scale)
        after, value = self.b.draw("random_normal", state, [mean, scale], shape, [flag])
        expected = rng.normal(array, np.abs(array), (length, *array.shape) if many else None)
        self.states.append((after, rng))
        self.add(value, expected)

    def some_segments(self) -> tuple[Any, Any, Any, Any]:
        """A vector of the pool, segments of it, and what the segments are."""
        value, array = self.pick(1)
        value, array = self.b.reshape(value, (-1,)), array.reshape(-1)
        bounds = self.rng.integers(0, array.size + 1, (2, self.choice([1, 3, 4])))
        self.args += list(bounds)
        starts, stops = (self.b.input("int64", (None,)) for _ in bounds)
        parts = [slice(i, max(i, j)) for i, j in bounds.T]
        return value, array, self.b.segments(starts, stops, self.b.length(value, 0)), parts

    def segments(self) -> None:
        """A reduction of segments of elements, times others that are taken at positions."""
        value, array, segments, parts = self.some_segments()
        where = self.rng.integers(-array.size, array.size, array.size)
        kind = self.choice(["add", "add", "mul", "argmax", "argmin"])
        elements = Each(value), At(value, self.b.const(where))
        new = self.b.reduce_segments(kind, segments, lambda n, x, y: n.mul(x, y), *elements)
        product = array * array[where]
        empty = 1.0 if kind == "mul" else 0.0
        found = [REDUCTIONS[kind](product[p]) if product[p].size else empty for p in parts]
        self.add(new, np.array(found, str(new.dtype)))

    def segment_map(self) -> None:
        """A vector whose segments are set or added to, at their places or at others."""
        value, array, segments, parts = self.some_segments()
        where = self.rng.permutation(array.size)
        factors = self.rng.normal(size=len(parts))
        mode, moved = self.choice(["set", "add"]), self.rng.random() < 0.5
        result = array.copy()
        for part, factor in zip(parts, factors, strict=True):
            at = where[part] if moved else part
            result[at] = factor * array[part] + (result[at] if mode == "add" else 0)
        elements = Each(value), Row(self.b.const(factors))
        at = self.b.const(where) if moved else None
        fn = lambda n, x, y: n.mul(x, y)  # noqa: E731
        self.add(self.b.update_segments(value, mode, segments, fn, *elements, at=at), result)

    def outputs(self, count: int) -> tuple[list[Value], list[Any]]:
        """Some of the pool, the last one among them."""
        chosen = [self.pick() for _ in range(count - 1)] + [self.pool[-1]]
        return [p[0] for p in chosen], [p[1] for p in chosen]
