"""Intermediate results of float32 computations, in float64.

The square of a number, its quotient by a small one, and parts of a density may be out of the range
of float32, or cancel, where the result is not.  `WideIntermediates` computes chains of functions of
float32 numbers in float64, and rounds what leaves them to float32.  Kernels still read and write
float32: between functions of a chain nothing is stored.

Rounding is visible where a number meets itself: in ``x - floor(x)``, in ``x - sort(x)``, or in
``x - x[0]``.  So a number that anything but a function of a chain uses is rounded for all its uses,
and so is what it is a copy of, as in ``switch(c, x, 0)``.
"""

from __future__ import annotations

from collections.abc import Iterator

from phintys.graph.clients import Output
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rewriter import GraphRewriter
from phintys.scalar import dtypes
from phintys.scalar.arith import Cast
from phintys.scalar.op import TABLE
from phintys.tensor.as_written import AsWritten
from phintys.tensor.convert import constant
from phintys.tensor.elemwise import DimShuffle, cast, scalar_op_name
from phintys.tensor.join import Join
from phintys.tensor.reduce import Max, Min, Sum
from phintys.tensor.shape import MakeVector
from phintys.tensor.special import LogSumExp
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorConstant

#: Functions next to whose singularities intermediate results leave the range, or cancel.
SINGULAR = frozenset(
    "true_div reciprocal pow log log1p log2 log10 log1mexp gamma gammaln psi tri_gamma beta betaln "
    "gammaln_increment psi_increment tri_gamma_increment".split()
)
#: Functions with jumps: a small difference of their arguments is a large one of their results.
JUMPS = frozenset(
    "int_div mod fmod ceil floor trunc heaviside nextafter "
    "round_half_to_even round_half_away_from_zero".split()
)
#: Functions that compare numbers, or ask whether they are finite.
COMPARISONS = frozenset("eq neq lt le gt ge isnan isinf isfinite".split())
#: Functions whose results are their arguments, or differ from them in the sign.
COPIES = frozenset("identity second switch maximum minimum clip neg abs".split())
#: Ops that put together, move or select what functions compute, and others that are in chains.
MOVES = (AsWritten, DimShuffle, Join, MakeVector, Max, Min)
REDUCTIONS = (LogSumExp, Sum)


class WideIntermediates(GraphRewriter):
    """A graph rewriter that computes intermediate results of float32 functions in float64.

    So do the parts of a graph that are connected by functions, and by moves and sums of their
    results, if one of the functions is `SINGULAR`.
    """

    def apply(self, fgraph: FunctionGraph) -> bool:
        if not any(_is_singular(node) for node in fgraph.apply_nodes):
            return False
        chains = _Chains(fgraph)
        pairs = list(_Widened(chains).replacements())
        fgraph.replace_all(pairs, reason=self)
        return bool(pairs)


