"""The exception of a failed call of compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from phintys.errors import ShapeError
from phintys.graph.origin import describe


def explain_failure(fgraph: Any, values: Sequence[Any] | None, program: Any, step: int) -> NoReturn:
    """Raise the exception of a failed check of lengths or indices in compiled code.

    The reference backend computes the graph again to find the message, and the line of the user's
    program.  It does not run ops of users again; if the error depends on one of those, or if the
    ``values`` are None, it is described by the failed ``step`` alone.
    """
    from phintys.backends.numpy.run import find_error

    found = None if values is None else find_error(fgraph, values)
    raise found or _error_of_step(program, step)


_OUT_OF_RANGE = (
    "An index is out of range.",
    "The bounds of a segment, or an index in one, are out of range.",
)


def _error_of_step(program: Any, number: int) -> Exception:
    """The exception for a failed step: IndexError or ShapeError, with the node in a note."""
    from phintys.lowering.program import External, Kernel, all_steps

    steps, _ = all_steps(program)
    if not 0 <= number < len(steps):
        return ShapeError(f"step {number} of the compiled function failed")
    failed, node = steps[number]
    # a kernel fails only if an index, or the bounds of a segment, are out of range
    is_ragged = isinstance(failed, Kernel) and failed.ragged is not None
    is_position = getattr(failed, "is_position", isinstance(failed, Kernel))
    kind: type[Exception] = IndexError if is_position else ShapeError
    message = getattr(failed, "message", "") or _OUT_OF_RANGE[is_ragged]
    if isinstance(failed, External):
        kind, message = failed.routine.failure
    error = (node and node.op.failure(node)) or kind(message)
    if node is not None:
        made = describe(node.origin, indent="")
        error.add_note("\n".join([f"while computing {node.op}", *([made] if made else [])]))
    return error
