"""JSON Schema as Python types: ``int | None``, ``Literal``, ``TypedDict``.

A schema comes from a server and may be anything: wrong, recursive, huge.
Whatever can't be understood becomes `Any`. Nothing here raises, and the work
is bounded by the constants below.
"""

__all__ = ["Members", "Reader", "Taken", "clean", "note", "pascal"]

from collections.abc import Iterable
from dataclasses import dataclass
import inspect
import re
from typing import Any
from urllib.parse import unquote

from mcp._names import aliases

_MAX_DEPTH = 12  # schemas inside schemas, followed references included
_MAX_NODES = 2_000  # schemas looked at for one tool
_MAX_TEXT = 100_000  # characters of type text for one tool
_MAX_LITERAL = 1_000  # characters of one Literal
_MAX_NOTE = 400  # characters of a parameter's or a key's description
_MAX_NAME = 60  # characters of the name of a type

# Names that stubs use with their usual meaning.
_RESERVED = frozenset({"Any", "False", "Literal", "None", "NotRequired", "True", "TypedDict"})


@dataclass(slots=True)
class Members:
    """The properties of an object schema, with those of its parts.

    `additional` is what it says of other properties: a schema, True, False, or
    None if nothing. `declared` tells whether it has "properties" at all.
    """

    properties: dict[str, Any]
    required: dict[str, None]  # a set that keeps its order
    additional: Any = None
    declared: bool = True

    @property
    def open(self) -> bool:
        """Whether other properties are welcome.

        JSON Schema says yes unless told otherwise; but who lists properties
        and is silent about others has listed them all, and a misspelt optional
        argument would be lost without a word.
        """
        if self.additional is None:
            return not self.declared
        return self.additional is not False


