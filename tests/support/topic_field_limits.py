"""The fields of the methods of topics, their groups and subscriptions; see `field_limits.py`.

Every call is made on a new topic `MADE` of two partitions, with three messages in the first, an
ordered and a shared group. A consumer of each of them has had two messages.
"""

from typing import Any

from queueber.limits import (
    CLIENT_NAME_BYTES_MAX,
    CREDITS_MAX,
    DELAY_MS_MAX,
    ERROR_BYTES_MAX,
    FILTER_CHARS_MAX,
    GROUP_NAME_BYTES_MAX,
    HEARTBEAT_MS_MIN,
    HOUR_MS,
    LEASE_MS_MAX,
    QUEUE_NAME_CHARS_MAX,
    READER_NAME_BYTES_MAX,
    SCHEMA_BYTES_MAX,
    SCHEMA_VERSION_MAX,
    TOPIC_NAME_BYTES_MAX,
    TOPIC_PARTITIONS_MAX,
)
from queueber.schema import wire
from tests.support.field_limits import (
    EXHAUSTED,
    FAILED,
    ID,
    INVALID,
    METHODS,
    MISSING,
    U16,
    U32,
    U64,
    Any_,
    Limit,
    Method,
    Rule,
    a_flag,
    an_id,
    below,
    first_fields,
    many,
    publication,
    publication_fields,
    settings,
    text,
    topic_settings,
    upto,
)

RANGE = "OUT_OF_RANGE"
ORDERED, SHARED = "ordered", "shared"
MESSAGES, DELIVERED = 3, 2
MESSAGE_BYTES = 2
LEASE = "lease of the delivery"
"""Stands for the lease that the consumer of the shared group has."""

a_partition = upto(1)
a_filter = Limit("a = 1".ljust(FILTER_CHARS_MAX), "a = 1".ljust(FILTER_CHARS_MAX + 1))
a_missing_group = text(GROUP_NAME_BYTES_MAX, MISSING)
from_offset: dict[str, Any] = {"start": "offset"}
position_fields: dict[str, Rule] = {
    "start": Limit("last", 99),
    "value": Limit(MESSAGES, MESSAGES + 1, RANGE),
    "moves": a_flag,
}
group_settings: dict[str, Rule] = {
    "kind": Limit("shared", 99),
    # Only a group of the kind 'queue' has one.
    "queue": Any_("q", INVALID),
    **{f"leases.{name.removeprefix('settings.')}": rule for name, rule in settings.items()},
    # Caps are of queues, and so is the age of dead letters.
    **{
        f"leases.{name}": Any_(value, INVALID)
        for name, value in {
            "concurrencyMax": 1,
            "rateItems": 1,
            "capBy": "customer",
            "capByConcurrencyMax": 1,
            "capByRateItems": 1,
            "deadAgeMs": 1,
        }.items()
    },
    "inFlightMax": Any_(U64),
}
shared: dict[str, Any] = {"kind": "shared", "leases": {"backoffMs": [1]}}
fork_fields = below("req.", topic_settings)

