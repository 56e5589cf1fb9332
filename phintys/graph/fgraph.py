"""`FunctionGraph`, a mutable graph with given inputs and outputs, and `FrozenFunctionGraph`.

A `FunctionGraph` maintains the uses of each variable (``clients``), calls the attached features on
every change, and checks that a replacement is legal.  There is one conversion each way between the
two: `FunctionGraph.freeze` and `FrozenFunctionGraph.unfreeze`.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, KeysView, Mapping, Sequence
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Any

from phintys.errors import AlreadyThere, MissingInputError
from phintys.graph.clients import Client, Clients, OrderedSet, Output
from phintys.graph.clone import clone_get_equiv
from phintys.graph.features import CALLBACKS, ReplaceValidate
from phintys.graph.frozen import FrozenGraph
from phintys.graph.notation import as_string
from phintys.graph.origin import describe
from phintys.graph.traversal import (
    applys_between,
    graph_inputs,
    sorted_nodes,
    toposort_with_orderings,
)
from phintys.graph.variable import Apply, AtomicVariable, Constant, Variable, late_bound


class FunctionGraph:
    """The graph between ``inputs`` and ``outputs``, which can be changed in place.

    Parameters
    ----------
    inputs
        variables without owners; found by traversal if omitted
    outputs
        the variables to compute
    features
        objects whose callbacks are called on changes (`phintys.graph.features`)
    clone
        whether to copy the graph first (the default), so that the given variables do not change
    update_mapping
        ``{output position: input position}`` of the outputs that are updates of shared variables
    memo, copy_inputs, copy_orphans
        passed to `clone_get_equiv`

    Attributes
    ----------
    inputs, outputs
        lists of variables
    apply_nodes
        the set of nodes; ``node.tag.imported_by`` and ``removed_by`` list the reasons of changes
        that added a node and removed it
    execute_callbacks_times
        feature -> the seconds that its callbacks have taken

    Raises
    ------
    ValueError
        if there are no outputs, or an input has an owner
    MissingInputError
        if the outputs depend on a variable that is neither an input nor a constant

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> fgraph = FunctionGraph([x, y], [x * y + x], clone=False)
    >>> fgraph.toposort()
    [Mul(x, y), Add(Mul.0, x)]
    >>> fgraph.clients[x]
    [(Mul(x, y), 0), (Add(Mul.0, x), 1)]
    >>> fgraph.replace(y, x)
    >>> fgraph.toposort()
    [Mul(x, x), Add(Mul.0, x)]
    """

    def __init__(
        self,
        inputs: Sequence[Variable] | None = None,
        outputs: Sequence[Variable] | None = None,
        features: Sequence[Any] | None = None,
        clone: bool = True,
        update_mapping: dict[int, int] | None = None,
        **clone_kwds: Any,
    ) -> None:
        if outputs is None:
            raise ValueError("No outputs specified: a FunctionGraph needs outputs.")
        if inputs is None:
            inputs = [v for v in graph_inputs(outputs) if not isinstance(v, AtomicVariable)]
        order: list[Apply] = []
        if clone:
            memo = clone_get_equiv(inputs, outputs, **clone_kwds)
            if not clone_kwds.get("memo"):  # a given memo may map to nodes that are not copies
                order = [memo[n] for n in memo if isinstance(n, Apply)]
            outputs = [memo[v] for v in outputs]
            inputs = [memo[v] for v in inputs]
        self._clear()
        self.update_mapping = dict(update_mapping or {})
        # Attached first, so that a change that a later feature rejects can be rolled back.
        self.attach_feature(ReplaceValidate())
        for feature in features or ():
            self.attach_feature(feature)
        for v in inputs:
            if v.owner is not None:
                raise ValueError(
                    "One of the provided inputs is the output of an already existing node: "
                    f"{v} is computed by {v.owner.op}. Replace it by a variable without an owner "
                    "first (clone_replace)."
                )
        nodes = [Output(i).make_node(v) for i, v in enumerate(outputs)]
        self._fill(inputs, outputs, nodes, order)
        for callback in self._callbacks["on_import"]:
            for node in self.apply_nodes:
                callback(self, node, "init")

    def _fill(
        self,
        inputs: Iterable[Variable],
        outputs: Iterable[Variable],
        output_nodes: Iterable[Apply],
        order: Sequence[Apply] = (),
    ) -> None:
        """Fill an empty graph; ``order``: its nodes, inputs first, if they are known."""
        self.inputs, self.outputs = list(inputs), list(outputs)
        self._output_nodes = list(output_nodes)
        order = order or sorted_nodes([v.owner for v in self.outputs])
        known = set(self.inputs)
        roots: dict[Variable, Apply | None] = {
            v: node for node in order for v in node.inputs if v.owner is None and v not in known
        }
        roots.update((v, None) for v in self.outputs if v.owner is None and v not in known)
        _check_roots(roots)
        self.apply_nodes = OrderedSet(order)
        self._order = list(self.apply_nodes)
        self._known_change = _last_change[0]

    def _clear(self) -> None:
        """Initialise all attributes to those of an empty graph."""
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.apply_nodes: OrderedSet[Apply] = OrderedSet()
        self._clients: dict[Variable, Clients] | None = None
        self.update_mapping: dict[int, int] = {}
        self._output_nodes: list[Apply] = []
        self._order: list[Apply] | None = None
        #: a new object after each change of the inputs, the outputs, or the inputs of a node
        self.last_change: object = object()
        self._known_change = _last_change[0]
        #: feature -> the seconds that `execute_callbacks` has taken for it
        self.execute_callbacks_times: defaultdict[Any, float] = defaultdict(float)
        self._features: list[Any] = []
        self._index_features()

    @property
    def clients(self) -> dict[Variable, Clients]:
        """A dict from each variable of the graph to its uses, pairs (node, position of the input).

        The use as an output of the graph is a pair with an `Output` node.  The dict is made when it
        is first asked for, since it needs as much memory as the graph; then it is kept up to date.
        """
        if self._clients is None:
            self._clients = self._find_clients()
        return self._clients

    def _find_clients(self) -> dict[Variable, Clients]:
        """The uses in the order of an import of one output after the other."""
        clients = {v: Clients() for v in self.inputs}
        outputs = deque(zip(self.outputs, self._output_nodes))
        for node in self.apply_nodes:
            while outputs and outputs[0][0] in clients:
                v, client = outputs.popleft()
                clients[v][client, 0] = None
            for v in node.outputs:
                if v not in clients:
                    clients[v] = Clients()
            for i, v in enumerate(node.inputs):
                users = clients.get(v)
                if users is None:
                    users = clients[v] = Clients()
                users[node, i] = None
        for v, client in outputs:
            clients.setdefault(v, Clients())[client, 0] = None
        return clients

    def use_counts(self) -> dict[Variable, int]:
        """The number of uses of each variable that has one; does not make the table `clients`."""
        users = chain(self.apply_nodes, self._output_nodes)
        return dict(Counter(chain.from_iterable([node.inputs for node in users])))

    def forget_clients(self) -> None:
        """Drop the table of uses; it is made again when it is asked for."""
        self._clients = None

    @property
    def has_clients(self) -> bool:
        """Whether the table `clients` has been made."""
        return self._clients is not None

    @property
    def variables(self) -> KeysView[Variable]:
        """All variables of the graph."""
        return self.clients.keys()

    # ----------------------------------------------------------------- the interface
    def add_input(self, var: Variable, check: bool = True) -> None:
        """Append an input; with ``check`` nothing happens if ``var`` is one already."""
        if check and var in self.clients and var in self.inputs:
            return
        self.inputs.append(var)
        self.last_change = object()
        self.setup_var(var)

    def add_output(
        self, var: Variable, reason: str | None = None, import_missing: bool = False
    ) -> None:
        """Append an output, and import the nodes that compute it."""
        self.import_var(var, reason=reason, import_missing=import_missing)
        node = Output(len(self.outputs)).make_node(var)
        self.outputs.append(var)
        self._output_nodes.append(node)
        self.last_change = object()
        self.add_client(var, (node, 0))

    def setup_var(self, var: Variable) -> None:
        """Add a variable, without uses, to the table of uses."""
        if var not in self.clients:
            self.clients[var] = Clients()

    def get_clients(self, var: Variable) -> Clients:
        """The uses of ``var`` as (node, position) pairs; graph outputs are `Output` nodes."""
        return self.clients[var]

    def get_output_client(self, i: int) -> Client:
        """The (node, position) pair of the `Output` node of output ``i``."""
        return self._output_nodes[i], 0

    def add_client(self, var: Variable, new_client: Client) -> None:
        """Add a use of ``var``."""
        self.clients[var].append(new_client)

    def remove_client(
        self,
        var: Variable,
        client_to_remove: Client,
        reason: Any = None,
        remove_if_empty: bool = False,
    ) -> None:
        """Remove a use of ``var``, and then all nodes and constants that have no use left.

        ``remove_if_empty`` also removes other variables without an owner and without a use, unless
        they are inputs of the graph.
        """
        work = [(var, client_to_remove)]
        while work:
            v, client = work.pop()
            clients = self.clients[v]
            clients.remove(client)
            if clients:
                continue
            owner = v.owner
            if owner is None:
                if self._is_disposable(v, remove_if_empty):
                    del self.clients[v]
                continue
            if owner not in self.apply_nodes or any(self.clients.get(o) for o in owner.outputs):
                continue
            self._drop_node(owner, reason)
            work.extend((x, (owner, i)) for i, x in reversed([*enumerate(owner.inputs)]))

    def _is_disposable(self, root: Variable, remove_if_empty: bool) -> bool:
        """Whether to remove a variable without an owner that has no use left."""
        if isinstance(root, Constant):
            return True
        wanted = remove_if_empty or isinstance(root, AtomicVariable)
        return wanted and root not in self.inputs

    def _drop_node(self, node: Apply, reason: Any) -> None:
        self._order = None
        self.apply_nodes.discard(node)
        for o in node.outputs:
            self.clients.pop(o, None)
        _record(node, "removed_by", reason)
        self.execute_callbacks("on_prune", node, reason)

    # ----------------------------------------------------------------- importing
    def import_var(self, var: Variable, reason: Any = None, import_missing: bool = False) -> None:
        """Add ``var`` and everything it depends on to the graph; see `import_node`."""
        if var in self.clients:
            return
        if var.owner is not None:
            self.import_node(var.owner, reason=reason, import_missing=import_missing)
        else:
            self._import_roots({var: None}, import_missing)

    def import_node(
        self,
        apply_node: Apply,
        check: bool = True,
        reason: Any = None,
        import_missing: bool = False,
    ) -> None:
        """Add a node and everything it depends on to the graph.

        Raises `MissingInputError`, before anything is changed, if it depends on a variable that is
        neither an input nor a constant; with ``import_missing`` that becomes an input instead.
        """
        if apply_node in self.apply_nodes:
            return
        new = sorted_nodes([apply_node], self.clients)
        self._import_nodes(new, check, reason, import_missing)

    def _import_nodes(
        self, new: Sequence[Apply], check: bool, reason: Any, import_missing: bool = False
    ) -> None:
        """Add nodes that are not in the graph yet, given inputs first."""
        clients, callbacks = self.clients, self._callbacks["on_import"]
        if check:
            roots: dict[Variable, Apply | None] = {
                v: node for node in new for v in node.inputs if v.owner is None and v not in clients
            }
            self._import_roots(roots, import_missing)
        self._order = None
        for node in new:
            self.apply_nodes.add(node)
            for output in node.outputs:
                clients[output] = Clients()
            for i, v in enumerate(node.inputs):
                users = clients.get(v)
                if users is None:
                    users = clients[v] = Clients()
                users[node, i] = None
            _record(node, "imported_by", reason)
            for callback in callbacks:
                callback(self, node, reason)

    def _import_roots(self, roots: dict[Variable, Apply | None], import_missing: bool) -> None:
        """Add variables without an owner, given with a node that uses each."""
        if not import_missing:
            _check_roots(roots)
        for v in roots:
            if isinstance(v, AtomicVariable):
                self.setup_var(v)
            else:
                self.add_input(v, check=False)

    # ----------------------------------------------------------------- changing
    def change_node_input(
        self,
        node: Apply,
        i: int,
        new_var: Variable,
        reason: Any = None,
        import_missing: bool = False,
        check: bool = True,
    ) -> None:
        """Make ``new_var`` input ``i`` of ``node``; for an `Output` node, an output of the graph.

        With ``check``, TypeError if the type of ``new_var`` is not the old type or a narrower one.
        """
        old = node.inputs[i]
        if check and not old.type.is_super(new_var.type):
            raise TypeError(
                f"Input {i} of {node.op} is of type {old.type}; {new_var} of type {new_var.type} "
                f"cannot take its place (reason: {reason})."
            )
        if old is new_var:
            return
        self.import_var(new_var, reason=reason, import_missing=import_missing)
        node.inputs[i] = new_var
        if isinstance(node.op, Output):
            self.outputs[node.op.idx] = new_var
        self.note_change()
        self.add_client(new_var, (node, i))
        self.remove_client(old, (node, i), reason=reason)
        self.execute_callbacks("on_change_input", node, i, old, new_var, reason=reason)

    def replace(
        self,
        var: Variable,
        new_var: Variable,
        reason: Any = None,
        verbose: bool | None = None,
        import_missing: bool = False,
    ) -> None:
        """Replace ``var`` by ``new_var`` wherever it is used; ``verbose`` prints both.

        If the type of ``new_var`` is less specific, it is narrowed by a `SpecifyShape`; TypeError
        if it cannot be converted.  A ``var`` that is not in the graph is ignored.
        """
        new_var = var.type.filter_variable(new_var, allow_convert=True)
        if verbose:
            told = f"{var} of {var.owner} with {new_var} of {new_var.owner}"
            sys.stdout.write(f"rewriting: rewrite {reason} replaces {told}\n")
        # a copy of the uses: nodes behind ``new_var`` that use ``var`` continue to use it
        for node, i in list(self.clients.get(var, ())):
            self.change_node_input(
                node, i, new_var, reason=reason, import_missing=import_missing, check=False
            )

    def replace_all(self, pairs: Iterable[tuple[Variable, Variable]], **kwargs: Any) -> None:
        """Replace several variables, one after the other."""
        for var, new_var in pairs:
            self.replace(var, new_var, **kwargs)

    def _remove_clients(self, node: Apply, reason: Any) -> None:
        for i, v in enumerate(node.inputs):
            if v in self.clients:
                self.remove_client(v, (node, i), reason=reason)

    def remove_node(self, node: Apply, reason: Any = None) -> None:
        """Remove a node and everything that depends on it, outputs of the graph included."""
        dependents: list[Apply] = []
        seen: set[Apply] = set()
        stack = [node]
        while stack:
            n = stack.pop()
            if n in seen or (n not in self.apply_nodes and not isinstance(n.op, Output)):
                continue
            seen.add(n)
            dependents.append(n)
            stack.extend(c for o in n.outputs for c, _ in self.clients.get(o, ()))
        doomed = sorted((n.op.idx for n in dependents if isinstance(n.op, Output)), reverse=True)
        for idx in doomed:
            self.remove_output(idx, reason=reason)
        position = {n: k for k, n in enumerate(self.toposort())}
        for n in sorted((d for d in dependents if d in position), key=position.__getitem__)[::-1]:
            if n in self.apply_nodes:
                self._drop_node(n, reason)
                self._remove_clients(n, reason)

    def remove_input(self, input_idx: int, reason: Any = None) -> None:
        """Remove an input and everything that depends on it."""
        var = self.inputs[input_idx]
        for node in [n for n, _ in self.clients[var] if not isinstance(n.op, Output)]:
            if node in self.apply_nodes:
                self.remove_node(node, reason=reason)
        for idx in sorted(
            (n.op.idx for n, _ in self.clients.get(var, ()) if isinstance(n.op, Output)),
            reverse=True,
        ):
            self.remove_output(idx, reason=reason)
        del self.inputs[input_idx]
        self.last_change = object()
        if var not in self.inputs:
            self.clients.pop(var, None)
        self.update_mapping = {
            o: i - (i > input_idx) for o, i in self.update_mapping.items() if i != input_idx
        }

    def remove_output(
        self, output_idx: int, reason: Any = None, remove_client: bool = True
    ) -> None:
        """Remove an output; those to the right move one place."""
        client = self.get_output_client(output_idx)
        var = self.outputs[output_idx]
        self.setup_var(var)  # the table of uses must know it
        del self.outputs[output_idx], self._output_nodes[output_idx]
        self.last_change = object()
        for i in range(output_idx, len(self.outputs)):
            self._output_nodes[i].op = Output(i)
        if remove_client:
            self.remove_client(var, client, reason=reason)
        self.update_mapping = {
            o - (o > output_idx): i for o, i in self.update_mapping.items() if o != output_idx
        }

    # ----------------------------------------------------------------- features
    def attach_feature(self, feature: Any) -> None:
        """Attach a feature, unless it is attached or its `on_attach` raises `AlreadyThere`."""
        if feature in self._features:
            return
        try:
            feature.on_attach(self)
        except AlreadyThere:
            return
        self._features.append(feature)
        self._index_features()

    def remove_feature(self, feature: Any) -> None:
        """Detach a feature; nothing happens if it is not attached."""
        if feature not in self._features:
            return
        feature = self._features.pop(self._features.index(feature))
        feature.on_detach(self)
        self._index_features()

    def _index_features(self) -> None:
        """Collect the callbacks that features override, and the methods that they provide."""
        self._callbacks: dict[str, list[Any]] = {
            name: [getattr(f, name) for f in self._features if f.overrides(name)]
            for name in CALLBACKS
        }
        self._provided: dict[str, Any] = {
            name: f for f in self._features for name in getattr(f, "provides", ())
        }

    def __getattr__(self, name: str) -> Any:
        """A method that a feature provides, such as `replace_validate`."""
        feature = self.__dict__.get("_provided", {}).get(name)
        if feature is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return partial(getattr(feature, name), self)

    def listens(self, name: str) -> bool:
        """Whether a feature overrides the callback ``name``."""
        return bool(self._callbacks[name])

    def execute_callbacks(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Call a callback of every feature that overrides it, in order of attachment."""
        for callback in self._callbacks[name]:
            start = perf_counter()
            callback(self, *args, **kwargs)
            self.execute_callbacks_times[callback.__self__] += perf_counter() - start

    @property
    def execute_callbacks_time(self) -> float:
        """The seconds that `execute_callbacks` has taken."""
        return sum(self.execute_callbacks_times.values())

    def collect_callbacks(self, name: str, *args: Any) -> dict[Any, Any]:
        """Like `execute_callbacks`; returns a dict from features to results."""
        return {cb.__self__: cb(self, *args) for cb in self._callbacks[name]}

    # ----------------------------------------------------------------- orders
    def toposort(self) -> list[Apply]:
        """The nodes in a legal execution order: inputs first, and `orderings` respected."""
        orderings = self.orderings()
        if orderings:
            return list(toposort_with_orderings(self.outputs, orderings=orderings))
        if self._order is None or not self._is_current(self._order):
            self._order = list(toposort_with_orderings(self.outputs))
        self._known_change = _last_change[0]
        return list(self._order)

    def note_change(self, order: list[Apply] | None = None) -> None:
        """Note that inputs of nodes, or outputs, were replaced; ``order`` is the order since then.

        Other graphs of the same nodes check their order before they use it again.
        """
        self._order = order
        self.last_change = self._known_change = _last_change[0] = object()

    def _is_current(self, order: list[Apply]) -> bool:
        """Whether an order is one of the nodes as they are: another graph may have changed them."""
        if self._known_change is _last_change[0]:
            return True
        needed = {v.owner for v in self.outputs if v.owner is not None}
        done: set[Apply] = set()
        for node in reversed(order):
            done.add(node)
            owners = {v.owner for v in node.inputs if v.owner is not None}
            if node not in needed or not owners.isdisjoint(done):
                return False
            needed |= owners
        return len(needed) == len(done)

    def orderings(self) -> dict[Apply, list[Apply]]:
        """For each node, nodes that features require to be executed before it."""
        merged: dict[Apply, list[Apply]] = {}
        for constraints in self.collect_callbacks("orderings").values():
            for node, before in constraints.items():
                merged.setdefault(node, []).extend(before)
        return merged

    # ----------------------------------------------------------------- copies and checks
    def clone(self, check_integrity: bool = True, clone_inner_graphs: Any = None) -> FunctionGraph:
        """A copy, with copies of the features."""
        return self.clone_get_equiv(check_integrity)[0]

    def clone_get_equiv(
        self, check_integrity: bool = True, attach_feature: bool = True, **kwargs: Any
    ) -> tuple[FunctionGraph, dict[Any, Any]]:
        """A copy, and a dict from the variables and nodes of this graph to those of the copy."""
        memo = clone_get_equiv(self.inputs, self.outputs, **kwargs)
        copy = FunctionGraph(
            [memo[v] for v in self.inputs],
            [memo[v] for v in self.outputs],
            clone=False,
            update_mapping=self.update_mapping,
        )
        if attach_feature:
            for feature in self._features:
                copy.attach_feature(feature.clone())
        if check_integrity:
            copy.check_integrity()
        return copy, memo

    def __copy__(self) -> FunctionGraph:
        return self.clone()

    def freeze(self) -> FrozenFunctionGraph:
        """An immutable, hashable graph equal to this one."""
        return FrozenFunctionGraph.from_io(self.inputs, self.outputs)

    def check_integrity(self) -> None:
        """Raise ValueError if ``apply_nodes`` or ``clients`` contradicts the graph."""
        reached = set(applys_between(self.inputs, self.outputs))
        if reached != self.apply_nodes:
            raise ValueError(
                "The following nodes are inappropriately cached: "
                f"{len(reached - self.apply_nodes)} nodes are missing from apply_nodes and "
                f"{len(self.apply_nodes - reached)} do not belong there."
            )
        for node in self.apply_nodes:
            for i, v in enumerate(node.inputs):
                if (node, i) not in self.clients.get(v, ()):
                    raise ValueError(
                        f"Inconsistent clients list: {v} does not have {node.op} (input {i})."
                    )
        for i, v in enumerate(self.outputs):
            if self.get_output_client(i) not in self.clients.get(v, ()):
                raise ValueError(f"Inconsistent clients list: {v} does not have output {i}.")
        inputs = set(self.inputs)
        for v, clients in self.clients.items():
            for node, i in clients:
                if node.inputs[i] is not v or (
                    node not in self.apply_nodes and not isinstance(node.op, Output)
                ):
                    raise ValueError(
                        f"Inconsistent clients list: {v} has {node.op} (input {i}), which does "
                        "not use it."
                    )
            if v.owner is None and v not in inputs and not isinstance(v, AtomicVariable):
                raise ValueError(f"{v} has no owner and is not an input.")

    def dprint(self, **kwargs: Any) -> Any:
        """Print the graph; see `phintys.dprint`."""
        return late_bound["dprint"](self, **kwargs)

    def __reduce__(self) -> Any:
        # Features may refer to the graph.  As state they are unpickled after the graph exists.
        attributes = {k: v for k, v in self.__dict__.items() if k not in _BOOKKEEPING}
        state = (self.inputs, self.outputs, self._output_nodes, self._features, attributes)
        return FunctionGraph.__new__, (type(self),), state

    def __setstate__(self, state: Any) -> None:
        inputs, outputs, output_nodes, features, attributes = state
        self._clear()
        self.__dict__.update(attributes)
        self._fill(inputs, outputs, output_nodes)
        self._features = list(features)  # their state was pickled, so on_attach must not run
        self._index_features()

    def __contains__(self, item: Any) -> bool:
        return item in self.variables or item in self.apply_nodes

    def __str__(self) -> str:
        return f"FunctionGraph({', '.join(as_string(self.inputs, self.outputs))})"

    __repr__ = __str__


