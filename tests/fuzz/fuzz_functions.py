"""How arguments of the public functions are drawn.

Elementwise functions come from the table of rows.  Of the others, one with a function here (see
`draws`) is drawn by it, and one whose parameters have names that `PARAMETERS` knows is drawn from
its signature alone.  What can be drawn in neither way must be in `OUT`, with a reason: a test
compares with the whole of ``phintys.tensor``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from fuzz_draw import Drawer, Item, Unfit
from fuzz_values import draw_argument

import phintys.tensor as pt
from phintys.tensor.random.basic import DISTRIBUTIONS
from phintys.tensor.scalar_functions import FUNCTIONS

#: text of a statement, or that and its text in NumPy; None: nothing fits
Text = str | tuple[str, str | None] | None
DRAWN: dict[str, Callable[[Drawer, str], Text]] = {}

OUT = {
    "as_tensor": "gives its argument back",
    "as_tensor_variable": "gives its argument back",
    "empty": "its values are what happens to be in memory",
    "empty_like": "its values are what happens to be in memory",
    "extract_constant": "a question about a graph",
    "get_scalar_constant_value": "a question about a graph",
    "get_underlying_scalar_constant_value": "a question about a graph",
    "get_vector_length": "a question about a graph",
    "infer_static_shape": "a question about a graph",
    "is_flat": "a question about a graph",
    "kn": "another name of kv",
    "make_slice": "its result is no tensor",
    "none_type_t": "a type",
    "slicetype": "a type",
    "slice_at_axis": "its result is a key, drawn as one",
    "broadcast_shape_iter": "what broadcast_shape calls",
    "tensor": "an input: every program has some",
}
#: modules of ``phintys.tensor`` whose functions have names of their own
MODULES = ("linalg", "signal", "fft", "fourier", "nnet")


def draws(*names: str) -> Any:
    """Register how arguments of functions are drawn."""

    def register(function: Any) -> Any:
        DRAWN.update(dict.fromkeys(names, function))
        return function

    return register


@cache
def public_functions() -> dict[str, Any]:
    """The functions of ``phintys.tensor`` that are no rows and no constructors of variables."""
    found = {}
    candidates = dict(vars(pt))
    for module in MODULES:
        names = vars(import_module(f"phintys.tensor.{module}"))
        chosen = set(names.get("__all__", names)) - FUNCTIONS.keys()
        candidates |= {f"{module}.{name}": names[name] for name in sorted(chosen)}
    for name, value in candidates.items():
        own = str(getattr(value, "__module__", "")).startswith("phintys.tensor")
        skip = (
            name.rpartition(".")[2].startswith("_") or name in FUNCTIONS or name in pt.CONSTRUCTORS
        )
        if own and callable(value) and not skip and not inspect.isclass(value):
            found[name] = value
    return found | {f"random.{name}": op for name, op in DISTRIBUTIONS.items()}


def undrawn() -> set[str]:
    """Public functions that are neither drawn nor out with a reason."""
    return {n for n in public_functions() if n not in OUT and n not in DRAWN and signed(n) is None}


# ----------------------------------------------------------------- from the signature


def _axis(g: Drawer, x: Item) -> str | None:
    return str(g.axis(x.ndim)) if x.ndim else "None"


def _axes(g: Drawer, x: Item) -> str:
    if not x.ndim or g.chance(0.3):
        return "None"
    if g.chance(0.25):
        return str(tuple(sorted(g.rng.sample(range(x.ndim), g.rng.randrange(1, x.ndim + 1)))))
    return str(g.axis(x.ndim))


def _dtype(g: Drawer, x: Item) -> str:
    """One of a result; a real one if a sum of such numbers may be rounded by more than a unit."""
    dtype = g.dtype()
    with np.errstate(all="ignore"):
        small = x.kind not in "fc" or np.abs(x.value).max(initial=0) < 1e9
    return repr(dtype if small or np.dtype(dtype).kind in "fc" else "float64")


#: name of a parameter after the first -> text of an argument, for a first argument
PARAMETERS: dict[str, Callable[[Drawer, Item], str | None]] = {
    "axis": _axis,
    "keepdims": lambda g, x: str(g.chance(0.5)),
    "corrected": lambda g, x: str(g.chance(0.5)),
    "opt": lambda g, x: "False",
    "dtype": _dtype,
    "acc_dtype": lambda g, x: repr("float64" if x.kind == "f" else x.value.dtype.name),
    "kind": lambda g, x: "None",
    "stable": lambda g, x: "True",
    "ndim": lambda g, x: str(g.rng.randrange(1, x.ndim + 2)),
    "ddof": lambda g, x: str(g.choice((0, 0, 1))),
    "offset": lambda g, x: str(g.rng.randrange(-2, 3)),
    "k": lambda g, x: str(g.rng.randrange(-2, 3)),
    "n": lambda g, x: str(g.rng.randrange(0, 3)),
    "mode": lambda g, x: "None",
    "nan": lambda g, x: "0.5",
    "posinf": lambda g, x: g.choice(("None", "3.0")),
    "neginf": lambda g, x: g.choice(("None", "-3.0")),
    "fill_value": lambda g, x: g.choice(("0", "2.5", "1")),
    "left": lambda g, x: str(g.chance(0.5)),
    "n_ones": lambda g, x: str(g.rng.randrange(0, 3)),
    "rtol": lambda g, x: "1e-05",
    "atol": lambda g, x: "1e-08",
    "equal_nan": lambda g, x: str(g.chance(0.5)),
    "no_zeros_in_input": lambda g, x: "False",
    "initial": lambda g, x: "None",
    "i": lambda g, x: str(g.rng.randrange(x.ndim)) if x.ndim else None,
    "fgraph": lambda g, x: "None",
    "return_matrix": lambda g, x: "False",
    "repeats": lambda g, x: g.integer(g.rng.randrange(0, 4)),
    "shift": lambda g, x: g.integer(g.rng.randrange(-3, 4)),
    "axis1": lambda g, x: str(g.axis(x.ndim)) if x.ndim else None,
    "axis2": lambda g, x: str(g.axis(x.ndim)) if x.ndim else None,
    "source": lambda g, x: str(g.axis(x.ndim)) if x.ndim else None,
    "destination": lambda g, x: str(g.axis(x.ndim)) if x.ndim else None,
    **dict.fromkeys(("y", "b", "r", "x2"), lambda g, x: g.like(x.shape).name),
}
#: functions whose axis may be a tuple
SEVERAL_AXES = set(
    "sum prod max min any all mean var std argmax argmin flip logsumexp softmax".split()
)
#: parameters that are left at their default for most draws
RARE = {"dtype", "acc_dtype", "initial", "mode"}


@cache
def signed(name: str) -> tuple[str, ...] | None:
    """The parameters after the first, if all are known; None if not."""
    try:
        parameters = list(inspect.signature(public_functions()[name]).parameters.values())
    except (TypeError, ValueError):
        return None
    kinds = {p.kind for p in parameters}
    if not parameters or inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    rest = tuple(p.name for p in parameters[1:] if p.kind != inspect.Parameter.VAR_KEYWORD)
    return rest if all(p in PARAMETERS for p in rest) else None


def from_signature(g: Drawer, name: str) -> Text:
    """A call whose arguments follow from the names of the parameters."""
    x = g.item(least=g.choice((0, 1, 1, 2)))
    given = []
    parameters = inspect.signature(public_functions()[name]).parameters
    for p in signed(name) or ():
        optional = parameters[p].default is not inspect.Parameter.empty
        if optional and g.chance(0.9 if p in RARE else 0.3):
            continue
        draw = _axes if p == "axis" and name in SEVERAL_AXES else PARAMETERS[p]
        text = draw(g, x)
        if text is None:
            return None
        given.append(f"{p}={text}")
    return f"pt.{name}({', '.join([x.name, *given])})"


def draw_public(g: Drawer, name: str) -> Text:
    """A call of a public function that is no row."""
    draw = DRAWN.get(name)
    text = draw(g, name) if draw else from_signature(g, name)
    if isinstance(text, str) and text.startswith(f"pt.{name}(") and hasattr(np, name):
        return "np" + text[2:] if g.chance(0.05) else text  # NumPy's protocol
    return text


# --------------------------------------------------------------------- elementwise rows

#: quadrature and series in Python: seconds for a large array
SLOW = {name for name in FUNCTIONS if "_der" in name}
COMMON = """add mul sub neg true_div sqr exp tanh sigmoid log sqrt abs maximum minimum switch eq lt
ge and_ logical_not int_div mod pow clip sin cast second floor sign log1p softplus""".split()
NUMBERS = ("2", "0.5", "1", "-1", "3", "0", "1.5", "-0.25", "300")


def elementwise(g: Drawer, name: str) -> Text:
    """A call of a row of the scalar table, with arguments that broadcast."""
    op = FUNCTIONS[name].scalar_op
    first = g.item(lambda i: name not in SLOW or i.value.size <= 4)
    count = op.nin if op.nin >= 0 else g.choice((2, 2, 3))
    others = [None if g.chance(0.15) else g.like(first.shape) for _ in range(count - 1)]
    items: list[Item | None] = [first, *others]
    g.rng.shuffle(items)
    bounds = _bounds(op, count)
    texts = [
        g.choice(NUMBERS) if item is None else fitted(g, item, *bounds[k])
        for k, item in enumerate(items)
    ]
    return f"pt.{name}({', '.join(texts)})"


#: rows that are drawn on scalar variables
ON_SCALARS = "add mul add mul sub true_div neg sqr exp tanh maximum lt switch".split()


def on_scalars(g: Drawer) -> Text:
    """A graph of scalar variables, made of 0-d tensors: two to five rows, in one statement."""
    first = g.item(ndim=0)
    known = [f"pt.scalar_from_tensor({i.name})" for i in (first, g.item(ndim=0))]
    for _ in range(g.rng.randrange(2, 6)):
        name = g.choice(ON_SCALARS)
        op = FUNCTIONS[name].scalar_op
        chosen = [g.choice(known) for _ in range(op.nin if op.nin >= 0 else g.choice((2, 2, 3)))]
        known.append(f"phintys.scalar.op.TABLE[{name!r}]({', '.join(chosen)})")
    return f"pt.tensor_from_scalar({known[-1]})"


def _bounds(op: Any, count: int) -> list[tuple[float, float]]:
    found = op.facts.get("domain", (-math.inf, math.inf))
    return list(found) if isinstance(found[0], tuple) else [found] * count


def fitted(g: Drawer, item: Item, lo: float, hi: float) -> str:
    """The item, mostly moved into a domain if it is outside."""
    value, name = item.value, item.name
    if item.kind != "f" or not value.size or g.chance(0.15):
        return name
    with np.errstate(all="ignore"):
        if not ((value < lo) | (value > hi)).any():
            return name
    lo, hi = (round(b * 64) / 64 if math.isfinite(b) else b for b in (lo, hi))
    if math.isfinite(lo) and math.isfinite(hi):
        return f"({lo} + {hi - lo} * pt.sigmoid({name}))"
    return f"(pt.abs({name}) + {lo})" if math.isfinite(lo) else f"({hi} - pt.abs({name}))"


OPERATORS = "+ - * / + - * // % < <= > >= & | ^".split()


def operator(g: Drawer) -> Text:
    """An operator of Python on one or two items."""
    if g.chance(0.15):
        x = g.item()
        return f"{g.choice(('-', 'abs', '~'))}({x.name})" if g.chance(0.7) else f"{x.name} ** 2"
    x = g.item()
    y = g.choice(NUMBERS) if g.chance(0.25) else g.like(x.shape).name
    left, right = (x.name, y) if g.chance(0.6) else (y, x.name)
    return f"({left} {g.choice(OPERATORS)} {right})"


@draws("cast")
def _cast(g: Drawer, name: str) -> Text:
    x = g.item()
    dtype = g.dtype()
    if x.kind in "fc" and np.dtype(dtype).kind in "iu" and x.value.size:
        info = np.iinfo(dtype)
        with np.errstate(all="ignore"):
            real = x.value.real
            if not ((real > float(info.min) - 1) & (real < float(info.max))).all():
                return f"pt.cast(pt.clip({x.name}, 0, 100), {dtype!r})"
    return f"pt.cast({x.name}, {dtype!r})"


@draws("constant")
def _constant(g: Drawer, name: str) -> Text:
    text = draw_argument(g.rng, g.dtype(), g.shape(g.choice((0, 1, 1, 2))), g.special).text()
    return f"pt.constant({text})" if len(text) < 400 else None


@draws("where", "divmod", "clip")
def _several(g: Drawer, name: str) -> Text:
    x = g.item()
    if name == "divmod":
        return f"pt.divmod({x.name}, {g.like(x.shape).name})[{g.rng.randrange(2)}]"
    if g.chance(0.15):
        return f"pt.where({x.name})[0]" if x.ndim else None
    return f"pt.where({x.name}, {g.like(x.shape).name}, {g.like(x.shape).name})"


@draws("largest", "smallest", "stacklists", "make_vector", "broadcast_arrays")
def _variadic(g: Drawer, name: str) -> Text:
    if name == "make_vector":
        first = g.item(ndim=0)
        same = [g.item(lambda i: i.value.dtype == first.value.dtype, ndim=0) for _ in range(2)]
        return f"pt.make_vector({first.name}, {same[0].name}, {same[1].name})"
    x = g.item()
    others = [g.like(x.shape).name for _ in range(g.rng.randrange(1, 3))]
    given = ", ".join([x.name, *others])
    if name == "stacklists":
        return f"pt.stacklists([{given}])"
    return f"pt.{name}({given})" + ("[1]" if name == "broadcast_arrays" else "")


__all__ = [
    "DRAWN",
    "OUT",
    "Text",
    "Unfit",
    "draw_public",
    "draws",
    "elementwise",
    "on_scalars",
    "operator",
]
