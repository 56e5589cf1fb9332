"""``python -m tests.pymc.reference [MODEL...]``: write the reference, with PyMC on PyTensor.

Without names it is written anew, with names the records of these models are.  The environment has
PyMC and PyTensor; its reference implementation computes the numbers.
"""

from __future__ import annotations

import sys

import pytensor

from tests.pymc.records import MODELS, read, record, write

#: Functions and steps of loops run node by node; fused nodes of many inputs could not
REFERENCE_MODE = {"mode": "FAST_COMPILE", "linker": "py", "tensor__local_elemwise_fusion": False}


def main(names: list[str]) -> int:
    if pytensor.__package__ != "pytensor":
        sys.exit(f"The reference is made with PyTensor; this is {pytensor.__package__}.")
    records = read() if names else {}
    with pytensor.config.change_flags(**REFERENCE_MODE):
        for name in names or MODELS:
            print(name, flush=True)
            records[name] = record(name)
            write({name: records[name] for name in MODELS if name in records})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
