"""The settings of older systems: their environment variables and files, under their names."""

from __future__ import annotations

import os

import pytest
from older_names import ROOT, installed, python

from phintys.config import Config
from phintys.config.sources import Given, given_values, rc_files

SYSTEMS = ("pytensor", "aesara", "theano")
SHOW = "from phintys import config; print(config.floatX, config.mode, config.threads)"


@pytest.mark.parametrize("system", SYSTEMS)
def test_they_are_read_under_the_name(system, tmp_path):
    """The environment comes before files, and what is given for this package before the others."""
    (tmp_path / f".{system}rc").write_text("[global]\nfloatX = float16\nmode = JAX\nthreads = 2\n")
    variables = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    assert installed(SHOW, system, **variables) == "float16 JAX 2"
    variables[f"{system.upper()}_FLAGS"] = "floatX=float32"
    assert installed(SHOW, system, **variables) == "float32 JAX 2"
    (tmp_path / ".phintysrc").write_text("floatX = float64\nmode = NUMBA\n")
    assert installed(SHOW, system, **variables) == "float32 NUMBA 2"
    variables["PHINTYS_FLAGS"] = "floatX=float64"
    assert installed(SHOW, system, **variables) == "float64 NUMBA 2"


@pytest.mark.parametrize("system", SYSTEMS)
def test_files_that_a_variable_lists(system, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("floatX = float32\nthreads = 2\n")
    b.write_text("[DebugMode]\npatience = 3\n[global]\nthreads = 4\n")
    variable, both = f"{system.upper()}RC", os.pathsep.join(map(str, (a, tmp_path / "no", b)))
    assert rc_files({variable: both}, system) == [a, tmp_path / "no", b]
    found = given_values({variable: both}, system)
    assert found["threads"] == Given("4", str(b))
    assert found["DebugMode__patience"].value == "3"
    assert installed(SHOW, system, **{variable: both}) == "float32 FAST_RUN 4"
    assert rc_files({variable: ""}, system) == []


def test_they_are_not_read_without_the_name(tmp_path):
    (tmp_path / ".pytensorrc").write_text("mode = JAX\n")
    flags = {f"{system.upper()}_FLAGS": "floatX=float32,nothing=1" for system in SYSTEMS}
    done = python("-W", "error", "-c", SHOW, **flags, HOME=str(tmp_path))
    assert (done.stdout.strip(), done.stderr) == ("float64 FAST_RUN 1", "")
    assert installed(SHOW, "aesara", PYTENSOR_FLAGS="floatX=float32") == "float64 FAST_RUN 1"


def test_unknown_names_are_warnings_that_name_the_source(tmp_path):
    (tmp_path / ".pytensorrc").write_text("[gcc]\nclang = 1\n")
    code = "import phintys.compat; phintys.compat.install('pytensor'); " + SHOW
    flags = "floatx=float32,threads=2"
    done = python("-c", code, PYTENSOR_FLAGS=flags, HOME=str(tmp_path), USERPROFILE=str(tmp_path))
    assert done.stdout.strip() == "float64 FAST_RUN 2"
    message = "PYTENSOR_FLAGS: there is no setting 'floatx'. Did you mean 'floatX'?"
    assert f"UserWarning: {message}" in done.stderr
    file = tmp_path / ".pytensorrc"
    assert f"UserWarning: {file}: there is no setting 'gcc__clang'." in done.stderr
    assert "<string>:1: UserWarning" in done.stderr, "it points at the call"


def test_settings_without_effect_say_what_takes_their_place():
    code = "import phintys.compat; phintys.compat.install('pytensor')"
    done = python("-c", code, PYTENSOR_FLAGS="blas__ldflags=-lblas,device=cpu")
    assert done.returncode == 0
    assert done.stderr.count("UserWarning") == 1
    assert "config.blas__ldflags has no effect: matrix products call" in done.stderr


def test_illegal_values_name_their_source():
    code = "import phintys.compat; phintys.compat.install('pytensor')"
    done = python("-c", code, PYTENSOR_FLAGS="floatX=float31")
    assert "ValueError: PYTENSOR_FLAGS: " in done.stderr.splitlines()[-1]
    assert "float31" in done.stderr.splitlines()[-1]


def test_values_in_force_stay_inside_change_flags():
    config = Config()
    with config.change_flags(floatX="float16"):
        config.use({"floatX": Given("float32", "PYTENSOR_FLAGS")})
        assert config.floatX == "float16"
    assert config.floatX == "float32"


def test_settings_that_are_added_later_find_their_value():
    from phintys.config import IntParam

    config = Config()
    config.use({"my__depth": Given("4", "PYTENSOR_FLAGS")})
    config.add("my__depth", "how deep", IntParam(3), in_c_key=False)
    assert config.my__depth == 4


def test_a_program_and_its_processes_read_them():
    code = "import pytensor; print(pytensor.config.floatX)"
    done = python("-m", "phintys.compat", "run", "-c", code, PYTENSOR_FLAGS="floatX=float32")
    assert done.stdout.strip() == "float32"
    assert ROOT in python("-c", "import phintys; print(phintys.__file__)").stdout
