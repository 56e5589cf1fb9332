"""Rejects interpreters that native code cannot run in."""

from __future__ import annotations

import ctypes
import sysconfig

from phintys.errors import UnsupportedError


def require_main_interpreter() -> None:
    """Raise UnsupportedError in a free-threaded build and in a subinterpreter.

    Generated code relies on the global interpreter lock, and callbacks from C run in the main
    interpreter.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise UnsupportedError(
            "Compiled functions do not support free-threaded builds of Python yet. Use a build "
            'with the global interpreter lock, or mode "FAST_COMPILE", which needs no machine code.'
        )
    if not _is_main():
        raise UnsupportedError(
            "Compiled functions run in the main interpreter only, not in a subinterpreter. Compile "
            'and call them there, or use mode "FAST_COMPILE", which needs no machine code.'
        )


def _is_main() -> bool:
    api = ctypes.pythonapi
    for function in (api.PyInterpreterState_Get, api.PyInterpreterState_Main):
        function.restype = ctypes.c_void_p
    return bool(api.PyInterpreterState_Get() == api.PyInterpreterState_Main())
