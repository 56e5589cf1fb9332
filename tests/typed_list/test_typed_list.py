"""Lists of values of one type, and slices and None as values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
import phintys.typed_list as tl
from phintys.errors import NullTypeGradError
from phintys.tensor.type_other import none_type_t, slicetype
from phintys.typed_list import TypedListConstant, TypedListType, TypedListVariable

VECTORS = TypedListType(pt.dvector)
NESTED = TypedListType(pt.dvector, 1)
a, b, nested = VECTORS("a"), VECTORS("b"), NESTED("nested")
v, n = pt.dvector("v"), pt.lscalar("n")
ONE, TWO = np.array([1.0, 2.0]), np.array([3.0])
MODES = ["FAST_COMPILE", "FAST_RUN", "C"]


def same(found, expected):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return np.array_equal(found, expected)


def test_type():
    assert TypedListType(VECTORS) == NESTED != VECTORS and NESTED.get_depth() == 1
    assert TypedListType(pt.dvector) == VECTORS and hash(NESTED) == hash(TypedListType(VECTORS))
    assert VECTORS.ttype == pt.dvector().type and str(VECTORS).startswith("TypedList <")
    given = [ONE, TWO]
    assert VECTORS.filter(given) is given and VECTORS.filter(given, strict=True) is given
    assert same(VECTORS.filter([[1, 2], (3.0,)]), given)
    assert VECTORS.values_eq([ONE], [ONE.copy()]) and not VECTORS.values_eq([ONE], [ONE, TWO])
    assert VECTORS.may_share_memory([ONE], [ONE[1:]]) and not VECTORS.may_share_memory([ONE], [TWO])
    constant = VECTORS.make_constant([[1.0]])
    assert isinstance(a, TypedListVariable) and isinstance(constant, TypedListConstant)
    assert constant.equals(VECTORS.make_constant([[1.0]]))
    assert pickle.loads(pickle.dumps(NESTED)) == NESTED
    for make, error in [
        (lambda: TypedListType(5), TypeError),
        (lambda: TypedListType(pt.dvector, -1), ValueError),
        (lambda: VECTORS.filter(5), TypeError),
        (lambda: VECTORS.filter((ONE,), strict=True), TypeError),
        (lambda: VECTORS.filter([1.0]), TypeError),
        (lambda: len(a), TypeError),
    ]:
        with pytest.raises(error):
            make()


@pytest.mark.parametrize("mode", MODES)
def test_values(mode):
    outputs = {
        "append": a.append(v),
        "extend": a.extend(b),
        "insert": a.insert(-1, v),
        "remove": a.append(v).remove(v),
        "reverse": a.reverse(),
        "element": a[n] * 2,
        "slice": a[n:],
        "nested": nested[0][n],
        "nested list": nested.append(a)[1],
        "length": a.length() + 1,
        "count": a.count(v),
        "index": a.append(v).ind(v),
        "made": tl.make_list([v, v + 1]),
        "argument": a,
    }
    f = phintys.function([a, b, nested, v, n], list(outputs.values()), mode=mode)
    lists = [ONE, TWO], [TWO]
    found = f(*lists, [[TWO, ONE]], ONE[1:], 1)
    expected = [
        *([ONE, TWO, ONE[1:]], [ONE, TWO, TWO], [ONE, ONE[1:], TWO], [ONE, TWO], [TWO, ONE]),
        *(TWO * 2, [TWO], ONE, [ONE, TWO], 3, 0, 2, [ONE[1:], ONE[1:] + 1], [ONE, TWO]),
    ]
    for name, value, want in zip(outputs, found, expected, strict=True):
        assert same(value, want), name
    assert found[9].dtype == "int64"
    arrays = [x for value in found for x in (value if isinstance(value, list) else [value])]
    assert not any(np.shares_memory(x, y) for x in arrays for y in (ONE, TWO) if np.ndim(x) == 1)
    with pytest.raises(IndexError, match="out of range"):
        f(*lists, [[TWO, ONE]], ONE, 2)
    g = phintys.function([a, v], a.ind(v), mode=mode)
    with pytest.raises(ValueError, match="not in the list"):
        g([ONE], TWO)


@pytest.mark.parametrize("mode", MODES)
def test_results_of_branches_and_loops_share_nothing_with_arguments(mode):
    chosen = phintys.ifelse(n > 0, a.append(v), a)
    looped = phintys.scan(lambda s: s.append(v), outputs_info=[a], n_steps=n, return_updates=False)
    f = phintys.function([a, v, n], [chosen, looped], mode=mode)
    for count in (0, 2):
        given = [ONE]
        found = f(given, TWO, count)
        assert [len(x) for x in found] == [1 + (count > 0), 1 + count]
        shared = [x is given or VECTORS.may_share_memory(x, [ONE, TWO]) for x in found]
        assert not any(shared) and not VECTORS.may_share_memory(*found)


def test_wrong_arguments():
    for make in [
        lambda: tl.append(a, pt.dmatrix()),
        lambda: tl.append(v, v),
        lambda: tl.extend(a, nested),
        lambda: tl.insert(a, v, v),
        lambda: tl.getitem(a, 1.5),
        lambda: tl.make_list([v, pt.fvector()]),
        lambda: tl.count(a, nested),
    ]:
        with pytest.raises(TypeError):
            make()
    with pytest.raises(ValueError, match="at least one"):
        tl.make_list([])
    with pytest.raises(NullTypeGradError, match="not differentiable"):
        phintys.grad(tl.make_list([v, v])[0].sum(), v)


def test_in_place_constants_and_branches():
    assert tl.Append(True) != tl.append and tl.Append(True).destroy_map == {0: [0]}
    given = [ONE]
    f = phintys.function([a, v], tl.Append(True)(a, v), accept_inplace=True)
    assert same(f(given, TWO), [ONE, TWO]) and len(given) == 1
    assert VECTORS.make_constant([ONE]).append(v).length().eval({v: TWO}) == 2
    branch = phintys.ifelse(n, a, b)
    f = phintys.function([n, a, b], branch.length())
    assert f(1, [ONE, TWO], [ONE]) == 2 and f(0, [ONE, TWO], [ONE]) == 1


def test_slices_and_none():
    """A slice and None as arguments of a function."""
    s, none = slicetype("s"), none_type_t("none")
    for mode in MODES:
        f = phintys.function([v, s, a], [v[s], v[s].sum(), a[s]], mode=mode)
        x = np.arange(5.0)
        for cut in (slice(1, None), slice(None, None, -2), slice(-9, 2), slice(3, 1)):
            found = f(x, cut, [ONE, TWO, ONE])
            np.testing.assert_array_equal(found[0], x[cut])
            assert found[1] == x[cut].sum() and same(found[2], [ONE, TWO, ONE][cut])
        with pytest.raises(TypeError, match="slice"):
            f(x, 1, [])
        g = phintys.function([none, n], n + 1, mode=mode, on_unused_input="ignore")
        assert g(None, 1) == 2
        with pytest.raises(TypeError, match="None"):
            g(1, 1)
