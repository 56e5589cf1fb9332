"""The call by which a long loop lets Python handle signals, and how rare it is.

What it does is said in ``runtime/interrupts.py``.
"""

from __future__ import annotations

#: The call.  It gives an i64, not 0 if a handler raised.  It leaves the registers of integers
#: alone, so that loops keep them.
POLL = "call preserve_mostcc i64 @phintys_poll()"
DECLARE = "declare preserve_mostcc i64 @phintys_poll() cold"

#: How often a branch is taken: once in a million times.
RARE = "!0"
DEFINE_RARE = f'{RARE} = !{{!"branch_weights", i32 1, i32 1000000}}'
