"""What comes after a wake: the next if messages are pending, with the event that tells of it."""

import msgspec
from msgspec.structs import replace

from queueber.client import AsyncClient
from queueber.errors import NotFound
from queueber.gateway.log import log
from queueber.gateway.streams.subscriptions import wakes
from queueber.gateway.streams.subscriptions.records.record import Record
from queueber.gateway.streams.subscriptions.records.register import Event


async def settle(
    client: AsyncClient, record: Record, tails: wakes.Tails, now_ms: int
) -> tuple[Record, Event | None]:
    """End the wake that there is, and begin the next if messages are pending.

    Nobody is woken while the wake stream does not exist, or takes no events: applications create it
    themselves. Work can be claimed all the same.
    """
    ended = replace(wakes.follow(record, tails), wake=None)
    pending = wakes.pending(ended, tails)
    if not pending:
        return ended, None
    stream = record.wake_stream
    if stream is None:
        return wakes.begin(ended, tails, now_ms), None
    if not await _takes_events(client, stream):
        log.debug("wake_stream_missing", subscription=record.id, stream=stream)
        return ended, None
    begun = wakes.begin(ended, tails, now_ms)
    told = {
        "type": "wake",
        "subscription_id": record.id,
        "stream": pending[0],
        "generation": begun.generation,
        "ts": now_ms,
    }
    return begun, Event(stream, msgspec.json.encode(told))


async def _takes_events(client: AsyncClient, stream: str) -> bool:
    """Whether an event can be published: the record that goes with it would wait for that."""
    try:
        info = await client.describe_topic(stream)
    except NotFound:
        return False
    is_single = len(info.partitions) == 1
    has_schema = bool(info.config.settings.schema_version)
    return is_single and not (info.is_deleted or info.is_closed or has_schema)
