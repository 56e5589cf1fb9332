"""FunctionGraph, its features and frozen graphs (areas F1 to F19, G30, G46)."""

from __future__ import annotations

import copy
import pickle

import pytest
from toy_graphs import Interval, Mix, Narrow, cell, f, g, h, halve

from phintys.errors import (
    AlreadyThere,
    InconsistencyError,
    MissingInputError,
    ReplacementDidNotRemoveError,
)
from phintys.graph.clients import Clients, OrderedSet, Output
from phintys.graph.features import (
    Bookkeeper,
    Feature,
    FullHistory,
    History,
    NoOutputFromInplace,
    NoOutputInplaceOnInput,
    PreserveVariableAttributes,
    ReplaceValidate,
    Validator,
)
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.frozen import FrozenApply
from phintys.graph.variable import Constant, NominalVariable
from phintys.rewriting.engine import RuleSet


@pytest.fixture
def abc():
    """x, y, z, a = f(x, y), b = g(a, z)"""
    x, y, z = cell("x"), cell("y"), cell("z")
    a = f(x, y, name="a")
    return x, y, z, a, g(a, z, name="b")


def graph_of(variables, **kwargs):
    x, y, z, _a, b = variables
    return FunctionGraph([x, y, z], [b], clone=False, **kwargs)


# ---------------------------------------------------------------- construction
def test_clones_by_default(abc):
    x, y, z, a, b = abc
    fgraph = FunctionGraph([x, y, z], [b])
    assert not {x, y, z, a, b} & set(fgraph.variables)
    assert [v.name for v in fgraph.inputs] == ["x", "y", "z"]
    assert graph_of(abc).inputs == [x, y, z] and graph_of(abc).outputs == [b]


def test_inputs_are_found(abc):
    fgraph = FunctionGraph(outputs=[f(abc[-1], 3)], clone=False)
    assert set(fgraph.inputs) == set(abc[:3])
    with pytest.raises(ValueError, match="outputs"):
        FunctionGraph([abc[0]])


def test_an_input_must_not_be_computed(abc):
    _x, _y, z, a, b = abc
    with pytest.raises(ValueError, match=r"already existing node: a is computed by Mix"):
        FunctionGraph([a, z], [b], clone=False)
    cut = FunctionGraph([a, z], [b])
    assert cut.inputs[0].owner is None and len(cut.apply_nodes) == 1


def test_missing_inputs(abc):
    x, _y, z, _a, b = abc
    with pytest.raises(
        MissingInputError, match=r"y \(type Interval.*Mix\{key=1\}(.|\n)*cell\(\"y\"\)"
    ):
        FunctionGraph([x, z], [b], clone=False)
    with pytest.raises(MissingInputError, match="z"):
        FunctionGraph([x], [z], clone=False)


def test_clone_keywords(abc):
    x, y, z, _a, b = abc
    memo = {}
    fgraph = FunctionGraph([x, y, z], [b], memo=memo, copy_inputs=False)
    assert fgraph.inputs == [x, y, z] and memo[b] is fgraph.outputs[0]
    orphaned = FunctionGraph([x], [f(x, 1)], copy_orphans=False)
    assert orphaned.outputs[0].owner.inputs[0] is orphaned.inputs[0]
    computed = f(z, 2)
    led = FunctionGraph([x], [f(f(x, y), y)], memo={x: z, y: computed})
    led.check_integrity()
    assert led.inputs == [z] and len(led.apply_nodes) == 3
    assert led.toposort()[0] is computed.owner


def test_several_graphs_over_the_same_variables(abc):
    first, second = graph_of(abc), graph_of(abc)
    assert first.clients[abc[0]] == second.clients[abc[0]]
    second.remove_output(0)
    first.check_integrity()
    assert len(first.apply_nodes) == 2 and not second.apply_nodes


