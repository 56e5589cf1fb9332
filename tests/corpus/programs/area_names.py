"""Names at the places where programs import them from, and what stands there."""

from __future__ import annotations

import importlib
import inspect

import pytensor
import pytensor.tensor as pt

MODULES = {
    "pytensor": "function grad shared config dprint scan In Out Mode OpFromGraph ifelse as_symbolic wrap_py",
    "pytensor.graph": "Apply Op Variable FunctionGraph clone_replace graph_replace vectorize_graph Constant Type",
    "pytensor.graph.basic": "Apply Constant Variable AtomicVariable NominalVariable equal_computations",
    "pytensor.graph.traversal": "ancestors graph_inputs toposort walk explicit_graph_inputs io_toposort",
    "pytensor.graph.utils": "MissingInputError MethodNotDefined Scratchpad MetaType",
    "pytensor.graph.rewriting.basic": "node_rewriter graph_rewriter in2out out2in MergeOptimizer copy_stack_trace",
    "pytensor.graph.rewriting.db": "EquilibriumDB SequenceDB RewriteDatabaseQuery LocalGroupDB TopoDB",
    "pytensor.graph.rewriting.utils": "rewrite_graph get_clients_at_depth is_same_graph",
    "pytensor.compile": "function shared In Mode optdb SharedVariable OpFromGraph DeepCopyOp ViewOp",
    "pytensor.compile.mode": "Mode get_mode get_default_mode optdb predefined_modes FAST_RUN",
    "pytensor.link.basic": "Linker PerformLinker Container LocalLinker JITLinker",
    "pytensor.tensor.basic": "as_tensor_variable Alloc MakeVector Join join ARange arange switch zeros_like",
    "pytensor.tensor.math": "add mul dot Sum sum Prod Max Argmax max_and_argmax Dot clip sigmoid",
    "pytensor.tensor.elemwise": "Elemwise DimShuffle CAReduce",
    "pytensor.tensor.shape": "Reshape Shape Shape_i SpecifyShape shape reshape specify_shape",
    "pytensor.tensor.subtensor": "Subtensor IncSubtensor AdvancedSubtensor set_subtensor inc_subtensor take",
    "pytensor.tensor.variable": "TensorVariable TensorConstant TensorSharedVariable",
    "pytensor.tensor.type": "TensorType tensor scalar vector matrix discrete_dtypes float_dtypes values_eq_approx",
    "pytensor.tensor.extra_ops": "CumOp cumsum diff repeat Repeat bincount unique Unique ravel_multi_index broadcast_to",
    "pytensor.tensor.blockwise": "Blockwise vectorize_node_fallback OpWithCoreShape",
    "pytensor.tensor.random.op": "RandomVariable RNGConsumerOp default_rng",
    "pytensor.tensor.random.basic": "normal NormalRV uniform gamma categorical multinomial ScipyRandomVariable",
    "pytensor.tensor.random.utils": "RandomStream normalize_size_param params_broadcast_shapes custom_rng_deepcopy",
    "pytensor.tensor.special": "softmax log_softmax xlogy betaln logit Softmax",
    "pytensor.tensor.slinalg": "cholesky solve Cholesky Solve expm block_diag solve_triangular",
    "pytensor.tensor.nlinalg": "det inv MatrixInverse eigh svd norm trace",
    "pytensor.tensor.linalg": "cholesky det inv solve kron qr lu svd eig eigh",
    "pytensor.tensor.sharedvar": "TensorSharedVariable",
    "pytensor.tensor.exceptions": "NotScalarConstantError ShapeError",
    "pytensor.scalar": "Add add float64 int8 Composite ScalarOp upcast Scalar ScalarType get_scalar_type",
    "pytensor.scalar.basic": "Add Mul UnaryScalarOp BinaryScalarOp upgrade_to_float same_out Cast",
    "pytensor.scan.op": "Scan ScanInfo",
    "pytensor.scan.utils": "until ScanArgs map_variables",
    "pytensor.scan.basic": "scan",
    "pytensor.gradient": "grad jacobian hessian verify_grad DisconnectedType disconnected_grad NullTypeGradError",
    "pytensor.printing": "debugprint pprint Print pydotprint pp min_informative_str",
    "pytensor.raise_op": "Assert CheckAndRaise assert_op",
    "pytensor.ifelse": "ifelse IfElse",
    "pytensor.typed_list": "TypedListType make_list append",
    "pytensor.compile.debug.debugmode": "DebugMode",
    "pytensor.compile.debug.nanguardmode": "NanGuardMode",
    "pytensor.misc.pkl_utils": "StripPickler",
    "pytensor.configdefaults": "config",
    "pytensor.ipython": "",
}


