"""The environment of a pytest that a test starts."""

from __future__ import annotations

import os


def plain_environment() -> dict[str, str]:
    """That of this process, without its settings of pytest and of this package.

    Pytest loads no plugins but those that it is told to.
    """
    settings = "PYTEST_", "PHINTYS_"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
