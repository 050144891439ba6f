"""The checks of what calls say of topics, messages and groups.

Each says which field is wrong, what it was, and what the limit is.
"""

import re
from collections.abc import Sequence

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    CLIENT_NAME_BYTES_MAX,
    CONTENT_TYPE_BYTES_MAX,
    CREDITS_MAX,
    DEDUP_ID_BYTES_MAX,
    DEDUP_WINDOW_MS_MAX,
    DELAY_MS_MAX,
    ERROR_BYTES_MAX,
    GROUP_NAME_BYTES_MAX,
    HEARTBEAT_MS_MIN,
    HOUR_MS,
    ID_BYTES,
    ITEM_WIRE_BYTES,
    KEY_BYTES_MAX,
    LEASE_MS_MAX,
    MESSAGE_OVERHEAD_BYTES,
    PRODUCER_ID_BYTES_MAX,
    PUBLISH_MESSAGES_MAX,
    PUBLISH_TOPICS_MAX,
    RETENTION_MS_MAX,
    SCHEMA_BYTES_MAX,
    TEXT_SEQUENCE_BYTES_MAX,
    TOPIC_NAME_BYTES_MAX,
    TOPIC_PARTITIONS_MAX,
)
from queueber.model import (
    GroupKind,
    GroupSettings,
    NewMessages,
    Outcome,
    Position,
    Publication,
    Settlement,
    Start,
    Subscribing,
    TopicConfig,
    TopicSettings,
    largest_size,
    total_size,
)
from queueber.service.validate.arguments import (
    check_column,
    check_ids,
    check_many,
    check_queue_name,
    check_text,
)
from queueber.service.validate.items import attributes_bytes, check_attributes
from queueber.service.validate.settings import check_range, check_settings

RESERVED = "queue/"
"""The beginning of the names under which the results of queues are read."""

_NAME = re.compile(rf"[A-Za-z0-9._/-]{{1,{TOPIC_NAME_BYTES_MAX}}}", re.ASCII)
_CAPS_OF_QUEUES = (
    "concurrency_max", "rate_items", "cap_by", "cap_by_concurrency_max", "cap_by_rate_items",
)  # fmt: skip


def check_topic_name(name: str, field: str = "name") -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidArgument(
            f"{field}: {name[:200]!r} is not a topic name; use 1 to {TOPIC_NAME_BYTES_MAX} "
            "letters, digits, dots, slashes, dashes and underscores"
        )


def check_new_topic_name(name: str, field: str = "name") -> None:
    """A name that a topic may be created with."""
    check_topic_name(name, field)
    if name.startswith(RESERVED):
        raise InvalidArgument(
            f"{field}: {name[:200]!r} is reserved; names that begin with {RESERVED!r} are those "
            "of the results of queues"
        )


def check_topic_prefix(prefix: str) -> None:
    """What the names in a list begin with, or come after."""
    if prefix:
        check_topic_name(prefix, "prefix")


def check_config(config: TopicConfig, *, is_new: bool = True) -> None:
    if config.alias:
        check_new_topic_name(config.alias, "alias")
    check_range("partitions", config.partitions, 1 if is_new else 0, TOPIC_PARTITIONS_MAX)
    if config.content_type:
        check_content_type(config.content_type)
    check_topic_settings(config.settings)


def check_first_schema(config: TopicConfig, document: bytes) -> None:
    """The schema that a topic is created with."""
    check_schema_document(document)
    version = config.settings.schema_version
    if version != 1:
        raise InvalidArgument(f"schemaVersion: {version} for the first schema of a topic; give 1")
    if config.partitions != 1:
        raise InvalidArgument(
            f"partitions: {config.partitions} for a topic with a schema, which holds from an "
            "offset on; give 1"
        )


def check_schema_document(document: bytes) -> None:
    if not document:
        raise InvalidArgument("document: it is empty; a schema has some content")
    if len(document) > SCHEMA_BYTES_MAX:
        raise ResourceExhausted(
            f"document: it has {len(document)} bytes; the limit is {SCHEMA_BYTES_MAX}"
        )