TOPIC_METHODS: dict[str, Method] = {
    "Topic.publish": Method(
        {"publication": {**publication, "partition": 0}},
        below(
            "publication.",
            {
                **publication_fields,
                "topic": Any_("it is ignored" * 100),
                "partition": a_partition,
                "expectedOffset": Limit(MESSAGES, MESSAGES + 1, FAILED),
                # It has two.
                "onePartition": Any_(True, FAILED),
            },
        ),
    ),
    "Topic.read": Method(
        {"req": {"from": from_offset}},
        {
            "req.partition": a_partition,
            **below("req.from.", position_fields),
            # Only the position 'group' is that of one.
            "req.group": Any_(ORDERED, INVALID),
            "req.messagesMax": Any_(U32),
            "req.bytesMax": Any_(U64),
            "req.endOffset": Any_(U64),
            "req.endMs": Any_(U64),
            "req.timeoutMs": Any_(U64),
            "req.tellsTopic": a_flag,
            "req.goesOn": a_flag,
            **{
                f"req.without.{name}": a_flag
                for name in ("results", "keys", "batches", "attributes", "contents")
            },
        },
    ),
    "Topic.describe": Method(),
    "Topic.trim": Method(
        {"partition": 0, "to": from_offset},
        {"partition": a_partition, **below("to.", position_fields)},
    ),
    "Topic.close": Method(),
    "Topic.fork": Method(
        {"req": {"name": "fork", "partition": 0, "first": {**publication, "partition": 0}}},
        {
            "req.name": Limit("f" * TOPIC_NAME_BYTES_MAX, "f" * (TOPIC_NAME_BYTES_MAX + 1)),
            **fork_fields,
            # A fork has as many as the topic.
            "req.config.partitions": Limit(2, 3),
            "req.partition": a_partition,
            "req.offset": Limit(MESSAGES, MESSAGES + 1, RANGE),
            "req.cutBytes": Limit(MESSAGE_BYTES - 1, MESSAGE_BYTES, RANGE),
            **below("req.first.", first_fields),
            "req.first.partition": a_partition,
            "req.first.onePartition": Any_(True, FAILED),
            # The first messages name no schema.
            "req.config.settings.schemaVersion": Limit(0, SCHEMA_VERSION_MAX, FAILED),
        },
    ),
    # Only a topic of one partition has schemas.
    "Topic.setSchema": Method(
        {"document": b"{}"},
        {
            "document": Any_(bytes(SCHEMA_BYTES_MAX), INVALID),
            "expectedVersion": Any_(2**63 - 1, INVALID),
            "expectedOffset": Any_(2**63 - 1, INVALID),
            "topicNumber": Any_(U64, INVALID),
        },
    ),
    "Topic.readSchema": Method({}, {"version": Any_(U32, MISSING)}),
    "Topic.listSchemas": Method(),
    "Topic.addSource": Method(
        {"source": {"queue": "default"}},
        below(
            "source.",
            {
                "queue": text(QUEUE_NAME_CHARS_MAX, MISSING),
                "on": upto(2),
                "where": a_filter,
                "partitionBy": Limit("a".ljust(FILTER_CHARS_MAX), "a".ljust(FILTER_CHARS_MAX + 1)),
                "payload": upto(2),
            },
        ),
    ),
    "Topic.dropSource": Method(
        {"queue": "default"}, {"queue": text(QUEUE_NAME_CHARS_MAX), "on": upto(2)}
    ),
    "Topic.find": Method({"id": ID}, {"id": an_id, "sequence": Any_(U64)}),
    "Topic.createGroup": Method(
        {"name": "new", "settings": shared, "at": from_offset},
        {
            "name": text(GROUP_NAME_BYTES_MAX),
            **below("settings.", group_settings),
            **below("at.", position_fields),
            # The second partition has no messages.
            "at.value": Limit(0, 1, RANGE),
        },
    ),
    "Topic.listGroups": Method(),
    "Topic.describeGroup": Method({"name": ORDERED}, {"name": a_missing_group}),
    "Topic.deleteGroup": Method({"name": ORDERED}, {"name": text(GROUP_NAME_BYTES_MAX)}),
    "Topic.resetGroup": Method(
        {"name": ORDERED, "partition": 0, "to": from_offset},
        {"name": a_missing_group, "partition": a_partition, **below("to.", position_fields)},
    ),
    "Topic.pauseGroup": Method(
        {"name": SHARED}, {"name": a_missing_group, "forMs": upto(DELAY_MS_MAX)}
    ),
    "Topic.resumeGroup": Method({"name": SHARED}, {"name": a_missing_group}),
    "Topic.ack": Method(
        {"group": ORDERED},
        {
            "group": a_missing_group,
            "partition": a_partition,
            "offset": Limit(MESSAGES, MESSAGES + 1, RANGE),
        },
    ),
    "Topic.consume": Method(
        {"req": {"group": "new", "from": from_offset, "settings": shared}},
        {
            "req.group": text(GROUP_NAME_BYTES_MAX),
            "req.partition": a_partition,
            **below("req.from.", position_fields),
            **below("req.settings.", group_settings),
            "req.messagesMax": Any_(U32),
            "req.leaseMs": upto(LEASE_MS_MAX),
            "req.timeoutMs": Any_(U64),
            "req.token": Any_(U64),
        },
    ),
    "Topic.withdrawConsume": Method({}, {"token": Any_(U64)}),
    "Topic.group": Method({"name": SHARED}, {"name": a_missing_group}),
    "Topic.subscribe": Method(
        {"req": {"group": "new", "from": from_offset, "settings": {"leases": {"backoffMs": [1]}}}},
        {
            "req.group": text(GROUP_NAME_BYTES_MAX),
            "req.consumer": text(CLIENT_NAME_BYTES_MAX),
            **below("req.from.", position_fields),
            "req.from.value": Limit(0, 1, RANGE),
            "req.partitions": Limit([0] * TOPIC_PARTITIONS_MAX, [0] * 257, EXHAUSTED),
            "req.partitions[]": a_partition,
            "req.credits": upto(CREDITS_MAX),
            "req.heartbeatMs": upto(HOUR_MS),
            **below("req.settings.", group_settings),
            "req.settings.inFlightMax": Any_(U64, INVALID),
            "req.leaseMs": upto(LEASE_MS_MAX),
            "req.batchMessagesMax": Any_(U32),
            "req.deliveriesMax": Any_(U32),
            "req.seeks": a_flag,
        },
    ),
    "Subscription.grant": Method({"credits": 1}, {"credits": upto(CREDITS_MAX)}),
    "Subscription.ack": Method(
        {"offset": DELIVERED},
        {"partition": Limit(0, 2), "offset": Limit(DELIVERED, DELIVERED + 1, FAILED)},
    ),
    "Subscription.settle": Method(
        {"req": {"lease": LEASE, "partitions": [0], "offsets": [0], "outcome": "failed"}},
        {
            "req.lease": an_id,
            "req.partitions": Limit([0], [0, 0]),
            "req.partitions[]": Any_(U16),
            "req.offsets": many(0),
            "req.offsets[]": Any_(U64),
            "req.outcome": Limit("extended", 99),
            "req.error": Limit("e" * ERROR_BYTES_MAX, "e" * (ERROR_BYTES_MAX + 1)),
            "req.delayMs": upto(DELAY_MS_MAX),
        },
    ),
    "Subscription.close": Method(),
}

