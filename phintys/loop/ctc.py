"""Connectionist temporal classification: the cost of labels without alignment, with Aesara's names.

A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber: Connectionist temporal classification (2006).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.gradient import grad
from phintys.graph.ignored import ignores
from phintys.graph.variable import Variable
from phintys.loop.scan import scan
from phintys.scalar import dtypes
from phintys.tensor.aliases import TensorLike
from phintys.tensor.creation import full, zeros
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.index import getitem, set_subtensor, take_along_axis
from phintys.tensor.join import join
from phintys.tensor.raise_op import CheckAndRaise
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import all as all_of
from phintys.tensor.reduce import sum as sum_of
from phintys.tensor.sort import argsort
from phintys.tensor.special import log_softmax
from phintys.tensor.symbolic import TensorSymbolicOp
from phintys.tensor.variable import TensorVariable

__all__ = ["ConnectionistTemporalClassification", "ctc", "ctc_available", "ctc_present"]

#: the logarithm of a probability of zero; finite, so that differences of two are
IMPOSSIBLE = -1e30
_LENGTHS = CheckAndRaise(ValueError, "input_lengths are from 0 to the number of time steps.")
_ALL = slice(None)


class ConnectionistTemporalClassification(TensorSymbolicOp):
    """The op of `ctc`; its parameters are those of its call.

    Parameters
    ----------
    compute_grad
        whether the derivative of the sum of the costs in the activations is a second output
    openmp
        without effect
    """

    __props__ = ("compute_grad",)
    default_output = 0

    @ignores("openmp")
    def __init__(
        self, compute_grad: bool = True, openmp: bool | None = None, **kwargs: Any
    ) -> None:
        self.compute_grad = bool(compute_grad)
        super().__init__(**kwargs)

    def build_inner_graph(self, *inputs: Any) -> list[Variable]:
        activations, labels, input_lengths = inputs
        costs = _costs(activations, labels, input_lengths)
        return [costs, grad(sum_of(costs), activations)] if self.compute_grad else [costs]


def ctc(activations: TensorLike, labels: TensorLike, input_lengths: TensorLike) -> TensorVariable:
    """The negative logarithm of the probability of each sequence of labels, for a batch.

    At each time step a network gives probabilities of symbols, of which symbol 0 is the blank.  A
    sequence of symbols stands for the labels that remain if repeated symbols are written once, and
    then blanks are left out.  The probability of labels is the sum of those of all sequences of
    symbols that stand for them.

    Parameters
    ----------
    activations : floats (time, batch, symbols), of which `softmax` makes the probabilities
    labels : integers (batch, labels); negative ones are left out, to pad shorter sequences
    input_lengths : integers (batch,), the number of time steps of each sequence

    The result is a vector of the dtype of the activations; infinite where there are too few time
    steps for the labels.  ValueError at run time if an input length is not between 0 and the
    number of time steps, IndexError if there is no such symbol.

    >>> import numpy as np
    >>> float(np.exp(-ctc(np.zeros((2, 1, 2)), [[1]], [2]).eval()[0]))  # "11", "01", "10" of four
    0.75
    """
    found: TensorVariable = ConnectionistTemporalClassification(compute_grad=False)(
        activations, labels, input_lengths
    )
    return found


def ctc_available() -> bool:
    """True: no other library is needed."""
    return True


ctc_present = ctc_available


def _costs(
    activations: TensorVariable, labels: TensorVariable, input_lengths: TensorVariable
) -> TensorVariable:
    """The costs, by the probabilities of the prefixes of labels with blanks between them."""
    if (activations.type.ndim, labels.type.ndim, input_lengths.type.ndim) != (3, 2, 1):
        raise TypeError(
            "ctc takes activations (time, batch, symbols), labels (batch, labels) and a vector of "
            f"lengths, not {activations.type}, {labels.type}, {input_lengths.type}."
        )
    activations = cast(activations, dtypes.float_of(activations.type.dtype))
    steps, batch = activations.shape[0], activations.shape[1]
    legal = functions.ge(input_lengths, 0) & functions.le(input_lengths, steps)
    lengths = _LENGTHS(input_lengths, all_of(legal))
    symbols, count = _with_blanks(labels)
    skips = _skips(symbols)
    rows = getitem(arange(batch), (_ALL, None))
    logs = getitem(log_softmax(activations, axis=-1), (_ALL, rows, symbols))
    dtype = logs.type.dtype
    first = full((batch, symbols.shape[1]), np.array(IMPOSSIBLE, dtype))
    first = set_subtensor(getitem(first, (_ALL, 0)), np.array(0, dtype))
    last = scan(
        _step,
        sequences=[arange(steps), logs],
        outputs_info=first,
        non_sequences=[skips, getitem(lengths, (_ALL, None))],
        return_updates=False,
        name="ctc",
    )
    state = getitem(join(0, getitem(first, None), last), -1)
    columns = arange(batch)
    ended = getitem(state, (columns, 2 * count))
    before = getitem(state, (columns, functions.maximum(2 * count - 1, 0)))
    total = functions.switch(functions.gt(count, 0), functions.logaddexp(ended, before), ended)
    infinite = np.array(np.inf, dtype)
    return functions.switch(functions.lt(total, np.array(IMPOSSIBLE / 2, dtype)), infinite, -total)


def _with_blanks(labels: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """The labels with blanks around each, and how many labels there are in each row.

    There is room for one label at least.
    """
    labels = cast(labels, "int64")
    padding = full((labels.shape[0], 1), np.int64(-1))
    labels = join(1, labels, padding)
    is_label = functions.ge(labels, 0)
    order = argsort(functions.lt(labels, 0), axis=1, kind="stable")
    moved = functions.maximum(take_along_axis(labels, order, 1), 0)
    blank = zeros((labels.shape[0], 2 * labels.shape[1] + 1), "int64")
    places = getitem(blank, (_ALL, slice(1, None, 2)))
    return set_subtensor(places, moved), sum_of(is_label, axis=1, dtype="int64")


def _skips(symbols: TensorVariable) -> TensorVariable:
    """Where the blank before a symbol may be left out: after another label."""
    earlier = getitem(symbols, (_ALL, slice(None, -2)))
    later = getitem(symbols, (_ALL, slice(2, None)))
    skipped = functions.neq(later, 0) & functions.neq(later, earlier)
    return join(1, zeros((symbols.shape[0], 2), "bool"), skipped)


def _step(t: Any, logs: Any, state: Any, skips: Any, lengths: Any) -> Any:
    """The logarithms of the probabilities of all prefixes after a time step."""
    none = np.array(IMPOSSIBLE, state.type.dtype)
    padded = join(1, full((state.shape[0], 2), none), state)
    one = getitem(padded, (_ALL, slice(1, -1)))
    two = functions.switch(skips, getitem(padded, (_ALL, slice(None, -2))), none)
    moved = functions.logaddexp(functions.logaddexp(state, one), two) + logs
    return functions.switch(functions.lt(t, lengths), moved, state)