class _Chains:
    """The results of float32 functions that may be computed in float64.

    Attributes
    ----------
    nodes
        the nodes that compute them, and those that compare or upcast them, in topological order
    rounded
        the results that are rounded to float32 for all uses
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._fgraph = fgraph
        self._made: set[Variable] = set()
        nodes = [node for node in fgraph.toposort() if self._note(node)]
        self.rounded: set[Variable] = set()
        narrow = self._round(nodes)
        self.nodes = [node for node in nodes if node not in narrow]
        self._first: dict[Apply, Apply] = {node: node for node in self.nodes}
        for node in self.nodes:
            for v in node.inputs:
                if self.is_wide(v) and v.owner is not None:
                    self._first[self.chain(node)] = self.chain(v.owner)

    def _note(self, node: Apply) -> bool:
        """Whether a node may be in a chain; its result is, unless the node ends it."""
        follows = any(v in self._made for v in node.inputs)
        if _is_end(node):
            return follows
        known = _is_function(node) or (follows and type(node.op) in (*MOVES, *REDUCTIONS))
        if node.nout > 1 or not _is_float32(node.outputs[0]) or not known:
            return False
        self._made.add(node.outputs[0])
        return True

    def users(self, v: Variable) -> Iterator[Apply]:
        return (node for node, _ in self._fgraph.clients[v])

    def _rounds(self, user: Apply) -> bool:
        """Whether the arguments of a node are rounded; those of comparisons may be."""
        outside = not any(v in self._made for v in user.outputs)
        return outside and not isinstance(user.op, Output) and not _is_end(user)

    def _round(self, nodes: list[Apply]) -> set[Apply]:
        """Find what is rounded; return the comparisons that are not part of chains.

        They compare with anything but results of chains and constants.
        """
        narrow: set[Apply] = set()
        compared = [node for node in nodes if _is_comparison(node)]
        stack = [v for v in self._made if any(map(self._rounds, self.users(v)))]
        while stack or compared:
            while stack:
                v = stack.pop()
                if self.is_wide(v):
                    self.rounded.add(v)
                    stack += v.owner.inputs if v.owner is not None and _is_copy(v.owner) else ()
                    compared += [n for n in self.users(v) if _is_comparison(n)]
            node = compared.pop() if compared else None
            if node is not None and node not in narrow and not self._is_compared_wide(node):
                narrow.add(node)
                stack += node.inputs
        return narrow

    def _is_compared_wide(self, node: Apply) -> bool:
        return all(self.is_wide(v) or isinstance(v, Constant) for v in node.inputs)

    def is_wide(self, v: Variable) -> bool:
        """Whether functions of chains use a result as it is, in float64."""
        return v in self._made and v not in self.rounded

    def is_rounded(self, v: Variable) -> bool:
        """Whether a result is needed in float32."""
        return v in self.rounded or any(isinstance(n.op, Output) for n in self.users(v))

    def chain(self, node: Apply) -> Apply:
        """A node that stands for all that are connected with ``node``."""
        top = node
        while self._first[top] is not top:
            top = self._first[top]
        while self._first[node] is not top:
            self._first[node], node = top, self._first[node]
        return top


class _Widened:
    """The chains in float64, of those with functions of which one is singular."""

    def __init__(self, chains: _Chains) -> None:
        self._chains = chains
        self._new: dict[Variable, Variable] = {}
        self._leaves: dict[Variable, Variable] = {}

    def replacements(self) -> Iterator[tuple[Variable, Variable]]:
        chains = self._chains
        singular = {chains.chain(n) for n in chains.nodes if _is_singular(n)}
        sizes: dict[Apply, int] = {}
        for node in chains.nodes:
            top = chains.chain(node)
            sizes[top] = sizes.get(top, 0) + (type(node.op) not in MOVES)
        for node in chains.nodes:
            top = chains.chain(node)
            if top in singular and sizes[top] > 1:
                with inherit(node.origin):
                    yield from self._widened(node)

    def _widened(self, node: Apply) -> Iterator[tuple[Variable, Variable]]:
        (out,) = node.outputs
        (new,) = _wide_op(node).make_node(*map(self._argument, node.inputs)).outputs
        if _is_end(node):
            self._leaves[out] = out.type.filter_variable(new)
            yield out, self._leaves[out]
            return
        self._new[out] = new
        if self._chains.is_rounded(out):
            narrow = out.type.filter_variable(cast(new, "float32"))
            self._leaves[out] = cast(narrow, "float64")
            yield out, narrow

    def _argument(self, v: Variable) -> Variable:
        """An argument in float64, if it is float32."""
        if not _is_float32(v):
            return self._leaves.get(v, v)
        if v in self._new and self._chains.is_wide(v):
            return self._new[v]
        if v not in self._leaves:
            known = isinstance(v, TensorConstant)
            self._leaves[v] = constant(v.data.astype("float64")) if known else cast(v, "float64")
        return self._leaves[v]


def _wide_op(node: Apply) -> Op:
    """The op in float64."""
    if type(node.op) is MakeVector:
        return MakeVector("float64")
    return Sum(node.op.axis) if type(node.op) is Sum else node.op


def _is_float32(v: Variable) -> bool:
    return isinstance(v.type, TensorType) and v.type.dtype == "float32"


def _is_singular(node: Apply) -> bool:
    return scalar_op_name(node) in SINGULAR and _is_float32(node.outputs[0])


def _is_function(node: Apply) -> bool:
    """Whether a node applies a continuous function of the table to float32 numbers."""
    if not _is_row(node) or _is_comparison(node) or type(node.op.scalar_op) is Cast:
        return False
    real = not any(dtypes.is_complex(v.type.dtype) for v in node.inputs)
    return real and any(map(_is_float32, node.inputs))


def _is_copy(node: Apply) -> bool:
    """Whether the results of a node are copies of its inputs."""
    return scalar_op_name(node) in COPIES or type(node.op) in MOVES


def _is_comparison(node: Apply) -> bool:
    return scalar_op_name(node) in COMPARISONS


def _is_end(node: Apply) -> bool:
    """Whether a node takes results of a chain as they are, but its own is not of float32."""
    return _is_comparison(node) or (_is_row(node) and node.outputs[0].type.dtype == "float64")


def _is_row(node: Apply) -> bool:
    """Whether a node applies a function of the table that has no jumps."""
    name = scalar_op_name(node)
    return name not in JUMPS and name is not None and TABLE.get(name) is node.op.scalar_op
