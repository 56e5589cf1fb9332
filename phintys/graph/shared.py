"""Shared variables: variables with a value that compiled functions read and update."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from functools import singledispatch
from typing import Any

from phintys.graph.type import generic
from phintys.graph.variable import Variable


class Container:
    """A cell that holds a value of a type, as the only element of the list ``storage``.

    Assigning to ``value`` (or ``data``) converts with ``type.filter``.  TypeError if the value
    cannot be converted, or the container is read-only.
    """

    def __init__(
        self,
        r: Any,
        storage: list[Any] | None = None,
        *,
        readonly: bool = False,
        strict: bool = False,
        allow_downcast: bool | None = None,
        name: str | None = None,
    ) -> None:
        self.type = r.type if isinstance(r, Variable) else r
        self.name = r.name if name is None and isinstance(r, Variable) else name
        self.storage: list[Any] = [None] if storage is None else storage
        self.readonly, self.strict, self.allow_downcast = readonly, strict, allow_downcast

    @property
    def value(self) -> Any:
        return self.storage[0]

    @value.setter
    def value(self, value: Any) -> None:
        if self.readonly:
            raise TypeError(f"The value of {self.name or 'this container'} is read-only.")
        if value is None:
            self.storage[0] = None
            return
        options = {} if self.allow_downcast is None else {"allow_downcast": self.allow_downcast}
        try:
            self.storage[0] = self.type.filter(value, strict=self.strict, **options)
        except TypeError as exc:
            raise TypeError(f"Bad value for {self.name or 'a shared variable'}: {exc}") from None

    data = value

    def __deepcopy__(self, memo: dict[int, Any]) -> Container:
        copy = type(self)(
            self.type,
            deepcopy(self.storage, memo),
            readonly=self.readonly,
            strict=self.strict,
            allow_downcast=self.allow_downcast,
            name=self.name,
        )
        memo[id(self)] = copy
        return copy

    def __repr__(self) -> str:
        return f"<{self.storage[0]!r}>"


#: a list to which new shared variables are added
_recorded: ContextVar[list[Any] | None] = ContextVar("recorded", default=None)


@contextmanager
def recording() -> Generator[list[Any]]:
    """A context whose list gets the shared variables that are made in it, but for inner contexts.

    >>> import phintys
    >>> with recording() as made:
    ...     w = phintys.shared(1.0, "w")
    >>> made
    [w]
    """
    made: list[Any] = []
    token = _recorded.set(made)
    try:
        yield made
    finally:
        _recorded.reset(token)


class SharedVariable(Variable):
    """A variable with a value, shared between the functions that use it.  Made by `shared`.

    Parameters
    ----------
    type
        the `Type` of the values
    value
        the initial value, converted by ``type.filter``; with ``strict`` it must be of the type
    container
        an existing cell, instead of a value; ``strict`` and ``allow_downcast`` are its own then

    Raises
    ------
    TypeError
        if the value cannot be converted to the type, or both a value and a container are given

    >>> import phintys
    >>> state = SharedVariable(phintys.generic, {"step": 1}, name="state")
    >>> state.get_value()
    {'step': 1}
    """

    __slots__ = ("_default_update", "container")

    def __init__(
        self,
        type: Any,
        value: Any = None,
        strict: bool | None = None,
        allow_downcast: bool | None = None,
        container: Container | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(type, None, None, name)
        self._default_update: Variable | None = None
        recorded = _recorded.get()
        if recorded is not None:
            recorded.append(self)
        if container is not None:
            if value is not None:
                raise TypeError("A shared variable takes a container or a value, not both.")
            self.container = container
        else:
            self.container = Container(
                self,
                [type.filter(value, strict=bool(strict), allow_downcast=allow_downcast)],
                strict=bool(strict),
                allow_downcast=allow_downcast,
            )

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """The current value; a deep copy, unless ``borrow``."""
        value = self.container.value
        return value if borrow else deepcopy(value)

    def set_value(self, new_value: Any, borrow: bool = False) -> None:
        """Set the value; a deep copy of ``new_value``, unless ``borrow``.

        TypeError if it cannot be converted to the type: a tensor must have the same rank.
        """
        if not borrow:
            new_value = deepcopy(new_value)
        try:
            if new_value is None:  # a container may be empty
                new_value = self.type.filter(None)
            self.container.value = new_value
        except TypeError as exc:
            raise TypeError(f"Cannot set the value of {self.name or self}: {exc}") from None

    def clone(self, **kwargs: Any) -> SharedVariable:
        """Another variable on the same cell."""
        copy = type(self)(self.type, container=self.container, name=kwargs.pop("name", self.name))
        copy.update_by_default(self._default_update)
        return copy

    @property
    def default_update(self) -> Variable | None:
        """The update of functions that read the variable and do not state one; None: it is kept.

        To assign it gives a DeprecationWarning, as in PyTensor: state updates in `function`.
        """
        return self._default_update

    @default_update.setter
    def default_update(self, expression: Variable | None) -> None:
        warnings.warn("Setting default_update is deprecated.", DeprecationWarning, stacklevel=2)
        self._default_update = expression

    def update_by_default(self, expression: Variable | None) -> None:
        """Set `default_update`, without a warning."""
        self._default_update = expression

    def __str__(self) -> str:
        return self.name or f"<{self.type}>"


@singledispatch
def shared_constructor(value: Any, *args: Any, **kwargs: Any) -> SharedVariable:
    """Make a shared variable; dispatches on the class of ``value``.

    Register a function for a further class with ``shared_constructor.register``.
    """
    packages = {cls.__module__.rpartition(".")[0] for cls in type(value).__mro__}
    for package in packages & _LATER.keys():
        _LATER[package]()
    constructor = shared_constructor.dispatch(type(value))
    if constructor is not shared_constructor.dispatch(object):
        return constructor(value, *args, **kwargs)
    return _generic_shared(value, *args, **kwargs)


#: package -> a function that registers the constructors for classes of its modules
_LATER: dict[str, Callable[[], Any]] = {}


def register_later(package: str, register: Callable[[], Any]) -> None:
    """Let ``register`` be called before the first shared variable of a class of a package is made.

    It calls ``shared_constructor.register``, and may be called again.  So the package need not be
    imported before.
    """
    _LATER[package] = register


def _generic_shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
) -> SharedVariable:
    return SharedVariable(
        type=generic, value=value, name=name, strict=strict, allow_downcast=allow_downcast
    )


#: the list of the innermost `collect_new_shareds` in this thread or task
_collected: ContextVar[list[SharedVariable] | None] = ContextVar("new shared variables")


@contextmanager
def collect_new_shareds() -> Generator[list[SharedVariable]]:
    """A context whose value is a list of the shared variables that `shared` makes inside.

    >>> with collect_new_shareds() as found:
    ...     count = shared(0, "count")
    >>> found
    [count]
    """
    found: list[SharedVariable] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


shared_constructor_register: Callable[..., Any] = shared_constructor.register


def shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    **kwargs: Any,
) -> Any:
    """A shared variable with an initial value.

    Parameters
    ----------
    value
        an array or number, for a tensor of its dtype and rank; any other object, for a variable of
        type ``generic``
    name
        name of the variable
    strict, allow_downcast
        how later values are converted; see `Type.filter`
    shape
        for tensors, the static shape; default: no length is fixed
    borrow
        for tensors, whether to keep the array itself; default: a copy

    Raises
    ------
    TypeError
        if ``value`` is symbolic, or there is no such option for its class

    >>> import numpy as np, phintys
    >>> w = phintys.shared(np.zeros(3), "w")
    >>> w.type, w.get_value()
    (TensorType(float64, shape=(None,)), array([0., 0., 0.]))
    >>> f = phintys.function([], w.sum(), updates=[(w, w + 1)])
    >>> f(), f(), w.get_value()
    (array(0.), array(3.), array([2., 2., 2.]))
    """
    if isinstance(value, Variable):
        raise TypeError(f"A shared variable needs a value; {value} is symbolic.")
    made = shared_constructor(
        value, name=name, strict=strict, allow_downcast=allow_downcast, **kwargs
    )
    collected = _collected.get(None)
    if collected is not None:
        collected.append(made)
    return made
