"""`ThreadPoolExecutor`, in a sandbox that has only one thread.

`submit` calls the function before it returns, so that every future is
finished.  The results are those that threads would give, one after the other.
"""

import os
from collections.abc import Callable
from concurrent.futures import _base
from typing import Any

from codeexec import Interrupted as _Interrupted

__all__ = ["BrokenThreadPool", "ThreadPoolExecutor"]


_BROKEN = "A thread initializer failed, the thread pool is not usable anymore"


class BrokenThreadPool(_base.BrokenExecutor):
    """The initializer of a `ThreadPoolExecutor` has failed."""


class ThreadPoolExecutor(_base.Executor):
    """Calls functions at once, in the thread that submits them.

    >>> with ThreadPoolExecutor() as pool:
    ...     list(pool.map(str.upper, ["a", "b"]))
    ['A', 'B']
    """

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        if max_workers is None:
            max_workers = min(32, (os.process_cpu_count() or 1) + 4)
        if max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._max_workers = max_workers
        self._initializer = initializer
        self._initargs = initargs
        self._broken = False
        self._shutdown = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> _base.Future:
        """Calls ``fn(*args, **kwargs)`` and returns a finished future."""
        if self._broken:
            raise BrokenThreadPool(_BROKEN)
        if self._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = _base.Future()
        if self._initialize(future):
            future.set_running_or_notify_cancel()
            _call(future, fn, args, kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the use of the pool; there is nothing left to wait for."""
        self._shutdown = True

    def _initialize(self, future: _base.Future) -> bool:
        """Calls the initializer before the first call; fails `future` if it raises."""
        initializer, self._initializer = self._initializer, None
        if initializer is None:
            return True
        try:
            _outside_loop(initializer, *self._initargs)
        except _Interrupted:
            raise
        except BaseException:
            _base.LOGGER.critical("Exception in initializer:", exc_info=True)
            self._broken = True
            future.set_exception(BrokenThreadPool(_BROKEN))
            return False
        return True


def _call(future: _base.Future, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
    try:
        result = _outside_loop(fn, *args, **kwargs)
    except _Interrupted:
        raise
    except BaseException as exc:
        future.set_exception(exc)
    else:
        future.set_result(result)


def _outside_loop(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    # Imported late: asyncio, which the loop is made of, imports this module.
    from codeexec.loop import outside_loop

    return outside_loop(fn, *args, **kwargs)
