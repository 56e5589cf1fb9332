"""`explain`: a report of how one function was compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from phintys.lowering.in_python import InPython, calls_of_python, nested_programs
from phintys.lowering.program import Kernel, Program

WIDTH = 98


@dataclass(frozen=True)
class Explanation:
    """How a function was compiled; ``str()`` is a report.

    Attributes
    ----------
    backend
        the name of the linker
    loader
        how the llvm backend loaded the machine code: ``image`` or ``llvm``; else empty
    nodes_before, nodes_after
        the number of nodes before and after rewriting
    steps
        kind of step of the Program -> number; empty for backends without a Program
    kernels
        the loops and instructions of each kernel, as text; of those inside of loops and branches,
        the text begins with ``each step: ``, ``if true: `` or ``if false: ``
    python_ops
        the ops that run through ``perform``, with the same beginnings
    python_reasons
        why they do, for each of them
    storages
        the bytes of each buffer for temporaries, as text in terms of lengths
    milliseconds
        stage of compilation -> time
    """

    backend: str
    loader: str
    nodes_before: int
    nodes_after: int
    steps: dict[str, int]
    kernels: list[str]
    python_ops: list[str]
    python_reasons: list[str]
    storages: list[str]
    milliseconds: dict[str, float]

    def __str__(self) -> str:
        lines = [
            f"backend    {self.backend}" + (f", loader {self.loader}" if self.loader else ""),
            f"graph      {self.nodes_before} nodes, {self.nodes_after} after rewriting",
        ]
        if self.steps:
            counts = ", ".join(f"{n} {k}" for k, n in self.steps.items())
            lines.append(f"program    {counts or 'no steps'}")
        lines += [f"  kernel   {k}" for k in self.kernels]
        reasons = zip(self.python_ops, self.python_reasons, strict=True)
        lines += [f"  python   {op}: {reason}" for op, reason in reasons]
        if self.storages:
            sizes = Counter(self.storages)
            shown = ", ".join(f"{n} of {s}" if n > 1 else s for s, n in sizes.items())
            lines.append(f"memory     {len(self.storages)} buffers, in bytes: {shown}")
        times = ", ".join(f"{k} {v:.2f}" for k, v in self.milliseconds.items())
        lines.append(f"time (ms)  {times}")
        return "\n".join("\n".join(wrap(s, WIDTH, subsequent_indent=" " * 11)) for s in lines)


def explain(f: Any) -> Explanation:
    """A report of how the function ``f`` was compiled: nodes, kernels, buffers, milliseconds.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> report = phintys.explain(phintys.function([x], pt.exp(x).sum() + 1))
    >>> report.steps
    {'Kernel': 1}
    """
    maker = f.made_from
    program = getattr(f, "program", None)
    times = {k: 1e3 * v for k, v in maker.times.items()}
    steps: dict[str, int] = {}
    kernels: list[str] = []
    calls: list[InPython] = []
    storages: list[str] = []
    if program is not None:
        steps = dict(Counter(type(s).__name__ for s in program.steps))
        kernels = [text for place, p in nested_programs(program) for text in _kernels(place, p)]
        calls = calls_of_python(program)
        storages = [size.render(_lengths(program)) for size in program.storages]
    return Explanation(
        maker.linker.name,
        getattr(f, "loader", ""),
        maker.n_nodes,
        len(maker.graph.apply_nodes),
        steps,
        kernels,
        [str(call) for call in calls],
        [call.reason for call in calls],
        storages,
        times,
    )


def _kernels(place: str, program: Program) -> list[str]:
    name = _lengths(program)
    return [place + _kernel(s, name) for s in program.steps if isinstance(s, Kernel)]


def _kernel(k: Any, name: Callable[[Any], str]) -> str:
    loops = " x ".join(d.render(name) for d in k.dims) or "scalar"
    reduced = f", reduces the last {len(k.dims) - k.split}" if k.split < len(k.dims) else ""
    ops = Counter(i.op for i in k.body if i.op not in ("load", "const", "dim", "store", "cast"))
    work = ", ".join(f"{n} {op}" if n > 1 else op for op, n in ops.items())
    return f"loops {loops}{reduced}: {work or 'copy'}"


def _lengths(program: Any) -> Callable[[Any], str]:
    """A function from keys of `Dim` symbols to names.

    ``x.shape[0]`` if the array has a name, else ``#3.shape[0]`` with the number of the slot.
    """
    names = {slot.number: slot.name or f"#{slot.number}" for slot in program.slots}

    def name(key: Any) -> str:
        kind, number, *axis = key
        return f"{names[number]}.shape[{axis[0]}]" if kind == "len" else names[number]

    return name
