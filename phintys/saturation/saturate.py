"""The program for egglog, and its run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from phintys.saturation.language import Language, Term, kind
from phintys.saturation.limits import Limits
from phintys.saturation.translate import Instance


class Graph:
    """An e-graph that contains some variables, and equations on them."""

    def __init__(self, language: Language) -> None:
        bindings: Any = import_module("egglog.bindings")
        self.language = language
        self.egraph = bindings.EGraph()
        self.declared: set[str] = set()
        self.run("(sort E) (relation Kind (E String)) (relation Place (String E))")

    def run(self, text: str) -> Any:
        return self.egraph.run_program(*self.egraph.parse_program(text))

    def declare(self) -> None:
        """Declare the symbols of the language that are new."""
        new = [name for name in self.language.symbols if name not in self.declared]
        self.declared.update(new)
        arity = self.language.arity
        self.run("\n".join(f"(constructor {n} ({' '.join(['E'] * arity[n])}) E)" for n in new))

    def add(self, terms: Sequence[Term]) -> None:
        """Add variables, and say of which kinds they are."""
        self.declare()
        lines = [f"(let {t.name} {t.text})" for t in terms]
        lines += [f'(Kind {t.name} "{kind(t.variable)}")' for t in terms]
        lines += [f'(Place "{t.name}" {t.name})' for t in terms]
        self.run("\n".join(lines))

    def equate(self, instances: Iterable[Instance]) -> None:
        """Add equations."""
        texts = list(dict.fromkeys(equation(i, self.language) for i in instances))
        self.declare()
        for text in texts:  # together they would take quadratic time
            self.run(text)

    def saturate(self, limits: Limits) -> str:
        """Apply all equations until nothing changes, or to a limit; the e-graph as JSON."""
        text = self.serialized()
        for _ in range(limits.rounds):
            (report,) = self.run("(run 1)")
            text = self.serialized()
            if not report.report.updated or text.count('"op"') > limits.nodes:
                break
        return text

    def serialized(self) -> str:
        found = self.egraph.serialize([], max_functions=None, max_calls_per_function=None)
        return found.to_json()


def equation(i: Instance, language: Language) -> str:
    """An equation as a rule of egglog: where the left side is, the right side is equal to it."""
    names = {v: f"p{k}" for k, v in enumerate(i.variables)}
    left = language.terms([i.left], names)[-1].text
    terms = language.terms([i.right], names)
    right = names[i.right] if i.right in names else terms[-1].text
    conditions = [f"(= root {left})"]
    conditions += [f'(Kind {name} "{kind(v)}")' for v, name in names.items()]
    actions = [f"(union root {right})"]
    actions += [f'(Kind {t.text} "{kind(t.variable)}")' for t in terms]
    actions += [f"(subsume {left})"] if i.replaces else []
    return f"(rule ({' '.join(conditions)}) ({' '.join(actions)}))"
