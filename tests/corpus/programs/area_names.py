"""Names at the places where programs import them from, and what stands there."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytensor
import pytensor.tensor as pt

MODULES = {
    "pytensor": "function grad shared config dprint scan In Out Mode OpFromGraph ifelse wrap_py",
    "pytensor.graph": (
        "Apply Op Variable FunctionGraph clone_replace graph_replace vectorize_graph Constant Type"
    ),
    "pytensor.graph.basic": (
        "Apply Constant Variable AtomicVariable NominalVariable equal_computations"
    ),
    "pytensor.graph.traversal": (
        "ancestors graph_inputs toposort walk explicit_graph_inputs io_toposort"
    ),
    "pytensor.graph.utils": "MissingInputError MethodNotDefined Scratchpad MetaType",
    "pytensor.graph.rewriting.basic": (
        "node_rewriter graph_rewriter in2out out2in MergeOptimizer copy_stack_trace"
    ),
    "pytensor.graph.rewriting.db": (
        "EquilibriumDB SequenceDB RewriteDatabaseQuery LocalGroupDB TopoDB"
    ),
    "pytensor.graph.rewriting.utils": "rewrite_graph get_clients_at_depth",
    "pytensor.compile": "function shared In Mode optdb SharedVariable DeepCopyOp ViewOp",
    "pytensor.compile.mode": "Mode get_mode get_default_mode optdb predefined_modes",
    "pytensor.link.basic": "Linker PerformLinker Container LocalLinker JITLinker",
    "pytensor.tensor.basic": (
        "as_tensor_variable Alloc MakeVector Join join ARange arange switch zeros_like"
    ),
    "pytensor.tensor.math": "add mul dot Sum sum Prod Max Argmax max_and_argmax Dot clip sigmoid",
    "pytensor.tensor.elemwise": "Elemwise DimShuffle CAReduce",
    "pytensor.tensor.shape": "Reshape Shape Shape_i SpecifyShape shape reshape specify_shape",
    "pytensor.tensor.subtensor": (
        "Subtensor IncSubtensor AdvancedSubtensor set_subtensor inc_subtensor take"
    ),
    "pytensor.tensor.variable": "TensorVariable TensorConstant",
    "pytensor.tensor.type": (
        "TensorType tensor scalar vector matrix discrete_dtypes float_dtypes values_eq_approx"
    ),
    "pytensor.tensor.extra_ops": (
        "CumOp cumsum diff repeat Repeat bincount unique Unique ravel_multi_index broadcast_to"
    ),
    "pytensor.tensor.blockwise": "Blockwise",
    "pytensor.tensor.random.op": "RandomVariable RNGConsumerOp default_rng",
    "pytensor.tensor.random.basic": (
        "normal NormalRV uniform gamma categorical multinomial ScipyRandomVariable"
    ),
    "pytensor.tensor.random.utils": (
        "RandomStream normalize_size_param params_broadcast_shapes custom_rng_deepcopy"
    ),
    "pytensor.tensor.special": "softmax log_softmax xlogy betaln logit Softmax",
    "pytensor.tensor.slinalg": "cholesky solve Cholesky Solve expm block_diag solve_triangular",
    "pytensor.tensor.nlinalg": "det inv MatrixInverse eigh svd norm trace",
    "pytensor.tensor.linalg": "cholesky det inv solve kron qr lu svd eig eigh",
    "pytensor.tensor.sharedvar": "TensorSharedVariable",
    "pytensor.tensor.exceptions": "NotScalarConstantError ShapeError",
    "pytensor.scalar": "Add add float64 int8 Composite ScalarOp upcast ScalarType get_scalar_type",
    "pytensor.scalar.basic": "Add Mul UnaryScalarOp BinaryScalarOp upgrade_to_float same_out Cast",
    "pytensor.scan.op": "Scan ScanInfo",
    "pytensor.scan.utils": "until ScanArgs",
    "pytensor.scan.basic": "scan",
    "pytensor.gradient": (
        "grad jacobian hessian verify_grad DisconnectedType disconnected_grad NullTypeGradError"
    ),
    "pytensor.printing": "debugprint pprint Print pydotprint pp min_informative_str",
    "pytensor.raise_op": "Assert CheckAndRaise assert_op",
    "pytensor.ifelse": "ifelse IfElse",
    "pytensor.typed_list": "TypedListType make_list append",
    "pytensor.compile.debug.debugmode": "DebugMode",
    "pytensor.compile.debug.nanguardmode": "NanGuardMode",
    "pytensor.misc.pkl_utils": "StripPickler",
    "pytensor.configdefaults": "config",
}


def kind(thing: object) -> str:
    """A class by its name, or what can be done with the thing."""
    if inspect.isclass(thing):
        return f"class {thing.__name__}"
    return "callable" if callable(thing) else "value"


def names_of_modules():
    for path, names in MODULES.items():
        module = importlib.import_module(path)
        for name in names.split():
            yield [path, name, lambda name=name, module=module: kind(getattr(module, name))]


def names_that_do_not_exist():
    yield lambda: pytensor.no_such_name
    yield lambda: pt.no_such_name
    yield lambda: importlib.import_module("pytensor.no_such_module")
    yield lambda: importlib.import_module("pytensor.tensor.no_such_module")
    yield lambda: pt.dvector("x").no_such_method


def parameters_of_functions():
    functions = (
        pytensor.function,
        pytensor.scan,
        pytensor.grad,
        pytensor.shared,
        pt.as_tensor_variable,
        pt.sum,
        pt.mean,
        pt.max,
        pt.arange,
        pt.concatenate,
        pt.reshape,
        pt.sort,
        pt.repeat,
        pt.tensor,
        pt.set_subtensor,
        pt.specify_shape,
        pt.linalg.solve,
        pt.linalg.cholesky,
        pt.linalg.svd,
        pytensor.dprint,
        pytensor.gradient.jacobian,
        pytensor.gradient.verify_grad,
        pt.split,
        pt.stack,
        pt.take,
        pt.unique,
        pt.eye,
        pt.tri,
        pt.cumsum,
        pt.diff,
        pt.pad,
        pt.einsum,
    )
    for f in functions:
        yield [
            p
            for p in inspect.signature(f).parameters
            if p not in ("kwargs", "allow_xtensor_conversion")
        ]


def methods_of_variables():
    x = pt.dmatrix("x")
    names = (
        "T all any argmax argmin argsort astype broadcastable choose clip "
        "compress conj copy cumprod cumsum"
        "diagonal dimshuffle dot dtype eval fill flatten imag inc max mean min "
        "ndim nonzero nonzero_values norm"
        "owner prod ptp ravel real repeat reshape round searchsorted set shape "
        "size sort squeeze std sum swapaxes"
        "take trace transpose trunc type var zeros_like ones_like get_parents "
        "get_scalar_constant_value mT"
        "item tolist __array_priority__ is_integer_matrix"
    )
    yield [name for name in names.split() if not hasattr(x, name)]


def classes_of_instances():
    yield [
        type(v).__name__
        for v in (pt.dvector("x"), pt.constant(1), pytensor.shared(1.0), pt.add, pt.dvector, pt.sum)
    ]
    yield [
        type(v).__name__
        for v in (pytensor.scalar.float64("a"), pytensor.scalar.add, pytensor.scalar.float64)
    ]


def families_of_classes():
    from pytensor.graph.basic import Apply, Constant, Node, Variable
    from pytensor.graph.op import Op
    from pytensor.graph.type import Type
    from pytensor.graph.utils import MetaObject
    from pytensor.tensor.elemwise import CAReduce, Elemwise
    from pytensor.tensor.variable import TensorVariable

    x, s = pt.dvector("x"), pytensor.shared(np.zeros(2))
    yield [isinstance(v, TensorVariable) for v in (x, x + 1, s, pt.constant(1))]
    yield [isinstance(v, Variable) for v in (x, s, pt.constant(1), pytensor.scalar.float64("a"))]
    yield [isinstance(v, Constant) for v in (x, s, pt.constant(1))]
    yield [
        issubclass(c, p)
        for c in (Elemwise, CAReduce, Op, Type, Apply)
        for p in (Op, MetaObject, Node)
    ]
    yield isinstance(pt.add, Elemwise)
