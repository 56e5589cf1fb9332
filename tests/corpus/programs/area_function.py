"""Compiling and calling functions; shared values; modes; settings."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
from helpers import REWRITTEN, warned
from pytensor import In, Out, function, shared
from pytensor.compile.mode import Mode, get_default_mode, get_mode
from pytensor.link.basic import PerformLinker


def forms_of_outputs():
    x = pt.dscalar("x")
    yield [function([x], x + 1)(1.0), function([x], [x + 1])(1.0), function([x], [x, x + 1])(1.0)]
    yield [function([], [])(), function([], None)()]
    yield lambda: function([x], "text")
    yield lambda: function([x], {"a": x})
    yield lambda: function([x], [x, None])
    yield function([x], (x, x))(1.0)


def inputs_that_are_wrong():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    yield lambda: function(x, x)
    yield lambda: function([x, x], x)
    yield lambda: function([x, y], x)
    yield lambda: function([x], x + y)
    yield lambda: function([1.0], x)
    yield lambda: function(["x"], x)
    yield lambda: function([x], x, mode="no such mode")
    yield lambda: function([x], x, no_such_argument=1)
    yield lambda: function([pt.constant(1.0)], x)
    yield lambda: function([shared(1.0)], x)
    yield lambda: function([x + 1], (x + 1) * 2)(1.0)


def unused_inputs():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    yield function([x, y], x, on_unused_input="ignore")(1.0, 2.0)
    yield warned(lambda: function([x, y], x, on_unused_input="warn"))
    yield lambda: function([x, y], x, on_unused_input="no such choice")


def calls_that_are_wrong():
    x, y = pt.dvector("x"), pt.dscalar("y")
    f = function([x, y], x + y)
    yield lambda: f([1.0])
    yield lambda: f([1.0], 2.0, 3.0)
    yield lambda: f([[1.0]], 2.0)
    yield lambda: f([1.0], [2.0])
    yield lambda: f("text", 1.0)
    yield lambda: f(None, 1.0)
    yield lambda: f([1j], 1.0)
    yield lambda: f([1.0], z=1.0)
    yield lambda: f([1.0], 2.0, y=3.0)
    yield lambda: f([1.0], y=3.0)
    yield lambda: f(x=[1.0], y=3)
    yield lambda: f(x, 1.0)


def values_that_are_converted():
    for dtype in ("float32", "float64", "int8", "int64", "uint8", "bool", "complex64"):
        x = pt.vector("x", dtype=dtype)
        f = function([x], x)
        values = (
            [1, 2],
            [0.5],
            [0.1],
            np.array([1, 2]),
            np.array([1.0]),
            np.array([1.0], "float32"),
            [True],
            [],
        )
        yield [dtype, *((lambda f=f, v=v: f(v)) for v in values)]


def scalars_that_are_converted():
    for dtype in ("float32", "float64", "int8", "int64", "uint8", "bool"):
        x = pt.scalar("x", dtype=dtype)
        f = function([x], x)
        values = (
            1,
            0.5,
            0.1,
            -1,
            300,
            np.float64(1),
            np.int64(1),
            True,
            np.array(1),
            np.array([1]),
            [1],
        )
        yield [dtype, *((lambda f=f, v=v: f(v)) for v in values)]


def downcasts():
    x = pt.fvector("x")
    yield lambda: function([x], x)(np.array([0.1]))
    yield function([x], x, allow_input_downcast=True)(np.array([0.1]))
    yield lambda: function([In(x, strict=True)], x)([1.0])
    yield lambda: function([In(x, strict=True)], x)(np.array([1.0], "float32"))
    yield lambda: function([x], x, allow_input_downcast=False)(np.array([0.1]))
    yield lambda: function(
        [pt.fscalar("s")], x, on_unused_input="ignore", allow_input_downcast=False
    )(0.1)


def keyword_arguments():
    x, y = pt.dscalar("x"), pt.dscalar("x")
    f = function([x, y], x - y)
    yield f(3.0, 1.0)
    yield lambda: f(3.0, x=1.0)
    yield lambda: f(x=3.0)
    a = pt.dscalar("a")
    g = function([In(a, name="b")], a * 2)
    yield lambda: g(b=1.0)
    yield lambda: g(a=1.0)


def updates():
    s, x = shared(1.0, name="s"), pt.dscalar("x")
    f = function([x], s * 10, updates=[(s, s + x)])
    yield [f(1.0), f(1.0), s.get_value()]
    a, b = shared(1.0), shared(2.0)
    function([], updates=[(a, b), (b, a)])()
    yield [a.get_value(), b.get_value()]
    g = function([], a, updates={a: a * 2})
    yield [g(), g()]


def updates_that_are_wrong():
    s, x = shared(np.zeros(2), name="s"), pt.dscalar("x")
    yield lambda: function([x], x, updates=[(s, x)])
    yield lambda: function([x], x, updates=[(x, x + 1)])
    yield lambda: function([x], x, updates=[(s, s + 1), (s, s + 2)])
    yield lambda: function([x], x, updates=[(s, pt.zmatrix("z"))])
    yield lambda: function([x], x, updates=[s])
    yield lambda: function([x], x, updates={s: s + 1, "a": 1})
    yield lambda: function([x], x, updates=[(s, pt.cast(s, "float32"))])()
    yield lambda: function([x], x, updates=[(s, s + 1j)])
    i = shared(1)
    yield lambda: function([], [], updates=[(i, i + 0.5)])
    yield lambda: function([], [], updates=[(i, 2)])()


def givens():
    x, y = pt.dvector("x"), pt.dvector("y")
    yield function([y], x.sum(), givens={x: y * 2})([1.0, 2.0])
    yield function([], x.sum(), givens=[(x, np.array([1.0, 2.0]))])()
    yield function([], x.sum(), givens={x: shared(np.array([1.0, 2.0]))})()
    yield lambda: function([x], x.sum(), givens={x: y})
    yield lambda: function([y], x.sum(), givens={x: pt.dmatrix("m")})
    yield lambda: function([], x.sum(), givens={x: pt.as_tensor([1, 2])})()
    yield lambda: function([], x.sum(), givens={x: np.array([1.0, 2.0], "float32")})()
    yield lambda: function([y], x.sum(), givens={"x": y})
    h = x + 1
    yield function([y], (h * 2).sum(), givens={h: y})([1.0])


def shared_values():
    yield [
        shared(1.0),
        shared(1),
        shared(np.float32(1)),
        shared(np.zeros((2, 1))),
        shared(True),
        shared([1, 2]),
    ]
    yield [
        type(shared(1.0)).__name__,
        type(shared([1])).__name__,
        type(shared(np.random.default_rng(1))).__name__,
    ]
    yield lambda: shared(pt.dscalar("x"))
    yield lambda: shared(None)
    yield lambda: shared("text")
    yield lambda: shared(np.array(["a"]))
    yield shared(np.zeros(2), name="w").name
    yield str(shared(np.zeros(2), name="w"))
    yield lambda: shared(np.zeros(2), no_such_argument=1)
    yield lambda: shared(1.0, strict=True)


def values_of_shared_variables():
    value = np.zeros(3)
    s = shared(value)
    value[0] = 5
    yield s.get_value()
    b = shared(value, borrow=True)
    value[1] = 7
    yield b.get_value()
    s.get_value()[0] = 9
    yield s.get_value()
    s.get_value(borrow=True)[0] = 9
    yield s.get_value()
    s.set_value(np.ones(5))
    yield s.get_value()
    yield lambda: s.set_value(np.ones((2, 2)))
    yield lambda: s.set_value([1.0, 2.0])
    yield lambda: s.set_value("text")
    yield lambda: s.set_value(np.ones(2, "complex128"))
    s.set_value(np.ones(2, "float32"))
    yield s.get_value()
    yield lambda: shared(np.zeros(2, "float32")).set_value(np.array([0.1, 0.2]))
    yield lambda: shared(1.0).set_value([1.0])


def results_are_copies():
    x = pt.dvector("x")
    value = np.array([1.0, 2.0])
    f = function([x], [x, x[1:], x.reshape((2, 1))])
    results = f(value)
    yield [np.shares_memory(r, value) for r in results]
    s = shared(value)
    yield np.shares_memory(function([], s)(), s.get_value(borrow=True))


def defaults_and_mutable_inputs():
    x = pt.dvector("x")
    yield lambda: In(pt.dscalar("s"), value=3.0)
    yield lambda: In(x, mutable=True, borrow=False)
    f = function([In(x, mutable=True)], x + 1)
    yield f(np.array([1.0, 2.0]))
    yield function([x], Out(x + 1, borrow=True))([1.0])
    yield [
        In(x).variable is x,
        In(x).name,
        In(x, name="y").name,
        In(x).mutable,
        In(x).borrow,
        In(x).strict,
    ]
    yield lambda: In("x")


def copies_of_functions():
    s, t, x = shared(1.0, name="s"), shared(5.0, name="t"), pt.dscalar("x")
    f = function([x], s + x, updates=[(s, s + 1)])
    g = f.copy()
    yield [f(0.0), g(0.0), f(0.0)]
    h = f.copy(swap={s: t})
    yield [h(0.0), t.get_value(), s.get_value()]
    k = f.copy(delete_updates=True)
    yield [k(0.0), k(0.0)]
    yield lambda: f.copy(swap={x: t})
    yield copy.copy(f)(1.0)
    d = copy.deepcopy(f)
    yield [d(0.0), d(0.0), s.get_value()]


def pickles():
    s, x = shared(1.0, name="s"), pt.dscalar("x")
    f = function([x], s * x, updates=[(s, s + 1)])
    g = pickle.loads(pickle.dumps(f))
    yield [g(2.0), g(2.0), s.get_value()]
    y = pickle.loads(pickle.dumps(x * 2 + s))
    yield [y, str(y.owner.op)]
    t = pickle.loads(pickle.dumps(pt.dmatrix))
    yield t == pt.dmatrix


def attributes_of_functions():
    s, x = shared(1.0, name="s"), pt.dscalar("x")
    f = function([x], s * x, name="named", updates=[(s, s + 1)])
    yield [
        f.name,
        len(f.maker.inputs),
        len(f.maker.outputs),
        len(f.maker.fgraph.inputs),
        len(f.input_storage),
    ]
    yield [v.name for v in f.get_shared()]
    yield [f.trust_input, type(f.maker).__name__]
    yield [type(f.maker.mode).__name__, f.maker.fgraph.outputs[0].type.dtype]
    f.trust_input = True
    yield f(np.array(3.0))


def modes():
    yield [type(get_mode("FAST_COMPILE")).__name__, type(get_default_mode()).__name__]
    yield lambda: get_mode("no such mode")
    yield lambda: Mode("no such linker")
    x = pt.dvector("x")
    for mode in (
        "FAST_COMPILE",
        Mode("py", None),
        Mode("py", "fast_run"),
        Mode(PerformLinker(), "fast_compile"),
    ):
        yield function([x], pt.log(pt.exp(x)), mode=mode)([1.0])
    yield len(function([x], x * 1 + 0, mode=REWRITTEN).maker.fgraph.apply_nodes)


def settings():
    config = pytensor.config
    with config.change_flags(floatX="float32"):
        yield [
            pt.vector("x"),
            pt.zeros(2),
            pt.as_tensor(0.1),
            pt.lvector("i") / 2,
            shared(1.0),
            pt.matrix("m").dtype,
        ]
    yield lambda: setattr(config, "floatX", "no such dtype")
    yield lambda: config.no_such_setting
    yield lambda: config.change_flags(no_such_setting=1).__enter__()
    yield [config.floatX, config.cast_policy, config.on_unused_input, config.optimizer_including]
    with config.change_flags(cast_policy="numpy+floatX"):
        yield [pt.as_tensor(0.1), pt.as_tensor(1), pt.as_tensor([1, 2])]


def evaluation_without_function():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    z = x + y
    yield [z.eval({x: 1.0, y: 2.0}), z.eval({"x": 1.0, "y": 2.0}), (x * 0 + 2).eval({x: 1.0})]
    yield lambda: z.eval({x: 1.0})
    yield lambda: z.eval({x: 1.0, y: 1.0, pt.dscalar("w"): 1.0})
    yield lambda: z.eval({"no such name": 1.0})
    yield lambda: z.eval([1.0, 2.0])
    yield pt.constant(3.0).eval()
    yield shared(2.0).eval()


def arguments_that_share_memory():
    x, y = pt.dvector("x"), pt.dvector("y")
    f = function([In(x, mutable=True), In(y, mutable=True)], [x + 1, y + 2])
    a = np.array([1.0, 2.0, 3.0])
    yield f(a, a)
    yield f(a[:2], a[1:])


def errors_of_calls():
    x, M = pt.dvector("x"), pt.dmatrix("M")
    f = function([x, M], M @ x, mode=Mode("py", "fast_compile"))
    yield lambda: f([1.0], np.ones((2, 2)))
    g = function([x], pt.log(x).reshape((2, 2)))
    yield lambda: g([1.0])
    yield lambda: function([x], pytensor.raise_op.Assert("positive")(x, pt.all(x > 0)))([-1.0])


def assertions():
    from pytensor.raise_op import Assert, CheckAndRaise, assert_op

    x = pt.dvector("x")
    y = assert_op(x, x.sum() > 0)
    yield y
    yield lambda: y.eval({x: [-1.0]})
    yield y.eval({x: [1.0]})
    z = CheckAndRaise(KeyError, "no such key")(x, pt.eq(x.shape[0], 2))
    yield lambda: z.eval({x: [1.0]})
    yield lambda: CheckAndRaise("text")
    yield lambda: Assert("two")(x, x > 0).eval({x: [1.0, -1.0]})
    yield [str(Assert("a")), Assert("a") == Assert("a"), Assert("a") == Assert("b")]
    yield lambda: Assert()(x)
    yield lambda: Assert("constant")(x, False)


def profiles():
    x = pt.dvector("x")
    f = function([x], pt.exp(x) + 1, profile=True)
    f([1.0])
    f([2.0])
    yield [f.profile.fct_callcount, f.profile.fct_call_time > 0, type(f.profile).__name__]
