"""Faults that are planted: each is another program, and one whose text is gone is noticed."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest
from planted_draw import Drawer
from planted_faults import Fault, Gone, planted, read_faults, sources_of
from planted_map import MAP, ROOT, read_map, stale, write_map
from planted_mutations import KINDS, changes, mutations
from planted_reach import difference
from planted_run import Campaign, Copy, Result, batches, described, modules_that_reach, table
from tiers import few_rows

MODULE = "phintys/shapes/area.py"
SOURCE = '''"""Areas of shapes, if width > 0."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    LIMIT = 3


class Shape:
    """A shape with two sides."""

    sides: "tuple[int, 2]" = (1, 2)

    def __repr__(self) -> str:
        return "Shape" + str(self.sides[0])

    def area(self, scale=1.0):
        if self.sides[0] < 0:
            raise ValueError("a side is below -1" + "!")
        total = scale * self.sides[0]
        self.cache["float64"] = total - 1
        return combine(total, self.sides[1:])

    def twice(self):
        if self.sides[0] < 0:
            return combine(
                total, -scale
            ) + combine(total, other)
        if self.sides[0] < 0:
            return 0


MAX_SIDES = 7


class Drawn(Protocol):
    def draw(self, width=5): ...
'''


def source_with(mutation) -> str:
    lines = SOURCE.split("\n")
    where, text = mutation.texts(lines)
    lines[where.start - 1 : where.stop - 1] = [text]
    return "\n".join(lines)


def test_each_kind_of_change_is_drawn_and_is_another_program() -> None:
    found = list(mutations(SOURCE))
    assert {m.kind for m in found} == set(KINDS)
    assert all(changes(SOURCE, m) for m in found)
    assert all(ast.parse(source_with(m)) for m in found)
    assert {m.function for m in found} == {"Shape", "Shape.area", "Shape.twice"}


@pytest.mark.parametrize(
    "text",
    [
        "if self.sides[0] <= 0:",
        "if self.sides[1] < 0:",
        "self.cache[\"float32\"] = total - 1",
        "self.cache[\"float64\"] = total + 1",
        "return combine(total, self.sides[0:])",
        "pass\n        return combine(total",
        "def area(self, scale=2.0):",
        "total, scale\n",
        "combine(other, total)",
    ],
)  # fmt: skip
def test_a_change_is_drawn(text: str) -> None:
    assert any(text in source_with(m) for m in mutations(SOURCE))


@pytest.mark.parametrize(
    "text",
    ["LIMIT = 3", '"Shape" + str', '"tuple[int, 2]"', "below -1", "width > 0", "= 7", "width=5"],
)
def test_texts_annotations_and_what_type_checkers_read_stay(text: str) -> None:
    assert all(text in source_with(m) for m in mutations(SOURCE) if m.kind != "dropped")


def record(**tests: list[int]) -> dict:
    return {
        "import": {MODULE: [1, 9, 12]},
        "tests": {f"tests/{name}.py": {MODULE: lines} for name, lines in tests.items()},
        "branches": {MODULE: [[18, "Shape.area", 0, 0]]},
        "sources": {MODULE: SOURCE},
    }


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / MODULE
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return tmp_path


FAULT = Fault(
    "one", "comparison", MODULE, "Shape.twice",
    "if self.sides[0] < 0:\n    return 0", "if self.sides[0] <= 0:\n    return 0",
)  # fmt: skip


def test_a_fault_changes_exactly_its_text_and_is_taken_back(tree: Path) -> None:
    path = tree / MODULE
    with planted(tree, FAULT):
        old, new = SOURCE.split("\n"), path.read_text(encoding="utf-8").split("\n")
        different = [(a, b) for a, b in zip(old, new) if a != b]
        assert len(old) == len(new)
        assert different == [("        if self.sides[0] < 0:", "        if self.sides[0] <= 0:")]
    assert path.read_text(encoding="utf-8") == SOURCE


def test_a_fault_survives_moves_of_its_text_and_of_its_module() -> None:
    function = SOURCE[SOURCE.index("    def twice") : SOURCE.index("\n\n\nMAX")]
    moved = (
        "class Shape:\n" + "\n" * 5 + "    if True:\n" + function.replace("\n    ", "\n        ")
    )
    moved = moved.replace("    def twice", "        def twice", 1)
    assert FAULT.module_in({"phintys/other.py": moved}) == "phintys/other.py"
    assert "if self.sides[0] <= 0:\n                return 0" in FAULT.applied(moved)


@pytest.mark.parametrize(
    "change",
    [
        {"old": "if self.sides[0] < 1:", "new": ""},  # nowhere
        {"old": "if self.sides[0] < 0:", "new": ""},  # in two places
        {"function": "Shape.thrice"},
    ],
)
def test_a_fault_whose_text_is_gone_is_noticed_and_drawn_anew(change: dict, tree: Path) -> None:
    gone = replace(FAULT, **change)
    with pytest.raises(Gone):
        gone.module_in(sources_of(tree))
    drawer = Drawer(tree, record(a=[*range(17, 30)]), 1)
    ((fault, reason),) = drawer.redrawn([gone])
    assert gone.name in reason
    assert (fault.name, fault.kind) == (gone.name, gone.kind) and fault.is_in(SOURCE)


def test_only_lines_that_run_are_drawn_from_with_the_same_result_for_a_seed(tree: Path) -> None:
    drawn = [Drawer(tree, record(a=[18, 21]), seed).draw(2) for seed in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]
    for fault in (f for faults in drawn for f in faults):
        assert fault.changed_lines(SOURCE) <= {12, 18, 21}
        assert fault.applied(SOURCE) != SOURCE


def test_nothing_is_drawn_from_a_module_that_has_changed_since_the_record(tree: Path) -> None:
    (tree / MODULE).write_text(SOURCE + "\n")
    assert Drawer(tree, record(a=[18]), 1).stale == [MODULE]


def test_faults_of_the_fuzzer_are_in_the_library() -> None:
    sources = sources_of(ROOT)
    for fault in read_faults("fuzzer"):
        module = fault.module_in(sources)
        changed = fault.applied(sources[module])
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(sources[module]))


def test_the_modules_that_reach_a_line_run_the_fewest_files_first() -> None:
    made = record(a=[29], b=[30], c=[29, 30], d=[1])
    made["tests"]["tests/a.py"]["phintys/other.py"] = [1]
    assert modules_that_reach(FAULT, made) == ["tests/c.py", "tests/a.py"]
    at_import = replace(
        FAULT, function="Shape", old='sides: "tuple[int, 2]" = (1, 2)', new="sides = (2, 2)"
    )
    assert len(modules_that_reach(at_import, made)) == 4
    assert list(batches([*"abcdefgh"])) == [["a"], ["b", "c"], ["d", "e", "f", "g"], ["h"]]


def test_the_table_says_what_found_a_fault() -> None:
    found = Result("new", FAULT.key, "the rest", "failed", "tests/a.py::test", 3.0)
    missed = Result("old", FAULT.key, "", "", "", 3.0)
    text = table([FAULT], [missed, found])
    assert "| nothing | the rest: tests/a.py::test |" in text
    assert "new: of 1 faults 0 by make test, 1 by the rest, 0 by nothing" in text
    assert "nothing" in described(FAULT, missed)


TESTS = """import os
from phintys.shapes.area import small

def test_that_always_fails(): assert False
def test_small(): assert small(3) or {crash}
def test_of_the_limit(): assert not small(4)
"""


@pytest.mark.parametrize(
    ("new", "crash", "how", "test"),
    few_rows(
        [
            ("return x <= 4", "False", "failed", "test_of_the_limit"),
            ("return x < 3", "os._exit(3)", "crash", "test_small"),
            ("return (x < 4", "False", "collection", ""),
        ],
        ("return (x < 4", "False", "collection", ""),
    ),
)
def test_the_tests_run_until_one_fails_that_passes_without_the_fault(
    tmp_path: Path, new: str, crash: str, how: str, test: str
) -> None:
    texts = {
        "phintys/shapes/area.py": "def small(x):\n    return x < 4\n",
        "tests/test_area.py": TESTS.format(crash=crash),
        "pytest.ini": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    made = record(test_area=[2])
    made["sources"][MODULE] = texts[MODULE]
    results = tmp_path / "results"
    campaign = Campaign("now", tmp_path, made, results, ["make test"], 60.0)
    fault = Fault("one", "comparison", MODULE, "small", "return x < 4", new)
    found = campaign.examine(fault, Copy(tmp_path, [*texts], tmp_path / "copy"))
    module = "tests/test_area.py"
    assert (found.how, found.test) == (how, f"{module}::{test}" if test else module)
    assert found.found == "make test"
    left_out = {f"{module}::test_that_always_fails"}
    again = Campaign("now", tmp_path, made, results, ["make test"], 60.0)
    assert campaign.known == again.known == (set() if how == "collection" else left_out)


def test_a_difference_is_told_by_function_and_text() -> None:
    before = record(a=[18, 20])
    after = json.loads(json.dumps(before))
    after["sources"][MODULE] = "\n\n" + SOURCE
    after["import"] = {MODULE: [3, 11, 14]}
    after["branches"] = {MODULE: [[20, "Shape.area", 0, 0]]}
    after["tests"] = {"tests/z.py": {MODULE: [20, 23]}}
    assert difference(before, after).split("\n") == [
        "lines lost: 1",
        f"  {MODULE}  |  Shape.area  |  total = scale * self.sides[0]",
        "lines gained: 1",
        f'  {MODULE}  |  Shape.area  |  self.cache["float64"] = total - 1',
        "branches lost: 0",
        "branches gained: 0",
    ]


def test_the_map_says_which_files_a_test_runs_and_what_it_misses(tree: Path) -> None:
    path = tree / "reach.json"
    write_map(record(a=[18], b=[]), path)
    assert read_map(path) == {"tests/a.py": {MODULE}, "tests/b.py": {MODULE}}
    (tree / "phintys" / "new.py").touch()
    assert stale(path, tree) == ["missing: phintys/new.py", "gone: tests/a.py", "gone: tests/b.py"]


def test_the_stored_map_has_most_modules() -> None:
    found = read_map()
    assert (ROOT / MAP).stat().st_size < 1_000_000
    assert all(name.startswith("phintys/") for files in found.values() for name in files)
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(modules & found.keys()) > 0.8 * len(modules), "make map writes it again"


def test_forty_faults_are_drawn() -> None:
    drawn = read_faults("drawn")
    assert len({(fault.module, fault.function, fault.old) for fault in drawn}) == 40
