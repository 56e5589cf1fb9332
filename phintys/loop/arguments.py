"""Which arguments of a `Scan` are of which kind, and which of them belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from phintys.loop.info import ScanInfo

V = TypeVar("V")


class Group(NamedTuple):
    """Positions of the arguments that belong to one sequence, buffer, output, state or constant.

    ``outer_input`` is always there: that of a nit-sot is its length.
    """

    kind: str
    outer_input: int
    inner_inputs: tuple[int, ...]
    inner_outputs: tuple[int, ...]
    outer_output: int | None


def groups(info: ScanInfo) -> list[Group]:
    """The arguments by what belongs together, in the order of the outer outputs where there is one.

    The number of steps comes first; the condition is in no group.

    >>> for group in groups(ScanInfo(1, (), (), (), ((-1,),), 1, 0, 0, False)):
    ...     print(*group)
    n_steps 0 () () None
    seq 1 (0,) () None
    sit_sot 2 (1,) (0,) 0
    nit_sot 3 () (1,) 1
    """
    inner_in, inner_out = iter(range(info.n_inner_inputs)), iter(range(info.n_inner_outputs))
    found = [Group("n_steps", 0, (), (), None)]

    def add(kind: str, n_in: int, n_out: int) -> None:
        found.append(Group(kind, 0, _take(inner_in, n_in), _take(inner_out, n_out), None))

    for _ in range(info.n_seqs):
        add("seq", 1, 0)
    for reads, writes in zip(info.mit_mot_in_slices, info.mit_mot_out_slices):
        add("mit_mot", len(reads), len(writes))
    for taps in info.mit_sot_in_slices:
        add("mit_sot", len(taps), 1)
    for taps in info.sit_sot_in_slices:
        add("sit_sot", len(taps), 1)
    for _ in range(info.n_nit_sot):
        add("nit_sot", 0, 1)
    for _ in range(info.n_untraced_sit_sot):
        add("untraced_sit_sot", 1, 1)
    for _ in range(info.n_non_seqs):
        add("non_seq", 1, 0)
    return _numbered(found)


def _take(numbers: Iterator[int], count: int) -> tuple[int, ...]:
    return tuple(islice(numbers, count))


def _numbered(found: list[Group]) -> list[Group]:
    """The groups with their outer inputs and outputs; untraced states come before lengths there."""
    order = ["n_steps", "seq", "mit_mot", "mit_sot", "sit_sot", "untraced_sit_sot", "nit_sot"]
    rank = {kind: k for k, kind in enumerate([*order, "non_seq"])}
    places = sorted(range(len(found)), key=lambda k: (rank[found[k].kind], k))
    outer_input = {k: i for i, k in enumerate(places)}
    with_output = [k for k, g in enumerate(found) if g.inner_outputs or g.kind == "mit_mot"]
    outer_output = {k: i for i, k in enumerate(with_output)}
    return [
        g._replace(outer_input=outer_input[k], outer_output=outer_output.get(k))
        for k, g in enumerate(found)
    ]


class ScanMethodsMixin:
    """Parts of lists of inputs and outputs, by the kind of the arguments.

    The methods take the inner or outer inputs or outputs of a loop, and return those of one kind.
    """

    info: ScanInfo

    # ----- outer inputs
    def outer_seqs(self, list_inputs: Sequence[V]) -> list[V]:
        """The sequences."""
        return self._outer(list_inputs, "seq")

    def outer_mitmot(self, list_inputs: Sequence[V]) -> list[V]:
        """The buffers with several outputs."""
        return self._outer(list_inputs, "mit_mot")

    def outer_mitsot(self, list_inputs: Sequence[V]) -> list[V]:
        """The buffers of states that are read at several taps."""
        return self._outer(list_inputs, "mit_sot")

    def outer_sitsot(self, list_inputs: Sequence[V]) -> list[V]:
        """The buffers of states that are read at the last step."""
        return self._outer(list_inputs, "sit_sot")

    def outer_untraced_sit_sot(self, list_inputs: Sequence[V], with_idx: bool = False) -> Any:
        """The first values of untraced states; with ``with_idx`` pairs with their positions."""
        return _indexed(
            list_inputs, [g.outer_input for g in self._of("untraced_sit_sot")], with_idx
        )

    def outer_nitsot(self, list_inputs: Sequence[V]) -> list[V]:
        """The lengths of the outputs that no step reads."""
        return self._outer(list_inputs, "nit_sot")

    def outer_non_seqs(self, list_inputs: Sequence[V]) -> list[V]:
        """The values that stay the same."""
        return self._outer(list_inputs, "non_seq")

    # ----- outer outputs
    def outer_mitmot_outs(self, list_outputs: Sequence[V]) -> list[V]:
        """The buffers with several outputs, at the end."""
        return self._outer_outs(list_outputs, "mit_mot")

    def outer_mitsot_outs(self, list_outputs: Sequence[V]) -> list[V]:
        """The buffers of states that are read at several taps."""
        return self._outer_outs(list_outputs, "mit_sot")

    def outer_sitsot_outs(self, list_outputs: Sequence[V]) -> list[V]:
        """The buffers of states that are read at the last step."""
        return self._outer_outs(list_outputs, "sit_sot")

    def outer_nitsot_outs(self, list_outputs: Sequence[V]) -> list[V]:
        """The outputs that no step reads."""
        return self._outer_outs(list_outputs, "nit_sot")

    def outer_untraced_sit_sot_outs(self, list_outputs: Sequence[V], with_idx: bool = False) -> Any:
        """The last values of untraced states; with ``with_idx`` pairs with their positions."""
        places = [
            g.outer_output for g in self._of("untraced_sit_sot") if g.outer_output is not None
        ]
        return _indexed(list_outputs, places, with_idx)

    # ----- inner inputs
    def inner_seqs(self, list_inputs: Sequence[V]) -> list[V]:
        """The rows of sequences."""
        return _flat(self._inner(list_inputs, "seq"))

    def inner_mitmot(self, list_inputs: Sequence[V]) -> list[V]:
        """The rows that are read of buffers with several outputs."""
        return _flat(self.inner_mitmot_grouped(list_inputs))

    def inner_mitmot_grouped(self, list_inputs: Sequence[V]) -> list[list[V]]:
        """The same, a list for each buffer."""
        return self._inner(list_inputs, "mit_mot")

    def inner_mitsot(self, list_inputs: Sequence[V]) -> list[V]:
        """The earlier values of states that are read at several taps."""
        return _flat(self.inner_mitsot_grouped(list_inputs))

    def inner_mitsot_grouped(self, list_inputs: Sequence[V]) -> list[list[V]]:
        """The same, a list for each state."""
        return self._inner(list_inputs, "mit_sot")

    def oldest_inner_mitsot(self, list_inputs: Sequence[V]) -> list[V]:
        """For each state that is read at several taps the oldest of the values."""
        oldest = [taps.index(min(taps)) for taps in self.info.mit_sot_in_slices]
        return [vs[k] for vs, k in zip(self.inner_mitsot_grouped(list_inputs), oldest)]

    def inner_sitsot(self, list_inputs: Sequence[V]) -> list[V]:
        """The last values of states that are read at the last step."""
        return _flat(self._inner(list_inputs, "sit_sot"))

    def inner_untraced_sit_sot(self, list_inputs: Sequence[V], with_idx: bool = False) -> Any:
        """The untraced states; with ``with_idx`` pairs with their positions."""
        places = [i for g in self._of("untraced_sit_sot") for i in g.inner_inputs]
        return _indexed(list_inputs, places, with_idx)

    def inner_non_seqs(self, list_inputs: Sequence[V]) -> list[V]:
        """The values that stay the same."""
        return _flat(self._inner(list_inputs, "non_seq"))

    # ----- inner outputs
    def inner_mitmot_outs(self, list_outputs: Sequence[V]) -> list[V]:
        """The rows that are written into buffers with several outputs."""
        return _flat(self.inner_mitmot_outs_grouped(list_outputs))

    def inner_mitmot_outs_grouped(self, list_outputs: Sequence[V]) -> list[list[V]]:
        """The same, a list for each buffer."""
        return self._inner_outs(list_outputs, "mit_mot")

    def inner_mitsot_outs(self, list_outputs: Sequence[V]) -> list[V]:
        """The next values of states that are read at several taps."""
        return _flat(self._inner_outs(list_outputs, "mit_sot"))

    def inner_sitsot_outs(self, list_outputs: Sequence[V]) -> list[V]:
        """The next values of states that are read at the last step."""
        return _flat(self._inner_outs(list_outputs, "sit_sot"))

    def inner_nitsot_outs(self, list_outputs: Sequence[V]) -> list[V]:
        """The rows of outputs that no step reads."""
        return _flat(self._inner_outs(list_outputs, "nit_sot"))

    def inner_untraced_sit_sot_outs(self, list_outputs: Sequence[V], with_idx: bool = False) -> Any:
        """The next values of untraced states; with ``with_idx`` pairs with their positions."""
        places = [i for g in self._of("untraced_sit_sot") for i in g.inner_outputs]
        return _indexed(list_outputs, places, with_idx)

    # ----- what belongs together
    def get_oinp_iinp_iout_oout_mappings(self) -> dict[str, dict[int, Any]]:
        """Dicts from a position of an argument to those of others that belong to it.

        The keys are ``"outer_inp_from_outer_out"`` and so on.  A value is a list of positions of
        inner arguments, or one position of an outer one, -1 if there is none.  The condition of a
        while loop is in none of them.
        """
        kinds = {"outer_inp": 1, "inner_inp": 2, "inner_out": 3, "outer_out": 4}
        found: dict[str, dict[int, Any]] = {
            f"{to}_from_{start}": {} for start in kinds for to in kinds if to != start
        }
        for group in groups(self.info):
            for start, i in kinds.items():
                for to, k in kinds.items():
                    if to != start:
                        value = _mapped(group[k])
                        found[f"{to}_from_{start}"].update(
                            dict.fromkeys(_positions(group[i]), value)
                        )
        return found

    # ----- by kind
    def _of(self, kind: str) -> list[Group]:
        return [g for g in groups(self.info) if g.kind == kind]

    def _outer(self, values: Sequence[V], kind: str) -> list[V]:
        return [values[g.outer_input] for g in self._of(kind)]

    def _outer_outs(self, values: Sequence[V], kind: str) -> list[V]:
        places = [g.outer_output for g in self._of(kind)]
        return [values[k] for k in places if k is not None]

    def _inner(self, values: Sequence[V], kind: str) -> list[list[V]]:
        return [[values[i] for i in g.inner_inputs] for g in self._of(kind)]

    def _inner_outs(self, values: Sequence[V], kind: str) -> list[list[V]]:
        return [[values[i] for i in g.inner_outputs] for g in self._of(kind)]


def _flat(lists: Sequence[Sequence[V]]) -> list[V]:
    return [v for values in lists for v in values]


def _indexed(values: Sequence[V], places: Sequence[int], with_idx: bool) -> Any:
    """The values at places: a list, or a tuple of pairs with the places."""
    if with_idx:
        return tuple([(i, values[i]) for i in places])
    return [values[i] for i in places]


def _mapped(found: Any) -> Any:
    """What a mapping says of one argument or several."""
    if found is None:
        return -1
    return list(found) if isinstance(found, tuple) else found


def _positions(found: Any) -> tuple[int, ...]:
    if found is None:
        return ()
    return found if isinstance(found, tuple) else (found,)
