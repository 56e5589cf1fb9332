"""The rewrites of the tensor language, and the pipeline that applies them.

One module per subject; each is a list of rules with laws.  `PIPELINE` is the order of phases: a phase
is one run of the engine with its rules.  Programs add their own rewrites to the same databases
(`register_canonicalize` and the others).
"""

from __future__ import annotations

from typing import Any

from phintys.rewriting.database import EquilibriumDB, RewriteDatabase, optdb
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.rule import Rule
from phintys.tensor.rules import algebra, fills, folding, indexing, stable, structure

canonicalize = EquilibriumDB(ignore_newtrees=False)
stabilize = EquilibriumDB(ignore_newtrees=False)
specialize = EquilibriumDB(ignore_newtrees=False)
useless = EquilibriumDB(ignore_newtrees=False)
uncanonicalize = EquilibriumDB(ignore_newtrees=False)

#: name, database or rewriter, tags, position
PIPELINE: list[tuple[str, Any, tuple[str, ...], float]] = [
    ("merge1", RuleSet([], name="merge1"), ("fast_run", "fast_compile", "merge"), 0),
    ("useless", useless, ("fast_run", "fast_compile"), 0.6),
    ("canonicalize", canonicalize, ("fast_run", "fast_compile"), 1),
    ("stabilize", stabilize, ("fast_run",), 1.5),
    ("specialize", specialize, ("fast_run", "fast_compile"), 2),
    ("uncanonicalize", uncanonicalize, ("fast_run",), 3),
]
for _name, _entry, _tags, _position in PIPELINE:
    optdb.register(_name, _entry, *_tags, position=_position)

PHASES: dict[str, EquilibriumDB] = {
    "useless": useless,
    "canonicalize": canonicalize,
    "stabilize": stabilize,
    "specialize": specialize,
    "uncanonicalize": uncanonicalize,
}


def rules_of(module: Any) -> list[Rule]:
    """The rules a module defines: its functions, and its list `EQUATIONS`."""
    functions = [r for r in vars(module).values() if isinstance(r, Rule)]
    return [*functions, *getattr(module, "EQUATIONS", ())]


#: every rule of the tensor language
RULES: list[Rule] = [
    r for m in (folding, fills, structure, indexing, algebra, stable) for r in rules_of(m)
]

for _rule in RULES:
    PHASES[_rule.phase].register(_rule.name, _rule, *_rule.tags, "fast_run", "fast_compile")


def _registrar(db: RewriteDatabase, default_tags: tuple[str, ...]) -> Any:
    def register(rewriter: Any, *tags: str, **kwargs: Any) -> Any:
        if isinstance(rewriter, str):
            return lambda inner: register(inner, rewriter, *tags, **kwargs)
        name = kwargs.pop("name", None) or rewriter.name or rewriter.__name__
        db.register(name, rewriter, *default_tags, *tags, **kwargs)
        return rewriter

    return register


register_canonicalize = _registrar(canonicalize, ("fast_run", "fast_compile"))
register_stabilize = _registrar(stabilize, ("fast_run",))
register_specialize = _registrar(specialize, ("fast_run",))
register_useless = _registrar(useless, ("fast_run",))
register_uncanonicalize = _registrar(uncanonicalize, ("fast_run",))
