"""`pprint`: an expression as one line of text, by printers that programs can register.

>>> import phintys.tensor as pt
>>> x, y = pt.dscalars("x", "y")
>>> own = pprint.clone_assign(pt.add, OperatorPrinter("plus", -2, "either"))
>>> own.assign(pt.exp, PatternPrinter("e^{%(0)s}"))
>>> own(pt.exp(x + y) * 2)
'(e^{(x plus y)} * 2)'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from phintys.graph.op import Op
from phintys.graph.traversal import toposort
from phintys.graph.variable import Apply, Constant, Variable
from phintys.tensor.creation import Alloc
from phintys.tensor.dot import Dot
from phintys.tensor.join import Join
from phintys.tensor.reduce import Sum
from phintys.tensor.shape import MakeVector

#: scalar op name -> symbol
OPERATORS = {
    **{"add": "+", "sub": "-", "mul": "*", "true_div": "/", "int_div": "//", "neg": "-"},
    "pow": "**",
}
#: scalar op name -> pattern, or the name of a function
FORMS = {"abs": "|%s|", "second": "fill"}
#: words of mathematics -> how they are printed
special = {"middle_dot": "\\dot", "big_sigma": "\\Sigma"}
greek = {name: f"\\{name}" for name in ("alpha", "beta", "gamma", "delta", "epsilon")}
#: how an operator groups; "either": brackets are never needed
VALID_ASSOC = {"left", "right", "either"}


class PrinterState:
    """What a printer is called with: ``pprinter``, the `PPrinter`, and the texts so far, ``memo``.

    Other attributes may be added.
    """

    def __init__(self, props: Mapping[str, Any] | None = None, **more_props: Any) -> None:
        self.pprinter: Any = None
        self.memo: dict[Variable, str] = {}
        vars(self).update(props or {}, **more_props)


class Printer:
    """Base class of printers; subclasses define `process`."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        """The text of a variable; that of an input is ``pstate.pprinter.process(v, pstate)``."""
        raise TypeError(f"{type(self).__name__} does not define process.")


def _inputs(node: Apply, pstate: PrinterState) -> list[str]:
    """The texts of the inputs of a node."""
    return [pstate.pprinter.process(v, pstate) for v in node.inputs]


class OperatorPrinter(Printer):
    """Prints inputs with an operator between them, or one input with the operator before it.

    The text is always in brackets: ``precedence`` and ``assoc``, one of `VALID_ASSOC`, are kept as
    attributes only.  ValueError for another ``assoc``.
    """

    def __init__(self, operator: str, precedence: float, assoc: str = "left") -> None:
        if assoc not in VALID_ASSOC:
            raise ValueError(f"assoc must be one of {sorted(VALID_ASSOC)}, not {assoc!r}.")
        self.operator, self.precedence, self.assoc = operator, precedence, assoc

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        return _operation(self.operator, _inputs(node, pstate))


def _operation(symbol: str, texts: Sequence[str]) -> str:
    return f"({f' {symbol} '.join(texts) if len(texts) > 1 else symbol + texts[0]})"


class FunctionPrinter(Printer):
    """Prints a call: a name for each output, the inputs, and attributes of the op as keywords."""

    def __init__(self, names: Sequence[str], keywords: Sequence[str] | None = None) -> None:
        self.names, self.keywords = list(names), list(keywords or ())

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        texts = _inputs(node, pstate)
        texts += [f"{key}={getattr(node.op, key)}" for key in self.keywords]
        return f"{self.names[var.index or 0]}({', '.join(texts)})"


class PatternPrinter(Printer):
    """Prints a pattern, one for each output, in which ``%(0)s`` is the text of input 0.

    A pattern may be a tuple, whose first entry is the text.
    """

    def __init__(self, *patterns: Any) -> None:
        self.patterns = [p[0] if isinstance(p, tuple) else p for p in patterns]

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        texts = {str(k): text for k, text in enumerate(_inputs(node, pstate))}
        return str(self.patterns[var.index or 0] % texts)


class IgnorePrinter(Printer):
    """Prints the first input of a node in its place."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        return str(pstate.pprinter.process(node.inputs[0], pstate))


class DefaultPrinter(Printer):
    """Prints the op as a function."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        suffix = f".{var.index}" if len(node.outputs) > 1 else ""
        return f"{node.op}({', '.join(_inputs(node, pstate))}){suffix}"


class LeafPrinter(Printer):
    """Prints the name of a variable without an owner, or its type."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        return var.name if var.name is not None else f"<{var.type}>"


class ConstantPrinter(Printer):
    """Prints the name of a constant, or its value in one line, without the axes of a number."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        data: Any = var.data  # type: ignore[attr-defined]
        if var.name is not None:
            return var.name
        number = data.reshape(()) if getattr(data, "size", 0) == 1 else data
        return " ".join(str(number).split())


class _VectorPrinter(Printer):
    """Prints a vector of its elements."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        return f"[{', '.join(_inputs(node, pstate))}]"


class _ElementwisePrinter(Printer):
    """Prints elementwise operations with the symbols of `OPERATORS`, in brackets, or as calls."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        texts, name = _inputs(node, pstate), node.op.scalar_op.name
        if name in OPERATORS:
            return _operation(OPERATORS[name], texts)
        form = FORMS.get(
            name, name.removeprefix("cast_") if name[:5] == "cast_" else str(node.op).rstrip("_")
        )
        arguments = ", ".join(texts)
        return form % arguments if name == "abs" else f"{form}({arguments})"


class _AxesPrinter(Printer):
    """Prints transpositions as ``.T``, and no other changes of axes."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        (text,) = _inputs(node, pstate)
        return f"{text}.T" if getattr(node.op, "is_transpose", False) else text


