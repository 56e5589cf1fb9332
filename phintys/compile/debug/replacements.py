"""Compares what rewriting has replaced with what replaces it, by values, under each rule's law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from phintys.compile.debug.faults import BadOptimization
from phintys.compile.debug.record import Replacement, RewriteRecord, Stage
from phintys.compile.debug.values import Unknown, Values
from phintys.graph.results import array_type
from phintys.graph.traversal import ancestors, sorted_nodes
from phintys.graph.variable import Constant, Variable
from phintys.rewriting.check import Side, differences, is_badly_scaled
from phintys.rewriting.rule import LAWS
from phintys.tensor.elemwise import Elemwise

#: differences within this relative tolerance are rounding, by dtype
RTOL = {
    **{"float16": 1e-2, "float32": 1e-5, "float64": 1e-10},
    **{"complex64": 1e-5, "complex128": 1e-10},
}
#: the law of rewrites that do not declare one
ROUNDING = "rounding"
#: laws from the strictest to the weakest
_ORDER = [law for law in LAWS if law != "drops_errors"]


def check_rewrites(record: RewriteRecord, values: Values) -> None:
    """Raise `BadOptimization` at the first rewrite that changes a value, for these arguments.

    Single replacements are compared first, then the outputs of the graph after each stage of the
    pipeline with those before it.  That finds faults of rewriters that are not made of rules.
    """
    before = record.original
    for stage in record.stages:
        for replacement in stage.replacements:
            _check_replacement(replacement, values)
        _check_stage(before, stage, values)
        before = stage.outputs


def _check_replacement(replacement: Replacement, values: Values) -> None:
    rewrite, old, new = replacement
    law = getattr(rewrite, "law", ROUNDING)
    if _differ(law, old, new, values):
        a, b = values.of([old, new])
        raise BadOptimization(old, new, a, b, rewrite)


def _check_stage(before: Sequence[Variable], stage: Stage, values: Values) -> None:
    """Compare the outputs of the graph under the weakest law of what the stage has replaced."""
    laws = {getattr(r.rewrite, "law", ROUNDING) for r in stage.replacements}
    law = max([ROUNDING, *(laws & {*_ORDER})], key=_ORDER.index)
    for old, new in zip(before, stage.outputs):
        if old is new or (laws - {"exact"} and _is_discrete_of_floats(old)):
            continue
        if _differ(law, old, new, values):
            _check_inside(stage, values)
            a, b = values.of([old, new])
            raise BadOptimization(old, new, a, b, stage.rewriter)


def _check_inside(stage: Stage, values: Values) -> None:
    """Find the replacement inside an op that is at fault, with random values of its inputs.

    Those outside have been compared for the arguments of the call.
    """
    rng = np.random.default_rng(1)
    for low, replacement in product((0.25, -1.0), stage.replacements):
        sides = [replacement.old, replacement.new]
        if not any(isinstance(x, Unknown) for x in values.of(sides)):
            continue
        roots = [v for v in ancestors(sides) if v.owner is None and not isinstance(v, Constant)]
        try:
            _check_replacement(replacement, Values({v: _sample(v, low, rng) for v in roots}))
        except BadOptimization as exc:
            exc.add_note(f"inside an op, for random values; it was rewritten by {stage.rewriter}")
            raise


def _sample(v: Variable, low: float, rng: np.random.Generator) -> Any:
    """A value of ``v`` with numbers from ``low`` to 2, or an `Unknown` if its type has none."""
    known = array_type(v.type)
    if known is None:
        return Unknown(f"{v} is no array.")
    dtype, lengths = known
    shape = [3 if n is None else n for n in lengths]
    return np.asarray(rng.uniform(low, 2, shape)).astype(dtype)


def _is_discrete_of_floats(v: Variable) -> bool:
    """Whether integers depend on floats: rounding may then change them by any amount."""
    return _is_discrete(v) and not all(_is_discrete(x) for x in ancestors([v]))


def _is_discrete(v: Variable) -> bool:
    known = array_type(v.type)
    return known is not None and np.dtype(known[0]).kind not in "fc"


def _differ(law: str, old: Variable, new: Variable, values: Values) -> bool:
    """Whether the values of two variables differ more than a law allows.

    They do not if that of ``old`` cannot be computed: the function, as written, has no value then.
    """
    a, b = values.of([old, new])
    if a is b or isinstance(a, Exception):
        return False
    if isinstance(b, Exception):
        return not isinstance(b, Unknown)
    approx = _own_comparison(old) or _own_comparison(new)
    if approx is not None or array_type(old.type) is None:
        return not (approx or old.type.values_eq_approx)(a, b)
    if law == "accurate":
        law = "finite"  # exact values are not known: no verdict where the old one is not finite
    given, pointwise = _difference(old, new, values)
    if law == "normwise" and any(map(is_badly_scaled, given.values())):
        return False
    rtol = RTOL.get(np.asarray(a).dtype.name, 0.0)
    left, right = (Side([v], given, values.evaluate, pointwise) for v in (old, new))
    masks = differences(law, left, right, rtol, rtol * 1e-3)
    return any(bool(np.any(mask)) for mask in masks)


def _difference(old: Variable, new: Variable, values: Values) -> tuple[dict[Variable, Any], bool]:
    """What two expressions have in common, and whether they differ in elementwise operations only.

    The first is a dict from the variables that both are computed from to their values.
    """
    cones = [set(sorted_nodes([v.owner])) for v in (old, new)]
    own = cones[0] ^ cones[1]
    leaves = [v for node in own for v in node.inputs if v.owner not in own]
    leaves += [v for v in (old, new) if v.owner not in own]
    common = [v for v in dict.fromkeys(leaves) if not isinstance(v, Constant)]
    given = dict(zip(common, values.of(common)))
    if not all(isinstance(node.op, Elemwise) for node in own):
        return given, False
    shape = np.broadcast_shapes(*(np.shape(x) for x in given.values()))
    return given, shape == np.shape(values.of([old])[0])


def _own_comparison(v: Variable) -> Callable[[Any, Any], bool] | None:
    """What a rewrite has stored as ``v.tag.values_eq_approx``: how to compare values of ``v``."""
    return getattr(v.tag, "values_eq_approx", None)
