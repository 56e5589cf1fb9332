<<<<<<< HEAD
"""How loops and branches are drawn."""

from __future__ import annotations

import math
=======
"""Loops: calls of `phintys.scan` whose steps are drawn."""

from __future__ import annotations

import random
>>>>>>> main

from fuzz_draw import Drawer, Item
from fuzz_functions import Text

<<<<<<< HEAD
OPTIONS = "return_updates=False"
#: what a loop computes of a row
MAPS = ("pt.tanh(a)", "a * 2", "pt.sum(a)", "pt.exp(-a * a)", "pt.cumsum(a)", "a.T", "a + {w}")
#: the same of the value before; small differences do not grow
STEPS = ("pt.tanh(h) * 0.5", "h * 0.5 + 1", "pt.sigmoid(h) - h / 3", "-h", "h / 2 + {w}")
#: the same of a row and of the value before
BOTH = ("h * 0.5 + a", "pt.tanh(h * 0.5 + a)", "pt.maximum(h, a)", "pt.switch(h > a, h / 2, a)")


def loop(g: Drawer) -> Text:
    """A `scan`: over rows, of states, or both; some end early, some are nested."""
    draw = g.choice((_map, _map, _states, _states, _both, _both, _pair, _earlier, _nested, _until))
    drawn = draw(g)
    if drawn is None:
        return None
    text, numpy = drawn
    last = g.choice(("", "", "", "[-1]"))
    return text + last, None if numpy is None else numpy + last


def _rows(g: Drawer, least: int = 1) -> Item:
    return g.item(lambda i: i.value.size < 300 and i.ndim <= 3, "f", least=least)


def _like(g: Drawer, x: Item, shape: tuple[int, ...]) -> str:
    """Text of an item of another shape and the dtype of an item."""
    dtype = x.value.dtype.name
    fits = lambda i: i.shape == shape and i.value.dtype == dtype  # noqa: E731
    return g.item(fits, make=lambda: g.input(dtype, shape)).name


def _map(g: Drawer) -> tuple[str, str]:
    x = _rows(g)
    step = g.choice(MAPS).format(w=_like(g, x, x.shape[1:]))
    if g.chance(0.3):
        rows, text = f"{x.name}[::-1]", f"sequences=[{x.name}], go_backwards=True, {OPTIONS}"
    else:
        rows, text = x.name, f"sequences=[{x.name}], {OPTIONS}"
    return f"phintys.scan(lambda a: {step}, {text})", f"looped(lambda a: {step}, [{rows}])"


def _states(g: Drawer) -> tuple[str, str]:
    h, n = _rows(g, 0), g.integer(g.rng.randrange(0, 7))
    step = g.choice(STEPS).format(w=_like(g, h, h.shape))
    text = f"phintys.scan(lambda h: {step}, outputs_info=[{h.name}], n_steps={n}, {OPTIONS})"
    return text, f"looped(lambda h: {step}, [], {h.name}, {n})"


def _both(g: Drawer) -> tuple[str, str]:
    x = _rows(g)
    h, step = _like(g, x, x.shape[1:]), g.choice(BOTH)
    given = f"sequences=[{x.name}], outputs_info=[{h}], {OPTIONS}"
    return (
        f"phintys.scan(lambda a, h: {step}, {given})",
        f"looped(lambda a, h: {step}, [{x.name}], {h})",
    )


def _pair(g: Drawer) -> tuple[str, None]:
    """Two states, of which the second is not read by the first."""
    x = _rows(g)
    h, k = (_like(g, x, x.shape[1:]) for _ in range(2))
    step = f"[{g.choice(BOTH)}, k * 0.5 + h]"
    given = f"sequences=[{x.name}], outputs_info=[{h}, {k}], {OPTIONS}"
    return f"phintys.scan(lambda a, h, k: {step}, {given})[{g.rng.randrange(2)}]", None


def _earlier(g: Drawer) -> tuple[str, None] | None:
    """Two rows, or two earlier values, in each step."""
    x = g.item(lambda i: i.value.size < 300 and i.shape[0] >= 2, "f", least=1)
    if g.chance(0.5):
        rows = f"dict(input={x.name}, taps=[-1, 0])"
        return f"phintys.scan(lambda a, b: a - b / 2, sequences=[{rows}], {OPTIONS})", None
    first, n = f"dict(initial={x.name}[:2], taps=[-2, -1])", g.integer(g.rng.randrange(0, 7))
    text = f"lambda p, q: q / 2 - p / 4, outputs_info=[{first}], n_steps={n}"
    return f"phintys.scan({text}, {OPTIONS})", None


