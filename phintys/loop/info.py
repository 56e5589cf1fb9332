"""`ScanInfo`: how many arguments of each kind a loop has, and which steps they refer to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from phintys.graph.meta import MetaObject

#: for each buffer the steps that a step reads or writes, relative to itself
Taps = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ScanInfo(MetaObject):
    """The numbers of arguments of a `Scan`, by kind, and the taps of its recurrent states.

    Attributes
    ----------
    n_seqs
        sequences: a step gets one row of each
    mit_mot_in_slices, mit_mot_out_slices
        for each buffer with several inputs and several outputs, as derivatives need them, the rows
        that a step reads and those that it writes
    mit_sot_in_slices
        for each state with several inputs and one output, the earlier steps that a step reads, such
        as ``(-2, -1)``
    sit_sot_in_slices
        ``((-1,), ...)``, for each state of which a step reads only the last value
    n_nit_sot
        outputs that no step reads
    n_untraced_sit_sot
        states of which only the last value is kept: random generators, and other objects
    n_non_seqs
        values that stay the same
    as_while
        whether the last inner output is a condition; the step in which it is true is the last

    >>> info = ScanInfo(1, (), (), ((-2, -1),), ((-1,),), 1, 0, 2, False)
    >>> info.n_inner_inputs, info.n_inner_outputs, info.n_outer_inputs, info.n_outer_outputs
    (6, 3, 7, 3)
    """

    n_seqs: int
    mit_mot_in_slices: Taps
    mit_mot_out_slices: Taps
    mit_sot_in_slices: Taps
    sit_sot_in_slices: Taps
    n_nit_sot: int
    n_untraced_sit_sot: int
    n_non_seqs: int
    as_while: bool

    __props__: ClassVar[tuple[str, ...]] = (
        *("n_seqs", "mit_mot_in_slices", "mit_mot_out_slices", "mit_sot_in_slices"),
        *("sit_sot_in_slices", "n_nit_sot", "n_untraced_sit_sot", "n_non_seqs", "as_while"),
    )

    def __post_init__(self) -> None:
        for name in _TAPS:
            taps = tuple([tuple(int(t) for t in given) for given in getattr(self, name)])
            object.__setattr__(self, name, taps)
        if len(self.mit_mot_in_slices) != len(self.mit_mot_out_slices):
            raise ValueError("mit_mot_in_slices and mit_mot_out_slices differ in length.")
        for taps in self.mit_sot_in_slices + self.sit_sot_in_slices:
            if not taps or max(taps) >= 0:
                raise ValueError(f"The taps of a state must be negative, not {taps}.")

    # ----- numbers of buffers
    @property
    def n_mit_mot(self) -> int:
        """The number of buffers with several outputs."""
        return len(self.mit_mot_in_slices)

    @property
    def n_mit_mot_outs(self) -> int:
        """The number of rows that a step writes into buffers with several outputs."""
        return sum(map(len, self.mit_mot_out_slices))

    @property
    def n_mit_sot(self) -> int:
        """The number of states of which a step reads several earlier values."""
        return len(self.mit_sot_in_slices)

    @property
    def n_sit_sot(self) -> int:
        """The number of states of which a step reads the last value."""
        return len(self.sit_sot_in_slices)

    @property
    def n_shared_outs(self) -> int:
        """An older name of ``n_untraced_sit_sot``."""
        return self.n_untraced_sit_sot

    # ----- taps
    @property
    def tap_array(self) -> Taps:
        """The rows that a step reads, for each buffer."""
        return self.mit_mot_in_slices + self.mit_sot_in_slices + self.sit_sot_in_slices

    @property
    def normalized_mit_mot_in_slices(self) -> Taps:
        """``mit_mot_in_slices``, counted from the first row that step 0 refers to."""
        return tuple([_moved(taps, first) for taps, first in self._firsts(self.mit_mot_in_slices)])

    @property
    def normalized_mit_mot_out_slices(self) -> Taps:
        """``mit_mot_out_slices``, counted from the first row that step 0 refers to."""
        return tuple([_moved(taps, first) for taps, first in self._firsts(self.mit_mot_out_slices)])

    def _firsts(self, slices: Taps) -> list[tuple[tuple[int, ...], int]]:
        """Each of ``slices`` with the smallest tap of its buffer, at most 0."""
        both = zip(self.mit_mot_in_slices, self.mit_mot_out_slices)
        return [(taps, min(0, *i, *o)) for taps, (i, o) in zip(slices, both)]

    # ----- numbers of inputs and outputs
    @property
    def n_inner_inputs(self) -> int:
        """The number of inputs of the inner graph."""
        taps = sum(map(len, self.tap_array))
        return self.n_seqs + taps + self.n_untraced_sit_sot + self.n_non_seqs

    @property
    def n_inner_outputs(self) -> int:
        """The number of outputs of the inner graph, the condition included."""
        traced = self.n_mit_mot_outs + self.n_mit_sot + self.n_sit_sot + self.n_nit_sot
        return traced + self.n_untraced_sit_sot + int(self.as_while)

    @property
    def n_outer_inputs(self) -> int:
        """The number of inputs of a node."""
        return 1 + self.n_seqs + self.n_outer_outputs + self.n_non_seqs

    @property
    def n_outer_outputs(self) -> int:
        """The number of outputs of a node."""
        traced = self.n_mit_mot + self.n_mit_sot + self.n_sit_sot + self.n_nit_sot
        return traced + self.n_untraced_sit_sot


def _moved(taps: tuple[int, ...], first: int) -> tuple[int, ...]:
    return tuple([t - first for t in taps])


_TAPS = ("mit_mot_in_slices", "mit_mot_out_slices", "mit_sot_in_slices", "sit_sot_in_slices")
