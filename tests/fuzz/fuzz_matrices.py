"""How arguments are drawn of functions, products and equations of matrices."""

from __future__ import annotations

import math

from fuzz_draw import Drawer
from fuzz_functions import Text, draws
from fuzz_structured import positive


@draws(
    *("linalg.expm", "linalg.logm", "linalg.sqrtm"),
)
def _function(g: Drawer, name: str) -> Text:
    return f"pt.{name}({positive(g)[0]})"


@draws(
    "linalg.solve_sylvester", "linalg.solve_continuous_lyapunov", "linalg.solve_discrete_lyapunov"
)
def _equation(g: Drawer, name: str) -> Text:
    a, _ = positive(g)
    if name == "linalg.solve_sylvester":
        return f"pt.{name}({a}, {a}, {a})"
    return f"pt.{name}(({a}) / 99, {a})"


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


@draws("linalg.matrix_power")
def _power(g: Drawer, name: str) -> Text:
    return f"pt.{name}({positive(g)[0]}, {g.choice((-2, 0, 1, 3))})"


@draws("linalg.solve_discrete_are", "linalg.solve_continuous_are")
def _riccati(g: Drawer, name: str) -> Text:
    a, _ = positive(g)
    return f"pt.{name}({a}, {a}, {a}, {a})"


@draws("linalg.eigvalsh", "linalg.svd", "linalg.qr")
def _decomposition(g: Drawer, name: str) -> Text:
    """Results that do not depend on signs, and are accurate for close values."""
    a, _ = positive(g)
    flags = {"eigvalsh": f"lower={g.chance(0.5)}", "svd": "compute_uv=False", "qr": "mode='r'"}
    found = f"pt.{name}({a}, {flags[name.partition('.')[2]]})"
    return f"pt.abs({found})" if name == "linalg.qr" else found
