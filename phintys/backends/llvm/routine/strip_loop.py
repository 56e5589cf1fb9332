"""The loop over strips of kernels, see ``lowering/strips.py``.

What the loop keeps from one strip to the next is in memory, in the array ``%strips`` of the
routine: few values live through a loop over many kernels, as LLVM wants it.
"""

from __future__ import annotations

from phintys.backends.llvm.ir.writer import Lengths
from phintys.backends.llvm.routine.ahead import itemsize, streams_of
from phintys.backends.llvm.routine.body import Body
from phintys.backends.llvm.routine.windows import Window, windows_of
from phintys.dims import Dim
from phintys.lowering.program import Kernel
from phintys.lowering.strips import COUNT, FIRST, FOREVER, Strips, pace, part_of

#: Words of ``%strips``: the end of the strip, and of the last one; then the numbers of iterations
#: of each kernel that have run; then the words of windows; then the address in each stream of what
#: follows the strip.
_END, _LAST, _DONE = 0, 1, 2

#: Words of a window: where element 0 would be; the memory; the bytes by which it moves, and those
#: that are kept.
_PLACE, _BLOCK, _STEP, _KEPT, _WORDS = 0, 1, 2, 3, 4


def emit(body: Body, strips: Strips) -> None:
    """Emit the loop over strips; short arrays are a single one."""
    out, count = body.out, len(strips.kernels)
    windows = windows_of(strips, body.used)
    near = [(k, slot.number) for k, window in enumerate(windows) for slot in window.slots]
    streams, rate, readers = streams_of(strips, {number for _, number in near})
    first = _DONE + count
    ahead = first + _WORDS * len(windows)
    body.frame.strip_words = max(body.frame.strip_words, ahead + len(streams))
    with body.within({}):
        several = out.value(f"icmp sgt i64 {body.lengths(strips.length)}, {strips.single}")
        end = out.value(f"select i1 {several}, i64 {strips.step}, i64 {FOREVER}")
        _store(body, "i64", end, _END)
        _store(body, "i64", body.lengths(strips.last), _LAST)
        done = out.at("%strips", 8 * _DONE)
        out.line(f"call void @llvm.memset.p0.i64(ptr {done}, i8 0, i64 {8 * count}, i1 0)")
        for k, window in enumerate(windows):
            _start(body, window, several, first + _WORDS * k)
        for k, slot in enumerate(streams):
            with body.located([slot]):
                address = body.addresses[slot.number]
            size = out.value(f"select i1 {several}, i64 {strips.step * itemsize(slot)}, i64 0")
            _store(body, "ptr", out.at(address, size), ahead + k)
    loop, next_, after = (out.name(n) for n in ("strip", "next", "done"))
    out.line(f"br label %{loop}")
    out.label(loop)
    places = {n: first + _WORDS * k for k, n in near if n not in body.distant}
    for number, (kernel, start) in enumerate(zip(strips.kernels, strips.starts)):
        reader = readers.get(number)
        aim = (ahead + reader.stream, reader.first, rate) if reader else None
        _run(body, kernel, start, _DONE + number, places, aim)
    end = _load(body, "i64", _END)
    more = out.value(f"icmp slt i64 {end}, {_load(body, 'i64', _LAST)}")
    out.branch(more, next_, after)
    out.label(next_)
    _store(body, "i64", out.value(f"add i64 {end}, {strips.step}"), _END)
    for k, window in enumerate(windows):
        _move(body, window, first + _WORDS * k)
    for k, slot in enumerate(streams):
        following = out.at(_load(body, "ptr", ahead + k), strips.step * itemsize(slot))
        _store(body, "ptr", following, ahead + k)
    body.ask()
    out.line(f"br label %{loop}")
    out.label(after)
    for k, window in enumerate(windows):
        _end(body, window, first + _WORDS * k)


def _load(body: Body, kind: str, word: int) -> str:
    return body.out.load(kind, "%strips", 8 * word)


def _store(body: Body, kind: str, value: str, word: int) -> None:
    body.out.store(kind, value, "%strips", 8 * word)


# ---------------------------------------------------------------------------------- kernels


