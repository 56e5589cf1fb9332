"""The matrix has every op, every public function of tensors, every dtype of indices."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import matrix_functions
import matrix_structured
from matrix_functions import INTEGERS

import phintys.tensor as pt
from phintys.graph.op import Op
from phintys.graph.traversal import apply_ancestors
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.scalar_functions import FUNCTIONS
from phintys.tensor.type_constructors import CONSTRUCTORS

#: classes without nodes of their own
BASES = """
    AbstractConvolveNd BaseCorrMM AddingOp BaseBlockDiagonal BlasOp FixedOpCAReduce
    AbstractRNGConstructor IndexOp MatrixEquation MatrixFunction MatrixOp RiccatiEquation
    RNGConsumerOp ScipyScalarWrapperOp ScipyVectorWrapperOp ScipyWrapperOp SolveBase
    _Exponentials _Extreme
    _Hermitian _Logical _NoDerivative _Order _Positions _SameDtype
"""
#: ops that the matrix has no columns of, and where they are tested
ELSEWHERE = {
    "Lengths": "the lengths of a result, checked: tests/tensor/test_lengths.py",
    "ARangeLength": "the length of a range: tests/tensor/test_creation.py",
    "DetCotangent": "see tests/tensor/linalg/test_derivatives_of_determinants.py",
    "SingularCofactors": "see tests/tensor/linalg/test_derivatives_of_determinants.py",
    **dict.fromkeys(
        ("TensorInv", "TensorSolve"), "graphs of other ops: tests/tensor/linalg/test_solve.py"
    ),
    "AsWritten": "the identity: tests/matrix/matrix_nodes.py",
    "FittingFilters": "the identity: tests/tensor/nnet/test_unshared.py",
    "LoadFromDisk": "it reads a file: tests/compile/test_clients_of_functions.py",
    "MakeSlice": "its result is a slice: tests/tensor/test_creation.py",
    **dict.fromkeys(
        "Assert PdbBreakpoint Print".split(),
        "the identity: tests/tensor/test_raise_op.py",
    ),
    **dict.fromkeys(
        "FromFunctionOp JAXOp TensorSymbolicOp".split(),
        "functions of users: tests/tensor/test_wrapped.py, tests/inner/test_symbolic_op.py",
    ),
    **dict.fromkeys(
        "DefaultGeneratorMakerOp SpawnOp".split(),
        "their results are generators: tests/tensor/random/test_random_stream.py",
    ),
    **dict.fromkeys(
        "MinimizeOp MinimizeScalarOp RootOp RootScalarOp".split(),
        "solvers of SciPy: tests/tensor/test_optimize.py",
    ),
    "SliceParts": "its input is a slice: tests/tensor/test_grids.py",
}
#: functions without columns, and why
NO_COLUMNS = {
    **dict.fromkeys("as_tensor as_tensor_variable tensor".split(), "conversion of values"),
    **dict.fromkeys("grad hessian jacobian vectorize".split(), "functions of graphs"),
    **dict.fromkeys(
        "extract_constant get_scalar_constant_value get_underlying_scalar_constant_value "
        "get_vector_length infer_static_shape".split(),
        "what is known of a graph: tests/tensor/test_shape.py",
    ),
    **dict.fromkeys("slicetype none_type_t TensorLike".split(), "types"),
    **dict.fromkeys("import_module register_later".split(), "no functions of tensors"),
    "kn": "another name of kv",
    "transfer": "there is one device: tests/tensor/test_methods.py",
}


def subclasses(cls: type) -> list[type]:
    found = [cls]
    for c in found:
        found += c.__subclasses__()
    return found


def test_every_op_has_a_column():
    """A new op has a line in the matrix, or a reason here."""
    for module in pkgutil.walk_packages(pt.__path__, "phintys.tensor."):
        importlib.import_module(module.name)
    seen = set()
    for column in matrix_structured.columns():
        for node in apply_ancestors([column.build(*column.variables())]):
            seen |= {type(node.op), type(getattr(node.op, "core_op", None))}
    own = {
        cls.__name__
        for cls in subclasses(Op)
        if cls.__module__.startswith("phintys.tensor.")
        and not issubclass(cls, RandomVariable)  # draws are not compared by value
        and cls not in seen
    }
    explained = {*BASES.split(), *ELSEWHERE}
    assert own == explained, f"without a column: {own - explained}, with one: {explained - own}"


def used_names() -> set[str]:
    """The attributes and strings in the modules that write columns."""
    found = set()
    for name in ("matrix_structured.py", "matrix_functions.py"):
        for node in ast.walk(ast.parse((Path(__file__).parent / name).read_text())):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(node.value.split())
    return found


def test_every_function_has_a_column():
    functions = {
        name
        for name, value in vars(pt).items()
        if callable(value) and not inspect.isclass(value) and name[0] != "_"
    }
    without = functions - used_names() - {*FUNCTIONS, *CONSTRUCTORS}
    assert without == NO_COLUMNS.keys() & functions


def test_every_dtype_of_indices_has_columns():
    found: dict[str, set[str]] = {}
    for line in matrix_functions.LINES:
        if line.family == "index dtype":
            found.setdefault(line.name, set()).add(line.indices)
    assert len(found) > 20 and all(found[name] == set(INTEGERS) for name in found)
    written = {c.ranks for c in matrix_structured.columns() if c.family == "index dtype"}
    assert all(any(dtype in ranks for ranks in written) for dtype in INTEGERS if dtype != "int64")
