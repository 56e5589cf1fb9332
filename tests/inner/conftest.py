"""Makes the helpers of the tests of tensors importable here."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tensor"))
