"""Choices of which the branch that is not taken fails if it is computed, also in steps of loops."""

from __future__ import annotations

import random
import re

from fuzz_draw import Drawer, Item, Unfit
from fuzz_functions import Text
from fuzz_loops import OF_BOTH
from fuzz_program import evaluate_text

from phintys.errors import ContradictionError

#: what fails: of an array ``x``, a number ``n`` that is larger than its first length, and a number
#: ``m`` that is larger than its size
FAILING = (
    "{x}[{n}]",
    "pt.set_subtensor({x}[{n}], 0)",
    "pt.specify_shape({x}, ({n}, {nones}))",
    "{x}.reshape(({m},))",
    "pt.dot(pt.ones({n}), pt.ones({x}.shape[0]))",
    "pt.linalg.inv(pt.ones(({x}.shape[0], {n})))",
    "pt.linalg.det(pt.tril(pt.ones(({n}, {x}.shape[0]))))",
    "pt.linalg.solve(pt.eye({n}), pt.ones({x}.shape[0]))",
    "pt.linalg.solve(pt.eye({x}.shape[0]), pt.ones(({n}, 2)))",
)


def untaken(g: Drawer, rng: random.Random) -> Text:
    """A choice, or a loop with a choice in its step."""
    text, numpy = (_in_a_step if rng.random() < 0.5 else _plain)(g, rng)
    try:
        evaluate_text(text, g.names)
    except ContradictionError as exc:
        raise Unfit from exc  # lengths that are known: it is an error to write that
    return text, numpy


def _failing(g: Drawer, rng: random.Random, x: Item, dtype: str) -> str:
    """Text of a number that cannot be computed; no two are equal."""
    unlike = x.shape[0] + len(g.program.statements) + 1
    text = rng.choice(FAILING).format(
        x=x.name,
        n=_length(g, unlike),
        m=_length(g, x.value.size + unlike),
        nones=", ".join(["None"] * (x.ndim - 1)),
    )
    return f"pt.cast(pt.sum({text}), {dtype!r})"


def _length(g: Drawer, n: int) -> str:
    text = g.integer(n)  # one that is computed may be a float
    return text if text.isdigit() else f"pt.cast({text}, 'int64')"


def _array(g: Drawer) -> Item:
    return g.item(lambda i: i.value.size < 300, "biuf", least=1)


def _plain(g: Drawer, rng: random.Random) -> tuple[str, str]:
    y, x = g.item(kinds="f"), _array(g)
    small, large = g.integer(rng.randrange(5)), g.integer(rng.randrange(5, 9))
    failing = f"{y.name} + {_failing(g, rng, x, y.value.dtype.name)}"
    choices = [
        f"phintys.ifelse(pt.gt({small}, {large}), {failing}, {y.name})",
        f"phintys.ifelse(pt.lt({small}, {large}), {y.name}, {failing})",
    ]
    if rng.random() < 0.3:  # branches of different conditions share what fails
        return f"pt.maximum({', '.join(choices)})", y.name
    return rng.choice(choices), y.name


def _in_a_step(g: Drawer, rng: random.Random) -> tuple[str, str]:
    rows = g.item(lambda i: i.value.size < 300 and i.ndim <= 3, "f", least=1)
    shape, dtype = rows.shape[1:], rows.value.dtype.name

    def fits(i: Item) -> bool:
        return i.shape == shape and i.value.dtype == dtype

    h = g.item(fits, make=lambda: g.input(dtype, shape))
    x, step = _array(g), rng.choice(OF_BOTH)
    failing = f"h + {_failing(g, rng, x, dtype)}"
    never = rng.choice(("pt.any({v} * 0 > {n})", "pt.lt({n}, 0)")).format(
        v=rng.choice("ah"), n=g.integer(rng.randrange(5))
    )
    parameters, given = "a, h", "[]"
    if rng.random() < 0.5:  # the array is given to the loop, not captured by the step
        parameters, given = "a, h, z", f"[{x.name}]"
        failing = re.sub(rf"\b{x.name}\b", "z", failing)
    chosen = f"phintys.ifelse({never}, {failing}, pt.cast({step}, {dtype!r}))"
    text = (
        f"phintys.scan(lambda {parameters}: {chosen}, [{rows.name}], [{h.name}], {given}, "
        "return_updates=False)"
    )
    return text, f"scan(lambda a, h: [{step}], [{rows.name}], [{h.name}], [])[0]"
