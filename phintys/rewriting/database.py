"""Databases of rewrites with names and tags; a query assembles the selected ones into a rewriter.

`optdb` is the database that compilation queries; its entries are passes, at numeric positions.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from math import inf
from typing import Any, TextIO

from phintys.config import config
from phintys.errors import did_you_mean
from phintys.graph.clients import OrderedSet
from phintys.locks import exclusive, making
from phintys.memo import Memo
from phintys.rewriting.equilibrium import EquilibriumGraphRewriter
from phintys.rewriting.inner import InnerGraphRewriter
from phintys.rewriting.rewriter import (
    FailureCallback,
    Rewriter,
    SequentialGraphRewriter,
)
from phintys.rewriting.rule import Rule


class RewriteDatabaseQuery:
    """An immutable selection of rewrites by name and tag.

    Parameters
    ----------
    include
        a rewrite is selected if it has at least one of these names or tags,
    require
        all of these,
    exclude
        and none of these
    subquery
        ``{name of a nested database: the query for it}``; other nested databases get this query
    position_cutoff
        leave out entries of a `SequenceDB` at or after this position
    extra_rewrites
        ``(rewriter, position)`` pairs to add

    >>> RewriteDatabaseQuery(["canonicalize"]).excluding("log(1 + x) -> log1p(x)")
    RewriteDatabaseQuery(include=['canonicalize'], exclude=['log(1 + x) -> log1p(x)'])
    """

    def __init__(
        self,
        include: Iterable[str | None],
        require: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        subquery: dict[str, RewriteDatabaseQuery] | None = None,
        position_cutoff: float = inf,
        extra_rewrites: Sequence[tuple[Any, float]] | None = None,
    ) -> None:
        self.include: tuple[str | None, ...] = tuple(dict.fromkeys(include))
        self.require: tuple[str, ...] = tuple(dict.fromkeys(require or ()))
        self.exclude: tuple[str, ...] = tuple(dict.fromkeys(exclude or ()))
        self.subquery = dict(subquery or {})
        self.position_cutoff = position_cutoff
        self.extra_rewrites = tuple(extra_rewrites or ())
        self.name: str | None = None

    def replace(self, **changes: Any) -> RewriteDatabaseQuery:
        """A copy with some fields changed."""
        fields: dict[str, Any] = {
            "include": self.include,
            "require": self.require,
            "exclude": self.exclude,
            "subquery": self.subquery,
            "position_cutoff": self.position_cutoff,
            "extra_rewrites": self.extra_rewrites,
        }
        return RewriteDatabaseQuery(**(fields | changes))

    def including(self, *tags: str) -> RewriteDatabaseQuery:
        """A copy that also selects rewrites with these tags."""
        return self.replace(include=(*self.include, *tags))

    def excluding(self, *tags: str) -> RewriteDatabaseQuery:
        """A copy that leaves out rewrites with any of these tags."""
        return self.replace(exclude=(*self.exclude, *tags))

    def requiring(self, *tags: str) -> RewriteDatabaseQuery:
        """A copy that selects only rewrites with all of these tags."""
        return self.replace(require=(*self.require, *tags))

    def register(self, *rewrites: tuple[Any, float]) -> RewriteDatabaseQuery:
        """A copy with further ``(rewriter, position)`` pairs."""
        return self.replace(extra_rewrites=(*self.extra_rewrites, *rewrites))

    def without_extras(self) -> RewriteDatabaseQuery:
        """A copy for nested databases: without extra rewrites and position cutoff."""
        return self.replace(extra_rewrites=(), position_cutoff=inf)

    @cached_property
    def key(self) -> Any:
        """A hashable key of what the query selects, apart from the extra rewrites."""
        inner = tuple(sorted((name, q.key) for name, q in self.subquery.items()))
        return self.include, self.require, self.exclude, inner, self.position_cutoff

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RewriteDatabaseQuery)
            and self.key == other.key
            and self.extra_rewrites == other.extra_rewrites
        )

    def __hash__(self) -> int:
        return hash((self.key, self.extra_rewrites))

    def __repr__(self) -> str:
        parts = [f"include={list(self.include)}"]
        parts += [f"{n}={list(v)}" for n in ("require", "exclude") if (v := getattr(self, n))]
        if self.subquery:
            parts.append(f"subquery={self.subquery}")
        if self.position_cutoff != inf:
            parts.append(f"position_cutoff={self.position_cutoff}")
        if self.extra_rewrites:
            parts.append(f"extra_rewrites={self.extra_rewrites}")
        return f"RewriteDatabaseQuery({', '.join(parts)})"


def as_query(tags: Sequence[Any], kwtags: dict[str, Any]) -> RewriteDatabaseQuery:
    """A query from a query, or from strings: ``"+a"`` include, ``"&a"`` require, ``"-a"`` exclude.

    ``kwtags`` are subqueries.  ValueError for a string without sign, TypeError for a query together
    with other arguments.
    """
    if tags and isinstance(tags[0], RewriteDatabaseQuery):
        if len(tags) > 1 or kwtags:
            raise TypeError("Give either a RewriteDatabaseQuery or tags, not both.")
        return tags[0]
    if any(not isinstance(t, str) or t[:1] not in ("+", "-", "&") for t in tags):
        raise ValueError(f"Tags start with '+' (include), '&' (require) or '-' (exclude): {tags}.")
    chosen = {sign: [t[1:] for t in tags if t[0] == sign] for sign in "+&-"}
    return RewriteDatabaseQuery(
        include=chosen["+"], require=chosen["&"], exclude=chosen["-"], subquery=kwtags
    )


class RewriteDatabase:
    """A collection of rewrites with names and tags, which share one namespace.

    A query returns the selected entries.  Subclasses define in `assemble` the rewriter that is made
    of them; see `EquilibriumDB` for an example.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self._rewrites: dict[str, Any] = {}
        self._names: dict[str, dict[str, None]] = {}  # tag -> names, in order of registration
        self._sources: list[Callable[[], object]] = []
        self._filled = self._is_filling = False
        self._versions = 0
        self._nested: tuple[int, list[RewriteDatabase]] = (0, [])  # (version, nested databases)
        self._own_version = 0
        self._answers: Memo[Any, Any] = Memo(8, "answers of databases")

    # ----- filling
    def fill_later(self, source: Callable[[], object]) -> None:
        """Call ``source``, which registers entries, before the database is next read or added to.

        Modules of this package register their entries so: an import that read the database would
        import others, and threads that import two of them would wait for each other.
        """
        self._sources.append(source)

    def _fill(self) -> None:
        if self._filled and not self._sources:
            return
        with making:
            if self._is_filling:  # what a source reads is there
                return
            self._is_filling = True
            try:
                while self._sources:  # a source may add others
                    self._sources[0]()
                    del self._sources[0]
                self._filled = True
            finally:
                self._is_filling = False

    @property
    def _entries(self) -> dict[str, Any]:
        """Entries by name."""
        self._fill()
        return self._rewrites

    @property
    def _tags(self) -> dict[str, dict[str, None]]:
        """Names of entries, by tag."""
        self._fill()
        return self._names

    def register(
        self,
        name: str,
        rewriter: Any,
        *tags: str,
        use_db_name_as_tag: bool = True,
        overwrite_existing: bool = False,
        **kwargs: Any,
    ) -> None:
        """Add a rewriter, or a nested database, under a name, with tags.

        With ``use_db_name_as_tag`` the name of this database is added to the tags, so that a query
        for the database selects the rewriter.

        Raises
        ------
        ValueError
            if the name is taken (unless ``overwrite_existing``), or a tag is the name of an entry
        TypeError
            if ``rewriter`` is neither a rewriter nor a database
        """
        if kwargs:
            raise TypeError(f"{type(self).__name__}.register does not know {sorted(kwargs)}.")
        if not isinstance(rewriter, Rewriter | RewriteDatabase):
            raise TypeError(
                f"{name}: {rewriter!r} is not a valid rewrite type, but neither a rewriter nor a "
                "database."
            )
        self._make_room(name, overwrite_existing)
        if self.name is not None and use_db_name_as_tag:
            tags = (*tags, self.name)
        if rewriter.name is None or isinstance(rewriter, RewriteDatabase):
            rewriter.name = name
        self._rewrites[name] = rewriter
        self._tag(name, tags)

    def _make_room(self, name: str, overwrite: bool) -> None:
        """Remove the entry ``name``, if there is one; ValueError if that is not allowed."""
        self._fill()
        if name not in self._rewrites:
            if name in self._names:
                raise ValueError(
                    f"The tag {name!r} is already present in the database {self}; a rewrite "
                    "cannot have the same name."
                )
            return
        if not overwrite:
            raise ValueError(
                f"The tag {name!r} is already present in the database {self}: it is the name of "
                "a rewrite, which overwrite_existing=True replaces."
            )
        self.remove(name)

    def remove(self, name: str) -> None:
        """Remove an entry; KeyError if there is none of that name."""
        self[name]
        del self._entries[name]
        self._versions += 1
        self._answers.clear()
        for tag in [t for t, names in self._tags.items() if name in names]:
            del self._tags[tag][name]
            if not self._tags[tag]:
                del self._tags[tag]

    def add_tags(self, name: str, *tags: str) -> None:
        """Add tags to an entry; ValueError if one is the name of another entry."""
        self[name]
        self._tag(name, tags)

    def _tag(self, name: str, tags: Sequence[str]) -> None:
        entries, names = self._rewrites, self._names
        for tag in tags:
            if tag in entries and tag != name:
                raise ValueError(f"{tag!r} is the name of a rewrite in {self}; it cannot be a tag.")
        for tag in tags:
            of_tag = names.get(tag)
            if of_tag is None:
                of_tag = names[tag] = {}
            of_tag[name] = None
        self._versions += 1

    def remove_tags(self, name: str, *tags: str) -> None:
        """Remove tags from an entry; KeyError if it does not have one of them."""
        self[name]
        for tag in tags:
            if name not in self._tags.get(tag, ()):
                raise KeyError(f"{name!r} in {self} has no tag {tag!r}.")
            del self._tags[tag][name]
            if not self._tags[tag]:
                del self._tags[tag]
        self._versions += 1

    # ----- looking
    def __getitem__(self, name: str) -> Any:
        """The entry with this name, or the only one with this tag.

        KeyError if there is none, ValueError if several entries have the tag.
        """
        tagged = (name,) if name in self._entries else tuple(self._tags.get(name, ()))
        if len(tagged) > 1:
            raise ValueError(f"More than one match for {name} in {self} (please use query).")
        if not tagged:
            hint = did_you_mean(name, self._entries)
            raise KeyError(f"Nothing registered for {name!r} in {self}.{hint}")
        return self._entries[tagged[0]]

    def __contains__(self, name: str) -> bool:
        return name in self._entries or name in self._tags

    @property
    def names(self) -> list[str]:
        """The names of the entries, in order of registration."""
        return list(self._entries)

    def tags(self, name: str) -> list[str]:
        """The tags of an entry."""
        return sorted(tag for tag, names in self._tags.items() if name in names)

    @property
    def version(self) -> int:
        """A number that grows with each change of entries and tags, also in nested databases."""
        entries = self._entries
        if self._nested[0] != self._versions:
            nested = [e for e in entries.values() if isinstance(e, RewriteDatabase)]
            self._nested = self._versions, nested
        return self._versions + sum([db.version for db in self._nested[1]])

    def touch(self) -> None:
        """Declare that something on which the rewrites depend has changed; see `is_own`."""
        self._fill()
        self._versions += 1

    def mark_own(self) -> None:
        """Declare the present contents to be those of this package; see `is_own`."""
        self._own_version = self.version

    @property
    def is_own(self) -> bool:
        """Whether the contents are those of this package: unchanged since `mark_own`."""
        return not self._filled or self.version == self._own_version

    # ----- querying
    @exclusive
    def query(self, *tags: Any, **kwtags: Any) -> Any:
        """The rewriter made of the selected entries.

        The arguments are a `RewriteDatabaseQuery`, or strings and subqueries (see `as_query`).
        """
        query = as_query(tags, kwtags)
        made = self.assemble(self.select(query), query)
        if isinstance(made, Rewriter):
            made.name = self.name
        return made

    def _cached(
        self, query: RewriteDatabaseQuery, make: Callable[[RewriteDatabaseQuery], Any]
    ) -> Any:
        """``make(query)``, cached until an entry, a tag or the setting it depends on changes."""
        key = query, self.version, config.optdb__max_use_ratio
        found = self._answers[key]
        return self._answers.keep(key, make(query)) if found is None else found

    @property
    def default_query(self) -> Any:
        """The rewriter made of all entries that have the name of the database as a tag."""
        return self.query(RewriteDatabaseQuery(include=[self.name]))

    def select(self, query: RewriteDatabaseQuery) -> dict[str, Any]:
        """The entries that a query selects, by name, in order of registration.

        A nested database is replaced by the rewriter that its query returns.
        """
        chosen = self._names_with_any(query.include)
        for tag in query.require:
            chosen &= self._names_with_any([tag])
        chosen -= self._names_with_any(query.exclude)
        nested = query.without_extras()
        found: dict[str, Any] = {}
        for name, entry in self._entries.items():
            if name in chosen:
                is_db = isinstance(entry, RewriteDatabase)
                found[name] = entry.query(query.subquery.get(name, nested)) if is_db else entry
        return found

    def _names_with_any(self, tags: Iterable[str | None]) -> set[str]:
        """Names of the entries that have one of the tags, or one of them as their name."""
        names: set[str] = set()
        for tag in tags:
            if tag in self._entries:
                names.add(tag)
            names.update(self._tags.get(tag or "", ()))
        return names

    def assemble(self, found: dict[str, Any], query: RewriteDatabaseQuery) -> Any:
        """What a query returns, made of the selected entries ``found``, by name."""
        return OrderedSet(found.values())

    def print_summary(self, stream: TextIO | None = None) -> None:
        """Write the names and tags of the entries to ``stream`` (default: standard output)."""
        out: TextIO = stream or sys.stdout
        out.write(f"{type(self).__name__} {self.name}\n")
        for name in self._entries:
            out.write(f"  {name}: {', '.join(self.tags(name))}\n")

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.name}" if self.name else type(self).__name__


