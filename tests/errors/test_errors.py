"""Every message word by word, and the same one on every backend."""

from __future__ import annotations

import shutil
import warnings

import error_cases
import golden
import numpy as np
import pytest

import phintys
import phintys.tensor as pt

GOLDEN = golden.expected()
MODES = ["FAST_COMPILE", "FAST_RUN", *(["C"] if shutil.which("cc") else []), "NUMBA", "JAX"]


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


#: cases whose arguments are refused before anything is computed
REFUSED = {
    *("length_declared_in_the_type", "argument_of_another_rank", "argument_would_lose_precision"),
    *("float_for_an_integer", "text_for_a_tensor", "too_few_arguments", "too_many_arguments"),
    *("keyword_misspelt", "argument_given_twice", "ambiguous_keyword"),
}


@pytest.mark.parametrize("case", [case for case in error_cases.CALLING if case not in REFUSED])
def test_the_line_of_the_user_is_found(case):
    """Where a computation fails, the file and the line are those of the case."""
    f, args, kwargs = error_cases.CALLING[case]("FAST_RUN")
    notes = "\n".join(golden.raised(f, *args, **kwargs).__notes__)
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


@pytest.mark.parametrize("outputs", [3.0, np.ones(2), np.float64(1.0), "x"])
def test_outputs_are_variables(outputs):
    with pytest.raises(TypeError, match="Outputs of a function are Variables, not") as caught:
        phintys.function([], outputs)
    assert repr(outputs) in str(caught.value)


@pytest.mark.parametrize("right", [pt.dmatrix("right"), pt.dvector("right")])
def test_a_product_in_a_blas_call_has_its_own_line(right):
    """A product and an addend are one call: the product is what fails."""
    left, addend = pt.dmatrix("left"), right.type("addend")
    product = 3 * pt.dot(left, right)  # this line
    f = phintys.function([left, right, addend], product + 2 * addend)
    exc = golden.raised(
        f, np.ones((2, 3)), np.ones((2, 2)[: right.ndim]), np.ones((2, 2)[: right.ndim])
    )
    assert "while computing Gem" in golden.message(exc)
    assert "# this line" in golden.message(exc)


def test_values_that_are_not_computed_yet_are_not_shown():
    i, x, s = pt.lvector("i"), pt.dvector("x"), pt.dscalar("s")
    out = phintys.scan(lambda e, a: a * x[e], i, s, return_updates=False)
    f = phintys.function([i, x, s], phintys.grad(out.sum(), x))
    note = golden.raised(f, [0, 5], [1.0, 2.0], 1.0).__notes__[-1]
    assert "SetSubtensor{:stop}.0 = float64 of shape (3,)\n" in note
    assert "i = int64 of shape (2,), value [0 5]\n" in note
