"""How arguments are drawn of functions, products and equations of matrices."""

from __future__ import annotations

import math

from fuzz_draw import LARGEST, Drawer, Item
from fuzz_functions import Text, draws

# ----------------------------------------------------------------------------- matrices

#: positive definite matrices made of such ones of real numbers, of the same size
DEFINITE = (
    "({a}) * pt.eye({n})",
    "pt.linalg.inv({a})",
    "pt.matmul({a}, {a})",
    "pt.matrix_transpose({a})",
    "phintys.assumptions.assume({a}, symmetric=True)",
    "phintys.assumptions.assume({a}, positive_definite=True)",
    "phintys.assumptions.assume(({a}) * pt.eye({n}), diagonal=True)",
)
#: regular matrices made of positive definite ones
REGULAR = (
    "pt.tril({a})",
    "pt.triu({a})",
    "pt.linalg.cholesky({a})",
    "phintys.assumptions.assume(pt.tril({a}), lower_triangular=True)",
    "phintys.assumptions.assume(pt.triu({a}), upper_triangular=True)",
    "phintys.assumptions.assume(pt.triu(pt.tril({a}, 1), -1), tridiagonal=True)",
    "pt.flip({a}, -1)",
)


def _is_small(x: Item) -> bool:
    """Whether the product of the matrices and their transposes is no larger than a value may be."""
    return x.value.size * x.shape[-2] <= LARGEST * max(x.shape[-1], 1) and x.shape[-2] <= 70


def positive(g: Drawer) -> tuple[str, int]:
    """Text of positive definite matrices, well conditioned and of moderate numbers; their size."""
    x = g.item(_is_small, "c" if g.chance(0.1) else "biufc", least=2)
    y, n = f"pt.tanh({x.name})", x.shape[-2]
    other = f"pt.conj({y})" if x.kind == "c" else y
    product = f"pt.matmul({y}, pt.matrix_transpose({other}))"
    a = f"{product} / {max(x.shape[-1], 1)} + 2 * pt.eye({n})"
    if x.kind != "c" and g.chance(0.25):
        return g.choice(DEFINITE).format(a=a, n=n), n
    if n < 20 and g.chance(0.05):
        made = g.choice(("pt.linalg.block_diag({a}, {a})", "pt.linalg.kron({a}, 2 * pt.eye(2))"))
        return made.format(a=a), 2 * n
    return a, n


def regular(g: Drawer) -> str:
    """Text of regular matrices."""
    a, _ = positive(g)
    return g.choice(REGULAR).format(a=a) if g.chance(0.25) else a


# ------------------------------------------------------------------ functions of a matrix

SOLVERS = "gen sym her pos general symmetric positive%definite tridiagonal diagonal".split()
SOLVERS += ["upper%triangular", "lower%triangular"]
ORDERS = ("None", "1", "-1", "2", "-2", "'fro'", "1e400", "-1e400")

