"""Activations and losses of neural networks."""

from __future__ import annotations

from phintys.scalar import dtypes
from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.axes import expand_dims
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.counting import unique
from phintys.tensor.creation import full
from phintys.tensor.dot import dot, matmul
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.index import take_along_axis
from phintys.tensor.join import concatenate
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import argmax
from phintys.tensor.reduce import max as max_over
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.shape import shape_tuple
from phintys.tensor.special import log_softmax
from phintys.tensor.special import softmax as softmax_over
from phintys.tensor.static import as_length
from phintys.tensor.variable import TensorVariable

__all__ = [
    "binary_crossentropy",
    "categorical_crossentropy",
    "confusion_matrix",
    "crossentropy_categorical_1hot",
    "crossentropy_softmax_1hot",
    "crossentropy_softmax_1hot_with_bias",
    "crossentropy_softmax_argmax_1hot_with_bias",
    "crossentropy_softmax_max_and_argmax_1hot",
    "crossentropy_softmax_max_and_argmax_1hot_with_bias",
    "elu",
    "h_softmax",
    "hard_sigmoid",
    "logsoftmax",
    "prepend_0_to_each_row",
    "prepend_1_to_each_row",
    "prepend_scalar_to_each_row",
    "relu",
    "selu",
    "sigmoid_binary_crossentropy",
    "softmax",
    "softmax_with_bias",
    "softsign",
    "ultra_fast_sigmoid",
]

#: of `selu` (G. Klambauer et al., "Self-normalizing neural networks", 2017)
SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


# --------------------------------------------------------------------- activations


def relu(x: TensorLike, alpha: float | TensorVariable = 0) -> TensorVariable:
    """``x`` where it is positive, else ``alpha * x``; the derivative at 0 is 1.

    >>> import phintys.tensor as pt
    >>> pt.nnet.relu([-2.0, 3.0], 0.1).eval()
    array([-0.2,  3. ])
    """
    x = as_tensor_variable(x)
    if isinstance(alpha, int | float) and alpha == 0:
        return functions.maximum(x, 0)
    return functions.switch(functions.ge(x, 0), x, x * alpha)


def elu(x: TensorLike, alpha: float | TensorVariable = 1) -> TensorVariable:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    >>> import phintys.tensor as pt
    >>> pt.nnet.elu([-1.0, 3.0]).eval()
    array([-0.63212056,  3.        ])
    """
    x = as_tensor_variable(x)
    # exp of the other elements would overflow, and so would its derivative
    below = functions.expm1(functions.minimum(x, 0)) * alpha
    return functions.switch(functions.gt(x, 0), x, below)


def selu(x: TensorLike) -> TensorVariable:
    """`elu` with the factors that keep means at 0 and variances at 1.

    >>> import phintys.tensor as pt
    >>> pt.nnet.selu([0.0, 1.0]).eval()
    array([0.        , 1.05070099])
    """
    x = _as_float(x)
    alpha, scale = (cast(c, x.type.dtype) for c in (SELU_ALPHA, SELU_SCALE))
    return elu(x, alpha) * scale


def _as_float(x: TensorLike) -> TensorVariable:
    x = as_tensor_variable(x)
    return cast(x, dtypes.float_of(x.type.dtype))


def softsign(x: TensorLike) -> TensorVariable:
    """``x / (1 + abs(x))``.

    >>> import phintys.tensor as pt
    >>> pt.nnet.softsign([-1.0, 3.0]).eval()
    array([-0.5 ,  0.75])
    """
    x = as_tensor_variable(x)
    return x / (1.0 + functions.abs(x))


def hard_sigmoid(x: TensorLike) -> TensorVariable:
    """``0.2 * x + 0.5``, at least 0 and at most 1: an approximation of `sigmoid`.

    >>> import phintys.tensor as pt
    >>> pt.nnet.hard_sigmoid([-3.0, 1.0]).eval()
    array([0. , 0.7])
    """
    x = _as_float(x)
    return functions.clip(x * cast(0.2, x.type.dtype) + 0.5, 0.0, 1.0)


def ultra_fast_sigmoid(x: TensorLike) -> TensorVariable:
    """`sigmoid`, of which Aesara computes an approximation under this name.

    >>> import phintys.tensor as pt
    >>> pt.nnet.ultra_fast_sigmoid([0.0, 1.0]).eval()
    array([0.5       , 0.73105858])
    """
    return functions.sigmoid(x)


def softmax(c: TensorLike, axis: int | None = -1) -> TensorVariable:
    """``exp(c) / sum(exp(c))``, with the sum over the last axis unless another one is given.

    >>> import phintys.tensor as pt
    >>> pt.nnet.softmax([[0.0, 0.0], [1.0, 1.0]]).eval()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return softmax_over(c, axis)


