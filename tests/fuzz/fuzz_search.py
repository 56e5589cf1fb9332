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
    text = f"pt.{name}({x.name}, {count}, axis={axis})"
    return text + ("[1]" if name == "topk_and_argtopk" else "")


def _positions(g: Drawer, n: int, ndim: int | None = None) -> str:
    """Text of int64 positions below ``n``."""
    x = g.item(kinds="iu", ndim=ndim)
    return f"(pt.cast({x.name} % {min(n, 100)}, 'int64') % {n})"


@draws("bincount", "ix_", "choose", "ravel_multi_index", "unravel_index")
def _of_positions(g: Drawer, name: str) -> Text:
    if name == "bincount":
        return f"pt.bincount({_positions(g, 5, ndim=1)})"
    if name == "ix_":
        return f"pt.ix_({_positions(g, 5, ndim=1)})[0]"
    if name == "choose":
        x = g.item(kinds="iu")
        choices = ", ".join(g.like(x.shape).name for _ in range(2))
        return f"pt.choose(pt.cast({x.name} % 2, 'int64'), [{choices}])"
    if name == "unravel_index":
        return f"pt.unravel_index({_positions(g, 12)}, (3, 4))[{g.rng.randrange(2)}]"
    places = _positions(g, 3)
    return f"pt.ravel_multi_index(({places}, {places}), (3, 4))"


@draws("fill_diagonal", "fill_diagonal_offset")
def _diagonal(g: Drawer, name: str) -> Text:
    x = g.item(ndim=2)
    offset = f", {g.rng.randrange(-2, 3)}" if name == "fill_diagonal_offset" else ""
    return f"pt.{name}({x.name}, pt.cast({g.choice((0, 1))}, '{x.value.dtype.name}'){offset})"


@draws("histogram", "interp", "searchsorted", "unique")
def _of_numbers(g: Drawer, name: str) -> Text:
    x = g.item(kinds="iuf")
    if name == "histogram":
        return f"pt.histogram({x.name}, bins={g.rng.randrange(1, 5)}, range=(0.0, 4.0))[0]"
    if name == "interp":
        return f"pt.interp({x.name}, [0.0, 1.0, 3.0], [1.0, 2.0, 0.5])"
    if name == "unique":
        return f"pt.unique({x.name})"
    sorted_ = f"pt.sort({g.item(kinds='iuf', ndim=1).name})"
    return f"pt.searchsorted({sorted_}, {x.name}, side={g.choice(('left', 'right'))!r})"


@draws("quantile", "percentile", "trapezoid", "cov")
def _statistics(g: Drawer, name: str) -> Text:
    def fits(x: Item) -> bool:
        return all(n > 1 for n in x.shape)

    if name == "cov":
        return f"pt.cov({g.item(fits, 'f', ndim=2).name})"
    x = g.item(fits, "f", least=1)
    if name == "trapezoid":
        return f"pt.trapezoid({x.name}, axis={g.axis(x.ndim)})"
    q = g.choice((0.0, 0.25, 0.5, 1.0)) * (100 if name == "percentile" else 1)
    return f"pt.{name}({x.name}, {q}, axis={g.axis(x.ndim)})"


@draws("pad", "tensor_copy", "join_dims", "split_dims", "pack", "unpack")
def _shapes(g: Drawer, name: str) -> Text:
    x = g.item(least=1)
    if name == "pad":
        mode = g.choice(("constant", "edge", "wrap") if all(x.shape) else ("constant",))
        return f"pt.pad({x.name}, {g.rng.randrange(3)}, mode={mode!r})"
    if name == "join_dims":
        start = g.rng.randrange(x.ndim)
        return f"pt.join_dims({x.name}, {start}, {g.rng.randrange(x.ndim - start + 1)})"
    if name == "split_dims":
        return f"pt.split_dims({x.name}, 0, shape=({g.integer(x.shape[0])}, 1))"
    if name == "pack":
        return f"pt.pack({x.name}, {g.item().name})[0]"
    if name == "unpack":
        return f"pt.unpack(*pt.pack({x.name}, {g.item().name}))[0]"
    return f"pt.tensor_copy({x.name})"


@draws("meshgrid", "tril_indices", "triu_indices")
def _grids(g: Drawer, name: str) -> Text:
    if name == "meshgrid":
        x, y = g.item(ndim=1), g.item(ndim=1)
        return f"pt.meshgrid({x.name}, {y.name})[{g.rng.randrange(2)}]"
    return f"pt.{name}({g.integer(3)}, {g.rng.randrange(-2, 3)})[{g.rng.randrange(2)}]"


@draws("permute_row_elements", "put_along_axis")
def _permuted(g: Drawer, name: str) -> Text:
    x = g.item(kinds="biuf", least=1)
    order = f"pt.argsort({x.name}, axis=-1, stable=True)"
    if name == "permute_row_elements":
        return f"pt.permute_row_elements({x.name}, {order}, inverse={g.chance(0.5)})"
    return f"pt.put_along_axis({x.name}, {order}, {x.name}, axis=-1)"
