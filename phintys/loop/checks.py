"""Errors of the arguments of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from phintys.errors import MissingInputError
from phintys.graph.origin import describe
from phintys.graph.traversal import graph_inputs
from phintys.graph.variable import Constant, Variable
from phintys.loop.arguments import Group, groups
from phintys.loop.info import ScanInfo
from phintys.loop.lengths import KINDS
from phintys.tensor.convert import as_argument, as_tensor_variable
from phintys.tensor.type import TensorType


def check_inner_graph(info: ScanInfo, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """ValueError if the inner graph has not as many inputs and outputs as ``info`` says."""
    for what, given, wanted in (
        ("inputs", inputs, info.n_inner_inputs),
        ("outputs", outputs, info.n_inner_outputs),
    ):
        if len(given) != wanted:
            raise ValueError(f"A loop with {info} needs {wanted} inner {what}, not {len(given)}.")
    if info.as_while and not _is_condition(outputs[-1].type):
        raise ValueError(f"The condition {outputs[-1]} must be a 0-d bool, not {outputs[-1].type}.")


def checked_truncation(steps: Any) -> int:
    """The number of last steps that gradients go back through; -1 stands for all of them.

    ValueError if it is another negative number, TypeError if it is no integer.
    """
    if isinstance(steps, Constant) and steps.type.ndim == 0:
        steps = steps.data.item()
    if not isinstance(steps, Integral) or isinstance(steps, bool):
        raise TypeError(f"truncate_gradient must be a number of steps, not {steps!r}.")
    if steps < -1:
        raise ValueError(
            f"truncate_gradient must be a number of steps, or -1 for all steps, not {steps}."
        )
    return int(steps)


def check_missing(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
    """MissingInputError if the outputs of an inner graph depend on more than its inputs."""
    for v in graph_inputs(outputs, inputs):
        if not isinstance(v, Constant) and v not in set(inputs):
            raise MissingInputError(
                f"The step of a loop depends on {v} ({v.type}), which is none of its inputs. Make "
                "it a constant of the loop: the last of the inner inputs, counted in n_non_seqs."
            )


def checked_inputs(op: Any, inputs: Sequence[Any]) -> list[Variable]:
    """The inputs of a node of a `Scan` as variables of the types that its steps need.

    ValueError if their number is wrong, or dtypes or ranks do not agree with the inner graph;
    TypeError if one cannot be converted.
    """
    info: ScanInfo = op.info
    if len(inputs) != info.n_outer_inputs:
        raise ValueError(f"{op} takes {info.n_outer_inputs} inputs, not {len(inputs)}.")
    found: list[Any] = list(inputs)
    for g in groups(info):
        x = found[g.outer_input]
        if g.kind in ("n_steps", "nit_sot"):
            found[g.outer_input] = checked_count(op, x, g)
        elif g.kind in ("untraced_sit_sot", "non_seq"):
            found[g.outer_input] = _checked_value(op, x, g)
        else:
            found[g.outer_input] = _checked_rows(op, x, g)
    return found


def checked_count(op: Any, x: Any, g: Group | None = None) -> Variable:
    """A number of steps, or of rows, as a 0-d integer variable; else ValueError."""
    what = "n_steps" if g is None or g.kind == "n_steps" else f"The length in input {g.outer_input}"
    count = as_argument(x, f"{what} of {op}")
    if count.type.ndim != 0 or count.type.dtype[:3] not in ("int", "uin"):
        raise ValueError(f"{what} of {op} must be a 0-d integer, not {count}: {count.type}.")
    return count


def _checked_value(op: Any, x: Any, g: Group) -> Variable:
    """An untraced state or a constant as a variable of the type of its inner input."""
    own = op.fgraph.inputs[g.inner_inputs[0]].type
    for k in g.inner_outputs:
        new = op.fgraph.outputs[k].type
        if not own.is_super(new):
            raise ValueError(
                f"{KINDS[g.kind]} {g.outer_input} of {op}, {x}, is {own}, and a step gives {new}. "
                "A state keeps its type: convert the result of the step, or the first value."
            )
    try:
        return own.filter_variable(x)  # type: ignore[no-any-return]
    except TypeError as exc:
        place = f"{KINDS[g.kind]} {g.outer_input} of {op}"
        raise TypeError(f"{place} must be of type {own}: {exc}") from exc


def _checked_rows(op: Any, x: Any, g: Group) -> Variable:
    """A sequence or a buffer, whose rows have the types of the inner inputs and outputs."""
    array = as_tensor_variable(x)
    place = f"{KINDS[g.kind]} {g.outer_input} of {op}"
    for k in g.inner_outputs:
        row = array.type.clone(shape=array.type.shape[1:]) if array.type.ndim else array.type
        _check_result(place, array, row, op.fgraph.outputs[k])
    for i in g.inner_inputs:
        own = op.fgraph.inputs[i].type
        if own.dtype != array.type.dtype or own.ndim + 1 != array.type.ndim:
            raise ValueError(
                f"{place}, {array}, is {array.type}; a step gets a row of it as {own}. A row "
                "must have its dtype, and one dimension less."
            )
        rows = TensorType(own.dtype, (None, *own.shape))
        array = rows.filter_variable(array)  # type: ignore[assignment]
    return array


def check_state(what: str, initial: Any, row: Any, result: Any) -> None:
    """ValueError if ``what``, a result of a step function, has not the type of its initial value.

    ``row`` is the type of the value at one step.
    """
    place = f"{what} of the step function of scan"
    if isinstance(row, TensorType) and isinstance(result.type, TensorType):
        _check_result(f"{place}: the initial value", initial, row, result)
    elif not row.is_super(result.type):
        raise ValueError(
            f"{place}, {result}, is {result.type}; its initial value {initial} is {row}. A state "
            f"keeps its type.{_made(result)}"
        )


def _check_result(place: str, initial: Any, row: TensorType, result: Any) -> None:
    """ValueError if a step gives rows of another dtype or rank than those of its state."""
    new = result.type
    if row.dtype != new.dtype:
        raise ValueError(
            f"{place}, {initial}, has dtype {row.dtype}, and the result of a step, {result}, has "
            f"dtype {new.dtype}. Convert the initial value with .astype({new.dtype!r}), or the "
            f"result with .astype({row.dtype!r}). (The Python number 1.0 is float32, 1 is int8.)"
            f"{_made(result)}"
        )
    if row.ndim != new.ndim:
        raise ValueError(
            f"{place}, {initial}, has rank {row.ndim} at one step, and the result of a step, "
            f"{result}, has rank {new.ndim}. Give an initial value of the result's rank, such as "
            f"pt.zeros of its shape, or reduce the result.{_made(result)}"
        )


def _made(result: Any) -> str:
    """The user's line that made a result, on a new line."""
    text = describe(result.owner.origin) if result.owner is not None else ""
    return f"\n  The result was\n{text}" if text else ""


def _is_condition(found: Any) -> bool:
    return isinstance(found, TensorType) and found.ndim == 0 and found.dtype == "bool"
