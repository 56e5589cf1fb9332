"""The reference of the indexing ops against loops over single elements, without NumPy's indexing.

NumPy itself has been wrong here (``np.add.at`` with a value that broadcasts), so what an index
means is written out: for each element of the result the element that it comes from.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode

REFERENCE = Mode("py", None)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


# ------------------------------------------------------------------------- what an index means


def points(shape):
    return list(itertools.product(*map(range, shape)))


def expanded(shape, key):
    """One entry per axis: a list of positions for a slice, or (shape, {point: position})."""
    entries, axis = [], 0
    for e in key:
        if isinstance(e, np.ndarray) and e.dtype == bool:
            true = [p for p in points(e.shape) if bool(e[p])]
            for k in range(e.ndim):
                entries.append(((len(true),), {(j,): p[k] for j, p in enumerate(true)}))
            axis += e.ndim
        elif isinstance(e, slice):
            entries.append(list(range(*e.indices(shape[axis]))))
            axis += 1
        else:
            e = np.asarray(e)
            wrapped = {p: int(e[p]) + (shape[axis] if e[p] < 0 else 0) for p in points(e.shape)}
            assert all(0 <= i < shape[axis] for i in wrapped.values())
            entries.append((e.shape, wrapped))
            axis += 1
    return entries + [list(range(n)) for n in shape[axis:]]


def joint_shape(shapes):
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(max(lengths) if 0 not in lengths else 0 for lengths in zip(*padded))


def at(point, shape):
    """The point of a tensor of ``shape`` that is read where it is broadcast."""
    tail = point[len(point) - len(shape) :]
    return tuple(0 if n == 1 else i for i, n in zip(tail, shape))


def sources(shape, key):
    """(shape of the result, its elements in C order as points of the indexed tensor)."""
    entries = expanded(shape, key)
    lists = [k for k, e in enumerate(entries) if isinstance(e, tuple)]
    rest = [k for k in range(len(entries)) if k not in lists]
    index = joint_shape([entries[k][0] for k in lists]) if lists else ()
    together = lists == list(range(lists[0], lists[0] + len(lists))) if lists else True
    before = [k for k in rest if together and lists and k < lists[0]]
    after = [k for k in rest if k not in before]
    lengths = [len(entries[k]) for k in before], index, [len(entries[k]) for k in after]
    result = tuple(n for part in lengths for n in part)
    found = []
    for point in points(result):
        own = point[len(before) : len(before) + len(index)]
        rest_point = point[: len(before)] + point[len(before) + len(index) :]
        source = dict(zip([*before, *after], rest_point))
        source = {k: entries[k][j] for k, j in source.items()}
        source |= {k: entries[k][1][at(own, entries[k][0])] for k in lists}
        found.append((point, tuple(source[k] for k in range(len(entries)))))
    return result, found


def written(x, key, y, how):
    """``x`` with ``y`` written element by element, in C order of the part."""
    out, before = x.copy(), x.copy()
    for point, source in sources(x.shape, key)[1]:
        value = y[at(point, y.shape)]
        if how == "set":
            out[source] = value
        elif how == "once":
            out[source] = before[source] + value
        else:
            out[source] = out[source] + value
    return out


# ----------------------------------------------------------------------------- what is compared


def run(build, values):
    """``build`` of one variable for each array, by ``perform``; lengths of 1 are known."""
    inputs = [
        pt.tensor(dtype=v.dtype.name, shape=[1 if n == 1 else None for n in v.shape])
        for v in values
    ]
    f = phintys.function(inputs, build(*inputs), mode=REFERENCE, on_unused_input="ignore")
    return f(*values)


def assert_equal(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def with_arrays(key, replace):
    """The key with its arrays replaced, in order."""
    arrays = iter(replace)
    return tuple(next(arrays) if isinstance(e, np.ndarray) else e for e in key)


def values_for(shape, dtype):
    """A value of every shape that broadcasts to ``shape``."""
    shapes = {()}
    for k in range(len(shape) + 1):
        for ones in itertools.product([False, True], repeat=len(shape) - k):
            shapes.add(tuple(1 if one else n for one, n in zip(ones, shape[k:])))
    shapes |= {(1,)} if shape else set()
    for s in sorted(shapes):
        yield (np.arange(1, 1 + int(np.prod(s))) * 3 % 11 + 1).astype(dtype).reshape(s)


def check_key(key, shape, dtype="float64"):
    """Reads and all writes at a key, whose arrays are arguments."""
    x = (np.arange(int(np.prod(shape))) % 7).astype(dtype).reshape(shape)
    arrays = [e for e in key if isinstance(e, np.ndarray)]
    part, found = sources(shape, key)
    read = np.zeros(part, dtype)
    for point, source in found:
        read[point] = x[source]
    assert_equal(run(lambda x, *a: x[with_arrays(key, a)], [x, *arrays]), read)
    for y in values_for(part, dtype):
        for how in ("set", "inc", "once"):

            def build(x, y, *a, how=how):
                region = x[with_arrays(key, a)]
                if how == "set":
                    return pt.set_subtensor(region, y)
                return pt.inc_subtensor(region, y, ignore_duplicates=how == "once")

            if how == "once" and not arrays:
                continue
            assert_equal(run(build, [x, y, *arrays]), written(x, key, y, how))


def i(*entries, dtype="int64"):
    return np.array(entries[0] if len(entries) == 1 else entries, dtype)


FULL = slice(None)
KEYS = {
    "basic": (1, slice(None, None, -2)),
    "one position": (i(-1),),
    "repeated": (i(0, 2, 0, -3, 1),),
    "matrix": (i([0, 1], [0, -1], [2, 2]),),
    "matrix in the other order": (i([0, 1], [0, -1], [2, 2]).T,),
    "cube": (np.arange(8).reshape(2, 2, 2) % 3,),
    "none": (np.zeros(0, "int64"),),
    "none of two axes": (np.zeros((2, 0), "int64"), FULL),
    "two": (i(0, 0, -1), i(1, 1, 3)),
    "two that broadcast": (i([0], [0], [2]), i(1, 1)),
    "behind": (FULL, i(3, 3, -4)),
    "matrix behind": (FULL, i([3, 0], [3, 1]).T),
    "apart": (i(0, 0), FULL, i([4, 4], [0, 1])),
    "in the middle": (slice(1, None), i([1, 1], [0, 0]), slice(None, None, 2)),
    "with an integer": (i(1, 1, 0), 2),
    "mask": (np.array([True, False, True]),),
    "mask of two axes": (np.arange(12).reshape(3, 4) % 3 == 0,),
    "mask behind": (FULL, np.array([True, False, True, True])),
    "mask of all axes": (np.arange(60).reshape(3, 4, 5) % 4 == 1,),
    "empty mask": (np.zeros(3, bool),),
    "mask and positions": (np.array([True, False, True]), i(1, 0)),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys(name):
    check_key(KEYS[name], (3, 4, 5))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_dtypes_of_positions(dtype):
    sign = -1 if dtype.startswith("int") else 1
    check_key((i([0, 2], [0, sign * 1], dtype=dtype),), (3,))
    check_key((i(0, 2, 0, dtype=dtype), FULL, i(1, 1, 0, dtype=dtype)), (3, 2, 4))


@pytest.mark.parametrize(
    "dtype",
    [*INTEGERS, "bool", "float16", "float32", "float64", "complex64", "complex128"],
)
def test_dtypes_of_values(dtype):
    for key in ((i([0, 1], [0, 0]),), (slice(None, None, -1), i(1, 1)), (1,)):
        check_key(key, (2, 3), dtype)


@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (0, 3), (1, 1), (2, 0, 3)], ids=str)
def test_short_and_empty_tensors(shape):
    check_key((slice(None, None, -1),), shape)
    check_key((np.zeros(0, "int64"),), shape)
    check_key((np.zeros(shape, bool),), shape)
    check_key((np.ones(shape[:1], bool),), shape)
    if shape[0]:
        check_key((i([0, 0], [-1, 0]),), shape)


def test_the_last_of_many_values_at_one_position_stays():
    """In C order of the positions, however they lie in memory, and whatever their number."""
    rng = np.random.default_rng(0)
    for lengths in ((40, 30), (3, 7, 11)):
        positions = rng.integers(0, 5, lengths)
        for layout in (positions, positions.T.copy().T, positions[::-1], positions[..., ::-1]):
            value = rng.normal(size=lengths)
            for y in (value, value.T.copy().T):
                x = np.zeros(5)
                found = run(lambda x, i, y: pt.set_subtensor(x[i], y), [x, layout, y])
                assert_equal(found, written(x, (layout,), y, "set"))
