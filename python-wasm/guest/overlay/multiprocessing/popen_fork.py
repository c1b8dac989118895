"""Starts processes for `multiprocessing`; in a sandbox it raises `OSError`."""

from typing import Any

from codeexec.refusals import NO_PARALLEL_PROCESSES as _NO_PROCESSES

__all__ = ["Popen"]


class Popen:
    """A process, which cannot be started: raises `OSError`."""

    method = "fork"

    def __init__(self, process_obj: Any) -> None:
        raise OSError(_NO_PROCESSES)
