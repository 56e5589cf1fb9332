"""How arguments are drawn of functions that search, count, pad, pack and interpolate."""

from __future__ import annotations

from fuzz_draw import Drawer, Item
from fuzz_functions import OUT, Text, draws

OUT["interpolate1d"] = "gives a function, which interp calls too"


@draws("topk", "argtopk", "topk_and_argtopk")
def _greatest(g: Drawer, name: str) -> Text:
    x = g.item(lambda i: all(i.shape), "biuf", least=1)
    axis = g.axis(x.ndim)
    count = g.rng.randrange(1, x.shape[axis] + 1) * g.choice((1, -1))
    dtype = ", idx_dtype='int32'" if name == "argtopk" and g.chance(0.3) else ""
    text = f"pt.{name}({x.name}, {count}, axis={axis}{dtype})"
    return text + ("[1]" if name == "topk_and_argtopk" else "")


def _positions(g: Drawer, n: int, ndim: int | None = None) -> str:
    """Text of int64 positions below ``n``."""
    return _positions_of(_integers(g, ndim), n)


def _integers(g: Drawer, ndim: int | None = None) -> Item:
    """Integers whose remainders are integers, as those of uint64 by a number are not."""
    return g.item(lambda i: i.value.dtype != "uint64", "iu", ndim=ndim)


def _same_shape(g: Drawer, x: Item, kinds: str = "iuf") -> str:
    """Text of an item of the same shape."""

    def make() -> Item:
        return g.input("float64" if "f" in kinds else "int64", x.shape)

    return g.item(lambda i: i.shape == x.shape, kinds, make=make).name


def _positions_of(x: Item, n: int) -> str:
    return f"(pt.cast({x.name} % {min(n, 100)}, 'int64') % {n})"


@draws("bincount", "ix_", "choose", "ravel_multi_index", "unravel_index")
def _of_positions(g: Drawer, name: str) -> Text:
    order = g.choice(("C", "F"))
    if name == "bincount":
        x = _integers(g, ndim=1)
        least = g.choice(("", ", minlength=0", f", minlength={g.integer(7)}"))
        weights = g.choice(("", f", weights={_same_shape(g, x)}", ", assert_nonneg=True"))
        return f"pt.bincount({_positions_of(x, 5)}{least}{weights})"
    if name == "ix_":
        return f"pt.ix_({_positions(g, 5, ndim=1)}, [0, 1])[0]"
    if name == "choose":
        x = _integers(g)
        choices = ", ".join(g.like(x.shape).name for _ in range(2))
        mode = g.choice(("raise", "wrap", "clip"))
        reach = 2 if mode == "raise" else 5
        return f"pt.choose({_positions_of(x, reach)}, [{choices}], mode={mode!r})"
    if name == "unravel_index":
        dims = f"({g.integer(3)}, {g.integer(4)})"
        return f"pt.unravel_index({_positions(g, 12)}, {dims}, {order!r})[{g.rng.randrange(2)}]"
    mode = g.choice(("raise", "wrap", "clip"))
    places = f"{_positions(g, 3)} - {0 if mode == 'raise' else 2}"
    return f"pt.ravel_multi_index(({places}, {places}), (3, 4), {mode!r}, {order!r})"


@draws("fill_diagonal", "fill_diagonal_offset")
def _diagonal(g: Drawer, name: str) -> Text:
    x = g.item(ndim=2)
    offset = f", {g.rng.randrange(-2, 3)}" if name == "fill_diagonal_offset" else ""
    return f"pt.{name}({x.name}, pt.cast({g.choice((0, 1))}, '{x.value.dtype.name}'){offset})"


@draws("histogram", "interp", "searchsorted", "unique")
def _of_numbers(g: Drawer, name: str) -> Text:
    x = g.item(kinds="iuf")
    if name == "histogram":
        bins = f"{g.rng.randrange(1, 5)}, range=(0.0, 4.0)"
        more = g.choice(("", ", density=True", f", weights={_same_shape(g, x, 'f')}"))
        return f"pt.histogram({x.name}, bins={g.choice((bins, '[-1.0, 0.0, 0.5, 3.0]'))}{more})[0]"
    if name == "interp":
        given = g.choice(("", ", left=-3.0", ", right=7.0", ", period=2.5"))
        return f"pt.interp({x.name}, [0.0, 1.0, 3.0], [1.0, 2.0, 0.5]{given})"
    if name == "unique":
        axis = "None" if not x.ndim or g.chance(0.5) else g.axis(x.ndim)
        extra = g.choice(("return_index", "return_inverse", "return_counts"))
        if g.chance(0.5):
            return f"pt.unique({x.name}, axis={axis})"
        return f"pt.unique({x.name}, {extra}=True, axis={axis})[1]"
    found, side = g.item(kinds="iuf", ndim=1).name, g.choice(("left", "right"))
    if g.chance(0.3):
        order = f"pt.argsort({found}, stable=True)"
        return f"pt.searchsorted({found}, {x.name}, {side!r}, sorter={order})"
    return f"pt.searchsorted(pt.sort({found}), {x.name}, side={side!r})"


