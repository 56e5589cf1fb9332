"""Functions of PyTensor's modules that extension packages import, and nothing here uses.

The table `ON_DEMAND` of `phintys.paths` says where each of them is.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from phintys.graph.equality import equal_computations
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import annotate
from phintys.graph.replace import clone_replace, graph_replace
from phintys.graph.shared import SharedVariable, shared
from phintys.graph.traversal import toposort
from phintys.graph.variable import Apply, Constant, Variable, late_bound
from phintys.scalar import dtypes
from phintys.tensor import as_tensor_variable, zeros
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.index import inc_subtensor, set_subtensor
from phintys.tensor.shape import shape_tuple
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorConstant

# ------------------------------------------------------------------------------------ sequences


def flatten(a: Any) -> list[Any]:
    """The elements of nested tuples, lists and sets, in one list.

    >>> flatten([1, (2, [3, {4}])])
    [1, 2, 3, 4]
    """
    found: list[Any] = []
    stack = [a]
    while stack:
        x = stack.pop()
        if isinstance(x, tuple | list | set):
            stack.extend(reversed(list(x)))
        else:
            found.append(x)
    return found


def uniq(seq: Iterable[Any]) -> list[Any]:
    """The distinct elements, in order of their first occurrence."""
    found: list[Any] = []
    for x in seq:
        if x not in found:
            found.append(x)
    return found


def difference(seq1: Iterable[Any], seq2: Iterable[Any]) -> list[Any]:
    """The elements of the first sequence that are not in the second."""
    excluded = list(seq2)
    return [x for x in seq1 if x not in excluded]


def unzip(iterable: Iterable[Any], n: int, strict: bool = False) -> tuple[tuple[Any, ...], ...]:
    """The ``n`` tuples of first, second, ... elements; empty ones if there are no elements.

    >>> unzip([(1, 2), (3, 4)], 2), unzip([], 2)
    (((1, 3), (2, 4)), ((), ()))
    """
    found = tuple(zip(*iterable, strict=strict))
    return found or ((),) * n


def to_return_values(values: Sequence[Any]) -> Any:
    """The only value, or all of them."""
    return values[0] if len(values) == 1 else values


def from_return_values(values: Any) -> Any:
    """A list or tuple itself, and another value in a list."""
    return values if isinstance(values, list | tuple) else [values]


def apply_across_args(*fns: Callable[[Any], Any]) -> list[Callable[..., Any]]:
    """Functions of a value, or of an iterable of which they are applied to each element."""

    def applied(f: Callable[[Any], Any], names: Any) -> Any:
        return [f(name) for name in names] if isinstance(names, list | tuple) else f(names)

    return [partial(applied, f) for f in fns]


def merge_dict(d1: Mapping[Any, Any], d2: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dict of both, with the sums of values that both have."""
    return {**d1, **{k: d1[k] + v if k in d1 else v for k, v in d2.items()}}


def as_list_or_tuple(use_list: bool, use_tuple: bool, outputs: Any) -> Any:
    """A list, a tuple, or the only one of the outputs."""
    found = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    if use_list:
        return found
    return tuple(found) if use_tuple else to_return_values(found)


# -------------------------------------------------------------------------- texts and processes

LOCAL_BITWIDTH = PYTHON_INT_BITWIDTH = 64 if sys.maxsize > 2**32 else 32


def hash_from_code(msg: str | bytes) -> str:
    """A text that identifies a text or bytes: ``m`` and the SHA-256 hash."""
    return "m" + hashlib.sha256(msg.encode() if isinstance(msg, str) else msg).hexdigest()


def hash_from_ndarray(data: np.ndarray) -> str:
    """A text that identifies the contents, dtype, shape and strides of an array."""
    about = "".join(map(str, (data.shape, data.strides, data.dtype)))
    contents = np.ascontiguousarray(data).tobytes()
    return hash_from_code(hash_from_code(contents) + hash_from_code(about))


def import_func_from_string(func_string: str) -> Any:
    """The function with a dotted name; None if there is none."""
    module, _, name = func_string.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        return None


