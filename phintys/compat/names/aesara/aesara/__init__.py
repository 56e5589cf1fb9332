"""A module of Phintys under an older name.  It takes the place of this one."""

import sys

# At once: another thread that imports a module of this package now waits for the end of the import.
del sys.modules[__name__]

from phintys.compat.alias import hand_over  # noqa: E402

hand_over(__name__)