@draws("quantile", "percentile", "trapezoid", "cov")
def _statistics(g: Drawer, name: str) -> Text:
    def fits(x: Item) -> bool:
        return all(n > 1 for n in x.shape)

    if name == "cov":
        x = g.item(fits, "f", ndim=2)
        given = g.choice(("", ", rowvar=False", ", bias=True", ", ddof=0", "weights", "y"))
        if given == "weights":
            weights = f"pt.sigmoid({x.name}[0])"
            given = f", aweights={weights}" if g.chance(0.5) else f", fweights={x.shape[1] * [2]}"
        return f"pt.cov({x.name}{f', {x.name} * 2' if given == 'y' else given})"
    x = g.item(fits, "f", least=1)
    axis = g.axis(x.ndim)
    if name == "trapezoid":
        points = g.choice(("", f", {g.like(x.shape[axis % x.ndim :][:1], 'f').name}", ", dx=0.5"))
        return f"pt.trapezoid({x.name}{points}, axis={axis})"
    q = g.choice((0.0, 0.25, 0.5, 1.0)) * (100 if name == "percentile" else 1)
    qs = g.choice((q, [q, 0.125]))
    method = g.choice(("linear", "lower", "higher", "midpoint", "nearest"))
    return f"pt.{name}({x.name}, {qs}, axis={axis}, method={method!r}, keepdims={g.chance(0.3)})"


#: modes of pad, and arguments that they take
PADDING = {
    "constant": "constant_values=2", "edge": "", "linear_ramp": "end_values=(1, 2)",
    "maximum": "stat_length=2", "minimum": "stat_length=(1, 3)", "mean": "", "median": "",
    "wrap": "", "symmetric": "reflect_type='odd'", "reflect": "reflect_type='odd'",
}  # fmt: skip


@draws("pad", "tensor_copy", "join_dims", "split_dims", "pack", "unpack")
def _shapes(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    if name == "pad":
        x = g.item(kinds="biuf", least=1)
        mode = g.choice(list(PADDING) if all(x.shape) else ["constant"])
        width = g.choice((g.integer(2), "(1, 2)", f"({g.integer(0)}, {g.integer(3)})"))
        argument = g.choice(("", PADDING[mode]))
        return f"pt.pad({x.name}, {width}, {mode!r}{', ' if argument else ''}{argument})"
    if name == "join_dims":
        start = g.rng.randrange(x.ndim)
        return f"pt.join_dims({x.name}, {start}, {g.rng.randrange(x.ndim - start + 1)})"
    if name == "split_dims":
        axis = g.axis(x.ndim)
        return f"pt.split_dims({x.name}, ({g.integer(x.shape[axis])}, 1), axis={axis})"
    if name == "pack":
        return f"pt.pack({x.name}, {g.item().name})[0]"
    if name == "unpack":
        return f"pt.unpack(*pt.pack({x.name}, {g.item().name}))[{g.rng.randrange(2)}]"
    return f"pt.tensor_copy({x.name})"


@draws("meshgrid", "tril_indices", "triu_indices", "tril_indices_from", "triu_indices_from")
def _grids(g: Drawer, name: str) -> Text:
    if name == "meshgrid":
        x, y = g.item(ndim=1), g.item(ndim=1)
        given = f"indexing={g.choice(('xy', 'ij'))!r}, sparse={g.chance(0.5)}"
        return f"pt.meshgrid({x.name}, {y.name}, {given})[{g.rng.randrange(2)}]"
    of = g.item(ndim=2).name if name.endswith("from") else g.integer(3)
    columns = f", {g.integer(4)}" if not name.endswith("from") and g.chance(0.5) else ""
    return f"pt.{name}({of}, {g.rng.randrange(-2, 3)}{columns})[{g.rng.randrange(2)}]"


@draws("permute_row_elements", "put_along_axis", "inverse_permutation")
def _permuted(g: Drawer, name: str) -> Text:
    x = g.item(kinds="biuf", least=1)
    order = f"pt.argsort({x.name}, axis=-1, stable=True)"
    if name == "inverse_permutation":
        return f"pt.inverse_permutation({order})"
    if name == "permute_row_elements":
        return f"pt.permute_row_elements({x.name}, {order}, inverse={g.chance(0.5)})"
    return f"pt.put_along_axis({x.name}, {order}, {x.name}, axis=-1)"
