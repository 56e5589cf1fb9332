"""`Variable`, `Constant` and `Apply`: the objects that a graph consists of.

A `Variable` refers to the `Apply` that computes it (``owner``), and an `Apply` to its input
variables, so the graph of an expression is everything that can be reached from it.  Both classes
hash and compare by identity: ``a == b`` is a plain bool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol

import numpy as np

from phintys.graph import flatten
from phintys.graph.labels import label_of
from phintys.graph.meta import Scratchpad
from phintys.graph.origin import Origin, Trace, trace_of, user_origin
from phintys.memo import Memo

#: Functions of higher layers that lower ones call by name, because they must not import them:
#: ``eval`` and ``function`` (``compile/function.py``), ``dprint`` (``show/text.py``), ``blockwise``
#: (``tensor/blockwise.py``), ``as_tensor_variable`` (``tensor/convert.py``), ``known_length`` and
#: ``known_entries`` (``tensor/static.py``), ``infer_shape`` (``tensor/inferred.py``).
late_bound: dict[str, Callable[..., Any]] = {}

# Arguments for type checkers, which also know their defaults: `Variable[TensorType, Apply]` is a
# computed tensor variable, `Apply[Sum]` a node of a sum.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    TypeT = TypeVar("TypeT", default=Any, covariant=True)
    OwnerT = TypeVar("OwnerT", bound="Apply | None", default="Apply | None", covariant=True)
    OpT = TypeVar("OpT", default=Any, covariant=True)
else:
    from typing import TypeVar

    TypeT, OwnerT, OpT = (TypeVar(name, covariant=True) for name in ("TypeT", "OwnerT", "OpT"))


#: numbers of nodes, in the order in which they are made
_numbers = count(1)


def new_number() -> int:
    """A number above those of the nodes that exist, below those of the nodes made later."""
    return next(_numbers)


class Node:
    """Base class of `Variable` and `Apply`."""

    __slots__ = ("__dict__", "__weakref__", "_tag", "origin")
    immutable: ClassVar[bool] = False
    _tag: Scratchpad | None
    origin: Origin | Any

    @property
    def tag(self) -> Scratchpad:
        """A namespace for annotations; it never influences what is computed.

        ``tag.trace`` of a variable is the line of the program that made it, in PyTensor's form:
        ``[[(file, line, function, text)]]``.
        """
        if self._tag is None:
            self._tag = Scratchpad()
            trace = self._trace()
            if trace:
                self._tag.trace = trace
        return self._tag

    @tag.setter
    def tag(self, value: Scratchpad) -> None:
        self._tag = value

    def _trace(self) -> Trace:
        """See `tag`; empty for nodes, and where the line is not known."""
        return []

    def get_parents(self) -> list[Any]:
        """The objects this one refers to: a variable's owner, a node's inputs."""
        raise TypeError(f"{type(self).__name__} does not define get_parents.")

    def dprint(self, **kwargs: Any) -> Any:
        """Print the graph; see `phintys.dprint`."""
        return late_bound["dprint"](self, **kwargs)

    def __reduce__(self) -> Any:
        return flatten.reduce_node(self)

    def __setstate__(self, state: Any) -> None:
        flatten.restore(self, state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return flatten.deepcopy_node(self, memo)


class Variable(Node, Generic[TypeT, OwnerT]):
    """A symbolic value: an input of a graph, or output ``index`` of its ``owner``.

    Variables are usually made by calling a type or an op, not directly.

    Parameters
    ----------
    type
        the `Type` of its values
    owner
        the `Apply` that computes it, or None
    index
        its position among the owner's outputs, or None
    name
        a label in printed graphs and messages; it need not be unique

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> y = x + 1
    >>> x.type, x.owner, y.owner.op, y.owner.inputs[0] is x
    (TensorType(float64, shape=(None,)), None, Add, True)
    """

    __slots__ = ("index", "name", "owner", "type")
    type: TypeT
    owner: OwnerT
    index: int | None
    name: str | None
    _auto_names: ClassVar[int] = 0

    def __init__(
        self,
        type: Any,
        owner: Any = None,
        index: int | None = None,
        name: str | None = None,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"A name is a string, not {name!r}.")
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name
        self._tag = None
        self.origin = None

    def _trace(self) -> Trace:
        return trace_of(self.origin if self.owner is None else self.owner.origin)

    @property
    def auto_name(self) -> str:
        """A name that is unique in this process, assigned on first access."""
        found: str | None = self.__dict__.get("auto_name_")
        if found is None:
            Variable._auto_names += 1
            found = self.__dict__["auto_name_"] = f"auto_{Variable._auto_names}"
        return found

    @property
    def owner_op(self) -> Any:
        """The op that computes this variable, or None (for ``match`` statements)."""
        return None if self.owner is None else self.owner.op

    @property
    def owner_op_and_inputs(self) -> tuple[Any, ...]:
        """The op and the inputs of the owner, or ``(None,)``."""
        return (None,) if self.owner is None else (self.owner.op, *self.owner.inputs)

    def get_parents(self) -> list[Any]:
        return [] if self.owner is None else [self.owner]

    def clone(self, **kwargs: Any) -> Variable:
        """A new variable of the same type and name, without an owner."""
        name = kwargs.pop("name", self.name)
        copy = self.__class__(self.type, None, None, name, **kwargs)
        if self._tag is not None:
            copy._tag = Scratchpad().__update__(self._tag)
        copy.origin = self.origin
        return copy

    def eval(self, inputs_to_values: Any = None, **kwargs: Any) -> Any:
        """The value of this variable, for given values of the inputs it depends on.

        Parameters
        ----------
        inputs_to_values
            a dict whose keys are variables or their names

        A function is compiled for each set of keys, and cached on this variable.

        Raises
        ------
        MissingInputError
            if a value is missing

        >>> import phintys.tensor as pt
        >>> x = pt.dvector("x")
        >>> (2 * x).eval({x: [1.0, 2.0]})
        array([2., 4.])
        """
        return late_bound["eval"](self, inputs_to_values, **kwargs)

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        if self.owner is not None:
            op: Any = self.owner.op
            return f"{op}.{'out' if self.index == op.default_output else self.index}"
        return label_of(self) or f"<{self.type}>"

    def __repr__(self) -> str:
        return str(self)


class Computed(Protocol):
    """A variable that is known to have an owner, such as one that a pattern has matched."""

    @property
    def owner(self) -> Apply:
        """The node that computes it."""
        ...


class AtomicVariable(Variable):
    """A variable that never has an owner and is compared by its `signature`."""

    __slots__ = ()

    def signature(self) -> Any:
        """A hashable key; equal signatures mean interchangeable variables."""
        return self

    def merge_signature(self) -> Any:
        """The signature by which rewriting merges variables; a `Constant` computes it once."""
        return self.signature()

    def equals(self, other: Any) -> bool:
        """Whether ``other`` is interchangeable with this variable."""
        return isinstance(other, type(self)) and self.signature() == other.signature()


class Constant(AtomicVariable):
    """A variable with a fixed value ``data``.

    An array is neither copied nor write-protected: modifying it afterwards changes the constant.

    >>> import phintys.tensor as pt
    >>> c = pt.constant([1.0, 2.0])
    >>> c.type, c.data
    (TensorType(float64, shape=(2,)), array([1., 2.]))
    """

    __slots__ = ("_signature", "data")
    __match_args__ = ("type", "data")
    data: Any
    _signature: Any  # that of `merge_signature`, once computed

    def __init__(self, type: Any, data: Any, name: str | None = None) -> None:
        Variable.__init__(self, type, None, None, name)
        self.data = data
        self._signature = None
        self.origin = user_origin()

    @property
    def value(self) -> Any:
        """The value (not a copy)."""
        return self.data

    def signature(self) -> Any:
        """Type and value, where NaN equals itself, 0.0 differs from -0.0 and 1 from True.

        A value that cannot be hashed is represented by its identity.
        """
        data = self.data
        if isinstance(data, float):
            return (self.type, type(data), data.hex())
        if isinstance(data, np.generic):
            return (self.type, type(data), data.tobytes())
        try:
            hash(data)
        except TypeError:
            return (self.type, type(data), id(data))
        return (self.type, type(data), data)

    def merge_signature(self) -> Any:
        if self._signature is None:
            self._signature = self.signature()
        return self._signature

    def clone(self, **kwargs: Any) -> Constant:
        """The constant itself, as it is immutable."""
        return self

    def __str__(self) -> str:
        """The value, shortened to one line, after the name if there is one."""
        text = _shortened(str(self.data))
        return text if self.name is None else f"{self.name}{{{text}}}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type!r}, data={_shortened(repr(self.data))})"


def _shortened(text: str) -> str:
    """A text of more than 20 characters by its first and last ten, on one line."""
    if len(text) > 20:
        text = f"{text[:10].rstrip()} ... {text[-10:].lstrip()}"
    return text.replace("\n", "")


class NominalVariable(AtomicVariable):
    """An input of an inner graph, identified by a number and its type.

    Interned, so that inner graphs that differ only in the names of their inputs are equal.
    """

    __slots__ = ("id",)
    immutable = True
    _interned: ClassVar[Memo[Any, Any]] = Memo(64, "nominal variables", weak=True)
    _classes: ClassVar[Memo[Any, Any]] = Memo(16, "classes of nominal variables", weak=True)

    def __new__(cls, id: Any, typ: Any, name: str | None = None) -> Any:
        found = cls._interned[typ, id]
        if found is None:
            found = object.__new__(cls._class_for(typ.variable_type))
            Variable.__init__(found, typ, None, None, name)
            found.id = id
            found = cls._interned.keep((typ, id), found)
        return found

    @classmethod
    def _class_for(cls, base: type[Variable]) -> Any:
        """The subclass of both `NominalVariable` and ``base``, made on first use."""
        found = cls._classes[base]
        if found is None:
            body = {"__slots__": (), "__init__": lambda self, *a, **k: None}
            made = type(f"Nominal{base.__name__}", (NominalVariable, base), body)
            made.__module__ = cls.__module__
            found = cls._classes.keep(base, made)
        return found

    def __init__(self, id: Any, typ: Any, name: str | None = None) -> None:
        """Does nothing: `__new__` sets all fields, once."""

    def clone(self, **kwargs: Any) -> NominalVariable:
        return self

    def signature(self) -> Any:
        return (self.type, self.id)

    def __reduce__(self) -> Any:
        return NominalVariable, (self.id, self.type, self.name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __str__(self) -> str:
        return self.name or label_of(self) or f"i{self.id}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, {self.type!r})"


class Apply(Node, Generic[OpT]):
    """The application of an op to inputs: a node of the graph.

    It becomes the ``owner`` of its outputs.

    Parameters
    ----------
    op, inputs
        the operation and the variables it is applied to
    outputs
        new variables

    ``number`` tells which of two nodes was made first; for nodes that were unpickled it is 0.

    Raises
    ------
    TypeError
        if an input is not a `Variable`
    ValueError
        if an output has an owner already

    >>> import phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> node = (x * y).owner
    >>> node.op, node.inputs, node.outputs
    (Mul, [x, y], [Mul.0])
    """

    __slots__ = ("inputs", "number", "op", "outputs")
    __match_args__ = ("op", "inputs", "outputs")
    op: OpT
    inputs: list[Variable]
    outputs: list[Variable]
    number: int

    def __init__(self, op: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.op, self.number = op, next(_numbers)
        self.inputs = inputs = list(inputs)
        self.outputs = list(outputs)
        self._tag = None
        self.origin = user_origin()
        for v in inputs:
            if not isinstance(v, Variable):
                raise TypeError(f"Inputs of {op} must be Variables; {v!r} is a {type(v).__name__}.")
        for i, v in enumerate(self.outputs):
            if v.owner is not None:
                raise ValueError(f"Output {i} of {op} belongs to another node, {v.owner.op}.")
            v.owner = self
            v.index = i

    @property
    def nin(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    @property
    def nout(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    @property
    def out(self) -> Any:
        """See `default_output`."""
        return self.default_output()

    def default_output(self) -> Any:
        """The only output, or the one that ``op.default_output`` selects; else ValueError."""
        op: Any = self.op
        choice = op.default_output
        if choice is None:
            if len(self.outputs) != 1:
                raise ValueError(
                    f"{self.op} has {len(self.outputs)} outputs and no default_output; "
                    "choose one from node.outputs."
                )
            choice = 0
        return self.outputs[choice]

    def get_parents(self) -> list[Any]:
        return list(self.inputs)

    def clone(self, clone_inner_graph: bool | None = None) -> Apply:
        """A copy with the same inputs and new outputs."""
        return self._copy(self.inputs)

    def _copy(self, inputs: Sequence[Variable]) -> Apply:
        outputs = [v.clone() for v in self.outputs]
        tag = None if self._tag is None else Scratchpad().__update__(self._tag)
        return self.assembled(self.op, inputs, outputs, next(_numbers), self.origin, tag)

    @classmethod
    def assembled(
        cls,
        op: Any,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        number: int,
        origin: Origin | Any,
        tag: Scratchpad | None,
    ) -> Apply:
        """A node with all its attributes given, without checks."""
        node = Apply.__new__(cls)
        node.op, node.number, node.origin, node._tag = op, number, origin, tag
        node.inputs = list(inputs)
        node.outputs = list(outputs)  # a copy of a list has no room for more items
        for i, v in enumerate(node.outputs):
            v.owner = node
            v.index = i
        return node

    def clone_with_new_inputs(
        self, inputs: Sequence[Variable], strict: bool = True, clone_inner_graph: Any = None
    ) -> Apply:
        """A node that applies the same op to other inputs.

        ``make_node`` is called only if the type of an input differs (or if the op declares that its
        output types depend on input values); otherwise the outputs keep their types.  With
        ``strict`` an input of another type is converted to the old type.

        Raises
        ------
        ValueError
            if the number of inputs differs
        TypeError
            if an input cannot be converted
        """
        if len(inputs) != len(self.inputs):
            raise ValueError(f"{self.op} takes {len(self.inputs)} inputs, not {len(inputs)}.")
        new = list(inputs)
        changed = False
        for i, (old, v) in enumerate(zip(self.inputs, inputs)):
            if v.type is not old.type:  # most types are interned
                if strict:
                    new[i] = old.type.filter_variable(v)
                changed = changed or new[i].type != old.type
        op: Any = self.op
        if changed or (op._output_type_depends_on_input_value and new != self.inputs):
            return self.made_anew(new)
        return self._copy(new)

    def made_anew(self, inputs: Sequence[Variable]) -> Apply:
        """The node that ``make_node`` of the op returns for other inputs, with names and tags."""
        op: Any = self.op
        node: Apply = op.make_node(*inputs)
        node.origin = self.origin
        for fresh, old in zip(node.outputs, self.outputs):
            fresh.name = old.name
            if old._tag is not None:
                fresh.tag.__update__(old._tag)
        return node

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.inputs))})"

    def __repr__(self) -> str:
        return str(self)
