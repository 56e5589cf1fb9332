"""`function`: from symbolic inputs and outputs to something that is called."""

from __future__ import annotations

import copy as copy_module
import time
from collections.abc import Callable, Sequence
from typing import Any

from phintys.compile.aliasing import must_copy
from phintys.compile.inputs import Specification, specify
from phintys.compile.io import In, Out
from phintys.compile.linker import Linker
from phintys.compile.mode import Mode, get_mode
from phintys.errors import did_you_mean
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.shared import Container, SharedVariable
from phintys.graph.variable import Variable, late


def function(
    inputs: Sequence[Any],
    outputs: Any = None,
    mode: Any = None,
    updates: Any = None,
    givens: Any = None,
    no_default_updates: Any = False,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: Any = None,
    on_unused_input: str | None = None,
    trust_input: bool = False,
) -> Any:
    """Compile a function from ``inputs`` to ``outputs``.

    Parameters
    ----------
    inputs
        a list (or tuple) of variables or `In`
    outputs
        a variable (the function returns its value), a list (it returns a list), or None
    mode
        a name or a `Mode`; None: ``config.mode``
    updates
        dict or pairs shared variable -> expression: new values after each call.  All are computed
        from the old values.
    givens
        dict or pairs variable -> replacement
    accept_inplace
        the graph may contain operations that work in place
    name
        shown in errors and profiles
    rebuild_strict
        False: givens may change types
    allow_input_downcast
        True: arguments may lose precision; False: never; None: only Python floats for floatX
    profile
        True: time every step (`Function.profile`)
    on_unused_input
        ``"raise"``, ``"warn"`` or ``"ignore"``
    trust_input
        do not check arguments: wrong ones may crash the process

    Raises
    ------
    TypeError, UnusedInputError, MissingInputError
        with the variable, and the line that made it

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dscalars("x", "y")
    >>> f = phintys.function([x, y], x + y)
    >>> f(1.5, 2.5)
    array(4.)
    """
    start = time.perf_counter()
    spec = specify(
        inputs,
        outputs,
        updates,
        givens,
        no_default_updates,
        rebuild_strict,
        allow_input_downcast,
        on_unused_input,
    )
    maker = FunctionMaker(spec, get_mode(mode), name, accept_inplace)
    maker.times["graph"] = time.perf_counter() - start - maker.times["rewriting"]
    return maker.create(trust_input=trust_input, profile=profile)


class FunctionMaker:
    """Rewrites the graph of a function once; `create` makes callables from it.

    Attributes: ``fgraph`` (rewritten), ``inputs``, ``outputs``, ``shared``, ``mode``, ``linker``,
    ``name``, ``times`` (seconds by stage).
    """

    def __init__(
        self,
        spec: Specification,
        mode: Mode,
        name: str | None = None,
        accept_inplace: bool = False,
        rewritten: bool = False,
    ) -> None:
        self.spec = spec
        self.inputs: list[In] = spec.inputs
        self.outputs: list[Out] = spec.outputs
        self.shared: list[SharedVariable] = spec.shared
        self.fgraph: FunctionGraph = spec.fgraph
        self.unpack = spec.unpack
        self.mode, self.name = mode, name
        self.linker: Linker = mode.linker
        self.accept_inplace = accept_inplace
        self.times: dict[str, float] = {"rewriting": 0.0}
        self.n_nodes = len(self.fgraph.apply_nodes)
        if not accept_inplace:
            _check_not_inplace(self.fgraph)
        if not rewritten:
            start = time.perf_counter()
            mode.optimizer.rewrite(self.fgraph)
            self.times["rewriting"] = time.perf_counter() - start

    @property
    def update_targets(self) -> list[int]:
        """For each update the position of its shared variable among the inputs of the graph."""
        mapping = self.fgraph.update_mapping
        return [mapping[i] for i in range(len(self.outputs), len(self.fgraph.outputs))]

    def create(
        self,
        trust_input: bool = False,
        profile: Any = None,
        containers: list[Container] | None = None,
    ) -> Any:
        """A callable; ``containers`` hold the values of the shared variables."""
        if containers is None:
            containers = [s.container for s in self.shared]
        start = time.perf_counter()
        if self.linker.is_native:
            from phintys.compile.native import make_native

            made = make_native(self, containers)
        else:
            made = Function(self, containers, self.linker.run(self.fgraph))
        self.times["code"] = time.perf_counter() - start
        if trust_input:
            made.trust_input = True
        made.attach_profile(profile)
        return made


