import ast
import inspect
import random
import time
import unittest

from mcp_tests import fake_host  # noqa: F401 - before anything of mcp
from mcp._schema import compile_tool


def signature(properties, required=(), **more):
    return compile_tool(
        "f", {"type": "object", "properties": properties, "required": list(required), **more}
    )


def hint(schema, **root):
    """Return the type hint of a parameter with `schema`, and the types it needs."""
    compiled = signature({"x": schema}, ["x"], **root)
    return str(compiled.parameters[0].type), "\n".join(compiled.definitions)


class TypeTest(unittest.TestCase):
    def test_hints(self):
        string, integer, null = {"type": "string"}, {"type": "integer"}, {"type": "null"}
        tests = [
            ("string", string, "str"),
            ("integer", integer, "int"),
            ("number", {"type": "number"}, "float"),
            ("boolean", {"type": "boolean"}, "bool"),
            ("null", null, "None"),
            ("nullable by anyOf", {"anyOf": [integer, null]}, "int | None"),
            ("nullable by oneOf, null first", {"oneOf": [null, integer]}, "int | None"),
            ("nullable by a list of types", {"type": ["integer", "null"]}, "int | None"),
            ("nullable as OpenAPI says it", {"type": "integer", "nullable": True}, "int | None"),
            ("several types", {"type": ["string", "number", "boolean"]}, "str | float | bool"),
            (
                "the same type twice",
                {"anyOf": [string, {"type": "string", "format": "uri"}]},
                "str",
            ),
            ("enum", {"enum": ["open", "closed"]}, "Literal['open', 'closed']"),
            ("enum with a type", {"type": "string", "enum": ["a"]}, "Literal['a']"),
            ("enum with null", {"enum": ["a", None]}, "Literal['a'] | None"),
            (
                "enum of what Literal can't hold",
                {"enum": [1.5, {"a": 1}, 2]},
                "Literal[2] | float | dict[str, Any]",
            ),
            ("enum that is long", {"enum": [f"value-{n}" for n in range(500)]}, "str"),
            (
                "enum of text with quotes and bars",
                {"enum": ["a' | \"b", "c]"]},
                "Literal['a\\' | \"b', 'c]']",
            ),
            ("enum without values", {"enum": []}, "Any"),
            ("const", {"const": "x"}, "Literal['x']"),
            ("const null", {"const": None}, "None"),
            (
                "a union of constants",
                {"anyOf": [{"const": "a"}, {"const": "b"}, null]},
                "Literal['a', 'b'] | None",
            ),
            ("array", {"type": "array", "items": string}, "list[str]"),
            ("array of anything", {"type": "array"}, "list[Any]"),
            (
                "array of nullable",
                {"type": "array", "items": {"type": ["string", "null"]}},
                "list[str | None]",
            ),
            (
                "array of arrays",
                {"type": "array", "items": {"type": "array", "items": integer}},
                "list[list[int]]",
            ),
            (
                "tuple, 2020-12",
                {"type": "array", "prefixItems": [string, integer]},
                "list[str | int]",
            ),
            ("tuple, draft 7", {"type": "array", "items": [string, integer]}, "list[str | int]"),
            ("array without a type", {"items": string}, "list[str]"),
            ("object of anything", {"type": "object"}, "dict[str, Any]"),
            (
                "object of numbers",
                {"type": "object", "additionalProperties": integer},
                "dict[str, int]",
            ),
            ("allOf of one", {"allOf": [string], "description": "d"}, "str"),
            ("allOf with a restriction", {"allOf": [{"minLength": 1}, string]}, "str"),
            ("a union with anything", {"anyOf": [string, {}]}, "Any"),
            ("no schema", {}, "Any"),
            ("true", True, "Any"),
            ("nonsense", {"type": 5, "enum": "x", "anyOf": 3}, "Any"),
            ("an unknown type", {"type": "file"}, "Any"),
            ("a reference outside", {"$ref": "https://example.com/x.json"}, "Any"),
            ("a reference to nothing", {"$ref": "#/$defs/None"}, "Any"),
            ("an anchor", {"$ref": "#node"}, "Any"),
        ]
        for name, schema, want in tests:
            with self.subTest(name):
                self.assertEqual(hint(schema)[0], want)

    def test_nested_object_is_a_typed_dict(self):
        schema = {
            "type": "object",
            "properties": {
                "login": {"type": "string", "description": "who\nit is"},
                "age": {"type": "integer"},
            },
            "required": ["login"],
        }
        self.assertEqual(
            hint({"anyOf": [schema, {"type": "null"}]}),
            (
                "X | None",
                "class X(TypedDict):\n    login: str  # who it is\n    age: NotRequired[int]",
            ),
        )

    def test_typed_dict_with_optional_keys_only(self):
        _, source = hint({"properties": {"a": {"type": "string"}}})
        self.assertEqual(source, "class X(TypedDict, total=False):\n    a: str")

    def test_typed_dict_with_keys_that_python_cannot_spell(self):
        _, source = hint(
            {"properties": {"from": {"type": "string"}, "cik-A": {}}, "required": ["from"]},
        )
        self.assertEqual(
            source, "X = TypedDict('X', {\n    'from': str,\n    'cik-A': NotRequired[Any],\n})"
        )

    def test_reference_to_a_definition(self):
        defs = {"Label~/": {"properties": {"name": {"type": "string"}}, "required": ["name"]}}
        text, source = hint(
            {"type": "array", "items": {"$ref": "#/$defs/Label~0~1"}}, **{"$defs": defs}
        )
        self.assertEqual(text, "list[Label]")
        self.assertIn("(TypedDict):\n    name: str", source)

    def test_recursive_reference(self):
        node = {
            "type": "object",
            "properties": {
                "value": {},
                "children": {"type": "array", "items": {"$ref": "#/definitions/Node"}},
            },
            "required": ["value"],
        }
        text, source = hint({"$ref": "#/definitions/Node"}, definitions={"Node": node})
        self.assertEqual(text, "Node")
        self.assertEqual(
            source,
            "class Node(TypedDict):\n    value: Any\n    children: NotRequired[list[Node]]",
        )

    def test_reference_to_the_root(self):
        compiled = compile_tool(
            "f", {"properties": {"left": {"$ref": "#"}, "n": {"type": "integer"}}}
        )
        self.assertEqual(str(compiled.parameters[0].type), "F")
        self.assertIn("left: F", compiled.definitions[0])

    def test_alias_that_contains_itself(self):
        value = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/J"}}]}
        self.assertEqual(
            hint({"$ref": "#/$defs/J"}, **{"$defs": {"J": value}})[0], "str | list[Any]"
        )

    def test_reference_that_goes_in_a_circle(self):
        defs = {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}
        self.assertEqual(hint({"$ref": "#/$defs/a"}, **{"$defs": defs})[0], "Any")

    def test_all_of_merges_objects(self):
        schema = {
            "allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {}}},
            ],
        }
        self.assertEqual(
            hint(schema)[1], "class X(TypedDict):\n    a: str\n    b: NotRequired[Any]"
        )

    def test_names_of_types_avoid_those_that_stubs_need(self):
        compiled = compile_tool("_", {"properties": {"any": {"properties": {"a": {}}}}})
        self.assertEqual(str(compiled.parameters[0].type), "Any2")