class Taken:
    """The names of types that stand side by side, and the types that have one already.

    Types of the same keys are one type: tools of a server speak of the same
    things, and what is written once is read once.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = {*names, *_RESERVED}
        self.by_body: dict[str, str] = {}


def _anything() -> Members:
    return Members({}, {}, additional=True, declared=False)


class Reader:
    """Reads the schemas inside one root schema, within a budget."""

    def __init__(self, root: Any, prefix: str, taken: Taken) -> None:
        self.definitions: list[str] = []
        self._root = root
        self._prefix = prefix
        self._taken = taken
        self._names: set[str] = set()
        self._by_reference: dict[str, str] = {}
        self._resolving: set[str] = set()
        self._nodes = _MAX_NODES
        self._text = _MAX_TEXT

    # Objects

    def members(self, schema: Any, depth: int = 0) -> Members:
        """Return the properties of `schema`, through references and combinations."""
        self._nodes -= 1
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._nodes < 0:
            return _anything()
        kind = schema.get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            return _anything()
        parts = [_own_members(schema)]
        if isinstance(reference := schema.get("$ref"), str):
            parts.append(self.members(self._resolve(reference), depth + 1))
        for part in _list(schema.get("allOf")):
            parts.append(self.members(part, depth + 1))
        for key in ("anyOf", "oneOf"):
            if choices := _list(schema.get(key)):
                parts.append(_either([self.members(c, depth + 1) for c in choices]))
        self._nodes -= sum(len(part.properties) for part in parts) // 10
        return parts[0] if len(parts) == 1 else _all_of(parts)

    def _resolve(self, reference: str) -> Any:
        """Return what a local reference points to, or True (anything)."""
        if not reference.startswith("#"):
            return True
        place = self._root
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return True  # an anchor
        for part in pointer.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict) and part in place:
                place = place[part]
            elif isinstance(place, list) and part.isdecimal() and int(part[:9]) < len(place):
                place = place[int(part[:9])]
            else:
                return True
        return place

    # Types

    def type(self, schema: Any, hint: str, depth: int = 0) -> str:
        """Return the type hint for `schema`; `hint` names a type made for it."""
        self._nodes -= 1
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._nodes < 0:
            return "Any"
        text = self._type(schema, hint, depth)
        if schema.get("nullable") is True:
            text = _union([text, "None"])
        self._text -= len(text)
        return text if self._text >= 0 else "Any"

    def _type(self, schema: dict[str, Any], hint: str, depth: int) -> str:
        if isinstance(reference := schema.get("$ref"), str):
            return self._reference(reference, depth)
        if "const" in schema:
            return _literal([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _literal(schema["enum"])
        if isinstance(schema.get("properties"), dict) and schema.get("type", "object") == "object":
            return self._object(schema, hint, depth)
        for key in ("anyOf", "oneOf"):
            if choices := _list(schema.get(key)):
                return _union([self.type(choice, hint, depth + 1) for choice in choices])
        if parts := _list(schema.get("allOf")):
            return self._all_of(schema, parts, hint, depth)
        return self._by_type(schema, hint, depth)

    def _by_type(self, schema: dict[str, Any], hint: str, depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union(
                [self._by_type({**schema, "type": k}, hint, depth) for k in kind[:10]] or ["Any"]
            )
        match kind:
            case "string":
                return "str"
            case "integer":
                return "int"
            case "number":
                return "float"
            case "boolean":
                return "bool"
            case "null":
                return "None"
            case "array":
                return self._array(schema, hint, depth)
            case "object":
                return self._object(schema, hint, depth)
            case None if "items" in schema or "prefixItems" in schema:
                return self._array(schema, hint, depth)
            case None if "additionalProperties" in schema:
                return self._object(schema, hint, depth)
        return "Any"

    def _array(self, schema: dict[str, Any], hint: str, depth: int) -> str:
        items = schema.get("items")
        choices = items if isinstance(items, list) else []
        choices = [*choices, *_list(schema.get("prefixItems"))]
        if isinstance(items, dict):
            choices.append(items)
        if not choices:
            return "list[Any]"
        each = [self.type(choice, _singular(hint), depth + 1) for choice in choices]
        return f"list[{_union(each)}]"

    def _all_of(self, schema: dict[str, Any], parts: list[Any], hint: str, depth: int) -> str:
        if len(parts) == 1:
            return self.type(parts[0], hint, depth + 1)
        if self.members(schema, depth + 1).properties:
            return self._object(schema, hint, depth)
        for part in parts:
            if (text := self.type(part, hint, depth + 1)) != "Any":
                return text
        return "Any"

    def _reference(self, reference: str, depth: int) -> str:
        if name := self._by_reference.get(reference):
            return name
        if reference in self._resolving:
            return "Any"  # an alias that contains itself
        self._resolving.add(reference)
        try:
            target = self._resolve(reference)
            hint = reference.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict) and isinstance(target.get("properties"), dict):
                self._nodes -= 1
                if depth > _MAX_DEPTH or self._nodes < 0:
                    return "Any"
                return self._object(target, hint, depth + 1, reference)
            return self.type(target, hint, depth + 1)
        finally:
            self._resolving.discard(reference)

    def _object(
        self, schema: dict[str, Any], hint: str, depth: int, reference: str | None = None
    ) -> str:
        members = self.members(schema, depth)
        if not members.properties:
            if isinstance(members.additional, dict):
                value = self.type(members.additional, f"{hint}_value", depth + 1)
                return f"dict[str, {value}]"
            return "dict[str, Any]"
        name = self._new_name(hint or _result_hint(members))
        if reference is not None:
            # Known before its keys are read: they may refer to it.
            self._by_reference[reference] = name
        before = len(self.definitions)
        keys = [
            _Key(wire, self.type(part, wire, depth + 1), wire in members.required, note(part))
            for wire, part in members.properties.items()
        ]
        body = _typed_dict("", keys)
        same = self._taken.by_body.get(body)
        if same is not None and len(self.definitions) == before:
            # Nothing inside was new, so nothing can refer to the name given up.
            self._taken.names.discard(name)
            self._names.discard(name)
            name = same
            if reference is not None:
                self._by_reference[reference] = name
        else:
            self._taken.by_body.setdefault(body, name)
            self._define(_typed_dict(name, keys))
        self._names.add(name)
        return name

    def _define(self, source: str) -> None:
        self._text -= len(source)
        self.definitions.append(source)

    def _new_name(self, hint: str) -> str:
        """Return a name for a type: from its own word, if others don't have that."""
        word = pascal(hint)
        long = self._prefix + word
        vague = word in ("", "Item") or word in self._taken.names
        base = (long if vague else word)[:_MAX_NAME] or "Object"
        if base[0].isdigit():
            base = f"_{base}"
        name, number = base, 2
        while name in self._taken.names:
            name, number = f"{base}{number}", number + 1
        self._taken.names.add(name)
        self._names.add(name)
        return name

    def is_object_type(self, text: str) -> bool:
        """Say whether a dict is a value of the type `text`, as far as we know."""
        parts = text.split(" | ")
        return any(p in self._names or p == "Any" or p.startswith("dict[") for p in parts)


