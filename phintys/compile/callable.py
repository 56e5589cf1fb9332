"""`Function`, the callable that `function` returns: arguments, results and shared variables."""

from __future__ import annotations

import copy as copy_module
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain, compress, repeat, starmap
from operator import is_, itemgetter, setitem
from typing import Any, Protocol

from phintys.compile.aliasing import copies
from phintys.errors import did_you_mean
from phintys.graph.results import ArrayType, array_type, has_shape
from phintys.graph.shared import Container, SharedVariable
from phintys.graph.variable import late_bound

#: how often a call is made, at most, until no other has replaced an object that it updates
ATTEMPTS = 64


class Maker(Protocol):
    """What a function needs of the object that made it: `phintys.compile.function.FunctionMaker`.

    Attributes: the ``inputs`` and ``outputs`` of `function` as `In` and `Out`, the ``shared``
    variables, the ``name``, the seconds that each stage took (``times``), and what a call returns
    (``unpack``, see `Specification`).
    """

    inputs: list[Any]
    outputs: list[Any]
    shared: list[SharedVariable]
    name: str | None
    times: dict[str, float]
    unpack: str
    linker: Any
    spec: Any

    @property
    def fgraph(self) -> Any:
        """The rewritten graph."""
        ...

    @property
    def program(self) -> Any:
        """The Program of the rewritten graph."""
        ...

    @property
    def key(self) -> str | None:
        """The key of the compiled code in caches; None if it cannot be cached."""
        ...

    @property
    def update_targets(self) -> list[int]:
        """The position, among the inputs of the graph, of the shared variable of each update."""
        ...

    def create(
        self, trust_input: bool = ..., profile: Any = ..., containers: list[Container] | None = ...
    ) -> Any:
        """A callable; ``containers`` hold the values of the shared variables."""
        ...

    def copy(
        self,
        containers: list[Container],
        swap: dict[SharedVariable, SharedVariable],
        delete_updates: bool = ...,
        name: str | None = ...,
    ) -> tuple[Maker, list[Container]]:
        """A maker with the same rewritten graph, and the containers of its shared variables."""
        ...

    def rebuild(self, values: list[Any], trust_input: bool) -> Any:
        """A callable whose shared variables hold ``values``."""
        ...


