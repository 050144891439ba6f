"""The arguments of a subscription, checked."""

from collections.abc import Iterable

from queueber.client.arguments import values
from queueber.client.arguments.new_messages import to_partition
from queueber.client.arguments.topic_names import to_group_name
from queueber.client.arguments.topic_settings import Kind, to_kind
from queueber.client.arguments.values import Seconds
from queueber.errors import InvalidArgument
from queueber.limits import CLIENT_NAME_BYTES_MAX, CREDITS_MAX, HOUR_MS, TOPIC_PARTITIONS_MAX
from queueber.model import GroupKind, GroupSettings, Position, Subscribing


def to_terms(
    group: str | None,
    kind: Kind,
    credits: int,
    partitions: Iterable[int],
    heartbeat: Seconds,
    lease: Seconds | None,
    consumer: str,
    position: Position,
) -> Subscribing:
    made = to_kind(kind)
    if made is GroupKind.QUEUE:
        raise InvalidArgument("kind: the messages of a group of kind 'queue' are in its queue")
    if group is None and made is GroupKind.SHARED:
        raise InvalidArgument("group: messages are shared within a group; name one")
    if lease is not None and made is not GroupKind.SHARED:
        raise InvalidArgument("lease: only groups of kind 'shared' have leases; leave it out")
    return Subscribing(
        "" if group is None else to_group_name(group),
        values.to_text("consumer", consumer, CLIENT_NAME_BYTES_MAX),
        position,
        _to_partitions(partitions),
        values.to_number("credits", credits, least=1, limit=CREDITS_MAX),
        values.to_ms("heartbeat", heartbeat, HOUR_MS),
        GroupSettings(made),
        values.to_lease_ms(lease),
    )


def to_seeking_terms(group: str, consumer: str, position: Position | None) -> Subscribing:
    """Of deliveries: no credits at first, and one at a time."""
    return Subscribing(
        to_group_name(group),
        values.to_text("consumer", consumer, CLIENT_NAME_BYTES_MAX),
        position or Position(),
        deliveries_max=1,
        seeks=position is not None,
    )


def _to_partitions(partitions: object) -> tuple[int, ...]:
    if isinstance(partitions, str | bytes) or not isinstance(partitions, Iterable):
        raise InvalidArgument(f"partitions: {partitions!r} is not a list of numbers")
    listed = tuple(partitions)
    if len(listed) > TOPIC_PARTITIONS_MAX:
        raise InvalidArgument(
            f"partitions: there are {len(listed)}; the limit is {TOPIC_PARTITIONS_MAX}"
        )
    for each in listed:
        to_partition(each)
    if len(set(listed)) != len(listed):
        raise InvalidArgument("partitions: one is named twice")
    return listed
