"""Requests to the host, with its errors as exceptions of `mcp._errors`."""

__all__ = ["Reply", "call", "call_async"]

from collections.abc import Sequence
from typing import Any

from codeexec.host import HostError, Reply
from codeexec.host import call as _call
from codeexec.host import call_async as _call_async

from mcp._errors import LimitExceeded, MCPError, from_host

# What a call raises beside HostError: OverflowError for a request that is too
# large, RuntimeError for too many in flight, ValueError or RecursionError for a
# result that Python can't hold (an int of 5,000 digits, 10,000 lists in lists).
_FAILURES = (OverflowError, RuntimeError, ValueError)


def call(
    op: str,
    params: dict[str, Any],
    server: str | None = None,
    tool: str | None = None,
    attachments: Sequence[bytes] = (),
) -> Reply:
    """Ask the host and wait for the answer; nothing else runs meanwhile."""
    try:
        return _call(op, params, attachments)
    except _FAILURES as error:
        failure = _failure(error, server, tool)
    raise failure


async def call_async(
    op: str, params: dict[str, Any], server: str | None = None, tool: str | None = None
) -> Reply:
    """Ask the host; other tasks run meanwhile. Cancelling it cancels the request."""
    try:
        return await _call_async(op, params)
    except _FAILURES as error:
        failure = _failure(error, server, tool)
    # Outside the handler, so that the traceback shows one exception.
    raise failure


def _failure(error: Exception, server: str | None, tool: str | None) -> Exception:
    """Return what to raise for what `codeexec.host` raised."""
    if isinstance(error, HostError):
        return from_host(error.kind, str(error), error.data, server, tool)
    where = ".".join(filter(None, (server, tool))) or "host"
    if isinstance(error, OverflowError):
        text = f"{where}: the arguments are larger than a call may send; send less, or in parts"
        return LimitExceeded(text, server=server, tool=tool)
    if isinstance(error, (ValueError, RecursionError)):
        text = f"{where}: the result can't be read: {error}"
        return MCPError(text, server=server, tool=tool)
    if "too many" in str(error):
        return LimitExceeded(f"{where}: {error}", server=server, tool=tool)
    return error
