"""The process of one library: reads requests from standard input, a line of JSON each.

``open`` builds a workload, ``load`` gives it the data of a size and checks an answer, ``time``
takes the time of a call.  Replies are lines of JSON, too.
"""

from __future__ import annotations

import json
import os
import sys
import time
import timeit
import traceback
from typing import Any

import numpy as np
from libraries import NUMPY, Program, Unsupported, library
from workloads import WORKLOADS, Workload, answer, outputs


def error(got: Any, want: Any) -> float:
    """Greatest difference, relative to the greatest number; infinite for another shape."""
    got, want = np.asarray(got, "f8"), np.asarray(want, "f8")
    if got.shape != want.shape:
        return float("inf")
    if not want.size:
        return 0.0
    scale = np.abs(want).max() or 1.0
    difference = float(np.abs(got - want).max() / scale)
    return difference if difference == difference else float("inf")


class Worker:
    """What the requests work on."""

    def __init__(self, name: str) -> None:
        self.library = library(name)
        self.workload: Workload
        self.program: Program
        self.timer: timeit.Timer

    def open(self, workload: str) -> dict[str, Any]:
        self.workload = w = WORKLOADS[workload]
        start = time.perf_counter()
        self.program = self.library.build(w, w.arrays("small"))
        return {"seconds": time.perf_counter() - start}

    def load(self, size: str) -> dict[str, Any]:
        """Bind the data, call once, and compare with NumPy."""
        w, program = self.workload, self.program
        want, new = answer(w, w.arrays(size), NUMPY)
        arguments = program.bind(w.arrays(size))
        by_name = w.call == "keywords"
        args, kwargs = ([], arguments) if by_name else (list(arguments.values()), {})
        got = outputs(program.call(*args, **kwargs))
        if len(got) != len(want):
            return {"error": float("inf"), "tolerance": w.tolerance}
        errors = [error(g, a) for g, a in zip(got, want)]
        if w.changes:
            held = program.held()
            errors += [error(held[name], value) for name, value in new.items()]
        names = [f"{k}=a{i}" if by_name else f"a{i}" for i, k in enumerate(arguments)]
        scope = {f"a{i}": a for i, a in enumerate(arguments.values())}
        statement = f"f({', '.join(names)})"
        self.timer = timeit.Timer(statement, globals={"f": program.call, **scope})
        return {"error": max(errors), "tolerance": w.tolerance}

    def time(self, seconds: float) -> dict[str, Any]:
        """The least time of a call in about ``seconds``."""
        once = self.timer.timeit(1)
        number = max(1, int(seconds / 8 / max(once, 1e-8)))
        repeat = max(1, min(8, int(seconds / (number * max(once, 1e-8)))))
        return {"seconds": min(self.timer.repeat(repeat, number)) / number}


def serve(name: str) -> None:
    """Answer requests until the input ends; what libraries print goes to standard error."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(**message: Any) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    try:
        worker = Worker(name)
    except ImportError as e:
        return reply(missing=str(e))
    reply(ready=name)
    for line in sys.stdin:
        request = json.loads(line)
        method = getattr(worker, request.pop("do"))
        try:
            reply(**method(**request))
        except Unsupported as e:
            reply(skipped=str(e))
        except Exception as e:
            traceback.print_exc()
            reply(failed=f"{type(e).__name__}: {e}".splitlines()[0][:200])


if __name__ == "__main__":
    serve(sys.argv[1])
