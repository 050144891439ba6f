"""Routes in the simulation: two queues publish all their changes, and other sources come and go."""

from faults.simulation.network import ConnectionLost
from faults.simulation.topic_caller import TopicCaller
from queueber.model import EventPayload, On, Source, TopicConfig, TopicSettings

ROUTED = "routed"
"""The topic that gets every change of the queues, from their first item on."""
REROUTED = "rerouted"
"""The topic whose sources come and go."""
TOPICS_OF_ROUTES = {
    ROUTED: TopicConfig(partitions=2),
    REROUTED: TopicConfig(TopicSettings(retention_messages=5)),
}
ALL_CHANGES = tuple(On)


async def reroute(caller: TopicCaller, queue: str) -> None:
    random = caller.random
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([5, 20, 50]))
        on = random.choice(ALL_CHANGES)
        try:
            match random.choice(["add", "add", "drop", "drop all", "close"]):
                case "add":
                    payload = random.choice(list(EventPayload))
                    await caller.add_source(REROUTED, Source(queue, on, payload=payload))
                case "drop":
                    await caller.drop_source(REROUTED, queue, on)
                case "drop all":
                    await caller.drop_source(REROUTED, queue, None)
                case _:
                    await caller.close(ROUTED)  # is refused
        except ConnectionLost:
            continue
