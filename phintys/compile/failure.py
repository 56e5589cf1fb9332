"""What a failed call of compiled code says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from phintys.errors import ShapeError
from phintys.graph.origin import describe


def explain_failure(fgraph: Any, values: Sequence[Any], program: Any, step: int) -> NoReturn:
    """Raise the error of a check that failed in compiled code: of lengths, or of positions.

    The reference says what is wrong, and where the user made it.  It does not run ops of users
    again; a check of what they have computed is explained by the step that contains it.
    """
    from phintys.backends.numpy.run import find_error

    raise find_error(fgraph, values) or _of_step(program, step)


def _of_step(program: Any, number: int) -> Exception:
    """The error of a step."""
    from phintys.lowering.program import Kernel

    k = next((k for k, s in enumerate(program.steps) if s.step == number), None)
    if k is None:
        return ShapeError(f"step {number} of the compiled function failed")
    failed, node = program.steps[k], program.origins[k]
    # kernels fail only where a position is out of range
    positions = getattr(failed, "is_position", isinstance(failed, Kernel))
    kind: type[Exception] = IndexError if positions else ShapeError
    message = getattr(failed, "message", "") or "An index is out of range."
    error = kind(message)
    if node is not None:
        made = describe(node.origin, indent="")
        error.add_note("\n".join([f"while computing {node.op}", *([made] if made else [])]))
    return error
