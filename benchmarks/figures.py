"""Tables and pictures of the records that ``run.py`` collects.

Ratios are times of a peer over those of Phintys in the same run: above 1, Phintys is faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workloads import WORKLOADS

US = "phintys"
Records = list[dict[str, Any]]
#: colours that can be told apart, also by those who see few
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are aligned; numbers to the right."""
    body = [list(row) for row in rows]
    columns = range(len(head))
    widths = [max(len(row[k]) for row in [list(head), *body]) for k in columns]
    right = [any(row[k][:1].isdigit() for row in body) for k in columns]

    def line(row: Sequence[str]) -> str:
        cells = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right))
        return f"| {' | '.join(cells)} |"

    rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, right)]
    return "\n".join([line(head), line(rule), *map(line, body)])


def seconds(t: float) -> str:
    """Three digits and a unit."""
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if t * factor < 1000:
            return f"{t * factor:.3g} {unit}"
    return f"{t:.3g} s"


def ratio(theirs: float | None, ours: float | None) -> str:
    if not theirs or not ours:
        return ""
    r = theirs / ours
    return f"{r:.2f}" if r < 10 else f"{r:.0f}"


def sizes_of(records: Records) -> list[str]:
    return list(dict.fromkeys(r["size"] for r in records))


def peers_of(records: Records) -> list[str]:
    """Labels in the order of their first record, ours left out."""
    found = dict.fromkeys(label for r in records for label in r["times"])
    return [label for label in found if label != US]


def throughput(records: Records) -> str:
    """One row for each workload and size."""
    peers = peers_of(records)
    rows = []
    for r in records:
        ours = r["times"].get(US)
        others = [r["times"][p] for p in peers if p in r["times"]]
        marks = [ratio(r["times"].get(p), ours) for p in peers]
        best = ratio(min(others), ours) if others else ""
        rows.append([r["workload"], r["size"], seconds(ours) if ours else "", *marks, best])
    return table(["workload", "size", US, *peers, "best peer"], rows)


def variants(records: Records) -> str:
    """Times of workloads over those of the workload that they are a variant of."""
    ours = {(r["workload"], r["size"]): r["times"].get(US) for r in records}
    rows: dict[str, dict[str, str]] = {}
    for (key, size), t in ours.items():
        w = WORKLOADS[key]
        base = ours.get((f"{w.family}: {w.unit}", size))
        if w.unit and base and t:
            rows.setdefault(f"{key} / {w.unit}", {})[size] = f"{t / base:.2f}"
    sizes = sizes_of(records)
    if not rows:
        return ""
    body = [[key, *(row.get(size, "") for size in sizes)] for key, row in rows.items()]
    return table(["time over time", *sizes], body)


def imports(found: dict[str, float]) -> str:
    rows = [[name, f"{t:.0f} ms", ratio(t, found.get(US))] for name, t in found.items()]
    return table(["library", "import", "over ours"], rows)


def to_first(record: dict[str, Any]) -> float | None:
    """Seconds from the end of importing to the first result."""
    return record["build"] + record["call"] if "build" in record else None


def shown(record: dict[str, Any]) -> str:
    """The time, or why there is none."""
    t = to_first(record)
    return seconds(t) if t is not None else next((k for k in ("slow", "failed") if k in record), "")


def firsts(records: Records) -> str:
    """First results, cold and from the disk cache, and the memory of the cold run."""
    ours = {r["workload"]: r for r in records if r["peer"] == US}
    rows = []
    for r in records:
        mine = ours.get(r["workload"], {"cold": {}, "warm": {}})
        cells = [r["workload"], r["peer"]]
        for state in ("cold", "warm"):
            cells += [shown(r[state]), ratio(to_first(r[state]), to_first(mine[state]))]
        memory = [f"{r['cold'][k]:.0f} MB" if k in r["cold"] else "" for k in MEMORY]
        rows.append([*cells, *memory])
    head = ["program", "library", "cold", "over ours", "from the cache", "over ours"]
    return table([*head, "memory, imported", "memory, cold"], rows)


MEMORY = ("imported_mb", "peak_mb")


def stages(records: Records) -> str:
    """Where the time of our first results goes, in milliseconds."""
    ours = [(r["workload"], state, r[state]) for r in records for state in CACHE if r["peer"] == US]
    timed = [(key, state, found) for key, state, found in ours if "build" in found]
    names = list(dict.fromkeys(name for *_, found in timed for name in found["stages"]))
    rows = []
    for key, state, found in timed:
        inside = found["stages"]
        rest = max(0.0, found["build"] - sum(inside.values()))
        times = [found["import"], rest, *(inside.get(n, 0.0) for n in names), found["call"]]
        rows.append([key, CACHE[state], *(f"{1e3 * t:.1f}" for t in times)])
    head = ["milliseconds", "machine code", "import", "expression", *names, "first call"]
    return table(head, rows)


#: where machine code comes from
CACHE = {"cold": "new", "warm": "cached"}


def growth(records: Records) -> str:
    """Seconds to the first result by number of nodes, and by how much doubling multiplies it."""
    lengths = sorted({r["nodes"] for r in records})
    found = {(r["expression"], r["peer"], r["nodes"]): r for r in records}
    rows = []
    for expression, peer in dict.fromkeys((r["expression"], r["peer"]) for r in records):
        line = [found.get((expression, peer, n), {}) for n in lengths]
        timed = [(n, t) for n, r in zip(lengths, line) if (t := to_first(r))]
        rows.append([expression, peer, *map(shown, line), doubling(timed)])
    return table(["expression", "library", *map(str, lengths), "per doubling"], rows)


