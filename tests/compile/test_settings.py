"""Settings, modes, linkers, shared variables on their own (rows K, M, S of the feature table)."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import Mode, get_default_mode, get_mode, shared
from phintys.compile.linker import Linker, PerformLinker, get_linker, register_linker
from phintys.compile.mode import register_mode, register_optimizer
from phintys.config import Config, Setting, config
from phintys.config.params import IntParam
from phintys.rewriting.database import RewriteDatabaseQuery

# ------------------------------------------------------------------------- settings


def test_flags_of_the_environment():
    code = "from phintys.config import config; print(config.floatX, config.mode, config.profile)"
    env = {**os.environ, "PHINTYS_FLAGS": "floatX=float32, mode=FAST_COMPILE,profile=yes"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.stdout.split() == ["float32", "FAST_COMPILE", "True"]


def test_sections_of_names():
    assert Config("gcc.cxxflags=-O1").gcc__cxxflags == "-O1"
    assert Config("optdb__max_use_ratio=3").optdb__max_use_ratio == 3.0


def test_change_flags_is_undone():
    with pytest.raises(RuntimeError), config.change_flags(floatX="float32"):
        assert config.floatX == "float32"
        raise RuntimeError
    assert config.floatX == "float64"

    @config.change_flags(floatX="float16")
    def decorated():
        return config.floatX

    assert [decorated(), decorated(), config.floatX] == ["float16", "float16", "float64"]


def test_change_flags_changes_all_or_nothing():
    with pytest.raises(ValueError, match="not a legal value"):
        config.change_flags(floatX="float32", exception_verbosity="loud").__enter__()
    assert config.floatX == "float64"


def test_own_settings():
    own = Config()
    own.add(Setting("depth", 3, "how deep"))
    assert own.depth == 3
    own.depth = "5"
    assert own.depth == 5
    assert "how deep" in str(own)
    with pytest.raises(ValueError, match="exists already"):
        own.add(Setting("depth", 4, ""))


def test_compiled_functions_do_not_react_to_settings():
    x = pt.dscalar("x")
    f = phintys.function([x], x / 2)
    with config.change_flags(floatX="float32", mode="FAST_COMPILE"):
        assert f(3.0).dtype == np.float64
        assert phintys.function([x], x).maker.linker.name == "py"


# ---------------------------------------------------------------------------- modes


@pytest.mark.parametrize("name", ["FAST_RUN", "fast_run", "FAST_COMPILE", "CVM", "NUMPY"])
def test_names_of_modes(name: str):
    assert get_mode(name) is get_mode(name.upper())


def test_the_default_mode():
    assert get_default_mode() is get_mode("FAST_RUN")
    with config.change_flags(mode="FAST_COMPILE"):
        assert get_default_mode().linker.name == "py"


def test_derived_modes_are_new_objects():
    mode = get_mode("FAST_RUN")
    for new in (mode.including("a"), mode.excluding("fusion"), mode.requiring("b"), mode.clone()):
        assert new is not mode
        assert new.linker == mode.linker
    assert mode.excluding("fusion").provided_optimizer != mode.provided_optimizer


def test_excluded_rewrites_do_not_run():
    x = pt.dvector("x")
    plain = phintys.function([x], pt.exp(x * 1), mode="FAST_COMPILE")
    kept = phintys.function(
        [x], pt.exp(x * 1), mode=Mode("py", RewriteDatabaseQuery(include=["minimum_compile"]))
    )
    assert len(plain.maker.fgraph.apply_nodes) < len(kept.maker.fgraph.apply_nodes)


@pytest.mark.parametrize("optimizer", [None, "None", "merge", "o1", "o2", "o3", "o4", "fast_run"])
@pytest.mark.parametrize("linker", ["py", "llvm", "cvm", "vm", "c|py", "auto"])
def test_pairs_of_linker_and_optimizer(linker: str, optimizer: Any):
    x = pt.dvector("x")
    f = phintys.function([x], (pt.exp(x) / pt.exp(x)).sum() + x.max(), mode=Mode(linker, optimizer))
    assert f([1.0, 2.0]) == pytest.approx(4.0)


def test_modes_are_pickled():
    mode = get_mode("FAST_RUN").excluding("fusion")
    again = pickle.loads(pickle.dumps(mode))
    assert again.linker == mode.linker
    assert again.provided_optimizer == mode.provided_optimizer


def test_taken_names():
    with pytest.raises(ValueError, match="already"):
        register_mode("fast_run", get_mode("FAST_RUN"))
    with pytest.raises(ValueError, match="already"):
        register_optimizer("o1", RewriteDatabaseQuery(include=[]))
    with pytest.raises(ValueError, match="already"):
        register_linker("py", PerformLinker())


def test_a_linker_of_ones_own():
    class Counting(PerformLinker):
        name = "counting"
        runs = 0

        def run(self, fgraph: Any):
            Counting.runs += 1
            return super().run(fgraph)

    register_linker("counting", Counting())
    assert isinstance(get_linker("counting"), Linker)
    x = pt.dvector("x")
    f = phintys.function([x], x + 1, mode=Mode("counting"))
    np.testing.assert_array_equal(f([1.0]), [2.0])
    assert Counting.runs == 1


# ----------------------------------------------------------------- shared variables


def test_shared_types():
    assert shared(np.ones((1, 2))).type.shape == (None, None)  # even for length 1
    assert shared(np.ones((1, 2)), shape=(1, None)).type.shape == (1, None)
    assert shared(1.5).type.dtype == "float64"
    assert shared(np.float32(1)).type.dtype == "float32"
    assert not hasattr(shared([1.0, 2.0]).type, "ndim")  # a list is a generic object


def test_values_are_copied():
    value = np.zeros(2)
    s = shared(value)
    value[:] = 1
    s.get_value()[:] = 2
    assert s.get_value().tolist() == [0, 0]
    s.set_value(value)
    value[:] = 3
    assert s.get_value().tolist() == [1, 1]


def test_borrowed_values_are_not():
    value = np.zeros(2)
    s = shared(value, borrow=True)
    value[:] = 1
    assert s.get_value(borrow=True) is value
    s.get_value(borrow=True)[:] = 2
    assert s.get_value().tolist() == [2, 2]


def test_set_value_converts_without_loss():
    s = shared(np.zeros(2, "float32"))
    s.set_value(np.ones(3, "int8"))
    assert s.get_value().dtype == np.float32
    with pytest.raises(TypeError):
        s.set_value(np.full(2, 0.1))
    assert s.get_value().tolist() == [1, 1, 1]


@pytest.mark.parametrize("s", [shared(np.arange(3.0), "S"), shared(2.0, "S")])
def test_a_tensor_has_a_value(s):
    before = s.get_value()
    with pytest.raises(TypeError, match=r"Cannot set the value of S: .*None"):
        s.set_value(None)
    np.testing.assert_array_equal(s.get_value(), before)
    anything = shared(object(), "anything")
    anything.set_value(None)
    assert anything.get_value() is None


def test_set_value_is_seen_by_functions():
    s = shared(np.zeros(2))
    f = phintys.function([], s + 1)
    s.set_value(np.ones(3))
    assert f().tolist() == [2, 2, 2]
    s.get_value(borrow=True)[:] = 5
    assert f().tolist() == [6, 6, 6]


def test_options_of_shared_variables():
    column = np.ones((2, 1))
    assert shared(column).type.shape == (None, None)
    assert shared(column, shape=(None, 1)).type.shape == (None, 1)
    with pytest.warns(DeprecationWarning, match="broadcastable is called shape") as warned:
        assert shared(column, broadcastable=(False, True)).type.shape == (None, 1)
    assert warned[0].filename == __file__
    for value in (column, 1.0, [1.0], np.random.default_rng(1)):
        assert shared(value, borrow=True).get_value(borrow=True) is not None
        with pytest.raises(TypeError, match="unexpected keyword argument 'nmae'"):
            shared(value, nmae="x")


def test_change_flags_concerns_one_asyncio_task():
    async def dtype_of(name: str):
        with config.change_flags(floatX=name):
            await asyncio.sleep(0.01)
            config.exception_verbosity = config.exception_verbosity  # an assignment inside
            inner = asyncio.create_task(asyncio.sleep(0, pt.vector().dtype))
            return pt.vector().dtype, await inner

    async def all_at_once():
        return await asyncio.gather(*map(dtype_of, ["float32", "float64", "float16"]))

    assert asyncio.run(all_at_once()) == [(n, n) for n in ("float32", "float64", "float16")]
    assert config.floatX == "float64"


@pytest.mark.parametrize(
    ("name", "value"),
    [("threads", 0), ("threads", 10**6), ("threads", 2.0), ("threads", "two"), ("cache_bytes", -1)],
)
def test_integers_out_of_range_are_refused(name: str, value: Any):
    with pytest.raises(ValueError, match=f"not a legal value of config.{name}"):
        setattr(config, name, value)


def test_an_unknown_mode_is_named():
    with pytest.raises(ValueError, match=r"There is no mode 'JAXX'. Did you mean 'JAX'"):
        phintys.function([], pt.constant(1.0), mode="JAXX")
    is_refused = r"is not a legal value of config.mode: choose from .*'FAST_RUN"
    for wrong in (None, "JAXX", 3, object()):
        with pytest.raises(ValueError, match=is_refused):
            config.mode = wrong
        with pytest.raises(ValueError, match=is_refused):
            config.change_flags(mode=wrong).__enter__()
    assert config.mode == "FAST_RUN"
    with config.change_flags(mode="fast_compile"):
        assert get_default_mode().linker.name == "py"


def test_the_mode_may_be_an_object():
    x, mode = pt.dvector("x"), Mode(linker="py", optimizer=None)
    with config.change_flags(mode=mode):
        assert config.mode is get_mode(None) is get_default_mode() is mode
        f = phintys.function([x], x * 1)
        np.testing.assert_array_equal((x * 2).eval({x: [1.0]}), [2.0])
    assert f.maker.mode is mode and len(f.maker.fgraph.apply_nodes) == 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))([3.0]), [3.0])


def test_an_integer_setting_is_given_an_integer():
    own = Config("")
    own.add("my__depth", "how deep", IntParam(3))
    for wrong in (None, 2.5, "2.5", "deep", [], float("inf"), float("nan")):
        with pytest.raises(ValueError, match=r"legal value of config.my__depth: give an integer"):
            own.my__depth = wrong
    own.my__depth = 4.0
    assert own.my__depth == 4
