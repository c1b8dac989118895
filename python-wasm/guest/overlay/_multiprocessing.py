"""The C part of `multiprocessing`, in a sandbox that has no processes."""

from typing import Any, NoReturn

from codeexec.refusals import NO_PARALLEL_PROCESSES as _NO_PROCESSES

flags: dict[str, int] = {}


class SemLock:
    """A semaphore between processes, which cannot be made: raises `OSError`."""

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise OSError(_NO_PROCESSES)

    _rebuild = __init__


def sem_unlink(name: str) -> NoReturn:
    """Would remove a semaphore; raises `OSError`."""
    raise OSError(_NO_PROCESSES)
