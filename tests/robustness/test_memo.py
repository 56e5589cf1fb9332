"""What is remembered, and what is freed: the policy of `phintys.memo`, measured in objects."""

from __future__ import annotations

import ast
import copy
import gc
import pickle
import sys
import threading
import weakref
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from activities import (
    ACTIVITIES,
    Scale,
    composite,
    evaluations,
    frozen,
    jax_functions,
    lengths,
    native_functions,
    numba_functions,
    users_classes,
    users_ops,
)
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys import memo
from phintys.graph.variable import NominalVariable
from phintys.memo import Memo, WeakMemo, exact
from phintys.scalar.composite import Composite
from phintys.scalar.type import ScalarConstant, scalar_type
from phintys.tensor.rules.match import literal

ROOT = Path(phintys.__file__).parent
#: activities of ``make test``, and marks of those of the rest that need a package
QUICK = (lengths, native_functions, users_ops, users_classes, evaluations)
NEEDS = {
    numba_functions: [rest, pytest.mark.needs("numba")],
    jax_functions: [rest, pytest.mark.needs("jax")],
}

# ------------------------------------------------------------------------------- the policy

DTYPES = "one for each dtype, register width or name in a table of this package"
TARGETS = "one for each processor and vector width among the settings, and each dtype"
CODE = "grows with the code of programs (registrations), not with what they do"

#: What is remembered without a Memo, and why it does not grow.  Functions without parameters,
#: which remember one value, are not listed.
PLAIN = {
    "array_api/array.py": {"NAMESPACE": "the functions of the standard"},
    "assumptions/core.py": dict.fromkeys(
        (
            *("ASSUMPTION_INFER_REGISTRY", "CONSTANT_INFER_REGISTRY", "TYPE_INFER_REGISTRY"),
            *("IMPLIES", "KEY_REGISTRY", "UNIVERSAL_RULES", "_derived", "_implications"),
            *("_listeners", "_rules_by_class", "_sources"),
        ),
        CODE,
    ),
    "backends/c/compiler.py": {"_identity": "one for each compiler with its flags"},
    "backends/code_cache.py": {"_warned": "the directories of the cache"},
    "backends/jax/dispatch.py": {"TRACE_TIME_OPS": CODE},
    "backends/llvm/kernel/kernels.py": {"_emit": "the texts of 256 kernels"},
    "backends/llvm/runtime/cells.py": {
        "product": TARGETS,
        "product_library": TARGETS,
        "strided": TARGETS,
        "strided_library": TARGETS,
    },
    "backends/llvm/runtime/libraries.py": {"runtime": TARGETS, "blas": TARGETS},
    "backends/llvm/kernel/sharing.py": {
        "_dim": "as many as the largest kernel has lengths",
        "_slot": "as many as the largest kernel has operands",
        "_number": DTYPES,
    },
    "backends/llvm/runtime/streams.py": {
        "_measured": "the ziggurats of NumPy: three",
        "guard": "the routines that are drawn without calls",
    },
    "backends/llvm/runtime/symbols.py": {"_routine": TARGETS, "_vector": TARGETS, "_zeta": TARGETS},
    "backends/llvm/machine/target.py": {
        "_target": TARGETS,
        "_machine": TARGETS,
        "_check_runs_here": TARGETS,
    },
    "backends/llvm/__init__.py": {"_native_class": "one for each class of functions: one"},
    "backends/llvm/vecmath/__init__.py": {"_function": DTYPES},
    "backends/numba/native.py": {"_functions": "go with the function"},
    "backends/numba/routines.py": {"routine_function": DTYPES, "_functions": CODE},
    "backends/numba/scalar.py": {"special_function": DTYPES},
    "compat/stubs.py": {"_is_looked_up": CODE},
    "compat/tables.py": {"_extended": CODE},
    "paths.py": {"extensions": CODE},
    "tensor/scaled.py": dict.fromkeys(("_stated", "_sums"), CODE),
    "compile/callable.py": {"dict_class": "one for each class of functions: four"},
    "compile/mode.py": {"_named": CODE, "_MAKERS": CODE},
    "compile/native.py": {"_converting_class": "one for each class of functions: two"},
    "compile/profile.py": {
        "_profiled_class": "one for each class of functions: two",
        "_at_exit": "profiles that are printed when the process ends",
        "_totals": "profiles whose sums are printed when the process ends",
        "_PRINTERS": CODE,
    },
    "gradient/barriers.py": {"DeepCopyOp.view_map": "never changed"},
    "gradient/forms.py": {"_makers": CODE},
    "graph/collection.py": {"_pausing": "the threads that are at work"},
    "graph/ignored.py": {"IGNORED": CODE},
    "graph/op.py": {"Op.view_map": "never changed", "Op.destroy_map": "never changed"},
    "graph/shared.py": {"_LATER": CODE},
    "graph/type.py": {"_transfers": CODE},
    "graph/variable.py": {"late_bound": CODE},
    "planned.py": {"_value": "the names in its table"},
    "routines/addresses.py": {"address": DTYPES},
    "saturation/translate.py": {"_as_data": "at most 32, one for each set of kinds of variables"},
    "routines/language.py": {"ROUTINES": CODE},
    "rewriting/numbering.py": {"_by_id": "go with the op", "_held": "go with the op"},
    "scalar/dtypes.py": {"canonical": DTYPES, "_upcast": DTYPES, "float_of": DTYPES},
    "scalar/op.py": {
        "TABLE": CODE,
        "CLASSES": CODE,
        "ScalarOp.facts": "never changed",
        "ScalarOp.logs": "never changed",
    },
    "scalar/type.py": {"scalar_type": DTYPES},
    "tensor/convert.py": {
        "literal_type": "one for each dtype and rank",
        "scalar_conversions": CODE,
        "pad_left": CODE,
    },
    "tensor/elemwise.py": {"_padding": "one for each pair of ranks", "sums": CODE},
    "tensor/random/distribution.py": {"Distribution.parameters": CODE},
    "tensor/shape.py": {"stacks": CODE},
    "tensor/type.py": {"narrow": CODE, "narrow_later": CODE},
}
CONTAINERS = {"dict", "list", "set", "OrderedDict", "defaultdict", "deque", "Counter"}
CONTAINERS |= {"WeakValueDictionary", "WeakKeyDictionary", "WeakSet", "lru_cache", "cache"}


