"""`function` makes a callable from symbolic inputs and outputs; `evaluate` is ``Variable.eval``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from types import NoneType
from typing import Any

from phintys.backends import identity
from phintys.compile.callable import dict_class
from phintys.compile.inputs import Specification, specify
from phintys.compile.io import SymbolicInput, SymbolicOutput
from phintys.compile.linker import Linker
from phintys.compile.mode import Mode, get_mode
from phintys.compile.profile import attach_profile, counted_rewrites
from phintys.config import config
from phintys.graph.collection import collect_young, collection_paused
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.fingerprint import fingerprint
from phintys.graph.origin import stacklevel
from phintys.graph.shared import Container, SharedVariable
from phintys.graph.traversal import ancestors, get_var_by_name
from phintys.graph.variable import Variable, late_bound
from phintys.locks import exclusive
from phintys.memo import Memo
from phintys.rewriting.graph import active_mode
from phintys.rewriting.origins import CheckStackTraceRewriter
from phintys.rewriting.trace import current_recorder


@exclusive
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
    """Compile a function of ``inputs`` that computes ``outputs``; return a `Function`.

    Parameters
    ----------
    inputs
        a list (or tuple) of variables or `In`; a pair ``(x, 3.0)`` is an input with a default value
        (see `as_input`)
    outputs
        a variable or `Out` (a call returns its value), a list of them (a call returns a list), a
        dict of them (a call returns a dict with the same keys in the same order), or None (a call
        returns an empty list).  ``f(..., output_subset=[...])`` computes, and returns, some of
        them, by position or key; the updates are done.
    mode
        a name or a `Mode`; None: ``config.mode``
    updates
        dict or pairs: shared variable -> expression, its new value after each call.  All
        expressions are computed from the old values.
    givens
        dict or pairs: variable -> replacement in the graph
    no_default_updates
        True, or a list of shared variables: their ``default_update`` is not applied.  Deprecated,
        with a DeprecationWarning: no default update is needed if updates are stated
    accept_inplace
        True: the graph may contain operations that work in place
    name
        shown in errors and profiles
    rebuild_strict
        False: givens may change types
    allow_input_downcast
        True: arguments may lose precision; False: never; None: only Python floats for floatX
    profile
        True, a heading or a `ProfileStats`: collect times in `Function.profile`
    on_unused_input
        ``"raise"``, ``"warn"`` or ``"ignore"``; None: ``config.on_unused_input``
    trust_input
        True: arguments are not checked, and wrong ones may crash the process

    Raises
    ------
    MissingInputError, UnusedInputError
        if an input is missing, not used or given twice; the message names the variable and the
        line that made it
    TypeError, ValueError
        if an argument is not of the kind described above, or an update has another type than its
        shared variable
    UnsupportedError, CompilerError
        if the backend cannot compile the function on this machine

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dscalars("x", "y")
    >>> f = phintys.function([x, y], x + y)
    >>> f(1.5, 2.5)
    array(4.)
    """
    start = time.perf_counter()
    if no_default_updates is not False:
        message = "The no_default_updates parameter of function is deprecated: state the updates."
        warnings.warn(message, DeprecationWarning, stacklevel=stacklevel())
    with collection_paused():
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
        mode = get_mode(mode)
        maker = mode.function_maker(
            spec.arguments,
            spec.outputs,
            mode,
            accept_inplace=accept_inplace,
            profile=profile,
            name=name,
            trust_input=trust_input,
            specification=spec,
        )
        maker.times["graph"] = time.perf_counter() - start - maker.times["rewriting"]
        return maker.create()


class FunctionMaker:
    """Rewrites the graph of a function, and lowers it, when needed; `create` makes callables.

    Both happen once, with the settings at the time the maker was made.  Attributes: ``passed``
    (the inputs that calls pass, as `In`), ``outputs``, ``shared``, ``mode``, ``linker``, ``name``,
    ``times`` (seconds by stage), ``n_nodes`` (before rewriting).

    Parameters
    ----------
    inputs, outputs, mode, accept_inplace, profile, on_unused_input, name, trust_input
        see `function`
    function_class
        without effect: the linker of the mode makes the function objects
    fgraph
        the graph, if it exists already: its inputs are those of ``inputs``, its outputs those of
        ``outputs``
    no_fgraph_prep
        True: ``fgraph`` is not rewritten
    specification, rewritten
        what `specify` returned, instead of ``inputs`` and ``outputs``; whether its graph is
        rewritten
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        outputs: Any,
        mode: Any = None,
        accept_inplace: bool = False,
        function_class: Any = None,
        profile: Any = None,
        on_unused_input: str | None = None,
        fgraph: FunctionGraph | None = None,
        name: str | None = None,
        no_fgraph_prep: bool = False,
        trust_input: bool = False,
        *,
        specification: Specification | None = None,
        rewritten: bool = False,
    ) -> None:
        mode = get_mode(mode)
        if specification is None:
            specification = specify(inputs, outputs, on_unused_input=on_unused_input, fgraph=fgraph)
            rewritten = no_fgraph_prep and fgraph is not None
        spec = self.spec = specification
        self.passed: list[SymbolicInput] = spec.inputs
        self.outputs: list[SymbolicOutput] = spec.outputs
        self.shared: list[SharedVariable] = spec.shared
        self.unpack = spec.unpack
        self.mode, self.name = mode, name
        self.linker: Linker = mode.linker
        self.accept_inplace = accept_inplace
        self.profile, self.trust_input = profile, trust_input
        self.times: dict[str, float] = {"rewriting": 0.0}
        self.n_nodes = len(spec.fgraph.apply_nodes)
        self._rewritten = rewritten
        self._program: Any = None
        self._settings = config.values()
        #: the graph that users may change; None until somebody asks for it
        self._editable: FunctionGraph | None = None
        #: the maker of that graph as of its change `_taken`; None: this one
        self._current: FunctionMaker | None = None
        self._taken: object = None
        #: the inputs of that graph that are not passed -> the shared variables they stand for
        self._cells: dict[Variable, SharedVariable] = {}
        if not accept_inplace:
            _check_not_inplace(spec.fgraph)
        if fgraph is not None:
            self._rewrite()
            self.spec = self._specification_of(fgraph, self.shared, {})
            self._hand_out(fgraph)

    @cached_property
    def inputs(self) -> list[SymbolicInput]:
        """An `In` for each input of ``fgraph``: those that calls pass, then the shared variables.

        That of a shared variable is implicit, and has its cell and its update.
        """
        return self.spec.all_inputs()

    @property
    def expanded_inputs(self) -> list[SymbolicInput]:
        """Other name of `inputs`."""
        return self.inputs

    @property
    def required(self) -> list[bool]:
        """For each of `inputs`, whether a call must pass it: it has no value."""
        return [i.value is None for i in self.inputs]

    @property
    def unpack_single(self) -> bool:
        """Whether a call returns one value, not a list."""
        return self.unpack == "single"

    @property
    def return_none(self) -> bool:
        """Whether a call returns None."""
        return self.unpack == "nothing"

    @property
    def graph(self) -> FunctionGraph:
        """The rewritten graph, which is rewritten at the first use.  Nobody may change it."""
        if not self._rewritten:
            self._rewrite()
        return self.spec.fgraph

    @property
    def fgraph(self) -> FunctionGraph:
        """The rewritten graph, which may be changed; functions that exist already do not change.

        It is a copy of `graph`, or the graph that the maker was given.
        """
        if self._editable is None:
            self._copy_graph()
        return self._editable  # type: ignore[return-value]

    @exclusive
    def _copy_graph(self) -> None:
        if self._editable is None:
            self._hand_out(self._specification_of(self.graph, self.shared, {}).fgraph)

    def _hand_out(self, fgraph: FunctionGraph) -> None:
        """Make a graph, which equals `graph`, the one that users may change."""
        self._editable, self._taken = fgraph, fgraph.last_change
        self._cells = dict(zip(fgraph.inputs[len(self.passed) :], self.shared, strict=True))

    @exclusive
    def current(self) -> FunctionMaker:
        """The maker of the functions of `fgraph` as it is now: this one, until it is changed.

        Raises ValueError if the changed graph does not have the arguments or the results any more.
        """
        fgraph = self._editable
        if fgraph is not None and fgraph.last_change is not self._taken:
            spec = self._specification_of(fgraph, self._shared_of(fgraph), {})
            self._current = self._like(spec, self.name, rewritten=True)
            self._current._settings = self._settings
            self._taken = fgraph.last_change
        return self._current or self

    def _shared_of(self, fgraph: FunctionGraph) -> list[SharedVariable]:
        """The shared variables of a graph that was changed; ValueError if it cannot be compiled."""
        n = len(self.passed)
        _check_interface(fgraph, self.spec.held.inputs[:n], len(self.outputs))
        found: list[SharedVariable] = []
        for v in fgraph.inputs[n:]:
            cell = self._cells.get(v, v)
            if not isinstance(cell, SharedVariable):
                raise ValueError(
                    f"{v} (type {v.type}), which is not a shared variable, was added to the inputs "
                    "of the graph of a function: make another function, whose calls pass it."
                )
            found.append(cell)
        return found

    @exclusive
    def _rewrite(self) -> None:
        if self._rewritten:
            return
        start = time.perf_counter()
        fgraph = self.spec.fgraph
        with self.settings_as_made(), active_mode(fgraph, self.mode), counted_rewrites(self):
            if config.check_stack_trace != "off":
                CheckStackTraceRewriter().rewrite(fgraph)
            self.mode.optimizer.rewrite(fgraph)
        fgraph.forget_changes()
        self._rewritten = True
        self.times["rewriting"] = time.perf_counter() - start

    @property
    def program(self) -> Any:
        """The Program of the rewritten graph; it is lowered when used first."""
        if self._program is None:
            self._lower()
        return self._program

    @exclusive
    def _lower(self) -> None:
        if self._program is not None:
            return
        from phintys.lowering.from_graph import lower_graph

        fgraph = self.graph
        start = time.perf_counter()
        with self.settings_as_made():
            self._program = lower_graph(fgraph, len(self.passed), self.update_targets)
        self.times.setdefault("lowering", time.perf_counter() - start)

    @exclusive
    def program_for_code(self) -> Any:
        """The Program, for code generation: neither it nor the graph needs memory afterwards.

        It names no nodes, which `program` has for messages, and is not kept.
        """
        if self._program is not None:
            return self._program
        from phintys.lowering.from_graph import lower_graph

        self.graph  # noqa: B018 - rewritten before the time is taken
        start = time.perf_counter()
        with self.settings_as_made():
            program = lower_graph(
                self.graph, len(self.passed), self.update_targets, release=self._release
            )
        self.times["lowering"] = time.perf_counter() - start
        return program

    def _release(self) -> None:
        """Free the memory of the graph, until it is asked for."""
        self.spec.pack()
        collect_young()

    def _seconds_before_code(self) -> float:
        """The time that the stages before code generation have taken so far."""
        return self.times["rewriting"] + self.times.get("lowering", 0.0)

    def settings_as_made(self) -> Any:
        """A context manager: this context has the settings with which the maker was made."""
        now = config.values()
        changed = {k: v for k, v in self._settings.items() if now[k] != v}
        return config.change_flags(**changed)

    @property
    def key(self) -> str | None:
        """The key of the machine code in caches; None if it cannot be cached.

        It cannot if the graph or the rewrites contain code of users, and if the rewrites are to be
        checked or traced, since a hit would skip them.
        """
        origin = self._origin
        if origin is None or config.check_rewrites or current_recorder() is not None:
            return None
        names = [v.name for v in self.spec.held.inputs]  # the code contains them, for messages
        interface = (len(self.passed), names, self.update_targets, self.unpack == "single")
        return repr((*origin, interface, config.of_code(self._settings)))

    @cached_property
    def _origin(self) -> tuple[str, Any, bool] | None:
        """The hash of a graph, the rewrites, and whether the graph is one after these rewrites.

        The graph is the one before rewriting, unless the rewritten one was first asked for.  None
        if the code cannot be cached.
        """
        query = self.mode.key
        graph = None if query is None else fingerprint(self.spec.fgraph)
        return None if graph is None else (graph, query, self._rewritten)

    def has_code_of(self, origin: tuple[str, Any, bool]) -> None:
        """Note that the graph has the code of another one; see `_origin`."""
        self._origin = origin

    @property
    def update_targets(self) -> list[int]:
        """The position, among the inputs of the graph, of the shared variable of each update."""
        mapping, n = self.spec.held.update_mapping, len(self.spec.held.outputs)
        return [mapping[i] for i in range(len(self.outputs), n)]

    @exclusive
    def create(
        self,
        input_storage: Sequence[Any] | None = None,
        storage_map: Any = None,
        *,
        trust_input: bool | None = None,
        profile: Any = None,
        containers: list[Container] | None = None,
    ) -> Any:
        """A callable of `fgraph` as it is now.

        Parameters
        ----------
        input_storage
            the default values of the inputs, or containers of them; None for those without
        storage_map
            without effect: functions keep no intermediate results
        trust_input, profile
            see `function`; None: those of the maker
        containers
            the cells of the shared variables; None: their own
        """
        maker = self.current()
        if containers is None:
            containers = [s.container for s in maker.shared]
        made = maker._make(containers)
        made.maker = self
        if self.trust_input if trust_input is None else trust_input:
            made.trust_input = True
        if input_storage is not None:
            made.arguments.set_defaults(
                [x.value if isinstance(x, Container) else x for x in input_storage]
            )
        if self.unpack == "dict":
            made.__class__ = dict_class(type(made))
        attach_profile(made, self.profile if profile is None else profile)
        return made

    def _make(self, containers: list[Container]) -> Any:
        """A callable of `graph`, made by the linker."""
        start, before = time.perf_counter(), self._seconds_before_code()
        made = self.linker.make(self, containers)
        earlier_stages = self._seconds_before_code() - before  # those that ran meanwhile
        self.times["code"] = time.perf_counter() - start - earlier_stages
        return made

    @exclusive
    def copy(
        self,
        containers: list[Container],
        swap: dict[SharedVariable, SharedVariable],
        delete_updates: bool = False,
        name: str | None = None,
        outputs: Sequence[int] | None = None,
    ) -> tuple[FunctionMaker, list[Container]]:
        """A maker with the same `graph`, and the containers of its shared variables.

        Parameters
        ----------
        containers
            those of the function that is copied; inputs kept in cells get cells of their own,
            unless ``outputs`` is given
        swap
            shared variable -> the one that takes its place; ValueError or TypeError if it does not
            fit
        delete_updates
            leave out the updates
        name
            None: the same name
        outputs
            the positions of the outputs that are computed, ascending, as a list; None: all
        """
        unknown = [s for s in swap if s not in self.shared]
        if unknown:
            raise ValueError(f"{unknown[0]} is not a shared variable of this function.")
        replaced = [_swapped(s, swap) for s in self.shared]
        spec = self._specification_of(self.graph, replaced, dict(zip(self.shared, replaced)))
        fgraph, n = spec.fgraph, len(self.outputs)
        is_removed = [outputs is not None and i not in outputs for i in range(n)]
        is_removed += [delete_updates] * (len(fgraph.outputs) - n)
        for i in reversed([i for i, removed in enumerate(is_removed) if removed]):
            fgraph.remove_output(i)
        if outputs is not None:
            spec.outputs = [self.outputs[i] for i in outputs]
            spec.unpack, spec.keys = "list", []
        own = [s for i, s in spec.kept.items() if i.source is None] if outputs is None else []
        new = self._like(spec, name or self.name, rewritten=True)
        cells = [
            s.container if s is not original else deepcopy(old) if s in own else old
            for s, original, old in zip(replaced, self.shared, containers)
        ]
        return new, cells

    @exclusive
    def with_shared(self, shared: list[SharedVariable]) -> FunctionMaker:
        """A maker of the same function of other shared variables, of the same types."""
        spec = self._specification_of(self.spec.fgraph, shared, dict(zip(self.shared, shared)))
        new = self._like(spec, self.name, self._rewritten)
        new._settings = self._settings
        return new

    @exclusive
    def with_linker(self, linker: Linker) -> FunctionMaker:
        """A maker of the same function with another linker."""
        spec = self._specification_of(self.spec.fgraph, self.shared, {})
        new = _rebuild(type(self), spec, self.mode.with_linker(linker), self.name, rewritten=False)
        new._settings = self._settings
        return new

    def _specification_of(
        self,
        fgraph: FunctionGraph,
        shared: list[SharedVariable],
        new: Mapping[SharedVariable, SharedVariable],
    ) -> Specification:
        """The specification with a copy of a graph whose last inputs are ``shared``.

        ``new`` maps shared variables of this maker to those that take their places, if others do.
        """
        memo = {
            v: s if s.type == v.type else _on_cell(v, s)
            for v, s in zip(fgraph.inputs[len(self.passed) :], shared, strict=True)
        }
        cells = {i: new.get(s, s) for i, s in self.spec.kept.items()}
        return replace(
            self.spec,
            shared=shared,
            held=fgraph.clone_get_equiv(memo=memo, copy_inputs=False)[0],
            kept={i: s for i, s in cells.items() if s in shared},
        )

    def _like(self, spec: Specification, name: str | None, rewritten: bool) -> FunctionMaker:
        """A maker of the same class, with the mode."""
        return _rebuild(type(self), spec, self.mode, name, rewritten)

    def rebuild(self, values: list[Any], trust_input: bool, defaults: Sequence[Any] = ()) -> Any:
        """A callable whose shared variables hold ``values``; unpickling a `Function` calls it.

        ``defaults`` are the default values of arguments.
        """
        if not config.unpickle_function:
            return None
        containers = [s.container for s in self.shared]
        for container, value in zip(containers, values, strict=True):
            # an unpickled array has a dtype object of its own: calls would copy it
            container.storage[0] = value if value is None else container.type.filter(value)
        f = self.create(trust_input=trust_input, containers=containers)
        if any(value is not None for value in defaults):
            f.arguments.set_defaults(defaults)
        return f

    def __reduce__(self) -> Any:
        maker = self.current()
        known = vars(maker).get("_origin") if maker._rewritten else None
        origin = known, identity.own_version(), config.of_code(maker._settings)
        return _rebuild, (type(self), maker.spec, self.mode, self.name, maker._rewritten, origin)


