"""Starts processes for `multiprocessing`; in a sandbox it raises `OSError`."""

from multiprocessing import popen_fork

__all__ = ["Popen"]


class Popen(popen_fork.Popen):
    """A process, which cannot be started: raises `OSError`."""

    method = "spawn"
