"""``python -m tests.densities``: how many values and derivatives of densities are wrong."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from density_judge import Judged, judge_all, judged  # noqa: E402
from density_known import (  # noqa: E402
    read_differing,
    read_known,
    updated,
    write_differing,
    write_known,
)
from density_row import Density  # noqa: E402
from density_subsets import MANY, differing  # noqa: E402
from density_table import TABLE  # noqa: E402
from density_truth import DTYPES, store, truths  # noqa: E402

ORDERS = ("values", "gradients", "second derivatives")
PYTENSOR_FLAGS = "linker=vm,cxx=,optimizer_excluding=fusion"


def theirs(densities: list[Density], dtype: str, interpreter: str) -> list[Judged]:
    """What PyTensor gives, in an interpreter that has it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = (str(Path(folder, name)) for name in ("points.npz", "results.npz"))
        np.savez(source, **{d.name: truths(d, dtype).points for d in densities})
        program = [interpreter, str(HERE / "density_evaluate.py"), "pytensor", dtype]
        command = [*program, target, source, *(d.name for d in densities)]
        environment = os.environ | {"PYTENSOR_FLAGS": PYTENSOR_FLAGS, "PYTHONPATH": str(HERE)}
        subprocess.run(command, env=environment, check=True)
        with np.load(target) as found:
            return [
                judged(d, form, found[f"{d.name}/{form}"], dtype)
                for d in densities
                for form in d.forms
                if f"{d.name}/{form}" in found
            ]


def print_table(all_judged: list[Judged]) -> None:
    print(f"{'density':34} {'points':>6} {'places':>7}" + "".join(f"{o:>20}" for o in ORDERS))
    total = np.zeros((2, 3), int)
    for name in dict.fromkeys(j.density.name for j in all_judged):
        mine = [j for j in all_judged if j.density.name == name]
        counts = np.sum([j.counts() for j in mine], axis=0)
        total += counts
        print_line(name, len(mine[0].errors), counts)
    print_line("total", 0, total)
    share = 100 * total[1].sum() / max(1, total[0].sum())
    print(f"wrong: {total[1].sum()} of {total[0].sum()}, {share:.2f} %")


def print_line(name: str, points: int, counts: np.ndarray) -> None:
    parts = (f"{w} ({100 * w / max(1, n):.1f} %)" for n, w in counts.T)
    print(f"{name:34} {points or '':>6} {counts[0].sum():>7}" + "".join(f"{p:>20}" for p in parts))


def print_places(title: str, places: list[tuple[Judged, int, int]], count: int) -> None:
    """Places: a form, the number of a point, the number of a quantity; the worst first."""
    print(f"\n{title}: {len(places)}")
    if not count:
        return
    forms = Counter(j.name for j, _, _ in places)
    print(", ".join(f"{name} {n}" for name, n in forms.most_common()))
    places.sort(key=lambda place: -place[0].errors[place[1:]])
    for j, row, column in places[:count]:
        point = ", ".join(
            f"{n}={x:.9g}" for n, x in zip(j.density.names, j.truths.points[row], strict=True)
        )
        print(
            f"{j.name} {j.density.quantities[column]} at {point}: "
            f"{j.results[row, column]:.9g}, truth {j.truths.numbers[row, column]:.9g}, "
            f"error {j.errors[row, column]:.2g}"
        )


def wrong_places(j: Judged, where: np.ndarray) -> list[tuple[Judged, int, int]]:
    return [(j, int(row), int(column)) for row, column in np.argwhere(where)]


def compare_subsets(densities: list[Density], dtype: str, write: bool) -> None:
    """Print the forms of which a part depends on what else is compiled; perhaps list them."""
    listed = read_differing()
    for density in densities:
        for form in density.forms:
            name = f"{density.name}/{form}"
            parts = differing(density, form, dtype, MANY)
            listed[name] = frozenset(parts), listed.get(name, ("", ""))[1]
            if parts:
                print(f"{name}: {', '.join(parts)}", flush=True)
    if write:
        write_differing(listed)


def write_all_known(densities: list[Density]) -> None:
    known = read_known()
    for dtype in DTYPES:
        known = updated(known, judge_all(densities, dtype, "FAST_RUN"), dtype)
    write_known(known)


def compare(found: list[Judged], other: list[Judged], worst: int) -> None:
    """The table of PyTensor, and the places where only one of both is right."""
    print("\nPyTensor")
    print_table(other)
    by_name = {j.name: j for j in other}
    pairs = [(j, by_name[j.name]) for j in found if j.name in by_name]
    only_there = [p for a, b in pairs for p in wrong_places(a, a.wrong & ~b.wrong)]
    only_here = [p for a, b in pairs for p in wrong_places(b, b.wrong & ~a.wrong)]
    print_places("right in PyTensor, wrong here", only_there, worst)
    print_places("right here, wrong in PyTensor", only_here, worst)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.densities", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="densities; none: all")
    add("--dtype", default="float64", choices=DTYPES)
    add("--mode", default="FAST_RUN")
    add("--worst", type=int, default=0, metavar="N", help="list N wrong places")
    add("--oracle", metavar="PYTHON", help="an interpreter that has PyTensor, to compare with")
    add("--subsets", action="store_true", help="which parts depend on what else is compiled")
    add("--known", action="store_true", help="write what is wrong to the list of what is known")
    add("--truths", action="store_true", help="compute and store the truths")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    densities = [TABLE[name] for name in options.names or TABLE]
    if options.truths:
        for density in densities:
            store(density)
    elif options.subsets:
        compare_subsets(densities, options.dtype, options.known)
    elif options.known:
        write_all_known(densities)
    else:
        print_judgement(densities, options)


def print_judgement(densities: list[Density], options: argparse.Namespace) -> None:
    found = list(judge_all(densities, options.dtype, options.mode))
    print_table(found)
    if options.worst:
        places = [p for j in found for p in wrong_places(j, j.wrong)]
        print_places("wrong places", places, options.worst)
    if options.oracle:
        compare(found, theirs(densities, options.dtype, options.oracle), options.worst)


if __name__ == "__main__":
    main()
