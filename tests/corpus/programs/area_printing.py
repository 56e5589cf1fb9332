"""Text of graphs."""

from __future__ import annotations

import io

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.printing import Print, debugprint, min_informative_str, pp, pprint


def text_of(*things, **options):
    return debugprint(*things, file="str", **options)


def trees():
    x, y = pt.dvector("x"), pt.dmatrix("y")
    for z in (
        x + x,
        pt.exp(x) * x,
        y.sum(axis=0),
        x[1:],
        y.T,
        pt.dot(y, x),
        pt.switch(x > x, x, x),
    ):
        yield text_of(z)


def options_of_trees():
    x = pt.dvector("x")
    y = pt.exp(x + x)
    yield text_of(y, depth=1)
    yield text_of(y, print_type=True)
    yield text_of(y, print_shape=True)
    yield text_of(y, id_type="int")
    yield text_of(y, id_type="")
    yield text_of(y, stop_on_name=True)
    yield text_of([x, y])
    yield lambda: text_of(3)
    yield lambda: debugprint(y, id_type="no such choice", file="str")
    file = io.StringIO()
    debugprint(y, file=file)
    yield file.getvalue() == text_of(y)


def trees_of_shared_nodes():
    x = pt.dvector("x")
    y = pt.exp(x)
    yield text_of(y + y)
    yield text_of(y * x + y)
    z = y + x
    z.name = "named"
    yield text_of(z * x)


def trees_of_functions():
    x = pt.dvector("x")
    f = pytensor.function([x], x + x, mode=pytensor.compile.mode.Mode("py", None))
    yield text_of(f)
    s = pytensor.shared(1.0, name="s")
    g = pytensor.function(
        [x], x * s, updates=[(s, s * 2)], mode=pytensor.compile.mode.Mode("py", None)
    )
    yield text_of(g)
    yield text_of(pytensor.graph.fg.FunctionGraph([x], [pt.exp(x)]))


def trees_of_loops():
    x = pt.dvector("x")
    y = pytensor.scan(lambda a: a * 2, sequences=x, return_updates=False)
    lines = text_of(y).splitlines()
    yield [lines[0], "Inner graphs:" in lines, any("Scan" in line for line in lines)]


def trees_of_inner_graphs():
    x = pt.dvector("x")
    op = pytensor.compile.builders.OpFromGraph([x], [pt.exp(x) + x])
    yield text_of(op(x))


def formulas():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    M, v = pt.dmatrix("M"), pt.dvector("v")
    for z in (
        x + y,
        x * y + 1,
        x - (y - 1),
        -(x + y),
        x / y,
        x**2,
        (x + 1) ** y,
        pt.exp(x),
        pt.log(x * 2),
        pt.dot(M, v),
        M.sum(),
        M.sum(axis=0),
        v[1:],
        v[0],
        M.T,
        x > y,
        pt.sqrt(x),
        pt.switch(x > 0, x, y),
    ):
        yield pp(z)
    yield pprint(x + 1)


def texts_of_constants():
    for value in (1, 1.5, [1, 2], np.arange(20), np.eye(3), np.nan, 1e-10, "a"):
        yield lambda value=value: str(pt.constant(value))


def texts_of_ops():
    x, M, t = pt.dvector("x"), pt.dmatrix("M"), pt.dtensor3("t")
    variables = (
        x + 1,
        x[0],
        x[1:],
        M.T,
        M.sum(axis=1),
        pt.dot(M, x),
        pt.concatenate([x, x]),
        M.reshape((4,)),
        pt.alloc(0.0, 3),
        pt.arange(3),
        x.astype("float32"),
        pt.set_subtensor(x[0], 1),
        pt.sort(x),
        pt.cumsum(x),
        pt.linalg.inv(M),
        pt.linalg.cholesky(M),
        pt.linalg.det(t),
        x.max(),
        x.argmax(),
        pt.specify_shape(x, (3,)),
        M.dimshuffle(1, "x", 0),
        pt.eye(pt.lscalar("n")),
        pt.special.softmax(x, axis=0),
        pt.split(x, [1, 2], n_splits=2)[0],
        pt.nonzero(x)[0],
        pt.unique(x),
        pt.shape(M),
        pt.sigmoid(x),
    )
    for y in variables:
        yield lambda y=y: str(y.owner.op)


def texts_of_variables():
    x = pt.dvector("x")
    yield [
        str(x),
        repr(x),
        str(pt.dvector()),
        str(x + x),
        str((x + x).owner),
        str(x.type),
        repr(x.type),
    ]
    s = pytensor.shared(np.zeros(2), name="s")
    yield [str(s), str(pytensor.shared(1.0)), str(pt.split(x, [1, 2], n_splits=2)[1])]
    yield min_informative_str(pt.exp(x) + x)


def printing_at_run_time():
    x = pt.dvector("x")
    y = Print("message", attrs=("shape",))(x)
    yield y
    yield str(y.owner.op)
    yield y.eval({x: [1.0]})
    yield pytensor.grad(y.sum(), x).eval({x: [1.0]})


def numbers_beside_tensors():
    x = pt.dvector("x")
    yield text_of(x + 1)
    yield [str(node.op) for node in pytensor.graph.traversal.toposort([pt.exp(x * 2)])]
    yield str((x - 1).owner)
