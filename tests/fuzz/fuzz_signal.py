"""How arguments are drawn of transforms, convolutions, pooling and the functions of networks."""

from __future__ import annotations

from fuzz_draw import Drawer, Item
from fuzz_functions import OUT, Text, draws
from fuzz_structured import positions

_QUESTIONS = (
    *("border_mode_to_pad", "check_conv_gradinputs_shape", "get_conv_gradinputs_shape"),
    *("get_conv_gradinputs_shape_1axis", "get_conv_gradweights_shape", "get_conv_output_shape"),
    *("get_conv_gradweights_shape_1axis", "get_conv_shape_1axis"),
)
OUT |= dict.fromkeys((f"nnet.{name}" for name in _QUESTIONS), "a question about lengths")
OUT["nnet.abstract_conv2d"] = "another name of conv2d"
LENGTHS = (1, 2, 3, 4, 7)


def _tensor(g: Drawer, *shape: int, dtype: str = "") -> str:
    """Text of a tensor of a shape, of floats or complex numbers unless a dtype is given."""
    wanted = dtype or g.choice(("float64", "float64", "float32", "complex128"))

    def fits(i: Item) -> bool:
        return i.shape == shape and i.value.dtype == wanted

    return g.item(fits, make=lambda: g.input(wanted, shape)).name


def _floats(g: Drawer, *shape: int) -> str:
    return _tensor(g, *shape, dtype=g.choice(("float64", "float64", "float32")))


def _length(g: Drawer) -> int:
    return g.choice(LENGTHS)


def _flags(**given: object) -> str:
    return "".join(f", {name}={value!r}" for name, value in given.items())


# --------------------------------------------------------------------------- transforms


@draws("fft.rfft", "fft.irfft", "fourier.fft", "fourier.ifft", "fourier.rfft", "fourier.irfft")
def _fourier(g: Drawer, name: str) -> Text:
    norm = g.choice((None, "ortho", "no_norm"))
    if name == "fft.rfft":
        return f"pt.fft.rfft({g.item(kinds='iuf', least=2).name}, {norm!r})"
    if name == "fft.irfft":
        pairs = f"pt.fft.rfft({g.item(kinds='f', least=2).name})"
        return f"pt.fft.irfft({pairs}, {norm!r}, is_odd={g.chance(0.5)})"
    kinds = "iuf" if name == "fourier.rfft" else "iufc"
    x = g.item(lambda i: all(i.shape), kinds, least=1)
    n = g.choice((None, None, 1, 2, 5, 16))
    norms = ("backward", "ortho", "forward")
    return f"pt.{name}({x.name}, {n}, axis={g.axis(x.ndim)}, norm={g.choice(norms)!r})"


# -------------------------------------------------------------- convolutions and pooling


@draws("signal.convolve1d", "signal.convolve2d")
def _convolve(g: Drawer, name: str) -> Text:
    mode = g.choice(("full", "valid", "same"))
    if name == "signal.convolve1d":
        x, y = g.item(least=1).name, g.item(least=1).name
        return f"pt.{name}({x}, {y}, {mode!r})"
    x, y = g.item(lambda i: 0 not in i.shape, least=2), g.item(lambda i: i.value.size < 50, least=2)
    flags = _flags(
        boundary=g.choice(("fill", "fill", "wrap", "symm")),
        fillvalue=g.choice((0, 0, 1.5)),
        method=g.choice(("auto", "direct", "fft")),
    )
    return f"pt.{name}({x.name}, {y.name}, {mode!r}{flags})"


@draws("signal.conv2d")
def _convolve_each(g: Drawer, name: str) -> Text:
    """Each of some images, or one, with each of some filters, or one."""
    x = _floats(g, *g.choice(((), (2,))), _length(g), _length(g))
    w = _floats(g, *g.choice(((), (3,))), g.choice((1, 2)), g.choice((1, 2)))
    flags = _flags(border_mode=g.choice(("valid", "full")), subsample=g.choice(((1, 1), (2, 1))))
    return f"pt.{name}({x}, {w}{flags})"


