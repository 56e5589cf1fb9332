"""Moves an operation through elementwise functions to their inputs.

A whole tree of functions is handled at once: one function at a time, a deep tree would need as many
nested replacements.
"""

from __future__ import annotations

from collections.abc import Callable

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context
from phintys.tensor.elemwise import Elemwise

#: How many operations are moved through one function.  Without a limit the time would be quadratic
#: if functions and such operations take turns: each would be moved through all functions before it.
MOST_MOVES = 32


def inner_elementwise(ctx: Context, v: Variable) -> Apply | None:
    """The elementwise node that computes ``v``, if ``v`` has a single use, else None."""
    node = v.owner
    if node is None or type(node.op) is not Elemwise or len(node.outputs) != 1:
        return None
    return node if ctx.single_use(v) else None


def moved_to_inputs(
    ctx: Context,
    root: Variable,
    move: Callable[[Variable], Variable | None],
    passes: Callable[[Apply], bool] = lambda node: True,
) -> Variable | None:
    """``move(root)``, computed by applying ``move`` to the inputs of elementwise functions.

    None if ``root`` is not the result of an elementwise function, with a single use, if ``move``
    returns None for an input, which ends the search, or if `MOST_MOVES` operations have been moved
    through one of the functions.  ``passes`` tells whether
    ``move`` may be moved from a node to its inputs.
    """
    found: dict[Variable, Variable] = {}
    stack = [root]
    while stack:
        v = stack[-1]
        node = inner_elementwise(ctx, v)
        if v in found:
            stack.pop()
        elif node is None or not passes(node):
            if v is root:
                return None
            new = move(v)
            if new is None:
                return None
            found[stack.pop()] = new
        else:
            moved = ctx.moved.get(node, 0)
            if moved == MOST_MOVES:
                return None
            missing = [x for x in node.inputs if x not in found]
            stack.extend(missing)
            if not missing:
                new = found[v] = node.op(*(found[x] for x in node.inputs))
                ctx.moved[new.owner] = moved + 1
                stack.pop()
    return found[root]
