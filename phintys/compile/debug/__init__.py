"""Modes for finding errors, in user's programs, ops and rewrites, and in compiled code."""

from __future__ import annotations

from phintys.compile.mode import Mode, register_mode_class


def _debug() -> Mode:
    from phintys.compile.debug.debugmode import DebugMode

    return DebugMode()


def _nan_guard() -> Mode:
    from phintys.compile.debug.nanguardmode import NanGuardMode

    return NanGuardMode()


register_mode_class("DEBUG_MODE", _debug)
register_mode_class("DebugMode", _debug)
register_mode_class("NanGuardMode", _nan_guard)
