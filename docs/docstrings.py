"""Sphinx extension: the docstrings of this project as reStructuredText.

They are plain text: `name` and ``name`` are code, sections are underlined, and list names either
with an indented description or as ``name : description``.
"""

from __future__ import annotations

import re
from typing import Any

CODE = re.compile(r"``([^`]+)``(\w?)|`([^`]+)`(\w?)|^(\*\*\w+)$")
ENTRY = re.compile(r"([*\w][*\w, ]*) : (.+)")
UNDERLINE = re.compile(r"-{3,}\s*$")


def code(line: str) -> str:
    """Everything in backticks, and ``**options``, as a literal, also in front of a letter."""
    return CODE.sub(_literal, line)


def _literal(match: re.Match[str]) -> str:
    text, suffix = match[1] or match[3] or match[5], match[2] or match[4]
    return f"``{text}``\\ {suffix}" if suffix else f"``{text}``"


def convert(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    out: list[str] = []
    in_section = False
    following = [*lines[1:], ""]
    for line, after in zip(lines, following):
        if UNDERLINE.match(line):
            continue
        entry = ENTRY.match(line) if in_section else None
        if line.strip() and UNDERLINE.match(after):
            out += ["", f"**{line.strip()}**", ""]
            in_section = True
        elif entry:
            if out[-1] and not out[-1].startswith("- "):
                out.append("")
            out.append(f"- ``{entry[1]}``: {code(entry[2])}")
        elif in_section and out[-1].startswith("- ") and line.startswith("    "):
            out[-1] += " " + code(line.strip())
        elif in_section and line and line[0] != " " and after.startswith("    "):
            out.append(f"``{line.strip()}``" if "`" not in line else code(line))
        else:
            out.append(line if line.lstrip().startswith((">>>", "...")) else code(line))
    return out


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = convert(lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
