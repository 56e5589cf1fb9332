"""Pickles without the lines of the user's program, and pickles of the arguments of `function`."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from phintys.graph.flatten import reduce_node
from phintys.graph.variable import Node


class StripPickler(pickle.Pickler):
    """A pickler that leaves out where the variables and nodes of graphs were made.

    Parameters
    ----------
    file, protocol
        see `pickle.Pickler`
    extra_tag_to_remove
        the name of an attribute of tags that is left out too

    >>> import io, pickle, phintys.tensor as pt
    >>> file = io.BytesIO()
    >>> StripPickler(file, protocol=-1).dump(pt.dvector("x") + 1)
    >>> pickle.loads(file.getvalue()).owner.origin
    """

    def __init__(
        self, file: Any, protocol: int = 0, extra_tag_to_remove: str | None = None
    ) -> None:
        super().__init__(file, protocol)
        self.tag_to_remove = extra_tag_to_remove

    def reducer_override(self, obj: Any) -> Any:
        """The reduced form of a variable or node, without its origin."""
        if not isinstance(obj, Node) or type(obj).__reduce__ is not Node.__reduce__:
            return NotImplemented
        build, args, state = reduce_node(obj)
        if state is None:
            return build, args
        metadata, outputs = state
        return build, args, (self._stripped(metadata), [self._stripped(m) for m in outputs])

    def _stripped(self, metadata: Any) -> Any:
        if metadata is None:
            return None
        tag, _, attributes = metadata
        removed = {"trace", self.tag_to_remove}
        if tag is not None and removed & vars(tag).keys():
            kept = {k: v for k, v in vars(tag).items() if k not in removed}
            tag = type(tag)()
            vars(tag).update(kept)
        return tag, None, attributes


def function_dump(
    filename: str | Path,
    inputs: Any,
    outputs: Any = None,
    mode: Any = None,
    updates: Any = None,
    givens: Any = None,
    no_default_updates: Any = False,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: Any = None,
    on_unused_input: str | None = None,
    extra_tag_to_remove: str | None = None,
    trust_input: bool = False,
) -> None:
    """Write the arguments of a call of `function` to a file, as a report of a problem.

    The file is the pickle of a dict, made by a `StripPickler`, by which others repeat the call:

    >>> import pickle, tempfile, phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     function_dump(file.name, [x], x + 1)
    ...     arguments = pickle.load(file)
    >>> phintys.function(**arguments)(1.0)
    array(2.)
    """
    arguments = dict(
        inputs=inputs,
        outputs=outputs,
        mode=mode,
        updates=updates,
        givens=givens,
        no_default_updates=no_default_updates,
        accept_inplace=accept_inplace,
        name=name,
        rebuild_strict=rebuild_strict,
        allow_input_downcast=allow_input_downcast,
        profile=profile,
        on_unused_input=on_unused_input,
        trust_input=trust_input,
    )
    with open(filename, "wb") as file:
        StripPickler(file, -1, extra_tag_to_remove).dump(arguments)
