"""`ProcessPoolExecutor`, in a sandbox that has no processes."""

from concurrent.futures import _base
from typing import Any

from codeexec.refusals import NO_PARALLEL_PROCESSES as _NO_PROCESSES

__all__ = ["BrokenProcessPool", "ProcessPoolExecutor"]


class BrokenProcessPool(_base.BrokenExecutor):
    """A process of the pool has died; never raised here."""


class ProcessPoolExecutor(_base.Executor):
    """A pool of processes, which cannot be made: raises `OSError`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise OSError(_NO_PROCESSES)
