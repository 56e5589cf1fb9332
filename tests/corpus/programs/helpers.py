"""What programs of several areas use."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytensor
from pytensor.compile.mode import Mode

#: all rewrites; the ops are run by their `perform`
REWRITTEN = Mode("py", "fast_run")


def both(y: Any, values: Mapping[Any, Any] | None = None) -> list[Any]:
    """A variable, and its value for these values of its inputs."""
    return [y, y.eval({} if values is None else dict(values), on_unused_input="ignore")]


def compiled(y: Any, values: Mapping[Any, Any]) -> Any:
    """The value of a variable by a function that is compiled with all rewrites."""
    f = pytensor.function(list(values), y, mode=REWRITTEN, on_unused_input="ignore")
    return f(*values.values())


def names_of_ops(f: Any) -> list[str]:
    """The ops of a compiled function, as text, in alphabetical order."""
    return sorted(str(node.op) for node in f.maker.fgraph.apply_nodes)


def warned(call: Callable[[], object]) -> list[str]:
    """The classes of the warnings that a call gives, each once, in alphabetical order."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        call()
    return sorted({w.category.__name__ for w in given})
