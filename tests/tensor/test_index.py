"""Indexing against NumPy: reads, writes, derivatives, batches, errors."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tensor_checks import MODES, assert_like, check, check_batched, check_derivatives, evaluate
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.errors import DisconnectedInputError, ShapeError
from phintys.graph.vectorize import vectorize_graph
from phintys.tensor.elemwise import DimShuffle
from phintys.tensor.index import basic_shape, indexed_result_shape
from phintys.tensor.index_list import (
    flatten_index_variables,
    get_canonical_form_slice,
    get_idx_list,
    indices_from_subtensor,
    slice_len,
    slice_static_length,
    unflatten_index_variables,
)
from phintys.tensor.index_ops import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from phintys.tensor.shape import shape_tuple

CUBE = np.arange(60.0).reshape(3, 4, 5)
PLANE = np.arange(12.0).reshape(3, 4)
LINE = np.arange(5.0)
FEW = settings(max_examples=40, deadline=None)

# ------------------------------------------------------------------- indices of any kind

shapes = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


def slices(bound):
    part = st.none() | st.integers(-bound, bound)
    step = st.none() | st.integers(-3, 3).filter(bool)
    return st.builds(slice, part, part, step)


@st.composite
def basic_keys(draw, shape):
    """Integers in range, slices, None, and at most one Ellipsis."""
    entries = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        whole = slices(n + 2)
        entries.append(draw(whole | st.integers(-n, n - 1) if n else whole))
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), Ellipsis)
    return tuple(entries)


@st.composite
def advanced_keys(draw, shape):
    """At least one array of positions, or a mask, among other entries, None and a 0-d mask."""
    shape = tuple(max(n, 1) for n in shape)
    common = draw(st.sampled_from([(2,), (1,), (3, 2), (0,)]))
    entries = []
    for n in shape[: draw(st.integers(1, len(shape)))]:
        positions = st.lists(
            st.integers(-n, n - 1), min_size=int(np.prod(common)), max_size=int(np.prod(common))
        ).map(lambda p: np.array(p, "int64").reshape(common))
        entries.append(draw(positions | slices(n + 1) | st.integers(-n, n - 1)))
    if not any(isinstance(e, np.ndarray) for e in entries):
        n = shape[-1] if len(entries) == len(shape) else shape[len(entries)]
        mask = draw(st.lists(st.booleans(), min_size=n, max_size=n).map(np.array))
        entries[len(entries) - (len(entries) == len(shape)) :] = [mask]
    if draw(st.booleans()):
        new = draw(st.sampled_from([None, np.array(True)]))
        entries.insert(draw(st.integers(0, len(entries))), new)
    return shape, tuple(entries)


def symbolic(key, which):
    """The key with some of its integers and arrays as variables: (key, variables, values)."""
    variables, values = [], []

    def put(value):
        chosen = which(len(variables))
        values.append(np.asarray(value))
        variables.append(pt.tensor(dtype=values[-1].dtype.name, shape=(None,) * values[-1].ndim))
        return variables[-1] if chosen else value

    def entry(e):
        if isinstance(e, slice):
            return slice(*(None if p is None else put(p) for p in (e.start, e.stop, e.step)))
        return e if e is None or e is Ellipsis else put(e)

    return tuple(entry(e) for e in key), variables, values


def check_read(value, key, which, static):
    x = pt.tensor(dtype=value.dtype.name, shape=value.shape if static else (None,) * value.ndim)
    wanted, variables, values = symbolic(key, which)
    try:
        value[key]
    except IndexError:
        for mode in MODES:
            with pytest.raises(IndexError):
                evaluate(x[wanted], [x, *variables], [value, *values], mode)
        return
    out = x[wanted]
    lengths = list(indexed_lengths(out)) if out.owner is not None else []
    expected = value[key]
    for mode in MODES:
        found, *rest = evaluate([out, *lengths], [x, *variables], [value, *values], mode)
        assert_like(found, expected)
        assert all(n in (None, m) for n, m in zip(out.type.shape, found.shape, strict=True))
        assert tuple(int(n) for n in rest) == (expected.shape if lengths else ())


def indexed_lengths(out):
    """Lengths by ``infer_shape`` of the read."""
    shapes = [shape_tuple(v) if v.type.ndim else () for v in out.owner.inputs]
    return out.owner.op.infer_shape(out.owner, shapes)[0] or ()


@FEW
@given(st.data(), shapes, st.sampled_from([0, -1, 0b0101, 0b1010]), st.booleans())
def test_basic_indexing(data, shape, symbols, static):
    value = np.arange(np.prod(shape), dtype="float64").reshape(shape)
    key = data.draw(basic_keys(shape))
    check_read(value, key, lambda k: symbols >> k & 1, static)


@FEW
@given(st.data(), shapes, st.sampled_from([0, -1, 0b0101]), st.booleans())
def test_advanced_indexing(data, shape, symbols, static):
    shape, key = data.draw(advanced_keys(shape))
    value = np.arange(np.prod(shape), dtype="float64").reshape(shape)
    check_read(value, key, lambda k: symbols >> k & 1, static)


def write(value, key, y, mode, duplicates=False):
    out = value.copy()
    y = np.asarray(y).astype(value.dtype)
    if mode == "set":
        out[key] = y
    elif duplicates:
        out[key] += y
    else:
        np.add.at(out, key, y)
    return out


@FEW
@given(st.data(), shapes, st.booleans(), st.booleans(), st.sampled_from(["set", "inc"]))
def test_writes(data, shape, advanced, whole, mode):
    if advanced:
        shape, key = data.draw(advanced_keys(shape))
    else:
        key = data.draw(basic_keys(shape))
    value = np.arange(np.prod(shape), dtype="float64").reshape(shape)
    try:
        region = value[key].shape
    except IndexError:
        assume(False)
    y = np.arange(1.0, 1 + np.prod(region)).reshape(region) if whole else np.array(7.0)
    x, part = pt.tensor(dtype="float64", shape=(None,) * value.ndim), pt.as_tensor(y).type()
    wanted, variables, values = symbolic(key, lambda k: k % 2)
    out = getattr(x[wanted], mode)(part)
    assert out.type == x.type
    for backend in MODES:
        found = evaluate(out, [x, part, *variables], [value, y, *values], backend)
        assert_like(found, write(value, key, y, mode))


@pytest.mark.parametrize("mode", [*MODES, "C"])
@pytest.mark.parametrize("shape", [(0,), (0, 7), (2, 0), (2, 7)])
def test_a_mask_that_does_not_fit_is_an_error(mode, shape):
    """Also one without elements, which NumPy takes."""
    x, mask = pt.dmatrix("x"), pt.tensor("mask", dtype="bool", shape=(None,) * len(shape))
    values = [np.ones((7, 2)), np.zeros(shape, bool)]
    for out in (x[mask], pt.set_subtensor(x[mask], 2), pt.inc_subtensor(x[mask], 2)):
        with pytest.raises(IndexError):
            evaluate(out, [x, mask], values, mode)


@pytest.mark.parametrize("mode", [*MODES, "C"])
def test_index_tensors_broadcast_by_lengths_known_to_be_1(mode):
    x, i, j = pt.dmatrix("x"), pt.lvector("i"), pt.lvector("j")
    one = pt.tensor("one", dtype="int64", shape=(1,))
    values = [np.ones((3, 3)), np.array([2]), np.array([1, 0])]
    assert evaluate(x[one, j], [x, one, j], values, mode).shape == (2,)
    for out in (x[i, j], pt.set_subtensor(x[i, j], 2), pt.inc_subtensor(x[i, j], 2)):
        with pytest.raises(IndexError):
            evaluate(out, [x, i, j], values, mode)


@pytest.mark.parametrize("mode", [*MODES, "C"])
def test_a_sum_of_bools_is_or(mode):
    x, i = pt.tensor("x", dtype="bool", shape=(None,)), pt.lvector("i")
    values = np.array([False, True, False])
    outputs = [x[1:].inc(True_), x[i].inc(True_), x[pt.eq(i, 1)].inc(True_)]
    found = evaluate(outputs, [x, i], [values, np.array([1, 1, 0])], mode)
    expected = [[False, True, True], [True, True, False], [True, True, False]]
    np.testing.assert_array_equal(found, expected)


True_ = np.array(True)

# ------------------------------------------------------------------ what NumPy does not say


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", [5, -6, 100])
def test_out_of_range_is_an_error(mode, index):
    x, i, v = pt.dvector("x"), pt.lscalar("i"), pt.lvector("v")
    many = [index, 0]
    for out in (x[i], x[i].set(1), x[i].inc(1), x[index], x[index].set(0)):
        with pytest.raises(IndexError):
            evaluate(out, [x, i], [LINE, index], mode)
    for out in (x[v], x[v].set(1), x[v].inc(1), x[many], pt.take(x, v)):
        with pytest.raises(IndexError):
            evaluate(out, [x, v], [LINE, many], mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", [np.s_[..., "v", :0], np.s_[:0, "v"], np.s_["v", :0, :0]], ids=str)
def test_positions_beside_empty_slices_are_checked_by_writes(mode, key):
    """As NumPy checks them; reads of nothing are in docs/limits.md."""
    x, v = pt.dtensor3("x"), pt.lvector("v")
    place = tuple([v if part == "v" else part for part in key])
    values = np.zeros((2, 1, 2))
    for out in (x[place].set(1), x[place].inc(1)):
        with pytest.raises(IndexError):
            evaluate(out, [x, v], [values, [7, 7]], mode)
        evaluate(out, [x, v], [values, [0, 0]], mode)
        evaluate(out, [x, v], [values, np.zeros(0, "int64")], mode)


@pytest.mark.parametrize("mode", [*MODES, "C"])
def test_equal_values_at_equal_positions_are_all_added(mode):
    x, y, i = pt.dmatrix("x"), pt.dvector("y"), pt.lscalar("i")
    many = pt.alloc(i, 17)
    outputs = [x[many].inc(y), x[many].inc(y.sum()), x[:, many].inc(2.0)]
    found = evaluate(outputs, [x, y, i], [np.zeros((2, 3)), np.arange(3.0), 1], mode)
    np.testing.assert_array_equal(found[0], [[0, 0, 0], [0, 17, 34]])
    np.testing.assert_array_equal(found[1], [[0, 0, 0], [51, 51, 51]])
    np.testing.assert_array_equal(found[2], [[0, 34, 0], [0, 34, 0]])


def every_bound():
    """Bounds of slices from one end of int64 to the other."""
    far = 2**63 - 1
    return [-far - 1, -far, -(2**62), -2, -1, 0, 1, 3, 2**62, far]


@pytest.mark.parametrize("mode", [*MODES, "C"])
@pytest.mark.parametrize("step", [None, 2, -1, -3, 2**62, -(2**63), "k"])
def test_slices_between_any_two_integers(mode, step):
    """No distance between two bounds overflows."""
    x, a, b, k = pt.dvector("x"), *pt.lscalars("a", "b", "k")
    part = x[a : b : k if step == "k" else step]
    f = phintys.function([x, a, b, k], [part, part.shape[0]], mode=mode, on_unused_input="ignore")
    steps = [-(2**63), -1, 2**63 - 1] if step == "k" else [step]
    for n in (0, 5):
        line = np.arange(float(n))
        for start, stop in itertools.product(every_bound(), repeat=2):
            for s in steps:
                found, length = f(line, start, stop, s or 1)
                np.testing.assert_array_equal(found, line[start:stop:s], f"{start}:{stop}:{s}")
                assert length == len(found)


@pytest.mark.parametrize("mode", [*MODES, "C"])
def test_bounds_that_wrap_around_stay_in_the_array(mode):
    """Arithmetic of integers wraps around; no fact about lengths depends on what it would be."""
    x, i = pt.dvector("x"), pt.lscalar("i")
    least = pt.maximum(i, 0)
    bounds = [2 * least, 3 * least, least + least, i * 4 // 4, i + 1]
    parts = [x[bound:] for bound in bounds] + [x[:bound] for bound in bounds]
    f = phintys.function([x, i], parts, mode=mode)
    line = np.arange(5.0)
    for value in [2**62, 2**61 + 1, 2**63 - 1, -(2**63), 2**40, 3, -1]:
        wide = np.int64(value)
        with np.errstate(over="ignore"):
            low = max(wide, np.int64(0))
            numbers = [2 * low, 3 * low, low + low, wide * 4 // 4, wide + np.int64(1)]
        expected = [line[n:] for n in numbers] + [line[:n] for n in numbers]
        for found, part in zip(f(line, value), expected, strict=True):
            np.testing.assert_array_equal(found, part)


@pytest.mark.parametrize("mode", [*MODES, "C"])
def test_slices_with_far_constant_bounds(mode):
    x = pt.dvector("x")
    far = 2**63 - 1
    keys = [
        slice(-far, far),
        slice(far, -far, -1),
        slice(-far - 1, None),
        slice(None, -far - 1, -1),
    ]
    for key, part in zip(keys, phintys.function([x], [x[k] for k in keys], mode=mode)(LINE)):
        np.testing.assert_array_equal(part, LINE[key])


@given(i=st.integers(-7, 7), shape=st.lists(st.integers(0, 4), max_size=3), static=st.booleans())
@FEW
def test_one_integer_is_the_index_that_a_tuple_holds(i, shape, static):
    """The most frequent index has a way of its own."""
    x = pt.tensor("x", dtype="float64", shape=shape if static else [None] * len(shape))
    try:
        general = x[(np.int64(i),)]
    except IndexError as exc:
        with pytest.raises(IndexError) as found:
            x[i]
        assert str(found.value) == str(exc)
        return
    single = x[i]
    assert single.type == general.type
    assert single.owner.op == general.owner.op
    assert [v.type for v in single.owner.inputs] == [v.type for v in general.owner.inputs]
    assert single.owner.inputs[1].data == general.owner.inputs[1].data == i


def test_known_out_of_range_is_an_error_at_once():
    x = pt.tensor("x", shape=(3, None))
    for key in (3, -4, (np.array([0]), 0, 0), (0, 0, 0)):
        with pytest.raises(IndexError, match=r"out of range|Too many"):
            x[key]
    with pytest.raises(IndexError, match="mask"):
        x[np.array([True, False])]


@pytest.mark.parametrize(
    "key, message",
    [
        (1.0, "dtype float"),
        ([True, False], "list of bools"),
        ([[True], [False]], "list of bools"),
        (True, "Python bool"),
        (slice(0, 1.5), "parts of a slice"),
        ("a", "string"),
        (np.array([0.5]), "dtype float64"),
    ],
)
def test_what_is_not_an_index(key, message):
    with pytest.raises(TypeError, match=message):
        pt.dmatrix()[key]
    with pytest.raises(IndexError, match="one Ellipsis"):
        pt.dmatrix()[..., 0, ...]


def test_scalar_masks():
    x, m = pt.dmatrix("x"), pt.tensor("m", dtype="bool", shape=())
    for mode in MODES:
        for value in (True, False):
            found = evaluate(x[m], [x, m], [PLANE, value], mode)
            assert_like(found, PLANE[np.array(value)])
    assert_like(x[np.array(True), 1].eval({x: PLANE}), PLANE[np.array(True), 1])


@pytest.mark.parametrize(
    "axes", few([(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)], (0,), (1, 2)), ids=str
)
@pytest.mark.parametrize("dtype", few(["float64", "float32", "int16", "bool"], "float64", "bool"))
def test_writes_at_masks(axes, dtype):
    """One value for all that a mask selects, or a row of values for the other axes."""
    value, one = (CUBE % 3).astype(dtype), np.array(1, dtype)
    lengths = [CUBE.shape[k] for k in axes]
    mask = np.arange(np.prod(lengths)).reshape(lengths) % 3 != 1
    key = (*[slice(None)] * axes[0], mask)
    row = np.arange(1, 1 + CUBE.shape[-1]).astype(dtype) if axes[-1] < 2 else one
    for op in ("set", "inc"):
        for y in (one, row):
            check(
                lambda x, m, y, op=op: getattr(x[(*key[:-1], m)], op)(y),
                lambda x, m, y, op=op: write(x, (*key[:-1], m), y, op),
                [value, mask, y],
            )
    x, m = (pt.tensor(dtype=v.dtype.name, shape=(None,) * v.ndim) for v in (value, mask))
    for mode in MODES:
        with pytest.raises(IndexError):
            evaluate(x[(*key[:-1], m)].set(0), [x, m], [value, mask[:-1]], mode)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "complex64"])
def test_values_of_every_dtype(dtype):
    value = (PLANE % 3).astype(dtype)
    i = np.array([2, 0, 2])
    check(lambda x: x[1:, ::-2], lambda x: x[1:, ::-2], [value])
    check(lambda x, i: x[i], lambda x, i: x[i], [value, i])
    check(lambda x: x[0].set(x[1]), lambda x: write(x, 0, x[1], "set"), [value])
    if dtype != "bool":
        check(lambda x, i: x[i].inc(1), lambda x, i: write(x, i, 1, "inc"), [value, i])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64"])
def test_indices_of_every_dtype(dtype):
    check(lambda x, i: x[i], lambda x, i: x[i], [PLANE, np.array([2, 0], dtype)])
    check(lambda x, i: x[i, :2], lambda x, i: x[i, :2], [PLANE, np.array(1, dtype)])
    check(lambda x, i: x[i:], lambda x, i: x[i:], [PLANE, np.array(1, dtype)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("how", ["raise", "wrap", "clip"])
def test_take_accepts_positions_of_every_dtype(dtype, how):
    top = 3 if how == "raise" else np.iinfo(dtype).max
    for i in (np.array(top, dtype), np.array([top, 0], dtype)):
        check(
            lambda x, i: pt.take(x, i, axis=1, mode=how),
            lambda x, i: np.take(x, [min(int(k), 3) if how == "clip" else int(k) % 4 for k in
                                     i.ravel()], axis=1).reshape(3, *i.shape),
            [np.arange(12.0).reshape(3, 4), i],
        )  # fmt: skip


def test_constant_positions_of_every_dtype():
    """Also in an axis whose length a narrow dtype does not hold."""
    x = np.arange(300.0)
    integers = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    places = [np.array([p, 100], d) for d in integers for p in (3, -18) if p > 0 or d[0] == "i"]
    v = pt.constant(x).type()
    outputs = [y for at in places for y in (v[at], pt.set_subtensor(v[at], v[at] + 1)[at])]
    f = phintys.function([v], outputs, mode="FAST_RUN")
    for found, expected in zip(f(x), (y for at in places for y in (x[at], x[at] + 1)), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", [*MODES, phintys.Mode("llvm", None), phintys.Mode("c", None)])
def test_positions_read_from_constants(mode):
    """Parts, repetitions and narrower conversions of a constant array: the rest does not count."""
    x = pt.dvector("x")
    at = pt.constant(np.array([200, 1, 2]))
    reads = [x[at[1:]], x[at[1]], x[at[::-1][:2]], x[pt.cast(at, "int8")], x[at[[1, 1]]]]
    f = phintys.function([x], reads, mode=mode)
    for found, expected in zip(f(np.arange(60.0)), ([1, 2], 1, [2, 1], [4, 1, 2], [1, 1])):
        np.testing.assert_array_equal(found, expected)
    for index in (at, at[:2], at[0], at[::-1], at[[0, 0]]):
        with pytest.raises(IndexError):
            phintys.function([x], x[index], mode=mode)(np.arange(60.0))


def test_positions_in_fills_are_checked():
    x, n = pt.dvector("x"), pt.lscalar("n")
    for mode in (*MODES, "C"):
        fills = pt.alloc(3.0, 5), pt.zeros_like(x), pt.ones((x.shape[0],))
        for fill, at in zip(fills, (5, 2, -3)):
            f = phintys.function([x, n], fill[n], mode=mode, on_unused_input="ignore")
            with pytest.raises(IndexError):
                f(np.ones(2), at)
            f(np.ones(2), 1)


def test_unsigned_bounds_of_any_size():
    x, u = pt.dvector("x"), pt.scalar("u", dtype="uint64")
    for mode in (*MODES, "C"):
        f = phintys.function([x, u], [x[:u], x[:u].shape[0], x[u:], x[u:].shape[0]], mode=mode)
        for bound in (0, 2, 2**63, 2**64 - 1):
            head, n, tail, m = f(np.arange(3.0), np.uint64(bound))
            assert (head.size, n, tail.size, m) == (min(bound, 3),) * 2 + (max(3 - bound, 0),) * 2


def test_values_are_converted_to_the_target():
    x = np.arange(4)
    check(lambda x: pt.set_subtensor(x[1], 1.5), lambda x: write(x, 1, 1, "set"), [x])
    check(lambda x: x[[0, 0]].inc(-1.5), lambda x: write(x, [0, 0], -1, "inc"), [x])
    with pytest.raises(TypeError, match="Complex"):
        pt.dvector()[0].set(1j)


def test_repeated_indices():
    i = np.array([1, 1, 3, -4])
    y = np.array([1.0, 2.0, 4.0, 8.0])
    check(lambda x, i, y: x[i].inc(y), lambda x, i, y: write(x, i, y, "inc"), [LINE, i, y])
    check(lambda x, i, y: x[i].set(y), lambda x, i, y: write(x, i, y, "set"), [LINE, i, y])
    check(
        lambda x, i, y: pt.inc_subtensor(x[i], y, ignore_duplicates=True),
        lambda x, i, y: write(x, i, y, "inc", duplicates=True),
        [LINE, i, y],
    )


def test_a_reduction_is_added_at_one_place_once_for_each_index():
    """The loops of the reduction are those of the indices, and nothing that is added varies."""
    i = np.zeros(len(LINE), int)
    check(
        lambda x: pt.inc_subtensor(x[pt.zeros((len(LINE),), dtype="int8")], pt.var(x)),
        lambda x: write(x, i, np.var(x), "inc"),
        [LINE],
    )


@pytest.mark.parametrize("mode", MODES)
def test_values_broadcast_only_by_known_ones(mode):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    i = pt.lvector("i")
    for part in (x[:2], x[i]):
        for op in (part.set, part.inc):
            row = op(pt.specify_broadcastable(y, 0))
            ok = evaluate(row, [x, y, i], [PLANE, PLANE[:1], [0, 1]], mode)
            assert ok.shape == PLANE.shape
            for wrong in (PLANE[:1], PLANE, PLANE[:2, :1]):
                with pytest.raises(ShapeError):
                    evaluate(op(y), [x, y, i], [PLANE, wrong, [0, 1]], mode)
    with pytest.raises(ShapeError, match="does not fit"):
        pt.tensor(shape=(3,))[:2].set(np.zeros(3))
    with pytest.raises(TypeError, match="2 dimensions, the indexed part only 1"):
        x[0].set(y)


def test_only_indexing_expressions_can_be_written_to():
    x = pt.dmatrix("x")
    for wrong in (x, x.T, x + 1, x[0] + 1):
        with pytest.raises(TypeError, match="indexing expression"):
            wrong.set(1)
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1
    assert_like(evaluate(x[:].set(2), [x], [PLANE]), np.full((3, 4), 2.0))
    assert_like(evaluate(x[()].inc(2), [x], [PLANE]), PLANE + 2)


def test_inputs_are_never_written_to():
    x = pt.dvector("x")
    for mode in MODES:
        f = phintys.function([x], [x[1:].set(0), x[[0, 2]].inc(1), x[::-1]], mode=mode)
        value = LINE.copy()
        results = f(value)
        for r in results:
            assert not np.may_share_memory(r, value)
        assert_like(value, LINE)


# ---------------------------------------------------------------------------- derivatives

KEYS = {
    "integer": 0,
    "slice": slice(1, None),
    "slice, new axis, integer": (slice(None, None, -2), None, 1),
    "ellipsis, slice": (Ellipsis, slice(1, 3)),
    "vector": np.array([0, 2, 2, -1]),
    "matrix, slice": (np.array([[0, 1], [2, 0]]), slice(1, 3)),
    "integer, slice, vector": (0, slice(None), np.array([1, 1])),
    "vector, slice, vector": (np.array([0, 1]), slice(None, None, 2), np.array([3, 0])),
    "slice, mask": (slice(None), np.array([True, False, True, False])),
    "mask": CUBE % 7 > 3,
}
#: the keys of which ``make test`` looks at derivatives of writes, and at batches
QUICK = "integer", "slice, new axis, integer", "matrix, slice", "slice, mask"
some_keys = pytest.mark.parametrize("name", few(KEYS, *QUICK))


@pytest.mark.parametrize("name", KEYS)
def test_derivatives_of_reads(name):
    check_derivatives(lambda x: x[KEYS[name]] ** 2, [CUBE / 10])


@some_keys
@pytest.mark.parametrize("op", ["set", "inc"])
def test_derivatives_of_writes(name, op):
    key = KEYS[name]
    region = CUBE[key].shape
    y = np.random.default_rng(0).normal(size=region)
    check_derivatives(lambda x, y: getattr(x[key], op)(y) ** 2, [CUBE / 10, y])
    check_derivatives(lambda x, y: getattr(x[key], op)(y) ** 2, [CUBE / 10, np.array(0.5)])


def test_derivative_of_a_value_that_broadcasts():
    def build(x, y):
        return x[1:].inc(pt.specify_broadcastable(y, 0)) ** 2

    check_derivatives(build, [PLANE / 10, PLANE[:1] / 5])


def test_indices_are_disconnected():
    x, i = pt.dvector("x"), pt.lvector("i")
    with pytest.raises(DisconnectedInputError):
        phintys.grad(x[i].sum(), i)
    g = phintys.grad((x[i] ** 2).sum(), x)
    assert_like(evaluate(g, [x, i], [LINE, [1, 1, 4]]), np.array([0, 4.0, 0, 0, 8.0]))
    n = pt.lvector("n")
    assert_like(
        evaluate(phintys.grad((n[:2] * x[:2]).sum(), x), [x, n], [LINE, np.arange(5)]),
        np.array([0, 1.0, 0, 0, 0]),
    )


# -------------------------------------------------------------------------------- batches


@some_keys
def test_batches_of_reads_and_writes(name):
    key = KEYS[name]
    y = np.random.default_rng(0).normal(size=CUBE[key].shape)
    check_batched(lambda x: x[key], [CUBE])
    for op in ("set", "inc"):
        check_batched(lambda x, y, op=op: getattr(x[key], op)(y), [CUBE, y])
        check_batched(lambda x, y, op=op: getattr(x[key], op)(y), [CUBE, np.array(3.0)])


def batch_over(build, values, over):
    """Batching only some of the arguments."""
    inputs = [pt.as_tensor(v).type() for v in values]
    batches = [np.stack([v, v + 1]) if k in over else v for k, v in enumerate(values)]
    batched = [pt.as_tensor(b).type() if k in over else inputs[k] for k, b in enumerate(batches)]
    out = build(*inputs)
    replace = {inputs[k]: batched[k] for k in over}
    found = evaluate(vectorize_graph(out, replace), batched, batches)
    f = phintys.function(inputs, out)
    one_by_one = [f(*(b[i] if k in over else b for k, b in enumerate(batches))) for i in range(2)]
    assert_like(found, np.stack(one_by_one))


PLACES = {
    "first": lambda i: i,
    "behind a slice": lambda i: (slice(1, None), i),
    "around a slice": lambda i: (i, slice(None), i),
    "behind an integer": lambda i: (0, slice(None), i),
    "two behind a slice": lambda i: (slice(None), i, i),
}


@pytest.mark.parametrize(
    "over",
    few([(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], (0,), (2,), (0, 1, 2)),
    ids=str,
)
@pytest.mark.parametrize("place", few(PLACES, "behind a slice", "around a slice"))
def test_batches_of_indices(place, over):
    key = PLACES[place]
    for i in (np.array(1), np.array([0, 1, 1]), np.array([[0], [1]])):
        y = np.array(2.5)
        if 1 not in over or over != (1,):
            batch_over(lambda x, y, i: x[key(i)] * y, [CUBE, y, i], over)
        for op in ("set", "inc"):
            batch_over(lambda x, y, i, op=op: getattr(x[key(i)], op)(y), [CUBE, y, i], over)


def test_ragged_results_are_refused(mode):
    x, i, m = pt.dvector("x"), pt.lscalar("i"), pt.tensor("m", dtype="bool", shape=(None,))
    several, masks = pt.lvector(), pt.tensor(dtype="bool", shape=(None, None))
    for out, replace, values in (
        (x[i:], {i: several}, [1, 2]),
        (x[m], {m: masks}, [[True] * 5, [True] + [False] * 4]),
    ):
        (batch,) = replace.values()
        f = phintys.function([x, batch], vectorize_graph(out, replace), mode=mode)
        with pytest.raises(ShapeError, match="Items of a batch have results of shapes"):
            f(LINE, values)


#: functions of a vector and an integer in which something of another length for each integer is
#: written to, summed or joined
RAGGED = {
    "a roll": lambda x, n: pt.roll(x, n),
    "a part that is set": lambda x, n: pt.set_subtensor(x[n:], 9.0),
    "a part that is set to values": lambda x, n: pt.set_subtensor(x[n : n + 2], x[:2]),
    "a part that is added to": lambda x, n: pt.inc_subtensor(x[:n], 1.0),
    "elements that are set": lambda x, n: pt.set_subtensor(x[x > n], x.sum()),
    "a sum of a part": lambda x, n: x[n:].sum(),
    "a sum of elements": lambda x, n: x[x > n].sum(),
    "an element of a part": lambda x, n: (x[:n] * 2)[-1],
    "a length": lambda x, n: x[x > n].shape[0] * x,
    "a range": lambda x, n: (pt.arange(n) * 2).sum() * x,
    "positions": lambda x, n: pt.nonzero(x > n)[0].sum() * x,
    "a new shape": lambda x, n: (pt.ones((n, 2)) * x[:2]).sum(axis=0),
    "parts that are joined": lambda x, n: pt.concatenate([x[n:], pt.zeros((n,))]),
}


@pytest.mark.parametrize("name", RAGGED)
def test_batches_of_integers_that_are_lengths(name):
    """Some were UnsupportedError, others a ShapeError when they were computed."""
    x, n, several = pt.dvector("x"), pt.lscalar("n"), pt.lvector("several")
    out = RAGGED[name](x, n)
    batch = vectorize_graph(out, {n: several})
    found = evaluate([batch, phintys.grad((batch**2).sum(), x)], [x, several], [LINE, [1, 2]])
    items = [[out, phintys.grad((out**2).sum(), x)]] * 2
    each = [evaluate(item, [x, n], [LINE, k]) for item, k in zip(items, (1, 2))]
    assert_like(found[0], np.stack([values[0] for values in each]))
    assert_like(found[1], each[0][1] + each[1][1])


def test_lists_that_contain_slices_are_tuples():
    x = pt.as_tensor(PLANE)
    for key in (
        [slice(0, 2), slice(1, 3)],
        [1, slice(0, 2)],
        [slice(0, 2), [0, 2]],
        [slice(2), None],
    ):
        assert_like(x[key].eval(), PLANE[tuple(key)])
    assert_like(pt.set_subtensor(x[[slice(0, 1), 1]], 9.0)[0, 1].eval(), 9.0)


def test_index_tensors_that_do_not_broadcast(mode):
    """It was a ShapeError, which is a ValueError."""
    x, i, j = pt.dmatrix("x"), pt.lvector("i"), pt.lvector("j")
    for out in (x[i, j], x[i, j].set(1.0), x[i, j].inc(1.0)):
        f = phintys.function([x, i, j], out, mode=mode)
        with pytest.raises(IndexError):
            f(np.ones((3, 3)), [0, 1], [0, 1, 2])
    with pytest.raises(IndexError):
        x[[0, 1], [0, 1, 2]]


def test_sums_of_integers_and_floats():
    """Fractions were dropped without a word; NumPy and PyTensor raise for slices."""
    k, b = pt.lvector("k"), pt.vector("b", dtype="bool")
    for x, y in ((k, 0.9), (k, np.array([0.5])), (b, 0.5)):
        with pytest.raises(TypeError, match="cannot be added to a slice"):
            pt.inc_subtensor(x[1:], y)
    given = [np.array([1, 2, 3])]
    check(lambda k: pt.set_subtensor(k[1:], 0.9), lambda k: np.array([1, 0, 0]), given)
    check(lambda k: pt.inc_subtensor(k[0], 1.9), lambda k: np.array([2, 2, 3]), given)
    check(lambda k: pt.inc_subtensor(k[[0, 1]], 1.9), lambda k: np.array([2, 3, 3]), given)


def test_jacobian_of_reads_and_writes():
    x = pt.dvector("x")
    i = np.array([3, 0, 3])
    out = x[i] ** 2 + x[1:4][::-1].set(x[2])[:3]
    found = evaluate(phintys.jacobian(out, x), [x], [LINE])
    expected = np.zeros((3, 5))
    expected[np.arange(3), i] = 2 * LINE[i]
    expected[:, 2] += 1
    assert_like(found, expected)


# ------------------------------------------------------------------------------ functions


def test_take():
    i = np.array([[1, -1], [0, 2]])
    check(lambda x, i: pt.take(x, i, axis=1), lambda x, i: np.take(x, i, axis=1), [PLANE, i])
    check(lambda x, i: x.take(i), lambda x, i: np.take(x, i), [PLANE, i])
    check(lambda x: pt.take(x, 1, axis=-1), lambda x: np.take(x, 1, axis=-1), [PLANE])
    far = np.array([-20, -1, 3, 4, 40])
    for mode in ("clip", "wrap"):
        for axis in (None, 0, 1):
            check(
                lambda x, i, axis=axis, mode=mode: pt.take(x, i, axis=axis, mode=mode),
                lambda x, i, axis=axis, mode=mode: np.take(x, i, axis=axis, mode=mode),
                [PLANE, far],
            )
    with pytest.raises(ValueError, match="modes"):
        pt.take(PLANE, 0, mode="none")


def test_take_along_axis():
    for axis in (0, 1, -1):
        i = np.argsort(-PLANE, axis=axis)
        check(
            lambda x, i, axis=axis: pt.take_along_axis(x, i, axis=axis),
            lambda x, i, axis=axis: np.take_along_axis(x, i, axis=axis),
            [PLANE, i],
        )
    check(
        lambda x: pt.take_along_axis(x, np.array([[1], [0], [3]]), axis=1),
        lambda x: np.take_along_axis(x, np.array([[1], [0], [3]]), axis=1),
        [PLANE],
    )
    check(
        lambda x: pt.take_along_axis(x, np.array([1, 5]), axis=None),
        lambda x: np.take_along_axis(x, np.array([1, 5]), axis=None),
        [PLANE],
    )
    with pytest.raises(ValueError, match="rank"):
        pt.take_along_axis(PLANE, [0])


def test_compress_flip_and_nonzero():
    holes = PLANE % 5
    keep = np.array([True, False, True])
    check(lambda x, c: pt.compress(c, x, axis=0), lambda x, c: np.compress(c, x, 0), [PLANE, keep])
    check(lambda x: x.compress([1, 0, 1]), lambda x: np.compress([1, 0, 1], x), [PLANE])
    for axis in (None, 0, -1, (0, 2)):
        check(lambda x, axis=axis: pt.flip(x, axis), lambda x, axis=axis: np.flip(x, axis), [CUBE])
    check(lambda x: pt.nonzero(x)[1], lambda x: np.nonzero(x)[1], [holes])
    check(lambda x: x.nonzero(True), lambda x: np.stack(np.nonzero(x)), [holes])
    check(pt.flatnonzero, np.flatnonzero, [holes])
    check(pt.nonzero_values, lambda x: x[x != 0], [holes])
    for function in (pt.nonzero, pt.flatnonzero):
        with pytest.raises(ValueError, match="0-d"):
            function(pt.dscalar())


def test_slice_at_axis():
    for axis in (0, 1, 2, -1, -2):
        expected = np.take(CUBE, [1, 2], axis)
        assert_like(CUBE[pt.slice_at_axis(slice(1, 3), axis)], expected)


# ---------------------------------------------------------------------- for rewrite authors


def test_index_lists():
    x, i, j = pt.dtensor3("x"), pt.lscalar("i"), pt.lscalar("j")
    node = x[i, 2:j].owner
    assert node.op.idx_list == (0, slice(1, 2, None))
    assert node.inputs[2].data == 2 and node.inputs[2].type.dtype == "int64"
    first, second = get_idx_list(node.inputs, node.op.idx_list)
    assert first is node.inputs[1] and second.stop is node.inputs[3]
    key = (slice(None, i, 3), 5, slice(None))
    idx_list, flat = flatten_index_variables(key)
    assert idx_list == [slice(None, 0, 1), 2, slice(None)] and flat == [i, 3, 5]
    assert (
        indices_from_subtensor(flat, idx_list) == unflatten_index_variables(flat, idx_list) == key
    )


def test_ops_are_values():
    ops = [
        Subtensor((0,)),
        Subtensor((slice(0, None),)),
        AdvancedSubtensor((0,)),
        IncSubtensor((0,)),
        IncSubtensor((0,), set_instead_of_inc=True),
        IncSubtensor((0,), inplace=True),
        AdvancedIncSubtensor((0,), ignore_duplicates=True),
        AdvancedIncSubtensor((0,), set_instead_of_inc=True),
    ]
    assert len(set(ops)) == len(ops) == len({str(op) + str(op.__dict__) for op in ops})
    for op in ops:
        assert pickle.loads(pickle.dumps(op)) == op
    assert [str(op) for op in ops[:5]] == [
        "Subtensor{i}",
        "Subtensor{start:}",
        "AdvancedSubtensor{i}",
        "IncSubtensor{i}",
        "SetSubtensor{i}",
    ]


def test_inplace_writes():
    value = LINE.copy()
    x, y = pt.dvector("x"), pt.dscalar("y")
    for op in (IncSubtensor((slice(0, None),), inplace=True), AdvancedIncSubtensor((0,), True)):
        index = 1 if isinstance(op, IncSubtensor) else [0, 0]
        node = op.make_node(x, y, index)
        assert op.destroy_map == {0: [0]}
        storage = [[None]]
        op.perform(node, [value, np.array(10.0), *(i.data for i in node.inputs[2:])], storage)
        assert storage[0][0] is value
    assert_like(value, np.array([20.0, 11, 12, 13, 14]))


parts = st.none() | st.integers(-7, 7)


@FEW
@given(parts, parts, st.none() | st.integers(-3, 3).filter(bool), st.integers(0, 6), st.booleans())
def test_canonical_slices(start, stop, step, n, known):
    expected = range(n)[start:stop:step]
    assert slice_static_length(slice(start, stop, step), n) == len(expected)
    assert slice_static_length(slice(start, stop, step), None) in (None, len(expected))
    key, variables, values = symbolic((slice(start, stop, step),), lambda k: not known)
    length = pt.lscalar()
    found, direction = get_canonical_form_slice(key[0], n if known else length)
    bounds = [pt.as_tensor(p) for p in (found.start, found.stop, found.step, direction)]
    inputs = [*variables, length]
    *p, d, m = evaluate([*bounds, slice_len(key[0], length)], inputs, [*values, n], MODES[0])
    assert min(p) >= 0 and m == len(expected)
    assert list(range(n)[slice(*map(int, p))][:: int(d)]) == list(expected)


def test_canonical_integers_and_constants():
    assert get_canonical_form_slice(-1, 10) == (9, 1)
    assert get_canonical_form_slice(slice(None, None, -1), 10) == (slice(0, 10, 1), -1)
    assert get_canonical_form_slice(slice(-2, None), 10) == (slice(8, 10, 1), 1)
    i = pt.lscalar()
    assert [get_canonical_form_slice(i, 4)[0].eval({i: k}) for k in (1, -1)] == [1, 3]
    with pytest.raises(ValueError, match="step"):
        slice_len(slice(0, 3, 0), 4)
    with pytest.raises(ValueError, match="step"):
        pt.dvector()[::0]


def test_known_shapes_go_through_slices():
    x = pt.tensor(shape=(3, None, 5))
    assert pt.zeros(x.shape[::2]).type.shape == (3, 5)
    assert pt.zeros(x.shape[1:]).type.shape == (None, 5)
    assert pt.zeros((3, 4))[: x.shape[0] - 1].type.shape == (2, 4)
    assert pt.get_underlying_scalar_constant_value(x.shape[1:][1]) == 5
    assert pt.get_underlying_scalar_constant_value(pt.ones((4, 4))[1:, 2]) == 1


def test_shapes_of_results():
    def ints(shape):
        return tuple(int(n.eval()) for n in shape)

    key = (slice(1, None), None, np.array([[0], [2]]), np.array([0, 1, 1]))
    assert ints(indexed_result_shape(CUBE.shape, key)) == CUBE[key].shape
    shapes = (slice(1, None), None, (2, 1), (3,))
    assert ints(indexed_result_shape(CUBE.shape, shapes, indices_are_shapes=True)) == (2, 1, 2, 3)
    assert ints(basic_shape(CUBE.shape, (0, slice(None, None, -2)))) == (2, 5)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_finite_differences_need_no_check(n):
    """``x[2:] - 2 * x[1:-1] + x[:-2]``: the lengths are seen to be equal when compiled."""
    x = pt.dvector("x")
    f = phintys.function([x], x[2:] - 2 * x[1:-1] + x[:-2])
    value = np.arange(float(n)) ** 2
    assert_like(f(value), value[2:] - 2 * value[1:-1] + value[:-2])
    assert not any("check" in type(s).__name__.lower() for s in f.program.steps)


@pytest.mark.parametrize(
    "key", [np.s_[None], np.s_[:, None], np.s_[None, :, None], np.s_[..., None], np.s_[::, None]]
)
def test_an_index_that_only_adds_axes_is_one_node(key):
    """A DimShuffle, without a read of everything; the printed names of variables go through it."""
    x = pt.dvector("x")
    assert isinstance(x[key].owner.op, DimShuffle) and x[key].owner.inputs == [x]
    values = np.array([1.0, 2.0])
    np.testing.assert_array_equal(x[key].eval({x: values}), values[key])
    np.testing.assert_array_equal(x[key].set(3.0).eval({x: values}), [3.0, 3.0])
    np.testing.assert_array_equal(x[key].inc(x[key]).eval({x: values}), 2 * values)
    assert isinstance(x[:].owner.op, Subtensor)
