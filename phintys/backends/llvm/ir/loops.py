"""Loops in LLVM IR: phi nodes and a counted loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from phintys.backends.llvm.ir import poll
from phintys.backends.llvm.ir.types import KernelWriter


class Named(Protocol):
    """A type of LLVM IR."""

    @property
    def text(self) -> str: ...


class Phis:
    """The phi nodes of the current basic block, written once all incoming edges are known."""

    def __init__(self, w: KernelWriter) -> None:
        self._w = w
        self._at = len(w.lines)
        self._rows: list[tuple[str, str]] = []
        self._edges: list[tuple[str, list[str]]] = []

    def add(self, types: Sequence[str], stem: str) -> list[str]:
        """Add phi nodes and return their names."""
        names = ["%" + self._w.name(stem) for _ in types]
        self._rows.extend(zip(types, names))
        return names

    def edge(self, block: str, values: Sequence[str]) -> None:
        """Add the incoming ``values`` of the phi nodes for the predecessor ``block``."""
        self._edges.append((block, list(values)))

    def write(self) -> None:
        lines = []
        for number, (kind, name) in enumerate(self._rows):
            edges = ", ".join(f"[{values[number]}, %{block}]" for block, values in self._edges)
            lines.append(f"  {name} = phi {kind} {edges}")
        # joined into one element of `lines`, so that positions of other phi nodes stay valid
        self._w.lines[self._at] = "\n".join(lines) + f"\n{self._w.lines[self._at]}"


def counted_loop(
    w: KernelWriter,
    span: tuple[str, str, int],
    types: Sequence[Named],
    carried: Sequence[str],
    inside: Callable[[str, list[str]], Sequence[str]],
    block: str = "",
) -> list[str]:
    """Emit ``for counter in range(*span)`` with loop-carried values; their values after the loop.

    ``inside(counter, values)`` writes the body and returns the values for the next iteration;
    ``carried`` are those before the first.  With a ``block``, a power of two, the loop polls for
    signals where the counter is a multiple of it; then the function needs the label ``fail``.
    """
    start, stop, step = span
    mask = w(f"sub i64 {block}, 1") if block else ""
    before, head, body, after = w.block, w.name("head"), w.name("body"), w.name("exit")
    w.line(f"br label %{head}")
    w.label(head)
    phis = Phis(w)
    (counter,) = phis.add(["i64"], "i")
    states = phis.add([t.text for t in types], "s")
    phis.edge(before, [start, *carried])
    w.branch(w(f"icmp slt i64 {counter}, {stop}"), body, after)
    w.label(body)
    new = inside(counter, states)
    following = w(f"add i64 {counter}, {step}")
    if block:
        _pause_if(w, w(f"icmp eq i64 {w(f'and i64 {following}, {mask}')}, 0"))
    phis.edge(w.block, [following, *new])
    w.line(f"br label %{head}")
    phis.write()
    w.label(after)
    return states


def _pause_if(w: KernelWriter, condition: str) -> None:
    """Emit a poll for signals under ``condition``, which is rarely true."""
    ask, go = w.name("ask"), w.name("go")
    rarely(w, condition, ask, go)
    pause(w, go)
    w.label(go)


def rarely(w: KernelWriter, condition: str, yes: str, no: str) -> None:
    """Emit a branch to ``yes`` if ``condition``, else to ``no``, marked as the likely one."""
    w.declares.add(poll.DEFINE_RARE)
    w.line(f"br i1 {condition}, label %{yes}, label %{no}, !prof {poll.RARE}")
    w.label(yes)


def pause(w: KernelWriter, label: str) -> None:
    """Emit a poll for signals that goes on at ``label``, or at ``fail`` if a handler raised."""
    w.declares.add(poll.DECLARE)
    status = w(poll.POLL)
    w.branch(w(f"icmp eq i64 {status}, 0"), label, "fail")
