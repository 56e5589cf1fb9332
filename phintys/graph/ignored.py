"""Parameters that functions take because older systems have them, and do not use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from phintys.graph.origin import stacklevel

P = ParamSpec("P")
R = TypeVar("R")

#: function or method -> its ignored parameters, each with what takes its place; empty: nothing
IGNORED: dict[str, dict[str, str]] = {}


def ignores(*unused: str, **instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that declares parameters which a function takes and ignores.

    Parameters
    ----------
    unused
        names of parameters that change no result in PyTensor either, such as ``overwrite_a``
    instead
        names of parameters that have an effect in PyTensor, each with what takes its place here: a
        true value of one gives a warning that says it

    TypeError if the function has no parameter of that name.

    >>> @ignores("openmp", verbose="the setting optimizer_verbose")
    ... def double(x, openmp=None, verbose=False):
    ...     return 2 * x
    >>> double(3, openmp=True)
    6
    >>> IGNORED.pop("phintys.graph.ignored.double")
    {'openmp': '', 'verbose': 'the setting optimizer_verbose'}
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        code = function.__code__  # type: ignore[attr-defined]
        names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        unknown = [name for name in (*unused, *instead) if name not in names]
        if unknown:
            raise TypeError(f"{function.__qualname__} has no parameter {unknown[0]!r}.")
        declared = {**dict.fromkeys(unused, ""), **instead}
        IGNORED[f"{function.__module__}.{function.__qualname__}"] = declared
        return _warning(function, names, instead) if instead else function

    return declare


def _warning(
    function: Callable[P, R], names: tuple[str, ...], instead: dict[str, str]
) -> Callable[P, R]:
    """The function, with a warning if one of ``instead`` is given."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in instead.keys() & (*names[: len(args)], *kwargs):
            if kwargs[name] if name in kwargs else args[names.index(name)]:
                message = f"{function.__name__} ignores {name}; use {instead[name]}."
                warnings.warn(message, stacklevel=stacklevel())
        return function(*args, **kwargs)

    return checked
