"""``python -m tests.pymc.reference [MODEL...]``: write the reference, with PyMC on PyTensor.

Without names it is written anew, with names the records of these models are.  The environment has
PyMC and PyTensor; ``PYTENSOR_FLAGS`` is `FLAGS`, so that each op runs as its reference says.
"""

from __future__ import annotations

import os
import sys

import pytensor

from tests.pymc.records import MODELS, read, record, write

#: Node by node in Python: there a fused node cannot have many inputs
FLAGS = "mode=FAST_COMPILE,linker=py,cxx=,optimizer_excluding=fusion"


def main(names: list[str]) -> int:
    if pytensor.__package__ != "pytensor":
        sys.exit(f"The reference is made with PyTensor; this is {pytensor.__package__}.")
    if os.environ.get("PYTENSOR_FLAGS") != FLAGS:
        sys.exit(f"Set PYTENSOR_FLAGS={FLAGS}")
    records = read() if names else {}
    for name in names or MODELS:
        print(name, flush=True)
        records[name] = record(name)
        write({name: records[name] for name in MODELS if name in records})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
