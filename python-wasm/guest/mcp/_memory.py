"""Values that outlive sessions, by key. The functions are names of `mcp.runtime`.

A value is what JSON can hold: None, bool, int, finite float, str, dicts with
str keys, lists, and tuples, which become lists.

# Why less is taken than as an argument of a tool

A tool gets a date as text and is done with it. What is saved comes back, and
who saves a set or a date would load a list or a text and find out much later.
"""

__all__ = [
    "delete_memory",
    "get_memory_info",
    "list_memories",
    "load_memory",
    "memory_exists",
    "save_memory",
    "update_memory",
]

from collections.abc import Awaitable, Callable
from copy import deepcopy
import datetime
from math import isfinite
from typing import Any

from mcp import _host
from mcp._wire import Unsendable

# Deeper than any real value, and not too deep for whoever reads it.
_MAX_DEPTH = 200

# Python refuses to write longer integers in decimal (4,300 digits).
_MAX_BITS = 14_000


def save_memory(key: str, value: Any, metadata: dict[str, Any] | None = None) -> str:
    """Save a value that JSON can hold; whatever was saved under `key` is replaced.

    `metadata` is a dict that `list_memories` shows; without it that of before
    stays. A value that JSON can't hold is a TypeError that says where it is.

        >>> save_memory("seen", {"ids": [1, 2]}, metadata={"about": "issues"})
        "Memory 'seen' saved."
    """
    params = {"key": _checked(key), "value": _json(value, f"save_memory({key!r})", "value")}
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise TypeError(f"metadata must be a dict, not {type(metadata).__name__}")
        params["metadata"] = _json(metadata, f"save_memory({key!r})", "metadata")
    _call("memory.save", params)
    return f"Memory {key!r} saved."


def load_memory(key: str, default: Any = None) -> Any:
    """Return the value saved under `key`, or `default` if there is none.

    A record that can't be read raises `runtime.MemoryCorrupted`.

        >>> load_memory("seen", default={})
        {'ids': [1, 2]}
    """
    record = _call("memory.get", {"key": _checked(key)})
    return default if record is None else record["value"]


def update_memory(key: str, fn: Callable[[Any], Any], default: Any = None) -> Any:
    """Replace the value by ``fn(value)`` and return it; ``fn(default)`` where there is none.

    No update is lost, also where other sessions and processes update the same
    value at once: `fn` is then called again, with the newer value. So it
    should only compute. The metadata stay.

        >>> update_memory("count", lambda n: n + 1, default=0)
        1
    """
    _checked(key)
    conflicts = 0
    while True:
        base = _call("memory.attempt", {"key": key, "conflicts": conflicts})
        # A copy, because fn may change what it gets, and be called again.
        old = base["value"] if "value" in base else deepcopy(default)
        params = {
            "key": key,
            "revision": base["revision"],
            "conflicts": conflicts,
            "value": _json(fn(old), f"update_memory({key!r})", "the value of fn"),
        }
        if _call("memory.commit", params):
            return params["value"]
        conflicts += 1


def list_memories() -> list[dict[str, Any]]:
    """Return what is saved, sorted by key, without the values.

    Dicts `key, metadata, created_at, updated_at, size`: times in seconds since
    1970, the size in bytes. A record that can't be read is a dict `key, error`.

        >>> [memory["key"] for memory in list_memories()]
        ['count', 'seen']
    """
    return _call("memory.list", {"prefix": ""})


def delete_memory(key: str) -> str:
    """Delete what is saved under `key`, also if it can't be read.

        >>> delete_memory("seen")
        "Memory 'seen' deleted."
        >>> delete_memory("seen")
        "Memory 'seen' not found."
    """
    deleted = _call("memory.delete", {"key": _checked(key)})
    return f"Memory {key!r} {'deleted' if deleted else 'not found'}."


def memory_exists(key: str) -> bool:
    """Say whether anything is saved under `key`, also if it can't be read.

        >>> memory_exists("seen")
        True
    """
    return _call("memory.exists", {"key": _checked(key)})


def get_memory_info(key: str) -> dict[str, Any] | None:
    """Return the record of `key`, or None if there is none.

    A dict `key, value, metadata, created_at, updated_at`, times in seconds
    since 1970. One that can't be read raises `runtime.MemoryCorrupted`.

        >>> get_memory_info("seen")["metadata"]
        {'about': 'issues'}
    """
    return _call("memory.get", {"key": _checked(key)})


def _call(op: str, params: dict[str, Any]) -> Any:
    return _host.call(op, params).value


def _checked(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a memory key must be a str, not {type(key).__name__}")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        # JSON would make it another key on its way to the host.
        text = f"memory key {key!r} has a lone surrogate at index {error.start}"
    else:
        return key
    raise ValueError(text)


def _json(value: Any, call: str, name: str) -> Any:
    """Return `value` as plain JSON of its own, which no script can change meanwhile.

    The message of an error names the place from `name` on.
    """
    try:
        return _convert(value, {})
    except Unsendable as error:
        text = f"{call}: {name}{error.place} {error.reason}"
        kind = ValueError if isinstance(error, _Endless) else TypeError
    raise kind(text)


class _Endless(Unsendable):
    """A value that contains itself, or is nested too deeply to tell."""


def _convert(value: Any, above: dict[int, None]) -> Any:
    """Return the JSON value of `value`; `above` are the ids of what contains it."""
    # Subclasses become what they are a subclass of, as in the module json.
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if int.bit_length(value) > _MAX_BITS:
            raise Unsendable(f"is an int of {int.bit_length(value):,} bits, too large to save")
        return int.__index__(value)
    if isinstance(value, float):
        if not isfinite(value):
            shown = float.__repr__(value)
            raise Unsendable(f"is {shown}, which JSON can't hold; save None or a text")
        return float.__pos__(value)
    if not isinstance(value, (dict, list, tuple)):
        raise Unsendable(_refusal(value))
    if id(value) in above:
        raise _Endless("contains itself")
    if len(above) >= _MAX_DEPTH:
        raise _Endless(f"is nested more than {_MAX_DEPTH} deep")
    above[id(value)] = None
    result = _object(value, above) if isinstance(value, dict) else _array(value, above)
    del above[id(value)]
    return result


def _object(value: dict[Any, Any], above: dict[int, None]) -> dict[str, Any]:
    result = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise Unsendable(f"has the key {key!r}; keys must be str")
        key = str.__str__(key)
        try:
            result[key] = _convert(item, above)
        except Unsendable as error:
            raise error.inside(key)
    return result


def _array(value: list[Any] | tuple[Any, ...], above: dict[int, None]) -> list[Any]:
    result = []
    for item in value:
        try:
            result.append(_convert(item, above))
        except Unsendable as error:
            raise error.inside(len(result))
    return result


def _refusal(value: Any) -> str:
    """Return why JSON can't hold `value`, and what to save instead."""
    name = type(value).__name__
    text = f"is {'an' if name[0].lower() in 'aeiou' else 'a'} {name}, which JSON can't hold"
    match value:
        case set() | frozenset():
            return f"{text}; save sorted(...) or list(...) of it"
        case bytes() | bytearray():
            return f"{text}; save a text, such as data.decode()"
        case datetime.date() | datetime.time():
            return f"{text}; save its isoformat()"
        case Awaitable():
            return f"{text}; save its result, with `await`"
    return text
