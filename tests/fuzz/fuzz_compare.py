"""Whether a result agrees with the truth, taking the conditioning of the program into account.

A result that is close is accepted at once.  Otherwise the graph is evaluated again, several times
with every floating-point value moved by a unit in its last place, and once in higher precision: how
far the results move says what rounding alone may do.  Elements that are discrete must be among
those that were seen, unless these are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from fuzz_program import Built, missing_nodes, needed_inputs
from fuzz_values import native

from phintys.conditional.op import IfElse
from phintys.errors import ShapeError
from phintys.graph.perform import run_node
from phintys.inner import InnerGraphOp
from phintys.loop.arguments import groups
from phintys.loop.lengths import empty_rows
from phintys.loop.op import Scan
from phintys.loop.reference import run_loop
from phintys.lowering.interpret import StepFailure
from phintys.scalar.conversion import converted
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.reduce import CAReduce

#: relative error that is accepted at once
CLOSE = {"float16": 4e-3, "float32": 2e-5, "complex64": 2e-5}
ROUNDS = 8
#: rounds if a discrete result was not among those seen
MORE = 64
#: ops that round, and may overflow, within: the order of terms is theirs
SUMS = set(
    "Sum Prod ProdWithoutZeros Dot Blockwise CumOp Softmax LogSoftmax LogSumExp Dot22 Gemm Gemv Ger"
    " BatchedDot Dot22Scalar Recurrence IncSubtensor AdvancedIncSubtensor Fourier Convolve1d"
    " Convolve2d CorrMM CorrMM_gradInputs CorrMM_gradWeights".split()
)
#: ops whose results are numbers of their arguments, or minus these: rounding does not move them, so
#: that a maximum remains equal to an element
EXACT = set(
    "Max Min DimShuffle Reshape JoinDims SplitDims Subtensor AdvancedSubtensor"
    " Alloc Join Split ExtractDiag FillDiagonal Repeat PermuteRowElements SpecifyShape Unbroadcast"
    " TensorFromScalar ScalarFromTensor MakeVector SpecifyAssumptions CheckAndRaise Switch"
    " Maximum Minimum Second Neg Abs".split()
)
#: ops whose first results are eigenvalues in order
EIGENVALUES = frozenset(("Eigh", "Eigvalsh"))
_WIDE = {"f": np.longdouble, "c": np.clongdouble}


def mismatch(found: Any, expected: np.ndarray) -> str:
    """What is obviously different: type, dtype, shape; or how many elements are not close."""
    if not isinstance(found, np.ndarray | np.generic):
        return f"{type(found).__name__} instead of an array"
    found = np.asarray(found)
    if found.dtype != expected.dtype:
        return f"dtype {found.dtype} instead of {expected.dtype}"
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    same = close(found, expected)
    return "" if same.all() else described(found, expected, ~same)


def close(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where two arrays of one dtype agree up to ordinary rounding."""
    if found.dtype.kind in "biu":
        return found == expected
    rtol = CLOSE.get(found.dtype.name, 1e-9)
    with np.errstate(all="ignore"):
        least = np.finfo(found.dtype).tiny / 1e3  # products of small numbers lose digits below
        near = np.isclose(found, expected, rtol=rtol, atol=float(least), equal_nan=True)
    if found.dtype.kind == "c":  # an infinite part makes the distance of the others NaN
        near |= close(found.real, expected.real) & close(found.imag, expected.imag)
    return near