def is_container(value: ast.expr | None) -> bool:
    """Whether a value is an empty container, or a function that remembers."""
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List | ast.Set):
        return not value.elts
    if isinstance(value, ast.Call):
        function = value.func.func if isinstance(value.func, ast.Call) else value.func
        name = ast.unparse(function).split("[")[0].split(".")[-1]
        return (name in CONTAINERS and not value.args) or name in ("cache", "lru_cache")
    return False


def remembering(body: list[ast.stmt], where: str = "") -> list[str]:
    """Names of module and class level that remember something without a Memo."""
    found = []
    for node in body:
        if isinstance(node, ast.ClassDef):
            found += remembering(node.body, f"{where}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and ast.unparse(node.args):
            names = [ast.unparse(d).split("(")[0].split(".")[-1] for d in node.decorator_list]
            found += [where + node.name] * bool({"cache", "lru_cache", "once"} & set(names))
        elif isinstance(node, ast.Assign) and is_container(node.value):
            found += [where + ast.unparse(t) for t in node.targets]
        elif isinstance(node, ast.AnnAssign) and is_container(node.value):
            found.append(where + ast.unparse(node.target))
    return found


def test_whatever_grows_is_a_memo():
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        file = str(path.relative_to(ROOT))
        names = remembering(ast.parse(path.read_text()).body)
        if file != "memo.py" and names:
            found[file] = set(names)
    extra = {f: names - set(PLAIN.get(f, ())) for f, names in found.items()}
    assert not {f: n for f, n in extra.items() if n}, "use a Memo, or say here why it cannot grow"
    gone = {f: set(names) - found.get(f, set()) for f, names in PLAIN.items()}
    assert not {f: n for f, n in gone.items() if n}, "these are not there any more"


@pytest.mark.parametrize(
    "source, expected",
    [
        ("a = {}", ["a"]),
        ("a: dict[int, int] = dict()", ["a"]),
        ("class C:\n  b: ClassVar[list[int]] = []", ["C.b"]),
        ("@functools.lru_cache(maxsize=5)\ndef f(x): pass", ["f"]),
        ("f = lru_cache(maxsize=5)(g)", ["f"]),
        ("@cache\ndef one(): pass", []),
        ("@once\ndef f(*args): pass", ["f"]),
        ("a = WeakValueDictionary()", ["a"]),
        ("a = {1: 2}\nb = Memo(3, 'b')\nc = frozenset()", []),
    ],
)
def test_the_check_finds(source, expected):
    assert remembering(ast.parse(source).body) == expected


# ----------------------------------------------------------------------------- Memo, WeakMemo


class Thing:
    """Something that can be referred to weakly."""


def test_a_memo_is_bounded_and_keeps_what_is_used():
    squares: Memo[int, int] = Memo(10, "test")
    squares.keep(-1, 1)
    for k in range(1000):
        assert squares[k] is None
        assert squares.keep(k, k * k) == k * k
        assert squares[-1] == 1  # in use all the time
        assert squares.count <= 20
    assert squares[999] == 999**2 and squares[0] is None
    squares.clear()
    assert squares.count == 0 and squares[999] is None


def test_what_is_kept_first_stays():
    things: Memo[int, Thing] = Memo(3, "test")
    first = things.keep(1, Thing())
    assert things.keep(1, Thing()) is first
    for k in range(2, 6):  # into the older generation
        things.keep(k, Thing())
    assert things.keep(1, Thing()) is not first or things[1] is first


@pytest.mark.parametrize("size", [0, 3])
def test_a_weak_memo_finds_what_is_alive(size):
    things: Memo[int, Thing] = Memo(size, "test", weak=True)
    alive = things.keep(0, Thing())
    for k in range(1, 50):
        things.keep(k, Thing())
    assert things[0] is alive and things.keep(0, Thing()) is alive
    assert things.count <= 2 * size + 1
    gone = weakref.ref(alive)
    del alive
    things.clear()
    assert gone() is None and things[0] is None


def test_a_memo_that_weighs():
    texts: Memo[int, str] = Memo(100, "test", weigh=len)
    texts.keep(0, "x" * 101)
    assert texts[0] is None
    for k in range(20):
        texts.keep(k, "x" * 30)
        assert texts.count <= 6


def test_entries_about_objects_go_with_them():
    known: WeakMemo[Thing, int] = WeakMemo("test")
    thing = Thing()
    assert known.keep(thing, 1) == 1 and known.keep(thing, 2) == 1
    assert known.get(thing) == 1 and known.count == 1
    del thing
    assert known.count == 0


def test_copies_of_memos_are_empty():
    numbers: Memo[int, int] = Memo(5, "test")
    numbers.keep(1, 2)
    weak: WeakMemo[type, int] = WeakMemo("test")
    weak.keep(Thing, 1)
    for made in (copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
        assert (made(numbers).count, made(numbers).size, made(weak).count) == (0, 5, 0)


def test_sizes_are_reported_and_cleared():
    numbers: Memo[int, int] = Memo(5, "the numbers of this test")
    numbers.keep(1, 2)
    assert memo.sizes()["the numbers of this test"] == 1
    memo.clear_all()
    assert memo.sizes()["the numbers of this test"] == 0


def test_exact_keys():
    different = [1, True, 1.0, 1j, "1", 0.0, -0.0, 0, False, complex(0, -0.0), complex(0, 0.0)]
    different += [np.float32(0.0), np.float32(-0.0), (1,), [1], {1: 1}, {1: True}, (1.0,), None]
    keys = [exact(x) for x in different]
    assert len(set(keys)) == len(keys)
    assert keys == [exact(copy.deepcopy(x)) for x in different]
    assert exact(float("nan")) == exact(float("nan"))
    with pytest.raises(TypeError):
        exact({1: np.zeros(2)})


THREADS = 8


def raced(make):
    """What several threads get that call ``make(k)`` at the same time, for many k."""
    barrier, results = threading.Barrier(THREADS), [[] for _ in range(THREADS)]

    def work(mine):
        for k in range(60):
            barrier.wait()
            mine.append(make(k))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(r,)) for r in results]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    return zip(*results, strict=True)


