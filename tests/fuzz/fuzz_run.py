"""Running a program on the backends and comparing with the truth."""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from fuzz_compare import (
    Conditioning,
    close,
    described,
    hides_a_step_that_fails,
    mismatch,
)
from fuzz_program import Built, RuleFault
from fuzz_slopes import wrong_slope
from fuzz_uses import USES, identical

import phintys
from phintys.backends.llvm import costs
from phintys.backends.llvm.routine import parts
from phintys.compile.mode import Mode
from phintys.config import config
from phintys.errors import ShapeError, UnsupportedError
from phintys.lowering import strips
from phintys.lowering.interpret import StepFailure, interpret
from phintys.lowering.program import Kernel, Program
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.rules import RULES

#: what is run -> for what share of the programs
SHARES = {
    "llvm": 1.0,
    "llvm unrewritten": 0.12,
    "llvm in threads": 0.12,
    "numpy": 0.3,
    "interpreter": 0.3,
    "differences": 0.1,
    "c": 0.03,
    "numba": 0.004,
    "jax": 0.004,
}
WIDTHS = (128, 256, 512)
#: rows whose function in JAX is inexact, NaN or infinite at some arguments, see the matrix's blanks
JAX_INEXACT = frozenset(
    "k1 kl_div beta betaln betainc gammainc gammaincc gammaln psi tri_gamma erfcinv".split()
)
#: what a call may raise
ERRORS = (ValueError, TypeError, IndexError, OverflowError, MemoryError)
#: lengths that the loops of an interpreted program may run in all
INTERPRETED = 3000
#: elements of the largest argument that a program is called with: Jacobians take their square
LARGEST = 1100


@dataclass(frozen=True)
class Finding:
    """Something wrong with a program."""

    backend: str
    message: str

    def __str__(self) -> str:
        return f"{self.backend}: {self.message}"

    @property
    def signature(self) -> tuple[str, str]:
        """What stays the same when the program is made smaller."""
        kind, _, rest = self.message.partition(":")
        if kind in ("value", "type", "other shapes", "other bits"):
            return self.backend.split(" at ")[0], kind
        place = "lowering" if kind == "IllegalProgram" else self.backend.split(" at ")[0]
        return place, f"{kind}: {re.sub(r'[0-9]+|[(].*?[)]+', '', rest).strip()[:60]}"


@dataclass
class Plan:
    """What is done with a program."""

    backends: list[str] = field(default_factory=lambda: ["llvm"])
    width: int = 0
    repeats: int = 2
    other_shapes: bool = False
    #: whether later calls get lists and numbers of Python
    as_lists: bool = False
    #: one of `USES`, or none
    use: str = ""

    @classmethod
    def drawn(cls, rng: random.Random, shares: dict[str, float], widths: Sequence[int]) -> Plan:
        """A random one."""
        backends = [name for name, share in shares.items() if rng.random() < share]
        repeats = 300 if rng.random() < 0.01 else 2
        width, other_shapes = rng.choice(widths), rng.random() < 0.2
        as_lists = rng.random() < 0.1
        use = rng.choice(sorted(USES)) if rng.random() < 0.25 else ""
        return cls(backends, width, repeats, other_shapes, as_lists, use)


def _is_inexact_in_jax(f: Any) -> bool:
    """Whether a function uses one of `JAX_INEXACT`, or draws: JAX has streams of its own."""
    ops = (node.op for node in f.maker.fgraph.apply_nodes)
    return any(
        isinstance(op, RandomVariable)
        or (isinstance(op, Elemwise) and op.scalar_op.name in JAX_INEXACT)
        for op in ops
    )


def _is_wild_complex(argument: Any) -> bool:
    return bool(np.iscomplexobj(argument) and not np.isfinite(argument).all())


@cache
def mode(backend: str, without: tuple[str, ...]) -> Mode:
    """The mode of a backend, without the rules that are equal only in some senses."""
    if backend == "llvm unrewritten":
        return Mode("llvm", None)
    linkers = {"numpy": "py", "interpreter": "llvm", "llvm in threads": "llvm"}
    linker = linkers.get(backend, backend)
    made = Mode(linker, "fast_run")
    return made.excluding(*(r.name for r in RULES if r.law in without)) if without else made


def has_width() -> bool:
    """Whether the width of vectors is a setting."""
    return "vector_bits" in config._settings


