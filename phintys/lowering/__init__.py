"""Compiles a rewritten FunctionGraph to a `Program`, the list of steps that generators consume.

==================  ====================================================================
``program``         the Program IR: slots, kernels, calls, checks, loops
``spec``            the verifier of Programs: ``verify``
``text``            the printer and parser of the textual form
``interpret``       the reference interpreter
``schedule``        the loop depth and pass of each kernel instruction, as generators emit them

``builder``         the `Builder` that an op's ``lower`` method calls to make ``values`` (SSA
                    values); based on ``arrays``, ``equalities``,
                    ``long_lengths`` and ``recorder``
``values``          the base class of all kinds of values: ``elementwise``, ``reduce``, ``updates``,
                    ``calls``
``from_graph``      calls ``lower`` of each op of a graph, or ``perform`` where there is none
``fuse``            loop fusion: which values share a loop nest, and which are materialised
``kernels``         the body of a loop nest (with ``loops``: its order, reductions, scratch buffers)
``assemble``        all steps in order
``memory``          storage reuse and copy elision (with ``reversals``: rows of loops)
``strips``          ranges of kernels that run strip by strip (with ``collapse``: fewer loops)
==================  ====================================================================
"""
