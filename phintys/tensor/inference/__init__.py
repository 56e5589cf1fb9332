"""What follows for the results of the tensor ops from properties of their inputs.

Importing this package registers the inference rules; see `phintys.assumptions`.
"""
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.assumptions.core import mark_own
from phintys.tensor.inference import (
    composed,
    constants,
    creation,
    elementwise,
    factorizations,
    products,
    spectra,
    views,
)

mark_own()
