"""Discovery: the functions of `mcp.runtime`."""

import ast
import asyncio
import collections.abc
import contextlib
import inspect
import io
import json
import pydoc
import unittest

from mcp_tests.fake_host import GuestTest, tool
from mcp import runtime


class DiscoveryTest(GuestTest):
    def setUp(self):
        super().setUp()
        self.host.add(
            "calendar",
            tool(
                "list_calendar_events",
                {"from": {"type": "string", "format": "date"}},
                description="Lists events.",
            ),
            tool(
                "create-event",
                {"title": {"type": "string"}},
                ["title"],
                description="Adds an event.",
                annotations={"readOnlyHint": False},
            ),
            tools=2,
            status="ready",
        )
        self.host.add("files", tool("readFile", {"path": {}}), cwd="/data")
        self.host.add("broken", down="no such command", status="failed", error="no such command")
        self.run_with()

    # Servers

    def test_discovered_servers(self):
        self.assertEqual(runtime.discovered_servers(), ("broken", "calendar", "files"))
        self.assertEqual(
            runtime.discovered_servers(detailed=True),
            (
                {
                    "name": "broken",
                    "alias": "broken",
                    "description": "The server broken.",
                    "status": "failed",
                    "error": "no such command",
                },
                {
                    "name": "calendar",
                    "alias": "calendar",
                    "description": "The server calendar.",
                    "status": "ready",
                    "tools": 2,
                },
                {
                    "name": "files",
                    "alias": "files",
                    "description": "The server files.",
                    "status": "idle",
                },
            ),
        )
        self.assertEqual(self.host.asked("tools.list"), [])

    def test_servers_of_the_run(self):
        self.run_with("files", restricted=True)
        self.assertEqual(runtime.list_servers(), ("files",))
        self.assertEqual(runtime.list_servers_sync(), ("files",))
        self.assertIs(type(runtime.list_servers_sync()), tuple)
        self.assertEqual(runtime.discovered_servers(), ("broken", "calendar", "files"))

    def test_describe_server(self):
        self.assertEqual(
            runtime.describe_server("files"),
            {
                "name": "files",
                "alias": "files",
                "description": "The server files.",
                "status": "idle",
                "cwd": "/data",
                "transport": "stdio",
                "tools": [
                    {
                        "name": "readFile",
                        "alias": "readFile",
                        "description": "",
                        "input_schema": {
                            "type": "object",
                            "properties": {"path": {}},
                            "required": [],
                        },
                    },
                ],
            },
        )
        broken = runtime.describe_server("broken")
        self.assertEqual((broken.status, broken.tools), ("failed", []))
        self.assertIn("no such command", broken.error)

    def test_loaded_metadata_starts_only_what_was_asked_for(self):
        got = runtime.list_loaded_server_metadata()
        self.assertEqual(
            [(server.name, len(server.tools)) for server in got],
            [("broken", 0), ("calendar", 2), ("files", 0)],
        )
        self.assertEqual(self.host.asked("tools.list"), [{"server": "calendar"}])
        self.run_with("files", restricted=True)
        self.assertEqual(
            [len(server.tools) for server in runtime.list_loaded_server_metadata()],
            [1],
        )

    # Tools

    def test_list_tools(self):
        for tools in (
            runtime.list_tools("calendar"),
            runtime.list_tools_sync("calendar"),
            self.namespace["mcp_calendar"].list_tools(),
        ):
            self.assertEqual(
                [set(t) for t in tools],
                [{"name", "alias", "description", "input_schema"}] * 2,
            )
            self.assertEqual(
                [(t.name, t.alias) for t in tools],
                [
                    ("list_calendar_events", "list_calendar_events"),
                    ("create-event", "create_event"),
                ],
            )
        json.dumps(runtime.list_tools("calendar"))

    def test_changing_an_answer_changes_nothing_else(self):
        runtime.list_tools("calendar")[1].input_schema["required"].clear()
        runtime.query_tool_docs("calendar", detail="full")[1].inputSchema.clear()
        self.assertEqual(runtime.list_tools("calendar")[1].input_schema["required"], ["title"])

    def test_query_tool_docs(self):
        summary = {
            "server": "calendar",
            "serverAlias": "calendar",
            "tool": "create-event",
            "toolAlias": "create_event",
            "description": "Adds an event.",
        }
        schema = {
            "type": "object",
            "properties": {"title": {"type": "string"}},
            "required": ["title"],
        }
        stub = 'async def create_event(title: str) -> Any:\n    """Adds an event."""'
        tests = [
            ("summary", summary),
            (
                "full",
                summary | {
                    "inputSchema": schema,
                    "outputSchema": None,
                    "annotations": {"readOnlyHint": False},
                },
            ),
            ("stub", summary | {"stub": stub}),
        ]
        for detail, want in tests:
            with self.subTest(detail):
                self.assertEqual(runtime.query_tool_docs("calendar", detail=detail)[1], want)
                for name in ("create-event", "create_event"):
                    self.assertEqual(runtime.query_tool_docs("calendar", name, detail), [want])
                    self.assertEqual(runtime.query_tool_docs_sync("calendar", name, detail), [want])
        self.assertEqual(len(runtime.query_tool_docs("calendar")), 2)

    def test_unknown_names(self):
        tests = [
            (lambda: runtime.query_tool_docs("calender"), "Did you mean 'calendar'?"),
            (
                lambda: runtime.query_tool_docs("calendar", "createEvents"),
                "Did you mean 'create_event'",
            ),
            (lambda: runtime.list_tools("calender"), "Did you mean 'calendar'?"),
            (lambda: runtime.describe_server("calender"), "Did you mean 'calendar'?"),
            (lambda: runtime.stubs("zzz"), "Servers: broken, calendar, files"),
        ]
        for ask, want in tests:
            with self.subTest(want), self.assertRaises(runtime.MCPError) as caught:
                ask()
            self.assertIn(want, str(caught.exception))

    def test_bad_detail(self):
        with self.assertRaisesRegex(ValueError, "detail can't be 'stubs'. Did you mean 'stub'?"):
            runtime.query_tool_docs("calendar", detail="stubs")

    def test_stubs(self):
        source = runtime.stubs("calendar")
        functions = [
            node.name for node in ast.parse(source).body if isinstance(node, ast.AsyncFunctionDef)
        ]
        self.assertEqual(functions, ["list_calendar_events", "create_event"])
        self.assertIn("async def list_calendar_events(from_: str = ...) -> Any:", source)
        self.assertIn("mcp_calendar", source)

    def test_types_of_stubs_have_names_of_their_own(self):
        def nested(key):
            return {"x": {"properties": {key: {}}}}

        self.host.add(
            "odd",
            *(tool("a_b", nested("a")), tool("aB", nested("b")), tool("A_B", nested("c"))),
            tool("other", {"y": {"type": "array", "items": {"properties": {"p": {}}}}}),
            tool("Y", {"y": {"properties": {"q": {}}}}),
        )
        self.run_with()
        source = runtime.stubs("odd")
        tree = ast.parse(source)
        names = [getattr(node, "name", None) for node in tree.body]
        self.assertEqual(len(set(names)), len(names), source)
        for function, hint in {"a_b": "X", "aB": "ABX", "A_B": "ABX2", "Y": "YY"}.items():
            self.assertRegex(source, rf"def {function}\([xy]: {hint} =")

    def test_equal_types_of_stubs_are_one(self):
        label = {"type": "object", "properties": {"name": {"type": "string"}}}
        issue = {
            "type": "object",
            "properties": {"labels": {"type": "array", "items": label}, "id": {}},
        }
        self.host.add(
            "hub",
            tool("get_issue", {}, outputSchema=issue),
            tool("list_issues", {}, outputSchema={"type": "array", "items": issue}),
            tool("add_label", {"label": label}, outputSchema=label),
        )
        self.run_with()
        self.assertEqual(
            runtime.stubs("hub").partition("\n\n")[2],
            "class Label(TypedDict, total=False):\n    name: str\n"
            "class GetIssueResult(TypedDict, total=False):\n    labels: list[Label]\n    id: Any\n"
            "async def get_issue() -> GetIssueResult: ...\n\n"
            "async def list_issues() -> list[GetIssueResult]: ...\n\n"
            "async def add_label(label: Label = ...) -> Label: ...\n",
        )

    # Awaiting

    def test_with_and_without_await(self):
        self.host.search = {"tools": []}
        asks = [
            lambda: runtime.list_servers(),
            lambda: runtime.discovered_servers(),
            lambda: runtime.discovered_servers(detailed=True),
            lambda: runtime.list_tools("calendar"),
            lambda: runtime.query_tool_docs("calendar"),
            lambda: runtime.search_tool_docs("event"),
            lambda: runtime.describe_server("files"),
            lambda: runtime.list_loaded_server_metadata(),
            lambda: self.namespace["mcp_calendar"].list_tools(),
        ]

        async def main():
            for ask in asks:
                plain = ask()
                self.assertEqual(await ask(), plain)
                self.assertFalse(inspect.isawaitable(await ask()))
                self.assertIsInstance(plain, (list, tuple, dict))
                self.assertEqual(await asyncio.create_task(ask()), plain)
                self.assertEqual(await asyncio.wait_for(ask(), 1), plain)
                self.assertEqual(hash(plain), hash(plain))
                json.dumps(plain)
            self.assertEqual(
                await asyncio.gather(*(ask() for ask in asks)),
                [ask() for ask in asks],
            )
            async with asyncio.TaskGroup() as group:
                group.create_task(runtime.describe_server("files"))
            same = runtime.list_tools("files")
            self.assertEqual(await asyncio.gather(same, same), [same, same])
            cancelled = asyncio.ensure_future(runtime.list_servers())
            cancelled.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await cancelled

        asyncio.run(main())
        self.assertEqual(asyncio.run(runtime.list_servers()), runtime.list_servers_sync())

    def test_tasks_accept_the_answers(self):
        self.assertIsInstance(runtime.list_servers(), collections.abc.Coroutine)

    # Search

    def test_search_by_the_host(self):
        self.host.search = {"tools": [
            {
                "server": "calendar",
                "serverAlias": "calendar",
                "tool": "create-event",
                "toolAlias": "create_event",
                "description": "Adds.",
                "score": 0.9,
                "inputSchema": {"properties": {"n": {"type": "integer"}}},
            },
        ]}
        summary = {
            "server": "calendar",
            "serverAlias": "calendar",
            "tool": "create-event",
            "toolAlias": "create_event",
            "description": "Adds.",
            "score": 0.9,
        }
        self.assertEqual(runtime.search_tool_docs("event"), [summary])
        self.assertEqual(
            self.host.asked("tools.search"),
            [{"query": "event", "limit": 5, "servers": None, "cached": False}],
        )
        self.assertEqual(
            runtime.search_tool_docs("event", detail="stub")[0]["stub"],
            'async def create_event(n: int = ...) -> Any:\n    """Adds."""',
        )
        self.assertEqual(
            runtime.search_tool_docs_sync("event", detail="full")[0],
            summary | {
                "inputSchema": {"properties": {"n": {"type": "integer"}}},
                "outputSchema": None,
                "annotations": None,
            },
        )
        self.assertTrue(self.host.asked("tools.search")[-1]["cached"])

    def test_scope_of_a_search(self):
        self.host.search = {"tools": []}
        self.run_with("files", restricted=True)
        runtime.search_tool_docs("x")
        runtime.search_tool_docs("x", scope="all")
        self.assertEqual(
            [asked["servers"] for asked in self.host.asked("tools.search")],
            [["files"], None],
        )

    def test_limit_of_a_search(self):
        self.host.search = {"tools": []}
        runtime.search_tool_docs("x", limit=500)
        self.assertEqual(self.host.asked("tools.search")[-1]["limit"], 50)
        for limit, error in [
            (0, ValueError),
            (-1, ValueError),
            ("5", TypeError),
            (True, TypeError),
            (2.0, TypeError),
        ]:
            with self.subTest(limit=limit), self.assertRaisesRegex(error, "limit"):
                runtime.search_tool_docs("x", limit=limit)
        with self.assertRaises(TypeError):
            runtime.search_tool_docs(5)
        with self.assertRaises(ValueError):
            runtime.search_tool_docs("x", scope="every")

    def test_search_says_what_it_leaves_out(self):
        self.host.search = {
            "tools": [],
            "failed": [{"server": "broken", "error": "exit status 1: no token"}],
            "unseen": ["calendar", "files"],
        }
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            self.assertEqual(runtime.search_tool_docs("event"), [])
        self.assertEqual(
            stderr.getvalue().splitlines(),
            [
                "search leaves out 'broken': exit status 1: no token",
                "search leaves out 'calendar', 'files': "
                "never started so far; search_tool_docs starts them",
            ],
        )

    # The module

    def test_capability_summary(self):
        self.assertEqual(runtime.capability_summary(), "manual")

    def test_every_public_function_has_help_with_an_example(self):
        for name in runtime.__all__:
            thing = getattr(runtime, name)
            with self.subTest(name):
                self.assertTrue(inspect.getdoc(thing))
                if inspect.isfunction(thing):
                    self.assertTrue(
                        any(
                            f"{name}(" in line for line in thing.__doc__.splitlines()[1:]
                        ) or "runtime." in thing.__doc__
                    )
                    self.assertTrue(
                        all(
                            p.annotation is not p.empty for p in inspect.signature(
                                thing,
                            ).parameters.values()
                        )
                    )
        self.assertIn("query_tool_docs", pydoc.render_doc(runtime))

    def test_errors_of_the_host_are_mcp_errors(self):
        with self.assertRaises(runtime.ServerUnavailable) as caught:
            runtime.list_tools("broken")
        self.assertEqual(caught.exception.server, "broken")


if __name__ == "__main__":
    unittest.main()
