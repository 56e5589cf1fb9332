"""The machine that code is made for, and how IR text becomes code in its memory.

    target.py    the processor: widths of vectors, registers, LLVM's code generator; cache keys
    jit.py       text -> object file -> code that can be called, with the cache on disk
    image.py     linking and loading without LLVM
    stored.py    code and functions as bytes
    process.py   addresses of what the process has loaded

It imports nothing else of the llvm backend: what gives addresses to symbols is passed in.
"""
