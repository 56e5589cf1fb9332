"""The arguments of a call: their order, names and default values, and the cells that hold these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from phintys.errors import did_you_mean
from phintys.graph.shared import Container, SharedVariable
from phintys.graph.variable import Variable

if TYPE_CHECKING:
    from phintys.compile.inputs import Specification
    from phintys.compile.io import SymbolicInput

_MISSING = object()


class Arguments:
    """Computes the values of the inputs of a function from the arguments of a call.

    Parameters
    ----------
    spec
        the checked arguments of `function`
    containers
        the cells of the shared variables of ``spec``
    name
        the name of the function, for messages

    Attributes
    ----------
    cells
        for each argument the cell of its default value; one that is empty has none
    """

    def __init__(
        self, spec: Specification, containers: Sequence[Container], name: str | None = None
    ) -> None:
        self.function_name = name
        self.inputs: list[SymbolicInput] = spec.arguments or spec.inputs
        cell_of = dict(zip(spec.shared, containers, strict=True))
        self.is_kept = [i in spec.kept for i in self.inputs]
        self.cells = [cell_of[spec.kept[i]] if i in spec.kept else _default(i) for i in self.inputs]
        self.positional = [k for k, i in enumerate(self.inputs) if not self._is_implicit(k, i)]
        self.names: dict[str, int] = {}
        self.ambiguous: set[str] = set()
        for k, i in enumerate(self.inputs):
            if i.name is None:
                continue
            if i.name in self.names:
                self.ambiguous.add(i.name)
            self.names[i.name] = k

    def _is_implicit(self, k: int, i: SymbolicInput) -> bool:
        return self.is_kept[k] and (i.implicit or isinstance(i.variable, SharedVariable))

    @property
    def is_permuted(self) -> bool:
        """Whether an argument that is kept in a cell comes before one that is not."""
        kept = [self.is_kept[k] for k in self.positional]
        return sorted(kept) != kept

    # ----- of one call
    def values(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The values of the inputs, converted to their types; the kept ones are stored.

        Raises TypeError if an argument is missing, unknown or given twice, TypeError or ValueError
        if it cannot be converted.
        """
        plain = not kwargs and len(args) == len(self.inputs) == len(self.positional)
        given = args if plain else self._bind(args, kwargs)
        converted = [
            value if value is _MISSING else self._filter(k, value) for k, value in enumerate(given)
        ]
        out: list[Any] = []
        for is_kept, cell, value in zip(self.is_kept, self.cells, converted):
            if not is_kept:
                out.append(value)
            elif value is not _MISSING:
                cell.storage[0] = value
        return out

    def _filter(self, k: int, value: Any) -> Any:
        spec = self.inputs[k]
        try:
            return spec.filter(value)
        except (TypeError, ValueError, OverflowError) as exc:
            label = f" {spec.name!r}" if spec.name else ""
            raise type(exc)(f"Bad argument {k}{label}{self.of()}: {exc}") from None

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in the order of the inputs, with default values.

        Inputs kept in cells may be missing.
        """
        if len(args) > len(self.positional):
            raise TypeError(
                f"{self.label()} takes {len(self.positional)} arguments ({self.signature()}), "
                f"{len(args)} given."
            )
        values: list[Any] = [_MISSING] * len(self.inputs)
        for k, value in zip(self.positional, args):
            values[k] = value
        for name, value in kwargs.items():
            k = self._position(name)
            if values[k] is not _MISSING:
                raise TypeError(f"Input {name!r} is given twice, by position and by name.")
            values[k] = value
        for k, (cell, value) in enumerate(zip(self.cells, values)):
            if value is not _MISSING:
                continue
            if cell.value is None:
                self._raise_missing(k)
            if not self.is_kept[k]:
                values[k] = cell.value
        return values

    def _position(self, name: str) -> int:
        """The position of the input that is passed by name."""
        if name not in self.names:
            hint = did_you_mean(name, self.names)
            raise TypeError(
                f"{self.label()} has no input called {name!r}.{hint} "
                f"Its inputs: {self.signature()}."
            )
        if name in self.ambiguous:
            raise TypeError(f"Several inputs are called {name!r}: pass them by position.")
        k = self.names[name]
        if k not in self.positional:
            raise TypeError(f"Input {name!r} is implicit: calls cannot pass it.")
        return k

    def _raise_missing(self, k: int) -> None:
        variable = self.inputs[k].variable
        raise TypeError(
            f"{self.label()} is missing argument {k}, {variable} (type {variable.type}). "
            f"Its inputs: {self.signature()}."
        )

    # ----- default values
    def own_defaults(self) -> list[Any]:
        """The default values of arguments that are not kept in cells, to be pickled or copied."""
        return [
            cell.value if spec.owns_value or spec.value is None else None
            for spec, cell in zip(self.inputs, self.cells)
        ]

    def set_defaults(self, values: Sequence[Any]) -> None:
        """Set what `own_defaults` of a copy of the function returned."""
        for cell, is_kept, value in zip(self.cells, self.is_kept, values):
            if value is not None and not is_kept:
                cell.storage[0] = deepcopy(value)

    # ----- messages
    def of(self) -> str:
        """The function, as a part of a message; empty if it has no name."""
        return f" of function {self.function_name!r}" if self.function_name else ""

    def label(self) -> str:
        """The function, as the first word of a message."""
        return f"Function {self.function_name!r}" if self.function_name else "The function"

    def signature(self) -> str:
        """The names of the inputs."""
        return ", ".join(i.name or f"<{i.variable.type}>" for i in self.inputs) or "none"


def _default(i: SymbolicInput) -> Container:
    """The cell of a default value, of which each function has its own, unless it was given one."""
    if i.value is not None and not i.owns_value:
        return i.value
    return i.new_container(None if i.value is None else deepcopy(i.value.value))


class Cells:
    """The cells of a function, by variable or name: ``f.container``.

    They hold the default values of arguments and the values of shared variables.
    """

    def __init__(
        self,
        arguments: Arguments,
        shared: Sequence[SharedVariable],
        containers: Sequence[Container],
    ) -> None:
        self._label = arguments.label()
        self._by_variable: dict[Variable, Container] = dict(zip(shared, containers, strict=True))
        self._by_variable.update(
            (i.variable, cell) for i, cell in zip(arguments.inputs, arguments.cells)
        )
        names = [v.name for v in shared] + [i.name for i in arguments.inputs]
        cells = [*containers, *arguments.cells]
        self._by_name: dict[str, Container] = {n: c for n, c in zip(names, cells) if n is not None}
        self._ambiguous = {
            n for n, c in zip(names, cells) if n is not None and self._by_name[n] is not c
        }

    def __getitem__(self, key: Variable | str) -> Container:
        """The cell.  Raises TypeError if there is none, or if several have that name."""
        if isinstance(key, str):
            if key in self._ambiguous:
                raise TypeError(f"Several inputs are called {key!r}: pass the variable.")
            found = self._by_name.get(key)
        else:
            found = self._by_variable.get(key)
        if found is None:
            hint = did_you_mean(str(key), self._by_name)
            raise TypeError(f"{self._label} has no input and no shared variable {key!r}.{hint}")
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._by_name or key in self._by_variable

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._by_variable)

    def __len__(self) -> int:
        return len(self._by_variable)


class Values:
    """The values in the cells of a function, by variable or name: ``f.value``.

    Assigning converts to the type of the variable.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def __getitem__(self, key: Variable | str) -> Any:
        return self._cells[key].value

    def __setitem__(self, key: Variable | str, value: Any) -> None:
        self._cells[key].value = value

    def __contains__(self, key: object) -> bool:
        return key in self._cells

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)
