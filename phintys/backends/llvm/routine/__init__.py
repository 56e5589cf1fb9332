"""From a Program to one routine as IR text.

    entry.py          emit_entry: arguments, steps, results, ways out
    frame.py          what the routine owns: text, words, references, memory, the lock
    body.py           the slots of one Program: memory, lengths, groups of steps
    steps.py          one step, by its kind
    control.py        Branch and Loop
    blas.py           Call
    parts.py threads.py              kernels in several threads; threads.ll
    blocks.py slices.py block_loop.py  steps for blocks of rows
    module.py         the text of the whole module; entry.ll

It may import all other folders of the llvm backend, none of which imports it.
"""