class Judge:
    """Runs a built program by a plan; `findings` is what was wrong."""

    def __init__(
        self,
        built: Built,
        truth: list[np.ndarray] | None,
        plan: Plan,
        arguments: Sequence[Any] | None = None,
    ) -> None:
        self.built, self.truth, self.plan = built, truth, plan
        self.arguments = built.arguments if arguments is None else arguments
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self._conditioning: Conditioning | None = None
        #: the laws of rules that are left out
        self.without: tuple[str, ...] = () if built.finite else ("finite", "normwise")
        if truth is None:
            self.without = ("finite", "normwise", "drops_errors")

    def run(self) -> list[Finding]:
        """Run every backend of the plan."""
        for backend in self.plan.backends:
            if backend in ("jax", "numba") and any(map(_is_wild_complex, self.built.arguments)):
                continue  # their formulas for complex infinities and NaN are others
            label = backend
            if backend.startswith("llvm") and self.plan.width:
                label = f"{backend} at {self.plan.width} bits"
            self.counts[label] += 1
            try:
                with warnings.catch_warnings(), self._settings(backend):
                    warnings.simplefilter("ignore")
                    problem = self._backend(backend)
            except UnsupportedError as exc:  # lengths that depend on values
                problem = "" if backend == "jax" else str(exc)
            except Exception as exc:
                problem = f"{type(exc).__name__}: {_first_line(exc)}"
                if (
                    self._depends_on_rounding(exc)
                    or self._is_of_too_large_a_length(exc)
                    or self._is_of_no_step(exc)
                ):
                    problem = ""
            if problem:
                self.findings.append(Finding(label, problem))
        return self.findings

    def _depends_on_rounding(self, exc: Exception) -> bool:
        """Whether the reference may raise an error of this kind too, if it rounds otherwise."""
        of_lengths = isinstance(exc, (ValueError, IndexError, StepFailure))
        return of_lengths and self.truth is not None and self.conditioning.excuses_error(exc)

    def _is_of_too_large_a_length(self, exc: Exception) -> bool:
        """Whether integers overflow, which the reference does without a word."""
        of_lengths = isinstance(exc, (ValueError, IndexError, StepFailure))
        return of_lengths and self.truth is not None and self.built.overflows()

    def _is_of_no_step(self, exc: Exception) -> bool:
        """Whether a loop without a step has one that fails: docs/differences.md."""
        failed = self.truth is not None and isinstance(exc, (ShapeError, IndexError, StepFailure))
        return failed and hides_a_step_that_fails(self.built, self.arguments)

    @contextmanager
    def _settings(self, backend: str) -> Iterator[None]:
        changes: dict[str, Any] = {}
        if has_width() and backend.startswith(("llvm", "interpreter")):  # the code is made once
            changes["vector_bits"] = self.plan.width
        with pytest.MonkeyPatch.context() as patch:
            if backend == "llvm in threads":
                changes["threads"] = 3
                patch.setattr(costs, "THREAD_PICOSECONDS", 1)
                patch.setattr(parts, "_is_stream", lambda inst: False)
            if backend in ("llvm in threads", "llvm unrewritten"):  # as in long routines
                patch.setattr(costs, "NEAR_BLOCKS", 0)
            if backend in ("interpreter", "llvm unrewritten"):  # as for large arrays
                patch.setattr(strips, "STRIP_BYTES", 64)
                patch.setattr(strips, "CACHED_BYTES", 0)
            with config.change_flags(**changes):
                yield

    def _backend(self, backend: str) -> str:
        b = self.built
        if backend == "differences":
            return wrong_slope(b) if self.truth is not None else ""
        f = phintys.function(
            b.inputs, b.outputs, mode=mode(backend, self.without), updates=b.updates,
            on_unused_input="ignore",
        )  # fmt: skip
        if backend == "interpreter":
            return self._interpreted(f)
        if backend == "jax" and _is_inexact_in_jax(f):
            self.counts["jax"] -= 1
            return ""
        if self.truth is None:
            return self._must_fail(f)
        first = self.call(f, b.arguments)
        problem = self.compare(first, self.truth)
        if problem and backend == "jax":
            problem = self.compare(first, self.conditioning.flushed) and problem
        for _ in range(0 if problem else self.plan.repeats - 1):
            again = self.call(f, _merged(b.arguments), self.plan.as_lists)
            if not all(map(identical, first, again)):
                return "other bits: at a later call"
        if not problem and self.plan.use and backend not in ("jax", "numba"):
            problem = USES[self.plan.use](self, f, first)
        if not problem and self.plan.other_shapes and backend.startswith("llvm"):
            problem = self._other_shapes(f)
        return problem

    def call(self, f: Any, arguments: Sequence[Any], as_lists: bool = False) -> list[Any]:
        """Results, then new values; the shared variables are as before."""
        given = [_listed(a) for a in arguments] if as_lists else arguments
        self.reset()
        before = [a.copy() for a in arguments]
        outputs = list(f(*given))
        if not all(map(identical, before, arguments)):
            raise AssertionError("an argument was changed")
        return [np.array(x) for x in [*outputs, *(v.get_value() for v in self.built.updates)]]

    def reset(self) -> None:
        """Give the shared variables their first values."""
        for v, value in zip(self.built.shared, self.built.shared_values):
            v.set_value(np.array(value))

    def _must_fail(self, f: Any) -> str:
        """What is wrong if the call raises no error of the class that the reference raises."""
        try:
            self.built.truth()
        except ERRORS as exc:
            expected = exc
        else:
            return "no error in the reference: drawing the program met one"
        try:
            self.call(f, self.built.arguments)
        except ERRORS as exc:
            if any(isinstance(exc, c) and isinstance(expected, c) for c in ERRORS):
                return ""
            return f"{type(exc).__name__}: the reference raises {type(expected).__name__}"
        if self.built.fails_in_empty_array():
            return ""  # docs/limits.md: compiled code does not look at the position
        return "no error: the reference raises one"

    def _interpreted(self, f: Any) -> str:
        program = f.program
        if self.truth is None or _turns(program, self.built) > INTERPRETED:
            return ""
        b = self.built
        values = [*b.arguments]
        values += [np.array(b.shared_values[b.shared.index(v)]) for v in f.maker.shared]
        found = [np.asarray(x) for x in interpret(program, *values)]
        count = len(found) - len(program.updates)
        targets = [f.maker.shared[k - program.n_arguments] for k in program.updates]
        new = dict(zip(targets, found[count:], strict=True))
        return self.compare([*found[:count], *(new[v] for v in b.updates)], self.truth)

    def compare(self, found: Sequence[Any], truth: Sequence[np.ndarray]) -> str:
        """What is wrong with results."""
        for number, (a, e) in enumerate(zip(found, truth, strict=True)):
            problem = mismatch(a, e)
            if not problem:
                continue
            a = np.asarray(a)
            if a.dtype != e.dtype or a.shape != e.shape:
                return f"type: result {number}: {problem}"
            wrong = ~close(a, e)
            wrong &= ~self.conditioning.excuses(number, a, e)
            if wrong.any():
                return f"value: result {number}: {described(a, e, wrong)}"
        return ""

    @property
    def conditioning(self) -> Conditioning:
        """Made when a result is not close."""
        if self._conditioning is None:
            self._conditioning = Conditioning(self.built, self.arguments)
        return self._conditioning

    # ----- other shapes
    def _other_shapes(self, f: Any) -> str:
        """Calls with other lengths, where the reference accepts them."""
        b = self.built
        rng = random.Random(len(b.outputs))
        for arguments in _reshaped(rng, b):
            try:
                with np.errstate(all="ignore"):
                    expected = b.truth(arguments)
            except RuleFault as exc:
                return f"RuleFault: {exc}"
            except Exception:
                continue
            if not b.finite and not self.without:
                continue
            other = Judge(b, expected, self.plan, arguments)
            try:
                problem = other.compare(other.call(f, arguments), expected)
            except Exception as exc:
                if other._is_of_no_step(exc):
                    continue
                problem = f"{type(exc).__name__}: {_first_line(exc)}"
            if problem.startswith("type:") and hides_a_step_that_fails(b, arguments):
                continue  # the lengths of its empty results are then those of one or the other
            if problem:
                return f"other shapes: {[a.shape for a in arguments]}: {problem}"
        return ""


