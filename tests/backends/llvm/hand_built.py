"""Small Programs built by hand, and how to run them next to the interpreter."""

from __future__ import annotations

from functools import cache, wraps

import numpy as np

from phintys.backends.llvm import compile_program
from phintys.backends.llvm.machine.target import current
from phintys.dims import ONE, ZERO, Dim, as_dim, product
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Copy, Inst, Kernel, Operand, Program, Python, Slot
from phintys.lowering.spec import verify


def by_target(make):
    """``make`` with its results kept, for each target."""
    kept = cache(lambda target, *args: make(*args))
    return wraps(make)(lambda *args: kept(current(), *args))


class Slow(Exception):
    """The ``slow`` callback of `run` was called."""


class Failed(Exception):
    """The ``failed`` callback of `run` was called."""


def slow(args, kwargs):
    raise Slow(args, kwargs)


def failed(args, step):
    raise Failed(args, step)


def strides_of(shape, loops):
    """Strides of a C-contiguous array, broadcast to the dims of a loop nest."""
    strides = [product(shape[axis + 1 :]) for axis in range(len(shape))]
    strides = [
        ZERO if d.value == 1 and n.value != 1 else s
        for d, s, n in zip(shape, strides, loops[len(loops) - len(shape) :])
    ]
    return (ZERO,) * (len(loops) - len(shape)) + tuple(strides)


class Builder:
    """Numbers slots and steps."""

    def __init__(self):
        self.slots, self.inputs, self.steps, self.storages = [], [], [], []

    def slot(self, kind, dtype, shape, **more):
        slot = Slot(len(self.slots), kind, dtype, tuple(as_dim(d) for d in shape), **more)
        self.slots.append(slot)
        return slot

    def lengths(self, static):
        """Lengths of an array from outside: static ones, and symbols where None."""
        number = len(self.slots)
        symbols = (Dim.symbol(("len", number, axis)) for axis in range(len(static)))
        return tuple(s if n is None else Dim.const(n) for s, n in zip(symbols, static))

    def input(self, dtype="float64", static=(), name=""):
        slot = self.slot("input", dtype, self.lengths(static), name=name)
        self.inputs.append(slot)
        return slot

    def object(self, data=None, is_input=False):
        slot = self.slot("object", None, (), data=data)
        if is_input:
            self.inputs.append(slot)
        return slot

    def constant(self, data):
        data = np.asarray(data)
        return self.slot("constant", str(data.dtype), data.shape, data=data)

    def output(self, dtype, shape):
        return self.slot("output", dtype, shape)

    def temp(self, dtype, shape):
        slot = self.slot("temp", dtype, shape, storage=len(self.storages))
        self.storages.append(product(slot.shape) * np.dtype(dtype).itemsize)
        return slot

    def add(self, step):
        step.step = len(self.steps)
        self.steps.append(step)

    def elementwise(self, op, target, *sources):
        """target = op(*sources), broadcasting."""
        dims = target.shape
        slots = (*sources, target)
        operands = tuple(Operand(s, strides_of(s.shape, dims), ZERO) for s in slots)
        body = [Inst("load", s.dtype, (), i) for i, s in enumerate(sources)]
        args = tuple(range(len(sources)))
        body.append(Inst(op, target.dtype, args))
        body.append(Inst("store", target.dtype, (len(args),), len(args)))
        self.add(Kernel(dims, len(dims), operands, tuple(body)))
        return target

    def reduce(self, op, target, source):
        """target = source reduced over its last axis."""
        dims, split = source.shape, len(source.shape) - 1
        inner = Operand(source, strides_of(source.shape, dims), ZERO)
        outer = Operand(target, (*strides_of(target.shape, target.shape), ZERO), ZERO)
        body = (
            Inst("load", source.dtype, (), 0),
            Inst("reduce", target.dtype, (0,), op),
            Inst("store", target.dtype, (1,), 1),
        )
        self.add(Kernel(dims, split, (inner, outer), body))
        return target

    def python(self, function, inputs, outputs, name="step"):
        self.add(Python(function, tuple(inputs), tuple(outputs), name))

    def array(self, dtype, ndim):
        """The result of a Python step."""
        return self.slot("python", dtype, self.lengths((None,) * ndim))

    def copy(self, source, target):
        self.add(Copy(source, target))
        return target

    def program(self, *outputs, updates=(), shared=0, legal=True):
        """``shared``: how many of the inputs, the last ones, are shared variables.

        ``legal=False`` does not hold it against the spec, for what the entry can do beyond it.
        """
        n_arguments = len(self.inputs) - shared
        made = Program(
            self.inputs,
            n_arguments,
            list(outputs),
            list(updates),
            self.steps,
            self.slots,
            self.storages,
        )
        return verify(made) if legal else made


def native(program, cells=(), single=False, slow=slow, failed=failed):
    return compile_program(program, list(cells), slow, failed, single=single)


def check(program, *args, cells=(), rtol=1e-13):
    """Run natively and interpreted; the results must agree.  Gives the native function."""
    expected = interpret(
        program,
        *(np.asarray(a) if isinstance(a, float) else a for a in args),
        *(cell[0] for cell in cells),
    )
    function = native(program, cells)
    results = function(*args)
    results = [*results, *(cells[i - program.n_arguments][0] for i in program.updates)]
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected):
        if isinstance(wanted, np.ndarray):
            assert type(result) is np.ndarray
            assert result.dtype == wanted.dtype
            assert result.shape == wanted.shape
            np.testing.assert_allclose(result, wanted, rtol=rtol)
        else:
            assert result == wanted
    return function


def addition(ndim, dtype="float64"):
    """f(a, b) = a + b, with a check of the lengths."""
    from phintys.lowering.program import Check

    b = Builder()
    x, y = (b.input(dtype, (None,) * ndim, name) for name in "xy")
    for n, m in zip(x.shape, y.shape):
        b.add(Check(n, "==", m, "the lengths of x and y differ"))
    return b.program(b.elementwise("add", b.output(dtype, x.shape), x, y))


__all__ = ["ONE", "ZERO", "Builder", "Failed", "Slow", "addition", "check", "native"]
