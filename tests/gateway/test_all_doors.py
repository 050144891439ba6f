"""One topic, every door: what is published through each is read through all of them.

Each reader reports payloads in the order of the log. Nothing is copied between the doors, so a
reader that shows another order, or a message twice, has a mistake of its own.
"""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.support.grpc import Sluice, running_grpc
from tests.support.http import GatewayProcess

TOPIC = "doors.all"
QUEUE = "door-jobs"


@dataclass(slots=True)
class House:
    """A server with a topic that a queue is routed to, and every door to it."""

    client: queueber.Client
    gateway: GatewayProcess
    sluice: Sluice

    def sql(self, text: str) -> list[dict[str, object]]:
        answer = self.gateway.ask("POST", "/v1/api/sql", {"sql": text})
        assert answer.status == 200, answer.body
        result = answer.json["results"][-1]
        names = [column["name"] for column in result.get("schema") or []]
        return [dict(zip(names, row, strict=True)) for row in result.get("rows") or []]


@pytest.fixture(scope="module")
def house(server: ServerProcess) -> Iterator[House]:
    with (
        running_grpc(server.address) as (gateway, address),
        Sluice(address) as sluice,
        queueber.connect(server.address) as client,
    ):
        house = House(client, gateway, sluice)
        house.sql(f"CREATE TOPIC {TOPIC} WITH (content_type = 'application/json')")
        client.create_queue(QUEUE)
        house.sql(
            f"ALTER TOPIC {TOPIC} ADD SOURCE {QUEUE} ON INSERT WHERE door = 'sql route' "
            "WITH (payload = 'full')"
        )
        yield house


# --- publish --------------------------------------------------------------------------------------


def publish_rpc(house: House, payload: bytes) -> None:
    house.client.topic(TOPIC).publish(payload)


def publish_http(house: House, payload: bytes) -> None:
    message = {"payload": base64.b64encode(payload).decode()}
    answer = house.gateway.ask("POST", f"/v1/topics/{TOPIC}/messages", {"messages": [message]})
    assert answer.status == 201, answer.body


def publish_stream(house: House, payload: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = house.gateway.ask("POST", f"/v1/stream/{TOPIC}", raw=payload, headers=headers)
    assert answer.status == 204, answer.body


def publish_grpc(house: House, payload: bytes) -> None:
    house.sluice.publish(TOPIC, payload)


def publish_sql_route(house: House, payload: bytes) -> None:
    """The source takes the items of this door, and leaves out the other one."""
    house.client.queue(QUEUE).add([b'{"door": "another"}', payload])


PUBLISHERS: dict[str, Callable[[House, bytes], None]] = {
    "rpc": publish_rpc,
    "http": publish_http,
    "stream": publish_stream,
    "grpc": publish_grpc,
    "sql route": publish_sql_route,
}


# --- read -----------------------------------------------------------------------------------------


def read_rpc(house: House) -> list[bytes]:
    return [message.payload for message in house.client.topic(TOPIC).messages()]


def read_subscription(house: House) -> list[bytes]:
    with house.client.topic(TOPIC).subscribe(group="doors-rpc") as subscription:
        found = []
        for _ in PUBLISHERS:
            message = subscription.next(wait=20)
            assert message is not None
            found.append(message.payload)
        return found


def read_http(house: House) -> list[bytes]:
    answer = house.gateway.ask("GET", f"/v1/topics/{TOPIC}/messages?from=earliest")
    return [base64.b64decode(each["payload"]) for each in answer.json["messages"]]


def read_tail(house: House) -> list[bytes]:
    path = f"/v1/topics/{TOPIC}/tail?from=earliest&messages_max={len(PUBLISHERS)}"
    lines = house.gateway.ask("GET", path).body.decode().splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    return [base64.b64decode(each["payload"]) for each in events]


def read_stream(house: House) -> list[bytes]:
    answer = house.gateway.ask("GET", f"/v1/stream/{TOPIC}?offset=-1")
    return [json.dumps(each).encode() for each in answer.json]


def read_grpc(house: House) -> list[bytes]:
    stream = house.sluice.subscribe(TOPIC, "doors-grpc")
    stream.credit(100)
    found = stream.payloads(len(PUBLISHERS))
    stream.cancel()
    return found


def read_kalam(house: House) -> list[bytes]:
    body = {"topic_id": TOPIC, "group_id": "doors-kalam", "start": "Earliest", "limit": 100}
    answer = house.gateway.ask("POST", "/v1/api/topics/consume", body)
    return [base64.b64decode(each["payload"]) for each in answer.json["messages"]]


def read_consume(house: House) -> list[bytes]:
    rows = house.sql(f"CONSUME FROM {TOPIC} GROUP 'doors-sql' FROM EARLIEST LIMIT 100")
    return [base64.b64decode(str(row["payload"])) for row in rows]


def read_select(house: House) -> list[bytes]:
    rows = house.sql(f"SELECT text FROM topic('{TOPIC}') ORDER BY \"offset\"")
    return [str(row["text"]).encode() for row in rows]


READERS: dict[str, Callable[[House], list[bytes]]] = {
    "rpc": read_rpc,
    "subscription": read_subscription,
    "http": read_http,
    "tail": read_tail,
    "stream": read_stream,
    "grpc": read_grpc,
    "kalam": read_kalam,
    "sql consume": read_consume,
    "sql select": read_select,
}


@pytest.fixture(scope="module")
def published(house: House) -> list[bytes]:
    payloads = [json.dumps({"door": name, "number": at}) for at, name in enumerate(PUBLISHERS)]
    for publish, payload in zip(PUBLISHERS.values(), payloads, strict=True):
        publish(house, payload.encode())
    return [payload.encode() for payload in payloads]


@pytest.mark.parametrize("door", READERS)
def test_each_door_shows_what_came_through_all_of_them(
    house: House, published: list[bytes], door: str
) -> None:
    assert READERS[door](house) == published
