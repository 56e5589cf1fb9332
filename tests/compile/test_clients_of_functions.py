"""What programs use that take functions apart: aliasing, rebuilding, dumps, containers, cells."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import In, Out
from phintys.compile import (
    add_supervisor_to_fgraph,
    alias_root,
    deep_copy_op,
    function_dump,
    infer_reuse_pattern,
    insert_deepcopy,
    rebuild_collect_shared,
    view_tree_set,
)
from phintys.compile.pickling import StripPickler
from phintys.compile.sharedvalue import collect_new_shareds
from phintys.graph.perform import Runner
from phintys.tensor.io import LoadFromDisk, load

pytestmark = [
    pytest.mark.filterwarnings("ignore:Setting default_update:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The no_default_updates:DeprecationWarning"),
]


# ------------------------------------------------------------------------------ aliasing
def test_copies_as_parts_of_a_graph():
    x, y = pt.dmatrices("x", "y")
    z = x + y
    outputs = [x.T, y.T, z.T, z, x, pt.constant(np.ones(2))]
    fgraph = phintys.FunctionGraph([x, y], outputs, clone=False)
    borrows = [False, True, False, False, True, False]
    insert_deepcopy(
        fgraph, [In(x), In(y, borrow=True)], [Out(v, borrow=b) for v, b in zip(outputs, borrows)]
    )
    names = [v.owner.op.__class__.__name__ for v in fgraph.outputs]
    assert names == ["DeepCopyOp", "ViewOp", "DimShuffle", "DeepCopyOp", "DeepCopyOp", "DeepCopyOp"]
    a, b = np.ones((2, 2)), np.zeros((2, 2))
    results = Runner(fgraph)([a, b])
    shared = [[np.shares_memory(r, v) for v in (a, b)] for r in results]
    assert shared == [[False, True] if k == 1 else [False, False] for k in range(6)]
    assert not np.shares_memory(results[2], results[3])


def test_who_shares_memory():
    x = pt.dmatrix("x")
    y = x + 1
    fgraph = phintys.FunctionGraph([x], [y.T, x[0]], clone=False)
    assert alias_root(fgraph.outputs[0]) is y
    views: set = set()
    view_tree_set(fgraph, x, views)
    assert views == {x, fgraph.outputs[1]}
    assert infer_reuse_pattern(fgraph, [y]) == {y, fgraph.outputs[0]}
    assert infer_reuse_pattern(fgraph, [x]) == {fgraph.outputs[1]}


def test_supervisors():
    x, y = pt.dvectors("x", "y")
    fgraph = phintys.FunctionGraph([x, y], [x + y], clone=False)
    add_supervisor_to_fgraph(fgraph, [In(x), In(y, mutable=True)])
    (supervisor,) = [f for f in fgraph._features if hasattr(f, "protected")]
    assert list(supervisor.protected) == [x]


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "NUMBA"])
def test_a_copy_that_is_asked_for(mode):
    x = pt.dvector("x")
    value = np.ones(2)
    mode = phintys.get_mode(mode).excluding("fast_run", "fast_compile")
    f = phintys.function([x], Out(deep_copy_op(x), borrow=True), mode=mode)
    found = f(value)
    assert not np.shares_memory(found, value)
    np.testing.assert_array_equal(found, value)


# ---------------------------------------------------------------------------- rebuilding
def test_rebuild_collect_shared():
    x, s = pt.dscalar("x"), phintys.shared(1.0, "s")
    t = phintys.shared(2.0, "t")
    t.default_update = t * 2
    outputs = [x + s, Out(x * t, borrow=True)]
    ins, outs, (memo, updates, pairs, shared) = rebuild_collect_shared(
        outputs, [x], updates={s: s + x}
    )
    assert ins == [x]
    assert outs[1].borrow
    assert memo[outputs[0]] is outs[0] is not outputs[0]
    assert list(updates) == shared == [s, t]
    assert pairs == list(updates.items())
    ins, out, (_, updates, _, shared) = rebuild_collect_shared(
        x + s, [x], replace={s: x * 2}, copy_inputs_over=False
    )
    assert not shared
    assert not updates
    assert ins[0] is not x
    assert out.eval({ins[0]: 3.0}) == 9


# ------------------------------------------------------------------------------ pickles
def test_pickles_without_origins():
    x, s = pt.dvector("x"), phintys.shared(1.0, "s")
    y = (x * s).sum()
    y.tag.kept, y.tag.dropped, y.tag.trace = 1, 2, 3
    file = io.BytesIO()
    StripPickler(file, -1, extra_tag_to_remove="dropped").dump(y)
    found = pickle.loads(file.getvalue())
    nodes = [v.owner for v in phintys.graph.ancestors([found]) if v.owner is not None]
    assert all(node.origin is None for node in nodes)
    assert vars(found.tag) == {"kept": 1}
    assert y.owner.origin is not None
    assert vars(y.tag) == {"kept": 1, "dropped": 2, "trace": 3}
    assert len(file.getvalue()) < len(pickle.dumps(y, -1))
    f = phintys.function([x], y)
    file = io.BytesIO()
    StripPickler(file, -1).dump(f)
    assert pickle.loads(file.getvalue())([1.0, 2.0]) == 3


def test_arguments_of_function_are_dumped(tmp_path):
    x, s = pt.dscalar("x"), phintys.shared(1.0, "s")
    function_dump(tmp_path / "dump", [(x, 4.0)], {"y": x * s}, updates={s: s + x}, name="f")
    with open(tmp_path / "dump", "rb") as file:
        f = phintys.function(**pickle.load(file))
    assert f() == {"y": 4}
    assert f() == {"y": 20}
    assert f.name == "f"
    assert s.get_value() == 1


# ---------------------------------------------------------------------- shared variables
def test_new_shared_variables_are_collected():
    with collect_new_shareds() as outer:
        a = phintys.shared(1.0)
        with collect_new_shareds() as inner:
            b = phintys.shared([1])
    phintys.shared(2.0)
    assert outer == [a]
    assert inner == [b]


@pytest.mark.parametrize(
    "value", [1.0, np.arange(3), np.bool_(True), {"a": [1]}, np.random.default_rng(3)]
)
def test_shared_variables_of_a_copied_container(value):
    old = phintys.shared(value, "s")
    container = copy.deepcopy(old.container)
    new = type(old)(type=old.type, value=None, strict=None, container=container, name="t")
    assert new.container is container
    assert new.type == old.type
    assert str(new.get_value()) == str(old.get_value()) or isinstance(value, np.random.Generator)
    if isinstance(value, np.random.Generator):
        assert new.get_value().random() == old.get_value().random()
    with pytest.raises(TypeError, match="not both"):
        type(old)(old.type, value, True, container=container)


# ------------------------------------------------------------------------------- thunks
class Counting(phintys.Op):
    """Its thunk counts how often it is made and run, and adds the constant of the thunk."""

    __props__ = ()
    itypes = (pt.dvector, pt.dvector)
    otypes = (pt.dvector,)
    made = ran = 0

    def infer_shape(self, node, shapes):
        return [shapes[0]]

    def make_thunk(self, node, storage_map, compute_map=None, no_recycling=(), impl=None):
        type(self).made += 1
        cells, (out,) = [storage_map[v] for v in node.inputs], node.outputs

        def thunk():
            type(self).ran += 1
            assert not compute_map[out][0]
            if cells[0][0][0] < 0:
                raise ValueError("negative")
            storage_map[out][0] = cells[0][0] + cells[1][0]

        return thunk


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "C", "NUMBA", "JAX"])
def test_thunks_of_ops(mode):
    x, y = pt.dvectors("x", "y")
    op = Counting()
    made, ran = Counting.made, Counting.ran
    f = phintys.function([x, y], [op(x, y) * 2, op(x, x)], mode=mode)
    for k in range(3):
        first, second = f([1.0, k], [2.0, 3.0])
        assert np.asarray(first).tolist() == [6, 2 * k + 6]
        assert np.asarray(second).tolist() == [2, 2 * k]
    assert (Counting.made - made, Counting.ran - ran) == (2, 6)
    with pytest.raises(Exception, match="negative"):
        f([-1.0], [1.0])
    assert np.asarray(f([1.0], [1.0])[0]).tolist() == [4]


# --------------------------------------------------------------------------------- files
def test_arrays_in_files(tmp_path):
    path, name = str(tmp_path / "x.npy"), phintys.generic("path")
    np.save(path, np.arange(6.0).reshape(2, 3))
    x = load(path, "float64", (None, 3))
    f = phintys.function([name], [x * 2, load(name, "float64", (2, None), "c")[1]])
    np.testing.assert_array_equal(f(path)[0], 2 * np.load(path))
    np.testing.assert_array_equal(f(path)[1], [3, 4, 5])
    np.save(path, np.ones((2, 3)))
    np.testing.assert_array_equal(f(path)[1], [1, 1, 1])
    np.save(path, np.ones((2, 4)))
    with pytest.raises(ValueError, match="shape"):
        f(path)
    np.save(path, np.ones((2, 3), "float32"))
    with pytest.raises(TypeError, match="dtype float32"):
        f(path)
    np.save(path, np.ones((2, 3)))
    with pytest.raises(OSError, match="absent"):
        f(str(tmp_path / "absent.npy"))
    with pytest.raises(ValueError, match="mmap_mode"):
        LoadFromDisk("float64", (None,), "r+")
    with pytest.raises(TypeError, match="path"):
        load(x, "float64", (None,))


# ------------------------------------------------------------------------------- cache
def test_the_command_of_the_cache(tmp_path, monkeypatch, capsys):
    from phintys.__main__ import cache
    from phintys.backends import code_cache

    folder = tmp_path / "cache"
    monkeypatch.setenv("PHINTYS_CACHE_DIR", str(folder))
    names = [code_cache.name_of(kind, "part") for kind in ("f", "o", "so")]
    for name in names:
        code_cache.write(name, b"code")
    (folder / names[1]).write_bytes(b"damaged")
    (folder / "notes.txt").write_text("mine")
    assert cache(["list"]) == 0
    assert all(name in capsys.readouterr().out for name in names[:1])
    assert cache(["cleanup"]) == 0
    assert "1 files removed" in capsys.readouterr().out
    assert cache(["basecompiledir"]) == cache(["unlock"]) == 0
    assert str(folder) in capsys.readouterr().out
    assert cache(["purge"]) == 0
    assert "2 files removed" in capsys.readouterr().out
    assert [p.name for p in folder.iterdir()] == ["notes.txt"]
    assert cache(["wrong"]) == 2
    assert "cleanup" in capsys.readouterr().out
    done = subprocess.run([sys.executable, "-m", "phintys", "cache", "clear"], check=True)
    assert done.returncode == 0
