"""Discovers a server, calls its tools side by side, and handles an error."""

import asyncio

import mcp.runtime as runtime

print("servers:", *runtime.discovered_servers())
sums = await asyncio.gather(*(mcp_stub.add(a=n, b=n) for n in range(10)))
print("ten calls, side by side:", *(s["sum"] for s in sums))
try:
    await mcp_stub.fail()
except runtime.ToolError as error:
    print("caught:", error)
