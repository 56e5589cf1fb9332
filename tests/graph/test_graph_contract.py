"""The contract of types, variables and ops (areas G1 to G51 of the feature table)."""

from __future__ import annotations

import abc
import copy
import pickle
from pathlib import Path

import pytest
from toy_graphs import Interval, Mix, Narrow, cell, f, g, halve, same

from phintys.errors import MethodNotDefined
from phintys.graph.clone import clone, clone_get_equiv, clone_node_and_cache
from phintys.graph.equality import equal_computations, is_same_graph
from phintys.graph.meta import Abstract
from phintys.graph.op import HasInnerGraph, Op
from phintys.graph.origin import inherit, locate
from phintys.graph.type import (
    DisconnectedType,
    NullType,
    Type,
    disconnected_type,
    generic,
    null_type,
    register_transfer,
    transfer,
)
from phintys.graph.variable import Apply, AtomicVariable, Constant, NominalVariable, Variable


class DoubleType(Type):
    """Python floats: the example of the documentation of types."""

    def filter(self, data, strict=False, allow_downcast=None):
        if strict and not isinstance(data, float):
            raise TypeError(f"Expected a float, not {data!r}.")
        if not isinstance(data, float | int):
            raise TypeError(f"Expected a number, not {data!r}.")
        if allow_downcast or float(data) == data or data != data:
            return float(data)
        raise TypeError(f"The double closest to {data!r} differs from it.")

    def values_eq_approx(self, a, b, tolerance=1e-4):
        return abs(a - b) / (abs(a) + abs(b)) < tolerance

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def __str__(self):
        return "double"


double = DoubleType()


# ---------------------------------------------------------------- types
def test_filter_modes():
    value = 1.5
    assert double.filter(value, strict=True) is value
    with pytest.raises(TypeError):
        double.filter(1, strict=True)
    assert double.filter(1) == 1.0 and type(double.filter(1)) is float
    with pytest.raises(TypeError):
        double.filter(2**60 + 1)
    assert double.filter(2**60 + 1, allow_downcast=True) == float(2**60)
    with pytest.raises(TypeError):
        double.filter("1")


def test_is_valid_value_is_strict_by_default():
    assert double.is_valid_value(1.0)
    assert not double.is_valid_value(1)
    assert double.is_valid_value(1, strict=False)
    assert not double.is_valid_value("x", strict=False)


def test_is_valid_value_lets_unexpected_errors_through():
    class Broken(Type):
        def filter(self, data, strict=False, allow_downcast=None):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Broken().is_valid_value(1)


def test_types_compare_by_class_and_properties():
    assert double == DoubleType() and hash(double) == hash(DoubleType())
    assert Interval(0, 5) == Interval(0, 5) != Interval(0, 6)
    assert hash(Interval(0, 5)) == hash(Interval(0, 5))

    class Naive(Type):
        def filter(self, data, strict=False, allow_downcast=None):
            return data

    assert Naive() != Naive()


def test_is_super_is_unknown_rather_than_false():
    assert double.in_same_class(DoubleType()) is True
    assert double.in_same_class(cell) is None
    assert double.is_super(DoubleType()) is True
    assert double.is_super(cell) is None


def test_filter_variable_narrows_or_keeps():
    wide, narrow = cell("wide"), Interval(2, 3)("narrow")
    assert cell.filter_variable(narrow) is narrow
    node = Interval(1, 5).filter_variable(wide).owner
    assert isinstance(node.op, Narrow) and node.outputs[0].type == Interval(1, 5)
    overlap = Interval(1, 5).filter_variable(Interval(4, 9)())
    assert overlap.type == Interval(4, 5)
    constant = cell.filter_variable(7)
    assert isinstance(constant, Constant) and constant.data == [7]
    with pytest.raises(TypeError, match=r"x.*double.*Interval"):
        cell.filter_variable(double("x"))
    with pytest.raises(TypeError):
        Interval(1, 5).filter_variable(wide, allow_convert=False)
    assert Interval(0, 1).convert_variable(Interval(5, 9)()) is None


