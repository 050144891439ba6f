"""Routes: `RouteRecord` of `schema/storage.capnp`, under the queue, the kind of change and the
topic."""

from typing import NamedTuple

from queueber.db.records.keys import PREFIX_BYTES, queue_prefix, split_queue_prefix
from queueber.ids import QueueId
from queueber.model.routes import EventPayload, On
from queueber.schema import storage

ROUTE_KEY_BYTES = 1 + PREFIX_BYTES

_ONS = (On.INSERT, On.UPDATE, On.DELETE)
_PAYLOADS = (EventPayload.KEY, EventPayload.FULL, EventPayload.DIFF)


class RouteRecord(NamedTuple):
    where: str = ""
    partition_by: str = ""
    payload: EventPayload = EventPayload.KEY


def route_key(queue: int, on: On, topic: int) -> bytes:
    return queue_prefix(queue) + bytes([_ONS.index(on)]) + queue_prefix(topic)


def split_route_key(key: bytes) -> tuple[QueueId, On, QueueId]:
    """Queue, kind of change and topic. Raises `IndexError` if there is no such kind."""
    on = _ONS[key[PREFIX_BYTES]]
    return split_queue_prefix(key[:PREFIX_BYTES]), on, split_queue_prefix(key[PREFIX_BYTES + 1 :])


def encode_route(record: RouteRecord) -> bytes:
    message = storage.RouteRecord.new_message(
        where=record.where,
        partitionBy=record.partition_by,
        payload=_PAYLOADS.index(record.payload),
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_route(value: bytes) -> RouteRecord:
    """Raises `IndexError` if it has a payload of a later version."""
    with storage.RouteRecord.from_bytes(value) as r:
        return RouteRecord(r.where, r.partitionBy, _PAYLOADS[r.payload])
