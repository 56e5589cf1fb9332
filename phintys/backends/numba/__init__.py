"""Mode ``"NUMBA"``: each op of the rewritten graph becomes a Numba function, the graph calls them.

``numba_funcify.register(MyOp)`` adds the Numba function of a user's op.  Ops that are not
registered run through ``perform`` in Numba's object mode.

Inside compiled code the value of a tensor is an array, 0-d tensors included; that of a scalar
variable is a number.
"""

from __future__ import annotations

# pyright: reportUnusedImport=false
from phintys.errors import MissingPackageError

try:
    import numba  # noqa: F401
except ImportError as exc:
    raise MissingPackageError(
        'Mode "NUMBA" needs the package numba: pip install "phintys[numba]"'
    ) from exc

from phintys.backends.numba import (  # noqa: F401  (they register)
    checks,
    conditional,
    elemwise,
    index,
    linalg,
    linear,
    loop,
    reduce,
    search,
    shape,
)
from phintys.backends.numba.dispatch import (
    numba_funcify,
    numba_funcify_and_cache_key,
    numba_type,
    numba_typify,
    register_funcify_and_cache_key,
    register_funcify_default_op_cache_key,
)
from phintys.backends.numba.run import backend, compile_fgraph

__all__ = [
    "backend",
    "compile_fgraph",
    "numba_funcify",
    "numba_funcify_and_cache_key",
    "numba_type",
    "numba_typify",
    "register_funcify_and_cache_key",
    "register_funcify_default_op_cache_key",
]
