"""The op `Scan`: buffers of all lengths against lists, errors, equality, rewriting."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import MissingInputError, ShapeError
from phintys.graph.equality import equal_computations
from phintys.graph.inner import nested_ops
from phintys.loop import Scan, ScanInfo
from phintys.loop.arguments import ScanMethodsMixin
from phintys.tensor.static import static_length

X, S, A, B = pt.dscalars("x", "s", "a", "b")


def run(op, *values, mode="FAST_COMPILE"):
    """The results of a node for values, whose lengths are not known when the graph is built."""
    given = [np.asarray(v) for v in values]
    variables = [pt.tensor(dtype=v.dtype, shape=(None,) * v.ndim) for v in given]
    outputs = op.make_node(*variables).outputs
    return phintys.function(variables, outputs, mode=mode)(*given)


def counter(as_while=False):
    """A state to which every step adds 1; with a condition, up to 3."""
    new = S + 1.0
    results = [new, new >= 3] if as_while else [new]
    return Scan([S], results, ScanInfo(0, (), (), (), ((-1,),), 0, 0, 0, as_while))


@pytest.mark.parametrize("steps", [0, 1, 4, 5])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 9])
def test_the_last_rows_of_a_state(steps, rows):
    history = np.arange(steps + 1.0)
    (found,) = run(counter(), steps, np.zeros(rows))
    np.testing.assert_array_equal(found, history[-rows:])


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 9])
def test_a_while_loop_ends_after_the_step_with_the_condition(rows):
    for steps, last in ((9, 3), (2, 2), (0, 0)):
        (found,) = run(counter(True), steps, np.zeros(rows))
        np.testing.assert_array_equal(found, np.arange(last + 1.0)[-rows:])


@pytest.mark.parametrize("taps", [(-2, -1), (-1, -3), (-2,)])
def test_states_with_taps(taps):
    info = ScanInfo(0, (), (), (taps,), (), 0, 0, 0, False)
    op = Scan([A, B][: len(taps)], [A + 2 * (B if len(taps) > 1 else 1)], info)
    first = -min(taps)
    history = [1.0, 5.0, 2.0][:first]
    for _ in range(6):
        read = [history[t] for t in taps]
        history.append(read[0] + 2 * (read[1] if len(read) > 1 else 1))
    for rows in range(first, 11):
        buffer = np.zeros(rows)
        buffer[:first] = history[:first]
        (found,) = run(op, 6, buffer)
        np.testing.assert_array_equal(found, history[-rows:])


def test_an_output_that_no_step_reads():
    op = Scan([X], [2 * X], ScanInfo(1, (), (), (), (), 1, 0, 0, False))
    xs = np.arange(5.0)
    for steps in range(6):
        for rows in range(1, 8):
            (found,) = run(op, steps, xs, rows)
            np.testing.assert_array_equal(found, 2 * xs[:steps][-rows:])


def test_a_buffer_with_several_outputs():
    """Rows are read and written in place; the rows of a step are read before it writes."""
    info = ScanInfo(1, ((0, 1),), ((1, 0),), (), (), 0, 0, 0, False)
    op = Scan([X, A, B], [A + X, B], info)
    for rows in (4, 6):
        buffer = np.arange(1.0, rows + 1)
        expected = buffer.copy()
        for t, x in enumerate([10.0, 20.0, 30.0]):
            expected[t + 1], expected[t] = expected[t] + x, expected[t + 1]
        (found,) = run(op, 3, [10.0, 20.0, 30.0], buffer)
        np.testing.assert_array_equal(found, expected)


def test_taps_of_a_buffer_count_from_the_first_row():
    info = ScanInfo(0, ((0, -2),), ((-1,),), (), (), 0, 0, 0, False)
    assert info.normalized_mit_mot_in_slices == ((2, 0),)
    assert info.normalized_mit_mot_out_slices == ((1,),)
    (found,) = run(Scan([A, B], [A - B], info), 2, [1.0, 2.0, 4.0, 8.0])
    np.testing.assert_array_equal(found, [1.0, 3.0, 5.0, 8.0])


def test_states_that_exchange_their_values():
    """The result of a step may be a row that is overwritten in the same step."""
    op = Scan([A, B], [B, A], ScanInfo(0, (), (), (), ((-1,), (-1,)), 0, 0, 0, False))
    for rows in (1, 2, 4):
        a, b = np.full(rows, 1.0), np.full(rows, 2.0)
        found = run(op, 3, a, b)
        np.testing.assert_array_equal([x[-1] for x in found], [2.0, 1.0])


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_results_without_steps(mode):
    """Lengths of rows are those that a step would give."""
    row, state = pt.dvectors("row", "state")
    info = ScanInfo(1, (), (), (), ((-1,),), 1, 0, 0, False)
    op = Scan([row, state], [state + 1, pt.outer(row, state)], info)
    states, outer = run(op, 0, np.ones((0, 2)), np.ones((1, 3)), 0, mode=mode)
    assert states.shape == (1, 3) and outer.shape == (0, 2, 3)


def test_non_contiguous_arguments_and_dtypes():
    x, s = pt.fvector("x"), pt.zvector("s")
    op = Scan([x, s], [x * s], ScanInfo(1, (), (), (), ((-1,),), 0, 0, 0, False))
    xs = np.arange(24, dtype="float32").reshape(4, 6)[::-1, ::2]
    start = np.full((10, 3), 1 + 1j)[::2]
    (found,) = run(op, 4, xs, start)
    np.testing.assert_array_equal(found, (1 + 1j) * np.cumprod(np.vstack([np.ones(3), xs]), 0))


# ------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_errors_of_lengths(mode):
    op = Scan([X, S], [X + S], ScanInfo(1, (), (), (), ((-1,),), 0, 0, 0, False))
    with pytest.raises(ShapeError, match="negative"):
        run(op, -1, [1.0], [0.0], mode=mode)
    with pytest.raises(ShapeError, match="sequence in input 1 is shorter"):
        run(op, 3, [1.0, 2.0], [0.0], mode=mode)
    with pytest.raises(ShapeError, match="state in input 2 has too few"):
        run(op, 1, [1.0], np.zeros(0), mode=mode)


def test_errors_of_rows_and_of_other_lengths():
    v = pt.dvector("v")
    doubled = Scan([v], [pt.join(0, v, v)], ScanInfo(0, (), (), (), ((-1,),), 0, 0, 0, False))
    with pytest.raises(ShapeError, match=r"differ along axis 0 \(3, not 6\)"):
        run(doubled, 2, np.zeros((3, 3)))
    grows = Scan([X], [pt.zeros(X.astype("int64"))], ScanInfo(1, (), (), (), (), 1, 0, 0, False))
    with pytest.raises(ShapeError, match=r"step 1 for output 0 of Scan.* has shape \(2,\).*\(1,\)"):
        run(grows, 2, [1.0, 2.0], 2)
    info = ScanInfo(0, ((0, 1),), ((1,),), (), (), 0, 0, 0, False)
    with pytest.raises(ShapeError, match="buffer in input 1 has too few rows"):
        run(Scan([A, B], [A + B], info), 3, [1.0, 2.0])
    with pytest.raises(ShapeError, match="length in input 2 has too few rows"):
        run(Scan([X], [X], ScanInfo(1, (), (), (), (), 1, 0, 0, False)), 1, [1.0], 0)


def test_errors_of_types():
    op = Scan([X, S], [X + S], ScanInfo(1, (), (), (), ((-1,),), 0, 0, 0, False))
    xs, state = pt.dvectors("xs", "state")
    for inputs, message in (
        ((3, xs), "takes 3 inputs, not 2"),
        ((3.0, xs, state), "n_steps .* must be a 0-d integer"),
        ((state, xs, state), "n_steps .* must be a 0-d integer"),
        ((3, pt.fvector("f"), state), "sequence in input 1 .*float32"),
        ((3, xs, pt.fvector("f")), r"f, has dtype float32.*astype\('float64'\)"),
        ((3, xs, pt.dmatrix("m")), "m, has rank 1 at one step, .* rank 0"),
    ):
        with pytest.raises(ValueError, match=message):
            op.make_node(*inputs)


def test_errors_of_the_inner_graph():
    info = ScanInfo(1, (), (), (), ((-1,),), 0, 0, 0, True)
    with pytest.raises(ValueError, match="needs 2 inner inputs, not 1"):
        Scan([X], [X, X > 0], info)
    with pytest.raises(ValueError, match="needs 2 inner outputs, not 1"):
        Scan([X, S], [X], info)
    with pytest.raises(ValueError, match="must be a 0-d bool"):
        Scan([X, S], [X + S, X], info)
    with pytest.raises(MissingInputError, match=r"depends on a .*n_non_seqs"):
        Scan([X, S], [X + S * A, X > 0], info)
    with pytest.raises(ValueError, match="must be negative"):
        ScanInfo(0, (), (), ((-1, 0),), (), 0, 0, 0, False)
    with pytest.raises(ValueError, match="differ in length"):
        ScanInfo(0, ((0,),), (), (), (), 0, 0, 0, False)


# ------------------------------------------------------------------------------ the op


def test_it_is_compared_and_copied():
    op, other = counter(), Scan([X], [X + 1.0], counter().info, name="other")
    assert op == other and hash(op) == hash(other) and op != counter(True)
    assert op != Scan([S], [S + 2.0], op.info)
    assert op != Scan([S], [S + 1.0], op.info, truncate_gradient=3)
    for copy in (op.clone(), pickle.loads(pickle.dumps(op)), op.clone_with_inner_graph(op.fgraph)):
        assert copy == op and copy.info == op.info and copy.name == op.name
    assert str(op) == "Scan{scan_fn, while_loop=False, inplace=none}"
    rebuilt = Scan(op.inner_inputs, op.inner_outputs, op.info)
    assert rebuilt == op
    thawed = op.thawed()
    assert Scan(thawed.inputs, thawed.outputs, op.info) == op


def test_its_inputs_are_printed_with_their_sources():
    xs, buffer = pt.dvectors("xs", "buffer")
    op = Scan([X, S], [X + S], ScanInfo(1, (), (), (), ((-1,),), 0, 0, 0, False))
    lines = phintys.dprint(op(3, xs, buffer + 1), file="str").splitlines()
    (outer,) = [line for line in lines if "xs" in line]
    (inner,) = [line for line in lines if "i0" in line]
    assert inner.endswith(" -> " + outer[outer.index("[id") :])
    (added,) = [line for line in lines if "├─ Add" in line or "└─ Add" in line]
    (state,) = [line for line in lines if "i1" in line]
    assert state.endswith(" -> " + added[added.index("[id") :])


class Marked(Scan):
    """A client's loop."""