def logsoftmax(c: TensorLike, axis: int | None = -1) -> TensorVariable:
    """The logarithm of `softmax`, accurate even where `softmax` underflows.

    >>> import phintys.tensor as pt
    >>> pt.nnet.logsoftmax([0.0, 1000.0]).eval()
    array([-1000.,     0.])
    """
    return log_softmax(c, axis)


def softmax_with_bias(x: TensorLike, b: TensorLike) -> TensorVariable:
    """``softmax(x + b)`` over the last axis.

    >>> import phintys.tensor as pt
    >>> pt.nnet.softmax_with_bias([[0.0, 1.0]], [1.0, 0.0]).eval()
    array([[0.5, 0.5]])
    """
    return softmax(as_tensor_variable(x) + as_tensor_variable(b))


def h_softmax(
    x: TensorLike,
    batch_size: Length,
    n_outputs: Length,
    n_classes: Length,
    n_outputs_per_class: Length,
    W1: TensorLike,
    b1: TensorLike,
    W2: TensorLike,
    b2: TensorLike,
    target: TensorLike | None = None,
) -> TensorVariable:
    """Probabilities by a softmax over classes, times one over the outputs of each class.

    Parameters
    ----------
    x : matrix (batch, features)
    batch_size, n_outputs, n_classes, n_outputs_per_class : lengths
    W1, b1 : matrix (features, n_classes) and vector (n_classes)
    W2, b2 : tensor (n_classes, features, n_outputs_per_class), matrix (n_classes,
        n_outputs_per_class)
    target : integers (batch); None: the probabilities of all outputs, a matrix (batch, n_outputs),
        else of these, a vector
    """
    x, first, bias, second, biases = (as_tensor_variable(v) for v in (x, W1, b1, W2, b2))
    n, width = as_length(n_classes), as_length(n_outputs_per_class)
    classes = softmax(dot(x, first) + bias)
    if target is None:
        each = dimshuffle(matmul(x, second), 1, 0, 2) + biases
        found = expand_dims(classes, 2) * softmax(each)
        return found.reshape((batch_size, n * width))[:, :n_outputs]
    target = as_tensor_variable(target)
    chosen, output = target // width, target % width
    each = matmul(expand_dims(x, 1), second[chosen])[:, 0] + biases[chosen]
    rows = arange(shape_tuple(x)[0])
    return classes[rows, chosen] * softmax(each)[rows, output]


# -------------------------------------------------------------------------- losses


def binary_crossentropy(output: TensorLike, target: TensorLike) -> TensorVariable:
    """``-(target * log(output) + (1 - target) * log(1 - output))`` for probabilities ``output``.

    >>> import phintys.tensor as pt
    >>> pt.nnet.binary_crossentropy([0.5, 0.25], 1.0).eval()
    array([0.69314718, 1.38629436])
    """
    output, target = as_tensor_variable(output), as_tensor_variable(target)
    return -(target * functions.log(output) + (1.0 - target) * functions.log1p(-output))


def sigmoid_binary_crossentropy(output: TensorLike, target: TensorLike) -> TensorVariable:
    """`binary_crossentropy` of ``sigmoid(output)``, accurate for all numbers.

    >>> import phintys.tensor as pt
    >>> pt.nnet.sigmoid_binary_crossentropy([-800.0, 800.0], 0.0).eval()
    array([  0., 800.])
    """
    output, target = as_tensor_variable(output), as_tensor_variable(target)
    return target * functions.softplus(-output) + (1.0 - target) * functions.softplus(output)


def categorical_crossentropy(coding_dist: TensorLike, true_dist: TensorLike) -> TensorVariable:
    """``-sum(true_dist * log(coding_dist))`` over the last axis.

    Parameters
    ----------
    coding_dist : probabilities
    true_dist : probabilities of the same rank; or integers of one rank less, which stand for the
        probability 1 of that position

    TypeError for other ranks.

    >>> import phintys.tensor as pt
    >>> pt.nnet.categorical_crossentropy([[0.5, 0.5], [0.25, 0.75]], [0, 0]).eval()
    array([0.69314718, 1.38629436])
    """
    coding, true = as_tensor_variable(coding_dist), as_tensor_variable(true_dist)
    if true.type.ndim == coding.type.ndim:
        return -sum_over(true * functions.log(coding), -1)
    if true.type.ndim != coding.type.ndim - 1 or not dtypes.is_discrete(true.type.dtype):
        raise TypeError(
            f"true_dist has the rank of coding_dist, or is integers of one rank less, not "
            f"{true.type} for {coding.type}."
        )
    return -_at(functions.log(coding), true)  # of a softmax, that is accurate


def crossentropy_categorical_1hot(
    coding_dist: TensorLike, true_one_of_n: TensorLike
) -> TensorVariable:
    """`categorical_crossentropy` for integers."""
    return categorical_crossentropy(coding_dist, true_one_of_n)


