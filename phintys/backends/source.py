"""Generates the source of a Python function from a FunctionGraph, for the transpilers.

The source is straight-line code: one statement per node, in topological order.  So a line number in
a traceback identifies the node (`Generated.node_at`), and thereby the line of the user's program.
"""

from __future__ import annotations

import functools
import itertools
import keyword
import linecache
import re
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType, TracebackType
from typing import Any

from phintys.backends.numpy.run import find_error
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import raised_by_node
from phintys.graph.perform import Runner
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Constant, Variable

__all__ = [
    "Generated",
    "Transpiled",
    "clear_generated_src",
    "compile_function_src",
    "fgraph_to_python",
    "generate",
    "unique_name_generator",
    "write_generated_src",
]

_numbers = itertools.count()


def unique_name_generator(
    external_names: Sequence[str] = (), suffix_sep: str = "_"
) -> Callable[..., str]:
    """A function that maps objects to distinct Python identifiers, given the wanted names.

    >>> name = unique_name_generator(["x"])
    >>> a, b = object(), object()
    >>> name(a, "x"), name(b, "2 y"), name(a)
    ('x_1', '_2_y', 'x_1')
    """
    names: dict[Any, str] = {}
    taken: dict[str, int] = dict.fromkeys(external_names, 0)

    def name_of(x: Any, wanted: str = "v") -> str:
        found = names.get(x)
        if found is not None:
            return found
        base = re.sub(r"\W", "_", wanted, flags=re.ASCII) or "v"
        base = f"_{base}" if base[0].isdigit() or keyword.iskeyword(base) else base
        name = base
        while name in taken:
            taken[base] += 1
            name = f"{base}{suffix_sep}{taken[base]}"
        taken[name] = 0
        names[x] = name
        return name

    return name_of


def compile_function_src(
    src: str,
    function_name: str,
    global_env: dict[str, Any] | None = None,
    local_env: dict[str, Any] | None = None,
) -> FunctionType:
    """The function that ``src`` defines with ``global_env`` as globals; tracebacks show its lines.

    ``local_env`` are more globals; the definitions of ``src`` are added to it.

    >>> compile_function_src("def twice(x): return 2 * x", "twice")(4)
    8
    """
    filename = write_generated_src(src, function_name)
    env = {**(global_env or {}), **(local_env or {})}
    exec(compile(src, filename, "exec"), env)
    function: FunctionType = env[function_name]
    if local_env is not None:
        local_env[function_name] = function
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function


def write_generated_src(src: str, name: str = "source") -> str:
    """A file name under which tracebacks find ``src``, which is kept in memory.

    >>> name = write_generated_src("x = 1")
    >>> linecache.getline(name, 1)
    'x = 1'
    """
    filename = f"<phintys {name} {next(_numbers)}>"
    # linecache does not compare an entry whose time of modification is None with a file
    linecache.cache[filename] = (len(src), None, src.splitlines(keepends=True), filename)
    return filename


def clear_generated_src(dirname: Any = None, older_than: float | None = None) -> None:
    """Forget the source of all generated functions; the arguments are ignored.

    The functions can still be called, but tracebacks do not show their lines.
    """
    for name in [name for name in linecache.cache if name.startswith("<phintys ")]:
        linecache.cache.pop(name, None)


@dataclass(frozen=True)
class Generated:
    """A Python function generated from a graph.

    function
        takes a value for each input, then ``arguments``; returns a tuple of the outputs' values
    nodes
        line number of the source -> node
    arguments
        the values of the constants that are passed as arguments
    """

    function: FunctionType
    source: str
    nodes: dict[int, Apply]
    arguments: list[Any]

    def node_at(self, traceback: TracebackType | None) -> Apply | None:
        """The node whose statement occurs in a traceback, or None."""
        code = self.function.__code__
        while traceback is not None:
            if traceback.tb_frame.f_code is code:
                return self.nodes.get(traceback.tb_lineno)
            traceback = traceback.tb_next
        return None


