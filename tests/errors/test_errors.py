"""Every message word by word, and the same one on every backend."""

from __future__ import annotations

import shutil
import warnings
from importlib.util import find_spec

import error_cases
import golden
import numpy as np
import pytest

import phintys

GOLDEN = golden.expected()
MODES = ["FAST_COMPILE", "FAST_RUN"]
MODES += ["C"] if shutil.which("cc") else []
MODES += [name for name in ("NUMBA", "JAX") if find_spec(name.lower())]


def test_every_message_has_a_case():
    variants = {f"{name}_variant" for name in error_cases.VARIANTS}
    assert GOLDEN.keys() == error_cases.BUILDING.keys() | error_cases.CALLING.keys() | variants


@pytest.mark.parametrize("case", error_cases.BUILDING)
def test_messages_of_building(case):
    exc = golden.raised(error_cases.BUILDING[case])
    assert golden.message(exc) == GOLDEN[case]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", error_cases.CALLING)
def test_messages_of_calls(case, mode):
    f, args, kwargs = error_cases.CALLING[case](mode)
    before = [s.get_value() for s in f.get_shared()]
    exc = golden.raised(f, *args, **kwargs)
    variant = mode in error_cases.VARIANTS.get(case, ())
    assert golden.message(exc) == GOLDEN[f"{case}_variant" if variant else case]
    for s, value in zip(f.get_shared(), before, strict=True):
        np.testing.assert_array_equal(s.get_value(), value)


@pytest.mark.parametrize("case", error_cases.CALLING)
def test_the_line_of_the_user_is_found(case):
    """Where a computation fails, the file and the line are those of the case."""
    f, args, kwargs = error_cases.CALLING[case]("FAST_RUN")
    exc = golden.raised(f, *args, **kwargs)
    notes = "\n".join(getattr(exc, "__notes__", []))
    if notes:
        code = error_cases.CALLING[case].__code__
        place = notes.split("made at ")[1].splitlines()[0]
        file, line = place.split(", in ")[0].rsplit(":", 1)
        assert file == code.co_filename
        assert code.co_firstlineno < int(line) <= code.co_firstlineno + 7


def test_unknown_flags_are_named():
    from phintys.config import Config

    with pytest.warns(UserWarning, match="there is no setting 'floatx'. Did you mean 'floatX'"):
        Config("floatx=float32").warn_unused_flags()


def test_unused_inputs_can_warn():
    x, y = phintys.tensor.dvectors("x", "y")
    with pytest.warns(UserWarning, match="Input 1, y .* is not used"):
        phintys.function([x, y], x, on_unused_input="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        phintys.function([x, y], x, on_unused_input="ignore")