INTERNED = {
    "types": lambda k: pt.TensorType("float64", (k + 9000, None)),
    "nominal variables": lambda k: NominalVariable(k + 9000, pt.dvector),
    "lengths": lambda k: phintys.dims.Dim.symbol(("of this test", k)) * 3 + k,
    "shuffles": lambda k: pt.dtensor3("x").dimshuffle(*["x"] * (k % 30), 2, 0, 1).owner.op,
    "elementwise": lambda k: pt.elemwise.elementwise(composite(k + 9000)),
    "frozen graphs": lambda k: frozen(k + 9000).outputs[0],
}


@pytest.mark.parametrize("name", INTERNED)
def test_threads_get_the_same_object(name):
    for together in raced(INTERNED[name]):
        assert len({id(x) for x in together}) == 1


# ----------------------------------------------------- different things have different keys


def test_types_of_zero_and_unknown_length():
    for shapes in ([(False,), (0,)], [(0,), (False,)], [(False, 3), (0, 3)]):
        found = [pt.TensorType("int8", s).shape for s in shapes]
        assert found == [tuple(None if n is False else n for n in s) for s in shapes]
    assert pt.TensorType("int8", (0,)) is pt.TensorType("int8", [0])


def test_eval_with_other_givens():
    x, a = pt.dscalars("x", "a")
    z, y = 2 * x, 1 / x
    for k in (1.0, 100.0):
        assert z.eval({a: 1.0}, givens={x: a + k}) == 2 * (1 + k)
    assert [float(y.eval({}, givens={x: v})) for v in (0.0, -0.0)] == [np.inf, -np.inf]