class Function:
    """A compiled function, made by `function`.

    Call it with arguments by position or by name of the input.  An argument is converted to the
    type of its input; results are NumPy arrays (JAX arrays in mode JAX) of the dtypes and ranks of
    the outputs.

    Attributes
    ----------
    trust_input
        True: arguments are used without checks, and wrong ones may crash the process
    maker
        the `FunctionMaker`; ``maker.fgraph`` is the rewritten graph
    name, profile
        see `function`

    Raises
    ------
    TypeError, ValueError
        if an argument is missing, unknown, or has no value of the input's type
    ShapeError, IndexError
        if lengths do not agree, or an index is out of range; shared variables are unchanged then

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> f = phintys.function([x, y], x + y)
    >>> f([1.0, 2.0], y=[3.0, 4.0])
    array([4., 6.])
    """

    trust_input: bool = False

    def __init__(
        self,
        maker: Maker,
        containers: list[Container],
        run: Callable[[Sequence[Any]], list[Any]],
    ) -> None:
        self._setup(maker, containers)
        self.run = run
        self._copy = copies(maker.fgraph, [o.borrow for o in maker.outputs])

    def _setup(self, maker: Maker, containers: list[Container]) -> None:
        self.maker = maker
        self.name = maker.name
        self.containers = containers
        self.profile: Any = None
        types = [v.type for v in maker.spec.fgraph.inputs[len(maker.inputs) :]]
        self._shared_types = [(s, t, array_type(t)) for s, t in zip(maker.shared, types)]
        targets = [p - len(maker.inputs) for p in maker.update_targets]
        self._updated_cells = [containers[p].storage for p in targets]
        self._updated_objects = [p for p in targets if self._shared_types[p][2] is None]
        self._names: dict[str, int] = {}
        self._ambiguous: set[str] = set()
        for i, spec in enumerate(maker.inputs):
            if spec.name is None:
                continue
            if spec.name in self._names:
                self._ambiguous.add(spec.name)
            self._names[spec.name] = i

    # ----- calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = list(args) if self.trust_input and not kwargs else self._convert(args, kwargs)
        for _ in range(ATTEMPTS):
            state = self._shared_values()
            answer, updates = self._results(self.run([*values, *state]))
            if self._store(updates, state):
                return answer
        raise RuntimeError(
            f"Each of {ATTEMPTS} attempts of a call{self._of()} ended after another call, or an op "
            "of the function itself, had replaced a shared variable that the function updates."
        )

    def _shared_values(self) -> list[Any]:
        """The values of the shared variables.

        Raises TypeError if one no longer has its variable's type: a caller that has borrowed the
        array (``get_value(borrow=True)``) can change its shape or dtype.
        """
        values = []
        for container, (variable, type_, known) in zip(self.containers, self._shared_types):
            value = container.storage[0]
            if known is not None and not _fits(value, known):
                raise TypeError(
                    f"The value of the shared variable {variable}{self._of()} must be of type "
                    f"{type_}; it is now {_description(value)}."
                )
            values.append(value)
        return values

    def _results(self, results: list[Any]) -> tuple[Any, list[Any]]:
        """What a call returns, and the new values of shared variables."""
        results = [
            copy(r) if copy is not None and r is not None else r
            for r, copy in zip(results, self._copy)
        ]
        n = len(self.maker.outputs)
        return results[0] if self.maker.unpack == "single" else results[:n], results[n:]

    def _store(self, updates: list[Any], state: list[Any]) -> bool:
        """Store the updates; False if an object that is updated has been replaced since the start.

        The call is repeated then, so that draws from a shared generator are disjoint.  ``state``
        holds the values of the shared variables from which the updates were computed.

        The test and all updates are one call of C functions, so no other thread and no signal
        handler runs in between.
        """
        if not updates:
            return True
        now = map(itemgetter(0), [self.containers[p].storage for p in self._updated_objects])
        unchanged = map(all, [map(is_, now, [state[p] for p in self._updated_objects])])
        stores = compress([zip(self._updated_cells, repeat(0), updates)], unchanged)
        done = deque(starmap(setitem, chain.from_iterable(stores)), maxlen=1)
        return bool(done)

    def _convert(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in the order of the inputs, converted to their types."""
        values = self._bind(args, kwargs) if kwargs or len(args) != len(self.maker.inputs) else args
        out = []
        for i, (spec, value) in enumerate(zip(self.maker.inputs, values)):
            try:
                out.append(spec.filter(value))
            except (TypeError, ValueError) as exc:
                label = f" {spec.name!r}" if spec.name else ""
                raise type(exc)(f"Bad argument {i}{label}{self._of()}: {exc}") from None
        return out

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in the order of the inputs, with default values.

        Raises TypeError if one is missing, unknown or given twice.
        """
        inputs = self.maker.inputs
        if len(args) > len(inputs):
            raise TypeError(
                f"{self._label()} takes {len(inputs)} arguments ({self._signature()}), "
                f"{len(args)} given."
            )
        missing = object()
        values: list[Any] = [*args, *[missing] * (len(inputs) - len(args))]
        for key, value in kwargs.items():
            if key not in self._names:
                hint = did_you_mean(key, self._names)
                raise TypeError(
                    f"{self._label()} has no input called {key!r}.{hint} "
                    f"Its inputs: {self._signature()}."
                )
            if key in self._ambiguous:
                raise TypeError(f"Several inputs are called {key!r}: pass them by position.")
            i = self._names[key]
            if values[i] is not missing:
                raise TypeError(f"Input {key!r} is given twice, by position and by name.")
            values[i] = value
        for i, (spec, value) in enumerate(zip(inputs, values)):
            if value is missing:
                if not isinstance(spec.value, Container):
                    raise TypeError(
                        f"{self._label()} is missing argument {i}, {spec.variable} "
                        f"(type {spec.variable.type}). Its inputs: {self._signature()}."
                    )
                values[i] = spec.value.value
        return values

    def _of(self) -> str:
        return f" of function {self.name!r}" if self.name else ""

    def _label(self) -> str:
        return f"Function {self.name!r}" if self.name else "The function"

    def _signature(self) -> str:
        return ", ".join(i.name or f"<{i.variable.type}>" for i in self.maker.inputs) or "none"

    # ----- state
    def get_shared(self) -> list[SharedVariable]:
        """The shared variables that the function reads or updates, in a new list.

        >>> import numpy as np, phintys
        >>> n = phintys.shared(np.array(0), "n")
        >>> phintys.function([], n, updates={n: n + 1}).get_shared()
        [n]
        """
        return list(self.maker.shared)

    def free(self) -> None:
        """Do nothing: a function keeps no memory between calls.  For compatibility."""

    def copy(
        self,
        share_memory: bool = False,
        swap: dict[SharedVariable, SharedVariable] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: Any = None,
    ) -> Any:
        """Another function with the same rewritten graph and, unless swapped, shared variables.

        Parameters
        ----------
        share_memory
            accepted for compatibility: compiled functions keep no buffers to share
        swap
            shared variable -> another of the same type that takes its place
        delete_updates
            True: the copy does not update shared variables
        name, profile
            those of the copy

        Raises
        ------
        ValueError, TypeError
            if ``swap`` names no shared variable of the function, or one of another type

        >>> import numpy as np, phintys
        >>> a, b = phintys.shared(np.array(1.0)), phintys.shared(np.array(2.0))
        >>> f = phintys.function([], a + 1)
        >>> f(), f.copy(swap={a: b})()
        (array(2.), array(3.))
        """
        maker, containers = self.maker.copy(self.containers, swap or {}, delete_updates, name)
        return maker.create(self.trust_input, profile, containers)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        containers = [copy_module.deepcopy(c, memo) for c in self.containers]
        return self.maker.create(self.trust_input, None, containers)

    def __reduce__(self) -> Any:
        values = [c.storage[0] for c in self.containers]
        return self.maker.rebuild, (values, self.trust_input)

    def dprint(self, **kwargs: Any) -> Any:
        """Print the rewritten graph; see `phintys.dprint`."""
        return late_bound["dprint"](self, **kwargs)

    def __str__(self) -> str:
        return f"<{self._label()} of {self._signature()}, mode {self.maker.linker.name}>"

    __repr__ = __str__


def _fits(value: Any, known: ArrayType) -> bool:
    """Whether a value is an array (of NumPy or a framework) with this dtype and static shape."""
    dtype, shape = known
    return getattr(value, "dtype", None) == dtype and has_shape(value.shape, shape)


def _description(value: Any) -> str:
    """The dtype and shape of an array, or the class of another object, for messages."""
    if not hasattr(value, "shape"):
        return f"of type {type(value).__name__}"
    return f"an array of dtype {value.dtype} and shape {value.shape}"
