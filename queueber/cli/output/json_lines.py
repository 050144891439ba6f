"""JSON for programs: one object a line, with the field names of the wire."""

import base64
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import click


def echo_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))


def to_json(value: object) -> object:
    """A dataclass as a dictionary with names in camelCase; ids in hex."""
    if is_dataclass(value):
        return {to_camel_case(f.name): to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    return dict(value) if isinstance(value, Mapping) else value


def item_to_json(item: object) -> dict[str, object]:
    """An item or a result: its bytes as text and in base64; null for what it does not have."""
    found: dict[str, object] = {}
    for name in (f.name for f in fields(item)):  # type: ignore[arg-type]  # any of three classes
        value = getattr(item, name)
        if name in {"contents", "result"}:
            found |= {name: to_text(value), f"{name}Base64": to_base64(value)}
        else:
            found[field_name(name)] = None if value in ("", b"") else to_json(value)
    return found


def field_name(name: str) -> str:
    """The JSON name of an item's field: `lease` for `lease_id`, as `poll` prints it."""
    return to_camel_case(name.removesuffix("_id"))


def to_camel_case(name: str) -> str:
    first, *rest = name.replace(" ", "_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def to_text(contents: bytes) -> str | None:
    """The contents as text; None when they are not UTF-8."""
    try:
        return contents.decode()
    except UnicodeDecodeError:
        return None


def to_base64(contents: bytes) -> str:
    return base64.b64encode(contents).decode()
