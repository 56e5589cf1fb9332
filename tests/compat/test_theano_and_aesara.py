"""Names and behaviour of Theano and Aesara that PyTensor does not have."""

from __future__ import annotations

import io

import numpy as np
import pytest
from older_names import installed

import phintys
import phintys.tensor as pt
from phintys.compat import older
from phintys.compat.tables import TABLES

x, v = pt.dmatrix("x"), pt.dvector("v")


@pytest.mark.parametrize("system", TABLES)
def test_every_name_of_a_table_is_there(system):
    """As an attribute, however the module was loaded, and by import."""
    installed(
        f"""
        import importlib, sys
        from phintys.compat.tables import TABLES
        for path, sources in TABLES[{system!r}].items():
            if path.startswith("gof."):
                importlib.import_module("phintys." + path)
            module = importlib.import_module(f"{system}.{{path}}".rstrip("."))
            for names in sources.values():
                for name in names.split():
                    assert getattr(module, name.partition("=")[0]) is not None, (path, name)
            assert not hasattr(module, "no_such_name")
        """,
        system,
    )


def test_names_of_one_system_are_not_those_of_another():
    installed("""
        import pytensor.tensor
        assert not hasattr(pytensor, "clone") and not hasattr(pytensor.tensor, "addbroadcast")
    """)


def test_programs_of_the_tutorial_of_theano():
    installed(
        """
        import warnings
        import numpy as np, theano, theano.tensor as T
        from theano import gof
        from theano.ifelse import ifelse
        from theano.tensor.shared_randomstreams import RandomStreams

        # logistic regression
        rng = np.random.default_rng(1)
        data, labels = rng.normal(size=(20, 5)), rng.integers(2, size=20)
        x, y = T.dmatrix("x"), T.lvector("y")
        w, b = theano.shared(np.zeros(5), name="w"), theano.shared(0.0, name="b")
        p = 1 / (1 + T.exp(-T.dot(x, w) - b))
        cost = (-y * T.log(p) - (1 - y) * T.log(1 - p)).mean() + 0.01 * (w**2).sum()
        gw, gb = T.grad(cost, [w, b])
        train = theano.function([x, y], cost, updates=((w, w - 0.1 * gw), (b, b - 0.1 * gb)))
        costs = [float(train(data, labels)) for _ in range(20)]
        assert costs[-1] < costs[0]

        # a loop
        k, A = T.iscalar("k"), T.dvector("A")
        results, updates = theano.scan(
            fn=lambda prior, a: prior * a, outputs_info=T.ones_like(A), non_sequences=A, n_steps=k
        )
        power = theano.function([A, k], results[-1], updates=updates)
        assert power([1.0, 2.0], 3).tolist() == [1.0, 8.0]

        # an op with its derivatives
        class Double(theano.Op):
            __props__ = ()

            def make_node(self, x):
                x = T.as_tensor_variable(x)
                return theano.Apply(self, [x], [x.type()])

            def perform(self, node, inputs, output_storage):
                output_storage[0][0] = inputs[0] * 2

            def infer_shape(self, node, i0_shapes):
                return i0_shapes

            def grad(self, inputs, output_grads):
                return [output_grads[0] * 2]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            T.verify_grad(Double(), [np.ones((2, 2))], rng=np.random.RandomState(1))

        # an optimization
        @gof.local_optimizer([T.exp])
        def to_log(node):
            return [T.log(node.inputs[0])]

        graph = gof.FunctionGraph([A], [T.exp(A)])
        gof.TopoOptimizer(to_log, order="in_to_out").rewrite(graph)
        assert graph.toposort()[0].op == T.log
        assert theano.compile.optdb.query(gof.Query(include=["fast_run"])) is not None

        # dicts of outputs, default inputs, shapes by patterns, random numbers
        both = theano.function([theano.Param(A, default=np.ones(2))], {"a": A * 2, "b": A})
        assert both()["a"].tolist() == [2.0, 2.0]
        assert T.TensorType("float64", (False, True))().broadcastable == (False, True)
        stream = RandomStreams(seed=1)
        draw = theano.function([], stream.uniform((2,), low=1, high=2, dtype="float32"))
        assert draw().dtype == "float32" and (draw() >= 1).all()
        assert ifelse(T.lt(A[0], 1), A, A * 2).eval({A: [2.0]}) == [4.0]
        assert theano.clone(A * 2, replace={A: A + 1}).eval({A: [1.0]}) == [4.0]
        assert theano._asarray([1.0], dtype="float32").dtype == "float32"
        """,
        "theano",
    )


