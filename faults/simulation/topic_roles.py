"""The roles of callers of topics: publishers, readers, consumers, and those who delete and fork."""

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import TypeAlias

from faults.simulation.caller import Caller
from faults.simulation.network import ConnectionLost
from faults.simulation.roles import DELAYS_MS, LEASES_MS
from faults.simulation.stream_roles import STREAM, STREAM_TYPE, stream
from faults.simulation.topic_caller import GroupCaller, TopicCaller
from queueber.ids import split_reference
from queueber.model import (
    ForkAt,
    MessageSlice,
    NewMessages,
    Position,
    Producer,
    Publication,
    Start,
    TopicConfig,
    TopicSettings,
)

PLAIN, TRIMMED, KEYED, ACKED = "plain", "trimmed", "keyed", "acked"
"""The last one deletes what its ordered group, the only one, has acknowledged."""
ORDERED, SHARED, PUSHED, BRIDGE = "ordered", "shared", "pushed", "bridge"
"""The last two are groups of `plain`."""
BRIDGED = "bridged"
"""The queue that gets all messages of `plain`; nobody polls it."""
JOINED = "joined"
"""The queue that calls together add to; nobody polls it either."""
PARTITIONS = 2
"""Of the topic `plain`; the others have one."""
DEDUP_WINDOW_MS = 10_000

_TRIES_MAX = 4

TopicRole: TypeAlias = Callable[[TopicCaller], Awaitable[None]]


def topics_to_create(random: Random) -> Mapping[str, TopicConfig]:
    window_ms = DEDUP_WINDOW_MS
    trimmed = random.choice(
        [
            TopicSettings(dedup_window_ms=window_ms),
            TopicSettings(dedup_window_ms=window_ms, retention_ms=60),
            TopicSettings(dedup_window_ms=window_ms, retention_messages=4),
            TopicSettings(dedup_window_ms=window_ms, retention_bytes=200),
        ]
    )
    return {
        PLAIN: TopicConfig(TopicSettings(dedup_window_ms=DEDUP_WINDOW_MS), PARTITIONS),
        TRIMMED: TopicConfig(trimmed),
        KEYED: TopicConfig(TopicSettings(keeps_last_per_key=True, tombstone_ms=40)),
        ACKED: TopicConfig(TopicSettings(dedup_window_ms=window_ms, deletes_acknowledged=True)),
        STREAM: TopicConfig(content_type=STREAM_TYPE),
    }


# --- publishing -----------------------------------------------------------------------------------


async def publish(caller: TopicCaller) -> None:
    random, number = caller.random, 0
    is_numbered, has_ids = random.random() < 0.4, random.random() < 0.4
    epoch = sequence = 0
    topic = random.choice([PLAIN, PLAIN, TRIMMED, ACKED])
    while not caller.rumours.is_over:
        count = random.randint(1, 4)
        payloads = [f"{caller.name}.{number + at}".encode() for at in range(count)]
        number += count
        made = Publication(topic, NewMessages(payloads), _partition(random, topic))
        if made.partition is None and random.random() < 0.5:
            made.messages.keys = [f"k{random.randrange(8)}" for _ in payloads]
        if is_numbered:
            is_gap = random.random() < 0.05
            made.producer = Producer(caller.name, epoch, sequence + (3 if is_gap else 1))
        if has_ids and random.random() < 0.5:
            made.messages.dedup_ids = [f"{topic} {random.randrange(9)}" for _ in payloads]
        others = _others(random, caller, number) if not is_numbered else []
        is_known = await _publish(caller, made, *others, is_numbered=is_numbered)
        if is_numbered and is_known is not None:
            epoch, sequence = (epoch, sequence + 1) if is_known else (epoch + 1, 0)
        await caller.sleep_ms(random.choice([1, 10, 30]))


def _partition(random: Random, topic: str) -> int | None:
    places: list[int | None] = [None, *range(PARTITIONS if topic == PLAIN else 1)]
    return random.choice(places)


def _others(random: Random, caller: TopicCaller, number: int) -> list[Publication]:
    """Publications to further topics, in the same call."""
    if random.random() < 0.7:
        return []
    payloads = [f"{caller.name}.{number}.{at}".encode() for at in range(random.randint(1, 3))]
    keys = [f"k{random.randrange(4)}" for _ in payloads]
    payloads = [b"" if random.random() < 0.2 else each for each in payloads]
    return [Publication(KEYED, NewMessages(payloads, keys))]