def described(found: np.ndarray, expected: np.ndarray, wrong: np.ndarray) -> str:
    """The first element that is wrong, and how many are."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    count = f"({int(wrong.sum())} of {wrong.size})"
    return f"{found[at]!r} instead of {expected[at]!r} at {at} {count}"


class Conditioning:
    """How far the results of a program move when its arithmetic is disturbed."""

    def __init__(self, built: Built, arguments: Sequence[Any]) -> None:
        self.built, self.arguments = built, list(map(native, arguments))
        #: errors of lengths or positions that depend on rounding
        self.errors: list[Exception] = []
        with np.errstate(all="ignore"):
            found = [self._changed(_moving(k)) for k in range(ROUNDS)]
            self.wide = self._changed(_widening())
        self.moved = [m for m in found if m is not None]

    def _changed(self, change: Any) -> list[np.ndarray] | None:
        """The results; None if a length or position that depends on rounding does not fit."""
        try:
            return self._run(change)
        except (ValueError, IndexError) as exc:
            self.errors.append(exc)
            return None

    def excuses_error(self, exc: Exception) -> bool:
        """Whether rounding alone may lead to an error of this kind."""
        if isinstance(exc, StepFailure):  # of the interpreter, of any kind
            return bool(self.errors)
        kinds = [kind for kind in (ValueError, IndexError) if isinstance(exc, kind)]
        return any(isinstance(e, kind) for e in self.errors for kind in kinds)

    def _run(self, change: Any) -> list[np.ndarray]:
        b = self.built
        values = [np.asarray(v) for v in [*self.arguments, *b.shared_values]]
        values = [change.argument(v) for v in values]
        return [
            np.asarray(v) for v in _evaluated(change, [*b.inputs, *b.shared], values, b.results)
        ]

    @cached_property
    def flushed(self) -> list[np.ndarray]:
        """The results with subnormal floats as 0."""
        with np.errstate(all="ignore"):
            return self._run(_flushing())

    @cached_property
    def without_zeros(self) -> list[np.ndarray] | None:
        """The results with floats that are 0 as 1: what factors are that a 0 hides."""
        with np.errstate(all="ignore"), suppress(ValueError, IndexError):
            return self._run(_without_zeros())
        return None

    @cached_property
    def merged(self) -> list[np.ndarray]:
        """The results with eigenvalues that nearly agree as equal: derivatives divide by gaps."""
        with np.errstate(all="ignore"):
            return self._run(_merging())

    def excuses(self, number: int, found: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Where a result may differ from the truth because of rounding alone."""
        with np.errstate(all="ignore"):
            others = [m[number] for m in self.moved if m[number].shape == expected.shape]
            if not others or len(others) < len(self.moved):
                return np.ones(expected.shape, bool)  # a length depends on rounding
            wide = expected if self.wide is None else self.wide[number]
            wide = wide if wide.shape == expected.shape else expected
            if expected.dtype.kind in "biu":
                seen = [*others, _rounded(wide, expected.dtype)]
                among = np.any([found == other for other in seen], axis=0)
                if among.all():
                    return among
                return among | self._decided_by_rounding(number, found, expected)
            return self._near(number, found, expected, others, wide)

    def _decided_by_rounding(
        self, number: int, found: np.ndarray, expected: np.ndarray
    ) -> np.ndarray:
        """Where a discrete result is between those seen in more rounds, or of any number of them.

        Those are the truth and the rounds: of numbers that nearly agree more or fewer may be equal.
        """
        values = [m[number] for m in (*self.moved, *self.further)]
        in_order = np.sort([expected, *(v for v in values if v.shape == found.shape)], axis=0)
        different = 1 + (in_order[1:] != in_order[:-1]).sum(axis=0)
        return (different > ROUNDS) | ((in_order[0] <= found) & (found <= in_order[-1]))

    @cached_property
    def further(self) -> list[list[np.ndarray]]:
        """The results of more rounds."""
        with np.errstate(all="ignore"):
            found = [self._changed(_moving(k)) for k in range(ROUNDS, MORE)]
        return [m for m in found if m is not None]

    def _near(
        self, number: int, found: Any, expected: Any, others: list[Any], wide: Any
    ) -> np.ndarray:
        spread = np.max([np.abs(o - expected) for o in others], axis=0)
        units = CLOSE.get(expected.dtype.name, 1e-9)
        limit = 40 * np.where(np.isfinite(spread), spread, 0)
        near = np.abs(found - expected) <= limit
        near |= np.abs(found - wide) <= limit + units * np.abs(wide)
        same_kind = [np.isfinite(o) == np.isfinite(expected) for o in others]
        near |= ~np.all(same_kind, axis=0)  # overflows or not, depending on rounding
        near |= ~np.isfinite(found) & np.any([_alike(found, o) for o in others], axis=0)
        narrow = wide.astype(expected.dtype)
        near |= ~np.isfinite(found) & close(found, narrow)
        # the truth itself overflows, or the result does
        near |= ~close(expected, narrow) & ~(np.isfinite(found) & np.isfinite(expected))
        near |= self._of_underflow(number, found) | self._of_overflow(number, found)
        return near | self._of_equal_eigenvalues(number, found)

    def _of_underflow(self, number: int, found: np.ndarray) -> Any:
        """Where a result is what it is if subnormal numbers underflow: rules allow that."""
        flushed = self.flushed[number]
        return flushed.shape == found.shape and ~np.isfinite(found) & _alike(found, flushed)

    def _of_equal_eigenvalues(self, number: int, found: np.ndarray) -> Any:
        """Where a derivative is not finite, as it is of eigenvalues that are equal."""
        if np.isfinite(found).all():
            return False
        merged = self.merged[number]
        return merged.shape == found.shape and ~np.isfinite(found) & ~np.isfinite(merged)

    def _of_overflow(self, number: int, found: np.ndarray) -> Any:
        """Where a product by 0 has other factors that overflow if they are multiplied first."""
        if np.isfinite(found).all() or self.without_zeros is None:
            return False
        others = self.without_zeros[number]
        return others.shape == found.shape and ~np.isfinite(found) & ~np.isfinite(others)


