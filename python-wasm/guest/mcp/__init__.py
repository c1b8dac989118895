"""Call the tools of MCP servers from Python.

Each server is a predefined name ``mcp_<alias>``, an entry of ``mcp_servers``
and a module ``mcp.servers.<alias>``; ``mcp.runtime`` finds servers and tools:

    >>> runtime.discovered_servers()
    ('filesystem', 'github')
    >>> issue = await mcp_github.create_issue(repo="o/r", title="Bug")
    >>> issue.number
    7
"""

from typing import Any

from mcp import _modules, _saved, runtime, servers
from mcp._catalog import missing_attribute

__all__ = ["runtime", "servers"]

_modules.install()
_saved.install()


def __getattr__(name: str) -> Any:
    if name in runtime.__all__:
        raise AttributeError(f"module 'mcp' has no attribute {name!r}; write runtime.{name}")
    raise missing_attribute(__name__, name)
