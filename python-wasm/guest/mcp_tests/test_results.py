import base64
import contextlib
import copy
import io
import json
import pickle
import unittest

from mcp_tests import fake_host  # noqa: F401 - before anything of mcp
from mcp._errors import ToolError
from mcp._results import Audio, Image, Record, Resource, ResourceLink, from_mcp, to_records


def text(value, **more):
    return {"type": "text", "text": value, **more}


def value(content=(), attachments=(), unwrap=False, raw=False, **more):
    result = {"content": list(content), **more}
    return from_mcp(
        result, attachments, server="s", tool="t", unwrap=unwrap, raw=raw, call="mcp_s.t"
    )


class StructuredTest(unittest.TestCase):
    def test_it_is_the_value_even_if_false(self):
        for structured in [{"a": 1}, [], {}, 0, 0.0, False, "", None]:
            with self.subTest(structured=structured):
                got = value([text("shown")], structuredContent=structured)
                self.assertEqual(got, structured)
                self.assertIs(
                    type(got), Record if isinstance(structured, dict) else type(structured)
                )

    def test_it_needs_no_content(self):
        self.assertEqual(from_mcp({"structuredContent": {"a": 1}}, server="s", tool="t"), {"a": 1})

    def test_wrapper_is_taken_off(self):
        self.assertEqual(value(unwrap=True, structuredContent={"result": [1]}), [1])
        self.assertIsNone(value(unwrap=True, structuredContent={"result": None}))

    def test_wrapper_stays_unless_the_schema_says_so(self):
        self.assertEqual(value(structuredContent={"result": 1}), {"result": 1})
        self.assertEqual(
            value(unwrap=True, structuredContent={"result": 1, "x": 2}), {"result": 1, "x": 2}
        )
        self.assertEqual(value(unwrap=True, structuredContent=[1]), [1])

    def test_pictures_beside_it_are_mentioned(self):
        stderr = io.StringIO()
        image = {"type": "image", "attachment": 0, "mimeType": "image/png"}
        with contextlib.redirect_stderr(stderr):
            got = value(
                [text("x"), image, image, {"type": "resource_link"}], [b"p"], structuredContent=1
            )
        self.assertEqual(got, 1)
        self.assertEqual(
            stderr.getvalue(),
            "mcp_s.t: the result also has 2 image, 1 resource_link; mcp_s.t.raw(...) returns it\n",
        )

    def test_text_beside_it_is_not(self):
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            value([text("x")], structuredContent=1)
        self.assertEqual(stderr.getvalue(), "")

    def test_numbers_are_exact(self):
        self.assertEqual(value(structuredContent={"n": 2**63 + 1}).n, 2**63 + 1)
        self.assertEqual(
            value([text('{"n": 9007199254740993, "f": 0.1}')]), {"n": 9007199254740993, "f": 0.1}
        )


class TextTest(unittest.TestCase):
    def test_one_text(self):
        tests = [
            ("text", "hello", "hello"),
            ("empty", "", ""),
            ("object", '{"a": {"b": 1}}', {"a": {"b": 1}}),
            ("array", " [1, 2]\n", [1, 2]),
            ("a number stays text", "12", "12"),
            ("a JSON string stays text", '"x"', '"x"'),
            ("true stays text", "true", "true"),
            ("null stays text", "null", "null"),
            ("nearly JSON", "{a: 1}", "{a: 1}"),
            ("JSON and more", "[1] and [2]", "[1] and [2]"),
            ("Python's NaN", "[NaN]", "[NaN]"),
            ("a Markdown link", "[a](b)", "[a](b)"),
            ("nested too deep", "[" * 200_000, "[" * 200_000),
            ("a number of 5,000 digits", f"[{'1' * 5000}]", f"[{'1' * 5000}]"),
        ]
        for name, given, want in tests:
            with self.subTest(name):
                self.assertEqual(value([text(given)]), want)

    def test_parsed_objects_have_attributes(self):
        self.assertEqual(value([text('[{"a": {"b": 1}}]')])[0].a.b, 1)

    def test_a_text_block_without_text(self):
        self.assertEqual(value([{"type": "text"}]), "")


