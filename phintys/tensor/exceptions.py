"""Names of PyTensor's ``tensor.exceptions``."""

from phintys.errors import NotScalarConstantError, ShapeError

__all__ = ["NotScalarConstantError", "ShapeError"]
