"""Profiles: times by class, op and node, memory, counts of rewrites, what is printed at exit."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from phintys.compile.debug.profiling import (
    ProfileStats,
    print_global_stats,
    register_profiler_printer,
)

import phintys
import phintys.tensor as pt
from phintys import config


def made(mode="FAST_COMPILE", **settings):
    """A profiled function of a vector: the sum of a product of exponentials."""
    x = pt.dvector("x")
    with config.change_flags(**settings):
        return phintys.function([x], (pt.exp(x)[::-1] * pt.sin(x)).sum(), profile=True, mode=mode)


def test_times_by_class_op_and_node():
    f = made()
    f(np.ones(5))
    f(np.ones(5))
    profile = f.profile
    counts = {str(op): count for op, count in profile.op_callcount().items()}
    assert counts == {"Exp": 2, "Sin": 2, "Mul": 2, "Sum{axes=None}": 2, "Subtensor{::step}": 2}
    classes = {cls.__name__: count for cls, count in profile.class_callcount().items()}
    assert classes == {"Elemwise": 6, "Sum": 2, "Subtensor": 2}
    assert sum(profile.op_time().values()) == pytest.approx(sum(profile.class_time().values()))
    assert (profile.fct_callcount, profile.calls) == (2, 2)
    assert 0 < sum(profile.op_time().values()) < profile.fct_call_time
    assert profile.compile_time > 0
    file = io.StringIO()
    profile.summary(file, n_ops_to_print=2, n_apply_to_print=1)
    assert "... 3 more" in file.getvalue()
    profile.reset()
    assert (profile.calls, profile.nodes) == (0, {})


def test_settings_of_profiles():
    f = made(profiling__ignore_first_call=True, profiling__time_thunks=False)
    f(np.ones(2))
    f(np.ones(2))
    assert f.profile.calls == 1
    assert not f.profile.nodes
    with config.change_flags(profiling__debugprint=True, profiling__output_line_width=10):
        text = str(f.profile)
    assert "[id A]" in text
    assert text.splitlines()[0] == "Profile of"
    f = made(profile_optimizer=True)
    assert f.profile.rewrites
    assert all(isinstance(name, str) for name in f.profile.rewrites)


def test_summary_is_shown_where_the_settings_say(capsys):
    """It was returned as text, so a program that calls it showed nothing."""
    f = made()
    f(np.ones(2))
    f.profile.summary()
    shown = capsys.readouterr()
    assert shown.err == f"{f.profile}\n"
    with config.change_flags(profiling__destination="stdout"):
        f.profile.summary()
    assert capsys.readouterr() == (shown.err, "")


def test_memory_of_nodes():
    f = made(profiling__min_memory_size=0)
    with config.change_flags(profile_memory=True):
        f = made()
        f(np.ones(1000))
    sizes = {str(node.op): size for node, size in f.profile.sizes.items()}
    assert sizes == {
        "Exp": 8000,
        "Subtensor{::step}": 0,
        "Sin": 8000,
        "Mul": 8000,
        "Sum{axes=None}": 8,
    }
    assert f.profile.peak == 24000
    text = str(f.profile)
    assert "at most 24000 bytes at a time" in text
    assert "8000 bytes  Exp(" in text
    assert "bytes  Sum" not in text


def test_memory_of_compiled_code():
    x = pt.dmatrix("x")
    with config.change_flags(profile_memory=True):
        f = phintys.function([x], pt.exp(x) @ x, profile=True)
        f(np.ones((3, 3)))
        assert f.profile.peak == 72
        f(np.ones((5, 5)).tolist())
    assert f.profile.peak == 200
    assert f.profile.sizes == {}


def test_printers_can_be_added():
    from phintys.compile import profile as module

    seen = []

    @register_profiler_printer
    def more(text, file):
        seen.append(file)
        return "and more"

    try:
        assert str(ProfileStats("p")).endswith("and more")
    finally:
        module._PRINTERS.remove(more)
    assert seen == [None]


def test_what_is_printed_at_the_end(tmp_path):
    code = (
        "import phintys, phintys.tensor as pt\n"
        "x = pt.dvector('x')\n"
        "f = phintys.function([x], x + 1, name='named')\n"
        "for _ in range(3): f([1.0])\n"
    )
    file = tmp_path / "out"
    flags = f"profile=True,print_global_stats=True,profiling__destination={file}"
    env = {**os.environ, "PHINTYS_FLAGS": flags}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    text = file.read_text()
    assert "Profile of named\n  3 calls took" in text
    assert "1 functions, 3 calls took" in text


def test_totals_without_functions(capsys):
    print_global_stats()
    assert "0 functions, 0 calls" in capsys.readouterr().err