class BlocksTest(unittest.TestCase):
    def test_no_block(self):
        self.assertIsNone(value([]))
        self.assertIsNone(from_mcp({}, server="s", tool="t"))
        self.assertIsNone(from_mcp(None, server="s", tool="t"))

    def test_one_block(self):
        tests = [
            (
                "image",
                {"type": "image", "attachment": 1, "mimeType": "image/webp"},
                Image(b"two", "image/webp"),
            ),
            (
                "image in base64",
                {"type": "image", "data": "dHdv", "mimeType": "image/png"},
                Image(b"two", "image/png"),
            ),
            (
                "audio",
                {"type": "audio", "attachment": 0, "mimeType": "audio/mp3"},
                Audio(b"one", "audio/mp3"),
            ),
            (
                "resource with text",
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "[1]"},
                },
                Resource("file:///a", "text/plain", text="[1]"),
            ),
            (
                "resource with data",
                {"type": "resource", "resource": {"uri": "x:y", "attachment": 0}},
                Resource("x:y", data=b"one"),
            ),
            (
                "resource link",
                {"type": "resource_link", "uri": "x:y", "name": "n", "mimeType": "m/m", "size": 5},
                ResourceLink("x:y", "n", "m/m", size=5),
            ),
            (
                "a kind to come",
                {"type": "video", "attachment": 0, "w": 1},
                {"type": "video", "data": "b25l", "w": 1},
            ),
            ("an attachment that isn't there", {"type": "image", "attachment": 7}, Image(b"")),
            ("an attachment that is no number", {"type": "image", "attachment": "x"}, Image(b"")),
            (
                "a resource that is none",
                {"type": "resource", "resource": 3},
                {"type": "resource", "resource": 3},
            ),
        ]
        for name, block, want in tests:
            with self.subTest(name):
                self.assertEqual(value([block], [b"one", b"two"]), want)

    def test_several_keep_their_order(self):
        image = {"type": "image", "attachment": 0, "mimeType": "image/png"}
        got = value([text("a"), image, text('{"b": 1}'), text("")], [b"p"])
        self.assertEqual(got, ["a", Image(b"p"), {"b": 1}, ""])

    def test_what_is_no_block_is_skipped(self):
        self.assertEqual(value([None, "x", text("a")]), "a")
        self.assertIsNone(from_mcp({"content": "x"}, server="s", tool="t"))

    def test_repr_is_short(self):
        self.assertEqual(repr(Image(b"x" * 2000)), "<Image image/png 2,000 bytes>")
        self.assertEqual(repr(Resource("a:b", text="xyz")), "<Resource a:b 3 characters>")
        self.assertEqual(repr(ResourceLink("a:b")), "<ResourceLink a:b>")

    def test_blocks_can_be_copied_pickled_and_hashed(self):
        for block in [Image(b"x"), Audio(b"x"), Resource("u", text="t"), ResourceLink("u")]:
            self.assertEqual(copy.deepcopy(block), block)
            self.assertEqual(pickle.loads(pickle.dumps(block)), block)
            self.assertEqual(len({block, copy.copy(block)}), 1)


class ErrorTest(unittest.TestCase):
    def test_is_error_raises(self):
        image = {"type": "image", "attachment": 0, "mimeType": "image/png"}
        with self.assertRaises(ToolError) as caught:
            value(
                [text("no such repo"), image],
                [b"p"],
                isError=True,
                structuredContent={"code": {"n": 404}},
            )
        error = caught.exception
        self.assertEqual(str(error), "s.t: no such repo")
        self.assertEqual((error.server, error.tool), ("s", "t"))
        self.assertEqual(error.content, ["no such repo", Image(b"p")])
        self.assertEqual(error.structured.code.n, 404)

    def test_without_a_text(self):
        with self.assertRaisesRegex(ToolError, "s.t: the tool reported an error"):
            value([], isError=True)

    def test_is_error_false(self):
        self.assertEqual(value([text("fine")], isError=False), "fine")