def check_content_type(content_type: str) -> None:
    check_text("contentType", content_type, CONTENT_TYPE_BYTES_MAX)
    if not (content_type.isascii() and content_type.isprintable()):
        # Over HTTP it is a header.
        raise InvalidArgument(
            f"contentType: {content_type!r} has characters other than printable ASCII"
        )


def check_topic_settings(s: TopicSettings) -> None:
    check_range("retentionMs", s.retention_ms, 0, RETENTION_MS_MAX)
    check_range("tombstoneMs", s.tombstone_ms, 0, RETENTION_MS_MAX)
    check_range("ttlMs", s.ttl_ms, 0, RETENTION_MS_MAX)
    check_range("dedupWindowMs", s.dedup_window_ms, 0, DEDUP_WINDOW_MS_MAX)
    # A time of day, in ms: what is later has no date.
    check_range("expiresAtMs", s.expires_at_ms, 0, (1 << 48) - 1)
    if s.ttl_ms and s.expires_at_ms:
        raise InvalidArgument(
            "expiresAtMs: ttlMs is given, too; a topic is deleted at a time, or when it is not "
            "used any more"
        )
    if s.keeps_last_per_key and s.refuses_when_full:
        raise InvalidArgument(
            "refusesWhenFull: keepsLastPerKey is given, too; such a topic deletes messages itself"
        )


# --- messages -------------------------------------------------------------------------------------


def check_publications(
    publications: Sequence[Publication], *, payload_bytes_max: int, message_bytes_max: int
) -> None:
    if not publications:
        raise InvalidArgument("publications: the call has none; give at least one")
    if len(publications) > PUBLISH_TOPICS_MAX:
        raise ResourceExhausted(
            f"publications: the call has {len(publications)}; the limit is {PUBLISH_TOPICS_MAX}, "
            "send several calls"
        )
    count = sum(len(each.messages.payloads) for each in publications)
    if count > PUBLISH_MESSAGES_MAX:
        raise ResourceExhausted(
            f"payloads: the call has {count}; the limit is {PUBLISH_MESSAGES_MAX}, send several "
            "calls"
        )
    size = MESSAGE_OVERHEAD_BYTES
    for publication in publications:
        _check_publication(publication, payload_bytes_max)
        size += _size(publication.messages)
    if size > message_bytes_max:
        raise ResourceExhausted(
            f"payloads: the call has {size} bytes; the limit is {message_bytes_max}, send several "
            "calls"
        )


def _size(messages: NewMessages) -> int:
    return (
        total_size(messages.payloads)
        + len(messages.payloads) * ITEM_WIRE_BYTES
        + sum(len(key.encode()) for key in messages.keys)
        + sum(len(each.encode()) for each in messages.dedup_ids)
        + sum(map(attributes_bytes, messages.attributes))
    )


def _check_publication(publication: Publication, payload_bytes_max: int) -> None:
    messages = publication.messages
    payloads, count = messages.payloads, len(messages.payloads)
    if not count and not publication.closes:
        raise InvalidArgument("payloads: there are none; a publish has at least one message")
    largest = largest_size(payloads)
    if largest > payload_bytes_max:
        raise ResourceExhausted(
            f"payloads: one has {largest} bytes; the limit is {payload_bytes_max}"
        )
    if messages.keys:
        check_column("keys", messages.keys, count)
        for key in filter(None, messages.keys):
            check_text("key", key, KEY_BYTES_MAX)
    if messages.attributes:
        check_attributes(messages.attributes, count)
    if messages.dedup_ids:
        check_column("dedupIds", messages.dedup_ids, count)
        for dedup_id in filter(None, messages.dedup_ids):
            check_text("dedupId", dedup_id, DEDUP_ID_BYTES_MAX)
    if publication.content_type:
        check_content_type(publication.content_type)
    if publication.partition is not None and publication.partition >= TOPIC_PARTITIONS_MAX:
        raise InvalidArgument(
            f"partition: {publication.partition} is too high; a topic has at most "
            f"{TOPIC_PARTITIONS_MAX}"
        )
    _check_order(publication)


