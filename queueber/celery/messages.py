"""Messages of kombu as items, and back."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from queueber.limits import (
    DELAY_MS_MAX,
    PRIORITY_MAX,
    QUEUE_NAME_CHARS_MAX,
    TOPIC_NAME_BYTES_MAX,
)

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")
_ATTRIBUTES = {"task": "task", "id": "task_id", "retries": "retries"}
_TEXT_MAX = 200
_ETA_SLACK_SECONDS = 0.05
"""A worker that gets a task a moment before its eta looks at it again only a second later."""

RawMessage = dict[str, Any]
"""A message as kombu's virtual transports have it."""


def queue_name(name: str, prefix: str) -> str:
    """The queue of the server; characters that its names cannot have become dashes."""
    return _NOT_IN_NAMES.sub("-", prefix + name)[:QUEUE_NAME_CHARS_MAX]


def exchange_topic(exchange: str, prefix: str) -> str:
    return _NOT_IN_NAMES.sub("-", f"{prefix}celery-exchange-{exchange}")[:TOPIC_NAME_BYTES_MAX]


def encode(message: RawMessage) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def decode(contents: bytes) -> RawMessage:
    decoded: RawMessage = json.loads(contents)
    return decoded


def text_of(message: RawMessage) -> str | None:
    """The body of a message that is text, before it is encoded; None if it is not."""
    body = message["body"]
    if isinstance(body, str):
        return body
    if message.get("content-encoding") != "utf-8" or "compression" in (message["headers"] or {}):
        return None
    try:
        return bytes(body).decode()
    except UnicodeDecodeError:
        return None


def priority_of(message: RawMessage) -> int:
    """0 to 9, higher first and 0 without one, as in RabbitMQ."""
    return min(max(int(message["properties"].get("priority") or 0), 0), PRIORITY_MAX)


def delay_of(message: RawMessage, now: datetime | None = None) -> float:
    """Seconds until the task's `eta`: the server keeps it until then, and no worker has to.

    A time without a zone is left to the worker, which knows the zone of its configuration.
    """
    eta = (message.get("headers") or {}).get("eta")
    if not eta:
        return 0.0
    try:
        due = datetime.fromisoformat(eta)
    except (TypeError, ValueError):
        return 0.0
    if due.tzinfo is None:
        return 0.0
    seconds = (due - (now or datetime.now(UTC))).total_seconds()
    return min(seconds + _ETA_SLACK_SECONDS, DELAY_MS_MAX / 1000) if seconds > 0 else 0.0


def attributes_of(message: RawMessage) -> dict[str, str]:
    """What `queueber peek` shows beside the contents: which task it is."""
    headers: Mapping[str, Any] = message.get("headers") or {}
    found = {ours: headers.get(theirs) for theirs, ours in _ATTRIBUTES.items()}
    return {name: str(value)[:_TEXT_MAX] for name, value in found.items() if value}
