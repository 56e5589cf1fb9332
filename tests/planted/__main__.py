"""``python -m tests.planted``: which lines tests reach, and whether they find faults in them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from planted_draw import Drawer
from planted_faults import read_faults, write_faults
from planted_map import MAP, ROOT, write_map
from planted_reach import difference, totals
from planted_run import STAGES, Campaign, read_results, table
from reach_plugin import read

RECORD = ROOT / ".reach" / "record.json.gz"
RESULTS = ROOT / ".reach" / "results.jsonl"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def command(run: Callable[[argparse.Namespace], None], help: str) -> argparse.ArgumentParser:
        added = commands.add_parser(run.__name__.removeprefix("command_"), help=help)
        added.set_defaults(run=run)
        return added

    with_record = command(command_totals, "lines and branches that a record has")
    with_record.add_argument("record", type=Path, nargs="?", default=RECORD)
    compared = command(command_difference, "what a second record lost and gained")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path, nargs="?", default=RECORD)
    with_record = command(command_map, f"write {MAP} from a record")
    with_record.add_argument("record", type=Path, nargs="?", default=RECORD)
    add_draw(command(command_draw, "draw faults, or replace those whose text is gone"))
    add_run(command(command_run, "run the tests that reach each fault"))
    shown = command(command_table, "what found each fault, in each run")
    shown.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def add_draw(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--anew", action="store_true", help="replace all")


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="now", help="of the run, in the table")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose tests run")
    parser.add_argument("--record", type=Path, default=RECORD, help="of this checkout")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--stage", choices=STAGES, action="append", help="default: both")
    parser.add_argument("--seconds", type=float, default=600, help="for one fault")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--fault", action="append", help="the names of those to run")


def command_totals(options: argparse.Namespace) -> None:
    print(totals(read(options.record)))


def command_difference(options: argparse.Namespace) -> None:
    print(difference(read(options.before), read(options.after)))


def command_map(options: argparse.Namespace) -> None:
    write_map(read(options.record))


def command_draw(options: argparse.Namespace) -> None:
    drawer = Drawer(ROOT, read(options.record), options.seed)
    for module in drawer.stale:
        print(f"{module} has changed since the record: nothing is drawn from it")
    if options.anew:
        write_faults("drawn", drawer.draw(options.count))
        return
    pairs = list(drawer.redrawn(read_faults("drawn")))
    for fault, reason in pairs:
        if reason:
            print(f"{reason}; drawn instead: {fault.module}: {fault.function}")
    write_faults("drawn", [fault for fault, _ in pairs])


def command_run(options: argparse.Namespace) -> None:
    faults = read_faults("drawn")
    if options.fault:
        faults = [f for f in faults if f.name in options.fault]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    stages = options.stage or list(STAGES)
    campaign = Campaign(
        options.name, options.tree.resolve(), read(options.record), options.results, stages,
        options.seconds,
    )  # fmt: skip
    campaign.run(faults, options.workers)


def command_table(options: argparse.Namespace) -> None:
    print(table(read_faults("drawn"), read_results(options.results)))


if __name__ == "__main__":
    options = parsed()
    options.run(options)
