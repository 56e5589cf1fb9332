"""Seed 350054336.  llvm at 256 bits: value: result 0: np.complex128(1+0j) instead of np.complex128(nan+nanj) at (0, 3) (3 of 16)"""

# ruff: noqa
import numpy as np
import phintys
import phintys.tensor as pt

x8 = pt.tensor("x8", dtype="complex128", shape=(None, None))
v7 = pt.pow(1, x8)
inputs = [x8]
outputs = [v7]
updates = {}
arguments = [
    np.array(
        [
            [
                complex(-1.407292, -0.969637),
                complex(0.0, -1.5),
                complex(1.186926, -0.322681),
                complex(0.0, np.nan),
            ],
            [
                complex(-0.0, 1.0),
                complex(-0.0, 0.0),
                complex(1.484147, -1.097313),
                complex(1.597946, 1.728621),
            ],
            [
                complex(np.nan, -np.inf),
                complex(2.078981, 0.747442),
                complex(1.165455, 1.45157),
                complex(-0.715375, 1.04369),
            ],
            [
                complex(-0.0, -np.inf),
                complex(-1.012378, 0.323316),
                complex(0.774932, 1.850251),
                complex(-1.5, -1.5),
            ],
        ],
        "complex128",
    ),
]
