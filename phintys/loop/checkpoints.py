"""`scan_checkpoints`: loops that keep every Nth step; gradients compute the others again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phintys.loop.build import Result, results_of
from phintys.loop.scan import returned
from phintys.loop.sequences import as_list, rows_of, steps_of
from phintys.loop.states import outputs_of
from phintys.loop.step import described
from phintys.tensor.creation import zeros
from phintys.tensor.join import concatenate
from phintys.tensor.math import minimum
from phintys.tensor.ranges import arange
from phintys.tensor.static import known_length


def scan_checkpoints(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    name: str | None = "checkpointscan_fn",
    n_steps: Any = None,
    save_every_N: int = 10,
    padding: bool = True,
    return_updates: bool = True,
) -> Any:
    """The results of `phintys.scan` after every ``save_every_N`` steps, and after the last one.

    The other steps are not stored: a gradient computes them again, ``save_every_N`` at a time.  So
    it needs memory for ``n / save_every_N + save_every_N`` steps instead of ``n``.

    Parameters
    ----------
    fn, sequences, outputs_info, non_sequences, name, n_steps, return_updates
        as for `phintys.scan`; steps read only the last values of outputs, and have no condition
    save_every_N
        a positive integer
    padding
        True: sequences are copied, to a multiple of ``save_every_N`` rows, unless it is known that
        they have one.  False: the number of rows must be a multiple, else ValueError.

    ValueError if an output has other taps than -1, or ``fn`` returns `phintys.scan.until`.

    >>> import phintys, phintys.tensor as pt
    >>> from phintys.scan import scan_checkpoints
    >>> x = pt.dvector("x")
    >>> sums = scan_checkpoints(
    ...     lambda a, total: total + a, x, pt.zeros(()), save_every_N=2, return_updates=False
    ... )
    >>> sums.eval({x: [1.0, 2.0, 3.0, 4.0, 5.0]})
    array([ 3., 10., 15.])
    """
    every = int(save_every_N)
    if every < 1 or every != save_every_N:
        raise ValueError(f"save_every_N must be a positive integer, not {save_every_N}.")
    rows, outputs = rows_of(sequences), outputs_of(outputs_info)
    if any(output.kind == "mit_sot" for output in outputs):
        raise ValueError("In scan_checkpoints, steps read only the last values: no other taps.")
    steps = steps_of(n_steps, rows)
    known = known_length(steps)
    even = known % every == 0 if known is not None else bool(rows) and not padding
    n_states = sum(output.initial is not None for output in outputs)

    def chunk(start: Any, *given: Any) -> Any:
        """The last values of ``every`` steps; fewer at the end."""
        count = every if even else minimum(every, steps - start)
        states = iter(given[len(rows) :])
        info = [None if output.initial is None else next(states) for output in outputs]
        others = given[len(rows) + n_states :]
        inner = described(fn, list(given[: len(rows)]), info, others, count, False)
        if inner.condition is not None:
            raise ValueError("scan_checkpoints has no until.")
        results, updates = results_of(inner, name, -1)
        return [r.last for r in results], updates

    starts = arange(0, steps, every)
    chunks = [_chunks(row.array[:steps], steps, every, padding and not even) for row in rows]
    initial = [output.initial for output in outputs]
    loop = described(chunk, [starts, *chunks], initial, as_list(non_sequences), None, False)
    found: tuple[list[Result], Any] = results_of(loop, name, -1)
    return returned([r.rows for r in found[0]], found[1], False, return_updates)


def _chunks(x: Any, steps: Any, every: int, padding: bool) -> Any:
    """The rows of ``x``, ``every`` at a time, along a new first axis."""
    lengths = [x.shape[k] for k in range(1, x.type.ndim)]
    if padding:
        x = concatenate([x, zeros([-steps % every, *lengths], x.type.dtype)])
    return x.reshape([-1, every, *lengths])