def _check_not_inplace(fgraph: FunctionGraph) -> None:
    for node in fgraph.toposort():
        if node.op.destroy_map:
            raise TypeError(
                f"The graph contains {node.op}, which works in place. Pass accept_inplace=True if "
                "that is meant."
            )


class Function:
    """A compiled function.

    Call it with arguments by position or name.  ``trust_input = True`` skips the checks of
    arguments.
    """

    trust_input: bool = False

    def __init__(
        self,
        maker: FunctionMaker,
        containers: list[Container],
        run: Callable[[Sequence[Any]], list[Any]],
    ) -> None:
        self._setup(maker, containers)
        self._run = run
        self._copy = must_copy(maker.fgraph, [o.borrow for o in maker.outputs])

    def _setup(self, maker: FunctionMaker, containers: list[Container]) -> None:
        self.maker = maker
        self.name = maker.name
        self.containers = containers
        self.profile: Any = None
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
        results = self._run([*values, *(c.storage[0] for c in self.containers)])
        return self._finish(results)

    def _finish(self, results: list[Any]) -> Any:
        """Hand over results and updates; nothing is changed before everything is computed."""
        results = [
            copy_module.copy(r) if copy and r is not None else r
            for r, copy in zip(results, self._copy)
        ]
        n = len(self.maker.outputs)
        first = len(self.maker.inputs)
        for position, new in zip(self.maker.update_targets, results[n:]):
            self.containers[position - first].storage[0] = new
        return results[0] if self.maker.unpack == "single" else results[:n]

    def _convert(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """Arguments by position, converted to the types of the inputs."""
        values = self._bind(args, kwargs) if kwargs or len(args) != len(self.maker.inputs) else args
        out = []
        for i, (spec, value) in enumerate(zip(self.maker.inputs, values)):
            try:
                out.append(spec.filter(value))
            except (TypeError, ValueError) as exc:
                label = f" {spec.name!r}" if spec.name else ""
                of = f" of function {self.name!r}" if self.name else ""
                raise type(exc)(f"Bad argument {i}{label}{of}: {exc}") from None
        self._separate(out)
        return out

    def _separate(self, values: list[Any]) -> None:
        """Copy arguments that may be overwritten and share memory with another one."""
        for i, spec in enumerate(self.maker.inputs):
            if not spec.mutable:
                continue
            share = spec.variable.type.may_share_memory
            if any(j != i and share(values[i], other) for j, other in enumerate(values)):
                values[i] = copy_module.copy(values[i])

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
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
                        f"{self._label()} misses argument {i}, {spec.variable} "
                        f"(type {spec.variable.type}). Its inputs: {self._signature()}."
                    )
                values[i] = spec.value.value
        return values

    def _label(self) -> str:
        return f"Function {self.name!r}" if self.name else "The function"

    def _signature(self) -> str:
        return ", ".join(i.name or f"<{i.variable.type}>" for i in self.maker.inputs) or "none"

    # ----- state
    def get_shared(self) -> list[SharedVariable]:
        """The shared variables that the function reads or updates."""
        return list(self.maker.shared)

    def free(self) -> None:
        """Release memory kept between calls: there is none, buffers belong to one call."""

    def attach_profile(self, profile: Any) -> None:
        """Start to collect times in ``self.profile``.

        ``profile`` is True, a heading, or a `ProfileStats` to add to; None asks ``config.profile``.
        """
        from phintys.config import config

        if self.profile is None and (profile or (profile is None and config.profile)):
            from phintys.compile.profile import ProfileStats

            name = profile if isinstance(profile, str) else ""
            stats = profile if isinstance(profile, ProfileStats) else ProfileStats(name)
            stats.attach(self)

    def copy(
        self,
        share_memory: bool = False,
        swap: dict[SharedVariable, SharedVariable] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: Any = None,
    ) -> Any:
        """Another function from the same rewritten graph.

        Parameters
        ----------
        share_memory
            accepted for compatibility: compiled functions keep no buffers to share
        swap
            shared variables to exchange for others of the same type
        delete_updates
            the copy does not update shared variables
        name, profile
            of the copy
        """
        maker = self.maker
        replaced = [_swapped(s, swap or {}) for s in maker.shared]
        unknown = [s for s in swap or {} if s not in maker.shared]
        if unknown:
            raise ValueError(f"{unknown[0]} is not a shared variable of this function.")
        fgraph = maker.fgraph.clone()
        if delete_updates:
            for i in reversed(range(len(maker.outputs), len(fgraph.outputs))):
                fgraph.remove_output(i)
        spec = Specification(maker.inputs, maker.outputs, replaced, fgraph, maker.unpack)
        new = FunctionMaker(spec, maker.mode, name or maker.name, True, rewritten=True)
        containers = [
            old if s is original else s.container
            for s, original, old in zip(replaced, maker.shared, self.containers)
        ]
        return new.create(self.trust_input, profile, containers)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        containers = [copy_module.deepcopy(c, memo) for c in self.containers]
        return self.maker.create(self.trust_input, None, containers)

    def __reduce__(self) -> Any:
        maker = self.maker
        values = [c.storage[0] for c in self.containers]
        return _rebuild, (
            maker.inputs,
            maker.outputs,
            maker.shared,
            maker.fgraph,
            maker.unpack,
            maker.mode,
            maker.name,
            values,
            self.trust_input,
        )

    def dprint(self, **kwargs: Any) -> Any:
        """Print the rewritten graph; see `phintys.dprint`."""
        return late["dprint"](self, **kwargs)

    def __str__(self) -> str:
        return f"<{self._label()} of {self._signature()}, mode {self.maker.linker.name}>"

    __repr__ = __str__


