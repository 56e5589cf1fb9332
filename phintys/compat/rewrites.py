"""Rewrites by PyTensor's and Aesara's names: `named` finds them, or says what does the same here.

The modules of `phintys.paths` whose names are those of rewrites ask it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dis import opmap
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from phintys.compile.rewriting import inline_ofg_node
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import stacklevel
from phintys.graph.variable import Apply
from phintys.inner import OpFromGraph
from phintys.rewriting.rewriter import NodeRewriter, SequentialNodeRewriter, node_rewriter

# ------------------------------------------------------------------- rewriters of single nodes


@node_rewriter([OpFromGraph])
def inline_ofg_expansion(fgraph: FunctionGraph, node: Apply) -> Any:
    """The graph of an `OpFromGraph` that is made with ``inline=True``, in place of its node."""
    return inline_ofg_node(node) if node.op.is_inline else None


@node_rewriter([OpFromGraph])
def late_inline_OpFromGraph(fgraph: FunctionGraph, node: Apply) -> Any:
    """The graph of an `OpFromGraph`, in place of its node."""
    return inline_ofg_node(node) if node.op.is_expandable else None


OWN: dict[str, NodeRewriter] = {
    "inline_ofg_expansion": inline_ofg_expansion,
    "late_inline_OpFromGraph": late_inline_OpFromGraph,
}

#: name -> the function of `phintys.loop.rules` that does it to one loop
LOOPS = {
    "scan_push_out_add": "push_out_behind",
    "scan_push_out_dot1": "push_out_products",
    "scan_push_out_non_seq": "push_out_invariant",
    "scan_push_out_seq": "push_out_ahead",
    "scan_reduce_nsteps": "make_fewer_steps",
    "scan_reduce_trace_no_prealloc": "save_memory",
    "scan_reduce_trace_prealloc": "save_memory",
}
#: names of what loops do to themselves: parts that are not used, or equal to others, are removed
SIMPLIFICATIONS = ("scan_inline_invariant_constants", "scan_merge_duplicate_inputs",
                   "scan_merge_inouts", "scan_remove_unused")  # fmt: skip


def _loop_rewriter(name: str) -> NodeRewriter | None:
    """The rewriter of single loops with a name; None if there is none."""
    from phintys.loop.op import Scan

    if name in SIMPLIFICATIONS:
        return node_rewriter([Scan])(_simplified)
    if name not in LOOPS:
        return None
    transform: Callable[..., Any] = getattr(import_module("phintys.loop.rules"), LOOPS[name])
    return node_rewriter([Scan])(lambda fgraph, node: transform(fgraph, node))


def _simplified(fgraph: FunctionGraph, node: Apply) -> Any:
    used = [bool(fgraph.clients.get(v)) for v in node.outputs]
    found = node.op.simplify_node(node, used) or []
    return {v: new for v, new in zip(node.outputs, found) if new is not None}


# ------------------------------------------------------------------------------ what is absent

_FUSION = "loops over elements are fused after rewriting, in phintys/lowering/fuse.py"
_MEMORY = "memory is planned after rewriting, so there are no in-place rewrites"
_PRODUCTS = "products of matrices stay nodes of Dot and Matmul, which are calls of BLAS in the code"
_BATCHES = "rules about Blockwise are in phintys/tensor/rules/batches.py"
_BRANCHES = "rules about ifelse are in phintys/conditional/rewriting.py"
_BACKENDS = "the backends jax and numba translate such nodes themselves"
_CHECKS = "a SpecifyShape is removed where its lengths are known, else it is a check of the call"
_LINEAR = "rules about matrices are in phintys/tensor/rules: structured, systems, spectra"
_NORMAL_FORM = "sums and products have a normal form: local_add_canonizer, local_mul_canonizer"

#: pattern of names -> what does the same; the first that matches counts
ABSENT = {
    "*inplace*|*Inplace*|*destructive*": _MEMORY,
    "*fusion*|*Fusion*|fuse*|Fused*|wrap_reduced_gather*|*composite*|Scalar*|scalarize": _FUSION,
    "local_dot_to_dot22|local_dot22_to_gemv|specialize_matmul_to_batched_dot": _PRODUCTS,
    "local_batched_matmul_to_core_matmul_with_reshape|use_c_gemv|*emm*|blas_optdb": _PRODUCTS,
    "local_blockwise*|local_useless_blockwise|lift_linalg_of_expanded_matrices": _BATCHES,
    "introduce_explicit_core_shape*|local_uint_constant_indices|split_2f1grad_loop": _BACKENDS,
    "shape_parameter_as_tuple|size_parameter_as_tuple|boolean_indexing_*|*_jax|jax_*": _BACKENDS,
    "local_lift_specify_shape*|local_specify_shape*": _CHECKS,
    "local_erf_neg_minus_one": "local_erf_minus_one does it, since erf(-x) is -erf(x)",
    "local_useless_2f1grad_loop": "derivatives of hyp2f1 that nothing uses are not computed",
    "local_Unique_*": "unique of a number, or of a tensor that is filled, is computed",
    "local_alloc_empty_to_zeros": "AllocEmpty is not initialised in any mode",
    "local_dimshuffle_subtensor|local_reshape_dimshuffle": "axes are views in the code",
    "local_subtensor_of_adv_subtensor": "advanced indices are merged in no mode",
    "remove_constants_and_duplicate_inputs_scipy": "minimize and root are made without constants",
    "optimize_inner_graph|*_optimize_inner_graph": "inner graphs are rewritten by each phase",
    "scan_sit_sot_to_untraced": "make_fewer_steps and save_memory keep only the last row",
    "scan_split_non_sequence_decomposition*": "scan_push_out_non_seq moves factors out of loops",
    "cond_*|ifelse_*|CondMerge|merge_sibling_ifelse": _BRANCHES,
    "det_of_*|*_of_diag|eig_to_eigh|*_solve*|solve_*|paired_triangular*": _LINEAR,
    "extract_diag_lift_pass|local_extract_diag_lift|local_extract_diag_of_eye": _LINEAR,
    "local_argmax_pushdown": "argmax(softmax(x)) may be equal up to rounding where x is not",
    "local_subtensor_shape_constant": "lengths that are known are constants from the beginning",
    "scan_seqopt1|ScanEquilibrium*|scan_inner_graph": "scan_eqopt1 and scan_eqopt2 are sequences",
    "UnShapeOpt*": "the feature of shapes is attached where a program asks for it",
    "*add_canonizer|*mul_canonizer|AlgebraicCanonizer|simplify_mul": _NORMAL_FORM,
}


def reason(name: str) -> str | None:
    """Why there is no rewrite ``name``, and what does the same; None if that is not known."""
    for patterns, text in ABSENT.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns.split("|")):
            return text
    return None


# ------------------------------------------------------------------------------------- finding


def named(name: str) -> Any:
    """The rewriter of single nodes that has ``name``, or several with this tag in one.

    AttributeError if there is none; ImportError that says what does the same, if an import
    statement asks for the name.

    >>> from phintys.tensor.rewriting.math import local_log1p, local_add_canonizer
    >>> local_log1p.tracks()
    [log]
    """
    found = OWN.get(name) or _loop_rewriter(name)
    if found is not None:
        return found
    modules = ("phintys.tensor.rules", "phintys.conditional.rewriting")
    rules = [rule for module in modules for rule in import_module(module).RULES]
    chosen = [rule for rule in rules if name == rule.name or name in rule.tags]
    if chosen and not name.startswith("_"):
        return chosen[0] if len(chosen) == 1 else SequentialNodeRewriter(*chosen)
    told = reason(name)
    message = f"There is no rewrite {name!r}{f': {told}' if told else ''}."
    if told and _is_imported():
        raise ImportError(message, name=name)
    raise AttributeError(message)


def _is_imported() -> bool:
    """Whether the innermost line outside of this package is ``from ... import ...``.

    Python replaces the message of an AttributeError there by one of its own, so it gets an
    ImportError; `hasattr` and `getattr` need an AttributeError.
    """
    frame = sys._getframe(stacklevel() - 1)  # pyright: ignore[reportPrivateUsage]
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]
