"""Routes in the simulation: two queues publish all their changes, and other sources come and go."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from faults.simulation.network import ConnectionLost
from faults.simulation.topic_caller import TopicCaller
from queueber.model import EventPayload, On, Source, TopicConfig, TopicSettings

ROUTED = "routed"
"""The topic that gets every change of the queues, from their first item on."""
REROUTED = "rerouted"
"""The topic whose sources come and go. Some callers have it keep the last messages alone."""
TOPICS_OF_ROUTES = {
    ROUTED: TopicConfig(partitions=2),  # the first: its events come before those of the other
    REROUTED: TopicConfig(partitions=2),
}
ALL_CHANGES = tuple(On)
FIRST_ATTEMPTS, BY_CHANGE = "item.attempt = 1", "item.change"
"""A filter, and what chooses partitions; `route_reading.py` knows what both mean."""
LATE_MS = 300
"""After this time no call arrives that a caller has given up."""


async def reroute(caller: TopicCaller, queue: str) -> None:
    random = caller.random
    if random.random() < 0.4:
        with suppress(ConnectionLost):
            await caller.set_topic(REROUTED, TopicSettings(retention_messages=5))
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([5, 20, 50]))
        on = random.choice(ALL_CHANGES)
        try:
            match random.choice(["add", "add", "add", "drop", "drop all", "close"]):
                case "add":
                    await caller.add_source(REROUTED, _some_source(caller, queue, on))
                case "drop":
                    await caller.drop_source(REROUTED, queue, on)
                case "drop all":
                    await caller.drop_source(REROUTED, queue, None)
                case _:
                    await caller.close(ROUTED)  # is refused
        except ConnectionLost:
            continue
    await _settle(caller, queue)


def _some_source(caller: TopicCaller, queue: str, on: On) -> Source:
    random = caller.random
    return Source(
        queue,
        on,
        random.choice(["", "", FIRST_ATTEMPTS]),
        random.choice(["", "", BY_CHANGE]),
        random.choice(list(EventPayload)),
    )


async def _settle(caller: TopicCaller, queue: str) -> None:
    """What happens to the items from now on has its events for sure."""
    drop_all = partial(caller.drop_source, REROUTED, queue, None)
    await _until_done(caller, drop_all)
    await asyncio.sleep(LATE_MS / 1000)
    await _until_done(caller, drop_all)
    for on in ALL_CHANGES:
        source = _some_source(caller, queue, on)
        await _until_done(caller, partial(caller.add_source, REROUTED, source))


async def _until_done(caller: TopicCaller, step: Callable[[], Awaitable[bool]]) -> None:
    is_done = False
    while not is_done:
        try:
            is_done = await step()
        except ConnectionLost:
            await asyncio.sleep(LATE_MS / 1000)
        else:
            await caller.sleep_ms(1)
