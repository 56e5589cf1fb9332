"""Makes the functions of backends that compile Programs, and caches their code.

The cache, in memory and on disk, is keyed by the structural hash of the graph before rewriting.
After a hit nothing is rewritten or lowered, until `FunctionMaker.fgraph` or
`NativeFunction.program` is used.  The Program that code was made from is not kept either: it is
lowered again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from phintys.backends import code_cache
from phintys.backends.protocol import Artifact, Generator
from phintys.compile.callable import Function, Maker
from phintys.compile.failure import explain_failure
from phintys.graph.collection import collection_paused
from phintys.graph.shared import Container
from phintys.lowering.in_python import calls_of_python
from phintys.memo import Memo

_logger = logging.getLogger(__name__)

#: the code of the last 16 to 32 functions, or of fewer if it takes more than 16 to 32 MB
_recent: Memo[str, Artifact] = Memo(16, "compiled code", weigh=lambda code: 1 + code.size / 2**20)


@collection_paused()
def make_native(
    backend: Generator[Any], maker: Maker, containers: list[Container]
) -> NativeFunction:
    """A function that runs code of a backend; ``containers`` hold the shared variables' values."""
    artifact = _artifact(backend, maker)
    cls: Any = backend.function_class(NativeFunction)
    f = cls.__new__(cls)
    f._setup(maker, containers)
    f._copy = [None] * (len(maker.outputs) + len(maker.update_targets))  # the caller owns them
    names = [i.name for i in maker.passed]
    is_direct = len(set(names)) == len(names) and "output_subset" not in names
    backend.bind(artifact, f, [c.storage for c in containers], names if is_direct else [])
    if maker.spec.kept and f.arguments.is_permuted:
        f.__class__ = _converting_class(cls)
    if _logger.isEnabledFor(logging.INFO):
        _log_calls_of_python(maker)
    return f


def _log_calls_of_python(maker: Maker) -> None:
    """Log the ops that a function computes in Python, and why; the graph is lowered if need be."""
    what = maker.name or "A function"
    for call in calls_of_python(maker.program):
        _logger.info("%s computes %s in Python: %s.", what, call, call.reason)


@cache
def _converting_class(cls: type) -> type:
    """A subclass of a class of native functions all of whose calls go through Python."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.call_converted(args, kwargs)

    return type(cls.__name__, (cls,), {"__call__": call, "__slots__": ()})


def _artifact(backend: Generator[Any], maker: Maker) -> Any:
    """The code of a function that Python calls."""
    single = maker.unpack == "single"
    return code_of(
        backend,
        maker,
        "f",
        lambda to_store: backend.compile(maker.program_for_code(), single, to_store),
    )


def code_of(
    backend: Generator[Any], maker: Maker, kind: str, generate: Callable[[bool], Any]
) -> Any:
    """The code of a function: from memory, from disk, or compiled.

    ``kind`` is a letter for the kind of routine; ``generate(to_store)`` makes the code, which will
    be stored or not.
    """
    key = maker.key
    if key is None:
        return generate(False)
    name = code_cache.name_of(kind, backend.surroundings(), key)
    found = _recent[name]
    if found is not None:
        return found
    payload = code_cache.read(name)
    found = None if payload is None else backend.load(payload, len(maker.shared))
    if found is None:
        found = generate(True)
        payload = backend.dump(found)
        if payload is not None:
            code_cache.write(name, payload)
    return _recent.keep(name, found)


def _native(value: Any) -> Any:
    """A converted argument as code takes it: a number of NumPy, from `ScalarType`, as an array."""
    return np.asarray(value) if isinstance(value, np.generic) else value


class NativeFunction(Function):
    """A function whose code a backend has generated, bound by `Generator.bind`.

    Python converts arguments and makes error messages: the backend calls `call_converted` if an
    argument has to be converted or is passed by keyword, and `raise_failure` if a step fails.
    """

    strict: Any = None  # the same code without conversions; where calls enter the code directly
    loader: str = ""

    @property
    def program(self) -> Any:
        """The Program that the code was made from."""
        return self.made_from.program

    def call_converted(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        kwargs = kwargs or {}
        if "output_subset" in kwargs and "output_subset" not in self.arguments.names:
            return self._call_partial(kwargs.pop("output_subset"), args, kwargs)
        return self.strict(*map(_native, self.arguments.values(args, kwargs)))

    def call_values(self, values: Sequence[Any]) -> Any:
        if self.strict is None:
            return super().call_values(values)
        return self.strict(*map(_native, values))

    def raise_failure(self, args: Sequence[Any], step: int) -> Any:
        values = [spec.filter(a) for spec, a in zip(self.made_from.passed, args)]
        values += self._shared_values()
        explain_failure(self.made_from.graph, values, self.made_from.program, step)
