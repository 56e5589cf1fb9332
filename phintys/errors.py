"""The exceptions of this package, and helpers that format their messages.

Where a standard class fits (TypeError, ValueError, ...) the exception derives from it too, so a
program that catches the standard class keeps working.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class PhintysError(Exception):
    """Base class of the exceptions in this module."""


class MissingInputError(PhintysError, ValueError):
    """A graph needs a variable that was not given as an input."""


class UnusedInputError(PhintysError, ValueError):
    """A function was given an input that none of its outputs uses, or the same input twice."""


class InconsistencyError(PhintysError):
    """A FunctionGraph is, or would become, illegal, e.g. by conflicting in-place operations."""


class MethodNotDefined(PhintysError, NotImplementedError, AttributeError):
    """An op does not have an optional method."""


class AlreadyThere(PhintysError):
    """Raised by ``Feature.on_attach`` to say that the feature need not be attached again."""


class ReplacementDidNotRemoveError(PhintysError):
    """A replacement that should have removed a node left it in the graph."""


class RewriteError(PhintysError):
    """A rewrite raised an exception, or returned an illegal replacement.  The message names it."""


class RewriteTypeError(RewriteError, TypeError):
    """A node rewriter returned something that is no replacement."""


class RewriteValueError(RewriteError, ValueError):
    """A node rewriter returned replacements that do not fit the outputs of the node."""


class ConflictingAssumptionsError(PhintysError, ValueError):
    """Properties were declared with `assume` that contradict each other, a constant, or the ops."""


class DisconnectedInputError(PhintysError, ValueError):
    """A gradient was requested with respect to a variable that the cost does not depend on."""


class NullTypeGradError(PhintysError, TypeError):
    """An undefined gradient was requested; the message says why it is undefined."""


class GradientError(PhintysError):
    """`verify_grad` found a difference between an analytic and a numeric gradient."""


class NotScalarConstantError(PhintysError, ValueError):
    """A variable is not provably equal to one scalar constant."""


class ContradictionError(PhintysError):
    """Known lengths and indices contradict each other: what is computed from them always fails.

    Rewriting leaves such nodes as they are, so that a program raises the error if it gets there.
    """


class ShapeError(ContradictionError, ValueError):
    """Lengths that must agree do not, or a static shape is contradicted by a value."""


class SpecifiedShapeError(ShapeError, AssertionError):
    """A tensor has not the shape that `specify_shape` declares."""


class OutOfRangeError(ContradictionError, IndexError):
    """A constant index, or the length of a mask, does not fit a length that is known when the graph
    is built."""


class DroppedAxisError(ContradictionError, TypeError):
    """An axis that is dropped has a known length other than 1."""


class AliasedMemoryError(PhintysError):
    """Two values share memory that must not."""


class CompilerError(PhintysError):
    """A backend cannot compile: its compiler is missing, or it failed.  The message says which."""


class MissingPackageError(CompilerError, ImportError):
    """A backend needs a package that is not installed.  The message says which."""


class ComplexError(PhintysError, TypeError):
    """A function is not defined for complex numbers."""


class UnconvertibleError(PhintysError, TypeError, NotImplementedError):
    """A value cannot be a tensor: it is text, None, or an object of another kind."""


class UnsupportedError(PhintysError, TypeError):
    """Something was requested that the documentation lists as not supported."""


class RaggedError(UnsupportedError, ValueError):
    """What is computed for the items of a batch would differ in shape from item to item."""


class MissingAttributeError(UnsupportedError, AttributeError):
    """An attribute that other objects of this class have; the message says why this one has not.

    For ``hasattr`` it does not exist.
    """


class LoweringError(PhintysError):
    """An op's `lower` method built an illegal Program, or values of other types than its outputs.

    The message names the op.
    """


def bullet_list(items: Iterable[Any]) -> str:
    """Text with one indented line per item.

    >>> print(bullet_list(["a", "b"]))
      - a
      - b
    """
    return "\n".join(f"  - {item}" for item in items)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that proposes the closest known name; empty if none is close.

    >>> did_you_mean("FAST_RNU", ["FAST_RUN", "JAX"])
    " Did you mean 'FAST_RUN'?"
    """
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