def _own_members(schema: dict[str, Any]) -> Members:
    """Return the properties that the schema itself names, without its parts."""
    declared = isinstance(schema.get("properties"), dict)
    properties = dict(schema["properties"]) if declared else {}
    required = dict.fromkeys(n for n in _list(schema.get("required")) if isinstance(n, str))
    for name in required:
        properties.setdefault(name, True)  # an argument all the same
    additional = True if schema.get("patternProperties") else schema.get("additionalProperties")
    return Members(properties, required, additional, declared)


def _all_of(parts: list[Members]) -> Members:
    """Return the members of an object that satisfies all of `parts`."""
    result = Members({}, {}, declared=any(part.declared for part in parts))
    for part in parts:
        for name, schema in part.properties.items():
            # What says nothing (True) doesn't replace what says something.
            if not isinstance(result.properties.get(name), dict):
                result.properties[name] = schema
        result.required |= part.required
        if part.additional is not None and result.additional is not False:
            result.additional = part.additional
    return result


def _either(choices: list[Members]) -> Members:
    """Return the members of an object that satisfies one of `choices`."""
    result = Members({}, {}, declared=all(choice.declared for choice in choices))
    for choice in choices:
        for name, schema in choice.properties.items():
            if not isinstance(result.properties.get(name), dict):
                result.properties[name] = schema
    result.required = {
        name: None for name in choices[0].required if all(name in c.required for c in choices)
    }
    said = [choice.additional for choice in choices]
    if any(additional not in (None, False) for additional in said):
        result.additional = True
    elif all(additional is False for additional in said):
        result.additional = False
    return result


def _result_hint(members: Members) -> str:
    """Return the word for a type that nothing else gives one: the result of a tool."""
    match [*members.properties]:
        case [only] if not only.lower().endswith("result"):
            return f"{only}_result"
    return ""


def _singular(word: str) -> str:
    """Return the word for one of `word`: entity for entities."""
    lower = word.lower()
    if lower.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if lower.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if lower.endswith("s") and not lower.endswith(("ss", "us", "is")) and len(word) > 2:
        return word[:-1]
    return f"{word}_item"


@dataclass(frozen=True, slots=True)
class _Key:
    """One key of a TypedDict."""

    name: str
    type: str
    required: bool
    note: str


def _typed_dict(name: str, keys: list[_Key]) -> str:
    """Return the source of a TypedDict; the call form where a class can't spell a key."""
    total = any(key.required for key in keys)

    def hint(key: _Key) -> str:
        return key.type if key.required or not total else f"NotRequired[{key.type}]"

    def comment(key: _Key) -> str:
        return f"  # {key.note}" if key.note else ""

    spelling = aliases([key.name for key in keys], "key")
    if all(spelling[key.name] == key.name and not key.name.startswith("__") for key in keys):
        head = f"class {name}(TypedDict{'' if total else ', total=False'}):"
        return "\n".join([head, *(f"    {k.name}: {hint(k)}{comment(k)}" for k in keys)])
    lines = [f"{name} = TypedDict({name!r}, {{"]
    lines += [f"    {k.name!r}: {hint(k)},{comment(k)}" for k in keys]
    lines.append("})" if total else "}, total=False)")
    return "\n".join(lines)


