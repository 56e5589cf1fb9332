"""Functions and classes of Theano and Aesara that PyTensor does not have; see `tables`."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import phintys.tensor as pt
from phintys.compile.io import In
from phintys.graph.replace import clone_replace
from phintys.graph.shared import SharedVariable
from phintys.graph.traversal import explicit_graph_inputs, toposort
from phintys.graph.variable import Apply, Constant, Variable, late_bound
from phintys.tensor.random.stream import RandomStream
from phintys.tensor.signal.pool import pool_2d

#: there is no device but the processor
cuda_available = cuda_enabled = False


# ------------------------------------------------------------------------------------- graphs


def clone(
    output: Any,
    replace: Any = None,
    strict: bool = True,
    share_inputs: bool = True,
    copy_inputs: Any = None,
) -> Any:
    """Copies of graphs, with replacements; see `clone_replace`.

    ``copy_inputs`` is the older name of ``share_inputs``: whether the copies have the same inputs.

    >>> x, y = pt.dscalars("x", "y")
    >>> clone(x + 1, {x: y}).eval({y: 1.0})
    array(2.)
    """
    is_single = isinstance(output, Variable)
    shared = share_inputs if copy_inputs is None else copy_inputs
    found = clone_replace(
        [output] if is_single else list(output), replace, rebuild_strict=strict,
        copy_inputs_over=shared,
    )  # fmt: skip
    return found[0] if is_single else list(found)


def get_test_value(v: Any) -> Any:
    """The value of ``v`` for the test values of its inputs, their ``tag.test_value``.

    Shared variables and constants have their own.  AttributeError if an input has none.

    >>> x = pt.dscalar("x")
    >>> x.tag.test_value = 2.0
    >>> get_test_value(x + 1)
    array(3.)
    """
    if not isinstance(v, Variable):
        return v
    if isinstance(v, Constant):
        return v.data
    if isinstance(v, SharedVariable):
        return v.get_value(borrow=True)
    own = vars(v.tag).get("test_value")
    if own is not None:
        return v.type.filter(own)
    inputs = [x for x in explicit_graph_inputs([v]) if not isinstance(x, SharedVariable)]
    missing = [x for x in inputs if not hasattr(x.tag, "test_value")]
    if missing:
        raise AttributeError(f"{missing[0]} has no test value: set its tag.test_value.")
    return late_bound["eval"](v, {x: x.type.filter(x.tag.test_value) for x in inputs})


def is_in_ancestors(l_apply: Apply, f_node: Apply) -> bool:
    """Whether a node is one of those that ``l_apply`` depends on, or that node itself."""
    return f_node is l_apply or f_node in set(toposort(l_apply.inputs))


def Param(
    variable: Any,
    default: Any = None,
    name: str | None = None,
    mutable: bool = False,
    **options: Any,
) -> In:
    """`In` with Theano's names of arguments."""
    return In(variable, name=name, value=default, mutable=mutable, **options)


class OrderedUpdates(dict[Any, Any]):
    """A dict of updates; its keys are shared variables, else TypeError.

    >>> import phintys
    >>> s = phintys.shared(1.0)
    >>> updates = OrderedUpdates({s: s + 1})
    >>> (updates + OrderedUpdates()) == updates
    True
    """

    def __init__(self, *given: Any, **kwargs: Any) -> None:
        super().__init__()
        self.update(*given, **kwargs)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, SharedVariable):
            raise TypeError(f"The keys of updates are shared variables, not {key!r}.")
        super().__setitem__(key, value)

    def update(self, *given: Any, **kwargs: Any) -> None:
        """Add updates; KeyError if one of a variable is here already and is another."""
        for key, value in dict(*[x for x in given if x is not None], **kwargs).items():
            if key in self and self[key] is not value:
                raise KeyError(f"There are two updates of {key}.", key)
            self[key] = value

    def __add__(self, other: Mapping[Any, Any]) -> OrderedUpdates:
        found = OrderedUpdates(self)
        found.update(other)
        return found

    def __radd__(self, other: Mapping[Any, Any]) -> OrderedUpdates:
        return OrderedUpdates(other) + self


# ------------------------------------------------------------------------------------ tensors


def addbroadcast(x: Any, *axes: int) -> Any:
    """``x`` with the static length 1 along ``axes``, which is checked when a function is called.

    >>> addbroadcast(pt.dmatrix(), 0).type.shape
    (1, None)
    """
    x = pt.as_tensor_variable(x)
    chosen = {axis % max(x.type.ndim, 1) for axis in axes}
    lengths = [1 if k in chosen else n for k, n in enumerate(x.type.shape)]
    return pt.specify_shape(x, lengths)


def patternbroadcast(x: Any, broadcastable: Sequence[bool]) -> Any:
    """``x`` that broadcasts along those axes whose entry of ``broadcastable`` is true.

    >>> patternbroadcast(pt.drow(), (False, True)).type.broadcastable
    (False, True)
    """
    x = pt.as_tensor_variable(x)
    axes = [k for k, wanted in enumerate(broadcastable) if wanted and x.type.shape[k] != 1]
    others = [k for k, wanted in enumerate(broadcastable) if not wanted and x.type.shape[k] == 1]
    x = addbroadcast(x, *axes) if axes else x
    return pt.unbroadcast(x, *others) if others else x


def makeKeepDims(x: Any, y: Any, axis: Any) -> Any:
    """``y``, a reduction of ``x`` along ``axis``, with the reduced axes inserted again."""
    ndim = pt.as_tensor_variable(x).type.ndim
    given = range(ndim) if axis is None else axis if isinstance(axis, list | tuple) else [axis]
    return pt.expand_dims(y, sorted(k % ndim for k in given))


