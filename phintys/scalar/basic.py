"""Names of PyTensor's ``scalar.basic``: the scalar language, also at `phintys.scalar`."""

# ruff: noqa: F403
from phintys.scalar import *
