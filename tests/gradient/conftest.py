"""Makes the helpers of the tests of tensors and scalars importable here."""

from __future__ import annotations

import sys
from pathlib import Path

for _folder in ("tensor", "scalar"):
    sys.path.append(str(Path(__file__).parent.parent / _folder))
