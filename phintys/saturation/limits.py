"""When a search stops."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """When a search stops: rounds of all equations, nodes of the e-graph."""

    rounds: int = 8
    nodes: int = 4000


LIMITS = Limits()
