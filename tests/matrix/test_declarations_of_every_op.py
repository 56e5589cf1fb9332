"""DebugMode's checks of ``perform`` find nothing at the ops of this package."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_nodes import alone, examples

from phintys.compile.debug.nodes import NodeChecks, Options

#: everything, but for compiled code and finite results
EVERYTHING = Options(
    check_c_code=False,
    check_py_code=True,
    check_isfinite=False,
    check_preallocated_output=frozenset(["ALL"]),
    require_matching_strides=0,
    warn_input_not_reused=True,
    preallocated_ndim=2,
)


@pytest.mark.filterwarnings("error:.*DebugMode__warn_input_not_reused")
def test_ops_do_what_they_declare():
    checks = NodeChecks(EVERYTHING, lambda node: None)
    count = 0
    for nodes in examples().values():
        for node, values in nodes[:2]:
            _, copy, _ = alone(node)
            with np.errstate(all="ignore"):
                checks.run(copy, values)
            count += 1
    assert count > 100
