"""Makes callables from symbolic inputs and outputs: `function`, modes, linkers."""
