"""The predefined names, restriction to some servers, and the modules of servers."""

import gc
import importlib
import sys
import time
import types
import unittest

from mcp_tests.fake_host import GuestTest, text, tool
import mcp
from mcp import _session, runtime


class NamesTest(GuestTest):
    def setUp(self):
        super().setUp()
        self.host.add("github", tool("create_issue", {}))
        self.host.add("my-files", tool("read", {}))

    def test_names_of_a_run(self):
        names = self.run_with()
        self.assertIs(names["mcp"], mcp)
        self.assertIs(names["runtime"], runtime)
        self.assertEqual(names["LOADED_MCP_SERVERS"], ("github", "my-files"))
        self.assertEqual(repr(names["mcp_my_files"]), "<mcp_my_files: MCP server 'my-files'>")
        self.assertEqual(list(names["mcp_servers"]), ["github", "my-files"])
        self.assertEqual(self.host.requests, [])

    def test_both_imports_of_runtime(self):
        self.run_with()
        self.execute("import mcp.runtime as a\nfrom mcp import runtime as b")
        self.execute("import mcp.runtime\nassert a is b is mcp.runtime")

    def test_a_run_with_fewer_servers(self):
        first = self.run_with()["mcp_github"]
        names = self.run_with("my-files", restricted=True)
        self.assertNotIn("mcp_github", names)
        self.assertEqual(names["LOADED_MCP_SERVERS"], ("my-files",))
        self.assertEqual(list(names["mcp_servers"]), ["my-files"])
        names = self.run_with()
        self.assertEqual(repr(names["mcp_github"]), repr(first))

    def test_the_same_servers_keep_their_proxies(self):
        first = self.run_with()["mcp_github"]
        self.assertIs(self.run_with()["mcp_github"], first)
        self.host.add("more", tool("x"))
        self.assertIs(self.run_with()["mcp_github"], first)

    def test_variables_of_the_session_are_left_alone(self):
        names = self.run_with()
        names["runtime"] = 3.2
        names["mcp_github"] = "mine"
        del names["mcp_servers"]
        self.run_with()
        self.assertEqual((names["runtime"], names["mcp_github"]), (3.2, "mine"))
        self.assertIn("mcp_servers", names)
        self.run_with("my-files", restricted=True)
        self.assertEqual(names["mcp_github"], "mine")

    def test_no_servers(self):
        self.host.servers.clear()
        names = self.run_with()
        self.assertEqual(names["LOADED_MCP_SERVERS"], ())
        self.assertEqual(len(names["mcp_servers"]), 0)
        _session.begin_run({}, {})

    def test_beginning_a_run_is_cheap(self):
        for number in range(10):
            self.host.add(f"server-{number}")
        environments = [self.host.env() for _ in range(100)]
        gc.disable()
        self.addCleanup(gc.enable)
        times = []
        for env in environments:
            start = time.perf_counter()
            _session.begin_run(env, self.namespace)
            times.append(time.perf_counter() - start)
        self.assertLess(min(times), 300e-6)  # it takes 6 µs on an idle machine


class RestrictionTest(GuestTest):
    def setUp(self):
        super().setUp()
        self.host.add("github", tool("create_issue", {}))
        self.host.add("my-files", tool("read", {}))
        self.host.add("off", tool("x", {}), status="disabled")

    def refused(self, source):
        attempt = f"try:\n    {source}\nexcept runtime.MCPError as error:\n    result = error"
        self.execute(f"result = None\n{attempt}")
        error = self.namespace["result"]
        self.assertIsInstance(error, runtime.MCPError, source)
        return str(error)

    def test_another_server_is_not_available(self):
        self.run_with()
        self.execute("old = mcp_github; old_tool = mcp_github.create_issue")
        self.execute("from mcp.servers.github import create_issue; module = mcp.servers.github")
        self.run_with("my-files", restricted=True)
        tests = [
            "mcp_servers['github']",
            "await runtime.call_tool('github', 'create_issue')",
            "runtime.list_tools('github')",
            "runtime.query_tool_docs('github')",
            "runtime.describe_server('github')",
            "runtime.stubs('github')",
            "import mcp.servers.github",
            "from mcp.servers import github",
            "from mcp.servers.github import create_issue",
            "mcp.servers.github",
            "await old.create_issue()",
            "await old_tool()",
            "await create_issue()",
            "module.create_issue",
        ]
        for source in tests:
            with self.subTest(source):
                message = self.refused(source)
                self.assertIn("Server 'github' is not available (add it to `servers`)", message)
                self.assertIn("This run has: my-files", message)
        self.assertEqual(self.host.asked("tools.call"), [])
        self.assertNotIn(("tools.list", {"server": "github"}), self.host.requests[2:])

    def test_a_server_that_does_not_exist(self):
        self.run_with("my-files", restricted=True)
        self.assertEqual(
            self.refused("mcp_servers['githb']"),
            "Server 'githb' is not available. Did you mean 'github'?",
        )

    def test_a_server_that_is_disabled(self):
        self.run_with("github", "my-files")
        self.assertEqual(
            self.refused("mcp_servers['off']"), "Server 'off' is not available (it is disabled)"
        )

    def test_undefined_names_are_explained(self):
        self.run_with("my-files", restricted=True)
        self.assertIn("add it to `servers`", _session.explain_name("mcp_github"))
        self.assertIn("Did you mean 'my-files'?", _session.explain_name("mcp_myfiles"))
        self.assertIsNone(_session.explain_name("mcp_my_files"))
        self.assertIsNone(_session.explain_name("other"))


