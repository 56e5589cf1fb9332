"""Properties of values: what is declared, what follows, what users add, and how it is shown."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import assumptions as known
from phintys.assumptions import (
    ALL_KEYS,
    DIAGONAL,
    KEY_REGISTRY,
    LOWER_TRIANGULAR,
    ORTHOGONAL,
    POSITIVE_DEFINITE,
    SQUARE,
    SYMMETRIC,
    AssumptionFeature,
    AssumptionKey,
    ConflictingAssumptionsError,
    FactState,
    SpecifyAssumptions,
    assume,
    assumption_tags,
    check_assumption,
    core,
    keys,
    register_assumption,
    register_constant_inference,
    register_implies,
    summarize_assumptions,
)
from phintys.errors import RewriteError
from phintys.gradient.barriers import ViewOp
from phintys.graph import FunctionGraph
from phintys.rewriting.database import optdb

x, y = pt.dmatrices("x", "y")
d = pt.dvector("d")
X = pt.dtensor3("X")
n = pt.iscalar("n")
S = pt.tensor("S", shape=(3, 3), dtype="float64")
psd = assume(x, positive_definite=True)
sym = assume(x, symmetric=True)
orth = assume(x, orthogonal=True)
tri = pt.linalg.cholesky(x)
small = pt.arange(n, dtype="uint8")

#: expression -> what is known of it, without what follows from other properties
KNOWN = {
    "eye": (pt.eye(n), "diag pd perm"),
    "eye of two lengths": (pt.eye(n, 3), "diag"),
    "eye with offset": (pt.eye(n, k=1), "triu trid"),
    "zeros": (pt.zeros((3, 3)), "diag"),
    "fill": (pt.alloc(d[0], n, n), "sym"),
    "fill, not square": (pt.alloc(d[0], n, 3), ""),
    "diag": (pt.diag(d), "diag"),
    "diag with offset": (pt.diag(d, -1), "tril trid"),
    "batch of diagonals": (pt.alloc_diag(x, 0, 1, 2), "diag"),
    "diagonal of other axes": (pt.alloc_diag(x, 0, 0, 1), ""),
    "written at negative positions": (
        pt.zeros((5, 3))[pt.arange(-2, 0), pt.arange(-2, 0)].set(d),
        "",
    ),
    "written in parts": (pt.zeros((4, 4))[pt.arange(2), pt.arange(2) + 1].set(d), "triu trid"),
    "tril": (pt.tril(x), "tril"),
    "triu of a batch": (pt.triu(X, 1), "triu"),
    "tril of a known shape": (pt.tril(S), "tril"),
    "too large a triangle": (pt.tril(x, 1), ""),
    "a mask of wrapping offsets": (
        pt.switch(pt.ge(pt.constant(0, dtype="uint8"), small[None] - small[:, None]), x, 0),
        "",
    ),
    "quotient of diagonals": (pt.diag(d) / pt.diag(d), "sym"),
    "both triangles": (pt.tril(pt.triu(x)), "diag"),
    "another mask": (pt.switch(x > 0, x, 0), ""),
    "mask with another value": (pt.switch(pt.tri(3) > 0, S, 1), ""),
    "x x^T": (x @ x.T, "sym"),
    "x^T x of a batch": (X.mT @ X, "sym"),
    "x y^T": (x @ y.T, ""),
    "congruence": (y @ sym @ y.T, "sym"),
    "x + x^T": (x + x.T, "sym"),
    "x - x^T": (x - x.T, ""),
    "triangle squared": (tri @ tri, "tril"),
    "triangle and transpose": (tri @ tri.T, "sym"),
    "transposed": (tri.T, "triu"),
    "orthogonal, transposed": (orth.T, ""),
    "square orthogonal, transposed": (assume(S, orthogonal=True).T, "orth"),
    "-orthogonal": (-orth, "orth"),
    "two orthogonal": (orth @ orth, "orth"),
    "sum": (psd + pt.eye(3), "pd"),
    "sum with a row": (psd + d, ""),
    "sum with a number": (sym + d[0], "sym"),
    "difference": (psd - psd.T, "sym"),
    "multiple": (psd * 2 / 3, "pd"),
    "negative multiple": (psd * -2, "sym"),
    "scaled rows": (pt.diag(d) * d, "diag"),
    "scaled by a matrix of one element": (pt.diag(d) * pt.tensor("r", shape=(1, 1)), "diag"),
    "one element, repeated": (assume(pt.tensor("r", shape=(1, 1)), diagonal=True) * x, ""),
    "exp": (pt.exp(pt.diag(d)), "sym"),
    "sin": (pt.sin(pt.diag(d)), "diag"),
    "float32": (pt.cast(psd, "float32"), "sym"),
    "batch axis": (psd[None], "pd"),
    "leading part": (pt.linalg.cholesky(S)[:2, :2], "tril"),
    "another part": (pt.linalg.cholesky(S)[:2, 1:], ""),
    "reversed": (pt.linalg.cholesky(S)[::-1, ::-1], ""),
    "rows of eye": (pt.eye(4)[pt.lvector("i")], "sel"),
    "solution": (pt.linalg.solve_triangular(tri, tri, lower=True), "tril"),
    "arange": (pt.arange(n), "uniq"),
    "argsort": (pt.argsort(d), "uniq"),
    "kron": (pt.linalg.kron(pt.diag(d), pt.eye(3)), "diag"),
    "kron, not square": (pt.linalg.kron(assume(x, diagonal=True), pt.eye(3)), ""),
    "kron of definite matrices": (pt.linalg.kron(psd, pt.eye(2) * 3), "pd"),
    "blocks": (pt.linalg.block_diag(tri, pt.diag(d)), "tril"),
    "blocks, not square": (pt.linalg.block_diag(pt.tril(x), pt.eye(2)), ""),
    "definite blocks": (pt.linalg.block_diag(psd, psd[0, 0] * pt.eye(2)), "sym"),
    "exponential": (pt.linalg.expm(sym), "sym"),
    "exponential of a diagonal": (pt.linalg.expm(pt.diag(d)), "diag"),
    "inverse": (pt.linalg.inv(psd), "sym"),
    "inverse of a triangle": (pt.linalg.inv(tri), "tril"),
    "system of diagonals": (pt.linalg.solve(pt.diag(d), pt.diag(d)), "diag"),
    "system of which a triangle is read": (
        pt.linalg.solve(tri, tri, assume_a="sym", lower=True, b_ndim=2),
        "",
    ),
    "permutation of rows": (pt.linalg.lu(x)[0], "perm"),
    "lower factor": (pt.linalg.lu(x)[1], "tril"),
    "upper factor": (pt.linalg.lu(x, permute_l=True)[1], "triu"),
    "orthogonal factor": (pt.linalg.qr(x, mode="economic")[0], "orth"),
    "orthogonal factor, transposed": (pt.linalg.qr(x, mode="economic")[0].T, ""),
    "square orthogonal factor, transposed": (pt.linalg.qr(x)[0].T, "orth"),
    "triangular factor": (pt.linalg.qr(x, mode="r"), "triu"),
    "eigenvectors": (pt.linalg.eigh(x)[1], "orth"),
    "left singular vectors": (pt.linalg.svd(x, full_matrices=False)[0], "orth"),
    "right singular vectors": (pt.linalg.svd(x, full_matrices=False)[2], ""),
    "square right singular vectors": (pt.linalg.svd(x)[2], "orth"),
    "permutation": (pt.constant(np.eye(4)[::-1]), "sym perm"),
    "products that overflow": (
        pt.constant(np.array([[0, 127], [127, 0]], dtype="int8")),
        "sym uniq trid",
    ),
    "rotation": (pt.constant([[0.6, -0.8], [0.8, 0.6]]), "orth trid"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known(name):
    """Before rewriting; and after it, when at least that is known."""
    v, expected = KNOWN[name]
    v = phintys.rewrite_graph(v, include=("fold",), clone=True)
    found = summarize_assumptions(AssumptionFeature(), v).strip("{}").replace(",", "")
    canonical = phintys.rewrite_graph(v, include=("canonicalize",), clone=True)
    after = summarize_assumptions(AssumptionFeature(), canonical).strip("{}").replace(",", "")
    assert expected in (found, after), (found, after)
    wrong = {"", "tril", "triu", "sym"}
    assert expected not in wrong or {found, after} <= {"", expected}


def test_every_property_can_be_declared():
    for key in ALL_KEYS:
        assert key.holds(assume(x, **{key.name: True}))
        assert key.holds(key.assume(x))
        assert not key.holds(key.assume(x, state=False))
        assert not key.holds(x)
    assert assume(x) is x
    assert [k.name for k in ALL_KEYS[:2]] == ["square", "diagonal"] and len(ALL_KEYS) >= 12


def test_implications():
    z = pt.zmatrix("z")
    assert LOWER_TRIANGULAR.holds(assume(x, diagonal=True))
    assert SYMMETRIC.holds(assume(S, diagonal=True)) and not SYMMETRIC.holds(
        assume(x, diagonal=True)
    )
    assert SYMMETRIC.holds(psd) and SQUARE.holds(psd)
    assert not SYMMETRIC.holds(assume(z, positive_definite=True))
    assert DIAGONAL.holds(assume(x, lower_triangular=True, upper_triangular=True))
    assert DIAGONAL.holds(assume(pt.tril(x), symmetric=True))
    assert SYMMETRIC.holds(pt.constant([[np.nan, 0.0], [0.0, 1.0]]))
    assert ORTHOGONAL.holds(assume(x, permutation=True))
    feature = AssumptionFeature()
    assert feature.get(assume(x, symmetric=False), POSITIVE_DEFINITE) is FactState.FALSE


def test_contradictions():
    with pytest.raises(ConflictingAssumptionsError, match="declared to be not diagonal, but it is"):
        assume(pt.constant(np.eye(3)), diagonal=False)
    with pytest.raises(ConflictingAssumptionsError, match="declared to be symmetric, but"):
        assume(np.arange(4.0).reshape(2, 2), symmetric=True)
    with pytest.raises(TypeError, match="no assumption 'round'"):
        assume(x, round=True)
    both = assume(psd, symmetric=False)
    with pytest.raises(ConflictingAssumptionsError, match="said to be symmetric and not"):
        SYMMETRIC.holds(both)
    with pytest.raises(RewriteError, match="symmetric"):
        phintys.function([x], both.T)
    with pytest.raises(TypeError, match="no truth value"):
        bool(FactState.TRUE)


def test_rounding_is_no_contradiction():
    """Constants that were computed have their properties up to rounding, and NaN may be in them."""
    c = np.random.default_rng(0).normal(size=(6, 6))
    computed = {
        "symmetric": c @ (c @ c.T) @ c.T,
        "positive_definite": np.linalg.inv(c @ c.T),
        "upper_triangular": np.linalg.qr(c)[0].T @ c,
        "permutation": np.eye(6) + 1e-17 * c,
        "unit_magnitude": np.exp(1j * c),
    }
    for name, value in computed.items():
        assert not AssumptionFeature().check(pt.constant(value), KEY_REGISTRY[name]), name
        assert KEY_REGISTRY[name].holds(assume(pt.constant(value), **{name: True})), name
    assert SYMMETRIC.holds(pt.constant(np.diag([np.nan, 1.0])))
    assert not ORTHOGONAL.holds(pt.constant([[1e200, 1e200], [1e200, -1e200]]))  # no warnings


def test_states_join():
    unknown, true, false, conflict = FactState
    assert FactState.join(unknown, true) is true
    assert FactState.join(true, false) is FactState.join(conflict, true) is conflict


@pytest.fixture
def registered(monkeypatch):
    """Registries whose entries are taken back."""
    registries = core.KEY_REGISTRY, core.CONSTANT_INFER_REGISTRY, core.ASSUMPTION_INFER_REGISTRY
    before = [set(registry) for registry in registries]
    implied = {key: list(weaker) for key, weaker in core.IMPLIES.items()}
    monkeypatch.setattr(core, "_implications", list(core._implications))
    monkeypatch.setattr(optdb, "_own_version", optdb.version)
    yield
    for registry, earlier in zip(registries, before, strict=True):
        for key in set(registry) - earlier:
            del registry[key]
    core.IMPLIES.update(implied)
    core._rules_by_class.clear()


class Rounded(ViewOp):
    """An identity, which users say something about."""


def test_users_add_properties_and_rules(registered):
    assert optdb.is_own
    banded = AssumptionKey("banded", "band")
    register_implies(known.TRIDIAGONAL, banded)
    register_constant_inference(banded, lambda v: FactState.FALSE)

    @register_assumption(banded, Rounded)
    def rounded_is_banded(key, op, feature, fgraph, node, input_states):
        return [FactState.join(input_states[0], FactState.TRUE)]

    assert not optdb.is_own  # compiled code is not taken from the cache
    assert banded.holds(Rounded()(x)) and banded.holds(assume(x, banded=True))
    assert banded.holds(pt.diag(d))
    for v in (assume(x, banded=True).T, pt.cast(assume(x, banded=True), "float32")):
        assert not banded.holds(v)
    batches = assume(x, banded=True)[None], assume(X, banded=True)[0]
    assert not any(map(banded.holds, batches))
    keys.register_matrix_property_rules(banded)
    assert all(map(banded.holds, batches))
    keys.MATRIX_KEYS.remove(banded)
    assert AssumptionFeature().get(pt.constant(np.ones((3, 3))), banded) is FactState.FALSE
    assert summarize_assumptions(AssumptionFeature(), Rounded()(x)) == "{band}"
    with pytest.raises(ValueError, match="registered already"):
        AssumptionKey("banded")


def test_the_memo_of_a_graph():
    fgraph = FunctionGraph([x], [sym.T @ x], clone=False)
    transposed = fgraph.outputs[0].owner.inputs[0]
    assert check_assumption(fgraph, transposed, SYMMETRIC)
    (feature,) = [f for f in fgraph._features if isinstance(f, AssumptionFeature)]
    assert {sym, transposed} <= set(feature.cache)
    fgraph.replace(sym, psd)
    assert transposed not in feature.cache
    assert AssumptionFeature in map(type, fgraph.clone()._features)
    again = pickle.loads(pickle.dumps(fgraph))
    assert check_assumption(again, again.outputs[0].owner.inputs[0].owner.inputs[0], SYMMETRIC)


def test_deep_graphs():
    v = pt.eye(3)
    for _ in range(1000):
        v = v + pt.eye(3)
    assert DIAGONAL.holds(v)


def test_the_op_is_the_identity():
    op = SpecifyAssumptions({SYMMETRIC: FactState.TRUE, DIAGONAL: FactState.FALSE})
    assert str(op) == "SpecifyAssumptions{!diagonal, symmetric}"
    assert op == SpecifyAssumptions({DIAGONAL: FactState.FALSE, SYMMETRIC: FactState.TRUE})
    assert (
        pickle.loads(pickle.dumps(op)) == op and pickle.loads(pickle.dumps(SYMMETRIC)) is SYMMETRIC
    )
    value = np.array([[2.0, 1.0], [1.0, 3.0]])
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        out = phintys.grad((pt.exp(sym) @ sym).sum(), x)
        expected = phintys.grad((pt.exp(x) @ x).sum(), x)
        f = phintys.function([x], [sym, out, expected], mode=mode)
        assert not [v for v in f.maker.fgraph.apply_nodes if isinstance(v.op, SpecifyAssumptions)]
        same, got, wanted = f(value)
        np.testing.assert_allclose(same, value)
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_display():
    shown = phintys.dprint(pt.diag(d) @ psd, file="str", print_assumptions=True).splitlines()
    assert shown[1] == " ├─ AdvancedSetSubtensor{i, j} [id B] a={diag}"
    assert shown[-2].startswith(" └─ SpecifyAssumptions") and shown[-2].endswith(" a={pd}")
    assert assumption_tags([psd @ x]) == {psd: "{pd}"}
    assert summarize_assumptions(AssumptionFeature(), assume(x, diagonal=False)) == ("{!diag}")


def test_a_change_forgets_what_depends_on_it_alone():
    """In a chain of n nodes, n changes at its end take n inferences, not n**2."""
    x = pt.dmatrix("x")
    v, middle = assume(x, symmetric=True), None
    for k in range(60):
        v = pt.exp(v)
        middle = v if k == 30 else middle
    fgraph = FunctionGraph([x], [v + v], clone=False)
    feature = AssumptionFeature()
    fgraph.attach_feature(feature)
    infer, inferred = feature._infer, []
    feature._infer = lambda node: (inferred.append(node), infer(node))
    assert feature.check(fgraph.outputs[0], SYMMETRIC)
    first = len(inferred)
    assert first > 60
    for _ in range(10):
        fgraph.replace(fgraph.outputs[0], v + v)
        assert feature.check(fgraph.outputs[0], SYMMETRIC)
    assert len(inferred) <= first + 20
    other = pt.dmatrix("other")
    fgraph.add_input(other)
    fgraph.replace(middle, pt.exp(other))
    assert not feature.check(fgraph.outputs[0], SYMMETRIC)
    assert len(inferred) <= first + 60