def test_variables_of_a_type():
    x = double("x")
    assert (x.name, x.type, x.owner, x.index) == ("x", double, None, None)
    assert Path(locate(x.origin).file).name == Path(__file__).name
    assert double.make_variable("y").name == "y"
    constant = cell.make_constant(3, name="three")
    assert type(constant) is Interval.constant_type
    assert (constant.data, constant.name) == ([3], "three")
    with pytest.raises(TypeError):
        double.make_constant("3")


def test_clone_of_a_type_keeps_what_is_not_given():
    assert Interval(1, 5).clone(high=7) == Interval(1, 7)


def test_comparison_of_values():
    assert DoubleType.values_eq(1.0, 1.0) and not DoubleType.values_eq(1.0, 1.1)
    assert double.values_eq_approx(1.0, 1.00001) and not double.values_eq_approx(1.0, 1.1)
    a = [1]
    assert Interval.may_share_memory(a, a) and not Interval.may_share_memory(a, [1])
    assert double.get_size(double.get_shape_info(1.0)) > 0
    assert double.filter_inplace(1, storage=2.0) == 1.0


def test_placeholder_types_have_no_values():
    for type_ in (null_type, disconnected_type, NullType("why")):
        assert not type_.is_valid_value(0)
        with pytest.raises(TypeError):
            type_.filter(0)
    with pytest.raises(TypeError, match="why"):
        NullType("why").filter(0)
    with pytest.raises(TypeError):
        null_type.filter_variable(cell())
    assert NullType("a") != NullType("b")
    assert DisconnectedType() == disconnected_type
    anything = object()
    assert generic.filter(anything, strict=True) is anything


def test_transfers_are_tried_in_order():
    x = cell("x")
    assert transfer(x, "cpu") is x
    with pytest.raises(ValueError, match="mars"):
        transfer(x, "mars")
    with pytest.raises(TypeError):
        register_transfer("not a function")
    register_transfer(lambda v, target: None)
    register_transfer(lambda v, target: f(v) if target == "first of two" else None)
    register_transfer(lambda v, target: g(v) if target == "first of two" else None)
    assert transfer(x, "first of two").owner.op == f
    with pytest.raises(ValueError, match="mars"):
        transfer(x, "mars")


# ---------------------------------------------------------------- variables
def test_variables_are_identities():
    x, y = cell("x"), cell("x")
    assert (x == x) is True and (x == y) is False and (x != y) is True
    assert len({x, y, x}) == 2
    node = f(x).owner
    assert node == node and node != f(x).owner


def test_names_are_labels():
    x = cell("x")
    assert x.auto_name == x.auto_name != cell("x").auto_name
    assert f(x, name="out").name == "out"
    assert [v.name for v in halve(x, name="out")] == ["out_0", "out_1"]
    assert str(f(x)) == "Mix{key=1}.0" and str(halve(x)[1]) == "Halve.1"
    assert str(cell()) == "<Interval{low=0, high=10007}>"


def test_clone_of_a_variable_is_a_new_input():
    x = f(cell())
    x.name = "x"
    x.tag.note = [1]
    copy_ = x.clone()
    assert (copy_.name, copy_.owner, copy_.type) == ("x", None, x.type)
    assert copy_.tag is not x.tag and copy_.tag.note is x.tag.note
    assert x.clone(name="y").name == "y"


def test_structure_is_visible_to_match():
    x = cell("x")
    assert x.owner_op is None and x.owner_op_and_inputs == (None,)
    y = f(x, 3)
    assert x.get_parents() == [] and y.get_parents() == [y.owner]
    assert y.owner.get_parents() == y.owner.inputs
    match y.owner_op_and_inputs:
        case (Mix(key=1), Variable(name="x"), Constant(_, [3])):
            pass
        case other:
            pytest.fail(str(other))


def test_constants():
    value = [3]
    a, b = cell.make_constant(value), cell.make_constant([3])
    assert a.data is value and a.value is value
    assert a != b and a.equals(b) and not a.equals(cell.make_constant(4))
    assert hash(a.signature()) == hash(b.signature())
    assert a.merge_signature() == a.signature()
    assert a.clone() is a
    assert isinstance(a, AtomicVariable) and a.owner is None
    value[0] = 4
    assert a.data == [4]
    assert str(a) == "[4]" and repr(a) == f"CellConstant({cell!r}, data=[4])"
    nan = double.make_constant(float("nan"))
    assert nan.equals(double.make_constant(float("nan")))
    unhashable = generic.make_constant([1])
    assert {unhashable.signature(): 1}[unhashable.signature()] == 1
    assert not unhashable.equals(generic.make_constant([1]))


