"""What is known of variables, as text for printed graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions.core import (
    ALL_KEYS,
    FALSE,
    IMPLIES,
    TRUE,
    UNKNOWN,
    AssumptionFeature,
)
from phintys.graph.traversal import ancestors
from phintys.graph.variable import Constant, Variable


def summarize_assumptions(feature: AssumptionFeature, var: Variable) -> str:
    """The short names of what is known of a variable, without what follows from the others.

    >>> import phintys.tensor as pt
    >>> summarize_assumptions(AssumptionFeature(), pt.eye(pt.iscalar("n")) * 2)
    '{diag, pd}'
    """
    facts = feature.facts(var)
    true = [key for key in ALL_KEYS if facts.get(key, UNKNOWN) is TRUE]
    implied = {weaker for key in true for weaker in IMPLIES.get(key, ())}
    if any(key.name in ("diagonal", "positive_definite") for key in true):
        implied |= {key for key in true if key.name == "symmetric"}
    shown = [key.short_name for key in true if key.short_name and key not in implied]
    if not isinstance(var, Constant):
        false = [key for key in ALL_KEYS if facts.get(key, UNKNOWN) is FALSE]
        shown += [f"!{key.short_name}" for key in false if key.short_name]
    return f"{{{', '.join(shown)}}}" if shown else ""


def assumption_tags(outputs: Variable | Sequence[Variable]) -> dict[Any, str]:
    """What is known of the variables that ``outputs`` depend on, for those of which something is.

    >>> import phintys.tensor as pt
    >>> from phintys.assumptions import assume
    >>> assumption_tags(assume(pt.dmatrix("x"), symmetric=True))
    {SpecifyAssumptions{symmetric}.0: '{sym}'}
    """
    feature = AssumptionFeature()
    roots = [outputs] if isinstance(outputs, Variable) else list(outputs)
    said = {v: summarize_assumptions(feature, v) for v in ancestors(roots)}
    return {v: text for v, text in said.items() if text}
