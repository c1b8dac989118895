"""Calls through proxies, modules and `runtime.call_tool`."""

import ast
import asyncio
import copy
import gc
import inspect
import pickle
import pydoc
import types
import unittest
import warnings

from mcp_tests.fake_host import GuestTest, HostError, Reply, text, tool
from mcp import runtime

ISSUE = tool(
    "create_issue",
    {
        "repo": {"type": "string", "description": "owner/name"},
        "title": {"type": "string"},
        "body": {"type": ["string", "null"]},
    },
    ["repo", "title"],
    description="Create an issue.",
    answer=lambda arguments: {"content": [], "structuredContent": {"id": 7, "got": arguments}},
)


class CallsTest(GuestTest):
    def setUp(self):
        super().setUp()
        self.host.add(
            "github",
            ISSUE,
            tool("get-sum", {"a": {}, "b": {}}, ["a", "b"], answer=text("3")),
            tool("fail", {}, answer={"content": [{"type": "text", "text": "no"}], "isError": True}),
            tool(
                "slow",
                {"seconds": {}},
                answer=HostError("CallTimeout", "github.slow: took over 1 s", {"server": "github"}),
            ),
            tool("own_timeout", {"timeout": {}}),
            tool("free", description="Takes anything."),
            tool(
                "wrapped",
                {},
                outputSchema={"type": "object", "properties": {"result": {"type": "integer"}}},
                answer={"content": [], "structuredContent": {"result": 5}},
            ),
            tool(
                "shot",
                {},
                answer=Reply(
                    {"content": [{"type": "image", "attachment": 0, "mimeType": "image/png"}]},
                    [b"png"],
                ),
            ),
        )
        self.host.add("broken", tool("x", {}), down="exited with 1")
        self.github = self.run_with()["mcp_github"]

    def call(self, coroutine):
        return asyncio.run(_awaited(coroutine))

    # Calling

    def test_a_call(self):
        issue = self.call(self.github.create_issue(repo="o/r", title="Bug"))
        self.assertEqual((issue.id, issue.got), (7, {"repo": "o/r", "title": "Bug"}))
        self.assertEqual(
            self.host.asked("tools.call"),
            [
                {
                    "server": "github",
                    "tool": "create_issue",
                    "arguments": {"repo": "o/r", "title": "Bug"},
                    "timeout": None,
                },
            ],
        )

    def test_every_way_to_a_tool(self):
        tests = [
            "mcp_github.get_sum(a=1, b=2)",
            "mcp_github.get_sum(1, 2)",
            "mcp_github['get-sum'](a=1, b=2)",
            "mcp_github['get_sum'](a=1, b=2)",
            "mcp_servers['github'].get_sum(a=1, b=2)",
            "mcp.servers.github.get_sum(a=1, b=2)",
            "runtime.call_tool('github', 'get-sum', {'a': 1, 'b': 2})",
            "runtime.call_tool('github', 'get_sum', {'a': 1, 'b': 2})",
        ]
        for source in tests:
            with self.subTest(source):
                self.assertEqual(self.execute(f"result = await {source}"), "3")
                sent = self.host.asked("tools.call")[-1]
                self.assertEqual((sent["tool"], sent["arguments"]), ("get-sum", {"a": 1, "b": 2}))

    def test_it_is_a_real_coroutine_that_names_the_call(self):
        coroutine = self.github.create_issue(repo="o/r", title="x")
        self.assertIs(type(coroutine), types.CoroutineType)
        self.assertEqual(coroutine.__qualname__, "mcp_github.create_issue")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del coroutine
            runtime.call_tool("github", "free")
            self.github.free.raw()
            gc.collect()
        names = ["mcp_github.create_issue", "mcp_github.free", "mcp_github.free.raw"]
        self.assertEqual(len(caught), len(names))
        for warning, name in zip(caught, names, strict=True):
            # The sandbox goes on with what to write instead.
            self.assertIn(f"coroutine '{name}' was never awaited", str(warning.message))

    def test_nothing_is_sent_before_it_is_awaited(self):
        self.github.create_issue(repo="o/r", title="x").close()
        self.assertEqual(self.host.asked("tools.call"), [])

    def test_wrong_arguments_fail_at_the_call(self):
        tests = [
            (
                "unknown",
                {"repo": "o/r", "titel": "x"},
                "unexpected argument 'titel'; did you mean 'title'?",
            ),
            ("missing", {"repo": "o/r"}, "missing the required argument 'title'"),
            ("unsendable", {"repo": b"o/r", "title": "x"}, "repo is bytes"),
        ]
        for name, arguments, want in tests:
            for way in (
                lambda: self.github.create_issue(**arguments),
                lambda: self.github.create_issue.raw(**arguments),
                lambda: runtime.call_tool("github", "create_issue", arguments),
            ):
                with self.subTest(name), self.assertRaises(TypeError) as caught:
                    way()
                self.assertIn(want, str(caught.exception))
                self.assertIn("mcp_github.create_issue", str(caught.exception))
        self.assertEqual(self.host.asked("tools.call"), [])

    def test_free_form_arguments(self):
        self.call(self.github.free(x=1, **{"a-b": 2}))
        self.assertEqual(self.sent(), {"x": 1, "a-b": 2})

    def test_timeout(self):
        def sent(coroutine):
            self.call(coroutine)
            request = self.host.asked("tools.call")[-1]
            return request["timeout"], request["arguments"]

        self.assertEqual(sent(self.github.free(x=1, timeout=2.5)), (2.5, {"x": 1}))
        self.assertEqual(sent(self.github.free(timeout=None)), (None, {}))
        self.assertEqual(sent(self.github.free(timeout=float("inf"))), (None, {}))
        self.assertEqual(sent(self.github.own_timeout(timeout=9)), (None, {"timeout": 9}))
        self.assertEqual(sent(self.github["own_timeout"].raw(timeout=9)), (None, {"timeout": 9}))
        own = runtime.call_tool("github", "own_timeout", {"timeout": 9}, timeout=1)
        self.assertEqual(sent(own), (1, {"timeout": 9}))

    def test_bad_timeout(self):
        for timeout, error in [
            (0, ValueError),
            (-1, ValueError),
            (float("nan"), ValueError),
            ("5", TypeError),
            (True, TypeError),
        ]:
            with self.subTest(timeout=timeout), self.assertRaisesRegex(error, "timeout"):
                self.github.free(timeout=timeout)

    def test_raw(self):
        want = {"content": [text("no")["content"][0]], "isError": True}
        self.assertEqual(self.call(self.github.fail.raw()), want)
        self.assertEqual(self.call(runtime.call_tool("github", "fail", raw=True)), want)
        self.assertEqual(self.call(self.github.shot.raw()).content[0].data, "cG5n")

    def test_results(self):
        self.assertEqual(self.call(self.github.wrapped()), 5)
        self.assertEqual(self.call(self.github.shot()), runtime.Image(b"png", "image/png"))

    def test_concurrent_calls(self):
        async def main():
            self.host.pause = asyncio.Event()
            calls = [self.github.create_issue(repo="r", title=str(n)) for n in range(10)]
            asyncio.get_running_loop().call_later(0.001, self.host.pause.set)
            return await asyncio.gather(*calls)

        self.assertEqual(
            [issue.got.title for issue in asyncio.run(main())],
            [str(n) for n in range(10)],
        )

    def test_cancelling_reaches_the_host_call(self):
        async def main():
            self.host.pause = asyncio.Event()
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await self.github.free()

        asyncio.run(main())
        self.assertEqual(self.host.asked("tools.call"), [])

    # Errors

    def test_errors_are_catchable_as_one(self):
        tests = [
            ("result with isError", "mcp_github.fail()", "ToolError", "github.fail: no"),
            ("timeout", "mcp_github.slow()", "CallTimeout", "github.slow: took over 1 s"),
            ("server that can't start", "mcp_broken.x()", "ServerUnavailable", "exited with 1"),
            (
                "server that can't start, by name",
                "runtime.call_tool('broken', 'x')",
                "ServerUnavailable",
                "exited with 1",
            ),
            (
                "unknown tool",
                "mcp_github.create_isue()",
                "MCPError",
                "Did you mean 'create_issue'?",
            ),
            (
                "unknown tool by item",
                "mcp_github['create-isue']()",
                "MCPError",
                "Did you mean 'create_issue'?",
            ),
            (
                "unknown tool by name",
                "runtime.call_tool('github', 'create_isue')",
                "MCPError",
                "Did you mean 'create_issue'?",
            ),
            (
                "unknown server",
                "mcp_servers['githb'].x()",
                "MCPError",
                "Server 'githb' is not available. Did you mean 'github'?",
            ),
            (
                "unknown server by name",
                "runtime.call_tool('githb', 'x')",
                "MCPError",
                "Did you mean 'github'?",
            ),
        ]
        for name, source, kind, message in tests:
            with self.subTest(name):
                attempt = f"try:\n    await {source}"
                got = self.execute(f"{attempt}\nexcept runtime.MCPError as e:\n    result = e")
                self.assertEqual(type(got).__name__, kind)
                self.assertIn(message, str(got))
                self.assertIsNotNone(got.server)
                self.assertIsNone(got.__cause__)
                self.assertTrue(got.__suppress_context__ or got.__context__ is None)

    def test_a_broken_server_fails_only_its_own_call(self):
        async def main():
            return await asyncio.gather(
                self.github.free(),
                self.namespace["mcp_broken"].x(),
                runtime.call_tool("broken", "x"),
                runtime.call_tool("github", "free"),
                return_exceptions=True,
            )

        ok, one, two, also_ok = asyncio.run(main())
        self.assertEqual((ok, also_ok), ("ok", "ok"))
        self.assertIsInstance(one, runtime.ServerUnavailable)
        self.assertIsInstance(two, runtime.ServerUnavailable)

    def test_a_result_that_cannot_be_read(self):
        self.host.add("odd", tool("big", {}, answer=ValueError("int of 5,000 digits")))
        self.run_with()
        with self.assertRaisesRegex(runtime.MCPError, "odd.big: the result can't be read"):
            self.call(self.namespace["mcp_odd"].big())

    def test_a_request_that_is_too_large(self):
        self.host.add("odd", tool("big", {}, answer=OverflowError("over 16 MiB")))
        self.run_with()
        with self.assertRaisesRegex(runtime.LimitExceeded, "odd.big: .* send less"):
            self.call(self.namespace["mcp_odd"].big())

    def test_too_many_calls_in_flight(self):
        self.host.add(
            "odd", tool("x", {}, answer=RuntimeError("submit: too many host calls in flight"))
        )
        self.run_with()
        with self.assertRaisesRegex(runtime.LimitExceeded, "odd.x: .*too many"):
            self.call(self.namespace["mcp_odd"].x())

    def test_other_errors_of_the_interpreter_pass(self):
        self.host.add("odd", tool("x", {}, answer=RuntimeError("Event loop is closed")))
        self.run_with()
        with self.assertRaises(RuntimeError) as caught:
            self.call(self.namespace["mcp_odd"].x())
        self.assertIs(type(caught.exception), RuntimeError)

    def test_bad_names_are_type_errors(self):
        for way in (lambda: runtime.call_tool(5, "x"), lambda: runtime.call_tool("github", 5),
                    lambda: runtime.call_tool("github", "free", [1]), lambda: self.github[5]):
            with self.assertRaises(TypeError):
                way()

    # Servers as objects

    def test_tools_are_fetched_once_at_first_use(self):
        self.assertEqual(self.host.requests, [])
        repr(self.github), self.github.list_tools, hasattr(self.github, "__iter__")
        self.assertFalse(hasattr(self.github, "_repr_html_"))
        self.assertFalse(hasattr(self.github, "__length_hint__"))
        copy.copy(self.github), copy.deepcopy(self.github)
        inspect.isawaitable(self.github), callable(self.github)
        self.assertEqual(self.host.requests, [])
        self.github.free, self.github.create_issue, self.github["get-sum"], dir(self.github)
        self.assertEqual(self.host.requests, [("tools.list", {"server": "github"})])

    def test_unknown_attribute(self):
        self.assertFalse(hasattr(self.github, "nope"))
        self.assertEqual(getattr(self.github, "nope", 5), 5)
        self.assertNotIn("nope", self.github)
        self.assertIn("get-sum", self.github)

    def test_a_tool_that_was_added_meanwhile(self):
        self.github.free
        self.host.servers["github"]["listed"].append(tool("brand-new", {}))
        self.assertEqual(self.call(self.github.brand_new()), "ok")

    def test_a_later_run_asks_again(self):
        self.github.free
        listed = self.host.servers["github"]["listed"]
        listed[:] = [tool("free", {"must": {}}, ["must"])]
        self.run_with()
        with self.assertRaisesRegex(TypeError, "'must'"):
            self.github.free()
        self.assertFalse(hasattr(self.github, "fail"))

    def test_dir_iteration_and_repr(self):
        self.assertEqual(
            dir(self.github),
            [
                "create_issue",
                "fail",
                "free",
                "get_sum",
                "list_tools",
                "own_timeout",
                "shot",
                "slow",
                "wrapped",
            ],
        )
        self.assertEqual(list(self.github)[:2], ["create_issue", "get-sum"])
        self.assertEqual(repr(self.github), "<mcp_github: MCP server 'github'>")
        self.assertEqual(
            repr(self.github.get_sum), "<tool mcp_github.get_sum of MCP server 'github'>"
        )
        self.assertEqual(dir(self.namespace["mcp_broken"]), ["list_tools"])
        self.assertTrue(self.github)

    def test_names_that_meet_attributes_of_the_proxy(self):
        self.host.add(
            "odd",
            *(
                tool(name, {}, answer=text(name)) for name in (
                    "list_tools",
                    "list_tools_",
                    "__class__",
                    "_codeexec_server",
                    "3d!",
                    "mro",
                    "keys",
                )
            ),
        )
        odd = self.run_with()["mcp_odd"]
        self.assertEqual(
            [t.alias for t in odd.list_tools()],
            [
                "list_tools__",
                "list_tools_",
                "__class___",
                "_codeexec_server_",
                "3d!",
                "mro",
                "keys",
            ],
        )
        for name in odd:
            with self.subTest(name):
                self.assertEqual(self.call(odd[name]()), name)
                self.assertEqual(self.call(runtime.call_tool("odd", name)), name)
                alias = runtime.query_tool_docs("odd", name)[0].toolAlias
                self.assertEqual(self.call(getattr(odd, alias)()), name)

    def test_what_is_advertised_can_be_called(self):
        self.host.add(
            "odd",
            *(
                tool(name, {"from": {}}) for name in (
                    "get-sum",
                    "list_tools",
                    "import",
                    "a.b",
                    "a_b",
                )
            ),
        )
        self.host.servers["odd"]["listed"][2]["alias"] = "import_"
        self.host.servers["odd"]["listed"][3]["alias"] = "a_b_2"
        odd = self.run_with()["mcp_odd"]
        advertised = {row.toolAlias for row in runtime.query_tool_docs("odd")}
        self.assertEqual(advertised, {*dir(odd)} - {"list_tools"})
        stubs = [n.name for n in ast.parse(runtime.stubs("odd")).body if hasattr(n, "args")]
        self.assertEqual(advertised, {*stubs})
        for alias in advertised:
            with self.subTest(alias):
                self.assertEqual(self.execute(f"result = await mcp_odd.{alias}(from_=1)"), "ok")
                self.assertEqual(self.sent(), {"from": 1})

    def test_signature_and_help(self):
        create_issue = self.github.create_issue
        self.assertEqual(
            str(
                inspect.signature(create_issue),
            ), "(repo: str, title: str, body: str | None = ...) -> Any"
        )
        self.assertEqual(create_issue.__name__, "create_issue")
        self.assertTrue(inspect.iscoroutinefunction(create_issue))
        shown = pydoc.plain(pydoc.render_doc(create_issue))
        for part in (
            "create_issue(repo: str, title: str",
            "Create an issue.",
            "repo: owner/name",
            "await mcp_github.create_issue(...)",
            "`timeout=`",
        ):
            self.assertIn(part, shown)
        self.assertNotIn("`timeout=`", self.github.own_timeout.__doc__)
        shown = pydoc.plain(pydoc.render_doc(self.github))
        for part in ("The server github.", "get_sum(a: Any, b: Any) -> Any"):
            self.assertIn(part, shown)
        self.assertIn("exited with 1", pydoc.render_doc(self.namespace["mcp_broken"]))
        self.assertIn("exited with 1", pydoc.render_doc(self.namespace["mcp_broken"].x))

    def test_proxies_and_tools_can_be_pickled_and_compared(self):
        again = pickle.loads(pickle.dumps(self.github))
        self.assertEqual(repr(again), repr(self.github))
        self.assertEqual(len({again, self.github, self.namespace["mcp_servers"]["github"]}), 1)
        self.assertNotEqual(self.github, self.namespace["mcp_broken"])
        self.assertEqual(pickle.loads(pickle.dumps(self.github.free)), self.github.free)
        self.assertEqual(len({self.github.free, self.github["free"], self.github.fail}), 2)
        self.assertNotEqual(self.github.free, 5)

    def test_what_a_script_patches_stays_patched_for_it_only(self):
        self.addCleanup(setattr, runtime, "call_tool", runtime.call_tool)
        runtime.call_tool = None
        self.assertEqual(self.call(self.github.free()), "ok")

    def test_mcp_servers_is_a_mapping(self):
        servers = self.namespace["mcp_servers"]
        self.assertEqual(list(servers), ["broken", "github"])
        self.assertEqual((len(servers), "github" in servers, "x" in servers), (2, True, False))
        self.assertIsNone(servers.get("x"))
        self.assertEqual(repr(servers), "<MCP servers: broken, github>")
        self.assertEqual([repr(server) for server in servers.values()][1], repr(self.github))


async def _awaited(coroutine):
    return await coroutine


if __name__ == "__main__":
    unittest.main()
