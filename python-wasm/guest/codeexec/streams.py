"""The standard streams of runs.

The objects stay the same from run to run, since logging handlers and others
keep them, unless a run has made one useless.
"""

import io
import sys
from typing import Any

__all__ = ["flush", "flush_own", "note", "restore"]

_FileIO = io.FileIO
_BufferedReader = io.BufferedReader
_BytesIO = io.BytesIO
_TextIOWrapper = io.TextIOWrapper

_TEXT = {"encoding": "utf-8", "errors": "backslashreplace"}


class _Writer(io.BufferedWriter):
    """A buffer that stays open.

    Replacing ``sys.stdout`` by another wrapper of its buffer is common, and
    would close the buffer when that wrapper goes away.
    """

    def close(self) -> None:
        """Writes out what is buffered."""
        self.flush()


_ours: dict[str, io.TextIOWrapper] = {}


def restore() -> None:
    """Puts the standard streams in place, and into the state they start in."""
    sys.stdin = sys.__stdin__ = _reader()
    sys.stdout = sys.__stdout__ = _writer("stdout", 1)
    sys.stderr = sys.__stderr__ = _writer("stderr", 2)


def flush() -> None:
    """Writes out what is buffered, also in streams that a run put in their place.

    Those may be objects of the user's, which may do anything.
    """
    for name in ("stdout", "stderr"):
        stream = vars(sys).get(name)
        if stream is not None and stream is not _ours.get(name):
            _flush(stream)
    flush_own()


def flush_own() -> None:
    """Writes out what is buffered in the standard streams themselves."""
    for name in ("stdout", "stderr"):
        if name in _ours:
            _flush(_ours[name])


def note(text: str) -> None:
    """Writes a line of the sandbox's own to stderr."""
    try:
        stream = _writer("stderr", 2)
        stream.write(f"{text}\n")
        stream.flush()
    except (OSError, ValueError):
        pass  # Descriptor 2 is closed: there is nowhere to say it.


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except Exception:
        pass  # A closed file, or an object that only looks like a stream.


def _reader() -> io.TextIOWrapper:
    """Standard input, which is empty."""
    stream = _ours.get("stdin")
    if not _is_open(stream):
        try:
            raw = _FileIO(0, closefd=False)
            raw.name = "<stdin>"
            stream = _TextIOWrapper(_BufferedReader(raw), **_TEXT)
        except OSError:
            stream = _TextIOWrapper(_BytesIO(), **_TEXT)
        _ours["stdin"] = stream
    return stream


def _writer(name: str, fd: int) -> io.TextIOWrapper:
    stream = _ours.get(name)
    if not _is_open(stream):
        try:
            # The descriptor outlives the object, whatever is done to that one.
            raw = _FileIO(fd, "w", closefd=False)
            raw.name = f"<{name}>"
        except OSError:
            raw = _Nowhere()  # A run has closed the descriptor itself.
        stream = _TextIOWrapper(_Writer(raw), line_buffering=True, **_TEXT)
        stream.mode = "w"
        _ours[name] = stream
    elif not (
        stream.line_buffering
        and stream.encoding == _TEXT["encoding"]
        and stream.errors == _TEXT["errors"]
    ):
        stream.reconfigure(line_buffering=True, **_TEXT)
    return stream


def _is_open(stream: io.TextIOWrapper | None) -> bool:
    try:
        return stream is not None and not stream.closed
    except ValueError:
        return False  # Its buffer was detached.


class _Nowhere(io.RawIOBase):
    """Swallows what is written."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)