def test_nominal_variables_are_interned():
    a = NominalVariable(0, cell)
    assert a is NominalVariable(0, Interval()) is a.clone()
    assert a is not NominalVariable(1, cell) and a is not NominalVariable(0, double)
    assert pickle.loads(pickle.dumps(a)) is a is copy.deepcopy(a)
    assert copy.deepcopy(f(a)).owner.inputs[0] is a
    assert pickle.loads(pickle.dumps(f(a))).owner.inputs[0] is a


# ---------------------------------------------------------------- nodes
def test_apply_takes_ownership():
    x, out = cell("x"), cell()
    node = Apply(f, [x], [out])
    assert (out.owner, out.index, node.nin, node.nout) == (node, 0, 1, 1)
    with pytest.raises(ValueError, match="another node"):
        Apply(g, [x], [out])
    with pytest.raises(TypeError, match="int"):
        Apply(f, [3], [cell()])
    assert node.out is out is node.default_output()
    with pytest.raises(ValueError, match="2 outputs"):
        halve(x)[0].owner.default_output()


def test_clone_with_new_inputs():
    made = []

    class Recording(Mix):
        def make_node(self, *inputs):
            made.append(inputs)
            return Mix.make_node(self, *inputs)

    x = cell("x")
    node = Recording(1)(x).owner
    node.tag.note = 1
    made.clear()
    other = node.clone_with_new_inputs([cell("y")])
    assert not made and other.inputs[0].name == "y" and other.tag.note == 1
    assert node.clone().inputs == node.inputs and node.clone() is not node
    node.clone_with_new_inputs([Interval(1, 2)()])
    assert made
    with pytest.raises(TypeError):
        node.clone_with_new_inputs([double()])
    with pytest.raises(ValueError, match="1 inputs, not 2"):
        node.clone_with_new_inputs([x, x])


def test_ops_whose_type_depends_on_values_are_made_again():
    class Bounded(Op):
        __props__ = ()
        _output_type_depends_on_input_value = True

        def make_node(self, x, bound):
            high = bound.data[0] if isinstance(bound, Constant) else cell.high
            return Apply(self, [x, bound], [Interval(0, high)()])

    x, bound = cell("x"), cell("bound")
    y = Bounded()(x, bound)
    (z,) = y.owner.clone_with_new_inputs([x, cell.make_constant(4)]).outputs
    assert z.type == Interval(0, 4) and y.type == cell


def test_clone_node_and_cache():
    x, y = cell("x"), cell("y")
    node = f(x).owner
    memo = {x: y}
    new = clone_node_and_cache(node, memo)
    assert new.inputs == [y] and memo[node] is new and memo[node.out] is new.out
    assert clone_node_and_cache(node, memo) is None


def test_clone_tells_inputs_from_orphans():
    x, orphan = cell("x"), cell("orphan")
    constant = cell.make_constant(1)
    out = f(x, orphan, constant)
    memo = clone_get_equiv([x], [out], copy_inputs=False, copy_orphans=True)
    assert memo[x] is x and memo[orphan] is not orphan and memo[constant] is constant
    memo = clone_get_equiv([x], [out], copy_inputs=True, copy_orphans=False)
    assert memo[x] is not x and memo[orphan] is orphan
    y = cell("y")
    memo = clone_get_equiv([x], [out], memo={x: y})
    assert memo[out].owner.inputs[0] is y
    inputs, _ = clone([x], [out])
    assert inputs[0].name == "x"


# ---------------------------------------------------------------- ops
def test_props_are_the_identity_of_an_op():
    assert Mix(1) == Mix(1) != Mix(2) and hash(Mix(1)) == hash(Mix(1))
    assert Mix(1)._props_dict() == {"key": 1} and str(Mix(1)) == "Mix{key=1}"

    class Child(Mix):
        pass

    assert Child(1) != Mix(1) and Child(1) == Child(1)
    assert Child(**Mix(5)._props_dict()) == Child(5)

    class Loud(Mix):
        __props__ = ("key",)

        def __str__(self):
            return "loud"

    class Quiet(Loud):
        __props__ = ("key",)

    assert str(Loud(1)) == "loud" and str(Quiet(1)) == "Quiet{key=1}"
    with pytest.raises(TypeError, match="__props__"):
        type("Bad", (Op,), {"__props__": ["key"]})
    with pytest.raises(TypeError, match="unhashable"):
        hash(Mix([1]))


