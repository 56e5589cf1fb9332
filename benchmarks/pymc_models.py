"""Models of PyMC on Phintys beside PyTensor: a table of times.

``make bench-pymc`` makes an environment for each and runs this.  Each model is measured in two
processes of its own on each engine: the first starts with an empty cache (cold), the second has
what the first one has left (warm).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
#: those models of ``tests/pymc`` that are measured
NAMES = (
    "eight_schools", "rats", "coal_mining_disasters", "seeds", "pumps", "golf_putting", "rugby",
    "dugongs", "linear", "logistic", "negative_binomial", "ordered_logistic", "softmax_regression",
    "horseshoe", "radon", "item_response", "missing_values", "normal_mixture", "censored",
    "excess_zeros", "ar1", "ar2_latent", "normal_with_lkj", "gp_marginal", "hsgp",
)  # fmt: skip
RESULT = HERE / "results" / "pymc.md"
#: one thread for everybody
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: seconds for one process
PATIENCE = 600
#: cold and warm measurement of a model
Pair = tuple[dict[str, Any], dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs="+", type=Path, help="of an environment with PyMC")
    parser.add_argument("--only", action="append", choices=NAMES, help="a model")
    parser.add_argument("--publish", action="store_true", help=f"write {RESULT.name}")
    parser.add_argument("--json", type=Path, help="a file for all that was measured")
    options = parser.parse_args()
    rows = {name: dict(measured(name, options.python)) for name in options.only or NAMES}
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    text = table(rows)
    print(text)
    if options.publish:
        RESULT.write_text(text + "\n")


def measured(name: str, pythons: list[Path]) -> Iterator[tuple[str, Pair]]:
    """The engine of each environment, and what was measured there."""
    for python in pythons:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = process(python, name, cache), process(python, name, cache)
        print(f"{name:24} {cold['engine']:16} {cold['compile']:8.3f} s", file=sys.stderr)
        yield cold["engine"], (cold, warm)


def process(python: Path, name: str, cache: str) -> dict[str, Any]:
    """What one process prints."""
    environment = {
        **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        **dict.fromkeys(THREADS, "1"),
        "PHINTYS_CACHE_DIR": f"{cache}/phintys",
        "PHINTYS_FLAGS": "threads=1",
        "PYTENSOR_FLAGS": f"base_compiledir={cache}/pytensor",
        "NUMBA_CACHE_DIR": f"{cache}/numba",
    }
    command = [python, HERE / "pymc_worker.py", name]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode:
        raise RuntimeError(f"{name} with {python}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


# ----- the table
def table(rows: Mapping[str, Mapping[str, Pair]]) -> str:
    """A row for each model; a line of ratios below, where there are two engines."""
    engines = list(next(iter(rows.values())))
    titles = [f"{what} {e}" for what in ("cold", "warm", "call", "draws/s") for e in engines]
    lines = ["| model | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for name, found in rows.items():
        cells = [
            *(f"{found[e][0]['compile']:.2f} s" for e in engines),
            *(f"{found[e][1]['compile']:.2f} s" for e in engines),
            *(f"{1e6 * found[e][1]['call']:.1f} us" for e in engines),
            *(f"{found[e][1]['draws']:.0f}" for e in engines),
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    own = engines[0]
    lines += ["", *starts(rows, engines), f"cold / import numpy of {own}: {cold_starts(rows, own)}"]
    lines += [sums(rows, own, other) for other in engines[1:]]
    return "\n".join(lines)


def starts(rows: Mapping[str, Mapping[str, Pair]], engines: list[str]) -> Iterator[str]:
    """Seconds of imports, the median over all processes."""
    for engine in engines:
        found = [one for row in rows.values() for one in row[engine]]
        steps = ("import numpy", "import pytensor", "import pymc")
        times = ", ".join(f"{s} {median(one[s] for one in found):.3f} s" for s in steps)
        yield f"{engine}: {times}"


def cold_starts(rows: Mapping[str, Mapping[str, Pair]], engine: str) -> str:
    ratios = sorted(
        row[engine][0]["compile"] / median(one["import numpy"] for one in row[engine])
        for row in rows.values()
    )
    fifth = ratios[int(0.8 * (len(ratios) - 1))]
    return f"median {median(ratios):.1f}, four in five at most {fifth:.1f}, most {ratios[-1]:.1f}"


def sums(rows: Mapping[str, Mapping[str, Pair]], own: str, other: str) -> str:
    """How many times as fast as another engine: median (least)."""

    def ratios(when: int, what: str) -> list[float]:
        return [row[other][when][what] / row[own][when][what] for row in rows.values()]

    speeds = [1 / r for r in ratios(1, "draws")]
    mean = exp(sum(map(log, speeds)) / len(speeds))
    parts = {"cold": ratios(0, "compile"), "warm": ratios(1, "compile"), "call": ratios(1, "call")}
    text = ", ".join(f"{k} {median(v):.1f} ({min(v):.1f})" for k, v in parts.items())
    return f"times as fast as {other}, median (least): {text}; draws, geometric mean: {mean:.2f}"


if __name__ == "__main__":
    main()
