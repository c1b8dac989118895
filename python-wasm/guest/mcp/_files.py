"""The files that a run leaves: pictures and data in a folder of its own.

The host makes up the folder's name, adds the code and the output of the run, and
gives links to the files in its answer. The folder is made when it is first used.
"""

__all__ = ["execution_folder", "list_execution_files", "save_file", "save_image"]

from collections.abc import Mapping
import os
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from mcp import _show
from mcp._errors import MCPError

# The characters of a path that a URL needn't escape (RFC 3986), as the host has them.
_PLAIN = "/$&+,:;=@~"

_EXTENSIONS = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}

# Where the run saves files: `path` as it sees it, `url` as its host does.
_place: dict[str, str] = {}


def begin(place: Mapping[str, str] | None) -> None:
    """Note where the run that begins may save files; None: nowhere."""
    _place.clear()
    if place:
        _place.update(place)


def execution_folder() -> Path:
    """Return the folder of this run, which lasts when the session ends.

    It is a folder under `/projects/executions`; the newest 50 are kept.

        >>> (execution_folder() / "notes.txt").write_text("done")
    """
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def list_execution_files() -> list[str]:
    """Return the names of the files in this run's folder, sorted.

        >>> list_execution_files()
        ['data/issues.csv', 'images/chart-1.png']
    """
    folder = _folder()
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files)


def save_file(filename: str | os.PathLike[str], content: str | bytes, subdir: str = "data") -> str:
    """Save text or bytes in this run's folder and return the `file://` URL on the host.

    A file of that name is replaced. The answer has a link to the file.

        >>> save_file("issues.csv", "id,title\\n1,Bug\\n")
        'file:///home/me/MCPs/user_tools/executions/.../data/issues.csv'
    """
    match content:
        case str():
            data = content.encode("utf-8", "surrogatepass")
        case bytes() | bytearray() | memoryview():
            data = bytes(content)
        case _:
            raise TypeError(
                f"content must be str or bytes, not {type(content).__name__}; "
                "write json.dumps(content) or str(content)"
            )
    return _write(_inside(filename, subdir), data)


def save_image(filename: str | os.PathLike[str], image: Any) -> str:
    """Save a picture in this run's folder and return the `file://` URL on the host.

    `image` is what `display` takes for a picture. A name without an extension
    gets that of its type.

        >>> save_image("shot", await mcp_browser.screenshot())
        'file:///home/me/MCPs/user_tools/executions/.../images/shot.png'
    """
    data = _show.picture(image)
    if data is None:
        raise ValueError(
            f"{filename}: not a picture but {type(image).__name__}: give bytes of a PNG, JPEG, "
            "GIF, WebP or SVG, the path of such a file, or an Image"
        )
    path = _inside(filename, "images")
    if not path.suffix:
        extension = next((e for start, e in _EXTENSIONS.items() if data.startswith(start)), ".svg")
        path = path.with_name(path.name + extension)
    return _write(path, data)


def available() -> bool:
    """Return whether this run can save files."""
    return bool(_place)


def unused(stem: str, extension: str) -> str:
    """Return a name for a picture that no file of the run has."""
    images = _folder() / "images"
    number = 1
    while (images / f"{stem}-{number}{extension}").exists():
        number += 1
    return f"{stem}-{number}{extension}"


def _folder() -> Path:
    if not _place:
        raise MCPError(
            "no files can be saved: codeexec has no state directory (CODEEXEC_STATE_DIR), or "
            "its owner keeps no files of runs (CODEEXEC_KEEP_RUNS=none)"
        )
    return Path(_place["path"])


def _inside(filename: str | os.PathLike[str], subdir: str) -> PurePosixPath:
    """Return the name as one in the folder, or raise ValueError if it leads out of it."""
    name = os.fspath(filename)
    if not isinstance(name, str):
        raise TypeError(f"a file name must be str, not {type(name).__name__}")
    _folder()
    path = PurePosixPath()
    for part, what in ((subdir or "", "subdir"), (name, "filename")):
        if not isinstance(part, str):
            raise TypeError(f"{what} must be str, not {type(part).__name__}")
        if part.startswith("/") or ".." in part.split("/"):
            raise ValueError(f"{what} {part!r} leads out of this run's folder; give a name in it")
        if any(c in part for c in "\0\\\r\n") or not _is_text(part):
            raise ValueError(f"{what} {part!r} has a character that no file name can have")
        path /= part
    if PurePosixPath(name).name in ("", ".") or name.endswith("/"):
        raise ValueError(f"filename {name!r} names no file")
    return path


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _write(path: PurePosixPath, data: bytes) -> str:
    target = execution_folder() / path
    target.parent.mkdir(parents=True, exist_ok=True)
    # A link may have been put there, by this run or another one.
    if target.is_symlink() or target.parent.resolve() != target.parent:
        raise ValueError(f"{path} is, or is in, a symbolic link")
    target.write_bytes(data)
    return f"{_place['url']}/{quote(str(path), safe=_PLAIN)}"
