"""The argument ``outputs_info`` of `phintys.scan`: outputs, and what steps read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from phintys.graph.variable import Variable
from phintys.loop.sequences import as_list, taps_of
from phintys.scalar.type import ScalarType
from phintys.tensor.axes import expand_dims
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import empty
from phintys.tensor.index import set_subtensor
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable


@dataclass
class Output:
    """An output of a loop.

    Attributes
    ----------
    initial
        the value before the first step; with ``has_rows`` the rows, the oldest first; None: no step
        reads the output
    taps
        the earlier steps that a step reads, such as ``[-1]``
    earlier
        the variables that stand for them in the step, in the order of ``taps``
    has_rows
        whether ``initial`` has a first axis for the values before the first step
    """

    initial: Any = None
    taps: list[int] = field(default_factory=list)
    earlier: list[Variable] = field(default_factory=list)
    has_rows: bool = False

    @property
    def kind(self) -> str:
        """The kind of the arguments in a `Scan`, such as ``"sit_sot"``."""
        if self.initial is None:
            return "nit_sot"
        if not isinstance(self.initial.type, TensorType):
            return "untraced_sit_sot"
        return "mit_sot" if self.has_rows else "sit_sot"

    @property
    def count(self) -> int:
        """The number of rows before the first step."""
        return -min(self.taps, default=0)

    def values_before(self) -> list[Any]:
        """The values that the first step reads, in the order of ``taps``."""
        if self.kind != "mit_sot":
            return [] if self.initial is None else [self.initial]
        return [self.initial[self.count + tap] for tap in self.taps]

    def buffer(self, steps: TensorVariable) -> TensorVariable:
        """The rows of the state: the first ones are given, the others have no values yet."""
        x = self.initial
        rows = expand_dims(x, 0) if self.kind == "sit_sot" else x[: self.count]
        rows.name = f"{x.name or 'initial'}[:{self.count}]"
        lengths = [rows.shape[k] for k in range(1, rows.type.ndim)]
        whole = empty([steps + self.count, *lengths], rows.type.dtype)
        return set_subtensor(whole[: self.count], rows)


def outputs_of(given: Any) -> list[Output]:
    """The outputs that ``outputs_info`` describes.

    ValueError or TypeError, with the position, if an entry is of another kind.
    """
    return [_output(entry, f"outputs_info[{k}]") for k, entry in enumerate(as_list(given))]


def _output(entry: Any, place: str) -> Output:
    options = dict(entry) if isinstance(entry, dict) else {"initial": entry}
    unknown = sorted(map(str, options.keys() - {"initial", "taps", "inplace"}))
    if unknown:
        raise ValueError(f"{place} has the key {unknown[0]!r}; it may have 'initial' and 'taps'.")
    if options.get("initial") is None:
        if options.get("taps") is not None:
            raise ValueError(
                f"{place} has taps, so steps read earlier values: it needs an 'initial' value."
            )
        return Output()
    taps = taps_of(options.get("taps"), [-1], place)
    if len(set(taps)) != len(taps):
        raise ValueError(f"The taps of {place} must be distinct, not {taps}.")
    if max(taps) >= 0:
        raise ValueError(f"The taps of {place} are earlier steps, which are negative: {taps}.")
    initial = _as_state(options["initial"])
    if not isinstance(initial.type, TensorType):
        if taps != [-1]:
            raise ValueError(
                f"{place}, {initial}, is no array: a step reads only its last value, so its taps "
                f"are [-1], not {taps}."
            )
        return Output(initial, taps, [initial.type.make_variable(_named(initial, -1))])
    has_rows = taps != [-1] or isinstance(options.get("taps"), tuple | range)
    return Output(initial, taps, _earlier(initial, taps, has_rows, place), has_rows)


def _as_state(initial: Any) -> Any:
    """An initial value as a variable: a tensor, or one of another type, such as a generator."""
    if isinstance(initial, Variable) and not isinstance(initial.type, TensorType | ScalarType):
        return initial
    if type(initial).__module__.startswith("numpy.random"):  # which NumPy imports when needed
        from phintys.tensor.random.type import random_generator_type

        return random_generator_type.filter_variable(initial)
    return as_tensor_variable(initial)


def _earlier(
    initial: TensorVariable, taps: Sequence[int], has_rows: bool, place: str
) -> list[Variable]:
    """The variables that stand for the values at ``taps``."""
    row = initial.type
    if has_rows:
        known = row.shape[0] if row.ndim else 0
        if known is not None and known < -min(taps):
            raise ValueError(
                f"{place} has the taps {list(taps)}, and its initial value {initial} is {row}: it "
                f"needs a first axis with {-min(taps)} values, the oldest first."
            )
        row = row.clone(shape=row.shape[1:])
    return [row.make_variable(_named(initial, tap)) for tap in taps]


def _named(v: Variable, tap: int) -> str:
    return f"{v.name or 'state'}[t{tap:+d}]"