# ---------------------------------------------------------------- clients
def test_the_order_of_a_graph_whose_nodes_another_graph_has_changed(abc):
    x, y, z, a, b = abc
    first, second, other = (FunctionGraph([x, y, z], [b], clone=False) for _ in range(3))
    unchanged = FunctionGraph([x, y], [a], clone=False)
    first.replace(a, h(h(x)))
    order = [n.op for n in first.toposort()]
    assert order == [h, h, g]
    assert [n.op for n in second.toposort()] == [n.op for n in second.toposort()] == order
    first.replace(b.owner.inputs[0], x)
    assert [n.op for n in second.toposort()] == [n.op for n in other.toposort()] == [g]
    assert unchanged.toposort() == [a.owner]


def changed(abc, is_asked):
    """The uses of each variable after changes; ``is_asked``: the table was made before them."""
    x, _y, z, a, b = abc
    fgraph = FunctionGraph(abc[:3], [b, h(a), z], clone=False)
    fgraph.attach_feature(ReplaceValidate())
    assert not fgraph.has_clients
    if is_asked:
        assert fgraph.clients[z]
    mark = fgraph.checkpoint()
    fgraph.replace(x, f(z, 3), reason="test")
    fgraph.revert(mark)
    fgraph.replace_validate(z, halve(x)[0])
    RuleSet([]).rewrite(fgraph)
    fgraph.remove_output(2)
    fgraph.add_output(g(a, 5))
    fgraph.add_input(cell("new"))
    again = pickle.loads(pickle.dumps(fgraph))
    assert again.toposort() and not again.has_clients
    for graph in (fgraph, again):
        graph.check_integrity()
        assert {v: len(uses) for v, uses in graph.clients.items() if uses} == graph.use_counts()
    return sorted(str(v) for v in fgraph.variables)


def test_clients_are_found_when_asked_for(abc):
    x, y, z = abc[:3]
    other = f(x, y, name="a")
    assert changed(abc, False) == changed((x, y, z, other, g(other, z, name="b")), True)


def test_clients(abc):
    x, _y, z, a, b = abc
    fgraph = FunctionGraph(abc[:3], [b, b, a], clone=False)
    assert fgraph.clients[x] == [(a.owner, 0)] and fgraph.clients[x][0] == (a.owner, 0)
    assert [(n.op, i) for n, i in fgraph.clients[b]] == [(Output(0), 0), (Output(1), 0)]
    assert len(fgraph.get_clients(a)) == 2
    assert fgraph.get_output_client(1) in fgraph.clients[b]
    [(client, position)] = fgraph.clients[z]
    assert (client, position) == (b.owner, 1)
    with pytest.raises(RuntimeError):
        Output(0).perform(None, [], [])
    assert x in fgraph and a.owner in fgraph and cell() not in fgraph


def test_containers():
    a, b = f(cell()).owner, g(cell()).owner
    clients = Clients()
    clients.append((a, 0))
    clients.append((b, 1))
    clients.remove((a, 0))
    clients.remove((a, 0))
    assert clients == [(b, 1)] and clients[0] == (b, 1) and clients[:] == [(b, 1)]
    assert (b, 1) in clients and clients.count((b, 1)) == 1 and repr(clients) == repr([(b, 1)])
    assert OrderedSet("ab") | {"c"} == {"a", "b", "c"} and OrderedSet("ab") - {"a"} == {"b"}


# ---------------------------------------------------------------- replacement
def test_replace(abc):
    x, y, z, a, b = abc
    fgraph = graph_of(abc)
    fgraph.replace(a, z)
    assert b.owner.inputs == [z, z] and set(fgraph.apply_nodes) == {b.owner}
    assert a not in fgraph.variables and fgraph.clients[x] == []
    fgraph.replace(b, y)
    assert fgraph.outputs == [y] and not fgraph.apply_nodes
    fgraph.check_integrity()


def test_a_replacement_may_contain_what_it_replaces(abc):
    x = abc[0]
    fgraph = graph_of(abc)
    fgraph.replace(x, h(x))
    fgraph.check_integrity()
    assert fgraph.toposort()[0].inputs == [x]


