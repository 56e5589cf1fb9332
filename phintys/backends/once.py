"""What is made once in a process and kept: libraries whose addresses are handed out.

`functools.cache` runs the function twice when two threads miss at once, and keeps one of the two
results.  Where the result owns memory that machine code refers to, the other one must not go.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from phintys.locks import making

P = ParamSpec("P")
R = TypeVar("R")


def once(make: Callable[P, R]) -> Callable[P, R]:
    """A function that calls ``make`` once for the same arguments and keeps what it returns.

    Threads that miss at the same time wait for the first of them.  If ``make`` raises, nothing is
    kept, and the next call tries again.

    >>> @once
    ... def answer(x):
    ...     print("made")
    ...     return [x]
    >>> answer(1) is answer(1)
    made
    True
    """
    made: dict[object, R] = {}

    @functools.wraps(make)
    def get(*args: P.args, **kwargs: P.kwargs) -> R:
        key = (args, *sorted(kwargs.items())) if kwargs else args
        if key not in made:
            with making:
                if key not in made:
                    made[key] = make(*args, **kwargs)
        return made[key]

    return get
