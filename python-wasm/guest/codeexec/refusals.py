"""The sentences in which the sandbox says what it cannot do.

One line each: what there is not, and what to do instead.
"""

__all__: list[str] = []

NO_NETWORK = (
    "the sandbox has no network; call an MCP tool instead (see runtime.discovered_servers())"
)
NO_PROCESSES = (
    "the sandbox has no processes; call an MCP tool instead (see runtime.discovered_servers())"
)
NO_PARALLEL_PROCESSES = (
    "the sandbox has no processes; call the function directly, or use ThreadPoolExecutor, "
    "which runs each call at once"
)
NO_THREADS = "the sandbox has no threads; call the function directly, or use asyncio.create_task()"
NO_DESCRIPTORS = (
    "the sandbox has no descriptors to wait for; await an MCP tool call or asyncio.sleep() instead"
)
NO_SIGNALS = "the sandbox has no signals; use asyncio.timeout() to limit time"
NO_CTYPES = "the sandbox has no ctypes and no shared libraries; use pure Python or an MCP tool"
NO_DEBUGGER = "the sandbox has no terminal for a debugger; print what you want to see"
NO_PIPES = (
    "the sandbox has no processes to connect by a pipe; use asyncio.Queue(), or ThreadPoolExecutor "
    "in place of a Pool"
)
