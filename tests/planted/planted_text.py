"""Where statements and functions are in the text of a module."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

MODULE = "<module>"
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def scopes(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Scope]]:
    """Each function and class with its qualified name, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, SCOPES):
            yield from scopes(node, prefix)
            continue
        name = prefix + node.name
        yield name, node
        yield from scopes(node, within(name, node))


def within(name: str, node: Scope) -> str:
    """The prefix of qualified names in a function or class of this name."""
    return name + "." if isinstance(node, ast.ClassDef) else f"{name}.<locals>."


def lines_of_scope(node: Scope) -> range:
    """Its lines, numbered from 1, with those of decorators."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return range(first, (node.end_lineno or first) + 1)


def functions_by_line(source: str) -> dict[int, str]:
    """line -> qualified name of the innermost function or class around it"""
    found: dict[int, str] = defaultdict(lambda: MODULE)
    for name, node in scopes(ast.parse(source)):
        found.update(dict.fromkeys(lines_of_scope(node), name))
    return found


def spans(source: str, function: str) -> list[range]:
    """The lines of each function or class of this qualified name; all lines for the module."""
    if function == MODULE:
        return [range(1, source.count("\n") + 2)]
    found = scopes(ast.parse(source))
    return [lines_of_scope(node) for name, node in found if name == function]


def can_run(node: ast.AST) -> bool:
    """Whether a node is a statement, but not a docstring or a declaration."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    return isinstance(node, ast.stmt) and not isinstance(node, ast.Global | ast.Nonlocal)


def own_lines(node: ast.stmt) -> range:
    """The lines of a statement, without the block within."""
    block = getattr(node, "body", None) or getattr(node, "cases", None)
    if block is None:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    first = block[0].pattern.lineno if isinstance(block[0], ast.match_case) else block[0].lineno
    return range(node.lineno, max(first, node.lineno + 1))


def statements(source: str) -> dict[int, range]:
    """The first line of each statement that can run -> its lines, without the block within."""
    return {n.lineno: own_lines(n) for n in ast.walk(ast.parse(source)) if can_run(n)}
