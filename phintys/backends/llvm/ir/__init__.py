"""Writing IR text.

    writer.py        names, blocks, and lengths as 64-bit integers
    types.py         types of values, literals, the writer of a function
    conversions.py   conversions between dtypes
    instructions.py  one scalar instruction, for any dtype and vector width
    division.py      division by the same number many times
    loops.py         a counted loop
    words.py         numbers of random words, as NumPy makes them
    poll.py          the call by which a loop lets Python handle signals
    transposed.py    squares of elements, transposed in registers

It may import ``vecmath`` (names of functions) and ``machine.target``.
"""
