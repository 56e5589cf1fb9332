"""What messages call the inputs of a graph inside an op, while that graph is computed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class _Scope(NamedTuple):
    """The inputs of an inner graph, what they are called, and the scope of the graph around it."""

    inputs: Sequence[Any]
    label: Callable[[int], str]
    outer: Any


_current: ContextVar[_Scope | None] = ContextVar("labels", default=None)


@contextmanager
def labelled(inputs: Sequence[Any], label: Callable[[int], str]) -> Generator[None]:
    """A context in which input ``i`` of an inner graph prints as ``label(i)``, if it has no name.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector()
    >>> with labelled([x], lambda i: "rows[t]"):
    ...     str(x)
    'rows[t]'
    """
    token = _current.set(_Scope(inputs, label, _current.get()))
    try:
        yield
    finally:
        _current.reset(token)


def label_of(variable: Any) -> str | None:
    """What the innermost context of `labelled` with this input calls it; None outside of one."""
    scope = _current.get()
    while scope is not None:
        for i, v in enumerate(scope.inputs):
            if v is variable:
                token = _current.set(scope.outer)  # the label is that of a variable outside
                try:
                    return scope.label(i)
                finally:
                    _current.reset(token)
        scope = scope.outer
    return None


def name_in_messages(variable: Any) -> str:
    """What messages about shapes and values call a variable: its name, or how it is computed.

    A view of a variable, or a function of it alone, is named after it.

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> name_in_messages(pt.exp(x[None, :]))
    'Exp of ExpandDims{axis=0} of x'
    >>> name_in_messages(x + y)
    'Add.0'
    """
    ops: list[str] = []
    source: Any = variable
    while source.name is None and source.owner is not None:
        argument = _single_argument(source)
        if argument is None or len(ops) == _LONGEST_CHAIN:
            return str(variable)
        ops.append(f"{source.owner.op} of ")
        source = argument
    return f"{''.join(ops)}{source}"


#: the most ops that a name in messages contains
_LONGEST_CHAIN = 3


def _single_argument(variable: Any) -> Any:
    """The variable of which a computed one is a view, or the only input of its node; else None."""
    node = variable.owner
    if len(node.outputs) > 1:
        return None
    if len(node.inputs) == 1:
        return node.inputs[0]
    viewed = node.op.view_map.get(0)
    return node.inputs[viewed[0]] if viewed else None
