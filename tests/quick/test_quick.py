"""``python -m tests.quick``: which modules it chooses, what it runs until when, what it says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import run_git
from child_environment import plain_environment
from quick_choice import MAP, Suite, changed_files, known_runs
from quick_workers import Record, ended, ended_by, read_record, run_all, summary
from run_git import outside_repositories

OP, SORT, CODE = "phintys/graph/op.py", "phintys/tensor/sort.py", "phintys/backends/llvm/ir/code.py"
FILES = {
    OP: "",
    SORT: "def f():\n    '''\n    >>> f()\n    '''\n",
    CODE: "",
    "phintys/dims.py": "",
    "docs/reference/rules.md": "",
    "tests/conftest.py": "",
    "tests/cases.py": "",
    "tests/tensor/checks.py": "from cases import x\n",
    "tests/test_dims.py": "",
    "tests/test_smoke.py": "",
    "tests/docs/test_paths.py": "",
    "tests/graph/test_op.py": "",
    "tests/graph/test_other.py": "",
    "tests/tensor/test_sort.py": "import pytest\nfrom checks import check\n",
    "tests/tensor/test_shape.py": "",
    "tests/pymc/test_models.py": "",
    "tests/backends/llvm/test_jit.py": "def f():\n    from tests.cases import x\n",
}
#: the numbers of files are 2, 1, 3, 4
RUN = {
    "tests/graph/test_op.py": {OP, CODE},
    "tests/graph/test_other.py": {CODE},
    "tests/tensor/test_sort.py": {OP, SORT, CODE},
    "tests/backends/llvm/test_jit.py": {OP, SORT, CODE, "phintys/dims.py"},
    "tests/graph/test_removed.py": {OP},
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "changed, modules",
    [
        ([], []),
        # its folder first, as far as it runs the file; then the others, those of few files first
        ([OP], ["graph/test_op", "tensor/test_sort", "backends/llvm/test_jit"]),
        # its own examples, its namesake; of its folder, also what the map does not know
        ([SORT], [SORT, "tensor/test_sort", "tensor/test_shape", "backends/llvm/test_jit"]),
        # the nearest folder above it
        ([CODE],
         ["backends/llvm/test_jit", "graph/test_other", "graph/test_op", "tensor/test_sort"]),
        # no test of its folder runs it by the map: all of its folder
        (["phintys/graph/new.py"], ["graph/test_other", "graph/test_op"]),
        (["phintys/dims.py"], ["test_dims", "test_smoke", "backends/llvm/test_jit"]),
        # a test module itself; modules that import a helper, also through another one
        (["tests/graph/test_other.py"], ["graph/test_other"]),
        (["tests/tensor/checks.py"], ["tensor/test_sort"]),
        (["tests/cases.py"], ["tensor/test_sort", "backends/llvm/test_jit"]),
        (["tests/conftest.py"], ["test_dims", "test_smoke"]),
        (["tests/tensor/data/golden.txt"], ["tensor/test_shape", "tensor/test_sort"]),
        (["README.md"], ["docs/test_paths"]),
        (["docs/reference/rules.md"], ["docs/test_paths"]),
        (["Makefile", "examples/digits.py"], []),
        (["tests/pymc/test_models.py"], []),
        # several: the smallest distance counts
        (["tests/tensor/test_sort.py", OP],
         ["tensor/test_sort", "graph/test_op", "backends/llvm/test_jit"]),
        # a removed test module is not run
        (["tests/graph/test_removed.py"], []),
    ],
)  # fmt: skip
def test_the_nearest_modules_come_first(root, changed, modules):
    found = Suite(root, RUN).nearest(changed)
    assert found == [m if m.endswith(".py") else f"tests/{m}.py" for m in modules]


def test_what_is_wrong_with_the_map_is_said(root, capsys):
    def said(files, tests):
        (root / MAP).write_text(json.dumps({"files": files, "tests": tests}))
        return known_runs(root), capsys.readouterr().out

    assert known_runs(root) == {}
    assert capsys.readouterr().out == f"quick: there is no {MAP}: make map\n"
    files = sorted(name for name in FILES if name.startswith("phintys/"))
    tests = dict.fromkeys((name for name in FILES if "/test_" in name and "pymc" not in name), "0")
    tests["tests/test_dims.py"] = "2"
    runs, text = said(files, tests)
    assert (runs["tests/test_dims.py"], runs["tests/test_smoke.py"]) == ({files[1]}, set())
    assert not text
    runs, text = said([*files, "phintys/gone.py"], tests)
    assert text == f"quick: {MAP} is out of date (gone: phintys/gone.py): make map\n"
    runs, text = said(files[1:], {"tests/test_gone.py": "1"})
    assert runs == {"tests/test_gone.py": {files[1]}}
    assert " and 9 more): make map" in text


# ------------------------------------------------------------------------- changes


@pytest.fixture
def commit(root):
    """Makes a commit of all files."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
        identity += ["-c", "commit.gpgsign=false"]
        own = outside_repositories() | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", *identity, *arguments]
        subprocess.run(command, cwd=root, env=own, check=True, capture_output=True)

    def make(branch=None):
        if branch:
            git("switch", "-q", "-c", branch)
        git("add", "-A")
        git("commit", "-q", "--no-verify", "-m", "text")

    git("init", "-q")
    return make


