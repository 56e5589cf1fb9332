"""Profiles of functions: ``function(..., profile=True)``, then ``print(f.profile)``.

A function that Python runs node by node (mode FAST_COMPILE) is timed by node and by call, one that
is compiled as a whole by call.  The stages of compilation are timed for both.

>>> import phintys, phintys.tensor as pt
>>> x = pt.dvector("x")
>>> f = phintys.function([x], (x * 2).sum(), mode="FAST_COMPILE", profile=True, name="f")
>>> f([1.0, 2.0]), f.profile.calls
(array(6.), 1)
>>> sorted(str(op) for op in f.profile.by_op())
['Mul', 'Sum']
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from phintys.compile.callable import Function
from phintys.config import config
from phintys.graph.perform import Runner
from phintys.graph.variable import Apply


class ProfileStats:
    """Counts and times of one function, or of several that share the object.

    Attributes
    ----------
    name
        the heading of the summary
    calls, seconds
        the number of calls and their total time, conversion of arguments included
    stages
        stage of compilation -> seconds
    nodes
        node -> (number of runs, seconds), for nodes that Python runs one by one
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.calls = 0
        self.seconds = 0.0
        self.stages: dict[str, float] = {}
        self.nodes: dict[Apply, tuple[int, float]] = {}

    def attach(self, f: Function) -> None:
        """Count and time the calls of ``f`` from now on, and its nodes if Python runs them."""
        self.name = self.name or f.name or ""
        for stage, seconds in f.maker.times.items():
            self.stages[stage] = self.stages.get(stage, 0.0) + seconds
        run = getattr(f, "run", None)
        if isinstance(run, Runner):
            run.steps = [(self._timed(p, node), node, i, o) for p, node, i, o in run.steps]
        f.profile = self
        f.__class__ = _profiled_class(type(f))

    def _timed(self, perform: Callable[..., Any], node: Apply) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            start = time.perf_counter()
            try:
                return perform(*args)
            finally:
                runs, seconds = self.nodes.get(node, (0, 0.0))
                self.nodes[node] = runs + 1, seconds + time.perf_counter() - start

        return timed

    def by_op(self) -> dict[Any, tuple[int, float]]:
        """Op -> (number of runs, seconds) of all its nodes, the slowest first."""
        found: dict[Any, tuple[int, float]] = {}
        for node, (runs, seconds) in self.nodes.items():
            before = found.get(node.op, (0, 0.0))
            found[node.op] = before[0] + runs, before[1] + seconds
        return dict(sorted(found.items(), key=lambda item: -item[1][1]))

    def summary(self, n: int = 20) -> str:
        """The counts and times as text, with the ``n`` slowest ops and nodes."""
        each = self.seconds / self.calls if self.calls else 0.0
        rows = [
            f"Profile of {self.name or 'a function'}",
            f"  {self.calls} calls took {self.seconds:.6f} s, {each * 1e6:.1f} us each",
            *(f"  {stage:10} {seconds:.6f} s" for stage, seconds in self.stages.items()),
        ]
        if self.nodes:
            rows += ["  seconds    share   runs  op", *_table(self.by_op().items(), n)]
            slowest = sorted(self.nodes.items(), key=lambda item: -item[1][1])
            rows += ["  seconds    share   runs  node", *_table(slowest, n)]
        return "\n".join(rows)

    __str__ = summary


def attach_profile(f: Function, profile: Any) -> None:
    """Start to collect times in ``f.profile``, if that is wanted.

    ``profile`` is True, a heading, or a `ProfileStats` to add to; None means ``config.profile``.
    """
    if profile or (profile is None and config.profile):
        name = profile if isinstance(profile, str) else ""
        stats = profile if isinstance(profile, ProfileStats) else ProfileStats(name)
        stats.attach(f)


def _table(items: Iterable[tuple[Any, tuple[int, float]]], n: int) -> list[str]:
    items = list(items)
    total = sum(seconds for _, (_, seconds) in items) or 1.0
    rows = [
        f"  {seconds:.6f} {seconds / total:6.1%} {runs:6}  {what}"
        for what, (runs, seconds) in items[:n]
    ]
    left_out = len(items) - n
    return [*rows, f"  ... {left_out} more"] if left_out > 0 else rows


@cache
def _profiled_class(cls: type) -> type:
    """A subclass of ``cls`` whose calls are counted and timed."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return cls.__call__(self, *args, **kwargs)  # type: ignore[operator]
        finally:
            self.profile.calls += 1
            self.profile.seconds += time.perf_counter() - start

    return type(cls.__name__, (cls,), {"__call__": call, "__slots__": ()})
