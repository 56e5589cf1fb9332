"""`Distribution`: base class of distributions that a table of parameters declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from inspect import Parameter, Signature
from typing import Any, ClassVar, Generic

import numpy as np

from phintys import bitgen
from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape
from phintys.graph.variable import Apply, Constant, Variable
from phintys.scalar.native import Native
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.random.domains import Condition, Domain, conditions_of, first_violated
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.random.type import GeneratorLike
from phintys.tensor.random.utils import Size, rv_size_is_none


class Draws(Generic[V]):
    """Draws numbers of a shape by routines, one after the other: ``draw(routine, *parameters)``.

    ``state`` is the generator after them, ``valid`` the flags that are checked before the first.
    """

    def __init__(self, b: Builder[V], state: V, shape: Shape, valid: Sequence[V]) -> None:
        self.b, self.state, self.shape, self.valid = b, state, shape, valid

    def __call__(self, routine: str, *parameters: V) -> V:
        self.state, numbers = self.b.draw(routine, self.state, parameters, self.shape, self.valid)
        self.valid = ()
        return numbers


class Distribution(RandomVariable):
    """A distribution whose parameters have names, defaults and domains.

    The signature, if a class sets none, is that of numbers drawn from numbers, and ``__call__``
    takes the parameters by position or name, then ``size`` and the arguments of
    `RandomVariable.__call__`.

    Attributes
    ----------
    parameters
        name -> (domain,) or (domain, default), in order
    relations
        what several parameters must satisfy together
    routines
        the rows of `phintys.scalar.native.DISTRIBUTIONS` with which compiled code draws; where
        NumPy does not export them, or for none, it calls `perform`
    checks_nothing_drawn
        whether the conditions also hold for parameters of which a size says that nothing is drawn
    conditions
        what the parameters must satisfy, else a draw raises ValueError: that they are in their
        domains, and the relations

    >>> from phintys.tensor.random.domains import REAL
    >>> class SechRV(Distribution):
    ...     name = "sech"
    ...     parameters = {"loc": (REAL, 0.0), "scale": (REAL, 1.0)}
    ...
    ...     @classmethod
    ...     def rng_fn(cls, rng, loc, scale, size):
    ...         return loc + scale * np.log(np.abs(rng.standard_cauchy(size))) / np.pi
    >>> sech = SechRV()
    >>> sech(scale=2.0, size=3, rng=np.random.default_rng(1)).type.shape
    (3,)
    """

    dtype = "floatX"
    parameters: ClassVar[Mapping[str, tuple[Domain] | tuple[Domain, float]]] = {}
    relations: ClassVar[tuple[Condition, ...]] = ()
    routines: ClassVar[tuple[str, ...]] = ()
    checks_nothing_drawn: ClassVar[bool] = True
    conditions: ClassVar[tuple[Condition, ...]] = ()

    # ----- class and static shape
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if "parameters" in own or "relations" in own:
            domains = [(name, spec[0]) for name, spec in cls.parameters.items()]
            cls.conditions = (*conditions_of(domains), *cls.relations)
        if "parameters" in own:
            if "signature" not in own:
                cls.signature = ",".join(["()"] * len(cls.parameters)) + "->()"
            if "__call__" not in own:
                cls.__call__ = _call(cls)

    def make_node(self, rng: GeneratorLike, size: Size, *dist_params: Any) -> Apply:
        given = [as_tensor_variable(p) for p in dist_params]
        for p, (name, (domain, *_)) in zip(given, self.parameters.items()):
            if not np.can_cast(p.type.dtype, domain.dtype):
                raise TypeError(
                    f"The parameter {name} of {self.name} is {p} of dtype {p.type.dtype}, which "
                    f"cannot be converted to {domain.dtype} safely."
                )
        return super().make_node(rng, size, *given)

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        rng, size, *params = inputs
        given = [
            np.asarray(p, domain.dtype) for p, (domain, *_) in zip(params, self.parameters.values())
        ]
        super().perform(node, [rng, size, *given], output_storage)

    # ----- lowering
    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        """The numbers, as native code that calls ``draw(routine, *parameters)``.

        ``params`` have the dtypes of their domains.  The default calls the only routine.
        """
        (routine,) = self.routines
        return draw(routine, *params)

    def flags(self, b: Builder[V], params: Sequence[V]) -> list[V]:
        """Further flags that must be true, as native code, beside those of the conditions."""
        return []

    def draws_natively(self) -> bool:
        """Whether the numbers are those of ``native``: the class that sets it is not changed."""
        mro = type(self).__mro__
        cls = next(c for c in mro if "routines" in vars(c))
        changed = [f for c in mro[: mro.index(cls)] for f in vars(c)]
        kept = not {"rng_fn", "rng_fn_scipy", "perform"}.intersection(changed)
        same = self.name == cls.name and self.signature == cls.signature
        return kept and same and bool(self.routines) and all(map(bitgen.has_routine, self.routines))

    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> list[V]:
        rng, _, *params = inputs
        if not self.draws_natively():
            return NotImplemented
        _, shape = b.result_shapes(node, *inputs)
        if not rv_size_is_none(self.size_param(node)):  # it may say more elements than 64 bits hold
            b.lengths([b.scalar(n) for n in shape])
        dtypes = [spec[0].dtype for spec in self.parameters.values()]
        given = [b.cast(p, d) for p, d in zip(params, dtypes, strict=True)]
        known = [_value(p, d) for p, d in zip(self.dist_params(node), dtypes, strict=True)]
        valid = [
            b.map(c.holds, *(given[k] for k in c.positions))
            for c in self.conditions
            if not _is_known_to_hold(c, known)
        ]
        if not self.checks_nothing_drawn and not rv_size_is_none(self.size_param(node)):
            valid = [b.map(_or_nothing, v, *map(b.scalar, shape)) for v in valid]
        draw = Draws(b, rng, shape, [*valid, *self.flags(b, given)])
        numbers = self.native(b, draw, *given)
        return [draw.state, b.cast(numbers, node.outputs[1].type.dtype)]


class ScipyRandomVariable(RandomVariable):
    """A distribution that NumPy lacks, or has with other parameters.

    Subclasses define the class method ``rng_fn_scipy(rng, *parameters, size)``.  It may return a
    number in the place of an array of one element, as SciPy does.
    """

    @classmethod
    def rng_fn(cls, *args: Any, **kwargs: Any) -> Any:
        """The numbers of `rng_fn_scipy`, as an array."""
        draw = np.asarray(cls.rng_fn_scipy(*args, **kwargs))
        *params, size = args[1:]
        shape = np.broadcast_shapes(*map(np.shape, params)) if size is None else size
        return draw.reshape(shape) if draw.size == 1 and draw.ndim < len(shape) else draw

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, *args: Any, **kwargs: Any) -> Any:
        """The numbers drawn from a generator with parameters and the size."""
        raise NotImplementedError(f"{cls.__name__} defines no rng_fn_scipy.")


class ScipyDistribution(ScipyRandomVariable, Distribution):
    """A distribution that ``scipy.stats`` has, drawn from by a method of NumPy and a formula.

    The numbers and the errors are SciPy's.  Yet if all scales are 0, SciPy draws nothing, so that
    the generator does not change; this draws.
    """

    @classmethod
    def rng_fn(cls, *args: Any, **kwargs: Any) -> Any:
        rng, *params, size = args
        violated = first_violated(cls.conditions, params)
        if violated is not None:
            raise ValueError(violated.wrong)
        shape = np.broadcast_shapes(*map(np.shape, params)) if size is None else size
        return super().rng_fn(rng, *params, shape)


def _value(param: Variable, dtype: str) -> Any:
    """The value of a parameter in the dtype of its domain, None if it is no constant."""
    return np.asarray(param.data, dtype) if isinstance(param, Constant) else None


def _or_nothing(n: Native, valid: Any, *lengths: Any) -> Any:
    """Whether a flag is true, or one of the lengths is 0."""
    return reduce(n.or_, (n.eq(k, n.const(0, k)) for k in lengths), valid)


def _is_known_to_hold(condition: Condition, values: Sequence[Any]) -> bool:
    """Whether a condition holds, as far as the values of parameters are known."""
    given = [values[k] for k in condition.positions]
    if any(v is None for v in given) or not _broadcast(given):
        return False
    own = condition._replace(positions=tuple(range(len(given))))
    return first_violated([own], given) is None


def _broadcast(values: Sequence[np.ndarray]) -> bool:
    """Whether arrays broadcast; the call of a function raises ShapeError if they do not."""
    try:
        np.broadcast_shapes(*(v.shape for v in values))
    except ValueError:
        return False
    return True


def _call(cls: type[Distribution]) -> Callable[..., Any]:
    """The method ``__call__`` of a distribution: its parameters, ``size``, and others by name."""
    kind = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        Parameter(name, kind, default=spec[1] if len(spec) > 1 else Parameter.empty)
        for name, spec in cls.parameters.items()
    ]
    parameters.append(Parameter("size", kind, default=None))
    parameters.append(Parameter("kwargs", Parameter.VAR_KEYWORD))
    signature = Signature(parameters)

    def __call__(self: Distribution, *args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}.") from None
        given.apply_defaults()
        *params, size, others = given.arguments.values()
        return super(cls, self).__call__(*params, size=size, **others)

    __call__.__signature__ = Signature([Parameter("self", kind), *parameters])
    __call__.__doc__ = f"Numbers drawn from {cls.name}; see `RandomVariable.__call__`."
    return __call__
