"""Programs that users of the older systems know, with only the import lines changed."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import function, grad


def test_add_two_scalars():
    a, b = pt.dscalar("a"), pt.dscalar("b")
    c = a + b
    assert function([a, b], c)(1.5, 2.5) == 4.0
    assert function([a, b], grad(c, a))(1.5, 2.5) == 1.0


def test_readme_graph_before_and_after():
    a, v, M = pt.dscalar("a"), pt.dvector("v"), pt.dmatrix("M")
    d = a / a + (M + a).dot(v)
    before = phintys.dprint(d, file="str")
    assert "True_div [id" in before and "Dot [id" in before
    f = function([a, v, M], d)
    after = phintys.dprint(f, file="str")
    assert "True_div" not in after and "Dot" not in after
    assert after.count("Gemv") == 1
    gemv = next(n for n in f.maker.fgraph.toposort() if "Gemv" in str(n.op))
    assert float(gemv.inputs[4].data) == 1.0  # beta
    assert [type(s).__name__ for s in f.program.steps].count("Call") == 1
    values = 2.0, np.arange(3.0), np.ones((2, 3))
    np.testing.assert_allclose(f(*values), 1 + (values[2] + 2.0) @ values[1])


def test_dprint_shows_ids_types_and_positions():
    x = pt.dvector("x")
    f = function([x], pt.exp(x).sum() * 2)
    assert "[id A]" in phintys.dprint(f, file="str")
    assert "<Scalar(float64, shape=())>" in phintys.dprint(f, print_type=True, file="str")
    first = phintys.dprint(f, file="str").splitlines()[0]
    assert first.split()[-1] == str(len(f.maker.fgraph.apply_nodes) - 1)


# ------------------------------------------------------------ the documentation of types


def test_tensor_type_with_partial_shape():
    x = pt.TensorType("float64", (2, None))()
    assert x.type.shape == (2, None)
    assert x.type.broadcastable == (False, False)


def test_in_same_class_and_is_super():
    t, u, w = (pt.TensorType("float64", s) for s in ((None, None), (2, None), (2, 1)))
    assert t.in_same_class(u) and not u.in_same_class(w)
    assert t.is_super(u) and not u.is_super(t)
    assert pt.TensorType("float64", (2, 1)).in_same_class(pt.TensorType("float64", (3, 1)))


def test_filter_variable_gives_the_narrower_or_a_checked_one():
    wide, narrow = pt.TensorType("float64", (None, 3)), pt.TensorType("float64", (2, None))
    x = pt.TensorType("float64", (2, 3))("x")
    assert wide.filter_variable(x) is x
    y = narrow("y")
    merged = wide.filter_variable(y)
    assert merged.type.shape == (2, 3)
    assert type(merged.owner.op).__name__ == "SpecifyShape"
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        f = function([y], merged * 2, mode=mode)
        np.testing.assert_array_equal(f(np.ones((2, 3))), 2 * np.ones((2, 3)))
        with pytest.raises((ValueError, TypeError, AssertionError)):
            f(np.ones((2, 4)))


class DoubleType(phintys.Type):
    """Python floats, as in the documentation of types."""

    __props__ = ()

    def filter(self, data, strict=False, allow_downcast=None):
        if strict and not isinstance(data, float):
            raise TypeError(f"Expected a float, not {data!r}.")
        converted = float(data)
        if not allow_downcast and converted != data:
            raise TypeError(f"{data!r} is not a double.")
        return converted

    @classmethod
    def values_eq_approx(cls, a, b, tolerance=1e-4):
        return abs(a - b) / (abs(a) + abs(b)) < tolerance


double = DoubleType()


class DoubleMul(phintys.Op):
    itypes, otypes = [double, double], [double]
    __props__ = ()

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * inputs[1]


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_a_users_type_and_op(mode):
    x, y = double("x"), double("y")
    z = DoubleMul()(x, y)
    f = function([x, y], DoubleMul()(z, x), mode=mode)
    assert f(3, 4.0) == 36.0
    assert isinstance(f(3, 4), float)
    with pytest.raises((TypeError, ValueError)):
        f("three", 4)


def test_type_contract_methods_exist_and_are_documented():
    names = (
        "filter filter_inplace is_valid_value filter_variable convert_variable in_same_class "
        "is_super make_variable make_constant __call__ clone values_eq values_eq_approx "
        "may_share_memory get_shape_info get_size"
    )
    for name in names.split():
        assert getattr(phintys.Type, name).__doc__, name


def test_transfer_is_extensible():
    from phintys.graph.type import register_transfer, transfer

    x = pt.dvector("x")
    moved = pt.dvector("moved")
    register_transfer(lambda v, target: moved if target == "the moon" else None)
    assert transfer(x, "the moon") is moved
    assert transfer(x, "cpu") is x
    assert x.transfer("cpu") is x
    with pytest.raises(ValueError, match="mars"):
        transfer(x, "mars")