def _check_order(publication: Publication) -> None:
    if publication.text_sequence:
        check_text("textSequence", publication.text_sequence, TEXT_SEQUENCE_BYTES_MAX)
    producer = publication.producer
    if producer is not None:
        check_text("producer.id", producer.id, PRODUCER_ID_BYTES_MAX)
        if producer.sequence == 0:
            raise InvalidArgument("producer.sequence: 0; the first call of an epoch has 1")


def check_message_id(message_id: bytes) -> None:
    if len(message_id) != ID_BYTES:
        raise InvalidArgument(f"id: it has {len(message_id)} bytes; it must have {ID_BYTES}")


# --- groups ---------------------------------------------------------------------------------------


def check_group_name(name: str) -> None:
    check_text("group", name, GROUP_NAME_BYTES_MAX)
    if not name.isprintable():
        raise InvalidArgument(f"group: {name!r} has characters that cannot be printed")


def check_no_group(position: Position, group: str) -> None:
    """A read from elsewhere than where a group goes on is of no group."""
    if group and position.start is not Start.GROUP:
        raise InvalidArgument(
            f"group: {group[:200]!r} is given, but the position is {position.start.value!r}; "
            "only the position 'group' is that of one"
        )


def check_group_settings(settings: GroupSettings, item_bytes_max: int) -> None:
    if settings.kind is GroupKind.QUEUE:
        check_queue_name(settings.queue, "queue")
    elif settings.queue:
        raise InvalidArgument(
            f"queue: {settings.queue[:200]!r} is given, but the group is {settings.kind.value}; "
            "only a group of the kind 'queue' has one"
        )
    check_settings(settings.leases, item_bytes_max)
    caps = settings.leases
    if any(getattr(caps, name) for name in _CAPS_OF_QUEUES):
        raise InvalidArgument(
            "settings: a group has no caps of a queue; give inFlightMax to limit what is leased"
        )
    if settings.leases.dead_age_ms:
        raise InvalidArgument(
            f"deadAgeMs: {settings.leases.dead_age_ms} is given, but a group keeps its dead "
            "letters for as long as its topic keeps their messages; leave it out"
        )
    if settings.in_flight_max and settings.kind is not GroupKind.SHARED:
        raise InvalidArgument(
            f"inFlightMax: {settings.in_flight_max} is given, but the group is "
            f"{settings.kind.value}; only a shared group leases messages"
        )


# --- subscriptions --------------------------------------------------------------------------------


def check_subscribing(asked: Subscribing, item_bytes_max: int) -> None:
    if asked.group:
        check_group_name(asked.group)
    check_group_settings(asked.settings, item_bytes_max)
    if asked.consumer:
        check_text("consumer", asked.consumer, CLIENT_NAME_BYTES_MAX)
        if not asked.consumer.isprintable():
            raise InvalidArgument(
                f"consumer: {asked.consumer!r} has characters that cannot be printed"
            )
    if asked.position.start is Start.GROUP:
        raise InvalidArgument("from: a group goes on where it is; give where a new one begins")
    check_range("credits", asked.credits, 0, CREDITS_MAX)
    if asked.heartbeat_ms:
        check_range("heartbeatMs", asked.heartbeat_ms, HEARTBEAT_MS_MIN, HOUR_MS)
    if asked.lease_ms:
        check_range("leaseMs", asked.lease_ms, 1, LEASE_MS_MAX)
    if asked.seeks and not asked.group:
        raise InvalidArgument("seeks: a subscription without a group begins at `from` anyway")


def check_settlement(settlement: Settlement) -> None:
    s = settlement
    check_ids("lease", [s.lease])
    if s.outcome is Outcome.EXTENDED:
        if s.delay_ms is not None:
            check_range("delayMs", s.delay_ms, 1, LEASE_MS_MAX)
        return
    check_many("offsets", len(s.offsets))
    if s.outcome is Outcome.FAILED:
        size = len(s.error.encode())
        if size > ERROR_BYTES_MAX:
            raise InvalidArgument(f"error: it has {size} bytes; the limit is {ERROR_BYTES_MAX}")
        if s.delay_ms is not None:
            check_range("delayMs", s.delay_ms, 0, DELAY_MS_MAX)
