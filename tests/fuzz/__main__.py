"""``python -m tests.fuzz``: random programs on all backends.

Every seed is one program.  What is run on a seed, and whether something is found, depends on the
seed and the shares of the backends alone.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "planted"))

from fuzz_campaign import Campaign, replay_files
from fuzz_run import SHARES, WIDTHS, has_width
from planted_faults import Fault, copied_package, planted, read_faults

HERE = Path(__file__).parent
PLANTED = {fault.name: fault for fault in read_faults("fuzzer")}


def main() -> int:
    options = parsed()
    if options.plant:
        return with_fault(PLANTED[options.plant])
    shares = dict(SHARES)
    if options.backend:
        shares = dict.fromkeys(shares, 0.0) | {
            name: float(share or 1)
            for name, _, share in (b.partition("=") for b in options.backend)
        }
    unknown = set(shares) - set(SHARES)
    if unknown:
        raise SystemExit(f"There is no backend {unknown}: choose from {list(SHARES)}.")
    widths = options.width or (list(WIDTHS) if has_width() else [0])
    if options.replay:
        return replay(options.replay, [b for b in shares if shares[b]], widths)
    campaign = Campaign(
        options.seed, options.count, options.workers, shares, widths,
        options.corpus, not options.quick, options.first,
    )  # fmt: skip
    start = time.monotonic()
    gc.freeze()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # what was done until then is reported
        campaign.run()
    seconds = time.monotonic() - start
    print(f"{campaign.counts['graphs']} graphs in {seconds:.0f} s; runs by backend:")
    for name, count in sorted(campaign.counts.items()):
        print(f"  {count:8} {name}")
    print(f"{len(campaign.findings)} findings")
    for signature, count in campaign.seen.most_common():
        print(f"  {count:8} {': '.join(signature)}")
    return bool(campaign.findings)


def with_fault(fault: Fault) -> int:
    """The same command without ``--plant``, on a copy of the package that has the fault."""
    plant = argparse.ArgumentParser(allow_abbrev=False)
    plant.add_argument("--plant")
    command = [sys.executable, str(HERE), *plant.parse_known_args()[1]]
    with tempfile.TemporaryDirectory() as folder:
        copied_package(HERE.parents[1], Path(folder))
        with planted(Path(folder), fault):
            environment = {**os.environ, "PYTHONPATH": folder}
            return subprocess.run(command, env=environment).returncode


def replay(paths: list[Path], backends: list[str], widths: list[int]) -> int:
    """Programs in files on all backends."""
    files = [f for p in paths for f in (sorted(p.glob("*.py")) if p.is_dir() else [p])]
    found = replay_files(files, backends, widths)
    for path, problem in found.items():
        print(f"{path.name}: {problem or 'right'}")
    return any(found.values())


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--backend", action="append", help="NAME or NAME=SHARE; may be given several times"
    )
    parser.add_argument("--width", type=int, action="append", help="bits of vectors")
    parser.add_argument("--corpus", type=Path, help="where minimised programs are written")
    parser.add_argument("--quick", action="store_true", help="do not minimise")
    parser.add_argument("--first", action="store_true", help="stop at the first finding")
    parser.add_argument("--plant", choices=sorted(PLANTED), help="run on a library with this fault")
    parser.add_argument("--replay", type=Path, nargs="+", help="files or folders of programs")
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["PHINTYS_CACHE_DIR"] = cache
        code = main()
    raise SystemExit(code)
