"""What a node costs: to build, to differentiate, to rewrite; and how that grows with the graph.

    python benchmarks/per_node.py                                    # Phintys alone
    python benchmarks/per_node.py --peer pytensor@/path/to/python    # beside PyTensor
    python benchmarks/per_node.py --first                            # and in a fresh process

Libraries with Theano's interface run the same code, each in a process of its own, taking turns.
Times are the least of several, in microseconds per node: building per node of the expression,
the gradient per node that it adds, rewriting per node of the graph that is rewritten.  Fusion and
work in place are left out of PyTensor's rewriting: Phintys plans both while it generates code.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

STAGES = ("build", "grad", "rewrite")
Expression = Callable[[Any, Any, int], tuple[list[Any], Any]]


# ------------------------------------------------------------------------------- models


def logistic(lib: Any, pt: Any, n: int) -> tuple[list[Any], Any]:
    """Logistic regression with a normal prior."""
    X, y, b = pt.dmatrix("X"), pt.dvector("y"), pt.dvector("b")
    eta = pt.dot(X, b)
    logp = (y * eta - pt.log1p(pt.exp(eta))).sum() - 0.5 * (b * b).sum()
    return [b], logp


def radon(lib: Any, pt: Any, n: int) -> tuple[list[Any], Any]:
    """Intercepts and slopes that vary by group."""
    idx, floor, y = pt.lvector("idx"), pt.dvector("floor"), pt.dvector("y")
    mu_a, ls_a, mu_b, ls_b, ls_y = pt.dscalars("mu_a", "ls_a", "mu_b", "ls_b", "ls_y")
    za, zb = pt.dvectors("za", "zb")
    a, b, sy = mu_a + pt.exp(ls_a) * za, mu_b + pt.exp(ls_b) * zb, pt.exp(ls_y)
    r = (y - (a[idx] + b[idx] * floor)) / sy
    prior = -0.5 * (mu_a**2 + mu_b**2 + ls_a**2 + ls_b**2 + ls_y**2)
    logp = prior + (-0.5 * za**2).sum() + (-0.5 * zb**2).sum()
    return [mu_a, ls_a, mu_b, ls_b, za, zb, ls_y], logp + (-0.5 * r**2 - pt.log(sy)).sum()


def mlp(lib: Any, pt: Any, n: int) -> tuple[list[Any], Any]:
    """Two layers and the cross-entropy of a softmax."""
    special = importlib.import_module(f"{lib.__name__}.tensor.special")
    x, y = pt.dmatrix("x"), pt.lvector("y")
    w1, w2, b1, b2 = pt.dmatrix("w1"), pt.dmatrix("w2"), pt.dvector("b1"), pt.dvector("b2")
    h = pt.maximum(pt.dot(x, w1) + b1, 0)
    log_p = special.log_softmax(pt.dot(h, w2) + b2, axis=1)
    return [w1, b1, w2, b2], -log_p[pt.arange(y.shape[0]), y].mean()


def chain(lib: Any, pt: Any, n: int) -> tuple[list[Any], Any]:
    """Elementwise operations one after the other."""
    x = pt.dvector("x")
    y = x
    for k in range(n // 5):
        y = pt.tanh(y * (0.5 + k / (2 * n)) + x) - 0.01 * x
    return [x], y.sum()


def terms(lib: Any, pt: Any, n: int) -> tuple[list[Any], Any]:
    """Different scalar terms side by side, on entries of a vector."""
    x = pt.dvector("x")
    parts = []
    for k in range(max(1, n // 8)):
        z = (x[k % 10] - math.sin(k)) / (1.5 + math.cos(k))
        parts.append(-0.5 * z**2 - pt.log1p(pt.exp(z * math.sin(3 * k))))
    return [x], pt.add(*parts)


def gathers(lib: Any, pt: Any, n: int) -> tuple[list[Any], Any]:
    """Every entry of a vector by itself."""
    x = pt.dvector("x")
    return [x], pt.add(*(pt.exp(x[k]) * x[k + 1] for k in range(max(1, n // 4))))


#: name -> (expression, sizes by which it grows)
MODELS: dict[str, tuple[Expression, Sequence[int]]] = {
    "logistic": (logistic, ()),
    "radon": (radon, ()),
    "mlp": (mlp, ()),
    "chain": (chain, (500, 1000, 2000, 5000, 10_000, 20_000)),
    "terms": (terms, (500, 1000, 2000, 5000, 10_000, 20_000)),
    "gathers": (gathers, (500, 1000, 2000, 5000, 10_000, 20_000)),
}


# ------------------------------------------------------------------------------ measuring


def count(outputs: Sequence[Any]) -> int:
    """How many nodes compute the outputs."""
    seen, stack = set(), [v.owner for v in outputs]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(v.owner for v in node.inputs)
    return len(seen)


def measure(lib: Any, expression: Expression, n: int) -> dict[str, Any]:
    """Seconds and nodes of each stage, once."""
    tensor = importlib.import_module(f"{lib.__name__}.tensor")
    graph = importlib.import_module(f"{lib.__name__}.graph")
    get_mode = importlib.import_module(f"{lib.__name__}.compile.mode").get_mode
    mode = get_mode("FAST_RUN").excluding("fusion", "inplace")
    gc.collect()
    t0 = time.process_time()
    wrt, value = expression(lib, tensor, n)
    t1 = time.process_time()
    grads = lib.grad(value, wrt)
    t2 = time.process_time()
    outputs = [value, *grads]
    inputs = list(dict.fromkeys(graph.traversal.explicit_graph_inputs(outputs)))
    fgraph = graph.FunctionGraph(inputs, outputs, clone=True)
    t3 = time.process_time()
    mode.optimizer.rewrite(fgraph)
    t4 = time.process_time()
    built, all_nodes = count([value]), count(outputs)
    return {
        "seconds": [t1 - t0, t2 - t1, t4 - t3],
        "nodes": [built, all_nodes - built, all_nodes],
        "left": len(fgraph.apply_nodes),
    }


def worker(name: str) -> None:
    """Answer requests ``[model, n]``, one a line, until standard input ends."""
    lib = importlib.import_module(name)
    importlib.import_module(f"{name}.tensor")
    importlib.import_module(f"{name}.graph.traversal")
    for line in sys.stdin:
        model, n = json.loads(line)
        print(json.dumps(measure(lib, MODELS[model][0], n)), flush=True)


class Peer(NamedTuple):
    """A library and its process."""

    name: str
    process: Any

    @classmethod
    def start(cls, spec: str) -> Peer:
        """``module`` or ``module@interpreter``."""
        name, _, python = spec.partition("@")
        command = [python or sys.executable, __file__, "--worker", name]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return cls(name, subprocess.Popen(command, **pipes))

    def ask(self, model: str, n: int) -> dict[str, Any]:
        """One measurement."""
        print(json.dumps([model, n]), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} failed on {model} with n={n}.")
        found: dict[str, Any] = json.loads(answer)
        return found

    def stop(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


class Cost(NamedTuple):
    """What a stage takes, in microseconds, and how many nodes it is about."""

    us: float
    nodes: int

    @property
    def per_node(self) -> float:
        """Microseconds per node."""
        return self.us / max(self.nodes, 1)


def compare(peers: Sequence[Peer], model: str, n: int, rounds: int) -> list[list[Cost]]:
    """The cost of each stage, for each peer; the least of some rounds after a first one."""
    best = [[Cost(math.inf, 0)] * len(STAGES) for _ in peers]
    for k in range(rounds + 1):
        for peer, least in zip(peers, best):
            found = peer.ask(model, n)
            costs = [Cost(1e6 * s, nodes) for s, nodes in zip(found["seconds"], found["nodes"])]
            least[:] = [min(a, b) for a, b in zip(least, costs)] if k else least
    return best


def report(label: str, peers: Sequence[Peer], best: Sequence[Sequence[Cost]]) -> None:
    """A line for each stage; ratios to the first peer, per node and in all."""
    for k, stage in enumerate(STAGES):
        first = best[0][k]
        cells = [f"{peer.name} {row[k].per_node:8.2f} us" for peer, row in zip(peers, best)]
        for row in best[1:]:
            per_node, in_all = row[k].per_node / first.per_node, row[k].us / first.us
            cells.append(f"{per_node:6.1f}x per node, {in_all:6.1f}x in all")
        print(f"{label if not k else '':16s} {stage:8s} {'   '.join(cells)}", flush=True)


def first_graph(spec: str) -> None:
    """The first graph of a fresh process: what is prepared once is in these times."""
    for model in ("logistic", "radon", "mlp"):
        peer = Peer.start(spec)
        found = peer.ask(model, 0)
        cells = "   ".join(
            f"{stage} {1e3 * s:7.2f} ms" for stage, s in zip(STAGES, found["seconds"])
        )
        print(f"first graph      {peer.name} {model:10s} {cells}", flush=True)
        peer.stop()


def main() -> None:
    """Read arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--peer", action="append", default=[], help="module[@interpreter]")
    parser.add_argument("--only", default="", help="names of models, separated by commas")
    parser.add_argument("--limit", type=int, default=20_000, help="largest graph of Phintys")
    parser.add_argument("--peer-limit", type=int, default=500, help="largest graph of peers")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--first", action="store_true", help="also the first graph of a process")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return
    specs = ["phintys", *options.peer]
    chosen = [m for m in MODELS if m in (options.only.split(",") if options.only else MODELS)]
    if options.first:
        for spec in specs:
            first_graph(spec)
    peers = [Peer.start(spec) for spec in specs]
    for model in chosen:
        sizes = [n for n in MODELS[model][1] if n <= options.limit]
        # models that do not grow take no notice of the size
        shared = max([n for n in sizes if n <= options.peer_limit], default=options.peer_limit)
        report(model, peers, compare(peers, model, shared, options.rounds))
        grow(peers[0], model, sizes, max(2, options.rounds // 4))
    for peer in peers:
        peer.stop()


def grow(peer: Peer, model: str, sizes: Sequence[int], rounds: int) -> None:
    """Microseconds per node as the graph grows."""
    for n in sizes:
        (row,) = compare([peer], model, n, rounds)
        cells = [f"{stage} {cost.per_node:6.2f}" for stage, cost in zip(STAGES, row)]
        print(f"{'':16s} n={n:<7d} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