def _literal(values: list[Any]) -> str:
    """Return the type of a value that is one of `values`."""
    parts, others = [], []
    length = 0
    for value in values:
        if value is None:
            others.append("None")
        elif isinstance(value, (bool, int, str)) and length <= _MAX_LITERAL:
            text = _constant(value)
            length += len(text) + 2
            parts.append(text)
        else:
            others.append(_class_of(value))
    if length > _MAX_LITERAL:
        # Too long to read: the type of the values says enough.
        return _union([_class_of(value) for value in values])
    literal = [f"Literal[{', '.join(dict.fromkeys(parts))}]"] if parts else []
    return _union([*literal, *others] or ["Any"])


def _class_of(value: Any) -> str:
    match value:
        case None:
            return "None"
        case bool() | int() | float() | str():
            return type(value).__name__
        case list():
            return "list[Any]"
        case dict():
            return "dict[str, Any]"
    return "Any"


def _constant(value: bool | int | str) -> str:
    try:
        return repr(value)
    except ValueError:  # an int of more than 4,300 digits
        return hex(value)


def _union(parts: list[str]) -> str:
    """Return ``a | b | None``, with one Literal and without repetition."""
    literals, others = [], []
    for part in parts:
        for piece in _split(part):
            if piece.startswith("Literal[") and piece.endswith("]"):
                literals.append(piece[len("Literal[") : -1])
            else:
                others.append(piece)
    if "Any" in others:
        return "Any"
    result = [f"Literal[{', '.join(dict.fromkeys(literals))}]"] if literals else []
    result += [piece for piece in dict.fromkeys(others) if piece != "None"]
    if "None" in others:
        result.append("None")
    return " | ".join(result)


def _split(text: str) -> list[str]:
    """Return the members of a union; bars inside brackets or quotes don't count."""
    if " | " not in text:
        return [text]
    pieces, start, depth, quote = [], 0, 0, ""
    place = 0
    while place < len(text):
        char = text[place]
        if quote:
            if char == "\\":
                place += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "|" and depth == 0:
            pieces.append(text[start : place - 1])
            start = place + 2
        place += 1
    return [*pieces, text[start:]]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def note(schema: Any) -> str:
    """Return what there is to say of a schema besides its type, on one line."""
    if not isinstance(schema, dict):
        return ""
    text = " ".join(clean(schema.get("description"), _MAX_NOTE).split())
    return " ".join(filter(None, (text, _examples(schema.get("enum")))))


def _examples(values: Any) -> str:
    """Return the first of choices that are too many for their type to list them."""
    if not isinstance(values, list) or "Literal" in (hint := _literal(values)):
        return ""
    shown = [_constant(value) for value in values[:3] if isinstance(value, (int, str))]
    if not shown or sum(map(len, shown)) > _MAX_NOTE or hint == "Any":
        return ""
    return f"(one of {len(values):,}: {', '.join(shown)}, …)"


def clean(text: Any, limit: int) -> str:
    """Return a server's text, at most about `limit` characters of it, fit to be shown.

    Control characters, odd line ends and lone surrogates go: they would damage
    a terminal, a source file or the conversation with the model.
    """
    if not isinstance(text, str):
        return ""
    if len(text) > limit:
        text = f"{text[:limit]}…"
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode()
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)  # colours and the like
    text = re.sub(r"[^\S\n\t ]|[\x00-\x08\x0e-\x1f\x7f-\x9f]", " ", text)
    return inspect.cleandoc(text)


def pascal(name: str) -> str:
    """Return a name as that of a class: ``CreateIssue`` for ``create-issue``."""
    words = re.findall(r"[A-Za-z0-9]+", name[:200])
    return "".join(word[0].upper() + word[1:] for word in words)