def test_replacing_what_is_not_there_does_nothing(abc):
    fgraph = graph_of(abc)
    fgraph.replace(cell("absent"), h(abc[0]))
    assert len(fgraph.apply_nodes) == 2
    unused = FunctionGraph([abc[0], abc[1]], [f(abc[0])], clone=False)
    unused.replace(abc[1], h(abc[0]))
    unused.check_integrity()
    assert len(unused.apply_nodes) == 1


def test_types_of_replacements(abc):
    x, y, _z, a, _b = abc
    fgraph = graph_of(abc)
    with pytest.raises(TypeError, match="odd"):
        fgraph.replace(a, Interval(20_000, 20_001)("odd"))
    with pytest.raises(TypeError, match="Input 0 of Mix"):
        fgraph.change_node_input(a.owner, 0, Interval(20_000, 20_001)())
    narrow = Interval(1, 2)("narrow")
    special = FunctionGraph([narrow, x], [f(narrow, x)], clone=False)
    special.replace(narrow, x)
    assert isinstance(special.outputs[0].owner.inputs[0].owner.op, Narrow)
    special.replace(x, 5)
    assert isinstance(special.outputs[0].owner.inputs[1], Constant)
    special.check_integrity()
    fgraph.replace(y, narrow, import_missing=True)
    assert narrow in fgraph.inputs


def test_import_of_unknown_inputs(abc):
    fgraph, new = graph_of(abc), cell("new")
    with pytest.raises(MissingInputError, match="new"):
        fgraph.replace(abc[3], h(new, 4))
    fgraph.check_integrity()
    assert set(fgraph.variables) == set(abc)
    fgraph.replace(abc[3], h(new, 4), import_missing=True)
    fgraph.check_integrity()
    assert fgraph.inputs[-1] is new
    fgraph.import_var(f(abc[0]))
    with pytest.raises(ValueError, match="1 do not belong"):
        fgraph.check_integrity()


def test_replace_all(abc):
    x, y, z, a, b = abc
    fgraph = graph_of(abc)
    fgraph.replace_all([(a, x), (z, y)], reason="test")
    assert b.owner.inputs == [x, y]


def test_a_cycle_is_an_error_not_a_hang(abc):
    fgraph = graph_of(abc)
    fgraph.replace(abc[3], h(abc[4]))
    with pytest.raises(ValueError, match="cycle"):
        fgraph.toposort()


# ---------------------------------------------------------------- the interface
def test_outputs_come_and_go(abc):
    _x, _y, z, a, b = abc
    fgraph = FunctionGraph(abc[:3], [b, a, z, a], clone=False, update_mapping={1: 0, 3: 2})
    fgraph.remove_output(1)
    assert fgraph.outputs == [b, z, a] and fgraph.update_mapping == {2: 2}
    fgraph.add_output(f(z))
    fgraph.check_integrity()
    fgraph.remove_output(0)
    assert fgraph.outputs[:2] == [z, a] and b not in fgraph.variables
    fgraph.check_integrity()


def test_removing_an_input_without_use_is_a_change(abc):
    """Code that is kept for the graph takes the input as an argument."""
    fgraph = FunctionGraph(abc[:3], [abc[0]], clone=False)
    change = fgraph.last_change
    fgraph.remove_input(2)
    assert fgraph.last_change is not change


def test_inputs_come_and_go(abc):
    x, _y, z, a, b = abc
    fgraph = FunctionGraph(abc[:3], [b, a, z], clone=False, update_mapping={2: 2, 0: 0})
    fgraph.add_input(x)
    assert len(fgraph.inputs) == 3
    fgraph.remove_input(0)
    assert fgraph.outputs == [z] and not fgraph.apply_nodes and fgraph.update_mapping == {0: 1}
    fgraph.check_integrity()
    twice = FunctionGraph([x, x], [x], clone=False)
    assert twice.inputs == [x, x]


def test_remove_node_takes_dependents_along(abc):
    x, _y, _z, a, b = abc
    other = halve(x)
    fgraph = FunctionGraph(abc[:3], [b, other[0], a], clone=False)
    fgraph.remove_node(a.owner)
    assert fgraph.outputs == [other[0]] and set(fgraph.apply_nodes) == {other[0].owner}
    assert fgraph.get_output_client(0)[0].op == Output(0)
    fgraph.check_integrity()


