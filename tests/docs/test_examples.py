"""The Python blocks of the documentation run.

The ``python`` blocks of a page are one program, run in order.  One that starts with ``>>>`` is a
session: what it prints is compared.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line, text) of each Python block of a page."""
    text = page.read_text()
    return [(text.count("\n", 0, m.start(1)), m[1]) for m in BLOCK.finditer(text)]


def run_session(text: str, scope: dict, page: Path, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(text, scope, page.name, str(page), line)
    test.globs = scope
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)


def case(page: Path) -> Any:
    """The parameter of a page, which is skipped without Numba if it imports that."""
    imports_numba = any("import numba" in text for _, text in blocks(page))
    marks = [pytest.mark.needs("numba")] if imports_numba else []
    return pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


WITH_CODE = [page for page in PAGES if blocks(page)]


@pytest.mark.parametrize("page", [case(page) for page in WITH_CODE])
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict = {"__name__": "__main__"}
    for line, text in blocks(page):
        if text.startswith(">>>"):
            run_session(text, scope, page, line)
        else:
            exec(compile("\n" * line + text, str(page), "exec"), scope)


def test_there_are_pages_with_code():
    names = {str(p.relative_to(ROOT)) for p in WITH_CODE}
    assert {"README.md", "docs/tutorial.md", "docs/differences.md"} <= names


def test_fences_have_a_known_language():
    known = {
        "python",
        "text",
        "diff",
        "console",
        "c",
        "{toctree}",
        "{include}",
        "{eval-rst}",
        "{literalinclude}",
    }
    directives = {"{scalar-functions}", "{instructions}", "{settings}", "{rules}", "{laws}"}
    directives |= {"{older-settings}", "{switches}"}
    directives |= {"{without-derivative}", "{distributions}"}
    for page in PAGES:
        opening = re.findall(r"^```(\S*)", page.read_text(), re.MULTILINE)[::2]
        assert set(opening) <= known | directives | {""}, page
