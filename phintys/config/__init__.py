"""The settings: attributes of the object `config`.

Their initial values come from the environment variable ``PHINTYS_FLAGS``
(``PHINTYS_FLAGS=floatX=float32,mode=FAST_COMPILE``), else from files, ``~/.phintysrc`` or those
that the environment variable ``PHINTYSRC`` lists, else from the table of settings.  A setting is
read when a graph is built or a function is compiled; later changes do not affect a compiled
function.

>>> from phintys.config import config
>>> with config.change_flags(floatX="float32"):
...     config.floatX
'float32'
"""

from __future__ import annotations

import os
from pathlib import Path

from phintys.config.params import (
    BoolParam,
    ConfigAccessViolation,
    ConfigParam,
    EnumStr,
    FloatParam,
    IntParam,
    Setting,
    StrParam,
    TypedParam,
)
from phintys.config.sources import given_values
from phintys.config.store import Config

__all__ = [
    "BoolParam",
    "Config",
    "ConfigAccessViolation",
    "ConfigParam",
    "EnumStr",
    "FloatParam",
    "IntParam",
    "Setting",
    "StrParam",
    "TypedParam",
    "cache_directory",
    "config",
]


def cache_directory() -> Path | None:
    """The directory of compiled code on disk.

    It is the environment variable ``PHINTYS_CACHE_DIR``, else ``config.cache_dir``,
    ``config.compiledir`` or ``config.base_compiledir``, else a folder in the user's cache
    directory; None for a user without a home directory.
    """
    chosen = os.environ.get("PHINTYS_CACHE_DIR") or config.cache_dir
    chosen = chosen or config.compiledir or config.base_compiledir
    if chosen:
        return Path(chosen)
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "phintys"


#: The settings of this process.
config = Config(given=given_values(os.environ))
