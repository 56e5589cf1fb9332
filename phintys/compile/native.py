"""Makes callables of the llvm backend, and caches their machine code.

The cache, in memory and on disk, is keyed by the structural hash of the graph before rewriting.
After a hit nothing is rewritten or lowered, until `FunctionMaker.fgraph` or `NativeMethods.program`
is used.
"""

from __future__ import annotations

import sys
import time
import weakref
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from phintys.backends import code_cache
from phintys.backends.llvm import Native, bind, generate, kept
from phintys.backends.llvm.callable import make_native_class
from phintys.backends.llvm.target import current, surroundings
from phintys.compile.callable import Function
from phintys.compile.failure import explain_failure
from phintys.graph.collection import collection_paused
from phintys.graph.shared import Container
from phintys.locks import making
from phintys.memo import Memo

if TYPE_CHECKING:
    from phintys.compile.function import FunctionMaker

#: the code of the last 16 to 32 functions, or of fewer if it takes more than 16 to 32 MB
_recent: Memo[str, Native] = Memo(16, "machine code", weigh=lambda native: 1 + native.size / 2**20)


@collection_paused()
def make_native(maker: FunctionMaker, containers: list[Container]) -> Any:
    """A native callable for a maker's graph; ``containers`` hold the shared variables' values."""
    f = native_class().__new__(native_class())  # pyright: ignore[reportCallIssue]
    f._setup(maker, containers)
    this = weakref.ref(f)
    native = _machine_code(maker, f)
    bind(
        native,
        [c.storage for c in containers],
        lambda args, kwargs: this()._slow(args, kwargs),  # type: ignore[union-attr]
        lambda args, step: this()._failed(args, step),  # type: ignore[union-attr]
        f,
        () if f._ambiguous else tuple([i.name and sys.intern(str(i.name)) for i in maker.inputs]),
    )
    f.loader = native.library.loader
    return f


def _machine_code(maker: FunctionMaker, f: Any) -> Native:
    """The machine code of a function: from memory, from disk, or generated."""
    key = maker.key
    if key is None:
        return generate(f.program, maker.unpack == "single")
    native = _recent[key]
    if native is not None:
        return native
    file = code_cache.name_of("f", surroundings(current()), key)
    native = kept(file, len(maker.shared))
    if native is None:
        native = generate(f.program, maker.unpack == "single", file)
    return _recent.keep(key, native)


class NativeMethods(Function):
    """The methods of a native function that are Python: argument conversion, error messages.

    The native entry calls `_slow` if an argument has to be converted or is passed by keyword, and
    `_failed` if a step fails.
    """

    strict: Any
    native_mode: int
    loader: str  # which loader placed the code in memory: see `Library.loader`

    @property
    def program(self) -> Any:
        """The Program that the code was made from."""
        # `cached_property` has a lock of its own up to Python 3.11; taking `making` first keeps
        # the order of the locks the same everywhere
        with making:
            return self._program

    @cached_property
    def _program(self) -> Any:
        from phintys.lowering.from_graph import lower_graph

        maker = self.maker
        fgraph = maker.fgraph
        start = time.perf_counter()
        with maker.settings_as_made():
            program = lower_graph(fgraph, len(maker.inputs), maker.update_targets)
        maker.times["lowering"] = time.perf_counter() - start
        return program

    @property
    def trust_input(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether arguments are used without checks."""
        return self.native_mode == 1

    @trust_input.setter
    def trust_input(self, value: bool) -> None:
        self.native_mode = int(bool(value))

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        return self.strict(*self._convert(args, kwargs or {}))

    def _failed(self, args: tuple[Any, ...], step: int) -> Any:
        values = [spec.filter(a) for spec, a in zip(self.maker.inputs, args)]
        values += self._shared_values()
        explain_failure(self.maker.fgraph, values, self.program, step)


@cache
def native_class() -> type:
    """The class of native functions: a native callable with the methods of `Function`."""
    return make_native_class(NativeMethods, name="NativeFunction")
