"""Sphinx: ``make docs``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Phintys"
author = "The Phintys developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings", "tables"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "fixed_sidebar": True}

autodoc_typehints = "none"
autodoc_member_order = "bysource"
myst_heading_anchors = 3
