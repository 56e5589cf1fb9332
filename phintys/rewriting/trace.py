"""Recording the applications of rewrites."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from phintys.config import config
from phintys.graph.origin import Location, locate
from phintys.graph.variable import Apply, Variable

Pairs = Sequence[tuple[Variable, Variable]]
#: A function that is called with the rewrite, the node, and the pairs (old variable, new one).
Recorder = Callable[[Any, Apply, Pairs], None]


class Log(Protocol):
    """What records applications of rewrites: a `Trace`, for instance."""

    def add(self, rewrite: Any, node: Apply, replacements: Pairs) -> None:
        """Record one application, which replaces the old variables of pairs by the new ones."""
        ...


class Record(NamedTuple):
    """One application of a rewrite: its name, the expressions before and after, the user's line."""

    rule: str
    before: str
    after: str
    origin: Location | None

    def __str__(self) -> str:
        where = f"   [{self.origin.file}:{self.origin.line}]" if self.origin else ""
        return f"{self.rule}: {self.before}  ->  {self.after}{where}"


class Trace:
    """The applications of rewrites, in order."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, rewrite: Any, node: Apply, replacements: Pairs) -> None:
        """Append one application."""
        self.records.append(_record(rewrite, node, replacements))

    def counts(self) -> Counter[str]:
        """The number of applications by name of the rewrite."""
        return Counter(record.rule for record in self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __str__(self) -> str:
        return "\n".join(map(str, self.records))


def _record(rewrite: Any, node: Apply, replacements: Pairs) -> Record:
    after = ", ".join(expression(new) for _, new in replacements)
    return Record(str(rewrite), _application(node, 3), after, locate(node.origin))


def expression(variable: Variable, depth: int = 3) -> str:
    """A variable as a short text, with the names of ops down to ``depth`` levels."""
    if variable.owner is None or depth == 0:
        return str(variable)
    text = _application(variable.owner, depth)
    return text if len(variable.owner.outputs) == 1 else f"{text}.{variable.index}"


def _application(node: Apply, depth: int) -> str:
    inputs = [expression(v, depth - 1) for v in node.inputs[:6]]
    more = ", ..." if len(node.inputs) > 6 else ""
    return f"{node.op}({', '.join(inputs)}{more})"


class _Active(threading.local):
    """The traces that are open in this thread."""

    def __init__(self) -> None:
        self.logs: list[Log] = []


_active = _Active()


@contextmanager
def trace() -> Generator[Trace]:
    """Record the rewrites that this thread applies inside the ``with`` block, as a `Trace`.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> with trace() as log:
    ...     y = phintys.rewrite_graph(pt.exp(x) * 1)
    >>> [record.rule for record in log], y.owner
    ([...], Exp(x))
    """
    log = Trace()
    with recording(log):
        yield log


@contextmanager
def recording(log: Log) -> Generator[None]:
    """Call ``log.add`` for the rewrites that this thread applies inside the ``with`` block."""
    _active.logs.append(log)
    try:
        yield
    finally:
        _active.logs[:] = [other for other in _active.logs if other is not log]


def current_recorder() -> Recorder | None:
    """The function to call at every application of a rewrite; None if none is recorded."""
    if _active.logs:
        return _record_everywhere
    return _print_record if config.optimizer_verbose else None


def _record_everywhere(rewrite: Any, node: Apply, replacements: Pairs) -> None:
    for log in _active.logs:
        log.add(rewrite, node, replacements)
    if config.optimizer_verbose:
        _print_record(rewrite, node, replacements)


def _print_record(rewrite: Any, node: Apply, replacements: Pairs) -> None:
    ignored = config.optimizer_verbose_ignore
    if ignored and str(rewrite) in ignored.split(","):
        return
    sys.stdout.write(f"rewrite {_record(rewrite, node, replacements)}\n")
