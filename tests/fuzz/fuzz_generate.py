"""A whole program from a seed."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import fuzz_loops
import fuzz_matrices  # noqa: F401  # pyright: ignore[reportUnusedImport]  registers drawers
import fuzz_random  # noqa: F401  # pyright: ignore[reportUnusedImport]  registers drawers
import fuzz_search  # noqa: F401  # pyright: ignore[reportUnusedImport]  registers drawers
import fuzz_signal  # noqa: F401  # pyright: ignore[reportUnusedImport]  registers drawers
import fuzz_structured as structured
import fuzz_untaken
import numpy as np
from fuzz_draw import Drawer, Failing, Item, Unfit
from fuzz_functions import (
    COMMON,
    DRAWN,
    OUT,
    SLOW,
    Text,
    draw_public,
    elementwise,
    on_scalars,
    operator,
    public_functions,
)
from fuzz_program import Program

from phintys.graph.traversal import ancestors, graph_inputs
from phintys.inner import InnerGraphOp
from phintys.tensor.random.basic import DISTRIBUTIONS
from phintys.tensor.scalar_functions import FUNCTIONS
from phintys.tensor.shape import Shape, Shape_i

REDUCTIONS = "sum prod max min any all mean var std argmax argmin sum max argmax argmin".split()
VIEWS = "dimshuffle transpose expand_dims squeeze swapaxes diagonal flip reshape reshape".split()
CREATION = "alloc full zeros ones arange eye tri zeros_like ones_like full_like shape".split()
JOINS = "concatenate join stack split tile repeat roll broadcast_to".split()
PRODUCTS = [
    *"dot dot matmul matvec vecmat vecdot batched_dot tensordot outer inner einsum".split(),
    *[f"linalg.{f}" for f in ("cholesky", "eigvalsh", "qr", "solve_triangular", "svd")],
]
MATRICES = [n for n in public_functions() if n.startswith("linalg.") and n in DRAWN]
SIGNALS = [
    n
    for n in public_functions()
    if n.split(".")[0] in ("signal", "fft", "fourier", "nnet") and n in DRAWN
]
ROWS = "softmax log_softmax logsumexp sort argsort cumsum cumprod take take_along_axis".split()


@cache
def _all_rows() -> list[str]:
    return [name for name in FUNCTIONS if name not in SLOW or name == "gammainc_der"]


@cache
def _all_public() -> list[str]:
    return [name for name in public_functions() if name not in OUT]


#: weight, and what draws one statement
FAMILIES: list[tuple[int, Any]] = [
    (14, lambda g: operator(g)),
    (10, lambda g: _row(g, g.choice(COMMON))),
    (9, lambda g: _row(g, g.choice(_all_rows()))),
    (12, lambda g: draw_public(g, g.choice(REDUCTIONS))),
    (9, lambda g: draw_public(g, g.choice(VIEWS))),
    (12, lambda g: structured.read(g)),
    (9, lambda g: structured.write(g, g.choice(("set_subtensor", "inc_subtensor")))),
    (6, lambda g: draw_public(g, g.choice(CREATION))),
    (7, lambda g: draw_public(g, g.choice(JOINS))),
    (5, lambda g: draw_public(g, g.choice(PRODUCTS))),
    (1, lambda g: draw_public(g, g.choice(MATRICES))),
    (1, lambda g: draw_public(g, g.choice(SIGNALS))),
    (6, lambda g: draw_public(g, g.choice(ROWS))),
    (6, lambda g: draw_public(g, g.choice(_all_public()))),
    (2, lambda g: draw_public(g, f"random.{g.choice(sorted(DISTRIBUTIONS))}")),
    (3, lambda g: derivative(g)),
    (2, lambda g: on_scalars(g)),
    (2, lambda g: vectorized(g)),
    (2, lambda g: fuzz_loops.other_loop(g)),
    (2, lambda g: fuzz_loops.branch(g)),
    (2, lambda g: draw_public(g, "constant")),
]


#: how often a statement is followed by one that computes an item in an inner graph
INNER_GRAPHS = 0.06
#: how often a statement is followed by a loop
LOOPS = 0.06
#: how often a statement is followed by a loop that writes a part of its state
WRITES = 0.03
#: how often a statement is followed by a choice whose other branch fails
UNTAKEN = 0.06
#: how often one of these is followed by its derivative
DERIVATIVES = 0.4
#: how often a statement is followed by one that compares derivatives in both modes
DIRECTIONS = 0.03


def _row(g: Drawer, name: str) -> Text:
    return draw_public(g, name) if name == "cast" else elementwise(g, name)


def generate(seed: int) -> tuple[Program, Drawer]:
    """The program of a seed; raises `Fault` if drawing it has found something."""
    g = Drawer(seed)
    wanted = g.choice((1, 2, 3, 3, 4, 4, 5, 6, 8, 10))
    draws = [draw for _, draw in FAMILIES]
    weights = [weight for weight, _ in FAMILIES]
    inner = random.Random(f"inner graphs {seed}")  # programs without them do not depend on them
    loops = random.Random(f"loops {seed}")
    writes = random.Random(f"writes {seed}")
    untaken = random.Random(f"untaken {seed}")
    directions = random.Random(f"directions {seed}")
    try:
        for _ in range(wanted * 8):
            if len(g.program.statements) >= wanted:
                break
            _one(g, g.rng.choices(draws, weights)[0])
            if inner.random() < INNER_GRAPHS:
                _with_derivative(g, lambda g: inner_graph(g, inner), inner)
            if loops.random() < LOOPS:
                draw = fuzz_loops.drawn_loop if loops.random() < 0.8 else fuzz_loops.further_loop
                _with_derivative(g, lambda g, draw=draw: draw(g, loops), loops)
            if writes.random() < WRITES:
                _with_derivative(g, lambda g: fuzz_loops.writing_loop(g, writes), writes)
            if untaken.random() < UNTAKEN:
                _one(g, lambda g: fuzz_untaken.untaken(g, untaken))
            if directions.random() < DIRECTIONS:
                _one(g, lambda g: both_directions(g, directions))
        if g.chance(0.25):
            _one(g, derivative)
    except Failing as failing:
        return replace(g.ending_with(failing.statement), fails=True), g
    return finished(g), g


def _one(g: Drawer, draw: Any) -> None:
    try:
        drawn = draw(g)
    except Unfit:
        return
    if drawn is not None:
        g.add(*((drawn,) if isinstance(drawn, str) else drawn))


def _with_derivative(g: Drawer, draw: Any, rng: random.Random) -> None:
    """Draw a statement, and sometimes a derivative of what it computes."""
    before = len(g.items)
    _one(g, draw)
    if len(g.items) > before and rng.random() < DERIVATIVES:
        _one(g, derivative_of_last)


def derivative(g: Drawer) -> Text:
    """A gradient of a sum, of a gradient, a pushforward, a Jacobian or a Hessian."""
    real = [i for i in g.items if i.kind == "f" and i.value.size and i.name[0] == "v"]
    sources = [i for i in g.items if i.kind == "f" and i.value.size]
    if not real:
        return None
    y, x = g.choice(real[-4:]), g.choice(sources[:4])
    return None if x is y else derivative_of(g, y, x)


def derivative_of_last(g: Drawer) -> Text:
    """The same of the last item, with respect to one that it depends on."""
    (y,) = g.items[-1:] or [None]
    if y is None or y.name[0] != "v" or y.kind != "f" or not y.value.size:
        return None
    sources = _sources(g, y)
    return derivative_of(g, y, g.choice(sources)) if sources else None


def _sources(g: Drawer, y: Item) -> list[Item]:
    """The items of floats that another one depends on."""
    before = set(ancestors([y.var]))
    return [i for i in g.items if i is not y and i.kind == "f" and i.value.size and i.var in before]


def derivative_of(g: Drawer, y: Item, x: Item) -> str:
    """A derivative of an item with respect to another."""
    options = "disconnected_inputs='ignore', null_gradients='return'"
    way = g.rng.random()
    if way < 0.6:
        cost = g.choice((f"{y.name}", f"{y.name} ** 2", f"{y.name} * {y.name}.shape[0]"))
        if y.ndim == 0:
            cost = y.name
        return f"phintys.grad(pt.sum({cost}), {x.name}, {options})"
    if way < 0.8:
        first = f"phintys.grad(pt.sum({y.name} ** 2), {x.name}, {options})"
        return f"phintys.grad(pt.sum({first} ** 2), {x.name}, {options})"
    if way < 0.9 or y.value.size * x.value.size > 2000 or x.value.size > 100:
        return f"phintys.pushforward({y.name}, {x.name}, pt.ones_like({x.name}), 'ignore')"
    if x.ndim == 1 and g.chance(0.5):
        return f"phintys.hessian(pt.sum({y.name} ** 2), {x.name}, disconnected_inputs='ignore')"
    return f"phintys.jacobian({y.name}, {x.name}, disconnected_inputs='ignore')"


#: a derivative in place of that of an inner graph
OVERRIDE = (
    "lambda xs, ys, gs: [pt.cast(pt.sin(x) * pt.sum(gs[0]), x.dtype)"
    " if 'float' in x.dtype else None for x in xs]"
)
#: whether ``w . J t`` is ``t . J^T w``, given the terms of both
AGREE = (
    "(lambda p, q: ~(abs(pt.sum(p) - pt.sum(q)) > 1e-6 * (1 + pt.sum(abs(p)) + pt.sum(abs(q)))))"
)
#: statements whose derivatives in both modes may differ
ONE_SIDED = ("truncate_gradient", "pullback=")


def both_directions(g: Drawer, rng: random.Random) -> Text:
    """Whether the pushforward of an item is the transpose of its pullback."""
    drawn = [i for i in g.items if i.name[0] == "v" and i.value.dtype == "float64" and i.value.size]
    if not drawn or g.extreme or any(w in s.text for s in g.program.statements for w in ONE_SIDED):
        return None
    y = rng.choice(drawn[-4:])
    sources = [i for i in _sources(g, y) if i.value.dtype == "float64"]
    if not sources:
        return None
    x = rng.choice(sources)
    w, t = f"pt.cos({y.name})", f"pt.cos({x.name})"
    forward = f"phintys.pushforward({y.name}, {x.name}, {t}, 'ignore')"
    back = f"phintys.pullback({y.name}, {x.name}, {w}, disconnected_inputs='ignore')"
    return f"{AGREE}({w} * {forward}, {t} * {back})", "np.True_"


def inner_graph(g: Drawer, rng: random.Random) -> Text:
    """A drawn item, computed by an `OpFromGraph` from some of those that it depends on."""
    drawn = [i for i in g.items if i.name[0] == "v" and i.var.owner is not None]
    if not drawn:
        return None
    y = rng.choice(drawn[-4:])
    names = {i.var: i.name for i in g.items}
    ends = [v for v in ancestors([y.var]) if v in names and v is not y.var and rng.random() < 0.3]
    roots = [v for v in graph_inputs([y.var], ends) if v in names]
    captured = [v for v in roots if names[v][0] == "s" and v not in ends and rng.random() < 0.5]
    given = [names[v] for v in dict.fromkeys([*ends, *roots]) if v not in captured]
    inputs, options = ", ".join(given), f"inline={rng.random() < 0.3}"
    if rng.random() < 0.2:
        options += f", pullback={OVERRIDE}"
    return f"phintys.OpFromGraph([{inputs}], [{y.name}], {options})({inputs})", y.name


def vectorized(g: Drawer) -> Text:
    """A drawn item, computed for two equal values of an input: it is the same as for one."""
    drawn = [i for i in g.items if i.name[0] == "v" and i.value.size < 500]
    if not drawn:
        return None
    y = g.choice(drawn[-4:])
    before = set(ancestors([y.var]))
    given = [i for i in g.items if i.name[0] == "x" and i.var in before and i.value.size < 500]
    if not given:
        return None
    x = g.choice(given)
    if not _reads_values(y.var, x.var):
        return None  # there is no batch: lengths are the same in all of its items
    text = f"phintys.vectorize_graph({y.name}, {{{x.name}: pt.stack([{x.name}, {x.name}])}})[1]"
    nodes = [v.owner for v in before if v.owner is not None]
    nodes += [n for m in nodes if isinstance(m.op, InnerGraphOp) for n in m.op.expanded.apply_nodes]
    return text, None if g.extreme or any(map(_is_fickle, nodes)) else y.name


def _reads_values(y: Any, x: Any) -> bool:
    """Whether a variable depends on more of another than its shape."""
    found, pending = set(), [y]
    while pending:
        v = pending.pop()
        if v is x:
            return True
        if v in found or v.owner is None or isinstance(v.owner.op, Shape_i | Shape):
            continue
        found.add(v)
        pending.extend(v.owner.inputs)
    return False


def _is_fickle(node: Any) -> bool:
    """Whether results may depend on rounding in steps, or are drawn."""
    kinds = [np.dtype(getattr(v.type, "dtype", "O")).kind for v in (*node.inputs, node.outputs[0])]
    return "O" in kinds or (kinds[-1] in "biu" and bool({*kinds[:-1]} & {*"fc"}))


def finished(g: Drawer) -> Program:
    """The program with outputs and updates chosen."""
    drawn = [i for i in g.items if i.name[0] == "v"]
    if not drawn:
        return replace(g.program, outputs=[g.items[0].name] if g.items else [])
    last = drawn[-1]
    count = g.choice((0, 0, 1, 1, 2, 3))
    outputs = [last.name, *(g.choice(drawn).name for _ in range(count))]
    if g.chance(0.05):
        outputs.append(g.choice(g.items).name)
    updates = {i.name: v for i in g.program.inputs if i.is_shared and (v := _new_value(g, i))}
    return replace(g.program, outputs=outputs, updates=updates).pruned()


def _new_value(g: Drawer, shared: Any) -> str | None:
    """The name of an item that may become the value of a shared variable."""
    type_ = g.names[shared.name].type

    def fits(i: Item) -> bool:
        return i.name != shared.name and type_.is_super(i.var.type)

    fitting = [i.name for i in g.items if fits(i)]
    return g.choice(fitting) if fitting and g.chance(0.6) else None


def truth(g: Drawer, program: Program) -> list[np.ndarray]:
    """The results of a program that was just drawn: outputs, then new values."""
    names = [*program.outputs, *program.updates.values()]
    return [np.array(g.known[g.names[n]]) for n in names]
