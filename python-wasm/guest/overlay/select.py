"""The module `select` of a sandbox that has no descriptors to wait for."""

from collections.abc import Sequence
from time import sleep as _sleep
from typing import Any

from codeexec.refusals import NO_DESCRIPTORS as _NO_DESCRIPTORS

__all__ = ["PIPE_BUF", "error", "select"]

error = OSError
PIPE_BUF = 4096


def select(
    rlist: Sequence[Any], wlist: Sequence[Any], xlist: Sequence[Any], timeout: float | None = None
) -> tuple[list[Any], list[Any], list[Any]]:
    """Sleeps, if there is nothing to wait for but the timeout; else raises `OSError`."""
    if timeout is None or [*rlist, *wlist, *xlist]:
        raise OSError(_NO_DESCRIPTORS)
    if timeout < 0:
        raise ValueError("timeout must be non-negative")
    _sleep(timeout)
    return [], [], []
