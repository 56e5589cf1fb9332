"""The variables that examples of rules are written with, and values for them."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

import phintys.tensor as pt
from phintys import gradient
from phintys.assumptions import assume
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.perform import Runner
from phintys.graph.traversal import ancestors
from phintys.graph.variable import Constant
from phintys.rewriting import RuleSet, rewrite_graph
from phintys.rewriting.check import rewritten
from phintys.scalar.type import scalar_type
from phintys.tensor import elemwise, special
from phintys.tensor.as_written import as_written
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import Dot
from phintys.tensor.einsum import einsum_op
from phintys.tensor.join import Join
from phintys.tensor.others import ProdOthers
from phintys.tensor.raise_op import assert_op
from phintys.tensor.reduce import Min
from phintys.tensor.rules.folding import fold_constants
from phintys.tensor.shape import ScalarFromTensor, SpecifyShape, TensorFromScalar
from phintys.tensor.type import TensorType

#: name -> (dtype, static shape, shape of values).  x, y and z are of any rank.
VARIABLES = {
    "s": ("float64", (), ()),
    "t": ("float64", (), ()),
    "n": ("int64", (), ()),
    "v": ("float64", (None,), (3,)),
    "w": ("float64", (None,), (3,)),
    "f": ("float32", (None,), (3,)),
    "h": ("int8", (None,), (3,)),
    "i": ("int64", (None,), (3,)),
    "j": ("int64", (None,), (3,)),
    "k": ("int64", (None,), (2,)),
    "b": ("bool", (None,), (3,)),
    "M": ("float64", (None, None), (2, 3)),
    "N": ("float64", (2, 3), (2, 3)),
    "Q": ("float64", (None, None), (3, 3)),
    "R": ("float64", (1, None), (1, 3)),
    "C": ("float64", (None, 1), (2, 1)),
    "K": ("float64", (None, None, None), (2, 3, 4)),
}

#: static shapes of x, y and z
PATTERNS = {
    "scalars": [(), (), ()],
    "vectors": [(None,), (None,), (None,)],
    "static": [(3,), (None,), (3,)],
    "scalar and vector": [(None,), (1,), ()],
    "vector and scalar": [(1,), (None,), ()],
    "matrix and row": [(None, None), (1, None), (None, 1)],
    "column and row": [(None, 1), (1, None), ()],
    "ranks 3 and 1": [(None, None, None), (None,), (None, 1)],
}
LENGTHS = (2, 3, 3)


class Named(elemwise.Elemwise):
    """A class of elementwise functions of a user."""


FUNCTIONS = {
    **{name: getattr(pt, name) for name in pt.__dict__ if not name.startswith("_")},
    **{name: getattr(elemwise.functions, name) for name in elemwise.TABLE},
    **{name: getattr(gradient, name) for name in ("disconnected_grad", "zero_grad", "grad_clip")},
    "grad": gradient.grad,
    "cast": pt.cast,
    "sum": pt.sum,
    "max": pt.max,
    "special": special,
    "assume": assume,
    "np": np,
    "true": pt.constant(np.array(True)),
    "false": pt.constant(np.array(False)),
    "assert_op": assert_op,
    "Join": Join,
    "Min": Min,
    "Named": lambda name: Named(elemwise.TABLE[name]),
    "Blockwise": Blockwise,
    "Dot": Dot,
    "as_written": as_written,
    "einsum_op": einsum_op,
    "ProdOthers": ProdOthers,
    "SpecifyShape": SpecifyShape,
    "TensorFromScalar": TensorFromScalar,
    "ScalarFromTensor": ScalarFromTensor,
    "Cast": lambda dtype: elemwise.elementwise(f"cast_{dtype}"),
}


def variables(pattern="vectors", dtype="float64"):
    """Fresh variables by name.

    ``dtype`` is that of x, y and z, or three of them; float32 is that of all variables of floats.
    """
    exchanged = {"float64": "float32"} if dtype == "float32" else {}
    made = {
        name: TensorType(exchanged.get(dt, dt), static)(name)
        for name, (dt, static, _) in VARIABLES.items()
    }
    made["c"] = scalar_type("float64")("c")
    dtypes = [dtype] * 3 if isinstance(dtype, str) else dtype
    for name, dt, static in zip("xyz", dtypes, PATTERNS[pattern], strict=True):
        made[name] = TensorType(dt, static)(name)
    return made


def build(text, pattern="vectors", dtype="float64"):
    """The expression of a text, and the variables that it depends on, in order of their names."""
    made = variables(pattern, dtype)
    out = eval(text, {**FUNCTIONS, **made})
    used = set(ancestors([out]))
    return out, [v for _, v in sorted(made.items()) if v in used]


DOMAINS = {
    "reals": lambda rng, shape: rng.normal(scale=2, size=shape),
    "below inf": lambda rng, shape: rng.normal(scale=2, size=shape),
    "with a negative": lambda rng, shape: rng.normal(scale=2, size=shape),
    "orders": lambda rng, shape: rng.uniform(0.05, 4, shape),
    "positive": lambda rng, shape: rng.uniform(0.05, 4, shape),
    "negative": lambda rng, shape: -rng.uniform(0.05, 4, shape),
    "above -1": lambda rng, shape: rng.uniform(-0.95, 4, shape),
    "small": lambda rng, shape: rng.uniform(-0.7, 0.7, shape),
    "unit interval": lambda rng, shape: rng.uniform(0.02, 0.98, shape),
}


#: lengths that are exchanged for others, to draw arrays with empty axes
EMPTY = ({3: 0}, {2: 0}, {2: 0, 3: 0}, {4: 0})


def shape_of_values(v, exchanged=None):
    """A shape for the values of a variable; lengths that its type leaves open are ``exchanged``."""
    static = getattr(v.type, "shape", ())
    lengths = LENGTHS[len(LENGTHS) - len(static) :]
    if v.name in VARIABLES and len(VARIABLES[v.name][1]) == len(static):
        lengths = VARIABLES[v.name][2]
    other = exchanged or {}
    return tuple(other.get(m, m) if n is None else n for n, m in zip(static, lengths, strict=True))


def draw(rng, v, domain="reals", exchanged=None):
    """Random values of a variable; see `shape_of_values`."""
    shape, dtype = shape_of_values(v, exchanged), v.type.dtype
    if v.name == "n":
        return np.asarray((exchanged or {}).get(3, 3))
    if v.name == "k":
        return np.array([1, 0])[: math.prod(shape)]
    if dtype == "bool" or domain == "booleans":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype[0] in "iu" or domain == "integers":
        low = 0 if dtype[0] == "u" else -9
        return rng.integers(low, 10, shape).astype(dtype)
    if domain == "complex":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if domain == "decreasing":  # x above y
        return (rng.uniform(0, 1, shape) + (3 if v.name == "x" else 0)).astype(dtype)
    return np.asarray(DOMAINS[domain](rng, shape)).astype(dtype)


@lru_cache(8)  # one expression is evaluated for many draws
def runner(inputs, outputs):
    return Runner(FunctionGraph(list(inputs), list(outputs), clone=True))


def evaluate(outputs, given):
    """Values by the reference backend."""
    return runner(tuple(given), tuple(outputs))(list(given.values()))


def canonical(out, **options):
    """The canonical form of an expression."""
    return rewrite_graph(out, include=("canonicalize",), clone=True, **options)


def folded(out):
    """An expression with what depends on constants only computed."""
    fgraph = FunctionGraph(outputs=[out], copy_inputs=False)
    RuleSet([fold_constants], name="fold").apply(fgraph)
    return fgraph.outputs[0]


def where_it_applies(rule, out):
    """The expression, in canonical form if the rule is about that."""
    for form in (out, folded(out)):
        try:
            rewritten(rule, [form])
        except AssertionError:
            continue
        return form
    return canonical(out, exclude=(rule.name,))


def text_of(v):
    """An expression as nested calls."""
    if v.owner is None:
        if isinstance(v, Constant):
            data = np.asarray(v.data)
            return str(data.reshape(-1)[0]) if data.size == 1 else str(data.tolist())
        return v.name
    inputs = ", ".join(text_of(x) for x in v.owner.inputs)
    return f"{v.owner.op}({inputs})"
