"""Settings of Aesara and PyTensor that have no effect here, each with what takes its place.

They can be read, and have the default values that they have there, or the one that says what
happens here.  To assign one is no error: the first time, a warning quotes the note.
"""

from __future__ import annotations

from phintys.config.params import Setting

_MEMORY = "memory is planned when a function is compiled, and nothing is kept between calls"
_CMODULE = "code is kept in the cache of this package, see cache_dir and cache_bytes"
_LOCK = "the cache needs no lock"
_BLAS = "matrix products call the BLAS of SciPy, or generated code"
_OPENMP = "use threads"
_INPLACE = "there are no in-place rewrites: memory is planned after rewriting"
_TEST_VALUES = "there are no test values; use eval, or mode FAST_COMPILE and a debugger"
_DEVICE = "functions run on the processor; mode JAX runs on what JAX finds"
_META = "there is no meta-optimizer"

_ROWS: list[tuple[str, object, str]] = [
    ("on_shape_error", "raise", "an infer_shape that fails is always an error"),
    ("check_input", True, "arguments are checked; trust_input=True of `function` leaves that out"),
    ("warn_float64", "ignore", "dprint(y, print_type=True) shows the types in a graph"),
    ("traceback__compile_limit", 0, "a node records one line of the user's program"),
    ("cycle_detection", "regular", _INPLACE),
    ("tensor__insert_inplace_optimizer_validate_nb", -1, _INPLACE),
    ("tensor__local_elemwise_fusion", True, "exclude the tag fusion from a mode"),
    ("experimental__local_alloc_elemwise", True, "exclude rewrites by optimizer_excluding"),
    ("experimental__local_alloc_elemwise_assert", True, "lengths are always compared"),
    ("allow_gc", True, _MEMORY),
    ("vm__lazy", None, "a branch that is not taken is never computed"),
    ("scan__allow_gc", False, _MEMORY),
    ("scan__allow_output_prealloc", True, _MEMORY),
    ("compiler_verbose", False, "`phintys.explain` says what a function was compiled to"),
    ("gcc_version_str", "", "the cache tells compilers apart by itself"),
    ("cmodule__age_thresh_use", 2073600, _CMODULE),
    ("cmodule__compilation_warning", False, "the C compiler's warnings are errors of its backend"),
    ("cmodule__debug", False, "give options of the compiler by gcc__cxxflags"),
    ("cmodule__mac_framework_link", False, "no Python headers are linked"),
    ("cmodule__preload_cache", False, _CMODULE),
    ("cmodule__remove_gxx_opt", False, "give options of the compiler by gcc__cxxflags"),
    ("cmodule__warn_no_version", False, "ops have no C code that needs versions"),
    ("compile__timeout", 120, _LOCK),
    ("compile__wait", 5, _LOCK),
    ("compiledir_format", "", _CMODULE),
    ("nocleanup", False, _CMODULE),
    ("generated_src_dir", "", "generated Python source is kept in memory, for tracebacks"),
    ("lib__amdlibm", False, "elementary functions are generated"),
    ("lib__amblibm", False, "elementary functions are generated"),
    ("blas__ldflags", "", _BLAS),
    ("blas__check_openmp", True, _BLAS),
    ("openmp", False, _OPENMP),
    ("openmp_elemwise_minsize", 200000, _OPENMP),
    ("numba__fastmath", False, "rounding is strict on every backend"),
    ("numba__vectorize_target", "cpu", "mode NUMBA runs on the processor"),
    ("numba__cache", False, "Numba compiles again in every process"),
    ("profiling__min_peak_memory", False, "memory is planned in the order of execution"),
    ("compute_test_value", "off", _TEST_VALUES),
    ("compute_test_value_opt", "off", _TEST_VALUES),
    ("print_test_value", False, _TEST_VALUES),
    ("pickle_test_value", True, _TEST_VALUES),
    ("device", "cpu", _DEVICE),
    ("force_device", False, _DEVICE),
    ("init_gpu_device", "", _DEVICE),
    ("assert_no_cpu_op", "ignore", _DEVICE),
    ("deterministic", "default", "results have the same bits at every call"),
    ("conv__assert_shape", False, "lengths are always compared"),
    ("ctc__root", "", "the CTC loss is a graph, and links no library"),
    ("metaopt__optimizer_excluding", "", _META),
    ("metaopt__optimizer_including", "", _META),
    ("metaopt__verbose", 0, _META),
    ("unittests__rseed", 666, "tests seed their generators themselves"),
    ("warn__round", False, "round is NumPy's"),
    ("warn__ignore_bug_before", "0.9", "this package has no bugs of other packages to warn of"),
]
OLDER = [
    Setting(name, default, "without effect", in_key=False, note=note)
    for name, default, note in _ROWS
]
