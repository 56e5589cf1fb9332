"""What of a test ``make test`` leaves to ``make test-all``: cases marked ``rest``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

#: for tests and parameters that are dear and rarely find what others do not
rest = pytest.mark.rest


def few(values: Iterable[Any], *chosen: Any) -> list[Any]:
    """Parameters of a test, of which only those in ``chosen`` are run by ``make test``."""
    return [v if v in chosen else pytest.param(v, marks=rest) for v in values]
