"""Normal form of sums and products.

A chain of additions, subtractions and signs is one sum of ``coefficient * term``; a chain of
multiplications, divisions and integer powers is one product of ``base ** exponent``.  Each is
collected once, at its outermost node: constants are folded, like terms are merged, and terms that
cancel are removed.  The cost is linear in the length of the chain.

Cancellation ignores NaN, infinity and zero (``x - x`` is 0, ``x / x`` is 1, ``0 * x`` is
0): the law of these rules is "finite".  Because floats overflow, ``(x / y) * z`` is not reordered
unless something merges or cancels, and constants are not folded into very large or very small
ones.  A complex number times 2 or -1 may be NaN where ``x + x`` or ``-x`` is infinite, so signs and
repeated terms of complex sums are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import Elemwise, cast, functions
from phintys.tensor.rules.match import (
    applied,
    argument,
    at,
    is_float,
    like,
    literal,
    number,
    scalar_op_name,
    some,
)

ADD, SUB, NEG, MUL = (TABLE[n] for n in ("add", "sub", "neg", "mul"))
DIV, RECIPROCAL, POW, SQR = (TABLE[n] for n in ("true_div", "reciprocal", "pow", "sqr"))

Terms = dict[Variable, complex]
ONE = np.float64(1)


# --------------------------------------------------------------------------------- sums


@rule(
    "a + b - c + ... -> sum of coefficient * term",
    ops=[ADD, SUB, NEG],
    law="finite",
    outermost=True,
    idempotent=True,
    tags=(
        *("local_add_canonizer", "local_sub_neg_to_add", "local_add_remove_zeros"),
        *("local_elemwise_sub_zeros", "flatten_nested_add_mul"),
        *("constant_fold_branches_of_add_mul", "shape_unsafe"),
    ),
    tested_on=(
        "x - y",
        "x + 1 + y + 2",
        "x + x",
        "2 * x + 3 * x",
        "x - x",
        "x + y - x",
        "x + 0",
        "-(x + y)",
        "1 - (x - 2)",
        "x + (y + 1) + (x + 2)",
        "i + 1 - j - i",
    ),
)
def collect_sum(ctx: Context, node: Apply) -> Replacement:
    out = node.outputs[0]
    dtype = out.type.dtype
    kind = dtypes.kind(dtype)
    if kind == "b" or (kind == "c" and node.op.scalar_op is not ADD) or _is_plain_sum(ctx, node):
        return None
    terms: Terms = {}
    total: complex = 0
    changed = scalar_op_name(node) != "add"
    count = 0
    for coefficient, v, nested in _summands(ctx, node):
        count += 1
        changed = changed or nested
        value = number(v)
        if value is not None:
            total = total + coefficient * value
            continue
        changed = changed or v in terms
        terms[v] = terms.get(v, 0) + coefficient
    kept = {v: c for v, c in terms.items() if c != 0}
    if not all(_is_finite(c, dtype) for c in (total, *kept.values())):
        return None
    if kind == "c" and any(c != 1 for c in kept.values()):
        return None
    constants = count - len(terms)
    first = _leading_number(node.inputs[0], dtype)
    tidy = constants == 0 or (constants == 1 and first is not None and first != 0)
    if not changed and len(kept) == len(terms) and tidy:
        return None
    return like(node, build_sum(kept, total, dtype, out.type.ndim))


def _is_finite(c: complex, dtype: str) -> bool:
    """Whether a folded number is finite in a dtype; integers wrap around."""
    if dtypes.is_discrete(dtype):
        return True
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.array(c).astype(dtype)))


def _is_plain_sum(ctx: Context, node: Apply) -> bool:
    """Whether a sum has nothing to collect; a cheap check before `_summands`."""
    if node.op.scalar_op is not ADD:
        return False
    dtype = node.outputs[0].type.dtype
    terms: set[Variable] = set()
    for k, v in enumerate(node.inputs):
        owner = v.owner
        if owner is None:
            if isinstance(v, Constant) and (k or not _leading_number(v, dtype)):
                return False
        elif type(owner.op) is Elemwise:
            inner = owner.op.scalar_op
            if (inner is ADD or inner is SUB or inner is NEG) and ctx.single_use(v):
                return False
            if inner is MUL:
                v = _split_coefficient(1, v, dtype, False)[1]
        terms.add(v)
    return len(terms) == len(node.inputs)


def _leading_number(v: Variable, dtype: str) -> complex | None:
    """The value of a constant in the dtype of the result, else None."""
    return number(v) if v.type.dtype == dtype else None


def _summands(ctx: Context, root: Apply) -> Iterable[tuple[complex, Variable, bool]]:
    """The summands of a chain: (coefficient, term, whether the term comes from a nested node)."""
    dtype = root.outputs[0].type.dtype
    real = dtypes.kind(dtype) != "c"
    stack: list[tuple[complex, Variable, bool]] = [(1, root.outputs[0], True)]
    while stack:
        c, v, inner = stack.pop()
        name = scalar_op_name(v.owner)
        inputs = v.owner.inputs if v.owner is not None else []
        open_ = v is root.outputs[0] or (ctx.single_use(v) and v.type.dtype == dtype)
        nested = v is not root.outputs[0]
        if name == "add" and open_:
            stack += [(c, x, nested) for x in reversed(inputs)]
        elif name == "sub" and open_ and real:
            a, b = inputs
            stack += [(-c, b, True), (c, a, True)]
        elif name == "neg" and open_ and real:
            stack.append((-c, inputs[0], True))
        else:
            yield _split_coefficient(c, v, dtype, inner)


def _split_coefficient(
    c: complex, v: Variable, dtype: str, inner: bool
) -> tuple[complex, Variable, bool]:
    """``c * (k * x)`` as ``(c k) * x``, where ``k * x`` is a product with a constant ``k``."""
    product = applied(v, "mul")
    if product is None or v.type.dtype != dtype or len(product.inputs) != 2:
        return c, v, inner
    if dtypes.kind(dtype) == "c":
        return c, v, inner
    a, x = product.inputs
    k = number(a)
    if k is None or x.type.dtype != dtype or x.type.broadcastable != v.type.broadcastable:
        return c, v, inner
    return c * k, x, inner


def build_sum(terms: Terms, total: complex, dtype: str, ndim: int) -> Variable:
    """``total + sum of coefficient * term``, the constant first."""
    parts: list[Variable] = []
    if total != 0 or not terms:
        parts.append(literal(total, dtype, ndim))
    for v, c in terms.items():
        parts.append(v if c == 1 else functions.mul(literal(c, dtype, v.type.ndim), v))
    return parts[0] if len(parts) == 1 else functions.add(*_computed_in(dtype, parts))


def _computed_in(dtype: str, parts: list[Variable]) -> list[Variable]:
    """The operands, the first one cast if needed, so that they are combined in ``dtype``."""
    if dtypes.upcast(*(v.type.dtype for v in parts)) == dtype:
        return parts
    return [cast(parts[0], dtype), *parts[1:]]


# ------------------------------------------------------------------------------ products


@rule(
    "a * b / c * ... -> coefficient * product of base ** exponent",
    ops=[MUL, DIV, NEG, RECIPROCAL],
    law="finite",
    outermost=True,
    idempotent=True,
    tags=(
        *("local_mul_canonizer", "local_neg_to_mul", "local_reciprocal_canon"),
        *("local_div_by_one", "local_zero_div", "local_mul_zero", "local_mul_pow_to_pow_add"),
        *("flatten_nested_add_mul", "constant_fold_branches_of_add_mul"),
        *("useless_Reciprocal_of_Reciprocal", "shape_unsafe"),
    ),
    tested_on=(
        "-x",
        "x * 1",
        "x * y / x",
        "x * x",
        "x / x",
        "x * 2 * y * 3",
        "(x * 2) / 4",
        "reciprocal(x)",
        "x / y / x",
        "x / (y / x)",
        "x**2 * x",
        "x**3 / x",
        "0 * x",
        "(-x) * (-y)",
        "x * reciprocal(y)",
        "i * 2 * j * 3",
        "-i",
    ),
)
def collect_product(ctx: Context, node: Apply) -> Replacement:
    out = node.outputs[0]
    dtype = out.type.dtype
    kind = dtypes.kind(dtype)
    if kind == "b" or (kind == "c" and node.op.scalar_op is NEG) or _is_plain_product(ctx, node):
        return None
    bases, constants, is_gain = _factors(ctx, node)
    if any(e < 0 and k == 0 for e, k in constants) or not is_gain:
        return None
    factor = _constant_factor(constants)
    folded = len(constants) > 1 or any(e < 0 for e, _ in constants)
    if folded and not _is_moderate(factor, dtype) and all(k != 0 for _, k in constants):
        return None
    if factor == 0:
        bases = {}
    kept = [(e, v) for v, e in bases.items() if e]
    if _is_normal(ctx, node, kept, factor):
        return None
    return like(node, build_product(kept, factor, dtype, out.type.ndim))


@rule(
    "c * a * d * ... -> (c d) * a * ..., 1 * a -> a",
    ops=[MUL],
    law="rounding",
    idempotent=True,
    tags=("local_mul_canonizer", "shape_unsafe"),
    tested_on=("1 * (x / y) * z", "x / y * (z * 1)", "x / y * mul(2, z, 3)", "mul(i, 2, j, 3)"),
)
def collect_constants(ctx: Context, node: Apply) -> Replacement:
    out = node.outputs[0]
    dtype = out.type.dtype
    constants = [k for v in node.inputs if (k := number(v)) is not None]
    if dtypes.kind(dtype) in "bc" or not (len(constants) > 1 or 1 in constants):
        return None
    factor = _constant_factor([(1, k) for k in constants])
    if not _is_moderate(factor, dtype):
        return None
    kept = [(1, v) for v in node.inputs if number(v) is None]
    return like(node, build_product(kept, factor, dtype, out.type.ndim))


@rule(
    "(x * y + x * z) / x -> y + z",
    ops=[DIV],
    where=at(0, "add"),
    law="finite",
    tags=("local_greedy_distributor", "shape_unsafe"),
    tested_on=("(x * y + x * z) / x", "(x * y + x) / x", "(x * y * z + 2 * x * z) / (x * z)"),
)
def divide_terms(ctx: Context, node: Apply) -> Replacement:
    """A divisor that is a factor of every term is cancelled."""
    top, below = node.inputs
    dtype = node.outputs[0].type.dtype
    total = applied(top, "add")
    if total is None or top.type.dtype != dtype or below.type.dtype != dtype:
        return None
    terms = [_factors_of(v) for v in total.inputs]
    left = []
    for v in _factors_of(below):
        if all(v in term for term in terms) and number(v) is None:
            for term in terms:
                term.remove(v)
        else:
            left.append(v)
    if len(left) == len(_factors_of(below)):
        return None
    ndim = node.outputs[0].type.ndim
    found = functions.add(*(_product_of(term, dtype, ndim) for term in terms))
    if left:
        found = functions.true_div(found, _product_of(left, dtype, ndim))
    return like(node, found)


def _factors_of(v: Variable) -> list[Variable]:
    product = applied(v, "mul")
    inner = [v] if product is None or v.type.dtype in dtypes.DISCRETE else product.inputs
    return [v] if any(x.type.dtype != v.type.dtype for x in inner) else [*inner]


def _product_of(factors: list[Variable], dtype: str, ndim: int) -> Variable:
    if len(factors) > 1:
        return functions.mul(*factors)
    return factors[0] if factors else literal(1, dtype, ndim)


@rule(
    "x * (y / x + z) -> y + x * z",
    ops=[MUL],
    where=some("add", "true_div"),
    law="finite",
    phase="stabilize",
    tags=("local_greedy_distributor", "local_logsoftmax_grad", "shape_unsafe"),
    tested_on=("x * (y / x + z)", "(y / x + z / y) * (x * y)"),
)
def cancel_in_terms(ctx: Context, node: Apply) -> Replacement:
    """Quotients in a sum that is multiplied by their divisors; also one that is used elsewhere.

    So the derivatives of logarithms of softmax and sigmoid are finite where these are 0.
    """
    dtype, ndim = node.outputs[0].type.dtype, node.outputs[0].type.ndim
    factors = [f for v in node.inputs for f in _factors_of(v)]
    if dtypes.is_discrete(dtype) or any(f.type.dtype != dtype for f in factors):
        return None
    for k, factor in enumerate(factors):
        total = applied(factor, "add")
        if total is not None and not ctx.single_use(factor):
            continue
        addends = [factor] if total is None else total.inputs
        if not any(applied(v, "true_div") for v in addends):
            continue  # before a list is made: there may be thousands of factors
        others = factors[:k] + factors[k + 1 :]
        terms = [_cancelled(t, others) for t in addends]
        gained = sum(len(others) - len(left) for _, left, _ in terms)
        if gained and len(terms) * len(others) <= len(others) + 2 * gained:
            parts = [_product_of([*top, *left], dtype, ndim) for top, left, _ in terms]
            belows = [below for _, _, below in terms]
            found = [
                functions.true_div(part, _product_of(below, dtype, ndim)) if below else part
                for part, below in zip(parts, belows)
            ]
            return like(node, functions.add(*found) if len(found) > 1 else found[0])
    return None


def _cancelled(
    term: Variable, factors: list[Variable]
) -> tuple[list[Variable], list[Variable], list[Variable]]:
    """A quotient times some factors: its dividend, the factors and divisors that are left."""
    quotient = applied(term, "true_div")
    if quotient is None or any(v.type.dtype != term.type.dtype for v in quotient.inputs):
        return [term], factors, []
    top, divisor = quotient.inputs
    left, below = list(factors), []
    for v in _factors_of(divisor):
        if v in left and number(v) is None:
            left.remove(v)
        else:
            below.append(v)
    return [top], left, below


@rule(
    "abs(2 * x) -> 2 * abs(x)",
    "abs(mul(c, *factors))",
    given={"c": lambda v: is_float(v) and number(v) is not None},
    law="rounding",
    tags=("local_abs_mul_unit", "local_abs_lift"),
    tested_on=("abs(2 * x)", "abs(-3 * x * y)"),
)
def coefficient_of_abs(node: Apply, c: Variable, factors: Sequence[Variable]) -> Replacement:
    inner = factors[0] if len(factors) == 1 else functions.mul(*factors)
    out = node.outputs[0].type
    if inner.type.dtype != out.dtype or number(c) == -1:
        return None  # an even function: another rule drops the sign
    return like(
        node, functions.mul(literal(abs(number(c)), out.dtype, out.ndim), functions.abs(inner))
    )


@rule(
    "sign(2 * x) -> sign(x), sign(-2 * x) -> -1 * sign(x)",
    "sign(mul(c, *factors))",
    given={"c": lambda v: is_float(v) and number(v) is not None},
    law="rounding",
    tags=("local_useless_sign", "local_sign_unit"),
    tested_on=("sign(2 * x)", "sign(-3 * x * y)", "sign(-x)"),
)
def coefficient_of_sign(node: Apply, c: Variable, factors: Sequence[Variable]) -> Replacement:
    known = number(c)
    inner = factors[0] if len(factors) == 1 else functions.mul(*factors)
    out = node.outputs[0].type
    if not known or not np.isfinite(known) or inner.type.dtype != out.dtype:
        return None
    factor = literal(np.sign(known), out.dtype, out.ndim)
    return like(node, functions.mul(factor, functions.sign(inner)))


@rule(
    "abs(x) * abs(y) -> abs(x * y)",
    ops=[MUL, DIV],
    where=some("abs"),
    phase="specialize",
    law="rounding",
    tags=("local_abs_merge",),
    tested_on=("abs(x) * abs(y)", "abs(x) / abs(y)", "mul(abs(x), abs(y), abs(z))"),
)
def merge_abs(ctx: Context, node: Apply) -> Replacement:
    """Applies to absolute values of floats that have no other use."""
    dtype = node.outputs[0].type.dtype
    inner = [argument(v, "abs") if ctx.single_use(v) else None for v in node.inputs]
    found = [x for x in inner if x is not None and is_float(x) and x.type.dtype == dtype]
    if len(found) < max(2, len(inner)):
        return None
    return like(node, functions.abs(node.op(*found)))


#: Scalar ops whose operands are collected as factors.
COMPOUND = frozenset(("mul", "true_div", "neg", "reciprocal"))
POWERS = frozenset(("pow", "sqr"))


def _is_plain_product(ctx: Context, node: Apply) -> bool:
    """Whether a product has nothing to collect; a cheap check before `_factors`."""
    if node.op.scalar_op is not MUL:
        return False
    bases: set[Variable] = set()
    for k, v in enumerate(node.inputs):
        owner = v.owner
        if owner is None:
            if isinstance(v, Constant):
                value = _leading_number(v, node.outputs[0].type.dtype)
                if k or value is None or value == 0 or value == 1:
                    return False
        elif type(owner.op) is Elemwise:
            inner = owner.op.scalar_op.name
            if inner in COMPOUND and ctx.single_use(v):
                return False
            v = owner.inputs[0] if inner in POWERS else v
        if v in bases:
            return False
        bases.add(v)
    return True


def _constant_factor(constants: list[tuple[int, complex]]) -> complex:
    """The product of powers of numbers; floats overflow to infinity, integers do not."""
    factor: complex = 1
    rest: list[tuple[int, complex]] = []
    for e, k in constants:
        if e == 1 and isinstance(k, float | int):
            factor = factor * k
        else:
            rest.append((e, k))
    if rest:
        with np.errstate(all="ignore"):
            for e, k in rest:
                factor = factor * (k**e if isinstance(k, int) and e > 0 else (k * ONE) ** e)
    return factor


def _is_moderate(k: complex, dtype: str) -> bool:
    """Whether a folded number is far from overflow and underflow in its dtype."""
    if dtypes.is_discrete(dtype):
        return True
    info = np.finfo(dtype)
    return bool(info.tiny**0.5 <= abs(k) <= info.max**0.5)


def _same_number(a: complex, b: complex) -> bool:
    """Whether two numbers are equal, NaN being equal to itself."""
    return bool(a == b or (a != a and b != b))


def _is_normal(
    ctx: Context, node: Apply, kept: list[tuple[int, Variable]], factor: complex
) -> bool:
    """Whether ``node`` has the form that `build_product` would build."""
    name = scalar_op_name(node)
    if name not in ("mul", "true_div"):
        return False
    above = _multiplied(ctx, node.outputs[0] if name == "mul" else node.inputs[0], node)
    below = _multiplied(ctx, node.inputs[1], node) if name == "true_div" else []
    if below and not any(e < 0 for e, _ in kept):
        return False
    first = _leading_number(above[0], node.outputs[0].type.dtype)
    one_over = factor == 1 and name == "true_div" and first == 1 and len(above) == 1
    needed = 1 if one_over or factor != 1 else 0
    if needed and (first is None or not _same_number(first, factor)):
        return False
    own = [_split_power(1, v) for v in above if number(v) is None]
    own += [_split_power(-1, v) for v in below]
    constants = sum(number(v) is not None for v in (*above, *below))
    return constants == needed and own == kept


def _multiplied(ctx: Context, v: Variable, root: Apply) -> list[Variable]:
    """The factors of a product that only ``root`` uses; else the variable itself, in a list."""
    alone = v.owner is root or (ctx.single_use(v) and v.type.dtype == root.outputs[0].type.dtype)
    product = applied(v, "mul") if alone else None
    return [v] if product is None else list(product.inputs)


#: How many products and quotients of a chain are collected at once.  Where nothing can be gained
#: each of them is tried, so without a limit the time would be quadratic.
MOST_OPENED = 32


def _factors(
    ctx: Context, root: Apply
) -> tuple[dict[Variable, int], list[tuple[int, complex]], bool]:
    """The factors of the chain that ends at ``root``, and whether to rebuild it as one product.

    The factors are the exponents of the bases, and (exponent, number) pairs.  A product in another
    order may overflow, so the order is only changed where something merges or folds.
    """
    dtype = root.outputs[0].type.dtype
    kind = dtypes.kind(dtype)
    real = kind in "fc"
    bases: dict[Variable, int] = {}
    constants: list[tuple[int, complex]] = []
    opened = 0
    reorders = merges = False
    # exponent, variable, whether it is the first factor of its product
    stack: list[tuple[int, Variable, bool]] = [(1, root.outputs[0], True)]
    while stack:
        e, v, leads = stack.pop()
        name = scalar_op_name(v.owner)
        inputs = v.owner.inputs if v.owner is not None else []
        single = opened < MOST_OPENED and v.type.dtype == dtype and ctx.single_use(v)
        if name not in COMPOUND or not (v.owner is root or single):
            name = None
        opened += name is not None
        if name == "mul" and (real or e > 0):
            reorders = reorders or not leads
            stack += [(e, x, False) for x in reversed(inputs[1:])]
            stack.append((e, inputs[0], leads))
        elif name == "true_div" and real:
            reorders = reorders or v.owner is not root
            stack += [(-e, inputs[1], True), (e, inputs[0], True)]
        elif name == "reciprocal" and real:
            stack.append((-e, inputs[0], True))
        elif name == "neg" and kind != "c":
            stack.append((e, inputs[0], leads))
            constants += [(1, -1)] if e % 2 else []
        elif (k := number(v)) is not None:
            constants.append((e, k))
        else:
            e, v = _split_power(e, v)
            merges = merges or v in bases
            bases[v] = bases.get(v, 0) + e
    folds = len(bases) <= 2 and (len(constants) > 1 or (1, 1) in constants)
    is_gain = not real or merges or not reorders or folds
    return bases, constants, is_gain or any(k == 0 for _, k in constants)


def _split_power(e: int, v: Variable) -> tuple[int, Variable]:
    """``(e, v)``, or ``(k e, x)`` where ``v`` is ``x ** k`` for an integer k and inexact x."""
    name = scalar_op_name(v.owner)
    if name not in ("sqr", "pow") or v.owner is None:
        return e, v
    base = v.owner.inputs[0]
    same = base.type == v.type and dtypes.kind(v.type.dtype) in "fc"
    k = 2 if name == "sqr" else number(v.owner.inputs[1])
    if not same or k is None or k.imag or not float(k.real).is_integer() or abs(k) >= 64:
        return e, v
    return e * int(k.real), base


def build_product(
    bases: list[tuple[int, Variable]], factor: complex, dtype: str, ndim: int
) -> Variable:
    """``factor * product of base ** exponent``: the constant first, one division at most."""
    above = [power(v, e, dtype) for e, v in bases if e > 0]
    below = [power(v, -e, dtype) for e, v in bases if e < 0]
    if factor != 1 or not above:
        above.insert(0, literal(factor, dtype, ndim))
    if below or len(above) > 1:
        above = _computed_in(dtype, above)
    top = above[0] if len(above) == 1 else functions.mul(*above)
    if not below:
        return top
    if len(below) > 1:
        below = [functions.mul(*_computed_in(dtype, below))]
    return functions.true_div(top, below[0])


def power(v: Variable, e: int, dtype: str) -> Variable:
    """``v ** e`` for a positive integer ``e``; computed in ``dtype`` unless ``e`` is 1."""
    if e == 1:
        return v
    v = cast(v, dtype)
    if e == 2:
        return functions.sqr(v)
    return functions.pow(v, literal(e, v.type.dtype, v.type.ndim))
