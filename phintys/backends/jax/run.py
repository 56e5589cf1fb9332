"""Compiles a FunctionGraph with JAX as one function."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import (
    Checks,
    collecting,
    convert_node,
    enable_x64,
    jax_typify,
    raised,
)
from phintys.backends.jax.random import WithKeys, has_samplers, is_state
from phintys.backends.protocol import Run, Transpiler
from phintys.backends.source import Transpiled, generate, interpreted
from phintys.errors import UnsupportedError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.inner import expanded
from phintys.graph.origin import describe
from phintys.graph.results import array_type
from phintys.memo import Memo

#: how many jitted variants of a function are cached, by the values of its integer inputs
VARIANTS = 32


def compile_fgraph(fgraph: FunctionGraph) -> Run:
    """A callable from a list of input values to the list of output values, which are JAX arrays.

    The call raises UnsupportedError if a length depends on values, else what the graph raises.

    >>> import numpy as np, phintys, phintys.tensor as pt
    >>> x = pt.fvector("x")
    >>> compile_fgraph(phintys.FunctionGraph([x], [x + x]))([np.ones(2, "float32")])
    [Array([2., 2.], dtype=float32)]
    """
    fgraph = expanded(fgraph)
    sampled = has_samplers(fgraph)
    found = interpreted(fgraph, "JAX", lambda t: bool(array_type(t)) or (sampled and is_state(t)))
    return found or Transpiled(fgraph, WithKeys(fgraph, Compiled(fgraph)))


class JAX:
    """The object that obeys `Transpiler`."""

    def compile(self, fgraph: FunctionGraph) -> Run:
        return compile_fgraph(fgraph)


backend: Transpiler = JAX()


class Compiled:
    """The jitted function of a graph.

    JAX compiles for fixed shapes, and again for each new combination of shapes.  If a length
    depends on a 0-d integer input, the values of these inputs are compiled in as constants, and
    each new combination of values is compiled as a variant.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        enable_x64(fgraph)
        self.generated = generate(fgraph, convert_node, jax_typify, name="jax_function")
        self.integers = [i for i, v in enumerate(fgraph.inputs) if _is_integer(v)]
        self.inlined = False
        self.jitted = jax.jit(self.trace)
        self.variants: Memo[tuple[int, ...], Any] = Memo(VARIANTS, "variants of JAX functions")

    def trace(self, *args: Any) -> tuple[Any, Checks]:
        """The results, and what has been checked."""
        with collecting() as checks:
            results = self.generated.function(*args)
        # an argument that is a result must be copied: it may be the memory of the caller's array
        results = tuple(jnp.copy(r) if any(r is a for a in args) else r for r in results)
        return results, Checks(checks)

    @cached_property
    def jit_fn(self) -> Any:
        """The jitted function, without checks of indices."""
        return jax.jit(self.generated.function)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        try:
            return self.run(values)
        except Exception as exc:
            original = raised.pop(exc)
            if original is None:
                raise
        raise original

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The results of the jitted function, or of a variant if a length depends on an input."""
        if not self.inlined:
            try:
                return self.checked(self.jitted(*values))
            except (jax.errors.JAXTypeError, UnsupportedError) as exc:
                if not self.integers:
                    raise self.explained(exc) from None
            self.inlined = True
        try:
            return self.checked(self.variant(values))
        except (jax.errors.JAXTypeError, UnsupportedError) as exc:
            raise self.explained(exc) from None

    def variant(self, values: Sequence[Any]) -> Any:
        """The results of the variant for the values of the 0-d integer inputs."""
        inlined = {i: np.asarray(values[i]) for i in self.integers}
        key = tuple(int(x) for x in inlined.values())
        jitted = self.variants[key]
        if jitted is None:
            jitted = self.variants.keep(key, jax.jit(self.inline(inlined)))
        return jitted(*(x for i, x in enumerate(values) if i not in inlined))

    def inline(self, inlined: dict[int, Any]) -> Any:
        """`trace` as a function of the inputs that are not ``inlined`` as constants."""
        count = self.generated.function.__code__.co_argcount

        def traced(*others: Any) -> Any:
            rest = iter(others)
            return self.trace(*(inlined[i] if i in inlined else next(rest) for i in range(count)))

        return traced

    def checked(self, found: tuple[Any, Checks]) -> list[Any]:
        """The results, after waiting for them; raises the exception of a check that has failed.

        The wait is needed because XLA may read the memory of the caller's arrays until the end.
        The reference backend replaces the exception by one with a message.
        """
        results, checks = jax.block_until_ready(found)
        checks.raise_failed()
        return [jnp.asarray(x) for x in results]

    def explained(self, exc: Exception) -> Exception:
        """The UnsupportedError for an exception at trace time; it names the node."""
        node = self.generated.node_at(exc.__traceback__)
        if node is None:
            return exc
        reason = str(exc).split("\n")[0]
        if not isinstance(exc, UnsupportedError):
            reason = (
                f"JAX compiles for fixed shapes, and {node.op} needs a value that is known only "
                f"at run time ({reason})"
            )
        made = describe(node.origin)
        return UnsupportedError(f"{reason}\nwhile compiling {node.op}\n{made}")


def _is_integer(v: Any) -> bool:
    return getattr(v.type, "ndim", -1) == 0 and np.dtype(v.type.dtype).kind in "iu"
