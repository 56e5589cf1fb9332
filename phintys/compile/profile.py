"""Profiles of functions: ``function(..., profile=True)``, then ``print(f.profile)``.

A function that Python runs node by node (mode FAST_COMPILE) is timed by node and by call, one that
is compiled as a whole by call.  The stages of compilation are timed for both.  With
``config.profile_memory`` the memory is measured too.

>>> import phintys, phintys.tensor as pt
>>> x = pt.dvector("x")
>>> f = phintys.function([x], (x * 2).sum(), mode="FAST_COMPILE", profile=True, name="f")
>>> f([1.0, 2.0]), f.profile.calls
(array(6.), 1)
>>> sorted(str(op) for op in f.profile.by_op())
['Mul', 'Sum{axes=None}']
"""

from __future__ import annotations

import atexit
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, TextIO

from phintys.compile.callable import Function
from phintys.config import config
from phintys.graph.perform import Runner
from phintys.graph.variable import Apply, late_bound
from phintys.rewriting.trace import Trace, recording

#: what `register_profiler_printer` has registered
_PRINTERS: list[Callable[..., Any]] = []


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
    rewrites
        rewrite -> number of applications, with ``config.profile_optimizer``
    sizes
        node -> largest size of its results in bytes, with ``config.profile_memory``
    peak
        the most bytes that results of nodes, or the buffers of compiled code, take at a time; 0 if
        it is not known
    """

    def __init__(
        self,
        name: str = "",
        *,
        atexit_print: bool = False,
        flag_time_thunks: bool | None = None,
    ) -> None:
        self.name = name
        self.calls = 0
        self.seconds = 0.0
        self.stages: dict[str, float] = {}
        self.nodes: dict[Apply, tuple[int, float]] = {}
        self.rewrites: Counter[str] = Counter()
        self.sizes: dict[Apply, int] = {}
        self.peak = 0
        self.time_nodes = config.profiling__time_thunks
        if flag_time_thunks is not None:
            self.time_nodes = flag_time_thunks
        self._to_skip = int(config.profiling__ignore_first_call)
        self._functions: list[Function] = []
        if atexit_print:
            _print_at_exit(self)

    def attach(self, f: Function) -> None:
        """Count and time the calls of ``f`` from now on, and its nodes if Python runs them."""
        self.name = self.name or f.name or ""
        self._functions.append(f)
        for stage, seconds in f.made_from.times.items():
            self.stages[stage] = self.stages.get(stage, 0.0) + seconds
        self.rewrites.update(getattr(f.made_from, "rewrites", {}))
        run = getattr(f, "run", None)
        if isinstance(run, Runner) and (self.time_nodes or config.profile_memory):
            run.steps = [(self._timed(p), node, i, o) for p, node, i, o in run.steps]
        f.profile = self
        f.__class__ = _profiled_class(type(f))

    def reset(self) -> None:
        """Forget all calls; the times of compilation stay."""
        self.calls, self.seconds, self.peak = 0, 0.0, 0
        self.nodes.clear()
        self.sizes.clear()

    # ----- measuring
    def _timed(self, perform: Callable[..., Any]) -> Callable[..., Any]:
        measured = config.profile_memory

        def timed(node: Apply, inputs: Sequence[Any]) -> list[Any]:
            start = time.perf_counter()
            try:
                results: list[Any] = perform(node, inputs)
            finally:
                runs, seconds = self.nodes.get(node, (0, 0.0))
                self.nodes[node] = runs + 1, seconds + time.perf_counter() - start
            if measured:
                self.sizes[node] = max(self.sizes.get(node, 0), _size_of(node, results))
            return results

        return timed

    def finish_call(self, f: Function, seconds: float, args: Sequence[Any]) -> None:
        """Add one call; its arguments by position are ``args``."""
        if self._to_skip:
            self._to_skip -= 1
            self.reset()
            return
        self.calls += 1
        self.seconds += seconds
        if config.profile_memory:
            run = getattr(f, "run", None)
            in_steps = isinstance(run, Runner)
            found = self._peak_of_steps(run) if in_steps else _bytes_of_buffers(f, args)
            self.peak = max(self.peak, found)

    def _peak_of_steps(self, run: Runner) -> int:
        """The most bytes of results that are needed at a time, of a graph run node by node."""
        live, most = 0, 0
        root: dict[int, int] = {}  # cell -> the one that owns its memory
        users: Counter[int] = Counter()
        size: dict[int, int] = {}
        for (_, node, inputs, outputs), dead in zip(run.steps, run.dead):
            for k, cell in enumerate(outputs):
                source = node.op.view_map.get(k)
                root[cell] = root.get(inputs[source[0]], -1) if source else outputs[0]
                users[root[cell]] += 1
            size[outputs[0]] = self.sizes.get(node, 0)
            live += size[outputs[0]]
            most = max(most, live)
            for owner in (root[cell] for cell in dead if cell in root):
                users[owner] -= 1
                live -= 0 if users[owner] else size.get(owner, 0)
        return most

    # ----- results
    def by_op(self) -> dict[Any, tuple[int, float]]:
        """Op -> (number of runs, seconds) of all its nodes, the slowest first."""
        return self._grouped(lambda node: node.op)

    def by_class(self) -> dict[type, tuple[int, float]]:
        """Class of ops -> (number of runs, seconds) of all its nodes, the slowest first."""
        return self._grouped(lambda node: type(node.op))

    def _grouped(self, key: Callable[[Apply], Any]) -> dict[Any, tuple[int, float]]:
        found: dict[Any, tuple[int, float]] = {}
        for node, (runs, seconds) in self.nodes.items():
            before = found.get(key(node), (0, 0.0))
            found[key(node)] = before[0] + runs, before[1] + seconds
        return dict(sorted(found.items(), key=lambda item: -item[1][1]))

    def op_time(self) -> dict[Any, float]:
        """Op -> seconds."""
        return {op: seconds for op, (_, seconds) in self.by_op().items()}

    def op_callcount(self) -> dict[Any, int]:
        """Op -> number of runs."""
        return {op: runs for op, (runs, _) in self.by_op().items()}

    def class_time(self) -> dict[type, float]:
        """Class of ops -> seconds."""
        return {cls: seconds for cls, (_, seconds) in self.by_class().items()}

    def class_callcount(self) -> dict[type, int]:
        """Class of ops -> number of runs."""
        return {cls: runs for cls, (runs, _) in self.by_class().items()}

    @property
    def fct_callcount(self) -> int:
        """The number of calls."""
        return self.calls

    @property
    def fct_call_time(self) -> float:
        """The total time of the calls, in seconds."""
        return self.seconds

    @property
    def compile_time(self) -> float:
        """The total time of compilation, in seconds."""
        return sum(self.stages.values())

    def summary(
        self,
        file: TextIO | None = None,
        n_ops_to_print: int | None = None,
        n_apply_to_print: int | None = None,
    ) -> None:
        """Write the counts and times to ``file``; None: to ``config.profiling__destination``.

        ``n_ops_to_print`` and ``n_apply_to_print`` are the numbers of ops and of nodes that are
        listed; None: the settings ``profiling__n_ops`` and ``profiling__n_apply``.
        """
        with _destination() if file is None else nullcontext(file) as stream:
            stream.write(self._text(stream, n_ops_to_print, n_apply_to_print) + "\n")

    def __str__(self) -> str:
        return self._text()

    def _text(
        self,
        file: TextIO | None = None,
        n_ops_to_print: int | None = None,
        n_apply_to_print: int | None = None,
    ) -> str:
        """What `summary` writes to ``file``."""
        n_ops = config.profiling__n_ops if n_ops_to_print is None else n_ops_to_print
        n_apply = config.profiling__n_apply if n_apply_to_print is None else n_apply_to_print
        each = self.seconds / self.calls if self.calls else 0.0
        rows = [
            f"Profile of {self.name or 'a function'}",
            f"  {self.calls} calls took {self.seconds:.6f} s, {each * 1e6:.1f} us each",
            *(f"  {stage:10} {seconds:.6f} s" for stage, seconds in self.stages.items()),
        ]
        if self.nodes:
            classes = [(c.__name__, times) for c, times in self.by_class().items()]
            slowest = sorted(self.nodes.items(), key=lambda item: -item[1][1])
            rows += ["  seconds    share   runs  class", *_table(classes, n_ops)]
            rows += ["  seconds    share   runs  op", *_table(self.by_op().items(), n_ops)]
            rows += ["  seconds    share   runs  node", *_table(slowest, n_apply)]
        rows += self._rows_of_memory(n_apply)
        rows += [f"  {count:6} {name}" for name, count in self.rewrites.most_common(n_ops)]
        text = "\n".join(row[: config.profiling__output_line_width] for row in rows)
        for printer in _PRINTERS:
            text += f"\n{printer(text, file) or ''}".rstrip("\n")
        if config.profiling__debugprint:
            trees = (late_bound["dprint"](f, file="str") for f in self._functions)
            text = "\n".join([text, *trees])
        return text

    def _rows_of_memory(self, n: int) -> list[str]:
        rows = [f"  at most {self.peak} bytes at a time"] if self.peak else []
        large = [(b, node) for node, b in self.sizes.items() if b >= _least_size()]
        large.sort(key=lambda item: -item[0])
        return rows + [f"  {size:12} bytes  {node}" for size, node in large[:n]]


def _least_size() -> int:
    return int(config.profiling__min_memory_size)


def _size_of(node: Apply, results: Sequence[Any]) -> int:
    """The bytes of the results of a node that are not views of its inputs."""
    own = [(v, x) for v, x in zip(node.outputs, results) if v.index not in node.op.view_map]
    return sum(v.type.get_size(v.type.get_shape_info(x)) for v, x in own if x is not None)


def _bytes_of_buffers(f: Any, args: Sequence[Any]) -> int:
    """The bytes of the buffers for temporaries of compiled code; 0 if they are not known."""
    program = getattr(f, "program", None)
    if program is None or len(args) != len(f.made_from.passed):
        return 0
    values = [spec.filter(x) for spec, x in zip(f.made_from.passed, args)]
    values += [c.storage[0] for c in f.containers]
    lengths: dict[Any, int] = {}
    for slot, value in zip(program.inputs, values):
        shape = getattr(value, "shape", ())
        lengths.update(
            (d, n) for d, n in zip(slot.shape, shape) if d.value is None and d.op == "symbol"
        )
    try:
        return sum(size.evaluate(lengths) for size in program.storages)
    except KeyError:  # a length that depends on values
        return 0


def attach_profile(f: Function, profile: Any) -> None:
    """Start to collect times in ``f.profile``, if that is wanted.

    ``profile`` is True, a heading, or a `ProfileStats` to add to; None means ``config.profile``.
    Profiles that settings ask for are printed when the program ends.
    """
    by_setting = profile is None and (config.profile or config.print_global_stats)
    if not (profile or by_setting):
        return
    name = profile if isinstance(profile, str) else ""
    stats = profile if isinstance(profile, ProfileStats) else ProfileStats(name)
    stats.attach(f)
    if by_setting and config.profile:
        _print_at_exit(stats)
    if config.print_global_stats:
        _add_to_totals(stats)


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
            self.profile.finish_call(self, time.perf_counter() - start, args)

    return type(cls.__name__, (cls,), {"__call__": call, "__slots__": ()})


@contextmanager
def counted_rewrites(into: Any) -> Generator[None]:
    """A context in which applications of rewrites are counted, if ``config.profile_optimizer``.

    The counts become the attribute ``rewrites`` of ``into``.
    """
    if not config.profile_optimizer:
        yield
        return
    log = Trace()
    with recording(log):
        yield
    into.rewrites = log.counts()


def register_profiler_printer(fct: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``fct(text, file)``, which returns text to append to each summary, or None."""
    _PRINTERS.append(fct)
    return fct


