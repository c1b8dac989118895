"""One module per MCP server, with its tools as functions.

    from mcp.servers.github import create_issue
    issue = await create_issue(repo="o/r", title="Bug")

There is a module, under the server's alias, for each server that the run may
use. It comes into being when it is imported.
"""

# No names but special ones here: the others are servers.
from mcp._modules import package_dir as __dir__
from mcp._modules import package_getattr as __getattr__

__path__ = []  # no files
