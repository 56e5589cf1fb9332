"""``python -m tests.array_api SUITE``: the public test suite of the array API standard.

SUITE is a checkout of https://github.com/data-apis/array-api-tests with its submodule.  It is
copied to a temporary folder, and run with the list of expected failures beside this file.  The exit
status is 1 if a test fails that is not listed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("expected_failures.txt")
VERSION = "2024.12"


def main() -> int:
    options = parsed()
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite"
        shutil.copytree(options.suite, suite, ignore=shutil.ignore_patterns(".git", ".hypothesis"))
        # the suite asks for this folder of its submodule, of which it reads nothing
        (suite / f"array-api/spec/{VERSION}/API_specification").mkdir(parents=True, exist_ok=True)
        return run(suite, options)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.array_api", description=__doc__)
    parser.add_argument("suite", type=Path, help="folder of the suite")
    parser.add_argument("--examples", type=int, default=5, help="examples of each test")
    parser.add_argument("--random", action="store_true", help="other examples in every run")
    parser.add_argument("-k", dest="select", default="", help="only tests with such names")
    return parser.parse_args()


def run(suite: Path, options: argparse.Namespace) -> int:
    """Run the suite in the folder ``suite``; the exit status of pytest."""
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "-W", "ignore", "-rfEX"]
    command += ["-p", "no:cacheprovider", "--tb=short", "--disable-deadline"]
    command += ["--max-examples", str(options.examples), "--xfails-file", str(LIST)]
    command += [] if options.random else ["--derandomize"]
    command += ["-k", options.select] if options.select else []
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "ARRAY_API_TESTS_MODULE": "phintys.array_api",
        "ARRAY_API_TESTS_VERSION": VERSION,
    }
    return subprocess.run(command, cwd=suite, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
