"""`assume`, which declares properties of values, and its op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phintys.assumptions.core import (
    CONSTANT_INFER_REGISTRY,
    FALSE,
    KEY_REGISTRY,
    TRUE,
    UNKNOWN,
    AssumptionFeature,
    AssumptionKey,
    FactState,
    register_universal_assumption,
)
from phintys.errors import ConflictingAssumptionsError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply, Constant, Variable, late_bound


class SpecifyAssumptions(Op):
    """The identity op; its result has declared properties.

    Parameters
    ----------
    assumptions
        what is declared, by key: `FactState.TRUE` or `FactState.FALSE`
    """

    # ----- class and static shape
    __props__ = ("assumptions",)
    view_map = {0: [0]}

    def __init__(self, assumptions: Mapping[AssumptionKey, FactState]) -> None:
        declared = [(key.name, state) for key, state in assumptions.items()]
        self.assumptions: tuple[tuple[str, FactState], ...] = tuple(sorted(declared, key=_name))

    def make_node(self, x: Any) -> Apply:
        x = x if isinstance(x, Variable) else late_bound["as_tensor_variable"](x)
        return Apply(self, [x], [x.type.make_variable()])

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]

    # ----- derivative
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return list(cotangents)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return list(tangents)

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        return self.make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return inputs[0]

    def __str__(self) -> str:
        said = [name if state is TRUE else f"!{name}" for name, state in self.assumptions]
        return f"SpecifyAssumptions{{{', '.join(said)}}}"


def _name(pair: tuple[str, FactState]) -> str:
    return pair[0]


@register_universal_assumption(SpecifyAssumptions)
def specify_assumption_rule(
    key: AssumptionKey,
    op: SpecifyAssumptions,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: Sequence[FactState],
) -> list[FactState]:
    """What is declared, joined with what is known of the input."""
    return [FactState.join(dict(op.assumptions).get(key.name, UNKNOWN), input_states[0])]


def assume(
    x: Any,
    diagonal: bool | None = None,
    lower_triangular: bool | None = None,
    upper_triangular: bool | None = None,
    symmetric: bool | None = None,
    positive_definite: bool | None = None,
    orthogonal: bool | None = None,
    selection: bool | None = None,
    permutation: bool | None = None,
    unique_indices: bool | None = None,
    tridiagonal: bool | None = None,
    unit_magnitude: bool | None = None,
    **assumptions: bool | None,
) -> Any:
    """``x`` with properties that are declared to be true, or false; rewriting makes use of them.

    Parameters
    ----------
    x
        a variable, or what can be converted to a tensor
    diagonal, lower_triangular, ...
        True or False; None declares nothing.  The properties are those of the last two axes, see
        `phintys.assumptions.keys`.
    **assumptions
        further registered properties, by name

    A declaration is not checked when a function is called: results are wrong if it is wrong.
    ConflictingAssumptionsError if ``x`` is a constant that does not have a declared property; or,
    in rewriting, if declarations contradict each other or what follows from the ops.  TypeError for
    a property that is not registered.

    >>> import phintys.tensor as pt
    >>> from phintys.assumptions import assume
    >>> x = assume(pt.dmatrix("x"), positive_definite=True)
    >>> x.owner.op
    SpecifyAssumptions{positive_definite}
    """
    given: dict[str, bool | None] = {
        **{"diagonal": diagonal, "lower_triangular": lower_triangular},
        **{"upper_triangular": upper_triangular, "symmetric": symmetric},
        **{"positive_definite": positive_definite, "orthogonal": orthogonal},
        **{"selection": selection, "permutation": permutation},
        **{"unique_indices": unique_indices, "tridiagonal": tridiagonal},
        **{"unit_magnitude": unit_magnitude, **assumptions},
    }
    declared: dict[AssumptionKey, FactState] = {}
    for name, state in given.items():
        if name not in KEY_REGISTRY:
            raise TypeError(f"assume: there is no assumption {name!r}; register an AssumptionKey.")
        if state is not None:
            declared[KEY_REGISTRY[name]] = TRUE if state else FALSE
    x = x if isinstance(x, Variable) else late_bound["as_tensor_variable"](x)
    if not declared:
        return x
    if isinstance(x, Constant):
        _check_constant(x, declared)
    return SpecifyAssumptions(declared)(x)


def _check_constant(x: Constant, declared: Mapping[AssumptionKey, FactState]) -> None:
    """ConflictingAssumptionsError if the value contradicts what is declared."""
    known = AssumptionFeature().facts(x)
    for key, state in declared.items():
        if key in CONSTANT_INFER_REGISTRY and {state, known.get(key, UNKNOWN)} == {TRUE, FALSE}:
            said, found = (key, f"not {key}") if state is TRUE else (f"not {key}", key)
            raise ConflictingAssumptionsError(
                f"The constant {x} is declared to be {said}, but it is {found}."
            )


late_bound["assume"] = assume
