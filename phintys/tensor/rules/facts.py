"""Rules generated from the facts in the scalar tables.

A fact that is added to a row of the tables becomes a rule here, with its tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

from phintys.rewriting.rule import Rule, equation
from phintys.scalar.op import TABLE, ScalarOp
from phintys.tensor.rules.language import NAMES
from phintys.tensor.rules.match import is_float
from phintys.tensor.type import TensorType

#: Functions whose facts hold for all dtypes that they accept, not only for real floats.
EVERY_DTYPE = ("conj", "invert")
#: Functions without rules about their inverse: the normal form of products covers them.
COLLECTED = ("neg", "identity", "reciprocal")
#: Functions defined outside the domain in the table, which is where they are tested.
DEFINED_EVERYWHERE = ("reciprocal",)

#: Options of rules whose pattern variables are not real floats.
INTEGERS: dict[str, Any] = {
    "types": {"x": TensorType("int64", ())},
    "tested_on": "integers",
}
COMPLEX: dict[str, Any] = {
    "types": {"x": TensorType("complex128", ())},
    "tested_on": "complex",
}


def _bounds(f: ScalarOp) -> tuple[float, float]:
    """The interval on which a unary function is defined."""
    found: tuple[float, float] = f.facts.get("domain", (-inf, inf))
    return (-inf, inf) if f.name in DEFINED_EVERYWHERE else found


def _is_total(f: ScalarOp) -> bool:
    return _bounds(f) == (-inf, inf)


def inverse_pairs() -> Iterator[tuple[ScalarOp, ScalarOp]]:
    """All pairs (g, f) with ``g(f(x)) == x`` wherever f is defined."""
    for f in TABLE.values():
        g = TABLE.get(f.facts.get("inverse", ""))
        if g is None or f.name in COLLECTED:
            continue
        yield g, f
        one_to_one = g.facts.get("increasing") or g.facts.get("decreasing")
        if _is_total(g) and one_to_one and g.facts.get("inverse") != f.name:
            yield f, g


def _restricted(f: ScalarOp) -> str:
    """Text of an expression that is ``x`` where ``f`` is defined, and NaN elsewhere."""
    low, high = _bounds(f)
    above = f"ge(x, {low})" if low > -inf else ""
    below = f"le(x, {high})" if high < inf else ""
    both = f"and_({above}, {below})" if above and below else above or below
    return f"switch({both}, x, nan)" if both else "x"


def _options(f: ScalarOp, law: str, *tags: str, **options: Any) -> dict[str, Any]:
    when = None if f.name in EVERY_DTYPE else is_float
    told: dict[str, Any] = {"namespace": NAMES, "deferred": True, "ops": [f]}
    return {**told, "law": law, "when": when, "tags": tags, **options}


def _undone(g: ScalarOp, f: ScalarOp) -> Rule:
    """The rule ``g(f(x)) -> x``; if ``f`` is not total, a rule of a later phase that keeps NaN."""
    names = [(type(g).__name__, type(f).__name__), (g.name.capitalize(), f.name.capitalize())]
    tags = tuple(dict.fromkeys(f"useless_{outer}_of_{inner}" for outer, inner in names))
    exact = f.name in EVERY_DTYPE
    saturates = max(map(abs, f.facts.get("range", (inf, inf)))) < inf
    law, tested_on = "exact" if exact else "accurate", "small" if saturates else "reals"
    options = _options(f, law, *tags, tested_on=tested_on, ops=[g])
    if not _is_total(f):
        options |= {"phase": "stabilize", "tags": (*tags, "local_exp_log_nan_switch")}
    if exact:
        options |= COMPLEX if f.name == "conj" else INTEGERS
    return equation(f"{g.name}({f.name}(x)) -> {_restricted(f)}", **options)


def _unary_rules(f: ScalarOp) -> Iterator[Rule]:
    name = f.name
    if f.facts.get("even") and name != "sqr":
        options = _options(f, "exact", "local_abs_lift")
        yield equation(f"{name}(-1 * x) -> {name}(x)", **options)
        if name != "abs":
            yield equation(f"{name}(abs(x)) -> {name}(x)", **options)
    if f.facts.get("idempotent") and name != "identity":
        yield equation(
            f"{name}({name}(x)) -> {name}(x)", **_options(f, "exact", "local_useless_abs")
        )
    low, _ = f.facts.get("range", (-inf, inf))
    # outside its domain a function with an inverse is NaN; others may have values there
    if low >= 0 and name != "abs" and (_is_total(f) or "inverse" in f.facts):
        # the square root of -0 is -0
        law = "rounding" if f.facts.get("zero_at_zero") and not f.facts.get("even") else "exact"
        magnitude = _options(f, law, "local_useless_abs", ops=[TABLE["abs"]])
        yield equation(f"abs({name}(x)) -> {name}(x)", **magnitude)
        bound = _options(f, law, "local_useless_abs", ops=[TABLE["maximum"]])
        yield equation(f"maximum({name}(x), 0) -> {name}(x)", **bound)


def _binary_rules(f: ScalarOp) -> Iterator[Rule]:
    if f.facts.get("idempotent"):
        options = _options(f, "exact", "local_useless_elemwise", when=None)
        if f.facts.get("identity") is not None:
            options |= INTEGERS
        yield equation(f"{f.name}(x, x) -> x", **options)


def _all() -> Iterator[Rule]:
    for f in TABLE.values():
        if f.name.startswith("cast_"):
            continue
        if f.nin == 1:
            yield from _unary_rules(f)
        elif f.nin == 2:
            yield from _binary_rules(f)
    for g, f in dict.fromkeys(inverse_pairs()):
        yield _undone(g, f)


EQUATIONS: list[Rule] = list(_all())