_GROUP_METHODS = (
    "remove", "poll", "extend", "removeMany", "extendMany", "pollMany", "stats", "fail", "release",
    "peek", "purge", "redrive", "pause", "resume", "withdrawPoll", "listLeases",
)  # fmt: skip
GROUP_METHODS: dict[str, Method] = {name: METHODS[name] for name in _GROUP_METHODS}
"""The methods of a queue that a shared group has, with the same limits."""
NOT_OF_GROUPS = [name for name in wire.Queue.schema.method_names if name not in _GROUP_METHODS]

_reader = text(READER_NAME_BYTES_MAX)
_first = Limit(0, 1, RANGE)
RESULTS_METHODS: dict[str, Method] = {
    "Topic.read": Method(
        TOPIC_METHODS["Topic.read"].valid,
        {
            **TOPIC_METHODS["Topic.read"].fields,
            "req.partition": upto(0),
            "req.from.value": _first,
            "req.timeoutMs": Any_(1),
        },
    ),
    "Topic.describe": Method(),
    "Topic.createGroup": Method(
        {"name": "new", "settings": {"leases": {"backoffMs": [1]}}, "at": from_offset},
        {
            "name": _reader,
            **below("settings.", group_settings),
            "settings.kind": Limit("ordered", 99),
            "settings.inFlightMax": Any_(U64, INVALID),
            **below("at.", position_fields),
            "at.value": _first,
        },
    ),
    "Topic.listGroups": Method(),
    "Topic.describeGroup": Method({"name": "r"}, {"name": text(READER_NAME_BYTES_MAX, MISSING)}),
    "Topic.deleteGroup": Method({"name": "r"}, {"name": _reader}),
    "Topic.ack": Method(
        {"group": "r"},
        {
            "group": text(READER_NAME_BYTES_MAX, MISSING),
            "partition": upto(0),
            "offset": Limit(0, 1),
        },
    ),
    "Topic.subscribe": Method(
        TOPIC_METHODS["Topic.subscribe"].valid,
        {
            **TOPIC_METHODS["Topic.subscribe"].fields,
            "req.settings.kind": Limit("ordered", 99),
            "req.partitions[]": upto(0),
            "req.from.value": _first,
            # A reader goes on where it is.
            "req.seeks": Any_(True, INVALID),
        },
    ),
}
"""The methods that the results of a queue as a topic have. A group is a reader of them."""

_settled = {"lease": LEASE, "partitions": [0], "offsets": [0]}
_extended = {"lease": LEASE, "outcome": "extended"}

