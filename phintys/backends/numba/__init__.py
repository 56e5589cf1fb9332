"""Mode ``"NUMBA"``: each op of the rewritten graph becomes a Numba function, the graph calls them.

``numba_funcify.register(MyOp)`` adds the Numba function of a user's op.  Ops that are not
registered run through ``perform`` in Numba's object mode.

Inside compiled code the value of a tensor is an array, 0-d tensors included; that of a scalar
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
    """A callable from a list of input values to the list of output values, NumPy arrays.

    Numba compiles at the first call.

    >>> import numpy as np, phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> compile_fgraph(phintys.FunctionGraph([x], [x + x]))([np.ones(2)])
    [array([2., 2.])]
    """
    from phintys.backends.numba.run import compile_fgraph

    return compile_fgraph(fgraph)
