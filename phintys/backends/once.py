"""A cache decorator that calls the function once per process, even with several threads.

`functools.cache` may call the function twice if two threads miss at the same time, and drops one of
the two results.  That is wrong for libraries: machine code may refer to the memory of either.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from phintys.locks import making

P = ParamSpec("P")
R = TypeVar("R")


def once(make: Callable[P, R]) -> Callable[P, R]:
    """A function that calls ``make`` once for equal arguments and caches the result.

    Other threads that miss at the same time wait for the first one.  If ``make`` raises, nothing is
    cached, and the next call tries again.

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
