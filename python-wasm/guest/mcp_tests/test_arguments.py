from collections import OrderedDict, UserDict, deque, namedtuple
from dataclasses import dataclass
import datetime
from decimal import Decimal
import enum
import json
from pathlib import PurePosixPath
from types import MappingProxyType
import unittest
import uuid

from mcp_tests.fake_host import tool
from mcp._arguments import bind
from mcp._results import Image, Record
from mcp._schema import compile_tool
from mcp._wire import Unsendable, to_json


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    A = "a"


@dataclass
class Point:
    x: int
    tags: tuple[str, ...] = ()


class Model:
    """What pydantic's models look like from outside."""

    def model_dump(self, mode="python"):
        return {"mode": mode}


class OtherModel:
    def model_dump(self):
        return {"when": datetime.date(2025, 1, 2)}


class Text(str):
    def __str__(self):
        return "other"


Pair = namedtuple("Pair", "a b")


class ToJSONTest(unittest.TestCase):
    def test_what_can_be_sent(self):
        utc = datetime.timezone.utc
        tests = [
            ("JSON", {"a": [1, 1.5, "x", None, True]}, {"a": [1, 1.5, "x", None, True]}),
            ("a large int", 2**70 + 1, 2**70 + 1),
            ("tuple", (1, 2), [1, 2]),
            ("namedtuple", Pair(1, 2), [1, 2]),
            ("set, sorted", {3, 1, 2}, [1, 2, 3]),
            ("frozenset", frozenset({"a"}), ["a"]),
            ("views of a dict keep its order", {"b": 1, "a": 2}.keys(), ["b", "a"]),
            ("values of a dict", {"b": 1}.values(), [1]),
            ("range", range(3), [0, 1, 2]),
            ("deque", deque([1]), [1]),
            (
                "other mappings",
                [OrderedDict(a=1), UserDict(a=1), MappingProxyType({"a": 1})],
                [{"a": 1}] * 3,
            ),
            ("a result of a call", Record(a=Record(b=1)), {"a": {"b": 1}}),
            ("enum members", [Color.RED, Level.HIGH, Name.A], ["red", 3, "a"]),
            ("enum keys", {Name.A: 1}, {"a": 1}),
            ("dataclass", Point(1, ("a",)), {"x": 1, "tags": ["a"]}),
            ("model", Model(), {"mode": "json"}),
            ("model of another make", OtherModel(), {"when": "2025-01-02"}),
            ("date", datetime.date(2025, 1, 31), "2025-01-31"),
            (
                "datetime",
                datetime.datetime(2025, 1, 31, 12, tzinfo=utc),
                "2025-01-31T12:00:00+00:00",
            ),
            ("time", datetime.time(12, 30), "12:30:00"),
            ("UUID", uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            ("path", PurePosixPath("/a/b"), "/a/b"),
            ("Decimal, whole", Decimal("1E+3"), 1000),
            ("Decimal, exact", Decimal("0.1"), 0.1),
            (
                "subclasses of str, int, float",
                [Text("x"), type("I", (int,), {})(5), type("F", (float,), {})(0.5)],
                ["x", 5, 0.5],
            ),
            ("halves of one character", "\ud83d\ude00", "😀"),
            ("text beyond ASCII", "größe 😀", "größe 😀"),
        ]
        for name, value, want in tests:
            with self.subTest(name):
                got = to_json(value)
                self.assertEqual(got, want)
                self.assertEqual(json.loads(json.dumps(got)), want)

    def test_what_cannot(self):
        async def coroutine():
            pass

        pending = coroutine()
        self.addCleanup(pending.close)
        cycle = []
        cycle.append(cycle)
        tests = [
            ("bytes", b"x", "base64"),
            ("bytearray", bytearray(b"x"), "base64"),
            ("a picture", Image(b"x"), "base64"),
            ("NaN", float("nan"), "nan"),
            ("infinity", float("-inf"), "-inf"),
            ("a lone surrogate", "a\udc80", "surrogate '\\udc80' at index 1"),
            ("a lone surrogate in a key", {"\ud800": 1}, "surrogate"),
            ("a key that isn't a text", {1: 2}, "keys must be str"),
            ("a coroutine", pending, "needs `await`"),
            ("a generator", (x for x in ()), "list(...)"),
            ("an iterator", iter([]), "list(...)"),
            ("timedelta", datetime.timedelta(1), "total_seconds()"),
            ("Decimal that would lose digits", Decimal("0.1234567890123456789"), "Decimal"),
            ("Decimal out of range", Decimal("1E+999999"), "Decimal"),
            ("Decimal NaN", Decimal("NaN"), "Decimal"),
            ("a class", Point, "class Point"),
            ("a function", print, "builtin_function_or_method"),
            ("an object", object(), "an object"),
            ("an int of 10,000 digits", 1 << 40_000, "bits"),
            ("a cycle", cycle, "contains itself"),
            ("complex", 1j, "a complex"),
            ("a path of bytes", type("P", (), {"__fspath__": lambda self: b"x"})(), "bytes"),
        ]
        for name, value, want in tests:
            with self.subTest(name), self.assertRaises(Unsendable) as caught:
                to_json(value)
            self.assertIn(want, f"{caught.exception.place} {caught.exception}")

    def test_the_place_is_named(self):
        with self.assertRaises(Unsendable) as caught:
            to_json({"labels": [{}, {"a b": {"color": b""}}]})
        self.assertEqual(caught.exception.place, ".labels[1]['a b'].color")

    def test_what_is_sent_is_a_copy(self):
        value = {"a": [1]}
        got = to_json(value)
        value["a"].append(2)
        self.assertEqual(got, {"a": [1]})


def bound(properties, required, *args, **kwargs):
    schema = tool("f", properties, required)["inputSchema"]
    return bind(compile_tool("f", schema), args, kwargs, name="f", call="mcp_x.f")


A_B_C = {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "string"}}


