"""The call by which a long loop polls for signals, and its branch weights.

``runtime/interrupts.py`` describes the function that is called.
"""

from __future__ import annotations

#: The call.  It returns an i64, not 0 if a handler raised.  Its calling convention preserves the
#: integer registers, so that loops need not spill them.
POLL = "call preserve_mostcc i64 @phintys_poll()"
DECLARE = "declare preserve_mostcc i64 @phintys_poll() cold"

#: Metadata of branch weights: taken once in a million times.
RARE = "!0"
DEFINE_RARE = f'{RARE} = !{{!"branch_weights", i32 1, i32 1000000}}'