async def _publish(
    caller: TopicCaller, *publications: Publication, is_numbered: bool
) -> bool | None:
    """Whether the outcome is known in the end; None if the server refused it."""
    for _ in range(_TRIES_MAX if is_numbered else 1):
        try:
            published = await caller.publish(*publications)
        except ConnectionLost:
            continue
        if published is None:
            return None
        if caller.random.random() < 0.9:
            return True
    return False


async def publish_in_place(caller: TopicCaller) -> None:
    """Append only at the end that it knows, as a log with one writer does."""
    random, number, end = caller.random, 0, 0
    while not caller.rumours.is_over:
        number += 1
        made = Publication(PLAIN, NewMessages([f"{caller.name}.{number}".encode()]), 1)
        made.expected_offset = end
        try:
            published = await caller.publish(made)
            if published is None:
                found = await caller.read(PLAIN, 1, Position(Start.LATEST), 1)
                end = end if found is None else found.end_offset
            else:
                end = published[0].offsets[0] + 1
        except ConnectionLost:
            continue
        await caller.sleep_ms(random.choice([1, 20]))


# --- reading --------------------------------------------------------------------------------------


async def read(caller: TopicCaller) -> None:
    random = caller.random
    topic = random.choice([PLAIN, TRIMMED, KEYED, ACKED])
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([1, 20]))
        partition = random.randrange(PARTITIONS) if topic == PLAIN else 0
        start = random.choice(
            [
                Position(Start.EARLIEST),
                Position(Start.LATEST),
                Position(Start.LAST, random.randint(0, 5)),
                Position(Start.OFFSET, random.randint(0, 20), moves=random.random() < 0.5),
            ]
        )
        try:
            found = await caller.read(topic, partition, start, random.randint(1, 6), wait_ms=20)
            while found is not None and found.packed and random.random() < 0.7:
                found = await _next_page(caller, topic, partition, found)
        except ConnectionLost:
            continue


async def _next_page(
    caller: TopicCaller, topic: str, partition: int, page: MessageSlice
) -> MessageSlice | None:
    at = Position(Start.OFFSET, page.next_offset, moves=True)
    return await caller.read(topic, partition, at, caller.random.randint(1, 6), wait_ms=20)


async def follow(caller: TopicCaller) -> None:
    """A consumer of an ordered group: it reads on from its cursor, and acknowledges."""
    random = caller.random
    topic = random.choice([PLAIN, ACKED])
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([1, 20]))
        partition = random.randrange(PARTITIONS) if topic == PLAIN else 0
        try:
            if topic == PLAIN and random.random() < 0.05:
                await caller.reset(topic, ORDERED, partition, random.choice([0, 1, 3]))
            if random.random() < 0.3:
                await caller.cursor(topic, ORDERED, partition)
            found = await caller.read(
                topic, partition, Position(Start.GROUP), random.randint(1, 4), group=ORDERED
            )
            if found is not None and random.random() < 0.7:
                at = max(0, found.next_offset - random.choice([0, 0, 1, 2]))
                await caller.ack(topic, ORDERED, partition, at)
        except ConnectionLost:
            continue


async def consume(caller: Caller) -> None:
    """A consumer of a group that shares messages."""
    random = caller.random
    lease_ms, is_bound = random.choice(LEASES_MS), random.random() < 0.3
    while not caller.rumours.is_over:
        try:
            polled = await caller.poll(
                random.randint(1, 4),
                lease_ms=lease_ms,
                wait_ms=random.choice([0, 20, 50]),
                is_bound=is_bound,
            )
            if polled is None:
                await caller.sleep_ms(3)
                continue
            await caller.sleep_ms(random.choice([0.2, 2, lease_ms / 2, lease_ms * 1.5]))
            lease = polled.lease_id
            some = [each for each in polled.ids if random.random() < 0.7] or list(polled.ids)
            match random.choice(["ack", "ack", "ack", "fail", "release", "extend", "hang up"]):
                case "ack" if len(some) == polled.count and random.random() < 0.5:
                    await caller.remove_whole(some, lease)
                case "ack":
                    await caller.remove(some, lease)
                case "fail":
                    await caller.fail(some, lease, random.choice([-1, *DELAYS_MS]))
                case "release":
                    await caller.release(some, lease)
                case "extend":
                    await caller.extend(lease, random.choice(LEASES_MS))
                case _:
                    caller.hang_up()
        except ConnectionLost:
            continue


