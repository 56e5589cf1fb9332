"""Where statements and functions are in the text of a module."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

MODULE = "<module>"
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def scopes(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Scope]]:
    """Each function and class with its qualified name, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, Scope):
            yield from scopes(node, prefix)
            continue
        name = prefix + node.name
        yield name, node
        within = name + "." if isinstance(node, ast.ClassDef) else f"{name}.<locals>."
        yield from scopes(node, within)


def functions_by_line(source: str) -> dict[int, str]:
    """line -> qualified name of the innermost function or class around it; decorators are in it"""
    found: dict[int, str] = defaultdict(lambda: MODULE)
    for name, node in scopes(ast.parse(source)):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        found.update(dict.fromkeys(range(first, (node.end_lineno or first) + 1), name))
    return found
