"""The order in which the operands of a sum of products are multiplied.

A path is a sequence of steps, as in `numpy.einsum_path` and opt_einsum: each step has the positions
of the terms that it multiplies, which are removed; the result becomes the last term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from math import prod
from typing import Any

Labels = frozenset[str]
Path = tuple[tuple[int, ...], ...]

#: The most terms whose best order is found by trying all.
FEW = 7
#: What stands for a length that is not known.
TYPICAL_LENGTH = 64


def contraction_path(
    terms: Sequence[Labels], output: Labels, lengths: Mapping[str, int | None], optimize: Any = True
) -> Path:
    """The path for terms with these labels, by number of multiplications.

    Parameters
    ----------
    terms, output
        the labels of the axes of each operand, and of the result
    lengths
        of the axes; None: not known
    optimize
        True: the best path of up to `FEW` terms; for more, that of opt_einsum if it is installed,
        else a greedy one.  False: from left to right.  ``"optimal"``, ``"greedy"``, or another
        name that opt_einsum knows.  Or a path, which may start with ``"einsum_path"``.

    ValueError for a name that is not known, or a path that does not fit.

    >>> ij, jk, kl = frozenset("ij"), frozenset("jk"), frozenset("kl")
    >>> contraction_path([ij, jk, kl], frozenset("il"), {"i": 100, "j": 100, "k": 100, "l": 1})
    ((1, 2), (0, 1))
    """
    if not isinstance(optimize, bool | str):
        return _given(optimize, len(terms))
    if optimize is False:
        return _from_left(len(terms))
    sizes = {k: TYPICAL_LENGTH if n is None else max(n, 1) for k, n in lengths.items()}
    if optimize is True or optimize == "auto":
        optimize = "optimal" if len(terms) <= FEW else "auto"
    if len(terms) < 3:
        return _from_left(len(terms))
    search = _SEARCHES.get(optimize)
    if search is not None and (optimize != "optimal" or len(terms) <= FEW):
        return search(terms, output, sizes)
    if find_spec("opt_einsum") is not None:
        return _by_opt_einsum(terms, output, sizes, optimize)
    if optimize in ("auto", "optimal"):
        return _greedy(terms, output, sizes)
    raise ValueError(f"optimize={optimize!r} needs the package opt_einsum, which is not installed.")


def _given(path: Sequence[Any], count: int) -> Path:
    """A path that the user has written, checked."""
    steps = path[1:] if len(path) and path[0] == "einsum_path" else path
    found = tuple(tuple(int(k) for k in step) for step in steps)
    for step in found:
        if not step or len(set(step)) < len(step) or not all(0 <= k < count for k in step):
            raise ValueError(f"Step {step} of {path} does not fit {count} terms.")
        count += 1 - len(step)
    if count != 1:
        raise ValueError(f"{path} leaves {count} terms.")
    return found


def _from_left(count: int) -> Path:
    if count == 1:
        return ((0,),)
    return ((0, 1), *((0, k) for k in range(count - 2, 0, -1)))


def _by_opt_einsum(
    terms: Sequence[Labels], output: Labels, sizes: Mapping[str, int], optimize: str
) -> Path:
    paths: Any = import_module("opt_einsum.paths")
    find = paths.get_path_fn(optimize)
    return tuple(map(tuple, find([set(t) for t in terms], set(output), dict(sizes), None)))


def _greedy(terms: Sequence[Labels], output: Labels, sizes: Mapping[str, int]) -> Path:
    """At each step the two terms whose product saves most memory; of equal ones, most work."""
    remaining = list(terms)
    steps: list[tuple[int, ...]] = []
    while len(remaining) > 1:
        uses = Counter(k for t in (*remaining, output) for k in t)
        i, j = min(
            combinations(range(len(remaining)), 2),
            key=lambda pair: _price(remaining[pair[0]], remaining[pair[1]], uses, sizes),
        )
        merged = _merged(remaining[i], remaining[j], uses)
        remaining = [*(t for k, t in enumerate(remaining) if k not in (i, j)), merged]
        steps.append((i, j))
    return tuple(steps)


def _merged(a: Labels, b: Labels, uses: Mapping[str, int]) -> Labels:
    """The labels of the product of two terms: those that others use."""
    return frozenset([k for k in a | b if uses[k] > (k in a) + (k in b)])


def _price(
    a: Labels, b: Labels, uses: Mapping[str, int], sizes: Mapping[str, int]
) -> tuple[bool, int, int]:
    """Whether two terms have no common label; growth of memory; work."""
    growth = _size(_merged(a, b, uses), sizes) - _size(a, sizes) - _size(b, sizes)
    return not a & b, growth, _size(a | b, sizes)


def _size(labels: Labels, sizes: Mapping[str, int]) -> int:
    return prod([sizes[k] for k in labels])


def _optimal(terms: Sequence[Labels], output: Labels, sizes: Mapping[str, int]) -> Path:
    """The path with the fewest multiplications: the best split of each set of terms."""
    whole = (1 << len(terms)) - 1
    labels = {1 << k: t for k, t in enumerate(terms)}
    best: dict[int, tuple[int, int]] = {1 << k: (0, 0) for k in range(len(terms))}
    for subset in range(1, whole + 1):
        if subset in best:
            continue
        inside = [t for k, t in enumerate(terms) if subset >> k & 1]
        outside = [t for k, t in enumerate(terms) if not subset >> k & 1]
        labels[subset] = frozenset().union(*inside) & output.union(*outside)
        best[subset] = min(_splits(subset, labels, best, sizes))
    return _steps(whole, best, len(terms))


def _splits(
    subset: int,
    labels: Mapping[int, Labels],
    best: Mapping[int, tuple[int, int]],
    sizes: Mapping[str, int],
) -> list[tuple[int, int]]:
    """The work of each way to split a set of terms into two, and minus the first part."""
    found = []
    part = (subset - 1) & subset
    while part:
        rest = subset ^ part
        if part > rest:
            work = _size(labels[part] | labels[rest], sizes)
            # of equal splits the one whose second part is the last term: from left to right
            found.append((best[part][0] + best[rest][0] + work, -rest))
        part = (part - 1) & subset
    return found


def _steps(whole: int, best: Mapping[int, tuple[int, int]], count: int) -> Path:
    """The steps that multiply all terms, by the best splits."""
    order = [whole]
    for subset in order:
        part = -best[subset][1]
        order += [part, subset ^ part] if part else []
    terms = [1 << k for k in range(count)]
    steps: list[tuple[int, ...]] = []
    for subset in reversed(order):
        part = -best[subset][1]
        if part:
            pair = sorted((terms.index(part), terms.index(subset ^ part)))
            terms = [t for k, t in enumerate(terms) if k not in pair] + [subset]
            steps.append(tuple(pair))
    return tuple(steps)


_SEARCHES: dict[str, Callable[..., Path]] = {"optimal": _optimal, "greedy": _greedy}