class BindTest(unittest.TestCase):
    def check(self, message, properties, required, *args, **kwargs):
        with self.assertRaises(TypeError) as caught:
            bound(properties, required, *args, **kwargs)
        self.assertIn(message, str(caught.exception))
        return str(caught.exception)

    def test_keywords(self):
        self.assertEqual(bound(A_B_C, ["a"], a="x", c="y"), {"a": "x", "c": "y"})

    def test_none_is_sent_as_null(self):
        self.assertEqual(bound(A_B_C, ["a"], a="x", c=None), {"a": "x", "c": None})

    def test_positional_required_first(self):
        self.assertEqual(bound(A_B_C, ["b"], 1, "x", "y"), {"b": 1, "a": "x", "c": "y"})
        self.assertEqual(bound(A_B_C, ["c", "a"], "first", "second"), {"c": "first", "a": "second"})
        self.assertEqual(bound(A_B_C, ["b"], 1, c="y"), {"b": 1, "c": "y"})

    def test_too_many_positional(self):
        text = self.check(
            "takes at most 3 positional arguments but 4 were given", A_B_C, ["a"], 1, 2, 3, 4
        )
        self.assertIn("f(a: str, b: int = ..., c: str = ...)", text)

    def test_positional_where_the_schema_names_none(self):
        self.check("keyword only", None, [], 1)

    def test_twice(self):
        self.check("two values for the argument 'a'", A_B_C, ["a"], "x", a="y")
        self.check("two values", {"from": {}}, [], **{"from_": 1, "from": 2})

    def test_unknown(self):
        text = self.check("unexpected argument 'aa'; did you mean 'a'?", {"a": {}}, [], aa=1)
        self.assertIn("mcp_x.f() ", text)
        self.assertIn("signature: f(a: Any = ...) -> Any", text)
        self.check("it takes a, b, c", A_B_C, [], zzzzz=1)
        self.check("it takes none", {}, [], x=1)

    def test_missing(self):
        text = self.check("missing the required arguments 'a', 'b'", A_B_C, ["a", "b"], c="x")
        self.assertIn("f(a: str, b: int, c: str = ...)", text)

    def test_the_wire_carries_the_original_names(self):
        properties = {"from": {}, "class": {}, "cik-A": {}, "2nd": {}}
        self.assertEqual(
            bound(properties, [], from_=1, class_=2, cik_A=3, _2nd=4),
            {"from": 1, "class": 2, "cik-A": 3, "2nd": 4},
        )
        self.assertEqual(bound(properties, [], **{"from": 1, "cik-A": 3}), {"from": 1, "cik-A": 3})

    def test_names_that_methods_use(self):
        names = ["self", "args", "kwargs", "name", "signature", "raw", "call", "tool", "timeout"]
        given = dict.fromkeys(names, 1)
        schema = tool("f", dict.fromkeys(names, {}))["inputSchema"]
        self.assertEqual(bind(compile_tool("f", schema), (), given, name="f", call="f"), given)

    def test_anything_goes_where_the_schema_is_open(self):
        self.assertEqual(bound(None, [], x=1, **{"a b": 2}), {"x": 1, "a b": 2})

    def test_required_with_default_is_sent(self):
        self.assertEqual(bound({"n": {"default": 5}, "m": {"default": 6}}, ["n"]), {"n": 5})
        self.assertEqual(bound({"n": {"default": 5}}, ["n"], n=1), {"n": 1})

    def test_one_dict_of_all_arguments(self):
        self.assertEqual(bound(A_B_C, ["a"], {"a": "x", "b": 1}), {"a": "x", "b": 1})
        self.assertEqual(bound(None, [], {"x": 1}), {"x": 1})
        self.assertEqual(bound({}, [], {}), {})
        self.check("unexpected argument 'aa'", A_B_C, ["a"], {"aa": "x"})

    def test_one_dict_that_is_the_first_argument(self):
        payload = {"payload": {"type": "object"}}
        self.assertEqual(bound(payload, ["payload"], {"x": 1}), {"payload": {"x": 1}})
        self.assertEqual(bound(payload, ["payload"], {}), {"payload": {}})

    def test_one_dict_that_may_be_either(self):
        text = self.check("ambiguous", {"payload": {}}, ["payload"], {"payload": 1})
        self.assertIn("as keywords", text)

    def test_keys_of_a_dict_of_arguments(self):
        self.check("names must be str", A_B_C, [], {1: 2})

    def test_what_cannot_be_sent_is_named(self):
        text = self.check("labels[0].icon is bytes", {"labels": {}}, [], labels=[{"icon": b"x"}])
        self.assertTrue(text.startswith("mcp_x.f(): "), text)


if __name__ == "__main__":
    unittest.main()
