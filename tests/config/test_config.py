"""Settings: their sources, kinds, those of other systems, and what they do (rows K)."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import Mode, get_mode
from phintys.config import (
    BoolParam,
    Config,
    ConfigAccessViolation,
    ConfigParam,
    EnumStr,
    FloatParam,
    IntParam,
    StrParam,
    TypedParam,
    cache_directory,
    config,
)
from phintys.config.older import OLDER
from phintys.config.sources import Given, given_values, rc_files, values_of_files
from phintys.rewriting.database import optdb
from phintys.rewriting.rewriter import node_rewriter
from phintys.rewriting.walk import in2out

# -------------------------------------------------------------------------- sources


def values(**environment):
    return {name: given.value for name, given in given_values(environment).items()}


def test_the_environment_beats_files_and_later_files_earlier_ones(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text(
        "# comment\n[global]\nfloatX = float32\nmode=C\n[gcc]\ncxxflags = -O1 -g\n; also\n"
    )
    b.write_text("mode = JAX\n\n[DebugMode]\npatience=2\n")
    both = os.pathsep.join(map(str, (a, tmp_path / "absent", b)))
    expected = {"floatX": "float32", "mode": "JAX", "gcc__cxxflags": "-O1 -g"}
    assert values(PHINTYSRC=both) == {**expected, "DebugMode__patience": "2"}
    flags = "gcc.cxxflags=-O3, mode=py"
    found = values(PHINTYSRC=both, PHINTYS_FLAGS=flags)
    assert found["gcc__cxxflags"] == "-O3"
    assert (found["mode"], found["floatX"]) == ("py", "float32")
    own = Config(given=given_values({"PHINTYSRC": str(a), "PHINTYS_FLAGS": "mode=NUMBA"}))
    assert (own.floatX, own.mode, own.gcc__cxxflags) == ("float32", "NUMBA", "-O1 -g")


def test_the_file_in_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert rc_files({}) == [tmp_path / ".phintysrc"]
    assert values() == {}
    (tmp_path / ".phintysrc").write_text("threads = 2")
    assert values() == {"threads": "2"}
    assert values(PHINTYSRC="") == {}
    assert rc_files({"PHINTYSRC": "~/x"}) == [tmp_path / "x"]


def test_faults_of_files_are_located(tmp_path):
    path = tmp_path / "rc"
    path.write_text("\nfloatX float32\n")
    with pytest.raises(ValueError, match="rc, line 2: write name = value, not 'floatX float32'"):
        values_of_files([path])
    path.write_bytes(b"floatX = \xff")
    with pytest.raises(ValueError, match="rc is not a text file in UTF-8"):
        values_of_files([path])
    with pytest.raises(ValueError, match=r"rc: 'six' is not a legal value of config.threads"):
        Config(given={"threads": Given("six", "rc")})


def test_unknown_names_are_reported_when_the_import_is_done(tmp_path):
    path = tmp_path / "rc"
    path.write_text("[my]\nspeed=1\nfloatx=float32\n")
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    import phintys\n"
        "print(*(str(w.message) for w in seen), sep='\\n')\n"
    )
    env = {**os.environ, "PHINTYSRC": str(path), "PHINTYS_FLAGS": "mdoe=JAX,allow_gc=False"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert sorted(out.stdout.splitlines()) == sorted(
        [
            "PHINTYS_FLAGS: there is no setting 'mdoe'. Did you mean 'mode'?",
            f"{path}: there is no setting 'my__speed'.",
            f"{path}: there is no setting 'my__floatx'. Did you mean 'floatX'?",
            "config.allow_gc has no effect: memory is planned when a function is compiled, and "
            "nothing is kept between calls.",
        ]
    ), out.stderr


# ---------------------------------------------------------------------------- kinds


def test_kinds_of_values():
    own = Config("a__flag=yes,a__number=3,a__size=1e3,a__text=7,a__level=high,a__typed=2,late=9")
    own.add("a__flag", "a bool", BoolParam(False), in_c_key=False)
    own.add("a__number", "an integer", IntParam(1, lambda n: n < 5))
    own.add("a__size", "a float", FloatParam(0.5))
    own.add("a__text", "a text", StrParam(""))
    own.add("a__level", "a choice", EnumStr("low", ["medium", "high"]))
    own.add("a__typed", "as its default", TypedParam(1.5, mutable=False))
    own.add("a__made", "computed", ConfigParam(lambda: 4, apply=lambda v: v * 2))
    found = (own.a__flag, own.a__number, own.a__size, own.a__text, own.a__level, own.a__typed)
    assert found == (True, 3, 1000.0, "7", "high", 2.0)
    for value, expected in (("False", False), ("on", True), (0, False), (True, True)):
        assert BoolParam(True).apply(value) is TypedParam(True).apply(value) is expected
    for kind in (BoolParam(True), TypedParam(False)):
        for wrong in ("perhaps", 2, None):
            with pytest.raises(ValueError, match="write True or False"):
                kind.apply(wrong)
    assert own.a__made == 8
    own.a__made = "x"
    assert own.a__made == "xx"
    for name, value in [
        ("a__flag", "perhaps"),
        ("a__number", 5),
        ("a__number", "five"),
        ("a__level", "loud"),
    ]:
        with pytest.raises(ValueError, match=f"is not a legal value of config.{name}"):
            setattr(own, name, value)
    with pytest.raises(ConfigAccessViolation, match="a__typed cannot be changed"):
        own.a__typed = 3.0
    with pytest.raises(ValueError, match="exists already"):
        own.add("a__flag", "", BoolParam(True))
    with pytest.raises(TypeError, match="needs a ConfigParam"):
        own.add("b", "")
    with pytest.warns(UserWarning, match="no setting 'late'"):
        own.warn_unused_flags()
    names = [name for name, _ in own.of_code(own.values())]
    assert "a__number" in names
    assert "a__flag" not in names
    assert "a__level (str) = 'high'\n    a choice" in str(own)


@pytest.mark.parametrize("system", ["phintys", "pytensor"])
@pytest.mark.parametrize("flag", ["floatX", "floatX float32", "compiledir"])
def test_a_flag_without_a_value_is_named(system, flag):
    variable = f"{system.upper()}_FLAGS"
    flags = {"HOME": "/", variable: f"{flag},mode=JAX,"}
    with pytest.warns(UserWarning, match=f"{variable}: '{flag}' has no value; write NAME=VALUE"):
        given = given_values(flags, system)
    assert given == {"mode": Given("JAX", variable)}


# ---------------------------------------------------------- settings of other systems


def test_settings_without_effect_are_accepted_with_a_word():
    own = Config()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for setting in OLDER:
            setattr(own, setting.name, setting.default)
    with pytest.warns(UserWarning, match="config.openmp has no effect: use threads"):
        own.openmp = "True"
    assert own.openmp is True
    with warnings.catch_warnings():  # once only
        warnings.simplefilter("error")
        own.openmp = True
    message = "compute_test_value has no effect: there are no test values"
    with pytest.warns(UserWarning, match=message), own.change_flags(compute_test_value="raise"):
        assert own.compute_test_value == "raise"
    assert own.compute_test_value == "off"
    assert "openmp" not in own.values()
    assert "openmp" not in str(own)
    assert len({s.name for s in OLDER} & set(own.values())) == 0


#: what PyTensor 3.3 has; blas and scan names are there since its modules add them
PYTENSORS = """
    floatX warn_float64 cast_policy print_global_stats unpickle_function mode linker allow_gc
    optimizer optimizer_verbose optimizer_verbose_ignore compiler_verbose on_opt_error
    on_unused_input cxx gcc_version_str gcc__cxxflags nocleanup cmodule__warn_no_version
    cmodule__remove_gxx_opt cmodule__compilation_warning cmodule__preload_cache
    cmodule__age_thresh_use cmodule__debug compile__wait compile__timeout tensor__cmp_sloppy
    lib__amdlibm tensor__insert_inplace_optimizer_validate_nb traceback__limit
    traceback__compile_limit exception_verbosity check_input NanGuardMode__nan_is_error
    NanGuardMode__inf_is_error NanGuardMode__big_is_error NanGuardMode__action
    DebugMode__patience DebugMode__check_c DebugMode__check_py DebugMode__check_finite
    DebugMode__check_strides DebugMode__warn_input_not_reused
    DebugMode__check_preallocated_output DebugMode__check_preallocated_output_ndim
    profiling__time_thunks profiling__n_apply profiling__n_ops profiling__output_line_width
    profiling__min_memory_size profiling__min_peak_memory profiling__destination
    profiling__debugprint profiling__ignore_first_call on_shape_error openmp
    openmp_elemwise_minsize optimizer_excluding optimizer_including optimizer_requiring
    optdb__position_cutoff optdb__max_use_ratio cycle_detection check_stack_trace profile
    profile_optimizer profile_memory vm__lazy numba__fastmath numba__cache compiledir_format
    base_compiledir compiledir generated_src_dir blas__ldflags blas__check_openmp scan__allow_gc
    scan__allow_output_prealloc
