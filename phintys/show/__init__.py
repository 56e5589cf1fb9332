"""Printers of graphs (`dprint`, `pp`) and reports of compiled functions (`explain`)."""

from phintys.show.explain import explain
from phintys.show.lookup import (
    GraphNode,
    get_node_by_id,
    hex_digest,
    iter_graph_nodes,
    min_informative_str,
)
from phintys.show.printers import (
    ConstantPrinter,
    DefaultPrinter,
    FunctionPrinter,
    IgnorePrinter,
    LeafPrinter,
    OperatorPrinter,
    PatternPrinter,
    PPrinter,
    Printer,
    PrinterState,
    constant_printer,
    default_printer,
    leaf_printer,
    pp,
    pprint,
)
from phintys.show.text import char_from_number, debugprint, dprint, op_debug_information

__all__ = [
    "ConstantPrinter",
    "DefaultPrinter",
    "FunctionPrinter",
    "GraphNode",
    "IgnorePrinter",
    "LeafPrinter",
    "OperatorPrinter",
    "PPrinter",
    "PatternPrinter",
    "Printer",
    "PrinterState",
    "char_from_number",
    "constant_printer",
    "debugprint",
    "default_printer",
    "dprint",
    "explain",
    "get_node_by_id",
    "hex_digest",
    "iter_graph_nodes",
    "leaf_printer",
    "min_informative_str",
    "op_debug_information",
    "pp",
    "pprint",
]
