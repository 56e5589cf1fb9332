"""A library in a process of its own: what is asked of it, and how long it may take."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: what is looked for where no peer is named; PyTensor has two backends that matter
KNOWN = {
    "pytensor": ("pytensor:NUMBA", "pytensor:CVM"),
    "jax": ("jax",),
    "torch": ("torch",),
    "numba": ("numba",),
    "numpy": ("numpy",),
}
#: everybody gets the same number of threads
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC",
)  # fmt: skip


@dataclass(frozen=True)
class Peer:
    """A library, the Python that has it, and the number of threads it may use."""

    name: str
    python: str = sys.executable
    threads: int = 1

    @property
    def label(self) -> str:
        return self.name if self.threads == 1 else f"{self.name}, {self.threads} threads"

    def environment(self, **more: str) -> dict[str, str]:
        """Variables of its process.  The path leads to this checkout only in our own Python."""
        env = dict(os.environ)
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env.pop("PYTHONPATH", None)
        if self.python == sys.executable:
            env["PYTHONPATH"] = str(HERE.parent)
        count = str(self.threads)
        flags = f"--xla_cpu_multi_thread_eigen={'false' if self.threads == 1 else 'true'}"
        own = {"PHINTYS_FLAGS": f"threads={count}", "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        return env | dict.fromkeys(THREADS, count) | own | more


def parse(text: str) -> list[Peer]:
    """``NAME`` or ``NAME@PYTHON``; ``pytensor`` stands for both of its backends."""
    name, _, python = text.partition("@")
    return [Peer(n, python or sys.executable) for n in KNOWN.get(name, (name,))]


def installed() -> list[Peer]:
    """Phintys, and the known libraries of this Python."""
    found = [name for name in KNOWN if find_spec(name)]
    return [Peer("phintys"), *(p for name in found for p in parse(name))]


@dataclass
class Worker:
    """A conversation with ``worker.py`` of one peer.

    A request that takes too long ends the process; the next request starts another.
    ``allowance`` is what is left of the seconds that the peer may spend on building.
    """

    peer: Peer
    allowance: float
    verbose: bool = False
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> dict[str, Any]:
        """Start the process; ``missing`` in the reply if the library is not installed."""
        self.process = subprocess.Popen(
            [self.peer.python, str(HERE / "worker.py"), self.peer.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if self.verbose else subprocess.DEVNULL,
            text=True,
            env=self.peer.environment(),
        )
        return self._reply(120)

    def ask(self, do: str, limit: float, **request: Any) -> dict[str, Any]:
        """The reply of the worker, or ``failed`` or ``slow``."""
        if self.process is None and "ready" not in (reply := self.start()):
            return reply
        assert self.process and self.process.stdin
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()
        return self._reply(limit)

    def open(self, workload: str, limit: float) -> dict[str, Any]:
        """Build a workload, as long as building has not used up the allowance."""
        if self.allowance <= 0:
            return {"slow": "its time for building is used up"}
        reply = self.ask("open", min(limit, self.allowance), workload=workload)
        self.allowance -= reply.get("seconds", 0.0)
        return reply

    def _reply(self, limit: float) -> dict[str, Any]:
        assert self.process and self.process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            in_time = bool(selector.select(limit))
        if not in_time:
            self.stop()
            self.allowance -= limit
            return {"slow": f"more than {limit:.0f} s"}
        line = self.process.stdout.readline()
        if not line:
            self.stop()
            return {"failed": "its process ended"}
        return json.loads(line)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None