def _evaluated(change: Any, inputs: Any, values: list[Any], outputs: Any) -> list[Any]:
    """The values of outputs, computed node by node, also inside ops."""
    known = dict(zip(inputs, values))
    for node in missing_nodes(outputs, known):
        if isinstance(node.op, IfElse):
            known.update(zip(node.outputs, (known[x] for x in needed_inputs(node, known))))
            continue
        given = [known[x] for x in node.inputs]
        if isinstance(node.op, Scan):
            found = change.loop(node, given)
        elif isinstance(node.op, InnerGraphOp):
            inner = node.op.expanded  # it contains no such op
            found = _evaluated(change, inner.inputs, given, inner.outputs)
        else:
            found = change.node(node, given)
        known.update(zip(node.outputs, found))
    return [known[v] for v in outputs]


def _of_loop(change: Any, node: Any, given: list[Any]) -> list[Any]:
    """The results of a loop, each step computed node by node."""
    inner = node.op.expanded
    return run_loop(
        node.op.info,
        lambda values: _evaluated(change, inner.inputs, list(values), inner.outputs),
        given,
        lambda k: empty_rows(node, [_narrow(v, x) for v, x in zip(given, node.inputs)])[k],
        lambda group: f"a result of {node.op}",
    )


def _performed(node: Any, values: list[Any]) -> list[Any]:
    """The results of a node as arrays, generators as they are."""
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    node.op.perform(node, values, storage)
    return [x if isinstance(x, np.random.Generator) else np.asarray(x) for (x,) in storage]


def _only_arrays(values: list[Any]) -> list[np.ndarray]:
    return [np.asarray(v) for v in values if not isinstance(v, np.random.Generator)]


def _alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _rounded(wide: np.ndarray, dtype: Any) -> np.ndarray:
    if wide.dtype.kind in "biu":
        return wide.astype(dtype)
    return np.where(np.isfinite(wide), wide, 0).astype(dtype)


class _evaluation:
    """How a graph is evaluated: by ``perform``."""

    def argument(self, value: Any) -> Any:
        return value

    def node(self, node: Any, values: list[Any]) -> list[Any]:
        return run_node(node, values)

    def loop(self, node: Any, given: list[Any]) -> list[Any]:
        return _of_loop(self, node, given)


class _trying_steps(_evaluation):
    """The same; ``fails``: whether a loop runs no step, and one would raise an error of lengths."""

    fails = False

    def loop(self, node: Any, given: list[Any]) -> list[Any]:
        if given[0] == 0:
            try:
                super().loop(node, _with_a_step(node, given))
            except (ShapeError, IndexError, ZeroDivisionError):
                self.fails = True
        return super().loop(node, given)


def _with_a_step(loop: Any, given: list[Any]) -> list[Any]:
    """The inputs of a loop for one more step, on rows of ones."""
    found = list(given)
    for g in groups(loop.op.info):
        value = given[g.outer_input]
        if g.kind in ("n_steps", "nit_sot"):
            found[g.outer_input] = value + 1
        elif g.kind in ("seq", "mit_mot", "mit_sot", "sit_sot"):
            row = np.ones((1, *value.shape[1:]), value.dtype)
            found[g.outer_input] = np.concatenate([value, row])
    return found


def hides_a_step_that_fails(built: Built, arguments: Sequence[Any]) -> bool:
    """Whether some loop runs no step, and a step would fail because lengths do not fit."""
    trying = _trying_steps()
    values = [*map(native, arguments), *built.shared_values]
    _evaluated(trying, [*built.inputs, *built.shared], values, built.results)
    return trying.fails


