"""Machine code as bytes: what is read is what was written, or nothing."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phintys.backends.llvm.machine.image import Code, Image, ObjectFile
from phintys.backends.llvm.machine.stored import (
    Words,
    can_be_kept,
    code_bytes,
    function_bytes,
    read_code,
    read_function,
)

CELLS = 4

# ------------------------------------------------------------------------- what can be written

TEXTS = st.text(max_size=12)
DTYPES = [np.dtype(c) for c in "?bhilqBHILQefdFD"] + [np.dtype(s) for s in (">f8", ">i4", ">c16")]


@st.composite
def images(draw) -> Image:
    """Code whose words lie in it and apart from each other."""
    data = draw(st.binary(min_size=1, max_size=200))
    places = st.integers(0, len(data) - 1)
    exports = draw(st.dictionaries(TEXTS, places, max_size=4))
    words = draw(st.permutations([8 * k for k in range(len(data) // 8)]))
    count = draw(st.integers(0, len(words)))
    symbols = draw(st.lists(TEXTS, max_size=count, unique=True))
    inside = words[len(symbols) : count]
    targets = [draw(st.integers(0, len(data))) for _ in inside]
    return Image(data, exports, dict(zip(symbols, words)), dict(zip(inside, targets)))


OBJECT_FILES = st.builds(
    ObjectFile, st.binary(max_size=100), st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=4)
)
CODES = st.one_of(images(), OBJECT_FILES)


@st.composite
def arrays(draw) -> np.ndarray:
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    data = draw(st.binary(min_size=16 * 81, max_size=16 * 81))
    size = int(np.prod(shape))
    array = np.frombuffer(data, dtype)[:size].reshape(shape)
    array = array.astype(dtype, order=draw(st.sampled_from("CF")))
    array.flags.writeable = draw(st.booleans())
    return array


OBJECTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    TEXTS,
    st.sampled_from(DTYPES),
    arrays(),
)


@st.composite
def word_lists(draw) -> Words:
    objects = draw(st.lists(OBJECTS, min_size=1, max_size=5))
    found = [o for o in objects if isinstance(o, np.ndarray)]
    kinds = [
        st.sampled_from(
            [("slow", None), ("failed", None), ("names", None), ("null", None), ("opened", None)]
        ),
        st.tuples(st.just("integer"), st.integers(-(2**63), 2**63 - 1)),
        st.tuples(st.just("cell"), st.integers(0, CELLS - 1)),
        st.tuples(st.just("object"), st.sampled_from(objects)),
    ]
    if found:
        kinds.append(st.tuples(st.just("array"), st.sampled_from(found)))
    return draw(st.lists(st.one_of(*kinds), max_size=12))


# --------------------------------------------------------------------------- what must be true


def same(left, right) -> bool:
    """Equal to the bit, in the same memory order; dtypes of NumPy's are the same object."""
    if isinstance(left, np.dtype):
        return left == right and (not left.isnative or np.dtype(left.char) is right)
    if isinstance(left, np.ndarray):
        flags = ("c_contiguous", "f_contiguous", "writeable")
        return (
            (left.dtype, left.shape) == (right.dtype, right.shape)
            and all(getattr(left.flags, f) == getattr(right.flags, f) for f in flags)
            and left.tobytes("A") == right.tobytes("A")
        )
    return type(left) is type(right) and left == right


def is_sound(code: Code) -> bool:
    """Whether loading it stays inside its memory."""
    if isinstance(code, ObjectFile):
        return all(isinstance(n, str) for n in [*code.exports, *code.imports])
    size = len(code.data)
    stored = [0] * size
    for at in [*code.imports.values(), *code.internal]:
        if not 0 <= at <= size - 8:
            return False
        for byte in range(at, at + 8):
            stored[byte] += 1
    inside = all(0 <= at < size for at in code.exports.values())
    return inside and max(stored) <= 1 and all(0 <= t <= size for t in code.internal.values())


def is_right(found: tuple[Code, Words] | None) -> bool:
    if found is None:
        return True
    code, words = found
    cells = [value for kind, value in words if kind == "cell"]
    data = [value for kind, value in words if kind == "array"]
    return (
        is_sound(code)
        and all(0 <= cell < CELLS for cell in cells)
        and all(type(array) is np.ndarray and not array.dtype.hasobject for array in data)
    )


@given(CODES)
def test_code_comes_back(code):
    assert read_code(code_bytes(code)) == code


@given(CODES, word_lists())
def test_functions_come_back(code, words):
    assert can_be_kept(words)
    read = read_function(function_bytes(code, words), CELLS)
    assert read is not None and read[0] == code
    assert [kind for kind, _ in read[1]] == [kind for kind, _ in words]
    assert all(same(left, right) for (_, left), (_, right) in zip(words, read[1]))
    # one object stays one: the address of an array is that of the object's data
    for i, (_, left) in enumerate(words):
        for j, (_, right) in enumerate(words[:i]):
            if left is right and isinstance(left, np.ndarray):
                assert read[1][i][1] is read[1][j][1]


@settings(max_examples=300)
@given(CODES, word_lists(), st.data())
def test_changed_bytes_are_nothing_or_sound(code, words, data):
    payload = bytearray(function_bytes(code, words))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload) - 1))
        value = st.one_of(st.sampled_from([0, 1, 2, 7, 8, 127, 128, 255]), st.integers(0, 255))
        payload[at] = data.draw(value)
    assert is_right(read_function(bytes(payload), CELLS))
    found = read_code(bytes(payload))
    assert found is None or is_sound(found)


