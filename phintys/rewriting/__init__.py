"""Rewriting of graphs: rules and their engine, node rewriters and walkers, databases.

This folder knows graphs, but no op and no tensor.
"""

from phintys.rewriting.database import (
    EquilibriumDB,
    RewriteDatabase,
    RewriteDatabaseQuery,
    SequenceDB,
    optdb,
)
from phintys.rewriting.engine import RuleSet
from phintys.rewriting.equilibrium import EquilibriumGraphRewriter
from phintys.rewriting.graph import rewrite_graph, rewrite_subgraph
from phintys.rewriting.older import LocalGroupDB, ProxyDB, TopoDB
from phintys.rewriting.rewriter import GraphRewriter, NodeRewriter, graph_rewriter, node_rewriter
from phintys.rewriting.rule import Rule, equation
from phintys.rewriting.walk import dfs_rewriter, in2out, out2in

__all__ = [
    "EquilibriumDB",
    "EquilibriumGraphRewriter",
    "GraphRewriter",
    "LocalGroupDB",
    "NodeRewriter",
    "ProxyDB",
    "RewriteDatabase",
    "RewriteDatabaseQuery",
    "Rule",
    "RuleSet",
    "SequenceDB",
    "TopoDB",
    "dfs_rewriter",
    "equation",
    "graph_rewriter",
    "in2out",
    "node_rewriter",
    "optdb",
    "out2in",
    "rewrite_graph",
    "rewrite_subgraph",
]
