"""Printers of graphs (`dprint`, `pp`) and reports of compiled functions (`explain`)."""

from phintys.show.explain import explain
from phintys.show.pretty import pp, pprint
from phintys.show.text import debugprint, dprint

__all__ = ["debugprint", "dprint", "explain", "pp", "pprint"]
