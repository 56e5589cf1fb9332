"""Helpers of PyTensor's modules that extension packages import; the values are PyTensor's."""

from __future__ import annotations

import os
from importlib import import_module

import numpy as np
import pytest
from phintys.graph.rewriting.basic import merge_dict
from phintys.link.utils import gc_helper, get_name_for_object, raise_with_op, streamline
from phintys.scan.utils import expand_empty, forced_replace, reconstruct_graph, safe_new
from phintys.utils import (
    Singleton,
    apply_across_args,
    call_subprocess_Popen,
    difference,
    flatten,
    from_return_values,
    hash_from_code,
    maybe_add_to_os_environ_pathlist,
    output_subprocess_Popen,
    to_return_values,
    uniq,
    unzip,
)

import phintys
import phintys.tensor as pt
from phintys.gradient import as_list_or_tuple
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import ancestors
from phintys.graph.utils import add_tag_trace, get_variable_trace_string, simple_extract_stack
from phintys.paths import MOVED, ON_DEMAND
from phintys.tensor import subtensor, type
from phintys.tensor.sharedvar import load_shared_variable, scalar_constructor, tensor_constructor
from phintys.tensor.utils import import_func_from_string, shape_of_variables

x, m = pt.dvector("x"), pt.dmatrix("m")


def test_every_name_on_demand_is_there():
    for path, sources in ON_DEMAND.items():
        module = import_module(f"phintys.{path}")
        for names in sources.values():
            assert all(getattr(module, name, module) is not module for name in names.split())
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name  # noqa: B018


@pytest.mark.parametrize("path", MOVED)
def test_names_that_have_moved(path):
    for source, names in MOVED[path].items():
        for name in names.split():
            with pytest.warns(FutureWarning, match=f"{name}` was moved to `phintys.{source}"):
                found = getattr(import_module(f"phintys.{path}"), name)
            assert found is getattr(import_module(f"phintys.{source}"), name)


def test_sequences():
    assert flatten([1, (2, [3, {4}]), "ab"]) == [1, 2, 3, 4, "ab"]
    assert difference([1, 2, 3, 2], [2]) == [1, 3] and uniq([3, 1, 3, 2, 1]) == [3, 1, 2]
    assert unzip([(1, 2), (3, 4)], 2) == ((1, 3), (2, 4)) and unzip([], 3) == ((), (), ())
    assert to_return_values([1]) == 1 and to_return_values([]) == []
    assert from_return_values(1) == [1] and from_return_values((1, 2)) == (1, 2)
    (plus,) = apply_across_args(lambda name: name + "!")
    assert plus("a") == "a!" and plus(["a", "b"]) == ["a!", "b!"]
    assert merge_dict({"a": 1, "b": 2}, {"a": 3, "c": 1}) == {"a": 4, "b": 2, "c": 1}
    assert as_list_or_tuple(True, False, 1) == [1] and as_list_or_tuple(False, True, [1]) == (1,)
    assert as_list_or_tuple(False, False, [1]) == 1


def test_texts_and_processes(monkeypatch):
    assert hash_from_code("ab") == hash_from_code(b"ab")
    assert hash_from_code("ab").startswith("mfb8e20fc2e4c3f248c60c39b")
    assert output_subprocess_Popen(["echo", "a"]) == (b"a\n", b"", 0)
    assert call_subprocess_Popen(["false"]) == 1
    monkeypatch.setenv("FOLDERS", f"/b{os.pathsep}/a")
    for _ in range(2):
        maybe_add_to_os_environ_pathlist("FOLDERS", "/first")
    assert os.environ["FOLDERS"] == os.pathsep.join(["/first", "/b", "/a"])
    assert import_func_from_string("numpy.exp") is np.exp
    assert import_func_from_string("no.such") is None is import_func_from_string("numpy.nothing")

    class One(Singleton):
        pass

    assert One() is One() and One() == One() and str(One()) == "One"


def test_lines_of_programs():
    assert simple_extract_stack()[-1][2] == "test_lines_of_programs"
    v = pt.dvector("v")
    text = get_variable_trace_string(v)
    assert "Backtrace when that variable is created" in text and 'v = pt.dvector("v")' in text
    assert add_tag_trace(v) is v and v.tag.trace[0][-1][2] == "test_lines_of_programs"