"""


def test_every_setting_of_pytensor_has_a_place():
    assert [name for name in PYTENSORS.split() if not hasattr(config, name)] == []


# ------------------------------------------------------------------------ what they do


def test_linker_and_optimizer_of_the_default_mode():
    x = pt.dvector("x")
    with config.change_flags(linker="py", optimizer="None"):
        f = phintys.function([x], x * 1)
        assert f.maker.linker.name == "py"
        assert len(f.maker.fgraph.apply_nodes) == 1
        assert get_mode("FAST_RUN").linker.name == "llvm"
        assert get_mode("Mode").linker.name == "py"
    with config.change_flags(optimizer="fast"), pytest.raises(ValueError, match="no optimizer"):
        Mode("py")
    assert len(phintys.function([x], x * 1, mode=Mode("py")).maker.fgraph.apply_nodes) == 0


def test_which_rewrites_run():
    x = pt.dvector("x")

    def ops():
        graph = phintys.function([x], pt.log(1 + pt.exp(x)), mode="FAST_COMPILE").maker.fgraph
        return {str(node.op) for node in graph.apply_nodes}

    with config.change_flags(optimizer_excluding="stabilize"):
        without = ops()
    assert "Softplus" not in without
    with config.change_flags(optimizer_excluding="stabilize", optimizer_including="stabilize"):
        assert ops() == without
    with config.change_flags(optimizer_requiring="absent"):
        assert "Exp" in ops()
    with config.change_flags(optdb__position_cutoff=0.0):
        assert "Exp" in ops()


def test_verbose_rewriting_can_leave_out_names(capsys):
    @node_rewriter([pt.exp])
    def noisy(fgraph, node):
        return [pt.expm1(node.inputs[0]) + 1]

    x = pt.dvector("x")
    mode = Mode("py", "o1").register((in2out(noisy), 0.5))
    with config.change_flags(optimizer_verbose=True):
        phintys.function([x], pt.exp(x), mode=mode)
        assert "rewrite noisy" in capsys.readouterr().out
        with config.change_flags(optimizer_verbose_ignore="other,noisy"):
            phintys.function([x], pt.exp(x), mode=mode)
        assert "rewrite noisy" not in capsys.readouterr().out


def test_nodes_without_origin(capsys):
    def lost(fgraph, node):
        new = pt.expm1(node.inputs[0])
        new.owner.origin = None
        return [new + 1]

    x = pt.dvector("x")
    mode = Mode("py", "o1").register((in2out(node_rewriter([pt.exp])(lost)), 0.5))
    with config.change_flags(check_stack_trace="log"):
        phintys.function([x], pt.exp(x), mode=mode)
    assert "has no known origin" in capsys.readouterr().err
    with config.change_flags(check_stack_trace="warn"), pytest.warns(UserWarning, match="origin"):
        phintys.function([x], pt.exp(x), mode=mode)
    with (
        config.change_flags(check_stack_trace="raise"),
        pytest.raises(Exception, match="has no known origin"),
    ):
        phintys.function([x], pt.exp(x), mode=mode)


def note_of(**settings):
    """The note of a node that fails, in mode FAST_COMPILE."""
    x, y = pt.dmatrix("x"), pt.dvector("y")
    f = phintys.function([x, y], x @ y, mode="FAST_COMPILE")
    with config.change_flags(**settings), pytest.raises(ValueError) as info:
        f(np.arange(6.0).reshape(2, 3), [1.0, 2.0])
    return "\n".join(info.value.__notes__)


def test_how_much_an_error_says():
    low, medium, high = (note_of(exception_verbosity=v) for v in ("low", "medium", "high"))
    assert "x = float64 of shape (2, 3)\n" in low
    assert "test_config.py" in low
    assert "x (type Matrix(float64, shape=(?, ?))) = float64 of shape (2, 3), strides" in medium
    assert "value [[0. 1. 2.]" not in medium
    assert "value [[0. 1. 2.]" in high
    assert "[id A]" in high
    assert "test_config.py" not in note_of(traceback__limit=0)


def test_functions_may_stay_pickled():
    x = pt.dvector("x")
    payload = pickle.dumps({"f": phintys.function([x], x + 1), "n": 3})
    with config.change_flags(unpickle_function=False):
        assert pickle.loads(payload) == {"f": None, "n": 3}
    assert pickle.loads(payload)["f"]([1.0]).tolist() == [2]


def test_names_of_the_cache_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("PHINTYS_CACHE_DIR", raising=False)
    with config.change_flags(base_compiledir=str(tmp_path / "base")):
        assert cache_directory() == tmp_path / "base"
        with config.change_flags(compiledir=str(tmp_path / "own")):
            assert cache_directory() == tmp_path / "own"


def test_tolerances_can_be_raised():
    a, b = np.ones(2), np.full(2, 1 + 3e-5)
    assert not pt.dvector.values_eq_approx(a, b)
    with config.change_flags(tensor__cmp_sloppy=1):
        assert pt.dvector.values_eq_approx(a, b)


def test_settings_that_do_not_change_code_are_not_in_its_key(monkeypatch):
    monkeypatch.setattr(optdb, "_own_version", optdb.version)  # whatever other tests registered
    x = pt.dvector("x")
    keys = []
    for settings in ({}, {"DebugMode__patience": 3, "profiling__n_ops": 2}, {"threads": 2}):
        with config.change_flags(**settings):
            keys.append(phintys.function([x], x + 1).maker.key)
    assert keys[0] == keys[1] != keys[2]
