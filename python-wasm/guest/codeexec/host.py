"""Calls to the host.

A call is one frame out and one frame back; `_codeexec`, the interpreter's
built-in module, carries them.  A frame is a JSON header and any number of
binary attachments, everything little endian::

    u32 header length | header | ( u32 length | bytes )*

A request's header is ``{"op": ..., "params": ...}``, a response's is
``{"value": ...}`` or ``{"error": {"kind", "message", "data"}}``.
"""

from asyncio import get_running_loop as _get_running_loop
from _json import encode_basestring_ascii as _encode_string
from _json import make_encoder as _make_encoder
from collections.abc import Iterable, Sequence
from json import JSONDecoder
from typing import TYPE_CHECKING, Any, NamedTuple

import _codeexec
from codeexec import interrupts, streams

if TYPE_CHECKING:
    from asyncio import Future

__all__ = ["HostError", "Reply", "call", "call_async", "show"]

_submit = _codeexec.submit
_wait = _codeexec.wait
_read = _codeexec.read
_cancel = _codeexec.cancel
_write = _codeexec.write

# What `_codeexec.wait` returns instead of waiting for ever for nothing.
_IDLE = -6

# Kinds of output, see `_codeexec.write`.
_RESULT = 1
_DISPLAY = 2


class HostError(RuntimeError):
    """The host answered a call with an error.

    `kind` names the class of the error, `data` holds its details, if any.
    """

    def __init__(self, kind: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.data = data


class Reply(NamedTuple):
    """The answer to a call."""

    value: Any
    attachments: list[bytes]


def call(op: str, params: dict[str, Any], attachments: Sequence[bytes] = ()) -> Reply:
    """Calls the host and blocks until it has answered.

    Raises `HostError` for an error response, `OverflowError` if the request is
    larger than the host accepts, and `ValueError` or `TypeError` for parameters
    that JSON cannot hold.

    >>> call("servers.list", {}).value
    [{'name': 'github', ...}]
    """
    number = _send(_request(op, params, attachments))
    try:
        while _wait(number, None) != number:
            interrupts.check()
    except BaseException:
        _cancel(number)
        raise
    return _reply(_read(number))


async def call_async(op: str, params: dict[str, Any], attachments: Sequence[bytes] = ()) -> Reply:
    """Calls the host and lets the event loop run until it has answered.

    Cancelling the caller cancels the call on the host.  Raises like `call`.
    """
    number = _send(_request(op, params, attachments))
    future = _get_running_loop().create_future()
    _in_flight[number] = _Call(op, params, future)
    try:
        frame = await future
    except BaseException:
        abandon(number)
        raise
    return _reply(frame)


class _Call(NamedTuple):
    """A call that the host has not answered yet."""

    op: str
    params: dict[str, Any]
    future: "Future[bytes]"

    def __str__(self) -> str:
        if self.op == "tools.call":
            return f"{self.params.get('server')}.{self.params.get('tool')}"
        return self.op


_in_flight: dict[int, _Call] = {}


def poll(timeout: float | None) -> bool:
    """Resolves the futures of the calls that have been answered.

    Waits up to `timeout` seconds for the first, for ever if it is None.
    Returns False instead of waiting for ever while no call is in flight.
    """
    if timeout == 0 and not _in_flight:
        return True
    number = _wait(0, timeout)
    if number == 0 and timeout is None:
        interrupts.check()
    while number > 0:
        _finish(number)
        number = _wait(0, 0) if _in_flight else 0
    return number != _IDLE


def in_flight() -> list[str]:
    """The calls that wait for an answer, as ``server.tool`` or an operation."""
    return [str(pending) for pending in _in_flight.values()]


def abandon(number: int) -> None:
    """Cancels a call, unless it has been answered."""
    if _in_flight.pop(number, None) is not None:
        _cancel(number)


def abandon_all() -> None:
    """Cancels every call that waits for an answer."""
    for number in [*_in_flight]:
        abandon(number)


def read_request(frame: bytes) -> dict[str, Any]:
    """The header of a run's request."""
    return _unpack(frame)[0]


def write_result(result: dict[str, Any]) -> None:
    """Hands the outcome of a run to the host."""
    _write(_RESULT, _dumps(result).encode())


def show(header: dict[str, Any], attachments: Sequence[bytes]) -> None:
    """Hands something to be shown to the host, after what was printed so far.

    Raises `OverflowError` if it is larger than the host accepts, `RuntimeError`
    if all that was shown is.
    """
    streams.flush()
    _write(_DISPLAY, _frame(header, attachments))


def _send(frame: bytes) -> int:
    try:
        return _submit(frame)
    except RuntimeError as exc:
        if interrupts.seen():
            interrupts.check()  # The run is over, and so is its right to call.
        raise HostError("LimitExceeded", str(exc)) from None


def _finish(number: int) -> None:
    frame = _read(number)
    pending = _in_flight.pop(number, None)
    if pending is not None and not pending.future.done():
        pending.future.set_result(frame)


def _request(op: str, params: dict[str, Any], attachments: Iterable[bytes]) -> bytes:
    return _frame({"op": op, "params": params}, attachments)


def _frame(content: dict[str, Any], attachments: Iterable[bytes]) -> bytes:
    header = _dumps(content).encode()
    parts = [len(header).to_bytes(4, "little"), header]
    for attachment in attachments:
        parts += (len(attachment).to_bytes(4, "little"), attachment)
    return b"".join(parts)


def _reply(frame: bytes) -> Reply:
    header, attachments = _unpack(frame)
    error = header.get("error")
    if error is not None:
        raise HostError(error.get("kind", "HostError"), error.get("message", ""), error.get("data"))
    return Reply(header.get("value"), attachments)


def _unpack(frame: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Splits a frame into its header and its attachments."""
    size = int.from_bytes(frame[:4], "little")
    header = _loads(frame[4 : 4 + size].decode(errors="surrogatepass"))
    attachments = []
    offset = 4 + size
    while offset < len(frame):
        start = offset + 4
        offset = start + int.from_bytes(frame[offset:start], "little")
        attachments.append(frame[start:offset])
    return header, attachments


# The C functions below the `json` module, not the module: user code may have
# patched that one.
_scan = JSONDecoder().scan_once


def _loads(text: str) -> Any:
    return _scan(text, 0)[0]


def _dumps(value: Any) -> str:
    encode = _make_encoder({}, _no_json, _encode_string, None, ":", ",", False, False, False)
    return "".join(encode(value, 0))


def _no_json(value: object) -> None:
    raise TypeError(f"JSON cannot hold a value of type {type(value).__name__}")
