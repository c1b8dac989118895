"""`display`: pictures and everything else that a script wants to be seen.

The host checks every picture, since one that can't be decoded would spoil the
client's conversation, and writes a line into stdout where it was shown, such as
``[image 1: image/png, 640×480]``, or why it can't be.

# Why Markdown is preferred to HTML

What isn't a picture reaches a model as text. Both say the same, and Markdown
says it in fewer tokens.
"""

__all__ = ["display"]

from base64 import b64decode
from collections.abc import Mapping
import os
import sys
from typing import Any

from codeexec import host

from mcp._results import Image, Resource

# How many bytes of a file tell whether it is a picture.
_HEAD = 1024

# Longer texts are no paths.
_MAX_PATH = 4096

# What an object may offer, best first, as in IPython.
_PICTURES = {
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "image/svg+xml": "_repr_svg_",
}
_TEXTS = {"text/markdown": "_repr_markdown_", "text/html": "_repr_html_"}


def display(*objects: Any) -> None:
    """Show pictures to whoever reads the answer; anything else is printed.

    A picture is bytes of a PNG, JPEG, GIF, WebP or SVG, an `Image` that a tool
    returned, the path of such a file, or an object with `_repr_png_` and the
    like. Of an answer's pictures the first 8 are shown, up to 4 MiB; others, and
    those that clients can't show (SVG, more than 8,000 pixels wide or high), are
    saved in `execution_folder()`.

        >>> display(await mcp_browser.screenshot())
        [image 1: image/png, 1280×720]
    """
    for each in objects:
        data = picture(each)
        if data is not None:
            show(data)
        else:
            print(_text(each))


def show_value(value: Any) -> None:
    """Show the value of a run's last expression if it is a picture, or offers one."""
    kind = type(value)
    if not isinstance(value, Image) and not any(hasattr(kind, name) for name in _PICTURES.values()):
        return
    try:
        data = picture(value)
    except Exception as error:
        print(f"{kind.__name__} can't be shown: {type(error).__name__}: {error}", file=sys.stderr)
        return
    if data is not None:
        show(data)


def show(data: bytes, saved: str = "") -> None:
    """Show a picture; `saved` is the file of the run's folder that holds it, if one does."""
    try:
        host.show({"type": "picture", "saved": saved}, [data])
    except (OverflowError, RuntimeError):
        print(f"[image not shown: {len(data):,} bytes are more than a run can show]")


def picture(value: Any) -> bytes | None:
    """Return the bytes of the picture that `value` is, names or offers; None if it does none of these."""
    match value:
        case Image():
            return bytes(value.data)
        case Resource():
            content = value.data if value.data is not None else (value.text or "").encode()
            return content if is_picture(content) else None
        case bytes() | bytearray() | memoryview():
            return bytes(value) if is_picture(bytes(value[:_HEAD])) else None
        case str() | os.PathLike():
            return _file(value)
        case type():
            return None
    offered = _offer(value, _PICTURES)
    if offered is None:
        return None
    kind, data = offered
    if isinstance(data, str):
        return data.encode() if kind == "image/svg+xml" else b64decode(data)
    return bytes(data)


def is_picture(head: bytes) -> bool:
    """Return whether a file that begins with `head` is, or claims to be, a picture.

        >>> is_picture(b"GIF89a...")
        True
    """
    if head.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")):
        return True
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return True
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"<svg") or text.startswith((b"<?xml", b"<!--", b"<!DOCTYPE svg")) and b"<svg" in head


def _file(path: str | os.PathLike[Any]) -> bytes | None:
    name = os.fspath(path)
    if not name or len(name) > _MAX_PATH or not os.path.isfile(name):
        return None
    with open(name, "rb") as file:
        head = file.read(_HEAD)
        return head + file.read() if is_picture(head) else None


def _text(value: Any) -> str:
    if not isinstance(value, type):
        offered = _offer(value, _TEXTS)
        if offered is not None and isinstance(offered[1], str):
            return offered[1]
    return repr(value)


def _offer(value: Any, methods: Mapping[str, str]) -> tuple[str, Any] | None:
    """Return the first of the types that `value` offers, and what it offers."""
    kind = type(value)
    if hasattr(kind, "_repr_mimebundle_"):
        bundle = _content(value._repr_mimebundle_(include=None, exclude=None))
        if isinstance(bundle, Mapping):
            for mime_type in methods:
                if bundle.get(mime_type) is not None:
                    return mime_type, _content(bundle[mime_type])
    for mime_type, name in methods.items():
        if hasattr(kind, name):
            data = _content(getattr(value, name)())
            if data is not None:
                return mime_type, data
    return None


def _content(offered: Any) -> Any:
    """Return the data of what may be a pair of data and metadata."""
    return offered[0] if isinstance(offered, tuple) and len(offered) == 2 else offered
