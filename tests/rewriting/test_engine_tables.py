"""The engine's tables agree after each step, on graphs with many equal parts.

Equal parts become one while rules for them are put off, in progress, or already applied to others.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from integer_ops import (
    add,
    const,
    divmod_,
    evaluate,
    f,
    g,
    h,
    integer,
    mul,
    neg,
    overwrite,
    show,
    sub,
)
from tiers import few

from phintys.config import config
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.engine import Normalizer, RuleSet
from phintys.rewriting.install import install
from phintys.rewriting.invariants import check_tables
from phintys.rewriting.rule import Rule, equation, rule

x, y, z = integer("x"), integer("y"), integer("z")
VALUES = [{x: 3, y: -2, z: 7}, {x: 0, y: 1, z: 0}]
NAMES = {"add": add, "mul": mul, "neg": neg, "sub": sub, "f": f, "g": g, "h": h}
INTS = {n: integer for n in "xyz"}


def flattened(node: Any, ctx: Any) -> Variable | None:
    terms: list[Variable] = []
    stack = list(reversed(node.inputs))
    while stack:
        v = stack.pop()
        if v.owner is not None and v.owner.op == node.op and ctx.single_use(v):
            stack.extend(reversed(v.owner.inputs))
        else:
            terms.append(v)
    return node.op(*terms) if len(terms) > len(node.inputs) else None


@rule("a + (b + c) -> a + b + c", ops=[add, sub, neg], outermost=True)
def flat_sum(ctx: Any, node: Any) -> Any:
    return flattened(node, ctx) if node.op == add else None


@rule("a * (b * c) -> a * b * c", ops=[mul, overwrite], outermost=True)
def flat_product(ctx: Any, node: Any) -> Any:
    return flattened(node, ctx) if node.op == mul else None


@rule("fold constants")
def fold(ctx: Any, node: Any) -> Any:
    if all(isinstance(v, Constant) for v in node.inputs):
        return [const(value) for value in evaluate(node.outputs, {})]
    return None


RULES: list[Rule] = [
    *(
        equation(text, namespace=NAMES, types=INTS)
        for text in (
            "add(x, 0) -> x",
            "mul(x, 1) -> x",
            "neg(neg(x)) -> x",
            "sub(x, y) -> add(x, neg(y))",
            "add(x, x) -> mul(2, x)",
            "h(x, x) -> neg(x)",
            "h(x, y) -> sub(x, mul(2, y))",
            "f(neg(x)) -> add(mul(-3, x), 1)",
        )
    ),
    equation("g(neg(x)) -> g(x)", namespace=NAMES, types=INTS, single_use=True),
    flat_sum,
    flat_product,
    fold,
]


class Watched(Normalizer):
    """A run that checks its tables after each step."""

    def _step(self, node: Apply) -> Any:
        missing = super()._step(node)
        check_tables(self)
        return missing

    def _finish_pending(self, node: Apply) -> None:
        super()._finish_pending(node)
        check_tables(self)


def again(v: Variable) -> Variable:
    """The same expression, made of other nodes."""
    if v.owner is None:
        return const(v.data) if isinstance(v, Constant) else v
    return v.owner.op.make_node(*map(again, v.owner.inputs)).outputs[v.index]


def expression(rng: random.Random, depth: int, leaves: list[Variable]) -> Variable:
    """A random expression; many of its parts are equal, some of them are the same object."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(leaves) if rng.random() < 0.8 else const(rng.choice([0, 1, -3, 2]))
    op = rng.choice([add, add, add, mul, mul, sub, neg, f, g, h, divmod_])
    count = 1 if op in (neg, f, g) else rng.choice([2, 2, 3]) if op in (add, mul) else 2
    args = [expression(rng, depth - 1, leaves) for _ in range(count)]
    if count > 1 and rng.random() < 0.3:
        args[1] = again(args[0])
    node = op.make_node(*args)
    return rng.choice(node.outputs)


