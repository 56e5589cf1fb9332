"""Sums of products in Einstein's notation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_letters
from typing import Any, NamedTuple

from phintys.graph.variable import Apply, Variable
from phintys.inner import OpFromGraph
from phintys.scalar import dtypes
from phintys.tensor.contraction_path import Path, contraction_path
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.diagonal import diagonal
from phintys.tensor.dot import Pairs, contracted
from phintys.tensor.elemwise import cast, dimshuffle
from phintys.tensor.reduce import any as any_of
from phintys.tensor.reduce import sum as sum_of
from phintys.tensor.shape import length, specify_shape
from phintys.tensor.variable import TensorVariable

__all__ = ["Einsum", "einsum"]

#: the label of each axis of a term: a letter, or "...k" for the k-th of those of an ellipsis,
#: counted from the right
Labels = tuple[str, ...]


class Term(NamedTuple):
    """A tensor and the labels of its axes."""

    labels: Labels
    value: TensorVariable


class Einsum(OpFromGraph):
    """A sum of products, as the graph of its contractions.

    Parameters
    ----------
    inputs, outputs
        as for `OpFromGraph`
    subscripts
        the labels, with those of the output
    path
        the steps of `contraction_path`
    optimized
        whether the path is final: lengths that become known do not change it
    """

    # ----- class and static shape
    __props__ = ("subscripts", "path", "optimized")

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        *,
        subscripts: str,
        path: Path,
        optimized: bool,
        **options: Any,
    ) -> None:
        options = {"inline": optimized, "name": f"einsum({subscripts})"} | options
        super().__init__(inputs, outputs, **options)
        self.subscripts, self.path, self.optimized = subscripts, path, optimized

    def _for_types(self, types: Sequence[Any]) -> Einsum:
        """The op for narrower types: a length that is known to be 1 broadcasts."""
        return einsum_op(self.subscripts, types, self.path if self.optimized else True)

    # ----- batching: the additional axes are those of an ellipsis
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        if "..." in self.subscripts:
            return super().vectorize_node(node, *batched_inputs)
        left, right = self.subscripts.split("->")
        subscripts = f"{','.join(f'...{term}' for term in left.split(','))}->...{right}"
        types = [x.type for x in batched_inputs]
        return einsum_op(subscripts, types, True).make_node(*batched_inputs)


def einsum(subscripts: Any, *operands: Any, optimize: Any = None) -> TensorVariable:
    """Sums of products of the elements of tensors, as ``numpy.einsum``.

    Parameters
    ----------
    subscripts : text
        for each operand the labels of its axes, separated by commas; after ``->`` those of the
        result, else the labels that appear once, in alphabetical order.  A label that the result
        does not have is summed over; one that an operand has twice takes its diagonal.  ``...``
        stands for axes that broadcast.
    operands : tensors
        Lengths of a label must be equal.  A length that is known to be 1 broadcasts.
        ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` with numbers as labels is accepted too.
    optimize : the order of products
        None, True: by the number of multiplications, see `contraction_path`; it is decided again
        if more lengths become known.  False: from left to right.  Or a path.

    ValueError if the text is not valid or does not fit the operands; ShapeError if lengths differ.

    >>> import phintys.tensor as pt
    >>> x = pt.as_tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> pt.einsum("ij,jk->ik", x, x).eval()
    array([[ 7., 10.],
           [15., 22.]])
    >>> pt.einsum("ii", x).eval()
    array(5.)
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _with_letters([subscripts, *operands])
    tensors = list(map(as_tensor_variable, operands))
    text = _explicit(subscripts, [x.type.ndim for x in tensors])
    op = einsum_op(text, [x.type for x in tensors], True if optimize is None else optimize)
    return op(*tensors)


def einsum_op(subscripts: str, types: Sequence[Any], optimize: Any) -> Einsum:
    """The op for inputs of these types; ``subscripts`` have the labels of the result."""
    return _op(subscripts, [t.make_variable() for t in types], {}, optimize)


def with_known_lengths(op: Einsum, inputs: Sequence[Variable]) -> Einsum | None:
    """The op with the path for the lengths of these inputs, if all are known, else None."""
    lengths: dict[str, int] = {}
    for labels, x in zip(_labels(op.subscripts, [x.type.ndim for x in inputs])[0], inputs):
        for label, n in zip(labels, x.type.shape, strict=True):
            if n is None:
                return None
            lengths[label] = max(n, lengths.get(label, 0))
    own = [v.type.make_variable() for v in op.fgraph.inputs]
    return None if op.optimized else _op(op.subscripts, own, lengths, True)


def _op(
    subscripts: str, inputs: Sequence[Variable], lengths: Mapping[str, int | None], optimize: Any
) -> Einsum:
    """The op that computes the graph on ``inputs``; ``lengths`` are known besides their own."""
    terms, output = _labels(subscripts, [x.type.ndim for x in inputs])
    dtype = dtypes.upcast(*[x.type.dtype for x in inputs])
    prepared = _without_ones(
        [_diagonals(Term(labels, cast(x, dtype))) for labels, x in zip(terms, inputs, strict=True)]
    )
    lengths = {**known_lengths(prepared), **lengths}
    sets = [frozenset(t.labels) for t in prepared]
    path = contraction_path(sets, frozenset(output), lengths, optimize)
    decided = optimize is not True and optimize != "auto"
    final = decided or len(inputs) < 3 or None not in lengths.values()
    out = _contract(prepared, output, path)
    return Einsum(inputs, [out], subscripts=subscripts, path=path, optimized=final)


# ------------------------------------------------------------------------------ the text


def _with_letters(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Operands and lists of numbers in turn, as a text and the operands."""
    operands, lists = arguments[:-1:2], arguments[1::2]
    text = ",".join(map(_lettered, lists))
    if len(arguments) % 2:
        text += f"->{_lettered(arguments[-1])}"
    return text, tuple(operands)


def _lettered(labels: Iterable[Any]) -> str:
    return "".join("..." if k is Ellipsis else ascii_letters[int(k)] for k in labels)


def _explicit(subscripts: str, ranks: Sequence[int]) -> str:
    """The text with the labels of the result, checked against the ranks of the operands."""
    text = "".join(subscripts.split())
    term = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
    if not re.fullmatch(rf"{term}(,{term})*(->{term})?", text):
        raise ValueError(f"{subscripts!r} is no text such as 'ij,jk->ik' or '...i->...'.")
    left, arrow, right = text.partition("->")
    letters = re.sub(r"[.,]", "", left)
    if not arrow:
        right = "..." if "..." in left else ""
        right += "".join(sorted(k for k in set(letters) if letters.count(k) == 1))
    wrong = [k for k in right.replace("...", "") if right.count(k) > 1 or k not in letters]
    if wrong:
        raise ValueError(f"{subscripts!r}: {wrong[0]!r} twice in the result, or in no operand.")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{subscripts!r} has {len(terms)} operands, {len(ranks)} were given.")
    for part, rank in zip(terms, ranks):
        named = len(part.replace("...", ""))
        if named != rank and (named > rank or "..." not in part):
            raise ValueError(f"{subscripts!r}: {part!r} does not fit an operand of rank {rank}.")
    if "..." not in right and any(len(t.replace("...", "")) < n for t, n in zip(terms, ranks)):
        raise ValueError(f"{subscripts!r}: the result has no '...' for the axes of an operand.")
    return f"{left}->{right}"


def _labels(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result."""
    left, right = subscripts.split("->")
    terms = left.split(",")
    extra = [rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks, strict=True)]
    found = [_spelled(t, n) for t, n in zip(terms, extra)]
    return found, _spelled(right, max(extra, default=0))


def _spelled(term: str, count: int) -> Labels:
    """The labels of a term whose ellipsis stands for ``count`` axes."""
    before, dots, after = term.partition("...")
    middle = [f"...{k}" for k in range(count, 0, -1)] if dots else []
    return (*before, *middle, *after)


# --------------------------------------------------------------------- the contractions


def _diagonals(term: Term) -> Term:
    """A term in which no label appears twice."""
    labels, x = term
    while len(set(labels)) < len(labels):
        label = next(k for k in labels if labels.count(k) > 1)
        i, j = [k for k, name in enumerate(labels) if name == label][:2]
        asserted: list[Any] = [None] * len(labels)
        asserted[j] = length(x, i)
        x = diagonal(specify_shape(x, asserted), 0, i, j)
        labels = (*(name for k, name in enumerate(labels) if k not in (i, j)), label)
    return Term(labels, x)


def _without_ones(terms: Sequence[Term]) -> list[Term]:
    """The terms without axes of length 1 that broadcast: those whose label may be longer."""
    known = known_lengths(terms)
    found = []
    for n, (labels, x) in enumerate(terms):
        ones = [k for k, m in enumerate(x.type.shape) if m == 1]
        seen = {k for t in terms[:n] for k in t.labels}
        dropped = [k for k in ones if known[labels[k]] != 1 or labels[k] in seen]
        kept = [k for k in range(x.type.ndim) if k not in dropped]
        found.append(Term(tuple(labels[k] for k in kept), dimshuffle(x, kept)))
    return found


def known_lengths(terms: Sequence[Term]) -> dict[str, int | None]:
    """The length of each label; None if it is not known, 1 if all operands have this length."""
    found: dict[str, int | None] = {}
    for labels, x in terms:
        for label, n in zip(labels, x.type.shape, strict=True):
            before = found.get(label, 1)
            found[label] = n if before == 1 or (before is None and n != 1) else before
    return found


def _contract(terms: Sequence[Term], output: Labels, path: Path) -> TensorVariable:
    """The product of all terms, by the steps of a path."""
    remaining = _summed_alone(terms, output)
    for step in path:
        chosen = [remaining[k] for k in step]
        remaining = [t for k, t in enumerate(remaining) if k not in step]
        merged, *others = chosen
        while others:
            other = others.pop(0)
            needed = {*output, *(k for t in (*others, *remaining) for k in t.labels)}
            merged = _product(*_in_order(merged, other, output), needed)
        remaining.append(merged)
    (last,) = remaining
    return dimshuffle(last.value, [last.labels.index(k) for k in output])


def _summed_alone(terms: Sequence[Term], output: Labels) -> list[Term]:
    """The terms, summed over the labels that no other term has, and neither the result."""
    found = []
    for n, (labels, x) in enumerate(terms):
        others = {*output, *(k for m, t in enumerate(terms) if m != n for k in t.labels)}
        axes = [k for k, label in enumerate(labels) if label not in others]
        if axes:
            bools = x.type.dtype == "bool"
            x = any_of(x, axes) if bools else sum_of(x, axes, dtype=x.type.dtype)
        found.append(Term(tuple(k for k in labels if k in others), x))
    return found


def _in_order(a: Term, b: Term, output: Labels) -> tuple[Term, Term]:
    """Two terms, first the one whose own axes come first in the result: they need not be moved."""
    first, second = (
        min(
            (output.index(k) for k in t.labels if k in output and k not in other.labels), default=-1
        )
        for t, other in ((a, b), (b, a))
    )
    return (b, a) if 0 <= second < first else (a, b)


def _product(a: Term, b: Term, needed: set[str]) -> Term:
    """The product of two terms, summed over common labels that are not needed any more."""
    common = [k for k in a.labels if k in b.labels]

    def pairs(labels: Sequence[str]) -> Pairs:
        return Pairs(*([t.labels.index(k) for k in labels] for t in (a, b)))

    batch = [k for k in common if k in needed]
    summed = [k for k in common if k not in needed]
    free = [k for t in (a, b) for k in t.labels if k not in common]
    out = contracted(a.value, b.value, pairs(batch), pairs(summed))
    return Term((*batch, *free), out)
