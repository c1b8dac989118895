"""What the sandbox cannot do, or does in its own way, in modules that exist.

Modules that cannot work at all are replaced as a whole, see the folder
`overlay`.  Here single functions are: each raises one line that says what to
do instead, and raises it when it is called, so that every library imports.
"""

import _codeexec
import _sitebuiltins
import _thread
import builtins
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NoReturn

from codeexec import Interrupted, refusals, streams

__all__ = ["install"]

_ABORTED = 134  # What a shell reports of a process that `abort()` ended.

# Names that these modules have on Linux, and that libraries or scripts try.
_OS_NAMES = (
    "execl execle execlp execlpe execv execve execvp execvpe fork forkpty getppid kill killpg "
    "openpty posix_openpt posix_spawn posix_spawnp setsid spawnl spawnle spawnlp spawnlpe spawnv "
    "spawnve spawnvp spawnvpe wait wait3 wait4 waitid waitpid"
).split()
_SIGNAL_NAMES = (
    "alarm getitimer pause pidfd_send_signal pthread_kill pthread_sigmask setitimer sigpending "
    "sigtimedwait sigwait sigwaitinfo ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIGALRM SIGCHLD "
    "SIGHUP SIGKILL SIGPIPE SIGUSR1 SIGUSR2"
).split()

_flush = streams.flush
_exit = _codeexec.exit
_sleep = time.sleep
_default_unraisablehook = sys.__unraisablehook__


def install() -> None:
    """Applies all of it."""
    _install_builtins()
    _install_exits()
    _refuse_threads()
    _refuse_signals()
    _refuse_processes()
    _install_permissions()
    _refuse(sys, ("breakpointhook", "__breakpointhook__"), RuntimeError, refusals.NO_DEBUGGER)
    sys.unraisablehook = sys.__unraisablehook__ = _unraisable


def _refuse(owner: Any, names: Iterable[str], error: type[Exception], message: str) -> None:
    """Makes functions of a module, or class, raise whatever they are called with."""
    for name in names:

        def refuse(*args: object, **kwargs: object) -> NoReturn:
            raise error(message)

        _replace(owner, name, refuse)


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Puts a function in the place, and under the name, of another."""
    old = getattr(owner, name, None)
    function.__name__ = function.__qualname__ = name
    function.__module__ = getattr(old, "__module__", owner.__name__)
    function.__doc__ = getattr(old, "__doc__", None)
    setattr(owner, name, function)


def _explain_missing(module: ModuleType, names: Iterable[str], reason: str) -> None:
    """Says why a module lacks names that it has on other systems."""
    missing = frozenset(names) - vars(module).keys()

    def explain(name: str) -> NoReturn:
        message = f"module {module.__name__!r} has no attribute {name!r}"
        if name in missing:
            raise AttributeError(f"{message}: {reason}")
        raise AttributeError(message, name=name, obj=module)

    module.__getattr__ = explain


class _Quitter(_sitebuiltins.Quitter):
    """`exit` and `quit`, without closing standard input."""

    def __repr__(self) -> str:
        return f"Use {self.name}() to end the run"

    def __call__(self, code: Any = None) -> NoReturn:
        raise SystemExit(code)


def _install_builtins() -> None:
    """Adds what the module `site`, which is not used, would add."""
    printer = _sitebuiltins._Printer
    builtins.exit = _Quitter("exit", "")
    builtins.quit = _Quitter("quit", "")
    builtins.copyright = printer("copyright", sys.copyright)
    builtins.credits = printer("credits", "See https://www.python.org for more information.")
    builtins.license = printer("license", "See https://docs.python.org/3/license.html")
    builtins.help = _sitebuiltins._Helper()


def _install_exits() -> None:
    """Lets `os._exit` and `os.abort` write out what was printed before."""

    def leave(status: int) -> NoReturn:
        _flush()
        _exit(status & 0xFF)

    def abort() -> NoReturn:
        _flush()
        _exit(_ABORTED)

    for module in (os, sys.modules["posix"]):
        _replace(module, "_exit", leave)
        _replace(module, "abort", abort)


def _refuse_threads() -> None:
    starts = ("start_new_thread", "start_new", "start_joinable_thread")
    _refuse(_thread, starts, RuntimeError, refusals.NO_THREADS)
    starts = ("_start_new_thread", "_start_joinable_thread")
    _refuse(threading, starts, RuntimeError, refusals.NO_THREADS)
    _replace(threading.Condition, "wait", _wait_alone)


def _wait_alone(self: threading.Condition, timeout: float | None = None) -> bool:
    """Waits until notified or until a timeout occurs.

    Nothing can notify: there is no other thread.  Waiting without a timeout
    raises RuntimeError instead of going on for ever.
    """
    if not self._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    if timeout is None:
        raise RuntimeError(
            "deadlock: the sandbox has no other thread that could end this wait; "
            "use asyncio, or give a timeout"
        )
    _sleep(max(timeout, 0))
    return False


def _refuse_signals() -> None:
    # ValueError is what `signal.signal` raises outside of the main thread, and
    # what libraries are prepared for.
    names = ("signal", "raise_signal", "set_wakeup_fd", "siginterrupt")
    _refuse(signal, names, ValueError, refusals.NO_SIGNALS)
    _refuse(_thread, ("interrupt_main",), RuntimeError, refusals.NO_SIGNALS)
    _explain_missing(signal, _SIGNAL_NAMES, refusals.NO_SIGNALS)


def _refuse_processes() -> None:
    _refuse(os, ("system", "popen"), OSError, refusals.NO_PROCESSES)
    _refuse(os, ("pipe",), OSError, refusals.NO_PIPES)
    _replace(os, "cpu_count", _one_cpu)
    _replace(os, "process_cpu_count", _one_cpu)
    _explain_missing(os, _OS_NAMES, refusals.NO_PROCESSES)


def _install_permissions() -> None:
    """Gives `os` what WASI lacks. They are not Python functions: those would become methods
    of a class that keeps one as an attribute."""
    for module in (os, sys.modules["posix"]):
        module.chmod = _codeexec.chmod
        module.umask = _codeexec.umask


def _one_cpu() -> int:
    """Returns the number of processors, which is 1."""
    return 1


def _unraisable(unraisable: Any) -> None:
    """Reports an exception that cannot be raised; an interrupt comes again."""
    if not isinstance(unraisable.exc_value, Interrupted):
        _default_unraisablehook(unraisable)
