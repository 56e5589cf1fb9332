"""Making a program that shows something wrong smaller, as long as it shows the same.

Statements are replaced by inputs with their values, or by one of their operands; outputs, layouts,
static lengths and values are simplified.  Every candidate runs in a process of its own.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from fuzz_draw import Drawer, Failing, Fault
from fuzz_generate import truth
from fuzz_program import NAMES, Built, Input, Program, Statement, all_finite
from fuzz_run import Finding, Judge, Plan
from fuzz_values import Argument, native

#: seconds that one candidate may take
PATIENCE = 60.0
#: bytes of address space that a process may have: other lengths may ask for huge arrays
MEMORY = 8 << 30


def probe(program: Program, plan: Plan) -> list[Finding]:
    """What is wrong with a program; it runs in a forked process, which may crash or hang."""
    return in_child(lambda: examine(program, plan))


def examine(program: Program, plan: Plan) -> list[Finding]:
    """What is wrong with a program; it runs in this process."""
    try:
        g = replay(program)
    except Fault as fault:
        return [Finding(f"reference, {fault.where}", fault.message)]
    except Failing:
        values = None
    else:
        values = truth(g, program)
        if program.fails:
            return []
    built = Built(program)
    built.finite = all_finite(g.known.values()) if values is not None else True
    return Judge(built, values, plan).run()


def replay(program: Program) -> Drawer:
    """Build and check a program statement by statement, as when it was drawn."""
    g = Drawer(0)
    g.program = replace(program, statements=[])
    g.special, g.extreme = 1.0, False
    for i in program.inputs:
        g._declare(i.name, i.make(), native(i.value.value()))
    for s in program.statements:
        g.rng.random = lambda: 0.0  # type: ignore[method-assign]  # every failure is kept
        g.restate(s)
    return g


def in_child(work: Callable[[], list[Finding]], patience: float = PATIENCE) -> list[Finding]:
    """The result of a function in a forked process; a crash or a hang is a finding."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(work, reader, writer)
    os.close(writer)
    os.set_blocking(reader, False)
    data, deadline = b"", time.monotonic() + patience
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        data += _available(reader)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reader)
            return [Finding("process", f"hangs: more than {patience:.0f} s")]
        time.sleep(0.002)
    data += _available(reader)
    os.close(reader)
    if status or not data:
        return [Finding("process", f"crash {os.waitstatus_to_exitcode(status)}: of the process")]
    return list(pickle.loads(data))


def _available(reader: int) -> bytes:
    data = b""
    try:
        while part := os.read(reader, 1 << 16):
            data += part
    except BlockingIOError:
        pass
    return data


def _child(work: Callable[[], list[Finding]], reader: int, writer: int) -> None:
    """Run and leave, without the parent's clean-up."""
    code = 1
    try:
        os.close(reader)
        confine()
        data = pickle.dumps(work())
        while data:
            data = data[os.write(writer, data) :]
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def confine() -> None:
    """Bound the memory of a process that may crash, and discard what it prints."""
    if sys.platform == "linux":  # elsewhere the limit is refused, or has no effect
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


# ----------------------------------------------------------------------------- smaller


def minimise(program: Program, wanted: tuple[str, str], plan: Plan, seconds: float = 60) -> Program:
    """A smaller program with a finding of the wanted signature."""
    deadline = time.monotonic() + seconds

    def shows(candidate: Program) -> bool:
        try:
            found = probe(candidate, plan)
        except OSError:
            return False
        return any(f.signature == wanted for f in found)

    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for candidate in candidates(program):
            if time.monotonic() > deadline:
                break
            if shows(candidate):
                program, progress = candidate, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the most promising first."""
    values = _values(program)
    yield from _fewer_results(program)
    yield from _cuts(program, values)
    yield from _bypasses(program, values)
    yield from _simpler_inputs(program)


def _values(program: Program) -> dict[str, Any]:
    try:
        g = replay(program)
    except (Fault, Failing) as stopped:
        g = stopped.drawer
    return {i.name: i for i in g.items}


def _fewer_results(program: Program) -> Iterator[Program]:
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield replace(program, outputs=[name]).pruned()
        for k in range(len(program.outputs)):
            kept = program.outputs[:k] + program.outputs[k + 1 :]
            yield replace(program, outputs=kept).pruned()
    for name in program.updates:
        kept_updates = {k: v for k, v in program.updates.items() if k != name}
        yield replace(program, updates=kept_updates).pruned()


def _cuts(program: Program, values: dict[str, Any]) -> Iterator[Program]:
    """A statement replaced by an input."""
    for k in reversed(range(len(program.statements))):
        s = program.statements[k]
        item = values.get(s.name)
        if item is None or s.name in program.outputs or s.name in program.updates.values():
            continue
        made = Input(s.name, item.value.dtype.name, item.static, Argument(np.array(item.value)))
        rest = program.statements[:k] + program.statements[k + 1 :]
        yield replace(program, inputs=[*program.inputs, made], statements=rest).pruned()


def _bypasses(program: Program, values: dict[str, Any]) -> Iterator[Program]:
    """A statement replaced by one of its operands."""
    for k, s in enumerate(program.statements):
        for other in sorted(s.uses):
            if s.name not in values or other not in values or other == s.name:
                continue
            rest = [_renamed(t, s.name, other) for j, t in enumerate(program.statements) if j != k]
            outputs = [other if n == s.name else n for n in program.outputs]
            updates = {i: other if v == s.name else v for i, v in program.updates.items()}
            if any(n[0] != "v" for n in outputs):
                continue
            yield replace(program, statements=rest, outputs=outputs, updates=updates).pruned()


def _renamed(s: Statement, old: str, new: str) -> Statement:
    def put(text: str) -> str:
        return NAMES.sub(lambda m: new if m[0] == old else m[0], text)

    return Statement(s.name, put(s.text), s.numpy and put(s.numpy))


def _simpler_inputs(program: Program) -> Iterator[Program]:
    for k, i in enumerate(program.inputs):
        for simpler in _simpler(i):
            inputs = [*program.inputs[:k], simpler, *program.inputs[k + 1 :]]
            yield replace(program, inputs=inputs)
        if i.is_shared and i.name not in program.updates:
            yield _argument_instead(program, i)


def _simpler(i: Input) -> Iterator[Input]:
    value = np.array(i.value.value())
    if i.value.made != "{}" or i.value.repeated is not None:
        yield replace(i, value=Argument(value))
    if any(n not in (None, 1) for n in i.shape):
        yield replace(i, shape=tuple(1 if n == 1 else None for n in i.shape))
    for plain in (np.ones_like(value), np.arange(value.size).reshape(value.shape) + 1):
        plain = plain.astype(value.dtype)
        if plain.size > 1 and not np.array_equal(plain, value) and not _is_plain(value):
            yield replace(i, value=Argument(plain))


def _is_plain(value: np.ndarray) -> bool:
    return bool((value == 1).all())


def _argument_instead(program: Program, i: Input) -> Program:
    new = "a" + i.name[1:]
    inputs = [replace(j, name=new) if j is i else j for j in program.inputs]
    statements = [_renamed(s, i.name, new) for s in program.statements]
    outputs = [new if n == i.name else n for n in program.outputs]
    updates = {s: new if v == i.name else v for s, v in program.updates.items()}
    return replace(program, inputs=inputs, statements=statements, outputs=outputs, updates=updates)
