"""Loops, calls of `phintys.scan` whose steps are drawn; branches, calls of `phintys.ifelse`."""

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

#: reads of a result
READS = ("", "", "", "[-1]", "[-1]", "[1:]", "[-2:]", "[:-1][-1]", "[0]", "[:2]", "[::-1][0]")

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
    which = f"[{rng.randrange(1 + len(further))}]" + rng.choice(READS)
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
    if rng.random() < 0.15:
        found += f", truncate_gradient={rng.randrange(1, steps + 2)}"
    return found


def further_loop(g: Drawer, rng: random.Random) -> Text:
    """A loop with checkpoints, or one over several sequences with several earlier values."""
    return (_with_checkpoints if rng.random() < 0.5 else _of_several)(g, rng)


def _with_checkpoints(g: Drawer, rng: random.Random) -> Text:
    x = _rows(g)
    h, every = _alike(g, x, x.shape[1:]), rng.randrange(1, 6)
    step = rng.choice(OF_BOTH)
    text = (
        f"phintys.loop.scan_checkpoints(lambda a, h: {step}, [{x.name}], [{h}], "
        f"save_every_N={every}, return_updates=False)"
    )
    return text, f"checkpoints(scan(lambda a, h: [{step}], [{x.name}], [{h}], [])[0], {every})"


def _of_several(g: Drawer, rng: random.Random) -> Text:
    x = g.item(lambda i: i.value.size < 300 and i.shape[0] >= 3, "f", least=1)
    y, h = _alike(g, x, x.shape), _alike(g, x, (3, *x.shape[1:]))
    first, second = rng.sample((-1, 0, 1), 2), rng.sample((0, 1, 2), rng.choice((1, 2)))
    names = ", ".join("abcd"[: len(first) + len(second)])
    states = f"[dict(initial={h}, taps=[-3, -1]), None]"
    return (
        f"phintys.scan(lambda {names}, p, q: [p / 4 - q / 2 + a * b, c - q], "
        f"[dict(input={x.name}, taps={first}), dict(input={y}, taps={second})], {states}, "
        f"go_backwards={rng.random() < 0.3}, return_updates=False)[{rng.randrange(2)}]"
    )


# ------------------------------------------------------------------------- other forms

#: the same of a state, and of a row and a state; small differences do not grow
OF_A_STATE = ("pt.tanh(h) * 0.5", "h * 0.5 + 1", "pt.sigmoid(h) - h / 3", "-h", "h / 2 + {w}")
OF_BOTH = ("h * 0.5 + a", "pt.tanh(h * 0.5 + a)", "pt.maximum(h, a)", "pt.switch(h > a, h / 2, a)")


def other_loop(g: Drawer) -> Text:
    """A loop without rows, without or with two states, with two earlier values, or a nested one."""
    draw = g.choice((_of_rows, _of_a_state, _of_two_states, _of_earlier_values, _nested))
    which = f"[{g.rng.randrange(2)}]" if draw is _of_two_states else ""
    return f"phintys.scan({draw(g)}, return_updates=False){which}{g.choice(READS)}"


#: writes to a part of a state, at positions ``i``; what they read is in range
WRITES = (
    "pt.set_subtensor(h[i], h[i - 1] * 0.5)",
    "pt.inc_subtensor(h[i], pt.tanh(h[-1 - i]) * 0.25)",
    "pt.set_subtensor(h[i:], h[i:] * 0.5 + 0.25)",
    "pt.set_subtensor(h[1:], h[:-1] * 0.5)",
    "pt.inc_subtensor(h[: i + 1], h[i] * 0.25)",
    "pt.set_subtensor(h[i], pt.max(h[: i + 1], axis=0) / 2)",
    "pt.set_subtensor(h[..., 0], h[..., -1] * 0.5)",
    "pt.set_subtensor(h[::-1], h * 0.5)",
    "pt.set_subtensor(h[pt.stack([i, i - 1])], h[pt.stack([i - 1, i])] * 0.5)",
    "pt.inc_subtensor(h[pt.stack([i, i])], h[:2] * 0.25)",
    "pt.set_subtensor(h[h > 0.5], 0.25)",
    "pt.set_subtensor(h[h > 0.5], h[h > 0.5] * 0.5)",
    "pt.inc_subtensor(h[h > 0.25], h[h > 0.25][::-1] * 0.25)",
    "pt.set_subtensor(h[i], pt.tanh(h[h < 1].sum()) * h[i] * 0.25)",
    "pt.set_subtensor(pt.set_subtensor(h[i], h[i - 1] / 2)[i - 1], h[i] / 2)",
    "phintys.ifelse(pt.any(h[i] > 0.5), pt.set_subtensor(h[i], h[i] / 2), h)",
    "phintys.scan(lambda k, h: pt.set_subtensor(h[k], h[i] / 2 + h[k - 1] / 4), [pt.arange(i, 2)], "
    "[h], return_updates=False)[-1]",
)