class RawTest(unittest.TestCase):
    def test_whole_result_as_mcp_spells_it(self):
        content = [
            {"type": "image", "attachment": 0, "mimeType": "image/png", "annotations": {"a": 1}},
            {"type": "resource", "resource": {"uri": "x:y", "attachment": 1}},
            text("[1]"),
        ]
        got = value(
            content, [b"p", b"q"], raw=True, isError=True, structuredContent=None, _meta={"k": 1}
        )
        self.assertEqual(got, {
            "content": [
                {"type": "image", "data": "cA==", "mimeType": "image/png", "annotations": {"a": 1}},
                {"type": "resource", "resource": {"uri": "x:y", "blob": "cQ=="}},
                text("[1]"),
            ],
            "isError": True,
            "structuredContent": None,
            "_meta": {"k": 1},
        })
        self.assertEqual(base64.b64decode(got.content[0].data), b"p")
        json.dumps(got)


class RecordTest(unittest.TestCase):
    def setUp(self):
        self.record = to_records(
            {"id": 7, "items": [1], "user": {"login": "x"}, "a b": [{"c": 1}], "__deepcopy__": 5},
        )

    def test_keys_as_attributes(self):
        self.assertEqual(self.record.id, 7)
        self.assertEqual(self.record.user.login, "x")
        self.assertEqual(self.record["a b"][0].c, 1)

    def test_methods_win(self):
        self.assertTrue(callable(self.record.items))
        self.assertEqual(self.record["items"], [1])

    def test_absent(self):
        with self.assertRaisesRegex(AttributeError, "no key 'logn'. Did you mean 'login'?"):
            self.record.user.logn
        self.assertFalse(hasattr(self.record, "absent"))
        self.assertIsNone(getattr(self.record, "absent", None))
        self.assertIsNone(self.record.get("absent"))

    def test_setting(self):
        self.record.id = 8
        self.assertEqual(self.record["id"], 8)
        with self.assertRaisesRegex(AttributeError, "method of dict"):
            self.record.items = 1

    def test_it_is_a_dict(self):
        record = to_records({"a": 1, "b": {"c": 2}})
        self.assertIsInstance(record, dict)
        self.assertEqual(repr(record), "{'a': 1, 'b': {'c': 2}}")
        self.assertEqual(json.loads(json.dumps(record)), record)
        self.assertEqual({**record}, record)
        self.assertEqual(record | {"x": 1}, {"a": 1, "b": {"c": 2}, "x": 1})
        match record:
            case {"b": {"c": c}}:
                self.assertEqual(c, 2)

    def test_copies(self):
        for made in [copy.copy(self.record), copy.deepcopy(self.record), self.record.copy(),
                     pickle.loads(pickle.dumps(self.record))]:
            self.assertEqual(made, self.record)
            self.assertIs(type(made), Record)
            self.assertEqual(made.user.login, "x")

    def test_dir_has_the_keys(self):
        self.assertIn("user", dir(self.record))
        self.assertIn("items", dir(self.record))
        self.assertNotIn("a b", dir(self.record))

    def test_input_is_left_alone(self):
        given = {"a": [{"b": 1}]}
        made = to_records(given)
        made.a[0].b = 2
        made.a.append(1)
        self.assertEqual(given, {"a": [{"b": 1}]})
        self.assertIs(type(given["a"][0]), dict)

    def test_depth(self):
        deep = leaf = {}
        for _ in range(100_000):
            leaf["a"] = leaf = {}
        made = to_records(deep)
        self.assertIs(type(made.a.a.a), Record)
        while deep:  # else freeing it would recurse
            deep = deep.pop("a", None)
            made = made.pop("a", None)


if __name__ == "__main__":
    unittest.main()