def _check_interface(fgraph: FunctionGraph, arguments: Sequence[Variable], n_results: int) -> None:
    """ValueError if a graph does not begin with these inputs, or has not as many results."""
    missing = [v for v in arguments if v not in fgraph.inputs]
    if missing:
        raise ValueError(
            f"The input {missing[0]} was removed from the graph of a function, which calls pass: "
            "make another function."
        )
    if fgraph.inputs[: len(arguments)] != list(arguments):
        raise ValueError("The graph of a function was changed: its inputs have another order.")
    found = len(fgraph.outputs) - len(fgraph.update_mapping)
    if found != n_results or any(i < found for i in fgraph.update_mapping):
        raise ValueError(
            f"The graph of a function was changed: it has {found} results before the updates, not "
            f"{n_results}."
        )


def _check_not_inplace(fgraph: FunctionGraph) -> None:
    for node in fgraph.toposort():
        if node.op.destroy_map:
            raise TypeError(
                f"The graph contains {node.op}, which works in place. Pass accept_inplace=True if "
                "this is intended."
            )


def _swapped(s: SharedVariable, swap: dict[SharedVariable, SharedVariable]) -> SharedVariable:
    new = swap.get(s)
    if new is None:
        return s
    if not isinstance(new, SharedVariable):
        raise TypeError(f"swap exchanges shared variables, not {new!r}.")
    if not s.type.in_same_class(new.type):
        raise TypeError(f"{new} of type {new.type} cannot take the place of {s} of type {s.type}.")
    return new


