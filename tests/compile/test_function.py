"""`function`: what goes in, what comes out, updates, givens (rows P and S of the feature table)."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import In, Out
from phintys.config import config
from phintys.errors import UnusedInputError

MODES = ["FAST_COMPILE", "FAST_RUN", "C"]
pytestmark = [
    pytest.mark.parametrize("mode", MODES),
    pytest.mark.usefixtures("each_loader"),
    pytest.mark.filterwarnings("ignore:Setting default_update:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The no_default_updates:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _compiler(mode: str):
    import shutil

    if mode == "C" and not shutil.which("cc"):
        pytest.skip("no C compiler")


def test_the_form_of_results(mode: str):
    x = pt.dscalar("x")
    y = x + 1
    assert phintys.function([x], y, mode=mode)(1) == 2.0
    assert phintys.function((x,), [y], mode=mode)(1) == [2.0]
    assert phintys.function([x], (y, y), mode=mode)(1) == [2.0, 2.0]
    assert phintys.function([], None, mode=mode)() == []
    assert phintys.function([], [], mode=mode)() == []


def test_results_of_numbers_are_arrays(mode: str):
    x = pt.dscalar("x")
    out = phintys.function([x], x * 2, mode=mode)(1.5)
    assert isinstance(out, np.ndarray)
    assert out.shape == ()
    assert out.dtype == np.float64


def test_updates_use_the_old_values(mode: str):
    a, b = phintys.shared(np.arange(3.0), "a"), phintys.shared(np.ones(3), "b")
    f = phintys.function([], [a, b], updates={a: b, b: a}, mode=mode)
    first, second = f()
    np.testing.assert_array_equal(first, [0, 1, 2])
    np.testing.assert_array_equal(second, [1, 1, 1])
    np.testing.assert_array_equal(a.get_value(), [1, 1, 1])
    np.testing.assert_array_equal(b.get_value(), [0, 1, 2])
    a.get_value(borrow=True)[:] = 7  # after a swap each still has memory of its own
    np.testing.assert_array_equal(b.get_value(), [0, 1, 2])


def test_results_show_values_before_the_update(mode: str):
    s = phintys.shared(np.zeros(2), "s")
    f = phintys.function([], [s, s + 1], updates={s: s + 1}, mode=mode)
    for k in range(3):
        before, after = f()
        np.testing.assert_array_equal(before, [k, k])
        np.testing.assert_array_equal(after, [k + 1, k + 1])
        kept = before.copy()
        f()
        np.testing.assert_array_equal(before, kept)
        s.set_value(s.get_value() - 1)


def test_two_targets_of_one_value_do_not_share_memory(mode: str):
    a, b = phintys.shared(np.zeros(2)), phintys.shared(np.zeros(2))
    x = pt.dvector("x")
    y = x * 2
    out = phintys.function([x], y, updates={a: y, b: y}, mode=mode)(np.ones(2))
    for left, right in ((a, b), (a, None), (b, None)):
        other = out if right is None else right.get_value(borrow=True)
        assert not np.shares_memory(left.get_value(borrow=True), other)


class RestAndAll(phintys.Op):
    """Two results in one array; the second one owns it."""

    __props__ = ()
    itypes, otypes = [pt.dvector], [pt.dvector, pt.dvector]

    def perform(self, node: Any, inputs: Any, output_storage: Any):
        found = 2 * inputs[0]
        output_storage[0][0], output_storage[1][0] = found[1:], found


def test_results_of_one_node_do_not_share_memory(mode: str):
    x = pt.dvector("x")
    assert not np.shares_memory(*phintys.function([x], RestAndAll()(x), mode=mode)(np.ones(3)))


def test_update_by_an_input_copies_it(mode: str):
    s, x = phintys.shared(np.zeros(2)), pt.dvector("x")
    f = phintys.function([x], [], updates={s: x}, mode=mode)
    value = np.ones(2)
    f(value)
    value[:] = 5
    np.testing.assert_array_equal(s.get_value(), [1, 1])


def test_a_result_is_never_an_input(mode: str):
    x = pt.dmatrix("x")
    f = phintys.function([x], [x, x.T, x[1:], x.reshape((-1,))], mode=mode)
    value = np.ones((2, 3))
    results = f(value)
    for k, out in enumerate(results):
        assert not np.shares_memory(out, value)
        assert not any(np.shares_memory(out, other) for other in results[:k])


def test_an_empty_result_is_no_view_of_an_input(mode: str):
    """The sign of a step is not known: the slice runs through NumPy, called from machine code."""
    x, k = pt.dmatrix("x"), pt.lscalar("k")
    f = phintys.function([x, k], x[x.shape[0] : 3 : k, 5:1:-1], mode=mode)
    value = np.broadcast_to(np.ones((2, 1)), (2, 1))
    out = f(value, -1)
    assert out.shape == (0, 0) and out.flags.writeable


def test_a_constant_is_not_handed_out(mode: str):
    c = pt.constant(np.arange(3.0))
    f = phintys.function([], c, mode=mode)
    f()[:] = 9
    np.testing.assert_array_equal(f(), [0, 1, 2])


def test_wrong_options_of_inputs(mode: str):
    x, s = pt.dvector("x"), phintys.shared(np.ones(2), "s")
    with pytest.raises(ValueError, match="must be borrowed"):
        In(x, mutable=True, borrow=False)
    for wrong in (s, In(s), (s, np.ones(2))):
        with pytest.raises(TypeError, match="shared variable s cannot be an input"):
            phintys.function([wrong], x + s, mode=mode)
    with pytest.raises(TypeError, match="no_default_updates must be"):
        phintys.function([x], x + s, mode=mode, no_default_updates=s)


def test_arguments_stay_as_they_are(mode: str):
    x = pt.dvector("x")
    f = phintys.function([x], pt.set_subtensor(x[0], 9.0), mode=mode)
    value = np.zeros(3)
    np.testing.assert_array_equal(f(value), [9, 0, 0])
    np.testing.assert_array_equal(value, [0, 0, 0])


def test_the_same_array_twice(mode: str):
    x, y = pt.dvectors("x", "y")
    f = phintys.function([In(x, mutable=True), In(y, mutable=True)], [x + y, x - y], mode=mode)
    value = np.arange(3.0)
    total, zero = f(value, value)
    np.testing.assert_array_equal(total, [0, 2, 4])
    np.testing.assert_array_equal(zero, [0, 0, 0])


def test_givens(mode: str):
    x, y = pt.dvectors("x", "y")
    s = phintys.shared(np.ones(2), "s")
    f = phintys.function([y], x * 2, givens={x: s + y}, mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0]), [4, 6])
    g = phintys.function([], x * 2, givens={x: np.array([1.0, 2.0])}, mode=mode)
    np.testing.assert_array_equal(g(), [2, 4])


def test_givens_reach_updates(mode: str):
    x = pt.dvector("x")
    s = phintys.shared(np.zeros(2), "s")
    phintys.function([], [], updates={s: s + x}, givens={x: np.ones(2)}, mode=mode)()
    np.testing.assert_array_equal(s.get_value(), [1, 1])


def test_intermediate_results_as_inputs(mode: str):
    x = pt.dvector("x")
    y = x * 2
    f = phintys.function([y], y + 1, mode=mode)
    np.testing.assert_array_equal(f([1.0]), [2.0])


def test_what_only_computes_an_intermediate_input_is_not_used(mode: str):
    x, w = pt.dvector("x"), phintys.shared(2.0, name="w")
    behind = phintys.shared(1.0, name="behind")
    behind.default_update = behind + 1
    y = x * behind
    f = phintys.function([y], y * w, updates=[(w, w + y.sum())], mode=mode)
    assert f.get_shared() == [w]
    np.testing.assert_array_equal(f([3.0]), [6.0])
    assert behind.get_value() == 1.0 and w.get_value() == 5.0


def test_calls_by_name(mode: str):
    x, y = pt.dscalars("x", "y")
    f = phintys.function([x, In(y, name="rate")], x - y, mode=mode)
    assert f(3, 1) == f(3, rate=1) == f(rate=1, x=3) == 2
    assert f(3, **{"".join(["ra", "te"]): 1}) == 2  # not the same object as in the source
    assert f(rate=[1][0], x=np.int8(3)) == 2
    with pytest.raises(TypeError, match="no input called 'y'"):
        f(3, y=1)


def test_conversion_of_arguments(mode: str):
    x, n = pt.fvector("x"), pt.lscalar("n")
    f = phintys.function([x, n], x * n, mode=mode)
    assert f([0.5, 2], 3).tolist() == [1.5, 6]  # a list of representable numbers
    assert f(np.array([1, 2], "int8"), np.int8(3)).tolist() == [3, 6]
    with pytest.raises(TypeError, match="without losing precision"):
        f(np.array([0.1]), 3)
    with pytest.raises(TypeError, match="without losing precision"):
        f([1.0], 2.5)


def test_allow_input_downcast(mode: str):
    x = pt.fvector("x")
    f = phintys.function([x], x, allow_input_downcast=True, mode=mode)
    assert f(np.array([0.1])).dtype == np.float32
    g = phintys.function([In(x, strict=True)], x, mode=mode)
    with pytest.raises(TypeError):
        g([1.0])
    g(np.ones(1, "float32"))


def test_a_python_float_for_floatX(mode: str):
    with config.change_flags(floatX="float32"):
        x = pt.scalar("x")
        f = phintys.function([x], x, mode=mode)
        assert f(0.1) == np.float32(0.1)
        with pytest.raises(TypeError):
            f(np.array(0.1))


def test_unused_inputs(mode: str):
    x, y = pt.dscalars("x", "y")
    with pytest.raises(UnusedInputError):
        phintys.function([x, y], x, mode=mode)
    with pytest.raises(UnusedInputError):
        phintys.function([x, x], x, mode=mode)
    with config.change_flags(on_unused_input="ignore"):
        assert phintys.function([x, y], x, mode=mode)(1, 2) == 1
    with pytest.warns(UserWarning, match="Input 1, y") as given:
        phintys.function([x, y], x, mode=mode, on_unused_input="warn")
    assert given[0].filename == __file__
    with pytest.raises(ValueError, match="must be raise, warn or ignore"):
        phintys.function([x], x, mode=mode, on_unused_input="none")


def test_trusted_arguments(mode: str):
    x = pt.dvector("x")
    f = phintys.function([x], x * 2, trust_input=True, mode=mode)
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    assert f.trust_input
    f.trust_input = False
    np.testing.assert_array_equal(f([1, 2]), [2, 4])


def test_views_with_any_strides(mode: str):
    x = pt.dmatrix("x")
    f = phintys.function([x], [x * 2, x.sum(0), x @ x.T], mode=mode)
    base = np.arange(24.0).reshape(4, 6)
    swapped = base.astype(">f8")
    views = [base.T, base[::-1, ::2], base[1:, ::-3], base[:0], base[:, :1], swapped]
    views += [
        np.broadcast_to(base[0], (3, 6)),
        np.frombuffer(b"\0" * 49, "u1")[1:].view("f8")[None],
    ]
    for v in views:
        for found, expected in zip(f(v), [v * 2, v.sum(0), v @ v.T]):
            np.testing.assert_allclose(found, expected)


def test_borrowed_results(mode: str):
    x = pt.dvector("x")
    f = phintys.function([In(x, borrow=True)], Out(x + 1, borrow=True), mode=mode)
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])


def test_read_only_arguments(mode: str):
    x = pt.dvector("x")
    f = phintys.function([x], x + 1, mode=mode)
    value = np.ones(3)
    value.flags.writeable = False
    np.testing.assert_array_equal(f(value), [2, 2, 2])


def test_default_updates(mode: str):
    """They, and to leave them out, give PyTensor's deprecation warnings."""
    s = phintys.shared(np.float64(0), "s")
    with pytest.warns(DeprecationWarning, match="Setting default_update is deprecated"):
        s.default_update = s + 1
    f = phintys.function([], s, mode=mode)
    assert [float(f()) for _ in range(3)] == [0, 1, 2]
    with pytest.warns(DeprecationWarning, match="no_default_updates parameter of function is"):
        g = phintys.function([], s, no_default_updates=True, mode=mode)
    assert [float(g()) for _ in range(2)] == [3, 3]
    h = phintys.function([], s, updates={s: s + 10}, mode=mode)
    h()
    assert s.get_value() == 13