def test_a_subclass():
    op = counter()
    marked = Marked(op.inner_inputs, op.inner_outputs, op.info, mode=op.mode)
    assert marked != op and marked == marked.clone() and isinstance(marked.clone(), Marked)
    np.testing.assert_array_equal(run(marked, 2, np.zeros(3)), [[0, 1, 2]])


def test_its_graph_is_rewritten():
    xs = pt.dvector("xs")
    op = Scan([X], [pt.log(pt.exp(X * 1.0))], ScanInfo(1, (), (), (), (), 1, 0, 0, False))
    f = phintys.function([xs], op(xs.shape[0], xs, xs.shape[0]))
    (inner,) = nested_ops(n.op for n in f.maker.fgraph.toposort())
    assert not inner.fgraph.toposort() and isinstance(inner, Scan)
    np.testing.assert_array_equal(f([1.0, 800.0]), [1.0, 800.0])


def test_lengths_of_results():
    """The number of rows is not part of the type, as in PyTensor, but known to rules."""
    op = counter()
    for rows, expected in ((5, 5), (3, 3), (9, 5)):
        result = op(4, pt.zeros(rows))
        assert result.type.shape == (None,) and static_length(result, 0) == expected
    assert static_length(counter(True)(4, pt.zeros(5)), 0) is None
    n = pt.lscalar("n")
    f = phintys.function([n], op(n, pt.zeros(n + 1)).shape[0])
    assert not any(isinstance(node.op, Scan) for node in f.maker.fgraph.toposort())
    assert f(4) == 5
    assert equal_computations([op(n, pt.zeros(5))], [counter()(n, pt.zeros(5))])


