"""JAX functions of branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from phintys.backends.jax.dispatch import (
    Check,
    Checks,
    collecting,
    is_concrete,
    jax_funcify,
    one_or_tuple,
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
        true, false = (partial(branch.computed, wanted, branches) for branch in branches)
        results, *found = jax.lax.cond(jnp.asarray(condition) != 0, true, false)
        for checks in found:
            checks.collect()
        return one_or_tuple(results)

    return select


def _is_absent(v: Variable) -> bool:
    return v.owner is not None and isinstance(v.owner.op, Absent)


class _Branch:
    """A branch with its arguments.

    ``structs`` are the dtypes and shapes of the results, None for those that are absent.  If the
    branch fails at trace time, whatever the values, all are absent, and ``error`` is the exception.
    ``checks`` are those of the branch, without conditions.
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], absent: Sequence[bool]
    ) -> None:
        self.function, self.args = function, args
        self.error: Exception | None = None
        try:
            found, self.checks = jax.eval_shape(self.run)
        except (UnsupportedError, jax.errors.JAXTypeError):
            raise
        except Exception as exc:
            self.error, found = exc, (None,) * len(absent)
            self.checks = Checks([Check(None, type(exc), str(exc))])
        self.found: Structs = found
        self.structs = [None if missing else s for s, missing in zip(found, absent)]

    def run(self) -> tuple[Structs, Checks]:
        """The results, and what has been checked."""
        with collecting() as checks:
            results = self.function(*self.args)
        return tuple(jnp.asarray(x) for x in results), Checks(checks)

    def computed(self, wanted: Structs, branches: Sequence[_Branch]) -> tuple[Any, ...]:
        """The results, and for each branch its checks; those of the other branch hold.

        Zeros are in the places of absent results.
        """
        results = tuple(jnp.zeros(w.shape, w.dtype) for w in wanted)
        own = self.checks.all_being(False)
        if self.error is None:
            found, own = self.run()
            pairs = zip(found, results, self.structs)
            results = tuple(zero if s is None else x for x, zero, s in pairs)
        return results, *(own if b is self else b.checks.all_being(True) for b in branches)


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
