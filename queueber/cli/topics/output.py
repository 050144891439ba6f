"""Messages as commands print them."""

import base64
from collections.abc import Iterable

import click

from queueber import Message
from queueber.cli.output import echo_json, echo_lines, text_to_line, to_line
from queueber.cli.target import Target


def echo_messages(target: Target, messages: Iterable[Message], *, times: bool = False) -> None:
    """Print with one write, which is much faster than a write for each."""
    if target.raw:
        click.echo(b"".join(message.payload + b"\n" for message in messages), nl=False)
    elif target.use_json:
        for message in messages:
            echo_json(to_json(message))
    else:
        echo_lines(line for message in messages for line in _lines(message, times=times))


def to_json(message: Message) -> dict[str, object]:
    try:
        text: str | None = message.payload.decode()
    except UnicodeDecodeError:
        text = None
    return {
        "partition": message.partition,
        "offset": message.offset,
        "payload": text,
        "payloadBase64": base64.b64encode(message.payload).decode(),
        "key": message.key or None,
        "attributes": dict(message.attributes),
        "id": message.id.hex(),
        "timestampMs": message.timestamp_ms,
        "sequence": message.sequence,
    }


def _lines(message: Message, *, times: bool) -> tuple[str, str]:
    at = f"{message.timestamp.isoformat(' ', 'milliseconds')[:-6]}Z  " if times else ""
    line = f"{at}{message.partition}/{message.offset}  {to_line(message.payload)}"
    shown = [f"key {text_to_line(message.key)}"] if message.key else []
    shown += [text_to_line(f"{name}={value}") for name, value in message.attributes.items()]
    return line, f"    {', '.join(shown)}" if shown else ""
