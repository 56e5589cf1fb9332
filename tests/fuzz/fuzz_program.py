"""Drawn programs: inputs, statements as text, outputs; building them and their Python text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_values import Argument, native

import phintys
import phintys.tensor as pt
from phintys.conditional.op import IfElse
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.shapes import ConcreteShapes, result_shapes
from phintys.graph.variable import Constant, Variable
from phintys.inner import InnerGraphOp

NAMES = re.compile(r"\b[a-z]\d+\b")


@dataclass(frozen=True)
class Input:
    """An argument (``x0``, ...) or a shared variable (``s0``, ...) with its value."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    value: Argument

    @property
    def is_shared(self) -> bool:
        return self.name.startswith("s")

    def text(self) -> str:
        """The statement that declares it."""
        if self.is_shared:
            made = f"phintys.shared({self.value.text()}, name={self.name!r}, shape={self.shape})"
        else:
            made = f"pt.tensor({self.name!r}, dtype={self.dtype!r}, shape={self.shape})"
        return f"{self.name} = {made}"

    def make(self) -> Any:
        """The variable."""
        if self.is_shared:
            value = np.array(self.value.value())
            return phintys.shared(value, name=self.name, shape=self.shape)
        return pt.tensor(self.name, dtype=self.dtype, shape=self.shape)


@dataclass(frozen=True)
class Statement:
    """``name = text``; ``numpy`` is the same for arrays (None: the text itself may do)."""

    name: str
    text: str
    numpy: str | None = None

    @property
    def uses(self) -> set[str]:
        return set(NAMES.findall(self.text))


@dataclass
class Program:
    """What is compiled and called."""

    inputs: list[Input] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    #: shared variable -> the name of its new value
    updates: dict[str, str] = field(default_factory=dict)
    #: whether the last statement raises when it is evaluated
    fails: bool = False

    def text(self) -> str:
        """The program as Python."""
        lines = [i.text() for i in self.inputs]
        lines += [f"{s.name} = {s.text}" for s in self.statements]
        given = [i for i in self.inputs if not i.is_shared]
        lines.append(f"inputs = [{', '.join(i.name for i in given)}]")
        lines.append(f"outputs = [{', '.join(self.outputs)}]")
        pairs = (f"{s}: {v}" for s, v in self.updates.items())
        lines.append(f"updates = {{{', '.join(pairs)}}}")
        lines += ["arguments = ["] + [f"    {i.value.text()}," for i in given] + ["]"]
        if self.fails:
            lines.append("fails = True")
        return "\n".join(lines) + "\n"

    def pruned(self) -> Program:
        """Without what no output or update needs."""
        needed = {*self.outputs, *self.updates, *self.updates.values()}
        kept = []
        for s in reversed(self.statements):
            if s.name in needed:
                kept.append(s)
                needed |= s.uses
        inputs = [i for i in self.inputs if i.name in needed]
        return replace(self, inputs=inputs, statements=kept[::-1])


class Built:
    """The graph of a program: variables by name, and its arguments.

    ``finite``: whether no value was NaN or infinite when its results were last computed.
    """

    finite = True

    def __init__(self, program: Program) -> None:
        self.names: dict[str, Any] = environment()
        self.names.update((i.name, i.make()) for i in program.inputs)
        for s in program.statements:
            self.names[s.name] = evaluate_text(s.text, self.names)
        given = [i for i in program.inputs if not i.is_shared]
        self.inputs = [self.names[i.name] for i in given]
        self.arguments = [i.value.value() for i in given]
        self.outputs = [self.names[n] for n in program.outputs]
        self.updates = {self.names[s]: self.names[v] for s, v in program.updates.items()}
        self.shared = [self.names[i.name] for i in program.inputs if i.is_shared]
        self.shared_values = [v.get_value() for v in self.shared]

    @property
    def results(self) -> list[Any]:
        """Outputs, then new values."""
        return [*self.outputs, *self.updates.values()]

    def truth(self, arguments: Sequence[Any] | None = None) -> list[np.ndarray]:
        """The results, by ``perform`` of every node as it was written."""
        known = self._given(self.arguments if arguments is None else arguments)
        perform_missing(self.results, known)
        self.finite = all_finite(known.values())
        return [np.array(known[v]) for v in self.results]

    def fails_in_empty_array(self) -> bool:
        """Whether what fails is a position in an array without elements, or for such a result."""
        known = self._given(self.arguments)
        for node in missing_nodes(self.results, known):
            try:
                _perform(node, known)
            except IndexError:
                given = [known[v] for v in node.inputs]
                return np.asarray(given[0]).size == 0 or 0 in result_shapes(node, given)[0]
        return False

    def overflows(self) -> bool:
        """Whether arithmetic of integers exceeds int64 (docs/limits.md)."""
        known = self._given(self.arguments)
        for node in missing_nodes(self.results, known):
            _perform(node, known)
            if isinstance(node.op, IfElse):  # has no value of the branch that is not taken
                continue
            if _overflows(node.op, [known[v] for v in node.inputs]):
                return True
        return False

    def _given(self, arguments: Sequence[Any]) -> dict[Variable, Any]:
        """The values of the inputs and the shared variables."""
        known: dict[Variable, Any] = dict(zip(self.inputs, map(native, arguments)))
        known.update(zip(self.shared, self.shared_values))
        return known


