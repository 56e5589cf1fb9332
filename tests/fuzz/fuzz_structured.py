"""How arguments of structured functions are drawn: those that must fit each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from fuzz_draw import Drawer, Item
from fuzz_functions import Text, draws
from fuzz_values import INTEGERS

# -------------------------------------------------------------------------------- views


@draws("dimshuffle")
def _dimshuffle(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: i.ndim <= 3)
    kept = [k for k in range(x.ndim) if x.static[k] != 1 or g.chance(0.6)]
    pattern: list[Any] = g.rng.sample(kept, len(kept))
    for _ in range(g.choice((0, 0, 1, 2))):
        pattern.insert(g.rng.randrange(len(pattern) + 1), "x")
    return f"pt.dimshuffle({x.name}, {', '.join(map(repr, pattern))})" if pattern else None


@draws("transpose")
def _transpose(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    if g.chance(0.5):
        return f"{x.name}.T"
    return f"pt.transpose({x.name}, {g.rng.sample(range(x.ndim), x.ndim)})"


@draws("expand_dims")
def _expand_dims(g: Drawer, name: str) -> Text:
    x = g.item()
    return f"pt.expand_dims({x.name}, {g.rng.randrange(-x.ndim - 1, x.ndim + 1)})"


@draws("squeeze", "specify_broadcastable", "unbroadcast")
def _squeeze(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: 1 in i.shape)
    axes = [k for k, n in enumerate(x.shape) if n == 1]
    if name == "squeeze" and g.chance(0.3):
        axes = [k for k, n in enumerate(x.static) if n == 1]
        return f"pt.squeeze({x.name})" if len(axes) == x.shape.count(1) else None
    return f"pt.{name}({x.name}, {g.choice(axes)})"


@draws("shape_padaxis")
def _pad_axis(g: Drawer, name: str) -> Text:
    x = g.item()
    return f"pt.shape_padaxis({x.name}, {g.rng.randrange(-x.ndim - 1, x.ndim + 1)})"


@draws("atleast_Nd", "atleast_1d", "bartlett")
def _at_least(g: Drawer, name: str) -> Text:
    if name == "bartlett":
        return f"pt.bartlett({g.integer(g.size())})"
    if name == "atleast_1d":
        return f"pt.atleast_1d({g.item(ndim=0).name})"
    return f"pt.atleast_Nd({g.item().name}, n={g.rng.randrange(1, 4)}, left={g.chance(0.5)})"


@draws("reshape")
def _reshape(g: Drawer, name: str) -> Text:
    x = g.item()
    shape = list(factors(g, x.value.size))
    texts = [g.integer(n) for n in shape]
    if shape and g.chance(0.4):
        k = g.rng.randrange(len(shape))
        if math.prod(shape[:k] + shape[k + 1 :]):
            texts[k] = "-1"
    return f"pt.reshape({x.name}, ({''.join(t + ', ' for t in texts)}))"


def factors(g: Drawer, size: int) -> list[int]:
    """A random shape of that many elements."""
    if size == 0:
        shape = [g.choice((0, 2, 3)) for _ in range(g.rng.randrange(3))]
        shape.insert(g.rng.randrange(len(shape) + 1), 0)
        return shape
    shape = []
    while size > 1 and len(shape) < 3 and g.chance(0.7):
        divisors = [d for d in range(1, min(size, 100) + 1) if size % d == 0]
        shape.append(g.choice(divisors))
        size //= shape[-1]
    if size > 1 or g.chance(0.3):
        shape.append(size)
    g.rng.shuffle(shape)
    return shape


@draws("specify_shape")
def _specify_shape(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    known = [str(n) if g.chance(0.5) else "None" for n in x.shape]
    return f"pt.specify_shape({x.name}, ({''.join(k + ', ' for k in known)}))"


@draws("shape", "shape_tuple", "broadcast_shape")
def _shape(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    k = g.rng.randrange(x.ndim)
    if name == "shape":
        return f"pt.shape({x.name})" if g.chance(0.6) else f"{x.name}.shape[{k}]"
    if name == "broadcast_shape":
        y = g.like(x.shape)
        return f"pt.as_tensor(pt.broadcast_shape({x.name}, {y.name})[{k}])"
    return f"pt.as_tensor(pt.shape_tuple({x.name})[{k}])"


@draws("scalar_from_tensor", "tensor_from_scalar")
def _scalar(g: Drawer, name: str) -> Text:
    return f"pt.tensor_from_scalar(pt.scalar_from_tensor({g.item(ndim=0).name}))"


# ----------------------------------------------------------------------------- creation


@draws("alloc", "full", "zeros", "ones", "broadcast_to")
def _alloc(g: Drawer, name: str) -> Text:
    if name in ("zeros", "ones"):
        dtype = f", dtype={g.dtype()!r}" if g.chance(0.5) else ""
        return f"pt.{name}({g.lengths(g.shape())}{dtype})"
    x = g.item(lambda i: i.value.size < 200)
    shape = [*g.shape(g.choice((0, 1, 1, 2)))]
    shape += [g.size() if n == 1 and s == 1 else n for n, s in zip(x.shape, x.static)]
    if name == "alloc":
        return f"pt.alloc({', '.join([x.name, *map(g.integer, shape)])})"
    if name == "full":
        dtype = f", dtype={g.dtype()!r}" if x.kind in "biu" and g.chance(0.3) else ""
        return f"pt.full({g.lengths(shape)}, {x.name}{dtype})"
    return f"pt.broadcast_to({x.name}, {g.lengths(shape)})"


@draws("arange")
def _arange(g: Drawer, name: str) -> Text:
    n, start, step = g.size(), g.rng.randrange(-3, 6), g.choice((1, 1, 2, 3, -1, -2))
    dtype = f", dtype={g.dtype()!r}" if g.chance(0.2) else ""
    if "bool" in dtype or "uint" in dtype:
        dtype = ""
    if g.chance(0.5):
        return f"pt.arange({g.integer(n)}{dtype})"
    stop = start + n * step + g.choice((0, 0, 1))
    return f"pt.arange({g.integer(start)}, {g.integer(stop)}, {g.integer(step)}{dtype})"


@draws("eye", "tri")
def _eye(g: Drawer, name: str) -> Text:
    n, m, k = g.size(), g.size(), g.rng.randrange(-2, 3)
    if n * m > 1500:
        return None
    return f"pt.{name}({g.integer(n)}, {g.integer(m)}, {g.integer(k)}, dtype={g.dtype()!r})"


@draws("linspace", "geomspace", "logspace")
def _spaced(g: Drawer, name: str) -> Text:
    if g.chance(0.3):
        x = g.item(lambda i: i.value.size < 50, kinds="f")
        axis = f", axis={g.rng.randrange(-x.ndim - 1, x.ndim + 1)}"
        count = g.choice((1, 2, 5))
        return f"pt.{name}(abs({x.name}) + 0.5, {g.choice(('2', '1.5'))}, {count}{axis})"
    dtype = g.choice(("", "", ", dtype='float32'", ", dtype='complex128'"))
    return f"pt.{name}(0.5, 1.5, {g.choice((1, 2, 5, 17))}, endpoint={g.chance(0.5)}{dtype})"


@draws("one_hot", "to_one_hot")
def _one_hot(g: Drawer, name: str) -> Text:
    n = g.rng.randrange(1, 6)
    dtype = f", dtype={g.dtype()!r}" if g.chance(0.5) else ""
    return f"pt.{name}({positions(g, n, unsigned=True)}, {n}{dtype})"


# --------------------------------------------------------------------------------- join


def _agreeing(g: Drawer, x: Item, axis: int) -> str:
    """An item of the same shape except along an axis."""
    axis %= x.ndim

    def fits(i: Item) -> bool:
        return i.ndim == x.ndim and all(
            n == m for k, (n, m) in enumerate(zip(i.shape, x.shape)) if k != axis
        )

    def make() -> Item:
        shape = [g.size() if k == axis else n for k, n in enumerate(x.shape)]
        return g.input(x.value.dtype.name if g.chance(0.7) else g.dtype(), tuple(shape))

    return g.item(fits, make=make).name


@draws("concatenate", "join", "concat_with_broadcast")
def _concatenate(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    axis = g.axis(x.ndim)
    parts = [x.name] + [_agreeing(g, x, axis) for _ in range(g.rng.randrange(1, 3))]
    if g.chance(0.2):
        parts.append(parts[0])
    if name == "join":
        return f"pt.join({axis}, {', '.join(parts)})"
    return f"pt.{name}([{', '.join(parts)}], axis={axis})"


@draws("stack")
def _stack(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: i.ndim <= 3)
    others = [
        g.item(lambda i: i.shape == x.shape, make=lambda: g.input(g.dtype(), x.shape)).name
        for _ in range(g.rng.randrange(0, 3))
    ]
    axis = g.rng.randrange(-x.ndim - 1, x.ndim + 1)
    return f"pt.stack([{', '.join([x.name, *others])}], axis={axis})"


@draws("horizontal_stack", "vertical_stack")
def _stack_matrices(g: Drawer, name: str) -> Text:
    x = g.item(ndim=2)
    return f"pt.{name}({x.name}, {_agreeing(g, x, 1 if name[0] == 'h' else 0)})"


@draws("split")
def _split(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    axis = g.axis(x.ndim)
    n = x.shape[axis]
    first = g.rng.randrange(n + 1)
    sizes = [first, n - first]
    given = f"[{g.integer(first)}, {g.integer(n - first)}]" if g.chance(0.7) else f"{sizes}"
    return f"pt.split({x.name}, {given}, n_splits=2, axis={axis})[{g.rng.randrange(2)}]"


@draws("tile")
def _tile(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: i.value.size < 400)
    reps = [g.choice((0, 1, 2, 3)) for _ in range(g.rng.randrange(1, max(x.ndim, 1) + 2))]
    return f"pt.tile({x.name}, {g.lengths(reps)})"


@draws("repeat")
def _repeat(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: i.value.size < 800, least=1)
    axis = g.axis(x.ndim)
    if g.chance(0.6):
        return f"pt.repeat({x.name}, {g.integer(g.rng.randrange(0, 4))}, axis={axis})"
    n = x.shape[axis]

    def fits(i: Item) -> bool:
        return i.shape == (n,) and bool((i.value >= 0).all() and (i.value < 5).all())

    def make() -> Item:
        return g.input(g.choice(INTEGERS), (n,), [g.rng.randrange(4) for _ in range(n)])

    return f"pt.repeat({x.name}, {g.item(fits, 'iu', make=make).name}, axis={axis})"


# ----------------------------------------------------------------------------- products


@draws("dot", "dense_dot", "matmul")
def _dot(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: i.ndim <= 2 or name == "matmul", least=1)
    n = x.shape[-1]

    def fits(i: Item) -> bool:
        most = 2 if name != "matmul" or x.ndim > 2 else 3
        return 1 <= i.ndim <= most and i.shape[max(i.ndim - 2, 0)] == n

    def make() -> Item:
        return g.input(x.value.dtype.name, (n, g.size()) if g.chance(0.6) else (n,))

    y = g.item(fits, make=make)
    return f"pt.{name}({x.name}, {y.name})"


@draws(
    "matvec", "vecmat", "vecdot", "batched_dot", "tensordot", "outer", "inner",
    "batched_tensordot",
)  # fmt: skip
def _products(g: Drawer, name: str) -> Text:
    b, n, m, p = (g.size() for _ in range(4))
    if n * m * b * p > 20000:
        return None
    shapes = {
        "matvec": ((n, m), (m,)),
        "vecmat": ((n,), (n, m)),
        "vecdot": ((b, n), (b, n)),
        "batched_dot": ((b, n, m), (b, m, p)),
        "tensordot": ((n, m, p), (m, p, b)),
        "outer": ((n,), (m,)),
        "inner": ((n, m), (p, m)),
        "batched_tensordot": ((b, n, m), (b, m, n)),
    }[name]
    x, y = (factor(g, s) for s in shapes)
    if name == "tensordot" and g.chance(0.5):
        axes = g.choice(("[[2, 1], [1, 0]]", "[[1, 2], [0, 1]]", "[[], []]", "0"))
        return f"pt.tensordot({x}, {y}, axes={axes})"
    if name == "batched_tensordot":
        axes = g.choice(("1", "[[1, 2], [2, 1]]", "[[2], [1]]"))
        return f"pt.batched_tensordot({x}, {y}, axes={axes})"
    return f"pt.{name}({x}, {y})"


def factor(g: Drawer, shape: tuple[int, ...]) -> str:
    """Text of a factor of a product; all dtypes, common ones of products more often."""
    dtype = g.choice(("float64", "float32", "int64", "complex128", "", ""))
    return g.item(lambda i: i.shape == shape, make=lambda: g.input(dtype or g.dtype(), shape)).name


@draws("einsum")
def _einsum(g: Drawer, name: str) -> Text:
    """Random subscripts: operands may share letters, repeat one, and have an ellipsis."""
    letters = {c: g.size() for c in "abcd"[: g.choice((1, 2, 3, 3, 4))]}
    if math.prod(letters.values()) > 20000:
        return None
    terms = [
        "".join(g.choice(list(letters)) for _ in range(g.choice((1, 2, 2, 3))))
        for _ in range(g.choice((1, 2, 2, 2, 3)))
    ]
    used = sorted(set("".join(terms)))
    operands = [factor(g, tuple(letters[c] for c in term)) for term in terms]
    found = g.rng.sample(used, g.rng.randrange(len(used) + 1))
    if g.chance(0.2):  # the last axes by an ellipsis
        terms = [term[:-1] + "..." if k == 0 else term for k, term in enumerate(terms)]
        found = [c for c in found if c in "".join(terms)]
        return f"pt.einsum('{','.join(terms)}->{''.join(found)}...', {', '.join(operands)})"
    result = "" if g.chance(0.15) else "->" + "".join(found)
    return f"pt.einsum('{','.join(terms)}{result}', {', '.join(operands)})"


@draws("vectorize")
def _vectorize(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: i.ndim <= 3, kinds="f", least=2)
    inner = g.choice(("pt.softmax(a)", "a[::-1] * 2", "pt.cumsum(a)", "a - a.max()", "pt.sort(a)"))
    return f"pt.vectorize(lambda a: {inner}, signature='(i)->(i)')({x.name})"


@draws("max_and_argmax")
def _max_and_argmax(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    flags = f"axis={g.axis(x.ndim)}, keepdims={g.chance(0.3)}"
    return f"pt.max_and_argmax({x.name}, {flags})[{g.rng.randrange(2)}]"


@draws("nonzero", "nonzero_values", "flatnonzero")
def _nonzero(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    if name == "nonzero" and g.chance(0.3):
        return f"pt.nonzero({x.name}, return_matrix=True)"
    part = f"[{g.rng.randrange(x.ndim)}]" if name == "nonzero" else ""
    return f"pt.{name}({x.name}){part}"


@draws("ceil_intdiv")
def _ceil_intdiv(g: Drawer, name: str) -> Text:
    x = g.item(kinds="iu")
    return f"pt.ceil_intdiv({x.name}, {g.choice((1, 2, 3))})"


@draws("power")
def _power(g: Drawer, name: str) -> Text:
    return f"pt.power({g.item(kinds='f').name}, {g.choice((2, 3, 0.5, -1))})"


# ----------------------------------------------------------------------------- indexing


def position(g: Drawer, n: int) -> str:
    """Text of one position in an axis, negative ones too."""
    return g.integer(g.rng.randrange(-n, n))


def positions(g: Drawer, n: int, unsigned: bool = False, shape: Any = None) -> str:
    """Text of an array of positions in an axis of length ``n``."""
    shape = shape if shape is not None else g.choice(((2,), (3,), (2, 2), (0,), (1,), (17,), ()))
    if n == 0:
        shape = (0,)

    def fits(i: Item) -> bool:
        least = 0 if unsigned else -n
        return i.shape == shape and bool(((i.value >= least) & (i.value < n)).all())

    def make() -> Item:
        dtype = g.choice(INTEGERS)
        least = 0 if dtype[0] == "u" or unsigned else -n
        top = min(n, 100)
        drawn = [g.rng.randrange(max(least, -100), top) for _ in range(math.prod(shape))]
        return g.input(dtype, shape, np.reshape(drawn, shape))

    if g.chance(0.12) and len(shape) == 1:
        dtype = g.choice(INTEGERS)
        return f"pt.zeros(({g.integer(shape[0])},), dtype={dtype!r})"
    if g.chance(0.12) and n and len(shape) == 1:
        drawn = [g.rng.randrange(-n if not unsigned else 0, n) for _ in range(shape[0])]
        if g.chance(0.3) and drawn:
            return str(drawn)
        fitting = [
            d for d in INTEGERS if all(np.iinfo(d).min <= i <= np.iinfo(d).max for i in drawn)
        ]
        return f"np.array({drawn}, {g.choice(fitting)!r})"
    return g.item(fits, "iu", ndim=len(shape), make=make).name


def slice_text(g: Drawer, n: int) -> str:
    """Text of a slice; its bounds may be beyond the ends."""

    def bound() -> str:
        return "" if g.chance(0.4) else g.integer(g.rng.randrange(-n - 2, n + 3))

    step = g.choice(("", "", "", ":2", ":-1", ":-1", ":-2", ":3", "computed"))
    if step == "computed":
        step = ":" + g.integer(g.choice((1, 2, -1)))
    return f"{bound()}:{bound()}{step}"


def key(g: Drawer, x: Item, advanced: bool) -> str | None:
    """Text of an index into an item."""
    parts = []
    array = g.rng.randrange(x.ndim) if advanced and x.ndim else -1
    shared_shape = g.choice(((2,), (3,), (2, 2), (0,), (17,)))
    for axis, n in enumerate(x.shape[: g.rng.randrange(max(array + 1, 1), x.ndim + 1)]):
        way = g.rng.random()
        if axis == array or (advanced and way < 0.2):
            if n == 0:
                shared_shape = (0,)
            parts.append(positions(g, n, shape=shared_shape))
        elif n and way < 0.5:
            parts.append(position(g, n))
        elif way < 0.9:
            parts.append(slice_text(g, n))
        else:
            parts.append(":")
    if g.chance(0.1):
        parts.insert(g.rng.randrange(len(parts) + 1), "None")
    if g.chance(0.08):
        parts.insert(0, "...")
    return ", ".join(parts)


def mask_key(g: Drawer, x: Item) -> str:
    """Text of a boolean index into the first axis or axes."""
    shape = x.shape[: g.rng.randrange(1, x.ndim + 1)]
    made = g.item(lambda i: i.shape == shape, "b", make=lambda: g.input("bool", shape))
    return made.name


def any_key(g: Drawer, x: Item) -> str | None:
    """Text of any kind of index."""
    way = g.rng.random()
    if way < 0.1:
        mask = mask_key(g, x)
        taken = g.known[g.names[mask]].ndim
        if taken == x.ndim or g.chance(0.7):
            return mask
        return f"{mask}, {slice_text(g, x.shape[taken])}"
    if way < 0.13:
        bounds = ", ".join(g.integer(g.rng.randrange(-4, 5)) for _ in range(2))
        return f"pt.make_slice({bounds}, {g.choice(('None', '1', '2', '-1'))})"
    return key(g, x, advanced=way < 0.45)


def read(g: Drawer) -> Text:
    """``x[key]``."""
    x = g.item(least=1)
    k = any_key(g, x)
    return f"{x.name}[{k}]" if k else None


@draws("set_subtensor", "inc_subtensor")
def write(g: Drawer, name: str) -> Text:
    """``x[key]`` set or increased."""
    x = g.item(least=1)
    k = any_key(g, x)
    if not k:
        return None
    try:
        part = x.value[eval(f"np.s_[{k}]", g.arrays)]
    except Exception:
        part = np.zeros(())
    y = g.choice(("0", "1", "2")) if g.chance(0.25) else g.like(part.shape).name
    if y.isidentifier() and np.asarray(g.known[g.names[y]]).dtype != x.value.dtype:
        y = f"pt.cast({y}, {x.value.dtype.name!r})"
    helper = "changed" if name == "set_subtensor" else "increased"
    check = f"{helper}({x.name}, np.s_[{k}], {y})"
    return f"pt.{name}({x.name}[{k}], {y})", check


@draws("take")
def _take(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    axis = g.choice((None, g.axis(x.ndim)))
    n = x.value.size if axis is None else x.shape[axis]
    mode = g.choice(("raise", "wrap", "clip"))
    reach = n if mode == "raise" or not n else 2 * n
    at = positions(g, reach) if g.chance(0.7) else position(g, reach) if reach else None
    if at is None or (n == 0 and mode != "raise"):
        return None
    return f"pt.take({x.name}, {at}, axis={axis}, mode={mode!r})"


@draws("take_along_axis")
def _take_along_axis(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: 0 not in i.shape, least=1)
    axis = g.axis(x.ndim)
    if g.chance(0.5):
        return f"pt.take_along_axis({x.name}, pt.argsort({x.name}, axis={axis}), axis={axis})"
    at = positions(g, x.shape[axis], shape=x.shape)
    return f"pt.take_along_axis({x.name}, {at}, axis={axis})"


@draws("compress")
def _compress(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    axis = g.axis(x.ndim)
    shape = (x.shape[axis],)
    c = g.item(lambda i: i.shape == shape, "b", make=lambda: g.input("bool", shape))
    return f"pt.compress({c.name}, {x.name}, axis={axis})"


@draws("argsort", "sort")
def _sort(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    kind = f", kind={g.choice(('quicksort', 'stable', 'heapsort'))!r}" if g.chance(0.3) else ""
    stable = ", stable=True" if name == "argsort" else kind
    return f"pt.{name}({x.name}, axis={g.choice((None, g.axis(x.ndim)))}{stable})"
