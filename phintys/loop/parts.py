"""A `Scan` taken apart: one `Part` for each sequence, buffer, output, state or constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from phintys.loop.arguments import groups
from phintys.loop.info import ScanInfo

#: the order of the kinds among the inner inputs and outputs, and among the outer outputs
KINDS = "seq mit_mot mit_sot sit_sot nit_sot untraced_sit_sot non_seq".split()

#: their order among the outer inputs
OUTER = "seq mit_mot mit_sot sit_sot untraced_sit_sot nit_sot non_seq".split()

#: kinds of buffers, whose rows are read and written
BUFFERS = frozenset(("mit_mot", "mit_sot", "sit_sot"))


@dataclass
class Part:
    """What belongs together among the arguments of a loop.

    Attributes
    ----------
    kind
        one of `KINDS`
    outer
        the outer input; the length of a nit-sot
    inputs, outputs
        the inner inputs and outputs
    reads, writes
        iteration ``t`` reads the rows ``t + offset`` of a buffer, then writes the rows ``t +
        offset``.  Offsets are not negative, the first row that is touched is row 0.
    result
        the position of the outer output
    """

    kind: str
    outer: Any
    inputs: list[Any] = field(default_factory=list[Any])
    outputs: list[Any] = field(default_factory=list[Any])
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    result: int | None = None

    @property
    def lag(self) -> int:
        """The number of rows of a buffer that is touched, beyond the number of iterations."""
        return max((*self.reads, *self.writes), default=0)


def parts_of(
    op: Any, outer: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]
) -> list[Part]:
    """The parts of a loop on ``outer`` inputs, with the inner inputs and outputs given.

    They are in the order of the outer outputs.  The number of steps, ``outer[0]``, and the
    condition of a while loop are in none.
    """
    info: ScanInfo = op.info
    taps = iter(info.normalized_mit_mot_in_slices + info.mit_sot_in_slices + info.sit_sot_in_slices)
    written = iter(info.normalized_mit_mot_out_slices)
    found = []
    for group in groups(info)[1:]:
        reads: tuple[int, ...] = next(taps) if group.kind in BUFFERS else ()
        writes = next(written) if group.kind == "mit_mot" else ()
        if group.kind in ("mit_sot", "sit_sot"):
            rows = -min(reads)
            reads, writes = tuple([rows + tap for tap in reads]), (rows,)
        inner = [inputs[i] for i in group.inner_inputs], [outputs[i] for i in group.inner_outputs]
        where = outer[group.outer_input]
        found.append(Part(group.kind, where, *inner, reads, writes, group.outer_output))
    return found


def apply_parts(
    op: Any, n_steps: Any, parts: Sequence[Part], condition: Any = None, **options: Any
) -> list[Any]:
    """The outer outputs of the loop of ``parts``: one for each of them, or None.

    The loop is a `Scan` with the options of ``op``, except for those given.
    """
    ordered = {kind: [p for p in parts if p.kind == kind] for kind in KINDS}
    inner = [p for kind in KINDS for p in ordered[kind]]
    outputs = [v for p in inner for v in p.outputs]
    new = type(op)(
        [v for p in inner for v in p.inputs],
        outputs if condition is None else [*outputs, condition],
        _info(ordered, condition is not None),
        **{"truncate_gradient": op.truncate_gradient, "name": op.name, **options},
    )
    results = iter(
        new(n_steps, *[p.outer for kind in OUTER for p in ordered[kind]], return_list=True)
    )
    found = {id(p): next(results) for p in inner if p.kind not in ("seq", "non_seq")}
    return [found.get(id(p)) for p in parts]


def _info(ordered: dict[str, list[Part]], as_while: bool) -> ScanInfo:
    """The `ScanInfo` of parts by kind."""
    return ScanInfo(
        n_seqs=len(ordered["seq"]),
        mit_mot_in_slices=tuple([p.reads for p in ordered["mit_mot"]]),
        mit_mot_out_slices=tuple([p.writes for p in ordered["mit_mot"]]),
        mit_sot_in_slices=tuple([_taps(p) for p in ordered["mit_sot"]]),
        sit_sot_in_slices=tuple([_taps(p) for p in ordered["sit_sot"]]),
        n_nit_sot=len(ordered["nit_sot"]),
        n_untraced_sit_sot=len(ordered["untraced_sit_sot"]),
        n_non_seqs=len(ordered["non_seq"]),
        as_while=as_while,
    )


def _taps(part: Part) -> tuple[int, ...]:
    return tuple([read - part.writes[0] for read in part.reads])
