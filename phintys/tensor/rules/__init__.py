"""The rewrite rules for tensor graphs, and the pipeline that applies them.

There is one module per subject; each is a list of rules with laws.  `PIPELINE` lists the phases in
order; a phase is one run of the rewriting engine with its rules.  Programs register their own
rewrites in the same databases (`register_canonicalize` and the others).

inner_graphs, inner_graphs_late
    the graphs inside ops are rewritten by the phases that follow, up to the next of these; ops that
    are to be inlined first are
vectors
    products of matrices with rows and columns that are vectors become products with vectors
rows
    softmax, log_softmax, logsumexp, min and argmin are recognised, before their parts are moved
nested_axes
    DimShuffles inside each other are moved to the inputs
canonicalize
    equivalent expressions get one normal form; computations that are not needed are removed,
    and what depends on constants only is computed if it is small
stabilize
    numerically stable forms; the results are canonicalized again
inline_inner_graphs
    for compiled backends: the graphs inside ops become part of the outer graph
assumptions
    what `assume` declares is removed; the rules that ask for it have been applied
BlasOpt
    matrix products fused with additions, as BLAS calls
wide_intermediates
    intermediate results of float32 functions are computed in float64, where they may leave the
    range or cancel
specialize
    forms that are faster to compute
masks
    for JAX: lengths that depend on the values of masks are avoided
unused_inner_outputs
    ops that contain graphs lose the inputs and outputs that are not used

`infer_shape_db`, which is no phase, has the rules of ``canonicalize``: they express the lengths of
results by those of inputs.  `register_infer_shape` adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from phintys.rewriting.attach import AddDestroyHandler, PrintCurrentFunctionGraph
from phintys.rewriting.database import EquilibriumDB, RewriteDatabase, SequenceDB, optdb
from phintys.rewriting.inner import (
    InlineInnerGraphs,
    InnerGraphRewriter,
    InnerGraphSimplifier,
)
from phintys.rewriting.merge import MergeOptimizer
from phintys.rewriting.origins import CheckStackTraceRewriter
from phintys.rewriting.rewriter import GraphRewriter
from phintys.rewriting.rule import Rule
from phintys.tensor import shape_feature
from phintys.tensor.rules import (
    algebra,
    axes,
    batches,
    blocks,
    cancellation,
    casts,
    chains,
    checks,
    choice,
    decompositions,
    determinants,
    entries,
    facts,
    fills,
    folding,
    increments,
    inverses,
    joining,
    masks,
    match,
    positions,
    powers,
    products,
    quadratures,
    reading,
    reductions,
    reuse,
    rows,
    shapes,
    spectra,
    stable,
    structured,
    systems,
    vectors,
    views,
    writing,
)
from phintys.tensor.rules.nested_axes import NestedAxes
from phintys.tensor.rules.wide import WideIntermediates

FAST_RUN, FAST_COMPILE = "fast_run", "fast_compile"
BOTH = (FAST_RUN, FAST_COMPILE)

of_vectors = EquilibriumDB(
    ignore_newtrees=False, eq_rewriter_class=vectors.WhereProductsOfVectorsAre
)
recognised = EquilibriumDB(ignore_newtrees=False, eq_rewriter_class=rows.WhereRowsAre)
canonicalize = EquilibriumDB(ignore_newtrees=False, eq_rewriter_class=folding.FoldsRegions)
stabilize = EquilibriumDB(ignore_newtrees=False)
blas_opt = EquilibriumDB(ignore_newtrees=False, eq_rewriter_class=products.WhereProductsAre)
assumptions = EquilibriumDB(ignore_newtrees=False, eq_rewriter_class=structured.WhereAssumptionsAre)
specialize = EquilibriumDB(ignore_newtrees=False)
without_masks = EquilibriumDB(ignore_newtrees=False)
useless = EquilibriumDB(ignore_newtrees=False)
uncanonicalize = EquilibriumDB(ignore_newtrees=False)
infer_shape_db = EquilibriumDB(ignore_newtrees=False)
infer_shape_db.name = "infer_shape"

#: The phases: name, database or rewriter, tags, position.
PIPELINE: list[tuple[str, GraphRewriter | RewriteDatabase, tuple[str, ...], float]] = [
    ("merge1", MergeOptimizer(), ("merge",), 0),  # the engine merges in every phase
    ("inner_graphs", InnerGraphRewriter(), BOTH, 0.4),
    ("useless", useless, BOTH, 0.6),
    ("vectors", of_vectors, BOTH, 0.65),
    ("rows", recognised, BOTH, 0.7),
    ("nested_axes", NestedAxes(), BOTH, 0.8),
    ("canonicalize", canonicalize, (*BOTH, "canonicalize_db"), 1),
    ("stabilize", stabilize, BOTH, 1.5),
    ("inline_inner_graphs", InlineInnerGraphs(), (), 1.6),  # compiled backends select it by name
    ("inner_graphs_late", InnerGraphRewriter(), (*BOTH, "minimum_compile"), 1.63),
    ("assumptions", assumptions, BOTH, 1.65),
    ("BlasOpt", blas_opt, BOTH, 1.7),
    ("wide_intermediates", WideIntermediates(), (FAST_RUN,), 1.75),
    ("specialize", specialize, BOTH, 2),
    ("uncanonicalize", uncanonicalize, (FAST_RUN,), 3),
    ("masks", without_masks, masks.TAGS, 3.2),
    ("unused_inner_outputs", InnerGraphSimplifier(), BOTH, 3.5),
]
#: Entries that PyTensor has too, beside which programs register rewrites of their own, or in which
#: they do so.  Only a query for their names or tags selects them: each phase of the engine merges,
#: kernels are fused and memory is planned after rewriting.
PLACES: list[tuple[str, GraphRewriter | RewriteDatabase, tuple[str, ...], float]] = [
    ("CheckStackTrace", CheckStackTraceRewriter(), (), -1),
    ("ShapeOpt", shape_feature.ShapeOptimizer(), (), 0.1),
    ("merge1.1", MergeOptimizer(), ("merge",), 0.65),
    ("merge1.2", MergeOptimizer(), ("merge",), 1.2),
    ("Print1.21", PrintCurrentFunctionGraph("Post-canonicalize"), (), 1.21),
    ("Print1.51", PrintCurrentFunctionGraph("Post-stabilize"), (), 1.51),
    ("add_mul_fusion", SequenceDB(), (), 48),
    ("elemwise_fusion", SequenceDB(), ("fusion",), 49),
    ("merge2", MergeOptimizer(), ("merge",), 49),
    ("add_destroy_handler", AddDestroyHandler(), ("inplace",), 49.5),
    ("inplace_elemwise", SequenceDB(), ("inplace",), 50.5),
    ("merge3", MergeOptimizer(), ("merge",), 100),
]
for _name, _entry, *_ in (*PIPELINE, *PLACES):
    _entry.name = _name  # a tag of the rules that are registered in it


def _register_phases() -> None:
    for name, entry, tags, position in (*PIPELINE, *PLACES):
        optdb.register(name, entry, *tags, position=position)
    optdb.mark_own()


optdb.fill_later(_register_phases)

PHASES: dict[str, EquilibriumDB] = {
    "vectors": of_vectors,
    "rows": recognised,
    "canonicalize": canonicalize,
    "stabilize": stabilize,
    "assumptions": assumptions,
    "BlasOpt": blas_opt,
    "specialize": specialize,
    "masks": without_masks,
}

#: The phases before ``canonicalize``; a rule with such a tag runs in that phase too.  Elsewhere it
#: does not have the tag, so that a query without the phase keeps the rule.
EARLY = frozenset(["vectors", "rows"])

#: The modules of rules, in the order in which their rules are tried at a node.
MODULES = (
    folding,
    increments,
    cancellation,
    views,
    checks,
    casts,
    fills,
    choice,
    axes,
    shapes,
    reading,
    positions,
    batches,
    vectors,
    structured,
    blocks,
    entries,
    inverses,
    systems,
    reuse,
    determinants,
    spectra,
    decompositions,
    writing,
    joining,
    reductions,
    algebra,
    powers,
    facts,
    rows,
    stable,
    quadratures,
    products,
    chains,
    masks,
)


def rules_of(module: ModuleType) -> list[Rule]:
    """The rules a module defines: its functions, and its list `EQUATIONS`."""
    functions = [
        r for r in vars(module).values() if isinstance(r, Rule) and r.file == module.__file__
    ]
    return [*functions, *getattr(module, "EQUATIONS", ())]


#: All rules for tensor graphs.
RULES: list[Rule] = [r for m in MODULES for r in rules_of(m)]


def _register(rules: Iterable[Rule]) -> None:
    """Register rules in the databases of their phases and of later phases that repeat them."""
    for rule in rules:
        tags = [tag for tag in rule.tags if tag not in EARLY]
        early = rule.phase == "canonicalize"
        modes = BOTH if early or rule.phase == "assumptions" else (FAST_RUN,)
        PHASES[rule.phase].register(rule.name, rule, *tags, *modes)
        again = rule.as_follow_up()
        if early:
            stabilize.register(rule.name, again, *tags, *modes)
            infer_shape_db.register(rule.name, rule, *tags)
        for early_phase in EARLY.intersection(rule.tags):
            PHASES[early_phase].register(rule.name, rule, early_phase, *tags, *modes)
        if "cleanup" in rule.tags:
            blas_opt.register(rule.name, again, *tags, FAST_RUN)
            specialize.register(rule.name, again, *tags, FAST_RUN)
            without_masks.register(rule.name, again, *tags, FAST_RUN)
            useless.register(rule.name, rule, *tags)


_register(RULES)
#: what programs read from PyTensor's modules of rewrites, besides the rules
topo_unconditional_constant_folding = folding.topo_unconditional_constant_folding
elemwise_of, broadcasted_by = match.elemwise_of, match.broadcasted_by
ShapeFeature, ShapeOptimizer = shape_feature.ShapeFeature, shape_feature.ShapeOptimizer

local_remove_all_assert = checks.local_remove_all_assert
canonicalize.register(
    "local_remove_all_assert", local_remove_all_assert, "unsafe", use_db_name_as_tag=False
)


def _registrar(db: RewriteDatabase, default_tags: tuple[str, ...]) -> Callable[..., Any]:
    def register(rewriter: Any, *tags: str, **kwargs: Any) -> Any:
        if isinstance(rewriter, str):
            return lambda inner: register(inner, rewriter, *tags, **kwargs)
        name = kwargs.pop("name", None) or rewriter.name or rewriter.__name__
        db.register(name, rewriter, *default_tags, *tags, **kwargs)
        return rewriter

    return register


register_canonicalize = _registrar(canonicalize, BOTH)
register_stabilize = _registrar(stabilize, (FAST_RUN,))
register_specialize = _registrar(specialize, (FAST_RUN,))
register_useless = _registrar(useless, (FAST_RUN,))
register_uncanonicalize = _registrar(uncanonicalize, (FAST_RUN,))
register_infer_shape = _registrar(infer_shape_db, ())
