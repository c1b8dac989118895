"""What a line editor is told."""

import textwrap
import unittest

from codeexec import editing


class Complete(unittest.TestCase):
    def test_whether_an_input_is_complete(self):
        tests = [
            ("1 + 1", True),
            ("1 +", True),  # Wrong, not unfinished.
            ("(1 +", False),
            ("x = [", False),
            ("x = [\n1,\n]", True),
            ("def f():", False),
            ("def f():\n    return 1", False),
            ("def f():\n    return 1\n", True),
            ("def f():\n    return 1\n    ", True),
            ("if x:\n    y\nelse:", False),
            ("if x: y", True),
            ("@decorator", False),
            ("'''text", False),
            ("'''text\n\n", False),
            ("'''text\n'''", True),
            ("await f()", True),
            ("async with a() as b:", False),
            ("x = 1\ny = 2", True),
            ("x \\", False),
            ("", True),
            ("# comment", True),
            ("'unfinished", True),
            ("\x00", True),
            ("(" * 1000, True),
        ]
        for text, complete in tests:
            with self.subTest(text[:40]):
                self.assertEqual(complete, editing.is_complete(text))


class Spans(unittest.TestCase):
    def test_spans(self):
        tests = [
            ("x = 1", [("1", "number")]),
            ("def f(): return len(x)", [
                ("def", "keyword"), ("f", "definition"), ("return", "keyword"), ("len", "builtin")]),
            ("x.len", []),
            ("'a' # b", [("'a'", "string"), ("# b", "comment")]),
            ("class A:\n  pass", [("class", "keyword"), ("A", "definition"), ("pass", "keyword")]),
            ("f'é{1}'", [("f'", "string"), ("é", "string"), ("1", "number"), ("'", "string")]),
            ("print((", [("print", "builtin")]),
            ("not '''open", [("not", "keyword")]),
            ("", []),
        ]
        for text, found in tests:
            with self.subTest(text):
                self.assertEqual(
                    found, [(text[start:end], kind) for start, end, kind in editing.spans(text)]
                )


class Words(unittest.TestCase):
    def complete(self, text):
        namespace = {"textwrap": textwrap, "total": 1, "totals": [], "broken": Broken(), "_own": 1}
        start, names = editing.complete(text, namespace)
        return text[start:], names

    def test_names(self):
        tests = [
            ("tot", "tot", ["total", "totals"]),
            ("x = tot", "tot", ["total", "totals"]),
            ("whi", "whi", ["while"]),
            ("prin", "prin", ["print"]),
            ("_ow", "_ow", ["_own"]),
            ("totals.app", "app", ["append"]),
            ("if 1:\n  totals.app", "app", ["append"]),
            ("nowhere.x", "x", []),
            ("broken.x", "x", []),
            ("1.re", "", []),
            ("textwrap.indent(pref", "pref", ["prefix="]),
            ("textwrap.indent(totals, [1], pref", "pref", ["prefix="]),
            ("import textw", "textw", ["textwrap"]),
            ("import sys, textw", "textw", ["textwrap"]),
            ("from textwrap import ded", "ded", ["dedent"]),
            ("from textwrap import indent, ded", "ded", ["dedent"]),
        ]
        for text, last, names in tests:
            with self.subTest(text):
                self.assertEqual((last, names), self.complete(text))

    def test_private_names_only_where_asked_for(self):
        self.assertNotIn("_own", self.complete("")[1])
        self.assertIn("__doc__", self.complete("textwrap.__d")[1])

    def test_a_call_offers_its_parameters(self):
        self.assertEqual(
            ["predicate=", "prefix=", "text="], self.complete("textwrap.indent(")[1]
        )

    def test_no_property_is_read(self):
        self.assertEqual([], self.complete("broken.dear.x")[1])


class Broken:
    def __dir__(self):
        raise RuntimeError("no")

    @property
    def dear(self):
        raise AssertionError("it was read")


if __name__ == "__main__":
    unittest.main()