def writing_loop(g: Drawer, rng: random.Random) -> Text:
    """A loop that writes a part of its state, or of one of two."""
    x = g.item(lambda i: i.value.size < 300 and i.ndim <= 3 and i.shape[0] >= 2, "f", least=1)
    step, states = rng.choice(WRITES), x.name
    positions = f"pt.arange({x.name}.shape[0] - {rng.randrange(2)})"
    if "arange(i, 2)" in step:
        positions = "pt.arange(2)"
    which = rng.choice(READS)
    parameters = "i, h"
    if rng.random() < 0.3:
        other = rng.choice(("k * 0.5 + h", "pt.set_subtensor(k[i], h[i - 1] / 2)"))
        step, parameters = f"[{step}, {other}]", "i, h, k"
        states += f", {_alike(g, x, x.shape)}"
        which = f"[{rng.randrange(2)}]" + which
    return (
        f"phintys.scan(lambda {parameters}: {step}, [{positions}], [{states}], "
        f"return_updates=False){which}"
    )


def _rows(g: Drawer, least: int = 1) -> Item:
    return g.item(lambda i: i.value.size < 300 and i.ndim <= 3, "f", least=least)


def _alike(g: Drawer, x: Item, shape: tuple[int, ...]) -> str:
    """Text of an item of another shape and the dtype of an item."""
    dtype = x.value.dtype.name

    def fits(i: Item) -> bool:
        return i.shape == shape and i.value.dtype == dtype

    return g.item(fits, make=lambda: g.input(dtype, shape)).name


def _of_rows(g: Drawer) -> str:
    x = g.item(lambda i: i.value.size < 300 and i.ndim <= 3, least=1)
    step = g.choice(("a * 2", "pt.sum(a)", "pt.exp(-a * a)", "pt.cumsum(a)", "a.T", "a[None]"))
    return f"lambda a: {step}, [{x.name}], go_backwards={g.chance(0.3)}"


def _of_a_state(g: Drawer) -> str:
    h, n = _rows(g, 0), g.integer(g.rng.randrange(0, 7))
    step = g.choice(OF_A_STATE).format(w=_alike(g, h, h.shape))
    if g.chance(0.3):
        end = f"phintys.loop.until(pt.any(pt.abs(h) < {g.choice(('0.25', '0.01', '9'))}))"
        step = f"({step}, {end})"
    return f"lambda h: {step}, None, [{h.name}], n_steps={n}"


def _of_two_states(g: Drawer) -> str:
    x = _rows(g)
    h, k = (_alike(g, x, x.shape[1:]) for _ in range(2))
    return f"lambda a, h, k: [{g.choice(OF_BOTH)}, k * 0.5 + h], [{x.name}], [{h}, {k}]"


def _of_earlier_values(g: Drawer) -> str:
    x = g.item(lambda i: i.value.size < 300 and i.shape[0] >= 2, "f", least=1)
    first = f"dict(initial={x.name}[:2], taps=[-2, -1])"
    return f"lambda p, q: q / 2 - p / 4, None, [{first}], n_steps={g.integer(g.rng.randrange(7))}"


def _nested(g: Drawer) -> str:
    x = _rows(g, 2)
    h = _alike(g, x, x.shape[2:])
    inner = f"lambda a, h: {g.choice(OF_BOTH)}, [b], [{h}], return_updates=False"
    return f"lambda b: phintys.scan({inner})[-1], [{x.name}]"


# ----------------------------------------------------------------------------- branches


def branch(g: Drawer) -> Text:
    """A choice between items, of which some are computed for it alone."""
    x, y = g.item(kinds="biuf"), g.item()
    condition = x.name if not x.ndim else f"pt.any({x.name} > {g.choice((0, 1))})"
    dtype, shape = y.value.dtype.name, y.shape

    def fits(i: Item) -> bool:
        return i.value.dtype == dtype and i.ndim == len(shape) and i is not y

    z = g.item(fits, make=lambda: g.input(dtype, shape))
    pairs = f"[{y.name}, {z.name}], [{z.name}, {y.name}]"
    given, part = (pairs, "[0]") if g.chance(0.2) else (f"{y.name}, {z.name}", "")
    text = f"phintys.ifelse({condition}, {given}){part}"
    return text, f"({y.name} if {condition} else {z.name})"
