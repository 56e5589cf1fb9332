"""The target machine, and the compilation and loading of IR text.

    target.py    the processor: widths of vectors, registers, LLVM's code generator; cache keys
    jit.py       text -> object file -> code that can be called, with the cache on disk
    image.py     linking and loading without LLVM
    stored.py    serialization of code and functions
    process.py   addresses of symbols in the process

It imports nothing else of the llvm backend: the resolver of symbols is passed in.
"""
