"""Routines compiled by Numba, and the functions of ops whose ``lower_batched`` calls routines.

`by_routine` runs the method on an `ItemSource`, which has those methods of the builder of Programs
that such ops need.  It writes the source of a function that computes one item; `Blockwise` loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from phintys.backends.numba.dispatch import compiled, define, jit, nested, tuple_of
from phintys.backends.numba.elemwise import numpy_name, place
from phintys.backends.numba.scalar import Lines, Value, literal
from phintys.backends.source import compile_function_src
from phintys.dims import ONE, Dim, DimLike, as_dim
from phintys.graph.shapes import Answer, Shape, answer
from phintys.graph.variable import Apply
from phintys.routines import Routine
from phintys.routines.language import PART
from phintys.routines.libraries import LibraryFunction

_CELLS = {"char": "np.int8", "int": "np.int32", "status": "np.int32"}


def library_function(row: LibraryFunction, dtype: str) -> Any:
    """A library function as a Numba function of numbers and arrays."""
    real = f"np.{PART.get(dtype, dtype)}"
    function = row.prototype(dtype)(row.address(dtype))
    names = [f"x{k}" for k in range(len(row.arguments))]
    body, passed = ["status = np.zeros(1, np.int32)"], []
    for kind, x, is_passed in zip(row.arguments, names, row.passed(dtype)):
        if not is_passed:
            continue
        if kind not in ("array", "ints"):
            body.append(f"{x}_cell = np.zeros(2, {_CELLS.get(kind, real)})")
            body.append(f"{x}_cell[0] = {x}")
            x += "_cell"
        passed.append(f"{x}.ctypes")
    passed += ["status.ctypes"] if row.has_status else []
    body += [f"f({', '.join(passed)})", "return np.int64(status[0])"]
    source = define(row.name, names, body)
    return jit(compile_function_src(source, row.name, {"np": np, "f": function}))


@cache
def routine_function(routine: Routine, dtype: str) -> Any:
    """A routine as a Numba function."""
    return routine.python(dtype, library_function, jit, _functions(dtype))


@cache
def _functions(dtype: str) -> dict[CodeType, Any]:
    """The functions of routines that are made already: many routines share some."""
    return {}


# ------------------------------------------------------------------------------- lengths


def length_source(dim: DimLike) -> str:
    """The source of a length that is computed from those of the arguments ``x0``, ``x1``, ..."""
    return as_dim(dim).render(lambda key: f"x{key[1]}.shape[{key[2]}]")


def shape_source(shape: Sequence[DimLike]) -> str:
    """The source of a shape."""
    return tuple_of([length_source(d) for d in shape]) if shape else "()"


def requirement_lines(found: Answer) -> Iterator[str]:
    """The lines that raise an exception if the lengths of the arguments do not fit."""
    for r in found.requirements:
        left, right = length_source(r.left), length_source(r.right)
        yield f"if not {left} {r.relation} {right}: raise ValueError({r.message!r})"


def depends_on_lengths_only(found: Answer) -> bool:
    """Whether the lengths of the arguments determine all that a shape rule says."""
    dims = [d for shape in found.shapes for d in shape]
    dims += [d for r in found.requirements for d in (r.left, r.right)]
    return all(s.args[0][0] == "len" for d in dims for s in d.symbols())


# --------------------------------------------------------------------------------- items


class _Item(NamedTuple):
    """An array in the source; axes whose length is known to be 1 broadcast."""

    name: str
    dtype: str
    shape: Shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def at(self, indices: Sequence[str]) -> str:
        """The source of the element at indices, which may be more than it has axes."""
        own = [d.value for d in self.shape]
        return f"{self.name}[{place(own, indices[len(indices) - len(own) :])}]"


class ItemSource:
    """What an op's ``lower_batched`` sees of a builder: it writes lines of source for one item."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}

    def _new(self, source: str, dtype: str, shape: Sequence[DimLike]) -> _Item:
        name = f"y{len(self.lines)}"
        self.lines.append(f"{name} = {source}")
        return _Item(name, dtype, tuple(map(as_dim, shape)))

    # ----- lengths
    def shape(self, value: _Item) -> Shape:
        return value.shape

    def length(self, value: _Item, axis: int) -> Dim:
        return value.shape[axis]

    def broadcast_shape(self, shapes: Sequence[Shape]) -> Shape:
        """The axes of a batch: there are none."""
        assert not any(shapes)
        return ()

    # ----- arrays
    def cast(self, value: _Item, dtype: str) -> _Item:
        if value.dtype == dtype:
            return value
        return self._new(f"{value.name}.astype(np.{numpy_name(dtype)})", dtype, value.shape)

    def broadcast_to(self, value: _Item, shape: Sequence[DimLike]) -> _Item:
        """The item: only axes of batches are broadcast."""
        return value

    def permute(self, value: _Item, order: Sequence[int]) -> _Item:
        shape = [value.shape[k] for k in order]
        return self._new(
            f"{value.name}.transpose({tuple_of([str(k) for k in order])})", value.dtype, shape
        )

    def rows_or_columns(self, value: _Item) -> tuple[_Item, bool]:
        return value, False

    def reshape(self, value: _Item, shape: Sequence[DimLike]) -> _Item:
        source = f"np.ascontiguousarray({value.name}).reshape({shape_source(shape)})"
        return self._new(source, value.dtype, shape)

    def expand(self, value: _Item, axis: int) -> _Item:
        return self.reshape(value, (*value.shape[:axis], ONE, *value.shape[axis:]))

    def squeeze(self, value: _Item, axis: int) -> _Item:
        return self.reshape(value, (*value.shape[:axis], *value.shape[axis + 1 :]))

    def slice(
        self, value: _Item, axis: int, start: DimLike, step: DimLike, length: DimLike
    ) -> _Item:
        spans = [":"] * axis + [_span(start, step, length)]
        shape = (*value.shape[:axis], length, *value.shape[axis + 1 :])
        return self._new(f"{value.name}[{', '.join(spans)}]", value.dtype, shape)

    def fill(self, value: _Item, shape: Sequence[DimLike]) -> _Item:
        return self._new(f"np.full({shape_source(shape)}, {value.name}[()])", value.dtype, shape)

    def update(
        self,
        x: _Item,
        spans: Sequence[tuple[DimLike, DimLike, DimLike]],
        value: _Item,
        kind: str,
    ) -> _Item:
        """A copy of ``x`` with a part of it replaced."""
        assert kind == "set"
        out = self._new(f"{x.name}.copy()", x.dtype, x.shape)
        self.lines.append(f"{out.name}[{', '.join(_span(*s) for s in spans)}] = {value.name}")
        return out

    def diagonal(self, value: _Item, axis1: int, axis2: int) -> _Item:
        """The diagonal of a matrix."""
        return self._new(f"np.diag({value.name})", value.dtype, value.shape[:1])

    # ----- elements
    def const(self, value: Any, dtype: str) -> _Item:
        builder = Lines()
        number = builder.const(value, dtype)
        self.lines += builder.lines
        return self._new(f"np.asarray({number.text})", dtype, ())

    def index(self, axis: int, shape: Sequence[DimLike]) -> _Item:
        """The positions along one axis; the other axes have length 1."""
        own = [ONE] * len(shape)
        own[axis] = as_dim(shape[axis])
        return self._new(
            f"np.arange({length_source(own[axis])}).reshape({shape_source(own)})", "int64", own
        )

    def map(self, fn: Callable[..., Any], *values: _Item, dtype: str | None = None) -> _Item:
        builder = Lines()
        result = fn(builder, *(Value(f"a{k}", v.dtype) for k, v in enumerate(values)))
        result = result if dtype is None else builder.cast(result, dtype)
        shape = _common_shape([v.shape for v in values])
        indices = [f"i{k}" for k in range(len(shape))]
        out = self._empty(result.dtype_name, shape)
        reads = [f"a{k} = {v.at(indices)}" for k, v in enumerate(values)]
        self._loop(shape, [*reads, *builder.lines, f"{out.at(indices)} = {result.text}"])
        self.names |= builder.env
        return out

    def reduce(self, kind: str, value: _Item, axes: Sequence[int]) -> _Item:
        """The reduction of a vector."""
        builder = Lines()
        total = getattr(builder, f"{kind}_" if kind == "or" else kind)(
            Value("total", value.dtype), Value(value.at(["i0"]), value.dtype)
        )
        self.lines.append(f"total = {literal(_START[kind], value.dtype)}")
        self._loop(value.shape, [*builder.lines, f"total = {total.text}"])
        return self._new("np.asarray(total)", value.dtype, ())

    def gather(self, x: _Item, places: Sequence[_Item], axes: Sequence[int]) -> _Item:
        """The elements of ``x`` at the places along all axes."""
        shape = _common_shape([p.shape for p in places])
        indices = [f"i{k}" for k in range(len(shape))]
        out = self._empty(x.dtype, shape)
        source = f"{x.name}[{', '.join(p.at(indices) for p in places)}]"
        self._loop(shape, [f"{out.at(indices)} = {source}"])
        return out

    def _loop(self, shape: Sequence[DimLike], body: Sequence[str]) -> None:
        indices = [f"i{k}" for k in range(len(shape))]
        self.lines += nested(indices, [length_source(d) for d in shape], body)

    def external(
        self,
        routine: Routine,
        dtype: str,
        integers: Sequence[DimLike],
        reads: Sequence[_Item] = (),
        updates: Sequence[_Item] = (),
        writes: Sequence[tuple[str, Sequence[DimLike]]] = (),
        batch: Sequence[DimLike] = (),
        work: DimLike = 1,
        scratch: Sequence[tuple[str, DimLike]] = (),
    ) -> list[_Item]:
        """The arrays that a routine updates and writes; it is called, and its status tested."""
        given = [self.contiguous(v) for v in reads]
        made = [self._empty(v.dtype, v.shape) for v in updates]
        self.lines += [f"{y.name}[...] = {v.name}" for y, v in zip(made, updates)]
        made += [self._empty(kind, shape) for kind, shape in writes]
        spaces = [self._empty(kind, [n]) for kind, n in scratch]
        arguments = ["1"] if routine.grouped else []
        arguments += [length_source(n) for n in integers]
        arguments += [flat(y.name, y.dtype) for y in (*given, *made, *spaces)]
        error, message = routine.failure
        f, e = f"f{len(self.lines)}", f"e{len(self.lines)}"
        self.names |= {f: routine_function(routine, dtype), e: error}
        self.lines.append(f"if {f}({', '.join(arguments)}) != 0: raise {e}({message!r})")
        return made

    def contiguous(self, value: _Item) -> _Item:
        """The array in C order, which Numba wants known; one without axes would get one."""
        if not value.ndim:
            return value
        return self._new(f"np.ascontiguousarray({value.name})", value.dtype, value.shape)

    def _empty(self, dtype: str, shape: Sequence[DimLike]) -> _Item:
        return self._new(f"np.empty({shape_source(shape)}, np.{numpy_name(dtype)})", dtype, shape)


