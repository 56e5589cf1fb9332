"""`In` and `Out`: options of one input or output of a function."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from phintys.graph.shared import Container, SharedVariable
from phintys.graph.variable import Constant, Variable


class SymbolicInput:
    """An input of `function` with options: the base class of `In`, without a default value.

    Parameters and errors are those of `In`.
    """

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        update: Any = None,
        mutable: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        autoname: bool = True,
        implicit: bool | None = False,
        *,
        borrow: bool | None = None,
    ) -> None:
        if not isinstance(variable, Variable):
            raise TypeError(f"In needs a Variable, not {variable!r} ({type(variable).__name__}).")
        if isinstance(variable, Constant):
            raise TypeError(f"A constant cannot be an input: {variable}.")
        self.mutable = bool(mutable)
        if self.mutable and borrow is False:
            raise ValueError("An input that is mutable must be borrowed: pass borrow=True.")
        self.borrow = True if self.mutable else borrow
        self.variable, self.update = variable, update
        self.name = variable.name if name is None and autoname else name
        self.autoname, self.shared = autoname, False
        self.strict, self.allow_downcast = strict, allow_downcast
        self.implicit = bool(implicit)
        #: the cell of the default value, and the shared variable that it belongs to, if one does
        self.value: Container | None = None
        self.source: SharedVariable | None = None
        self.owns_value = False

    def filter(self, value: Any) -> Any:
        """The argument converted to the variable's type; TypeError if that is not possible."""
        options = {} if self.allow_downcast is None else {"allow_downcast": self.allow_downcast}
        return self.variable.type.filter(value, strict=self.strict, **options)

    def new_container(self, value: Any = None) -> Container:
        """A cell for values of the variable, with the input's options of conversion."""
        return Container(
            self.variable,
            [value],
            strict=self.strict,
            allow_downcast=self.allow_downcast,
            name=self.name,
        )

    def __repr__(self) -> str:
        update = "" if self.update is None else f" -> {self.update}"
        return f"In({self.variable}{update})"


class In(SymbolicInput):
    """An input of `function` with options.

    Parameters
    ----------
    variable
        the symbolic input
    name
        the name of the keyword argument; default: the variable's name
    value
        the default value: a value, of which each function has a copy, or a shared variable or a
        `Container`, whose value at the time of a call it is
    update
        an expression: its value becomes the default after each call.  An argument that is passed
        takes the place of the default before the call.
    mutable
        the function may overwrite the argument (no backend does); implies ``borrow``
    borrow
        the function may keep references to the argument, and to ``value``
    shared
        accepted for compatibility: the value of a shared variable is passed as ``value``
    implicit
        True: calls cannot pass the input; it always has its default value
    strict
        the argument must have the variable's type already: nothing is converted
    allow_downcast
        True: conversion may lose precision; False: never; None: only a Python float for floatX
    autoname
        False: without ``name``, the input has no name

    Raises
    ------
    TypeError
        if ``variable`` is not a Variable, or is a constant, or ``value`` is not of its type
    ValueError
        if the input is ``mutable``, and ``borrow`` is False

    >>> import phintys, phintys.tensor as pt
    >>> x, total = pt.dscalar("x"), pt.dscalar("total")
    >>> f = phintys.function([x, In(total, value=0.0, update=total + x)], total + x)
    >>> f(1.0), f(2.0), f(1.0, total=10.0)
    (array(1.), array(3.), array(11.))
    >>> scale = phintys.shared(10.0)
    >>> phintys.function([x, In(total, value=scale)], x * total)(2.0)
    array(20.)
    """

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: Any = None,
        update: Any = None,
        mutable: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        autoname: bool = True,
        implicit: bool | None = None,
        borrow: bool | None = None,
        shared: bool = False,
    ) -> None:
        super().__init__(
            *(variable, name, update, mutable, strict, allow_downcast, autoname, implicit),
            borrow=borrow,
        )
        self.shared = shared
        if isinstance(value, SharedVariable):
            self.source, value = value, value.container
        if value is None or isinstance(value, Container):
            self.value = value
        else:
            self.owns_value = True
            self.value = self.new_container(self.filter(value if self.borrow else deepcopy(value)))


class SymbolicOutput:
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


Out = SymbolicOutput


def as_input(x: Any, allow_downcast: bool | None) -> SymbolicInput:
    """The `In` of an item of the inputs of `function`.

    It may be a variable, or a list or tuple of these in this order: a name (a string), a variable
    or a pair of a variable and its update, a default value; the first and the last are optional.

    TypeError if it is none of these.
    """
    made = _as_input(x, allow_downcast)
    variable = made.variable
    if isinstance(variable, SharedVariable) and made.value is not variable.container:
        raise TypeError(
            f"The shared variable {variable} cannot be an input: functions read its value. To try "
            "another value use givens={...} or set_value."
        )
    return made


def _as_input(x: Any, allow_downcast: bool | None) -> SymbolicInput:
    if isinstance(x, SymbolicInput):
        return x
    if isinstance(x, list | tuple) and x:
        return _from_sequence(list(x), allow_downcast)
    if isinstance(x, Constant):
        raise TypeError(f"The constant {x} cannot be an input. Use givens to replace it.")
    if not isinstance(x, Variable):
        raise TypeError(
            f"Inputs of a function are Variables or In(...), not {x!r} ({type(x).__name__})."
        )
    return In(x, allow_downcast=allow_downcast)


def _from_sequence(items: list[Any], allow_downcast: bool | None) -> In:
    given = items
    name = items[0] if isinstance(items[0], str) else None
    items = items if name is None else items[1:]
    variable, *rest = items or [None]
    update = None
    if isinstance(variable, list | tuple) and len(variable) == 2:
        variable, update = variable
    if not isinstance(variable, Variable) or len(rest) > 1:
        raise TypeError(
            "An input is a variable, or [name,] variable or (variable, update) [, default value]; "
            f"got {given!r}."
        )
    value = rest[0] if rest else None
    return In(variable, name, value, update, allow_downcast=allow_downcast)
