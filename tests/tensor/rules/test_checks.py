"""Where lengths do not fit, rewriting keeps the error, unless a rule says that it drops errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from expressions import build, draw, evaluate, where_it_applies
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.assumptions import assume
from phintys.compile.mode import Mode
from phintys.errors import ShapeError
from phintys.rewriting.check import rewritten
from phintys.tensor import linalg
from phintys.tensor.rules import RULES

KEEPING = [r for r in RULES if r.law != "drops_errors" and "shape_unsafe" not in r.tags]
KINDS = (IndexError, np.linalg.LinAlgError, ValueError, TypeError)


def outcome(out: Any, given: dict[Any, Any]) -> Any:
    """The shape of a value, or the class of the error."""
    try:
        with np.errstate(all="ignore"):
            return np.shape(evaluate([out], given)[0])
    except KINDS as exc:
        return next(kind for kind in KINDS if isinstance(exc, kind))


def misfits(inputs: list[Any], domain: str) -> Iterator[dict[Any, Any]]:
    """Values of inputs, of which one has one wrong length."""
    rng = np.random.default_rng(1)
    values = {v: draw(rng, v, domain) for v in inputs}
    for v in inputs:
        for axis, known in enumerate(getattr(v.type, "shape", ())):
            for change in (-1, 1) if known is None else ():
                lengths = [n + change * (k == axis) for k, n in enumerate(values[v].shape)]
                yield values | {v: np.resize(values[v], lengths).astype(v.type.dtype)}


def has_open_lengths(text: str) -> bool:
    inputs = build(text.partition("|")[0].strip())[1]
    return any(None in getattr(v.type, "shape", ()) for v in inputs)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(r, text, id=f"{r.name} at {text}")
        for r in KEEPING
        if isinstance(r.tested_on, tuple)
        for text in filter(has_open_lengths, r.tested_on)
    ],
)
def test_rule_keeps_the_errors_of_wrong_lengths(rule: Any, text: str) -> None:
    expression, _, domain = text.partition("|")
    out, inputs = build(expression.strip())
    out = where_it_applies(rule, out)
    (new,) = rewritten(rule, [out])
    for given in misfits(inputs, domain.strip() or "reals"):
        assert outcome(new, given) == outcome(out, given), [np.shape(x) for x in given.values()]


n, k = pt.lscalars("n", "k")
M, b, B = pt.dmatrix("M"), pt.dvector("b"), pt.dmatrix("B")
RECTANGLES = {
    "zeros": pt.zeros((n, k)),
    "eye": pt.eye(n, k),
    "scaled eye": pt.eye(n, k) * M,
    "tril": pt.tril(M),
    "written diagonal": pt.fill_diagonal(pt.zeros((n, k)), 2.0),
    "diagonal": assume(M, diagonal=True),
    "orthogonal": assume(M, orthogonal=True),
    "batch": pt.stack([pt.triu(M), pt.triu(2 * M)]),
}
FUNCTIONS = {
    "det": linalg.det,
    "slogdet": lambda x: linalg.slogdet(x)[1],
    "log det": lambda x: pt.log(abs(linalg.det(x))),
    "inv": linalg.inv,
    "inv inv": lambda x: linalg.inv(linalg.inv(x)),
    "inv mT": lambda x: linalg.inv(x.mT).mT,
    "inv b": lambda x: pt.matvec(linalg.inv(x), b),
    "solve": lambda x: linalg.solve(x, b, b_ndim=1),
    "solve B": lambda x: linalg.solve(x, B, b_ndim=2),
    "solve inv": lambda x: linalg.solve(linalg.inv(x), b, b_ndim=1),
    "solve_triangular": lambda x: linalg.solve_triangular(x, b, lower=True, b_ndim=1),
    "unit_diagonal": lambda x: linalg.solve_triangular(x, b, unit_diagonal=True, b_ndim=1),
    "cholesky": linalg.cholesky,
    "eigh": lambda x: linalg.eigh(x)[0],
    "expm": linalg.expm,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("matrix", few(RECTANGLES, "zeros", "tril", "batch"))
def test_matrix_that_is_not_square(name: str, matrix: str) -> None:
    out = FUNCTIONS[name](RECTANGLES[matrix])
    plain, fast = (
        phintys.function([n, k, M, b, B], out, mode=mode, on_unused_input="ignore")
        for mode in (Mode("py", None), "FAST_RUN")
    )
    for rows, columns in ((4, 3), (3, 4)):
        given = rows, columns, np.ones((rows, columns)), np.ones(rows), np.ones((rows, 2))
        for f in (plain, fast):
            with pytest.raises(ShapeError):
                f(*given)
