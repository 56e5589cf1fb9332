"""The command line: ``python -m phintys.compat COMMAND``.

``run [--as NAME] PROGRAM ARGUMENTS`` and ``run [--as NAME] -m MODULE ARGUMENTS`` run a program in
which ``import pytensor``, or what ``--as`` says, means this package.
``enable NAME [--version VERSION]`` and ``disable NAME`` do it for an environment.
"""

from __future__ import annotations

import sys

from phintys.compat.distribution import disable, enable
from phintys.compat.running import run

USAGE = """\
usage: python -m phintys.compat run [--as NAME] PROGRAM ARGUMENTS
       python -m phintys.compat run [--as NAME] -m MODULE ARGUMENTS
       python -m phintys.compat enable NAME [--version VERSION]
       python -m phintys.compat disable NAME
NAME is pytensor, aesara or theano; --as may be repeated; without it, it is pytensor"""


def _run(arguments: list[str]) -> int:
    systems: list[str] = []
    while arguments[:1] == ["--as"] and len(arguments) > 1:
        systems.append(arguments[1])
        arguments = arguments[2:]
    if not arguments or arguments[0] == "--as":
        return _usage()
    if sys.flags.ignore_environment:
        print("run needs PYTHONPATH, which python -E and -I do not read.", file=sys.stderr)
        return 2
    return run(arguments, systems or ["pytensor"])


def _enable(arguments: list[str]) -> int:
    name, *options = arguments or [""]
    if not name or options[:1] not in ([], ["--version"]) or len(options) not in (0, 2):
        return _usage()
    version = enable(name, *options[1:])
    print(f"{name} {version} is installed: `import {name}` means phintys in this environment.")
    return 0


def _disable(arguments: list[str]) -> int:
    if len(arguments) != 1:
        return _usage()
    (name,) = arguments
    print(f"{name} is removed." if disable(name) else f"{name} is not installed.")
    return 0


def _usage() -> int:
    print(USAGE, file=sys.stderr)
    return 2


def main(arguments: list[str]) -> int:
    """Run the command that ``arguments`` name; return the exit status.

    It is 0 for ``--help``, which prints the usage, 1 if the command fails, with a message that says
    why, and 2 for a wrong command line.
    """
    if not {"--help", "-h"}.isdisjoint(arguments[:2]):
        print(USAGE)
        return 0
    command = {"run": _run, "enable": _enable, "disable": _disable}.get("".join(arguments[:1]))
    if command is None:
        return _usage()
    try:
        return command(arguments[1:])
    except (OSError, ValueError) as exc:
        print(exc, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
