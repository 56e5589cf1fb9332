"""What a failed call of compiled code says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from phintys.errors import ShapeError


def explain_failure(fgraph: Any, values: Sequence[Any], program: Any, step: int) -> NoReturn:
    """Raise the error of a failed step of compiled code.

    The graph is run again node by node: the node that fails says what is wrong, and where the user
    made it.
    """
    from phintys.backends.numpy.run import Runner

    Runner(fgraph)(values)
    failed = next((s for s in program.steps if s.step == step), None)
    message = getattr(failed, "message", "") or f"step {step} of the compiled function failed"
    raise ShapeError(f"{message} ({type(failed).__name__})")
