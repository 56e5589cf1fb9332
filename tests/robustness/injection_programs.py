"""Small programs that reach every place where something can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import phintys
import phintys.tensor as pt
from phintys.graph.op import Op
from phintys.graph.variable import Apply


class Program(NamedTuple):
    """What a function is made of, and a call of it.

    ``error`` is what the call ends in where nothing is injected; None: in results.  ``settings``
    hold while the function is made.
    """

    inputs: Sequence[Any]
    outputs: Any
    arguments: Sequence[Any]
    updates: dict[Any, Any] = {}
    names: dict[str, Any] = {}
    error: type[BaseException] | None = None
    settings: dict[str, Any] = {}

    def make(self, mode: str) -> Any:
        with phintys.config.change_flags(**self.settings):
            updates = list(self.updates.items())
            return phintys.function(self.inputs, self.outputs, mode=mode, updates=updates)

    def state(self) -> list[Any]:
        return [s.get_value() for s in self.updates]

    def set_state(self, values: Sequence[Any]) -> None:
        for s, value in zip(self.updates, values):
            s.set_value(value)


def answer(x: Any) -> Any:
    """What `Users` answers."""
    return x + 1


#: What the op may answer instead.
WRONG_ANSWERS: dict[str, Callable[[Any], Any]] = {
    "None instead of an array": lambda x: None,
    "an array of another rank": lambda x: x[None],
    "an array of another dtype": lambda x: x.astype("complex128"),
    "an array of another static length": lambda x: np.concatenate([x, x]),
    "text": lambda x: "text",
}


class Users(Op):
    """x + 1, in Python."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = pt.as_tensor(x)
        return Apply(self, [x], [x.type()])

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return [shapes[0]]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = answer(inputs[0])


_V = np.linspace(-1.0, 2.0, 300)
_M = np.linspace(-1.0, 1.0, 48).reshape(6, 8)
_LARGE = np.linspace(-1.0, 1.0, 60_000).reshape(300, 200)
_I = np.array([3, 0, 5, 3])


def elementwise() -> Program:
    x, y = pt.dvectors("x", "y")
    return Program([x, y], [pt.exp(x) * 2 + y, x > y, pt.tanh(y)], [_V, _V[::-1]])


def scalars_by_name() -> Program:
    x, y = pt.dscalar("first"), pt.lscalar("second")
    other = "".join(["sec", "ond"])  # another object than the name that the function knows
    return Program([x, y], pt.exp(x) * y, [1.5], names={other: 3})


def rows() -> Program:
    m = pt.dmatrix("m")
    outputs = [pt.softmax(m, axis=1), (m * 2).sum(axis=1), m.T.mean(axis=0)]
    return Program([m], outputs, [_LARGE])


def product() -> Program:
    a, b = pt.dmatrices("a", "b")
    return Program([a, b], [pt.dot(a, b) * 2 + 1, pt.dot(a, b.sum(axis=1))], [_M, _M.T])


def factors() -> Program:
    a, b = pt.dmatrices("a", "b")
    positive = a + _M.shape[0] * pt.eye(_M.shape[0])
    outputs = [pt.linalg.cholesky(positive), pt.linalg.solve_triangular(positive, b), pt.sort(b)]
    return Program([a, b], outputs, [_M @ _M.T, _M])


def not_positive() -> Program:
    x = pt.dtensor3("x")
    value = np.stack([np.eye(30), -np.eye(30)])
    out = pt.linalg.cholesky(x, on_error="raise")
    return Program([x], out, [value], error=np.linalg.LinAlgError)


def positions() -> Program:
    m, i = pt.dmatrix("m"), pt.lvector("i")
    outputs = [m[i], pt.inc_subtensor(m[i], 2.0), m[:, ::2].sum(), m[m[:, 0] > 0]]
    return Program([m, i], outputs, [_M, _I])


def order() -> Program:
    x = pt.dvector("x")
    return Program([x], [pt.sort(x), pt.argsort(-x), pt.cumsum(x)], [np.cos(np.arange(50.0))])


def updates() -> Program:
    x = pt.dvector("x")
    s, t = phintys.shared(np.zeros(300), "s"), phintys.shared(np.ones((6, 8)), "t")
    new = {s: s + pt.exp(x), t: t * 2 - s.sum()}
    return Program([x], [s.sum() + x, t], [_V], new)


def users_op() -> Program:
    x = pt.tensor("x", dtype="float64", shape=(300,))
    s = phintys.shared(np.zeros(300), "s")
    first = Users()(pt.exp(x))
    outputs = [Users()(first * 2) + s, pt.sqrt(first)]
    return Program([x], outputs, [_V], {s: s + first})


def layouts() -> Program:
    a, b, c = pt.dmatrices("a", "b", "c")
    spread = np.repeat(_M, 2, axis=1)[:, ::2]
    return Program([a, b, c], a + b * c, [np.asfortranarray(_M), spread, _M.astype(">f8")])


def conversions() -> Program:
    m = pt.dmatrix("m")
    return Program([m], m * 3, [_M.astype("float32").tolist()])


def failing_check() -> Program:
    x, y = pt.dvectors("x", "y")
    s = phintys.shared(np.zeros(300), "s")
    new = {s: s + x}
    return Program([x, y], pt.exp(x) + y, [_V, _V[1:]], new, error=ValueError)


def draws() -> Program:
    x = pt.dvector("x")
    rng, s = phintys.shared(np.random.default_rng(3), "rng"), phintys.shared(np.zeros(300), "s")
    first, y = rng.normal(x, pt.exp(s))
    second, z = first.normal(0.0, 2.0, size=(40, 300))
    return Program([x], [z.sum(axis=0) + y, first], [_V], {rng: second, s: s + y})


def failing_draw() -> Program:
    x = pt.dvector("x")
    rng = phintys.shared(np.random.default_rng(3), "rng")
    after, y = rng.normal(0.0, x)
    return Program([x], y, [_V], {rng: after}, error=ValueError)


def threads() -> Program:
    m = pt.dmatrix("m")
    return Program([m], pt.softmax(pt.tanh(m), axis=1), [_LARGE], settings={"threads": 3})


PROGRAMS = {
    f.__name__: f
    for f in (
        elementwise,
        scalars_by_name,
        rows,
        product,
        factors,
        not_positive,
        positions,
        order,
        updates,
        users_op,
        layouts,
        conversions,
        failing_check,
        draws,
        failing_draw,
        threads,
    )
}
