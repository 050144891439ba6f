"""The settings of topics in JSON, where durations are milliseconds."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from queueber.gateway.topics import fields
from queueber.limits import (
    CONTENT_TYPE_BYTES_MAX,
    DEDUP_WINDOW_MS_MAX,
    SECOND_MS,
    TOPIC_NAME_BYTES_MAX,
    TOPIC_PARTITIONS_MAX,
)
from queueber.model import TopicConfig, TopicSettings

_Window = Annotated[int, Meta(ge=0, le=DEDUP_WINDOW_MS_MAX)]
_Partitions = Annotated[int, Meta(ge=1, le=TOPIC_PARTITIONS_MAX)]
_ContentType = Annotated[str, Meta(pattern=f"^[ -~]{{0,{CONTENT_TYPE_BYTES_MAX}}}$")]
_Alias = Annotated[str, Meta(pattern=f"^[A-Za-z0-9._/-]{{0,{TOPIC_NAME_BYTES_MAX}}}$")]
_DEFAULTS = TopicSettings()


class Keeping(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Settings that a fork may have, too. 0 means no limit; those that are left out stay."""

    retention_ms: fields.Retention | UnsetType = UNSET
    retention_bytes: fields.Count | UnsetType = UNSET
    retention_messages: fields.Count | UnsetType = UNSET
    deletes_acknowledged: bool | UnsetType = UNSET
    refuses_when_full: bool | UnsetType = UNSET
    keeps_last_per_key: bool | UnsetType = UNSET
    tombstone_ms: fields.Retention | UnsetType = UNSET
    ttl_ms: fields.Retention | UnsetType = UNSET
    expires_at_ms: fields.TimeMs | UnsetType = UNSET
    dedup_window_ms: _Window | UnsetType = UNSET


class TopicChanges(Keeping, forbid_unknown_fields=True, kw_only=True):
    """The settings to change; the others stay as they are."""

    partitions: _Partitions | UnsetType = UNSET
    content_type: _ContentType | UnsetType = UNSET
    alias: _Alias | UnsetType = UNSET


class NewTopicSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The settings of a topic. 0 means no limit."""

    partitions: _Partitions = 1
    """May grow later."""
    retention_ms: fields.Retention = 0
    """How long messages are kept."""
    retention_bytes: fields.Count = 0
    """How many bytes of messages each partition keeps."""
    retention_messages: fields.Count = 0
    """How many messages each partition keeps."""
    deletes_acknowledged: bool = False
    """Whether messages are deleted once all groups have acknowledged them."""
    refuses_when_full: bool = False
    """Whether a publish is refused at a limit of bytes or messages, instead of deleting the oldest
    messages."""
    keeps_last_per_key: bool = False
    """Whether a message replaces the one before it with the same key."""
    tombstone_ms: fields.Retention = _DEFAULTS.tombstone_ms
    """How long a message without a payload is kept then."""
    ttl_ms: fields.Retention = 0
    """The topic is deleted once nobody has used it for so long."""
    expires_at_ms: fields.TimeMs = 0
    """The topic is deleted at this time."""
    dedup_window_ms: _Window = _DEFAULTS.dedup_window_ms
    """How long a second message with the same dedup id is recognised."""
    content_type: _ContentType = ""
    """What payloads are, for readers; it cannot be changed later."""
    alias: _Alias = ""
    """A second name."""


_IN_SECONDS = {
    "retention_ms": "retention",
    "tombstone_ms": "tombstone",
    "ttl_ms": "ttl",
    "expires_at_ms": "expires_at",
    "dedup_window_ms": "dedup_window",
}


def to_topic_arguments(settings: NewTopicSettings | Keeping) -> dict[str, Any]:
    """The settings that were given, as the client takes them."""
    given = {name: getattr(settings, name, UNSET) for name in TopicChanges.__struct_fields__}
    return {
        _IN_SECONDS.get(name, name): value / SECOND_MS if name in _IN_SECONDS else value
        for name, value in given.items()
        if value is not UNSET
    }


def shown_settings(config: TopicConfig) -> NewTopicSettings:
    settings: dict[str, Any] = {
        name: getattr(config.settings, name) for name in Keeping.__struct_fields__
    }
    return NewTopicSettings(
        partitions=config.partitions,
        content_type=config.content_type,
        alias=config.alias,
        **settings,
    )
