"""Where Phintys asks for something outside itself, and how each of these places is made to fail.

A `Point` counts its calls with a `Countdown`, and those that are due fail.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import errno
import importlib
import inspect
import io
import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import injection_programs

import phintys
from phintys.backends import identity
from phintys.backends.llvm.machine import image, process
from phintys.backends.llvm.machine.jit import compile_ir
from phintys.backends.llvm.runtime import cpython
from phintys.errors import PhintysError

SOURCES = str(Path(phintys.__file__).parent)

#: What failures may end in besides the right result.
CLEAR = (MemoryError, OSError, KeyboardInterrupt, PhintysError)


class Injected(Exception):
    """A failure that nothing knows of."""


class Countdown:
    """Counts calls; a range of them is to fail.  Machine code shares its words."""

    def __init__(self) -> None:
        #: calls so far, first one to fail, how many fail, calls that gave (or took) a pointer
        self.words = (ctypes.c_int64 * 4)()

    def arm(self, first: int, many: int = 1) -> None:
        self.words[:3] = (0, first, many)

    def disarm(self) -> None:
        self.words[2] = 0

    def due(self) -> bool:
        self.words[0] += 1
        return 0 <= self.words[0] - self.words[1] < self.words[2]

    @property
    def fired(self) -> bool:
        return self.words[0] >= self.words[1]


#: A fault installs itself, so that calls which are due fail, and removes itself.
Fault = Callable[[Countdown], contextlib.AbstractContextManager[Any]]


class Point(NamedTuple):
    """A place that can fail.

    ``when`` says in which kinds of trial it is reached (see `injection`), ``modes`` in which modes,
    and ``errors`` what it may end in besides `CLEAR`.
    """

    kind: str
    name: str
    failure: str
    fault: Fault
    when: tuple[str, ...]
    modes: tuple[str, ...] = ("FAST_RUN", "C")
    errors: tuple[type[BaseException], ...] = ()


# ------------------------------------------------------------------------ attributes of modules


def replaced(owner: Any, name: str, failure: Callable[..., Any]) -> Fault:
    """Calls of ``owner.name`` that are due call ``failure`` instead, with the function first.

    ``owner`` may be a text, ``module`` or ``module:Class``; it is imported when the fault is
    installed.
    """

    @contextlib.contextmanager
    def install(countdown: Countdown) -> Iterator[None]:
        place = _found(owner)
        original = getattr(place, name)

        def function(*args: Any, **kwargs: Any) -> Any:
            if countdown.due():
                return failure(original, *args, **kwargs)
            return original(*args, **kwargs)

        setattr(place, name, function)
        try:
            yield
        finally:
            setattr(place, name, original)

    return install


def _found(owner: Any) -> Any:
    if not isinstance(owner, str):
        return owner
    module, _, kind = owner.partition(":")
    place = importlib.import_module(module)
    return getattr(place, kind) if kind else place


def raising(make: Callable[[], BaseException]) -> Callable[..., Any]:
    def fail(original: Any, *args: Any, **kwargs: Any) -> Any:
        raise make()

    return fail


def after(failure: Callable[..., Any]) -> Callable[..., Any]:
    """The function does its work, and fails then."""

    def fail(original: Any, *args: Any, **kwargs: Any) -> Any:
        original(*args, **kwargs)
        return failure(original)

    return fail


def answering(make: Callable[[Any], Any]) -> Callable[..., Any]:
    """Another answer than the right one, made from it."""
    return lambda original, *args, **kwargs: make(original(*args, **kwargs))


def system(number: int) -> Callable[[], BaseException]:
    return lambda: OSError(number, os.strerror(number))


def interrupt() -> BaseException:
    return KeyboardInterrupt("injected")


def of_module(owner: str, module: str, name: str, failure: Callable[..., Any]) -> Fault:
    """Calls of ``module.name`` by one module, ``owner``; other modules are spared."""

    @contextlib.contextmanager
    def install(countdown: Countdown) -> Iterator[None]:
        place = importlib.import_module(owner)
        original = getattr(place, module)
        own = types.SimpleNamespace(**vars(original))
        setattr(place, module, own)
        try:
            with replaced(own, name, failure)(countdown):
                yield
        finally:
            setattr(place, module, original)

    return install


# ------------------------------------------------------------------------------- machine code


_SHIM = """
@words = external global [4 x i64]
declare i64 @original(i64, i64, i64, i64, i64, i64)
define i64 @shim(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f) {
  %calls = load i64, ptr @words
  %next = add i64 %calls, 1
  store i64 %next, ptr @words
  %first.at = getelementptr i64, ptr @words, i64 1
  %first = load i64, ptr %first.at
  %many.at = getelementptr i64, ptr @words, i64 2
  %many = load i64, ptr %many.at
  %beyond = sub i64 %next, %first
  %due = icmp ult i64 %beyond, %many
  br i1 %due, label %fail, label %go
fail:
  FAIL
go:
  %answer = call i64 @original(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f)
  %given.at = getelementptr i64, ptr @words, i64 3
  %given = load i64, ptr %given.at
  %something = icmp ne i64 COUNTED, 0
  %one = zext i1 %something to i64
  %more = add i64 %given, %one
  store i64 %more, ptr %given.at
  ret i64 %answer
}
"""
_SILENT = "ret i64 0"
_STATUS = "ret i64 11"
_NO_MEMORY = "%none = call ptr @PyErr_NoMemory()\n  ret i64 {}\n"

#: Functions that generated code calls -> what they do when they fail.
NATIVE = {
    "PyMem_RawMalloc": _SILENT,
    "PyMem_RawFree": "",
    "PyArray_Empty": _NO_MEMORY.format(0),
    "PyArray_FromAny": _NO_MEMORY.format(0),
    "PyDict_New": _NO_MEMORY.format(0),
    "PyDict_SetItem": _NO_MEMORY.format(-1),
    "PyList_New": _NO_MEMORY.format(0),
    "PyLong_FromLongLong": _NO_MEMORY.format(0),
    "PyTuple_New": _NO_MEMORY.format(0),
    "PyObject_CallFunctionObjArgs": _NO_MEMORY.format(0),
    "PyObject_Vectorcall": _NO_MEMORY.format(0),
    "PyThread_allocate_lock": _SILENT,
    "PyErr_CheckSignals": _NO_MEMORY.format(-1),
    "pthread_create": _STATUS,
}

#: The countdowns of `NATIVE`, and the machine code that counts.
countdowns: dict[str, Countdown] = {}
_kept: list[Any] = []


def install_native() -> None:
    """Let generated code that is loaded from now on call functions that can fail.

    All of them take up to six words and return one, in registers.
    """
    known, of_process = cpython.symbols(), process.address_of
    given = {name: known.get(name) or of_process(name) for name in NATIVE}
    shims: dict[str, int] = {}
    for name, failure in NATIVE.items():
        countdowns[name] = countdown = Countdown()
        declared = "declare ptr @PyErr_NoMemory()\n" if "PyErr" in failure else ""
        counted = "%a" if name == "PyMem_RawFree" else "%answer"
        text = declared + _SHIM.replace("FAIL", failure or "br label %go")
        text = text.replace("COUNTED", counted)
        outside = {"words": ctypes.addressof(countdown.words), "original": given[name]}
        library = compile_ir(text, {**known, **outside}.get)
        _kept.append(library)
        shims[name] = library.address("shim")
    known.update({name: address for name, address in shims.items() if name in known})
    others = {name: address for name, address in shims.items() if name not in known}
    process.address_of = lambda name: others.get(name) or of_process(name)


def blocks_in_use() -> int:
    """How many blocks of memory generated code has taken and not given back."""
    if not countdowns:
        return 0
    return countdowns["PyMem_RawMalloc"].words[3] - countdowns["PyMem_RawFree"].words[3]


def native(name: str) -> Fault:
    """The fault of a function of `NATIVE`; its countdown is the one that its code counts with."""

    @contextlib.contextmanager
    def install(countdown: Countdown) -> Iterator[None]:
        yield

    install.native = name  # type: ignore[attr-defined]
    return install


_C_HEADER = """
#include <stdint.h>
#include <stdlib.h>
static inline void *injected_malloc(size_t size) {
    int64_t *words = (int64_t *)%dLL;
    words[0]++;
    return (uint64_t)(words[0] - words[1]) < (uint64_t)words[2] ? NULL : malloc(size);
}
#define malloc injected_malloc
"""


def install_c(folder: str) -> None:
    """Let libraries of mode C that are made from now on call a ``malloc`` that can fail."""
    countdowns["malloc"] = countdown = Countdown()
    header = Path(folder) / "injected.h"
    header.write_text(_C_HEADER % ctypes.addressof(countdown.words))
    phintys.config.gcc__cxxflags = f"-include {header}"


@contextlib.contextmanager
def no_memory(countdown: Countdown) -> Iterator[Callable[[], None]]:
    """The interpreter's own allocations, all kinds of them.

    What is yielded starts to count; `_testcapi.remove_mem_hooks` ends it.
    """
    from _testcapi import set_nomemory

    yield lambda: set_nomemory(countdown.words[1] - 1, countdown.words[1])


# -------------------------------------------------------------------------------------- files


def _file(countdown: Countdown, method: str, failure: Callable[..., Any]) -> type[io.FileIO]:
    """A class of files one of whose methods fails."""
    original = getattr(io.FileIO, method)

    def function(self: Any, *args: Any) -> Any:
        if countdown.due():
            return failure(original, self, *args)
        return original(self, *args)

    return type("File", (io.FileIO,), {method: function})


def of_files(method: str, failure: Callable[..., Any]) -> Fault:
    """A method of files that are opened by `open`, `io.open` or `os.fdopen`."""

    @contextlib.contextmanager
    def install(countdown: Countdown) -> Iterator[None]:
        kind = _file(countdown, method, failure)

        def opened(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **more: Any) -> Any:
            raw = kind(file, mode.replace("b", "").replace("t", ""))
            if buffering == 0:
                return raw
            whole = io.BufferedReader(raw) if raw.readable() else io.BufferedWriter(raw)
            return whole if "b" in mode else io.TextIOWrapper(whole, *args, **more)

        places = ((os, "fdopen"), (io, "open"), (builtins, "open"))
        before = [getattr(owner, name) for owner, name in places]
        for owner, name in places:
            setattr(owner, name, opened)
        try:
            yield
        finally:
            for (owner, name), original in zip(places, before):
                setattr(owner, name, original)

    return install


def a_part(original: Any, self: Any, *args: Any) -> Any:
    """Less than was asked for is read or written."""
    if not args:
        return original(self)[:-1]
    data = args[0]
    if isinstance(data, int):
        return io.FileIO.read(self, max(1, data // 2))
    return original(self, bytes(data)[: max(1, len(data) // 2)])


# --------------------------------------------------------------------- each function of Phintys


def is_ours(code: types.CodeType) -> bool:
    """Whether code is a function of the package.  Generators are called when they go away, too."""
    return code.co_filename.startswith(SOURCES) and not code.co_flags & inspect.CO_GENERATOR


def each_function(make: Callable[[], BaseException]) -> Fault:
    """An exception at the start of a function of the package: what an interrupt does."""

    @contextlib.contextmanager
    def install(countdown: Countdown) -> Iterator[None]:
        def watch(frame: Any, event: str, argument: Any) -> None:
            if event == "call" and is_ours(frame.f_code) and countdown.due():
                raise make()

        sys.setprofile(watch)
        try:
            yield
        finally:
            sys.setprofile(None)

    return install


# --------------------------------------------------------------------------------- the table

EACH = "each function of Phintys"
CALL, MAKE, LOAD = "call", "make", "load"
LLVM, C = ("FAST_RUN",), ("C",)
BOTH = LLVM + C
ALL = ("FAST_RUN", "C", "NUMBA", "JAX", "FAST_COMPILE")

_ERRORS = {
    "no memory": MemoryError,
    "an interrupt": interrupt,
    "an unknown exception": Injected,
}
_SYSTEM = {
    "EIO": system(errno.EIO),
    "ENOSPC": system(errno.ENOSPC),
    "EACCES": system(errno.EACCES),
    "no memory": MemoryError,
}


def _memory_points() -> Iterator[Point]:
    for name, failure in NATIVE.items():
        if failure:
            told = {_SILENT: "a null pointer", _STATUS: "an error number"}.get(failure)
            yield Point("memory", name, told or "MemoryError", native(name), (CALL,), LLVM)
    yield Point("memory", "malloc", "a null pointer", native("malloc"), (CALL,), C)
    empty = of_module("phintys.backends.c", "np", "empty", raising(MemoryError))
    yield Point("memory", "numpy.empty", "MemoryError", empty, (CALL,), C)
    name = "the interpreter's allocator"
    # NumPy and the interpreter forget the exception here and there, and ctypes, through which LLVM
    # is called, makes another one of it.
    lost = (SystemError,)
    made = (SystemError, ctypes.ArgumentError)
    yield Point("memory", name, "a null pointer", no_memory, (CALL,), BOTH, lost)
    yield Point("memory", name, "a null pointer", no_memory, (MAKE, LOAD), LLVM, made)


def _mapping_points() -> Iterator[Point]:
    mmap = of_module(
        "phintys.backends.llvm.machine.image", "mmap", "mmap", raising(system(errno.ENOMEM))
    )
    yield Point("mapping", "mmap", "ENOMEM", mmap, (MAKE, LOAD), LLVM)
    yield Point("mapping", "mprotect", "EACCES", _mprotect, (MAKE, LOAD), LLVM)


def _refuse(original: Any, *args: Any) -> int:
    ctypes.set_errno(errno.EACCES)
    return -1


@contextlib.contextmanager
def _mprotect(countdown: Countdown) -> Iterator[None]:
    from phintys.backends.llvm.machine import image

    original = image._protect
    holder = types.SimpleNamespace(protect=original())
    with replaced(holder, "protect", _refuse)(countdown):
        image._protect = lambda: holder.protect  # type: ignore[assignment]
        try:
            yield
        finally:
            image._protect = original


def _file_points() -> Iterator[Point]:
    names = ("open", "fstat", "lstat", "stat", "mkdir", "replace", "unlink", "utime", "scandir")
    for name in (*names, "read", "urandom", "rmdir"):
        for told, error in _SYSTEM.items():
            fault = replaced(os, name, raising(error))
            yield Point("files", f"os.{name}", told, fault, (MAKE, LOAD))
    for told, error in _SYSTEM.items():
        fault = replaced(os, "close", after(raising(error)))
        yield Point("files", "os.close", told, fault, (MAKE, LOAD))
        yield Point("files", "open", told, replaced(io, "open", raising(error)), (MAKE, LOAD))
        for method in ("read", "readall", "readinto", "write"):
            fault = of_files(method, raising(error))
            yield Point("files", f"file.{method}", told, fault, (MAKE, LOAD))
        fault = of_files("close", after(raising(error)))
        yield Point("files", "file.close", told, fault, (MAKE, LOAD))
    for method in ("read", "readall", "write"):
        fault = of_files(method, a_part)
        yield Point("files", f"file.{method}", "only a part", fault, (MAKE, LOAD))


def _finished(code: int) -> Callable[..., Any]:
    """A process that ends with a status and without a result."""

    def run(original: Any, command: list[str], **more: Any) -> Any:
        text = "" if more.get("text") else b""
        return subprocess.CompletedProcess(command, code, text, text)

    return run


def _process_points() -> Iterator[Point]:
    faults = {
        "cannot be started": raising(system(errno.ENOENT)),
        "no process can be made": raising(system(errno.EAGAIN)),
        "fails": _finished(1),
        "is killed": _finished(-9),
        "makes no file": _finished(0),
        "no memory": raising(MemoryError),
    }
    for told, failure in faults.items():
        fault = replaced(subprocess, "run", failure)
        yield Point("processes", "the C compiler", told, fault, (MAKE, LOAD), C)
    missing = replaced("shutil", "which", answering(lambda found: None))
    yield Point("processes", "the C compiler", "is missing", missing, (MAKE, LOAD), C)
    load = replaced("phintys.backends.c.compiler", "_load", answering(lambda found: None))
    yield Point("processes", "a kept library", "does not load", load, (LOAD,), C)
    cdll = replaced(ctypes, "CDLL", raising(system(errno.ENOEXEC)))
    yield Point("processes", "ctypes.CDLL", "ENOEXEC", cdll, (MAKE, LOAD))
    folder = replaced(tempfile, "TemporaryDirectory", raising(system(errno.ENOSPC)))
    yield Point("processes", "TemporaryDirectory", "ENOSPC", folder, (MAKE, LOAD), C)


#: What is done on the way to machine code: what it is, owner, function.
STAGES = (
    ("inputs and outputs", "phintys.compile.function", "specify"),
    ("the key of the graph", "phintys.compile.function", "fingerprint"),
    ("rewriting", "phintys.rewriting.engine:RuleSet", "apply"),
    ("lowering", "phintys.lowering.from_graph", "lower_graph"),
    ("planning of memory", "phintys.lowering.from_graph", "plan_memory"),
    ("IR of the routine", "phintys.backends.llvm.routine.entry", "emit_entry"),
    ("IR of the module", "phintys.backends.llvm.routine.module", "module_text"),
    ("LLVM parses", "llvmlite.binding", "parse_assembly"),
    ("LLVM verifies", "llvmlite.binding.module:ModuleRef", "verify"),
    ("LLVM generates", "llvmlite.binding.targets:TargetMachine", "emit_object"),
    ("linking", "phintys.backends.llvm.machine.image", "link"),
    ("loading", "phintys.backends.llvm.machine.jit", "load"),
    ("bytes of a function", "phintys.backends.llvm.machine.stored", "function_bytes"),
    ("a function of bytes", "phintys.backends.llvm.machine.stored", "read_function"),
    ("code of bytes", "phintys.backends.llvm.machine.jit", "read_code"),
    ("addresses of the interpreter", "phintys.backends.llvm.runtime.cpython", "symbols"),
    ("the function object", "phintys.backends.llvm", "bind"),
    ("C text", "phintys.backends.c", "CFile"),
)


def _generation_points() -> Iterator[Point]:
    for name, owner, function in STAGES:
        modes = (
            LLVM if "llvm" in owner or "native" in owner else C if "backends.c" in owner else BOTH
        )
        for told, error in _ERRORS.items():
            fault = replaced(owner, function, raising(error))
            yield Point("generation", name, told, fault, (MAKE, LOAD), modes, (Injected,))
    for told in ("no memory", "an interrupt"):
        fault = each_function(_ERRORS[told])
        yield Point("generation", EACH, told, fault, (MAKE, LOAD))


def _callback_points() -> Iterator[Point]:
    wrong = (TypeError, ValueError)
    for told, error in _ERRORS.items():
        fault = replaced(injection_programs, "answer", raising(error))
        yield Point("callbacks", "an op's perform", told, fault, (CALL,), ALL, (Injected,))
    for told, make in injection_programs.WRONG_ANSWERS.items():
        fault = replaced(injection_programs, "answer", answering(make))
        yield Point("callbacks", "an op's perform", told, fault, (CALL,), ALL, wrong)
    for told in ("no memory", "an interrupt"):
        fault = each_function(_ERRORS[told])
        yield Point("callbacks", EACH, told, fault, (CALL,))


POINTS: list[Point] = [
    *_memory_points(),
    *_mapping_points(),
    *_file_points(),
    *_process_points(),
    *_generation_points(),
    *_callback_points(),
]


#: What is known of the machine and of the package, and is found out anew in each trial.
_KNOWN = (
    image.refusal,
    image.refused_memory,
    identity.own_version,
    identity.llvm_version,
    identity.processor,
)


def forget_the_machine() -> None:
    for function in _KNOWN:
        function.cache_clear()


def countdown_of(point: Point) -> Countdown:
    """What counts the calls of a place."""
    name = getattr(point.fault, "native", None)
    return Countdown() if name is None else countdowns[name]
