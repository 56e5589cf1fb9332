"""The reference backend: every node runs its op's ``perform``, one after the other."""