@given(CODES, word_lists(), st.data())
def test_other_lengths_are_nothing(code, words, data):
    payload = function_bytes(code, words)
    cut = data.draw(st.integers(0, len(payload) - 1))
    assert read_function(payload[:cut], CELLS) is None
    assert read_function(payload + data.draw(st.binary(min_size=1)), CELLS) is None
    written = code_bytes(code)
    assert read_code(written[: data.draw(st.integers(0, len(written) - 1))]) is None
    assert read_code(written + data.draw(st.binary(min_size=1))) is None


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda b: b"\1" + b)))
def test_garbage_is_nothing_or_sound(payload):
    assert is_right(read_function(payload, CELLS))
    found = read_code(payload)
    assert found is None or is_sound(found)


# ----------------------------------------------------------------------------- what is refused

GOOD = Image(bytes(32), {"f": 0}, {"g": 8}, {16: 32})
BAD_IMAGES = {
    "no code": GOOD._replace(data=b"", exports={}, imports={}, internal={}),
    "an export outside": GOOD._replace(exports={"f": 32}),
    "a word for an import outside": GOOD._replace(imports={"g": 25}),
    "a word for an import far outside": GOOD._replace(imports={"g": 2**64 - 8}),
    "a word inside outside": GOOD._replace(internal={25: 0}),
    "a target outside": GOOD._replace(internal={16: 33}),
    "a word twice": GOOD._replace(internal={8: 0}),
    "words one over the other": GOOD._replace(internal={12: 0}),
}


@pytest.mark.parametrize("bad", BAD_IMAGES)
def test_places_outside_the_image(bad):
    assert read_code(code_bytes(GOOD)) == GOOD
    assert read_code(code_bytes(BAD_IMAGES[bad])) is None


@pytest.mark.parametrize("cell", [-1, CELLS, 2**40])
def test_cells_that_a_function_has_not(cell):
    assert read_function(function_bytes(GOOD, [("cell", CELLS - 1)]), CELLS) is not None
    assert read_function(function_bytes(GOOD, [("cell", cell)]), CELLS) is None


def value(payload: bytes) -> bytes:
    """A function with one value and one word that refers to it."""
    return code_bytes(GOOD) + struct.pack("<I", 1) + payload + struct.pack("<IBI", 1, 6, 0)


def array(dtype: str, shape: tuple[int, ...], size: int, flags: int = 0) -> bytes:
    text = struct.pack("<BBI", 5, flags, len(dtype)) + dtype.encode()
    return text + struct.pack(f"<B{len(shape)}QQ", len(shape), *shape, size) + bytes(size)


BAD_VALUES = {
    "an unknown kind": bytes([6]),
    "a bool of 2": bytes([1, 2]),
    "a str that is no UTF-8": struct.pack("<BI2s", 3, 2, b"\xff\xff"),
    "a str beyond the end": struct.pack("<BI", 3, 2**32 - 1),
    "a dtype of objects": struct.pack("<BI1s", 4, 1, b"O"),
    "a dtype of several": struct.pack("<BI5s", 4, 5, b"i4,f8"),
    "a dtype of no size": struct.pack("<BI2s", 4, 2, b"f3"),
    "objects": array("O", (1,), 8),
    "too few elements": array("d", (3,), 16),
    "too many elements": array("d", (1,), 16),
    "lengths whose product wraps": array("d", (2**61, 8), 0),
    "no elements of a huge shape": array("d", (2**63, 0), 0),
    "a rank of 65": array("d", (1,) * 65, 8),
    "unknown flags": array("d", (1,), 8, flags=4),
}


@pytest.mark.parametrize("bad", BAD_VALUES)
def test_values_that_are_none(bad):
    assert read_function(value(array("d", (2,), 16)), CELLS) is not None
    assert read_function(value(BAD_VALUES[bad]), CELLS) is None


@pytest.mark.parametrize("word", [struct.pack("<B", 9), struct.pack("<BI", 6, 1), b""])
def test_words_that_are_none(word):
    start = code_bytes(GOOD) + struct.pack("<IBI", 1, 0, 1)  # None, one word
    assert read_function(start + struct.pack("<BI", 6, 0), CELLS) == (GOOD, [("object", None)])
    assert read_function(start + word, CELLS) is None
    assert read_function(start + struct.pack("<BI", 7, 0), CELLS) is None, "None has no address"


def test_counts_beyond_the_end():
    """They are not believed before there is memory for them."""
    for count in (2**31, 2**32 - 1):
        assert read_function(code_bytes(GOOD) + struct.pack("<I", count), CELLS) is None
        assert read_code(struct.pack("<BQBI", 1, 1, 0, count)) is None


@pytest.mark.parametrize(
    "other",
    [object(), len, 1.5, 2**63, np.array([None]), np.array(["text"]), np.ones((4, 4))[::2, ::2]],
    ids=lambda other: type(other).__name__,
)
def test_what_only_this_process_has_is_not_kept(other):
    assert can_be_kept([("object", "text"), ("integer", 3)])
    assert not can_be_kept([("object", "text"), ("object", other)])
