"""Programs that find this package under an older name, in a process of their own.

An environment variable carries the name: ``PYTHONPATH`` begins with a folder that has a package of
that name, which hands over to this one.  The processes that the program starts inherit it.  It
comes before installed packages, so a real package of that name does not matter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from phintys.compat.systems import folder

_ROOT = str(Path(__file__).parents[2])


def environment(systems: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """A copy of the environment variables ``given`` in which processes find older names.

    >>> sorted(environment(["pytensor"], {"HOME": "/"}))
    ['HOME', 'PYTHONPATH']
    """
    first = [str(folder(system)) for system in systems]
    others = [entry for entry in given.get("PYTHONPATH", "").split(os.pathsep) if entry]
    entries = [*first, *(entry for entry in others if entry not in first), *_own_place(others)]
    return {**given, "PYTHONPATH": os.pathsep.join(entries)}


def _own_place(entries: Sequence[str]) -> list[str]:
    """The folder of this package, if it is only found because a program was started there."""
    started_in = 0 if sys.flags.safe_path else 1
    return [] if _ROOT in entries or _ROOT in sys.path[started_in:] else [_ROOT]


def interpreter_options() -> list[str]:
    """The options of this interpreter, such as ``-X dev``: what stands before ``-m``."""
    end = len(sys.orig_argv) - len(sys.argv[1:])
    words = 1 if sys.orig_argv[end - 1].startswith("-m") else 2
    return sys.orig_argv[1 : end - words]


def run(arguments: Sequence[str], systems: Sequence[str] = ("pytensor",)) -> int:
    """Run ``python ARGUMENTS``, where ``import pytensor`` means this package; the exit status.

    Python itself runs the program, so that ``sys.argv``, ``sys.path`` and ``__main__`` are as
    always.  Where the system can replace a process by another, the call does not return.

    Parameters
    ----------
    arguments : ``[program, ...]`` or ``["-m", module, ...]``
    systems : the older names
    """
    command = [sys.executable, *interpreter_options(), *arguments]
    variables = environment(systems, os.environ)
    if os.name == "posix":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(command[0], command, variables)
    return subprocess.call(command, env=variables)