class _moving(_evaluation):
    """Evaluation with every float moved by about a unit in the last place, seed ``k``."""

    def __init__(self, k: int) -> None:
        self.gen = np.random.default_rng(k)
        self.wild = [np.nan, np.inf, -np.inf, 1.0][k % 4]  # what an overflow within may leave

    def node(self, node: Any, values: list[Any]) -> list[Any]:
        if _rounds_to_integers(node):
            whole = node.op.clone(dtype=node.op.acc_dtype).make_node(*node.inputs)
            return [converted(x, node.outputs[0].type.dtype) for x in self.node(whole, values)]
        found = _performed(node, values)
        if _is_exact(node):
            return found
        inputs = _only_arrays(values)
        within = type(node.op).__name__ in SUMS
        extreme = within and _may_overflow(node.op, inputs, found[0].dtype)
        return [self._move(value, inputs, within, extreme) for value in found]

    def _move(self, value: Any, inputs: list[np.ndarray], within: bool, extreme: bool) -> Any:
        """A result moved.

        ``within``: its op rounds sums of its inputs too; ``extreme``: these may overflow.
        """
        if isinstance(value, np.random.Generator):
            return value
        if value.dtype.kind not in "fc" or not value.size:
            return value
        info = np.finfo(value.dtype)
        moved = value * (1 + info.eps * self._steps(value.shape))
        if within:
            moved = moved + info.eps * self._steps(value.shape) * _largest(inputs)
        small = (np.abs(value) < 64 * info.tiny) & (value != 0)
        units = self.gen.integers(-2, 3, value.shape) * info.smallest_subnormal
        moved = np.where(small, value + units, moved)
        moved = self._overflown(moved, inputs, within, info)
        moved = self._of_any_sign(moved)
        return (np.full_like(moved, self.wild) if extreme else moved).astype(value.dtype)

    def _steps(self, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers from -2 to 2, but not from -1 to 1: smaller moves would be rounded away."""
        return self.gen.uniform(1, 2, shape) * self._signs(shape)

    def _signs(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.gen.choice((-1, 1), shape)

    def _of_any_sign(self, moved: np.ndarray) -> np.ndarray:
        """The same with NaNs of either sign: it is nowhere stated."""
        nan = np.isnan(moved)
        if moved.dtype.kind == "c" or not nan.any():
            return moved
        return np.where(nan, np.copysign(moved, self._signs(moved.shape)), moved)

    def _overflown(self, moved: Any, inputs: list[Any], within: bool, info: Any) -> Any:
        """Values that overflow replaced by such that just do not, and the reverse."""
        some = _where_finite(inputs, moved.shape) & np.isinf(moved.real)
        some &= self.gen.random(moved.shape) < 0.5
        moved = np.where(some, np.sign(moved.real) * info.max * 0.9, moved)
        infinite = any(np.isinf(x).any() for x in inputs if x.dtype.kind in "fc")
        if within and infinite:
            moved = np.where(np.isinf(moved) & (self.gen.random(moved.shape) < 0.5), np.nan, moved)
        return moved


def _where_finite(inputs: list[np.ndarray], shape: tuple[int, ...]) -> Any:
    """Which elements of a result are computed from finite ones: all or none, if it is no map."""
    finite = [np.isfinite(x) for x in inputs if x.dtype.kind in "fc"]
    try:
        return np.logical_and.reduce([np.broadcast_to(x, shape) for x in finite])
    except ValueError:
        return all(x.all() for x in finite)


class _flushing(_evaluation):
    """Evaluation with subnormal floats as 0, as XLA computes on CPU."""

    @staticmethod
    def argument(value: Any) -> Any:
        if isinstance(value, np.random.Generator) or value.dtype.kind not in "fc":
            return value
        tiny = np.finfo(value.dtype).tiny
        if value.dtype.kind == "f":
            return np.where(np.abs(value) < tiny, np.copysign(0, value), value)
        out = value.copy()
        out.real[np.abs(value.real) < tiny] = 0
        out.imag[np.abs(value.imag) < tiny] = 0
        return out

    @classmethod
    def node(cls, node: Any, values: list[Any]) -> list[Any]:
        return [cls.argument(value) for value in _performed(node, values)]


class _without_zeros(_evaluation):
    """Evaluation with 1 in the place of every float that is 0."""

    def argument(self, value: Any) -> Any:
        if isinstance(value, np.random.Generator) or value.dtype.kind not in "fc":
            return value
        return np.where(value == 0, np.ones_like(value), value)

    def node(self, node: Any, values: list[Any]) -> list[Any]:
        return [self.argument(value) for value in _performed(node, values)]


class _merging(_evaluation):
    """Evaluation with eigenvalues that agree but for rounding made equal."""

    def node(self, node: Any, values: list[Any]) -> list[Any]:
        found = _performed(node, values)
        if type(getattr(node.op, "core_op", node.op)).__name__ not in EIGENVALUES:
            return found
        w = found[0].copy()
        near = 64 * np.finfo(w.dtype).eps * np.abs(w).max(axis=-1, initial=0)
        for k in range(1, w.shape[-1]):
            same = np.abs(w[..., k] - w[..., k - 1]) <= near
            w[..., k] = np.where(same, w[..., k - 1], w[..., k])
        return [w, *found[1:]]


def _is_exact(node: Any) -> bool:
    """Whether the results of a node are numbers of its arguments, or minus these."""
    op = node.op.scalar_op if isinstance(node.op, Elemwise) else node.op
    if any(str(getattr(x.type, "dtype", "")).startswith("complex") for x in node.inputs):
        return False  # the magnitude of a complex number is rounded
    return type(op).__name__ in EXACT or getattr(op, "set_instead_of_inc", False)


def _rounds_to_integers(node: Any) -> bool:
    """Whether a reduction accumulates floats, and gives the integers or bools of these."""
    acc = getattr(node.op, "acc_dtype", None)
    if acc is None or not isinstance(node.op, CAReduce):
        return False
    return np.dtype(acc).kind in "fc" and np.dtype(node.outputs[0].type.dtype).kind in "biu"


def _may_overflow(op: Any, inputs: list[np.ndarray], dtype: Any) -> bool:
    """Whether sums or products of some of the inputs' elements may overflow."""
    if dtype.kind not in "fc":
        return False
    largest = float(np.finfo(dtype).max)
    if type(op).__name__ in ("Prod", "ProdWithoutZeros", "CumOp", "Recurrence"):
        sizes = np.abs(inputs[0][np.isfinite(inputs[0])]).astype("float64")
        if np.log2(np.maximum(sizes, 1.0)).sum() > np.log2(largest):
            return True
    many = max([x.size for x in inputs] or [1])
    return _largest(inputs) > largest / (1 + many)


def _largest(inputs: list[np.ndarray]) -> float:
    """The greatest finite magnitude."""
    sizes = [np.abs(x[np.isfinite(x)]).astype("float64") for x in inputs if x.size]
    return max([float(a.max()) for a in sizes if a.size] or [0.0])


class _widening(_evaluation):
    """Evaluation in extended precision, where NumPy has it."""

    @staticmethod
    def argument(value: np.ndarray) -> np.ndarray:
        return _wide(value)

    @staticmethod
    def node(node: Any, values: list[Any]) -> list[Any]:
        values = [_wide(v) for v in values]
        if isinstance(node.op, Elemwise):
            found = _wide_row(node, values)
            if found is not None:
                return [found]
        if _rounds_to_integers(node):
            dtype = np.dtype(node.op.acc_dtype)
            total = node.op.reduce(values[0].astype(_WIDE[dtype.kind]), node.op.axes(node))
            return [converted(np.asarray(total, dtype), node.outputs[0].type.dtype)]
        try:
            found = _performed(node, values)
        except Exception:
            found = _performed(node, [_narrow(v, x) for v, x in zip(values, node.inputs)])
        return [_wide(value) for value in found]


def _wide(value: Any) -> Any:
    if value is None or isinstance(value, np.random.Generator):
        return value
    value = np.asarray(value)
    wide = _WIDE.get(value.dtype.kind)
    return value.astype(wide) if wide else value


def _narrow(value: Any, variable: Any) -> Any:
    """A value as an argument of its own dtype."""
    return value.astype(variable.type.dtype) if isinstance(value, np.ndarray) else value


def _wide_row(node: Any, values: list[Any]) -> Any:
    """A row of the scalar table in extended precision (SciPy's in float64); None if it has none."""
    op = node.op.scalar_op
    kind = np.dtype(node.outputs[0].type.dtype).kind
    if not op.function or len(node.outputs) > 1 or kind not in "fc":
        return None
    wide = _WIDE if op.function.startswith("numpy.") else {"f": "float64", "c": "complex128"}
    cast_to, _ = op.signature([x.type.dtype for x in node.inputs])
    args = [v.astype(wide.get(np.dtype(d).kind, d)) for v, d in zip(values, cast_to)]
    try:
        out = op.nfunc(*args) if op.nin >= 0 else _folded(op.nfunc, args)
    except TypeError:
        return None
    return _wide(np.asarray(out))


def _folded(function: Any, args: list[Any]) -> Any:
    out = args[0]
    for a in args[1:]:
        out = function(out, a)
    return out