class EquilibriumDB(RewriteDatabase):
    """A database whose rewrites are applied together until nothing changes.

    A query returns an `EquilibriumGraphRewriter`, which runs all `Rule`s in one sweep of the
    engine, and then graph and node rewriters.

    >>> from phintys.rewriting.rule import equation
    >>> import phintys.tensor.rules
    >>> db = EquilibriumDB()
    >>> db.register("exp(log(x)) -> x", equation("exp(log(x)) -> x"), "mine")
    >>> db.query("+mine").get_node_rewriters()
    [<Equation exp(log(x)) -> x>]
    """

    def __init__(
        self,
        ignore_newtrees: bool = True,
        tracks_on_change_inputs: bool = False,
        eq_rewriter_class: Any = EquilibriumGraphRewriter,
    ) -> None:
        super().__init__()
        self.ignore_newtrees = ignore_newtrees
        self.tracks_on_change_inputs = tracks_on_change_inputs
        self.eq_rewriter_class = eq_rewriter_class
        self._final: set[str] = set()
        self._cleanup: set[str] = set()

    def register(
        self,
        name: str,
        rewriter: Any,
        *tags: str,
        final_rewriter: bool = False,
        cleanup: bool = False,
        **kwargs: Any,
    ) -> None:
        """See `RewriteDatabase.register`.

        ``final_rewriter`` runs the rewriter at the end of each round, ``cleanup`` after every
        successful node rewrite; ValueError if both are given.
        """
        if final_rewriter and cleanup:
            raise ValueError(f"{name}: choose final_rewriter or cleanup.")
        super().register(name, rewriter, *tags, **kwargs)
        for flag, names in ((final_rewriter, self._final), (cleanup, self._cleanup)):
            names.discard(name)
            if flag:
                names.add(name)

    def register_rules(self, rules: Iterable[Rule], *tags: str) -> None:
        """Add rules under their own names, with their own tags and ``tags``."""
        for rule in rules:
            self.register(rule.name, rule, *rule.tags, *tags)

    @exclusive
    def query(self, *tags: Any, **kwtags: Any) -> Any:
        """See `RewriteDatabase.query`.  Cached, because it takes time to index the rules."""
        query = as_query(tags, kwtags)
        return copy.copy(self._cached(query, super().query))

    def assemble(self, found: dict[str, Any], query: RewriteDatabaseQuery) -> Any:
        final = [r for name, r in found.items() if name in self._final]
        cleanup = [r for name, r in found.items() if name in self._cleanup]
        special = self._final | self._cleanup
        return self.eq_rewriter_class(
            [r for name, r in found.items() if name not in special],
            max_use_ratio=config.optdb__max_use_ratio,
            ignore_newtrees=self.ignore_newtrees,
            tracks_on_change_inputs=self.tracks_on_change_inputs,
            final_rewriters=final,
            cleanup_rewriters=cleanup,
        )