def _span(start: DimLike, step: DimLike, length: DimLike) -> str:
    """The source of the slice with a number of elements."""
    first, by = length_source(start), length_source(step)
    return f"{first}:{first} + {by} * ({length_source(length)}):{by}"


#: kind of reduction -> its value of no elements
_START = {"add": 0, "mul": 1, "or": False}


def _common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape that shapes broadcast to, which may have fewer axes than others."""
    ndim = max(map(len, shapes))
    full = [(ONE,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(
        next((d for d in lengths if d.value != 1), ONE) for lengths in zip(*full, strict=True)
    )


def flat(x: str, dtype: str) -> str:
    """The source of an array as a routine takes it."""
    return f"{x}.reshape(-1)" + (f".view(np.{PART[dtype]})" if dtype in PART else "")


def by_routine(op: Any, node: Any = None, **kwargs: Any) -> Callable[..., Any]:
    """The Numba function of an op whose ``lower_batched`` calls routines, for one item."""
    source = ItemSource()
    found = answer(op, _of_any_length(node))
    names = [f"x{k}" for k in range(len(node.inputs))]
    items = [
        _Item(name, v.type.dtype, tuple(shape))
        for name, v, shape in zip(names, node.inputs, found.inputs)
    ]
    results = [source.contiguous(y).name for y in op.lower_batched(node, source, *items)]
    returned = results[0] if len(results) == 1 else tuple_of(results)
    body = [*requirement_lines(found), *source.lines, f"return {returned}"]
    return compiled(define("by_routine", names, body), **source.names)


def _of_any_length(node: Apply) -> list[Any]:
    """Variables like the inputs of a node, whose lengths are not known."""
    return [v.type.clone(shape=(None,) * v.type.ndim)() for v in node.inputs]
