"""`DebugMode`: checks every rewrite, every op and the compiled code of a function, by values.

>>> import numpy as np, phintys, phintys.tensor as pt
>>> class Halved(phintys.Op):
...     __props__ = ()
...     itypes, otypes = [pt.dvector], [pt.dvector]
...
...     def perform(self, node, inputs, output_storage):
...         inputs[0][:] /= 2  # undeclared
...         output_storage[0][0] = inputs[0].copy()
>>> x = pt.dvector("x")
>>> f = phintys.function([x], Halved()(x), mode="DebugMode")
>>> f([1.0, 2.0])
Traceback (most recent call last):
    ...
phintys.compile.debug.faults.BadDestroyMap: Halved has changed its input 0, x, in perform; ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from phintys.compile.debug.faults import (
    BadDestroyMap,
    BadOptimization,
    BadThunkOutput,
    BadViewMap,
    DebugModeError,
    InvalidValueError,
    StochasticOrder,
)
from phintys.compile.debug.nodes import (
    PREALLOCATED,
    NodeChecks,
    Options,
    check_finite,
    copied,
    differ_by_more_than_rounding,
)
from phintys.compile.debug.record import RecordingRewriter, RewriteRecord
from phintys.compile.debug.replacements import check_rewrites
from phintys.compile.debug.values import Values
from phintys.compile.linker import Linker, get_linker
from phintys.compile.mode import Mode
from phintys.compile.nodes import CompiledNodes
from phintys.config import config
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.perform import Runner
from phintys.graph.results import array_type
from phintys.rewriting.check import Side

__all__ = [
    "BadDestroyMap",
    "BadOptimization",
    "BadThunkOutput",
    "BadViewMap",
    "DebugMode",
    "DebugModeError",
    "InvalidValueError",
    "StochasticOrder",
]


class DebugMode(Mode):
    """A mode in which each call checks everything, and raises a `DebugModeError`.

    - Each replacement that a rewrite has made: the old and the new expression are computed from
      the arguments of the call, and compared under the rule's law (`BadOptimization`, which names
      the rule).  A rewrite may store a function of two values as ``tag.values_eq_approx`` of a
      variable that it makes, to be used instead.
    - Rewriting is repeated, and must give the same graph (`StochasticOrder`).
    - Each node of the rewritten graph: it changes no inputs that its op's ``destroy_map`` does not
      declare (`BadDestroyMap`), and returns no views that ``view_map`` does not (`BadViewMap`); its
      results have the types and the inferred shapes of its outputs, and are finite
      (`InvalidValueError`); they are the same for inputs in other layouts of memory, and if
      ``perform`` finds arrays in its output cells (`BadThunkOutput`).
    - Compiled code of each node, and of the whole graph, gives the results of ``perform``
      (`BadThunkOutput`).

    A call takes many times longer than in other modes.

    Parameters
    ----------
    optimizer, db
        see `Mode`
    stability_patience
        how often the graph is rewritten; this and the following: None means the setting
        ``DebugMode__...`` of `phintys.config`
    check_c_code
        whether to check compiled code; the linker whose code is checked is ``linker``
    check_py_code
        whether to check ``perform``
    check_isfinite
        whether NaN and infinities, in arguments and in results of nodes, are errors
    check_preallocated_output
        what ``perform`` finds in the output cells: some of ``initial`` (nothing), ``previous`` (the
        results of the previous call), ``c_contiguous``, ``f_contiguous``, ``strided``,
        ``wrong_size``, or ``ALL``; a list, or a text in which ``:`` separates them
    require_matching_strides
        0, 1: a warning, or 2: an error, if the strides of a result differ between ``perform`` and
        compiled code
    """

    def __init__(
        self,
        optimizer: Any = "fast_run",
        stability_patience: int | None = None,
        check_c_code: bool | None = None,
        check_py_code: bool | None = None,
        check_isfinite: bool | None = None,
        check_preallocated_output: Sequence[str] | str | None = None,
        require_matching_strides: int | None = None,
        linker: Any = None,
        db: Any = None,
    ) -> None:
        c_code, py_code = check_c_code, check_py_code
        options = Options(
            check_c_code=bool(config.DebugMode__check_c if c_code is None else c_code),
            check_py_code=bool(config.DebugMode__check_py if py_code is None else py_code),
            check_isfinite=bool(
                config.DebugMode__check_finite if check_isfinite is None else check_isfinite
            ),
            check_preallocated_output=_kinds(check_preallocated_output),
            require_matching_strides=int(
                config.DebugMode__check_strides
                if require_matching_strides is None
                else require_matching_strides
            ),
            warn_input_not_reused=config.DebugMode__warn_input_not_reused,
            preallocated_ndim=config.DebugMode__check_preallocated_output_ndim,
        )
        if not (options.check_c_code or options.check_py_code):
            raise ValueError("DebugMode checks compiled code, perform, or both.")
        patience = config.DebugMode__patience if stability_patience is None else stability_patience
        if patience < 1:
            raise ValueError(f"stability_patience must be at least 1, not {patience}.")
        self.stability_patience = patience
        checked = get_linker(config.linker if linker is None else linker)
        super().__init__(_DebugLinker(options, checked), optimizer, db)

    @property
    def options(self) -> Options:
        """What is checked."""
        linker: Any = self.linker
        return linker.options

    @property
    def optimizer(self) -> Any:
        return RecordingRewriter(super().optimizer, self.stability_patience)


def _kinds(given: Sequence[str] | str | None) -> frozenset[str]:
    """The kinds of preallocated outputs; ValueError for one that does not exist."""
    given = str(config.DebugMode__check_preallocated_output) if given is None else given
    kinds: Sequence[str] = given.split(":") if isinstance(given, str) else given
    found = frozenset(k for k in kinds if k)
    unknown = found - {*PREALLOCATED, "ALL"}
    if unknown:
        raise ValueError(f"There are no preallocated outputs {sorted(unknown)}: {PREALLOCATED}.")
    return found


class _DebugLinker(Linker):
    """Runs a graph node by node, with checks; ``checked`` is the linker whose code is checked."""

    name = "py"

    def __init__(self, options: Options, checked: Linker) -> None:
        self.options, self.checked = options, checked
        self.required_rewrites = checked.required_rewrites
        self.incompatible_rewrites = checked.incompatible_rewrites

    def run(self, fgraph: FunctionGraph) -> _DebugRun:
        return _DebugRun(fgraph, self.options, self.checked)


class _DebugRun:
    """A callable from values of the inputs to those of the outputs, which checks everything."""

    def __init__(self, fgraph: FunctionGraph, options: Options, checked: Linker) -> None:
        self.fgraph, self.options, self.checked = fgraph, options, checked
        self.checks = NodeChecks(options, CompiledNodes(checked).of)
        self.runner = Runner(fgraph, self.checks.run)
        features = fgraph._features  # pyright: ignore[reportPrivateUsage]
        self.records = [f for f in features if isinstance(f, RewriteRecord)]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        if self.options.check_isfinite:
            for v, value in zip(self.fgraph.inputs, values):
                check_finite(v, value)
        results = self.runner(values)
        for record in self.records:
            check_rewrites(record, Values(dict(zip(record.inputs, values))))
        if self.options.check_c_code and self.checked.name != "py":
            self._check_whole(values, results)
        return results

    @cached_property
    def _whole(self) -> Callable[..., Any]:
        """The compiled code of the whole graph."""
        return self.checked.run(self.fgraph)

    def _check_whole(self, values: Sequence[Any], results: Sequence[Any]) -> None:
        """Compare the results with those of compiled code of the whole graph."""
        given = dict(zip(self.fgraph.inputs, values))
        reference = Values(given)
        copies = [copied(x) for x in values]
        for v, a, b in zip(self.fgraph.outputs, results, self._whole(copies)):
            known = array_type(v.type)
            if known is None or np.dtype(known[0]).kind not in "fc":
                continue  # rounding of floats may change an integer by any amount
            side = Side([v], given, reference.evaluate)
            if not differ_by_more_than_rounding(v, given, reference, np.asarray(b), 100):
                continue
            if not (side.overflows() or side.underflows()):  # which depend on what is fused
                raise BadThunkOutput(v, "perform", a, "compiled code of the function", b, values)