class SequenceDB(RewriteDatabase):
    """A database whose rewriters run once each, in order of position, then of name.

    A query returns a `SequentialGraphRewriter`.

    >>> from phintys.rewriting.merge import MergeOptimizer
    >>> from phintys.rewriting.rewriter import graph_rewriter
    >>> db = SequenceDB()
    >>> db.register("merge", MergeOptimizer(), "mine", position=1)
    >>> db.register("check", graph_rewriter(lambda fgraph: fgraph.check_integrity()), position=0)
    >>> [str(r) for r in db.query("+mine", "+check")]
    ['<lambda>', 'merge']
    """

    def __init__(self, failure_callback: FailureCallback | None = None) -> None:
        super().__init__()
        self.failure_callback = failure_callback
        self._positions: dict[str, float] = {}

    def register(
        self, name: str, rewriter: Any, *tags: str, position: float | str = "last", **kwargs: Any
    ) -> None:
        """See `RewriteDatabase.register`.

        ``position`` is a number, or "last": after all others; TypeError otherwise.
        """
        place = next_position(position, self._positions, name)
        super().register(name, rewriter, *tags, **kwargs)
        self._positions[name] = place

    @property
    def __position__(self) -> dict[str, float]:
        """The positions of all entries."""
        self._fill()
        return self._positions

    def position(self, name: str) -> float:
        """The position of an entry; KeyError if there is none of that name."""
        self[name]
        return self._positions[name]

    @exclusive
    def query(self, *tags: Any, position_cutoff: float | None = None, **kwtags: Any) -> Any:
        """See `RewriteDatabase.query`; entries at or after ``position_cutoff`` are left out."""
        query = as_query(tags, kwtags)
        if position_cutoff is not None:
            query = query.replace(position_cutoff=position_cutoff)
        return super().query(query)

    def select(self, query: RewriteDatabaseQuery) -> dict[str, Any]:
        """See `RewriteDatabase.select`.  Cached, because every compilation selects the same."""
        found: dict[str, Any] = self._cached(query, super().select)
        return found

    def assemble(self, found: dict[str, Any], query: RewriteDatabaseQuery) -> Any:
        placed = [(self._positions[name], name, r) for name, r in found.items()]
        placed += [(position, str(r), r) for r, position in query.extra_rewrites]
        placed.sort(key=lambda entry: entry[:2])
        chosen = [r for position, _, r in placed if position < query.position_cutoff]
        chosen = [r.within(chosen) if isinstance(r, InnerGraphRewriter) else r for r in chosen]
        return SequentialGraphRewriter(*chosen, failure_callback=self.failure_callback)

    def print_summary(self, stream: TextIO | None = None) -> None:
        out: TextIO = stream or sys.stdout
        out.write(f"{type(self).__name__} {self.name}\n")
        for position, name in sorted((p, n) for n, p in self._positions.items()):
            out.write(f"  {position:g} {name}: {', '.join(self.tags(name))}\n")


def next_position(position: float | str, taken: dict[str, float], name: str) -> float:
    """A position as a number: "last" is one more than the greatest of ``taken``.

    TypeError, naming the entry ``name``, for anything else.
    """
    if position == "last":
        return max(taken.values(), default=-1) + 1
    if isinstance(position, int | float):
        return position
    raise TypeError(f"{name}: `position` must be numeric, or 'last'; got {position!r}.")


#: The database that compilation queries.
optdb = SequenceDB()
optdb.name = "optdb"