def test_integrity_is_checked(abc):
    x, y, _z, a, b = abc
    for damage, message in (
        (lambda fg: b.owner.inputs.__setitem__(1, x), "Inconsistent clients list"),
        (lambda fg: fg.clients[x].remove((a.owner, 0)), "does not have"),
        (lambda fg: fg.clients[y].append((a.owner, 0)), "does not use it"),
        (lambda fg: fg.apply_nodes.discard(a.owner), "missing"),
        (lambda fg: fg.inputs.remove(x), "not an input"),
        (lambda fg: fg.outputs.__setitem__(0, a), "do not belong"),
    ):
        fgraph = graph_of(abc)
        fgraph.check_integrity()
        damage(fgraph)
        with pytest.raises(ValueError, match=message):
            fgraph.check_integrity()
        b.owner.inputs[1] = abc[2]


# ---------------------------------------------------------------- features
class Recorder(Feature):
    def __init__(self):
        self.log = []

    def on_attach(self, fgraph):
        self.log.append("attach")

    def on_detach(self, fgraph):
        self.log.append("detach")

    def on_import(self, fgraph, node, reason):
        self.log.append(("import", node.op, reason))

    def on_change_input(self, fgraph, node, i, var, new_var, reason=None):
        self.log.append(("change", node.op, i, var, new_var, reason))

    def on_prune(self, fgraph, node, reason):
        self.log.append(("prune", node.op, reason))


def test_features_are_told(abc):
    x, _y, _z, a, _b = abc
    recorder = Recorder()
    fgraph = graph_of(abc, features=[recorder])
    assert recorder.log == ["attach", ("import", f, "init"), ("import", g, "init")]
    recorder.log.clear()
    new = h(x)
    fgraph.replace(a, new, reason="why")
    assert recorder.log == [
        ("import", h, "why"),
        ("prune", f, "why"),
        ("change", g, 0, a, new, "why"),
    ]
    fgraph.remove_feature(recorder)
    fgraph.remove_feature(recorder)
    assert recorder.log[-1] == "detach" and recorder not in fgraph._features
    fgraph.replace(new, x)
    assert recorder.log[-1] == "detach"


def test_callbacks(abc):
    class Named(Feature):
        def __init__(self, name):
            self.name = name

        def orderings(self, fgraph):
            order.append(self.name)
            return {}

    order = []
    first, second = Named("first"), Named("second")
    fgraph = graph_of(abc, features=[first, second])
    results = fgraph.collect_callbacks("orderings")
    assert results == {first: {}, second: {}} and order == ["first", "second"]
    fgraph.attach_feature(first)
    assert len(fgraph._features) == 3
    with pytest.raises(AttributeError, match="no_such_method"):
        fgraph.no_such_method()


def test_orderings_are_honoured():
    x = cell("x")
    first, second = f(x), g(x)

    class Reversed(Feature):
        def orderings(self, fgraph):
            return {fgraph.outputs[1].owner: [fgraph.outputs[0].owner]}

    fgraph = FunctionGraph([x], [first, second], clone=False)
    assert fgraph.toposort() == [second.owner, first.owner]
    fgraph.attach_feature(Reversed())
    assert fgraph.toposort() == [first.owner, second.owner]


def test_a_feature_may_decline(abc):
    class Declining(Feature):
        def on_attach(self, fgraph):
            raise AlreadyThere

    fgraph = graph_of(abc, features=[Declining()])
    assert [type(x) for x in fgraph._features] == [ReplaceValidate]
    for again in (ReplaceValidate(), History(), Validator()):
        fgraph.attach_feature(again)
    assert len(fgraph._features) == 1


def test_bookkeeper_catches_up(abc):
    class Counter(Bookkeeper):
        def __init__(self):
            self.nodes = []

        def on_import(self, fgraph, node, reason):
            self.nodes.append(node)

        def on_prune(self, fgraph, node, reason):
            self.nodes.remove(node)

    counter, fgraph = Counter(), graph_of(abc)
    fgraph.attach_feature(counter)
    assert counter.nodes == fgraph.toposort()
    fgraph.remove_feature(counter)
    assert counter.nodes == []