def test_graphs():
    assert safe_new(x, "_copy").name == "x_copy" and safe_new(x) is not x
    assert safe_new(x, dtype="float32").type == pt.fvector().type
    one = pt.constant(1.0)
    assert safe_new(one) is one
    z = pt.dvector("z")
    replaced = forced_replace(pt.exp(x + 1) * (x + 1), x + 1, z)
    assert set(ancestors([replaced])) & {x, z} == {z}
    padded = expand_empty(m, 2)
    np.testing.assert_array_equal(padded.eval({m: [[1.0]]}).shape, (3, 1))
    assert expand_empty(x, 0) is x
    inputs, outputs = reconstruct_graph([x], [x + 1], "_new")
    assert inputs[0].name == "x_new" and inputs[0] in set(ancestors(outputs))
    fgraph = FunctionGraph([x, m], [m @ x, m.sum(axis=0)], clone=False)
    shapes = shape_of_variables(fgraph, {x: (3,), m: (2, 3)})
    assert [shapes[v] for v in fgraph.outputs] == [(2,), (3,)]


def test_linkers():
    fgraph = FunctionGraph([x], [pt.exp(x) + 1], clone=False)
    order = fgraph.toposort()
    computed, last = gc_helper(order)
    assert (computed == {v for n in order for v in n.outputs} and last[x] is order[0]) or order[1]
    done = []
    cell = [1]

    def fail():
        raise ValueError("boom")

    thunks = [lambda: done.append(1) for _ in order]
    streamline(fgraph, thunks, order, post_thunk_old_storage=[[cell], *[[]] * (len(order) - 1)])()
    assert len(done) == len(order) and cell == [None]
    with pytest.raises(ValueError, match=r"boom(.|\n)*while computing"):
        streamline(fgraph, [fail, *thunks[1:]], order)()
    with pytest.raises(ValueError, match="thunks for"):
        streamline(fgraph, [fail, *thunks], order)
    with pytest.raises(RuntimeError, match="needs an exception"):
        raise_with_op(fgraph, order[0])
    assert get_name_for_object(x) == "x" and get_name_for_object(np.exp) == "exp"


def test_tensors():
    i = pt.constant([0, 1])
    given = {x: [1.0, 2.0, 3.0]}
    for made, expected in (
        (subtensor.advanced_subtensor(x, i), [1, 2]),
        (subtensor.advanced_inc_subtensor1(x, 1.0, i), [2, 3, 3]),
        (subtensor.advanced_set_subtensor(x, 0.0, i), [0, 0, 3]),
        (subtensor.basic_subtensor(x, slice(1, None)), [2, 3]),
    ):
        np.testing.assert_array_equal(made.eval(given), expected)
    start = pt.lscalar()
    assert subtensor.get_slice_elements([slice(1, start), 3]) == [start]
    groups = subtensor.group_indices([slice(None), i, 1])
    assert [is_basic for is_basic, _ in groups] == [True, False]
    a, b = np.array([1.0, np.inf, np.nan]), np.array([1.0, 2.0, 3.0])
    assert type.values_eq_approx_remove_inf_nan(a, b) and not type.values_eq_approx(a, b)
    assert not type.values_eq_approx_remove_inf(a, b)
    assert type.values_eq_approx_remove_nan(a[[0, 2]], b[[0, 2]])
    assert type.dtype_specs_map["int8"] == (int, "npy_int8", "NPY_INT8")
    assert x.type.to_scalar_type().dtype_specs() == (np.float64, "npy_float64", "Float64")
    assert phintys.scalar.bool.dtype_specs()[2] == "Bool"
    assert tensor_constructor(np.ones(2), name="s").name == "s"
    assert scalar_constructor(1).type == pt.lscalar().type
    assert load_shared_variable(np.ones(2)).type == x.type
    for wrong in (lambda: tensor_constructor("a"), lambda: scalar_constructor(np.ones(2))):
        with pytest.raises(TypeError):
            wrong()
