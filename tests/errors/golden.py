"""The expected messages: ``golden.txt``; ``python tests/errors/golden.py`` writes it anew.

Look at the difference as at a change of a user interface.
"""

from __future__ import annotations

import re
from pathlib import Path

FILE = Path(__file__).with_name("golden.txt")


def message(exc: BaseException) -> str:
    """Class, text and notes of an exception; files and lines without their place."""
    text = "\n".join([f"{type(exc).__name__}: {exc}", *getattr(exc, "__notes__", [])])
    text = re.sub(r"at \S*?([\w]+\.py):\d+, in", r"at \1:LINE, in", text)
    text = re.sub(r"<(\S+) object at 0x[0-9a-f]+>", r"<\1 object>", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def expected() -> dict[str, str]:
    """Name of a case -> message."""
    parts = re.split(r"^=== (\w+)\n", FILE.read_text(), flags=re.M)
    return {name: text.strip("\n") for name, text in zip(parts[1::2], parts[2::2])}


def raised(task, *args, **kwargs) -> BaseException:
    """What a call of ``task`` raises."""
    try:
        task(*args, **kwargs)
    except Exception as exc:
        return exc
    raise AssertionError("nothing was raised")


def collect() -> dict[str, str]:
    """The messages as they are now, those of calls from mode FAST_COMPILE."""
    import error_cases

    found = {name: message(raised(case)) for name, case in error_cases.BUILDING.items()}
    for name, case in error_cases.CALLING.items():
        f, args, kwargs = case("FAST_COMPILE")
        found[name] = message(raised(f, *args, **kwargs))
    for name, (mode, *_) in error_cases.VARIANTS.items():
        f, args, kwargs = error_cases.CALLING[name](mode)
        found[f"{name}_variant"] = message(raised(f, *args, **kwargs))
    return found


if __name__ == "__main__":
    FILE.write_text("\n\n".join(f"=== {name}\n{text}" for name, text in collect().items()) + "\n")