class _IndexPrinter(Printer):
    """Prints indexing as ``x[1:]``, writing as ``set_subtensor(x[1:], y)``."""

    def process(self, var: Variable, pstate: PrinterState) -> str:
        node: Any = var.owner
        texts, writes = _inputs(node, pstate), hasattr(node.op, "set_instead_of_inc")
        indices = texts[2:] if writes else texts[1:]
        entries = ", ".join(_entry_text(e, indices) for e in node.op.idx_list)
        read = f"{texts[0]}[{entries}]"
        if not writes:
            return read
        kind = "set" if node.op.set_instead_of_inc else "inc"
        return f"{kind}_subtensor({read}, {texts[1]})"


def _entry_text(entry: Any, indices: list[str]) -> str:
    """An entry of an index list: a position of an index, or a slice of positions."""
    if not isinstance(entry, slice):
        return indices[entry]
    start, stop, step = [
        "" if k is None else indices[k] for k in (entry.start, entry.stop, entry.step)
    ]
    return f"{start}:{stop}" + (f":{step}" if step else "")


def _is_elementwise(pstate: PrinterState, v: Variable) -> bool:
    return v.owner is not None and hasattr(v.owner.op, "inplace_pattern")


def _changes_axes(pstate: PrinterState, v: Variable) -> bool:
    return v.owner is not None and hasattr(v.owner.op, "new_order")


def _is_index(pstate: PrinterState, v: Variable) -> bool:
    return v.owner is not None and hasattr(v.owner.op, "idx_list")


def _is_computed(pstate: PrinterState, v: Variable) -> bool:
    return v.owner is not None


def _is_anything(pstate: PrinterState, v: Variable) -> bool:
    return True


Condition = Op | type | Callable[[PrinterState, Variable], bool]


class PPrinter:
    """Prints expressions by the first printer whose condition holds, the last registered first."""

    def __init__(self) -> None:
        self.printers: list[tuple[Any, Any]] = []

    def assign(self, condition: Condition, printer: Printer) -> None:
        """Register a printer for an op, a class of ops, or a predicate ``f(pstate, variable)``."""
        self.printers.insert(0, (condition, printer))

    def clone(self) -> PPrinter:
        """A copy with the same printers."""
        copy = PPrinter()
        copy.printers = list(self.printers)
        return copy

    def clone_assign(self, condition: Condition, printer: Printer) -> PPrinter:
        """A copy with one more printer."""
        copy = self.clone()
        copy.assign(condition, printer)
        return copy

    def process(self, r: Variable, pstate: PrinterState | None = None) -> str:
        """The text of a variable."""
        state = PrinterState(pprinter=self) if pstate is None else pstate
        if r in state.memo:
            return state.memo[r]
        for node in toposort([r], blockers=state.memo):
            for v in (*node.inputs, *node.outputs):  # inputs first: printers do not recurse
                if v not in state.memo:
                    state.memo[v] = self._text(v, state)
        if r not in state.memo:
            state.memo[r] = self._text(r, state)
        return state.memo[r]

    def _text(self, v: Variable, state: PrinterState) -> str:
        printer = next(p for condition, p in self.printers if _holds(condition, v, state))
        return str(printer.process(v, state))

    def process_graph(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        updates: Mapping[Variable, Variable] | None = None,
        display_inputs: bool = False,
    ) -> str:
        """The texts of outputs and updates, one a line; ``display_inputs`` lists inputs first."""
        state = PrinterState(pprinter=self)
        lines = [f"inputs: {', '.join(map(str, inputs))}"] if display_inputs else []
        new = {v: x for x, v in (updates or {}).items()}
        for v in [*outputs, *(x for x in new if x not in outputs)]:
            text = self.process(v, state)
            lines += [f"{new[v]} <- {text}"] if v in new else []
            lines += [f"return {text}"] if v in outputs else []
        return "\n".join(lines)

    def __call__(self, *args: Any) -> str:
        """The text of a variable, or, given inputs and outputs, of a graph."""
        if len(args) == 1:
            return self.process(args[0])
        if len(args) == 2 and isinstance(args[1], PrinterState):
            return self.process(*args)
        return self.process_graph(*args)


def _holds(condition: Any, v: Variable, state: PrinterState) -> bool:
    if isinstance(condition, Op):
        return v.owner is not None and v.owner.op == condition
    if isinstance(condition, type):
        return v.owner is not None and isinstance(v.owner.op, condition)
    return bool(condition(state, v))


leaf_printer, constant_printer, default_printer = LeafPrinter(), ConstantPrinter(), DefaultPrinter()
pprint = PPrinter()
pprint.assign(_is_anything, leaf_printer)
pprint.assign(lambda pstate, v: isinstance(v, Constant), constant_printer)
pprint.assign(_is_computed, default_printer)
pprint.assign(_changes_axes, _AxesPrinter())
pprint.assign(_is_index, _IndexPrinter())
pprint.assign(_is_elementwise, _ElementwisePrinter())
pprint.assign(Sum, FunctionPrinter(["sum"], ["axis"]))
pprint.assign(Alloc, FunctionPrinter(["alloc"]))
pprint.assign(Join, FunctionPrinter(["join"]))
pprint.assign(Dot, OperatorPrinter(special["middle_dot"], -1, "left"))
pprint.assign(MakeVector, _VectorPrinter())


def pp(graph: Variable) -> str:
    """An expression as one line of text, with infix operators; see `PPrinter` for other forms.

    Changes of axes are not shown, except transposition.

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dscalars("x", "y")
    >>> phintys.pp(pt.exp(x + y) * 2)
    '(Exp((x + y)) * 2)'
    """
    return pprint.process(graph)