class Arguments(ScanMethodsMixin):
    """The methods alone, to read positions."""

    def __init__(self, info):
        self.info = info


def test_arguments_by_kind():
    """The order that PyTensor has."""
    info = ScanInfo(1, ((0, 1),), ((1,),), ((-2, -1),), ((-1,),), 1, 1, 1, True)
    op = Arguments(info)
    outer_in, outer_out = range(info.n_outer_inputs), range(info.n_outer_outputs)
    inner_in, inner_out = range(info.n_inner_inputs), range(info.n_inner_outputs)
    assert len(outer_in) == 8 and len(outer_out) == 5
    assert len(inner_in) == 8 and len(inner_out) == 6
    kinds = "seqs mitmot mitsot sitsot untraced_sit_sot nitsot non_seqs".split()
    found = [getattr(op, f"outer_{kind}")(outer_in) for kind in kinds]
    assert found == [[1], [2], [3], [4], [5], [6], [7]]
    kinds = "mitmot mitsot sitsot nitsot untraced_sit_sot".split()
    assert [getattr(op, f"outer_{kind}_outs")(outer_out) for kind in kinds] == [
        [k] for k in range(5)
    ]
    assert [getattr(op, f"inner_{kind}_outs")(inner_out) for kind in kinds] == [
        [k] for k in range(5)
    ]
    kinds = "seqs mitmot mitsot sitsot untraced_sit_sot non_seqs".split()
    found = [getattr(op, f"inner_{kind}")(inner_in) for kind in kinds]
    assert found == [[0], [1, 2], [3, 4], [5], [6], [7]]
    assert op.inner_mitmot_grouped(inner_in) == [[1, 2]]
    assert op.inner_mitmot_outs_grouped(inner_out) == [[0]]
    assert op.oldest_inner_mitsot(inner_in) == [3]
    assert op.outer_untraced_sit_sot(outer_in, with_idx=True) == ((5, 5),)
    assert op.outer_untraced_sit_sot_outs(outer_out, with_idx=True) == ((4, 4),)


