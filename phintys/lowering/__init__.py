"""From a rewritten FunctionGraph to a `Program`, the list of steps that generators consume.

==================  ====================================================================
``program``         what a Program is: slots, kernels, calls, checks, loops
``spec``            what a legal Program is: ``verify``
``text``            Programs as text, written and read
``interpret``       what a Program means: a slow interpreter
``schedule``        where each instruction of a kernel runs; generators follow it

``builder``         the `Builder` that an op's ``lower`` method speaks to (on ``arrays``, ``facts``,
                    ``recorder``), making the tensor ``values``
``from_graph``      asks the ops of a graph; calls ``perform`` for those that give no lowering
``fuse``            which values share a loop nest, and which are kept in memory
``kernels``         the body of a loop nest (with ``loops``: its order, reductions, scratch rows)
``assemble``        all steps in order
``memory``          which slots share storage, which copies are not made
==================  ====================================================================
"""