def test_programs_for_aesara():
    installed(
        """
        import aesara, aesara.tensor as at, numpy as np
        from aesara.graph.basic import ancestors, Apply
        from aesara.graph.op import Op, get_test_value
        from aesara.misc.pkl_utils import dump, load
        from aesara.updates import OrderedUpdates

        x = at.vector("x")
        x.tag.test_value = np.ones(3)
        assert get_test_value(x.sum()) == 3
        assert x in set(ancestors([x + 1]))
        f = aesara.function([x], {"double": x * 2})
        assert f([1.0])["double"] == [2.0]
        assert at.convolve([1.0, 2.0], [1.0, 1.0]).eval().tolist() == [1.0, 3.0, 2.0]
        s = aesara.shared(1.0)
        aesara.function([], [], updates=OrderedUpdates([(s, s + 1)]))()
        assert s.get_value() == 2.0
        assert at.nnet.sigmoid(x).eval({x: [0.0]}) == [0.5]
        """,
        "aesara",
    )


def test_copies_of_graphs():
    (one, other) = older.clone([v * 2, v + 1], {v: x[0]}, strict=False)
    given = {x: [[1.0, 2.0]]}
    np.testing.assert_array_equal(one.eval(given), [2, 4])
    np.testing.assert_array_equal(other.eval(given), [2, 3])


def test_ancestors_of_a_node():
    y = pt.exp(v)
    z = y + 1
    assert older.is_in_ancestors(z.owner, y.owner) and older.is_in_ancestors(z.owner, z.owner)
    assert not older.is_in_ancestors(y.owner, z.owner)


def test_test_values():
    u = pt.dvector("u")
    with pytest.raises(AttributeError, match="u has no test value"):
        older.get_test_value(u + 1)
    u.tag.test_value = [1.0, 2.0]
    np.testing.assert_array_equal(older.get_test_value(u * phintys.shared(2.0)), [2, 4])
    assert older.get_test_value(pt.constant(3)) == 3 == older.get_test_value(3)
    assert older.get_test_value(phintys.shared(3.0)) == 3


def test_updates():
    s = phintys.shared(1.0)
    updates = older.OrderedUpdates({s: s + 1})
    assert updates + {s: updates[s]} == updates == {} + updates
    with pytest.raises(KeyError, match="two updates"):
        updates.update({s: s + 2})
    with pytest.raises(TypeError, match="keys of updates are shared variables"):
        updates[v] = v


def test_patterns_of_axes():
    assert older.addbroadcast(x, 1).type.shape == (None, 1)
    with pytest.raises(ValueError, match=r"(?i)length|shape"):
        older.addbroadcast(x, 0).eval({x: np.ones((2, 2))})
    for given in (x, pt.drow(), pt.dcol()):
        for pattern in ((True, False), (False, False), (False, True)):
            found = older.patternbroadcast(given, pattern)
            assert found.type.broadcastable == pattern
    assert older.makeKeepDims(x, x.sum(axis=0), 0).type.ndim == 2
    assert older.makeKeepDims(x, x.sum(), None).type.shape == (1, 1)


def test_archives_pools_and_systems():
    file = io.BytesIO()
    older.dump({"a": [1, 2]}, file)
    file.seek(0)
    assert older.load(file) == {"a": [1, 2]}
    image = pt.dtensor4("image")
    pooled = older.max_pool_2d(image, (2, 2), ignore_border=True)
    assert pooled.eval({image: np.arange(16.0).reshape(1, 1, 4, 4)}).ravel().tolist() == [
        *(5, 7),
        *(13, 15),
    ]
    a = np.array([[2.0, 0.0], [1.0, 4.0]])
    np.testing.assert_allclose(a @ older.solve_lower_triangular(a, [2.0, 5.0]).eval(), [2, 5])
    np.testing.assert_allclose(a.T @ older.solve_upper_triangular(a.T, [3.0, 4.0]).eval(), [3, 4])


def test_streams_of_random_numbers():
    """The parameters are Theano's; a seed gives the same numbers again."""
    stream = older.RandomStreams(seed=3)
    draws = [
        stream.uniform((2, 2), low=-1.0, dtype="float32"),
        stream.normal((3,), avg=5.0, std=0.1),
        stream.binomial((4,), n=3, p=0.5),
        stream.poisson((2,), lam=2.0),
        stream.random_integers((50,), low=1, high=2),
        stream.multinomial(pvals=[[0.0, 1.0], [1.0, 0.0]]),
        stream.permutation(n=4),
        stream.choice((2,), a=3),
        stream.shuffle_row_elements(pt.constant(np.arange(6.0).reshape(2, 3))),
        stream.gen(pt.random.gamma, 1.0, 1.0),
    ]
    f = phintys.function([], draws)
    first = f()
    assert first[0].dtype == "float32" and first[2].dtype == "int64"
    assert set(first[4]) == {1, 2} and first[5].tolist() == [[0, 1], [1, 0]]
    assert sorted(first[6]) == [0, 1, 2, 3] and np.diff(first[8], axis=0).tolist() == [[3.0] * 3]
    assert (f()[1] != first[1]).any() and len(stream.updates()) == len(draws)
    assert stream.updates() == stream.state_updates
    stream.seed(3)
    for again, value in zip(f(), first):
        np.testing.assert_array_equal(again, value)