#: function of positive definite matrices -> calls that have one result of about the same value on
#: every backend, and no zeros that are whatever rounding leaves: so right sides are not the matrix
#: itself.  In braces are matrices, a flag, and others from `choices`
DEFINITE_CALLS = {
    "cho_solve": (
        "(({a}, {flag}), pt.exp({a}), b_ndim=2)",
        "(({a}, True), pt.exp({a})[..., 0], b_ndim=1)",
    ),
    "cholesky": ("({a}, lower={flag})",),
    "eig": ("pt.sort(pt.real(pt.linalg.eig({a})[0]))",),
    "eigh": ("({a}, lower={flag})[0]", "({a}, UPLO='U')[0]"),
    "eigvalsh": ("({a}, lower={flag})", "({a}, ({a}) * ({a}))"),
    "logm": ("({a})",),
    "ordqz": ("pt.abs(pt.linalg.ordqz({a}, pt.eye(({a}).shape[-1]), 'rhp')[2]).sum()",),
    "pinv": ("({a})", "({a}, hermitian=True)"),
    # of equal eigenvalues only such sums are the same
    "qz": ("pt.sum(pt.abs(pt.linalg.qz({a}, pt.eye(({a}).shape[-1]))[0]) ** 2, axis=(-2, -1))",),
    "schur": ("pt.sum(pt.abs(pt.linalg.schur({a})[0]) ** 2, axis=(-2, -1))",),
    "solve_continuous_are": ("({a}, {a}, pt.exp({a}), {a})",),
    "solve_continuous_lyapunov": ("(({a}) / 99, pt.exp({a}))",),
    "solve_discrete_are": ("({a}, {a}, pt.exp({a}), {a})",),
    "solve_discrete_lyapunov": ("(({a}) / 99, pt.exp({a}), {method})",),
    "solve_sylvester": ("({a}, {a}, pt.exp({a}))",),
    "spectral_radius_bound": ("({a}, 2)",),
    "sqrtm": ("({a})",),
}  # fmt: skip
#: the same for regular matrices
REGULAR_CALLS = {
    "cond": ("({a}, {order})",),
    "det": ("({a})",),
    "expm": ("({a})",),
    "inv": ("({a})",),
    "lstsq": ("({a}, pt.exp({a}))[{part}]",),
    "lu": ("pt.matmul(*pt.linalg.lu({a}, permute_l=True))", "({a}, p_indices={flag})[2]"),
    "lu_factor": ("({a})[0]",),
    "lu_solve": (
        "(pt.linalg.lu_factor({a}), pt.exp({a}), b_ndim=2, trans={flag})",
        "(pt.linalg.lu_factor({a}), pt.exp({a})[..., 0], b_ndim=1)",
    ),
    "matrix_dot": ("({a}, {a})", "({a}, {a}, ({a})[0])"),
    "matrix_inverse": ("({a})",),
    "matrix_norm": ("({a}, {order}, keepdims={flag})",),
    "matrix_power": ("({a}, {power})",),
    "matrix_rank": ("({a})",),
    "multi_dot": ("([{a}, {a}])",),
    "norm": ("({a}, {order})", "({a}, axis={axis}, keepdims={flag})", "({a}, 1, axis=-1)"),
    "pivot_to_permutation": ("(pt.linalg.lu_factor({a})[1], inverse={flag})",),
    "qr": ("pt.abs(pt.linalg.qr({a}, mode='r'))", "pt.matmul(*pt.linalg.qr({a}, mode={qr!r}))"),
    "slogdet": ("({a})[1]",),
    "solve": (
        "({a}, pt.exp({a}), transposed={flag})",
        "({a}, pt.exp({a})[..., 0], b_ndim=1)",
        "pt.linalg.solve({a}, pt.exp({a}) * np.float64(3))"
        " + pt.linalg.solve({a}, np.float64(2) / pt.exp({a}))",
    ),
    "svd": ("({a}, compute_uv=False)", "({a}, full_matrices={flag})[1]"),
    "tensorinv": ("({a}, ind=1)",),
    "tensorsolve": ("({a}, pt.exp({a})[0])",),
    "trace": ("({a})",),
    "tridiagonal_lu_factor": ("({a})[1]",),
    "tridiagonal_lu_solve": (
        "(pt.linalg.tridiagonal_lu_factor({a}), pt.exp({a}), b_ndim=2, transposed={flag})",
    ),
    "vector_norm": ("({a}, {order_of_vector}, {axis}, {flag})",),
}


@draws(*(f"linalg.{name}" for name in DEFINITE_CALLS | REGULAR_CALLS))
def _call(g: Drawer, name: str) -> Text:
    short = name.partition(".")[2]
    if short in DEFINITE_CALLS:
        a, _ = positive(g)
        return _filled(g, name, g.choice(DEFINITE_CALLS[short]), a)
    if short == "solve" and g.chance(0.5):
        a, _ = positive(g)
        kind = g.choice(SOLVERS).replace("%", " ")
        return f"pt.{name}({a}, pt.exp({a}), assume_a={kind!r}, lower={g.chance(0.5)})"
    return _filled(g, name, g.choice(REGULAR_CALLS[short]), regular(g))


def _filled(g: Drawer, name: str, call: str, a: str) -> str:
    text = call.format(
        a=a,
        flag=g.chance(0.5),
        order=g.choice(ORDERS),
        order_of_vector=g.choice(("0", "1", "2", "3", "0.5", "1e400", "-1e400")),
        axis=g.choice(("None", "-1", "(-2, -1)")),
        part=g.choice((0, 2, 3)),
        power=g.choice((-2, 0, 1, 2, 3)),
        method=g.choice(("'direct'", "'bilinear'")),
        qr=g.choice(("full", "economic")),
    )
    return text if text.startswith("pt.") else f"pt.{name}{text}"


# ----------------------------------------------------------------------- of two matrices


@draws("linalg.kron", "linalg.block_diag")
def _blocks(g: Drawer, name: str) -> Text:
    x, y = g.item(least=2), g.item(ndim=2)
    small = math.prod(x.shape) * math.prod(y.shape) < 1000
    return f"pt.{name}({x.name}, {y.name})" if small else None


@draws("linalg.solve_triangular")
def _solve_triangular(g: Drawer, name: str) -> Text:
    a, n = positive(g)
    b = g.like((n,) if g.chance(0.4) else (n, g.size()))
    if not b.ndim or b.shape[0] != n:
        return None
    flags = f"lower={g.chance(0.5)}, trans={g.choice('NTC')!r}, unit_diagonal={g.chance(0.2)}"
    return f"pt.linalg.solve_triangular({a}, pt.tanh({b.name}), {flags})"
