"""Makes callables from symbolic inputs and outputs: `function`, modes, linkers."""

from phintys.compile.builders import OpFromGraph

__all__ = ["OpFromGraph"]
