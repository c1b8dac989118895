"""Containers that may also be awaited.

Discovery answers at once, yet scripts have every reason to write
``await runtime.query_tool_docs("github")``: other calls of theirs need it.
So the answers are a list, tuple or dict whose `await` gives a plain copy.
They work in `asyncio.gather`, `create_task` and `wait_for` too.
"""

__all__ = ["AwaitableList", "AwaitableRecord", "AwaitableTuple"]

from typing import Any

from mcp._results import Record


class _Done:
    """A coroutine that finishes at its first step, for a container to inherit.

    `send`, `throw` and `close` make it a `collections.abc.Coroutine`, which is
    what `create_task` insists on.
    """

    __slots__ = ()

    # asyncio.gather keeps its arguments in a dict.
    __hash__ = object.__hash__

    def _plain(self) -> Any:
        raise NotImplementedError

    def __await__(self):
        return self._plain()
        yield  # pragma: no cover - makes this a generator

    def send(self, value: Any) -> Any:
        """Finish, as any coroutine does, by StopIteration with the value."""
        raise StopIteration(self._plain())

    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Any:
        """Raise what a task throws in, such as CancelledError."""
        if value is None:
            value = kind() if isinstance(kind, type) else kind
        raise value.with_traceback(traceback)

    def close(self) -> None:
        """Do nothing: there is nothing to clean up."""


class AwaitableList(_Done, list):
    """A list that may be awaited."""

    __slots__ = ()

    def _plain(self) -> list[Any]:
        return list(self)


class AwaitableTuple(_Done, tuple):
    """A tuple that may be awaited."""

    __slots__ = ()

    def _plain(self) -> tuple[Any, ...]:
        return tuple(self)


class AwaitableRecord(_Done, Record):
    """A dict that may be awaited."""

    __slots__ = ()

    def _plain(self) -> Record:
        return Record(self)
