"""The fuzzer: it draws the whole language, its corpus is right, and fixed seeds find nothing."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import fuzz_generate
import numpy as np
import pytest
from fuzz_compare import _evaluated, _moving, hides_a_step_that_fails
from fuzz_draw import Drawer, Failing, Unfit
from fuzz_functions import OUT, draw_public, public_functions, undrawn
from fuzz_numpy import NUMPY
from fuzz_program import Built, Input, Program, Statement, evaluate_text
from fuzz_run import Judge, Plan
from fuzz_uses import USES
from fuzz_values import in_layout
from planted_faults import read_faults
from tiers import few, rest

import phintys
import phintys.tensor as pt

HERE = Path(__file__).parent
CORPUS = sorted((HERE / "corpus").glob("*.py"))


def fuzz(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line, in a process that may fork."""
    command = [sys.executable, str(HERE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1])


def test_every_public_function_is_drawn_or_out_with_a_reason() -> None:
    assert undrawn() == set()


def drawn(name: str, seed: int) -> bool | None:
    """Whether a call of a function, if one is drawn, is also evaluated by NumPy."""
    g = Drawer(seed)
    try:
        text = draw_public(g, name)
        pair = (text, None) if isinstance(text, str) else text
        if pair is None or g.add(*pair) is None:
            return None
        evaluate_text(pair[1] or pair[0], g.arrays)
    except (Unfit, Failing):
        return None
    except Exception:
        return False
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(public_functions().keys() - OUT.keys()))
def test_a_public_function_is_drawn_and_compared_with_that_of_numpy(name: str) -> None:
    """A call whose arguments do not fit would be left out, and a text that NumPy refuses too."""
    calls = (drawn(name, seed) for seed in range(60))
    wanted = (True,) if hasattr(np, name) or hasattr(NUMPY, name) else (True, False)
    assert any(found in wanted for found in calls)


@cache
def replayed(paths: tuple[Path, ...]) -> dict[str, str]:
    """What is wrong with programs, by the names of their files."""
    done = fuzz("--replay", *paths, *(f"--backend={b}" for b in BACKENDS))
    lines = (line.partition(": ") for line in done.stdout.splitlines())
    return {name: rest for name, _, rest in lines}


BACKENDS = ("llvm", "llvm unrewritten", "numpy", "interpreter", "c", "differences")


#: the program of the corpus that ``make test`` replays
SHORT = HERE / "corpus" / "kronecker_product_of_bools.py"


@pytest.mark.parametrize("path", few(CORPUS, SHORT), ids=lambda p: p.stem)
def test_program_of_the_corpus(path: Path) -> None:
    """The programs of the rest are replayed in one process."""
    others = tuple(p for p in CORPUS if p != SHORT)
    assert replayed((SHORT,) if path == SHORT else others)[path.name] == "right"


def test_a_seed_gives_the_same_program_each_time() -> None:
    programs = [fuzz_generate.generate(3)[0].text() for _ in range(2)]
    assert programs[0] == programs[1]


@pytest.mark.parametrize(
    ("rows", "fixed", "hides"), [((0, 3), 3, False), ((0, 3), 4, True), ((2, 3), 3, False)]
)
def test_only_a_loop_of_no_steps_may_hide_one_that_fails(
    rows: tuple[int, int], fixed: int, hides: bool
) -> None:
    ones = [np.ones(shape) for shape in (rows, (3,), (fixed,))]
    inputs = [Input(f"x{k}", "float64", (None,) * a.ndim, in_layout(a)) for k, a in enumerate(ones)]
    step = "lambda a, h, w: [h / 2 + a, a * w]"
    loop = f"phintys.scan({step}, [x0], [x1, None], [x2], return_updates=False)[1]"
    called = "phintys.OpFromGraph([x0, x1, x2], [v0])(x0, x1, x2)"
    statements = [Statement("v0", loop), Statement("v1", called)]
    for output in ("v0", "v1"):
        built = Built(Program(inputs, statements, [output]))
        assert hides_a_step_that_fails(built, ones) == hides


def sum_with_shared() -> Built:
    """A program that adds its argument to a shared variable, and returns the sum; both are ones."""
    ones = in_layout(np.ones(3))
    inputs = [Input(name, "float64", (None,), ones) for name in ("x0", "s1")]
    return Built(Program(inputs, [Statement("v0", "x0 + s1")], ["v0"], {"s1": "v0"}))


@pytest.mark.parametrize("use", sorted(USES))
def test_each_use_of_a_function_finds_another_result(use: str) -> None:
    built = sum_with_shared()
    judge = Judge(built, built.truth(), Plan())
    assert judge.conditioning  # of this program
    f = phintys.function(built.inputs, built.outputs, updates=built.updates)
    first = judge.call(f, judge.arguments)
    assert USES[use](judge, f, first) == ""
    outputs = [built.inputs[0] - built.shared[0]]
    wrong = phintys.function(built.inputs, outputs, updates=built.updates)
    if use == "given":  # it makes a function of its own
        built.outputs = outputs
    assert USES[use](judge, wrong, first) != ""


def test_a_result_that_a_later_call_changes_is_found() -> None:
    built = sum_with_shared()
    judge = Judge(built, built.truth(), Plan())
    memory = np.full(3, 2.0)
    assert "earlier call" in USES["kept"](judge, lambda x: [memory], [memory.copy()])


#: the first seed, where the first that finds a fault is far from the usual one
FIRST_SEEDS = {
    "slices start one too early": 790,
    "the reference sums all but the last": 790,
    "the greatest element is at least 0": 710,
    "both derivatives of tanh are a hundredth too large": 685,
    "an error of a millionth in tanh": 655,
    "transposed shapes": 705,
}
FAULTS = [fault.name for fault in read_faults("fuzzer")]
#: a fault that the fuzzer finds soon
SOON = "pushforwards of products are twice as large"


@pytest.mark.parametrize("fault", few(FAULTS, SOON))
def test_a_planted_fault_is_found(fault: str) -> None:
    seed = FIRST_SEEDS.get(fault, 640)
    done = fuzz(
        "--plant", fault, "--seed", seed, "--count", 1500, "--quick", "--first", "--workers", 1,
        "--backend", "llvm", "--backend", "differences", "--width", 0,
    )  # fmt: skip
    assert done.returncode == 1 and "1 findings" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("seed", "count"), [(0, 15), pytest.param(15, 185, marks=rest)])
def test_fixed_seeds_find_nothing(seed: int, count: int) -> None:
    """Longer runs are for ``make fuzz``."""
    done = fuzz("--seed", seed, "--count", count, "--quick", "--workers", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} graphs" in done.stdout


def test_rounding_leaves_values_that_are_set_as_they_are() -> None:
    x = pt.matrix("x")
    pooled = pt.signal.max_pool_2d_same_size(x, (1, 2))  # set into zeros
    value = np.array([[0.1, 0.3, 0.2], [0.7, 0.6, 0.5]])
    for k in range(4):
        (found,) = _evaluated(_moving(k), [x], [value], [pooled])
        assert ((found != 0) == [[False, True, False], [True, False, False]]).all()
