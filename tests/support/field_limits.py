"""Every field of every method: a value at its limit and one past it, and what is said to each.

`tests/faults/test_hostile_fields.py` holds this against the schema: a field that is new there needs
an entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from queueber.limits import (
    ADD_ITEMS_MAX,
    AFTER_MAX,
    ATTEMPTS_CEILING,
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    BACKOFF_STEPS_MAX,
    BATCH_KEEP_MS_MAX,
    BATCH_NAME_BYTES_MAX,
    BATCH_NUMBER_MAX,
    CAP_BY_BYTES_MAX,
    CAP_ITEMS_MAX,
    CLIENT_NAME_BYTES_MAX,
    CONTENT_TYPE_BYTES_MAX,
    DEAD_AGE_MS_MAX,
    DEDUP_ID_BYTES_MAX,
    DEDUP_WINDOW_MS_MAX,
    DELAY_MS_MAX,
    ERROR_BYTES_MAX,
    ITEM_BACKOFF_STEPS_MAX,
    ITEM_TIMEOUT_MS_MAX,
    KEY_BYTES_MAX,
    LEASE_MS_MAX,
    LOAD_CHUNK_BYTES,
    LOAD_FILE_BYTES_MAX,
    LOAD_FILES_MAX,
    LOAD_NAME_BYTES_MAX,
    LOAD_PARTS_MAX,
    LOAD_TIMEOUT_MS_MAX,
    MANY_MAX,
    PARTITIONS_MAX,
    PRIORITY_MAX,
    PRODUCER_ID_BYTES_MAX,
    PUBLISH_MESSAGES_MAX,
    PUBLISH_TOPICS_MAX,
    QUEUE_NAME_CHARS_MAX,
    RATE_MS_MAX,
    READER_NAME_BYTES_MAX,
    RESULT_AGE_MS_MAX,
    RETENTION_MS_MAX,
    SCHEMA_BYTES_MAX,
    SCHEMA_VERSION_MAX,
    TEXT_SEQUENCE_BYTES_MAX,
    TOPIC_NAME_BYTES_MAX,
    TOPIC_PARTITIONS_MAX,
)

ITEM_BYTES_MAX = 1024
POLL_ITEMS_MAX = 100
PAYLOAD_BYTES_MAX = 1024
OPTIONS = (
    "--item-bytes-max", str(ITEM_BYTES_MAX), "--poll-items-max", str(POLL_ITEMS_MAX),
    "--payload-bytes-max", str(PAYLOAD_BYTES_MAX),
)  # fmt: skip
"""The server whose limits these are."""

INVALID, EXHAUSTED, MISSING = "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "NOT_FOUND"
FAILED = "FAILED_PRECONDITION"
ID = bytes(16)
U16, U32, U64 = 2**16 - 1, 2**32 - 1, 2**64 - 1
SECS = 1000


@dataclass(frozen=True, slots=True)
class Limit:
    """`at` is taken, or refused with `at_code` for another reason; `past` with `code`."""

    at: Any
    past: Any
    code: str = INVALID
    at_code: str = ""


@dataclass(frozen=True, slots=True)
class Any_:  # noqa: N801  Any is taken
    """There is no limit: the greatest value that fits is taken, or refused with `code`."""

    greatest: Any
    code: str = ""


Rule = Limit | Any_


@dataclass(frozen=True, slots=True)
class Method:
    valid: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Rule] = field(default_factory=dict)


def text(size: int, at_code: str = "") -> Limit:
    letter = "m" if at_code == MISSING else "t"
    return Limit(letter * size, letter * (size + 1), at_code=at_code)


def upto(most: Any, at_code: str = "") -> Limit:
    return Limit(most, most + 1, at_code=at_code)


def many(one: Any, most: int = MANY_MAX, at_code: str = "", code: str = EXHAUSTED) -> Limit:
    return Limit([one] * most, [one] * (most + 1), code, at_code)


def of_the_item(make: Callable[[int], Any]) -> Limit:
    """What the other two of contents, a name and a value leave of an item, each with one byte."""
    return Limit(make(ITEM_BYTES_MAX - 2), make(ITEM_BYTES_MAX - 1), EXHAUSTED, MISSING)


an_id = Limit(ID, bytes(17))
an_id_that_nobody_holds = Any_(bytes(17))
a_batch = text(BATCH_NAME_BYTES_MAX)
a_batch_that_is_missing = text(BATCH_NAME_BYTES_MAX, MISSING)
a_flag = Any_(True)
a_state = Limit("dead", 99)
a_page = Any_(U32)
a_cursor = Limit(b"", bytes(65))

held = {"req": {"ids": [ID], "leases": [ID]}}
held_fields: dict[str, Rule] = {
    "req.ids": many(ID),
    "req.ids[]": an_id,
    "req.leases": Limit([ID], [ID, ID]),
    "req.leases[]": an_id,
}
load = {"name": "load", "epoch": 1}
part = {"partition": 0, "attempt": "a"}
load_fields: dict[str, Rule] = {
    "load.name": text(LOAD_NAME_BYTES_MAX, MISSING),
    "load.epoch": Any_(U64, MISSING),
}
of_load: dict[str, Rule] = {f"req.{name}": rule for name, rule in load_fields.items()}
part_fields: dict[str, Rule] = {
    "req.part.partition": upto(PARTITIONS_MAX - 1),
    "req.part.attempt": text(LOAD_NAME_BYTES_MAX),
}
without: dict[str, Rule] = {
    f"req.without.{name}": a_flag
    for name in ("results", "keys", "batches", "attributes", "contents")
}
settings: dict[str, Rule] = {
    "settings.itemsMax": Any_(U64),
    "settings.bytesMax": Any_(U64),
    "settings.itemBytesMax": upto(ITEM_BYTES_MAX),
    "settings.leaseMs": upto(LEASE_MS_MAX),
    "settings.attemptsMax": upto(ATTEMPTS_CEILING),
    "settings.backoffMs": many(1, BACKOFF_STEPS_MAX),
    "settings.backoffMs[]": upto(DELAY_MS_MAX),
    "settings.backoffBaseMs": upto(DELAY_MS_MAX),
    "settings.backoffFactor": Limit(100.0, float("inf")),
    "settings.backoffCapMs": upto(DELAY_MS_MAX),
    "settings.backoffJitter": Limit(1.0, float("nan")),
    "settings.noIsolation": a_flag,
    "settings.dedupWindowMs": upto(DEDUP_WINDOW_MS_MAX),
    "settings.resultAgeMs": upto(RESULT_AGE_MS_MAX),
    "settings.resultBytesMax": Any_(U64),
    "settings.concurrencyMax": upto(CAP_ITEMS_MAX),
    "settings.rateItems": upto(CAP_ITEMS_MAX),
    "settings.rateMs": upto(RATE_MS_MAX),
    "settings.batchesMax": upto(BATCH_NUMBER_MAX),
    "settings.batchKeepMs": upto(BATCH_KEEP_MS_MAX),
    "settings.capBy": text(CAP_BY_BYTES_MAX),
    "settings.capByConcurrencyMax": upto(CAP_ITEMS_MAX),
    "settings.capByRateItems": upto(CAP_ITEMS_MAX),
    "settings.capByRateMs": upto(RATE_MS_MAX),
    "settings.deadAgeMs": upto(DEAD_AGE_MS_MAX),
}
new_item = {
    "contents": b"x",
    "attributes": [{"name": "n", "value": "v"}],
}
# No file of that part is there, so whatever is announced well is refused for that.
not_staged = INVALID

METHODS: dict[str, Method] = {
    "add": Method(
        {
            "req": {
                "items": [new_item],
                "contents": [b"x"],
                "delaysMs": [0],
                "priorities": [5],
                "keys": [""],
                "attributes": {"counts": [1], "names": ["n"], "values": ["v"]},
                "options": [{"attemptsMax": 1, "backoffMs": [1]}],
                "optionsOf": [1],
            }
        },
        {
            "req.items": Limit([], [{}] * (ADD_ITEMS_MAX + 1), EXHAUSTED),
            "req.items[].contents": Limit(
                bytes(ITEM_BYTES_MAX), bytes(ITEM_BYTES_MAX + 1), EXHAUSTED
            ),
            "req.items[].visibilityTimeoutSecs": Limit(DELAY_MS_MAX // SECS, U64),
            "req.items[].visibilityTimeoutMs": upto(DELAY_MS_MAX),
            "req.items[].priority": upto(PRIORITY_MAX),
            "req.items[].key": text(KEY_BYTES_MAX),
            "req.items[].attributes": Limit(
                [{"name": str(n), "value": ""} for n in range(ATTRIBUTES_MAX)],
                [{"name": str(n), "value": ""} for n in range(ATTRIBUTES_MAX + 1)],
                EXHAUSTED,
            ),
            "req.items[].attributes[].name": text(ATTRIBUTES_BYTES_MAX - 1),
            "req.items[].attributes[].value": text(ATTRIBUTES_BYTES_MAX - 1),
            "req.contents": Limit([b"x"], [b""] * (ADD_ITEMS_MAX + 1), EXHAUSTED),
            "req.contents[]": Limit(bytes(ITEM_BYTES_MAX), bytes(ITEM_BYTES_MAX + 1), EXHAUSTED),
            "req.delaysMs": Limit([], [0, 0]),
            "req.delaysMs[]": upto(DELAY_MS_MAX),
            "req.priorities": Limit([], [0, 0]),
            "req.priorities[]": upto(PRIORITY_MAX),
            "req.keys": Limit([], ["", ""]),
            "req.keys[]": text(KEY_BYTES_MAX),
            "req.attributes.counts": Limit([1], [1, 0]),
            "req.attributes.counts[]": Limit(1, U16),
            "req.attributes.names": Limit(["n"], ["n", "m"]),
            "req.attributes.names[]": text(ATTRIBUTES_BYTES_MAX - 1),
            "req.attributes.values": Limit(["v"], []),
            "req.attributes.values[]": text(ATTRIBUTES_BYTES_MAX - 1),
            "req.batch": a_batch,
            "req.producer.id": Limit("", "p" * (PRODUCER_ID_BYTES_MAX + 1)),
            "req.producer.epoch": Any_(U64),
            "req.producer.sequence": Any_(U64),
            "req.origin.load.name": text(LOAD_NAME_BYTES_MAX, MISSING),
            "req.origin.load.epoch": Any_(U64, INVALID),
            "req.origin.partition": upto(PARTITIONS_MAX - 1, INVALID),
            "req.origin.row": Any_(U32, INVALID),
            # Either contents or packed ones.
            "req.packed.ends": Any_(bytes(4 * ADD_ITEMS_MAX), INVALID),
            "req.packed.values": Any_(bytes(ITEM_BYTES_MAX), INVALID),
            "req.idRuns": a_flag,
            "req.options": Limit([{}], [{}] * (ADD_ITEMS_MAX + 1), EXHAUSTED),
            "req.options[].attemptsMax": upto(ATTEMPTS_CEILING),
            "req.options[].backoffMs": many(1, ITEM_BACKOFF_STEPS_MAX),
            "req.options[].backoffMs[]": upto(DELAY_MS_MAX),
            "req.options[].timeoutMs": upto(ITEM_TIMEOUT_MS_MAX),
            "req.options[].expiresMs": upto(DELAY_MS_MAX),
            "req.optionsOf": Limit([], [1, 1]),
            "req.optionsOf[]": upto(1),
            # There has never been such an item.
            "req.after": Limit([], [ID] * (AFTER_MAX + 1), EXHAUSTED),
            "req.after[]": Limit(ID, bytes(17)),
            "req.afterBatch": a_batch_that_is_missing,
        },
    ),
    "remove": Method(
        {"req": {"id": ID, "lease": ID}},
        {"req.id": an_id_that_nobody_holds, "req.lease": an_id},
    ),
    "poll": Method(
        {"req": {"noWait": True, "leaseValidityMs": 1}},
        {
            "req.leaseValiditySecs": Limit(LEASE_MS_MAX // SECS - 1, U64),
            "req.leaseValidityMs": upto(LEASE_MS_MAX),
            "req.numItems": Any_(U32),
            "req.timeoutSecs": Any_(U64),
            "req.timeoutMs": Any_(U64),
            "req.noWait": a_flag,
            "req.columns": a_flag,
            "req.bound": a_flag,
            "req.token": Any_(U64),
            "req.packed": a_flag,
        },
    ),
    "extend": Method(
        {"req": {"lease": ID, "leaseValidityMs": 1}},
        {
            "req.lease": an_id,
            "req.leaseValiditySecs": Limit(LEASE_MS_MAX // SECS - 1, U64),
            "req.leaseValidityMs": upto(LEASE_MS_MAX),
        },
    ),
    "removeMany": Method(
        held,
        {
            **held_fields,
            "req.ids[]": an_id_that_nobody_holds,
            # Either ids or counts, so that beside ids there are none.
            "req.counts": Limit([], [1]),
            "req.counts[]": Limit(1, 0, at_code=INVALID),
        },
    ),
    "extendMany": Method(
        {"req": {"leases": [ID], "leaseValiditiesMs": [1]}},
        {
            "req.leases": many(ID),
            "req.leases[]": an_id,
            "req.leaseValiditiesMs": Limit([1], [1, 1]),
            "req.leaseValiditiesMs[]": upto(LEASE_MS_MAX),
        },
    ),
    "pollMany": Method(
        {"req": {"counts": [1], "leaseValidityMs": 1}},
        {
            "req.leaseValidityMs": upto(LEASE_MS_MAX),
            "req.counts": Limit([1] * POLL_ITEMS_MAX, [1] * (MANY_MAX + 1), EXHAUSTED),
            "req.counts[]": Any_(U32),
            "req.bound": a_flag,
            "req.packed": a_flag,
        },
    ),
    "stats": Method(),
    "complete": Method(
        {"req": {"ids": [ID], "leases": [ID], "results": [b""]}},
        {
            **held_fields,
            "req.ids": Limit([ID], [ID] * (MANY_MAX + 1), EXHAUSTED),
            "req.results": Limit([b""], [b"", b""]),
            "req.results[]": Limit(bytes(ITEM_BYTES_MAX), bytes(ITEM_BYTES_MAX + 1), EXHAUSTED),
            # Either ids or counts, and either results or packed ones.
            "req.counts": Limit([], [1]),
            "req.counts[]": Limit(1, 0, at_code=INVALID),
            "req.packed.ends": Any_(bytes(4 * MANY_MAX), INVALID),
            "req.packed.values": Any_(bytes(ITEM_BYTES_MAX), INVALID),
        },
    ),
    "fail": Method(
        {"req": {"ids": [ID], "leases": [ID], "errors": ["e"], "delaysMs": [0]}},
        {
            **held_fields,
            "req.errors": Limit(["e"], ["e", "e"]),
            "req.errors[]": text(ERROR_BYTES_MAX),
            "req.delaysMs": Limit([], [0, 0]),
            "req.delaysMs[]": upto(DELAY_MS_MAX),
        },
    ),
    "release": Method(held, held_fields),
    "receipt": Method({"batch": "b"}, {"batch": a_batch_that_is_missing}),
    "waitBatch": Method(
        {"batch": "b"}, {"batch": a_batch_that_is_missing, "timeoutMs": Any_(U64, MISSING)}
    ),
    "readResults": Method(
        {"req": {}},
        {
            "req.reader": text(READER_NAME_BYTES_MAX),
            "req.offset": upto(0),
            "req.limit": a_page,
            "req.timeoutMs": Any_(0),
            "req.batch": a_batch,
            "req.before": Any_(U64),
            "req.snapshot": Limit(ID, bytes(17), MISSING, MISSING),
            **without,
        },
    ),
    "ackResults": Method(
        {"reader": "r"}, {"reader": text(READER_NAME_BYTES_MAX), "offset": upto(0)}
    ),
    "dropReader": Method({"reader": "r"}, {"reader": text(READER_NAME_BYTES_MAX)}),
    "listReaders": Method(),
    "peek": Method(
        {"req": {}},
        {
            "req.state": a_state,
            "req.after": a_cursor,
            "req.limit": a_page,
            "req.where": Limit("a = 1".ljust(2000), "a = 1".ljust(2001)),
        },
    ),
    "cancel": Method({"ids": [ID]}, {"ids": many(ID), "ids[]": an_id}),
    "reschedule": Method(
        {"ids": [ID], "delayMs": 1},
        {"ids": many(ID), "ids[]": an_id, "delayMs": upto(DELAY_MS_MAX)},
    ),
    "purge": Method({"state": "dead"}, {"state": a_state, "limit": a_page}),
    "redrive": Method({"ids": [ID]}, {"ids": many(ID), "ids[]": an_id, "limit": a_page}),
    "pause": Method({"forMs": 1}, {"forMs": upto(DELAY_MS_MAX)}),
    "resume": Method(),
    "withdrawPoll": Method({"token": 1}, {"token": Any_(U64)}),
    "beginLoad": Method(
        {"req": load},
        {
            "req.name": text(LOAD_NAME_BYTES_MAX),
            "req.batch": Limit("", "t" * (BATCH_NAME_BYTES_MAX + 1)),
            "req.timeoutMs": upto(LOAD_TIMEOUT_MS_MAX),
            "req.epoch": Any_(1),
            "req.mustExist": a_flag,
        },
    ),
    "stageFile": Method(
        {"req": {"load": load, "part": part, "file": "items-0.sst", "data": b"x"}},
        {
            **of_load,
            **part_fields,
            "req.file": Limit("items-0.sst", "../../escape"),
            "req.offset": Limit(LOAD_FILE_BYTES_MAX - 1, LOAD_FILE_BYTES_MAX),
            "req.data": Limit(bytes(LOAD_CHUNK_BYTES), bytes(LOAD_CHUNK_BYTES + 1)),
        },
    ),
    "finishPart": Method(
        {"req": {"load": load, "part": part, "files": [{"name": "f"}], "levels": [0] * 10}},
        {
            **of_load,
            "req.part.partition": upto(PARTITIONS_MAX - 1, not_staged),
            "req.part.attempt": text(LOAD_NAME_BYTES_MAX, not_staged),
            "req.files": many({}, LOAD_FILES_MAX, not_staged),
            "req.files[].name": Any_("../../escape", INVALID),
            "req.files[].family": Any_("no family", INVALID),
            "req.files[].bytes": Any_(U64, INVALID),
            "req.files[].entries": Any_(U64, INVALID),
            "req.files[].crc32": Any_(U32, INVALID),
            "req.files[].firstKey": Any_(bytes(1000), INVALID),
            "req.files[].lastKey": Any_(bytes(1000), INVALID),
            "req.rows": Any_(U64, INVALID),
            "req.contentsBytes": Any_(U64, INVALID),
            "req.digest": Any_(bytes(17), INVALID),
            "req.levels": Limit([0] * 10, [0] * 11, EXHAUSTED, not_staged),
            "req.levels[]": Any_(U64, INVALID),
            "req.delayed": Any_(U64, INVALID),
            "req.delayedFirstMs": Any_(U64, INVALID),
            "req.keys": Any_(U64, INVALID),
        },
    ),
    "commitLoad": Method(
        {"req": {"load": load, "parts": [part]}},
        {
            **of_load,
            "req.parts": many(part, LOAD_PARTS_MAX, INVALID),
            "req.parts[].partition": upto(PARTITIONS_MAX - 1, INVALID),
            "req.parts[].attempt": text(LOAD_NAME_BYTES_MAX, INVALID),
        },
    ),
    "abortLoad": Method(
        {"load": {"name": "other", "epoch": 1}},
        {"load.name": text(LOAD_NAME_BYTES_MAX), "load.epoch": Any_(U64)},
    ),
    "listLoads": Method(),
    "listLeases": Method({}, {"after": Limit(ID, bytes(17)), "limit": a_page}),
    "cancelKey": Method({"key": "k"}, {"key": text(KEY_BYTES_MAX)}),
    "cancelBatch": Method(
        {"batch": "b"},
        {
            "batch": a_batch,
            "state": Limit("dead", 99),
            "after": a_cursor,
            "limit": a_page,
        },
    ),
    "findItem": Method(
        {"id": ID},
        {"id": an_id, "key": Any_("k" * 512, INVALID), "after": Any_(U64, INVALID)},
    ),
    "listBatches": Method({}, {"before": Any_(U32), "limit": a_page}),
    # There is no such batch, which is no error.
    "forgetBatch": Method({"batch": "b"}, {"batch": replace(a_batch_that_is_missing, at_code="")}),
    "forgetBatches": Method(
        {"unchangedForMs": U64},
        {"unchangedForMs": Any_(U64), "after": Any_(U32), "limit": a_page},
    ),
    "whenComplete": Method(
        {
            "batch": "m",
            "callback": {"to": "reports", "options": {"backoffMs": [1]}, **new_item},
        },
        {
            "batch": a_batch_that_is_missing,
            "callback.to": Limit("m" * 128, "m" * 129, at_code=MISSING),
            "callback.contents": of_the_item(bytes),
            "callback.key": text(KEY_BYTES_MAX, MISSING),
            "callback.priority": upto(PRIORITY_MAX, MISSING),
            "callback.options.attemptsMax": upto(ATTEMPTS_CEILING, MISSING),
            "callback.options.backoffMs": many(1, ITEM_BACKOFF_STEPS_MAX, MISSING),
            "callback.options.backoffMs[]": upto(DELAY_MS_MAX, MISSING),
            "callback.options.timeoutMs": upto(ITEM_TIMEOUT_MS_MAX, MISSING),
            "callback.options.expiresMs": upto(DELAY_MS_MAX, MISSING),
            "callback.attributes": Limit(
                [{"name": str(n), "value": ""} for n in range(ATTRIBUTES_MAX - 8)],
                [{"name": str(n), "value": ""} for n in range(ATTRIBUTES_MAX - 7)],
                at_code=MISSING,
            ),
            "callback.attributes[].name": of_the_item(lambda size: "m" * size),
            "callback.attributes[].value": of_the_item(lambda size: "m" * size),
        },
    ),
    "callback": Method({"batch": "m"}, {"batch": a_batch_that_is_missing}),
    "openSnapshot": Method(),
    "scanSnapshot": Method(
        {"req": {"snapshot": ID}},
        {
            # There is no such snapshot, which is said before anything else.
            "req.snapshot": Limit(ID, bytes(17), MISSING, MISSING),
            "req.state": Limit("dead", 99, INVALID, MISSING),
            "req.after": Any_(bytes(65), MISSING),
            "req.before": Any_(bytes(65), MISSING),
            "req.limit": Any_(U32, MISSING),
            "req.batch": Any_("b" * 1000, MISSING),
            **{name: Any_(True, MISSING) for name in without},
        },
    ),
    "splitSnapshot": Method(
        {"snapshot": ID},
        {
            "snapshot": Limit(ID, bytes(17), MISSING, MISSING),
            "state": Limit("dead", 99, INVALID, MISSING),
            "parts": Any_(U32, MISSING),
        },
    ),
    "closeSnapshot": Method({"id": ID}, {"id": Any_(bytes(17))}),
    "queue": Method({"name": "default"}, {"name": text(QUEUE_NAME_CHARS_MAX), "mustExist": a_flag}),
    "createQueue": Method(
        {"name": "made", "settings": {"backoffMs": [1]}},
        {"name": Limit("c" * QUEUE_NAME_CHARS_MAX, "a b"), **settings},
    ),
    "configureQueue": Method(
        {"name": "default", "settings": {"backoffMs": [1]}},
        {"name": Any_("t" * (QUEUE_NAME_CHARS_MAX + 1), MISSING), **settings},
    ),
    "deleteQueue": Method({"name": "missing"}, {"name": Any_("t" * (QUEUE_NAME_CHARS_MAX + 1))}),
    "listQueues": Method({}, {"after": Any_("t" * 1000), "limit": a_page}),
    "describe": Method(),
    "hello": Method(
        {"name": "a worker"},
        {
            "name": text(CLIENT_NAME_BYTES_MAX),
            "host": text(CLIENT_NAME_BYTES_MAX),
            "process": Any_(U32),
        },
    ),
}

# --- topics ---------------------------------------------------------------------------------------

KEPT, MADE = "kept", "made"
"""A topic that is there all the time, and one that a call may create."""

publication: dict[str, Any] = {
    "topic": MADE,
    "payloads": [b"x"],
    "keys": [""],
    "attributes": {"counts": [1], "names": ["n"], "values": ["v"]},
    "dedupIds": [""],
}
publication_fields: dict[str, Rule] = {
    "topic": text(TOPIC_NAME_BYTES_MAX),
    "payloads": Limit([b"x"], [b""] * (PUBLISH_MESSAGES_MAX + 1), EXHAUSTED),
    "payloads[]": Limit(bytes(PAYLOAD_BYTES_MAX), bytes(PAYLOAD_BYTES_MAX + 1), EXHAUSTED),
    # Either payloads or packed ones.
    "packed.ends": Any_(bytes(4 * PUBLISH_MESSAGES_MAX), INVALID),
    "packed.values": Any_(bytes(PAYLOAD_BYTES_MAX), INVALID),
    "keys": Limit([], ["", ""]),
    "keys[]": text(KEY_BYTES_MAX),
    "attributes.counts": Limit([1], [1, 0]),
    "attributes.counts[]": Limit(1, U16),
    "attributes.names": Limit(["n"], ["n", "m"]),
    "attributes.names[]": text(ATTRIBUTES_BYTES_MAX - 1),
    "attributes.values": Limit(["v"], []),
    "attributes.values[]": text(ATTRIBUTES_BYTES_MAX - 1),
    "dedupIds": Limit([], ["", ""]),
    "dedupIds[]": text(DEDUP_ID_BYTES_MAX),
    "partition": upto(0),
    "producer.id": Limit("", "p" * (PRODUCER_ID_BYTES_MAX + 1)),
    "producer.epoch": Any_(U64),
    "producer.sequence": Any_(U64),
    "expectedOffset": Limit(0, 1, FAILED),
    "closes": a_flag,
    # The topic has none.
    "contentType": Limit("", "c" * (CONTENT_TYPE_BYTES_MAX + 1)),
    "textSequence": text(TEXT_SEQUENCE_BYTES_MAX),
    # There is no producer, so it means nothing.
    "numberDecides": a_flag,
    "onePartition": a_flag,
    # The topic has no schema.
    "schemaVersion": Limit(0, SCHEMA_VERSION_MAX, FAILED),
    "mustExist": a_flag,
    "topicNumber": Limit(0, U64, FAILED),
}
first_fields: dict[str, Rule] = {**publication_fields, "topic": Any_("it is ignored" * 100)}
new_topic_fields: dict[str, Rule] = {
    **publication_fields,
    # There is none of the name.
    "mustExist": Any_(True, MISSING),
}
topic_settings: dict[str, Rule] = {
    "config.settings.retentionMs": upto(RETENTION_MS_MAX),
    "config.settings.retentionBytes": Any_(U64),
    "config.settings.retentionMessages": Any_(U64),
    "config.settings.deletesAcknowledged": a_flag,
    "config.settings.refusesWhenFull": a_flag,
    "config.settings.keepsLastPerKey": a_flag,
    "config.settings.tombstoneMs": upto(RETENTION_MS_MAX),
    "config.settings.ttlMs": upto(RETENTION_MS_MAX),
    "config.settings.expiresAtMs": upto(2**48 - 1),
    "config.settings.dedupWindowMs": upto(DEDUP_WINDOW_MS_MAX),
    "config.settings.schemaVersion": Any_(SCHEMA_VERSION_MAX),
    "config.alias": Limit("a" * TOPIC_NAME_BYTES_MAX, "a" * (TOPIC_NAME_BYTES_MAX + 1)),
    "config.partitions": upto(TOPIC_PARTITIONS_MAX),
    "config.contentType": text(CONTENT_TYPE_BYTES_MAX),
}


def below(path: str, fields: dict[str, Rule], at_code: str | None = None) -> dict[str, Rule]:
    """The same fields elsewhere; with a code, what is at its limit is refused with it."""
    moved: dict[str, Rule] = {}
    for name, rule in fields.items():
        if at_code is None:
            moved[path + name] = rule
        elif isinstance(rule, Limit):
            moved[path + name] = Limit(rule.at, rule.past, rule.code, rule.at_code or at_code)
        else:
            moved[path + name] = Any_(rule.greatest, rule.code or at_code)
    return moved


def of_request(method: str) -> dict[str, Rule]:
    return {name.removeprefix("req."): rule for name, rule in METHODS[method].fields.items()}


no_group = INVALID
METHODS |= {
    "topic": Method({"name": KEPT}, {"name": text(TOPIC_NAME_BYTES_MAX), "mustExist": a_flag}),
    "createTopic": Method(
        {"name": MADE, "config": {}, "first": publication},
        {
            "name": Limit("c" * TOPIC_NAME_BYTES_MAX, "a b"),
            **topic_settings,
            **below("first.", first_fields),
            # The first messages name no schema.
            "config.settings.schemaVersion": Limit(0, SCHEMA_VERSION_MAX, FAILED),
            # The settings name no version.
            "firstSchema": Any_(bytes(SCHEMA_BYTES_MAX), INVALID),
        },
    ),
    "describeTopic": Method({"name": KEPT}, {"name": text(TOPIC_NAME_BYTES_MAX, MISSING)}),
    "configureTopic": Method(
        {"name": KEPT, "config": {}},
        {
            "name": text(TOPIC_NAME_BYTES_MAX, MISSING),
            **topic_settings,
            # It never goes back, and all other calls have 0.
            "config.settings.schemaVersion": Any_(0),
        },
    ),
    "deleteTopic": Method({"name": "missing"}, {"name": text(TOPIC_NAME_BYTES_MAX)}),
    "listTopics": Method(
        {},
        {
            "prefix": text(TOPIC_NAME_BYTES_MAX),
            "after": text(TOPIC_NAME_BYTES_MAX),
            "limit": a_page,
            "tellsTimes": a_flag,
        },
    ),
    "publish": Method(
        {"publications": [publication]},
        {
            "publications": Limit(
                [publication], [publication] * (PUBLISH_TOPICS_MAX + 1), EXHAUSTED
            ),
            **below("publications[].", new_topic_fields),
        },
    ),
    "together": Method(
        {
            "req": {
                "publications": [publication],
                "queues": [{"queue": "default", "add": METHODS["add"].valid["req"]}],
            }
        },
        {
            "req.publications": Limit([], [publication] * (PUBLISH_TOPICS_MAX + 1), EXHAUSTED),
            **below("req.publications[].", new_topic_fields),
            "req.acks": Limit([], [{}] * (PUBLISH_TOPICS_MAX + 1), EXHAUSTED),
            # There is no group.
            "req.acks[].topic": Any_("m" * (TOPIC_NAME_BYTES_MAX + 1), INVALID),
            "req.acks[].group": Any_("g" * 256, INVALID),
            "req.acks[].partition": Any_(U32, INVALID),
            "req.acks[].offset": Any_(U64, INVALID),
            "req.acks[].lease": Any_(bytes(17), INVALID),
            "req.acks[].offsets": many(1, MANY_MAX, EXHAUSTED),
            "req.acks[].offsets[]": Any_(U64, INVALID),
            "req.acks[].firstOffset": Any_(2**63 - 1, INVALID),
            "req.queues": Limit([], [{}] * (PUBLISH_TOPICS_MAX + 1), EXHAUSTED),
            "req.queues[].queue": Any_("m" * (QUEUE_NAME_CHARS_MAX + 1), MISSING),
            **below("req.queues[].add.", of_request("add")),
            # No lease holds what is completed or failed here.
            **below("req.queues[].complete.", of_request("complete"), INVALID),
            **below("req.queues[].fail.", of_request("fail"), INVALID),
            "req.queues[].add.origin.load.name": Any_("m" * LOAD_NAME_BYTES_MAX, INVALID),
            "req.queues[].add.after[]": Any_(ID, INVALID),
            "req.queues[].add.afterBatch": Any_("m", INVALID),
            "req.queues[].complete.results[]": Any_(bytes(ITEM_BYTES_MAX + 1), INVALID),
            "req.queues[].complete.counts": Limit([], [1]),
            "req.queues[].fail.ids": many(ID, MANY_MAX, EXHAUSTED),
            "req.queues[].fail.delaysMs": Limit([], [0, 0]),
        },
    ),
}
