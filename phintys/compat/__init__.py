"""This package under the name of an older system: ``import pytensor`` means ``import phintys``.

`install` does it for a process.  ``python -m phintys.compat`` does it for a program and the
processes that it starts (`phintys.compat.running`), or for an environment
(`phintys.compat.distribution`).  Nothing else of this package imports this one.
"""

from phintys.compat.alias import install

__all__ = ["install"]
