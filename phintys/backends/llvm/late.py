"""Functions that are generated once they have become worth it.

The text of such a function lies beside the code that may call it.  That takes the address from a
cell and passes text, cell and how much there is to do before the function's own arguments.  What a
cell first holds only adds up the work; once that is much, it generates the function and puts its
address into the cell.  So it costs nothing where it is not needed.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any

from phintys.backends.llvm.writer import Writer

if TYPE_CHECKING:
    from phintys.backends.llvm.jit import Library

#: A function is generated after so much work, in turns of a loop: about when the time that it
#: would have saved is what generating it takes.
PATIENCE = 2**15

_SYMBOL = "phintys.late"
_ARGUMENTS = "ptr %late.text, ptr %late.cell, i64 %late.work"

_cells: dict[str, ctypes.c_void_p] = {}
_done: dict[int, int] = {}  # address of a cell -> work so far
_libraries: list[Library] = []  # generated code stays, like the cells


def text_of(w: Writer, declares: set[str], parameters: str) -> str:
    """The text of a module with a function that returns i64."""
    function = w.text(f"i64 @{_SYMBOL}({_ARGUMENTS}, {parameters}) nounwind")
    return "\n".join([*sorted(declares), function])


def call(w: Writer, text: str, work: str, arguments: str) -> tuple[str, set[str]]:
    """Write a call of the function: its result, and what the module must declare.

    The result is 0 as long as there is no function.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:20]
    name, size = f"{_SYMBOL}.{digest}", len(text) + 1
    quoted = text.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")
    own = f"ptr @{name}.text, ptr @{name}, i64 {work}"
    function = w.value(f"load ptr, ptr @{name}")
    result = w.value(f"call i64 {function}({own}, {arguments})")
    constant = f'@{name}.text = private unnamed_addr constant [{size} x i8] c"{quoted}\\00"'
    return result, {f"@{name} = external global ptr", constant}


def cell(digest: str) -> int:
    """The address of the cell for ``phintys.late.<digest>``."""
    if digest not in _cells:
        _cells[digest] = ctypes.c_void_p(ctypes.cast(_first(), ctypes.c_void_p).value)
    return ctypes.addressof(_cells[digest])


@cache
def _first() -> Any:
    # whatever arguments follow are left alone
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64)(
        _count
    )


def _count(text: bytes, where: int, work: int) -> int:
    _done[where] = _done.get(where, 0) + work
    if _done[where] >= PATIENCE:
        from phintys.backends.llvm.jit import compile_ir

        library = compile_ir(text.decode())
        _libraries.append(library)
        ctypes.c_void_p.from_address(where).value = library.address(_SYMBOL)
    return 0
