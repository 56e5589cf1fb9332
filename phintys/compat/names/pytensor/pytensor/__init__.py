"""A module of Phintys under an older name.  It takes the place of this one."""

import sys

# At once: another thread that imports a module of this package now waits for the end of the import.
del sys.modules[__name__]

# The package before a module in it, as other threads do: neither then waits for the other.
from phintys.compat import alias  # noqa: E402

alias.hand_over(__name__)
