"""Find MCP servers and their tools, and call them by name.

    >>> runtime.discovered_servers()
    ('filesystem', 'github')
    >>> runtime.search_tool_docs("create an issue", limit=1)[0]["toolAlias"]
    'create_issue'
    >>> print(runtime.stubs("github"))
    >>> await mcp_github.create_issue(repo="o/r", title="Bug")

`display` shows pictures, `render_chart` draws them, `save_file` keeps files.
What `save_memory` saves, `load_memory` finds in any later session; functions
that `save_tool` saves are predefined there.

Discovery answers at once, with or without `await`. All errors of servers and
tools are subclasses of `MCPError`.
"""

__all__ = [
    "Audio",
    "CallTimeout",
    "Image",
    "LimitExceeded",
    "MCPError",
    "MemoryCorrupted",
    "PolicyError",
    "ProtocolError",
    "Resource",
    "ResourceLink",
    "ServerUnavailable",
    "ToolError",
    "call_tool",
    "capability_summary",
    "convert_time",
    "delete_memory",
    "delete_saved_tool",
    "describe_server",
    "discovered_servers",
    "display",
    "execution_folder",
    "get_memory_info",
    "list_execution_files",
    "list_loaded_server_metadata",
    "list_memories",
    "list_saved_tools",
    "list_servers",
    "list_servers_sync",
    "list_tools",
    "list_tools_sync",
    "list_timezones",
    "load_memory",
    "memory_exists",
    "now",
    "query_tool_docs",
    "query_tool_docs_sync",
    "render_chart",
    "save_file",
    "save_image",
    "save_memory",
    "save_tool",
    "search_tool_docs",
    "search_tool_docs_sync",
    "stubs",
    "update_memory",
]

from collections.abc import Coroutine, Mapping
from typing import Any, Literal

from mcp import _docs, _host, _proxy
from mcp._awaitable import AwaitableList, AwaitableRecord, AwaitableTuple
from mcp._catalog import catalog, missing_attribute
from mcp._chart import render_chart
from mcp._errors import (
    CallTimeout,
    LimitExceeded,
    MCPError,
    MemoryCorrupted,
    PolicyError,
    ProtocolError,
    ServerUnavailable,
    ToolError,
)
from mcp._files import execution_folder, list_execution_files, save_file, save_image
from mcp._memory import (
    delete_memory,
    get_memory_info,
    list_memories,
    load_memory,
    memory_exists,
    save_memory,
    update_memory,
)
from mcp._results import Audio, Image, Resource, ResourceLink
from mcp._saved import delete_saved_tool, list_saved_tools, save_tool
from mcp._show import display
from mcp._time import convert_time, list_timezones, now

Detail = Literal["summary", "full", "stub"]
Scope = Literal["run", "all"]


def call_tool(
    server: str,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
    raw: bool = False,
    **misplaced: Any,
) -> Coroutine[Any, Any, Any]:
    """Call a tool by the names of its server and itself; to be awaited.

    Returns what ``mcp_<alias>.<tool>(**arguments)`` returns. `timeout` is in
    seconds; past it the call raises `CallTimeout`. With `raw` the whole MCP
    result is returned as a dict, also where it reports an error.

        issue = await runtime.call_tool("github", "create_issue", {"repo": "o/r", "title": "x"})
    """
    if misplaced:
        given = ", ".join(f"{name!r}: ..." for name in misplaced)
        raise TypeError(
            "call_tool() takes the arguments of the tool as a dict: "
            f"runtime.call_tool({server!r}, {tool!r}, {{{given}}})"
        )
    return _proxy.call_tool(server, tool, arguments, timeout, raw)


def discovered_servers(detailed: bool = False) -> tuple[Any, ...]:
    """Return the names of all configured servers, sorted.

    With `detailed`, dicts `name, alias, description, status`, where known also
    `tools` (how many) and `error`. Starts no server.

        >>> runtime.discovered_servers()
        ('filesystem', 'github')
    """
    found = catalog.discovered()
    if detailed:
        return AwaitableTuple(_docs.brief_metadata(server) for server in found)
    return AwaitableTuple(server["name"] for server in found)


