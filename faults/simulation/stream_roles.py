"""A role that uses topics as streams: conditions, first messages, and forks inside of messages."""

from faults.simulation.network import ConnectionLost
from faults.simulation.topic_caller import TopicCaller
from queueber.model import ForkAt, NewMessages, Position, Publication, Start, TopicConfig

STREAM = "stream"
STREAM_TYPE = "text/plain"


async def stream(caller: TopicCaller) -> None:
    random, number, text = caller.random, 0, 0
    while not caller.rumours.is_over:
        await caller.sleep_ms(random.choice([2, 10, 30]))
        number += 1
        name = f"{caller.name}.{number}".replace(" ", "-")
        made = Publication(STREAM, NewMessages([name.encode()]), 0)
        made.content_type = "Text/PLAIN; charset=utf-8"
        try:
            match random.choice(["append", "append", "append", "type", "schema", "new", "fork"]):
                case "append":
                    text += random.randint(1, 9)
                    made.text_sequence = f"{text:04d}"
                    await caller.publish(made)
                case "type":
                    made.content_type = "text/html"
                    await caller.publish(made)
                case "schema":
                    made.schema_version = 1
                    await caller.publish(made)
                case "new":
                    await caller.create(name, TopicConfig(), _first(caller, name))
                case _:
                    await _fork(caller, name)
        except ConnectionLost:
            continue


def _first(caller: TopicCaller, name: str) -> Publication:
    payloads = [f"{name} {at}".encode() for at in range(caller.random.randint(1, 3))]
    return Publication(name, NewMessages(payloads), 0, closes=caller.random.random() < 0.5)


async def _fork(caller: TopicCaller, name: str) -> None:
    """A fork of the stream that begins inside of a message, and a fork of that fork."""
    random = caller.random
    at = ForkAt(0, random.randint(0, 6), random.choice([0, 2, 3]))
    await caller.fork(STREAM, name, at, _first(caller, name))
    again = f"{name}-again"
    await caller.fork(name, again, ForkAt(0, at.offset, min(1, at.cut_bytes)))
    await caller.read(again, 0, Position(Start.EARLIEST), 20)
    if random.random() < 0.5:
        await caller.delete(name)
    if random.random() < 0.5:
        await caller.delete(again)