def _at(x: TensorVariable, positions: TensorVariable) -> TensorVariable:
    """Elements at positions along the last axis."""
    return take_along_axis(x, expand_dims(positions, -1), -1)[..., 0]


def crossentropy_softmax_argmax_1hot_with_bias(
    x: TensorLike, b: TensorLike, y_idx: TensorLike
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Crossentropies of ``softmax(x + b)`` with integers, the softmax, and where it is largest.

    Parameters
    ----------
    x : matrix, of which each row is a case
    b : vector, which is added to each row
    y_idx : an integer for each row
    """
    total = as_tensor_variable(x) + as_tensor_variable(b)
    losses = -_at(logsoftmax(total), as_tensor_variable(y_idx))
    return losses, softmax(total), argmax(total, -1)


def crossentropy_softmax_1hot_with_bias(
    x: TensorLike, b: TensorLike, y_idx: TensorLike
) -> tuple[TensorVariable, TensorVariable]:
    """The first two results of `crossentropy_softmax_argmax_1hot_with_bias`."""
    losses, probabilities, _ = crossentropy_softmax_argmax_1hot_with_bias(x, b, y_idx)
    return losses, probabilities


def crossentropy_softmax_1hot(
    x: TensorLike, y_idx: TensorLike
) -> tuple[TensorVariable, TensorVariable]:
    """`crossentropy_softmax_1hot_with_bias` without a bias.

    >>> import phintys.tensor as pt
    >>> losses, probabilities = pt.nnet.crossentropy_softmax_1hot([[1.0, 1.0]], [0])
    >>> losses.eval(), probabilities.eval()
    (array([0.69314718]), array([[0.5, 0.5]]))
    """
    return crossentropy_softmax_1hot_with_bias(x, _no_bias(x), y_idx)


def crossentropy_softmax_max_and_argmax_1hot_with_bias(
    x: TensorLike, b: TensorLike, y_idx: TensorLike
) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """Crossentropies, the softmax, its largest elements, and their positions."""
    losses, probabilities, at = crossentropy_softmax_argmax_1hot_with_bias(x, b, y_idx)
    return losses, probabilities, max_over(probabilities, -1), at


def crossentropy_softmax_max_and_argmax_1hot(
    x: TensorLike, y_idx: TensorLike
) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """`crossentropy_softmax_max_and_argmax_1hot_with_bias` without a bias."""
    return crossentropy_softmax_max_and_argmax_1hot_with_bias(x, _no_bias(x), y_idx)


def _no_bias(x: TensorLike) -> TensorVariable:
    return cast(0, as_tensor_variable(x).type.dtype)


def confusion_matrix(actual: TensorLike, pred: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """How often an integer was predicted for another one, and the integers in order.

    Element ``[i, j]`` of the matrix counts the cases of ``order[i]`` predicted to be ``order[j]``.
    TypeError if the arguments are not vectors of integers.

    >>> import phintys.tensor as pt
    >>> [v.eval().tolist() for v in pt.nnet.confusion_matrix([2, 0, 2], [0, 0, 2])]
    [[[1, 0], [1, 1]], [0, 2]]
    """
    actual, pred = as_tensor_variable(actual), as_tensor_variable(pred)
    for v in (actual, pred):
        if v.type.ndim != 1 or not dtypes.is_discrete(v.type.dtype):
            raise TypeError(f"confusion_matrix takes vectors of integers, not {v.type}.")
    order = unique(concatenate([actual, pred]))
    rows, columns = (cast(functions.eq(expand_dims(v, 1), order), "int64") for v in (actual, pred))
    return dot(rows.T, columns), order


# ------------------------------------------------------------------------- columns


def prepend_scalar_to_each_row(val: TensorLike, mat: TensorLike) -> TensorVariable:
    """A matrix with a number before each row.

    >>> import phintys.tensor as pt
    >>> pt.nnet.prepend_scalar_to_each_row(7.0, [[1.0], [2.0]]).eval()
    array([[7., 1.],
           [7., 2.]])
    """
    mat = as_tensor_variable(mat)
    return concatenate([full((shape_tuple(mat)[0], 1), val, dtype=mat.type.dtype), mat], axis=1)


def prepend_0_to_each_row(mat: TensorLike) -> TensorVariable:
    """A matrix with 0 before each row.

    >>> import phintys.tensor as pt
    >>> pt.nnet.prepend_0_to_each_row([[1.0]]).eval()
    array([[0., 1.]])
    """
    return prepend_scalar_to_each_row(0, mat)


def prepend_1_to_each_row(mat: TensorLike) -> TensorVariable:
    """A matrix with 1 before each row.

    >>> import phintys.tensor as pt
    >>> pt.nnet.prepend_1_to_each_row([[2.0]]).eval()
    array([[1., 2.]])
    """
    return prepend_scalar_to_each_row(1, mat)
