"""Consume, acknowledge, and how far partitions reach.

With a group, consume leases a window of one partition: consumers of the group never get the same
messages while their leases live, over restarts, too. A window whose lease ends unacknowledged comes
back, and it alone. An acknowledgement covers all messages up to its offset, whoever has them. A
group is a shared group of the topic: its messages can also be settled one by one, and become dead
letters if somebody sets `attempts_max`; by themselves they never do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queueber.client import AsyncClient, AsyncTopic, Message, MessagePage
from queueber.client.arguments.queue_settings import SettingsArguments
from queueber.consuming.starts import EARLIEST, LATEST, Start
from queueber.errors import InvalidArgument, NotFound, OutOfRange
from queueber.ids import reference
from queueber.limits import LEASE_MS_MAX, POLL_ITEMS_CEILING, READ_ITEMS_MAX, SECOND_MS

LIMIT = 100
LEASE_SECONDS = 60.0
"""How long a consumer has for what it got, unless the caller says otherwise."""
LEASE_SECONDS_MAX = LEASE_MS_MAX / SECOND_MS
PARTITIONS_MAX = 10_000
"""Partitions of one question for the latest offsets."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """What one call got."""

    messages: Sequence[Message]
    next_offset: int
    """Behind the last message; without messages where the next ones begin."""
    has_more: bool
    """Whether the partition has messages behind these; other consumers may have them."""
    lease: bytes = b""
    """Of a group, if there are messages."""


@dataclass(frozen=True, slots=True)
class Latest:
    """How far a partition reaches."""

    topic: str
    partition: int
    next_offset: int

    @property
    def last_offset(self) -> int | None:
        """None if the partition never had a message."""
        return self.next_offset - 1 if self.next_offset else None


async def consume(
    client: AsyncClient,
    topic: str,
    group: str | None,
    start: Start = LATEST,
    limit: int = LIMIT,
    partition: int = 0,
    wait_s: float = 0.0,
    *,
    lease_s: float = LEASE_SECONDS,
) -> Consumed:
    """Up to `limit` messages of a partition; waits for the first one up to `wait_s` seconds.

    The start counts only for a partition that the group has not begun. There an offset that is not
    kept moves to the nearest that is; without a group it is `OutOfRange`. Raises `NotFound` if
    there is no such topic.
    """
    found = client.topic(topic, must_exist=True)
    if limit < 0:
        raise InvalidArgument(f"limit: {limit} is below 0")
    # A larger limit is no mistake; the server may give fewer still.
    asked = min(limit, POLL_ITEMS_CEILING, READ_ITEMS_MAX)
    if not asked:
        return Consumed([], await _where(found, group, start, partition), has_more=False)
    if group is None:
        page = await found.read(partition, start=start.at, limit=asked, wait=wait_s)
        return Consumed(page.messages, page.next_offset, _has_more(page))
    window = await found.consume(
        group,
        partition=partition,
        limit=asked,
        wait=wait_s,
        lease=lease_s,
        settings=_settings(lease_s),
        start=start.at,
        moves=True,
    )
    return Consumed(window.messages, window.next_offset, _has_more(window), window.lease)


def _has_more(page: MessagePage) -> bool:
    return bool(page) and not page.is_at_end


async def _where(topic: AsyncTopic, group: str | None, start: Start, partition: int) -> int:
    """Where a call without a limit would begin."""
    if group is not None:
        for each in await topic.groups():
            if each.name == group and partition < len(each.cursors):
                return each.cursors[partition]
    page = await topic.read(
        partition, start=start.at, moves=group is not None, limit=1, without="contents"
    )
    return page.messages[0].offset if page else page.next_offset


async def release(client: AsyncClient, topic: str, group: str, consumed: Consumed) -> None:
    """Give back what nobody will work on: the caller has hung up."""
    if consumed.lease:
        ids = [reference(each.partition, each.offset) for each in consumed.messages]
        await client.topic(topic, must_exist=True).group(group).release(ids, lease=consumed.lease)


async def acknowledge(
    client: AsyncClient,
    topic: str,
    group: str,
    upto_offset: int,
    partition: int = 0,
    *,
    lease_s: float = LEASE_SECONDS,
) -> int:
    """The group is done with all messages up to and including an offset. Returns the offset up to
    which it is done, which may be higher: it never goes back. A group that there is not is created,
    with the lease that `consume` would give it."""
    if upto_offset < 0:
        raise InvalidArgument(f"upto_offset: {upto_offset} is below 0")
    found, upto = client.topic(topic, must_exist=True), upto_offset + 1
    try:
        return await found.ack(group, upto, partition=partition) - 1
    except NotFound:
        await _begin(client, topic, group, partition, upto, lease_s)
    return await found.ack(group, upto, partition=partition) - 1


async def reset(
    client: AsyncClient,
    topic: str,
    group: str,
    start: Start,
    partition: int | None = None,
    *,
    lease_s: float = LEASE_SECONDS,
) -> None:
    """Let the group go on at the start, in one partition or in all. Creates it if need be."""
    found = client.topic(topic, must_exist=True)
    try:
        await found.reset(group, partition=partition, start=start.at)
    except NotFound:
        reach = start.at if isinstance(start.at, int) else 0
        await _begin(client, topic, group, partition or 0, reach, lease_s)
        await found.reset(group, partition=partition, start=start.at)


async def _begin(
    client: AsyncClient, topic: str, group: str, partition: int, reach: int, lease_s: float
) -> None:
    """Create a group that has begun this partition alone, at the earliest message. Raises
    `NotFound` for the topic, and `OutOfRange` if the partition does not reach so far."""
    partitions = (await client.describe_topic(topic)).partitions
    if partition < len(partitions) and reach > (end := partitions[partition].next_offset):
        first = partitions[partition].first_offset
        raise OutOfRange(
            f"offset is {reach}; partition {partition} of topic {topic!r} has messages from "
            f"{first} up to {end}",
            first=first,
            next=end,
        )
    # A group begins with its first consumer: so there is one, which gives back what it gets.
    begun = await consume(client, topic, group, EARLIEST, 1, partition, lease_s=lease_s)
    await release(client, topic, group, begun)


def _settings(lease_s: float) -> SettingsArguments:
    """Of a new group."""
    return {"lease": lease_s, "attempts_max": 0, "backoff": [0], "isolation": False}


async def latest_offsets(
    client: AsyncClient, partitions: Iterable[tuple[str, int]]
) -> list[Latest]:
    """How far each partition reaches, each once, sorted by topic and partition."""
    wanted = sorted(set(partitions))
    if len(wanted) > PARTITIONS_MAX:
        raise InvalidArgument(
            f"partitions: {len(wanted)} were named; the limit is {PARTITIONS_MAX}"
        )
    ends: dict[str, Sequence[int]] = {}
    for name in dict.fromkeys(name for name, _ in wanted):
        found = (await client.describe_topic(name)).partitions
        ends[name] = [each.next_offset for each in found]
    for name, partition in wanted:
        if not 0 <= partition < len(ends[name]):
            raise InvalidArgument(
                f"partition_id: {partition} is none of topic {name!r}, which has {len(ends[name])}"
            )
    return [Latest(name, partition, ends[name][partition]) for name, partition in wanted]