class FrozenFunctionGraph(FrozenGraph):
    """An immutable, hashable graph, equal to every frozen graph of the same structure.

    Its inputs are numbered `NominalVariable`, so names do not matter.  It depends only on its
    inputs and constants; a shared variable has to be passed as an input.  Made by
    `FunctionGraph.freeze`, `from_io`, `from_toposort` or `from_structural_inputs`.

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> graph = FrozenFunctionGraph.from_io([x], [x + 1])
    >>> graph == FrozenFunctionGraph.from_io([y], [y + 1])
    True
    >>> graph.bind([2 * y])
    [Add.0]
    """

    __slots__ = ()

    def unfreeze(self, *, return_memo: bool = False) -> Any:
        """A `FunctionGraph` of the same structure; see `bind` for ``return_memo``."""
        inputs = [v.type.make_variable() for v in self.inputs]
        outputs, memo = self.bind(inputs, return_memo=True)
        fgraph = FunctionGraph(inputs, outputs, clone=False)
        return (fgraph, memo) if return_memo else fgraph


def _record(node: Apply, what: str, reason: Any) -> None:
    """Add the text of a reason to a list in the tag of a node, as PyTensor does."""
    node.tag.__dict__.setdefault(what, []).append(str(reason))


def _check_roots(roots: Mapping[Variable, Apply | None]) -> None:
    """MissingInputError for a variable without an owner that is no constant.

    Each is given with a node that uses it.
    """
    for v, user in roots.items():
        if not isinstance(v, AtomicVariable):
            used = f" It is used by {user.op}." if user is not None else ""
            raise MissingInputError(
                f"Undeclared input: {v} (type {v.type}) is needed to compute the outputs but is "
                f"not among the inputs.{used}\n{describe(v.origin)}".rstrip()
            )


#: the last change of the inputs of a node, by any graph: a new object for each
_last_change: list[object] = [object()]

#: Attributes that are not pickled as they are, but rebuilt by `FunctionGraph.__setstate__`.
_BOOKKEEPING = frozenset(
    (
        "inputs",
        "outputs",
        "apply_nodes",
        "_clients",
        "_output_nodes",
        "last_change",
        "_known_change",
        "_order",
        "_features",
        "_callbacks",
        "_provided",
        "execute_callbacks_times",
    )
)
