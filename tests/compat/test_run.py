"""``python -m phintys.compat run``: a program and the processes that it starts."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest
from older_names import ROOT, output, python

from phintys.compat import running
from phintys.compat.__main__ import main
from phintys.compat.systems import VERSIONS, folder

RUN = ("-m", "phintys.compat", "run")
#: A program that says what Python has told it, and leaves with an exit status.
SHOW = """
import os, sys
import pytensor.tensor, phintys
assert pytensor is phintys
main = sys.modules["__main__"]
print(__name__, __file__, sys.argv, sys.path[0], main.__spec__ and main.__spec__.name, __package__)
assert vars(main) is globals()
sys.exit(7)
"""
#: A program that starts processes in all ways; each says whether the older name is this package.
START = """
import multiprocessing, subprocess, sys
from concurrent.futures import ProcessPoolExecutor
import pytensor.tensor as pt

def same(x):
    import phintys
    return sys.modules["pytensor"] is phintys and isinstance(x, pt.TensorVariable)

if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(method, pool.submit(same, pt.dscalar("x")).result())
    code = "import phintys, pytensor; print('child', pytensor is phintys)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
"""


def without_run(*arguments, cwd):
    """The same program with a package that imports this one under the other name."""
    (cwd / "pytensor.py").write_text("import sys, phintys; sys.modules[__name__] = phintys\n")
    return python(*arguments, PYTHONPATH=os.pathsep.join((str(cwd), ROOT)))


@pytest.mark.parametrize("kind", ["program", "folder", "module", "package"])
def test_python_runs_it_as_always(kind, tmp_path, monkeypatch):
    """What a program sees of itself, and its exit status, are those of plain Python."""
    place = tmp_path / "place"
    place.mkdir()
    name = "__main__.py" if kind in ("folder", "package") else "show.py"
    (place / name).write_text(SHOW.replace("pytensor.tensor, ", "pytensor, "))
    monkeypatch.chdir(tmp_path if kind == "package" else place)
    arguments = {
        "program": [str(place / name)],
        "folder": [str(place)],
        "module": ["-m", "show"],
        "package": ["-m", "place"],
    }[kind]
    arguments += ["--as", "a b", "-m", "run"]
    found = python(*RUN, *arguments)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    expected = without_run(*arguments, cwd=elsewhere)
    assert (found.returncode, found.stdout) == (7, expected.stdout), found.stderr
    assert "['" in found.stdout and "'--as', 'a b', '-m', 'run']" in found.stdout


def test_options_of_python_are_handed_on():
    code = "import sys; print(sys.flags.dev_mode, sys._xoptions, __debug__)"
    expected = output("-X", "dev", "-O", "-X", "mine=1", "-c", code)
    assert "mine" in expected
    assert output("-X", "dev", "-O", "-X", "mine=1", *RUN, "-c", code) == expected
    assert (
        output("-X", "dev", "-O", "-X", "mine=1", "-mphintys.compat", "run", "-c", code) == expected
    )


def test_processes_that_the_program_starts(tmp_path):
    path = tmp_path / "start.py"
    path.write_text(START)
    lines = output(*RUN, str(path)).splitlines()
    assert {line.split()[0] for line in lines} >= {"spawn", "child"}
    assert all(line.endswith(" True") for line in lines)


@pytest.mark.rest
def test_processes_where_another_package_of_the_name_is_installed(tmp_path):
    """It is found later on the path, as one in ``site-packages`` is."""
    (tmp_path / "later" / "pytensor").mkdir(parents=True)
    (tmp_path / "later" / "pytensor" / "__init__.py").write_text("raise ValueError('another')\n")
    (tmp_path / "later" / "pytensor" / "tensor.py").write_text("raise ValueError('another')\n")
    path = tmp_path / "start.py"
    path.write_text(START)
    variables = {"PYTHONPATH": os.pathsep.join((ROOT, str(tmp_path / "later")))}
    assert "another" in python("-c", "import pytensor", **variables).stderr
    lines = output(*RUN, str(path), **variables).splitlines()
    assert len(lines) > 1 and all(line.endswith(" True") for line in lines)


def test_modules_of_this_package_run_under_the_other_name():
    where = output("-m", "phintys", "cache", "basecompiledir")
    assert output(*RUN, "-m", "pytensor", "cache", "basecompiledir") == where
    assert output(*RUN, "-m", "pytensor.__main__", "cache", "basecompiledir") == where
    done = python(*RUN, "-m", "pytensor.printing")
    assert done.stderr.strip().endswith("pytensor.printing has no file that could be run.")
    assert "No module named pytensor.nothing" in python(*RUN, "-m", "pytensor.nothing").stderr


def test_other_names():
    code = "import aesara, theano.tensor, phintys; print(aesara is theano is phintys)"
    assert output(*RUN, "--as", "aesara", "--as", "theano", "-c", code) == "True"
    done = python(*RUN, "--as", "aesara", "-c", "import pytensor")
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'pytensor'"


def test_errors_of_the_program_and_of_the_command(tmp_path, capsys):
    done = python(*RUN, str(tmp_path / "absent.py"))
    assert done.returncode == 2 and "absent.py" in done.stderr
    code = (
        f"import runpy, sys; sys.path.insert(0, {ROOT!r}); sys.argv[1:] = ['run', 'x']\n"
        "runpy.run_module('phintys.compat', run_name='__main__')"
    )
    done = python("-I", "-c", code)
    assert done.returncode == 2
    assert done.stderr.strip() == "run needs PYTHONPATH, which python -E and -I do not read."
    assert main(["run", "--as", "numpy", "x.py"]) == 1
    assert capsys.readouterr().err.strip() == "'numpy' is none of pytensor, aesara, theano."


@pytest.mark.parametrize(
    "arguments", [[], ["run"], ["run", "--as"], ["run", "--as", "pytensor"], ["start"], ["run-"]]
)
def test_usage(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage: python -m phintys.compat run [--as NAME]")


@pytest.mark.parametrize("command", [[], ["run"], ["enable"], ["disable"]])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(command, option, capsys):
    assert main([*command, option]) == 0
    assert capsys.readouterr().out.startswith("usage: python -m phintys.compat run [--as NAME]")


def test_a_system_that_cannot_replace_a_process(monkeypatch):
    """Windows: the path has its separator, and the exit status is that of a child process."""
    started = []

    def call(command, env):
        started.append((command, env["PYTHONPATH"]))
        return 5

    given = {"PYTHONPATH": r"C:\mine;C:\others", "HOME": "C:"}
    stand_in = SimpleNamespace(name="nt", pathsep=";", environ=given)
    monkeypatch.setattr(running, "os", stand_in)
    monkeypatch.setattr(running, "subprocess", SimpleNamespace(call=call))
    monkeypatch.setattr(running, "interpreter_options", lambda: ["-u"])
    monkeypatch.setattr(sys, "path", ["", ROOT])
    assert running.run(["x.py", "a"], ["aesara"]) == 5
    path = f"{folder('aesara')};C:\\mine;C:\\others"
    assert started == [([sys.executable, "-u", "x.py", "a"], path)]


def test_the_folder_is_entered_once():
    first = running.environment(["pytensor"], {})
    assert running.environment(["pytensor"], first) == first
    assert first["PYTHONPATH"].split(os.pathsep)[0] == str(folder("pytensor"))


def test_where_this_package_is_found_only_beside_the_program(monkeypatch, tmp_path):
    """A program in another folder finds it too."""
    monkeypatch.chdir(ROOT)
    path = tmp_path / "show.py"
    path.write_text("import pytensor, phintys; print(pytensor is phintys, phintys.__file__)")
    out = output(*RUN, str(path), PYTHONPATH="")
    assert out == f"True {os.path.join(ROOT, 'phintys', '__init__.py')}"


@pytest.mark.parametrize("system", VERSIONS)
def test_packages_that_hand_over_are_ordinary_and_equal(system):
    """A folder per name, with one package of one file: no link, no file that Python runs itself."""
    files = [path for path in folder(system).rglob("*") if "__pycache__" not in path.parts]
    package = folder(system) / system
    assert sorted(files) == [package, package / "__init__.py"]
    assert not any(path.is_symlink() for path in files)
    texts = {(folder(name) / name / "__init__.py").read_text() for name in VERSIONS}
    assert len(texts) == 1
