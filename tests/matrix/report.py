"""The matrix as a table: ``python tests/matrix/report.py [backends]``.

Rows are op families, columns backends; an entry is the number of cells that are right, and how
many are blank in brackets.  Blanks follow with their reasons, then what is wrong.
``PHINTYS_TESTS=full`` runs all cells on backends that are otherwise sampled.
"""

from __future__ import annotations

import sys
from collections import Counter

import matrix_run
from matrix_blanks import blank_of


def main(backends: list[str]) -> int:
    right: Counter[tuple[str, str]] = Counter()
    blank: Counter[tuple[str, str]] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    wrong: dict[str, str] = {}
    for backend in backends:
        for columns in matrix_run.chunks(backend).values():
            for cell, why in matrix_run.run(backend, columns).items():
                place = cell.column.family, backend
                known = blank_of(cell)
                if known is not None:
                    blank[place] += 1
                    reasons[backend, known.reason] += 1
                elif why:
                    wrong[str(cell)] = why
                else:
                    right[place] += 1
    families = dict.fromkeys(family for family, _ in [*right, *blank])
    _table(families, backends, right, blank)
    for (backend, reason), count in reasons.items():
        print(f"blank, {backend}, {count} cells: {reason}")
    for cell, why in wrong.items():
        print(f"WRONG {cell}: {why}")
    return len(wrong)


def _table(families, backends, right, blank) -> None:
    width = max(map(len, families))
    print(" " * width, *(f"{b:>14}" for b in backends))
    for family in families:
        entries = [_entry(right[family, b], blank[family, b]) for b in backends]
        print(f"{family:{width}}", *(f"{e:>14}" for e in entries))
    totals = [
        _entry(sum(right[f, b] for f in families), sum(blank[f, b] for f in families))
        for b in backends
    ]
    print(f"{'total':{width}}", *(f"{e:>14}" for e in totals))


def _entry(right: int, blank: int) -> str:
    return f"{right} ({blank})" if blank else str(right)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:] or list(matrix_run.MODES))))
