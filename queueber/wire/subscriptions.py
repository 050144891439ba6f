"""Codecs of subscriptions: requests, deliveries and outcomes.

Clients read deliveries in columns, and settle messages as items of a queue, so the other halves of
the last two are not here.
"""

from typing import Any

from queueber.errors import InvalidArgument
from queueber.limits import MANY_MAX, TOPIC_PARTITIONS_MAX
from queueber.model import Consuming, Delivery, Outcome, Settlement, Subscribing
from queueber.wire.lists import read_list
from queueber.wire.messages import write_slice
from queueber.wire.topics import (
    read_group_settings,
    read_position,
    write_group_settings,
    write_position,
)

_OUTCOMES = tuple(Outcome)
"""In the order of their numbers in the schema, which has the same words for them."""
_BACKOFF = -1


def read_subscribing(source: Any) -> Subscribing:
    return Subscribing(
        source.group,
        source.consumer,
        read_position(getattr(source, "from")),
        read_list("partitions", source.partitions, TOPIC_PARTITIONS_MAX),
        source.credits,
        source.heartbeatMs,
        read_group_settings(source.settings),
        source.leaseMs,
        source.batchMessagesMax,
        source.deliveriesMax,
        source.seeks,
    )


def write_subscribing(target: Any, asked: Subscribing) -> None:
    target.group = asked.group
    target.consumer = asked.consumer
    write_position(target.init("from"), asked.position)
    target.partitions = list(asked.partitions)
    target.credits = asked.credits
    target.heartbeatMs = asked.heartbeat_ms
    write_group_settings(target.init("settings"), asked.settings)
    target.leaseMs = asked.lease_ms
    target.batchMessagesMax = asked.batch_messages_max
    target.deliveriesMax = asked.deliveries_max
    target.seeks = asked.seeks


def read_consuming(source: Any) -> Consuming:
    return Consuming(
        source.group,
        source.partition,
        read_position(getattr(source, "from")),
        read_group_settings(source.settings),
        source.messagesMax,
        source.leaseMs,
    )


def write_consuming(target: Any, asked: Consuming) -> None:
    target.group = asked.group
    target.partition = asked.partition
    write_position(target.init("from"), asked.position)
    write_group_settings(target.init("settings"), asked.settings)
    target.messagesMax = asked.messages_max
    target.leaseMs = asked.lease_ms


def write_delivery(target: Any, delivery: Delivery) -> None:
    write_slice(target.init("slice"), delivery.slice)
    if delivery.lease:
        target.lease = delivery.lease
    if delivery.attempts:
        target.attempts = list(delivery.attempts)
    target.missed = delivery.missed


def read_settlement(source: Any) -> Settlement:
    number = source.outcome.raw
    if number >= len(_OUTCOMES):
        raise InvalidArgument(f"outcome: {number} is none; the highest is {len(_OUTCOMES) - 1}")
    delay_ms = source.delayMs
    return Settlement(
        source.lease,
        read_list("partitions", source.partitions, MANY_MAX),
        read_list("offsets", source.offsets, MANY_MAX),
        _OUTCOMES[number],
        source.error,
        None if delay_ms == _BACKOFF else delay_ms,
    )
