"""The settings of topics and groups as users write them, turned into values of the model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypedDict

from queueber.client.arguments.new_messages import to_switch
from queueber.client.arguments.positions import StartOptions, Time, to_position, to_time_ms
from queueber.client.arguments.queue_settings import SettingsArguments, to_settings
from queueber.client.arguments.topic_names import to_topic_name
from queueber.client.arguments.values import Seconds, to_ms, to_name, to_number, to_text
from queueber.errors import InvalidArgument
from queueber.limits import (
    CONTENT_TYPE_BYTES_MAX,
    DEDUP_WINDOW_MS_MAX,
    RETENTION_MS_MAX,
    SCHEMA_VERSION_MAX,
    TOPIC_PARTITIONS_MAX,
)
from queueber.model import (
    GroupKind,
    GroupSettings,
    Position,
    QueueSettings,
    TopicConfig,
    TopicSettings,
)

Kind = GroupKind | Literal["ordered", "shared", "queue"]


class TopicSettingsArguments(TypedDict, total=False):
    """The settings of a topic. Durations are seconds or `timedelta`s; 0 means no limit."""

    retention: Seconds
    """How long messages are kept."""
    retention_bytes: int
    """How many bytes of messages each partition keeps."""
    retention_messages: int
    """How many messages each partition keeps."""
    deletes_acknowledged: bool
    """Whether messages are deleted once all groups have acknowledged them."""
    refuses_when_full: bool
    """Whether a publish is refused at a limit of bytes or messages, instead of deleting the oldest
    messages."""
    keeps_last_per_key: bool
    """Whether a message replaces the one before it with the same key."""
    tombstone: Seconds
    """How long a message without a payload is kept then: a day."""
    ttl: Seconds
    """The topic is deleted once nobody has used it for so long."""
    expires_at: Time
    """The topic is deleted at this time."""
    dedup_window: Seconds
    """How long a second message with the same dedup id is recognised: 120."""
    schema_version: int
    """Every publication must name this version, against which it was checked; 0: none."""


class TopicArguments(TopicSettingsArguments, total=False):
    """What a topic is created with."""

    partitions: int
    """1 to 256; may grow later."""
    content_type: str
    alias: str
    """A second name."""


class GroupArguments(SettingsArguments, total=False):
    """How a group works. All but the first two are for groups that share messages."""

    kind: Kind
    """"ordered", "shared" or "queue"."""
    queue: str
    """Of the last kind: the queue that the messages are added to."""
    in_flight_max: int
    """How many messages may be leased at once; 0: no limit."""


class NewGroupArguments(GroupArguments, StartOptions, total=False):
    """How a group works, and where it begins."""


_DURATIONS = {
    "retention": ("retention_ms", RETENTION_MS_MAX),
    "tombstone": ("tombstone_ms", RETENTION_MS_MAX),
    "ttl": ("ttl_ms", RETENTION_MS_MAX),
    "dedup_window": ("dedup_window_ms", DEDUP_WINDOW_MS_MAX),
}
_ANY = (1 << 63) - 1
_NUMBERS = {
    "retention_bytes": _ANY,
    "retention_messages": _ANY,
    "schema_version": SCHEMA_VERSION_MAX,
}
_SWITCHES = ("deletes_acknowledged", "refuses_when_full", "keeps_last_per_key")


def to_topic_config(present: object, given: Mapping[str, Any]) -> TopicConfig:
    """The present configuration, changed to what is given."""
    if not isinstance(present, TopicConfig):
        raise InvalidArgument(f"config: {present!r} is not a TopicConfig")
    own: dict[str, Any] = {}
    changed: dict[str, Any] = {}
    for name, value in given.items():
        if name == "partitions":
            own[name] = to_number(name, value, least=1, limit=TOPIC_PARTITIONS_MAX)
        elif name == "content_type":
            own[name] = to_text(name, value, CONTENT_TYPE_BYTES_MAX)
        elif name == "alias":
            own[name] = to_topic_name(value, "alias") if value else ""
        elif name in _DURATIONS:
            field, limit_ms = _DURATIONS[name]
            changed[field] = to_ms(name, value, limit_ms)
        elif name in _NUMBERS:
            changed[name] = to_number(name, value, limit=_NUMBERS[name])
        elif name in _SWITCHES:
            changed[name] = to_switch(name, value)
        elif name == "expires_at":
            changed["expires_at_ms"] = to_time_ms(name, value)
        else:
            raise InvalidArgument(f"{name}: there is no such setting of a topic")
    settings: TopicSettings = replace(present.settings, **changed)
    if settings.ttl_ms and settings.expires_at_ms:
        raise InvalidArgument(
            "expires_at: the topic has a ttl, too; it is deleted at a time, or when it is not used "
            "any more, so set one of them to 0"
        )
    if settings.keeps_last_per_key and settings.refuses_when_full:
        raise InvalidArgument(
            "refuses_when_full: the topic keeps the last message of each key, and deletes messages "
            "itself; set one of them to False"
        )
    return replace(present, settings=settings, **own)


def to_kind(kind: object) -> GroupKind:
    words = [each.value for each in GroupKind]
    if isinstance(kind, GroupKind):
        return kind
    if kind not in words:
        raise InvalidArgument(f"kind: {kind!r} is none of {', '.join(words)}")
    return GroupKind(kind)


def to_group_settings(given: Mapping[str, Any]) -> GroupSettings:
    rest = dict(given)
    kind = to_kind(rest.pop("kind", GroupKind.ORDERED))
    queue = rest.pop("queue", "")
    in_flight_max = to_number("in_flight_max", rest.pop("in_flight_max", 0))
    if (kind is GroupKind.QUEUE) != bool(queue):
        raise InvalidArgument(
            "queue: a group of kind 'queue' needs the queue that gets the messages"
            if not queue
            else f"queue: a group of kind {kind.value!r} adds to no queue; leave it out"
        )
    if kind is not GroupKind.SHARED and (rest or in_flight_max):
        name = next(iter(rest), "in_flight_max")
        raise InvalidArgument(f"{name}: only groups of kind 'shared' have leases; leave it out")
    leases = to_settings(QueueSettings(), rest)  # type: ignore[arg-type]  # it checks the names
    return GroupSettings(kind, to_name(queue) if queue else "", leases, in_flight_max)


def split_start(given: Mapping[str, Any]) -> tuple[Position, dict[str, Any]]:
    """Where a new group begins, and its settings."""
    names = StartOptions.__annotations__
    start = {name: value for name, value in given.items() if name in names}
    return to_position(**start), {name: given[name] for name in given if name not in names}