def environment() -> dict[str, Any]:
    """The names that statements may use."""
    return {"pt": pt, "np": np, "phintys": phintys}


def evaluate_text(text: str, names: dict[str, Any]) -> Any:
    """The value of an expression."""
    return eval(text, names)


def perform_missing(outputs: Iterable[Variable], known: dict[Variable, Any]) -> None:
    """Add the values of ``outputs``, and of what they depend on, by ``perform``."""
    for node in missing_nodes(outputs, known):
        _perform(node, known)


def _perform(node: Any, known: dict[Variable, Any]) -> None:
    given = [known.get(v) for v in node.inputs]
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    op: Any = node.op
    has_branches = isinstance(op, InnerGraphOp) and _has_branches(op.expanded)
    if has_branches:  # it computes both branches
        copy: Any = op.clone()
        copy.runner = functools.partial(_of_one_branch, op.expanded)
        op = copy
    op.perform(node, given, storage)
    found = [cell[0] for cell in storage]
    if not has_branches:
        _check_rule(node, given, found)
    known.update(zip(node.outputs, found))


def _has_branches(fgraph: FunctionGraph) -> bool:
    """Whether there is a branch in a graph, or in a graph inside of an op of it."""
    graphs = [fgraph]
    for graph in graphs:
        ops = [node.op for node in graph.apply_nodes]
        if any(isinstance(op, IfElse) for op in ops):
            return True
        graphs += [op.expanded for op in ops if isinstance(op, InnerGraphOp)]
    return False


def _of_one_branch(fgraph: FunctionGraph, given: Sequence[Any]) -> list[Any]:
    """The outputs of a graph, of whose branches only those that are taken are computed."""
    known: dict[Variable, Any] = dict(zip(fgraph.inputs, given))
    perform_missing(fgraph.outputs, known)
    return [known[v] for v in fgraph.outputs]


#: what is computed of integers that may be lengths -> the same of floats
_OF_INTEGERS: dict[str, Callable[..., Any]] = {
    "add": lambda *args: functools.reduce(np.add, args),
    "sub": np.subtract,
    "mul": lambda *args: functools.reduce(np.multiply, args),
    "sqr": np.square,
    "neg": np.negative,
    "abs": np.abs,
}


def _overflows(op: Any, given: list[Any]) -> bool:
    name = getattr(getattr(op, "scalar_op", op), "name", "")
    if name not in _OF_INTEGERS or any(x.dtype.kind not in "iu" for x in given):
        return False
    found = _OF_INTEGERS[name](*(np.asarray(x, "float64") for x in given))
    return bool(np.any(np.abs(found) >= 2.0**63))


class RuleFault(Exception):
    """A shape rule does not say what ``perform`` does."""


def _check_rule(node: Any, given: list[Any], found: list[Any]) -> None:
    """RuleFault if ``perform`` and the shape rule of a node disagree."""
    if node.op.shape_rule is None:
        return
    context = ConcreteShapes(node.op, node.inputs, given)
    try:
        shapes = context.run()
    except Exception as exc:
        raise RuleFault(f"the rule of {node.op} refuses what perform takes: {exc}") from exc
    known = context.lengths_of
    for shape, value in zip(shapes, found):
        said = [d.evaluate(known) if d.symbols() <= known.keys() else None for d in shape]
        if any(n not in (None, m) for n, m in zip(said, np.shape(value))):
            raise RuleFault(f"the rule of {node.op} says {said}, not {np.shape(value)}")


def all_finite(values: Iterable[Any]) -> bool:
    """Whether no number is NaN or infinite."""
    arrays = (np.asarray(v) for v in values)
    return all(a.dtype.kind not in "fc" or bool(np.isfinite(a).all()) for a in arrays)


def missing_nodes(outputs: Iterable[Variable], known: dict[Variable, Any]) -> Iterator[Any]:
    """Nodes whose results are needed and not known, in an order in which they can be computed.

    The values of a node must be in ``known`` when the next one is asked for: of the inputs of a
    branch, only those that its condition chooses are needed.
    """
    stack = list(outputs)
    while stack:
        v = stack[-1]
        missing = [x for x in needed_inputs(v.owner, known) if x not in known] if v.owner else []
        if v in known:
            stack.pop()
        elif missing:
            stack += missing[::-1]
        elif v.owner is not None:
            yield v.owner
        elif isinstance(v, Constant):
            known[v] = v.data
        else:
            raise KeyError(f"no value for {v}")


def needed_inputs(node: Any, known: dict[Variable, Any]) -> list[Variable]:
    """The inputs of a node without those of the branch that is not taken, as far as it is known."""
    if not isinstance(node.op, IfElse):
        return list(node.inputs)
    condition, *branches = node.inputs
    if condition not in known:
        return [condition]
    start = 0 if known[condition] else node.op.n_outs
    return branches[start : start + node.op.n_outs]


# ----------------------------------------------------------------------------- files


class Recorded(Built):
    """A program read from its text: the corpus."""

    def __init__(self, path: Path) -> None:
        names = environment()
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
        self.names = names
        self.inputs, self.outputs = list(names["inputs"]), list(names["outputs"])
        self.arguments = list(names["arguments"])
        self.updates = dict(names.get("updates", {}))
        self.fails = bool(names.get("fails"))
        self.shared = [v for v in names.values() if isinstance(v, phintys.SharedVariable)]
        self.shared_values = [v.get_value() for v in self.shared]
