"""Numba functions of loops.  The generated source calls the function of the inner graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.backends.numba.conditional import with_own_memory
from phintys.backends.numba.dispatch import compiled, define, in_object_mode, numba_funcify
from phintys.backends.numba.elemwise import numpy_name
from phintys.loop.influence import positions
from phintys.loop.op import Scan
from phintys.loop.parts import BUFFERS, Part
from phintys.tensor.type import TensorType

#: the reference backend replaces the exception by one with the lengths
WRONG_LENGTH = "raise ValueError('Lengths in a loop do not fit.')"


@numba_funcify.register(Scan)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    source = _Source(op, node)
    names = [f"x{i}" for i in range(len(node.inputs))]
    env = {name: compiled(text) for name, text in _FUNCTIONS.items()}
    with op.labels(node):
        env["step"] = with_own_memory(op.expanded)
    if source.has_unknown_rows():
        env["without_steps"] = in_object_mode(op, node)
    return compiled(define("loop", names, source.lines(names)), **env)


class _Source:
    """The source of a loop, of the variables ``x0``, ``x1``, ... (the outer inputs).

    The result of a step is ``r``, a tuple.  Part ``k`` is in ``v{k}``: the array of rows of a
    buffer or an output, or an untraced state.
    """

    def __init__(self, op: Any, node: Any) -> None:
        self.op, self.node = op, node
        self.parts = list(enumerate(positions(op)))
        self.traced = [(k, p) for k, p in self.parts if p.kind in BUFFERS or p.kind == "nit_sot"]

    def type_of(self, p: Part) -> Any:
        """The type of the outer output of a part."""
        return self.node.outputs[p.result].type

    def has_unknown_rows(self) -> bool:
        """Whether rows have lengths that only a step tells."""
        return any(
            p.kind == "nit_sot" and None in self.type_of(p).shape[1:] for _, p in self.traced
        )

    def lines(self, names: Sequence[str]) -> list[str]:
        """The body of the function."""
        body = [*self.step(), *self.stored(), "executed += 1"]
        if self.op.info.as_while:
            body.append(f"if r[{self.op.info.n_inner_outputs - 1}][()]: break")
        results = [f"v{k}" for k, p in self.parts if p.result is not None]
        fallback = f"if n == 0: return without_steps({', '.join(names)})"
        return [
            "n = x0[()]",
            f"if n < 0: {WRONG_LENGTH}",
            *([fallback] if self.has_unknown_rows() else []),
            *self.before(),
            "executed = 0",
            "for t in range(n):",
            *(f"    {line}" for line in body),
            *self.after(),
            f"return {', '.join(results)}",
        ]

    def before(self) -> list[str]:
        """What is there before the first step."""
        found = []
        for k, p in self.parts:
            x = f"x{p.outer}"
            if p.kind == "seq":
                found.append(f"if {x}.shape[0] < n: {WRONG_LENGTH}")
            elif p.kind in BUFFERS:
                steps = " + n" if p.kind == "mit_mot" else ""
                found.append(f"if {x}.shape[0] < {p.lag}{steps}: {WRONG_LENGTH}")
                found.append(f"v{k} = {x}.copy()")
            elif p.kind == "nit_sot":
                found.append(f"if {x}[()] < min(n, 1): {WRONG_LENGTH}")
                shape = [0, *(n or 0 for n in self.type_of(p).shape[1:])]
                found.append(f"v{k} = np.empty({tuple(shape)}, np.{self.dtype(p)})")
            elif p.kind == "untraced_sit_sot":
                copied = isinstance(self.type_of(p), TensorType)
                found.append(f"v{k} = {x}.copy()" if copied else f"v{k} = {x}")
        return found

    def dtype(self, p: Part) -> str:
        return numpy_name(self.type_of(p).dtype)

    def step(self) -> list[str]:
        """A step: the call of the function of the inner graph."""
        given: dict[int, str] = {}
        for k, p in self.parts:
            if p.kind == "seq":
                given[p.inputs[0]] = self.row(f"x{p.outer}", "t", p.inputs[0])
            elif p.kind in BUFFERS:
                for offset, i in zip(p.reads, p.inputs):
                    given[i] = self.row(f"v{k}", _place(k, offset), i)
            elif p.inputs:
                given[p.inputs[0]] = f"v{k}" if p.outputs else f"x{p.outer}"
        call = f"step({', '.join(given[i] for i in range(len(given)))})"
        return [f"r = {call}" if self.op.info.n_inner_outputs > 1 else f"r = ({call},)"]

    def row(self, array: str, place: str, i: int) -> str:
        """A row, as inner input ``i``."""
        ndim = self.op.fgraph.inputs[i].type.ndim
        return f"{array}[{place}]" if ndim else f"np.asarray({array}[{place}])"

    def stored(self) -> list[str]:
        """What a step stores."""
        found = []
        for k, p in self.parts:
            if p.kind == "untraced_sit_sot":
                found.append(f"v{k} = r[{p.outputs[0]}]")
        for k, p in self.traced:
            ndim = self.type_of(p).ndim - 1
            for offset, o in zip(p.writes or (0,), p.outputs):
                if p.kind == "nit_sot":
                    lengths = "".join(f", r[{o}].shape[{a}]" for a in range(ndim))
                    shape = f"(x{p.outer}[()]{lengths},)"
                    found.append(f"if t == 0: v{k} = np.empty({shape}, np.{self.dtype(p)})")
                store = "store_row" if ndim else "store_number"
                found.append(f"{store}(v{k}, {_place(k, offset)}, r[{o}])")
        return found

    def after(self) -> list[str]:
        """The rows that are kept, the newest one last."""
        traced = [(k, p.lag) for k, p in self.traced if p.kind != "mit_mot"]
        return [f"v{k} = newest_last(v{k}, {lag} + executed)" for k, lag in traced]


def _place(k: int, offset: int) -> str:
    """The source of the place of a row in an array."""
    return f"(t + {offset}) % v{k}.shape[0]"


_STORE_ROW = f"""
def store_row(rows, place, row):
    if row.shape != rows.shape[1:]: {WRONG_LENGTH}
    rows[place] = row
"""

_STORE_NUMBER = """
def store_number(rows, place, row):
    rows[place] = row[()]
"""

_NEWEST_LAST = """
def newest_last(rows, written):
    n = rows.shape[0]
    if written == n:
        return rows
    if written < n:
        return rows[:written].copy()
    found = np.empty_like(rows)
    for i in range(n):
        found[i] = rows[(i + written) % n]
    return found
"""

_FUNCTIONS = {
    "store_row": _STORE_ROW,
    "store_number": _STORE_NUMBER,
    "newest_last": _NEWEST_LAST,
}
