"""What moving an index, fusing loops and reusing memory depend on."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.lowering.text import render_program
from phintys.rewriting import rewrite_graph
from phintys.tensor.index_ops import Subtensor


def test_an_index_is_not_moved_into_what_others_use_too() -> None:
    """``exp(m)[0]`` reads one row first, unless the other rows are computed anyway."""
    m = pt.dmatrix("m")
    whole = pt.exp(m)
    for outputs, is_moved in (([whole[0]], True), ([whole[0], whole.sum()], False)):
        read = rewrite_graph(outputs, include=("fast_run",), clone=True)[0].owner
        assert read is not None and isinstance(read.op, Subtensor) != is_moved


@pytest.mark.parametrize("tag", ["fusion", "inplace"])
def test_fusion_and_memory_do_not_depend_on_tags(tag: str) -> None:
    """They are planned after rewriting, so a mode without the tags gives the same program."""
    v = pt.dvector("v")
    out = [pt.exp(v) * 2 + pt.sin(v), (v[1:].set(0.0) + 1).sum()]
    programs = [
        phintys.function([v], out, mode=mode)
        for mode in ("FAST_RUN", phintys.get_mode("FAST_RUN").excluding(tag))
    ]
    first, second = (render_program(f.program) for f in programs)
    assert first == second
    given = np.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(programs[0](given)[0], np.exp(given) * 2 + np.sin(given))


def test_reads_whose_bounds_would_overflow_are_not_merged() -> None:
    v = pt.dvector("v")
    most = 2**62
    reads = [v[most:][most:], v[:: 2**40][:: 2**40], v[most : 2**63 - 1][:most][most:]]
    f = phintys.function([v], reads)
    assert [x.tolist() for x in f(np.ones(3))] == [[], [1], []]
    with pytest.raises(IndexError):
        phintys.function([v], v[most:][most])(np.ones(3))
