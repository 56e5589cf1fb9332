"""Kernels with fewer loops."""

from __future__ import annotations

from phintys.lowering.program import Inst, Kernel


def collapse(kernel: Kernel) -> Kernel:
    """An equal kernel with fewer loops: loops of length 1 dropped, contiguous neighbours joined."""
    indexed = {inst.param for inst in kernel.body if inst.op == "index"}
    if kernel.ragged is not None:
        indexed.add(len(kernel.dims) - 1)
    strides = [list(operand.strides) for operand in kernel.operands]
    kept: list[int] = []  # dims that remain, innermost first
    lengths = list(kernel.dims)
    for d in reversed(range(len(kernel.dims))):
        if lengths[d].value == 1 and d not in indexed:
            continue
        inner = kept[-1] if kept else None
        if inner is None or d in indexed or inner in indexed or d < kernel.split <= inner:
            kept.append(d)
        elif all(s[d] is s[inner] * lengths[inner] for s in strides):
            lengths[inner] = lengths[d] * lengths[inner]
        else:
            kept.append(d)
    kept.reverse()
    new = {d: number for number, d in enumerate(kept)}
    operands = tuple(
        operand._replace(strides=tuple(s[d] for d in kept))
        for operand, s in zip(kernel.operands, strides)
    )
    split = sum(d < kernel.split for d in kept)
    body = tuple(i._replace(param=new[i.param]) if i.op == "index" else i for i in kernel.body)
    if split == len(kept):
        body = tuple(_of_one_point(i) if i.op == "reduce" else i for i in body)
    dims = tuple(lengths[d] for d in kept)
    return Kernel(dims, split, operands, body, kernel.step, kernel.ragged)


def _of_one_point(reduce: Inst) -> Inst:
    """The instruction that replaces a reduction over no loops: the value, or position 0."""
    if reduce.param in ("argmax", "argmin"):
        return Inst("const", "int64", (), 0)
    return reduce._replace(op="cast", param=None)
