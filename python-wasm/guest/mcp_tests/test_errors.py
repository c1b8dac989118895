import copy
import pickle
import unittest

from mcp_tests import fake_host  # noqa: F401 - before anything of mcp
from mcp import runtime
from mcp._errors import from_host, not_found, not_importable

CLASSES = [
    runtime.MCPError,
    runtime.ToolError,
    runtime.ProtocolError,
    runtime.ServerUnavailable,
    runtime.CallTimeout,
    runtime.PolicyError,
    runtime.LimitExceeded,
]


class TreeTest(unittest.TestCase):
    def test_one_except_clause_is_enough(self):
        for error in CLASSES:
            self.assertTrue(issubclass(error, runtime.MCPError))
            self.assertTrue(issubclass(error, RuntimeError))
        self.assertTrue(issubclass(runtime.CallTimeout, TimeoutError))

    def test_attributes_and_text(self):
        for error in CLASSES:
            with self.subTest(error.__name__):
                made = error("m", server="s", tool="t")
                self.assertEqual(
                    (str(made), made.server, made.tool, made.args), ("m", "s", "t", ("m",))
                )
                self.assertEqual((error("m").server, error("m").tool), (None, None))

    def test_copies_keep_the_attributes(self):
        made = [error("m", server="s", tool="t") for error in CLASSES]
        made += [not_found("m", "s", "t"), not_importable("m", "s", "t")]
        made.append(runtime.ToolError("m", content=[1], structured={"a": 1}))
        made.append(runtime.ProtocolError("m", code=-32602, data=[1]))
        for error in made:
            for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                with self.subTest(repr(error)):
                    self.assertIs(type(other), type(error))
                    self.assertEqual(str(other), str(error))
                    self.assertEqual(vars(other), vars(error))

    def test_a_name_that_is_not_found_serves_the_language(self):
        error = not_found("no x")
        self.assertIsInstance(error, (AttributeError, KeyError))
        self.assertIsInstance(not_importable("no x"), ModuleNotFoundError)
        for each in (error, not_importable("no x")):
            self.assertIsInstance(each, runtime.MCPError)
            self.assertEqual((type(each).__name__, str(each)), ("MCPError", "no x"))


class FromHostTest(unittest.TestCase):
    def test_kinds(self):
        tests = [
            ("ServerUnavailable", runtime.ServerUnavailable),
            ("CallTimeout", runtime.CallTimeout),
            ("PolicyError", runtime.PolicyError),
            ("LimitExceeded", runtime.LimitExceeded),
            ("ProtocolError", runtime.ProtocolError),
            ("MCPError", runtime.MCPError),
            ("HostError", runtime.MCPError),
            ("ToolError", runtime.MCPError),
            ("anything", runtime.MCPError),
        ]
        for kind, want in tests:
            with self.subTest(kind):
                error = from_host(kind, "s.t failed", {"server": "s", "tool": "t"})
                self.assertIs(type(error), want)
                self.assertEqual((str(error), error.server, error.tool), ("s.t failed", "s", "t"))

    def test_protocol_error(self):
        error = from_host("ProtocolError", "bad", {"code": -32602, "data": {"a": 1}}, "s", "t")
        self.assertEqual((error.code, error.data, str(error)), (-32602, {"a": 1}, "s.t: bad"))

    def test_message_names_server_and_tool(self):
        self.assertEqual(str(from_host("X", "boom", None, "srv", "get")), "srv.get: boom")
        self.assertEqual(str(from_host("X", "srv is down", None, "srv")), "srv is down")
        self.assertEqual(str(from_host("X", "boom", "odd")), "boom")


if __name__ == "__main__":
    unittest.main()
