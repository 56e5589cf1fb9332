"""Sphinx directives that write reference tables from the tables of the package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import Parameter, getdoc, isfunction, signature
from typing import Any

from derivatives import derivative, without_derivative
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(x.replace("|", "\\|") for x in row) + " |" for row in lines)


class ScalarFunctions(SphinxDirective):
    """All elementwise functions: a row for each row of ``phintys.scalar.TABLE``."""

    def run(self) -> list[nodes.Node]:
        from phintys.scalar import TABLE
        from phintys.tensor.scalar_functions import ALIASES

        rows = [
            self.row(op, [alias for alias, row in ALIASES.items() if row == name])
            for name, op in sorted(TABLE.items())
            if not name.startswith("cast_")
        ]
        head = ("function", "meaning", "domain", "derivative", "native code")
        return self.parse_text_to_nodes(table(head, rows))

    @staticmethod
    def row(op: Any, aliases: Sequence[str]) -> list[str]:
        names = ", ".join(f"`{name}`" for name in (op.name, *aliases))
        native = "yes" if op.native is not None else "no"
        return [names, op.doc, domain(op), derivative(op), native]


def domain(op: Any) -> str:
    """Where a function is defined and differentiable; empty for all numbers."""
    found = op.facts.get("domain")
    if found is None or isinstance(found[0], tuple):
        return ""
    return f"{found[0]:.4g} to {found[1]:.4g}"


class WithoutDerivative(SphinxDirective):
    """The ops that have no derivative, with the reasons."""

    def run(self) -> list[nodes.Node]:
        import phintys.tensor.random  # noqa: F401  (its ops)

        rows = [(f"`{names.replace(', ', '`, `')}`", why) for names, why in without_derivative()]
        return self.parse_text_to_nodes(table(("ops", "why there is no derivative"), rows))


class Distributions(SphinxDirective):
    """The functions of ``phintys.tensor.random`` that draw."""

    def run(self) -> list[nodes.Node]:
        from phintys.tensor.random.basic import DISTRIBUTIONS

        rows = [self.row(name, draw) for name, draw in sorted(DISTRIBUTIONS.items())]
        return self.parse_text_to_nodes(table(("method", "draws", "ValueError if"), rows))

    @staticmethod
    def row(name: str, draw: Any) -> list[str]:
        own = [p for p in signature(draw).parameters.values() if p.name not in _OF_EVERY_DRAW]
        given = ", ".join(str(p.replace(annotation=Parameter.empty)) for p in own)
        source = getattr(draw, "func", draw)
        text = getdoc(source if isfunction(source) else type(source)) or ""
        wrong = [condition.wrong for condition in getattr(source, "conditions", ())]
        return [f"`{name}({given})`", text.split("\n\n")[0].replace("\n", " "), "; ".join(wrong)]


#: arguments of every draw
_OF_EVERY_DRAW = ("size", "rng", "dtype", "return_next_rng", "kwargs")


class Instructions(SphinxDirective):
    """The native instructions of ``phintys.scalar.native``."""

    def run(self) -> list[nodes.Node]:
        from phintys.scalar.native import INSTRUCTIONS

        rows = [
            (f"`{i.name}`", str(i.arity), " ".join(i.kinds), i.result, i.doc)
            for i in INSTRUCTIONS.values()
        ]
        return self.parse_text_to_nodes(
            table(("name", "arguments", "kinds", "result", "meaning"), rows)
        )


class Settings(SphinxDirective):
    """The settings of ``phintys.config``."""

    def run(self) -> list[nodes.Node]:
        from phintys.config import config

        rows = [
            (f"`{s.name}`", f"`{s.default!r}`", s.doc, ", ".join(map(str, s.choices or ())))
            for s in config._settings.values()
            if not s.note
        ]
        return self.parse_text_to_nodes(table(("setting", "default", "meaning", "choices"), rows))


class OlderSettings(SphinxDirective):
    """The settings of other systems that have no effect."""

    def run(self) -> list[nodes.Node]:
        from phintys.config.older import OLDER

        rows = [(f"`{s.name}`", s.note) for s in OLDER]
        return self.parse_text_to_nodes(table(("setting", "here"), rows))


class Rules(SphinxDirective):
    """The rewrites of the tensor language, by phase."""

    def run(self) -> list[nodes.Node]:
        from phintys.tensor.rules import RULES

        rows = [(f"`{r.name}`", r.phase, r.law) for r in sorted(RULES, key=lambda r: r.name)]
        return self.parse_text_to_nodes(table(("rule", "phase", "law"), rows))


class Laws(SphinxDirective):
    """The laws of rewrites."""

    def run(self) -> list[nodes.Node]:
        from phintys.rewriting.rule import LAWS

        rows = [(f"`{name}`", meaning) for name, meaning in LAWS.items()]
        return self.parse_text_to_nodes(table(("law", "both sides"), rows))


class Switches(SphinxDirective):
    """What variables do not have under an older name."""

    def run(self) -> list[nodes.Node]:
        from phintys.compat.switches import DEFAULTS, SWITCHES

        rows = [(f"`{s.owner.__name__}.{s.attribute}`", s.reason) for s in SWITCHES]
        rows += [(f"`config.{d.setting}` is `{d.value!r}`", d.reason) for d in DEFAULTS]
        return self.parse_text_to_nodes(table(["is absent", "because"], rows))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("scalar-functions", ScalarFunctions)
    app.add_directive("without-derivative", WithoutDerivative)
    app.add_directive("distributions", Distributions)
    app.add_directive("instructions", Instructions)
    app.add_directive("settings", Settings)
    app.add_directive("older-settings", OlderSettings)
    app.add_directive("switches", Switches)
    app.add_directive("rules", Rules)
    app.add_directive("laws", Laws)
    return {"parallel_read_safe": True}
