"""`In` and `Out`: options of one input or output of a function."""

from __future__ import annotations

from typing import Any

from phintys.errors import UnsupportedError
from phintys.graph.shared import Container, SharedVariable
from phintys.graph.variable import Constant, Variable


class In:
    """An input of `function` with options.

    Parameters
    ----------
    variable
        the symbolic input
    name
        the name of the keyword argument; default: the variable's name
    value
        the default value: a shared variable, or its container
    update
        not supported: shared variables are updated (see `function`)
    mutable
        the function may overwrite the argument (no backend does); implies ``borrow``
    borrow
        the function may keep references to the argument
    shared, implicit
        accepted for compatibility
    strict
        the argument must have the variable's type already: nothing is converted
    allow_downcast
        True: conversion may lose precision; False: never; None: only a Python float for floatX
    autoname
        False: without ``name``, the input has no name

    Raises
    ------
    TypeError
        if ``variable`` is not a Variable, or is a constant
    ValueError
        if ``value`` is neither a shared variable nor a container
    UnsupportedError
        if there is an ``update``

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dscalar("x"), pt.dscalar("y")
    >>> f = phintys.function([x, In(y, value=phintys.shared(10.0))], x + y)
    >>> f(1.0), f(1.0, y=2.0)
    (array(11.), array(3.))
    """

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: Any = None,
        update: Variable | None = None,
        mutable: bool | None = None,
        borrow: bool | None = None,
        shared: bool = False,
        strict: bool = False,
        allow_downcast: bool | None = None,
        autoname: bool = True,
        implicit: bool | None = None,
    ) -> None:
        if not isinstance(variable, Variable):
            raise TypeError(f"In needs a Variable, not {variable!r} ({type(variable).__name__}).")
        if isinstance(variable, Constant):
            raise TypeError(f"A constant cannot be an input: {variable}.")
        self.mutable = bool(mutable)
        if self.mutable and borrow is False:
            raise AssertionError("An input that is mutable must be borrowed: pass borrow=True.")
        if update is not None:
            raise UnsupportedError(
                f"An input cannot be updated: make {variable} a shared variable, and pass "
                "updates={...} to function."
            )
        self.borrow = self.mutable if borrow is None else borrow
        self.variable, self.value = variable, _default(variable, value)
        self.name = variable.name if name is None and autoname else name
        self.shared, self.strict, self.allow_downcast = shared, strict, allow_downcast
        self.implicit = bool(implicit) or shared

    def filter(self, value: Any) -> Any:
        """The argument converted to the variable's type; TypeError if that is not possible."""
        options = {} if self.allow_downcast is None else {"allow_downcast": self.allow_downcast}
        return self.variable.type.filter(value, strict=self.strict, **options)

    def __repr__(self) -> str:
        return f"In({self.variable})"


def _default(variable: Variable, value: Any) -> Container | None:
    """The container that holds a default value."""
    if isinstance(value, SharedVariable):
        return value.container
    if value is None or isinstance(value, Container):
        return value
    raise ValueError(
        f"The default value of {variable} must be a shared variable or its container, not "
        f"{value!r}."
    )


class Out:
    """An output of `function` with options.

    Parameters
    ----------
    variable
        the symbolic output
    borrow
        the result may share memory with an argument, a constant or another result; backends that
        return views (``py``, ``numba``) do not copy them then

    Raises
    ------
    TypeError
        if ``variable`` is not a Variable

    >>> import numpy as np, phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> f = phintys.function([x], Out(x[1:], borrow=True), mode="FAST_COMPILE")
    >>> values = np.zeros(3)
    >>> np.shares_memory(f(values), values)
    True
    """

    def __init__(self, variable: Any, borrow: bool = False) -> None:
        if not isinstance(variable, Variable):
            raise TypeError(f"Out needs a Variable, not {variable!r}.")
        self.variable = variable
        self.borrow = borrow

    def __repr__(self) -> str:
        return f"Out({self.variable}, borrow={self.borrow})"
