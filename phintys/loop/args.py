"""`ScanArgs`: the arguments of a node of a `Scan` by kind, to take loops apart and build others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from phintys.graph.fgraph import FrozenFunctionGraph
from phintys.graph.traversal import ancestors, io_toposort
from phintys.graph.variable import Apply, Variable
from phintys.loop.arguments import ScanMethodsMixin
from phintys.loop.info import ScanInfo, Taps
from phintys.loop.op import Scan

#: the kinds of arguments in each of the four lists, in their order
_ORDER = {
    "outer_in": ("seqs", "mit_mot", "mit_sot", "sit_sot", "shared", "nit_sot", "non_seqs"),
    "inner_in": ("seqs", "mit_mot", "mit_sot", "sit_sot", "shared", "non_seqs"),
    "inner_out": ("mit_mot", "mit_sot", "sit_sot", "nit_sot", "shared"),
    "outer_out": ("mit_mot", "mit_sot", "sit_sot", "nit_sot", "shared"),
}
_LISTS = {
    "outer_in": "outer_inputs",
    "inner_in": "inner_inputs",
    "inner_out": "inner_outputs",
    "outer_out": "outer_outputs",
}
_SLICES = ("mit_mot_out_slices", "mit_mot_in_slices", "mit_sot_in_slices")


class FieldInfo(NamedTuple):
    """Where a variable is among the fields of `ScanArgs`.

    ``name`` is the field, ``index`` the position in it, ``inner_index`` that in the list there, if
    the field is a list of lists; ``agg_index`` is the position in the list ``agg_name``.
    """

    name: str
    agg_name: str
    index: int  # type: ignore[assignment]
    inner_index: int | None
    agg_index: int


def default_filter_scanargs(x: str) -> bool:
    """Whether a field contains variables of the inner or outer graph."""
    return x.startswith(("inner_", "outer_"))


class ScanArgs:
    """The arguments of a node of a `Scan`, in lists by kind, which may be changed.

    Attributes
    ----------
    n_steps
        the number of steps
    outer_in_K, inner_in_K, inner_out_K, outer_out_K
        the inputs and outputs of the node (outer) and of the graph of a step (inner), for the kinds
        K: ``seqs``, ``mit_mot``, ``mit_sot``, ``sit_sot``, ``nit_sot``, ``shared`` (untraced
        states), ``non_seqs``.  ``inner_in_mit_mot``, ``inner_in_mit_sot`` and ``inner_out_mit_mot``
        have a list for each buffer.
    mit_mot_in_slices, mit_mot_out_slices, mit_sot_in_slices
        the taps, as in `ScanInfo`
    cond
        the condition of a while loop, in a list

    >>> import phintys, phintys.tensor as pt
    >>> x, start = pt.dvector("x"), pt.dscalar("start")
    >>> sums = phintys.scan(lambda a, s: s + a, x, start, return_updates=False)
    >>> args = ScanArgs.from_node(sums.owner.inputs[0].owner, clone=True)
    >>> args.inner_out_sit_sot
    [Add.0]
    >>> args.inner_out_nit_sot.append(2 * args.inner_in_seqs[0])
    >>> args.outer_in_nit_sot.append(args.n_steps)
    >>> op = Scan(args.inner_inputs, args.inner_outputs, args.info)
    >>> op(*args.outer_inputs)[1].eval({x: [1.0, 2.0], start: 0.0})
    array([2., 4.])
    """

    nested_list_fields = ("inner_in_mit_mot", "inner_in_mit_sot", "inner_out_mit_mot")
    default_filter = staticmethod(default_filter_scanargs)

    outer_in_seqs: list[Any]
    outer_in_mit_mot: list[Any]
    outer_in_mit_sot: list[Any]
    outer_in_sit_sot: list[Any]
    outer_in_shared: list[Any]
    outer_in_nit_sot: list[Any]
    outer_in_non_seqs: list[Any]
    inner_in_seqs: list[Any]
    inner_in_mit_mot: list[list[Any]]
    inner_in_mit_sot: list[list[Any]]
    inner_in_sit_sot: list[Any]
    inner_in_shared: list[Any]
    inner_in_non_seqs: list[Any]
    inner_out_mit_mot: list[list[Any]]
    inner_out_mit_sot: list[Any]
    inner_out_sit_sot: list[Any]
    inner_out_nit_sot: list[Any]
    inner_out_shared: list[Any]
    outer_out_mit_mot: list[Any]
    outer_out_mit_sot: list[Any]
    outer_out_sit_sot: list[Any]
    outer_out_nit_sot: list[Any]
    outer_out_shared: list[Any]
    mit_mot_in_slices: Taps
    mit_mot_out_slices: Taps
    mit_sot_in_slices: Taps

    def __init__(
        self,
        outer_inputs: Sequence[Variable],
        outer_outputs: Sequence[Variable],
        _inner_inputs: Sequence[Variable],
        _inner_outputs: Sequence[Variable],
        info: ScanInfo,
        clone: bool | None = None,
    ) -> None:
        inner_inputs, inner_outputs = list(_inner_inputs), list(_inner_outputs)
        if clone:
            inner_inputs, inner_outputs = _copied(inner_inputs, inner_outputs)
        values = {
            "outer_in": outer_inputs,
            "outer_out": outer_outputs,
            "inner_in": inner_inputs,
            "inner_out": inner_outputs,
        }
        methods = ScanMethodsMixin()
        methods.info = info
        for prefix, kind in _fields():
            found = getattr(methods, _method(prefix, kind))(values[prefix])
            setattr(self, f"{prefix}_{kind}", found)
        self.n_steps = outer_inputs[0]
        self.as_while = info.as_while
        self.cond = inner_outputs[-1:] if info.as_while else []
        for name in _SLICES:
            setattr(self, name, getattr(info, name))

    @staticmethod
    def from_node(node: Apply, clone: bool = False) -> ScanArgs:
        """The arguments of a node; with ``clone`` with a copy of the graph of a step.

        TypeError if it is no node of a `Scan`.
        """
        op = node.op
        if not isinstance(op, Scan):
            raise TypeError(f"ScanArgs needs a node of a Scan, not of {op}.")
        return ScanArgs(
            node.inputs, node.outputs, op.inner_inputs, op.inner_outputs, op.info, clone=clone
        )

    # ----- lists
    def _list(self, prefix: str) -> list[Any]:
        """The variables of the fields with a prefix, in the order of a node or of a step."""
        fields = [getattr(self, f"{prefix}_{kind}") for kind in _ORDER[prefix]]
        return [v for field in fields for entry in field for v in _entries(entry)]

    @property
    def outer_inputs(self) -> list[Any]:
        """The inputs of a node."""
        return [self.n_steps, *self._list("outer_in")]

    @property
    def outer_outputs(self) -> list[Any]:
        """The outputs of the node."""
        return self._list("outer_out")

    @property
    def inner_inputs(self) -> list[Any]:
        """The inputs of a step."""
        return self._list("inner_in")

    @property
    def inputs(self) -> list[Any]:
        """The inputs of a step."""
        return self.inner_inputs

    @property
    def inner_outputs(self) -> list[Any]:
        """The outputs of a step, the condition included."""
        return [*self._list("inner_out"), *self.cond]

    @property
    def sit_sot_in_slices(self) -> tuple[tuple[int, ...], ...]:
        """The taps of the states that are read at the last step."""
        return ((-1,),) * len(self.outer_in_sit_sot)

    @property
    def n_mit_mot(self) -> int:
        """The number of buffers with several outputs."""
        return len(self.outer_in_mit_mot)

    @property
    def n_nit_sot(self) -> int:
        """The number of outputs that no step reads."""
        return len(self.outer_in_nit_sot)

    @property
    def info(self) -> ScanInfo:
        """What a `Scan` of these arguments is made with."""
        return ScanInfo(
            n_seqs=len(self.inner_in_seqs),
            mit_mot_in_slices=self.mit_mot_in_slices,
            mit_mot_out_slices=self.mit_mot_out_slices,
            mit_sot_in_slices=self.mit_sot_in_slices,
            sit_sot_in_slices=((-1,),) * len(self.inner_in_sit_sot),
            n_nit_sot=len(self.inner_out_nit_sot),
            n_untraced_sit_sot=len(self.inner_in_shared),
            n_non_seqs=len(self.inner_in_non_seqs),
            as_while=bool(self.cond),
        )

    @property
    def var_mappings(self) -> dict[str, dict[int, Any]]:
        """`ScanMethodsMixin.get_oinp_iinp_iout_oout_mappings` of the arguments."""
        methods = ScanMethodsMixin()
        methods.info = self.info
        return methods.get_oinp_iinp_iout_oout_mappings()

    # ----- fields
    @property
    def field_names(self) -> list[str]:
        """The names of the fields."""
        return [*_SLICES, "n_steps", *(f"{prefix}_{kind}" for prefix, kind in _fields())]

    def find_among_fields(
        self, i: Variable, field_filter: Callable[[str], bool] = default_filter_scanargs
    ) -> FieldInfo | None:
        """Where a variable is; the first place if there are several, None if there is none.

        ``field_filter`` says of the name of a field whether to look there.
        """
        for prefix in _ORDER:
            position = 1 if prefix == "outer_in" else 0
            for kind in _ORDER[prefix]:
                name = f"{prefix}_{kind}"
                for place in self._places(name):
                    if field_filter(name) and self._at(name, place) is i:
                        return FieldInfo(name, _LISTS[prefix], *place, position)
                    position += 1
        return None

    def _places(self, name: str) -> Iterator[tuple[int, int | None]]:
        """The places in a field: the position, and that in the list there, if there is one."""
        for k, entry in enumerate(getattr(self, name)):
            if name in self.nested_list_fields:
                yield from ((k, j) for j in range(len(entry)))
            else:
                yield k, None

    def _at(self, name: str, place: tuple[int, int | None]) -> Any:
        entry = getattr(self, name)[place[0]]
        return entry if place[1] is None else entry[place[1]]

    def _found(self, i: Variable | FieldInfo) -> FieldInfo:
        found = i if isinstance(i, FieldInfo) else self.find_among_fields(i)
        if found is None:
            raise ValueError(f"{i} is not among the arguments of the loop.")
        return found

    def get_alt_field(self, var_info: Variable | FieldInfo, alt_prefix: str) -> Any:
        """The entry with another prefix that belongs to a variable: a variable, or a list of them.

        ``alt_prefix`` is ``"outer_in"``, ``"inner_in"``, ``"inner_out"`` or ``"outer_out"``.
        ValueError if the variable is none of the arguments, AttributeError if its kind has no such
        field.
        """
        found = self._found(var_info)
        return getattr(self, f"{alt_prefix}_{_kind(found.name)}")[found.index]

    def get_dependent_nodes(self, i: Variable, seen: set[Variable] | None = None) -> set[Variable]:
        """The arguments that belong to an argument, and those that depend on these in a step.

        ``seen`` are variables to leave out.
        """
        groups = self._dependents(i)
        members = {v for group in groups for _, v in self._members(*group)}
        return members - {i} - (seen or set())

    def _dependents(self, i: Variable) -> list[tuple[str, int]]:
        """The kinds and positions of what belongs to, or depends on, an argument."""
        found = self._found(i)
        groups = [(_kind(found.name), found.index)]
        for group in groups:  # which grows
            given = {v for prefix, v in self._members(*group) if prefix == "inner_in"}
            for kind in _ORDER["inner_out"] if given else ():
                for k, entry in enumerate(getattr(self, f"inner_out_{kind}")):
                    if (kind, k) not in groups and given & set(ancestors(_entries(entry))):
                        groups.append((kind, k))
        return groups

    def _members(self, kind: str, index: int) -> list[tuple[str, Variable]]:
        """The variables of a group, with the prefixes of their fields."""
        return [
            (prefix, v)
            for prefix in _ORDER
            if kind in _ORDER[prefix]
            for v in _entries(getattr(self, f"{prefix}_{kind}")[index])
        ]

    def remove_from_fields(
        self, i: Variable, rm_dependents: bool = True
    ) -> list[tuple[Variable, FieldInfo | None]]:
        """Remove an argument; return what was removed, with the places where it was.

        With ``rm_dependents`` what belongs to it, and what depends on these in a step, is removed
        as well.  ValueError if the variable is none of the arguments.
        """
        if not rm_dependents:
            found = self._found(i)
            self._remove(found.name, found.index, found.inner_index)
            return [(i, found)]
        groups = self._dependents(i)
        removed = [
            (v, self.find_among_fields(v))
            for group in groups
            for v in dict.fromkeys(v for _, v in self._members(*group))
        ]
        for kind, index in sorted(groups, key=lambda g: -g[1]):
            for prefix in _ORDER:
                if kind in _ORDER[prefix]:
                    self._remove(f"{prefix}_{kind}", index, None)
            for name in _SLICES:
                if name.startswith(kind):
                    slices = getattr(self, name)
                    setattr(self, name, (*slices[:index], *slices[index + 1 :]))
        return removed

    def _remove(self, name: str, index: int, inner_index: int | None) -> None:
        """Remove an entry of a field, or a variable of a list there, with its tap."""
        field = getattr(self, name)
        if inner_index is None:
            setattr(self, name, [*field[:index], *field[index + 1 :]])
            return
        del field[index][inner_index]
        prefix, kind = name.split("_")[1], _kind(name)
        slices = [list(taps) for taps in getattr(self, f"{kind}_{prefix}_slices")]
        del slices[index][inner_index]
        setattr(self, f"{kind}_{prefix}_slices", tuple(map(tuple, slices)))

    def merge(self, other: ScanArgs) -> ScanArgs:
        """The arguments of a loop that does what both do; the number of steps is that of this one.

        Arguments that both have are there once more.
        """
        merged = ScanArgs(
            self.outer_inputs, self.outer_outputs, self.inner_inputs, self.inner_outputs, self.info
        )
        for prefix, kind in _fields():
            name = f"{prefix}_{kind}"
            setattr(merged, name, [*getattr(self, name), *getattr(other, name)])
        for name in _SLICES:
            setattr(merged, name, (*getattr(self, name), *getattr(other, name)))
        return merged

    def __copy__(self) -> ScanArgs:
        """A copy with lists of its own, which may be changed."""
        copy = object.__new__(type(self))
        for name, value in vars(self).items():
            lists = isinstance(value, list)
            own = [list(v) if isinstance(v, list) else v for v in value] if lists else value
            setattr(copy, name, own)
        return copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScanArgs):
            return NotImplemented
        names = [*self.field_names, "cond"]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = ["n_steps", *(n for n in self.field_names if n != "n_steps"), "cond"]
        return f"ScanArgs({', '.join(f'{n}={getattr(self, n)}' for n in names)})"


def _fields() -> Iterator[tuple[str, str]]:
    """The prefixes and kinds of the fields that contain variables."""
    return ((prefix, kind) for prefix, kinds in _ORDER.items() for kind in kinds)


def _kind(name: str) -> str:
    """The kind of the arguments in a field."""
    return name.split("_", 2)[2]


def _method(prefix: str, kind: str) -> str:
    """The method of `ScanMethodsMixin` that gives a field."""
    own = {"mit_mot": "mitmot", "mit_sot": "mitsot", "sit_sot": "sitsot", "nit_sot": "nitsot"}
    name = own.get(kind, kind).replace("shared", "untraced_sit_sot")
    side, direction = prefix.split("_")
    suffix = "_outs" if direction == "out" else ""
    grouped = "_grouped" if f"{prefix}_{kind}" in ScanArgs.nested_list_fields else ""
    return f"{side}_{name}{suffix}{grouped}"


def _entries(entry: Any) -> list[Variable]:
    return list(entry) if isinstance(entry, list | tuple) else [entry]


def _copied(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """A copy of a graph, with variables of its own."""
    order = io_toposort(inputs, outputs)
    copy = FrozenFunctionGraph.from_toposort(inputs, outputs, order).unfreeze()
    return list(copy.inputs), list(copy.outputs)
