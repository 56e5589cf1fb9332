"""Routines that are called by address, without Python objects, against the interpreter."""

from __future__ import annotations

import ctypes
import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_values import RandomValues

import phintys
import phintys.tensor as pt
from phintys.backends.llvm import backend
from phintys.lowering.assemble import assemble
from phintys.lowering.from_graph import lower_graph
from phintys.lowering.interpret import interpret
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import python_step
from phintys.tensor.from_function import wrap_py
from phintys.tensor.type_other import SliceType


class Caller:
    """A Program's bare routine as a function of arrays; it returns a status and the results."""

    def __init__(self, program, artifact=None):
        self.program, self.failures = program, []
        self.bare = backend.bind_bare(
            artifact or backend.compile_bare(program),
            lambda *failure: self.failures.append(failure),
        )
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *3 * [ctypes.c_void_p])  # releases the GIL
        self.routine = kind(self.bare.address)
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.bare.free)

    def __call__(self, *args):
        arrays = [np.ascontiguousarray(a, s.dtype) for a, s in zip(args, self.program.inputs)]
        shaped = [a.reshape(np.shape(given)) for a, given in zip(arrays, args)]
        words = [w for a in shaped for w in (a.ctypes.data, *a.shape)]
        given = (ctypes.c_int64 * (len(words) + 1))(*words)
        count = sum(2 + slot.ndim for slot in self.program.outputs)
        found = (ctypes.c_int64 * count)()
        status = self.routine(self.bare.block, given, found)
        return status, self.results(iter(found)) if status == 0 else list(found)

    def results(self, words):
        return [self.result(slot, words) for slot in self.program.outputs]

    def result(self, slot, words):
        memory, address, *shape = (next(words) for _ in range(2 + slot.ndim))
        assert address % 64 == 0
        size = math.prod(shape) * np.dtype(slot.dtype).itemsize
        copy = np.ndarray(shape, slot.dtype, ctypes.string_at(address, size)).copy()
        self.free(memory)
        return copy


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 30))
def test_a_routine_computes_what_the_interpreter_does(seed, size):
    values = RandomValues(seed)
    values.grow(size)
    outputs, _ = values.outputs(3)
    program = plan_memory(assemble(values.b, outputs))
    assume(python_step(program) is None)
    status, found = Caller(program)(*values.args)
    assert status == 0
    for result, expected in zip(found, interpret(program, *values.args), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)


def exponential_plus():
    x, y = pt.dvectors("x", "y")
    return lower_graph(phintys.FunctionGraph([x, y], [pt.exp(x) + y, x.sum()]))


def test_the_code_can_be_stored():
    program = exponential_plus()
    payload = backend.dump(backend.compile_bare(program, to_store=True))
    assert payload is not None
    loaded = backend.load(payload, 0)
    assert loaded is not None
    status, (total, sum_) = Caller(program, loaded)([0.0, 1.0], [1.0, 2.0])
    assert (status, sum_) == (0, 1)
    np.testing.assert_allclose(total, [2, math.e + 2])


def test_a_failed_step_is_noted_once_and_gives_no_results():
    call = Caller(exponential_plus())
    status, words = call([0.0, 1.0], [1.0])
    assert (status, any(words)) == (1, False)
    ((_, step),) = call.failures
    assert step >= 0
    assert call([0.0], [1.0])[0] == 0


def test_a_length_that_the_type_fixes_is_checked():
    x = pt.tensor("x", shape=(2, None), dtype="float64")
    call = Caller(lower_graph(phintys.FunctionGraph([x], [x + 1])))
    assert call(np.ones((2, 3)))[0] == 0
    assert call(np.ones((3, 3)))[0] == 1
    assert call.failures[0][1] == -1


def test_too_little_memory_is_a_status():
    n = pt.lscalar("n")
    call = Caller(lower_graph(phintys.FunctionGraph([n], [pt.zeros((n, n))])))
    assert call(2**31)[0] == 2
    np.testing.assert_array_equal(call(2)[1][0], np.zeros((2, 2)))


def test_what_needs_python_is_named():
    x, rng = pt.dvector("x"), phintys.shared(np.random.default_rng(0), "rng")

    @wrap_py(itypes=[x.type], otypes=[x.type])
    def doubled(a):
        return a * 2

    def named(inputs, output):
        return python_step(lower_graph(phintys.FunctionGraph(inputs, [output])))

    assert "doubled" in named([x], doubled(x) + 1)
    assert "doubled" in named([x], phintys.ifelse(x.sum() > 0, doubled(x), x))
    assert named([rng], pt.random.normal(rng=rng)) == "random_normal"
    assert named([x], x + 1) is None


def test_results_that_only_python_can_hold_are_named():
    x, choice = pt.dvector("x"), pt.lscalar("choice")
    first, second = (SliceType().make_variable() for _ in range(2))

    def named(inputs, output):
        return python_step(phintys.function(inputs, output).program)

    chosen = phintys.ifelse(choice > 0, x[1:], pt.concatenate([x, x]))
    assert named([x, choice], chosen) == "An array whose lengths depend on which branch runs"
    assert named([x, choice], phintys.ifelse(choice > 0, x, x[::-1])) is None
    chosen = phintys.ifelse(choice > 0, first, second)
    expected = "A Python object that a branch or a loop returns"
    assert named([choice, first, second], chosen) == expected
