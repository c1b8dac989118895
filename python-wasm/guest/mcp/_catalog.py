"""The servers that a run may use, and their tools.

The host is asked for the tools of a server when something first needs them in
a run. For a server that isn't running it answers what the server listed when
it last ran, which is good enough to read and to find tools. Before a script is
told that a tool or an argument doesn't exist, the server itself is asked: it
may have changed since, and may change at any time.
"""

__all__ = [
    "Catalog",
    "Server",
    "Tool",
    "catalog",
    "is_reserved",
    "missing_attribute",
    "reachable",
]

from collections.abc import Iterable, Mapping
from functools import cached_property
import sys
from typing import Any, NamedTuple

from mcp import _host
from mcp._errors import MCPError, not_found
from mcp._names import did_you_mean, listing
from mcp._schema import Signature, compile_tool
from mcp._types import Taken

# Attributes of a server's proxy, which no tool can be reached by; besides
# these, all names that begin and end with two underscores are Python's.
_RESERVED = frozenset({"list_tools", "_codeexec_server"})


class Server(NamedTuple):
    """A server that a run may use."""

    name: str
    alias: str
    description: str

    @property
    def variable(self) -> str:
        """The name that scripts know it by."""
        return f"mcp_{self.alias}"


class Tool:
    """A tool as its server describes it."""

    def __init__(self, server: Server, alias: str, definition: Mapping[str, Any]) -> None:
        self.server = server
        self.name: str = definition["name"]
        self.alias = alias
        self.description: str = _text(definition.get("description"))
        self.input_schema: Any = definition.get("inputSchema")
        self.output_schema: Any = definition.get("outputSchema")
        self.annotations: Any = definition.get("annotations")

    @property
    def call(self) -> str:
        """How scripts write a call of it, without the parentheses."""
        return f"{self.server.variable}.{self.alias}"

    @cached_property
    def signature(self) -> Signature:
        """Its parameters and types; made at first use."""
        return compile_tool(self.alias, self.input_schema, self.output_schema)

    def stub(self, taken: Taken | None = None) -> str:
        """Return its Python signature with types and docstring.

        `taken` collects the types, for stubs that stand side by side.
        """
        signature = self.signature
        if taken is not None:
            signature = compile_tool(self.alias, self.input_schema, self.output_schema, taken)
        return signature.stub(self.alias, self.description)


class _Tools:
    """The tools of one server at one time."""

    def __init__(self, server: Server, listed: list[Any]) -> None:
        self.server = server
        self.listed = listed
        self.by_name: dict[str, Tool] = {}
        self.by_alias: dict[str, Tool] = {}
        definitions = [d for d in listed if isinstance(d, dict) and isinstance(d.get("name"), str)]
        taken = {_text(d.get("alias")) or d["name"] for d in definitions}
        for definition in definitions:
            alias = _text(definition.get("alias")) or definition["name"]
            usable = reachable(alias, taken)
            taken.add(usable)
            tool = Tool(server, usable, definition)
            self.by_name[tool.name] = self.by_alias[usable] = tool

    def find(self, name: str) -> Tool | None:
        """Return the tool with this name or, if none has it, this alias."""
        return self.by_name.get(name) or self.by_alias.get(name)


def is_reserved(name: str) -> bool:
    """Say whether a proxy has, or may have, an attribute `name` of its own."""
    dunder = name.startswith("__") and name.endswith("__") and not name.endswith("___")
    return dunder or name in _RESERVED


def reachable(alias: str, taken: Iterable[str] = ()) -> str:
    """Return the attribute of a proxy that stands for the tool `alias`.

        >>> reachable("list_tools"), reachable("read")
        ('list_tools_', 'read')
    """
    if not is_reserved(alias):
        return alias
    alias += "_"
    while alias in taken:
        alias += "_"
    return alias