async def consume_partition(caller: GroupCaller) -> None:
    """A consumer that reads on in one partition, and acknowledges up to an offset."""
    random = caller.random
    lease_ms = random.choice(LEASES_MS)
    while not caller.rumours.is_over:
        partition = random.randrange(PARTITIONS)
        try:
            polled = await caller.consume(
                partition,
                random.randint(1, 4),
                lease_ms=lease_ms,
                wait_ms=random.choice([0, 20, 50]),
            )
            if not polled.ids:
                await caller.sleep_ms(3)
                continue
            await caller.sleep_ms(random.choice([0.2, 2, lease_ms / 2, lease_ms * 1.5]))
            last = split_reference(polled.ids[-1])[1]
            match random.choice(["up to", "up to", "up to", "back", "ack", "fail", "hang up"]):
                case "up to":
                    await caller.ack_up_to(partition, last + 1)
                case "back":
                    await caller.ack_up_to(partition, max(0, last - random.randint(0, 4)))
                case "ack":
                    await caller.remove(list(polled.ids[:2]), polled.lease_id)
                case "fail":
                    await caller.fail(list(polled.ids[:1]), polled.lease_id, -1)
                case _:
                    caller.hang_up()
        except ConnectionLost:
            continue


# --- everything else ------------------------------------------------------------------------------


async def manage(caller: TopicCaller) -> None:
    """Trim, fork, close and delete, and make topics that do not live long."""
    random, number = caller.random, 0
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([5, 30]))
        number += 1
        name = f"{caller.name}.{number}".replace(" ", "-")
        try:
            match random.choice(["trim", "trim", "fork", "fork", "short", "temporary"]):
                case "trim":
                    found = await caller.read(TRIMMED, 0, Position(Start.LATEST), 1)
                    if found is not None:
                        offset = random.randint(found.first_kept, found.end_offset + 1)
                        await caller.trim(TRIMMED, 0, offset)
                case "fork":
                    await _fork(caller, name)
                case "short":
                    settings = TopicSettings(ttl_ms=random.choice([20, 60]))
                    await caller.create(name, TopicConfig(settings, partitions=2))
                    await _publish(caller, _message(name, "in"), is_numbered=False)
                    await caller.delete(name)
                case _:
                    await caller.create(name, TopicConfig(TopicSettings(retention_ms=20)))
                    await _publish(caller, _message(name, "in"), is_numbered=False)
        except ConnectionLost:
            continue


async def _fork(caller: TopicCaller, name: str) -> None:
    random = caller.random
    await caller.fork(PLAIN, name, ForkAt(0, random.randint(0, 8)))
    await _publish(caller, _message(name, "of"), is_numbered=False)
    if random.random() < 0.3:
        await caller.close(name)
        await _publish(caller, _message(name, "late in"), is_numbered=False)
    await caller.read(name, 0, Position(Start.EARLIEST), 20)
    if random.random() < 0.4:
        await caller.delete(name)


def _message(topic: str, text: str) -> Publication:
    return Publication(topic, NewMessages([f"{text} {topic}".encode()]), 0)


async def join(caller: TopicCaller) -> None:
    """Acknowledge, publish to two topics and add to a queue, together."""
    random, number = caller.random, 0
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([5, 20]))
        number += 1
        try:
            partition = random.randrange(PARTITIONS)
            found = await caller.read(
                PLAIN, partition, Position(Start.GROUP), random.randint(1, 4), group=ORDERED
            )
            if found is None or not found.packed:
                continue
            at = found.next_offset
            payload = f"{caller.name}.{number}".encode()
            ack = (PLAIN, ORDERED, partition, at)
            await caller.together([PLAIN, KEYED], JOINED, payload, ack)
        except ConnectionLost:
            continue


TOPIC_ROLES: Mapping[str, TopicRole] = {
    "publisher": publish,
    "appender": publish_in_place,
    "topic reader": read,
    "follower": follow,
    "manager": manage,
    "joiner": join,
    "streamer": stream,
}
