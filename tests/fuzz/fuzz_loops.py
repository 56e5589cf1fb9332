"""Loops: calls of `phintys.scan` whose steps are drawn."""

from __future__ import annotations

import random

from fuzz_draw import Drawer, Item
from fuzz_functions import Text

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
