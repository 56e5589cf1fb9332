"""Numeric checks that both sides of a rule are equal under its law; used by the tests of rules.

The caller says how expressions are evaluated and draws the inputs, because this folder does not
know tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.replace import clone_replace
from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Constant, Variable
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.rule import Equation, Rule
from phintys.rewriting.trace import trace

Given = Mapping[Variable, Any]
#: ``evaluate(outputs, {variable: value})`` returns the values of ``outputs``.
Evaluate = Callable[[Sequence[Variable], Given], Sequence[Any]]
#: ``errors(output, {variable: value}, candidates)`` returns, for each candidate array, the
#: elementwise error against the exact values of ``output`` in units in the last place: NaN where
#: the exact value is not known, infinity where both differ and one of them is not finite.
Errors = Callable[[Variable, Given, Sequence[Any]], Sequence[Any]]

#: Under the law "accurate" the error of the right side may be this many units in the last place
#: larger than twice the error of the left side.
SLACK = 4
#: A difference counts as rounding up to this multiple of the largest change under perturbation.
CONDITION = 4
#: Under the law "normwise" the sizes of nonzero elements of an input differ by less than this.
SPREAD = 1e6


@dataclass(frozen=True)
class Failure:
    """A difference between the sides of a rule that its law forbids, with the inputs."""

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
    """Copies of ``outputs``, rewritten by one rule; AssertionError if it applies nowhere."""
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
    errors: Errors | None = None,
    pointwise: bool = False,
) -> list[Failure]:
    """Evaluate an expression before and after a rule; return the differences that its law forbids.

    Parameters
    ----------
    inputs, outputs
        an expression to which the rule applies (see `sides` for equations)
    draws
        sequences of input values
    evaluate
        computes the values of variables
    rtol, atol
        differences within these tolerances are rounding
    errors
        computes errors, for the law "accurate"; without it the law is checked like "rounding"
    pointwise
        whether all inputs and results have the same shape and the expression is elementwise: the
        law is then checked for each element, and a failure names one element
    """
    after = rewritten(rule, outputs)
    failures: list[Failure] = []
    for values in draws:
        given = dict(zip(inputs, values, strict=True))
        if rule.law == "normwise" and any(map(is_badly_scaled, values)):
            continue
        left, right = (Side(vs, given, evaluate, pointwise) for vs in (outputs, after))
        if isinstance(left.values, Exception) and rule.law in ("drops_errors", "normwise"):
            continue
        wrong = differences(rule.law, left, right, rtol, atol, errors)
        if any(np.any(w) for w in wrong):
            names = {str(v): value for v, value in given.items()}
            failure = Failure(rule.name, names, left.values, right.values)
            failures.append(_at_first_place(failure, wrong) if pointwise else failure)
    return failures


def _at_first_place(failure: Failure, wrong: Sequence[Any]) -> Failure:
    """A failure reduced to the first element that differs."""
    k = next((np.flatnonzero(w)[0] for w in wrong if np.ndim(w) and np.any(w)), None)
    if k is None:
        return failure
    given = {name: value[k] for name, value in failure.given.items()}
    before, after = ([v[k] for v in values] for values in (failure.before, failure.after))
    return Failure(failure.rule, given, before, after)


def sides(rule: Equation) -> tuple[list[Variable], Variable]:
    """The inputs and the left side of an equation, for `check_rule`."""
    given, left = rule.sides.left_side()
    return list(given.values()), left


def with_inputs(
    inputs: Sequence[Variable], output: Variable, others: Sequence[Variable]
) -> list[Variable]:
    """A copy of ``output`` with ``inputs`` replaced, e.g. by variables of another rank or dtype."""
    replaced: Any = clone_replace(
        [output], dict(zip(inputs, others, strict=True)), rebuild_strict=False
    )
    return list(replaced)


class Side:
    """One side of a rule, with the input values of one draw.

    ``pointwise`` says whether the expression is elementwise: see `check_rule`.
    """

    def __init__(
        self, outputs: Sequence[Variable], given: Given, evaluate: Evaluate, pointwise: bool = False
    ) -> None:
        self.outputs, self.given = outputs, given
        self.evaluate, self.pointwise = evaluate, pointwise

    @cached_property
    def values(self) -> Any:
        """The values of the outputs, or the exception that was raised instead."""
        try:
            return [np.asarray(v) for v in self.evaluate(self.outputs, self.given)]
        except Exception as exc:  # an error is a result, which is compared with the other side's
            return exc

    @cached_property
    def steps(self) -> list[tuple[list[Any], list[Any]]]:
        """For each node the pair (values of its inputs, values of its outputs)."""
        nodes = list(io_toposort(list(self.given), list(self.outputs)))
        made = [v for node in nodes for v in node.outputs]
        known = {**self.given, **dict(zip(made, self.evaluate(made, self.given), strict=True))}
        known |= {v: v.data for n in nodes for v in n.inputs if isinstance(v, Constant)}
        return [([known[v] for v in n.inputs], [known[v] for v in n.outputs]) for n in nodes]

    def merged(self, masks: Iterable[Any]) -> Any:
        """The union of masks: elementwise if `pointwise`, else one bool, whether any is true."""
        if not self.pointwise:
            return any(bool(np.any(m)) for m in masks)
        shape = np.broadcast_shapes(*(np.shape(v) for v in self.given.values()))
        found = np.zeros(shape, bool)
        for m in masks:
            found |= m
        return found

    def overflows(self) -> Any:
        """Where an intermediate or final result overflows."""
        return self.merged(_overflows(o, given) for given, out in self.steps for o in out)

    def underflows(self) -> Any:
        """Where an intermediate or final result underflows: to a subnormal number or 0."""
        return self.merged(_underflows(o, given) for given, out in self.steps for o in out)

    def not_finite(self) -> Any:
        """Where an input, or an intermediate or final result, is NaN or infinite."""
        made = [o for _, out in self.steps for o in out]
        floats = [v for v in map(np.asarray, [*self.given.values(), *made]) if _is_float(v)]
        return self.merged(~np.isfinite(v) for v in floats)

    def rounding(self, k: int, ulps: int) -> Any:
        """An estimate of the rounding error of output ``k``.

        It is `CONDITION` times the largest change when inputs and results of nodes are perturbed by
        ``ulps`` units in the last place.  With 0 ``ulps``, only results are perturbed, by the
        smallest subnormal number.
        """
        rng = np.random.default_rng(0)
        largest = np.zeros(np.shape(self.values[k]))
        for _ in range(4):
            change = np.abs(self._perturbed(rng, ulps)[self.outputs[k]] - self.values[k])
            largest = np.maximum(largest, np.where(np.isfinite(change), change, 0))
        return CONDITION * largest

    def _perturbed(self, rng: Any, ulps: int) -> dict[Variable, Any]:
        """The values of all variables when inputs and results of nodes are perturbed."""
        known = {v: _perturbed(rng, x, ulps) if ulps else x for v, x in self.given.items()}
        for node in io_toposort(list(self.given), list(self.outputs)):
            given = {v: known[v] for v in node.inputs if v in known}
            made = self.evaluate(node.outputs, given)
            known |= {v: _perturbed(rng, x, ulps) for v, x in zip(node.outputs, made)}
        return known


def is_badly_scaled(value: Any) -> bool:
    """Whether an array has infinite elements, or nonzero ones that differ by more than `SPREAD`."""
    if not _is_float(value):
        return False
    size = np.abs(value)
    size = size[size > 0]
    return bool(size.size and (np.isinf(size).any() or size.max() / SPREAD > size.min()))


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc"


def _overflows(out: Any, given: Sequence[Any]) -> Any:
    """Where a node's float result is infinite, and none of its operands is infinite or 0."""
    if not _is_float(out):
        return False
    return np.isinf(out) & ~_any_operand(given, out, lambda v: np.isinf(v) | (v == 0))