def test_what_belongs_together():
    """The dicts that PyTensor gives for a state, an output that is not read and a generator."""
    info = ScanInfo(0, (), (), (), ((-1,),), 1, 1, 0, False)
    found = Arguments(info).get_oinp_iinp_iout_oout_mappings()
    assert found == {
        "outer_inp_from_outer_out": {0: 1, 1: 3, 2: 2},
        "inner_inp_from_outer_out": {0: [0], 1: [], 2: [1]},
        "inner_out_from_outer_out": {0: [0], 1: [1], 2: [2]},
        "inner_inp_from_outer_inp": {0: [], 1: [0], 3: [], 2: [1]},
        "inner_out_from_outer_inp": {0: [], 1: [0], 3: [1], 2: [2]},
        "outer_out_from_outer_inp": {0: -1, 1: 0, 3: 1, 2: 2},
        "outer_inp_from_inner_inp": {0: 1, 1: 2},
        "inner_out_from_inner_inp": {0: [0], 1: [2]},
        "outer_out_from_inner_inp": {0: 0, 1: 2},
        "outer_inp_from_inner_out": {0: 1, 1: 3, 2: 2},
        "inner_inp_from_inner_out": {0: [0], 1: [], 2: [1]},
        "outer_out_from_inner_out": {0: 0, 1: 1, 2: 2},
    }
