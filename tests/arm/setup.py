"""Make ``.arm/python``: an arm64 Python that runs on this machine, through emulation.

Everything lands in one folder: the emulator (qemu, user mode), Debian's Python for arm64 with the
libraries it needs, and wheels of what this package depends on.  Nothing is installed: apt downloads
into the folder, with a state of its own, and pip unpacks there.  So no rights are needed, but a
system with apt, whose package lists are up to date.

    python tests/arm/setup.py [folder]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
#: What the emulated processor is: an ordinary ARMv8.2 server, without SVE
CPU = "neoverse-n1"
PACKAGES = ("python3", "libstdc++6")
#: Of the extra "test": what the chosen tests use
TEST_TOOLS = ("pytest", "hypothesis", "mpmath", "cloudpickle")
TAGS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")

_WRAPPER = """#!/bin/sh
# The arm64 Python of this folder; written by tests/arm/setup.py.
export PYTHONHOME='{folder}/root/usr'
export PYTHONPATH='{folder}/site:{repository}'${{PYTHONPATH:+:$PYTHONPATH}}
export OPENBLAS_NUM_THREADS=1
exec '{qemu}' -cpu {cpu} -0 '{folder}/python' -L '{folder}/root' '{python}' "$@"
"""


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    qemu = _emulator(folder)
    _unpack_packages(folder)
    python = _python(folder / "root" / "usr" / "bin")
    values = {"folder": folder, "repository": REPOSITORY, "qemu": qemu, "python": python}
    wrapper = folder / "python"
    wrapper.write_text(_WRAPPER.format(cpu=CPU, **values))
    wrapper.chmod(0o755)
    _check(wrapper)
    _install_wheels(folder / "site", python.name.removeprefix("python"))


def _emulator(folder: Path) -> Path:
    """qemu for programs of arm64: the installed one, else Debian's, without installing it."""
    for name in ("qemu-aarch64", "qemu-aarch64-static"):
        if found := shutil.which(name):
            return Path(found)
    target = folder / "qemu"
    target.mkdir(exist_ok=True)
    _run("the emulator", "apt-get", "download", "qemu-user-static", into=target)
    _run("the emulator", "dpkg-deb", "-x", *map(str, target.glob("qemu-user-static_*.deb")), ".",
         into=target)  # fmt: skip
    return target / "usr" / "bin" / "qemu-aarch64-static"


def _unpack_packages(folder: Path) -> None:
    """Debian's Python for arm64 and all that it depends on, as a tree of files."""
    state, cache = folder / "apt", folder / "apt" / "cache"
    for part in (state / "lists" / "partial", cache / "archives" / "partial", folder / "root"):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    (state / "status").write_text("")
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": cache,
        "Debug::NoLocking": "1",
    }
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
    _run("the list of arm64 packages", *apt, "update")
    wanted = ("install", "--download-only", "--no-install-recommends", "--yes", *PACKAGES)
    _run("the arm64 packages", *apt, *wanted)
    for package in sorted((cache / "archives").glob("*.deb")):
        _run(package.name, "dpkg-deb", "-x", str(package), str(folder / "root"))


def _python(programs: Path) -> Path:
    """The interpreter: the program that ``python3`` is a link to."""
    link = programs / "python3"
    if not link.is_symlink():
        sys.exit(f"setup of the arm64 tests: there is no {link}")
    return programs / link.readlink().name


def _install_wheels(site: Path, version: str) -> None:
    """What the package depends on, as wheels for arm64."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    tools = [r for r in project["optional-dependencies"]["test"] if r.startswith(TEST_TOOLS)]
    tools = [r for r in tools if not r.startswith("pytest-")]
    shutil.rmtree(site, ignore_errors=True)
    platforms = [word for tag in TAGS for word in ("--platform", tag)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site)]
    exact = ["--python-version", version, "--implementation", "cp", "--only-binary=:all:"]
    _run("the arm64 wheels", *pip, *platforms, *exact, *project["dependencies"], *tools)


def _check(wrapper: Path) -> None:
    code = "import platform; print(platform.machine())"
    done = subprocess.run([wrapper, "-c", code], capture_output=True, text=True)
    if done.stdout.strip() != "aarch64":
        sys.exit(f"setup of the arm64 tests: {wrapper} does not run:\n{done.stderr}")


def _run(what: str, *command: str, into: Path | None = None) -> None:
    if shutil.which(command[0]) is None:
        sys.exit(f"setup of the arm64 tests: {what} needs {command[0]}, which is not here")
    done = subprocess.run(command, cwd=into, capture_output=True, text=True)
    if done.returncode:
        line = " ".join(command)
        sys.exit(f"setup of the arm64 tests: {what} could not be had ({line}):\n{done.stderr}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else REPOSITORY / ".arm").resolve())
