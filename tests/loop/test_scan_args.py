"""`ScanArgs`: loops taken apart, and others made of their parts."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from phintys.scan.utils import FieldInfo, ScanArgs

import phintys
import phintys.tensor as pt
from phintys.graph.replace import graph_replace
from phintys.loop import Scan, ScanInfo, until
from phintys.tensor.random.type import random_generator_type

x, y, m0 = pt.dvectors("x", "y", "m0")
x0, k = pt.dscalars("x0", "k")
rng = random_generator_type("rng")


def node_of(fn, *args, **kwargs):
    outputs = phintys.scan(fn, *args, **kwargs, return_list=True, return_updates=False)
    node = outputs[-1].owner
    return node if isinstance(node.op, Scan) else node.inputs[0].owner


def step(a, b, s, older, newer, generator, gain):
    following, value = generator.normal(0.0, 1.0)
    return s * gain + a + value, newer + older * b, a + 1, following


def all_kinds():
    info = [x0, dict(initial=m0, taps=[-2, -1]), None, rng]
    return node_of(step, [x, y], info, [k])


def mit_mot():
    """A node with a buffer of which a step reads two rows and writes two."""
    a, b = pt.dscalars("a", "b")
    op = Scan([a, b], [b, a + b], ScanInfo(0, ((0, 1),), ((0, 1),), (), (), 0, 0, 0, False))
    return op.make_node(3, pt.dvector("buffer"))


def test_fields():
    node = all_kinds()
    args = ScanArgs.from_node(node)
    sizes = {name: len(getattr(args, name)) for name in args.field_names if name != "n_steps"}
    assert {name for name, size in sizes.items() if size == 2} == {"outer_in_seqs", "inner_in_seqs"}
    assert all("mit_mot" in name for name, size in sizes.items() if size == 0)
    assert args.inner_in_mit_sot == [node.op.inner_inputs[2:4]]
    assert args.outer_in_shared == [rng] and args.outer_in_non_seqs == [k]
    assert args.outer_out_nit_sot == [node.outputs[2]] and args.mit_sot_in_slices == ((-2, -1),)
    assert args.outer_inputs == node.inputs and args.outer_outputs == node.outputs
    assert args.inner_inputs == args.inputs == node.op.inner_inputs
    assert args.inner_outputs == node.op.inner_outputs and args.info == node.op.info
    assert args.n_steps is node.inputs[0] and args.n_nit_sot == 1 and args.n_mit_mot == 0
    assert args.var_mappings == node.op.get_oinp_iinp_iout_oout_mappings()
    assert {"n_steps", "inner_out_shared", "mit_mot_out_slices"} <= set(args.field_names)
    assert args == ScanArgs.from_node(node) != ScanArgs.from_node(node, clone=True)
    assert "outer_in_non_seqs=[k]" in repr(args)
    with pytest.raises(TypeError, match="node of a Scan"):
        ScanArgs.from_node((x + 1).owner)


def test_buffers_with_several_outputs_and_conditions():
    args = ScanArgs.from_node(mit_mot(), clone=True)
    assert [len(args.inner_in_mit_mot[0]), len(args.inner_out_mit_mot[0])] == [2, 2]
    assert args.find_among_fields(args.inner_out_mit_mot[0][1])[:4] == (
        "inner_out_mit_mot", "inner_outputs", 0, 1,
    )  # fmt: skip
    loop = ScanArgs.from_node(node_of(lambda a: (a, until(a > 3)), x), clone=True)
    assert loop.as_while and len(loop.cond) == 1 and loop.info.as_while
    assert loop.inner_outputs[-1] is loop.cond[0]


@pytest.mark.parametrize("make", [all_kinds, mit_mot])
def test_a_copy_makes_an_equal_op(make):
    node = make()
    for clone in (False, True):
        args = ScanArgs.from_node(node, clone=clone)
        op = Scan(args.inner_inputs, args.inner_outputs, args.info)
        assert op == node.op
        assert [v.type for v in op(*args.outer_inputs, return_list=True)] == [
            v.type for v in node.outputs
        ]
    assert not set(args.inner_inputs) & set(node.op.inner_inputs)


def test_places_of_variables():
    args = ScanArgs.from_node(all_kinds())
    newer = args.inner_in_mit_sot[0][1]
    found = args.find_among_fields(newer)
    assert found == FieldInfo("inner_in_mit_sot", "inner_inputs", 0, 1, 3)
    assert args.inner_inputs[found.agg_index] is newer
    for name in ("outer_inputs", "outer_outputs", "inner_inputs", "inner_outputs"):
        for i, v in enumerate(getattr(args, name)):
            if v is not args.n_steps:  # which is the length of an output, too
                where = args.find_among_fields(v)
                assert (where.agg_name, where.agg_index) == (name, i)
    assert args.find_among_fields(x0) is None
    assert args.find_among_fields(newer, lambda name: name.startswith("outer")) is None
    assert args.find_among_fields(args.n_steps).name == "outer_in_nit_sot"


def test_what_belongs_to_a_variable():
    args = ScanArgs.from_node(all_kinds())
    (state,) = args.inner_in_sit_sot
    for v in (state, args.find_among_fields(state), *args.inner_out_sit_sot):
        assert args.get_alt_field(v, "outer_out") is args.outer_out_sit_sot[0]
        assert args.get_alt_field(v, "inner_in") is state
    assert args.get_alt_field(args.outer_in_mit_sot[0], "inner_in") == args.inner_in_mit_sot[0]
    with pytest.raises(ValueError, match="x0 is not among the arguments"):
        args.get_alt_field(x0, "inner_in")
    with pytest.raises(AttributeError):
        args.get_alt_field(args.inner_in_seqs[0], "inner_out")


def test_dependents_and_removal():
    node = all_kinds()
    args = ScanArgs.from_node(node, clone=True)
    state = {*args.outer_in_sit_sot, *args.inner_out_sit_sot, *args.outer_out_sit_sot}
    assert args.get_dependent_nodes(args.inner_in_sit_sot[0]) == state
    dependent = args.get_dependent_nodes(args.inner_in_seqs[0])
    assert state | {args.outer_in_seqs[0], *args.inner_out_nit_sot} <= dependent
    assert not dependent & {*args.inner_out_mit_sot, *args.outer_in_shared}
    assert args.get_dependent_nodes(args.inner_in_seqs[0], seen=state) == dependent - state

    (row,) = args.inner_out_nit_sot
    removed = args.remove_from_fields(row)
    assert (row, FieldInfo("inner_out_nit_sot", "inner_outputs", 0, None, 2)) in removed
    assert len(removed) == 3 and args.info.n_nit_sot == 0 and not args.outer_out_nit_sot
    args.remove_from_fields(args.outer_in_seqs[1])  # and with it the state that depends on it
    assert args.info == ScanInfo(1, (), (), (), ((-1,),), 0, 1, 1, False)
    op = Scan(args.inner_inputs, args.inner_outputs, args.info)
    values, _ = op(*args.outer_inputs)
    f = phintys.function([x, y, x0, k, rng], values)
    found = f([1.0, 2.0], [0.0, 0.0], 2.0, 0.5, np.random.default_rng(1))
    reference, s, expected = np.random.default_rng(1), 2.0, [2.0]
    for a in (1.0, 2.0):
        s = s * 0.5 + a + reference.normal()
        expected.append(s)
    np.testing.assert_allclose(found, expected)


def test_a_shallow_copy_has_lists_of_its_own():
    args = ScanArgs.from_node(all_kinds())
    other = copy.copy(args)
    assert other == args
    other.inner_in_mit_sot[0].pop()
    other.remove_from_fields(other.inner_in_sit_sot[0])
    assert len(args.inner_in_mit_sot[0]) == 2
    assert len(args.inner_in_sit_sot) == 1 and not other.inner_in_sit_sot


def test_removal_of_one_tap():
    args = ScanArgs.from_node(all_kinds(), clone=True)
    older = args.inner_in_mit_sot[0][0]
    assert args.remove_from_fields(older, rm_dependents=False)[0][1].inner_index == 0
    assert args.mit_sot_in_slices == ((-1,),) and len(args.inner_in_mit_sot[0]) == 1
    (gain,) = args.inner_in_non_seqs
    args.remove_from_fields(gain, rm_dependents=False)
    assert args.inner_in_non_seqs == [] and args.outer_in_non_seqs == [k]
    with pytest.raises(ValueError, match="not among the arguments"):
        args.remove_from_fields(gain)


def test_two_loops_become_one():
    first = ScanArgs.from_node(node_of(lambda a, s: s + a, x, x0), clone=True)
    second = ScanArgs.from_node(node_of(lambda a: a * 2, x), clone=True)
    both = first.merge(second)
    assert both.info == ScanInfo(2, (), (), (), ((-1,),), 1, 0, 0, False)
    sums, doubled = Scan(both.inner_inputs, both.inner_outputs, both.info)(*both.outer_inputs)
    f = phintys.function([x, x0], [sums, doubled])
    np.testing.assert_array_equal(f([1.0, 2.0], 5.0)[0], [5, 6, 8])
    np.testing.assert_array_equal(f([1.0, 2.0], 5.0)[1], [2, 4])


def test_the_density_of_a_random_walk():
    """What a client does: a draw becomes a row of a sequence, its density an output."""

    def walk(before, generator, drift):
        following, now = generator.normal(before + drift, 1.0)
        return now, following

    node = node_of(walk, None, [x0, rng], k, n_steps=3)
    args = ScanArgs.from_node(node, clone=True)
    (draw,) = args.inner_out_sit_sot
    mean = draw.owner.inputs[2]
    value, row = pt.dvector("value"), pt.dscalar("row")
    state = args.outer_in_sit_sot[0]
    initial = state.owner.inputs[1]
    assert state.owner.op.set_instead_of_inc and initial.owner.inputs[0] is x0
    args.inner_in_seqs.append(row)
    args.outer_in_seqs.append(value)
    args.inner_out_nit_sot.append(-((row - mean) ** 2) / 2)
    args.outer_in_nit_sot.append(args.n_steps)
    args.inner_out_sit_sot[0] = row
    args.inner_out_shared[0] = args.inner_in_shared[0]
    outputs = graph_replace(args.inner_outputs, {draw: row}, strict=False)
    op = Scan(args.inner_inputs, outputs, args.info)
    density = op(*args.outer_inputs)[1]
    values = np.array([0.5, 1.5, -1.0])
    found = phintys.function([value, x0, k, rng], density)(
        values, 0.2, 0.1, np.random.default_rng()
    )
    means = np.array([0.2, *values[:-1]]) + 0.1
    np.testing.assert_allclose(found, -((values - means) ** 2) / 2)
