"""Topics and groups: `TopicRecord` and `GroupRecord` of `schema/storage.capnp`, and the agenda."""

import struct
from typing import Any, NamedTuple

from queueber.db.records.keys import PREFIX_BYTES, TIME_BYTES, queue_prefix
from queueber.db.records.queues import stored_names
from queueber.ids import QueueId
from queueber.model.topics import GroupKind, GroupSettings, TopicSettings
from queueber.schema import storage
from queueber.wire.queues import read_settings, write_settings


class Inherited(NamedTuple):
    """Messages of one partition that a fork shares: those of a log between two offsets."""

    partition: int
    log: int
    first: int
    end: int


class TopicRecord(NamedTuple):
    name: str
    created_at_ms: int
    logs: tuple[int, ...]
    """The number of the log of each partition."""
    settings: TopicSettings = TopicSettings()
    alias: str = ""
    content_type: str = ""
    is_closed: bool = False
    is_deleted: bool = False
    used_at_ms: int = 0
    forks: int = 0
    parent: int = 0
    inherited: tuple[Inherited, ...] = ()
    origin: int = 0
    """Of a fork; 0: its own number, or in a fork of an older version that of its parent."""
    fork_offset: int = 0
    cut_bytes: int = 0
    text_sequence: str = ""
    sources: int = 0
    """How many routes lead to it."""
    updated_at_ms: int = 0
    """When operators changed it; 0: not since that is known."""


_SETTINGS = stored_names(TopicSettings)
_FIELDS = {
    "name": "name",
    "created_at_ms": "createdAtMs",
    "alias": "alias",
    "content_type": "contentType",
    "is_closed": "isClosed",
    "is_deleted": "isDeleted",
    "used_at_ms": "usedAtMs",
    "forks": "forks",
    "parent": "parent",
    "origin": "origin",
    "fork_offset": "forkOffset",
    "cut_bytes": "cutBytes",
    "text_sequence": "textSequence",
    "sources": "sources",
    "updated_at_ms": "updatedAtMs",
}
_INHERITED = struct.Struct(">HIQQ")
_DEFAULT_SETTINGS = TopicSettings()
_DEFAULTS = TopicRecord("", 0, ())._asdict()


def encode_topic(record: TopicRecord) -> bytes:
    # Setting a field takes 2 µs, and most have the value that the schema has anyhow.
    fields = {
        stored: value
        for name, stored in _FIELDS.items()
        if (value := getattr(record, name)) != _DEFAULTS[name]
    }
    settings = record.settings
    if settings != _DEFAULT_SETTINGS:
        fields |= {stored: getattr(settings, name) for name, stored in _SETTINGS.items()}
    if record.inherited:
        fields["inherited"] = b"".join([_INHERITED.pack(*each) for each in record.inherited])
    message = storage.TopicRecord.new_message(logs=list(record.logs), **fields)
    encoded: bytes = message.to_bytes()
    return encoded


def decode_topic(value: bytes) -> TopicRecord:
    with storage.TopicRecord.from_bytes(value) as r:
        return TopicRecord(
            logs=tuple(r.logs),
            inherited=tuple(Inherited(*each) for each in _INHERITED.iter_unpack(r.inherited)),
            settings=TopicSettings(**_fields(r, _SETTINGS)),
            **_fields(r, _FIELDS),
        )


def _fields(message: Any, names: dict[str, str]) -> dict[str, Any]:
    return {name: getattr(message, stored) for name, stored in names.items()}


# --- groups ---------------------------------------------------------------------------------------

_KINDS = (GroupKind.ORDERED, GroupKind.SHARED, GroupKind.QUEUE)


class GroupRecord(NamedTuple):
    number: int
    created_at_ms: int
    settings: GroupSettings = GroupSettings()
    paused_until_ms: int = 0
    began_at: tuple[int, ...] = ()
    """The first cursor in each partition, unless the group is shared; empty: 0 in all."""


def group_key(topic_prefix: bytes, name: str) -> bytes:
    return topic_prefix + name.encode()


def split_group_key(key: bytes) -> str:
    """Raises `ValueError` if the name is not UTF-8."""
    return key[PREFIX_BYTES:].decode()


def encode_group(record: GroupRecord) -> bytes:
    settings = record.settings
    message = storage.GroupRecord.new_message(
        number=record.number,
        kind=_KINDS.index(settings.kind),
        createdAtMs=record.created_at_ms,
        queue=settings.queue,
        inFlightMax=settings.in_flight_max,
        beganAt=list(record.began_at),
    )
    leases = message.init("settings")
    leases.pausedUntilMs = record.paused_until_ms
    write_settings(leases, settings.leases)
    encoded: bytes = message.to_bytes()
    return encoded


def decode_group(value: bytes) -> GroupRecord:
    """Raises `IndexError` if it has a kind of a later version."""
    with storage.GroupRecord.from_bytes(value) as r:
        settings = GroupSettings(_KINDS[r.kind], r.queue, read_settings(r.settings), r.inFlightMax)
        return GroupRecord(
            r.number, r.createdAtMs, settings, r.settings.pausedUntilMs, tuple(r.beganAt)
        )


def position_key(group_prefix: bytes, partition: int) -> bytes:
    return group_prefix + partition.to_bytes(2)


# --- the agenda -----------------------------------------------------------------------------------

_BY_NUMBER = b"\0"
_BY_TIME = b"\1"
AGENDA_END = b"\2"


def agenda_key(number: int) -> bytes:
    """Where the time is that is noted for a topic or group."""
    return _BY_NUMBER + queue_prefix(number)


def agenda_time_key(at_ms: int, number: int = 0) -> bytes:
    return _BY_TIME + at_ms.to_bytes(TIME_BYTES) + queue_prefix(number)


def split_agenda_time_key(key: bytes) -> tuple[int, QueueId]:
    end = 1 + TIME_BYTES
    return int.from_bytes(key[1:end]), QueueId(int.from_bytes(key[end:]))
