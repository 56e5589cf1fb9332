"""Public names of PyTensor's tensor language, of Aesara's and that PyMC uses: here or explained.

``public_names.txt`` has one ``module:name`` per line, without the name of the package.
``docs/reference/absent.md`` lists those that are not here; a pattern ends with a star.
"""

from __future__ import annotations

import fnmatch
import importlib
import re
import subprocess
import sys
import textwrap
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import phintys

#: backends whose packages are not installed
MISSING = {name for name in ("jax", "numba") if find_spec(name) is None}
LISTED = (Path(__file__).parent / "public_names.txt").read_text().split()
NAMES = [name for name in LISTED if MISSING.isdisjoint(name.split(":")[0].split("."))]
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "absent.md"


def patterns():
    """The names and patterns in the first column of the tables of the page."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


@cache
def places(path):
    """What a dotted path names: an object, a module, or both where they have the same name."""
    if not path:
        return [phintys]
    parent, _, name = path.rpartition(".")
    found = [getattr(place, name) for place in places(parent) if hasattr(place, name)]
    try:
        return [*found, importlib.import_module(f"phintys.{path}")]
    except ImportError:
        return found


def is_here(name):
    path, attribute = name.split(":")
    return any(hasattr(place, attribute) for place in places(path))


def is_listed(name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns())


def test_every_name_is_here_or_explained():
    assert [name for name in NAMES if not is_here(name) and not is_listed(name)] == []


def test_what_is_listed_is_absent():
    """A name on the page is not here; of a pattern, some name is not."""
    matched = {pattern: fnmatch.filter(NAMES, pattern) for pattern in patterns()}
    unknown = [pattern for pattern, names in matched.items() if not names]
    assert not unknown, "PyTensor and Aesara have no such public name"
    present = [pattern for pattern, names in matched.items() if all(map(is_here, names))]
    assert not present, "they are here: remove them from the page"


def test_most_names_of_the_tensor_language_are_here():
    for module, least in (
        ("tensor:", 360),
        ("scalar:", 260),
        ("tensor.variable.TensorVariable:", 80),
    ):
        area = [name for name in NAMES if name.startswith(module)]
        assert sum(map(is_here, area)) >= 0.98 * len(area)
        assert len(area) > least


def test_names_that_other_programs_import_though_they_are_private():
    from phintys.tensor.basic import _as_tensor_variable
    from phintys.tensor.math import _matmul
    from phintys.tensor.utils import _parse_gufunc_signature

    class Table:
        def __init__(self, rows):
            self.rows = rows

    pt = phintys.tensor
    assert pt.matmul(pt.dtensor3(), pt.dtensor3()).owner.op == _matmul
    assert _parse_gufunc_signature(_matmul.signature) == ([("m", "n"), ("n", "p")], [("m", "p")])
    _as_tensor_variable.register(Table, lambda x, **kwargs: pt.as_tensor_variable(x.rows))
    assert pt.exp(Table([0, 0])).eval().tolist() == [1, 1]


def test_importing_modules_hides_no_function():
    """A module may have the name of a function of its package, as ``tensor.sort`` has."""
    script = """
        import pkgutil, importlib, types
        import phintys.tensor, phintys.scalar, phintys.gradient
        packages = [phintys.tensor, phintys.scalar, phintys.gradient]
        before = [dict(vars(p)) for p in packages]
        for p in packages:
            for module in pkgutil.iter_modules(p.__path__, p.__name__ + "."):
                importlib.import_module(module.name)
        hidden = [
            name
            for p, names in zip(packages, before)
            for name, value in names.items()
            if not isinstance(value, types.ModuleType) and getattr(p, name) is not value
        ]
        assert not hidden, hidden
        assert len(before[0]) > 300
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


def test_paths_of_older_modules():
    """Every module at PyTensor's path is made of existing ones, and has names."""
    from phintys.paths import MODULES

    for path, sources in MODULES.items():
        module = importlib.import_module(f"phintys.{path}")
        assert not sources or any(not name.startswith("_") for name in vars(module)), path


def test_modules_are_attributes():
    """Of ``import phintys`` alone; this is another process, where nothing else is imported yet."""
    script = """
        import phintys
        paths = ["compile.maker", "graph.rewriting.db", "link.vm", "scalar.basic", "printing"]
        paths += ["tensor.subtensor", "tensor.rewriting.basic", "tensor.linalg.products"]
        for path in paths:
            module = phintys
            for name in path.split("."):
                module = getattr(module, name)
            assert module.__name__ == f"phintys.{path}"
        assert callable(phintys.scan)
        assert not hasattr(phintys, "nothing") and not hasattr(phintys.link, "nothing")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


def test_rewrites_by_name():
    """Names below ``tensor.rewriting`` are those of rewrites, each a `NodeRewriter`."""
    from phintys.graph.rewriting.basic import NodeRewriter, in2out
    from phintys.tensor.rewriting.basic import local_cast_cast, register_canonicalize
    from phintys.tensor.rewriting.math import local_exp_over_1_plus_exp

    assert isinstance(local_cast_cast, NodeRewriter)
    assert isinstance(local_exp_over_1_plus_exp, NodeRewriter)
    assert callable(register_canonicalize)
    assert in2out(local_exp_over_1_plus_exp) is not None
    with pytest.raises(ImportError):
        from phintys.tensor.rewriting.math import local_not_there  # noqa: F401


def test_a_module_in_the_place_of_a_function_can_be_called():
    module = importlib.import_module("phintys.tensor.var")
    assert module.TensorVariable is phintys.tensor.variable.TensorVariable
    assert phintys.tensor.var([1.0, 3.0]).eval() == 1


def test_scan_is_a_function_and_a_module():
    """As in PyTensor, whichever is used first; loops are imported on first use."""
    imports = [
        "from phintys import scan",
        "from phintys.scan.op import Scan",
        "import phintys.scan",
    ]
    for lines in (imports, imports[::-1], ["Scan = phintys.scan.op.Scan"]):
        script = f"""
            import inspect, pickle, sys, phintys
            assert "phintys.loop" not in sys.modules
            {"; ".join(lines)}
            from phintys.scan import until
            assert list(inspect.signature(phintys.scan).parameters)[:2] == ["fn", "sequences"]
            assert pickle.loads(pickle.dumps(phintys.scan)) is phintys.scan
            assert "Parameters" in phintys.scan.__doc__
            x = phintys.tensor.dvector()
            y = phintys.scan(lambda a: (a, until(a > 1)), x, return_updates=False)
            assert y.eval({{x: [1.0, 2.0, 3.0]}}).tolist() == [1.0, 2.0]
            assert y.owner.op.__class__ is phintys.scan.op.Scan is Scan
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