def list_servers() -> tuple[str, ...]:
    """Return the names of the servers that this run may use, sorted.

        >>> await runtime.list_servers()
        ('github',)
    """
    return AwaitableTuple(catalog.names)


def list_servers_sync() -> tuple[str, ...]:
    """Return the names of the servers loaded in this run, sorted.

        >>> runtime.list_servers_sync()
        ('github',)
    """
    return catalog.names


def list_tools(server: str) -> list[dict[str, Any]]:
    """Return the tools of a server as dicts `name, alias, description, input_schema`.

        for tool in await runtime.list_tools("github"):
            print(tool["alias"], tool["description"])
    """
    return AwaitableList(_proxy.tool_rows(server))


def list_tools_sync(server: str) -> list[dict[str, Any]]:
    """Return the tools of a server, as `list_tools` does.

        names = [tool["name"] for tool in runtime.list_tools_sync("github")]
    """
    return _proxy.tool_rows(server)


def describe_server(name: str) -> dict[str, Any]:
    """Return a dict `name, alias, description, cwd, transport, status, tools`.

    `tools` are dicts as of `list_tools`; a server whose tools were never seen
    is started for it. Where that fails, `tools` is empty and `error` says why.

        >>> [tool["alias"] for tool in runtime.describe_server("github")["tools"]]
        ['create_issue', 'list_issues']
    """
    return AwaitableRecord(_docs.describe(name))


def list_loaded_server_metadata() -> tuple[dict[str, Any], ...]:
    """Return `describe_server` of each server loaded in this run.

    Where the run was given no `servers`, all discovered ones are loaded; then
    servers whose tools were never seen aren't started: their `tools` is empty.

        >>> [server["alias"] for server in runtime.list_loaded_server_metadata()]
        ['github']
    """
    return AwaitableTuple(_docs.describe_loaded())


def query_tool_docs(
    server: str, tool: str | None = None, detail: Detail = "summary"
) -> list[dict[str, Any]]:
    """Return what is documented of a server's tools, or of one of them.

    Dicts `server, serverAlias, tool, toolAlias, description`; with
    ``detail="full"`` also `inputSchema, outputSchema, annotations`, with
    ``detail="stub"`` also `stub`: the Python signature with types and docstring.

        >>> print(runtime.query_tool_docs("github", "create_issue", detail="stub")[0]["stub"])
        async def create_issue(repo: str, title: str, body: str = ...) -> Any: ...
    """
    return AwaitableList(_docs.query(server, tool, detail))


def query_tool_docs_sync(
    server: str, tool: str | None = None, detail: Detail = "summary"
) -> list[dict[str, Any]]:
    """Return what `query_tool_docs` returns, as a plain list.

        docs = runtime.query_tool_docs_sync("github", "create_issue", detail="full")
    """
    return _docs.query(server, tool, detail)


def search_tool_docs(
    query: str, *, limit: int = 5, detail: Detail = "summary", scope: Scope = "run"
) -> list[dict[str, Any]]:
    """Return the tools that fit `query`, best first: dicts as of `query_tool_docs`, and `score`.

    Searches the servers that the run was given, or all discovered ones where
    it was given none or with ``scope="all"``. Servers that were never started
    so far are; one line on stderr names each that can't be. `limit` is 1 to 50.

        >>> [hit["toolAlias"] for hit in await runtime.search_tool_docs("calendar events")]
        ['list_calendar_events', 'create_event']
    """
    return AwaitableList(_docs.search(query, limit, detail, scope))


def search_tool_docs_sync(
    query: str, *, limit: int = 5, detail: Detail = "summary", scope: Scope = "run"
) -> list[dict[str, Any]]:
    """Return what `search_tool_docs` finds in the servers seen so far; starts none.

        hits = runtime.search_tool_docs_sync("read file")
    """
    return _docs.search(query, limit, detail, scope, cached=True)


def stubs(server: str) -> str:
    """Return a `.pyi` text for a whole server: the shortest way to read its API.

        >>> print(runtime.stubs("github"))
    """
    return _docs.stubs(server)


def capability_summary() -> str:
    """Return a short manual of this sandbox: helpers, examples, limits.

        >>> print(runtime.capability_summary())
    """
    return str(_host.call("text.capabilities", {}).value or "")


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    raise missing_attribute(__name__, name)