class Catalog:
    """The servers of the current run by name and alias, with what is known of their tools."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.restricted = False
        self._listed: Any = None
        self._by_name: dict[str, Server] = {}
        self._by_alias: dict[str, Server] = {}
        self._tools: dict[str, _Tools] = {}
        self._current: set[str] = set()
        self._renewed: set[str] = set()

    def begin(self, servers: list[Mapping[str, Any]], restricted: bool) -> bool:
        """Start a run that may use `servers`; say whether they are others than before.

        `restricted` means that the caller of the run named them.
        """
        self.restricted = restricted
        self._current.clear()
        self._renewed.clear()
        if servers == self._listed:
            return False
        self._listed = servers
        known = [
            Server(server["name"], server["alias"], _text(server.get("description")))
            for server in servers
        ]
        self.names = tuple(server.name for server in known)
        self._by_name = {server.name: server for server in known}
        self._by_alias = {server.alias: server for server in known}
        return True

    def __contains__(self, name: object) -> bool:
        return name in self._by_name or name in self._by_alias

    def servers(self) -> list[Server]:
        """Return the servers of this run, sorted by name."""
        return list(self._by_name.values())

    def server(self, name: str, tool: str | None = None) -> Server:
        """Return the server with this name or alias; MCPError if the run has none.

        `tool` is what the server is wanted for, for the error to say.
        """
        if not isinstance(name, str):
            raise TypeError(f"a server is named by a str, not {type(name).__name__}")
        server = self._by_name.get(name) or self._by_alias.get(name)
        if server is None:
            raise not_found(self._explain(name), server=name, tool=tool)
        return server

    def by_alias(self, alias: str) -> Server:
        """Return the server with this alias; MCPError if the run has none."""
        return self._by_alias.get(alias) or self.server(alias)

    def tools(self, name: str) -> list[Tool]:
        """Return the tools of a server, in its own order; starts it if it was never seen."""
        return list(self._fetched(self.server(name)).by_name.values())

    def tool(self, server_name: str, name: str) -> Tool:
        """Return the tool with this name or alias; MCPError if the server has none."""
        return self._find(server_name, name, _Tools.find)

    def tool_by_alias(self, server_name: str, alias: str) -> Tool:
        """Return the tool that is the attribute `alias` of its server's proxy."""
        return self._find(server_name, alias, lambda tools, alias: tools.by_alias.get(alias))

    def known_tool(self, server_name: str, alias: str) -> Tool | None:
        """Return a tool only if the tools of its server are known already."""
        if server_name in self._current:
            return self._tools[server_name].by_alias.get(alias)
        return None

    def _find(self, server_name: str, name: str, find: Any) -> Tool:
        if not isinstance(name, str):
            raise TypeError(f"a tool is named by a str, not {type(name).__name__}")
        server = self.server(server_name, name)
        tools = self._fetched(server, name)
        tool = find(tools, name)
        if tool is None:
            try:
                tools = self._fetched(server, name, renew=True)
                tool = find(tools, name)
            except MCPError:
                pass  # what is known has to do
        if tool is None:
            raise not_found(_no_tool(server, name, tools), server=server.name, tool=name)
        return tool

    def renewed(self, tool: Tool) -> Tool | None:
        """Return the tool as its server describes it now; None where that is nothing new."""
        if tool.server.name in self._renewed:
            return None
        try:
            newer = self._fetched(tool.server, tool.name, renew=True).by_name.get(tool.name)
        except MCPError:
            return None
        return None if newer is tool else newer

    def _fetched(self, server: Server, tool: str | None = None, renew: bool = False) -> _Tools:
        name = server.name
        if renew or name not in self._current:
            params = {"server": name, "refresh": True} if renew else {"server": name}
            if renew:
                self._renewed.add(name)
            reply = _host.call("tools.list", params, server=name, tool=tool)
            value = reply.value if isinstance(reply.value, dict) else {}
            listed = value.get("tools")
            listed = listed if isinstance(listed, list) else []
            known = self._tools.get(name)
            if known is None or known.server != server or known.listed != listed:
                # Else what has been worked out of the schemas stays good.
                self._tools[name] = _Tools(server, listed)
            self._current.add(name)
        return self._tools[name]

    def discovered(self) -> list[dict[str, Any]]:
        """Return what the host knows of all configured servers, sorted by name."""
        found = _host.call("servers.list", {}).value
        servers = [s for s in found or () if isinstance(s, dict) and isinstance(s.get("name"), str)]
        return sorted(servers, key=lambda server: server["name"])

    def _explain(self, name: str) -> str:
        """Return why there is no server `name`, and what may have been meant."""
        try:
            discovered = self.discovered()
        except MCPError:
            discovered = []
        for server in discovered:
            if name in (server["name"], server.get("alias")):
                if self.restricted:
                    why = f"(add it to `servers`). This run has: {listing(self.names) or 'none'}"
                else:
                    why = f"(it is {server.get('status') or 'not loaded'})"
                return f"Server {name!r} is not available {why}"
        names = [*self.names, *(server["name"] for server in discovered)]
        hint = did_you_mean(name, dict.fromkeys(names), what="Servers")
        return f"Server {name!r} is not available. {hint}"


def _no_tool(server: Server, name: str, tools: _Tools) -> str:
    if name == "call_tool":
        hint = f"Call one as {server.variable}.name(...) or runtime.call_tool({server.name!r}, ...)."
    else:
        hint = did_you_mean(name, tools.by_alias, what="Tools")
    return f"Server {server.name!r} has no tool {name!r}. {hint}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


catalog = Catalog()


def missing_attribute(owner: str, name: str) -> AttributeError:
    """Return the error for an attribute that the module `owner` doesn't have.

    For a server it says where that is:

        >>> missing_attribute("mcp", "github")
        AttributeError("module 'mcp' has no attribute 'github'; the MCP server 'github' is mcp_github")
    """
    text = f"module {owner!r} has no attribute {name!r}"
    if name in catalog:
        server = catalog.server(name)
        error = AttributeError(f"{text}; the MCP server {server.name!r} is {server.variable}")
        error.obj = None  # else the traceback would suggest something else
        return error
    return AttributeError(text, name=name, obj=sys.modules.get(owner))
