"""Names of PyTensor's ``scalar.math``: special functions, also at `phintys.scalar`."""

# ruff: noqa: F403
from phintys.scalar import *
