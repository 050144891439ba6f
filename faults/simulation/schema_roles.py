"""A role that sets schemas of topics, and publishes what it checked against the one it knows."""

from faults.simulation.network import ConnectionLost
from faults.simulation.topic_caller import TopicCaller
from queueber.model import NewMessages, Publication, TopicConfig, TopicSettings

CHECKED = "checked"


async def keep_schema(caller: TopicCaller) -> None:
    """Several keepers of a topic disagree about its version until they look."""
    random, number, version, end = caller.random, 0, 0, 0
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([2, 10, 30]))
        number += 1
        name = f"{caller.name}.{number}".replace(" ", "-")
        try:
            match random.choice(["publish", "publish", "publish", "set", "look", "new"]):
                case "publish":
                    made = Publication(CHECKED, NewMessages([name.encode()]), 0)
                    made.schema_version = version + (random.random() < 0.1)
                    published = await caller.publish(made)
                    if published is not None:
                        end = published[0].offsets[-1] + 1
                case "set":
                    expected = random.choice([None, version]), random.choice([None, end])
                    found = await caller.set_schema(CHECKED, name.encode(), *expected)
                    if found is not None:
                        version, end = found.version, found.from_offset
                case "look":
                    known = await caller.schemas(CHECKED)
                    version = known[-1].version if known else version
                case _:
                    await _new(caller, name)
        except ConnectionLost:
            continue


async def _new(caller: TopicCaller, name: str) -> None:
    """A topic that begins with a schema, and perhaps with messages that were checked."""
    first = Publication(name, NewMessages([f"in {name}".encode()]), 0, schema_version=1)
    config = TopicConfig(TopicSettings(schema_version=1))
    await caller.create(name, config, caller.random.choice([None, first]), b"first schema")
    made = Publication(name, NewMessages([f"to {name}".encode()]), 0)
    made.schema_version = caller.random.choice([0, 1, 1, 2])
    await caller.publish(made)
    if caller.random.random() < 0.3:
        await caller.delete(name)
