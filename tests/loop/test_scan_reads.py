"""Reads of rows of a loop's results: the values, and the rows and steps that are left."""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_scan_derivatives import loops, scan

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.loop import until

REWRITTEN = Mode("py", "fast_run")
x, q = pt.dvectors("x", "q")
rows50 = pt.tensor("rows50", dtype="float64", shape=(50,))
n = pt.lscalar("n")

#: reads of a result of ``n`` rows, and how many rows at the end they need
AT_END = {
    "o[-1]": 1,
    "o[-3]": 3,
    "o[-3:]": 3,
    "o[-3:-1]": 3,
    "o[-4::2]": 4,
    "o[:-4:-1]": 4,
    "o[:-1][-1]": 2,
    "o[1:][-2]": 3,
    "o[n - 1]": 1,
    "o[n - 3]": 3,
    "o[n - 3:]": 3,
    "o[n - 3:n - 1]": 3,
    "o[o.shape[0] - 1]": 1,
    "o[o.shape[0] - 2:]": 2,
    "o[:o.shape[0] - 1][-2:]": 3,
    "pt.stack([o[-1], o[n - 2]])": 2,
    "o[::-1][:2]": 2,
    "o[::-1][1:4:2]": 4,
}


def lengths(steps, read):
    """The loop that is left of one whose results are read: the rows of its state, its steps."""
    o = scan(lambda s: s * 1.5, None, [x], n_steps=steps)
    out = eval(read, {"o": o, "n": steps, "pt": pt})
    f = phintys.function([x, n], out, mode=REWRITTEN, on_unused_input="ignore")
    (node,) = loops(*f.maker.fgraph.outputs)
    return node.op.outer_sitsot(node.inputs)[0].type.shape[0], node.inputs[0]


@pytest.mark.parametrize("read", AT_END)
def test_rows_at_the_end_are_kept(read):
    # and the first one, if there are fewer steps; for the last state there is a check
    assert lengths(n, read)[0] == AT_END[read] + (read != "o[-1]")
    assert lengths(50, read)[0] <= AT_END[read] + ("shape" in read or "::-1" in read)


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_numbers_of_steps_of_other_types(dtype):
    m = pt.scalar("m", dtype=dtype)
    o = scan(lambda s: s * 1.5, None, [x], n_steps=m)
    for out, rows in ((o[m - 1], 2), (o[m - 3 :], 4), (o[m + 1 - 2], None)):
        f = phintys.function([x, m], out, mode=REWRITTEN)
        (node,) = loops(*f.maker.fgraph.outputs)
        assert rows is None or node.op.outer_sitsot(node.inputs)[0].type.shape[0] == rows
        for count in (1, 2, 127):
            p = phintys.function([x, m], out, mode=Mode("py", None))
            np.testing.assert_array_equal(*[g([1.0], count) for g in (f, p)])


@pytest.mark.parametrize(
    "read", ["o[5:]", "o[n // 2]", "o[q.shape[0] - 1]", "o[::7]", "o[3], o[-1]"]
)
def test_other_rows_stay(read):
    o = scan(lambda s: s * 1.5, None, [x], n_steps=50)
    outs = eval(f"[{read}]", {"o": o, "n": n, "q": q})
    f = phintys.function([x, n, q], outs, mode=REWRITTEN, on_unused_input="ignore")
    (node,) = loops(*f.maker.fgraph.outputs)
    assert node.op.outer_sitsot(node.inputs)[0].type.shape[0] == 51


@pytest.mark.parametrize(
    "last",
    [
        lambda: scan(lambda a, s: s * a, [rows50], [x])[-1],
        lambda: scan(lambda a, s: s * a, [pt.arange(50) / 7], [x])[-1],
        lambda: phintys.foldl(lambda a, s: s * a, rows50, x, return_updates=False),
        lambda: scan(lambda s: (s * 2, until(s.sum() > 9)), None, [x], n_steps=50)[-1],
        lambda: scan(lambda a, s: s * a, [q], [x])[q.shape[0] - 1],
    ],
)
def test_the_last_row_of_other_loops(last):
    f = phintys.function([x, rows50, q], last(), mode=REWRITTEN, on_unused_input="ignore")
    (node,) = loops(*f.maker.fgraph.outputs)
    assert node.op.outer_sitsot(node.inputs)[0].type.shape[0] <= 2