def subprocess_Popen(command: Sequence[str], **params: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen` of a command."""
    return subprocess.Popen(list(command), **params)


def output_subprocess_Popen(command: Sequence[str], **params: Any) -> tuple[bytes, bytes, int]:
    """What a command prints, to both streams, and its exit status."""
    done = subprocess.run(list(command), capture_output=True, **params)
    return done.stdout, done.stderr, done.returncode


def call_subprocess_Popen(command: Sequence[str], **params: Any) -> int:
    """The exit status of a command, whose output is dropped."""
    return output_subprocess_Popen(command, **params)[2]


def maybe_add_to_os_environ_pathlist(var: str, newpath: Path | str) -> None:
    """Put a folder, if it is absolute, in front of those that an environment variable lists."""
    folders = os.environ.get(var, "").split(os.pathsep)
    if os.path.isabs(newpath) and str(newpath) not in folders:
        os.environ[var] = os.pathsep.join([str(newpath), *filter(None, folders)])


class Singleton:
    """Base class of classes with one instance."""

    _instance: ClassVar[Any] = None

    def __new__(cls) -> Self:
        if type(cls._instance) is not cls:
            cls._instance = super().__new__(cls)
        return cls._instance  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return type(self).__name__


# --------------------------------------------------------------------------- lines of programs


def simple_extract_stack(
    f: Any = None, limit: int | None = None, skips: Sequence[str] | None = None
) -> list[tuple[str, int, str, str | None]]:
    """The frames of the stack as (file, line, function, text); the innermost comes last.

    Files whose path contains one of ``skips`` are left out; ``limit`` is the greatest number.
    """
    frame = sys._getframe(1) if f is None else f  # pyright: ignore[reportPrivateUsage]
    found = [(s.filename, s.lineno or 0, s.name, s.line) for s in traceback.extract_stack(frame)]
    kept = [line for line in found if not any(skip in line[0] for skip in skips or ())]
    return kept if limit is None else kept[-limit:]


def add_tag_trace(thing: Any, user_line: int | None = None) -> Any:
    """Set ``thing.tag.trace`` to the line of the program that calls, and return ``thing``."""
    package = str(Path(__file__).parents[1])
    thing.tag.trace = [simple_extract_stack(limit=user_line, skips=[package])]
    return thing


def get_variable_trace_string(v: Any) -> str:
    """Text that says where a variable was made; empty if it is not known."""
    trace = getattr(v.tag, "trace", None)
    if not trace:
        return ""
    lines = traceback.format_list([line for part in trace for line in part])
    return " \nBacktrace when that variable is created:\n\n" + "".join(lines)


# ------------------------------------------------------------------------------------- graphs


def safe_new(x: Any, tag: str = "", dtype: Any = None) -> Any:
    """A new variable of the type of ``x``, with another dtype if one is given; a constant is kept.

    Its name is that of ``x`` with ``tag`` behind it.
    """
    if isinstance(x, Constant):
        return x if dtype is None else cast(x, dtype)
    type_ = x.type if dtype is None else x.type.clone(dtype=dtype)
    name = None if x.name is None and not tag else (x.name or "") + tag
    return type_(name)


def forced_replace(out: Any, x: Variable, y: Variable) -> Any:
    """``out`` with ``y`` in place of what computes the same as ``x``; None if ``out`` is None."""
    if out is None:
        return None
    computed = [v for node in toposort([out]) for v in node.outputs]
    same = [v for v in computed if v.type == x.type and equal_computations([v], [x])]
    return graph_replace(out, dict.fromkeys([x, *same], y), strict=False)


def expand_empty(tensor_var: Any, size: Any) -> Any:
    """A tensor with ``size`` rows of zeros behind its rows."""
    if isinstance(size, int) and size == 0:
        return tensor_var
    rows, *rest = shape_tuple(tensor_var)
    empty = zeros([rows + size, *rest], dtype=tensor_var.type.dtype)
    return set_subtensor(empty[:rows], tensor_var)


def reconstruct_graph(
    inputs: Sequence[Variable], outputs: Sequence[Variable], tag: str | None = None
) -> tuple[list[Variable], list[Variable]]:
    """New inputs, with ``tag`` behind their names, and copies of the outputs that use them."""
    new = [safe_new(x, tag or "") for x in inputs]
    return new, list(clone_replace(list(outputs), dict(zip(inputs, new))))


def variable_ancestors(graphs: Iterable[Variable], blockers: Any = None) -> Iterable[Variable]:
    """The variables that some depend on; see `ancestors`."""
    from phintys.graph.traversal import ancestors

    return ancestors(list(graphs), blockers)


def shape_of_variables(
    fgraph: FunctionGraph, input_shapes: Mapping[Variable, Sequence[int]]
) -> dict[Variable, tuple[int, ...]]:
    """The shapes of all variables of a graph, for shapes of its inputs.

    >>> import phintys.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> fgraph = FunctionGraph([x], [x.sum(axis=0)], clone=False)
    >>> list(shape_of_variables(fgraph, {x: (2, 3)}).values())
    [(2, 3), (3,)]
    """
    variables = [v for v in fgraph.variables if hasattr(v.type, "shape")]
    given = [v for v in fgraph.inputs if v in input_shapes]
    zeros_of = [np.zeros(tuple(input_shapes[v]), v.type.dtype) for v in given]
    function = late_bound["function"]
    f = function(given, [as_tensor_variable(v).shape for v in variables], on_unused_input="ignore")
    return {v: tuple(map(int, shape)) for v, shape in zip(variables, f(*zeros_of))}


def get_unique_constant_value(x: Variable) -> Any:
    """The number that all elements of a constant are; None if there is none."""
    return x.unique_value if isinstance(x, TensorConstant) else None


# ------------------------------------------------------------------------------------- linkers


def gc_helper(node_list: Sequence[Apply]) -> tuple[set[Variable], dict[Variable, Apply]]:
    """The variables that nodes compute, and for each variable the last node that uses it."""
    computed = {v for node in node_list for v in node.outputs}
    return computed, {v: node for node in node_list for v in node.inputs}


def raise_with_op(
    fgraph: FunctionGraph,
    node: Apply,
    thunk: Any = None,
    exc_info: Any = None,
    storage_map: Any = None,
) -> NoReturn:
    """Raise the exception that is handled, or that of ``exc_info``, with a note about the node."""
    exc = sys.exc_info()[1] if exc_info is None else exc_info[1]
    if exc is None:
        raise RuntimeError("raise_with_op needs an exception that is handled.")
    annotate(exc, node, [cell[0] for cell in getattr(thunk, "inputs", [[None]] * len(node.inputs))])
    raise exc


def streamline(
    fgraph: FunctionGraph,
    thunks: Sequence[Callable[[], Any]],
    order: Sequence[Apply],
    *,
    post_thunk_old_storage: Sequence[Sequence[list[Any]]] | None = None,
    no_recycling: Iterable[list[Any]] = (),
    nice_errors: bool = True,
) -> Callable[[], None]:
    """A function that runs thunks, which compute the nodes ``order``, one after the other.

    It empties the cells ``no_recycling`` before, and those of ``post_thunk_old_storage`` after each
    thunk.  With ``nice_errors`` exceptions get a note about the node.
    """
    if len(thunks) != len(order):
        raise ValueError(f"There are {len(thunks)} thunks for {len(order)} nodes.")
    emptied = post_thunk_old_storage or [()] * len(thunks)

    def run() -> None:
        for cell in no_recycling:
            cell[0] = None
        for thunk, node, cells in zip(thunks, order, emptied):
            try:
                thunk()
            except Exception:
                if nice_errors:
                    raise_with_op(fgraph, node, thunk)
                raise
            for cell in cells:
                cell[0] = None

    return run


def get_name_for_object(x: Any) -> str:
    """A name that is an identifier: that of a variable or function, else that of the class."""
    name = getattr(x, "name", None) or getattr(x, "__name__", "")
    found = name if isinstance(name, str) and name.isidentifier() else type(x).__name__
    return found.lower() if found == type(x).__name__ else found


# ------------------------------------------------------------------------------------- tensors


def advanced_subtensor(x: Any, *index_variables: Any) -> Any:
    """``x[indices]``."""
    return as_tensor_variable(x)[index_variables]


basic_subtensor = advanced_subtensor1 = advanced_subtensor


def advanced_inc_subtensor(x: Any, y: Any, *index_variables: Any, **kwargs: Any) -> Any:
    """``x`` with ``y`` added to ``x[indices]``."""
    return inc_subtensor(as_tensor_variable(x)[index_variables], y, **kwargs)


def advanced_set_subtensor(x: Any, y: Any, *index_variables: Any, **kwargs: Any) -> Any:
    """``x`` with ``y`` in place of ``x[indices]``."""
    return set_subtensor(as_tensor_variable(x)[index_variables], y, **kwargs)


advanced_inc_subtensor1, advanced_set_subtensor1 = advanced_inc_subtensor, advanced_set_subtensor


def get_slice_elements(idxs: Sequence[Any], cond: Any = None) -> list[Any]:
    """The parts of slices, and indices that are none, for which ``cond`` holds.

    By default those that are variables.
    """
    wanted = cond or (lambda x: isinstance(x, Variable))
    parts = [
        part for e in idxs for part in ((e.start, e.stop, e.step) if isinstance(e, slice) else ())
    ]
    return [part for part in parts if part is not None and wanted(part)]


def group_indices(indices: Sequence[Any]) -> list[tuple[bool, list[tuple[int, Any]]]]:
    """Indices in groups of neighbours that are basic, or not: ``(is basic, [(axis, index)])``."""
    groups: list[tuple[bool, list[tuple[int, Any]]]] = []
    axis = 0
    for e in indices:
        is_basic = not groups or groups[-1][0]
        is_basic = isinstance(e, slice) or e is None or (is_basic and getattr(e, "ndim", 0) == 0)
        if not groups or groups[-1][0] != is_basic:
            groups.append((is_basic, []))
        groups[-1][1].append((axis, e))
        axis += e is not None
    return groups


def broadcast_static_dim_lengths(dim_lengths: Sequence[int | None]) -> int | None:
    """The static length of an axis of a result from those of the operands, None if unknown.

    ValueError if two differ and are not 1.
    """
    known = {n for n in dim_lengths if n not in (1, None)}
    if len(known) > 1:
        raise ValueError(f"The lengths {sorted(known)} do not broadcast.")  # type: ignore[type-var]
    return known.pop() if known else None if None in dim_lengths else 1


isinf_, isnan_ = functions.isinf, functions.isnan
faster_ndindex, faster_broadcast_to = np.ndindex, np.broadcast_to
float16_atol, float16_rtol = 1e-3, 1e-3
float32_atol, float32_rtol = 1e-5, 1e-5
float64_atol, float64_rtol = 1e-8, 1e-5
values_eq_approx = TensorType.values_eq_approx


def values_eq_approx_remove_inf(a: Any, b: Any) -> bool:
    """Whether arrays are equal up to rounding, where neither is infinite."""
    return _where_both(np.isinf, a, b)


def values_eq_approx_remove_nan(a: Any, b: Any) -> bool:
    """Whether arrays are equal up to rounding, where neither is NaN."""
    return _where_both(np.isnan, a, b)


def values_eq_approx_remove_inf_nan(a: Any, b: Any) -> bool:
    """Whether arrays are equal up to rounding, where both are finite."""
    return _where_both(lambda x: ~np.isfinite(x), a, b)


def values_eq_approx_always_true(a: Any, b: Any) -> bool:
    """True."""
    return True


def _where_both(is_left_out: Callable[[Any], Any], a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    kept = ~(is_left_out(a) | is_left_out(b))
    return values_eq_approx(a[kept], b[kept])


#: dtype -> what `TensorType.dtype_specs` of it returns
dtype_specs_map = {dtype: TensorType(dtype, ()).dtype_specs() for dtype in dtypes.ALL}
ubscalar, uwscalar, uiscalar, ulscalar = (
    TensorType(dtype, ()) for dtype in ("uint8", "uint16", "uint32", "uint64")
)


def tensor_constructor(value: Any, name: str | None = None, **kwargs: Any) -> SharedVariable:
    """`shared` of an array; TypeError for anything else."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"tensor_constructor takes arrays, not {value!r}.")
    return shared(value, name=name, **kwargs)


def scalar_constructor(value: Any, name: str | None = None, **kwargs: Any) -> SharedVariable:
    """`shared` of a number; TypeError for anything else."""
    if np.ndim(value) != 0:
        raise TypeError(f"scalar_constructor takes numbers, not {value!r}.")
    return shared(np.asarray(value), name=name, **kwargs)


def load_shared_variable(val: Any) -> SharedVariable:
    """`shared` of a value."""
    return shared(val)