def _reshaped(rng: random.Random, b: Built) -> list[list[np.ndarray]]:
    """Arguments with other lengths in place of each length that is not static, or of one axis."""
    lengths = {
        n
        for v, a in zip(b.inputs, b.arguments)
        for n, known in zip(a.shape, v.type.shape)
        if known is None and n != 1
    }
    found = []
    for _ in range(3):
        new = {n: rng.choice((0, 1, 2, 3, 7, 17, 33)) for n in lengths}
        found.append([_resized(a, v.type.shape, new) for v, a in zip(b.inputs, b.arguments)])
    if lengths:
        k, n = rng.randrange(len(b.inputs)), rng.choice(sorted(lengths))
        alone = _resized(b.arguments[k], b.inputs[k].type.shape, {n: 1})
        found.append([*b.arguments[:k], alone, *b.arguments[k + 1 :]])
    return [f for f in found if lengths and all(a.size <= LARGEST for a in f)]


def _resized(a: np.ndarray, static: Any, new: dict[int, int]) -> np.ndarray:
    shape = tuple(
        new.get(n, n) if known is None else n for n, known in zip(a.shape, static, strict=True)
    )
    if shape == a.shape:
        return a
    if a.size == 0:
        return np.ones(shape, a.dtype)
    return np.resize(a, shape)


def _merged(arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arguments, with one object for all that are equal."""
    found: list[np.ndarray] = []
    for a in arguments:
        found.append(next((x for x in found if x.strides == a.strides and identical(x, a)), a))
    return found


def _listed(a: np.ndarray) -> Any:
    """The same as lists or a number, if NumPy makes an array of the same dtype of them."""
    plain = a.dtype in ("bool", "int64", "float64") and 0 < a.size < 50 and a.flags.carray
    return a.tolist() if plain else a


def _turns(program: Program, built: Built) -> int:
    """About how many turns the loops of a program make."""
    size = max([a.size for a in built.arguments] or [1])
    return (1 + size) * sum(isinstance(step, Kernel) for step in program.steps)


def _first_line(exc: Exception) -> str:
    lines = str(exc).splitlines()
    return lines[0][:200] if lines else ""
