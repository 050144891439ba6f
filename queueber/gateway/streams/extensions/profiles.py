"""Profiles: names for what streams are used for, with the settings and schema of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from queueber.gateway.calls import Call
from queueber.gateway.problems import Problem, invalid
from queueber.gateway.routes import NoQuery
from queueber.gateway.streams.content import JSON_TYPE
from queueber.gateway.streams.extensions.schemas.documents import (
    GENERIC,
    Document,
    document_in_force,
    encode_document,
)
from queueber.gateway.streams.paths import stream_path
from queueber.gateway.streams.stream_info import described
from queueber.limits import DAY_MS
from queueber.model import bare_type

_NAME = {"type": "string", "minLength": 1}
_HEADERS_OF_CHANGE = {
    "required": ["operation"],
    "properties": {
        "operation": {"enum": ["insert", "update", "delete"]},
        "txid": {"type": "string"},
        "timestamp": {"type": "string", "format": "date-time"},
    },
}
_IS_DELETE = {"properties": {"headers": {"properties": {"operation": {"const": "delete"}}}}}
STATE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["headers"],
    "properties": {"headers": {"type": "object"}},
    "if": {"properties": {"headers": {"required": ["control"]}}},
    "then": {
        "properties": {
            "headers": {
                "properties": {
                    "control": {"enum": ["snapshot-start", "snapshot-end", "reset"]},
                    "offset": {"type": "string"},
                }
            }
        }
    },
    "else": {
        "required": ["type", "key"],
        "properties": {"type": _NAME, "key": _NAME, "headers": _HEADERS_OF_CHANGE},
        "if": _IS_DELETE,
        "else": {"required": ["value"]},
    },
}
"""The messages of the State Protocol: changes of rows, and marks between them."""

EVENTS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["time"],
    "properties": {"time": {"type": "string", "format": "date-time"}},
}


@dataclass(frozen=True, slots=True)
class Profile:
    """What a stream of a profile is created with. Headers of the request go before its settings."""

    name: str
    summary: str
    content_type: str = ""
    """The only one that is possible; "": any."""
    settings: Mapping[str, int | bool] = field(default_factory=dict)
    """By the names that `TopicSettings` has."""
    schema: Mapping[str, Any] | None = None
    key: tuple[str, ...] = ()

    @property
    def document(self) -> Document | None:
        if self.schema is None:
            return None
        return Document(self.name, dict(self.schema), None, self.key)

    def first_schema(self) -> bytes | None:
        """What a new stream begins with."""
        return None if self.document is None else encode_document(self.document)


PROFILES = {
    each.name: each
    for each in (
        Profile(GENERIC, "Bytes or JSON of any kind; a stream without a profile has this one."),
        Profile(
            "state",
            "Changes of rows, as the State Protocol has them: each must be one, and only the last "
            "of each type and key is kept.",
            JSON_TYPE,
            {"keeps_last_per_key": True},
            STATE_SCHEMA,
            ("type", "key"),
        ),
        Profile(
            "events",
            "JSON objects with a time, kept for 30 days.",
            JSON_TYPE,
            {"retention_ms": 30 * DAY_MS},
            EVENTS_SCHEMA,
        ),
    )
}


def profile_of(name: str) -> Profile:
    """The profile that a header names."""
    found = PROFILES.get(name.strip())
    if found is None:
        raise invalid(f"stream-profile: {name[:100]!r} is none; possible are {', '.join(PROFILES)}")
    return found


def type_of_profile(profile: Profile, given: str) -> str:
    """The content type of a new stream: "" leaves it to others."""
    if profile.content_type and given and bare_type(given) != profile.content_type:
        raise invalid(
            f"content-type: it is {given[:100]!r}; streams of the profile {profile.name} have "
            f"{profile.content_type}"
        )
    return given or profile.content_type


# --- the route ------------------------------------------------------------------------------------


class ProfileAnswer(msgspec.Struct):
    """The profile of a stream, and what it stands for."""

    profile: str
    summary: str
    content_type: str | None
    """The only one that its streams have; null: any."""
    settings: dict[str, int | bool]
    """What it sets unless a request says otherwise."""
    schema: Any
    """The JSON Schema of its messages; null: there is none."""
    key: list[str]
    """The fields that make the key of a message."""


async def show_profile(call: Call[NoQuery, None]) -> ProfileAnswer:
    info = await described(call.client, stream_path(call.names))
    _, document = await document_in_force(call.client, info)
    profile = PROFILES.get(GENERIC if document is None else document.profile)
    if profile is None:
        raise Problem(409, "FAILED_PRECONDITION", "profile: a later gateway has set it; ask that")
    return ProfileAnswer(
        profile.name,
        profile.summary,
        profile.content_type or None,
        dict(profile.settings),
        profile.schema,
        list(profile.key),
    )
