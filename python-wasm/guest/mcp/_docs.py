"""Documentation of servers and tools, for the functions of `mcp.runtime`."""

__all__ = ["brief_metadata", "describe", "describe_loaded", "query", "search", "stubs"]

from collections.abc import Mapping
import re
import sys
from typing import Any

from mcp import _host
from mcp._catalog import Server, Tool, catalog, reachable
from mcp._errors import MCPError, not_found
from mcp._names import did_you_mean, listing
from mcp._proxy import tool_rows
from mcp._results import Record, to_records
from mcp._types import Taken, clean

_DETAILS = ("summary", "full", "stub")
_SCOPES = ("run", "all")
_MAX_LIMIT = 50
_MAX_HEAD = 400  # characters of a server's description in its stubs
_TYPING = ("Any", "Literal", "NotRequired", "TypedDict")


def brief_metadata(server: Mapping[str, Any]) -> Record:
    """Return an entry of `discovered_servers(detailed=True)`."""
    row = Record(
        name=server["name"],
        alias=server.get("alias") or server["name"],
        description=server.get("description") or "",
        status=server.get("status") or "idle",
    )
    if server.get("error"):
        row["error"] = server["error"]
    if _tool_count(server) is not None:
        row["tools"] = _tool_count(server)
    return row


def _tool_count(server: Mapping[str, Any]) -> int | None:
    count = server.get("tools")
    return count if isinstance(count, int) and count >= 0 else None


def describe(name: str) -> Record:
    """Return all that is known of a server of this run."""
    wanted = catalog.server(name).name
    for server in catalog.discovered():
        if server["name"] == wanted:
            return _metadata(server, start=True)
    raise not_found(f"Server {name!r} is no longer configured", server=name)


def describe_loaded() -> list[Record]:
    """Return all that is known of each server of this run."""
    by_name = {server["name"]: server for server in catalog.discovered()}
    return [
        _metadata(by_name[name], start=catalog.restricted)
        for name in catalog.names
        if name in by_name
    ]


def _metadata(server: Mapping[str, Any], start: bool) -> Record:
    row = brief_metadata(server)
    row["cwd"] = server.get("cwd")
    row["transport"] = server.get("transport")
    known = _tool_count(server) is not None
    row["tools"] = []
    if start or known:
        try:
            row["tools"] = tool_rows(row["name"])
        except MCPError as error:
            row["status"] = "failed"
            row["error"] = str(error)
    return row


def query(server: str, tool: str | None, detail: str) -> list[Record]:
    """Return the rows of `query_tool_docs`."""
    _one_of("detail", detail, _DETAILS)
    tools = catalog.tools(server) if tool is None else [catalog.tool(server, tool)]
    return [_row(each, detail) for each in tools]


def _row(tool: Tool, detail: str, score: float | None = None) -> Record:
    row = Record(
        server=tool.server.name,
        serverAlias=tool.server.alias,
        tool=tool.name,
        toolAlias=tool.alias,
        description=tool.description,
    )
    if score is not None:
        row["score"] = score
    if detail == "full":
        row["inputSchema"] = to_records(tool.input_schema)
        row["outputSchema"] = to_records(tool.output_schema)
        row["annotations"] = to_records(tool.annotations)
    elif detail == "stub":
        row["stub"] = tool.stub()
    return row


def stubs(server: str) -> str:
    """Return the `.pyi` text of a server."""
    tools = catalog.tools(server)
    owner = catalog.server(server)
    taken = Taken(tool.alias for tool in tools)
    parts = [tool.stub(taken) for tool in tools]
    head = [f"# mcp.servers.{owner.alias}, predefined as {owner.variable}: MCP server {owner.name!r}"]
    head += [f"# {line}" for line in clean(owner.description, _MAX_HEAD).split("\n") if line]
    text = "\n".join(parts)
    if names := [name for name in _TYPING if re.search(rf"\b{name}\b", text)]:
        head.append(f"from typing import {', '.join(names)}")
    return "\n\n".join(["\n".join(head), *parts]) + "\n"


def search(
    query: str, limit: int, detail: str, scope: str, cached: bool = False
) -> list[Record]:
    """Return the rows of `search_tool_docs`; with `cached`, from servers seen so far."""
    if not isinstance(query, str):
        raise TypeError(f"query must be a str, not {type(query).__name__}")
    _one_of("detail", detail, _DETAILS)
    _one_of("scope", scope, _SCOPES)
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"limit must be an int, not {type(limit).__name__}")
    if limit < 1:
        raise ValueError(f"limit must be from 1 to {_MAX_LIMIT}, not {limit}")
    limit = min(limit, _MAX_LIMIT)
    everywhere = scope == "all" or not catalog.restricted
    params = {
        "query": query,
        "limit": limit,
        "servers": None if everywhere else list(catalog.names),
        "cached": cached,
    }
    found = _host.call("tools.search", params).value
    for failure in found.get("failed") or ():
        print(f"search leaves out {failure['server']!r}: {failure['error']}", file=sys.stderr)
    if unseen := found.get("unseen"):
        why = "never started so far; search_tool_docs starts them"
        print(f"search leaves out {listing(map(repr, unseen))}: {why}", file=sys.stderr)
    return [_found(hit, detail) for hit in found["tools"]]


def _found(hit: dict[str, Any], detail: str) -> Record:
    server = Server(str(hit.get("server")), str(hit.get("serverAlias")), "")
    alias = reachable(str(hit.get("toolAlias") or hit.get("tool")))
    tool = Tool(server, alias, {**hit, "name": str(hit.get("tool"))})
    return _row(tool, detail, hit.get("score"))


def _one_of(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        hint = did_you_mean(str(value), choices, what="Choices")
        raise ValueError(f"{name} can't be {value!r}. {hint}")
