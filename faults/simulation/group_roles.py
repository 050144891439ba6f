"""The roles of those who subscribe, operate groups, and create a topic again and again."""

from collections.abc import Awaitable, Callable, Mapping

from faults.simulation.network import ConnectionLost
from faults.simulation.subscriber import Inbox, Subscriber
from faults.simulation.topic_caller import TopicCaller
from faults.simulation.topic_roles import BRIDGE, BRIDGED, ORDERED, PARTITIONS, PLAIN, PUSHED
from queueber.model import (
    GroupKind,
    GroupSettings,
    NewMessages,
    Publication,
    QueueSettings,
    TopicConfig,
    TopicSettings,
)
from queueber.service.subscription import Subscription

REBORN, REBORN_QUEUE = "reborn", "reborn-messages"
"""A topic that is deleted and created again, and the queue that gets its messages; nobody polls
that."""
TOO_SMALL = 12
"""Bytes of an item that a queue takes: fewer than many messages have."""

GroupRole = Callable[[Subscriber], Awaitable[None]]


async def subscribe(caller: Subscriber) -> None:
    """Get the messages of a group in order; others take over, and it takes over from them."""
    number = 0
    while not caller.rumours.is_over:
        number += 1
        name = f"{caller.name}.{number}"
        try:
            credits, seeks = caller.random.choice([0, 1, 3, 20]), caller.random.random() < 0.2
            made = await caller.subscribe(PLAIN, PUSHED, name, credits, seeks=seeks)
            if made is not None:
                await _consume(caller, name, *made)
        except ConnectionLost:
            pass
        await caller.sleep_ms(caller.random.choice([1, 20]))


async def _consume(caller: Subscriber, name: str, subscription: Subscription, inbox: Inbox) -> None:
    random = caller.random
    for _ in range(random.randint(1, 20)):
        found = await inbox.next(20)
        if isinstance(found, str):
            break
        if found is not None:
            caller.pushed(PLAIN, PUSHED, name, found)
            await caller.sleep_ms(random.choice([0.2, 2, 20]))
            if random.random() < 0.7:
                at = found.slice.next_offset - random.choice([0, 0, 0, 1])
                place = (PLAIN, PUSHED, found.slice.partition)
                await caller.ack_pushed(subscription, place, name, at)
        await caller.grant(subscription, random.randint(1, 5))
    match random.choice(["leave", "hang up", "stay"]):
        case "leave":
            await caller.leave(subscription)
        case "hang up":
            caller.hang_up()
        case _:
            pass  # the next one takes over


async def operate(caller: TopicCaller) -> None:
    """Pause groups, set a bridge back, and change how large an item of its queue may be."""
    random = caller.random
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([5, 30]))
        try:
            match random.choice(["pause", "resume", "back", "small", "large"]):
                case "pause":
                    group = random.choice([ORDERED, PUSHED, BRIDGE])
                    await caller.pause_group(PLAIN, group, random.choice([5, 30, 100]))
                case "resume":
                    await caller.resume_group(PLAIN, random.choice([ORDERED, PUSHED, BRIDGE]))
                case "back":
                    partition = random.randrange(PARTITIONS)
                    await caller.reset(PLAIN, BRIDGE, partition, 0)
                case "small":
                    await caller.configure(BRIDGED, QueueSettings(item_bytes_max=TOO_SMALL))
                case _:
                    await caller.configure(BRIDGED, QueueSettings())
        except ConnectionLost:
            continue


async def bear_again(caller: TopicCaller) -> None:
    """Create a topic with a bridge, publish to it and delete it, again and again."""
    random, number = caller.random, 0
    given = GroupSettings(GroupKind.QUEUE, queue=REBORN_QUEUE)
    while not caller.rumours.is_over:
        try:
            await caller.create(REBORN, TopicConfig(TopicSettings()))
            await caller.create_group(REBORN, BRIDGE, given)
            for _ in range(random.randint(1, 3)):
                number += 1
                message = NewMessages([f"{caller.name}.{number}".encode()])
                await caller.publish(Publication(REBORN, message))
                await caller.sleep_ms(random.choice([1, 10]))
            if random.random() < 0.8:
                await caller.delete(REBORN)
        except ConnectionLost:
            continue


GROUP_ROLES: Mapping[str, GroupRole] = {"subscriber": subscribe, "group operator": operate}
