"""Makes the helpers of the tests of tensors importable here."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[k] / name) for k, name in ((1, ""), (2, "gradient"))]
