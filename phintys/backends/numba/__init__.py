"""Mode ``"NUMBA"``: each op of the rewritten graph as a Numba function, the graph as one more.

`numba_funcify` is open: ``numba_funcify.register(MyOp)`` teaches it a user's op.  Ops it does not
know run through ``perform`` in Numba's object mode.

Inside compiled code the value of a tensor is an array, also of a 0-d tensor; that of a scalar
variable is a number.
"""

from __future__ import annotations

from typing import Any

from phintys.errors import CompilerError

try:
    import numba  # noqa: F401
except ImportError as exc:
    raise CompilerError(
        'Mode "NUMBA" needs the package numba: pip install "phintys[numba]"'
    ) from exc

from phintys.backends.numba import elemwise, index, linear, reduce, shape  # noqa: F401  (they register)
from phintys.backends.numba.dispatch import numba_funcify, numba_type, numba_typify

__all__ = ["compile_fgraph", "numba_funcify", "numba_type", "numba_typify"]


def compile_fgraph(fgraph: Any) -> Any:
    """A callable from a list of input values to the list of output values."""
    from phintys.backends.numba.run import compile_fgraph

    return compile_fgraph(fgraph)
