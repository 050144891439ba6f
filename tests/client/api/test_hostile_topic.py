"""Every argument of the methods about topics with values that make no sense: an error names the
argument, and the client and the server go on."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest

import queueber
from queueber import InvalidArgument, NewMessage, QueueberError

STRANGE: tuple[Any, ...] = (
    -1,
    -(2**63),
    2**31,
    2**32,
    2**63,
    2**64,
    2**64 - 1,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    True,
    "",
    "a b",
    "\n",
    "\ud800",
    "x" * 20_000,
    b"",
    b"x" * 17,
    datetime(2024, 1, 1),  # noqa: DTZ001  it has no time zone, which is wrong
    datetime.max,  # noqa: DTZ901  the same
    [],
    [None],
    [2**64],
    ["\ud800"],
    {},
    {"a": 1},
    object(),
)

Call = Callable[[queueber.Topic, Any], object]

CALLS: dict[str, Call] = {
    "messages": lambda topic, value: topic.publish(value),
    "messages[]": lambda topic, value: topic.publish([value]),
    "payload": lambda topic, value: topic.publish(NewMessage(value)),
    "key": lambda topic, value: topic.publish(NewMessage(b"", key=value)),
    "key of a tuple": lambda topic, value: topic.publish([(b"", value)]),
    "attributes": lambda topic, value: topic.publish(NewMessage(b"", attributes=value)),
    "attributes value": lambda topic, value: topic.publish(
        NewMessage(b"", attributes={"a": value})
    ),
    "dedup_id": lambda topic, value: topic.publish(NewMessage(b"", dedup_id=value)),
    "publish partition": lambda topic, value: topic.publish(b"", partition=value),
    "producer": lambda topic, value: topic.publish(b"", producer=value),
    "producer id": lambda topic, value: topic.publish(b"", producer=(value, 1, 1)),
    "producer epoch": lambda topic, value: topic.publish(b"", producer=("p", value, 1)),
    "producer sequence": lambda topic, value: topic.publish(b"", producer=("p", 1, value)),
    "expected_offset": lambda topic, value: topic.publish(b"", expected_offset=value),
    "close": lambda topic, value: topic.publish(b"", close=value),
    "read partition": lambda topic, value: topic.read(value),
    "wait": lambda topic, value: topic.read(start="earliest", wait=value),
    "start": lambda topic, value: topic.read(start=value),
    "time": lambda topic, value: topic.read(time=value),
    "last": lambda topic, value: topic.read(last=value),
    "moves": lambda topic, value: topic.read(start=0, moves=value),
    "read group": lambda topic, value: topic.read(group=value),
    "limit": lambda topic, value: topic.read(limit=value),
    "bytes": lambda topic, value: topic.read(bytes=value),
    "end_offset": lambda topic, value: topic.read(end_offset=value),
    "end_time": lambda topic, value: topic.read(end_time=value),
    "without": lambda topic, value: topic.read(without=value),
    "id": lambda topic, value: topic.find(value),
    "sequence": lambda topic, value: topic.find(sequence=value),
    "trim partition": lambda topic, value: topic.trim(partition=value, start="earliest"),
    "trim start": lambda topic, value: topic.trim(start=value),
    "fork name": lambda topic, value: topic.fork(value),
    "fork offset": lambda topic, value: topic.fork("fork", value),
    "fork partition": lambda topic, value: topic.fork("fork", 0, partition=value),
    "fork retention": lambda topic, value: topic.fork("fork", retention=value),
    "fork expires_at": lambda topic, value: topic.fork("fork", expires_at=value),
    "group name": lambda topic, value: topic.create_group(value),
    "kind": lambda topic, value: topic.create_group("new", kind=value),
    "queue": lambda topic, value: topic.create_group("new", kind="queue", queue=value),
    "in_flight_max": lambda topic, value: topic.create_group(
        "new", kind="shared", in_flight_max=value
    ),
    "lease": lambda topic, value: topic.create_group("new", kind="shared", lease=value),
    "group start": lambda topic, value: topic.create_group("new", start=value),
    "group": lambda topic, value: topic.group(value).stats(),
    "describe_group": lambda topic, value: topic.describe_group(value),
    "delete_group": lambda topic, value: topic.delete_group(value),
    "ack group": lambda topic, value: topic.ack(value, 0),
    "ack offset": lambda topic, value: topic.ack("g", value),
    "ack partition": lambda topic, value: topic.ack("g", 0, partition=value),
    "reset": lambda topic, value: topic.reset(value, start="earliest"),
    "reset partition": lambda topic, value: topic.reset("g", partition=value, start="earliest"),
    "reset start": lambda topic, value: topic.reset("g", start=value),
    "pause": lambda topic, value: topic.pause(value),
    "seconds": lambda topic, value: topic.pause("g", value),
    "resume": lambda topic, value: topic.resume(value),
    "subscribe group": lambda topic, value: topic.subscribe(group=value).close(),
    "subscribe kind": lambda topic, value: topic.subscribe(group="g", kind=value).close(),
    "credits": lambda topic, value: topic.subscribe(credits=value).close(),
    "partitions": lambda topic, value: topic.subscribe(partitions=value).close(),
    "partitions[]": lambda topic, value: topic.subscribe(partitions=[value]).close(),
    "heartbeat": lambda topic, value: topic.subscribe(heartbeat=value).close(),
    "subscribe lease": lambda topic, value: topic.subscribe(
        group="s", kind="shared", lease=value
    ).close(),
    "consumer": lambda topic, value: topic.subscribe(consumer=value).close(),
    "subscribe start": lambda topic, value: topic.subscribe(start=value).close(),
}


_SETTINGS = (
    "partitions", "content_type", "alias", "retention", "retention_bytes", "retention_messages",
    "deletes_acknowledged", "refuses_when_full", "keeps_last_per_key", "tombstone", "ttl",
    "expires_at", "dedup_window",
)  # fmt: skip


def _create_with(setting: str, client: queueber.Client, value: Any) -> object:
    settings: Any = {setting: value}
    return client.create_topic("fork", **settings)


def _step(name: str, client: queueber.Client, value: Any) -> None:
    with client.together() as step:
        match name:
            case "topic":
                step.publish(value, b"x")
            case "messages":
                step.publish("strange", value)
            case "message":
                step.ack(value)
            case "queue":
                step.add(value, b"x")
            case "contents":
                step.add("default", value)
            case _:
                step.complete(value)


OF_CLIENT: dict[str, Callable[[queueber.Client, Any], object]] = {
    "topic": lambda client, value: client.topic(value).describe(),
    "create_topic": lambda client, value: client.create_topic(value),
    **{f"topic {name}": partial(_create_with, name) for name in _SETTINGS},
    "configure_topic": lambda client, value: client.configure_topic(value, retention=1),
    "configured": lambda client, value: client.configure_topic("strange", retention=value),
    "delete_topic": lambda client, value: client.delete_topic(value),
    "prefix": lambda client, value: list(client.topics(value)),
    "publish": lambda client, value: client.publish(value),
    "publish messages": lambda client, value: client.publish({"strange": value}),
    **{
        f"together {name}": partial(_step, name)
        for name in ("topic", "messages", "message", "queue", "contents", "item")
    },
}


@pytest.mark.parametrize("name", [*CALLS, *OF_CLIENT])
def test_strange_values_get_an_error_that_names_the_argument(
    name: str, client: queueber.Client
) -> None:
    wrong = []
    topic = new_topic(client)
    for value in STRANGE:
        try:
            if name in OF_CLIENT:
                OF_CLIENT[name](client, value)
            else:
                CALLS[name](topic, value)
        except InvalidArgument as error:
            argument = str(error).partition(":")[0]
            if not argument.replace("_", "").replace(".", "").isalnum():
                wrong.append((value, f"names no argument: {error}"))
        except QueueberError:
            pass
        except BaseException as error:  # noqa: BLE001  none of these is for users
            wrong.append((value, repr(error)))
        else:
            client.delete_topic("fork")
            topic = new_topic(client)

    assert wrong == []
    assert topic.read().payloads == [b"first"]


def new_topic(client: queueber.Client) -> queueber.Topic:
    client.delete_topic("strange")
    topic = client.topic("strange")
    topic.publish(b"first")
    topic.create_group("g")
    return topic