def kind(thing: object) -> str:
    """A class, a function, or the class of an instance, as text."""
    if inspect.isclass(thing):
        return f"class {thing.__name__}"
    if inspect.isroutine(thing):
        return "function"
    if inspect.ismodule(thing):
        return "module"
    return f"instance of {type(thing).__name__}"


def names_of_modules():
    for path, names in MODULES.items():
        module = pytest_import(path)
        for name in names.split():
            yield [path, name, kind(getattr(module, name, "absent"))]


def pytest_import(path: str) -> object:
    """The module, or None where it needs a package that is not there."""
    try:
        return importlib.import_module(path)
    except ImportError:
        return None


def names_that_do_not_exist():
    yield lambda: pytensor.no_such_name
    yield lambda: pt.no_such_name
    yield lambda: importlib.import_module("pytensor.no_such_module")
    yield lambda: importlib.import_module("pytensor.tensor.no_such_module")
    yield lambda: pt.dvector("x").no_such_method


def parameters_of_functions():
    functions = (pytensor.function, pytensor.scan, pytensor.grad, pytensor.shared, pt.as_tensor_variable,
                 pt.sum, pt.mean, pt.max, pt.arange, pt.concatenate, pt.reshape, pt.sort, pt.repeat, pt.tensor,
                 pt.set_subtensor, pt.specify_shape, pt.linalg.solve, pt.linalg.cholesky, pt.linalg.svd,
                 pytensor.dprint, pytensor.gradient.jacobian, pytensor.gradient.verify_grad, pt.split, pt.stack,
                 pt.take, pt.unique, pt.eye, pt.tri, pt.cumsum, pt.diff, pt.pad, pt.einsum)  # fmt: skip
    for f in functions:
        yield [f.__name__, [p for p in inspect.signature(f).parameters if p != "kwargs"]]


def methods_of_variables():
    x = pt.dmatrix("x")
    names = "T all any argmax argmin argsort astype broadcastable choose clip compress conj copy cumprod cumsum " \
            "diagonal dimshuffle dot dtype eval fill flatten imag inc max mean min ndim nonzero nonzero_values norm " \
            "owner prod ptp ravel real repeat reshape round searchsorted set shape size sort squeeze std sum swapaxes " \
            "take trace transpose trunc type var zeros_like ones_like get_parents get_scalar_constant_value mT " \
            "item tolist __array_priority__ is_integer_matrix"  # fmt: skip
    yield [name for name in names.split() if not hasattr(x, name)]


def classes_of_instances():
    yield [type(v).__name__ for v in (pt.dvector("x"), pt.constant(1), pytensor.shared(1.0), pt.add, pt.dvector, pt.sum)]
    yield [type(v).__name__ for v in (pytensor.scalar.float64("a"), pytensor.scalar.add, pytensor.scalar.float64)]
    yield [c.__name__ for c in type(pt.dvector("x")).__mro__]
    yield [c.__name__ for c in type(pt.add).__mro__]
    yield [c.__name__ for c in type(pt.dvector).__mro__]


def versions():
    yield pytensor.__version__.split(".")[0]
    yield isinstance(pytensor.__version__, str)