# ------------------------------------------------------------------ at the program's end

_at_exit: list[ProfileStats] = []
_totals: list[ProfileStats] = []


def _print_at_exit(stats: ProfileStats) -> None:
    if not _at_exit:
        atexit.register(_print_all)
    if stats not in _at_exit:
        _at_exit.append(stats)


def _print_all() -> None:
    with _destination() as file:
        for stats in _at_exit:
            stats.summary(file)


def _add_to_totals(stats: ProfileStats) -> None:
    if not _totals:
        atexit.register(print_global_stats)
    if stats not in _totals:
        _totals.append(stats)


def print_global_stats() -> None:
    """Print how much time the functions took to make and to call.

    It counts the functions that were made while ``config.print_global_stats`` was on, and goes to
    ``config.profiling__destination``.
    """
    stages: Counter[str] = Counter()
    for stats in _totals:
        stages.update(stats.stages)
    calls, seconds = sum(s.calls for s in _totals), sum(s.seconds for s in _totals)
    rows = [
        f"{len(_totals)} functions, {calls} calls took {seconds:.6f} s",
        *(f"  {stage:10} {seconds:.6f} s" for stage, seconds in stages.items()),
    ]
    with _destination() as file:
        file.write("\n".join(rows) + "\n")


@contextmanager
def _destination() -> Generator[TextIO]:
    """The stream that ``config.profiling__destination`` names."""
    name = config.profiling__destination
    if name in ("stderr", "stdout"):
        yield getattr(sys, name)
        return
    with open(name, "a") as file:
        yield file
