"""The names that every run finds defined. Called by `codeexec.run` around each run."""

__all__ = ["begin_run", "end_run", "enter_run", "explain_name", "show_value"]

from collections.abc import Mapping
import sys
from typing import Any

from mcp import _chart, _files, _memory, _modules, _saved, _show, _time, runtime
from mcp._catalog import catalog
from mcp._errors import MCPError
from mcp._proxy import Servers, ServerProxy
from mcp._show import show_value

_mcp = sys.modules["mcp"]
_servers = Servers()
_ABSENT = object()

# The modules whose functions are predefined.
_HELPERS = (_memory, _show, _files, _chart, _time)

# What begin_run defined last, by name. One interpreter has one session.
_defined: dict[str, Any] = {}


def begin_run(env: Mapping[str, Any], namespace: dict[str, Any]) -> None:
    """Define the names of a run in `namespace`, the globals of its session.

    `env` holds `servers`, a list of dicts `name, alias, description`, and
    `restricted`, whether the caller chose them. Names of servers that this run
    may not use go. A name that the session has bound to a value of its own
    (``runtime = 3.2``) is left alone, as any variable of the session.
    """
    _files.begin(env.get("execution"))
    changed = catalog.begin(env.get("servers") or [], bool(env.get("restricted")))
    if changed or not _defined:
        wanted = _names()
        _modules.forget_others()
    else:
        wanted = _defined
    for name, value in _defined.items():
        if name not in wanted and namespace.get(name, _ABSENT) is value:
            del namespace[name]
    for name, value in wanted.items():
        current = namespace.get(name, _ABSENT)
        if current is _ABSENT or current is _defined.get(name, _ABSENT):
            namespace[name] = value
    if wanted is not _defined:
        _defined.clear()
        _defined.update(wanted)
    _saved.begin(env.get("saved") or "", _defined)


def enter_run(namespace: dict[str, Any]) -> None:
    """Define the saved tools that the run mentions; within its time limit, for it runs their code."""
    _saved.define(namespace)


def end_run() -> None:
    """Do nothing: whatever a run leaves here, the next `begin_run` settles."""


def _names() -> dict[str, Any]:
    """Return the predefined names, with the proxies of before where they still fit."""
    names = {
        "mcp": _mcp,
        "runtime": runtime,
        "mcp_servers": _servers,
        "LOADED_MCP_SERVERS": catalog.names,
        **{name: getattr(module, name) for module in _HELPERS for name in module.__all__},
        **_saved.names(),
    }
    for server in catalog.servers():
        old = _defined.get(server.variable)
        fits = isinstance(old, ServerProxy) and old._codeexec_server == server
        names[server.variable] = old if fits else ServerProxy(server)
    return names


def explain_name(name: str) -> str | None:
    """Return why the global `name` isn't defined, if it looks like a server's; else None.

    For the message of an uncaught NameError:

        >>> explain_name("mcp_githb")
        "Server 'githb' is not available. Did you mean 'github'?"
        >>> explain_name("github")
        "The MCP server 'github' is mcp_github."
    """
    if name in catalog:
        server = catalog.server(name)
        return f"The MCP server {server.name!r} is {server.variable}."
    if _saved.is_tool(name):
        return f"The saved tool {name!r} is broken; list_saved_tools() says more."
    if name in runtime.__all__:
        return f"Write runtime.{name}."
    alias = name.removeprefix("mcp_")
    if alias == name or alias in catalog:
        return None
    try:
        catalog.server(alias)
    except MCPError as error:
        return str(error)
    return None
