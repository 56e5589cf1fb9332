"""``python -m phintys.compat enable``: a distribution of an older name in an environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from older_names import files_of, new_environment, output, python, site_packages

from phintys.compat import distribution
from phintys.compat.__main__ import main

COMPAT = ("-m", "phintys.compat")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory) -> Path:
    """The interpreter of an environment in which nothing is enabled yet."""
    return new_environment(tmp_path_factory.mktemp("environments") / "new")


@pytest.fixture
def enabled(interpreter):
    output(*COMPAT, "enable", "pytensor", executable=interpreter)
    yield interpreter
    output(*COMPAT, "disable", "pytensor", executable=interpreter)


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """An empty folder that takes the place of ``site-packages``."""
    path = tmp_path / "Lib" / "site-packages"
    path.mkdir(parents=True)
    monkeypatch.setattr(distribution, "site_packages", lambda: path)
    return path


def test_programs_find_the_package_and_its_version(enabled):
    code = """
import importlib.metadata, sys, threading
results = []
def load():
    import pytensor.tensor as pt
    results.append(pt)
threads = [threading.Thread(target=load) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
import phintys
assert len(results) == 4 and all(pt is phintys.tensor for pt in results)
assert sys.modules["pytensor"] is phintys
from pytensor.graph.basic import Apply
print(importlib.metadata.version("pytensor"), importlib.metadata.requires("pytensor"))
"""
    assert output("-c", code, executable=enabled) == "3.3.8+phintys ['phintys']"


def test_modules_stand_for_themselves_too(enabled):
    """Where an import finds the file of a module, before the package has handed over."""
    code = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.find_spec("pytensor")
assert "phintys" not in sys.modules, "to look for the package costs nothing"
path = Path(spec.origin).with_name("tensor") / "linalg" / "__init__.py"
spec = importlib.util.spec_from_file_location("pytensor.tensor.linalg", path)
sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
import phintys.tensor.linalg
print(sys.modules["pytensor.tensor.linalg"] is phintys.tensor.linalg)
"""
    assert output("-c", code, executable=enabled) == "True"


def test_programs_that_use_the_own_name_pay_nothing(enabled):
    code = "import sys, phintys; print({'phintys.compat', 'pytensor'} & set(sys.modules))"
    assert output("-c", code, executable=enabled) == "set()"
    assert [name for name in files_of(enabled) if name.endswith(".pth")] == ["base.pth"]


def test_the_doctor_says_what_an_import_finds(interpreter, tmp_path):
    def line(*command, **variables):
        code = "from phintys.__main__ import older_package; print(older_package('pytensor'))"
        return output(*command, "-c", code, executable=interpreter, **variables)

    assert line() == "not installed"
    assert line(*COMPAT, "run").startswith("not installed, import finds phintys: ")
    output(*COMPAT, "enable", "pytensor", executable=interpreter)
    assert line().startswith("3.3.8+phintys, import finds phintys: ")
    output(*COMPAT, "disable", "pytensor", executable=interpreter)
    (tmp_path / "pytensor").mkdir()
    (tmp_path / "pytensor" / "__init__.py").write_text("value = 1")
    (tmp_path / "pytensor-3.4.0.dist-info").mkdir()
    (tmp_path / "pytensor-3.4.0.dist-info" / "METADATA").write_text(
        "Name: pytensor\nVersion: 3.4.0"
    )
    found = line(PYTHONPATH=str(tmp_path))
    assert found.startswith(f"3.4.0, import finds another package than phintys: {tmp_path}")


def test_nothing_is_left_behind(interpreter):
    before = files_of(interpreter)
    for system in ("pytensor", "theano"):
        output(*COMPAT, "enable", system, executable=interpreter)
        environment = {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": ""}
        code = f"import {system}.tensor"
        output("-c", code, executable=interpreter, **environment)
        output("-O", "-c", code, executable=interpreter, **environment)
        assert any(f"{system}/__pycache__" in name for name in files_of(interpreter))
        out = output(*COMPAT, "disable", system, executable=interpreter)
        assert out == f"{system} is removed."
    assert files_of(interpreter) == before
    assert output(*COMPAT, "disable", "pytensor", executable=interpreter).endswith("not installed.")


def test_the_version_can_be_given_and_changed(site):
    assert distribution.enable("pytensor") == "3.3.8+phintys"
    assert distribution.enable("pytensor", "3.4.0rc1") == "3.4.0rc1+phintys"
    found = distribution.installed("pytensor")
    assert found is not None and found.version == "3.4.0rc1+phintys"
    assert [path.name for path in site.glob("*.dist-info")] == [
        "pytensor-3.4.0rc1+phintys.dist-info"
    ]
    assert distribution.enable("pytensor", "3.4+phintys") == "3.4+phintys"
    assert distribution.disable("pytensor") is True
    assert list(site.iterdir()) == []
    assert distribution.disable("pytensor") is False


@pytest.mark.parametrize("version", ["", "three", "3.3.8+other", "3..3", "3.3\n", "-1", "3/../x"])
def test_illegal_versions(site, version):
    with pytest.raises(ValueError, match="is not a version: write numbers and dots"):
        distribution.enable("pytensor", version)
    assert list(site.iterdir()) == []


def test_a_real_installation_is_refused(site, capsys):
    """Also one without metadata; it stays as it is, and the message says how to go back."""
    (site / "pytensor").mkdir()
    (site / "pytensor" / "__init__.py").write_text("value = 1")
    with pytest.raises(FileExistsError, match=r"site-packages/pytensor is installed in "):
        distribution.enable("pytensor")
    info = site / "pytensor-3.3.8.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pytensor\nVersion: 3.3.8\n")
    (info / "INSTALLER").write_text("pip\n")
    (info / "RECORD").write_text("pytensor/__init__.py,,\n")
    before = sorted(site.rglob("*"))
    assert main(["enable", "pytensor"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("pytensor 3.3.8 is installed in ")
    assert "`pip uninstall pytensor`. To go back: `python -m phintys.compat disable" in message
    assert main(["disable", "pytensor"]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"pytensor 3.3.8 in {site} was not installed by enable: ")
    assert sorted(site.rglob("*")) == before
    assert main(["enable", "aesara"]) == 0


def test_what_is_written_is_plain_and_recorded(site):
    """Nothing that another system lacks: no link, no ``.pth`` file, paths with ``/``; each file is
    in the record, with its hash."""
    import hashlib
    from base64 import urlsafe_b64encode

    distribution.enable("pytensor")
    files = {p.relative_to(site).as_posix(): p for p in site.rglob("*") if p.is_file()}
    assert not any(path.is_symlink() or path.suffix == ".pth" for path in site.rglob("*"))
    info = "pytensor-3.3.8+phintys.dist-info"
    rows = [row.split(",") for row in (site / info / "RECORD").read_text().splitlines()]
    assert {row[0] for row in rows} == files.keys()
    for name, digest, size in rows:
        if name == f"{info}/RECORD":
            assert (digest, size) == ("", "")
            continue
        content = files[name].read_bytes()
        coded = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        assert (digest, int(size)) == (f"sha256={coded}", len(content))
    assert {"pytensor/py.typed", "pytensor/__init__.pyi", f"{info}/WHEEL"} <= files.keys()
    assert (site / info / "INSTALLER").read_text() == "phintys\n"
    assert (site / info / "top_level.txt").read_text() == "pytensor\n"


def test_an_interrupted_installation_can_be_removed(site, monkeypatch):
    written = []

    def write(path, content):
        written.append(path)
        if len(written) == 50:
            raise KeyboardInterrupt
        with path.open("wb") as file:
            return file.write(content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write)
        with pytest.raises(KeyboardInterrupt):
            distribution.enable("pytensor")
    assert (site / "pytensor").exists()
    assert distribution.disable("pytensor") is True
    assert list(site.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["enable"],
        ["enable", "pytensor", "3.4"],
        ["enable", "pytensor", "--version"],
        ["enable", "pytensor", "--version", "3.4", "x"],
        ["disable"],
        ["disable", "pytensor", "x"],
    ],
)
def test_usage_of_enable(arguments, site, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage: ")
    assert list(site.iterdir()) == []


@pytest.mark.parametrize("command", ["enable", "disable"])
def test_unknown_names_of_distributions(command, site, capsys):
    assert main([command, "pytensors"]) == 1
    assert "Did you mean 'pytensor'?" in capsys.readouterr().err


@pytest.mark.rest
@pytest.mark.needs("pip")
def test_pip_knows_it(tmp_path):
    """It fulfils what a client asks for, and pip can remove it."""
    interpreter = new_environment(tmp_path / "env", [("client", "1.0")])
    before = files_of(interpreter)
    site = site_packages(interpreter)
    with (site / "client-1.0.dist-info" / "METADATA").open("a") as file:
        file.write("Requires-Dist: pytensor>=3.3.6,<3.4\n")
    output(*COMPAT, "enable", "pytensor", executable=interpreter)

    def pip(*arguments):
        command = [*PIP, "--python", str(interpreter), *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    checked = pip("check")
    assert "pytensor" not in checked.stdout
    listed = pip("list", "--path", str(site)).stdout
    assert "pytensor 3.3.8+phintys" in " ".join(listed.split())
    kept = pip("install", "--no-index", "--dry-run", "pytensor>=3.3.6,<3.4")
    assert "already satisfied" in kept.stdout and kept.returncode == 0
    newer = pip("install", "--no-index", "--dry-run", "pytensor>=3.4")
    assert newer.returncode != 0, "a client that needs a newer one replaces it"
    assert pip("uninstall", "-y", "pytensor").returncode == 0
    assert files_of(interpreter) == before
    output(*COMPAT, "enable", "pytensor", "--version", "3.9", executable=interpreter)
    assert "client 1.0 has requirement pytensor<3.4,>=3.3.6" in pip("check").stdout
    assert python("-c", "import pytensor", executable=interpreter).returncode == 0