def _underflows(out: Any, given: Sequence[Any]) -> Any:
    """Where a node's float result is subnormal, or is 0 although none of its operands is 0."""
    if not _is_float(out):
        return False
    subnormal = (out != 0) & (np.abs(out) < np.finfo(out.dtype).tiny)
    return subnormal | ((out == 0) & ~_any_operand(given, out, lambda v: v == 0))


def _any_operand(given: Sequence[Any], out: Any, predicate: Callable[[Any], Any]) -> Any:
    """Where the predicate holds for an operand of the elements of ``out``.

    Elementwise if the operands have the shape of ``out``; otherwise one bool for all elements.
    """
    arrays = [v for v in given if isinstance(v, np.ndarray | np.generic)]
    elementwise = all(v.size == 1 or v.shape == out.shape for v in arrays)
    found: Any = np.False_
    for v in arrays:
        found = found | (predicate(v) if elementwise else predicate(v).any())
    return found


def _perturbed(rng: Any, value: Any, ulps: int) -> Any:
    """A float value plus or minus ``ulps`` units in the last place (0: the smallest subnormal)."""
    if not _is_float(value) or value.dtype.kind != "f":
        return value
    info = np.finfo(value.dtype)
    step = value * (ulps * info.eps) if ulps else info.smallest_subnormal
    return (value + rng.choice([-1, 1], size=value.shape) * step).astype(value.dtype)


