"""From a Program to one routine as IR text.

    entry.py          emit_entry: arguments, steps, results, exits
    bare.py           emit_bare: the same for callers without Python
    frame.py          state of a routine: text, words, references, memory, the GIL
    body.py           the slots of one Program: memory, lengths, groups of steps
    steps.py          one step, dispatched on its kind
    distant.py        addresses in a table, and calls of kernels that read them
    control.py        Branch, and what it shares with Loop
    turns.py          Loop
    blas.py           Call
    strip_loop.py windows.py ahead.py  kernels that run strip by strip
    parts.py threads.py              kernels in several threads; threads.ll
    blocks.py slices.py block_loop.py  steps executed block of rows by block of rows
    module.py         the text of the whole module; entry.ll

It may import all other folders of the llvm backend, none of which imports it.
"""
