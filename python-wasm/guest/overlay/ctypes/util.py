"""Finds shared libraries for `ctypes`: there are none."""

__all__ = ["find_library"]


def find_library(name: str) -> None:
    """Returns None, as for any library that is not there."""
    return None
