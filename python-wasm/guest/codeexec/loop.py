"""The event loop: asyncio, waiting for the host instead of for file descriptors.

`EventLoop` is what `asyncio.new_event_loop()` and `asyncio.run()` create.
Loops nest: inside a running loop another one may run, or the same one again,
until its future is done.  That is what makes `asyncio.run(main())` work in a
run's top-level code, whose own loop, the `SessionLoop`, is always running.

A loop without a ready callback, a timer or a call to the host would wait for
ever.  It raises a `RuntimeError` in the code that waits instead.

Why errors are raised through the awaited future: a suspended coroutine can
only be resumed by what it awaits.  Failing that future puts the deadlock
error, or the interrupt, exactly where the user's code waits, and its `finally`
blocks run while the loop still does.
"""

import asyncio
import functools
import sys
import threading
from asyncio import base_events, events, futures, runners, tasks
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from time import sleep as _sleep
from types import FrameType
from typing import Any, NoReturn

from codeexec import Interrupted, errors, host, interrupts, refusals

__all__ = ["EventLoop", "EventLoopPolicy", "SessionLoop", "install", "outside_loop"]

Future = futures.Future
Task = tasks.Task
_get_running_loop = events._get_running_loop
_set_running_loop = events._set_running_loop
_scheduled_tasks = tasks._scheduled_tasks
_swap_current_task = tasks._swap_current_task
_current_task = tasks.current_task
_all_tasks = tasks.all_tasks
_ensure_future = tasks.ensure_future
_get_asyncgen_hooks = sys.get_asyncgen_hooks
_set_asyncgen_hooks = sys.set_asyncgen_hooks
_get_ident = threading.get_ident

# Seconds that cancelled tasks get to clean up at a run's end.
_CLEANUP = 1.0


def install() -> None:
    """Makes asyncio use these loops, and lets them nest."""
    asyncio.SelectorEventLoop = asyncio.EventLoop = EventLoop
    asyncio.DefaultEventLoopPolicy = EventLoopPolicy
    asyncio.set_event_loop_policy(EventLoopPolicy())
    asyncio.run = runners.run = _nestable(runners.run)
    runners.Runner.run = _nestable(runners.Runner.run)