def test_default_updates_bring_in_others(mode: str):
    """A chain of them, each of which uses the next; any length."""
    chain = [phintys.shared(np.float64(1), f"s{k}") for k in range(300)]
    for v, following in itertools.pairwise(chain):
        v.default_update = v + following
    chain[-1].default_update = chain[-1] + chain[0]
    f = phintys.function([], chain[0], mode="FAST_COMPILE" if mode == "C" else mode)
    assert f() == 1
    assert all(v.get_value() == 2 for v in chain)


def test_shared_values_may_change_their_length(mode: str):
    s = phintys.shared(np.ones(2), "s")
    f = phintys.function([], (s * 2).sum(), updates={s: pt.concatenate([s, s])}, mode=mode)
    assert [float(f()) for _ in range(3)] == [4, 8, 16]
    s.set_value(np.ones(1))
    assert f() == 2


def test_shared_variables_have_the_order_in_which_they_are_met(mode: str):
    """Programs seed generators in this order, that of PyTensor, so that draws are the same."""
    a, b, c, d, e = (phintys.shared(float(k), name=n) for k, n in enumerate("abcde"))
    f = phintys.function([], [b * ((a * c) + d)], mode=mode)
    assert f.get_shared() == [b, a, c, d]
    f = phintys.function([], [c * d, a], updates=[(b, b + 1), (e, a * 1), (d, d + 1)], mode=mode)
    assert f.get_shared() == [c, d, a, b, e]
    fgraph = f.maker.spec.fgraph
    updated = [fgraph.inputs[i].name for _, i in sorted(fgraph.update_mapping.items())]
    assert updated == ["d", "b", "e"]
    a.default_update = a + d
    f = phintys.function([], a + b, mode=mode)
    assert f.get_shared() == [a, b, d]


