"""Servers and tools as Python objects: ``mcp_github.create_issue(...)``."""

__all__ = ["ServerProxy", "Servers", "ToolProxy", "call_tool", "server_proxy", "tool_rows"]

from collections.abc import Coroutine, Iterator, Mapping
import inspect
from math import isfinite
from typing import Any

from mcp import _host
from mcp._arguments import bind
from mcp._awaitable import AwaitableList
from mcp._catalog import Server, Tool, catalog, is_reserved
from mcp._errors import MCPError
from mcp._results import Record, from_mcp, to_records


class ToolProxy:
    # No docstring: each instance describes its tool. A call checks the
    # arguments and returns a coroutine; nothing is sent before it is awaited.

    __slots__ = ("__name__", "__qualname__", "_server", "_tool")

    def __init__(self, server: Server, name: str, alias: str) -> None:
        self._server = server
        self._tool = name
        self.__name__ = alias
        self.__qualname__ = f"{server.variable}.{alias}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        return self._start(args, kwargs, raw=False)

    def raw(self, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Call the tool and return the whole MCP result as a dict.

        A result with `isError` is returned like any other.

            result = await mcp_browser.screenshot.raw()
            result.content[0].type
        """
        return self._start(args, kwargs, raw=True)

    def _start(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], raw: bool
    ) -> Coroutine[Any, Any, Any]:
        call = f"{self.__qualname__}.raw" if raw else self.__qualname__
        try:
            tool = catalog.tool(self._server.name, self._tool)
        except MCPError as error:
            return _named(_fail(error), call)
        timeout = None
        if "timeout" in kwargs and "timeout" not in tool.signature.by_name:
            timeout = _seconds(kwargs.pop("timeout"))
        tool, arguments = _bind(tool, args, kwargs, call)
        return _named(_send(tool, arguments, timeout, raw), call)

    @property
    def __doc__(self) -> str:
        try:
            tool = catalog.tool(self._server.name, self._tool)
        except MCPError as error:
            return str(error)
        signature = tool.signature
        limit = "" if "timeout" in signature.by_name else "\n`timeout=` seconds limits one call."
        parts = [
            signature.text(tool.alias),
            signature.doc(tool.description),
            "\n".join(signature.definitions),
            f"Tool {tool.name!r} of the MCP server {tool.server.name!r}.\n"
            f"await {tool.call}(...) returns its value, "
            f"{tool.call}.raw(...) the whole MCP result.{limit}",
        ]
        return "\n\n".join(part for part in parts if part)

    @property
    def __signature__(self) -> inspect.Signature:
        return catalog.tool(self._server.name, self._tool).signature.python

    def __repr__(self) -> str:
        return f"<tool {self.__qualname__} of MCP server {self._server.name!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolProxy):
            return NotImplemented
        return (self._server.name, self._tool) == (other._server.name, other._tool)

    def __hash__(self) -> int:
        return hash((self._server.name, self._tool))

    def __reduce__(self):
        return ToolProxy, (self._server, self._tool, self.__name__)


# `inspect.iscoroutinefunction(mcp_x.tool)` is asked by libraries that take callbacks.
inspect.markcoroutinefunction(ToolProxy)


def call_tool(
    server: str, tool: str, arguments: Mapping[str, Any] | None, timeout: float | None, raw: bool
) -> Coroutine[Any, Any, Any]:
    """Return the coroutine of a call by names, which are checked when it is awaited.

    So a server that can't start fails only its own call in an `asyncio.gather`.
    """
    seconds = _seconds(timeout)
    if not isinstance(tool, str) or not isinstance(arguments or {}, Mapping):
        raise TypeError(
            "call_tool() takes the names of a server and a tool, and a dict of arguments: "
            "runtime.call_tool('github', 'create_issue', {'title': 'Bug'})"
        )
    try:
        found = catalog.tool(server, tool)
    except MCPError as error:
        return _named(_fail(error), "runtime.call_tool")
    found, given = _bind(found, (), arguments or {}, found.call)
    return _named(_send(found, given, seconds, raw), found.call)


def _bind(
    tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any], call: str
) -> tuple[Tool, dict[str, Any]]:
    """Return the arguments to send, and the tool that they were found to fit.

    What is known of the tool may be old. So a mistake counts only if it is one
    by what the server says now.
    """
    try:
        return tool, bind(tool.signature, args, kwargs, name=tool.alias, call=call)
    except TypeError:
        newer = catalog.renewed(tool)
        if newer is None:
            raise
    return newer, bind(newer.signature, args, kwargs, name=newer.alias, call=call)


async def _send(
    tool: Tool, arguments: dict[str, Any], timeout: float | None, raw: bool
) -> Any:
    server = tool.server.name
    reply = await _host.call_async(
        "tools.call",
        {"server": server, "tool": tool.name, "arguments": arguments, "timeout": timeout},
        server=server,
        tool=tool.name,
    )
    return from_mcp(
        reply.value,
        reply.attachments,
        server=server,
        tool=tool.name,
        unwrap=tool.signature.unwrap,
        raw=raw,
        call=tool.call,
    )


async def _fail(error: MCPError) -> Any:
    raise error.with_traceback(None)


def _named(coroutine: Coroutine[Any, Any, Any], call: str) -> Coroutine[Any, Any, Any]:
    """Return `coroutine` under the name that a warning about it should show."""
    coroutine.__name__ = coroutine.__qualname__ = call
    return coroutine


def _seconds(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a number of seconds, not {type(timeout).__name__}")
    if not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds, not {timeout}")
    return timeout if isfinite(timeout) else None


# Notebook-like libraries look for such methods on any object; that must not
# start a server.
_PROBED = ("_repr_", "_ipython_")


class ServerProxy:
    # No docstring: each instance describes its server.

    __slots__ = ("_codeexec_server", "__weakref__")

    def __init__(self, server: Server) -> None:
        self._codeexec_server = server

    def list_tools(self) -> AwaitableList:
        """Return the server's tools as dicts `name, alias, description, input_schema`.

            for tool in mcp_github.list_tools():
                print(tool.alias, tool.description)
        """
        return AwaitableList(tool_rows(self._codeexec_server.name))

    def __getattr__(self, name: str) -> ToolProxy:
        if is_reserved(name):
            raise AttributeError(f"a server has no attribute {name!r}")
        server = self._codeexec_server
        if name.startswith(_PROBED):
            tool = catalog.known_tool(server.name, name)
            if tool is None:
                raise AttributeError(f"{self!r} has no attribute {name!r}")
            return _tool_proxy(tool)
        try:
            return _tool_proxy(catalog.tool_by_alias(server.name, name))
        except AttributeError:  # no such tool
            raise
        except MCPError:
            # The server can't be asked now: the call itself shall say so, when
            # it is awaited, as any other failure of that server.
            return ToolProxy(server, name, name)

    def __getitem__(self, name: str) -> ToolProxy:
        return _tool_proxy(catalog.tool(self._codeexec_server.name, name))

    def __iter__(self) -> Iterator[str]:
        return iter([tool.name for tool in catalog.tools(self._codeexec_server.name)])

    def __contains__(self, name: object) -> bool:
        return any(tool.name == name for tool in catalog.tools(self._codeexec_server.name))

    def __dir__(self) -> list[str]:
        try:
            tools = catalog.tools(self._codeexec_server.name)
        except MCPError:
            tools = []
        return sorted(["list_tools", *(tool.alias for tool in tools)])

    def __repr__(self) -> str:
        server = self._codeexec_server
        return f"<{server.variable}: MCP server {server.name!r}>"

    @property
    def __doc__(self) -> str:
        server = self._codeexec_server
        head = f"MCP server {server.name!r}. {server.description}".strip()
        try:
            tools = catalog.tools(server.name)
        except MCPError as error:
            return f"{head}\n\n{error}"
        lines = [tool.signature.short_text(tool.alias) for tool in tools]
        return f"{head}\n\nTools, all to be called with `await`:\n\n" + "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ServerProxy):
            return NotImplemented
        return self._codeexec_server.name == other._codeexec_server.name

    def __hash__(self) -> int:
        return hash(self._codeexec_server.name)

    def __reduce__(self):
        return server_proxy, (self._codeexec_server.name,)


def _tool_proxy(tool: Tool) -> ToolProxy:
    return ToolProxy(tool.server, tool.name, tool.alias)


def tool_rows(server: str) -> list[Record]:
    """Return the tools of a server as `runtime.list_tools` shows them."""
    return [
        Record(
            name=tool.name,
            alias=tool.alias,
            description=tool.description,
            input_schema=to_records(tool.input_schema),
        )
        for tool in catalog.tools(server)
    ]


def server_proxy(name: str) -> ServerProxy:
    """Return the proxy of a server of this run, by name or alias."""
    return ServerProxy(catalog.server(name))


class Servers(Mapping[str, ServerProxy]):
    """The servers of this run by name; an alias is found too.

        >>> list(mcp_servers)
        ['filesystem', 'github']
        >>> await mcp_servers["github"].create_issue(repo="o/r", title="Bug")
    """

    __slots__ = ()

    def __getitem__(self, name: str) -> ServerProxy:
        return server_proxy(name)

    def __getattr__(self, name: str) -> Any:
        if name in catalog:
            hint = f"mcp_servers[{name!r}] or {catalog.server(name).variable}"
            raise AttributeError(f"servers are no attributes; write {hint}")
        raise AttributeError(f"mcp_servers has no attribute {name!r}")

    def __contains__(self, name: object) -> bool:
        return name in catalog

    def __iter__(self) -> Iterator[str]:
        return iter(catalog.names)

    def __len__(self) -> int:
        return len(catalog.names)

    def __repr__(self) -> str:
        return f"<MCP servers: {', '.join(catalog.names) or 'none'}>"

