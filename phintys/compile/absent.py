"""Classes of PyTensor that programs ask for by ``isinstance``; nothing here is an instance of them.

>>> import phintys
>>> isinstance(phintys.get_mode("FAST_RUN").linker, MLXLinker | PytorchLinker)
False
"""

from __future__ import annotations

__all__ = ["MLXLinker", "PytorchLinker"]


class MLXLinker:
    """The linker of a backend that does not exist here."""


class PytorchLinker:
    """The linker of a backend that does not exist here."""