def _convolution(g: Drawer, ndim: int) -> tuple[str, str, list[int], list[int], str]:
    """Images, filters, their shapes, and other arguments of a convolution."""
    channels, count, groups = g.choice((1, 2)), g.choice((1, 2, 4)), 1
    if g.chance(0.3):
        groups, channels, count = 2, 2 * channels, 2 * count
    sides = [g.choice((1, 2, 3)) for _ in range(ndim)]
    images = [_length(g) for _ in range(ndim)]
    border = ("valid", "half", "full", (1,) * ndim, ((1, 0), *[(0, 2)] * (ndim - 1)))
    flags = _flags(
        border_mode=g.choice(border),
        subsample=tuple(g.choice((1, 1, 2)) for _ in range(ndim)),
        filter_flip=g.chance(0.5),
        filter_dilation=tuple(g.choice((1, 1, 2)) for _ in range(ndim)),
        num_groups=groups,
    )
    x, w = [_length(g), channels, *images], [count, channels // groups, *sides]
    return _tensor(g, *x), _tensor(g, *w), x, w, flags


@draws(*(f"nnet.conv{n}d{way}" for n in "23" for way in ("", "_grad_wrt_inputs")))
@draws("nnet.conv2d_grad_wrt_weights", "nnet.conv3d_grad_wrt_weights", "nnet.conv2d_transpose")
def _convolve_images(g: Drawer, name: str) -> Text:
    ndim = int(name[len("nnet.conv")])
    x, w, images, filters, flags = _convolution(g, ndim)
    made = f"pt.nnet.conv{ndim}d({x}, {w}{flags})"
    if name.endswith("inputs"):
        shape = (None, None, *images[2:])
        return f"pt.{name}({made}, {w}, {shape}{flags})"
    if name.endswith("weights"):
        shape = (None, None, *filters[2:])
        return f"pt.{name}({x}, {made}, {shape}{flags})"
    if name.endswith("transpose"):
        step = g.choice((1, 2))
        w = _tensor(g, images[1], 2, *filters[2:])
        shape = (None, None, *((n - 1) * step + k for n, k in zip(images[2:], filters[2:])))
        return f"pt.{name}({x}, {w}, {shape}, input_dilation={(step, step)})"
    return made


@draws("nnet.separable_conv2d", "nnet.separable_conv3d", "nnet.causal_conv1d")
def _convolve_channels(g: Drawer, name: str) -> Text:
    batch, channels, count = _length(g), g.choice((1, 2)), g.choice((1, 2, 3))
    if name == "nnet.causal_conv1d":
        filters = (count, channels, g.choice((1, 2, 3)))
        x, w = _tensor(g, batch, channels, _length(g)), _tensor(g, *filters)
        return f"pt.{name}({x}, {w}, {filters}, filter_dilation={g.choice((1, 2))})"
    ndim = int(name[-2])
    x = _floats(g, batch, channels, *[_length(g) for _ in range(ndim)])
    each = _floats(g, 2 * channels, 1, *[g.choice((1, 2)) for _ in range(ndim)])
    mixed = _floats(g, count, 2 * channels, *[1] * ndim)
    border = g.choice(("valid", "half", "full"))
    return f"pt.{name}({x}, {each}, {mixed}, {channels}, border_mode={border!r})"


@draws("signal.pool_2d", "signal.pool_3d", "signal.max_pool_2d_same_size")
def _pool(g: Drawer, name: str) -> Text:
    ndim = 3 if name == "signal.pool_3d" else 2
    x = g.item(lambda i: i.ndim <= 4, "iuf", least=ndim)
    window = tuple(g.choice((1, 2, 3)) for _ in range(ndim))
    if name == "signal.max_pool_2d_same_size":
        return f"pt.{name}({x.name}, {window})"
    inside = g.chance(0.6)
    flags = _flags(
        ignore_border=inside,
        stride=g.choice((None, tuple(g.choice((1, 2, 3)) for _ in range(ndim)))),
        pad=tuple(g.rng.randrange(n) for n in window) if inside else (0,) * ndim,
        mode=g.choice(("max", "sum", "average_inc_pad", "average_exc_pad")),
    )
    return f"pt.{name}({x.name}, {window}{flags})"


@draws("nnet.bilinear_kernel_1D", "nnet.bilinear_kernel_2D")
def _kernel(g: Drawer, name: str) -> Text:
    return f"pt.{name}({g.choice((1, 2, 5))}, normalize={g.chance(0.5)})"


@draws("nnet.images2neibs", "nnet.neibs2images")
@draws("nnet.bilinear_upsampling", "nnet.frac_bilinear_upsampling")
def _of_images(g: Drawer, name: str) -> Text:
    x = f"pt.atleast_Nd({g.item(lambda i: 0 not in i.shape and i.ndim <= 4, 'f').name}, n=4)"
    if name == "nnet.bilinear_upsampling":
        ratio = g.choice(("1", "2", "3", "frac_ratio=(3, 2)", "frac_ratio=((2, 1), (4, 3))"))
        return f"pt.{name}({x}, {ratio})"
    if name == "nnet.frac_bilinear_upsampling":
        return f"pt.{name}({x}, {g.choice(('(3, 2)', '((2, 1), (4, 3))'))})"
    window = tuple(g.choice((1, 1, 2, 3)) for _ in range(2))
    if name == "nnet.neibs2images":
        found = f"pt.nnet.images2neibs({x}, {window}, mode='ignore_borders')"
        return f"pt.{name}({found}, {window}, pt.shape({x}), 'ignore_borders')"
    step = g.choice((None, (1, 2), (2, 1)))
    mode = g.choice(("valid", "ignore_borders", "half", "full", "wrap_centered"))
    return f"pt.{name}({x}, {window}, {step}, {mode!r})"


# ----------------------------------------------------------------------------- networks


@draws(*(f"nnet.{f}" for f in "relu elu selu softsign hard_sigmoid logsoftmax softmax".split()))
@draws("nnet.prepend_0_to_each_row", "nnet.prepend_1_to_each_row")
@draws("nnet.prepend_scalar_to_each_row")
def _activation(g: Drawer, name: str) -> Text:
    if name.endswith("row"):
        value = f"{g.item(ndim=0).name}, " if "scalar" in name else ""
        return f"pt.{name}({value}{g.item(ndim=2).name})"
    x = g.item(kinds="biuf", least=int(name.endswith("softmax")))
    if name.endswith("softmax"):
        return f"pt.{name}({x.name}, {g.choice((None, g.axis(x.ndim)))})"
    alpha = g.choice((", 0.25", ", 2", f", {g.like(x.shape, 'f').name}", ""))
    alpha = alpha if name in ("nnet.relu", "nnet.elu") else ""
    return f"pt.{name}({x.name}{alpha})"


@draws("nnet.binary_crossentropy", "nnet.sigmoid_binary_crossentropy")
@draws("nnet.categorical_crossentropy", "nnet.confusion_matrix")
def _loss(g: Drawer, name: str) -> Text:
    if name == "nnet.confusion_matrix":
        n = _length(g)
        given = ", ".join(positions(g, 4, unsigned=True, shape=(n,)) for _ in range(2))
        return f"pt.{name}({given})[{g.rng.randrange(2)}]"
    if name == "nnet.categorical_crossentropy":
        n, m = _length(g), _length(g)
        target = f"pt.softmax({_floats(g, n, m)}, axis=1)"
        if g.chance(0.5):
            target = positions(g, m, unsigned=True, shape=(n,))
        return f"pt.{name}(pt.softmax({_floats(g, n, m)}, axis=1), {target})"
    x = g.item(kinds="biuf")
    output = x.name if name.startswith("nnet.sigmoid") else f"pt.sigmoid({x.name})"
    return f"pt.{name}({output}, pt.sigmoid({g.like(x.shape, 'biuf').name}))"


#: loss of a softmax -> how many results it has
LOSSES = {
    "crossentropy_categorical_1hot": 0,
    "crossentropy_softmax_1hot": 2,
    "crossentropy_softmax_1hot_with_bias": 2,
    "crossentropy_softmax_argmax_1hot_with_bias": 3,
    "crossentropy_softmax_max_and_argmax_1hot": 4,
    "crossentropy_softmax_max_and_argmax_1hot_with_bias": 4,
    "softmax_with_bias": 0,
}


@draws(*(f"nnet.{name}" for name in LOSSES))
def _softmax_loss(g: Drawer, name: str) -> Text:
    n, m = _length(g), _length(g)
    x = _floats(g, n, m)
    given = [f"pt.softmax({x}, axis=1)" if "categorical" in name else x]
    given += [_floats(g, m)] * name.endswith("bias")
    given += [positions(g, m, unsigned=True, shape=(n,))] * ("1hot" in name)
    count = LOSSES[name.partition(".")[2]]
    return f"pt.{name}({', '.join(given)})" + (f"[{g.rng.randrange(count)}]" if count else "")


@draws("nnet.batch_normalization", "nnet.batch_normalization_test")
@draws("nnet.batch_normalization_train")
def _batch_normalization(g: Drawer, name: str) -> Text:
    shape = [_length(g) for _ in range(g.choice((2, 2, 3)))]
    x = _floats(g, *shape)
    axes = g.choice(("per-activation", "spatial"))
    if name == "nnet.batch_normalization":
        axes = "per-activation"
    kept = [1 if k == 0 or (axes == "spatial" and k != 1) else n for k, n in enumerate(shape)]
    kept = kept[1:] if name == "nnet.batch_normalization" else kept
    gamma, beta, mean, var = (_floats(g, *kept) for _ in range(4))
    if name == "nnet.batch_normalization":
        return f"pt.{name}({x}, {gamma}, {beta}, {mean}, pt.exp({var}))"
    if name == "nnet.batch_normalization_test":
        return f"pt.{name}({x}, {gamma}, {beta}, {mean}, pt.exp({var}), {axes!r})"
    k = g.rng.randrange(5)
    running = "" if k < 3 else f", running_mean={mean}, running_var=pt.exp({var})"
    return f"pt.{name}({x}, {gamma}, {beta}, {axes!r}{running})[{k}]"


@draws("nnet.sparse_block_dot", "nnet.h_softmax")
def _blocks(g: Drawer, name: str) -> Text:
    batch, n, m, p, q = (g.choice((1, 2, 3)) for _ in range(5))
    if name == "nnet.h_softmax":
        weights = f"{_floats(g, n, p)}, {_floats(g, p)}, {_floats(g, p, n, q)}, {_floats(g, p, q)}"
        target = positions(g, p * q, unsigned=True, shape=(batch,)) if g.chance(0.5) else "None"
        return f"pt.{name}({_floats(g, batch, n)}, {batch}, {p * q}, {p}, {q}, {weights}, {target})"
    blocks, chosen = _floats(g, n, m, p, q), _floats(g, batch, 2, p)
    rows, columns = (positions(g, k, unsigned=True, shape=(batch, 2)) for k in (n, m))
    return f"pt.{name}({blocks}, {chosen}, {rows}, {_floats(g, m, q)}, {columns})"
