"""The textual form of Programs: printer and parser.

``render_program`` prints a Program, and shows an example; ``parse_program`` reads it back.  ``%3``
is slot 3, ``$1`` an operand of a kernel, written ``%slot {strides; offset; extra strides}``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from textwrap import dedent
from typing import Any

import numpy as np

from phintys.dims import Dim, dim_max, dim_min, product
from phintys.lowering.program import (
    Branch,
    Call,
    Check,
    Copy,
    Draw,
    External,
    Inst,
    Kernel,
    Loop,
    Operand,
    Program,
    Python,
    Rows,
    Scan,
    Slot,
    Step,
)
from phintys.routines import ROUTINES

# -------------------------------------------------------------------------- writing


def render_program(program: Program) -> str:
    """The text of a Program.

    >>> from phintys.lowering.assemble import assemble
    >>> from phintys.lowering.builder import Builder
    >>> b = Builder()
    >>> x = b.input("float64", (None,), "x")
    >>> print(render_program(assemble(b, [b.map(lambda n, x: n.exp(x), x)])))
    inputs %0 of 1
    outputs %1
    %0 = input float64 [len(0, 0)] 'x'
    %1 = output float64 [len(0, 0)]
    kernel [len(0, 0)] split 1
      $0 = %0 {1; 0; }
      $1 = %1 {1; 0; }
      0: load float64 () 0
      1: exp float64 (0)
      2: store float64 (1) 1
    """
    return "\n".join(_program_lines(program)) + "\n"


def render_dim(dim: Dim) -> str:
    """The text of a Dim: ``len(slot, axis)``, ``item(slot)``, integers, ``+``, ``*`` and functions.

    >>> render_dim(Dim.symbol(("len", 0, 1)) * 3 + 1)
    '1 + 3*len(0, 1)'
    """
    return dim.render(_symbol)


def _symbol(key: Any) -> str:
    return f"{key[0]}({', '.join(str(k) for k in key[1:])})"


def _dims(dims: Iterable[Dim]) -> str:
    return ", ".join(render_dim(d) for d in dims)


def _program_lines(program: Program) -> Iterator[str]:
    yield f"inputs {_slots(program.inputs)} of {program.n_arguments}".replace("  ", " ")
    yield f"outputs {_slots(program.outputs)}".rstrip()
    if program.updates:
        yield f"updates {' '.join(map(str, program.updates))}"
    for slot in program.slots:
        yield _slot_line(slot)
    for number, size in enumerate(program.storages):
        yield f"storage {number} = {render_dim(size)}"
    if program.strips:
        yield f"strips {' '.join(f'{first}:{stop}' for first, stop in program.strips)}"
    for step in program.steps:
        yield from _WRITERS[type(step)](step)


def _slots(slots: Iterable[Slot]) -> str:
    return " ".join(f"%{s.number}" for s in slots)


def _slot_line(slot: Slot) -> str:
    line = f"%{slot.number} = {slot.kind}"
    if slot.dtype is not None:
        line += f" {slot.dtype} [{_dims(slot.shape)}]"
    if slot.name:
        line += f" {slot.name!r}"
    if slot.storage is not None:
        line += f" in {slot.storage}"
    if slot.kind == "constant":
        line += f" = {slot.data.tolist()!r}"
    return line


def _operand(operand: Operand) -> str:
    parts = (_dims(operand.strides), render_dim(operand.offset), _dims(operand.extra))
    return f"%{operand.slot.number} {{{'; '.join(parts)}}}"


def _kernel_lines(kernel: Kernel) -> Iterator[str]:
    ragged = "" if kernel.ragged is None else " ragged {} {}".format(*kernel.ragged)
    yield f"kernel [{_dims(kernel.dims)}] split {kernel.split}{ragged}"
    for number, operand in enumerate(kernel.operands):
        yield f"  ${number} = {_operand(operand)}"
    for position, inst in enumerate(kernel.body):
        args = ", ".join(map(str, inst.args))
        yield f"  {position}: {inst.op} {inst.dtype} ({args}) {_param(inst)}".rstrip()


def _param(inst: Inst) -> str:
    if inst.param is None:
        return ""
    if inst.op == "dim":
        return render_dim(inst.param)
    if inst.op == "accumulate":
        return f"{inst.param[0]} {inst.param[1]}"
    return str(inst.param)


def _call_lines(call: Call) -> Iterator[str]:
    yield f"call {call.name} {call.dtype} [{_dims(call.sizes)}] batch [{_dims(call.batch)}]"
    for number, operand in enumerate(call.operands):
        yield f"  ${number} = {_operand(operand)}"
    for name, factor in (("alpha", call.alpha), ("beta", call.beta)):
        yield f"  {name} = {_operand(factor) if isinstance(factor, Operand) else factor}"


def _scan_lines(scan: Scan) -> Iterator[str]:
    yield f"scan {scan.kind} [{_dims(scan.dims)}]"
    for number, operand in enumerate(scan.operands):
        yield f"  ${number} = {_operand(operand)}"


def _external_lines(step: External) -> Iterator[str]:
    head = f"external {step.routine.name} {step.dtype} {step.roles} [{_dims(step.integers)}]"
    yield f"{head} batch [{_dims(step.batch)}] work {render_dim(step.work)}"
    for number, operand in enumerate(step.operands):
        yield f"  ${number} = {_operand(operand)}"


def _draw_lines(draw: Draw) -> Iterator[str]:
    yield f"draw {draw.name} [{_dims(draw.dims)}] %{draw.source.number} -> %{draw.result.number}"
    for number, operand in enumerate(draw.operands):
        yield f"  ${number} = {_operand(operand)}"


def _nested(title: str, program: Program) -> Iterator[str]:
    yield f"  {title}"
    for line in _program_lines(program):
        yield "    " + line


def _branch_lines(step: Branch) -> Iterator[str]:
    yield f"branch %{step.condition.number} ({_slots(step.inputs)}) -> ({_slots(step.outputs)})"
    yield from _nested("then", step.then)
    yield from _nested("else", step.orelse)


def _loop_lines(step: Loop) -> Iterator[str]:
    until = "" if step.until is None else f" until {step.until}"
    count = "" if step.count is None else f" count %{step.count.number}"
    yield f"loop {render_dim(step.length)} ({_slots(step.constants)}){until}{count}"
    for first, last in step.state:
        yield f"  state %{first.number} %{last.number}"
    for window in step.windows:
        reads = " ".join(map(str, window.reads))
        writes = " ".join(f"{offset}={number}" for offset, number in window.writes)
        yield f"  rows {render_dim(window.length)} {_operand(window.operand)} ({reads}) ({writes})"
    yield from _nested("body", step.body)


_WRITERS: dict[type, Callable[[Any], Iterable[str]]] = {
    Kernel: _kernel_lines,
    Call: _call_lines,
    Scan: _scan_lines,
    External: _external_lines,
    Draw: _draw_lines,
    Branch: _branch_lines,
    Loop: _loop_lines,
    Copy: lambda s: [f"copy %{s.source.number} -> %{s.target.number}"],
    Check: lambda s: [
        f"check {render_dim(s.left)} {s.relation} {render_dim(s.right)} {s.message!r}"
        + " position" * s.is_position
    ],
    Python: lambda s: [f"python ({_slots(s.inputs)}) -> ({_slots(s.outputs)}) {s.name!r}"],
}


# -------------------------------------------------------------------------- reading


def parse_program(text: str, functions: Mapping[str, Any] | None = None) -> Program:
    """The Program of a text; ``functions`` holds the functions of `Python` steps by name.

    Raises ValueError with the line that cannot be parsed.
    """
    lines = [line for line in dedent(text).splitlines() if line.strip()]
    return _Parser(lines, functions or {}).program()


def parse_dim(text: str) -> Dim:
    """The Dim of a text; the inverse of `render_dim`.

    >>> parse_dim("max(len(0, 1), 2)*3").render(str)
    "3*max(2, ('len', 0, 1))"
    """
    return _dim_of(ast.parse(text.strip(), mode="eval").body)


def _dim_of(node: ast.expr) -> Dim:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Dim.const(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_dim_of(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _dim_of(node.left) + _dim_of(node.right)
    if isinstance(node, ast.BinOp):
        return product(_dim_of(f) for f in _factors(node))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        args = [_dim_of(a) for a in node.args]
        if node.func.id in _DIM_FUNCTIONS:
            return _DIM_FUNCTIONS[node.func.id](*args)
        return Dim.symbol((node.func.id, *(a.value for a in args)))
    raise ValueError(f"not a Dim: {ast.unparse(node)}")


def _factors(node: ast.expr) -> list[ast.expr]:
    """The factors of a product; they must be multiplied at once, to give the same normal form."""
    factors: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        factors.append(node.right)
        node = node.left
    return [node, *reversed(factors)]


_DIM_FUNCTIONS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": dim_max,
    "min": dim_min,
}


def _dim_list(text: str) -> tuple[Dim, ...]:
    if not text.strip():
        return ()
    tree = ast.parse(f"[{text}]", mode="eval").body
    assert isinstance(tree, ast.List)
    return tuple(_dim_of(e) for e in tree.elts)


_SLOT = re.compile(
    r"%(?P<number>\d+) = (?P<kind>\w+)(?: (?P<dtype>\w+) \[(?P<shape>.*?)\])?"
    r"(?: (?P<name>'[^']*'|\"[^\"]*\"))?(?: in (?P<storage>\d+))?(?: = (?P<data>.*))?"
)
_OPERAND = re.compile(r"%(\d+) \{(.*?); (.*?); (.*?)\}")
_INST = re.compile(r"\d+: (\w+) (\w+) \(([\d, ]*)\) ?(.*)")


class _Parser:
    def __init__(self, lines: list[str], functions: Mapping[str, Any]):
        self.lines = lines
        self.functions = functions
        self.at = 0
        self.slots: dict[int, Slot] = {}

    # ----- lines
    def match(self, pattern: str | re.Pattern[str]) -> re.Match[str]:
        """Read the next line, which must match; raises ValueError."""
        found = re.fullmatch(pattern, self.lines[self.at].strip())
        if found is None:
            raise ValueError(f"cannot read the line {self.lines[self.at]!r}")
        self.at += 1
        return found

    def starts(self, *words: str) -> bool:
        """Whether the next line starts with one of the words."""
        return self.at < len(self.lines) and self.lines[self.at].strip().startswith(words)

    def block(self) -> list[str]:
        """Read the following lines that are indented by four, without the indentation."""
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at].startswith("    "):
            self.at += 1
        return [line[4:] for line in self.lines[start : self.at]]

    # ----- parts
    def program(self) -> Program:
        inputs = self.match(r"inputs ?([%\d ]*?) ?of (\d+)")
        outputs = self.match(r"outputs ?([%\d ]*)")
        updates = self.match(r"updates (.*)")[1].split() if self.starts("updates") else []
        while self.starts("%"):
            self.slot()
        storages: list[Dim] = []
        while self.starts("storage"):
            storages.append(parse_dim(self.match(r"storage \d+ = (.*)")[1]))
        ranges = self.match(r"strips ([\d: ]*)")[1].split() if self.starts("strips") else []
        steps: list[Step] = []
        while self.at < len(self.lines):
            step = self.step()
            step.step = len(steps)
            steps.append(step)
        return Program(
            self.slot_list(inputs[1]),
            int(inputs[2]),
            self.slot_list(outputs[1]),
            [int(u) for u in updates],
            steps,
            list(self.slots.values()),
            storages,
            [(int(first), int(stop)) for first, stop in (r.split(":") for r in ranges)],
            [None] * len(steps),
        )

    def slot_list(self, text: str) -> list[Slot]:
        return [self.slots[int(n)] for n in re.findall(r"%(\d+)", text)]

    def slot(self) -> None:
        m = self.match(_SLOT)
        shape = _dim_list(m["shape"] or "")
        name = ast.literal_eval(m["name"]) if m["name"] else ""
        storage = None if m["storage"] is None else int(m["storage"])
        data = None
        if m["data"] is not None:
            numbers = eval(m["data"], {"__builtins__": {}}, {"inf": np.inf, "nan": np.nan})
            data = np.array(numbers, dtype=m["dtype"]).reshape([d.value or 0 for d in shape])
        number = int(m["number"])
        self.slots[number] = Slot(number, m["kind"], m["dtype"], shape, name, data, storage)

    def operand(self, text: str) -> Operand:
        m = _OPERAND.fullmatch(text)
        if m is None:
            raise ValueError(f"cannot read the operand {text!r}")
        return Operand(self.slots[int(m[1])], _dim_list(m[2]), parse_dim(m[3]), _dim_list(m[4]))

    def operands(self) -> tuple[Operand, ...]:
        found: list[Operand] = []
        while self.starts("$"):
            found.append(self.operand(self.match(r"\$\d+ = (.*)")[1]))
        return tuple(found)

    # ----- steps
    def step(self) -> Step:
        word = self.lines[self.at].split(" ", 1)[0]
        readers: dict[str, Callable[[], Step]] = {
            "kernel": self.kernel,
            "call": self.call,
            "scan": self.scan,
            "external": self.external,
            "draw": self.draw,
            "copy": self.copy,
            "check": self.check,
            "python": self.python,
            "branch": self.branch,
            "loop": self.loop,
        }
        if word not in readers:
            raise ValueError(f"cannot read the line {self.lines[self.at]!r}")
        return readers[word]()

    def kernel(self) -> Kernel:
        m = self.match(r"kernel \[(.*)\] split (\d+)(?: ragged (\d+) (\d+))?")
        operands = self.operands()
        body: list[Inst] = []
        while self.at < len(self.lines) and _INST.fullmatch(self.lines[self.at].strip()):
            body.append(self.inst())
        ragged = None if m[3] is None else (int(m[3]), int(m[4]))
        return Kernel(_dim_list(m[1]), int(m[2]), operands, tuple(body), ragged=ragged)

    def inst(self) -> Inst:
        op, dtype, args, param = self.match(_INST).groups()
        positions = tuple(int(a) for a in args.split(",") if a.strip())
        return Inst(op, dtype, positions, _parse_param(op, dtype, param))

    def call(self) -> Call:
        m = self.match(r"call (\w+) (\w+) \[(.*)\] batch \[(.*)\]")
        operands = self.operands()
        alpha = self.factor(self.match(r"alpha = (.*)")[1])
        beta = self.factor(self.match(r"beta = (.*)")[1])
        return Call(m[1], m[2], _dim_list(m[3]), operands, alpha, beta, _dim_list(m[4]))

    def scan(self) -> Scan:
        m = self.match(r"scan (\w+) \[(.*)\]")
        target, source = self.operands()
        return Scan(m[1], _dim_list(m[2]), (target, source))

    def external(self) -> External:
        m = self.match(r"external (\w+) (\w+) ([ruw]*) \[(.*)\] batch \[(.*)\] work (.*)")
        integers, batch, work = _dim_list(m[4]), _dim_list(m[5]), parse_dim(m[6])
        return External(ROUTINES[m[1]], m[2], integers, m[3], self.operands(), batch, work)

    def draw(self) -> Draw:
        m = self.match(r"draw (\w+) \[(.*)\] %(\d+) -> %(\d+)")
        source, result = self.slots[int(m[3])], self.slots[int(m[4])]
        return Draw(m[1], _dim_list(m[2]), self.operands(), source, result)

    def factor(self, text: str) -> Operand | float:
        return self.operand(text) if text.startswith("%") else float(text)

    def copy(self) -> Copy:
        m = self.match(r"copy %(\d+) -> %(\d+)")
        return Copy(self.slots[int(m[1])], self.slots[int(m[2])])

    def check(self) -> Check:
        m = self.match(r"check (.*?) (==|>=|>) (.*?) ('.*'|\".*\")( position)?")
        left, right, message = parse_dim(m[1]), parse_dim(m[3]), ast.literal_eval(m[4])
        return Check(left, m[2], right, message, bool(m[5]))

    def python(self) -> Python:
        m = self.match(r"python \((.*?)\) -> \((.*?)\) (.*)")
        name = ast.literal_eval(m[3])
        inputs, outputs = self.slot_list(m[1]), self.slot_list(m[2])
        return Python(self.functions.get(name), tuple(inputs), tuple(outputs), name)

    def nested(self, title: str) -> Program:
        self.match(title)
        return _Parser(self.block(), self.functions).program()

    def branch(self) -> Branch:
        m = self.match(r"branch %(\d+) \((.*?)\) -> \((.*?)\)")
        inputs, outputs = tuple(self.slot_list(m[2])), tuple(self.slot_list(m[3]))
        condition = self.slots[int(m[1])]
        return Branch(condition, self.nested("then"), self.nested("else"), inputs, outputs)

    def loop(self) -> Loop:
        m = self.match(r"loop (.*) \(([%\d ]*)\)(?: until (\d+))?(?: count %(\d+))?")
        state: list[tuple[Slot, Slot]] = []
        while self.starts("state"):
            first, last = self.slot_list(self.match(r"state (.*)")[1])
            state.append((first, last))
        windows: list[Rows] = []
        while self.starts("rows"):
            windows.append(self.rows())
        until = None if m[3] is None else int(m[3])
        count = None if m[4] is None else self.slots[int(m[4])]
        constants = tuple(self.slot_list(m[2]))
        body = self.nested("body")
        return Loop(parse_dim(m[1]), body, tuple(state), tuple(windows), constants, until, count)

    def rows(self) -> Rows:
        m = self.match(r"rows (.*) (%\d+ \{.*\}) \(([\d ]*)\) \(([\d= ]*)\)")
        pairs = [pair.split("=") for pair in m[4].split()]
        writes = tuple((int(offset), int(number)) for offset, number in pairs)
        reads = tuple(map(int, m[3].split()))
        return Rows(parse_dim(m[1]), self.operand(m[2]), reads, writes)


def _parse_param(op: str, dtype: str, text: str) -> Any:
    if not text:
        return None
    if op == "dim":
        return parse_dim(text)
    if op == "accumulate":
        number, kind = text.split()
        return (int(number), kind)
    if op == "const":
        return text == "True" if dtype == "bool" else (float if "float" in dtype else int)(text)
    return int(text) if op in ("load", "store", "index") else text