def random_graph(seed: int) -> tuple[list[Variable], list[Rule]]:
    rng = random.Random(seed)
    leaves: list[Variable] = [x, y, z]
    for _ in range(rng.randint(0, 3)):
        leaves.append(expression(rng, 2, leaves))
    outputs = [expression(rng, 4, leaves) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        outputs.append(again(outputs[0]))
    return outputs, [r for r in RULES if rng.random() < 0.6]


@pytest.mark.parametrize("block", few(range(8), 0))
def test_tables_agree_after_each_step(block: int) -> None:
    """25 graphs; about every seventh has a node with two inputs whose rules were put off."""
    for seed in range(25 * block, 25 * (block + 1)):
        outputs, rules = random_graph(seed)
        before = [evaluate(outputs, v) for v in VALUES]
        fgraph = FunctionGraph([x, y, z], outputs, clone=True, copy_inputs=False)
        install(fgraph, *Watched(RuleSet(rules), fgraph).run(), "test")
        fgraph.check_integrity()
        assert [evaluate(fgraph.outputs, v) for v in VALUES] == before, seed
        keys = [(n.op, *n.inputs) for n in fgraph.apply_nodes]
        assert len(keys) == len(set(keys)), f"seed {seed}: equal nodes are one"


@pytest.mark.parametrize("repeat", [2, 3])
def test_equal_inputs_whose_rules_were_put_off(repeat: int) -> None:
    """Each sum was put off for its only user; then all became one."""
    sums = [add(add(x, y), z) for _ in range(repeat)]
    user = mul(*sums)
    fgraph = FunctionGraph([x, y, z], [user], clone=True, copy_inputs=False)
    outer = Rule("a + (b + c)", flat_sum.function, ops=[add, mul], outermost=True)
    install(fgraph, *Watched(RuleSet([outer]), fgraph).run(), "test")
    assert show(fgraph.outputs[0]) == f"mul({', '.join(['add(x, y, z)'] * repeat)})"


def test_a_sum_that_an_in_place_node_comes_to_use_is_flattened() -> None:
    """It was put off for a user that drops it, and then merged with what the in-place node uses."""
    drop = equation("h(x, y) -> y", namespace=NAMES, types=INTS)
    flat = Rule("a + (b + c)", flat_sum.function, ops=[add, h], outermost=True)
    outputs = [h(add(add(x, y), z), x), overwrite(mul(2, add(add(x, y), z)))]
    fgraph = FunctionGraph([x, y, z], outputs, clone=True, copy_inputs=False)
    install(fgraph, *Watched(RuleSet([flat, drop]), fgraph).run(), "test")
    assert list(map(show, fgraph.outputs)) == ["x", f"{overwrite}(mul(2, add(x, y, z)))"]


def test_the_check_is_a_setting() -> None:
    """``config.check_rewrites`` checks the tables at the end of each run."""
    fgraph = FunctionGraph([x, y], [add(neg(neg(x)), y)], clone=True, copy_inputs=False)

    def forgets_a_use(ctx: Any, node: Any) -> Any:
        ctx._uses[y] = 5
        return None

    with (
        config.change_flags(check_rewrites=True),
        pytest.raises(ValueError, match="y has 1 uses, not 5"),
    ):
        RuleSet([Rule("faulty", forgets_a_use, ops=[add])]).apply(fgraph)


FAULTS = {
    "replaced and in normal form": lambda run, v: run._forward.update({v: x}),
    "its node is not done": lambda run, v: run._done.discard(v.owner),
    "interned with other inputs": lambda run, v: v.owner.inputs.reverse(),
    "deferred after it was forced": lambda run, v: (
        run._deferred.add(v.owner),
        run._forced.add(v.owner),
    ),
    "in progress differ": lambda run, v: run._in_progress.update(key=v.owner),
    "uses, not 7": lambda run, v: run._uses.update({v: 7}),
}


@pytest.mark.parametrize("what", FAULTS)
def test_the_check_finds(what: str) -> None:
    fgraph = FunctionGraph([x, y], [add(neg(x), y)], clone=True, copy_inputs=False)
    run = Normalizer(RuleSet([]), fgraph)
    install(fgraph, *run.run(), "test")
    check_tables(run)
    FAULTS[what](run, fgraph.outputs[0])
    with pytest.raises(ValueError, match=what):
        check_tables(run)
