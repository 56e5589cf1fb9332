"""The settings.  The documentation lists them from here.

A setting on which the code of a function does not depend has ``in_key=False``.
"""

from __future__ import annotations

from math import inf

from phintys.config.params import Setting

_NUMERIC = [
    Setting(
        "floatX",
        "float64",
        "dtype of tensors whose dtype is not given",
        ("float16", "float32", "float64"),
    ),
    Setting(
        "cast_policy",
        "custom",
        "how Python numbers are typed: 'custom' gives the smallest dtype that holds the value, "
        "'numpy2' gives int64 and float64",
        ("custom", "numpy+floatX", "numpy2"),
    ),
    Setting(
        "tensor__cmp_sloppy",
        0,
        "how much rounding `values_eq_approx` tolerates: 0, 1 (10 times as much), 2 (100 times)",
        (0, 1, 2),
        in_key=False,
    ),
]
_COMPILATION = [
    Setting(
        "mode",
        "FAST_RUN",
        "mode of functions that are made without the argument mode: a name, or a `Mode`",
    ),
    Setting(
        "linker",
        "auto",
        "linker of modes that are made without the argument linker, and of functions that are made "
        "without mode, unless `mode` is set",
    ),
    Setting("optimizer", "fast_run", "the same for the argument optimizer"),
    Setting("optimizer_including", "", "tags of rewrites to add to every mode, separated by ':'"),
    Setting("optimizer_excluding", "", "tags of rewrites to leave out of every mode"),
    Setting("optimizer_requiring", "", "tags that every rewrite of every mode must have"),
    Setting(
        "optdb__max_use_ratio",
        8.0,
        "applications of one rewriter, per node of the graph, after which it is stopped",
    ),
    Setting(
        "optdb__position_cutoff",
        inf,
        "rewriters at this position of a pipeline, and later ones, are left out",
    ),
    Setting(
        "on_unused_input",
        "raise",
        "what `function` does with an input that is not used",
        ("raise", "warn", "ignore"),
        in_key=False,
    ),
    Setting(
        "unpickle_function",
        True,
        "whether functions are compiled when they are unpickled; False: None takes their place",
        in_key=False,
    ),
]
_CODE = [
    Setting(
        "cache_dir",
        "",
        "directory of compiled code; empty: the user's cache directory",
        in_key=False,
    ),
    Setting("compiledir", "", "older name of cache_dir", in_key=False),
    Setting("base_compiledir", "", "older name of cache_dir", in_key=False),
    Setting(
        "cache_bytes",
        512 * 2**20,
        "greatest size of the cache of compiled code on disk, in bytes; the least recently used "
        "files are removed first. 0: nothing is written or read",
        limits=(0, 2**63 - 1),
        in_key=False,
    ),
    Setting("cxx", "", "C compiler of mode 'C'; empty: cc, gcc or clang, whichever is found"),
    Setting("gcc__cxxflags", "", "further arguments of the C compiler"),
    Setting(
        "loader",
        "auto",
        "loader of machine code: 'llvm' is LLVM's linker; 'auto' is the loader of this package "
        "where it can be used, else LLVM's linker",
        ("auto", "llvm"),
    ),
    Setting(
        "cpu",
        "native",
        "processor that code is generated for: 'native', or a name that LLVM knows, such as "
        "'x86-64-v3'",
    ),
    Setting(
        "vector_bits",
        0,
        "width of vector registers in bits that loops are vectorized for; 0: the processor's own",
        (0, 128, 256, 512),
    ),
    Setting("threads", 1, "threads a compiled kernel may use", limits=(1, 256)),
]
_MESSAGES = [
    Setting(
        "exception_verbosity",
        "low",
        "how much the note about a node that fails says of its inputs: 'medium' adds types and "
        "strides, 'high' adds values and the expression",
        ("low", "medium", "high"),
        in_key=False,
    ),
    Setting(
        "traceback__limit",
        8,
        "0: messages do not name the lines of the user's program that made a node",
        in_key=False,
    ),
    Setting(
        "on_opt_error",
        "raise",
        "what happens if a rewriter of a program raises: 'raise'; 'warn' logs it and goes on with "
        "the graph as it was, 'ignore' does not log, 'pdb' starts the debugger. A rule of this "
        "package that fails is always an error, and so is an assertion",
        ("raise", "warn", "ignore", "pdb"),
        in_key=False,
    ),
    Setting("check_rewrites", False, "verify the graph after every rewrite (slow)"),
    Setting(
        "check_stack_trace",
        "off",
        "what happens if a rewrite makes a node of which no line of the user's program is known: "
        "'log' prints, 'warn', 'raise'",
        ("off", "log", "warn", "raise"),
        in_key=False,
    ),
    Setting("optimizer_verbose", False, "print every rewrite that is applied", in_key=False),
    Setting(
        "optimizer_verbose_ignore",
        "",
        "names of rewrites that are not printed, separated by ','",
        in_key=False,
    ),
]
_PROFILING = [
    Setting("profile", False, "time every step of compiled functions", in_key=False),
    Setting(
        "profile_memory", False, "measure the memory of functions that are profiled", in_key=False
    ),
    Setting(
        "profile_optimizer",
        False,
        "count the applications of each rewrite in profiles",
        in_key=False,
    ),
    Setting(
        "print_global_stats",
        False,
        "print, when the program ends, how much time all functions took",
        in_key=False,
    ),
    Setting("profiling__n_ops", 20, "ops that a profile lists", in_key=False),
    Setting("profiling__n_apply", 20, "nodes that a profile lists", in_key=False),
    Setting("profiling__time_thunks", True, "time each node", in_key=False),
    Setting(
        "profiling__destination",
        "stderr",
        "where profiles are printed when the program ends: 'stderr', 'stdout', or a file",
        in_key=False,
    ),
    Setting("profiling__debugprint", False, "print the graph below a profile", in_key=False),
    Setting(
        "profiling__ignore_first_call",
        False,
        "leave out the first call of a function",
        in_key=False,
    ),
    Setting(
        "profiling__min_memory_size",
        1024,
        "bytes of results from which on a profile of memory lists a node",
        in_key=False,
    ),
    Setting("profiling__output_line_width", 512, "the longest line of a profile", in_key=False),
]
_DEBUGGING = [
    Setting("NanGuardMode__nan_is_error", True, "whether NanGuardMode looks for NaN", in_key=False),
    Setting(
        "NanGuardMode__inf_is_error",
        True,
        "whether NanGuardMode looks for infinities",
        in_key=False,
    ),
    Setting(
        "NanGuardMode__big_is_error",
        True,
        "whether NanGuardMode looks for numbers over 1e10",
        in_key=False,
    ),
    Setting(
        "NanGuardMode__action",
        "raise",
        "what NanGuardMode does then",
        ("raise", "warn", "pdb"),
        in_key=False,
    ),
    Setting(
        "DebugMode__patience",
        10,
        "how often DebugMode rewrites a graph, to see that the result is always the same",
        limits=(1, 10**6),
        in_key=False,
    ),
    Setting("DebugMode__check_c", True, "whether DebugMode checks compiled code", in_key=False),
    Setting(
        "DebugMode__check_py", True, "whether DebugMode checks `perform` of each node", in_key=False
    ),
    Setting(
        "DebugMode__check_finite",
        True,
        "whether NaN and infinities are errors in DebugMode",
        in_key=False,
    ),
    Setting(
        "DebugMode__check_strides",
        0,
        "what DebugMode does if strides of results differ between backends: 0 nothing, 1 warn, "
        "2 raise",
        (0, 1, 2),
        in_key=False,
    ),
    Setting(
        "DebugMode__warn_input_not_reused",
        True,
        "whether DebugMode warns of an op that declares to work in place, or to return a view, and "
        "does not",
        in_key=False,
    ),
    Setting(
        "DebugMode__check_preallocated_output",
        "",
        "outputs that DebugMode lets `perform` write to, separated by ':': initial, previous, "
        "c_contiguous, f_contiguous, strided, wrong_size, ALL",
        in_key=False,
    ),
    Setting(
        "DebugMode__check_preallocated_output_ndim",
        4,
        "the number of axes, from the last, whose strides `strided` varies",
        limits=(1, 64),
        in_key=False,
    ),
]
SETTINGS = [*_NUMERIC, *_COMPILATION, *_CODE, *_MESSAGES, *_PROFILING, *_DEBUGGING]
