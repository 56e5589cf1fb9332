"""`wrap_py`, `as_op`, `wrap_jax`, `as_symbolic`."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from phintys.compile.ops import FromFunctionOp
from tensor_checks import check_derivatives

import phintys
import phintys.tensor as pt
from phintys import as_op, as_symbolic, wrap_jax, wrap_py
from phintys.errors import NullTypeGradError
from phintys.tensor.type_other import NoneConst, slicetype

x, y = pt.dvectors("x", "y")
n = pt.lscalar("n")
V, W = np.array([0.5, 1.0, 2.0]), np.array([0.3, -1.0, 0.1])


@wrap_py(itypes=[pt.dvector], otypes=pt.dscalar)
def total(v):
    return v.sum()


def test_wrap_py():
    assert isinstance(total, FromFunctionOp) and str(total) == "FromFunctionOp{total}"
    assert pickle.loads(pickle.dumps(total)) is total
    shaped = wrap_py([pt.dvector], [pt.dvector, pt.dscalar], lambda node, shapes: [shapes[0], ()])
    both = shaped(lambda v: (v + 1, v.max()))
    a, b = both(x)
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        f = phintys.function([x], [total(x) * 2, a, b, a.shape[0]], mode=mode)
        found = f(V)
        np.testing.assert_array_equal(found[1], V + 1)
        assert [float(v) for v in (found[0], found[2], found[3])] == [7, 2, 3]
    assert shaped(len) == shaped(len) != shaped(max)
    with pytest.warns(DeprecationWarning, match="wrap_py"):
        old = as_op([pt.dvector], [pt.dvector])(np.sort)
    assert old([2.0, 1.0]).eval().tolist() == [1, 2]
    with pytest.raises(ValueError, match="returned 1 values, not 2"):
        shaped(np.sort)(x)[0].eval({x: V})
    for wrong in (lambda: wrap_py([3], pt.dvector), lambda: wrap_py(pt.dvector, pt.dvector, 3)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(NullTypeGradError, match="It is a Python function"):
        phintys.grad(total(x), x)


def test_as_symbolic():
    assert as_symbolic(x) is x and as_symbolic(None) is NoneConst
    assert as_symbolic(slice(1, None)).data == slice(1, None)
    assert as_symbolic(slice(n, None)).type == slicetype and as_symbolic(2.5).type.ndim == 0
    assert x[as_symbolic(slice(n, None))].eval({x: V, n: 1}).tolist() == [1, 2]
    with pytest.raises(TypeError):
        as_symbolic(object())


# --------------------------------------------------------------------------------- JAX

jnp = pytest.importorskip("jax.numpy")


@wrap_jax
def mixed(state, k, *, scale=2.0):
    a, b = state["pair"]
    return {"scaled": jnp.sin(a) * b * scale, "sum": [jnp.sum(a * b), k + 1]}


def test_wrap_jax():
    found = mixed({"pair": (x, y), "other": "text"}, n, scale=3.0)
    assert found["scaled"].type == x.type and found["sum"][1].type == n.type
    outputs = [found["scaled"], *found["sum"], *phintys.grad(found["sum"][0], [x, y])]
    for mode in ("FAST_RUN", "JAX"):
        f = phintys.function([x, y, n], outputs, mode=mode)
        for a, b in [(V, W), (V[:2], W[:2])]:
            values = f(a, b, 4)
            for value, want in zip(values, [np.sin(a) * b * 3, (a * b).sum(), 5, b, a]):
                np.testing.assert_allclose(value, want, rtol=1e-12)
    check_derivatives(lambda a, b: mixed({"pair": (a, b)}, 1)["scaled"], [V, W])


def test_lengths_of_jax_functions():
    """Results whose rank depends on lengths need these; they are specified, or evaluated."""

    @wrap_jax
    def first_or_all(v):
        return v[0] if v.shape[0] == 2 else v

    with pytest.raises(ValueError, match=r"specify_shape.* cannot be computed now: x") as failed:
        first_or_all(x)
    assert str(failed.value.__cause__) in str(failed.value)
    assert first_or_all(phintys.shared(V)).type.shape == (3,)
    assert first_or_all(pt.dvector(shape=(2,))).type.shape == ()
    never = wrap_jax(lambda v: v[0] if v.shape[0] == 2 else v, allow_eval=False)
    with pytest.raises(ValueError, match="specify_shape") as failed:
        never(phintys.shared(V))
    assert str(failed.value.__cause__) in str(failed.value)
    halved = wrap_jax(lambda m: m[:, ::2].T)
    assert halved(pt.tensor(shape=(4, None))).type.shape == (None, 4)
