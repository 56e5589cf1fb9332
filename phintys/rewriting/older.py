"""Databases of node rewriters, and aliases of databases, for programs that make their own.

The rewrites of this package are rules in an `EquilibriumDB`; nothing here uses these classes.
"""

from __future__ import annotations

import copy
from typing import Any

from phintys.rewriting.database import RewriteDatabase, RewriteDatabaseQuery, next_position
from phintys.rewriting.rewriter import FailureCallback, GraphRewriter, SequentialNodeRewriter
from phintys.rewriting.walk import WalkingGraphRewriter


class LocalGroupDB(RewriteDatabase):
    """A database of node rewriters, which are combined to one, in order of position.

    A query returns a `SequentialNodeRewriter`, made with the arguments of the constructor.

    >>> import phintys.tensor as pt
    >>> from phintys.rewriting.rewriter import RemovalNodeRewriter
    >>> db = LocalGroupDB()
    >>> db.register("exp", RemovalNodeRewriter(pt.exp), "mine")
    >>> db.register("log", RemovalNodeRewriter(pt.log), "mine")
    >>> [str(r) for r in db.query("+mine").parts()]
    ['Exp(x) -> x', 'Log(x) -> x']
    """

    def __init__(
        self,
        apply_all_rewrites: bool = False,
        profile: bool = False,
        node_rewriter: Any = SequentialNodeRewriter,
    ) -> None:
        super().__init__()
        self.apply_all_rewrites = apply_all_rewrites
        self.profile = profile
        self.node_rewriter = node_rewriter
        self._positions: dict[str, float] = {}

    @property
    def __position__(self) -> dict[str, float]:
        """The positions of all entries."""
        return self._positions

    def register(
        self, name: str, rewriter: Any, *tags: str, position: float | str = "last", **kwargs: Any
    ) -> None:
        """See `RewriteDatabase.register` and `SequenceDB.register`.

        TypeError if ``rewriter`` rewrites whole graphs.
        """
        if isinstance(rewriter, GraphRewriter):
            raise TypeError(f"{name} rewrites whole graphs; {self} holds rewriters of nodes.")
        place = next_position(position, self._positions, name)
        super().register(name, rewriter, *tags, **kwargs)
        self._positions[name] = place

    def assemble(self, found: dict[str, Any], query: RewriteDatabaseQuery) -> Any:
        names = sorted(found, key=lambda name: (self._positions[name], name))
        return self.node_rewriter(
            *[found[name] for name in names],
            apply_all_rewrites=self.apply_all_rewrites,
            profile=self.profile,
        )


class TopoDB(RewriteDatabase):
    """A database of node rewriters, which are applied in one traversal of the graph.

    A query passes itself to ``db``, and returns a `WalkingGraphRewriter` for the result.

    >>> import phintys.tensor as pt
    >>> from phintys.graph.fgraph import FunctionGraph
    >>> from phintys.rewriting.rewriter import RemovalNodeRewriter
    >>> group = LocalGroupDB()
    >>> group.register("exp", RemovalNodeRewriter(pt.exp), "mine")
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [pt.exp(pt.exp(x))], clone=False)
    >>> TopoDB(group).query("+mine").rewrite(fgraph)
    >>> fgraph.outputs
    [x]
    """

    def __init__(
        self,
        db: RewriteDatabase,
        order: Any = "in_to_out",
        ignore_newtrees: bool = False,
        failure_callback: FailureCallback | None = None,
    ) -> None:
        super().__init__()
        self.db = db
        self.order = order
        self.ignore_newtrees = ignore_newtrees
        self.failure_callback = failure_callback

    @property
    def version(self) -> int:
        return self._versions + self.db.version

    def select(self, query: RewriteDatabaseQuery) -> dict[str, Any]:
        return {"": self.db.query(query)}

    def assemble(self, found: dict[str, Any], query: RewriteDatabaseQuery) -> WalkingGraphRewriter:
        return WalkingGraphRewriter(
            found[""], self.order, self.ignore_newtrees, self.failure_callback
        )


class ProxyDB(RewriteDatabase):
    """An alias of a database, with which it can be registered several times.

    >>> from phintys.rewriting.database import EquilibriumDB, SequenceDB
    >>> db, passes = EquilibriumDB(), SequenceDB()
    >>> passes.register("first", db, "twice", position=0)
    >>> passes.register("second", ProxyDB(db), "twice", position=10)
    >>> len(passes.query("+twice"))
    2
    """

    def __init__(self, db: RewriteDatabase) -> None:
        super().__init__()
        if not isinstance(db, RewriteDatabase):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"`db` must be a `RewriteDatabase`, not {db!r}.")
        self.db = db

    @property
    def version(self) -> int:
        return self._versions + self.db.version

    def select(self, query: RewriteDatabaseQuery) -> dict[str, Any]:
        return {"": self.db.query(query)}

    def assemble(self, found: dict[str, Any], query: RewriteDatabaseQuery) -> Any:
        return copy.copy(found[""])
