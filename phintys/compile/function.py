"""`function` makes a callable from symbolic inputs and outputs; `evaluate` is ``Variable.eval``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from types import NoneType
from typing import Any

from phintys.compile.inputs import Specification, specify
from phintys.compile.io import In, Out
from phintys.compile.linker import Linker
from phintys.compile.mode import Mode, get_mode
from phintys.compile.profile import attach_profile
from phintys.config import ABOUT_CACHE, config
from phintys.graph.collection import collection_paused
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.fingerprint import fingerprint
from phintys.graph.shared import Container, SharedVariable
from phintys.graph.traversal import ancestors, get_var_by_name
from phintys.graph.variable import Variable, late_bound
from phintys.locks import exclusive
from phintys.memo import Memo
from phintys.rewriting.graph import active_mode
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
        a list (or tuple) of variables or `In`
    outputs
        a variable or `Out` (a call returns its value), a list of them (a call returns a list), or
        None (a call returns an empty list)
    mode
        a name or a `Mode`; None: ``config.mode``
    updates
        dict or pairs: shared variable -> expression, its new value after each call.  All
        expressions are computed from the old values.
    givens
        dict or pairs: variable -> replacement in the graph
    no_default_updates
        True, or a list of shared variables: their ``default_update`` is not applied
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
        chosen = get_mode(mode)
        maker = chosen.function_maker(spec, chosen, name, accept_inplace)
        maker.times["graph"] = time.perf_counter() - start - maker.times["rewriting"]
        return maker.create(trust_input=trust_input, profile=profile)


class FunctionMaker:
    """Rewrites the graph of a function, and lowers it, when needed; `create` makes callables.

    Both happen once, with the settings at the time the maker was made.  Attributes: ``inputs``,
    ``outputs``, ``shared``, ``mode``, ``linker``, ``name``, ``times`` (seconds by stage),
    ``n_nodes`` (before rewriting).
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
        self.unpack = spec.unpack
        self.mode, self.name = mode, name
        self.linker: Linker = mode.linker
        self.accept_inplace = accept_inplace
        self.times: dict[str, float] = {"rewriting": 0.0}
        self.n_nodes = len(spec.fgraph.apply_nodes)
        self._rewritten = rewritten
        self._program: Any = None
        self._settings = config.values()
        if not accept_inplace:
            _check_not_inplace(spec.fgraph)

    @property
    def fgraph(self) -> FunctionGraph:
        """The rewritten graph, which is rewritten at the first use."""
        if not self._rewritten:
            self._rewrite()
        return self.spec.fgraph

    @exclusive
    def _rewrite(self) -> None:
        if self._rewritten:
            return
        start = time.perf_counter()
        with self.settings_as_made(), active_mode(self.spec.fgraph, self.mode):
            self.mode.optimizer.rewrite(self.spec.fgraph)
        self._rewritten = True
        self.times["rewriting"] = time.perf_counter() - start

    @property
    def program(self) -> Any:
        """The Program of the rewritten graph, which is lowered at the first use."""
        if self._program is None:
            self._lower()
        return self._program

    @exclusive
    def _lower(self) -> None:
        if self._program is not None:
            return
        from phintys.lowering.from_graph import lower_graph

        fgraph = self.fgraph
        start = time.perf_counter()
        with self.settings_as_made():
            self._program = lower_graph(fgraph, len(self.inputs), self.update_targets)
        self.times["lowering"] = time.perf_counter() - start

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
        """The key of the machine code in caches; None if it cannot be cached."""
        return self._key

    @cached_property
    def _key(self) -> str | None:
        """The key of the machine code in caches.

        None if the graph or the rewrites contain code of users, and if the rewrites are to be
        checked or traced, since a hit would skip them.
        """
        query = self.mode.key
        graph = None if query is None else fingerprint(self.spec.fgraph)
        if graph is None or config.check_rewrites or current_recorder() is not None:
            return None
        names = [v.name for v in self.spec.fgraph.inputs]  # the code contains them, for messages
        interface = (len(self.inputs), names, self.update_targets, self.unpack == "single")
        settings = sorted(item for item in self._settings.items() if item[0] not in ABOUT_CACHE)
        return repr((graph, query, self._rewritten, interface, settings))

    @property
    def update_targets(self) -> list[int]:
        """The position, among the inputs of the graph, of the shared variable of each update."""
        fgraph = self.spec.fgraph
        return [fgraph.update_mapping[i] for i in range(len(self.outputs), len(fgraph.outputs))]

    @exclusive
    def create(
        self,
        trust_input: bool = False,
        profile: Any = None,
        containers: list[Container] | None = None,
    ) -> Any:
        """A callable; ``containers`` hold the values of the shared variables (None: their own)."""
        if containers is None:
            containers = [s.container for s in self.shared]
        start, before = time.perf_counter(), self._seconds_before_code()
        made = self.linker.make(self, containers)
        earlier_stages = self._seconds_before_code() - before  # those that ran meanwhile
        self.times["code"] = time.perf_counter() - start - earlier_stages
        if trust_input:
            made.trust_input = True
        attach_profile(made, profile)
        return made

    @exclusive
    def copy(
        self,
        containers: list[Container],
        swap: dict[SharedVariable, SharedVariable],
        delete_updates: bool = False,
        name: str | None = None,
    ) -> tuple[FunctionMaker, list[Container]]:
        """A maker with the same rewritten graph, and the containers of its shared variables.

        ``swap`` maps shared variables to those that take their places; the others keep their
        ``containers``.  Raises ValueError or TypeError if ``swap`` does not fit.
        """
        unknown = [s for s in swap if s not in self.shared]
        if unknown:
            raise ValueError(f"{unknown[0]} is not a shared variable of this function.")
        replaced = [_swapped(s, swap) for s in self.shared]
        fgraph = self.fgraph.clone()
        if delete_updates:
            for i in reversed(range(len(self.outputs), len(fgraph.outputs))):
                fgraph.remove_output(i)
        spec = Specification(self.inputs, self.outputs, replaced, fgraph, self.unpack)
        new = FunctionMaker(spec, self.mode, name or self.name, True, rewritten=True)
        kept = [
            old if s is original else s.container
            for s, original, old in zip(replaced, self.shared, containers)
        ]
        return new, kept

    def rebuild(self, values: list[Any], trust_input: bool) -> Any:
        """A callable whose shared variables hold ``values``; unpickling a `Function` calls it."""
        containers = [s.container for s in self.shared]
        for container, value in zip(containers, values, strict=True):
            container.storage[0] = value
        return self.create(trust_input, None, containers)

    def __reduce__(self) -> Any:
        spec = (self.inputs, self.outputs, self.shared, self.spec.fgraph, self.unpack)
        return _rebuild, (*spec, self.mode, self.name, self._rewritten)


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


def _rebuild(
    inputs: Any,
    outputs: Any,
    shared: Any,
    fgraph: Any,
    unpack: str,
    mode: Mode,
    name: Any,
    rewritten: bool,
) -> FunctionMaker:
    spec = Specification(inputs, outputs, shared, fgraph, unpack)
    return FunctionMaker(spec, mode, name, accept_inplace=True, rewritten=rewritten)


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
