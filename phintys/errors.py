"""Every exception a user can meet, and how a message is built.

All derive from the standard class that fits (TypeError, ValueError, ...), so a program that
catches the standard class keeps working.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class PhintysError(Exception):
    """Base of the exceptions that have no standard counterpart."""


class MissingInputError(PhintysError, ValueError):
    """A graph needs a variable that was not given as an input."""


class UnusedInputError(PhintysError, ValueError):
    """A function was given an input that none of its outputs uses, or the same input twice."""


class InconsistencyError(PhintysError):
    """A FunctionGraph would become illegal, e.g. through conflicting in-place operations."""


class MethodNotDefined(PhintysError, AttributeError):
    """An op does not have an optional method."""


class AlreadyThere(PhintysError):
    """Raised by ``Feature.on_attach`` to say that the feature need not be attached again."""


class ReplacementDidNotRemoveError(PhintysError):
    """A replacement that should have removed a node left it in the graph."""


class RewriteError(PhintysError):
    """A rewrite raised, or returned something illegal.  The message names the rewrite."""


class DisconnectedInputError(PhintysError, ValueError):
    """The gradient with respect to a variable that does not influence the cost was asked for."""


class NullTypeGradError(PhintysError, TypeError):
    """A gradient that is not defined was asked for; the message carries the reason."""


class GradientError(PhintysError):
    """`verify_grad` found a difference between an analytic and a numeric gradient."""


class NotScalarConstantError(PhintysError, ValueError):
    """A variable is not provably equal to one scalar constant."""


class ShapeError(PhintysError, ValueError):
    """Lengths that must agree do not, or a static shape is contradicted by a value."""


class AliasedMemoryError(PhintysError):
    """Memory is shared where it must not be."""


class CompilerError(PhintysError):
    """A backend cannot compile: its compiler is missing, or it failed.  The message says which."""


class UnsupportedError(PhintysError, TypeError):
    """A limit that is written in the documentation was met."""


class LoweringError(PhintysError):
    """An op's lowering contradicts its types, or is not legal; the message names the op."""


def bullet_list(items: Iterable[Any]) -> str:
    """Items as an indented list, one a line.

    >>> print(bullet_list(["a", "b"]))
      - a
      - b
    """
    return "\n".join(f"  - {item}" for item in items)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that proposes the closest known name, or an empty string.

    >>> did_you_mean("FAST_RNU", ["FAST_RUN", "JAX"])
    " Did you mean 'FAST_RUN'?"
    """
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