class Forbid(Feature):
    """Objects to nodes with a given op."""

    def __init__(self, op):
        self.op = op

    def on_validate(self, fgraph):
        if any(node.op == self.op for node in fgraph.apply_nodes):
            raise InconsistencyError(f"{self.op} is forbidden")


def test_rejected_replacements_are_rolled_back(abc):
    x, y, z, a, b = abc
    fgraph = graph_of(abc, features=[Forbid(h)])
    with pytest.raises(InconsistencyError, match="forbidden"):
        fgraph.replace_all_validate([(z, x), (a, h(y))])
    assert b.owner.inputs == [a, z] and set(fgraph.apply_nodes) == {a.owner, b.owner}
    fgraph.check_integrity()
    assert fgraph.consistent() is True
    fgraph.replace_validate(z, x, reason="fine")
    assert b.owner.inputs == [a, x]
    fgraph.replace(a, h(y))
    assert fgraph.consistent() is False
    with pytest.raises(InconsistencyError):
        fgraph.validate()


def test_an_exception_of_a_feature_is_rolled_back(abc):
    class Failing(Feature):
        def on_change_input(self, fgraph, node, i, var, new_var, reason=None):
            if isinstance(reason, str):  # not when it is taken back
                raise ZeroDivisionError

    x, _y, _z, a, b = abc
    fgraph = graph_of(abc, features=[Failing()])
    with pytest.raises(ZeroDivisionError):
        fgraph.replace_validate(a, x, reason="now")
    assert b.owner.inputs[0] is a
    fgraph.check_integrity()


def test_a_type_error_in_the_middle_is_rolled_back(abc):
    x, y, z, a, b = abc
    fgraph = graph_of(abc)
    with pytest.raises(TypeError):
        fgraph.replace_all_validate([(a, x), (z, Interval(20_000, 20_001)())])
    assert b.owner.inputs == [a, z] and a.owner.inputs == [x, y]
    fgraph.check_integrity()


def test_replace_all_validate_remove(abc):
    x, _y, _z, a, _b = abc
    fgraph = graph_of(abc)
    with pytest.raises(ReplacementDidNotRemoveError, match=r"why.*Mix"):
        fgraph.replace_all_validate_remove([(a, h(a))], remove=[a.owner], reason="why")
    assert set(fgraph.apply_nodes) == {a.owner, abc[4].owner}
    fgraph.replace_all_validate_remove([(a, x)], remove=[a.owner])
    assert a.owner not in fgraph.apply_nodes


def test_revert_skips_the_type_check():
    x, narrow = cell("x"), Interval(1, 2)("narrow")
    out = f(x)
    fgraph = FunctionGraph([x, narrow], [out], clone=False)
    mark = fgraph.checkpoint()
    fgraph.replace(x, narrow)
    assert out.owner.inputs == [narrow]
    fgraph.revert(mark)
    assert out.owner.inputs == [x]


def test_full_history(abc):
    x, y, z, a, b = abc
    calls = []
    history = FullHistory(lambda: calls.append(1))
    fgraph = graph_of(abc, features=[history])
    fgraph.replace(a, h(x))
    fgraph.replace(z, y)
    final = list(b.owner.inputs)
    assert len(calls) == 2
    history.start()
    assert b.owner.inputs == [a, z]
    history.next()
    assert b.owner.inputs == [final[0], z]
    history.prev()
    history.prev()
    assert b.owner.inputs == [a, z]
    history.end()
    assert b.owner.inputs == final
    history.goto(0)
    assert b.owner.inputs == [final[0], z]
    fgraph.check_integrity()
    with pytest.raises(ValueError):
        graph_of(abc).attach_feature(history)
    history.callback = None  # a lambda cannot be pickled
    copied = pickle.loads(pickle.dumps(fgraph))
    (again,) = (f for f in copied._features if isinstance(f, FullHistory))
    again.start()
    copied.check_integrity()
    assert [v.name for v in copied.outputs[0].owner.inputs] == ["a", "z"]


