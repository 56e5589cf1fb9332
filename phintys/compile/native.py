"""Functions that are machine code: the llvm backend behind `Function`."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from phintys.compile.callable import Function
from phintys.compile.failure import explain_failure
from phintys.graph.shared import Container

if TYPE_CHECKING:
    from phintys.compile.function import FunctionMaker


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """No garbage collection meanwhile.

    Compiling makes many objects and hardly a cycle; each collection would look through all of them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@collection_paused()
def make_native(maker: FunctionMaker, containers: list[Container]) -> Any:
    """A native function object for a rewritten graph."""
    from phintys.backends.llvm import compile_program
    from phintys.lowering.from_graph import lower_graph

    start = time.perf_counter()
    program = lower_graph(maker.fgraph, len(maker.inputs), maker.update_targets)
    maker.times["lowering"] = time.perf_counter() - start
    f = native_class().__new__(native_class())
    f._setup(maker, containers)
    f.program = program
    this = weakref.ref(f)
    compile_program(
        program,
        [c.storage for c in containers],
        lambda args, kwargs: this()._slow(args, kwargs),  # type: ignore[union-attr]
        lambda args, step: this()._failed(args, step),  # type: ignore[union-attr]
        single=maker.unpack == "single",
        into=f,
    )
    return f


class NativeMethods(Function):
    """What a native function does in Python: convert unusual arguments, explain failures."""

    program: Any
    strict: Any
    native_mode: int

    @property
    def trust_input(self) -> bool:  # type: ignore[override]
        """Whether arguments are taken as they are."""
        return self.native_mode == 1

    @trust_input.setter
    def trust_input(self, value: bool) -> None:
        self.native_mode = int(bool(value))

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        return self.strict(*self._convert(args, kwargs or {}))

    def _failed(self, args: tuple[Any, ...], step: int) -> Any:
        values = [spec.filter(a) for spec, a in zip(self.maker.inputs, args)]
        values += [c.storage[0] for c in self.containers]
        explain_failure(self.maker.fgraph, values, self.program, step)


@cache
def native_class() -> type:
    """The class of native functions: `Function` on top of a native callable."""
    from phintys.backends.llvm.callable import make_native_class

    return make_native_class(NativeMethods, name="NativeFunction")
