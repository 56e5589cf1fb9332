"""The reference backend: calls ``perform`` of every node, in topological order."""
