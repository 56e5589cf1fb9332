"""The cost model of scalar instructions, relative to an addition, which costs 1."""

from __future__ import annotations

from phintys.lowering.program import Inst

_FREE = "const dim index load store complex real imag"
_ONE = (
    "add sub mul fma neg abs min max and or xor not select cast copysign shl shr floor ceil "
    "trunc rint eq ne lt le gt ge isnan isinf"
)
_FOUR = "div sqrt idiv imod nextafter wrap"
_TWENTY = "call pow fmod"
_COSTS = {
    name: value
    for names, value in ((_FREE, 0), (_ONE, 1), (_FOUR, 4), (_TWENTY, 20))
    for name in names.split()
}

#: from this cost on, a value is stored rather than recomputed
EXPENSIVE = 10


#: nanoseconds of a sequential access, of a random access, and of a call of a SciPy function
_STREAM, _SCATTERED, _CALL = 1, 10, 200


def cost(inst: Inst) -> int:
    """The cost of an instruction relative to an addition; 10 for exp, log and similar functions."""
    return _COSTS.get(inst.op, EXPENSIVE)


def nanoseconds(inst: Inst) -> int:
    """A conservative estimate (an upper bound, roughly) of the time for one loop iteration."""
    if inst.op == "call":
        return _CALL
    if inst.operand >= 0:
        return _STREAM if len(inst.args) == (inst.op != "load") else _SCATTERED
    return 1 if inst.op == "reduce" else cost(inst)
