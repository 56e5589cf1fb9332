"""Parameters that functions take and ignore: declared by `ignores`, with a warning where PyTensor
uses them."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from pathlib import Path

import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.features import ReplaceValidate
from phintys.graph.ignored import IGNORED, ignores

ROOT = Path(phintys.__file__).parent
#: names of parameters that a docstring says to be ignored
DOCUMENTED = re.compile(
    r"^ *([*\w, ]+?)(?: : |\n *)(?:ignored|accepted for compatibility|accepted, without effect)",
    re.M,
)


def functions():
    """(file, class or None, function) of every function of the package."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.FunctionDef):
                    yield path.relative_to(ROOT), node, inner


def declared(function: ast.FunctionDef) -> set[str]:
    """The parameters that the decorator of a function names."""
    found: set[str] = set()
    for call in function.decorator_list:
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "ignores":
            found |= {arg.value for arg in call.args} | {k.arg for k in call.keywords}
    return found


def unused(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    names = {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}
    read = {n.id for stmt in function.body for n in ast.walk(stmt) if isinstance(n, ast.Name)}
    return names - read


def documented(owner: ast.AST, function: ast.FunctionDef) -> set[str]:
    texts = [ast.get_docstring(function)]
    if isinstance(owner, ast.ClassDef) and function.name == "__init__":
        texts.append(ast.get_docstring(owner))
    found = DOCUMENTED.findall("\n".join(filter(None, texts)))
    return {name.strip() for names in found for name in names.split(",")}


def test_what_is_documented_as_ignored_is_declared():
    count, missing = 0, []
    for path, owner, function in functions():
        names = documented(owner, function) & unused(function)
        count += len(names)
        missing += [f"{path}: {function.name}: {name}" for name in names - declared(function)]
    assert not missing
    assert count > 25


def test_what_is_declared_is_not_used():
    for path, _, function in functions():
        assert declared(function) <= unused(function), f"{path}: {function.name}"


def test_a_true_value_of_what_pytensor_uses_gives_a_warning():
    x = pt.dvector("x")
    with pytest.warns(UserWarning, match="dprint ignores print_storage; use the lists") as w:
        text = phintys.dprint(x, file="str", print_storage=True)
    assert text == "x [id A]\n"
    assert w[0].filename == __file__


def test_defaults_and_what_changes_nothing_give_none():
    x = pt.dvector("x")
    graph = phintys.FunctionGraph([x], [pt.exp(x)], features=[ReplaceValidate()])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.replace_all_validate([(graph.inputs[0], graph.inputs[0])], verbose=False)
        graph.replace(graph.inputs[0], graph.inputs[0], None, None)
        pt.linalg.cholesky(pt.dmatrix(), check_finite=False, overwrite_a=True)
        assert phintys.dprint(x, file="str", print_storage=False) == "x [id A]\n"


def test_the_signature_stays():
    parameters = inspect.signature(phintys.dprint).parameters
    assert parameters["print_storage"].default is False
    assert phintys.dprint.__name__ == "dprint" and "Print graphs" in phintys.dprint.__doc__
    assert IGNORED["phintys.show.text.dprint"].keys() == {"print_storage"}
    assert IGNORED["phintys.tensor.counting.bincount"] == {"assert_nonneg": ""}


def test_an_unknown_parameter():
    with pytest.raises(TypeError, match="double has no parameter 'y'"):

        @ignores("y")
        def double(x):
            return 2 * x
