"""Documentation of servers and tools, for the functions of `mcp.runtime`."""

__all__ = ["brief_metadata", "describe", "describe_loaded", "query", "search", "stubs"]

from collections.abc import Iterable, Mapping
import re
import sys
from typing import Any

from mcp import _host
from mcp._catalog import Server, Tool, catalog, reachable
from mcp._errors import MCPError, not_found
from mcp._names import did_you_mean
from mcp._proxy import tool_rows
from mcp._results import Record, to_records

_DETAILS = ("summary", "full", "stub")
_SCOPES = ("run", "all")
_MAX_LIMIT = 50


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
    taken: set[str] = set()
    head = f"# mcp.servers.{owner.alias}, predefined as {owner.variable}: MCP server {owner.name!r}"
    imports = "from typing import Any, Literal, NotRequired, TypedDict"
    return "\n\n".join([f"{head}\n{imports}", *(tool.stub(taken) for tool in tools)]) + "\n"


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
    reply = _host.call_if_supported("tools.search", params)
    if reply is None:
        return [_row(tool, detail, score) for score, tool in _search_here(query)[:limit]]
    hits = reply.value if isinstance(reply.value, list) else []
    return [_found(hit, detail) for hit in hits if isinstance(hit, dict)]


def _found(hit: dict[str, Any], detail: str) -> Record:
    server = Server(str(hit.get("server")), str(hit.get("serverAlias")), "")
    alias = reachable(str(hit.get("toolAlias") or hit.get("tool")))
    tool = Tool(server, alias, {**hit, "name": str(hit.get("tool"))})
    return _row(tool, detail, hit.get("score"))


def _search_here(query: str) -> list[tuple[float, Tool]]:
    """Return the tools of this run's servers that share words with `query`, best first."""
    wanted = set(_words(query))
    hits = []
    for name in catalog.names:
        try:
            tools = catalog.tools(name)
        except MCPError as error:
            print(f"search skips {name!r}: {error}", file=sys.stderr)
            continue
        for tool in tools:
            in_name = wanted & set(_words(tool.name))
            in_text = wanted & set(_words(tool.description))
            if score := (2 * len(in_name) + len(in_text - in_name)) / (2 * len(wanted) or 1):
                hits.append((round(score, 3), tool))
    return sorted(hits, key=lambda hit: (-hit[0], hit[1].server.name, hit[1].name))


def _words(text: str) -> Iterable[str]:
    """Yield the words of a name or a sentence, in lower case and singular."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    for word in re.findall(r"[^\W_]+", spaced.lower()):
        yield word.removesuffix("s") if len(word) > 3 else word


def _one_of(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        hint = did_you_mean(str(value), choices, what="Choices")
        raise ValueError(f"{name} can't be {value!r}. {hint}")