def test_ops_can_be_registered_with_abstract_classes():
    class Measurable(abc.ABC):  # noqa: B024
        pass

    class MeasurableMix(Measurable, Mix):
        pass

    Measurable.register(Narrow)
    assert isinstance(MeasurableMix(1), Measurable) and isinstance(Narrow(cell), Measurable)
    assert not isinstance(f, Measurable)


def test_itypes_accept_subtypes():
    assert halve(Interval(1, 2)("n"))[0].owner.inputs[0].type == Interval(1, 2)
    assert isinstance(same(5).owner.inputs[0], Constant)
    with pytest.raises(TypeError):
        same(double())
    with pytest.raises(ValueError, match="1 inputs, not 2"):
        same(1, 2)
    with pytest.raises(TypeError, match="make_node"):
        Op()(1)


def test_calling_an_op():
    x = cell("x")
    assert isinstance(f(x), Variable)
    assert isinstance(halve(x), list) and isinstance(f(x, return_list=True), list)

    class Chosen(type(halve)):
        default_output = 1

    assert Chosen()(x).index == 1 and Chosen()(x).owner.out.index == 1


def test_optional_methods():
    x = cell("x")
    node = f(x).owner
    for call in (
        lambda: Op().perform(node, [], []),
        lambda: f.pullback([x], [node.out], [x]),
        lambda: f.pushforward([x], [node.out], [x]),
        lambda: f.vectorize_node(node, x),
    ):
        with pytest.raises(MethodNotDefined, match=r"Mix|Op"):
            call()
    assert f.connection_pattern(halve(x)[0].owner) == [[True, True]]
    assert f.do_constant_folding(None, node) is True
    assert f.inplace_on_inputs([0]) is f
    assert f.infer_shape is None


@pytest.mark.filterwarnings("ignore:.* should implement:FutureWarning")
@pytest.mark.parametrize("method", ["pullback", "L_op", "grad"])
def test_each_spelling_of_the_reverse_rule_serves_the_others(method):
    class Spelled(Mix):
        pass

    if method == "grad":
        Spelled.grad = lambda self, inputs, cotangents: [g(*cotangents)]
    else:
        setattr(Spelled, method, lambda self, inputs, outputs, cotangents: [g(*cotangents)])
    x = cell("x")
    op = Spelled(1)
    y = op(x)
    for result in (op.pullback([x], [y], [x]), op.L_op([x], [y], [x]), op.grad([x], [x])):
        assert equal_computations(result, [g(x)])


@pytest.mark.filterwarnings("ignore:.* should implement:FutureWarning")
def test_forward_rules_translate_absent_tangents():
    seen = []

    class Old(Mix):
        def R_op(self, inputs, eval_points):
            seen.append(list(eval_points))
            return [None]

    class New(Mix):
        def pushforward(self, inputs, outputs, tangents):
            seen.append([t.type for t in tangents])
            return [disconnected_type()]

    x = cell("x")
    (tangent,) = Old(1).pushforward([x, x], [f(x)], [disconnected_type(), x])
    assert seen.pop() == [None, x] and tangent.type == disconnected_type
    assert New(1).R_op([x, x], [None, x]) == [None]
    assert seen.pop() == [disconnected_type, cell]


def test_thunks():
    x = cell("x")
    first, second = halve(x)
    storage = {x: [[7]], first: [None], second: [None]}
    computed = {x: [True], first: [False], second: [False]}
    halve.make_thunk(first.owner, storage, computed, [])()
    assert storage[first] == [[3]] and storage[second] == [[1]]
    assert computed[first] == [True] and computed[second] == [True]


