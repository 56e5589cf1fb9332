"""Compiled code of single nodes, for linkers that work node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phintys.compile.linker import GeneratorLinker, Linker
from phintys.compile.mode import unrewritten
from phintys.errors import CompilerError
from phintys.graph.perform import run_node
from phintys.graph.variable import Apply, Constant
from phintys.memo import Memo

#: a function that computes the results of a node from the values of its inputs
Compute = Callable[[Sequence[Any]], list[Any]]


class CompiledNodes:
    """The code of nodes, which is compiled once for equal ops, types and constants.

    Parameters
    ----------
    linker
        the backend
    fallback
        whether `run` calls ``perform`` for a node without code of its own; else CompilerError
    """

    def __init__(self, linker: Linker, fallback: bool = True) -> None:
        self.linker, self.fallback = linker, fallback
        self._known: Memo[Any, tuple[Compute | None]] = Memo(256, "compiled nodes")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.linker, self.fallback))

    def __reduce__(self) -> Any:
        return type(self), (self.linker, self.fallback)

    def run(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        """The results of a node."""
        compute = self.of(node)
        if compute is not None:
            return compute(inputs)
        if not self.fallback:
            raise CompilerError(f"{node.op} cannot be compiled by the linker {self.linker.name!r}.")
        return run_node(node, inputs)

    def of(self, node: Apply) -> Compute | None:
        """The code of a node; None if it would only call ``perform``."""
        constants = tuple(v if isinstance(v, Constant) else None for v in node.inputs)
        # the types of outputs may say more than follows from those of inputs, and code uses them
        types = tuple([v.type for v in (*node.inputs, *node.outputs)])
        key = (node.op, types, constants)
        found = self._known[key]
        if found is None:
            made = None if self.linker.name == "py" else self._compile(node)
            found = self._known.keep(key, (made,))
        return found[0]

    def _compile(self, node: Apply) -> Compute | None:
        free = [k for k, v in enumerate(node.inputs) if not isinstance(v, Constant)]
        stand_ins = {k: node.inputs[k].type.make_variable() for k in free}
        copy = node.clone_with_new_inputs([stand_ins.get(k, v) for k, v in enumerate(node.inputs)])
        f = unrewritten(self.linker, list(stand_ins.values()), copy.outputs)
        if isinstance(self.linker, GeneratorLinker) and not _is_native(f.program):
            return None
        return lambda values: f(*[values[k] for k in free])


def _is_native(program: Any) -> bool:
    """Whether a Program does more than to call Python."""
    from phintys.lowering.program import Python

    return not all(isinstance(step, Python) for step in program.steps)
