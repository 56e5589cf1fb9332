"""Rules that are left out because of what computes the inputs would not have applied."""

from __future__ import annotations

import pytest
from expressions import build

from phintys.graph import FunctionGraph, equal_computations
from phintys.rewriting import table
from phintys.rewriting.database import RewriteDatabaseQuery, optdb
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.rule import Equation, Rule, rule
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import functions
from phintys.tensor.rules import PHASES, RULES
from phintys.tensor.type import TensorType

EXAMPLES = sorted(
    {
        text.partition("|")[0].strip()
        for r in RULES
        if not isinstance(r, Equation)
        for text in r.tested_on or ()
    }
)


def rewritten(inputs, out, monkeypatch, max_inputs):
    """The outputs after FAST_RUN, where nodes with more inputs are tried with every rule."""
    monkeypatch.setattr(table, "MAX_INPUTS", max_inputs)
    fgraph = FunctionGraph(inputs, [out], clone=True, copy_inputs=False)
    optdb.query(RewriteDatabaseQuery(include=["fast_run"])).rewrite(fgraph)
    return fgraph.outputs


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_result_is_that_of_trying_every_rule(text, monkeypatch):
    out, inputs = build(text)
    few = rewritten(inputs, out, monkeypatch, table.MAX_INPUTS)
    all_rules = rewritten(inputs, out, monkeypatch, -1)
    assert equal_computations(few, all_rules)


@pytest.mark.parametrize("text", EXAMPLES)
def test_idempotent_rules_do_not_apply_to_what_they_make(text, monkeypatch):
    out, inputs = build(text)
    once = rewritten(inputs, out, monkeypatch, table.MAX_INPUTS)
    for db in PHASES.values():
        for entry in [db[name] for name in db.names]:
            if isinstance(entry, Rule):  # rewriters of other kinds have no such mark
                monkeypatch.setattr(entry, "idempotent", False)
    again = rewritten(inputs, out, monkeypatch, table.MAX_INPUTS)
    assert equal_computations(once, again)


def test_a_condition_is_asked_once_for_nodes_that_are_alike():
    asked = []

    def where(producers):
        asked.append(producers)
        return False

    never = rule("never", ops=[TABLE["add"]], where=where)(lambda ctx, node: 1 / 0)
    x, y = (TensorType("float64", ())(name) for name in "xy")
    rules = RuleSet([never])
    chain = x
    for _ in range(20):
        chain = functions.add(functions.exp(chain), y)
    for _ in range(2):
        rules.apply(FunctionGraph([x, y], [chain], clone=True))
    assert asked == [[functions.exp, None]]


def test_the_table_forgets_when_it_is_full(monkeypatch):
    monkeypatch.setattr(table, "MAX_OPS", 2)
    monkeypatch.setattr(table, "MAX_SIGNATURES", 2)
    hits = []
    spy = rule("spy", ops=None)(lambda ctx, node: hits.append(node.op))
    x = TensorType("float64", ())("x")
    rules = RuleSet([spy])
    chain = x
    for name in ("exp", "log", "sin", "cos", "tanh", "exp", "log", "sin"):
        chain = getattr(functions, name)(chain)
    rules.apply(FunctionGraph([x], [chain], clone=True))
    rules.apply(FunctionGraph([x], [functions.exp(x)], clone=True))
    assert len(hits) == 9
    assert rules.table._entries.count <= 4
    assert rules.table._possible.count <= 4