def test_inner_graphs():
    class Inner(HasInnerGraph, Mix):
        def __init__(self, fgraph):
            self.fgraph = fgraph

    from phintys.graph.fgraph import FunctionGraph

    x = cell("x")
    fgraph = FunctionGraph([x], [f(x)], clone=False)
    op = Inner(fgraph)
    assert op.inner_inputs == [x] and op.inner_outputs == fgraph.outputs
    assert list(op.inner_graphs.values()) == [fgraph]


# ---------------------------------------------------------------- equality of graphs
def test_equal_computations():
    x, y, z = cell("x"), cell("y"), cell("z")
    assert not equal_computations([f(x, 1)], [f(1, x)])
    assert equal_computations([f(x, 1)], [f(x, 1)])
    assert not equal_computations([f(x)], [f(y)])
    assert equal_computations([f(x)], [f(y)], [x], [y])
    assert equal_computations([f(x, y)], [f(y, x)], [x, y], [y, x])
    assert not equal_computations([f(x, y)], [f(x, y)], [x], [z])
    assert not equal_computations([f(x)], [f(y)], [x], [y, z])
    assert not equal_computations([double("a")], [cell("b")], [double("a")], [cell("b")])
    assert equal_computations([f(g(x))], [f(y)], [g(x)], [y]) is False
    inner = g(x)
    assert equal_computations([f(inner)], [f(y)], [inner], [y])
    shared = g(x)
    assert equal_computations([f(shared, shared)], [f(g(x), g(x))])
    with pytest.raises(ValueError, match=r"2 graphs.*1"):
        equal_computations([x, y], [x])
    assert is_same_graph(f(x), f(x)) and not is_same_graph(f(x), f(y))
    assert is_same_graph(f(x), f(y), givens={x: y})


def test_equal_computations_of_values():
    one = cell.make_constant(1)
    assert equal_computations([one], [cell.make_constant(1)])
    assert equal_computations([[1]], [one]) and equal_computations([one], [[1]])
    assert not equal_computations([[2]], [one])
    assert not equal_computations([1], [cell("x")])
    assert equal_computations([None, 2], [None, 2])


def test_equal_computations_without_dtypes():
    np = pytest.importorskip("numpy")

    def of(value):
        return f_generic(generic.make_constant(value))

    def f_generic(v):
        return Apply(Mix(0), [v], [cell()]).out

    one, single = np.float64(1), np.float32(1)

    class ByDtype(Constant):
        def signature(self):
            return (self.data.dtype, self.data.tobytes())

    def constant(value):
        return f_generic(ByDtype(generic, np.asarray(value)))

    assert not equal_computations([constant(one)], [constant(single)])
    assert equal_computations([constant(one)], [constant(single)], strict_dtype=False)
    nan = np.float64("nan")
    assert equal_computations([constant(nan)], [constant(np.float32(nan))], strict_dtype=False)
    assert not equal_computations([constant(one)], [constant([1.0])], strict_dtype=False)
    assert equal_computations([np.array([1, np.nan])], [np.array([1, np.nan])])


# ---------------------------------------------------------------- origins and tags
def test_origin_is_the_line_of_the_user():
    x = cell("x")
    y = f(x)
    where = locate(y.owner.origin)
    assert where.file.endswith("test_graph_contract.py")  # not the op's own make_node
    assert where.text == "y = f(x)"
    assert locate(halve(x)[0].owner.origin).text.startswith("assert locate(halve(x)")
    assert locate(None) is None and locate(where) is where
    with inherit(where):
        assert cell("z").origin is where
    assert cell("z").origin is not where


def test_tags():
    x = cell("x")
    x.tag.note = "a"
    assert "note" in repr(x.tag)
    x.tag.clear()
    assert not hasattr(x.tag, "note")
    x.tag = copy.copy(x.tag)
    assert not hasattr(x.tag, "other")


def test_virtual_subclasses(monkeypatch):
    """As of any abstract class: those of a class are virtual subclasses of its bases too."""
    monkeypatch.setattr(Abstract, "__instancecheck__", Abstract.__instancecheck__)

    class Base(Op):
        pass

    class Derived(Base):
        pass

    class Other(Op):
        pass

    assert not isinstance(Other(), Base)
    assert Derived.register(Other) is Other
    assert isinstance(Other(), Derived) and isinstance(Other(), Base)
    assert not isinstance(Derived(), Other)
