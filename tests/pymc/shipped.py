"""``python -m tests.pymc.shipped [OPTIONS OF PYTEST]``: the tests in PyMC's source distribution.

It holds those that lie beside the folders of PyMC's tests, without their helpers.  They are fetched
for the version that is installed, and run with the list of expected failures beside this file.  The
exit status is 1 if a test fails that is not listed, or one that is listed does not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
#: tests that read files from the network
LEFT_OUT = ("tests/test_data.py::test_get_data",)


def main(options: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        source = fetched(Path(folder))
        shutil.copy(HERE / "shipped_models.py", source / "tests" / "models.py")
        return run(source, options)


def fetched(folder: Path) -> Path:
    """The unpacked source distribution of the PyMC that is installed."""
    name = f"pymc=={version('pymc')}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", "pymc", "--dest", str(folder), name]
    subprocess.run(command, check=True)
    (archive,) = folder.glob("pymc-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def run(source: Path, options: list[str]) -> int:
    """Run the tests in the folder ``source``; the exit status of pytest."""
    shutil.rmtree(source / "pymc")  # the tests import the one that is installed
    command = [sys.executable, "-m", "pytest", "tests", "-q", "-rfEX", "--tb=short", "-n", "2"]
    command += ["-p", "no:cacheprovider", "-p", "shipped_plugin", "--import-mode=importlib"]
    command += ["-o", "addopts=", "--disable-warnings"]
    command += [f"--deselect={test}" for test in LEFT_OUT]
    paths = [str(HERE), str(source), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.run([*command, *options], cwd=source, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
