"""CONTRIBUTING quotes code and commits as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from run_git import git

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
DIFFS = re.findall(r"^```diff\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMITS = re.findall(r"^```text\n([^\n]+)\n\n( .*?\|.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def quoted() -> list[tuple[str, str]]:
    """(file, line) of each added line."""
    found, path = [], ""
    for line in "".join(DIFFS).splitlines():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif line.strip() != "+":
            found.append((path, line[1:]))
    return found


def test_quoted_lines_are_in_the_files():
    assert len(quoted()) > 60
    files = {path: (ROOT / path).read_text().splitlines() for path, _ in quoted()}
    missing = [(path, line) for path, line in quoted() if line not in files[path]]
    assert not missing


@pytest.mark.parametrize(("subject", "stat"), COMMITS, ids=[subject for subject, _ in COMMITS])
def test_quoted_commits_are_in_the_history(subject, stat):
    log = git(ROOT, "log", "--format=%H %s").splitlines()
    commits = [line.split()[0] for line in log if line.partition(" ")[2] == subject]
    if not commits:
        pytest.skip("there is no such commit: no git, no repository, or not its whole history")
    shown = git(ROOT, "show", "--stat=80", "--format=", commits[-1])
    assert shown.split() == stat.split()


def test_each_kind_of_addition_has_its_commit():
    assert len(COMMITS) == 5
