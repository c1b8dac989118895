"""A stand-in for `codeexec.host`, to be imported before anything of `mcp`.

`Host` answers from plain dicts and keeps the requests it got.
"""

import asyncio
import json
import sys
from types import ModuleType
from typing import Any, NamedTuple
import unittest


class Reply(NamedTuple):
    value: Any
    attachments: list[bytes]


class HostError(RuntimeError):
    def __init__(self, kind: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.data = data


class Host:
    """Servers by name: their tools, and what each tool answers."""

    def __init__(self) -> None:
        self.servers: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.search: Any = {"tools": []}
        self.capabilities = "manual"
        self.pause: asyncio.Event | None = None
        self.memory: dict[str, dict[str, Any]] = {}  # records, or an "error" each
        self.shown: list[tuple[dict[str, Any], list[bytes]]] = []
        self.attachments: Any = ()  # of the last request
        self.execution: dict[str, str] | None = None
        self.missing = ""  # glyphs of the font of charts
        self.conflicts: list[Any] = []  # what others save before the next commits
        self.tools = ""  # the file of saved tools
        self.other_tools: list[str] = []  # what others write before the next writes

    def add(self, name: str, *tools: dict[str, Any], alias: str | None = None, **info: Any) -> None:
        """Configure a server; a tool is its definition, with its answer under "answer".

        Its tools of long ago, which the host remembers, may be given as `known`.
        """
        self.servers[name] = {
            "name": name,
            "alias": alias or name.replace("-", "_"),
            "description": f"The server {name}.",
            "status": "idle",
            "transport": "stdio",
            "cwd": None,
            "listed": list(tools),
            **info,
        }

    def env(self, *names: str, restricted: bool = False) -> dict[str, Any]:
        """Return the env of a run: all servers, or those named."""
        chosen = [self.servers[name] for name in sorted(names or self.servers)]
        keys = ("name", "alias", "description")
        return {
            "servers": [{key: server[key] for key in keys} for server in chosen],
            "restricted": restricted,
            "saved": str(hash(self.tools)) if self.tools else "",
            "limits": {"timeout": 30, "memory": 2**28, "calls": 1000, "in_flight": 16},
            "execution": self.execution,
        }

    def asked(self, op: str) -> list[dict[str, Any]]:
        """Return the parameters of all requests for `op` so far."""
        return [params for asked, params in self.requests if asked == op]

    def handle(self, op: str, params: dict[str, Any]) -> Reply:
        params = json.loads(json.dumps(params, allow_nan=False))  # as the wire would have it
        self.requests.append((op, params))
        match op:
            case "servers.list":
                return Reply([self._info(server) for server in self.servers.values()], [])
            case "tools.list":
                server = self._server(params["server"], params.get("refresh", False))
                listed = server["listed"] if params.get("refresh") else self._known(server)
                tools = [self._definition(tool) for tool in listed]
                return Reply({**self._info(server), "tools": tools}, [])
            case "tools.call":
                return self._called(params)
            case "tools.search":
                return Reply(self.search, [])
            case "text.capabilities":
                return Reply(self.capabilities, [])
            case "chart.render":
                return Reply({"missing": self.missing}, [b"\x89PNG\r\n\x1a\nchart"])
        if op.startswith("memory."):
            return Reply(json.loads(json.dumps(self._remember(op, params))), [])
        if op.startswith("saved."):
            return Reply(self._keep_tools(op, params), [])
        raise HostError("Unsupported", f"no operation {op}")

    def _keep_tools(self, op: str, params: dict[str, Any]) -> Any:
        if op == "saved.read":
            return {"text": self.tools, "revision": str(hash(self.tools)) if self.tools else ""}
        if self.other_tools:
            self.tools = self.other_tools.pop(0)
        if params["revision"] != (str(hash(self.tools)) if self.tools else ""):
            return False
        self.tools = params["text"]
        return True

    def _remember(self, op: str, params: dict[str, Any]) -> Any:
        key = params.get("key")
        record = self.memory.get(key)
        if key == "":
            raise HostError("ValueError", 'memory key "" is empty')
        if record and "error" in record and op in ("memory.get", "memory.attempt"):
            raise HostError("MemoryCorrupted", record["error"])
        match op:
            case "memory.get":
                return record
            case "memory.exists":
                return record is not None
            case "memory.attempt" if record is None:
                return {"revision": ""}
            case "memory.attempt":
                return {"value": record["value"], "revision": json.dumps(record)}
            case "memory.commit":
                if self.conflicts:
                    self.memory[key] = self._record(key, self.conflicts.pop(0), {})
                    return False
                metadata = record["metadata"] if record else {}
                self.memory[key] = self._record(key, params["value"], metadata)
                return True
            case "memory.save":
                kept = record.get("metadata", {}) if record else {}
                metadata = params.get("metadata", kept)
                self.memory[key] = self._record(key, params["value"], metadata)
                return None
            case "memory.delete":
                return self.memory.pop(key, None) is not None
            case "memory.list":
                return [
                    {"key": key, "size": 1}
                    | {name: record[name] for name in record if name != "value"}
                    for key, record in sorted(self.memory.items())
                ]
        raise HostError("Unsupported", f"no operation {op}")

    def _record(self, key: str, value: Any, metadata: Any) -> dict[str, Any]:
        times = {"created_at": 1.5, "updated_at": 2.5}
        return {"key": key, "value": value, "metadata": metadata, **times}

    def _info(self, server: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in server.items() if key not in ("listed", "known", "down")}

    def _known(self, server: dict[str, Any]) -> list[dict[str, Any]]:
        if "known" in server:
            return server["known"]
        return self._server(server["name"])["listed"]

    def _server(self, name: str, start: bool = True) -> dict[str, Any]:
        server = self.servers.get(name)
        if server is None:
            raise HostError("MCPError", f"Unknown server {name!r}", {"server": name})
        if start and (reason := server.get("down")):
            raise HostError("ServerUnavailable", f"server {name!r}: {reason}", {"server": name})
        return server

    def _definition(self, tool: dict[str, Any]) -> dict[str, Any]:
        alias = tool["name"].replace("-", "_")
        shown = {key: value for key, value in tool.items() if key != "answer"}
        return json.loads(json.dumps({"alias": alias, "inputSchema": {"type": "object"}, **shown}))

    def _called(self, params: dict[str, Any]) -> Reply:
        for tool in self._server(params["server"])["listed"]:
            if tool["name"] == params["tool"]:
                answer = tool.get("answer", text("ok"))
                answer = answer(params["arguments"]) if callable(answer) else answer
                if isinstance(answer, Exception):
                    raise answer
                return answer if isinstance(answer, Reply) else Reply(answer, [])
        raise HostError("MCPError", f"no tool {params['tool']!r}", {"server": params["server"]})


host = Host()


def _call(op: str, params: dict[str, Any], attachments: Any = ()) -> Reply:
    host.attachments = attachments
    return host.handle(op, params)


def _show(header: dict[str, Any], attachments: Any) -> None:
    host.shown.append((json.loads(json.dumps(header)), list(attachments)))


async def _call_async(op: str, params: dict[str, Any], attachments: Any = ()) -> Reply:
    await asyncio.sleep(0)
    if host.pause is not None:
        await host.pause.wait()
    return host.handle(op, params)


def _install() -> None:
    module = ModuleType("codeexec.host")
    module.HostError, module.Reply = HostError, Reply
    module.call, module.call_async, module.show = _call, _call_async, _show
    package = ModuleType("codeexec")
    package.__path__ = []
    package.host = module
    sys.modules["codeexec"], sys.modules["codeexec.host"] = package, module


_install()


def text(*texts: str) -> dict[str, Any]:
    """Return a tool result of text blocks."""
    return {"content": [{"type": "text", "text": each} for each in texts]}


def tool(name: str, properties: Any = None, required: Any = (), **more: Any) -> dict[str, Any]:
    """Return the definition of a tool."""
    schema: dict[str, Any] = {"type": "object"}
    if properties is not None:
        schema |= {"properties": properties, "required": list(required)}
    return {"name": name, "inputSchema": schema, **more}


class GuestTest(unittest.TestCase):
    """A test with a fresh host; `run_with` starts a run as `codeexec.run` does."""

    def setUp(self) -> None:
        host.__init__()
        self.host = host
        self.namespace: dict[str, Any] = {"__name__": "__main__"}

    def run_with(self, *names: str, restricted: bool = False) -> dict[str, Any]:
        from mcp import _session

        _session.end_run()
        _session.begin_run(host.env(*names, restricted=restricted), self.namespace)
        _session.enter_run(self.namespace)
        return self.namespace

    def execute(self, code: str) -> Any:
        """Run module-level code, in which `await` is allowed, and return its name `result`."""
        import ast

        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        value = eval(compile(code, "<cell 1>", "exec", flags), self.namespace)
        if value is not None:
            asyncio.run(value)
        return self.namespace.get("result")

    def sent(self) -> dict[str, Any]:
        """Return the arguments of the last call."""
        return host.asked("tools.call")[-1]["arguments"]
