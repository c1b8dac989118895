"""The arguments of a call: from Python's to the tool's, checked by name."""

__all__ = ["bind"]

from collections.abc import Mapping, Sequence
from typing import Any

from mcp._names import close_matches, listing
from mcp._schema import Signature
from mcp._wire import Unsendable, to_json


def bind(
    signature: Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    name: str,
    call: str,
) -> dict[str, Any]:
    """Return the JSON object to send for ``call(*args, **kwargs)``.

    Raises TypeError for arguments that are unknown, missing, given twice or
    can't be sent; its message shows the signature of the tool, whose alias is
    `name`.
    """
    try:
        given = _by_wire(signature, args, kwargs)
        _require(signature, given)
    except _Mismatch as error:
        text = f"{call}() {error}\nsignature: {signature.short_text(name)}"
        raise TypeError(text) from None
    try:
        return to_json({**signature.send, **given})
    except Unsendable as error:
        place = error.place.removeprefix(".")
        raise TypeError(f"{call}(): {place or 'an argument'} {error.reason}") from None


class _Mismatch(Exception):
    """The arguments don't fit the signature; the message goes on from "f()"."""


def _by_wire(
    signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments by the names that the server gave them."""
    if len(args) == 1 and not kwargs and _is_all_arguments(signature, args[0]):
        args, kwargs = (), args[0]
    if len(args) > len(signature.parameters):
        raise _Mismatch(_too_many(signature, len(args)))
    given = {
        parameter.wire: value
        for parameter, value in zip(signature.parameters, args, strict=False)
    }
    for key, value in kwargs.items():
        if not isinstance(key, str):
            raise _Mismatch(f"has the argument name {key!r}; names must be str")
        parameter = signature.by_name.get(key)
        if parameter is None and not signature.open:
            raise _Mismatch(_unexpected(signature, key))
        wire = key if parameter is None else parameter.wire
        if wire in given:
            raise _Mismatch(f"got two values for the argument {key!r}")
        given[wire] = value
    return given


def _is_all_arguments(signature: Signature, value: Any) -> bool:
    """Say whether the only positional argument is a dict of all arguments.

    ``f({"repo": "o/r", "title": "Bug"})`` is how MCP itself spells a call. It
    is taken so unless the dict could also be the value of the first parameter.
    """
    if not isinstance(value, Mapping):
        return False
    if not signature.parameters or not signature.parameters[0].takes_object:
        return True
    if not value or not value.keys() <= signature.by_name.keys():
        return False
    given = {signature.by_name[key].wire for key in value}
    if all(parameter.wire in given for parameter in signature.required):
        raise _Mismatch(
            f"is ambiguous: the dict may be {signature.parameters[0].name!r} or all "
            "arguments; write the arguments as keywords"
        )
    return False


def _require(signature: Signature, given: Mapping[str, Any]) -> None:
    missing = [p.name for p in signature.required if p.wire not in given]
    if missing:
        noun = "argument" if len(missing) == 1 else "arguments"
        raise _Mismatch(f"is missing the required {noun} {', '.join(map(repr, missing))}")


def _too_many(signature: Signature, count: int) -> str:
    if not signature.parameters and signature.open:
        return "takes its arguments by keyword only: its schema doesn't name them"
    most = len(signature.parameters)
    noun = "argument" if most == 1 else "arguments"
    return f"takes at most {most} positional {noun} but {count} were given"


def _unexpected(signature: Signature, key: str) -> str:
    names = [parameter.name for parameter in signature.parameters]
    if matches := close_matches(key, names):
        hint = f"; did you mean {' or '.join(map(repr, matches))}?"
    elif names:
        hint = f"; it takes {listing(names)}"
    else:
        hint = "; it takes none"
    return f"got an unexpected argument {key!r}{hint}"
