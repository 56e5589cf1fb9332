"""JAX functions of branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from phintys.backends.jax.dispatch import (
    collecting,
    is_concrete,
    jax_funcify,
    one_or_tuple,
    require,
)
from phintys.conditional.lazy import Absent, LazyIfElse
from phintys.conditional.op import IfElse
from phintys.errors import UnsupportedError
from phintys.graph.variable import Apply, Variable

#: dtype and shape of each result
Structs = tuple[Any, ...]


@jax_funcify.register(LazyIfElse)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    functions = [jax_funcify(graph) for graph in op.graphs]
    absent = [[_is_absent(v) for v in graph.outputs] for graph in op.graphs]

    def select(condition: Any, *args: Any) -> Any:
        if is_concrete(condition):
            return one_or_tuple(functions[not condition](*args))
        branches = [_Branch(f, args, missing) for f, missing in zip(functions, absent)]
        wanted = _common(node, *branches)
        true, false = (partial(branch.computed, wanted) for branch in branches)
        results, passed = jax.lax.cond(jnp.asarray(condition) != 0, true, false)
        require(passed, "A branch has failed.")
        return one_or_tuple(results)

    return select


def _is_absent(v: Variable) -> bool:
    return v.owner is not None and isinstance(v.owner.op, Absent)


class _Branch:
    """A branch with its arguments.

    ``structs`` are the dtypes and shapes of the results, None for those that are absent.  If the
    branch fails at trace time, whatever the values, all are absent, and ``error`` is the exception.
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], absent: Sequence[bool]
    ) -> None:
        self.function, self.args = function, args
        self.error: Exception | None = None
        try:
            found: Structs = jax.eval_shape(self.run)[0]
        except (UnsupportedError, jax.errors.JAXTypeError):
            raise
        except Exception as exc:
            self.error, found = exc, (None,) * len(absent)
        self.found = found
        self.structs = [None if missing else s for s, missing in zip(found, absent)]

    def run(self) -> tuple[Any, Any]:
        """The results, and whether all checks have passed."""
        with collecting() as checks:
            results = self.function(*self.args)
        passed = jnp.all(jnp.stack(checks)) if checks else jnp.asarray(True)
        return tuple(jnp.asarray(x) for x in results), passed

    def computed(self, wanted: Structs) -> tuple[Any, Any]:
        """`run`, with zeros in the places of absent results."""
        zeros = tuple(jnp.zeros(w.shape, w.dtype) for w in wanted)
        if self.error is not None:
            return zeros, jnp.asarray(False)
        results, passed = self.run()
        pairs = zip(results, zeros, self.structs)
        return tuple(zero if s is None else x for x, zero, s in pairs), passed


def _common(node: Apply, true: _Branch, false: _Branch) -> Structs:
    """The dtypes and shapes of both branches; UnsupportedError if their shapes differ."""
    if true.error is not None and false.error is not None:
        raise true.error
    for k, (a, b) in enumerate(zip(true.structs, false.structs)):
        if a is not None and b is not None and a.shape != b.shape:
            raise UnsupportedError(
                f"JAX compiles for fixed shapes, and result {k} of {node.op} has the shape "
                f"{a.shape} in one branch, and {b.shape} in the other."
            )
    candidates = zip(true.structs, false.structs, true.found, false.found)
    return tuple(next(s for s in several if s is not None) for several in candidates)


@jax_funcify.register(Absent)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda: jnp.zeros(op.shape, op.part[0])


@jax_funcify.register(IfElse)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """The selection of values that have been computed; compiled functions have `LazyIfElse`."""

    def select(condition: Any, *values: Any) -> Any:
        thens, elses = values[: op.n_outs], values[op.n_outs :]
        if is_concrete(condition):
            return one_or_tuple(thens if condition else elses)
        return one_or_tuple([jnp.where(condition != 0, a, b) for a, b in zip(thens, elses)])

    return select