def test_get_shared(mode: str):
    s, t = phintys.shared(np.ones(2), "s"), phintys.shared(np.ones(2), "t")
    f = phintys.function([], s, updates={t: t + s}, mode=mode)
    assert set(f.get_shared()) == {s, t}


def test_profiles_count_calls(mode: str):
    x = pt.dvector("x")
    f = phintys.function([x], pt.exp(x) @ x, profile="heading", mode=mode)
    for _ in range(3):
        f([1.0, 2.0])
    with pytest.raises(TypeError):
        f("abc")
    assert f.profile.calls == 4
    assert f.profile.seconds > 0
    assert "heading" in str(f.profile)
    assert all(seconds >= 0 for seconds in f.profile.stages.values())
    assert {"rewriting", "code"} <= f.profile.stages.keys()
    runs = {runs for runs, _ in f.profile.nodes.values()}
    assert runs == ({3} if mode == "FAST_COMPILE" else set())
    assert phintys.function([x], x, mode=mode).profile is None


def test_a_profile_of_several_functions(mode: str):
    from phintys.compile.profile import ProfileStats

    x = pt.dvector("x")
    both = ProfileStats("both")
    for f in [phintys.function([x], x + k, profile=both, mode=mode) for k in range(2)]:
        f([1.0])
    assert both.calls == 2
    with config.change_flags(profile=True):
        assert phintys.function([x], x + 1, mode=mode).profile.calls == 0


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies_of_a_variable_whose_default_update_depends_on_it(mode: str, how: Any):
    shared = phintys.shared(1.0, "shared")
    update = shared
    for _ in range(300):
        update = update + 1.0
    shared.default_update = update
    other = copy.deepcopy(shared) if how == "deepcopy" else pickle.loads(pickle.dumps(shared))
    assert other is not shared
    f = phintys.function([], other, mode=mode)
    assert [f(), f(), shared.get_value()] == [1.0, 301.0, 1.0]