class ModulesTest(GuestTest):
    def setUp(self):
        super().setUp()
        self.host.add(
            "slack",
            tool("post-message", {"text": {}}, ["text"], answer=text("posted")),
            tool("list_tools", {}),
        )
        self.host.add("sys", tool("x", {}))
        self.host.add("2fa", alias="_2fa")
        self.run_with()

    def tearDown(self):
        self.host.servers.clear()
        self.run_with()  # forgets the modules

    def test_ways_to_import(self):
        for source in (
            "from mcp.servers.slack import post_message",
            "from mcp.servers.slack import *",
            "import mcp.servers.slack as s; post_message = s.post_message",
            "from mcp.servers import slack; post_message = slack.post_message",
            "import mcp.servers.slack; post_message = mcp.servers.slack.post_message",
            "import mcp; post_message = mcp.servers.slack.post_message",
            "import mcp.servers as s; post_message = s.slack.post_message",
            "from mcp.servers import *; post_message = slack.post_message",
        ):
            with self.subTest(source):
                self.namespace.pop("post_message", None)
                self.assertEqual(
                    self.execute(f"{source}\nresult = await post_message('hi')"), "posted"
                )

    def test_star_takes_all_tools(self):
        self.execute("from mcp.servers.slack import *")
        self.assertIn("list_tools_", self.namespace)
        self.assertNotIn("list_tools", self.namespace)

    def test_importing_starts_no_server(self):
        self.execute("import mcp.servers.slack")
        self.assertEqual(self.host.requests, [])

    def test_it_is_a_module(self):
        module = importlib.import_module("mcp.servers.slack")
        self.assertIsInstance(module, types.ModuleType)
        self.assertIs(module, sys.modules["mcp.servers.slack"])
        self.assertEqual(repr(module), "<module 'mcp.servers.slack' (MCP server 'slack')>")
        self.assertEqual(dir(module), ["list_tools", "list_tools_", "post_message"])
        self.assertIn("The server slack.", module.__doc__)

    def test_unknown_tool(self):
        self.execute("import mcp.servers.slack as s\nassert not hasattr(s, 'nope')")
        for source in (
            "from mcp.servers.slack import pots_message",
            "mcp.servers.slack.pots_message",
        ):
            with self.subTest(source), self.assertRaises(runtime.MCPError) as caught:
                self.execute(source)
            self.assertEqual(
                str(caught.exception),
                "Server 'slack' has no tool 'pots_message'. Did you mean 'post_message'?",
            )
        with self.assertRaises(ImportError):
            self.execute("from mcp.servers.slack import pots_message")

    def test_unknown_server(self):
        for source in (
            "import mcp.servers.slak",
            "from mcp.servers import slak",
            "from mcp.servers.slak import x",
            "mcp.servers.slak",
        ):
            with self.subTest(source), self.assertRaisesRegex(
                runtime.MCPError, "Did you mean 'slack'?"
            ):
                self.execute(source)
        with self.assertRaises(ModuleNotFoundError):
            self.execute("import mcp.servers.slak")
        self.assertFalse(hasattr(mcp.servers, "slak"))

    def test_a_server_named_like_a_module_of_python(self):
        self.assertEqual(
            self.execute("from mcp.servers.sys import x\nresult = await x()"),
            "ok",
        )
        self.assertEqual(
            self.execute("from mcp.servers import sys as s\nresult = await s.x()"),
            "ok",
        )
        self.assertEqual(
            self.execute(
                "from mcp.servers.slack import post_message\nresult = await post_message('hi')",
            ),
            "posted",
        )

    def test_modules_go_with_their_servers(self):
        self.execute("import mcp.servers.slack, mcp.servers.sys")
        self.run_with("sys", restricted=True)
        self.assertNotIn("mcp.servers.slack", sys.modules)
        self.assertIn("mcp.servers.sys", sys.modules)
        self.assertEqual(dir(mcp.servers), ["sys"])

    def test_broken_server_says_so_at_the_call(self):
        self.host.add("broken", tool("x"), down="exited with 1")
        self.run_with()
        with self.assertRaisesRegex(runtime.ServerUnavailable, "exited with 1"):
            self.execute("from mcp.servers.broken import x\nawait x()")


if __name__ == "__main__":
    unittest.main()
