"""Packages of PyTensor that do not exist here yet: their names do, and raise when they are used.

Programs import such names at their start, and ask by ``isinstance`` for what they have.

>>> from phintys.xtensor import as_xtensor
>>> from phintys.xtensor.type import XTensorVariable
>>> isinstance(1.0, XTensorVariable)
False
>>> as_xtensor([1.0], dims=["a"])
Traceback (most recent call last):
    ...
phintys.errors.UnsupportedError: phintys.xtensor: as_xtensor is for tensors with named dimensions,
which are not available yet.

A dense value is not refused where a sparse matrix may be given:

>>> from phintys.sparse import as_sparse_or_tensor_variable
>>> as_sparse_or_tensor_variable([[1.0, 2.0]]).eval()
array([[1., 2.]])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Never

from phintys.errors import UnsupportedError
from phintys.graph.op import Op
from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.variable import TensorVariable

#: package -> what it is for
_FEATURES = {"sparse": "sparse matrices", "xtensor": "tensors with named dimensions"}
#: path of a module -> the names that it defines; those with a capital letter are classes
_NAMES = {
    "sparse": "SparseTensorType as_symbolic shared",
    "sparse.basic": """
        CSC CSM CSMGrad CSMProperties CSR Cast ColScaleCSC ConstructSparseFromList DenseFromSparse
        Diag EnsureSortedIndices GetItem2Lists GetItem2ListsGrad GetItem2d GetItemList
        GetItemListGrad GetItemScalar HStack Remove0 RowScaleCSC SparseFromDense Stack Transpose
        VStack as_sparse as_sparse_or_tensor_variable as_sparse_variable as_symbolic_sparse bcast
        bsr_dmatrix bsr_fmatrix bsr_matrix cast ccast clean col_scale construct_sparse_from_list
        csc_dmatrix csc_fmatrix csc_from_dense csc_matrix csm_data csm_grad csm_indices csm_indptr
        csm_properties csm_shape csr_dmatrix csr_fmatrix csr_from_dense csr_matrix dcast
        dense_from_sparse diag ensure_sorted_indices fcast get_item_2d get_item_2lists
        get_item_2lists_grad get_item_list get_item_list_grad get_item_scalar hstack icast lcast
        matrix remove0 row_scale sp_ones_like sp_zeros_like square_diagonal transpose vstack wcast
        zcast
    """,
    "sparse.linalg": "SparseBlockDiagonal block_diag",
    "sparse.math": """
        AddSparseDense AddSparseSparse AddSparseSparseData Dot EqualSparseDense EqualSparseSparse
        GreaterEqualSparseDense GreaterEqualSparseSparse GreaterThanSparseDense
        GreaterThanSparseSparse LessEqualSparseDense LessEqualSparseSparse LessThanSparseDense
        LessThanSparseSparse MultiplySparseDense MultiplySparseDenseVector MultiplySparseSparse
        NotEqualSparseDense NotEqualSparseSparse SamplingDot SpSum StructuredAddSparseDenseVector
        StructuredDot StructuredDotGradCSC StructuredDotGradCSR TrueDot Usmm abs add add_s_d
        add_s_s add_s_s_data arcsin arcsinh arctan arctanh ceil conj conjugate deg2rad dot eq
        equal_s_d equal_s_s expm1 floor ge greater_equal_s_d greater_equal_s_s greater_than_s_d
        greater_than_s_s gt le less_equal_s_d less_equal_s_s less_than_s_d less_than_s_s log1p lt
        mul mul_s_d mul_s_s mul_s_v multiply neg neq not_equal_s_d not_equal_s_s rad2deg rint
        sampling_dot sdg_csc sdg_csr sign sin sinh sp_sum sqr sqrt structured_add
        structured_add_s_v structured_conjugate structured_dot structured_dot_grad
        structured_elemwise structured_exp structured_log structured_maximum structured_minimum
        structured_pow structured_sigmoid sub subtract tan tanh true_dot trunc usmm
    """,
    "sparse.sharedvar": "SparseTensorSharedVariable sparse_constructor",
    "sparse.type": "SparseTensorType",
    "sparse.utils": "hash_from_sparse",
    "sparse.variable": """
        SparseConstant SparseConstantSignature SparseVariable constant override_dense
    """,
    "xtensor": """
        as_xtensor broadcast concat dot full_like ones_like where xtensor xtensor_constant
        zeros_like
    """,
    "xtensor.basic": """
        Rename TensorFromXTensor XOp XTensorFromTensor XTypeCastOp rename tensor_from_xtensor
        xtensor_from_tensor
    """,
    "xtensor.indexing": """
        Index IndexUpdate as_idx_variable get_static_slice_length index index_assignment
        index_increment
    """,
    "xtensor.linalg": "cholesky solve",
    "xtensor.math": """
        Dot abs add and_ angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh betainc
        betaincinv bitwise_and bitwise_invert bitwise_not bitwise_or bitwise_xor cast ceil clip
        complex conj conjugate cos cosh deg2rad dot eq equal erf erfc erfcinv erfcx erfinv exp
        exp2 expit expm1 floor floor_div floor_divide gamma gammainc gammaincc gammainccinv
        gammaincinv gammal gammaln gammau ge greater greater_equal gt hyp2f1 i0 i1 identity imag
        int_div invert isinf isnan iv ive j0 j1 jv kve le less less_equal log log10 log1mexp log1p
        log2 logical_and logical_not logical_or logical_xor logsumexp lt maximum minimum mod mul
        multiply ndtri_exp neg negative neq not_equal or_ owens_t polygamma pow power psi rad2deg
        real reciprocal round second sigmoid sign sin sinh softmax softplus sqr sqrt square sub
        subtract switch tan tanh tri_gamma true_div true_divide trunc where xor as_xtensor
    """,
    "xtensor.random": "",
    "xtensor.random.basic": """
        as_xrv bernoulli beta betabinom binomial categorical cauchy chisquare dirichlet
        exponential gamma gengamma geometric gumbel halfcauchy halfnormal hypergeometric integers
        invgamma laplace logistic lognormal multinomial multivariate_normal nbinom
        negative_binomial normal pareto poisson rayleigh standard_normal t triangular truncexpon
        uniform vonmises wald weibull
    """,
    "xtensor.random.type": """
        RNGToXRNG XRNGToRNG XRandomGeneratorType as_rng rng_to_xrng xrandom_generator_type
        xrng_to_rng
    """,
    "xtensor.random.variable": """
        XRandomGeneratorSharedVariable XRandomGeneratorVariable rng shared_rng
    """,
    "xtensor.reduction": """
        XCumReduce XReduce all any bool_reduce cumprod cumreduce cumsum max mean min prod reduce
        std sum var
    """,
    "xtensor.shape": """
        Broadcast Concat ExpandDims Squeeze Stack Transpose UnStack broadcast concat expand_dims
        full_like ones_like squeeze stack transpose unstack zeros_like
    """,
    "xtensor.signal": "convolve1d",
    "xtensor.type": """
        XTensorConstant XTensorConstantSignature XTensorSharedVariable XTensorType XTensorVariable
        as_xtensor xtensor xtensor_constant xtensor_shared
    """,
    "xtensor.vectorization": """
        XBlockwise XElemwise XRV combine_dims_and_shape vectorize_graph vectorize_xop
    """,
}
#: path of a module -> the modules whose names it has too
_HANDED_ON = {
    "sparse": ("sparse.basic", "sparse.math"),
    "xtensor.random": ("xtensor.random.basic", "xtensor.random.variable"),
}


#: the paths of the modules of all packages
PATHS = frozenset(_NAMES)


class Planned:
    """A class of which there are no instances yet."""

    package: str

    def __new__(cls, *args: object, **kwargs: object) -> Never:
        raise _refusal(cls.package, cls.__name__)


def names(path: str) -> dict[str, object]:
    """The names of the module at ``path``, with their values."""
    package = path.partition(".")[0]
    found: dict[str, object] = {}
    for module in (path, *_HANDED_ON.get(path, ())):
        found |= {name: _value(package, name) for name in _NAMES[module].split()}
        found |= _AVAILABLE.get(module, {})
    return found


@cache
def _value(package: str, name: str) -> object:
    """A class without instances if ``name`` has a capital letter, else a function that raises."""
    if name[0].isupper():
        is_op = not name.endswith(("Type", "Variable", "Constant", "Signature"))
        bases = (Planned, Op) if is_op else (Planned,)
        return type(name, bases, {"package": package, "__module__": f"phintys.{package}"})
    return _refusing(package, name)


def _refusing(package: str, name: str) -> Callable[..., Never]:
    """A function that raises."""

    def function(*args: object, **kwargs: object) -> Never:
        raise _refusal(package, name)

    place = f"phintys.{package}"
    function.__module__, function.__name__, function.__qualname__ = place, name, name
    return function


def _refusal(package: str, name: str) -> UnsupportedError:
    """The error that a name of a package is used."""
    return UnsupportedError(
        f"phintys.{package}: {name} is for {_FEATURES[package]}, which are not available yet."
    )


def _as_sparse_or_tensor_variable(
    x: TensorLike, name: str | None = None, **kwargs: Any
) -> TensorVariable:
    """``x`` as a tensor variable; UnsupportedError if it is a sparse matrix of SciPy.

    The arguments are those of `as_tensor_variable`.
    """
    if hasattr(x, "tocsr"):
        raise _refusal("sparse", "as_sparse_or_tensor_variable")
    return as_tensor_variable(x, name=name, **kwargs)


def _as_xrv(
    core_op: Op,
    core_inps_dims_map: object = None,
    core_out_dims_map: object = None,
    name: str | None = None,
) -> Callable[..., Never]:
    """A function that raises when it draws: programs make functions of draws at their start.

    The error names the draw, by ``name`` or as ``core_op`` is called.
    """
    return _refusing("xtensor", name or getattr(core_op, "name", None) or str(core_op))


#: path of a module -> those of its names that do not raise
_AVAILABLE: dict[str, dict[str, object]] = {
    "sparse": {"as_symbolic": _as_sparse_or_tensor_variable},
    "sparse.basic": {"as_sparse_or_tensor_variable": _as_sparse_or_tensor_variable},
    "xtensor.random.basic": {"as_xrv": _as_xrv},
}
