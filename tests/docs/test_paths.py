"""Every file and folder that the documentation names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "phintys").rglob("README.md"),
        *(ROOT / "tests").rglob("README.md"),
    ]
)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SUFFIXES = (".py", ".md", ".ll", ".h", ".c", ".toml", ".yaml", ".txt", ".json")


def is_path(code: str) -> bool:
    """Whether a piece of inline code names a file or folder of this repository."""
    if not re.fullmatch(r"[\w./-]+", code) or code.startswith(("/", "-")) or code in SUFFIXES:
        return False
    return code.endswith(("/", *SUFFIXES)) or code.startswith(("phintys/", "tests/", "docs/"))


def missing_paths(text: str, folder: Path) -> list[str]:
    """The paths in the inline code of a page in ``folder`` that do not exist.

    A path is relative to the folder of the page, to the repository, to the package, or to a folder
    that the page has named before.
    """
    bases = [folder, ROOT, ROOT / "phintys"]
    missing = []
    for code in re.findall(r"`([^`\n]+)`", FENCED.sub("", text)):
        if not is_path(code):
            continue
        found = next((base / code for base in bases if (base / code).exists()), None)
        if found is None:
            missing.append(code)
        else:
            bases.append(found if found.is_dir() else found.parent)
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_paths_exist(page):
    assert not missing_paths(page.read_text(), page.parent)


@pytest.mark.parametrize(
    "text, missing",
    [
        ("`errors.py`, `graph/op.py`, then `clone.py`", []),
        ("`graph/` has `toy.py` and `op.py`", ["toy.py"]),
        ("`clone.py` before its folder, `graph/`", ["clone.py"]),
        ("`config.cache_dir`, `~/.cache`, `x / y`, `--mode C`, `1.5`", []),
        ("```text\nnothing.py `nothing.py`\n```\n", []),
    ],
)
def test_the_check_finds(text, missing):
    assert missing_paths(text, ROOT) == missing
