"""Ops that are equal behave alike: generated for every class of ops of the library."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pickle
import pkgutil
from functools import cached_property

import pytest

import phintys
import phintys.tensor as pt
from phintys.assumptions import SYMMETRIC, FactState
from phintys.graph.equality import equal_computations
from phintys.graph.fgraph import FrozenFunctionGraph
from phintys.graph.op import Op
from phintys.inner import OpFromGraph, SymbolicOp
from phintys.loop import ScanInfo
from phintys.scalar import gt
from phintys.scalar.composite import Composite
from phintys.scalar.op import TABLE
from phintys.scalar.type import scalar_type
from phintys.tensor.blas import AddingOp, BlasOp
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.index_ops import IndexOp
from phintys.tensor.linalg.equations import MatrixEquation
from phintys.tensor.linalg.matrix_functions import MatrixFunction
from phintys.tensor.linalg.riccati import RiccatiEquation
from phintys.tensor.nnet.corr import BaseCorrMM
from phintys.tensor.optimize.ops import (
    ScipyScalarWrapperOp,
    ScipyVectorWrapperOp,
    ScipyWrapperOp,
)
from phintys.tensor.reduce import FixedOpCAReduce
from phintys.tensor.signal.conv import AbstractConvolveNd
from phintys.tensor.sort import SortOp
from phintys.tensor.symbolic import TensorSymbolicOp

float32, float64 = scalar_type("float32"), scalar_type("float64")
a, b = float64("a"), float64("b")
PAIR = pt.dscalars("u", "v")


def other_override(*given):
    return given[0]


def other_preference(*types):
    """A rule of result types."""
    return (float64,)


FLAG = [False, True]
DTYPE = ["float32", "float64"]
AXIS = [None, 0, (0, 1), (1, 0)]
INDICES = [(0,), (slice(0, None, None),), (slice(None, 0, None),), (slice(None, None, 0),)]
#: values to try, by the name of a parameter, or by class and name
VALUES = {
    "OnDemand.origins": [()],
    "idx": [0, 1],
    "i": [0, 1],
    "ndim": [1, 2],
    "ndim_supp": [None, 0, 1],
    "ndims_params": [None, (0, 0), (1, 0)],
    "dtype": DTYPE,
    "acc_dtype": [None, "float64"],
    "o_type": [float32, float64],
    "scalar_op": [TABLE["add"], TABLE["mul"], TABLE["maximum"]],
    "op": [TABLE["maximum"], TABLE["minimum"]],
    "axis": AXIS,
    "assumptions": [{SYMMETRIC: FactState.TRUE}, {SYMMETRIC: FactState.FALSE}],
    "LoadFromDisk.shape": [(3,), (None,)],
    "mmap_mode": [None, "c"],
    "Recurrence.axis": [0, 1],
    "init": [[a], [a, b]],
    "update": [[a + b], [a * b], [b, a]],
    "constant": [None, [b]],
    "until": [None, gt(a, 1.0)],
    "SpawnOp.n": [1, 2],
    "MvNormalRV.method": ["cholesky", "svd"],
    "MultivariateHypergeometricRV.method": ["count", "marginals"],
    "TensorInv.ind": [1, 2],
    "TensorSolve.axes": [None, (0,)],
    "compute_grad": FLAG,
    "Repeat.axis": [0, 1],
    "Join.axis": [0, 1],
    "Split.axis": [0, 1],
    "CumOp.axis": [None, 0, 1],
    "ArgSortOp.axis": [0, 1],
    "SortOp.axis": [0, 1],
    "_Order.axis": [0, 1],
    "mode": ["add", "mul"],
    "RavelMultiIndex.mode": ["raise", "wrap", "clip"],
    "order": ["C", "F"],
    "Fourier.kind": ["fft", "irfft"],
    "norm": ["backward", "ortho"],
    "side": ["left", "right"],
    "inverse": FLAG,
    "return_index": FLAG,
    "return_inverse": FLAG,
    "return_counts": FLAG,
    "Unique.axis": [None, 0, 1],
    "SplitDims.axis": [0, 1],
    "start_axis": [0, 1],
    "n_axes": [0, 2],
    "kind": ["quicksort", "stable"],
    "inplace": FLAG,
    "lower": FLAG,
    "permute_l": FLAG,
    "p_indices": FLAG,
    "assume_a": ["gen", "symmetric", "sym"],
    "transposed": FLAG,
    "overwrite_dl": FLAG,
    "overwrite_d": FLAG,
    "overwrite_du": FLAG,
    "overwrite_a": FLAG,
    "overwrite_b": FLAG,
    "overwrite_c": FLAG,
    "hermitian": FLAG,
    "n_inputs": [1, 2],
    "unit_diagonal": FLAG,
    "b_ndim": [1, 2],
    "on_error": ["nan", "raise"],
    "QR.mode": ["full", "economic"],
    "pivoting": FLAG,
    "full_matrices": FLAG,
    "compute_uv": FLAG,
    "driver": ["evr", "evd"],
    "UPLO": [None, "U"],
    "output": ["real", "complex"],
    "complex_output": FLAG,
    "return_eigenvalues": FLAG,
    "sort": [None, "lhp"],
    "set_instead_of_inc": FLAG,
    "ignore_duplicates": FLAG,
    "destroyhandler_tolerate_aliased": [None, ((0, 1),)],
    "upcast_discrete_output": FLAG,
    "no_zeros_in_input": FLAG,
    "initial": FLAG,
    "view": FLAG,
    "offset": [0, -1],
    "axis1": [0, 1],
    "axis2": [1, 2],
    "len_splits": [1, 2],
    "clip_lower_bound": [-1.0, 0.0],
    "clip_upper_bound": [1.0, 2.0],
    "multiplier": [1.0, -1.0],
    "idx_list": INDICES,
    "input_ndim": [2, 3],
    "new_order": [(0, 1), (1, 0), (1, "x", 0), ("x", 0)],
    "inplace_pattern": [None, {0: 0}, {0: 1}],
    "nfunc_spec": [None, ("numpy.add", 2, 1)],
    "openmp": [None, True],
    "name": [None, "a label"],
    "core_op": [Dot(), SortOp("quicksort", 0)],
    "signature": ["(k),(k)->()", "(k)->(k)", "(i),(i)->()"],
    "gufunc_spec": [None, ("numpy.linalg.det", 1, 1)],
    "destroy_map": [None, {0: [0]}, {0: [1]}],
    "inputs": [[a, b], [b, a]],
    "outputs": [[a + b], [b + a], [a * b, a + b], [a * float64.make_constant(2.0) + b]],
    "Composite.name": ["Composite", "a label"],
    "inline": FLAG,
    "strict": [True],
    "pullback": [None, other_override, [None, other_override]],
    "pushforward": [None, other_override],
    "lop_overrides": [None],
    "rop_overrides": [None],
    "grad_overrides": [None, other_override],
    "connection_pattern": [None, [[True], [False]]],
    "fgraph": [None],
    "IfElse.n_outs": [1, 2],
    "as_view": FLAG,
    "true_branch": [FrozenFunctionGraph.from_io([a, b], [a + b])],
    "false_branch": [FrozenFunctionGraph.from_io([a, b], [v]) for v in (a, a * b)],
    "LazyIfElse.output_types": [[float64]],
    "LazyIfElse.origins": [((), ())],
    "Absent.type_": [float32, float64],
    "fn": [other_override, other_preference],
    "itypes": [[float64]],
    "otypes": [[float64], [float32]],
    "infer_shape": [None],
    "function": [other_override, other_preference],
    "input_types": [None, [float64]],
    "JAXOp.output_types": [[float64]],
    "exc_type": [ValueError, KeyError],
    "msg": ["one", "two"],
    "message": ["", "x"],
    "attrs": [("__str__",), ["shape"]],
    "global_fn": [other_override],
    "PdbBreakpoint.name": ["one", "two"],
    "on_unused_input": ["ignore"],
    "OpFromGraph.destroy_map": [None, {0: [0]}],
    "info": [
        ScanInfo(2, (), (), (), (), 1, 0, 0, False),
        ScanInfo(1, (), (), (), (), 1, 0, 1, False),
        ScanInfo(0, (), (), (), ((-1,),), 0, 0, 1, False),
        ScanInfo(0, (), (), (), ((-1,),), 1, 0, 1, False),
        ScanInfo(0, (), (), ((-2, -1),), (), 0, 0, 0, False),
    ],
    "Scan.inputs": [PAIR],
    "Scan.outputs": [[u + v] for u, v in (PAIR, PAIR[::-1])] + [[PAIR[0] * 2, PAIR[0] + PAIR[1]]],
    "typeConstructor": [None],
    "profile": [False],
    "allow_gc": [True],
    "truncate_gradient": [-1, 3],
    "Scan.mode": [None],
    "border_mode": ["valid", "half", ((0, 0), (0, 0)), (1, (0, 2))],
    "subsample": [(1, 1), (1, 2), (1,)],
    "filter_dilation": [None, (1, 1), (2, 1)],
    "num_groups": [1, 2],
    "subscripts": ["i,i->i"],
    "path": [((0, 1),)],
    "optimized": FLAG,
    "x": [PAIR[0]],
    "variables": [PAIR[0]],
    "args": [PAIR[1]],
    "objective": [PAIR[0] ** 2, PAIR[0] ** 4],
    "equation": [PAIR[0] ** 2, PAIR[0] ** 4],
    "equations": [PAIR[0] ** 2, PAIR[0] ** 4],
    "jac": FLAG,
    "hess": FLAG,
    "optimizer_kwargs": [None, {"tol": 1e-3}],
    "MinimizeOp.method": ["BFGS", "Powell"],
    "MinimizeScalarOp.method": ["brent", "golden"],
    "RootOp.method": ["hybr", "lm"],
    "RootScalarOp.method": ["newton", "secant"],
    "bound_kwargs": [(), ("bracket",)],
    "output_types_preference": [None, other_preference],
}
#: what equal ops may differ in: labels, and what they remember
LABELS = {"name", "nfunc_spec", "openmp", "__doc__", "_memo", "_hash", "origins"}

#: what the classes of ops share; no op is made of them
BASES = {
    MatrixEquation,
    MatrixFunction,
    RiccatiEquation,
    SymbolicOp,
    TensorSymbolicOp,
    AbstractConvolveNd,
    BaseCorrMM,
    IndexOp,
    BlasOp,
    AddingOp,
    FixedOpCAReduce,
    ScipyWrapperOp,
    ScipyScalarWrapperOp,
    ScipyVectorWrapperOp,
}


def own_modules():
    for m in pkgutil.walk_packages(phintys.__path__, "phintys."):
        if m.name.split(".")[-1] != "__main__" and not {"numba", "jax"} & {*m.name.split(".")}:
            importlib.import_module(m.name)


def classes():
    own_modules()
    todo, found = [Op], {}
    while todo:
        for cls in todo.pop().__subclasses__():
            if cls.__module__.startswith("phintys."):
                todo.append(cls)
                found[cls] = None
    return [c for c in found if hasattr(c, "__props__") and c not in BASES and c.__name__[0] != "_"]


def instances(cls):
    """Ops of a class with all combinations of values that its constructor accepts."""
    parameters = [
        p
        for p in list(inspect.signature(cls.__init__).parameters.values())[1:]
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    choices = []
    for p in parameters:
        values = VALUES.get(f"{cls.__name__}.{p.name}", VALUES.get(p.name))
        assert values is not None, f"write values for {p.name} of {cls.__name__} into VALUES"
        choices.append(values)
    found = []
    for values in itertools.product(*choices):
        try:
            found.append(cls(**dict(zip([p.name for p in parameters], values, strict=True))))
        except (TypeError, ValueError):  # these do not go together
            pass
    return found


def behaviour(op):
    """What an op is, but for labels and what it remembers."""
    cached = {n for c in type(op).__mro__ for n, v in vars(c).items() if type(v) is cached_property}
    ignored = LABELS | cached
    found = {n: v for n, v in vars(op).items() if n not in ignored}
    for name in ("destroy_map", "view_map", "default_output"):
        found[name] = getattr(op, name)
    return found


@pytest.mark.parametrize("cls", classes(), ids=lambda c: c.__name__)
def test_equal_ops_behave_alike(cls):
    ops = instances(cls)
    assert ops, f"{cls.__name__} cannot be made"
    groups = {}
    for op in ops:
        groups.setdefault(op, []).append(op)
    for first, others in groups.items():
        for op in others:
            assert op == first and hash(op) == hash(first)
            assert behaviour(op) == behaviour(first)
    for op in groups:
        copy = pickle.loads(pickle.dumps(op))
        assert copy == op and hash(copy) == hash(op) and behaviour(copy) == behaviour(op)


def test_the_test_makes_ops_that_differ():
    for cls, at_least in (
        (Blockwise, 8),
        (DimShuffle, 4),
        (Elemwise, 6),
        (Composite, 4),
        (OpFromGraph, 40),
    ):
        assert len(set(instances(cls))) >= at_least


def test_rows_of_the_table_are_equal_to_themselves_alone():
    ops = list(TABLE.values())
    assert len(set(ops)) == len(ops)
    assert [pickle.loads(pickle.dumps(op)) for op in ops] == ops


def test_equality_of_blockwise_looks_at_the_destroy_map():
    plain, inplace = (Blockwise(Dot(), "(k),(k)->()", destroy_map=d) for d in (None, {0: [0]}))
    assert plain != inplace and plain == Blockwise(Dot(), "(k),(k)->()", name="other")
    x, y = pt.dmatrices("x", "y")
    assert not equal_computations([plain(x, y)], [inplace(x, y)])
