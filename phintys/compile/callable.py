"""`Function`, the callable that `function` returns: arguments, results and shared variables."""

from __future__ import annotations

import copy as copy_module
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from itertools import chain, compress, repeat, starmap
from operator import is_, itemgetter, setitem
from typing import Any, Protocol

from phintys.compile.aliasing import copies
from phintys.compile.arguments import Arguments, Cells, Values
from phintys.compile.vm import VM
from phintys.graph.results import ArrayType, array_type, has_shape
from phintys.graph.shared import Container, SharedVariable
from phintys.graph.variable import Variable, late_bound
from phintys.locks import turns
from phintys.memo import Memo

#: how often a call is made, at most, until no other has replaced a value that it updates
ATTEMPTS = 64


class Maker(Protocol):
    """What a function needs of the object that made it: `phintys.compile.function.FunctionMaker`.

    Attributes: the inputs that calls pass as `In` (``passed``), the ``outputs`` as `Out`, the
    ``shared`` variables, the ``name``, the seconds that each stage took (``times``), and what a
    call returns (``unpack``, see `Specification`).
    """

    passed: list[Any]
    outputs: list[Any]
    shared: list[SharedVariable]
    name: str | None
    times: dict[str, float]
    unpack: str
    linker: Any
    spec: Any

    @property
    def graph(self) -> Any:
        """The rewritten graph, which nobody may change."""
        ...

    @property
    def fgraph(self) -> Any:
        """The rewritten graph, which users may change: functions made before do not change."""
        ...

    def current(self) -> Maker:
        """The maker of the functions of ``fgraph`` as it is now."""
        ...

    @property
    def program(self) -> Any:
        """The Program of the rewritten graph."""
        ...

    def program_for_code(self) -> Any:
        """The Program, for code generation: neither it nor the graph needs memory afterwards."""
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
        self,
        input_storage: Sequence[Any] | None = ...,
        storage_map: Any = ...,
        *,
        trust_input: bool | None = ...,
        profile: Any = ...,
        containers: list[Container] | None = ...,
    ) -> Any:
        """A callable; ``containers`` hold the values of the shared variables."""
        ...

    def copy(
        self,
        containers: list[Container],
        swap: dict[SharedVariable, SharedVariable],
        delete_updates: bool = ...,
        name: str | None = ...,
        outputs: Sequence[int] | None = ...,
    ) -> tuple[Maker, list[Container]]:
        """A maker with the same ``graph``, and the containers of its shared variables."""
        ...

    def with_shared(self, shared: list[SharedVariable]) -> Maker:
        """A maker of the same function of other shared variables, of the same types."""
        ...

    def with_linker(self, linker: Any) -> Maker:
        """A maker of the same function with another linker."""
        ...

    def rebuild(self, values: list[Any], trust_input: bool, defaults: list[Any] = ...) -> Any:
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
        the `FunctionMaker`; ``maker.fgraph`` is the rewritten graph.  If that is changed, new
        functions (``maker.create()``, copies and pickles) compute the changed graph; this one
        remains the same.
    made_from
        the maker of the graph that the function computes: ``maker``, unless its graph had been
        changed before
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
        self._copy = copies(maker.graph, [o.borrow for o in maker.outputs])

    def _setup(self, maker: Maker, containers: list[Container]) -> None:
        self.maker = self.made_from = maker
        self.name = maker.name
        self.containers = containers
        self.profile: Any = None
        types = [v.type for v in maker.spec.held.inputs[len(maker.passed) :]]
        self._shared_types = [(s, t, array_type(t)) for s, t in zip(maker.shared, types)]
        targets = [p - len(maker.passed) for p in maker.update_targets]
        self._updated_cells = [containers[p].storage for p in targets]
        self._updated_ids = frozenset([id(cell) for cell in self._updated_cells])
        self._updated = targets
        self._partial: Memo[tuple[int, ...], Function] = Memo(16, "functions of some outputs")

    @cached_property
    def arguments(self) -> Arguments:
        """The order, names and default values of the arguments."""
        return Arguments(self.made_from.spec, self.containers, self.name)

    # ----- calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "output_subset" in kwargs and "output_subset" not in self.arguments.names:
            return self._call_partial(kwargs.pop("output_subset"), args, kwargs)
        is_trusted = self.trust_input and not kwargs and len(args) == len(self.made_from.passed)
        return self.call_values(args if is_trusted else self.arguments.values(args, kwargs))

    def call_values(self, values: Sequence[Any]) -> Any:
        """The results for values of the graph's inputs that are of their types; does the updates.

        A dict of outputs is returned as a list.  If another call has replaced a value that this
        one updates, it is repeated, and calls that update the same values wait for it.
        """
        turns.wait(self._updated_ids)
        done, answer = self._attempt(values)
        if done:
            return answer
        with turns.turn(self._updated_ids):
            for _ in range(ATTEMPTS - 1):
                done, answer = self._attempt(values)
                if done:
                    return answer
        raise RuntimeError(
            f"Each of {ATTEMPTS} attempts of a call{self.arguments.of()} ended after another call, "
            "or an op of the function itself, had replaced a shared variable that the function "
            "updates."
        )

    def _attempt(self, values: Sequence[Any]) -> tuple[bool, Any]:
        """Whether the call has done its updates, and its results."""
        state = self._shared_values()
        answer, updates = self._results(self.run([*values, *state]))
        return self._store(updates, state), answer

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
                    f"The value of the shared variable {variable}{self.arguments.of()} must be of "
                    f"type {type_}; it is now {_description(value)}."
                )
            values.append(value)
        return values

    def _results(self, results: list[Any]) -> tuple[Any, list[Any]]:
        """What a call returns, and the new values of shared variables."""
        results = [
            copy(r) if copy is not None and r is not None else r
            for r, copy in zip(results, self._copy)
        ]
        n = len(self.made_from.outputs)
        return results[0] if self.made_from.unpack == "single" else results[:n], results[n:]

    def _store(self, updates: list[Any], state: list[Any]) -> bool:
        """Store the updates; False if a value that is updated has been replaced since the start.

        The call is repeated then, so that no update is lost, and draws from a shared generator are
        disjoint.  ``state`` holds the values of the shared variables from which the updates were
        computed.

        The test and all updates are one call of C functions, so no other thread and no signal
        handler runs in between.
        """
        if not updates:
            return True
        now = map(itemgetter(0), self._updated_cells)
        unchanged = map(all, [map(is_, now, [state[p] for p in self._updated])])
        stores = compress([zip(self._updated_cells, repeat(0), updates)], unchanged)
        done = deque(starmap(setitem, chain.from_iterable(stores)), maxlen=1)
        return bool(done)

    def _call_partial(self, subset: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The results of some outputs, by position or key, in the order that ``subset`` names."""
        if subset is None:
            return self(*args, **kwargs)
        if isinstance(subset, str) or not isinstance(subset, Iterable):
            raise TypeError(
                f"output_subset must be a list of positions or keys of outputs, not {subset!r}."
            )
        keys = self.made_from.spec.keys or list(range(len(self.made_from.outputs)))
        unknown = [k for k in subset if k not in keys]
        if unknown:
            raise ValueError(f"{self.arguments.label()} has no output {unknown[0]!r}.")
        wanted = tuple(sorted({keys.index(k) for k in subset}))
        found = self._partial[wanted]
        if found is None:
            found = self._partial.keep(wanted, self._of_outputs(wanted))
        results = dict(zip([keys[k] for k in wanted], found(*args, **kwargs), strict=True))
        if self.made_from.unpack == "dict":
            return {k: results[k] for k in subset}
        picked = [results[k] for k in subset]
        return picked[0] if self.made_from.unpack == "single" and picked else picked

    def _of_outputs(self, wanted: tuple[int, ...]) -> Function:
        """A function that computes some of the outputs, and all updates, with the same cells."""
        maker, containers = self.made_from.copy(self.containers, {}, outputs=wanted)
        f: Function = maker.create(trust_input=self.trust_input, containers=containers)
        f.arguments = self.arguments
        return f

    # ----- state
    def get_shared(self) -> list[SharedVariable]:
        """The shared variables that the function reads or updates, in a new list.

        >>> import numpy as np, phintys
        >>> n = phintys.shared(np.array(0), "n")
        >>> phintys.function([], n, updates={n: n + 1}).get_shared()
        [n]
        """
        return list(self.made_from.shared)

    @cached_property
    def container(self) -> Cells:
        """The cells of the default values of arguments, and of the shared variables.

        ``f.container[x]``, where ``x`` is a variable or its name, is a `Container`.
        """
        return Cells(self.arguments, self.made_from.shared, self.containers)

    @property
    def value(self) -> Values:
        """The values in `container`, which may be read and assigned; ``f[x]`` is ``f.value[x]``.

        >>> import phintys, phintys.tensor as pt
        >>> x, y = pt.dscalars("x", "y")
        >>> f = phintys.function([x, phintys.In(y, value=1.0)], x + y)
        >>> f["y"] = 5.0
        >>> f[y], f(1.0)
        (array(5.), array(6.))
        """
        return Values(self.container)

    def __getitem__(self, key: Variable | str) -> Any:
        return self.value[key]

    def __setitem__(self, key: Variable | str, value: Any) -> None:
        self.value[key] = value

    def free(self) -> None:
        """Forget the results of `vm`: a function keeps no other memory between calls."""
        for container in self.output_storage:
            container.storage[0] = None

    def sync_shared(self) -> None:
        """Do nothing: shared variables have their new values when a call returns."""

    # ----- storage
    @cached_property
    def vm(self) -> VM:
        """The function as code between storage cells; see `VM`."""
        return VM(self)

    @cached_property
    def input_storage(self) -> list[Container]:
        """The cells of the inputs of the graph: arguments, then shared variables."""
        cells = [c for c, kept in zip(self.arguments.cells, self.arguments.is_kept) if not kept]
        return cells + self.containers

    @cached_property
    def output_storage(self) -> list[Container]:
        """Cells for the results of the graph, without updates, which calls of `vm` fill."""
        return [Container(o.variable) for o in self.made_from.outputs]

    @property
    def outputs(self) -> list[Any]:
        """The outputs, as `Out`."""
        return list(self.made_from.outputs)

    @property
    def unpack_single(self) -> bool:
        """Whether a call returns the only result itself."""
        return self.made_from.unpack == "single"

    @property
    def return_none(self) -> bool:
        """Whether the function was made with ``outputs=None``."""
        return self.made_from.unpack == "nothing"

    @property
    def output_keys(self) -> list[Any] | None:
        """The keys of a dict of outputs; None if they are no dict."""
        return list(self.made_from.spec.keys) if self.made_from.unpack == "dict" else None

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
            without effect: functions keep no memory between calls that could be shared
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
        current = self.maker.current()
        containers = self._containers_of(current)
        maker, containers = current.copy(containers, swap or {}, delete_updates, name)
        f = maker.create(trust_input=self.trust_input, profile=profile, containers=containers)
        f.arguments.set_defaults(self.arguments.own_defaults())
        return f

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        current = self.maker.current()
        maker = current.with_shared([copy_module.deepcopy(s, memo) for s in current.shared])
        containers = [copy_module.deepcopy(c, memo) for c in self._containers_of(current)]
        f = maker.create(trust_input=self.trust_input, containers=containers)
        f.arguments.set_defaults(self.arguments.own_defaults())
        return f

    def __reduce__(self) -> Any:
        current = self.maker.current()
        values = [c.storage[0] for c in self._containers_of(current)]
        return current.rebuild, (values, self.trust_input, self.arguments.own_defaults())

    def _containers_of(self, maker: Maker) -> list[Container]:
        """The cells of the shared variables of a maker: those of this function, if it has them."""
        own = dict(zip(self.made_from.shared, self.containers, strict=True))
        return [own.get(s, s.container) for s in maker.shared]

    def dprint(self, **kwargs: Any) -> Any:
        """Print the rewritten graph; see `phintys.dprint`."""
        return late_bound["dprint"](self, **kwargs)

    def __str__(self) -> str:
        of = self.arguments.signature()
        return f"<{self.arguments.label()} of {of}, mode {self.made_from.linker.name}>"

    __repr__ = __str__


@cache
def dict_class(cls: type) -> type:
    """A subclass of a class of functions whose calls return a dict of the outputs."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = cls.__call__(self, *args, **kwargs)  # type: ignore[operator]
        return dict(zip(self.made_from.spec.keys, found)) if type(found) is list else found

    return type(cls.__name__, (cls,), {"__call__": call, "__slots__": ()})


def _fits(value: Any, known: ArrayType) -> bool:
    """Whether a value is an array (of NumPy or a framework) with this dtype and static shape."""
    dtype, shape = known
    return getattr(value, "dtype", None) == dtype and has_shape(value.shape, shape)


def _description(value: Any) -> str:
    """The dtype and shape of an array, or the class of another object, for messages."""
    if not hasattr(value, "shape"):
        return f"of type {type(value).__name__}"
    return f"an array of dtype {value.dtype} and shape {value.shape}"
