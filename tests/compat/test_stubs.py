"""The stubs of an enabled package: what editors know of ``pytensor``."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from types import ModuleType

import pytest
from older_names import new_environment, output

from phintys.compat.stubs import stub, stubs
from phintys.paths import MODULES, REWRITES


def imported(text: str) -> list[tuple[str, str]]:
    """(module, name) of what a stub imports."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    return [(node.module or "", alias.name) for node in nodes for alias in node.names]


def test_there_is_one_for_each_path():
    found = stubs()
    packages = {path.removesuffix("/__init__.pyi") for path in found}
    for path in (*MODULES, *REWRITES, "tensor", "graph.basic", "tensor.linalg"):
        file = path.replace(".", "/")
        assert file in packages or f"{file}.pyi" in found, path
    assert not [path for path in found if path.startswith(("compat", "backends", "lowering"))]
    assert not [path for path in found if path.split("/")[-1] == "__main__.pyi"]


def test_what_they_import_is_there_and_the_same():
    """Each name is in the module that a stub imports it from, and in that of its own path."""
    count = 0
    paths = "tensor graph.basic graph.rewriting.basic scan.op tensor.linalg link.vm scalar printing"
    for path in ("", *paths.split()):
        own = importlib.import_module(f"phintys.{path}".removesuffix("."))
        for module, name in imported(stub(path)):
            if module:
                value = getattr(importlib.import_module(module), name)
                assert value is getattr(own, name) or isinstance(value, ModuleType), (path, name)
                count += 1
    assert count > 1000


def test_names_that_programs_use_are_there():
    for path, names in {
        "tensor": "dvector exp sort TensorVariable as_tensor_variable pi",
        "graph.basic": "Apply Variable Constant",
        "graph.rewriting.basic": "in2out node_rewriter GraphRewriter",
        "scan.op": "Scan",
        "": "function grad scan shared config",
    }.items():
        assert set(names.split()) <= {name for _, name in imported(stub(path))}, path
    assert "Any" not in {name for _, name in imported(stub("tensor.elemwise"))}


def test_functions_hide_modules_of_their_name():
    modules = {name for module, name in imported(stub("tensor")) if not module}
    assert {"linalg", "random", "elemwise"} <= modules
    assert not {"sort", "dot", "einsum", "var"} & modules
    assert not {"scan", "ifelse"} & {name for module, name in imported(stub("")) if not module}


def test_optional_packages_are_not_imported():
    code = (
        "import sys; from phintys.compat.stubs import stubs; stubs()\n"
        "print(sorted({'numba', 'jax', 'rich', 'matplotlib'} & set(sys.modules)))"
    )
    assert output("-c", code) == "[]"


@pytest.mark.rest
@pytest.mark.needs("pyright")
def test_a_type_checker_sees_the_same_types(tmp_path):
    python = new_environment(tmp_path / "env")
    output("-m", "phintys.compat", "enable", "pytensor", executable=python)
    lines = """
        import NAME.tensor as pt
        from NAME.graph.basic import Apply
        from NAME.graph.rewriting.basic import in2out
        from NAME.compile.mode import Mode
        reveal_type(pt.sort)
        reveal_type(pt.linalg.cholesky)
        reveal_type(Apply)
        reveal_type(Mode)
        reveal_type(in2out)
        pt.sort(1, no_such_argument=2)
    """
    found = {}
    for system in ("pytensor", "phintys"):
        text = "\n".join(map(str.strip, lines.strip().splitlines()))
        if system == "phintys":  # where this package has these names
            text = text.replace("NAME.graph.basic", "phintys.graph.variable")
            text = text.replace("NAME.graph.rewriting.basic", "phintys.rewriting.walk")
        path = tmp_path / f"{system}_program.py"
        path.write_text(text.replace("NAME", system))
        command = [sys.executable, "-m", "pyright", "--pythonpath", str(python), str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        found[system] = [line.partition(" - ")[2] for line in done.stdout.splitlines()[1:]]
    assert found["pytensor"] == found["phintys"]
    assert any("no_such_argument" in line for line in found["pytensor"])
