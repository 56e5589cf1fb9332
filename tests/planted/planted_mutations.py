"""Changes of one place in the text of a module, each of a kind of fault that people make.

What cannot change behaviour is left out: annotations, texts, messages of errors and warnings, what
only type checkers read, bounds of work and memory.  So is what nearly every call would show:
comparisons with None, swapped arguments of different kinds, dropped statements outside functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from planted_text import MODULE, SCOPES, can_run, within

KINDS = ("comparison", "constant", "sign", "index", "dtype", "arguments", "dropped")

#: line and column (in bytes) of start and end, and the text that takes the place
Edit = tuple[int, int, int, int, str]

_COMPARISONS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "is not": "is", "is": "is not", "not in": "in", "in": "not in",
}  # fmt: skip
_OPERATORS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_PAIRS = (
    ("float64", "float32"), ("complex128", "complex64"), ("int64", "int32"), ("int8", "int16"),
    ("uint64", "uint32"), ("uint8", "uint16"),
)  # fmt: skip
_DTYPES = dict(_PAIRS) | {b: a for a, b in _PAIRS}
#: fields that hold blocks, annotations or texts
_APART = {
    "body", "orelse", "finalbody", "handlers", "cases", "annotation", "returns", "decorator_list",
    "msg", "type_params",
}  # fmt: skip
#: functions whose arguments are texts, types or bounds
_SILENT = {"warn", "cast", "TypeVar", "Memo", "lru_cache", "NamedTuple", "NewType"}
_SILENT_KEYWORDS = {"stacklevel", "maxsize", "slots", "frozen", "indent", "width"}
#: functions of which the order of two arguments does not matter, or is seen at once
_EITHER_ORDER = {
    "max", "min", "add", "mul", "maximum", "minimum", "logical_and", "logical_or", "and_", "or_",
    "xor", "gcd", "lcm", "isinstance", "issubclass", "hasattr", "getattr", "setattr", "array_equal",
    "equal", "eq", "neq", "multiply", "bitwise_and", "bitwise_or",
}  # fmt: skip
#: arguments that stand for what a function works in, not for what it works on
_CONTEXTS = {"self", "cls", "node", "fgraph", "b", "m", "n", "s", "w"}
_TEXTS = {"__repr__", "__str__", "__format__", "__dir__", "_repr_html_", "_repr_svg_"}


@dataclass(frozen=True)
class Mutation:
    """One change in a function of a module."""

    kind: str
    function: str
    edit: Edit

    @property
    def line(self) -> int:
        return self.edit[0]

    def texts(self, lines: list[str]) -> tuple[range, str]:
        """The lines that change, numbered from 1, and their new text."""
        line, column, end, end_column, text = self.edit
        head = lines[line - 1].encode()[:column].decode()
        tail = lines[end - 1].encode()[end_column:].decode()
        return range(line, end + 1), head + text + tail


def mutations(source: str) -> Iterator[Mutation]:
    """All changes that are drawn from, in the order of the text."""
    for function, statement in _statements(ast.parse(source).body, MODULE, ""):
        at_top = "." not in function and function[:1] in "<ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        if not at_top and _can_be_dropped(statement):
            yield Mutation("dropped", function, (*_place(statement), "pass"))
        if isinstance(statement, ast.Raise):
            continue
        for node, in_index in _expressions(statement, False):
            for kind, edit in _edits(source, node, in_index):
                yield Mutation(kind, function, edit)


def _statements(
    block: list[ast.stmt], function: str, prefix: str
) -> Iterator[tuple[str, ast.stmt]]:
    """Each statement that can change behaviour, with the function or class around it."""
    for node in block:
        if _is_silent(node):
            continue
        yield function, node
        inner, before = function, prefix
        if isinstance(node, SCOPES):
            inner = prefix + node.name
            before = within(inner, node)
        for nested in _blocks(node):
            yield from _statements(nested, inner, before)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        yield part.body


def _is_silent(node: ast.stmt) -> bool:
    """Whether a statement, and what is in it, cannot change what a program does."""
    if not can_run(node) or isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, SCOPES):
        marks = [*node.decorator_list, *getattr(node, "bases", [])]
        named = {ast.unparse(m).partition("[")[0].rpartition(".")[2] for m in marks}
        return node.name in _TEXTS or not named.isdisjoint({"overload", "Protocol"})
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if not isinstance(node, ast.Assign):
        return False
    name = ast.unparse(node.targets[0])
    return name == "__all__" or (name.isupper() and _is_number(node.value))


def _is_number(node: ast.expr) -> bool:
    """Whether it is computed of numbers alone: then a constant is a bound or tunes speed."""
    kinds = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    return all(isinstance(n, kinds) for n in ast.walk(node))


def _can_be_dropped(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and _called(node.value) != "__init__"
    if isinstance(node, ast.Assign):
        return all(isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Continue)


def _expressions(node: ast.AST, in_index: bool) -> Iterator[tuple[ast.AST, bool]]:
    """The expressions of a statement itself; for each, whether it is part of an index."""
    for name, value in ast.iter_fields(node):
        if name in _APART and not isinstance(node, ast.expr):
            continue
        inside = in_index or (isinstance(node, ast.Subscript) and name == "slice")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text(child):
                yield child, inside
                yield from _expressions(child, inside)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in _SILENT_KEYWORDS
    if isinstance(node, ast.Call):
        return _called(node) in _SILENT or _called(node).endswith(("Error", "Warning"))
    return isinstance(node, ast.JoinedStr | ast.match_case)


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def _place(node: ast.AST) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore


def _edits(source: str, node: ast.AST, in_index: bool) -> Iterator[tuple[str, Edit]]:
    if isinstance(node, ast.Compare):
        if isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None:
            return
        old = _OPERATORS[type(node.ops[0])]
        gap = _gap(source, node.left, node.comparators[0])
        yield from _replaced("comparison", gap, old, _COMPARISONS[old])
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        old, new = "+-" if isinstance(node.op, ast.Add) else "-+"
        if not any(isinstance(x, _JOINED) for x in (node.left, node.right)):
            yield from _replaced("sign", _gap(source, node.left, node.right), old, new)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not in_index:
        yield "sign", (*_place(node), ast.get_source_segment(source, node.operand) or "")
    elif isinstance(node, ast.Constant):
        yield from _other_constant(source, node, in_index)
    elif isinstance(node, ast.Attribute) and node.attr in _DTYPES:
        if ast.unparse(node.value) == "np":
            yield "dtype", (*_place(node), f"np.{_DTYPES[node.attr]}")
    elif isinstance(node, ast.Call):
        yield from _swapped(source, node)


#: what ``+`` joins, where it is no sum
_JOINED = (ast.List, ast.Tuple, ast.JoinedStr, ast.ListComp)


def _gap(source: str, left: ast.expr, right: ast.expr) -> tuple[Edit, str]:
    """Where the operator between two operands is, and the text there."""
    where = (left.end_lineno or 0, left.end_col_offset or 0, right.lineno, right.col_offset)
    lines = source.split("\n")
    if where[0] == where[2]:
        text = lines[where[0] - 1].encode()[where[1] : where[3]].decode()
    else:
        first = lines[where[0] - 1].encode()[where[1] :].decode()
        last = lines[where[2] - 1].encode()[: where[3]].decode()
        text = "\n".join([first, *lines[where[0] : where[2] - 1], last])
    return (*where, ""), text


def _replaced(kind: str, gap: tuple[Edit, str], old: str, new: str) -> Iterator[tuple[str, Edit]]:
    (where, text) = gap
    changed = re.sub(rf"(?<![\w=<>!]){re.escape(old)}(?![\w=])", new, text, count=1)
    if changed != text and "#" not in text:
        yield kind, (*where[:4], changed)


def _other_constant(source: str, node: ast.Constant, in_index: bool) -> Iterator[tuple[str, Edit]]:
    value, where = node.value, _place(node)
    if isinstance(value, str):
        segment = ast.get_source_segment(source, node) or ""
        if value in _DTYPES and segment in (f'"{value}"', f"'{value}'"):
            yield "dtype", (*where, f'"{_DTYPES[value]}"')
    elif isinstance(value, bool):
        yield "constant", (*where, str(not value))
    elif isinstance(value, int):
        if in_index:
            yield "index", (*where, str(value - 1 if value else 1))
        else:
            yield "constant", (*where, str(value + 1))
    elif isinstance(value, float) and value not in (float("inf"), 2 * value + (value == 0)):
        yield "constant", (*where, repr(2 * value if value else 1.0))


def _swapped(source: str, node: ast.Call) -> Iterator[tuple[str, Edit]]:
    """The call with its first two arguments swapped."""
    if len(node.args) < 2 or _called(node) in _EITHER_ORDER or not _are_alike(*node.args[:2]):
        return
    first, second = node.args[:2]
    texts = [ast.get_source_segment(source, a) or "" for a in (first, second)]
    _, between = _gap(source, first, second)
    if texts[0] != texts[1] and "\n" not in "".join([*texts, between]):
        start, end = _place(first)[:2], _place(second)[2:]
        yield "arguments", (*start, *end, f"{texts[1]}{between}{texts[0]}")


def _are_alike(first: ast.expr, second: ast.expr) -> bool:
    names = {x.id for x in (first, second) if isinstance(x, ast.Name)}
    alike = type(first) is type(second) and not isinstance(first, ast.Starred)
    return alike and names.isdisjoint(_CONTEXTS)


def changes(source: str, mutation: Mutation) -> bool:
    """Whether the new text is another program, in valid Python."""
    lines = source.split("\n")
    where, text = mutation.texts(lines)
    lines[where.start - 1 : where.stop - 1] = [text]
    try:
        after = ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return ast.dump(after) != ast.dump(ast.parse(source))
