"""The exceptions of MCP calls, one tree under `MCPError`."""

__all__ = [
    "CallTimeout",
    "LimitExceeded",
    "MCPError",
    "MemoryCorrupted",
    "PolicyError",
    "ProtocolError",
    "ServerUnavailable",
    "ToolError",
    "from_host",
    "not_found",
    "not_importable",
]

from typing import Any


class MCPError(RuntimeError):
    """Anything that goes wrong with an MCP server or one of its tools.

    `server` and `tool` hold the names concerned, or None.

        try:
            issue = await mcp_github.create_issue(repo="o/r", title="Bug")
        except runtime.MCPError as error:
            print(error.server, error.tool, error)
    """

    __module__ = "mcp.runtime"

    def __init__(
        self, message: str = "", *, server: str | None = None, tool: str | None = None
    ) -> None:
        super().__init__(message)
        self.server = server
        self.tool = tool

    # Some subclasses also derive from KeyError, whose own __str__ would quote.
    __str__ = BaseException.__str__


class ToolError(MCPError):
    """The tool ran and reported a failure (`isError` in its result).

    `content` is the list of what it said: texts, pictures, resources;
    `structured` its structured content, or None.
    """

    __module__ = "mcp.runtime"

    def __init__(
        self,
        message: str = "",
        *,
        server: str | None = None,
        tool: str | None = None,
        content: list[Any] | None = None,
        structured: Any = None,
    ) -> None:
        super().__init__(message, server=server, tool=tool)
        self.content = [] if content is None else content
        self.structured = structured


class ProtocolError(MCPError):
    """The server answered with a JSON-RPC error: `code` and `data` are its own."""

    __module__ = "mcp.runtime"

    def __init__(
        self,
        message: str = "",
        *,
        server: str | None = None,
        tool: str | None = None,
        code: int | None = None,
        data: Any = None,
    ) -> None:
        super().__init__(message, server=server, tool=tool)
        self.code = code
        self.data = data


class ServerUnavailable(MCPError):
    """The server could not start, crashed or refused the connection."""

    __module__ = "mcp.runtime"


class CallTimeout(MCPError, TimeoutError):
    """A call took longer than its `timeout=`; also a `TimeoutError`."""

    __module__ = "mcp.runtime"


class PolicyError(MCPError):
    """The owner's policy denies the call."""

    __module__ = "mcp.runtime"


class LimitExceeded(MCPError):
    """Too many calls in this run, or a request or result that is too large."""

    __module__ = "mcp.runtime"


class MemoryCorrupted(MCPError):
    """What is saved under a key can't be read; save or delete it to go on."""

    __module__ = "mcp.runtime"


# Scripts see the two classes below as plain `MCPError`: their second nature
# only serves the language. `hasattr`, `getattr(x, name, default)` and
# `mapping.get` want an AttributeError or a KeyError, `import` an ImportError.


class _NotFound(MCPError, AttributeError, KeyError):
    def __init__(
        self, message: str = "", *, server: str | None = None, tool: str | None = None
    ) -> None:
        super().__init__(message, server=server, tool=tool)
        # With neither `obj` nor `name` set, Python fills in both, and the
        # traceback would repeat the suggestion that the message has already.
        self.obj = None

    def __reduce__(self):
        return not_found, (str(self), self.server, self.tool)


class _NotImportable(MCPError, ModuleNotFoundError):
    def __reduce__(self):
        return not_importable, (str(self), self.server, self.tool)


for _class in (_NotFound, _NotImportable):
    _class.__module__ = MCPError.__module__
    _class.__name__ = _class.__qualname__ = MCPError.__name__
del _class


def not_found(message: str, server: str | None = None, tool: str | None = None) -> MCPError:
    """Return the error for a name that no server or tool has."""
    return _NotFound(message, server=server, tool=tool)


def not_importable(message: str, server: str | None = None, tool: str | None = None) -> MCPError:
    """Return the same error for an `import` statement."""
    return _NotImportable(message, server=server, tool=tool)


_BY_KIND = {
    error.__name__: error
    for error in (ServerUnavailable, CallTimeout, PolicyError, LimitExceeded, MemoryCorrupted)
}


def from_host(
    kind: str,
    message: str,
    data: Any,
    server: str | None = None,
    tool: str | None = None,
) -> MCPError | ValueError:
    """Return the exception for an error answer of the host.

    `server` and `tool` are what was asked for; `data` may correct them.
    """
    if kind == "ValueError":
        return ValueError(message)
    details = data if isinstance(data, dict) else {}
    server = details.get("server") or server
    tool = details.get("tool") or tool
    message = _named(message, server, tool)
    if kind == "ProtocolError":
        return ProtocolError(
            message,
            server=server,
            tool=tool,
            code=details.get("code"),
            data=details.get("data"),
        )
    return _BY_KIND.get(kind, MCPError)(message, server=server, tool=tool)


def _named(message: str, server: str | None, tool: str | None) -> str:
    """Return `message` with the server and the tool named in front, if it lacks them."""
    where = ".".join(filter(None, (server, tool)))
    named = f"{where}:", f"{where} ", f"Server {server!r} "
    if not where or message.startswith(named):
        return message
    return f"{where}: {message.removeprefix(f'{server}: ')}"
