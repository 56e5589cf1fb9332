"""Programs of graphs, without the machine code that `phintys.function` also makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import phintys
from phintys.compile.mode import Mode
from phintys.lowering.from_graph import lower_graph
from phintys.lowering.program import Program


def program_of(inputs: Sequence[Any], outputs: Any, **options: Any) -> Program:
    """The Program of mode FAST_RUN; without shared variables."""
    f = phintys.function(inputs, outputs, mode=Mode("py", "fast_run"), **options)
    return lower_graph(f.maker.fgraph, len(inputs))
