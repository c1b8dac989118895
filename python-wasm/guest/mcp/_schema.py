"""How a tool is called: its parameters, signature and stub, from its JSON Schema.

Whatever the schema is, the tool stays callable: what `mcp._types` can't
understand is `Any`, and where no parameters are named any may be given.

# Why the types of arguments aren't checked

The server knows better what it takes ("5" for an integer, say), and its
message names the field. What is checked, in `mcp._arguments`, is what the
server can't tell us well or would silently ignore: the names.
"""

__all__ = ["MISSING", "Parameter", "Signature", "TypeText", "compile_tool"]

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
import inspect
import re
from typing import Any

from mcp._names import aliases
from mcp._types import Members, Reader, Taken, clean, note, pascal

_MAX_DEFAULT = 60  # characters of one default value
_MAX_DOC = 4_000  # characters of a tool's description in a docstring
_MAX_SIGNATURE = 2_000  # characters of a signature in an error message


class _Missing:
    """The default of a parameter that may be left out and has none; shown as ``...``."""

    def __repr__(self) -> str:
        return "..."

    def __reduce__(self):
        return "MISSING"


MISSING = _Missing()


class TypeText(str):
    """The text of a type, shown without quotes by `inspect.signature`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str.__str__(self)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool.

    `name` is how Python spells it and `wire` how the server does.
    """

    name: str
    wire: str
    type: TypeText
    required: bool
    default: Any = MISSING
    note: str = ""
    takes_object: bool = True

    def __str__(self) -> str:
        text = f"{self.name}: {self.type}"
        return text if self.required else f"{text} = {_default_text(self.default)}"


@dataclass(frozen=True)
class Signature:
    """How a tool is called.

    `open` means that it takes arguments which the schema doesn't name.
    `send` holds defaults of properties that the schema requires all the same.
    `unwrap` means that the output schema wraps the value as {"result": value}.
    """

    parameters: tuple[Parameter, ...]
    open: bool
    send: dict[str, Any]
    returns: TypeText
    definitions: tuple[str, ...]
    unwrap: bool

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        """Parameters by both of their names; the server's spelling wins."""
        spelt = {parameter.name: parameter for parameter in self.parameters}
        return spelt | {parameter.wire: parameter for parameter in self.parameters}

    @cached_property
    def required(self) -> tuple[Parameter, ...]:
        """The parameters that a call can't do without."""
        return tuple(parameter for parameter in self.parameters if parameter.required)

    @cached_property
    def python(self) -> inspect.Signature:
        """The signature as `inspect` has it."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(
                parameter.name,
                kind,
                default=inspect.Parameter.empty if parameter.required else parameter.default,
                annotation=parameter.type,
            )
            for parameter in self.parameters
        ]
        if self.open:
            parameters.append(
                inspect.Parameter(
                    self._rest, inspect.Parameter.VAR_KEYWORD, annotation=TypeText("Any")
                )
            )
        return inspect.Signature(parameters, return_annotation=self.returns)

    @property
    def _rest(self) -> str:
        name = "arguments"
        while any(parameter.name == name for parameter in self.parameters):
            name += "_"
        return name

    def text(self, name: str, limit: int | None = None) -> str:
        """Return ``name(a: int, b: str = ...) -> Any``, cut after `limit` characters."""
        parts = [str(parameter) for parameter in self.parameters]
        if self.open:
            parts.append(f"**{self._rest}: Any")
        text = f"{name}({', '.join(parts)}) -> {self.returns}"
        return text if limit is None or len(text) <= limit else f"{text[: limit - 1]}…"

    def short_text(self, name: str) -> str:
        """Return `text` at a length that suits an error message."""
        return self.text(name, _MAX_SIGNATURE)

    def notes(self) -> Iterator[str]:
        """Yield a line ``name: description`` for each parameter that has one."""
        for parameter in self.parameters:
            if parameter.note:
                yield f"{parameter.name}: {parameter.note}"

    def doc(self, description: str) -> str:
        """Return the body of a docstring: the description, then the parameters."""
        parts = [clean(description, _MAX_DOC)]
        if notes := list(self.notes()):
            parts.append("Args:\n" + "\n".join(f"    {note}" for note in notes))
        return "\n\n".join(part for part in parts if part)

    def stub(self, name: str, description: str) -> str:
        """Return the source of a stub: types, then an ``async def`` with a docstring."""
        lines = [*self.definitions, f"async def {self.text(name)}:"]
        if doc := self.doc(description):
            lines.append(_docstring(doc))
        else:
            lines[-1] += " ..."
        return "\n".join(lines)


def compile_tool(
    name: str, input_schema: Any, output_schema: Any = None, taken: Taken | None = None
) -> Signature:
    """Return the signature of the tool with the alias `name`.

    `taken` holds the types that stand beside it already; those of this tool are added.

        >>> schema = {"properties": {"n": {"type": ["integer", "null"]}}, "required": ["n"]}
        >>> compile_tool("count", schema).text("count")
        'count(n: int | None) -> Any'
    """
    taken = Taken([name]) if taken is None else taken
    prefix = pascal(name)
    reader = Reader(input_schema, prefix, taken)
    members = reader.members(input_schema)
    parameters, send = _parameters(reader, members)
    output = Reader(output_schema, f"{prefix}Result", taken)
    returned = output.members(output_schema)
    unwrap = returned.properties.keys() == {"result"} and not returned.open
    if unwrap:
        returns = output.type(returned.properties["result"], "")
    elif isinstance(output_schema, dict):
        returns = output.type(output_schema, "")
    else:
        returns = "Any"
    return Signature(
        parameters=parameters,
        open=members.open,
        send=send,
        returns=TypeText(returns),
        definitions=(*reader.definitions, *output.definitions),
        unwrap=unwrap,
    )


def _parameters(
    reader: Reader, members: Members
) -> tuple[tuple[Parameter, ...], dict[str, Any]]:
    """Return the parameters, required ones first, and the defaults to send.

    Required ones come in the order in which "required" lists them: servers
    write it in the order of declaration, and unlike the keys of an object it
    can't lose its order on the way.
    """
    spelling = aliases(members.properties, "argument")
    required, optional, send = [], [], {}
    order = [name for name in members.required if name in members.properties]
    order += [name for name in members.properties if name not in members.required]
    for wire in order:
        schema = members.properties[wire]
        if schema is False:  # it must not be given
            continue
        default = schema.get("default", MISSING) if isinstance(schema, dict) else MISSING
        needed = wire in members.required and default is MISSING
        if wire in members.required and not needed:
            send[wire] = default
        text = reader.type(schema, wire)
        parameter = Parameter(
            name=spelling[wire],
            wire=wire,
            type=TypeText(text),
            required=needed,
            default=default,
            note=note(schema),
            takes_object=reader.is_object_type(text),
        )
        (required if needed else optional).append(parameter)
    return (*required, *optional), send


def _default_text(value: Any) -> str:
    if value is MISSING:
        return "..."
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "..."
    return text if len(text) <= _MAX_DEFAULT else "..."


def _docstring(text: str) -> str:
    """Return an indented docstring with the value `text`."""
    # A quotation mark is only a danger before another one, or at the end.
    text = re.sub(r'"(?="|\Z)', '\\"', text.replace("\\", "\\\\"))
    if "\n" not in text:
        return f'    """{text}"""'
    lines = [f"    {line}".rstrip() for line in text.split("\n")]
    lines[0] = f'    """{lines[0].strip()}'
    return "\n".join([*lines, '    """'])
