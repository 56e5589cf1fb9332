"""Check that both sides of a rule are equal under its law.

How graphs are built, evaluated and how inputs are drawn is up to the caller: this folder knows no
tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.replace import clone_replace
from phintys.graph.variable import Variable
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.rule import Equation, Rule
from phintys.rewriting.trace import trace

#: ``evaluate(outputs, {variable: value}) -> values``
Evaluate = Callable[[Sequence[Variable], Mapping[Variable, Any]], Sequence[Any]]


@dataclass(frozen=True)
class Failure:
    """A difference between both sides of a rule."""

    rule: str
    given: Mapping[str, Any]
    before: Any
    after: Any

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return (
            f"{self.rule}: for {values} the left side is {self.before!r}, the right {self.after!r}"
        )


def rewritten(rule: Rule, outputs: Sequence[Variable]) -> list[Variable]:
    """Copies of ``outputs`` after the rule was applied wherever it applies.

    AssertionError if it applies nowhere.
    """
    fgraph = FunctionGraph(outputs=list(outputs), copy_inputs=False)
    with trace() as log:
        RuleSet([rule], name=rule.name).apply(fgraph)
    if not log.counts()[rule.name]:
        raise AssertionError(f"Rule {rule.name} does not apply to {', '.join(map(str, outputs))}.")
    return list(fgraph.outputs)


def check_rule(
    rule: Rule,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    draws: Iterable[Sequence[Any]],
    evaluate: Evaluate,
    rtol: float = 1e-12,
    atol: float = 0.0,
) -> list[Failure]:
    """Evaluate an expression before and after a rule; the differences its law forbids.

    Parameters
    ----------
    inputs, outputs
        an expression to which the rule applies (see `sides` for equations)
    draws
        sequences of input values
    evaluate
        computes variables
    rtol, atol
        what counts as rounding
    """
    after = rewritten(rule, outputs)
    failures: list[Failure] = []
    for values in draws:
        given = dict(zip(inputs, values, strict=True))
        if rule.law == "finite" and not all(map(_all_finite, values)):
            continue
        left = _value_or_error(evaluate, outputs, given)
        if isinstance(left, Exception) and rule.law == "drops_errors":
            continue
        right = _value_or_error(evaluate, after, given)
        if not _agree(left, right, rule.law, rtol, atol):
            names = {str(v): value for v, value in given.items()}
            failures.append(Failure(rule.name, names, left, right))
    return failures


def sides(rule: Equation) -> tuple[list[Variable], Variable]:
    """Inputs and the left side of an equation, for `check_rule`."""
    given, left = rule.left_side()
    return list(given.values()), left


def with_inputs(
    inputs: Sequence[Variable], output: Variable, others: Sequence[Variable]
) -> list[Variable]:
    """``output`` with its inputs replaced, e.g. by variables of another rank or dtype."""
    replaced: Any = clone_replace(
        [output], dict(zip(inputs, others, strict=True)), rebuild_strict=False
    )
    return list(replaced)


def _value_or_error(
    evaluate: Evaluate, outputs: Sequence[Variable], given: Mapping[Variable, Any]
) -> Any:
    try:
        return [np.asarray(v) for v in evaluate(outputs, given)]
    except Exception as exc:  # an error is a legitimate result of one side: it is compared
        return exc


def _all_finite(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _agree(left: Any, right: Any, law: str, rtol: float, atol: float) -> bool:
    if isinstance(left, Exception) or isinstance(right, Exception):
        return type(left) is type(right)
    exact = law == "exact"
    return all(
        _equal(a, b, 0.0 if exact else rtol, 0.0 if exact else atol) for a, b in zip(left, right)
    )


def _equal(a: Any, b: Any, rtol: float, atol: float) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True))
