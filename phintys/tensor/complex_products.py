"""Products of complex vectors and matrices in machine code, by BLAS."""

from __future__ import annotations

from phintys.graph.builder import Builder, V
from phintys.routines import Array, routine
from phintys.routines.language import PARTS
from phintys.routines.libraries import LARGEST_INT, PLAIN, TRANSPOSED, gemm


@routine("complex64 complex128", (OverflowError, "The matrices are too large for BLAS"))
def complex_product(
    turned_x: int, turned_y: int, m: int, k: int, n: int, x: Array, y: Array, out: Array
) -> int:
    """Write the product of x[m, k] and y[k, n] to out[m, n]; a ``turned`` one is stored by columns.

    To BLAS the columns of a matrix are its rows, and the product is the transpose of the product.
    """
    if m > LARGEST_INT or k > LARGEST_INT or n > LARGEST_INT:
        return 1
    if k == 0:
        for i in range(m * n * PARTS):
            out[i] = 0.0
    if m > 0 and k > 0 and n > 0:
        gemm(
            TRANSPOSED if turned_y == 1 else PLAIN, TRANSPOSED if turned_x == 1 else PLAIN,
            n, m, k, 1.0, y, k if turned_y == 1 else n, x, m if turned_x == 1 else k,
            0.0, out, n,
        )  # fmt: skip
    return 0


def lower_complex_product(b: Builder[V], x: V, y: V, is_vector: tuple[bool, bool]) -> V:
    """``x @ y`` of one complex dtype; batch axes come first, and broadcast.

    ``is_vector`` says which operands are batches of vectors.
    """
    dtype = x.dtype
    x = b.expand(x, x.ndim - 1) if is_vector[0] else x
    y = b.expand(y, y.ndim) if is_vector[1] else y
    k = b.length(x, -1)
    b.check(k, "==", b.length(y, -2), "matrix product: the inner lengths differ")
    batch = b.broadcast_shape([b.shape(x)[:-2], b.shape(y)[:-2]])
    m, n = b.length(x, -2), b.length(y, -1)
    x = b.broadcast_to(x, (*batch, m, k))
    y = b.broadcast_to(y, (*batch, k, n))
    (x, turned_x), (y, turned_y) = b.rows_or_columns(x), b.rows_or_columns(y)
    sizes = (int(turned_x), int(turned_y), m, k, n)
    (out,) = b.external(
        complex_product, dtype, sizes, [x, y], writes=[(dtype, (m, n))], batch=batch, work=m * k * n
    )
    if is_vector[1]:
        out = b.squeeze(out, out.ndim - 1)
    return b.squeeze(out, out.ndim - (1 if is_vector[1] else 2)) if is_vector[0] else out
