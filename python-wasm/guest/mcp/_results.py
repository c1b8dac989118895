"""What a call returns: from the MCP result to the value that a script wants."""

__all__ = ["Audio", "Image", "Record", "Resource", "ResourceLink", "from_mcp", "to_records"]

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from json import loads
import sys
from typing import Any

from mcp._errors import ToolError


class Record(dict):
    """A dict whose keys can be read as attributes.

    Keys that are methods of dict (`items`, `keys`, …) are read by `[]`.

        >>> issue = Record(id=7, items=[])
        >>> issue.id, issue["items"]
        (7, [])
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        # Python looks for special methods of its own on instances; what a
        # server sent must not be taken for one.
        if name in self and not (name.startswith("__") and name.endswith("__")):
            return self[name]
        from mcp._names import did_you_mean

        keys = [key for key in self if isinstance(key, str)]
        error = AttributeError(f"no key {name!r}. {did_you_mean(name, keys, what='Keys')}")
        error.obj = None  # else the traceback would suggest a second time
        raise error

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"{name!r} is a method of dict; set it with [{name!r}]")
        self[name] = value

    def __dir__(self) -> list[str]:
        keys = [key for key in self if isinstance(key, str) and key.isidentifier()]
        return sorted({*super().__dir__(), *keys})

    def copy(self) -> "Record":
        """Return a shallow copy, again with attributes."""
        return type(self)(self)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that a tool returned.

        >>> shot = await mcp_browser.screenshot()
        >>> open("shot.png", "wb").write(shot.data)
    """

    data: bytes
    mime_type: str = "image/png"

    def __repr__(self) -> str:
        return _summary(self)


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound that a tool returned."""

    data: bytes
    mime_type: str = "audio/wav"

    def __repr__(self) -> str:
        return _summary(self)


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that a tool returned with its content: `text`, or `data` if binary."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    data: bytes | None = None

    def __repr__(self) -> str:
        return _summary(self)


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """The address of a resource, without its content; `size` is in bytes."""

    uri: str
    name: str | None = None
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None

    def __repr__(self) -> str:
        return _summary(self)


def _summary(block: Image | Audio | Resource | ResourceLink) -> str:
    parts = [type(block).__name__]
    for name in ("uri", "mime_type"):
        if value := getattr(block, name, None):
            parts.append(value)
    if (data := getattr(block, "data", None)) is not None:
        parts.append(f"{len(data):,} bytes")
    if (text := getattr(block, "text", None)) is not None:
        parts.append(f"{len(text):,} characters")
    return f"<{' '.join(parts)}>"


def to_records(value: Any) -> Any:
    """Return a copy of a JSON value in which every dict is a `Record`.

    Works on any depth: no recursion.
    """
    holder = [value]
    unfinished: list[Any] = [holder]
    while unfinished:
        container = unfinished.pop()
        places = container.items() if isinstance(container, dict) else enumerate(container)
        for place, child in places:
            if isinstance(child, dict):
                copy = Record(child)
            elif isinstance(child, list):
                copy = list(child)
            else:
                continue
            # Replacing the value of a key that exists is safe while iterating.
            container[place] = copy
            unfinished.append(copy)
    return holder[0]


def from_mcp(
    result: Any,
    attachments: Sequence[bytes] = (),
    *,
    server: str,
    tool: str,
    unwrap: bool = False,
    raw: bool = False,
    call: str = "",
) -> Any:
    """Return the value of a `CallToolResult`.

    `attachments` are the binary parts its blocks refer to. `unwrap` says that
    the output schema only wraps the value in an object with the key "result".
    `raw` gives the whole result as MCP spells it, binary parts in base64, and
    raises nothing. `call` names the call in remarks on stderr.
    """
    if not isinstance(result, dict):
        result = {"content": []}
    blocks = [block for block in _list(result.get("content")) if isinstance(block, dict)]
    if raw:
        return to_records({**result, "content": [_spelt_out(b, attachments) for b in blocks]})
    if result.get("isError"):
        raise _tool_error(result, blocks, attachments, server, tool)
    if "structuredContent" in result:
        _mention_rest(blocks, call)
        return to_records(_unwrapped(result["structuredContent"], unwrap))
    values = [_value(block, attachments) for block in blocks]
    match values:
        case []:
            return None
        case [value]:
            return value
    return values


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _unwrapped(value: Any, unwrap: bool) -> Any:
    if unwrap and isinstance(value, dict) and value.keys() == {"result"}:
        return value["result"]
    return value


def _tool_error(
    result: dict[str, Any],
    blocks: list[dict[str, Any]],
    attachments: Sequence[bytes],
    server: str,
    tool: str,
) -> ToolError:
    texts = [text for block in blocks if isinstance(text := block.get("text"), str)]
    reason = "\n".join(texts).strip() or "the tool reported an error without a text"
    return ToolError(
        f"{server}.{tool}: {reason}",
        server=server,
        tool=tool,
        content=[_value(block, attachments) for block in blocks],
        structured=to_records(result.get("structuredContent")),
    )


def _mention_rest(blocks: list[dict[str, Any]], call: str) -> None:
    """Say on stderr that there is more than the structured content."""
    kinds = [str(block.get("type")) for block in blocks if block.get("type") != "text"]
    if not kinds:
        return
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    print(f"{call}: the result also has {counts}; {call}.raw(...) returns it", file=sys.stderr)


def _value(block: dict[str, Any], attachments: Sequence[bytes]) -> Any:
    """Return what one content block means."""
    mime_type = _text(block.get("mimeType"))
    match block.get("type"):
        case "text":
            return _parsed(_text(block.get("text")) or "")
        case "image":
            return Image(_data(block, "data", attachments) or b"", mime_type or "image/png")
        case "audio":
            return Audio(_data(block, "data", attachments) or b"", mime_type or "audio/wav")
        case "resource" if isinstance(block.get("resource"), dict):
            inner = block["resource"]
            return Resource(
                uri=_text(inner.get("uri")) or "",
                mime_type=_text(inner.get("mimeType")),
                text=_text(inner.get("text")),
                data=_data(inner, "blob", attachments),
            )
        case "resource_link":
            return ResourceLink(
                uri=_text(block.get("uri")) or "",
                name=_text(block.get("name")),
                mime_type=mime_type,
                title=_text(block.get("title")),
                description=_text(block.get("description")),
                size=block.get("size") if isinstance(block.get("size"), int) else None,
            )
    # A kind of block that a later version of MCP adds: nothing is dropped.
    return to_records(_spelt_out(block, attachments))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _data(
    block: dict[str, Any], key: str, attachments: Sequence[bytes]
) -> bytes | None:
    """Return the binary part of a block, or None."""
    index = block.get("attachment")
    if isinstance(index, int) and 0 <= index < len(attachments):
        return bytes(attachments[index])
    text = block.get(key)
    if not isinstance(text, str):
        return None
    from base64 import b64decode
    from binascii import Error

    try:
        return b64decode(text)
    except (Error, ValueError):  # the server's own data is no base64
        return text.encode("utf-8", "surrogatepass")


def _spelt_out(block: dict[str, Any], attachments: Sequence[bytes]) -> dict[str, Any]:
    """Return a block as MCP spells it: base64 where the host had taken data out."""
    result = dict(block)
    if isinstance(result.get("resource"), dict):
        result["resource"] = _with_base64(result["resource"], "blob", attachments)
    return _with_base64(result, "data", attachments)


def _with_base64(
    block: dict[str, Any], key: str, attachments: Sequence[bytes]
) -> dict[str, Any]:
    index = block.get("attachment")
    if not (isinstance(index, int) and 0 <= index < len(attachments)):
        return block
    rest = {name: value for name, value in block.items() if name != "attachment"}
    return {**rest, key: b64encode(attachments[index]).decode("ascii")}


def _parsed(text: str) -> Any:
    """Return the JSON object or array that `text` is, else `text`."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return loads(text, object_pairs_hook=Record, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return text


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