def generate(
    fgraph: FunctionGraph,
    convert_op: Callable[..., Callable[..., Any]],
    convert_constant: Callable[[Any], Any] = lambda data: data,
    *,
    name: str = "fgraph",
    as_argument: Callable[[Constant], bool] = lambda constant: False,
    global_env: dict[str, Any] | None = None,
    order: Sequence[Apply] | None = None,
    unique_name: Callable[..., str] | None = None,
    **kwargs: Any,
) -> Generated:
    """Generate the Python function that computes the outputs of ``fgraph`` from its inputs.

    Parameters
    ----------
    convert_op
        ``convert_op(op, node=node, **kwargs)`` returns the function that computes a node
    convert_constant
        converts the data of a constant
    name
        the name of the function
    as_argument
        whether the function takes a constant as an argument, after the inputs, not as a global
    global_env
        more globals of the function
    order
        the nodes in the order of execution
    unique_name
        maps an object and a wanted name to an identifier; see `unique_name_generator`
    """
    env = dict(global_env or {})
    name_of = unique_name or unique_name_generator([name, *env])
    parameters = [name_of(v, v.name or "input") for v in fgraph.inputs]
    arguments: list[Any] = []

    def value_name(v: Variable) -> str:
        if isinstance(v, Constant) and v not in constants:
            constants.add(v)
            label = name_of(v, v.name or "constant")
            if as_argument(v):
                parameters.append(label)
                arguments.append(convert_constant(v.data))
            else:
                env[label] = convert_constant(v.data)
        return name_of(v, v.name or "t")

    constants: set[Variable] = set()
    body, nodes = [], {}
    for line, node in enumerate(order or fgraph.toposort(), start=2):
        function = convert_op(node.op, node=node, **kwargs)
        label = name_of(node, getattr(node.op, "name", None) or type(node.op).__name__)
        env[label] = function
        given = ", ".join(map(value_name, node.inputs))
        results = ", ".join(map(value_name, node.outputs))
        body.append(f"    {results} = {label}({given})")
        nodes[line] = node
    returned = "".join(f"{value_name(v)}, " for v in fgraph.outputs)
    header = f"def {name}({', '.join(parameters)}):"
    source = "\n".join([header, *body, f"    return ({returned})", ""])
    return Generated(compile_function_src(source, name, env), source, nodes, arguments)


def fgraph_to_python(
    fgraph: FunctionGraph,
    op_conversion_fn: Callable[..., Callable[..., Any]],
    *,
    type_conversion_fn: Callable[[Any], Any] = lambda data: data,
    fgraph_name: str = "fgraph_to_python",
    order: Sequence[Apply] | None = None,
    global_env: dict[str, Any] | None = None,
    local_env: dict[str, Any] | None = None,
    squeeze_output: bool = False,
    unique_name: Callable[..., str] | None = None,
    **kwargs: Any,
) -> Callable[..., Any]:
    """A Python function from the values of the inputs to a tuple of outputs; see `generate`.

    With ``squeeze_output`` it returns the value of a single output itself.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> graph = FunctionGraph([x], [pt.exp(x).sum()])
    >>> import numpy as np
    >>> numpy_of = {"Exp": np.exp, "Sum{axes=None}": np.sum}
    >>> f = fgraph_to_python(graph, lambda op, **kw: numpy_of[str(op)], squeeze_output=True)
    >>> float(f([0.0, 0.0]))
    2.0
    """
    env = {**(global_env or {}), **(local_env or {})}
    function = generate(
        fgraph,
        op_conversion_fn,
        type_conversion_fn,
        name=fgraph_name,
        global_env=env,
        order=order,
        unique_name=unique_name,
        **kwargs,
    ).function
    if not squeeze_output or len(fgraph.outputs) != 1:
        return function
    return functools.wraps(function)(lambda *args: function(*args)[0])


class Transpiled:
    """The callable of a transpiler backend: list of input values -> list of output values.

    An exception that an op's ``perform`` raises is passed on as it is.  After any other failure the
    reference backend computes the graph again, to raise the same exception as every other backend,
    with the line of the user's program.
    """

    def __init__(self, fgraph: FunctionGraph, call: Callable[[Sequence[Any]], list[Any]]) -> None:
        self.fgraph, self.call = fgraph, call

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        try:
            return self.call(values)
        except Exception as exc:
            found = None if raised_by_node(exc) else find_error(self.fgraph, values)
            if found is None:
                raise
        raise found

    @property
    def jit_fn(self) -> Any:
        """The framework's compiled function, from input values to a tuple of output values.

        AttributeError if there is none.
        """
        call: Any = self.call
        return call.jit_fn


def interpreted(
    fgraph: FunctionGraph, framework: str, supports: Callable[[Type[Any]], bool]
) -> Runner | None:
    """The reference's callable, with a warning, if a framework lacks a type of the graph.

    None if it ``supports`` all of them.
    """
    for v in [*fgraph.inputs, *(v for node in fgraph.toposort() for v in node.outputs)]:
        if not supports(v.type):
            warnings.warn(
                f"{framework} has no values of type {v.type} (variable {v}): the function runs "
                "its ops one by one in Python.",
                stacklevel=2,
            )
            return Runner(fgraph)
    return None