class SignatureTest(unittest.TestCase):
    def test_required_come_first_in_the_order_of_required(self):
        compiled = signature({"a": {}, "b": {}, "c": {}, "d": {}}, ["d", "b"])
        self.assertEqual(compiled.text("f"), "f(d: Any, b: Any, a: Any = ..., c: Any = ...) -> Any")

    def test_defaults(self):
        compiled = signature({
            "n": {"type": "integer", "default": 5},
            "s": {"type": "string", "default": "é"},
            "z": {"type": ["string", "null"], "default": None},
            "l": {"type": "array", "default": []},
            "long": {"type": "string", "default": "x" * 100},
        })
        self.assertEqual(
            compiled.text("f"),
            "f(n: int = 5, s: str = 'é', z: str | None = None, l: list[Any] = [], long: str = ...)"
            " -> Any",
        )
        self.assertEqual(compiled.python.parameters["long"].default, "x" * 100)

    def test_required_with_a_default_may_be_left_out(self):
        compiled = signature({"n": {"type": "integer", "default": 5}}, ["n"])
        self.assertFalse(compiled.parameters[0].required)
        self.assertEqual(compiled.send, {"n": 5})

    def test_names_that_python_cannot_spell(self):
        compiled = signature({"from": {}, "class": {}, "cik-A": {}, "from_": {}})
        self.assertEqual(
            {p.name: p.wire for p in compiled.parameters},
            {"from__2": "from", "class_": "class", "cik_A": "cik-A", "from_": "from_"},
        )

    def test_what_must_not_be_given_is_no_parameter(self):
        self.assertEqual(signature({"x": False, "y": True}).text("f"), "f(y: Any = ...) -> Any")

    def test_choices_too_many_for_a_type_are_shown_by_example(self):
        many = [f"value {n}" for n in range(5000)]
        compiled = signature({"x": {"enum": many, "description": "Pick."}, "y": {"enum": ["a"]}})
        self.assertEqual(
            (compiled.text("f"), [*compiled.notes()]),
            (
                "f(x: str = ..., y: Literal['a'] = ...) -> Any",
                ["x: Pick. (one of 5,000: 'value 0', 'value 1', 'value 2', …)"],
            ),
        )

    def test_required_without_a_schema_is_a_parameter(self):
        self.assertEqual(signature({}, ["x"]).text("f"), "f(x: Any) -> Any")

    def test_inspect_shows_types_without_quotes(self):
        compiled = signature({"n": {"type": ["integer", "null"]}, "m": {}}, ["n"])
        self.assertEqual(str(compiled.python), "(n: int | None, m: Any = ...) -> Any")
        self.assertIsInstance(compiled.python, inspect.Signature)

    def test_open_or_not(self):
        tests = [
            ("properties, nothing else said", {"properties": {"a": {}}}, False),
            ("empty properties", {"properties": {}}, False),
            ("no properties", {"type": "object"}, True),
            ("none allowed", {"additionalProperties": False}, False),
            ("others welcome", {"properties": {"a": {}}, "additionalProperties": True}, True),
            (
                "others with a schema",
                {"properties": {"a": {}}, "additionalProperties": {"type": "string"}},
                True,
            ),
            ("patterns", {"properties": {"a": {}}, "patternProperties": {"^x": {}}}, True),
            (
                "alternatives that only require",
                {
                    "properties": {"a": {}, "b": {}},
                    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
                False,
            ),
            (
                "alternatives, one of them anything",
                {"anyOf": [{"properties": {"a": {}}}, {}]},
                True,
            ),
            (
                "a part that isn't understood",
                {"properties": {"a": {}}, "allOf": [{"$ref": "other.json"}]},
                True,
            ),
            ("null", None, True),
            ("a list", [], True),
            ("true", True, True),
            ("no object", {"type": "string"}, True),
        ]
        for name, schema, want in tests:
            with self.subTest(name):
                self.assertIs(compile_tool("f", schema).open, want)

    def test_arguments_through_references_and_combinations(self):
        a, b = {
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
        }, {"properties": {"b": {}}, "required": ["b"]}
        tests = [
            ("root reference", {"$ref": "#/$defs/In", "$defs": {"In": a}}, "f(a: str) -> Any"),
            ("allOf", {"allOf": [a, b]}, "f(a: str, b: Any) -> Any"),
            (
                "anyOf: only what all require is required",
                {"anyOf": [a, b]},
                "f(a: str = ..., b: Any = ...) -> Any",
            ),
            ("anyOf beside properties", {**a, "anyOf": [b]}, "f(a: str, b: Any) -> Any"),
            ("a reference to itself", {"$ref": "#"}, "f(**arguments: Any) -> Any"),
        ]
        for name, schema, want in tests:
            with self.subTest(name):
                self.assertEqual(compile_tool("f", schema).text("f"), want)

    def test_return_type(self):
        obj = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
        tests = [
            ("none", None, "Any", False),
            ("object", obj, "IdResult", False),
            (
                "wrapper",
                {"type": "object", "properties": {"result": {"type": "array", "items": obj}}},
                "list[FResultItem]",
                True,
            ),
            ("result among others", {"properties": {"result": {}, "x": {}}}, "FResult", False),
            (
                "result and whatever",
                {"properties": {"result": {}}, "additionalProperties": True},
                "FResult",
                False,
            ),
        ]
        for name, schema, returns, unwrap in tests:
            with self.subTest(name):
                compiled = compile_tool("f", {}, schema)
                self.assertEqual((str(compiled.returns), compiled.unwrap), (returns, unwrap))

    def test_the_rest_has_a_name_of_its_own(self):
        compiled = signature({"arguments": {}}, additionalProperties=True)
        self.assertEqual(compiled.text("f"), "f(arguments: Any = ..., **arguments_: Any) -> Any")
        compiled.python  # valid

    def test_short_text_is_bounded(self):
        compiled = signature({f"property_{n}": {} for n in range(1000)})
        self.assertLessEqual(len(compiled.short_text("f")), 2000)


class StubTest(unittest.TestCase):
    def test_layout(self):
        compiled = signature(
            {"a": {"type": "string", "description": "an a"}, "b": {"properties": {"c": {}}}}, ["a"]
        )
        self.assertEqual(
            compiled.stub("f", "Does it.\n\nWell."),
            "class B(TypedDict, total=False):\n"
            "    c: Any\n"
            "async def f(a: str, b: B = ...) -> Any:\n"
            '    """Does it.\n\n    Well.\n\n    Args:\n        a: an a\n    """',
        )

    def test_without_description(self):
        self.assertEqual(signature({}).stub("f", ""), "async def f() -> Any: ...")

    def test_hostile_descriptions_stay_text(self):
        texts = [
            *('"""', 'ends with "', "ends with \\", '\\"""', '""""', '"""\nimport os\n"""'),
            *("\x00\x1b[31m", "\ud800", "a\u2028b\rc\x85d", "x" * 10**6, " ", "\\N{BULLET} \\x"),
        ]
        for text in texts:
            with self.subTest(text[:20]):
                schema = {
                    "a": {"description": text},
                    text: {"description": text, "default": text, "enum": [text]},
                    "o": {"properties": {text: {"description": text}}},
                }
                source = signature(schema).stub("f", text)
                tree = ast.parse(source)
                self.assertIsInstance(tree.body[-1], ast.AsyncFunctionDef)
                self.assertLess(len(source), 1_100_000 * 6)
                source.encode()

    def test_docstring_says_what_the_server_said(self):
        for text in ['say "hi"', 'a\n"""b"""', "c:\\new", "plain"]:
            with self.subTest(text):
                function = ast.parse(signature({}).stub("f", text)).body[-1]
                self.assertEqual(ast.get_docstring(function), text)


class AnyJSONTest(unittest.TestCase):
    """Whatever a server sends as a schema, the tool can be described and called."""

    WORDS = (
        *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs"),
        *("enum", "const", "default", "additionalProperties", "object", "array", "string", "null"),
        *("#", "#/$defs/a", "#/properties/a/items", "a", "b-c", "from", "result", "nullable"),
        *("description", "prefixItems", "patternProperties"),
    )

    HUGE = 10**5000  # more digits than Python likes to write

    def value(self, rng, depth):
        kind = rng.random()
        if depth <= 0 or kind < 0.25:
            return rng.choice([None, True, False, 0, self.HUGE, -1.5, "", "\ud800", *self.WORDS])
        if kind < 0.4:
            return [self.value(rng, depth - 1) for _ in range(rng.randrange(4))]
        return {rng.choice(self.WORDS): self.value(rng, depth - 1) for _ in range(rng.randrange(6))}

    def test_random_values(self):
        rng = random.Random(7)
        for number in range(1500):
            schema, output = self.value(rng, 6), self.value(rng, 4)
            with self.subTest(number=number):
                compiled = compile_tool("tool", schema, output)
                ast.parse(compiled.stub("tool", "d"))
                str(compiled.python)

    def test_work_is_bounded(self):
        deep = {}
        for _ in range(5000):
            deep = {
                "type": "object",
                "properties": {"a": deep, "b": {"type": "array", "items": deep}},
            }
        twice = {"$ref": "#/$defs/0"}
        doubling = {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(60)}
        wide = {f"p{n}": {"type": "string"} for n in range(20_000)}
        tests = [
            ("deep", {"properties": {"x": deep}}),
            ("deep root", deep),
            ("references that double", {"properties": {"x": twice}, "$defs": doubling}),
            ("root that doubles", {"anyOf": [twice, twice], "$defs": doubling}),
            ("wide", {"properties": wide}),
            (
                "wide, again and again",
                {"allOf": [{"$ref": "#/$defs/w"}] * 2000, "$defs": {"w": {"properties": wide}}},
            ),
            (
                "long union",
                {
                    "properties": {
                        "x": {"anyOf": [{"enum": [f"v{n}", "x" * 900]} for n in range(5000)]}
                    }
                },
            ),
            (
                "lists of types in lists of types",
                {
                    "properties": {
                        "x": {
                            "type": ["array"] * 50,
                            "items": {"type": ["array"] * 50, "items": {"$ref": "#/properties/x"}},
                        },
                    },
                },
            ),
        ]
        for name, schema in tests:
            with self.subTest(name):
                start = time.process_time()
                compiled = compile_tool("tool", schema)
                source = compiled.stub("tool", "")
                self.assertLess(time.process_time() - start, 10)
                self.assertLess(len(source), 2_000_000)


if __name__ == "__main__":
    unittest.main()
