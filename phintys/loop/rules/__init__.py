"""The rewrites of loops.

scan_eqopt1
    before the outer graph is brought to its normal form: equal loops are merged; what need not be
    computed step by step moves out of loops; short loops are unrolled
scan_eqopt2
    in the normal form: loops make only the steps, and keep only the rows, that are used
"""

from phintys.loop.rules.cotangents import drop_zero_rows
from phintys.loop.rules.memory import make_fewer_steps, save_memory
from phintys.loop.rules.merge import MergeLoops
from phintys.loop.rules.products import push_out_products
from phintys.loop.rules.push_out import push_out_ahead, push_out_behind, push_out_invariant
from phintys.loop.rules.rewriter import LoopRewriter
from phintys.loop.rules.unroll import unroll
from phintys.rewriting.database import SequenceDB, optdb
from phintys.rewriting.inner import InnerGraphSimplifier

scan_eqopt1 = SequenceDB()
scan_eqopt2 = SequenceDB()
for _position, (_name, _rewriter, _tags) in enumerate(
    [
        ("scan_merge", MergeLoops(), ("merge",)),
        ("scan_unroll", LoopRewriter("scan_unroll", unroll), ()),
        ("scan_push_out_non_seq", LoopRewriter("scan_push_out_non_seq", push_out_invariant), ()),
        ("scan_push_out_seq", LoopRewriter("scan_push_out_seq", push_out_ahead), ()),
        ("scan_push_out_dot", LoopRewriter("scan_push_out_dot", push_out_products), ()),
        ("scan_simplify", InnerGraphSimplifier(), ()),
        ("scan_push_out_add", LoopRewriter("scan_push_out_add", push_out_behind), ()),
    ]
):
    scan_eqopt1.register(_name, _rewriter, "fast_run", "scan", *_tags, position=_position)
scan_eqopt2.register(
    "scan_drop_zero_rows", LoopRewriter("scan_drop_zero_rows", drop_zero_rows), "fast_run", "scan"
)
scan_eqopt2.register(
    "scan_fewer_steps", LoopRewriter("scan_fewer_steps", make_fewer_steps), "fast_run", "scan"
)
scan_eqopt2.register(
    "scan_save_mem", LoopRewriter("scan_save_mem", save_memory), "fast_run", "fast_compile", "scan"
)


def _register_phases() -> None:
    unchanged = optdb.is_own  # by programs, which may have registered rewrites before
    optdb.register("scan_eqopt1", scan_eqopt1, "fast_run", "fast_compile", "scan", position=0.5)
    optdb.register("scan_eqopt2", scan_eqopt2, "fast_run", "fast_compile", "scan", position=1.62)
    if unchanged:
        optdb.mark_own()


optdb.fill_later(_register_phases)