def test_changes_are_those_since_main_and_uncommitted_ones(root, commit):
    commit()
    assert changed_files(root) == []  # there is no commit before it
    (root / OP).write_text("1")
    assert changed_files(root) == [OP]
    commit()
    assert changed_files(root) == [OP]  # those of the last commit
    (root / "phintys/with space.py").touch()
    assert changed_files(root) == ["phintys/with space.py"]
    commit("work")
    (root / SORT).unlink()
    commit()
    (root / CODE).write_text("1")
    assert changed_files(root) == [CODE, SORT, "phintys/with space.py"]


def test_names_in_any_encoding_and_dangling_links_are_files(root, commit):
    commit()
    name = os.fsdecode(b"tests/graph/\xff.txt")
    try:
        (root / name).touch()
        (root / "tests/graph/test_link.py").symlink_to("nowhere.py")
    except OSError as error:
        pytest.skip(f"the file system has no such files: {error}")
    assert changed_files(root) == ["tests/graph/test_link.py", name]
    modules = Suite(root, RUN).nearest(changed_files(root))
    assert modules == ["tests/graph/test_other.py", "tests/graph/test_op.py"]


def test_a_hook_of_git_changes_nothing(root, commit, monkeypatch, tmp_path_factory):
    """Git tells its hooks in which repository they run."""
    other = tmp_path_factory.mktemp("other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    commit()
    (root / OP).write_text("1")
    assert changed_files(root) == [OP]
    assert not list(other.iterdir())


def test_of_two_main_branches_the_one_that_is_ahead_counts(root, commit):
    commit()
    (root / OP).write_text("1")
    commit("upstream")
    run_git.git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    (root / SORT).write_text("1")
    commit("work")
    assert changed_files(root) == [SORT]


def test_a_repository_that_git_refuses_is_an_error(root, monkeypatch):
    (root / ".git").mkdir()
    with pytest.raises(SystemExit, match="git"):
        changed_files(root)


def test_without_a_repository_there_are_no_changes(root):
    assert changed_files(root) == []


def test_without_git_there_are_no_changes(root, monkeypatch):
    monkeypatch.setenv("PATH", str(root))
    assert shutil.which("git") is None
    assert changed_files(root) == []


# ------------------------------------------------------------------------- the run

MODULES = {
    "test_a.py": "def test_1(): pass\n\ndef test_2(): assert False, 'of 2'\n",
    "test_b.py": "import pytest\npytest.skip('of b', allow_module_level=True)\n",
    "inner/deep/test_c.py": "def test_3(three): assert three == 3\n\ndef test_4(): pass\n",
    "test_d.py": "import missing\n",
    "examples.py": "import missing\n",
}


#: fixtures of a folder
CONFTEST = "import pytest\n\n@pytest.fixture\ndef three(): return 3\n"


def run_modules(folder: Path, ticks: int) -> tuple[int, Record, str]:
    """Runs these modules with a clock that counts how often it is read."""
    (folder / "inner/deep").mkdir(parents=True)
    (folder / "inner/conftest.py").write_text(CONFTEST)
    for name, text in MODULES.items():
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --doctest-modules\n")
    program = f"""
        import itertools, sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from quick_run import run
        clock = itertools.count().__next__
        sys.exit(run({list(MODULES)}, {ticks}, Path("record"), clock))
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program)]
    environment = plain_environment()
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, read_record(folder / "record"), done.stdout


def test_modules_are_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")  # for this run, not for those of tests
    status, record, output = run_modules(tmp_path, 100)
    assert status == 1
    assert "of 2" in output and "No module named 'missing'" in output
    assert "fixture 'three' not found" not in output
    empty = {"test_b.py": 0, "test_d.py": 0, "examples.py": 0}
    assert record.collected == {"test_a.py": 2, "inner/deep/test_c.py": 2, **empty}
    inner = ["inner/deep/test_c.py::test_3", "inner/deep/test_c.py::test_4"]
    assert record.began == ["test_a.py::test_1", "test_a.py::test_2", *inner]
    assert summary(list(MODULES), [record], 1).endswith("nothing is left")


def test_no_test_starts_after_the_deadline(tmp_path):
    status, record, output = run_modules(tmp_path, 2)  # read before the module and the test
    assert (status, record.began) == (0, ["test_a.py::test_1"])
    assert "1 passed" in output
    assert record.collected == {"test_a.py": 2}  # the others were not even imported


def test_processes_that_fail_or_end_are_reported(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_a.py").write_text("import os\n\ndef test_1(): os._exit(7)\n")
    (tmp_path / "test_b.py").write_text("def test_3(): pass\n\ndef test_4(): pass\n")
    (tmp_path / "test_c.py").write_text("def test_5(): pass\n")
    modules, now = ["test_a.py", "test_b.py", "test_c.py"], time.time()
    assert run_all(tmp_path, modules[1:], now, now + 1000) == 0
    assert run_all(tmp_path, modules, now, now + 1000) == 1
    output = capfd.readouterr().out
    assert "2 passed" in output and "1 passed" in output
    first, second, third = re.findall("^quick: (.*)$", output, re.MULTILINE)
    assert first.startswith("ran 3 tests of 2 modules") and first.endswith("nothing is left")
    assert second.startswith("a process ended with status 7; its last test alone: ")
    assert second.endswith("python -m pytest test_a.py::test_1")
    # the first process had the first and the third module
    assert third.startswith("ran 3 tests of 2 modules")
    assert third.endswith("left 1 module near the changed files: make test")


def test_a_process_that_goes_on_is_killed():
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(command) as process:
        assert ended_by(process, time.time()) != 0
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(5)"]) as process:
        assert ended_by(process, time.time() + 600) == 5


def test_what_is_left_is_said():
    records = [Record({"a.py": 3, "b.py": 0}, ["a.py::f[x::y]"]), Record({"c.py": 1}, ["c.py::g"])]
    text = "quick: ran 2 tests of 2 modules in 58 s; "
    assert summary(["a.py", "c.py", "b.py", "d.py"], records, 58.3) == (
        f"{text}left 1 module near the changed files and 2 tests of a module that it "
        "began: make test"
    )
    assert summary(["a.py", "c.py"], records, 58) == (
        f"{text}left 2 tests of a module that it began: make test"
    )


def test_the_last_test_of_a_process_that_ended_is_named():
    assert ended(-11, Record({}, [])) == "quick: a process ended with status -11"
    assert ended(-11, Record({}, ["a.py::f[1]"])).endswith("python -m pytest 'a.py::f[1]'")
