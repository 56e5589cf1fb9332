"""Sums over rows, several rows at a time.

A kernel that adds rows up in memory loads and stores the sums once per row.  Where rows are long,
adding several rows per iteration saves most of these accesses, and pairwise summation of their
elements is also more accurate.  The sums of short rows stay in the L1 cache anyway.
"""

from __future__ import annotations

from phintys.backends.llvm import costs
from phintys.dims import ONE, Dim, dim_min
from phintys.lowering.costs import cost
from phintys.lowering.program import Inst, Kernel, Operand


def by_several_rows(kernel: Kernel) -> list[Kernel]:
    """Kernels that together replace one: for groups of long rows, then for the other rows."""
    if not _adds_rows_up(kernel):
        return [kernel]
    d = len(kernel.dims) - 2
    long = dim_min(kernel.dims[-1] // costs.ROWS_LENGTH, ONE)
    groups = kernel.dims[d] // costs.ROWS_TOGETHER * long
    grouped = groups * costs.ROWS_TOGETHER
    rest = _with_dim(kernel, d, kernel.dims[d] - grouped)
    for n, o in enumerate(kernel.operands):
        if o.strides[d].value != 0:
            moved = o._replace(offset=o.offset + grouped * o.strides[d])
            rest.operands = (*rest.operands[:n], moved, *rest.operands[n + 1 :])
    return [_grouped(kernel, d, groups), rest]


def _with_dim(kernel: Kernel, d: int, length: Dim) -> Kernel:
    dims = (*kernel.dims[:d], length, *kernel.dims[d + 1 :])
    return Kernel(dims, kernel.split, kernel.operands, kernel.body, kernel.step)


def _adds_rows_up(kernel: Kernel) -> bool:
    """Whether a kernel only accumulates cheap values over its last loop but one."""
    if len(kernel.dims) < 2 or kernel.split < len(kernel.dims) or kernel.ragged is not None:
        return False
    rows, row = (d.value for d in kernel.dims[-2:])
    few = rows is not None and rows < 2 * costs.ROWS_TOGETHER
    if few or (row is not None and row < costs.ROWS_LENGTH):
        return False
    effects = [i for i in kernel.body if i.op in ("store", "accumulate", "wrap", "index")]
    if not effects or sum(map(cost, kernel.body)) > costs.ROWS_COST + 10 * len(effects):
        return False
    return all(_is_row_sum(kernel, i) for i in effects)


def _is_row_sum(kernel: Kernel, inst: Inst) -> bool:
    if inst.op != "accumulate" or len(inst.args) != 1:
        return False
    operand = kernel.operands[inst.param[0]]
    plain = operand.strides[-1].value == 1 and operand.strides[-2].value == 0
    return plain and operand.slot.dtype != "bool"


def _grouped(kernel: Kernel, d: int, groups: Dim) -> Kernel:
    """The kernel over groups of rows."""
    operands = list(kernel.operands)
    body: list[Inst] = []
    values: list[list[int]] = []  # instruction -> new positions, one per row or one for all rows
    for inst in kernel.body:
        if inst.op == "accumulate":
            total = _combined(body, inst, values[inst.args[0]])
            values.append([])
            body.append(inst._replace(args=(total,)))
            continue
        moving = inst.op == "load" and kernel.operands[inst.param].strides[d].value != 0
        apart = moving or any(len(values[a]) > 1 for a in inst.args)
        rows = []
        for row in range(costs.ROWS_TOGETHER if apart else 1):
            args = tuple(values[a][row % len(values[a])] for a in inst.args)
            param = inst.param
            if moving:
                param = len(operands)
                operands.append(_row_of(kernel.operands[inst.param], d, row))
            rows.append(len(body))
            body.append(inst._replace(args=args, param=param))
        values.append(rows)
    result = _with_dim(kernel, d, groups)
    result.operands, result.body = tuple(operands), tuple(body)
    return result


def _row_of(operand: Operand, d: int, row: int) -> Operand:
    stride = operand.strides[d]
    strides = (*operand.strides[:d], stride * costs.ROWS_TOGETHER, *operand.strides[d + 1 :])
    return operand._replace(strides=strides, offset=operand.offset + stride * row)


def _combined(body: list[Inst], accumulate: Inst, values: list[int]) -> int:
    """Append the pairwise combination of the values of all rows, and return its position."""
    _, kind = accumulate.param
    values = values if len(values) > 1 else values * costs.ROWS_TOGETHER
    dtype = body[values[0]].dtype
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        first = len(body)
        body += [Inst(kind, dtype, pair) for pair in pairs]
        values = list(range(first, len(body)))
    return values[0]
