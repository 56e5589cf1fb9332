"""`explain`: the pipeline for one function, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Explanation:
    """What became of a function's graph.  ``str()`` is a report."""

    backend: str
    nodes_before: int
    nodes_after: int
    steps: dict[str, int]
    kernels: list[str]
    python_ops: list[str]
    storages: list[str]
    milliseconds: dict[str, float]

    def __str__(self) -> str:
        lines = [
            f"backend    {self.backend}",
            f"graph      {self.nodes_before} nodes, {self.nodes_after} after rewriting",
        ]
        if self.steps:
            counts = ", ".join(f"{n} {k}" for k, n in self.steps.items())
            lines.append(f"program    {counts or 'no steps'}")
        lines += [f"  kernel   {k}" for k in self.kernels]
        lines += [f"  python   {op}" for op in self.python_ops]
        if self.storages:
            lines.append(f"memory     {len(self.storages)} buffers: {', '.join(self.storages)}")
        times = ", ".join(f"{k} {v:.2f}" for k, v in self.milliseconds.items())
        lines.append(f"time (ms)  {times}")
        return "\n".join(lines)


def explain(f: Any) -> Explanation:
    """What was done to compile ``f``: nodes, kernels, buffers, milliseconds by stage.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> report = phintys.explain(phintys.function([x], pt.exp(x).sum() + 1))
    >>> report.steps
    {'Kernel': 1}
    """
    maker = f.maker
    program = getattr(f, "program", None)
    times = {k: 1e3 * v for k, v in maker.times.items()}
    steps: dict[str, int] = {}
    kernels: list[str] = []
    python_ops: list[str] = []
    storages: list[str] = []
    if program is not None:
        steps = dict(Counter(type(s).__name__ for s in program.steps))
        kernels = [_kernel(s) for s in program.steps if type(s).__name__ == "Kernel"]
        python_ops = [s.name for s in program.steps if type(s).__name__ == "Python"]
        storages = [f"{size.render(_length)} bytes" for size in program.storages]
    return Explanation(
        maker.linker.name,
        maker.n_nodes,
        len(maker.fgraph.apply_nodes),
        steps,
        kernels,
        python_ops,
        storages,
        times,
    )


def _kernel(k: Any) -> str:
    loops = " x ".join(d.render(_length) for d in k.dims) or "scalar"
    reduced = f", reduces the last {len(k.dims) - k.split}" if k.split < len(k.dims) else ""
    names = Counter(i.op for i in k.body if i.op not in ("load", "const", "store", "cast"))
    work = ", ".join(f"{n} {op}" if n > 1 else op for op, n in names.items())
    return f"loops {loops}{reduced}: {work or 'copy'}"


def _length(key: Any) -> str:
    kind, number, *axis = key
    return f"n{number}.{axis[0]}" if kind == "len" else f"item{number}"
