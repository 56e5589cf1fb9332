"""`load`: an array in a file as an input of a graph, read when the graph is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from phintys.errors import ShapeError
from phintys.graph.op import Op
from phintys.graph.type import generic
from phintys.graph.variable import Apply, Constant, Variable
from phintys.scalar import dtypes
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable

__all__ = ["LoadFromDisk", "load"]


class LoadFromDisk(Op):
    """The array in a ``.npy`` file, whose path is the input, a string; see `load`."""

    __props__ = ("dtype", "shape", "mmap_mode")
    not_differentiable = "its input is the path of a file"
    in_python = "it reads a file"

    def __init__(
        self, dtype: Any, shape: Sequence[int | None], mmap_mode: str | None = None
    ) -> None:
        if mmap_mode not in (None, "c"):
            raise ValueError(
                f"mmap_mode is None or 'c', not {mmap_mode!r}: a graph does not write to files."
            )
        self.dtype, self.shape = dtypes.as_dtype(dtype), tuple(shape)
        self.mmap_mode: Literal["c"] | None = "c" if mmap_mode else None

    def make_node(self, path: Any) -> Apply:
        if isinstance(path, str):
            path = Constant(generic, path)
        if not isinstance(path, Variable) or path.type != generic:
            raise TypeError(f"The path of a file is a string or a generic variable, not {path!r}.")
        return Apply(self, [path], [TensorType(self.dtype, shape=self.shape)()])

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False  # the file may change

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        (path,) = inputs
        if path.endswith(".npz"):
            raise ValueError(f"{path} has several arrays: a file with one, .npy, is needed.")
        found = np.load(path, mmap_mode=self.mmap_mode)
        if found.dtype != np.dtype(self.dtype):
            raise TypeError(f"The array in {path} has dtype {found.dtype}, not {self.dtype}.")
        if len(found.shape) != len(self.shape) or any(
            n not in (None, m) for n, m in zip(self.shape, found.shape)
        ):
            raise ShapeError(f"The array in {path} has shape {found.shape}, not {self.shape}.")
        output_storage[0][0] = np.asarray(found)

    def __str__(self) -> str:
        return f"LoadFromDisk{{{self.dtype}, {self.shape}, mmap_mode={self.mmap_mode!r}}}"


def load(
    path: Any, dtype: Any, shape: Sequence[int | None], mmap_mode: str | None = None
) -> TensorVariable:
    """The array in a file, which is read at each call of the function that uses it.

    Parameters
    ----------
    path
        the path of a file that `numpy.save` wrote: a string, or a variable of type ``generic``
    dtype, shape
        of the array; lengths that are not known are None
    mmap_mode
        None: the file is read; ``"c"``: it is mapped into memory, and what is not used is not read

    Raises
    ------
    ValueError
        if ``mmap_mode`` is another one; in calls, if the file has no single array
    OSError, TypeError, ShapeError
        in calls: if the file cannot be read, or its array has another dtype, or another shape

    >>> import numpy as np, os, phintys, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.npy")
    ...     np.save(path, np.arange(3.0))
    ...     phintys.function([], load(path, "float64", (None,)) * 2)()
    array([0., 2., 4.])
    """
    return LoadFromDisk(dtype, shape, mmap_mode)(path)