def _run(
    body: Body,
    kernel: Kernel,
    start: Dim,
    word: int,
    places: dict[int, int],
    aim: tuple[int, int, int] | None,
) -> None:
    """Emit the iterations of a kernel before the end of the strip.

    ``word`` holds the number of those that have run, ``places`` the words of slots in windows whose
    addresses are not in the table of distant blocks.  ``aim``: the word of the stream that the
    kernel reads ahead, the number of the first byte, and the rate.
    """
    out, lengths = body.out, body.lengths.within({})
    first = _load(body, "i64", word)
    time = out.value(f"sub i64 {_load(body, 'i64', _END)}, {lengths(start)}")
    stop = _iterations(body, lengths, time, pace(kernel))
    stop = out.value(f"call i64 @llvm.smin.i64(i64 {stop}, i64 {lengths(kernel.dims[0])})")
    some, none = out.name("some"), out.name("none")
    out.branch(out.value(f"icmp slt i64 {first}, {stop}"), some, none)
    out.label(some)
    _store(body, "i64", stop, word)
    addresses = dict(body.addresses)
    for number in dict.fromkeys(o.slot.number for o in kernel.operands if o.slot.number in places):
        body.addresses[number] = _load(body, "ptr", places[number] + _PLACE)
    if aim is not None:
        body.ahead = out.at(_load(body, "ptr", aim[0]), aim[1]), aim[2]
    with body.within({FIRST: first, COUNT: out.value(f"sub i64 {stop}, {first}")}):
        body.step(part_of(kernel, 0, FIRST, COUNT))
    body.addresses, body.ahead = addresses, ("", 0)
    out.line(f"br label %{none}")
    out.label(none)


def _iterations(body: Body, lengths: Lengths, time: str, step: Dim) -> str:
    """Emit the number of iterations that start within a time; 0 or less if it is below 0."""
    if step.value == 1:
        return time
    out = body.out
    size = out.value(f"call i64 @llvm.smax.i64(i64 {lengths(step)}, i64 1)")
    time = out.value(f"add i64 {time}, {size}")
    return out.value(f"sdiv i64 {out.value(f'sub i64 {time}, 1')}, {size}")


# ---------------------------------------------------------------------------------- windows


def _start(body: Body, window: Window, several: str, word: int) -> None:
    """Emit the words of a window, from ``word`` on; one that is no smaller than the array stays."""
    out, lengths = body.out, body.lengths
    size, whole = lengths(window.bytes), lengths(body.program.storages[window.storage])
    moves = out.value(f"and i1 {several}, {out.value(f'icmp slt i64 {size}, {whole}')}")
    numbers = [
        str(window.strips.step * window.itemsize),
        lengths(window.kept * window.itemsize),
        lengths(window.behind * window.itemsize),
    ]
    step, kept, behind = (out.value(f"select i1 {moves}, i64 {n}, i64 0") for n in numbers)
    with body.located(window.slots[:1]):
        block = out.at(body.addresses[window.slots[0].number], window.pad)
    _place(body, window, out.at(block, behind), word)
    _store(body, "ptr", block, word + _BLOCK)
    _store(body, "i64", step, word + _STEP)
    _store(body, "i64", kept, word + _KEPT)


def _place(body: Body, window: Window, address: str, word: int) -> None:
    """Emit the stores of the address where element 0 of a window would be."""
    _tell_table(body, window, address)
    _store(body, "ptr", address, word + _PLACE)


def _tell_table(body: Body, window: Window, address: str) -> None:
    """Emit the store of an address in the table of distant blocks, if the window is one."""
    distant = body.distant.get(window.slots[0].number)
    if distant is not None:
        table = body.out.load("ptr", distant.table)
        body.out.store("ptr", address, table, 8 * distant.position)


def _move(body: Body, window: Window, word: int) -> None:
    """Emit the move of a window to the next strip."""
    out = body.out
    block, step = _load(body, "ptr", word + _BLOCK), _load(body, "i64", word + _STEP)
    kept, place = _load(body, "i64", word + _KEPT), _load(body, "ptr", word + _PLACE)
    pair = f"ptr {block}, ptr {out.at(block, step)}"
    out.line(f"call void @llvm.memmove.p0.p0.i64({pair}, i64 {kept}, i1 0)")
    _place(body, window, out.at(place, out.value(f"sub i64 0, {step}")), word)


def _end(body: Body, window: Window, word: int) -> None:
    """Emit the return of a window's memory: in a loop, the strips run again at the next turn."""
    if window.slots[0].number in body.distant:
        block = _load(body, "ptr", word + _BLOCK)
        _tell_table(body, window, body.out.at(block, -window.pad))
