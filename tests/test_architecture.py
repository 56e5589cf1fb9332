"""The plan of the house, asserted: who imports whom, and how large things may grow.

Imports inside functions and for type checking count.  docs/architecture.md lists the layers.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "phintys"

#: bottom to top: a module may import from its own layer and from those before it
LAYERS = [
    ("errors", "lazy", "locks", "memo"),
    ("dims",),
    ("bitgen",),
    ("config",),
    ("routines",),
    ("graph",),
    ("rewriting",),
    ("assumptions",),
    ("gradient",),
    ("inner",),
    ("scalar",),
    ("tensor",),
    ("conditional",),
    ("loop",),
    ("typed_list",),
    ("lowering",),
    ("saturation",),
    ("backends",),
    ("compile",),
    ("array_api",),
    ("show",),
    ("testing",),
    ("planned",),
    ("paths",),
    ("compat",),
]
#: the folders of the llvm backend, bottom to top
LLVM = ROOT / "backends" / "llvm"
LLVM_LAYERS = ("costs", "vecmath", "machine", "ir", "runtime", "kernel", "routine")
#: folders of ``tests/`` that mirror no folder of the package, and what they test
OTHER_TESTS = {
    "arm": "the setup of an emulated processor",
    "benchmarks": "the programs of benchmarks/",
    "corpus": "small programs here and in PyTensor",
    "densities": "log-densities as people write them, against mpmath",
    "docs": "the pages of docs/",
    "errors": "the messages of errors of all folders",
    "fuzz": "random programs on all backends",
    "matrix": "each op on each backend, in each dtype",
    "planted": "whether the tests find faults that are put in on purpose",
    "pymc": "PyMC on this package",
    "quick": "the program that runs the tests nearest to changed files",
    "robustness": "threads, interrupts, failing allocations, memory: all folders together",
    "tools": "the programs of tools/",
}
#: what the generators may see: no graph, no op
GENERATORS = ("backends/llvm", "backends/c")
SEEN_BY_GENERATORS = {
    *("errors", "locks", "memo", "dims", "bitgen", "config", "routines", "scalar", "lowering"),
    "backends",
}
MAX_MODULE = 800
MAX_FUNCTION = 60

FILES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.name != "__init__.py")
RANK = {name: k for k, names in enumerate(LAYERS) for name in names}


def layer(module: str) -> str | None:
    """The layer of a dotted module name of this package."""
    parts = module.split(".")
    return parts[1] if parts[0] == "phintys" and len(parts) > 1 else None


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str) -> bool:
    path = ROOT.parent / Path(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """(module, line) of everything that a file imports from this package.

    Imports inside functions and under ``if TYPE_CHECKING`` count.
    """
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(a.name, node.lineno) for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{a.name}" for a in node.names]
            submodules = [m for m in inner if is_module(m)]
            if len(submodules) < len(inner):
                found.append((node.module, node.lineno))
            found += [(m, node.lineno) for m in submodules]
    return tuple((m, line) for m, line in found if m.startswith("phintys"))


def test_imports_point_downwards() -> None:
    upwards = []
    for path in FILES:
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        rank = RANK.get(own, len(LAYERS) if own == "__main__" else -1)
        upwards += [
            f"{path.relative_to(ROOT)}:{line}: {m}"
            for m, line in imports(path)
            if (name := layer(m)) in RANK and RANK[name] > rank
        ]
    assert not upwards


@pytest.mark.parametrize("folder", GENERATORS)
def test_generators_never_see_an_op(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        seen = {layer(m) for m, _ in imports(path)} - {None}
        assert seen <= SEEN_BY_GENERATORS, f"{path.name} imports {seen - SEEN_BY_GENERATORS}"
        ops = [m for m, _ in imports(path) if m.startswith("phintys.scalar") and "native" not in m]
        assert not [m for m in ops if m != "phintys.scalar"], f"{path.name} imports {ops}"


def test_nothing_imports_the_older_names():
    """Nor does the command line.  Only the table of paths may name modules of ``compat``, as text:
    one is imported when a program imports its path."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {m}"
        for path in (*FILES, ROOT / "__init__.py")
        for m, line in imports(path)
        if layer(m) == "compat" and path.relative_to(ROOT).parts[0] != "compat"
    ]
    assert not found
    named = {
        path.relative_to(ROOT).parts[0]
        for path in (*FILES, ROOT / "__init__.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and str(node.value).startswith(("compat.", "phintys.compat"))
    }
    assert named <= {"compat", "paths.py", "__main__.py"}, named


def test_backends_do_not_import_each_other():
    shared = {"source", "code_cache", "identity", "interpreter", "once", "protocol"}
    for path in (ROOT / "backends").rglob("*.py"):
        own = path.relative_to(ROOT / "backends").parts[0].removesuffix(".py")
        for m, line in imports(path):
            parts = m.split(".")
            if parts[1] != "backends" or len(parts) < 3 or own in shared:
                continue
            allowed = {own, "numpy", *shared}
            assert parts[2] in allowed, f"{path.name}:{line} imports {m}"


def test_only_linkers_name_backends():
    anyone = {"protocol", "code_cache", "identity", "numpy"}
    for path in (ROOT / "compile").glob("*.py"):
        if path.name == "linker.py":
            continue
        named = {m.split(".")[2] for m, _ in imports(path) if m.startswith("phintys.backends.")}
        assert named <= anyone, f"{path.name} imports {named - anyone}"


def test_no_import_cycles():
    """No module imports, directly or indirectly, one that imports it."""
    modules = {module_name(p): p for p in FILES}
    edges = {
        name: {m for m, _ in imports(p) if m in modules and m != name}
        for name, p in modules.items()
    }
    assert not cycle(edges)


def test_layers_of_the_llvm_backend() -> None:
    """Only ``__init__.py`` stands above all folders."""
    upwards = []
    for path in sorted(LLVM.rglob("*.py")):
        own = path.relative_to(LLVM).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        assert own in LLVM_LAYERS, f"{path.name} is in no layer"
        below = LLVM_LAYERS[: LLVM_LAYERS.index(own) + 1]
        inside = [(m, line) for m, line in imports(path) if is_llvm(m)]
        upwards += [
            f"{path.relative_to(LLVM)}:{line}: {m}"
            for m, line in inside
            if layer_of_llvm(m) not in below
        ]
    assert not upwards


def is_llvm(module: str) -> bool:
    return module.split(".")[:3] == ["phintys", "backends", "llvm"]


def layer_of_llvm(module: str) -> str:
    """The folder of a module of the llvm backend; empty for the backend itself."""
    return ".".join(module.split(".")[3:4])


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Nodes that lead to each other in a circle, the first one again at the end; empty if none."""
    state: dict[str, int] = {}
    for root in edges:
        stack = [(root, iter(edges[root]))]
        if state.get(root):
            continue
        state[root] = 1
        while stack:
            name, rest = stack[-1]
            for m in rest:
                if state.get(m) == 1:
                    path = [n for n, _ in stack]
                    return [*path[path.index(m) :], m]
                if not state.get(m):
                    state[m] = 1
                    stack.append((m, iter(edges[m])))
                    break
            else:
                state[name] = 2
                stack.pop()
    return []


def test_cycles_are_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_all_imports_are_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "from phintys.graph import op, Type\n"
        "if TYPE_CHECKING:\n"
        "    import phintys.dims\n"
        "def f():\n"
        "    from phintys.config import config\n"
    )
    assert sorted(imports(path)) == [
        ("phintys.config", 6),
        ("phintys.dims", 4),
        ("phintys.graph", 2),
        ("phintys.graph.op", 2),
    ]


def length_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function, without its docstring."""
    first = node.body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    doc = (first.end_lineno or first.lineno) - first.lineno + 1 if is_doc else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - doc


def test_sizes() -> None:
    long_modules, long_functions = [], []
    for path in FILES:
        text = path.read_text()
        if text.count("\n") > MAX_MODULE:
            long_modules.append(path)
        long_functions += [
            f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
            for node in ast.walk(tree(path))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and length_of(node) > MAX_FUNCTION
        ]
    assert not long_modules and not long_functions


def test_optional_packages_are_not_imported_with_the_package():
    import subprocess
    import sys

    code = (
        "import sys, phintys\n"
        "heavy = {'scipy', 'llvmlite', 'numba', 'jax', 'rich', 'matplotlib'}\n"
        "print(sorted(heavy & {m.split('.')[0] for m in sys.modules}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_modules_of_tests_have_different_names():
    """Pytest cannot collect two of one name."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]


def test_tests_are_found_where_the_module_is():
    """A folder of tests mirrors one of the package, or `OTHER_TESTS` says what it is for."""
    tests = Path(__file__).parent
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    strange = {f for f in folders if not (ROOT / f).is_dir() and f.parts[0] not in OTHER_TESTS}
    assert not strange, f"these mirror no folder of phintys/: {sorted(map(str, strange))}"
    assert not [name for name in OTHER_TESTS if (ROOT / name).exists()]
