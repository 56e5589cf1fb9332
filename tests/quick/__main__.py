"""``python -m tests.quick``: for a minute, the tests that are nearest to the changed files."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.extend(str(Path(__file__).parents[1] / folder) for folder in ("", "quick"))

from quick_choice import Suite, changed_files, known_runs
from quick_workers import counted, run_all

ROOT = Path(__file__).parents[2]
#: seconds until no test starts any more; those that run then, and the reports, need a few
LIMIT = 50
SMOKE = "tests/test_smoke.py"


def main() -> int:
    start = time.time()
    changed = changed_files(ROOT)
    modules = Suite(ROOT, known_runs(ROOT)).nearest(changed)
    what = f"nearest: {modules[0]}" if modules else "the smoke test runs instead"
    concerned = f"{counted(len(modules), 'module')} to test"
    print(f"quick: {counted(len(changed), 'changed file')}, {concerned}; {what}", flush=True)
    return run_all(ROOT, modules or [SMOKE], start, start + LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
