"""Packages that do not exist yet: their names can be imported, and say so when they are used."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Iterable

import numpy as np
import pytest
import scipy.sparse
from phintys.graph.rewriting.basic import node_rewriter

import phintys.tensor as pt
from phintys import planned
from phintys.errors import UnsupportedError
from phintys.planned import PATHS, names

#: what works without the package
WORK = {"as_sparse_or_tensor_variable", "as_symbolic", "as_xrv"}


@pytest.mark.parametrize("path", sorted(PATHS))
def test_every_name_raises_when_it_is_used(path):
    module = importlib.import_module(f"phintys.{path}")
    feature = {"sparse": "sparse matrices", "xtensor": "tensors with named dimensions"}
    found = names(path)
    assert found
    for name, value in found.items():
        assert getattr(module, name) is value
        if name not in WORK:
            with pytest.raises(UnsupportedError, match=rf"{name} is for") as caught:
                value()
            assert feature[path.partition(".")[0]] in str(caught.value)


def test_packages_have_their_modules_as_attributes():
    import phintys

    assert phintys.sparse.variable.SparseVariable is phintys.sparse.variable.SparseVariable
    assert phintys.xtensor.random.variable.shared_rng is phintys.xtensor.random.shared_rng
    assert not hasattr(phintys.sparse, "nothing") and not hasattr(phintys.xtensor.math, "nothing")
    with pytest.raises(ImportError):
        importlib.import_module("phintys.sparse.nothing")


def test_all_names_of_a_module_can_be_imported_at_once():
    scope: dict[str, object] = {}
    exec("from phintys.xtensor.math import *", scope)
    assert {"exp", "where", "as_xtensor"} <= scope.keys()


def test_nothing_is_an_instance():
    from phintys.sparse import SparseTensorType
    from phintys.xtensor.type import XTensorVariable

    x = pt.dvector("x")
    assert not isinstance(x.type, SparseTensorType) and not isinstance(x, XTensorVariable)


def test_op_classes_can_be_subclassed_and_tracked():
    from phintys.xtensor.basic import XTensorFromTensor

    class Measurable(Iterable):
        """An abstract class that other programs mix into classes of ops."""

    class MeasurableConversion(Measurable, XTensorFromTensor):
        def __iter__(self):
            return iter(())

    rewriter = node_rewriter([XTensorFromTensor])(lambda fgraph, node: None)
    assert rewriter.tracks() == [XTensorFromTensor]
    with pytest.raises(UnsupportedError, match="MeasurableConversion is for tensors"):
        MeasurableConversion()


def test_a_dense_value_may_be_given_where_a_sparse_matrix_may():
    from phintys.sparse import as_sparse_or_tensor_variable

    weights = np.array([[0.0, 1.0], [1.0, 0.0]])
    dense = as_sparse_or_tensor_variable(weights, name="weights")
    assert dense.name == "weights" and dense.type == pt.as_tensor_variable(weights).type
    x = pt.dmatrix("x")
    assert as_sparse_or_tensor_variable(x) is x
    with pytest.raises(UnsupportedError, match="sparse matrices, which are not available"):
        as_sparse_or_tensor_variable(scipy.sparse.csr_matrix(weights))


def test_functions_of_draws_are_made_before_they_are_used():
    from phintys.xtensor.random import as_xrv

    normal = pt.random.normal(0.0, 1.0).owner.op
    for draw, name in [
        (as_xrv(normal), "normal"),
        (as_xrv(normal, [], (), name="flat"), "flat"),
        (as_xrv(pt.exp), str(pt.exp)),
    ]:
        with pytest.raises(UnsupportedError, match=f"{name} is for tensors with named dimensions"):
            draw(0.0, 1.0)


def test_a_name_works_only_in_its_module(monkeypatch):
    """Not where another package has the same name."""
    monkeypatch.setitem(planned._NAMES, "sparse.utils", "hash_from_sparse as_xrv")
    assert names("sparse.utils")["as_xrv"] is not names("xtensor.random")["as_xrv"]
    with pytest.raises(UnsupportedError, match="as_xrv is for sparse matrices"):
        names("sparse.utils")["as_xrv"](pt.exp)


def test_they_are_imported_when_they_are_used():
    script = """
        import sys, phintys, phintys.tensor
        assert "phintys.planned" not in sys.modules
        import phintys.xtensor
        assert "phintys.planned" in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
