"""Loops of common forms: `map`, `reduce`, `foldl`, `foldr`, `filter`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phintys.loop.scan import last_values, scan
from phintys.loop.sequences import as_list
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.nonzero import nonzero

Function = Callable[..., Any]


def map(
    fn: Function,
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """``fn`` of the rows of ``sequences``, and of ``non_sequences``, for each step.

    See `phintys.scan` for the arguments, and what is returned.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> sums = phintys.map(lambda row: row.sum(), x, return_updates=False)
    >>> sums.eval({x: [[1.0, 2.0], [3.0, 4.0]]})
    array([3., 7.])
    """
    return scan(
        fn,
        sequences=sequences,
        non_sequences=non_sequences,
        truncate_gradient=truncate_gradient,
        go_backwards=go_backwards,
        mode=mode,
        name=name,
        return_updates=return_updates,
    )


def reduce(
    fn: Function,
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """The last values of a loop in which ``fn`` gets a row of each sequence and its last results.

    If the sequences are empty, these are the values in ``outputs_info``.  See `phintys.scan` for
    the arguments.

    >>> import phintys, phintys.tensor as pt
    >>> x, zero = pt.dvector("x"), pt.zeros((), "float64")
    >>> largest = phintys.reduce(pt.maximum, x, zero, return_updates=False)
    >>> largest.eval({x: [1.0, 3.0, 2.0]})
    array(3.)
    """
    return last_values(
        fn, sequences, outputs_info, non_sequences, go_backwards, mode, name, return_updates
    )


def foldl(
    fn: Function,
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """`reduce` from the first row to the last.  ``fn`` gets the row first, then the accumulator.

    >>> import phintys, phintys.tensor as pt
    >>> x, start = pt.dvector("x"), pt.dscalar("start")
    >>> y = phintys.foldl(lambda a, acc: a - acc, x, start, return_updates=False)
    >>> y.eval({x: [1.0, 2.0, 4.0], start: 10.0})  # 4 - (2 - (1 - 10))
    array(-7.)
    """
    return last_values(
        fn, sequences, outputs_info, non_sequences, False, mode, name, return_updates
    )


def foldr(
    fn: Function,
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """`reduce` from the last row to the first.  ``fn`` gets the row first, then the accumulator.

    >>> import phintys, phintys.tensor as pt
    >>> x, start = pt.dvector("x"), pt.dscalar("start")
    >>> y = phintys.foldr(lambda a, acc: a - acc, x, start, return_updates=False)
    >>> y.eval({x: [1.0, 2.0, 4.0], start: 10.0})  # 1 - (2 - (4 - 10))
    array(-7.)
    """
    return last_values(fn, sequences, outputs_info, non_sequences, True, mode, name, return_updates)


def filter(
    fn: Function,
    sequences: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> Any:
    """The rows of ``sequences`` for which ``fn`` is true: an array, or a list if there are several.

    ``fn`` returns a 0-d bool, or a list with one for each sequence.  ValueError if it returns
    another number of them.

    >>> import phintys.tensor as pt
    >>> from phintys.scan.views import filter
    >>> x = pt.dvector("x")
    >>> filter(lambda a: a > 1, x).eval({x: [0.0, 3.0, 1.0, 2.0]})
    array([3., 2.])
    """
    masks = scan(
        fn,
        sequences=sequences,
        non_sequences=non_sequences,
        go_backwards=go_backwards,
        mode=mode,
        name=name,
        return_list=True,
        return_updates=False,
    )
    arrays = [as_tensor_variable(x) for x in as_list(sequences)]
    if go_backwards:
        arrays = [x[::-1] for x in arrays]
    if len(masks) == 1:
        masks = masks * len(arrays)
    if len(masks) != len(arrays):
        raise ValueError(f"filter has {len(arrays)} sequences, and fn returns {len(masks)} masks.")
    found = [x[nonzero(mask)] for x, mask in zip(arrays, masks)]
    return found[0] if len(found) == 1 else found