def _on_cell(v: Variable, s: SharedVariable) -> Variable:
    """A copy of an input of a graph, with the value and the name of a shared variable."""
    copy = v.clone(name=s.name)
    if isinstance(copy, SharedVariable):
        copy.container = s.container
    return copy


def _rebuild(
    cls: type[FunctionMaker],
    spec: Specification,
    mode: Mode,
    name: Any,
    rewritten: bool,
    origin: Any = (None, None, None),
) -> FunctionMaker:
    """A maker.

    ``origin``: the result of `FunctionMaker._origin` of another one, the version of this package
    whose rewrites it names, and the settings that it was for.
    """
    maker = cls(
        *(spec.arguments, spec.outputs, mode, True),
        name=name,
        specification=spec,
        rewritten=rewritten,
    )
    known, version, settings = origin
    if known is not None:
        here = identity.own_version(), config.of_code(config.values())
        if (version, settings) == here:
            maker.has_code_of(known)
    return maker


# ------------------------------------------------------------------------ Variable.eval


#: types of arguments of `function` that can be part of a cache key: equal ones mean the same
_CACHEABLE = (str, bool, NoneType, Mode)


def evaluate(variable: Variable, inputs_to_values: Any = None, **kwargs: Any) -> Any:
    """The value of a variable (``Variable.eval``), computed by a compiled function.

    ``inputs_to_values`` maps variables, or names of variables of the graph, to values; ``kwargs``
    are arguments of `function`.  The variable keeps the last few functions, except those with
    ``kwargs`` that hold variables or values (``givens``, ``updates``).

    Raises ValueError if a name does not occur exactly once, else what `function` and the call
    raise.
    """
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
    kwargs["mode"] = get_mode(kwargs.get("mode"))
    if not all(isinstance(value, _CACHEABLE) for value in kwargs.values()):
        return function(inputs, variable, **kwargs)(*(values[v] for v in inputs))
    known = variable.__dict__.get("_cached_functions")
    if known is None:
        fresh: Memo[Any, Any] = Memo(8, "functions of eval")
        known = variable.__dict__.setdefault("_cached_functions", fresh)
    key = (*inputs, *sorted(kwargs.items()), *config.values().items())
    f = known[key]
    if f is None:
        f = known.keep(key, function(inputs, variable, **kwargs))
    return f(*(values[v] for v in inputs))


late_bound["eval"] = evaluate
late_bound["function"] = function
late_bound["function_maker"] = FunctionMaker