def test_names_are_kept(abc):
    x, _y, _z, a, b = abc
    fgraph = graph_of(abc, features=[PreserveVariableAttributes()])
    a.tag.values_eq_approx = approx = object()
    new = h(x)
    fgraph.replace(a, new)
    assert new.name == "a" and new.tag.values_eq_approx is approx
    named = h(x, name="named")
    fgraph.replace(new, named)
    assert named.name == "named"
    constant = cell.make_constant(1)
    fgraph.replace(named, constant)
    assert constant.name is None and b.owner.inputs[0] is constant


class InPlace(Mix):
    destroy_map = {0: [0]}


def test_outputs_may_be_kept_from_inplace_operations(abc):
    x, y, *_ = abc
    out = InPlace(1)(x)
    safe = FunctionGraph([x, y], [f(x), out], clone=False, features=[NoOutputFromInplace([0])])
    assert safe.consistent()
    safe = FunctionGraph([x, y], [f(x), out], clone=False, features=[NoOutputFromInplace([1])])
    with pytest.raises(InconsistencyError, match="Output 1"):
        safe.validate()
    assert not safe.clone().consistent()
    for protected, consistent in ((0, False), (1, True)):
        feature = NoOutputInplaceOnInput([protected])
        fgraph = FunctionGraph([x, y], [out], clone=False, features=[feature])
        assert fgraph.consistent() is consistent


def test_clones_have_features_of_their_own(abc):
    recorder = Recorder()
    fgraph = graph_of(abc, features=[recorder, Forbid(h)])
    other, memo = fgraph.clone_get_equiv()
    assert [type(x) for x in other._features] == [type(x) for x in fgraph._features]
    assert other._features[0] is not fgraph._features[0]
    assert other._features[1] is recorder  # Feature.clone was not overridden
    assert memo[abc[3]].owner in other.apply_nodes
    other.replace(memo[abc[3]], memo[abc[0]])
    fgraph.check_integrity()
    assert len(fgraph.apply_nodes) == 2 and len(other.apply_nodes) == 1
    bare, _ = fgraph.clone_get_equiv(attach_feature=False)
    assert len(bare._features) == 1
    assert copy.copy(fgraph).outputs[0] is not fgraph.outputs[0]


def test_attributes_and_features_survive_copies(abc):
    fgraph = graph_of(abc, features=[Forbid(h)])
    fgraph.notes = {"input": abc[0]}
    for other in (pickle.loads(pickle.dumps(fgraph)), copy.deepcopy(fgraph)):
        assert other.notes["input"] is other.inputs[0] and other.inputs[0] is not abc[0]
        with pytest.raises(InconsistencyError):
            other.replace_validate(other.outputs[0], h(other.inputs[0]))
        other.check_integrity()
    mark = fgraph.checkpoint()
    fgraph.replace(abc[3], abc[0])
    assert pickle.loads(pickle.dumps(fgraph)).checkpoint() == 0
    fgraph.revert(mark)


# ---------------------------------------------------------------- frozen graphs
def test_equal_graphs_are_equal_by_value():
    def make(constant=1):
        x, y = cell(), cell()
        return FunctionGraph([x, y], [f(g(x), y), g(x, constant)]).freeze()

    first, second = make(), make()
    assert first == second and hash(first) == hash(second) and {first: 1}[second] == 1
    assert first.outputs[0] is second.outputs[0]
    assert first != make(2) and first != 1
    assert first.inputs == (NominalVariable(0, cell), NominalVariable(1, cell))
    x, y = cell(), cell()
    assert FrozenFunctionGraph.from_io([x, y], [f(x, y)]) != FrozenFunctionGraph.from_io(
        [y, x], [f(x, y)]
    )


