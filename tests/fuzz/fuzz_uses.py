"""Other ways to use a compiled function: each gives the results that the reference says.

A use is a function of a `Judge`, the compiled function and the results of its first call (outputs,
then new values of shared variables).  It returns what is wrong, or an empty text.  Where the use
compiles the same graph, or nothing, the bits must be those of the first call.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from threading import Barrier, Thread
from typing import Any

import numpy as np
from fuzz_values import native

import phintys

Use = Callable[[Any, Any, list[Any]], str]


def identical(a: Any, b: Any) -> bool:
    """Whether two arrays have the same dtype, shape and bits."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def compared(what: str, found: Sequence[Any], expected: Sequence[Any]) -> str:
    """What to say of results that must have the same bits."""
    same = len(found) == len(expected) and all(map(identical, found, expected))
    return "" if same else f"other bits: {what}"


def pickled(judge: Any, f: Any, first: list[Any]) -> str:
    """A copy by way of bytes, which has shared variables of its own."""
    judge.reset()
    try:
        g = pickle.loads(pickle.dumps(f))
    except (AttributeError, pickle.PicklingError):
        return ""  # a function of its user, such as a derivative of an OpFromGraph, has no name
    outputs = list(g(*judge.arguments))
    values = {v: w.get_value() for v, w in zip(f.maker.shared, g.maker.shared, strict=True)}
    return compared("pickled", [*outputs, *(values[v] for v in judge.built.updates)], first)


def copied(judge: Any, f: Any, first: list[Any]) -> str:
    """A copy that has the same shared variables."""
    return compared("copied", judge.call(f.copy(), judge.arguments), first)


def trusted(judge: Any, f: Any, first: list[Any]) -> str:
    """Calls whose arguments are not checked: they are arrays of the dtypes of the inputs."""
    g = f.copy()
    g.trust_input = True
    return compared("trusted", judge.call(g, list(map(native, judge.arguments))), first)


def in_part(judge: Any, f: Any, first: list[Any]) -> str:
    """Each output alone."""
    for k in range(len(judge.built.outputs)):
        judge.reset()
        (found,) = f(*judge.arguments, output_subset=[k])
        results = [*judge.truth[:k], np.asarray(found), *judge.truth[k + 1 :]]
        problem = judge.compare(results, judge.truth)
        if problem:
            return f"alone: {problem}"
    return ""


def given(judge: Any, f: Any, first: list[Any]) -> str:
    """An argument replaced by a shared variable with its value."""
    b = judge.built
    if not b.inputs:
        return ""
    x, *others = b.inputs
    shared = phintys.shared(np.array(native(judge.arguments[0])), shape=x.type.shape)
    g = phintys.function(
        others, b.outputs, mode=f.maker.mode, updates=b.updates, givens={x: shared},
        on_unused_input="ignore",
    )  # fmt: skip
    return judge.compare(judge.call(g, judge.arguments[1:]), judge.truth)


def in_threads(judge: Any, f: Any, first: list[Any]) -> str:
    """Calls at the same time from several threads: as if one had been made after the other."""

    def call(results: list[list[Any]]) -> None:
        results.append([np.array(x) for x in f(*judge.arguments)])

    judge.reset()
    expected: list[list[Any]] = []
    try:
        for _ in range(12):
            call(expected)
    except Exception:
        return ""  # the new value does not fit
    state = [v.get_value() for v in judge.built.updates]
    judge.reset()
    found = _called_in_threads(call)
    if len(found) < 12:
        return "other bits: a call in a thread failed"
    problems = [compared("again", expected[0], first[: len(expected[0])])]
    for x, y in zip(sorted(found, key=_bits), sorted(expected, key=_bits)):
        problems.append(compared("in threads", x, y))
    now = [v.get_value() for v in judge.built.updates]
    problems.append(compared("what threads leave in shared variables", now, state))
    return next(filter(None, problems), "")


def _bits(results: list[Any]) -> list[bytes]:
    return [x.tobytes() for x in results]


def _called_in_threads(call: Callable[[list[list[Any]]], None]) -> list[list[Any]]:
    """The results of 12 calls by 3 threads; fewer if some fail."""
    start, found = Barrier(3), []

    def work() -> None:
        start.wait()
        for _ in range(4):
            call(found)

    threads = [Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found


def in_sequence(judge: Any, f: Any, first: list[Any]) -> str:
    """Calls each of which finds the shared variables as the last one left them."""
    judge.reset()
    for _ in range(3):
        b = copy.copy(judge.built)
        b.shared_values = [v.get_value() for v in b.shared]
        try:
            expected = b.truth(judge.arguments)
        except Exception:
            return ""  # the new value does not fit
        outputs = list(f(*judge.arguments))
        if not b.finite and not judge.without:
            return ""
        found = [np.array(x) for x in [*outputs, *(v.get_value() for v in b.updates)]]
        problem = type(judge)(b, expected, judge.plan).compare(found, expected)
        if problem:
            return f"after an update: {problem}"
    return ""


def kept(judge: Any, f: Any, first: list[Any]) -> str:
    """Results are the caller's: no later call changes them, and nothing else changes with them."""
    judge.reset()
    outputs = list(f(*judge.arguments))
    judge.reset()
    again = list(f(*judge.arguments))
    before = [v.get_value() for v in judge.built.shared]
    for k, x in enumerate(again):
        if not isinstance(x, np.ndarray) or not x.flags.writeable:
            return f"type: result {k} is no array that may be written"
        x[...] = 1 - (x == x)
    after = [v.get_value() for v in judge.built.shared]
    count = len(outputs)
    return compared("results of an earlier call", outputs, first[:count]) or compared(
        "a shared variable that a result was part of", after, before
    )


USES: dict[str, Use] = {
    use.__name__: use
    for use in (pickled, copied, trusted, in_part, given, in_threads, in_sequence, kept)
}