ALSO: list[tuple[str, dict[str, Any], str, str]] = [
    ("Topic.publish", {"publication": {}}, INVALID, "payloads"),
    ("Topic.publish", {"publication": {**publication, "partition": -2}}, INVALID, "partition"),
    ("Topic.publish", {"publication": {**publication, "expectedOffset": -2}}, INVALID, "expectedO"),
    ("Topic.read", {"req": {"from": {"start": "group"}}}, INVALID, "group"),
    ("Topic.read", {"req": {"from": {"start": "group"}, "group": "g" * 256}}, INVALID, "group"),
    ("Topic.read", {"req": {"from": {"start": "group"}, "group": "none"}}, MISSING, "group"),
    ("Topic.trim", {"partition": -2}, INVALID, "partition"),
    ("Topic.trim", {"partition": -1, "to": {"start": "group"}}, INVALID, "start"),
    ("Topic.trim", {"partition": -1, "to": {"start": "offset", "value": 1}}, RANGE, "offset"),
    ("Topic.fork", {"req": {"name": "queue/q/results"}}, INVALID, "name"),
    ("Topic.fork", {"req": {"name": "f", "partition": -2}}, INVALID, "partition"),
    ("Topic.fork", {"req": {"name": "f", "offset": 1}}, INVALID, "offset"),
    ("Topic.fork", {"req": {"name": "f", "cutBytes": 1}}, INVALID, "cutBytes"),
    ("Topic.fork", {"req": {"name": "f", "first": {}}}, INVALID, "payloads"),
    ("Topic.fork", {"req": {"name": "kept"}}, "ALREADY_EXISTS", "kept"),
    ("Topic.createGroup", {"name": ""}, INVALID, "group"),
    ("Topic.createGroup", {"name": "a\nb"}, INVALID, "group"),
    ("Topic.createGroup", {"name": "n", "settings": {"kind": "queue"}}, INVALID, "queue"),
    (
        "Topic.createGroup",
        {"name": "n", "settings": {"kind": "queue", "queue": "a b"}},
        INVALID,
        "queue",
    ),
    ("Topic.createGroup", {"name": "n", "settings": {"inFlightMax": 1}}, INVALID, "inFlightMax"),
    ("Topic.createGroup", {"name": "n", "at": {"start": "group"}}, INVALID, "start"),
    ("Topic.createGroup", {"name": ORDERED, "settings": shared}, "ALREADY_EXISTS", ORDERED),
    ("Topic.resetGroup", {"name": ORDERED, "partition": -2}, INVALID, "partition"),
    ("Topic.resetGroup", {"name": ORDERED, "to": {"start": "group"}}, INVALID, "start"),
    ("Topic.consume", {"req": {"group": ORDERED}}, FAILED, "group"),
    ("Topic.consume", {"req": {"group": "n"}}, FAILED, "group"),
    (
        "Topic.consume",
        {"req": {"group": "n", "settings": shared, "from": {"start": "group"}}},
        INVALID,
        "from",
    ),
    ("Topic.group", {"name": ORDERED}, FAILED, "group"),
    ("Topic.subscribe", {"has_consumer": False, "req": {}}, INVALID, "consumer"),
    ("Topic.subscribe", {"req": {"from": {"start": "group"}}}, INVALID, "from"),
    ("Topic.subscribe", {"req": {"consumer": "a\nb"}}, INVALID, "consumer"),
    ("Topic.subscribe", {"req": {"heartbeatMs": HEARTBEAT_MS_MIN - 1}}, INVALID, "heartbeatMs"),
    # These would create a group, and then not subscribe to it.
    ("Topic.subscribe", {"req": {"group": "n", "partitions": [2]}}, INVALID, "partition"),
    (
        "Topic.subscribe",
        {"req": {"group": "n", "settings": shared, "partitions": [0]}},
        INVALID,
        "partitions",
    ),
    (
        "Topic.subscribe",
        {"req": {"group": "n", "settings": {"kind": "queue", "queue": "q"}}},
        FAILED,
        "queue",
    ),
    ("Subscription.ack", {"partition": U32}, INVALID, "partition"),
    ("Subscription.ack", {"offset": U64}, FAILED, "offset"),
    ("Subscription.settle", {"req": {"lease": LEASE}}, INVALID, "offsets"),
    ("Subscription.settle", {"req": {**_settled, "partitions": []}}, INVALID, "partitions"),
    (
        "Subscription.settle",
        {"req": {**_settled, "outcome": "failed", "delayMs": -2}},
        INVALID,
        "delayMs",
    ),
    ("Subscription.settle", {"req": {**_extended, "delayMs": -2}}, INVALID, "delayMs"),
    ("Subscription.settle", {"req": {**_extended, "delayMs": 0}}, INVALID, "delayMs"),
    (
        "Subscription.settle",
        {"req": {**_extended, "delayMs": LEASE_MS_MAX + 1}},
        INVALID,
        "delayMs",
    ),
    ("Subscription.settle", {"req": {**_extended, "lease": b""}}, INVALID, "lease"),
]
"""Further calls that are refused: what they say, the code, and a word of the error."""

NAMED: dict[str, tuple[str, ...]] = {
    "start": ("position",),
    "value": ("offset",),
    "name": ("group", "reader"),
    "group": ("reader",),
    "keys": ("key",),
    "dedupIds": ("dedupId",),
    "expectedOffset": ("expected_offset",),
    "schemaVersion": ("schema_version",),
    "topicNumber": ("topic_number",),
    "cutBytes": ("cut_bytes",),
    "counts": ("attributes", "numItems"),
    "names": ("attributes",),
    "values": ("attributes",),
    "id": ("ids",),
    "lease": ("leases",),
    "leaseValiditySecs": ("leaseValidity",),
    "leaseValidityMs": ("leaseValidity",),
    "leaseValiditiesMs": ("leaseValidit",),
}
"""What errors call a field, where it is not its name in the schema."""
