"""How arguments are drawn of functions, products and equations of matrices."""

from __future__ import annotations

import math

from fuzz_draw import Drawer
from fuzz_functions import Text, draws
from fuzz_structured import positive


@draws(
    *("linalg.expm", "linalg.logm", "linalg.sqrtm", "linalg.pinv", "linalg.matrix_rank"),
    *("linalg.cond", "linalg.trace", "linalg.matrix_norm", "linalg.vector_norm"),
)
def _function(g: Drawer, name: str) -> Text:
    return f"pt.{name}({positive(g)[0]})"


#: function -> an equation.  Right sides are not the matrix itself: zeros of the identity would be
#: whatever rounding leaves.
EQUATIONS = {
    "solve_sylvester": "{a}, {a}, pt.exp({a})",
    "solve_continuous_lyapunov": "({a}) / 99, pt.exp({a})",
    "solve_discrete_lyapunov": "({a}) / 99, pt.exp({a})",
    "solve_discrete_are": "{a}, {a}, pt.exp({a}), {a}",
    "solve_continuous_are": "{a}, {a}, pt.exp({a}), {a}",
}


@draws(*(f"linalg.{name}" for name in EQUATIONS))
def _equation(g: Drawer, name: str) -> Text:
    a, _ = positive(g)
    return f"pt.{name}({EQUATIONS[name.partition('.')[2]].format(a=a)})"


@draws("linalg.kron", "linalg.block_diag")
def _blocks(g: Drawer, name: str) -> Text:
    x, y = g.item(least=2), g.item(ndim=2)
    small = math.prod(x.shape) * math.prod(y.shape) < 1000
    return f"pt.{name}({x.name}, {y.name})" if small else None


@draws("linalg.matrix_dot", "linalg.multi_dot")
def _chain(g: Drawer, name: str) -> Text:
    a, _ = positive(g)
    given = f"{a}, {a}"
    return f"pt.{name}([{given}])" if name == "linalg.multi_dot" else f"pt.{name}({given})"


@draws("linalg.norm", "linalg.matrix_power")
def _with_a_number(g: Drawer, name: str) -> Text:
    choices = ("None", "1", "-1", "2", "-2", "'nuc'", "'fro'", "1e400")
    number = g.choice(choices) if name == "linalg.norm" else g.choice((-2, 0, 1, 3))
    return f"pt.{name}({positive(g)[0]}, {number})"


@draws("linalg.lstsq")
def _least_squares(g: Drawer, name: str) -> Text:
    a, _ = positive(g)
    return f"pt.linalg.lstsq({a}, pt.exp({a}))[{g.choice((0, 2, 3))}]"


@draws("linalg.eigvalsh", "linalg.svd", "linalg.qr")
def _decomposition(g: Drawer, name: str) -> Text:
    """Results that do not depend on signs, and are accurate for close values."""
    a, _ = positive(g)
    flags = {"eigvalsh": f"lower={g.chance(0.5)}", "svd": "compute_uv=False", "qr": "mode='r'"}
    found = f"pt.{name}({a}, {flags[name.partition('.')[2]]})"
    return f"pt.abs({found})" if name == "linalg.qr" else found


#: function -> a call that has one result of about the same value on every backend
CALLS = {
    "solve": "pt.linalg.solve({a}, pt.exp({a}))",
    "inv": "pt.linalg.inv({a})",
    "matrix_inverse": "pt.linalg.matrix_inverse({a})",
    "det": "pt.linalg.det({a})",
    "slogdet": "pt.linalg.slogdet({a})[1]",
    "cho_solve": "pt.linalg.cho_solve(({a}, True), pt.exp({a}), b_ndim=2)",
    "lu": "pt.matmul(*pt.linalg.lu({a}, permute_l=True))",
    "lu_factor": "pt.linalg.lu_factor({a})[0]",
    "lu_solve": "pt.linalg.lu_solve(pt.linalg.lu_factor({a}), pt.exp({a}), b_ndim=2)",
    "pivot_to_permutation": "pt.linalg.pivot_to_permutation(pt.linalg.lu_factor({a})[1])",
    "tridiagonal_lu_factor": "pt.linalg.tridiagonal_lu_factor({a})[1]",
    "tridiagonal_lu_solve": (
        "pt.linalg.tridiagonal_lu_solve(pt.linalg.tridiagonal_lu_factor({a}), pt.exp({a}),"
        " b_ndim=2)"
    ),
    "eig": "pt.sort(pt.real(pt.linalg.eig({a})[0]))",
    "eigh": "pt.linalg.eigh({a})[0]",
    "schur": "pt.sort(pt.diagonal(pt.linalg.schur({a})[0]))",
    "qz": "pt.sort(pt.diagonal(pt.linalg.qz({a}, pt.eye(({a}).shape[0]))[0]))",
    "ordqz": "pt.abs(pt.linalg.ordqz({a}, pt.eye(({a}).shape[0]), 'rhp')[2]).sum()",
    "tensorinv": "pt.linalg.tensorinv({a}, ind=1)",
    "tensorsolve": "pt.linalg.tensorsolve({a}, pt.exp({a})[0])",
}


@draws(*(f"linalg.{name}" for name in CALLS))
def _call(g: Drawer, name: str) -> Text:
    a, _ = positive(g)
    return CALLS[name.partition(".")[2]].format(a=a)
