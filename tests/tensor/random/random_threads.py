"""Calls of one function from several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def drawn_in_threads(f: Callable[[], Any]) -> list[bytes]:
    """The results of 20 calls in each of three threads."""
    found: list[bytes] = []

    def work() -> None:
        for _ in range(20):
            found.append(f().tobytes())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found
