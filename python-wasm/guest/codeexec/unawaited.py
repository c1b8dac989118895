"""Coroutines that were made and never awaited: the most common slip of all.

Of one that nothing holds, the interpreter warns by itself, through a hook that
is replaced here.  One that a variable holds, or that is the value of the run,
has to be looked for.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from types import CoroutineType
from typing import Any

from codeexec import streams

__all__ = ["Unawaited", "install"]

_CoroutineType = CoroutineType
_getframe = sys._getframe
_getrefcount = sys.getrefcount
_warn = warnings.warn
_note = streams.note


def install() -> None:
    """Makes the interpreter's warning say what to write."""
    warnings._warn_unawaited_coroutine = _warn_unawaited


class Unawaited:
    """Finds tool calls that were made but not awaited, though something holds them.

    Of a coroutine that nothing holds, the interpreter warns itself.
    """

    def __init__(self) -> None:
        self._value: Any = None
        # Kept, so that the interpreter does not warn of them in a later run.
        self._reported: list[CoroutineType] = []

    def expect(self, value: Any) -> None:
        """Notes the value of a run's last expression."""
        self._value = value if type(value) is _CoroutineType else None

    def report(self, namespace: dict[str, Any]) -> None:
        """Says on stderr which coroutines of this run should have been awaited."""
        held = [coro for coro in _coroutines(namespace.values()) if _is_tool_call(coro)]
        if self._value is not None:
            held.append(self._value)
            self._value = None
        counts: dict[str, int] = {}
        for coro in held:
            if _is_unused(coro) and not any(coro is other for other in self._reported):
                self._reported.append(coro)
                counts[coro.__qualname__] = counts.get(coro.__qualname__, 0) + 1
        for name, count in counts.items():
            _note(f"RuntimeWarning: {_message(name, count)}")
        held.clear()
        if self._reported:
            self._forget_used()

    def _forget_used(self) -> None:
        """Drops the coroutines that were awaited, or that nothing else holds."""
        kept = []
        while self._reported:
            coro = self._reported.pop()
            # The references are this variable and the call's argument.
            if _getrefcount(coro) > 2 and _is_unused(coro):
                kept.append(coro)
            elif _is_unused(coro):
                coro.close()
        self._reported = kept


def _coroutines(values: Iterable[Any]) -> Iterator[CoroutineType]:
    """The coroutines among values, and in the collections of them among values."""
    for value in values:
        kind = type(value)
        if kind is _CoroutineType:
            yield value
        elif value and (kind is list or kind is tuple or kind is dict):
            items = value.values() if kind is dict else value
            if type(next(iter(items))) is _CoroutineType:
                yield from (item for item in items if type(item) is _CoroutineType)


def _is_tool_call(coro: CoroutineType) -> bool:
    return coro.cr_code.co_filename.startswith("<frozen mcp")


def _is_unused(coro: CoroutineType) -> bool:
    """Whether a coroutine has neither been started nor closed."""
    return coro.cr_frame is not None and not coro.cr_running and not coro.cr_suspended


def _message(name: str, count: int = 1) -> str:
    if count > 1:
        return (
            f"{count} coroutines '{name}' were never awaited; "
            f"write: await {name}(...), or await asyncio.gather(*calls)"
        )
    return f"coroutine '{name}' was never awaited; write: await {name}(...)"


def _warn_unawaited(coro: CoroutineType) -> None:
    """Warns of a coroutine that was dropped before it ran.

    The interpreter calls this wherever the last reference goes away.
    """
    frame, level = _getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith("<frozen codeexec"):
        frame, level = frame.f_back, level + 1
    if frame is not None:
        _warn(_message(coro.__qualname__), RuntimeWarning, stacklevel=level)
    else:
        _note(f"RuntimeWarning: {_message(coro.__qualname__)}")