def outside_loop(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls `func` as if no loop were running, the way a thread would."""
    outer = _get_running_loop()
    _set_running_loop(None)
    try:
        return func(*args, **kwargs)
    finally:
        _set_running_loop(outer)


def _nestable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function that refuses to be called inside a loop work there."""

    @functools.wraps(func)
    def nested(*args: Any, **kwargs: Any) -> Any:
        return outside_loop(func, *args, **kwargs)

    return nested


def _refuse(error: type[Exception], message: str) -> Callable[..., NoReturn]:
    def refuse(self: "EventLoop", *args: object, **kwargs: object) -> NoReturn:
        raise error(message)

    return refuse


def _refuse_await(message: str) -> Callable[..., Coroutine[Any, Any, NoReturn]]:
    async def refuse(self: "EventLoop", *args: object, **kwargs: object) -> NoReturn:
        raise OSError(message)

    return refuse


class _Deadlock(Exception):
    """Nothing is left that could ever wake the loop."""


class _HostSelector:
    """What a loop waits on: the host's answers.

    Its events are exceptions, to be raised in the code that waits.
    """

    def select(self, timeout: float | None) -> list[BaseException]:
        try:
            if timeout and interrupts.seen():
                # The host does not wait for a run that is being stopped.
                _sleep(min(timeout, 0.01))
                timeout = 0
            return [] if host.poll(timeout) else [_Deadlock()]
        except Interrupted as exc:
            return [exc]


class _Root:
    """The future that the loop runs for, or None if it runs until stopped."""

    __slots__ = ("finished", "future")

    def __init__(self, future: Future | None = None) -> None:
        self.future = future
        self.finished = False

    def finish(self, future: Future) -> None:
        self.finished = True


class EventLoop(base_events.BaseEventLoop):
    """An asyncio event loop that waits for the host."""

    # Numbers the runs.  What a loop of an earlier run has to say is dropped.
    generation = 0

    def __init__(self) -> None:
        super().__init__()
        self._selector = _HostSelector()
        self._roots: list[_Root] = []
        self._generation = EventLoop.generation

    def run_forever(self) -> None:
        """Runs until `stop()` is called."""
        self._check_closed()
        self._run(_Root(), self._turns)

    def run_until_complete(self, future: Awaitable[Any]) -> Any:
        """Runs until `future` is done and returns its result.

        Unlike in other loops, this loop, or another one, may be running.
        """
        self._check_closed()
        is_new = not futures.isfuture(future)
        future = _ensure_future(future, loop=self)
        if is_new:
            future._log_destroy_pending = False
        root = _Root(future)
        future.add_done_callback(root.finish)
        try:
            self._run(root, self._turns)
        except BaseException:
            if is_new and future.done() and not future.cancelled():
                future.exception()  # It is on its way to the caller already.
            raise
        finally:
            future.remove_done_callback(root.finish)
        if not future.done():
            raise RuntimeError("Event loop stopped before Future completed.")
        return future.result()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Future:
        """Calls `func` at once, in this thread, which is the only one."""
        self._check_closed()
        if self._debug:
            self._check_callback(func, "run_in_executor")
        if executor is not None:
            return futures.wrap_future(executor.submit(func, *args), loop=self)
        future = self.create_future()
        try:
            result = outside_loop(func, *args)
        except Interrupted:
            raise
        except BaseException as exc:
            future.set_exception(exc)
        else:
            future.set_result(result)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Reports an error that nothing handles, if it is one of this run."""
        if isinstance(context.get("exception"), (SystemExit, KeyboardInterrupt)):
            return  # It has ended the run already.
        if self._generation == EventLoop.generation:
            super().call_exception_handler(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Logs an error, with no frame or coroutine but the user's."""
        exc = context.get("exception")
        if exc is not None:
            exc.__traceback__ = errors.visible(exc.__traceback__)
        task = context.get("future")
        if isinstance(task, Task) and errors.is_hidden(task.get_coro()):
            context = {**context, "tool call": task.get_coro().__qualname__}
            del context["future"]
        super().default_exception_handler(context)

    def _run[T](self, root: _Root, body: Callable[[_Root], T]) -> T:
        """Calls `body` with this loop as the running one, whatever ran before."""
        outer = _get_running_loop()
        outer_hooks = _get_asyncgen_hooks()
        outer_thread = self._thread_id
        outer_task = _current_task(self) if outer_thread is not None else None
        # If this loop is running, its present turn has counted these handles.
        counted = len(self._ready) if outer_thread is not None else 0

        self._generation = EventLoop.generation
        self._set_coroutine_origin_tracking(self._debug)
        self._roots.append(root)
        try:
            self._thread_id = _get_ident()
            _set_asyncgen_hooks(
                firstiter=self._asyncgen_firstiter_hook,
                finalizer=self._asyncgen_finalizer_hook,
            )
            if outer_task is not None:
                _swap_current_task(self, None)
            _set_running_loop(self)
            return body(root)
        finally:
            _set_running_loop(outer)
            if outer_task is not None:
                _swap_current_task(self, outer_task)
            _set_asyncgen_hooks(*outer_hooks)
            self._thread_id = outer_thread
            self._stopping = False
            self._roots.pop()
            if outer_thread is None:
                self._set_coroutine_origin_tracking(False)
            for _ in range(counted - len(self._ready)):
                self._ready.append(self._spent_handle())

    def _turns(self, root: _Root) -> None:
        while not (root.finished or self._stopping):
            self._run_once()

    def _spent_handle(self) -> events.Handle:
        """A handle that does nothing."""
        handle = events.Handle(_do_nothing, (), self)
        handle.cancel()
        return handle

    def _process_events(self, event_list: list[BaseException]) -> None:
        for error in event_list:
            self._raise_in_waiter(error)

    def _raise_in_waiter(self, error: BaseException) -> None:
        """Raises `error` in the code that the loop runs for.

        Out of the loop instead, if no code waits there (as in `run_forever`).
        """
        task, future = _awaited_by(self._roots[-1].future if self._roots else None)
        if isinstance(error, _Deadlock):
            error = RuntimeError(_describe_deadlock(task, future))
        if future is None or future.done():
            raise error
        future.set_exception(error)

    def _write_to_self(self) -> None:
        """Does nothing: no other thread could have to wake the loop."""

    create_connection = _refuse_await(refusals.NO_NETWORK)
    create_server = _refuse_await(refusals.NO_NETWORK)
    create_datagram_endpoint = _refuse_await(refusals.NO_NETWORK)
    create_unix_connection = _refuse_await(refusals.NO_NETWORK)
    create_unix_server = _refuse_await(refusals.NO_NETWORK)
    connect_accepted_socket = _refuse_await(refusals.NO_NETWORK)
    getaddrinfo = _refuse_await(refusals.NO_NETWORK)
    getnameinfo = _refuse_await(refusals.NO_NETWORK)
    start_tls = _refuse_await(refusals.NO_NETWORK)
    sendfile = _refuse_await(refusals.NO_NETWORK)
    sock_accept = _refuse_await(refusals.NO_NETWORK)
    sock_connect = _refuse_await(refusals.NO_NETWORK)
    sock_recv = _refuse_await(refusals.NO_NETWORK)
    sock_recv_into = _refuse_await(refusals.NO_NETWORK)
    sock_recvfrom = _refuse_await(refusals.NO_NETWORK)
    sock_recvfrom_into = _refuse_await(refusals.NO_NETWORK)
    sock_sendall = _refuse_await(refusals.NO_NETWORK)
    sock_sendfile = _refuse_await(refusals.NO_NETWORK)
    sock_sendto = _refuse_await(refusals.NO_NETWORK)
    subprocess_exec = _refuse_await(refusals.NO_PROCESSES)
    subprocess_shell = _refuse_await(refusals.NO_PROCESSES)
    connect_read_pipe = _refuse_await(refusals.NO_DESCRIPTORS)
    connect_write_pipe = _refuse_await(refusals.NO_DESCRIPTORS)
    add_reader = _refuse(OSError, refusals.NO_DESCRIPTORS)
    add_writer = _refuse(OSError, refusals.NO_DESCRIPTORS)
    # Libraries expect this error of loops without signals.
    add_signal_handler = _refuse(NotImplementedError, refusals.NO_SIGNALS)

    def remove_reader(self, fd: object) -> bool:
        """Returns False: no descriptor is ever watched."""
        return False

    def remove_writer(self, fd: object) -> bool:
        """Returns False: no descriptor is ever watched."""
        return False

    def remove_signal_handler(self, sig: object) -> bool:
        """Returns False: no signal is ever handled."""
        return False


class SessionLoop(EventLoop):
    """The loop of a session's top-level code.

    It lives as long as the session, so that a lock or a queue that one run
    makes is of use in the next, but it carries no task or timer over.
    """

    def run_main(self, coro: Coroutine[Any, Any, None], context: Context) -> None:
        """Runs the top-level code of a run, a coroutine that must not raise.

        What other tasks must not swallow (`SystemExit`, an interrupt) is raised.
        """
        coro.__name__ = coro.__qualname__ = "main"
        # Not by `create_task`, which may have become a factory of the user's.
        main = Task(coro, loop=self, name="main", context=context)
        main._log_destroy_pending = False
        self._run(_Root(main), self._main_turns)

    def settle(self, *, turn: bool) -> list[str]:
        """Ends the tasks and timers that the top-level code left behind.

        The tasks get one turn, if `turn` says so, then they are cancelled.
        Returns the calls to the host that were cut off by that.
        """
        if self.is_settled():
            return []
        return self._run(_Root(), self._settle if turn else self._cancel_tasks)

    def is_settled(self) -> bool:
        """Whether no task, callback or timer is left."""
        return not (self._ready or self._scheduled or (_scheduled_tasks and _all_tasks(self)))

    def report_unretrieved(self) -> None:
        """Reports the errors of tasks that nothing has awaited, once."""
        # The tasks that are alive; those that are done are still among them.
        for task in list(_scheduled_tasks) if _scheduled_tasks else ():
            if not task._log_traceback:
                continue
            task._log_traceback = False
            task.get_loop().call_exception_handler(
                {
                    "message": "Task exception was never retrieved",
                    "exception": task.exception(),
                    "future": task,
                }
            )

    def retire(self) -> None:
        """Gives the loop up, with whatever tasks it still has."""
        for task in _all_tasks(self):
            task._log_destroy_pending = False
            try:
                task.get_coro().close()
            except BaseException:
                pass  # It refused to end; without a loop it never runs again.
        self._thread_id = None
        self._generation = -1
        super().close()

    def close(self) -> None:
        """Does nothing: the loop of the top-level code stays open."""

    def _main_turns(self, root: _Root) -> None:
        while not root.future.done():
            self._run_once()
            self._stopping = False  # Nothing stops the top-level code.

    def _settle(self, root: _Root) -> list[str]:
        self.call_soon(_do_nothing)  # So that the turn does not wait.
        self._run_once()
        return self._cancel_tasks(root)

    def _cancel_tasks(self, root: _Root) -> list[str]:
        cut_off = host.in_flight()
        pending = _all_tasks(self)
        for task in pending:
            task.cancel()
        self._drop_timers()
        deadline = self.call_later(_CLEANUP, _do_nothing)
        while self._can_go_on(deadline) and not all(map(_is_done, pending)):
            self._run_once()
        self._drop_timers()
        self._ready.clear()
        return cut_off if pending else []

    def _can_go_on(self, deadline: events.TimerHandle) -> bool:
        if self.time() >= deadline.when():
            return False
        return bool(self._ready or host.in_flight()) or self._scheduled != [deadline]

    def _drop_timers(self) -> None:
        for timer in self._scheduled:
            timer._scheduled = False
            timer.cancel()
        self._scheduled.clear()
        self._timer_cancelled_count = 0


class EventLoopPolicy(events.BaseDefaultEventLoopPolicy):
    """Makes `EventLoop`s."""

    _loop_factory = EventLoop


def _do_nothing() -> None:
    pass


def _is_done(future: Future) -> bool:
    return future.done()


def _awaited_by(future: Any) -> tuple[Task | None, Any]:
    """The innermost task that waiting for `future` waits for, and its awaited future."""
    task = None
    seen = set()
    while hasattr(future, "_fut_waiter") and not future.done():
        if future in seen:
            return task, None  # Tasks that await each other.
        seen.add(future)
        task, future = future, future._fut_waiter
    return task, future


def _describe_deadlock(task: Task | None, future: Any) -> str:
    frames = _suspended_frames(task.get_coro()) if task is not None else []
    cell = next((f for f in reversed(frames) if f.f_code.co_filename.startswith("<cell ")), None)
    where = f"line {cell.f_lineno} of {cell.f_code.co_filename}" if cell else "the code"
    if frames and frames[-1] is not cell:
        awaited = f"{frames[-1].f_code.co_qualname}()"
    else:
        awaited = "asyncio.gather()" if isinstance(future, tasks._GatheringFuture) else repr(future)
    return (
        f"deadlock: {where} waits for {awaited}, and nothing is left that could wake it "
        "(no ready task, no timer, no tool call in flight)"
    )


def _suspended_frames(coro: Any) -> list[FrameType]:
    """The frames in which a coroutine is suspended, outermost first."""
    frames = []
    while coro is not None:
        for prefix, awaiting in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            if hasattr(coro, f"{prefix}_frame"):
                frames.append(getattr(coro, f"{prefix}_frame"))
                coro = getattr(coro, f"{prefix}_{awaiting}")
                break
        else:
            break
    return [frame for frame in frames if frame is not None]
