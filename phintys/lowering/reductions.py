"""Kinds of reductions, and their neutral elements."""

from __future__ import annotations

from typing import Any

import numpy as np

_OF_BOOLS = {"add": "or", "mul": "and", "max": "or", "min": "and"}


def combination(kind: str, dtype: str | None) -> str:
    """The kind that a Program states: sums and products of bools are ``or`` and ``and``.

    >>> combination("add", "bool"), combination("add", "uint8")
    ('or', 'add')
    """
    return _OF_BOOLS.get(kind, kind) if dtype == "bool" else kind


def identity(kind: str, dtype: str) -> Any:
    """The neutral element of ``add mul max min and or xor``: the result of an empty reduction.

    >>> identity("max", "float64"), identity("and", "uint8")
    (np.float64(-inf), np.uint8(255))
    """
    d = np.dtype(dtype)
    if kind in ("add", "or", "xor"):
        return d.type(0)
    if kind == "mul":
        return d.type(1)
    if kind == "and":
        return d.type(True) if d.kind == "b" else ~d.type(0)
    least = kind == "max"
    if d.kind == "f":
        return d.type(-np.inf if least else np.inf)
    if d.kind == "b":
        return d.type(not least)
    info = np.iinfo(d)
    return d.type(info.min if least else info.max)


def start_of_scan(kind: str, dtype: str) -> Any:
    """What the first element of a scan is combined with: the result is the element, also for -0.0.

    >>> start_of_scan("add", "float64")
    np.float64(-0.0)
    """
    start = identity(kind, dtype)
    return -start if kind == "add" and np.dtype(dtype).kind == "f" else start
