"""Functions of Numba for ops of users, registered with and without keys of caches."""

from __future__ import annotations

import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.op import Op

pytest.importorskip("numba")
basic = pytest.importorskip("phintys.link.numba.dispatch.basic")


class Twice(Op):
    __props__ = ()
    itypes, otypes = [pt.dvector], [pt.dvector]

    def perform(self, node, inputs, output_storage):
        raise AssertionError("the registered function is used")


class Thrice(Twice):
    pass


def test_functions_with_keys():
    @basic.register_funcify_default_op_cache_key(Twice)
    def twice(op, node=None, **kwargs):
        return lambda x: 2 * x

    @basic.register_funcify_and_cache_key(Thrice)
    def thrice(op, node=None, **kwargs):
        return (lambda x: 3 * x), "a key"

    x = pt.dvector("x")
    f = phintys.function([x], [Twice()(x), Thrice()(x)], mode="NUMBA")
    assert [y.tolist() for y in f([1.0, 2.0])] == [[2, 4], [3, 6]]
    function, key = basic.numba_funcify_and_cache_key(Twice())
    assert (function(5), key) == (10, None)
