"""What is known of servers may be older than they are."""

import inspect
import unittest

from mcp_tests.fake_host import GuestTest, text, tool
from mcp import runtime


class StaleTest(GuestTest):
    """A server whose tools have changed since it last ran."""

    def setUp(self):
        super().setUp()
        self.host.add(
            "notes",
            tool("add", {"text": {}, "tag": {}}, ["text"], answer=text("added")),
            tool("find", {"q": {}}, answer=text("found")),
            known=[tool("add", {"body": {}}, ["body"]), tool("remove", {"id": {}})],
        )
        self.run_with()

    def started(self):
        return any(asked.get("refresh") for asked in self.host.asked("tools.list")) or bool(
            self.host.asked("tools.call")
        )

    def test_documentation_is_what_is_known(self):
        self.assertEqual([row.name for row in runtime.list_tools("notes")], ["add", "remove"])
        self.assertEqual(len(runtime.query_tool_docs("notes")), 2)
        self.assertIn("remove", runtime.stubs("notes"))
        self.assertIn("remove", dir(self.namespace["mcp_notes"]))
        self.assertEqual(list(inspect.signature(self.namespace["mcp_notes"].add).parameters), ["body"])
        self.assertFalse(self.started())

    def test_a_new_tool_is_found(self):
        self.assertEqual(self.execute("result = await mcp_notes.find(q='x')"), "found")
        self.assertEqual(runtime.query_tool_docs("notes", "find")[0].tool, "find")
        self.assertEqual([row.name for row in runtime.list_tools("notes")], ["add", "find"])

    def test_new_arguments_are_accepted(self):
        for code in [
            "result = await mcp_notes.add(text='x', tag='y')",
            "result = await mcp_notes.add.raw(text='x', tag='y')",
            "result = await runtime.call_tool('notes', 'add', {'text': 'x', 'tag': 'y'})",
        ]:
            with self.subTest(code):
                self.host.requests.clear()
                self.run_with()
                self.execute(code)
                self.assertEqual(self.sent(), {"text": "x", "tag": "y"})

    def test_a_mistake_is_explained_by_what_the_server_says(self):
        for _ in range(2):
            with self.assertRaisesRegex(TypeError, r"add\(text: Any, tag: Any = ...\)"):
                self.namespace["mcp_notes"].add(txt="x")
        asked = [each for each in self.host.asked("tools.list") if each.get("refresh")]
        self.assertEqual(len(asked), 1)

    def test_a_call_that_fits_what_is_known_is_sent_at_once(self):
        call = self.namespace["mcp_notes"].add(body="x")
        self.assertFalse(self.started())
        call.close()

    def test_a_server_that_cannot_start_now(self):
        self.host.servers["notes"]["down"] = "no such command"
        self.assertEqual([row.name for row in runtime.list_tools("notes")], ["add", "remove"])
        with self.assertRaisesRegex(runtime.MCPError, "no tool 'ad'. Did you mean 'add'"):
            runtime.query_tool_docs("notes", "ad")
        with self.assertRaisesRegex(TypeError, "body"):
            self.namespace["mcp_notes"].add(bdy="x")
        with self.assertRaises(runtime.ServerUnavailable):
            self.execute("await mcp_notes.add(body='x')")


if __name__ == "__main__":
    unittest.main()
