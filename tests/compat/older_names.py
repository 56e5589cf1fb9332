"""Processes in which this package has an older name, for the tests of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Sequence
from pathlib import Path

ROOT = str(Path(__file__).parents[2])


def python(
    *arguments: str, executable: str | Path = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    """What ``python ARGUMENTS`` prints, and its exit status; only this package is on its path.

    ``variables`` are further environment variables.
    """
    settings = "PYTENSOR", "PHINTYSRC"
    own = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    environment = {**own, "PYTHONPATH": ROOT, **variables}
    return subprocess.run(
        [str(executable), *arguments], env=environment, capture_output=True, text=True
    )


def output(*arguments: str, executable: str | Path = sys.executable, **variables: str) -> str:
    """What ``python ARGUMENTS`` prints; a program that fails is a failure of the test."""
    done = python(*arguments, executable=executable, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def installed(code: str, system: str = "pytensor", **variables: str) -> str:
    """What ``code`` prints in a process where `install` was called."""
    first = f"import phintys.compat; phintys.compat.install({system!r})\n"
    return output("-c", first + textwrap.dedent(code), **variables)


def new_environment(folder: Path, packages: Sequence[tuple[str, str]] = ()) -> Path:
    """The interpreter of a new environment that has this package, and those of this environment.

    ``packages`` are names and versions of further ones, each a package without modules.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    site, others = site_packages(python), sysconfig.get_path("purelib")
    (site / "base.pth").write_text(f"{ROOT}\n{others}\n")
    for name, version in (("phintys", "0.1.0"), *packages):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(text)
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/RECORD,,\n")
    return python


def site_packages(python: Path) -> Path:
    """The folder of the packages of an environment."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(output("-c", code, executable=python))


def files_of(python: Path) -> set[str]:
    """The paths of all files and folders in the packages of an environment."""
    site = site_packages(python)
    return {str(path.relative_to(site)) for path in site.rglob("*")}
