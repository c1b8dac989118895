"""Arguments as JSON: from the objects that scripts have to what can be sent.

Sent as they are: None, bool, int, finite float, str, dicts with str keys,
lists. Sent as the obvious JSON of the same meaning: tuples, sets (sorted where
they can be), ranges and other sequences as lists; dataclasses and models with
a `model_dump` as objects; enum members as their values; dates and times in ISO
format; paths and UUIDs as text; a Decimal as a number where that loses no
digit.

# Why nothing else is guessed

Base64 or text for bytes, seconds or ISO 8601 for a timedelta, text or null for
NaN: a wrong guess would reach the server as wrong data. These raise a
TypeError that names the place in the arguments and what to write instead.
"""

__all__ = ["Unsendable", "to_json"]

from collections.abc import Awaitable, Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import fields, is_dataclass
import datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
import os
from typing import Any
import uuid

# Deeper than any real argument. A value that contains itself ends here too.
_MAX_DEPTH = 200

# Python refuses to write longer integers in decimal (4,300 digits).
_MAX_BITS = 14_000


class Unsendable(TypeError):
    """A value that has no JSON form; `place` is its path, `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = ""

    def inside(self, key: str | int) -> "Unsendable":
        """Return self, found inside the item `key` of a container."""
        if isinstance(key, str) and key.isidentifier():
            step = f".{key}"
        else:
            step = f"[{key!r}]"
        self.place = step + self.place
        return self


def to_json(value: Any) -> Any:
    """Return `value` as a new JSON value, or raise `Unsendable`.

        >>> to_json({"when": datetime.date(2025, 1, 31), "tags": ("a", "b")})
        {'when': '2025-01-31', 'tags': ['a', 'b']}
    """
    return _convert(value, 0)


def _convert(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return _integer(value)
    if kind is float:
        return _number(value)
    if depth > _MAX_DEPTH:
        raise Unsendable(f"is nested more than {_MAX_DEPTH} deep, or contains itself")
    if isinstance(value, Mapping) and not isinstance(value, Enum):
        return _object(value, depth)
    if kind is list or kind is tuple:
        return _array(value, depth)
    return _convert(_simpler(value), depth + 1)


def _object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    result = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise Unsendable(f"has the key {key!r}; keys must be str")
        if isinstance(key, Enum):
            key = key.value
        try:
            name = _text(key)
            result[name] = _convert(item, depth + 1)
        except Unsendable as error:
            raise error.inside(key)
    return result


def _array(value: Sequence[Any], depth: int) -> list[Any]:
    result = []
    for item in value:
        try:
            result.append(_convert(item, depth + 1))
        except Unsendable as error:
            raise error.inside(len(result))
    return result


def _text(value: str) -> str:
    value = str.__str__(value)
    try:
        value.encode()
        return value
    except UnicodeEncodeError as error:
        place = error.start
    try:
        # Two halves of one character, as JavaScript and old JSON spell it.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise Unsendable(
            f"has the lone surrogate {value[place]!r} at index {place}, which is no "
            "character; clean it with s.encode('utf-8', 'replace').decode()"
        ) from None


def _integer(value: int) -> int:
    if value.bit_length() > _MAX_BITS:
        raise Unsendable(f"is an int of {value.bit_length():,} bits, too large to send")
    return value


def _number(value: float) -> float:
    if not isfinite(value):
        raise Unsendable(f"is {value}, which JSON can't hold; send None or a text")
    return value


def _simpler(value: Any) -> Any:
    """Return a simpler object of the same meaning, or raise `Unsendable`."""
    match value:
        case Enum():
            return value.value
        case str():
            return str.__str__(value)
        case int():
            return int.__index__(value)
        case float():
            return float.__pos__(value)
        case bytes() | bytearray() | memoryview():
            raise Unsendable(
                f"is {type(value).__name__}, which JSON can't hold; send text, such as "
                "base64.b64encode(data).decode() or data.decode()"
            )
        case Set():
            return _ordered(value)
        case Sequence() | ValuesView():
            return list(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            raise Unsendable("is a timedelta; send value.total_seconds() or a text")
        case uuid.UUID():
            return str(value)
        case os.PathLike():
            return os.fspath(value)
        case Decimal():
            return _exact(value)
        case Awaitable():
            raise Unsendable(f"is {_described(value)}, not its result: it needs `await`")
        case Iterator():
            raise Unsendable(f"is {_described(value)}; send list(...) of it")
        case type():
            raise Unsendable(f"is the class {value.__name__}; send an instance or a text")
    if hasattr(type(value), "model_dump"):
        return _dumped(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise Unsendable(f"is {_described(value)}, which has no JSON form")


def _described(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _ordered(value: Set[Any]) -> list[Any]:
    # A view of a dict has an order; a set has one only if we give it one.
    if not isinstance(value, (set, frozenset)):
        return list(value)
    try:
        return sorted(value)
    except TypeError:
        return list(value)


def _exact(value: Decimal) -> int | float:
    if value.is_finite() and abs(value.adjusted()) < 4_000:
        if value == value.to_integral_value():
            return int(value)
        if Decimal(repr(float(value))) == value:
            return float(value)
    raise Unsendable("is a Decimal that no JSON number holds exactly; send float(x) or str(x)")


def _dumped(model: Any) -> Any:
    try:
        return model.model_dump(mode="json")
    except TypeError:  # a model_dump of another make
        return model.model_dump()
