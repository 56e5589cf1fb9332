"""The table of C functions that routines call.

A row states a function's parameters.  Functions of Fortran take all of them by address:

``char``    a character, given as its code
``int``     a 32-bit integer
``real``    a number of the dtype
``array``   an array of the dtype, column-major
``ints``    an array of 32-bit integers
``status``  written by the function, the result of the call; always last

A kind in parentheses is a parameter of the functions for complex dtypes only; a routine gives an
argument in any case.  Where these functions have another name, it stands after a slash.

Functions of C return the status, an int, and take numbers by value:

``size``    a 64-bit integer
``longs``   an array of 64-bit integers
``null``    the address 0, which no argument is given for

A routine calls ``potrf(UPPER, n, a, n)``; the dtype of the routine selects ``spotrf``, ``dpotrf``,
``cpotrf`` or ``zpotrf``.  Workspaces are arrays that the caller of the routine provides.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from phintys.routines.addresses import address

#: dtype -> the first letter of the names of its functions
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
#: the dtypes of LAPACK and BLAS
LAPACK = " ".join(LETTERS)
#: the largest number that functions of Fortran take
LARGEST_INT = 2**31 - 1
#: codes of characters that select a variant
UPPER, LOWER, TRANSPOSED, PLAIN, LEFT, RIGHT, UNIT, NOT_UNIT = (ord(c) for c in "ULTNLRUN")


class LibraryFunction(NamedTuple):
    """A row of the table."""

    library: str
    name: str
    parameters: tuple[str, ...]
    complex_name: str
    complex_only: frozenset[int]  #: positions of parameters

    def symbol(self, dtype: str) -> str:
        """The name of the function for a dtype in its library: ``dpotrf``."""
        if self.returns_status:
            return f"{self.name}_{dtype}"
        return LETTERS[dtype] + (self.complex_name if "complex" in dtype else self.name)

    def passed(self, dtype: str) -> tuple[bool, ...]:
        """Whether the function for a dtype takes each of the arguments of a routine."""
        return tuple(
            ["complex" in dtype or k not in self.complex_only for k in range(len(self.arguments))]
        )

    def address(self, dtype: str) -> int:
        """The address of the function for a dtype; LookupError if the library has none."""
        return address(self.library, self.symbol(dtype))

    @property
    def returns_status(self) -> bool:
        """Whether it is a function of C."""
        return self.library == "numpy"

    @property
    def has_status(self) -> bool:
        """Whether its last parameter is the status."""
        return self.parameters[-1] == "status"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The parameters that a routine gives arguments for."""
        return tuple([kind for kind in self.parameters if kind not in ("status", "null")])

    def __call__(self, *arguments: Any) -> int:
        raise TypeError(f"{self.name} is called by routines; `bound` is the function for a dtype.")

    def bound(self, dtype: str) -> Callable[..., int]:
        """The function for a dtype as a Python function; arrays are NumPy arrays."""
        call = self.prototype(dtype)(self.address(dtype))
        if self.returns_status:
            return lambda *arguments: call(
                *(x.ctypes.data if hasattr(x, "ctypes") else int(x) for x in arguments), None
            )

        def function(*arguments: Any) -> int:
            status = ctypes.c_int()
            given = zip(self.arguments, arguments, self.passed(dtype), strict=True)
            cells = [_CELLS[kind](x, dtype) for kind, x, passed in given if passed]
            cells += [status] if self.has_status else []
            call(*(x.ctypes.data if hasattr(x, "ctypes") else ctypes.addressof(x) for x in cells))
            return status.value

        return function

    def prototype(self, dtype: str) -> Any:
        """The type of the function for a dtype for `ctypes`."""
        kinds = [ctypes.c_int64 if kind == "size" else ctypes.c_void_p for kind in self.parameters]
        kinds = kinds[self.passed(dtype).count(False) :]
        return ctypes.CFUNCTYPE(ctypes.c_int if self.returns_status else None, *kinds)


def _number(x: float, dtype: str) -> Any:
    """A number in memory; the imaginary part of a complex one is 0."""
    kind: Any = ctypes.c_float if dtype in ("float32", "complex64") else ctypes.c_double
    return (kind * 2)(x, 0.0)


_CELLS: dict[str, Callable[[Any, str], Any]] = {
    "char": lambda x, _: ctypes.c_char(x),
    "int": lambda x, _: ctypes.c_int(x),
    "real": _number,
    "array": lambda x, _: x,
    "ints": lambda x, _: x,
}


def row(text: str) -> LibraryFunction:
    """A row from its text: the library, the name, the parameters.

    >>> row("lapack potrf char int array int status").symbol("float64")
    'dpotrf'
    >>> row("lapack orgqr/ungqr int int int array int array array int status").symbol("complex64")
    'cungqr'
    """
    library, names, *kinds = text.split()
    name, _, complex_name = names.partition("/")
    complex_only = frozenset([k for k, kind in enumerate(kinds) if kind.startswith("(")])
    parameters = tuple([kind.strip("()") for kind in kinds])
    return LibraryFunction(library, name, parameters, complex_name or name, complex_only)


potrf = row("lapack potrf char int array int status")
geqrf = row("lapack geqrf int int array int array array int status")
geqp3 = row("lapack geqp3 int int array int ints array array int (array) status")
orgqr = row("lapack orgqr/ungqr int int int array int array array int status")
gesdd = row(
    "lapack gesdd char int int array int array array int array int array int (array) ints status"
)
syevd = row(
    "lapack syevd/heevd char char int array int array array int (array) (int) ints int status"
)
sygvd = row(
    "lapack sygvd/hegvd int char char int array int array int array array int (array) (int) ints"
    " int status"
)
gelsd = row(
    "lapack gelsd int int int array int array int array real ints array int (array) ints status"
)
potrs = row("lapack potrs char int int array int array int status")
getrf = row("lapack getrf int int array int ints status")
getrs = row("lapack getrs char int int array int ints array int status")
sysv = row("lapack sysv char int int array int ints array int array int status")
hesv = row("lapack sysv/hesv char int int array int ints array int array int status")
gttrf = row("lapack gttrf int array array array array ints status")
gttrs = row("lapack gttrs char int int array array array array ints array int status")
trsm = row("blas trsm char char char char int int real array int array int")
gemm = row("blas gemm char char int int int real array int array int real array int")
symm = row("blas symm char char int int real array int array int real array int")
quicksort = row("numpy quicksort array size null")
stablesort = row("numpy stable array size null")
argquicksort = row("numpy argquicksort array longs size null")
argstablesort = row("numpy argstable array longs size null")