def _swapped(s: SharedVariable, swap: dict[SharedVariable, SharedVariable]) -> SharedVariable:
    new = swap.get(s)
    if new is None:
        return s
    if not isinstance(new, SharedVariable):
        raise TypeError(f"swap exchanges shared variables, not {new!r}.")
    if not s.type.in_same_class(new.type):
        raise TypeError(f"{new} of type {new.type} cannot take the place of {s} of type {s.type}.")
    return new


def _rebuild(
    inputs: Any,
    outputs: Any,
    shared: Any,
    fgraph: Any,
    unpack: str,
    mode: Mode,
    name: Any,
    values: list[Any],
    trust: bool,
) -> Any:
    spec = Specification(inputs, outputs, shared, fgraph, unpack)
    maker = FunctionMaker(spec, mode, name, accept_inplace=True, rewritten=True)
    containers = [s.container for s in shared]
    for c, value in zip(containers, values):
        c.storage[0] = value
    return maker.create(trust, None, containers)


# ------------------------------------------------------------------------ Variable.eval


def evaluate(variable: Variable, inputs_to_values: Any = None, **kwargs: Any) -> Any:
    """``Variable.eval``: compile for the inputs, keep the function on the variable, call it."""
    from phintys.graph.traversal import ancestors, get_var_by_name

    values: dict[Variable, Any] = {}
    for key, value in dict(inputs_to_values or {}).items():
        if isinstance(key, str):
            found = get_var_by_name([variable], key)
            if len(found) != 1:
                names = sorted({v.name for v in ancestors([variable]) if v.name})
                raise ValueError(
                    f"{len(found) or 'No'} variables of the graph are called {key!r}. Names in it: "
                    f"{', '.join(names) or 'none'}."
                )
            key = found[0]
        elif not isinstance(key, Variable):
            raise TypeError(f"Keys of eval are variables or names, not {key!r}.")
        values[key] = value
    inputs = sorted(values, key=id)
    cache = variable.__dict__.setdefault("_cached_functions", {})
    key = (tuple(inputs), tuple(sorted((k, str(v)) for k, v in kwargs.items())))
    if key not in cache:
        cache[key] = function(inputs, variable, **kwargs)
    return cache[key](*(values[v] for v in inputs))


late["eval"] = evaluate
late["function"] = function