def doubling(timed: Sequence[tuple[int, float]]) -> str:
    """What doubling the graph multiplies the time by, between the last two lengths."""
    if len(timed) < 2:
        return ""
    (n, t), (n2, t2) = timed[-2:]
    return f"{2 ** (math.log(t2 / t) / math.log(n2 / n)):.2f}"


def threads(records: Records) -> str:
    """Times of Phintys with one thread and with several."""
    both = [r for r in records if len(r["times"]) == 2]
    rows = []
    for r in both:
        serial, parallel = r["times"].values()
        speedup = ratio(serial, parallel)
        rows.append([r["workload"], r["size"], seconds(serial), seconds(parallel), speedup])
    return table(["workload", "size", *both[0]["times"], "times as fast"], rows) if both else ""


# ---------------------------------------------------------------- pictures


def figure(width: float, height: float, panels: int) -> tuple[Any, Any]:
    """A figure with panels side by side; a picture is the same for the same records."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": US, "font.size": 8, "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    size = (width, height)
    made, axes = plt.subplots(1, panels, figsize=size, sharey=True, squeeze=False)
    made.set_layout_engine("constrained")
    return made, axes[0]


def save(made: Any, axes: Any, path: Path) -> None:
    """Write the picture, with the legend of ``axes`` on top."""
    marks, labels = axes.get_legend_handles_labels()
    made.legend(marks, labels, loc="outside upper right", ncols=len(labels), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.savefig(path, metadata={"Date": None})


def draw_throughput(records: Records, path: Path) -> None:
    """A row for each workload, a panel for each size, a mark for each peer."""
    keys = list(dict.fromkeys(r["workload"] for r in records))
    sizes, peers = sizes_of(records), peers_of(records)
    made, panels = figure(2.4 + 2.4 * len(sizes), 1.2 + 0.18 * len(keys), len(sizes))
    for axes, size in zip(panels, sizes):
        for peer, colour in zip(peers, COLOURS):
            marks = [
                (r["times"][peer] / r["times"][US], -keys.index(r["workload"]))
                for r in records
                if r["size"] == size and {US, peer} <= r["times"].keys()
            ]
            xs, ys = zip(*marks) if marks else ((), ())
            axes.scatter(xs, ys, s=14, color=colour, label=peer, alpha=0.8)
        axes.axvspan(0.01, 1, color="#eeeeee", zorder=0)
        axes.axvline(1, color="black", linewidth=1)
        axes.set(xscale="log", xlim=(0.2, None), title=size, xlabel="times the time of Phintys")
        axes.set_yticks([-k for k in range(len(keys))], keys)
        axes.grid(axis="x", linewidth=0.3)
    save(made, panels[0], path)


def draw_growth(records: Records, path: Path) -> None:
    """Time to the first result by nodes: a panel for each expression, a line for each library."""
    expressions = list(dict.fromkeys(r["expression"] for r in records))
    peers = list(dict.fromkeys(r["peer"] for r in records))
    made, panels = figure(1 + 2.8 * len(expressions), 3.2, len(expressions))
    for axes, expression in zip(panels, expressions):
        for peer, colour in zip(peers, (COLOURS[-1], *COLOURS)):
            line = [
                (r["nodes"], to_first(r))
                for r in records
                if (r["expression"], r["peer"]) == (expression, peer) and "build" in r
            ]
            xs, ys = zip(*line) if line else ((), ())
            axes.plot(xs, ys, marker=".", color=colour, label=peer)
        axes.set(xscale="log", yscale="log", title=expression, xlabel="nodes")
        axes.grid(linewidth=0.3)
    panels[0].set_ylabel("seconds to the first result")
    save(made, panels[0], path)


def draw_firsts(records: Records, path: Path) -> None:
    """A line from the time with the disk cache (filled) to that without (hollow)."""
    keys = list(dict.fromkeys(r["workload"] for r in records))
    peers = list(dict.fromkeys(r["peer"] for r in records))
    made, (axes,) = figure(7, 0.8 + 0.2 * len(keys) * len(peers), 1)
    for k, (peer, colour) in enumerate(zip(peers, (COLOURS[-1], *COLOURS))):
        for r in records:
            warm, cold = to_first(r["warm"]), to_first(r["cold"])
            if r["peer"] == peer and warm and cold:
                y = [-keys.index(r["workload"]) - 0.8 * k / len(peers)] * 2
                axes.plot([warm, cold], y, color=colour, linewidth=1)
                axes.plot(warm, y[0], "o", color=colour, markersize=4)
                axes.plot(cold, y[0], "o", color=colour, markersize=4, markerfacecolor="white")
        axes.plot([], [], "o-", color=colour, markersize=4, label=peer)
    axes.set(xscale="log", xlabel="seconds after importing; filled: from the disk cache")
    axes.set_yticks([-j - 0.4 * (len(peers) - 1) / len(peers) for j in range(len(keys))], keys)
    axes.grid(axis="x", linewidth=0.3)
    save(made, axes, path)