@pytest.mark.parametrize("read, count", [("o[0]", 1), ("o[4]", 5), ("o[1:3]", 3), ("o[:7:2]", 7)])
def test_steps_after_the_last_row_that_is_used_are_left_out(read, count):
    buffer, steps = lengths(n, read)
    assert buffer == count + 1
    assert [steps.eval({n: k}) for k in (0, count, 90)] == [0, count, count]
    assert lengths(50, read)[1].data == count
    o = scan(lambda s: s * 1.5, None, [x], n_steps=n)
    f = phintys.function([x, n], o[3])
    np.testing.assert_array_equal(f([2.0], 9), [2 * 1.5**4])
    with pytest.raises(IndexError):
        f([2.0], 3)


def test_steps_stay_where_another_result_needs_them():
    o, total = scan(lambda s: (s * 1.5, s.sum()), None, [x, None], n_steps=n)
    f = phintys.function([x, n], [o[0], total[-1]], mode=REWRITTEN)
    (node,) = loops(*f.maker.fgraph.outputs)
    assert node.inputs[0] in f.maker.fgraph.inputs


# ---------------------------------------------------------------------------- drawn reads


def bound(rng):
    k = rng.randrange(1, 5)
    return rng.choice((f"{k - 1}", f"-{k}", f"n - {k}", f"r.shape[0] - {k}", "n // 2"))


def drawn_read(rng):
    """The text of a read of ``r``: slices, and perhaps a position."""
    parts = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        start, stop = (rng.choice(("", bound(rng))) for _ in range(2))
        parts.append(f"{start}:{stop}:{rng.choice(('', '', '', '2', '-1', '-2'))}")
    if not parts or rng.random() < 0.6:
        parts.append(bound(rng))
    return parts


def read_of(r, parts, n):
    for part in parts:
        r = eval(f"r[{part}]", {"r": r, "n": n})
    return r


def values_of(count, start, two, ends):
    """The results of the loop below in NumPy."""
    first, second, third = [], list(two), []
    for t in range(count):
        start = start * 0.5 + t
        second.append(second[-2] - second[-1] / 2)
        first.append(start)
        third.append(start * 2)
        if ends and start > 3:
            break
    return [np.array(a).reshape(-1) for a in (first, second[2:], third)]


def found_by(count, steps, reads, ends, mode):
    """The values read, or IndexError."""

    def step(t, a, p, q):
        new = a * 0.5 + t
        results = [new, p - q / 2, new * 2]
        return (results, until(new > 3)) if ends else results

    a, two = pt.dscalar("a"), pt.dvector("two")
    info = [a, dict(initial=two, taps=[-2, -1]), None]
    try:
        results = scan(step, [pt.arange(30) * 1.0], info, n_steps=steps)
        outputs = [read_of(results[k], parts, steps) for k, parts in reads]
        f = phintys.function([a, two, n], outputs, mode=mode, on_unused_input="ignore")
        return f(0.3, [0.5, 0.7], count)
    except IndexError:
        return IndexError


@pytest.mark.parametrize("seed", range(24))
def test_drawn_reads(seed):
    rng = random.Random(seed)
    known, ends = rng.random() < 0.5, rng.random() < 0.2
    reads = [(rng.randrange(3), drawn_read(rng)) for _ in range(rng.choice((1, 1, 2, 3)))]
    for count in [rng.randrange(2, 12)] if known else (0, 1, 2, 3, 9):
        try:
            values = values_of(count, 0.3, [0.5, 0.7], ends)
            wanted = [read_of(values[k], parts, count) for k, parts in reads]
        except IndexError:
            wanted = IndexError
        steps = count if known else n
        found = found_by(count, steps, reads, ends, rng.choice(("FAST_RUN", "C", REWRITTEN)))
        if wanted is IndexError:
            assert found is IndexError, reads
            continue
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=str(reads))
