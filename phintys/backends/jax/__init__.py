"""Mode ``"JAX"``: each op of the rewritten graph becomes a JAX function, XLA compiles the graph.

``jax_funcify.register(MyOp)`` adds the JAX function of a user's op.  Ops that are not registered
are called back in Python (`jax.pure_callback`).  Expressions that depend only on shapes are
evaluated at trace time, so that ``zeros(x.shape)`` and ``x[: x.shape[0] // 2]`` work.

Results are JAX arrays.  XLA has no exceptions: a condition on values (an index that is not
constant) is returned as a flag, which is tested after the call.  Random numbers are those of JAX,
see `phintys.backends.jax.random`.
"""

from __future__ import annotations

# pyright: reportUnusedImport=false
from phintys.errors import MissingPackageError

try:
    import jax  # noqa: F401
except ImportError as exc:
    raise MissingPackageError(
        'Mode "JAX" needs the package jax: pip install "phintys[jax]"'
    ) from exc

from phintys.backends.jax import (  # noqa: F401  (register)
    checks,
    conditional,
    decompositions,
    elemwise,
    index,
    linalg,
    linear,
    loop,
    matrices,
    shape,
    signal,
    solvers,
    sort,
    wrapped,
)
from phintys.backends.jax.dispatch import jax_funcify, jax_typify, require
from phintys.backends.jax.run import backend, compile_fgraph

__all__ = ["backend", "compile_fgraph", "jax_funcify", "jax_typify", "require"]