def test_frozen_graphs_cannot_change():
    x = cell("x")
    frozen = FrozenFunctionGraph.from_io([x], [f(x)])
    node = frozen.toposort()[0]
    assert isinstance(node, FrozenApply) and not isinstance(node, type(f(x).owner))
    assert isinstance(node.inputs, tuple) and isinstance(node.outputs, tuple)
    with pytest.raises(AttributeError, match="inputs"):
        frozen.inputs = ()
    copied = node.clone_with_new_inputs([x])
    assert isinstance(copied, type(f(x).owner)) and copied.op == node.op and copied.inputs == [x]
    thawed = FunctionGraph(frozen.inputs, frozen.outputs)
    assert isinstance(thawed.outputs[0].owner, type(copied)) and frozen.toposort() == (node,)
    assert copy.copy(frozen) is frozen is copy.deepcopy(frozen)
    out = frozen.outputs[0]
    assert copy.deepcopy(out) is out and pickle.loads(pickle.dumps(out)) is out
    assert copy.deepcopy(node) is node and pickle.loads(pickle.dumps(node)) is node
    assert copy.deepcopy([h(out)])[0].owner.inputs[0] is out


def test_frozen_graphs_have_no_implicit_inputs():
    x, other = cell("x"), cell("other")
    with pytest.raises(ValueError, match="other"):
        FrozenFunctionGraph.from_io([x], [f(x, other)])
    with pytest.raises(ValueError, match="other"):
        FrozenFunctionGraph.from_io([x], [other])


def test_repeated_nodes():
    x = cell("x")
    twice, once = [f(g(x), g(x))], [f(*[g(x)] * 2)]
    freeze = FrozenFunctionGraph.from_io
    assert freeze([x], twice) != freeze([x], once)
    assert freeze([x], twice, dedup_nodes=True) == freeze([x], once, dedup_nodes=True)
    assert len(freeze([x], twice, dedup_nodes=True).toposort()) == 2


def test_from_toposort():
    x = cell("x")
    a, b = f(x), g(x)
    forward = FrozenFunctionGraph.from_toposort([x], [a, b], [a.owner, b.owner])
    backward = FrozenFunctionGraph.from_toposort([x], [a, b], [b.owner, a.owner])
    assert backward == FrozenFunctionGraph.from_io([x], [a, b]) != forward
    assert [n.op for n in backward.toposort()] == [g, f]
    assert pickle.loads(pickle.dumps(backward)) == backward
    c = h(a)
    with pytest.raises(ValueError, match="too late"):
        FrozenFunctionGraph.from_toposort([x], [c], [c.owner, a.owner])


def test_from_structural_inputs():
    x, y = cell("x"), cell("y")
    frozen = FrozenFunctionGraph.from_structural_inputs([f(x), y], [g(f(x), f(x), y)])
    (result,) = frozen.bind([x, y])
    assert result.owner.inputs == [x, x, y]
    with pytest.raises(ValueError, match="x"):
        FrozenFunctionGraph.from_structural_inputs([f(x)], [g(f(x), x)])


def test_bind():
    x, y = cell("x"), cell("y")
    frozen = FrozenFunctionGraph.from_io([x, y], [f(x, 3), y])
    first, second = frozen.bind([y, 4])
    assert first.owner.inputs[0] is y and second.data == [4]
    outputs, memo = frozen.bind(dict(zip(frozen.inputs, [x, y], strict=True)), return_memo=True)
    assert memo[frozen.toposort()[0]] is outputs[0].owner and memo[frozen.inputs[1]] is y
    with pytest.raises(KeyError, match="input 1"):
        frozen.bind([x])
    with pytest.raises(TypeError):
        frozen.bind([x, Interval(20_000, 20_001)()])
    narrow = Interval(1, 2)("narrow")
    assert frozen.bind([narrow, y])[0].owner.inputs[0] is narrow


def test_unfreeze():
    x = cell("x")
    frozen = FrozenFunctionGraph.from_io([x], [f(x)])
    fgraph, memo = frozen.unfreeze(return_memo=True)
    assert memo[frozen.inputs[0]] is fgraph.inputs[0]
    fgraph.replace(fgraph.inputs[0], 1)
    assert frozen.unfreeze().freeze() == frozen
    assert [len(c) for c in frozen.clients.values()] == [1, 1]
    assert frozen.apply_nodes == {frozen.toposort()[0]}