# --------------------------------------------------------------------------------- laws


def differences(
    law: str,
    before: Side,
    after: Side,
    rtol: float = 1e-12,
    atol: float = 0.0,
    errors: Errors | None = None,
) -> list[Any]:
    """For each output, a mask of where the sides differ more than the law allows.

    Parameters as in `check_rule`.  If a side raises, the mask is one bool: whether the other one
    does not raise an exception of the same class.
    """
    left, right = before.values, after.values
    if isinstance(left, Exception) or isinstance(right, Exception):
        return [type(left) is not type(right)]
    found: list[Any] = []
    for k, (a, b) in enumerate(zip(left, right)):
        if a.dtype != b.dtype or a.shape != b.shape:
            found.append(True)
            continue
        exact = law == "exact" or a.dtype.kind not in "fc"
        wrong = ~(_same_bits(a, b) if exact else np.isclose(b, a, rtol, atol, equal_nan=True))
        if np.any(wrong) and not exact:
            with np.errstate(all="ignore"):
                wrong &= ~(
                    _as_accurate(before, after, k, wrong, errors)
                    if errors is not None and law == "accurate"
                    else _is_rounding(law, before, after, k)
                )
        found.append(wrong)
    return found


def _same_bits(a: Any, b: Any) -> Any:
    """Where values are equal, with signs of zeros distinguished, and all NaNs equal."""
    if a.dtype.kind == "c":
        return _same_bits(a.real, b.real) & _same_bits(a.imag, b.imag)
    if a.dtype.kind != "f":
        return a == b
    return np.where(np.isnan(a), np.isnan(b), (a == b) & (np.signbit(a) == np.signbit(b)))


def _is_rounding(law: str, before: Side, after: Side, k: int) -> Any:
    """Where rounding explains a difference, or the law does not apply."""
    difference, rounding = np.abs(after.values[k] - before.values[k]), before.rounding(k, 2)
    if law == "normwise":
        largest = np.finfo(before.values[k].dtype).eps * np.abs(before.values[k])
        rounding = np.max(rounding + CONDITION * largest, initial=0)
    allowed = difference <= rounding
    for side in (before, after):
        allowed = allowed | side.overflows() | side.underflows()
    return allowed | before.not_finite() if law in ("finite", "normwise") else allowed


def _as_accurate(before: Side, after: Side, k: int, wrong: Any, errors: Errors) -> Any:
    """Where the right side is about as close to the exact value as the left side, or closer.

    It may lose the digits that its intermediate results lose by underflow.
    """
    a, b = (side.values[k] for side in (before, after))
    given, where = before.given, np.ones_like(wrong)
    if before.pointwise:
        given, where = {v: x[wrong] for v, x in given.items()}, wrong
        a, b = a[wrong], b[wrong]
    left, right = (np.asarray(e) for e in errors(before.outputs[k], given, [a, b]))
    lost = after.rounding(k, 0)[where].reshape(a.shape) / np.spacing(np.abs(a))
    accurate = right <= 2 * left + SLACK + np.where(np.isfinite(a), lost, 0)
    unknown = np.isnan(left) & (np.isnan(a) | ~np.isnan(b))
    found = np.ones(wrong.shape, bool)
    found[where] = np.ravel(accurate | unknown)
    return found | (after.underflows() & np.isnan(after.values[k]))
