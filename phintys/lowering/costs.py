"""What scalar instructions cost; an addition costs 1."""

from __future__ import annotations

from phintys.lowering.program import Inst

_FREE = "const dim index load store"
_ONE = (
    "add sub mul fma neg abs min max and or xor not select cast copysign shl shr floor ceil "
    "trunc rint eq ne lt le gt ge isnan isinf"
)
_FOUR = "div sqrt idiv imod nextafter wrap"
_TWENTY = "call pow fmod"
_COSTS = {
    name: price
    for names, price in ((_FREE, 0), (_ONE, 1), (_FOUR, 4), (_TWENTY, 20))
    for name in names.split()
}

#: from here on a value is worth keeping in memory rather than computing again
EXPENSIVE = 10


#: nanoseconds: for what is moved in order, for what is anywhere in memory, for a function of SciPy
_STREAM, _SCATTERED, _CALL = 1, 10, 200


def cost(inst: Inst) -> int:
    """How expensive an instruction is: 10 for exp, log and their kind."""
    return _COSTS.get(inst.op, EXPENSIVE)


def nanoseconds(inst: Inst) -> int:
    """About what an instruction takes for one point, rather too much than too little."""
    if inst.op == "call":
        return _CALL
    if inst.operand >= 0:
        return _STREAM if len(inst.args) == (inst.op != "load") else _SCATTERED
    return 1 if inst.op == "reduce" else cost(inst)
