"""Interrupts: SIGINT, raised as `Interrupted`, and only while user code runs.

The host makes SIGINT pending when a run has to stop, and again every few
milliseconds until the run returns.  Outside of user code that must not raise
anything, so a run *arms* the handler and disarms it when its code has ended.
"""

import signal
from time import monotonic as _monotonic
from time import sleep as _sleep

from codeexec import Interrupted

__all__ = ["arm", "check", "disarm", "install", "seen"]

# How long user code has for its `finally` blocks before the next raise.  An
# exception that something swallowed (a `__del__`, `except BaseException`) is
# raised again after it.
_PAUSE = 0.05

_MESSAGE = "the run was stopped: its time was over, or it was cancelled"

_set_handler = signal.signal
_get_handler = signal.getsignal
_SIGINT = signal.SIGINT


class _State:
    """What the handler knows of the run in progress."""

    __slots__ = ("armed", "next_raise", "seen")

    def __init__(self) -> None:
        self.armed = False
        self.seen = False
        self.next_raise = 0.0


_state = _State()


def install() -> None:
    """Installs the handler, unless it is in place already."""
    if _get_handler(_SIGINT) is not _handle:
        _set_handler(_SIGINT, _handle)


def arm() -> None:
    """Starts a run: from now on SIGINT raises `Interrupted`."""
    _state.seen = False
    _state.next_raise = 0.0
    _state.armed = True


def disarm() -> None:
    """Ends the user's part of a run: from now on SIGINT does nothing."""
    _state.armed = False


def seen() -> bool:
    """Whether the run in progress, or the latest one, was interrupted."""
    return _state.seen


def check() -> None:
    """Is called after a wait that ended early; raises if the run is over.

    A SIGINT that came before user code was armed is used up.  The host makes it
    pending again soon, and in every sleep: this one also keeps from spinning.
    """
    if _state.seen:
        raise Interrupted(_MESSAGE)
    _sleep(0.001)


def _handle(signum: int, frame: object) -> None:
    if not _state.armed:
        return
    now = _monotonic()
    if now < _state.next_raise:
        return
    _state.seen = True
    _state.next_raise = now + _PAUSE
    raise Interrupted(_MESSAGE)