def _nested(g: Drawer) -> tuple[str, str] | None:
    x = _rows(g, 2)
    if math.prod(x.shape) == 0:
        return None
    h = _like(g, x, x.shape[2:])
    inner, step = f"phintys.scan(lambda a, h: {{}}, [b], [{h}], {OPTIONS})[-1]", g.choice(BOTH)
    text = f"phintys.scan(lambda b: {inner.format(step)}, sequences=[{x.name}], {OPTIONS})"
    return text, f"looped(lambda b: looped(lambda a, h: {step}, [b], {h})[-1], [{x.name}])"


def _until(g: Drawer) -> tuple[str, None]:
    h = _rows(g, 0)
    end = f"phintys.loop.until(pt.max(pt.abs(h)) < {g.choice(('0.25', '0.01', '9'))})"
    step = f"lambda h: (h / 2, {end})"
    return f"phintys.scan({step}, outputs_info=[{h.name}], n_steps=8, {OPTIONS})", None


def branch(g: Drawer) -> Text:
    """A lazy choice between items, of which some are computed for it alone."""
    x, y = g.item(kinds="biuf"), g.item()
    condition = x.name if not x.ndim else f"pt.any({x.name} > {g.choice((0, 1))})"
    dtype, shape = y.value.dtype.name, y.shape

    def fits(i: Item) -> bool:
        return i.value.dtype == dtype and i.ndim == len(shape) and i is not y

    z = g.item(fits, make=lambda: g.input(dtype, shape))
    if g.chance(0.2):
        text = f"phintys.ifelse({condition}, [{y.name}, {z.name}], [{z.name}, {y.name}])[0]"
    else:
        text = f"phintys.ifelse({condition}, {y.name}, {z.name})"
    return text, f"({y.name} if {condition} else {z.name})"
=======
#: steps that keep numbers in bounds: ``row`` of a sequence, ``last`` value of the state, ``fixed``
STEPS = [
    "pt.tanh(row * last + fixed)",
    "pt.tanh(last + row) * fixed",
    "0.5 * last + row * fixed",
    "last + pt.sin(row)",
    "pt.maximum(last, row) - 0.25 * fixed",
    "pt.where(row > last, row, 0.5 * last)",
    "pt.exp(-abs(last)) + row",
    "last / (1 + row * row)",
    "row",
    "last",
    "fixed * 0.5",
]

#: outputs that are not states
OUTPUTS = ["row * last", "pt.cos(last) + fixed", "pt.sum(row * last)", "row", "abs(fixed)"]


def drawn_loop(g: Drawer, rng: random.Random) -> Text:
    """A call of `phintys.scan`, and the same in NumPy."""
    x = g.item(lambda i: 1 <= i.ndim <= 3 and i.shape[0] <= 20, kinds="f")
    row = x.shape[1:]
    if any(n == 1 and s is None for n, s in zip(row, x.static[1:])):
        return None  # the step could not broadcast it
    initial, fixed = _of_shape(g, x, row), _of_shape(g, x, row if rng.random() < 0.5 else ())
    dtype = x.value.dtype.name
    step = f"pt.cast({rng.choice(STEPS)}, {dtype!r})"
    further = [rng.choice(OUTPUTS) for _ in range(rng.choice((0, 0, 1, 2)))]
    taps = rng.random() < 0.2 and x.shape[0] > 2
    parameters = "row, later, last, fixed" if taps else "row, last, fixed"
    if taps:
        step = step.replace("row", "(row - later)", 1)
    results = ", ".join([step, *further])
    body = f"[{results}], until(pt.any(last > 2))" if rng.random() < 0.15 else f"[{results}]"
    sequence = f"dict(input={x.name}, taps=[0, 1])" if taps else x.name
    states = ", ".join([initial.name, *["None"] * len(further)])
    options = _options(g, rng, x.shape[0] - taps)
    call = (
        f"scan(lambda {parameters}: ({body}), [{sequence}], [{states}], [{fixed.name}]{options}, "
        "return_list=True, return_updates=False)"
    )
    which = f"[{rng.randrange(1 + len(further))}]" + rng.choice(("", "", "[-1]", "[1:]"))
    return f"phintys.{call.replace('until', 'phintys.loop.until')}{which}", f"{call}{which}"


def _of_shape(g: Drawer, x: Item, shape: tuple[int, ...]) -> Item:
    """An item of a shape in the dtype of another."""
    dtype = x.value.dtype

    def fits(i: Item) -> bool:
        return i.shape == shape and i.value.dtype == dtype and i.static == x.static[1:]

    def make() -> Item:
        return g.input(dtype.name, shape)

    return g.item(fits, kinds="f", make=make)


def _options(g: Drawer, rng: random.Random, steps: int) -> str:
    found = ", go_backwards=True" if rng.random() < 0.2 else ""
    if rng.random() < 0.3:
        found += f", n_steps={g.integer(rng.randrange(steps + 1))}"
    return found
>>>>>>> main
