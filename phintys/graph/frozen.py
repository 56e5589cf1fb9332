"""Immutable, hash-consed graphs, compared by value: the inner graphs of ops.

The nodes of a `FrozenGraph` are interned: equal graphs consist of the same objects, so they are
compared by identity.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping, Sequence
from typing import Any, Self

from phintys.graph.clients import Client, Output
from phintys.graph.equality import assign_keys, leaf_key
from phintys.graph.ignored import ignores
from phintys.graph.replace import graph_replace
from phintys.graph.traversal import ancestors, io_toposort
from phintys.graph.variable import Apply, Constant, Node, NominalVariable, Variable
from phintys.memo import Memo


class FrozenApply(Node):
    """An immutable, interned node: equal arguments give the same object.

    It is not an `Apply`: its inputs and outputs are tuples, so code that would change it fails.

    Parameters
    ----------
    op, inputs
        inputs are `NominalVariable`, constants and outputs of frozen nodes
    output_types
        given, because ``op.make_node`` cannot always derive them from inputs without constant
        values
    topo_idx
        the position in the topological order of the graph; -1 to merge equal nodes of a graph
    """

    __slots__ = ("inputs", "op", "outputs", "topo_idx")
    immutable = True
    op: Any
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    topo_idx: int

    def __new__(
        cls,
        op: Any,
        inputs: Sequence[Variable],
        output_types: Sequence[Any],
        topo_idx: int = -1,
    ) -> FrozenApply:
        inputs = _with_interned_constants(inputs)
        # ids suffice as a key: inputs are interned, and the node keeps them alive
        key = (op, tuple(map(id, inputs)), tuple(output_types), topo_idx)
        node = _nodes[key]
        if node is None:
            node = super().__new__(cls)
            node.op, node.inputs, node.topo_idx = op, inputs, topo_idx
            node.outputs = tuple([t.make_variable() for t in output_types])
            for i, v in enumerate(node.outputs):
                v.owner, v.index = node, i  # type: ignore[assignment]
            node._tag = node.origin = None
            node = _nodes.keep(key, node)
        return node

    def get_parents(self) -> list[Any]:
        return list(self.inputs)

    @ignores("strict", "clone_inner_graph")
    def clone_with_new_inputs(
        self, inputs: Sequence[Variable], strict: bool = True, clone_inner_graph: Any = None
    ) -> Apply:
        """A node, not frozen, that applies the same op to other inputs.

        ``make_node`` checks and converts the inputs.  The other parameters are those of
        `Apply.clone_with_new_inputs`, without effect.
        """
        return self.made_anew(inputs)

    def made_anew(self, inputs: Sequence[Variable]) -> Apply:
        """See `Apply.made_anew`; the variables of a frozen node have neither names nor tags."""
        return self.op.make_node(*inputs)

    def __reduce__(self) -> Any:
        types = tuple(v.type for v in self.outputs)
        return FrozenApply, (self.op, self.inputs, types, self.topo_idx)

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenApply:
        return self

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.inputs))})"

    __repr__ = __str__


_nodes: Memo[Any, FrozenApply] = Memo(0, "nodes of frozen graphs", weak=True)
_constants: Memo[Any, Constant] = Memo(0, "constants of frozen graphs", weak=True)


def _with_interned_constants(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    """The variables, with constants of equal type and value replaced by one of them."""
    found: list[Variable] = []
    for v in variables:
        if isinstance(v, Constant):
            try:
                v = _constants.keep((type(v), v.signature()), v)
            except TypeError:  # the value is not hashable: the constant is not shared
                pass
        found.append(v)
    return tuple(found)


class FrozenGraph:
    """What `phintys.graph.fgraph.FrozenFunctionGraph` consists of, except `unfreeze`."""

    __slots__ = ("__weakref__", "_hash", "_toposort", "inputs", "outputs")
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]

    def __init__(
        self,
        inputs: Sequence[Variable],
        toposort: Sequence[FrozenApply],
        outputs: Sequence[Variable],
    ) -> None:
        put = object.__setattr__
        put(self, "inputs", tuple(inputs))
        put(self, "outputs", _with_interned_constants(outputs))
        put(self, "_toposort", tuple(toposort))
        put(self, "_hash", hash((self.inputs, self.outputs, self._toposort)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"A {type(self).__name__} cannot be changed (setting {name!r}); see unfreeze()."
        )

    # ----- construction
    @classmethod
    def from_io(
        cls,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        dedup_nodes: bool = False,
    ) -> Self:
        """The frozen graph between ``inputs`` and ``outputs``.

        ``dedup_nodes`` merges equal nodes.  That is not the default, because it would also merge
        the results that in-place operations overwrite.

        ValueError if the outputs depend on a variable that is neither an input nor a constant.
        """
        return cls._freeze(inputs, outputs, io_toposort(inputs, outputs), dedup_nodes)

    @classmethod
    def from_toposort(
        cls,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        toposort: Sequence[Apply],
    ) -> Self:
        """Like `from_io`, with a given order of nodes; ValueError if it is not topological."""
        return cls._freeze(inputs, outputs, toposort, False)

    @classmethod
    def from_structural_inputs(
        cls, inputs: Sequence[Variable], outputs: Sequence[Variable]
    ) -> Self:
        """The frozen graph of ``outputs`` as functions of ``inputs``, which may be expressions.

        Every subexpression of ``outputs`` that is structurally equal to an input becomes that
        input.
        """
        keys: dict[Variable, Any] = {}
        assign_keys([*inputs, *outputs], keys, {}, leaf_key)
        by_key = {keys[v]: v for v in reversed(inputs)}
        same = {v: by_key[keys[v]] for v in ancestors(outputs) if keys[v] in by_key}
        return cls.from_io(inputs, graph_replace(outputs, same, strict=False))

    @classmethod
    def _freeze(
        cls,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        order: Iterable[Apply],
        dedup_nodes: bool,
    ) -> Self:
        nominal = [NominalVariable(i, v.type) for i, v in enumerate(inputs)]
        memo: dict[Variable, Variable] = dict(zip(inputs, nominal, strict=True))
        nodes: list[FrozenApply] = []
        for k, node in enumerate(order):
            frozen = FrozenApply(
                node.op,
                [_frozen_variable(v, memo) for v in node.inputs],
                [v.type for v in node.outputs],
                -1 if dedup_nodes else k,
            )
            nodes.append(frozen)
            for old, new in zip(node.outputs, frozen.outputs, strict=True):
                memo.setdefault(old, new)
        results = [_frozen_variable(v, memo) for v in outputs]
        return cls(nominal, tuple(dict.fromkeys(nodes)), results)

    # ----- conversion to ordinary graphs
    def bind(
        self, replace: Mapping[Variable, Any] | Sequence[Any], *, return_memo: bool = False
    ) -> Any:
        """The outputs as an ordinary graph on the given inputs: a list of variables.

        Parameters
        ----------
        replace
            a replacement for each input: a sequence, or a mapping from ``self.inputs``
        return_memo
            also return a dict from the frozen variables and nodes to the new ones

        Raises
        ------
        KeyError
            if an input has no replacement
        TypeError
            if a replacement cannot be converted to the type of the input
        """
        pairs = replace if isinstance(replace, Mapping) else dict(zip(self.inputs, replace))
        memo: dict[Any, Any] = {}
        for i, v in enumerate(self.inputs):
            if v not in pairs:
                raise KeyError(f"Nothing is given for input {i} ({v.type}) of the frozen graph.")
            memo[v] = v.type.filter_variable(pairs[v])
        for node in self._toposort:
            memo[node] = _thawed(node, [memo.setdefault(v, v) for v in node.inputs])
            memo.update(zip(node.outputs, memo[node].outputs, strict=True))
        outputs = [memo.setdefault(v, v) for v in self.outputs]
        return (outputs, memo) if return_memo else outputs

    # ----- queries
    def toposort(self) -> tuple[FrozenApply, ...]:
        """The nodes in topological order."""
        return self._toposort

    @property
    def apply_nodes(self) -> KeysView[FrozenApply]:
        """The nodes, as a set."""
        return dict.fromkeys(self._toposort).keys()

    @property
    def variables(self) -> KeysView[Variable]:
        """All variables, as a set."""
        return self.clients.keys()

    @property
    def clients(self) -> dict[Variable, list[Client]]:
        """The uses of every variable; graph outputs are `Output` nodes."""
        found: dict[Variable, list[Client]] = {v: [] for v in self.inputs}
        for node in self._toposort:
            for i, v in enumerate(node.inputs):
                found.setdefault(v, []).append((node, i))  # type: ignore[arg-type]
            found.update((v, []) for v in node.outputs)
        for i, v in enumerate(self.outputs):
            found.setdefault(v, []).append((Output(i).make_node(v), 0))
        return found

    # ----- equality and copies
    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, FrozenGraph)
            and self._hash == other._hash
            and self.inputs == other.inputs
            and self.outputs == other.outputs
            and self._toposort == other._toposort
        )

    def __hash__(self) -> int:
        return self._hash

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        # The nodes are pickled in topological order, hence without recursion over the graph.
        return type(self), (self.inputs, self._toposort, self.outputs)

    def __str__(self) -> str:
        return f"{type(self).__name__}(inputs={list(self.inputs)}, outputs={list(self.outputs)})"

    __repr__ = __str__


def _frozen_variable(v: Variable, memo: Mapping[Variable, Variable]) -> Variable:
    """The variable of the frozen graph that corresponds to ``v``; ValueError if there is none."""
    if v in memo:
        return memo[v]
    if isinstance(v, Constant):
        return v
    where = "is not an input" if v.owner is None else f"is computed by {v.owner.op} too late"
    raise ValueError(
        f"{v} (type {v.type}) {where}: a frozen graph needs every variable, shared ones too, among "
        "its inputs, and nodes in an order in which they can be executed."
    )


def _thawed(node: FrozenApply, inputs: Sequence[Variable]) -> Apply:
    """An `Apply` like ``node``; made by ``make_node`` if the types of its inputs have changed."""
    if all(new.type == old.type for new, old in zip(inputs, node.inputs, strict=True)):
        return Apply(node.op, inputs, [v.type.make_variable() for v in node.outputs])
    return node.op.make_node(*inputs)
