"""Mode ``"JAX"``: each op of the rewritten graph as a JAX function, compiled by XLA as one.

`jax_funcify` is open: ``jax_funcify.register(MyOp)`` teaches it a user's op.  Ops it does not know
are called back in Python (`jax.pure_callback`).  What depends on shapes only is computed while JAX
traces, so that ``zeros(x.shape)`` and ``x[: x.shape[0] // 2]`` are legal.

Results are JAX arrays.  XLA knows no exceptions: what can only be checked on values (indices that
are not constant) is returned as a flag and looked at after the call.
"""

from __future__ import annotations

from typing import Any

from phintys.errors import CompilerError

try:
    import jax  # noqa: F401
except ImportError as exc:
    raise CompilerError('Mode "JAX" needs the package jax: pip install "phintys[jax]"') from exc

from phintys.backends.jax import elemwise, index, linear, shape, sort  # noqa: F401  (register)
from phintys.backends.jax.dispatch import jax_funcify, jax_typify, require

__all__ = ["compile_fgraph", "jax_funcify", "jax_typify", "require"]


def compile_fgraph(fgraph: Any) -> Any:
    """A callable from a list of input values to the list of output values, which are JAX arrays."""
    from phintys.backends.jax.run import compile_fgraph

    return compile_fgraph(fgraph)