def test_eval_keeps_a_function_for_what_it_is_asked_often():
    x = pt.dscalar("x")
    y = x + 1
    for k in range(50):
        assert y.eval({x: k}) == k + 1
    known = y.__dict__["_cached_functions"]
    assert known.count == 1
    for k in range(50):
        y.eval({x: 1}, name=str(k), mode="FAST_COMPILE")
    assert known.count <= 16


def test_eval_looks_at_the_settings():
    x = pt.dscalar("x")
    y = x + 1
    y.eval({x: 1})
    with phintys.config.change_flags(mode="FAST_COMPILE"):
        y.eval({x: 1})
    modes = {f.maker.mode.linker.name for f in y.__dict__["_cached_functions"].values()}
    assert modes == {"llvm", "py"}


def test_literals_have_signs():
    one, other = (literal(complex(1, s), "complex128", 0).data for s in (0.0, -0.0))
    assert (np.signbit(one.imag), np.signbit(other.imag)) == (False, True)


def test_scalar_constants_have_signs():
    dtype = scalar_type("complex128")
    values = [1 + 0j, complex(1, -0.0), complex(np.nan, 1), complex(np.nan, 2), complex(1, np.nan)]
    signatures = {ScalarConstant(dtype, np.complex128(v)).signature() for v in values}
    assert len(signatures) == len(values)
    x = dtype("x")
    assert Composite([x], [x * (1 + 0j)]) != Composite([x], [x * complex(1, -0.0)])


def test_upcasting_does_not_depend_on_the_order():
    from itertools import permutations

    from phintys.scalar import dtypes

    for given in permutations(dtypes.ALL, 3):
        assert dtypes.upcast(*given) == np.result_type(*given).name
    assert dtypes.upcast(*["int8"] * 1000, "float16") == "float16"


# ------------------------------------------------------------------------- what is freed


def counted() -> Counter[str]:
    """Objects that are alive, by class; dicts and other containers left out."""
    memo.clear_all()
    for _ in range(3):
        gc.collect()
    found: Counter[str] = Counter()
    for x in gc.get_objects():
        cls = type(x)
        module = getattr(cls, "__module__", "")
        if str(module).startswith(("phintys", __name__, "activities")) or cls.__name__ in WATCHED:
            found[cls.__qualname__] += 1
    return found


WATCHED = {
    "function",
    "type",
    "MetaType",
    "code",
    "Dispatcher",
    "CPUDispatcher",
    "ndarray",
    "PjitFunction",
}


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize(
    "activity",
    [
        pytest.param(f, marks=() if f in QUICK else NEEDS.get(f, rest), id=f.__name__)
        for f in ACTIVITIES
    ],
)
def test_nothing_stays_but_what_memos_hold(activity):
    for k in range(2, 6):
        activity(k)
    before = counted()
    for k in range(6, 6 + ACTIVITIES[activity]):
        activity(k)
    grown = {name: n - before[name] for name, n in counted().items() if n > before[name] + 3}
    assert not grown


@rest
def test_three_thousand_lengths():
    """Of fewer lengths, `test_nothing_stays_but_what_memos_hold` says the same."""
    for k in range(3000):
        lengths(k + 10)
    too_large = [m.name for m in memo._memos if type(m) is Memo and m.size and not within(m)]
    assert not too_large
    types = memo.sizes()["types"]
    for k in range(3000, 3500):
        lengths(k + 10)
    assert memo.sizes()["types"] <= types + 200


def within(m):
    """Whether a memo holds no more than it may."""
    return len(m) <= m.size and len(m._older) <= m.size


def test_large_things_of_dropped_ops_are_freed():
    """A user's op goes at once: rules, numbers and types are not remembered at its cost."""
    alive = []
    for k in range(20):
        op = Scale(k + 0.5)
        op.data = np.zeros(10)
        alive.append(weakref.ref(op.data))
        x = pt.dvector("x")
        phintys.function([x], op(x))(np.ones(2))
        del op
    gc.collect()
    assert sum(ref() is not None for ref in alive) <= 1
