"""The extension ``linalg`` of the array API, with arrays that are evaluated at once."""

from __future__ import annotations

from phintys.array_api.evaluation import eager
from phintys.tensor.standard import linalg as symbolic

globals().update({name: eager(getattr(symbolic, name)) for name in symbolic.__all__})

__all__ = symbolic.__all__  # pyright: ignore[reportUnsupportedDunderAll]