def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """`convolve1d` of two vectors."""
    return pt.signal.convolve1d(pt.as_tensor_variable(a), pt.as_tensor_variable(v), mode)


def max_pool_2d(
    input: Any,
    ds: Any,
    ignore_border: Any = None,
    st: Any = None,
    padding: Any = (0, 0),
    mode: Any = "max",
) -> Any:
    """`pool_2d` with Theano's names of arguments."""
    return pool_2d(input, ds, ignore_border, st, padding, mode)


def solve_lower_triangular(a: Any, b: Any) -> Any:
    """The solution of a system whose matrix is lower triangular."""
    return pt.linalg.solve_triangular(a, b, lower=True)


def solve_upper_triangular(a: Any, b: Any) -> Any:
    """The solution of a system whose matrix is upper triangular."""
    return pt.linalg.solve_triangular(a, b, lower=False)


# ------------------------------------------------------------------------------------- archives


def dump(obj: Any, file_handler: Any, protocol: int = pickle.HIGHEST_PROTOCOL, **_: Any) -> None:
    """Pickle an object to a file; `load` reads it.

    The file is a pickle, and no archive of arrays as Theano's was.
    """
    pickle.dump(obj, file_handler, protocol)


def load(f: Any, **_: Any) -> Any:
    """The object that `dump` has written."""
    return pickle.load(f)


# ------------------------------------------------------------------------------- random numbers


class RandomStreams:
    """Draws whose generators have default updates, with the parameters of Theano's streams.

    The numbers are those of NumPy's generators, not those that Theano drew.

    >>> import phintys
    >>> stream = RandomStreams(seed=3)
    >>> f = phintys.function([], stream.uniform((2, 3), low=-1.0))
    >>> f().shape, bool((f() == f()).any())
    ((2, 3), False)
    """

    _integer: ClassVar[str] = "int64"

    def __init__(self, seed: Any = None, **_: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            self._stream = RandomStream(seed)

    @property
    def state_updates(self) -> list[Any]:
        """The pairs of each generator and its state after the draw."""
        return self._stream.state_updates

    def updates(self) -> list[Any]:
        """A list of the pairs in ``state_updates``."""
        return self._stream.updates()

    def seed(self, seed: Any = None) -> None:
        """Seed all generators again."""
        self._stream.seed(seed)

    def gen(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A draw by an op or function of `phintys.tensor.random`."""
        return self._stream.gen(op, *args, **kwargs)

    def _drawn(self, name: str, size: Any, dtype: Any, *parameters: Any) -> Any:
        given = None if size is None or (isinstance(size, tuple | list) and not size) else size
        found = self._stream.gen(getattr(pt.random, name), *parameters, size=given)
        return found if dtype is None else pt.cast(found, dtype)

    # the arguments ``ndim`` and ``nstreams`` of older systems follow from ``size``
    def uniform(
        self, size: Any = (), low: Any = 0.0, high: Any = 1.0, ndim: Any = None, dtype: Any = None,
        nstreams: Any = None,
    ) -> Any:  # fmt: skip
        """Numbers of a uniform distribution."""
        return self._drawn("uniform", size, dtype, low, high)

    def normal(
        self, size: Any = (), avg: Any = 0.0, std: Any = 1.0, ndim: Any = None, dtype: Any = None,
        nstreams: Any = None,
    ) -> Any:  # fmt: skip
        """Numbers of a normal distribution."""
        return self._drawn("normal", size, dtype, avg, std)

    def binomial(
        self, size: Any = (), n: Any = 1, p: Any = 0.5, ndim: Any = None, dtype: Any = "int64",
        nstreams: Any = None,
    ) -> Any:  # fmt: skip
        """Numbers of successes."""
        return self._drawn("binomial", size, dtype, n, p)

    def poisson(
        self, size: Any = (), lam: Any = 1.0, ndim: Any = None, dtype: Any = "int64"
    ) -> Any:
        """Numbers of a Poisson distribution."""
        return self._drawn("poisson", size, dtype, lam)

    def random_integers(
        self, size: Any = (), low: Any = 0, high: Any = 1, ndim: Any = None, dtype: Any = "int64"
    ) -> Any:
        """Integers from ``low`` to ``high``, both included."""
        return self._drawn("integers", size, dtype, low, pt.as_tensor_variable(high) + 1)

    def multinomial(
        self, size: Any = None, n: Any = 1, pvals: Any = None, ndim: Any = None,
        dtype: Any = "int64", nstreams: Any = None,
    ) -> Any:  # fmt: skip
        """Counts of ``n`` draws from categories with probabilities ``pvals``."""
        return self._drawn("multinomial", size, dtype, n, pvals)

    def permutation(
        self, size: Any = (), n: Any = 1, ndim: Any = None, dtype: Any = "int64"
    ) -> Any:
        """A permutation of ``n`` integers."""
        found = self._stream.gen(pt.random.permutation, n)
        return pt.cast(found, dtype)

    def choice(
        self, size: Any = 1, a: Any = 2, replace: bool = True, p: Any = None, ndim: Any = None,
        dtype: Any = "int64", nstreams: Any = None,
    ) -> Any:  # fmt: skip
        """Elements of ``a``, or integers below it."""
        found = self._stream.gen(pt.random.choice, a, size=size, replace=replace, p=p)
        return pt.cast(found, dtype)

    def shuffle_row_elements(self, input: Any) -> Any:
        """``input`` with the elements of each row in another order, the same for all rows."""
        x = pt.as_tensor_variable(input)
        return x[..., self.permutation(n=x.shape[-1])]


MRG_RandomStream = MRG_RandomStreams = RandomStreams
