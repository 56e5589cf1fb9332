"""How each library computes a workload: its namespace, and a program made from a formula.

A namespace has NumPy's names, and these: ``softmax``, ``log_softmax`` and ``logsumexp`` of rows,
``softplus``, ``sigmoid``, and ``put(x, index, values)``: a copy of ``x`` with other values there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from workloads import Arrays, Workload, outputs


class Unsupported(Exception):
    """A library has no natural program for a workload."""


class Namespace:
    """A module with some names of its own."""

    def __init__(self, module: Any, **own: Callable[..., Any]) -> None:
        self._module = module
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@dataclass
class Program:
    """A compiled workload.

    ``bind(arrays)`` gives it the held arrays and returns the arguments of ``call`` by name;
    ``held()`` reads the held arrays.
    """

    call: Callable[..., Any]
    bind: Callable[[Arrays], dict[str, Any]]
    held: Callable[[], Mapping[str, Any]]


def arguments(w: Workload, arrays: Arrays) -> Arrays:
    """Those arrays that are arguments, as the workload wants them passed."""
    found = {name: a for name, a in arrays.items() if name not in w.held}
    if w.call == "floats":
        return {name: a.item() for name, a in found.items()}
    return found


# ---------------------------------------------------------------- NumPy


def numpy_log_softmax(x: Any) -> Any:
    z = x - np.max(x, axis=1, keepdims=True)
    return z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))


def numpy_softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def numpy_logsumexp(x: Any) -> Any:
    top = np.max(x, axis=1)
    return np.log(np.sum(np.exp(x - top[:, None]), axis=1)) + top


def numpy_put(x: Any, index: Any, values: Any) -> Any:
    x = x.copy()
    x[index] = values
    return x


NUMPY = Namespace(
    np,
    softmax=numpy_softmax,
    log_softmax=numpy_log_softmax,
    logsumexp=numpy_logsumexp,
    softplus=lambda x: np.logaddexp(0.0, x),
    put=numpy_put,
)


def held_by(w: Workload, arrays: Arrays) -> Arrays:
    return {name: arrays[name] for name in w.held}


def pure(w: Workload, f: Callable[..., Any]) -> Program:
    """A program of ``f(held, *arguments)`` that changes nothing."""

    def bind(arrays: Arrays) -> dict[str, Any]:
        program.call = partial(f, held_by(w, arrays))
        return arguments(w, arrays)

    program = Program(f, bind, dict)
    return program


def stateful(w: Workload, f: Callable[..., Any]) -> Program:
    """A program of ``f(held, *arguments) -> result, new held arrays``."""
    held: dict[str, Any] = {}

    def bind(arrays: Arrays) -> dict[str, Any]:
        held.update(held_by(w, arrays))
        return arguments(w, arrays)

    def call(*args: Any) -> Any:
        result, new = f(held, *args)
        held.update(new)
        return result

    return Program(call, bind, lambda: held)


def translated(program: Program, array: Callable[[Any], Any]) -> Program:
    """The same program for arrays of another library."""
    bind = program.bind
    program.bind = lambda arrays: bind({name: array(a) for name, a in arrays.items()})
    return program


def named(w: Workload, arrays: Arrays, f: Callable[..., Any]) -> Callable[..., Any]:
    """``f(**arrays)`` as a function of the held arrays and the arguments in their order."""
    names = [name for name in arrays if name not in w.held]
    return lambda held, *args, **kwargs: f(**held, **dict(zip(names, args)), **kwargs)


class NumPy:
    """Formulas as they are; gradients by hand."""

    def build(self, w: Workload, arrays: Arrays) -> Program:
        if w.call in ("trusted", "floats"):
            raise Unsupported("no checks to leave out, and Python adds its floats itself")

        def step(**arrays: Any) -> tuple[Any, Mapping[str, Any]]:
            if w.updates:
                return w.formula(NUMPY, **arrays), w.updates(NUMPY, **arrays)
            value, *slopes = w.by_hand(**arrays)
            moves = zip(w.gradient, slopes)
            return value, {n: arrays[n] - np.asarray(w.rate, g.dtype) * g for n, g in moves}

        if w.changes:
            return stateful(w, named(w, arrays, step))
        if w.held:
            return pure(w, named(w, arrays, w.by_hand or partial(w.formula, NUMPY)))
        return Program(w.by_hand or partial(w.formula, NUMPY), partial(arguments, w), dict)


# ---------------------------------------------------------------- Phintys and PyTensor


class Graphs:
    """A library of symbolic expressions; what follows ``:`` in its name is a mode."""

    def __init__(self, name: str) -> None:
        package, _, self.mode = name.partition(":")
        self.library = import_module(package)
        self.pt = pt = import_module(f"{package}.tensor")
        special = import_module(f"{package}.tensor.special")
        self.namespace = Namespace(
            pt,
            softmax=lambda x: special.softmax(x, axis=1),
            log_softmax=lambda x: special.log_softmax(x, axis=1),
            logsumexp=lambda x: pt.log(pt.sum(pt.exp(x), axis=1)),
            put=lambda x, index, values: pt.set_subtensor(x[index], values),
        )

    def variable(self, name: str, value: np.ndarray) -> Any:
        shape = tuple(1 if n == 1 else None for n in value.shape)
        return self.pt.tensor(name, dtype=value.dtype.name, shape=shape)

    def graph(self, w: Workload, arrays: Arrays) -> tuple[dict[str, Any], list[Any], dict]:
        """Variables by name, outputs, and updates of shared variables."""
        variables = {
            name: self.library.shared(a.copy(), name=name)
            if name in w.held
            else self.variable(name, a)
            for name, a in arrays.items()
        }
        results = outputs(w.formula(self.namespace, **variables))
        new = dict(w.updates(self.namespace, **variables)) if w.updates else {}
        if w.gradient:
            wrt = [variables[name] for name in w.gradient]
            slopes = self.library.grad(results[0], wrt)
            if w.rate:
                rates = [np.asarray(w.rate, p.dtype) for p in wrt]
                steps = zip(w.gradient, wrt, rates, slopes)
                new = {name: p - r * g for name, p, r, g in steps}
            else:
                results += slopes
        return variables, results, {variables[name]: value for name, value in new.items()}

    def build(self, w: Workload, arrays: Arrays) -> Program:
        variables, results, updates = self.graph(w, arrays)
        inputs = [v for name, v in variables.items() if name not in w.held]
        options = {"mode": self.mode} if self.mode else {}
        result = results if len(results) > 1 else results[0]
        f = self.library.function(inputs, result, updates=updates, **options)
        f.trust_input = w.call == "trusted"

        def bind(arrays: Arrays) -> dict[str, Any]:
            for name in w.held:
                variables[name].set_value(arrays[name])
            return arguments(w, arrays)

        return Program(f, bind, lambda: {name: variables[name].get_value() for name in w.held})


def refuse_views(arrays: Arrays) -> None:
    """Libraries with arrays of their own copy operands before a call, so there is no layout."""
    if not all(a.flags.c_contiguous for a in arrays.values()):
        raise Unsupported("its arrays are contiguous")


# ---------------------------------------------------------------- JAX


class Jax:
    """``jit`` and ``value_and_grad``, in 64 bits; a call ends when its results are there."""

    def __init__(self) -> None:
        self.jax = jax = import_module("jax")
        jax.config.update("jax_enable_x64", True)
        jnp = import_module("jax.numpy")
        nn = import_module("jax.nn")
        self.namespace = Namespace(
            jnp,
            softmax=lambda x: nn.softmax(x, axis=1),
            log_softmax=lambda x: nn.log_softmax(x, axis=1),
            logsumexp=lambda x: nn.logsumexp(x, axis=1),
            softplus=nn.softplus,
            put=lambda x, index, values: x.at[index].set(values),
        )

    def build(self, w: Workload, arrays: Arrays) -> Program:
        if w.call == "trusted":
            raise Unsupported("no checks to leave out")
        refuse_views(arrays)
        jax, m = self.jax, self.namespace

        def result(**arrays: Any) -> Any:
            if not w.gradient:
                return w.formula(m, **arrays)
            value, slopes = values(**arrays)
            return [value, *(slopes[k] for k in w.gradient)]

        def values(**arrays: Any) -> tuple[Any, Mapping[str, Any]]:
            rest = {k: a for k, a in arrays.items() if k not in w.gradient}
            wrt = {k: arrays[k] for k in w.gradient}
            return jax.value_and_grad(lambda p: w.formula(m, **p, **rest))(wrt)

        def step(**arrays: Any) -> tuple[Any, Mapping[str, Any]]:
            if w.updates:
                return w.formula(m, **arrays), w.updates(m, **arrays)
            value, slopes = values(**arrays)
            return value, {k: arrays[k] - w.rate * g for k, g in slopes.items()}

        def waits(f: Callable[..., Any]) -> Callable[..., Any]:
            g = jax.jit(named(w, arrays, f))

            def call(*args: Any, **kwargs: Any) -> Any:
                out = g(*args, **kwargs)
                one = isinstance(out, jax.Array)
                return out.block_until_ready() if one else jax.block_until_ready(out)

            return call

        program = stateful(w, waits(step)) if w.changes else pure(w, waits(result))

        return program if w.call == "floats" else translated(program, jax.device_put)


# ---------------------------------------------------------------- PyTorch


class Torch:
    """Eager execution and autograd."""

    def __init__(self) -> None:
        self.torch = torch = import_module("torch")
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

        def put(x: Any, index: Any, values: Any) -> Any:
            x = x.clone()
            x[index] = values
            return x

        def largest(x: Any, axis: int | None) -> Any:
            return torch.amax(x, dim=tuple(range(x.ndim)) if axis is None else axis)

        self.namespace = Namespace(
            torch,
            softmax=lambda x: torch.softmax(x, 1),
            log_softmax=lambda x: torch.log_softmax(x, 1),
            logsumexp=lambda x: torch.logsumexp(x, 1),
            softplus=torch.nn.functional.softplus,
            maximum=lambda x, low: torch.clamp(x, min=low),
            max=largest,
            put=put,
            sort=lambda x, axis: torch.sort(x, dim=axis).values,
        )

    def build(self, w: Workload, arrays: Arrays) -> Program:
        if w.call != "arrays":
            raise Unsupported("tensors are the only arguments")
        refuse_views(arrays)
        torch, m = self.torch, self.namespace

        def result(**arrays: Any) -> Any:
            if not w.gradient:
                return w.formula(m, **arrays)
            value, slopes = values(**arrays)
            return [value, *slopes]

        def values(**arrays: Any) -> tuple[Any, Any]:
            leaves = {k: arrays[k].detach().requires_grad_() for k in w.gradient}
            value = w.formula(m, **{**arrays, **leaves})
            return value.detach(), torch.autograd.grad(value, list(leaves.values()))

        def step(**arrays: Any) -> tuple[Any, Mapping[str, Any]]:
            if w.updates:
                return w.formula(m, **arrays), w.updates(m, **arrays)
            value, slopes = values(**arrays)
            return value, {k: arrays[k] - w.rate * g for k, g in zip(w.gradient, slopes)}

        program = (
            stateful(w, named(w, arrays, step)) if w.changes else pure(w, named(w, arrays, result))
        )
        return translated(program, lambda a: torch.as_tensor(np.array(a, order="C")))


# ---------------------------------------------------------------- Numba


class Numba:
    """Loops written by hand (`loops.py`)."""

    def build(self, w: Workload, arrays: Arrays) -> Program:
        loops = import_module("loops").LOOPS
        if w.call != "arrays" or w.name not in loops:
            raise Unsupported("no loops were written for it")
        f = import_module("numba").njit(fastmath=True)(loops[w.name])
        return Program(f, lambda arrays: arrays, lambda: {})


def library(name: str) -> Any:
    """The library called ``name``; ImportError if it is not installed."""
    known: dict[str, Callable[[], Any]] = {
        "numpy": NumPy,
        "jax": Jax,
        "torch": Torch,
        "numba": Numba,
    }
    if name in known:
        import_module(name)
        return known[name]()
    return Graphs(name)
