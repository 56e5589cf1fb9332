"""Kernels that run strip by strip: what one writes is in the cache when the next one reads it.

A chain of kernels over arrays that no cache holds reads and writes memory in each of them.  The
kernels of a range of steps in `Program.strips` may run for a strip of the arrays, one after the
other, then for the next strip::

    for each element: y = f(x)         for each strip: for its elements: y = f(x)
    for each element: z = g(y)                         for its elements: z = g(y)

A kernel that reads its neighbours, ``z[i] = g(y[i + 1])``, must stay behind the one that writes
them.  So each kernel has a *start*: iteration ``i`` of its outermost loop, whose stride is the
*pace*, takes place at time ``start + i * pace``.  A strip is an interval of time, in which each
kernel runs its iterations of that time.  Time and strides count elements, so kernels over rows and
over single elements agree.

The results are those of the steps in order, wherever strips begin, if of two iterations that access
the same element, one of them to write it, that of the earlier kernel has no later time.  Let it
access the elements ``low' + j * pace'`` and beyond, and the other one at most the element
``high + i * pace``.  If they meet, ``low' + j * pace' <= high + i * pace``, and so::

    start' + j * pace' <= (start' - low' + high) + i * pace <= start + i * pace

if ``start >= start' - low' + high``.  `Order` computes the least start for which that is so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, Union

import numpy as np

from phintys.dims import ONE, ZERO, Dim, coefficients, dim_max, product, total
from phintys.lowering.collapse import collapse
from phintys.lowering.program import Inst, Kernel, Operand, Program, Slot, items_in
from phintys.memo import Memo

#: Bytes of a strip in all arrays together: with what is read beside it, the L2 cache holds it.
STRIP_BYTES = 128 << 10

#: Bytes of a strip in the arrays of one kernel together: the L1 cache holds them.  Measured, on ten
#: steps of the heat equation: a tenth less time than without this limit; half of it gains nothing.
KERNEL_BYTES = 24 << 10

#: Bytes of arrays, at most, that form a single strip: the L2 cache holds them.
CACHED_BYTES = 256 << 10

#: Elements: strips and starts are multiples of this if they are constants, so that all strips of
#: a kernel begin at the same place in a cache line.
_UNIT = 16

#: Kernels that run in strips together, at most: bounds how far the last one stays behind.
_MOST_KERNELS = 64

#: Bytes of an element of all their arrays together, at most; `STRIP_BYTES` divided by them is the
#: number of elements of a strip.
_LARGEST_WIDTH = 128

#: `Dim.size` of a start, at most.
_LARGEST_START = 64

#: A constant stride of an outermost loop, at most.
_LARGEST_PACE = 2**32

#: a time at which all kernels have ended: arrays are smaller
FOREVER = 2**62

#: the first iteration of a kernel in a strip, and the number of its iterations
FIRST, COUNT = (Dim.symbol(("strip", k, 0)) for k in range(2))

#: a storage number, or a slot without storage
Memory = Union[int, Slot]


class Strips(NamedTuple):
    """Kernels that may run in strips, and their starts.

    ``length`` is the number of elements of the largest array that they write, ``width`` the number
    of bytes of an element of all their arrays together, ``widest`` that of the arrays of a kernel.
    At time ``t`` they access the elements from ``t - behind`` to ``t + ahead`` of a memory that
    they write: ``spans`` holds these two.
    """

    kernels: tuple[Kernel, ...]
    starts: tuple[Dim, ...]
    length: Dim
    width: int
    widest: int
    spans: dict[Memory, tuple[Dim, Dim]]

    @property
    def last(self) -> Dim:
        """A time at which all kernels have ended: each writes an element of its time less some."""
        return reduce(dim_max, [behind for behind, _ in self.spans.values()]) + self.length

    @property
    def step(self) -> int:
        """The length of a strip, in elements; a long one where strips overlap by long rows."""
        step = STRIP_BYTES // self.width
        near = min(step, KERNEL_BYTES // self.widest)
        overlaps = [(behind + ahead).value for behind, ahead in self.spans.values()]
        if all([overlap is not None and overlap <= near for overlap in overlaps]):
            step = near
        return max(1, step - step % _UNIT if step > _UNIT else step)

    @property
    def single(self) -> int:
        """The largest ``length`` for which there is one strip."""
        return CACHED_BYTES // self.width

    def ends(self, length: int) -> Iterator[int]:
        """The times at which strips end, for a value of ``length``; the last has no end."""
        if length > self.single:
            yield from range(self.step, length, self.step)
        yield FOREVER


def strips_of(kernels: Iterable[Kernel]) -> Strips | None:
    """The kernels with their starts; None if they cannot run in strips."""
    key = tuple(kernels)
    found = _found[key]
    if found is None:
        order = Order()
        admitted = all([order.admit(kernel) for kernel in key])
        found = _found.keep(key, (order.strips() if admitted else None,))
    return found[0]


_found: Memo[tuple[Kernel, ...], tuple[Strips | None]] = Memo(32, "strips of kernels")


def pace(kernel: Kernel) -> Dim:
    """The stride of the outermost loop of a kernel in what it writes, in elements."""
    return next(kernel.operands[i.operand].strides[0] for i in kernel.body if i.op in _WRITES)


def part_of(kernel: Kernel, axis: int, first: Dim, count: Dim) -> Kernel:
    """The kernel restricted to some iterations of a loop whose counter it does not use."""
    dims = (*kernel.dims[:axis], count, *kernel.dims[axis + 1 :])
    operands = tuple(
        o if o.strides[axis].value == 0 else o._replace(offset=o.offset + first * o.strides[axis])
        for o in kernel.operands
    )
    return Kernel(dims, kernel.split, operands, kernel.body, kernel.step, kernel.ragged)


_WRITES = ("store", "accumulate")


# ------------------------------------------------------------------------------------ order


#: A length as its terms with their factors: many are added and compared, few become a Dim
Terms = dict[Dim, int]


class _Access(NamedTuple):
    """How an iteration accesses memory: elements ``low`` to ``high``, before the pace is added.

    Not ``steady``: it may access any element.
    """

    memory: Memory
    itemsize: int
    writes: bool
    steady: bool
    low: Terms
    high: Terms


@dataclass(slots=True)
class _Known:
    """What kernels access in memory: the maxima of ``start - low``, and of ``high - start``."""

    itemsize: int
    steady: bool = True
    written: Terms | None = None
    touched: Terms | None = None
    ahead: Terms | None = None


class Order:
    """Kernels that run in strips, in the order of the Program, with their starts."""

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.starts: list[Dim] = []
        self.written_slots: set[int] = set()
        self.used: list[set[Memory]] = []  # what each kernel accesses
        self.known: dict[Memory, _Known] = {}
        self.width = 0  # the number of bytes of an element of all arrays together
        self.widest = 0  # that of all arrays of a kernel

    def admit(self, kernel: Kernel) -> bool:
        """Add a kernel, if it can run in strips after those before it; whether it was added."""
        accesses = _accesses(kernel)
        written = {a.memory for a in accesses if a.writes}
        if not written or len(self.kernels) == _MOST_KERNELS:
            return False
        sizes = {a.memory: a.itemsize for a in accesses if a.memory not in self.known}
        width = self.width + sum(sizes.values())
        if width > _LARGEST_WIDTH:
            return False
        if not self.written_slots.isdisjoint(_computed(kernel)):
            return False  # a length must be known before the first strip
        if not all([self._is_steady(a, a.memory in written) for a in accesses]):
            return False
        terms = _rounded(self._start(accesses))
        start = _dim(terms)
        if start.size > _LARGEST_START:
            return False
        for access in accesses:
            self._note(access, terms)
        self.kernels.append(kernel)
        self.starts.append(start)
        self.written_slots.update([slot.number for slot in kernel.writes()])
        self.used.append({a.memory for a in accesses})
        self.width = width
        self.widest = max(self.widest, sum({a.memory: a.itemsize for a in accesses}.values()))
        return True

    def _is_steady(self, access: _Access, written: bool) -> bool:
        """Whether memory that some kernel writes is accessed in step with the time by all."""
        known = self.known.get(access.memory, _Known(access.itemsize))
        if not written and known.written is None:
            return True
        return access.steady and known.steady and known.itemsize == access.itemsize

    def _start(self, accesses: Sequence[_Access]) -> Terms:
        start: Terms | None = None
        for access in accesses:
            known = self.known.get(access.memory)
            before = known and (known.touched if access.writes else known.written)
            if before is not None:
                start = _bound(start, _sum(before, access.high))
        return next(a.low for a in accesses if a.writes) if start is None else start

    def _note(self, access: _Access, start: Terms) -> None:
        known = self.known.setdefault(access.memory, _Known(access.itemsize))
        known.steady = known.steady and access.steady and known.itemsize == access.itemsize
        lead = _sum(start, access.low, -1)
        known.touched = _bound(known.touched, lead)
        known.ahead = _bound(known.ahead, _sum(access.high, start, -1))
        if access.writes:
            known.written = _bound(known.written, lead)

    def strips(self) -> Strips:
        """The kernels that have been added."""
        sizes = {product(slot.shape) for kernel in self.kernels for slot in kernel.writes()}
        length = reduce(dim_max, sizes, ZERO)
        spans = {
            memory: (_dim(_bound({}, known.touched or {})), _dim(_bound({}, known.ahead or {})))
            for memory, known in self.known.items()
            if known.written is not None
        }
        kernels, starts = tuple(self.kernels), tuple(self.starts)
        return Strips(kernels, starts, length, self.width, self.widest, spans)


def _computed(kernel: Kernel) -> set[int]:
    """The numbers of the slots whose values are lengths or offsets in a kernel."""
    shapes = [dim for slot in kernel.writes() for dim in slot.shape]
    return items_in([*kernel.lengths(), *shapes])


def _dim(terms: Terms) -> Dim:
    return total([term * factor for term, factor in terms.items()])


def _rounded(a: Terms) -> Terms:
    """A length that is at least as large, with a constant that is a multiple of `_UNIT`."""
    constant = -(-a.get(ONE, 0) // _UNIT) * _UNIT
    return {**a, ONE: constant} if ONE in a else a


def _sum(a: Terms, b: Terms, sign: int = 1) -> Terms:
    """The sum, or the difference, of two lengths."""
    result = dict(a)
    for term, factor in b.items():
        result[term] = result.get(term, 0) + sign * factor
        if not result[term]:
            del result[term]
    return result


def _bound(a: Terms | None, b: Terms) -> Terms:
    """A length that is at least as large as both, made of their terms: often without a comparison.

    It has the larger factor of each term that is at least 0; if the factors of another term differ,
    it is the larger of the two lengths.
    """
    if a is None or a == b:
        return b
    pairs = {term: (a.get(term, 0), b.get(term, 0)) for term in (*a, *b)}
    if any([x != y and not term.is_nonnegative for term, (x, y) in pairs.items()]):
        return coefficients(dim_max(_dim(a), _dim(b)))
    return {term: max(pair) for term, pair in pairs.items() if max(pair)}


def _accesses(kernel: Kernel) -> list[_Access]:
    """The accesses of a kernel; none if it cannot run in strips."""
    if not kernel.dims or kernel.ragged is not None or (kernel.is_reducing and not kernel.split):
        return []
    steps: set[Dim] = set()
    for inst in kernel.body:
        if inst.op == "wrap" or (inst.op == "index" and inst.param == 0):
            return []
        if inst.op in _WRITES:
            steps.add(kernel.operands[inst.operand].strides[0])
    step = steps.pop() if len(steps) == 1 else ZERO
    if not step.is_nonnegative or step.value == 0 or _may_be_huge(step):
        return []
    accesses = [_access(kernel, inst, step) for inst in kernel.body if inst.operand >= 0]
    return accesses if all([a.steady for a in accesses if a.writes]) else []


def _may_be_huge(step: Dim) -> bool:
    """Whether a stride may be larger than an array, so that times would overflow."""
    if step.value is not None:
        return step.value > _LARGEST_PACE
    return any([symbol.args[0][0] == "item" for symbol in step.symbols()])


def _access(kernel: Kernel, inst: Inst, step: Dim) -> _Access:
    operand = kernel.operands[inst.operand]
    slot = operand.slot
    memory = slot if slot.storage is None else slot.storage
    itemsize = np.dtype(str(slot.dtype)).itemsize
    bounds = None if operand.extra or operand.strides[0] is not step else _bounds(kernel, operand)
    low, high = bounds or ({}, {})
    return _Access(memory, itemsize, inst.op in _WRITES, bounds is not None, low, high)


def _bounds(kernel: Kernel, operand: Operand) -> tuple[Terms, Terms] | None:
    """The first and the last element that the inner loops access, if the signs are known.

    A loop without iterations accesses none, so the bounds are arbitrary.
    """
    low = high = coefficients(operand.offset)
    for length, stride in zip(kernel.dims[1:], operand.strides[1:]):
        extent = coefficients((length - 1) * stride)
        if stride.is_nonnegative:
            high = _sum(high, extent)
        elif (-stride).is_nonnegative:
            low = _sum(low, extent)
        else:
            return None
    return low, high


# ----------------------------------------------------------------------------------- ranges


def form_strips(program: Program) -> Program:
    """Set ``strips``: the ranges of kernels that gain by it.  Changes the Program, returns it."""
    order, steps = Order(), program.steps
    for number, step in enumerate([*steps, None]):
        kernel = _collapsed(step) if isinstance(step, Kernel) else None
        if kernel is not None and order.admit(kernel):
            continue
        first = number - len(order.kernels)
        if _pays(order):
            program.strips.append((first, number))
            steps[first:number] = order.kernels
        order = Order()
        if kernel is not None:
            order.admit(kernel)
    return program


def _collapsed(kernel: Kernel) -> Kernel:
    """An equal kernel with few loops, but at least one."""
    kernel = collapse(kernel)
    if kernel.dims:
        return kernel
    operands = tuple(o._replace(strides=(ONE,)) for o in kernel.operands)
    return Kernel((ONE,), 1, operands, kernel.body, kernel.step)


def _pays(order: Order) -> bool:
    """Whether kernels over large arrays access the same memory again and again.

    Where each kernel has many arrays of its own, strips would save little: on average, each array
    must be used one and a half times.
    """
    if len(order.kernels) < 2:
        return False
    strips = order.strips()
    if (strips.length.value or strips.single + 1) <= strips.single:
        return False
    uses = [used for k, used in zip(order.kernels, order.used) if not _is_short(k)]
    return len(uses) > 1 and 2 * sum(map(len, uses)) >= 3 * len(set[Memory]().union(*uses))


def starts_of(kernel: Kernel) -> list[Operand]:
    """The operands that a kernel writes from a constant element on, if it may have many points.

    Loops that begin elsewhere do what is left at the end of an array.
    """
    written = [kernel.operands[i.operand] for i in kernel.body if i.op in _WRITES]
    return [o for o in written if o.offset.value is not None and not _is_short(kernel)]


def _is_short(kernel: Kernel) -> bool:
    """Whether a kernel provably has few points."""
    points = 1
    for dim in kernel.dims:
        most = _most(dim)
        if most is None:
            return False
        points *= most
    return points <= CACHED_BYTES // 8


def _most(dim: Dim) -> int | None:
    """An upper bound of a length, if one is known."""
    most: dict[Dim, int | None] = {}
    for part in dim.parts():
        most[part] = part.value
        if part.op in ("max", "min"):
            bounds = [most[a] for a in part.args]
            known = [b for b in bounds if b is not None]
            if part.op == "min":
                most[part] = min(known, default=None)
            elif len(known) == len(bounds):
                most[part] = max(known)
    return most[dim]
