"""Every door to a topic: how a message is published through it, and what it shows to a reader."""

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import queueber
from queueber.client import Message
from queueber.testing import ServerProcess
from tests.support.grpc import Sluice, running_grpc
from tests.support.http import GatewayProcess, to_base64

TOPIC = "doors.all"
QUEUE = "door-jobs"
_SECONDS_MAX = 20
_MORE = 100
"""More than there are."""

Shown = dict[str, Any]
"""What a door shows of a message: some of `COLUMNS`."""

COLUMNS = ("offset", "payload", "key", "attributes", "at_ms", "id", "sequence")


@dataclass(slots=True)
class House:
    """A server with a topic that a queue is routed to, and every door to it."""

    client: queueber.Client
    gateway: GatewayProcess
    sluice: Sluice

    @property
    def topic(self) -> queueber.Topic:
        return self.client.topic(TOPIC)

    def sql(self, text: str) -> list[Shown]:
        answer = self.gateway.ask("POST", "/v1/api/sql", {"sql": text})
        assert answer.status == 200, answer.body
        result = answer.json["results"][-1]
        names = [column["name"] for column in result.get("schema") or []]
        return [dict(zip(names, row, strict=True)) for row in result.get("rows") or []]

    def post(self, path: str, body: object) -> Any:
        answer = self.gateway.ask("POST", path, body)
        assert answer.status in (200, 201), answer.body
        return answer.json


@contextlib.contextmanager
def opened_house(server: ServerProcess) -> Iterator[House]:
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


class Given(NamedTuple):
    """A message that is published. A door that carries no key or attributes leaves them out."""

    payload: bytes
    key: str
    attributes: dict[str, str]

    @property
    def as_json(self) -> Shown:
        return {
            "payload": to_base64(self.payload), "key": self.key, "attributes": self.attributes
        }  # fmt: skip

    @property
    def as_message(self) -> queueber.NewMessage:
        return queueber.NewMessage(*self)


def _answered(published: Any) -> Shown:
    """What an answer of HTTP says of the only message."""
    return {
        "offset": published["offsets"][0], "at_ms": published["published_at_ms"],
        "id": published["ids"][0], "sequence": published["sequences"][0],
    }  # fmt: skip


def _of_rpc(published: queueber.Published) -> Shown:
    return {
        "offset": published.offsets[0], "at_ms": published.at_ms,
        "id": published.ids[0].hex(), "sequence": published.sequences[0],
    }  # fmt: skip


def publish_rpc(house: House, given: Given) -> Shown:
    return given._asdict() | _of_rpc(house.topic.publish(given.as_message))


def publish_rpc_together(house: House, given: Given) -> Shown:
    with house.client.together() as together:
        together.publish(TOPIC, given.as_message)
    return given._asdict()


def publish_http(house: House, given: Given) -> Shown:
    answer = house.post(f"/v1/topics/{TOPIC}/messages", {"messages": [given.as_json]})
    return given._asdict() | _answered(answer)


def publish_http_many(house: House, given: Given) -> Shown:
    publication = {"topic": TOPIC, "messages": [given.as_json]}
    answer = house.post("/v1/publish", {"publications": [publication]})
    return given._asdict() | _answered(answer["published"][0])


def publish_http_together(house: House, given: Given) -> Shown:
    publication = {"topic": TOPIC, "messages": [given.as_json]}
    answer = house.post("/v1/together", {"publications": [publication]})
    return given._asdict() | _answered(answer["published"][0])


def publish_stream(house: House, given: Given) -> Shown:
    headers = {"content-type": "application/json"}
    answer = house.gateway.ask("POST", f"/v1/stream/{TOPIC}", raw=given.payload, headers=headers)
    assert answer.status == 204, answer.body
    return Given(given.payload, "", {})._asdict()


def publish_grpc(house: House, given: Given) -> Shown:
    answer = house.sluice.publish(TOPIC, given.payload, **given.attributes)
    return given._replace(key="")._asdict() | {
        "at_ms": answer.timestamp, "id": UUID(answer.message_id).hex, "sequence": answer.sequence
    }  # fmt: skip


def publish_grpc_batch(house: House, given: Given) -> Shown:
    answer = house.sluice.batch(TOPIC, given.payload)
    (result,) = answer.results
    return Given(given.payload, "", {})._asdict() | {
        "at_ms": answer.timestamp, "id": UUID(result.message_id).hex, "sequence": result.sequence
    }  # fmt: skip


def publish_sql_route(house: House, given: Given) -> Shown:
    """The source takes the items of this door, and leaves out the other one."""
    _, added = house.client.queue(QUEUE).add(
        [b'{"door": "another"}', given.payload], key=["", given.key], attributes=given.attributes
    )
    told = {
        "queue": QUEUE, "op": "insert", "change": "added", "id": added.hex(), "attempt": "1",
        "payload": "full",
    }  # fmt: skip
    own = {f"queueber.{name}": value for name, value in told.items()}
    return given._replace(attributes={**given.attributes, **own})._asdict()


PUBLISHERS: dict[str, Callable[[House, Given], Shown]] = {
    "rpc": publish_rpc,
    "rpc together": publish_rpc_together,
    "http": publish_http,
    "http many": publish_http_many,
    "http together": publish_http_together,
    "stream": publish_stream,
    "grpc": publish_grpc,
    "grpc batch": publish_grpc_batch,
    "sql route": publish_sql_route,
}


def publish_through_all(house: House) -> list[Shown]:
    """What each door was given and answered; what it did not say is what RPC shows of it."""
    said = []
    for number, (door, publish) in enumerate(PUBLISHERS.items()):
        payload = json.dumps({"door": door, "number": number}).encode()
        said.append(publish(house, Given(payload, f"key-{number}", {"door": door, "ü": "ß"})))
    shown = of_messages(list(house.topic.messages()))
    assert [each["offset"] for each in shown] == list(range(len(PUBLISHERS)))
    for each, found in zip(said, shown, strict=True):
        assert each == {name: found[name] for name in each}
    return shown


# --- read -----------------------------------------------------------------------------------------


def of_messages(messages: Sequence[Message]) -> list[Shown]:
    return [
        {
            "offset": each.offset, "payload": each.payload, "key": each.key,
            "attributes": each.attributes, "at_ms": each.timestamp_ms, "id": each.id.hex(),
            "sequence": each.sequence,
        }
        for each in messages
    ]  # fmt: skip


_JSON_NAMES = {"published_at_ms": "at_ms", "timestamp_ms": "at_ms", "ts": "at_ms"}


def _of_json(rows: Sequence[Shown]) -> list[Shown]:
    """Rows with the names of `COLUMNS`."""
    found = []
    for row in rows:
        named = {_JSON_NAMES.get(name, name): value for name, value in row.items()}
        shown = {name: named[name] for name in COLUMNS if name in named}
        for name in {"offset", "at_ms", "sequence"} & shown.keys():
            shown[name] = int(shown[name])
        found.append(shown | {"payload": base64.b64decode(row["payload"])})
        if "key" in shown:
            found[-1]["key"] = shown["key"] or ""
    return found


def read_rpc(house: House) -> list[Shown]:
    return of_messages(list(house.topic.messages()))


def _subscribed(house: House, **options: Any) -> list[Shown]:
    with house.topic.subscribe(**options) as subscription:
        found = []
        for _ in PUBLISHERS:
            message = subscription.next(wait=_SECONDS_MAX)
            assert message is not None
            found.append(message)
        return of_messages(found)


def read_rpc_tail(house: House) -> list[Shown]:
    return _subscribed(house)


def read_subscription(house: House) -> list[Shown]:
    return _subscribed(house, group="doors-rpc")


def read_shared_subscription(house: House) -> list[Shown]:
    return _subscribed(house, group="doors-rpc-shared", kind="shared")


def read_deliveries(house: House) -> list[Shown]:
    found: list[Message] = []
    with house.topic.deliveries("doors-deliveries", start="earliest") as deliveries:
        deliveries.grant(_MORE)
        while len(found) < len(PUBLISHERS):
            came = deliveries.next(_SECONDS_MAX)
            assert came
            found += came
    return of_messages(found)


def read_consumed(house: House) -> list[Shown]:
    return of_messages(list(house.topic.consume("doors-consume", limit=_MORE)))


def read_shared_group(house: House) -> list[Shown]:
    house.topic.create_group("doors-shared", kind="shared")
    polled = house.topic.group("doors-shared").poll(_MORE)
    return [
        {"payload": each.contents, "key": each.key, "attributes": each.attributes}
        for each in polled
    ]


def read_http(house: House) -> list[Shown]:
    answer = house.gateway.ask("GET", f"/v1/topics/{TOPIC}/messages?from=earliest")
    return _of_json(answer.json["messages"])


def read_tail(house: House) -> list[Shown]:
    path = f"/v1/topics/{TOPIC}/tail?from=earliest&messages_max={len(PUBLISHERS)}"
    lines = house.gateway.ask("GET", path).body.decode().splitlines()
    return _of_json([json.loads(line[6:]) for line in lines if line.startswith("data: ")])


def read_http_group(house: House) -> list[Shown]:
    house.topic.create_group("doors-http", kind="shared")
    path = f"/v1/topics/{TOPIC}/groups/doors-http/poll"
    return _of_json(house.post(path, {"messages_max": _MORE})["messages"])


def _of_values(values: Sequence[object]) -> list[Shown]:
    return [{"payload": json.dumps(each).encode()} for each in values]


def read_stream(house: House) -> list[Shown]:
    return _of_values(house.gateway.ask("GET", f"/v1/stream/{TOPIC}?offset=-1").json)


def read_stream_long_poll(house: House) -> list[Shown]:
    path = f"/v1/stream/{TOPIC}?offset=-1&live=long-poll"
    return _of_values(house.gateway.ask("GET", path).json)


def read_stream_sse(house: House) -> list[Shown]:
    connection = house.gateway.connection(_SECONDS_MAX)
    values: list[object] = []
    with contextlib.closing(connection):
        connection.request("GET", f"/v1/stream/{TOPIC}?offset=-1&live=sse")
        kind, data = "", ""
        for line in connection.getresponse():
            name, _, value = line.decode().rstrip("\n").partition(":")
            if name == "event":
                kind, data = value.strip(), ""
            elif name == "data":
                data += value
            elif kind == "data" and data:
                values += json.loads(data)
                kind = ""
            elif kind == "control" and len(values) >= len(PUBLISHERS):
                break
    return _of_values(values)


def read_records(house: House) -> list[Shown]:
    answer = house.gateway.ask("GET", f"/v1/stream/{TOPIC}/_records?offset=-1")
    return [
        {
            "offset": each["offset"]["offset"], "payload": json.dumps(each["data"]).encode(),
            "key": each["key"] or "", "at_ms": each["time_ms"],
        }
        for each in answer.json["records"]
    ]  # fmt: skip


def read_grpc(house: House) -> list[Shown]:
    stream = house.sluice.subscribe(TOPIC, "doors-grpc")
    stream.credit(_MORE)
    found = stream.take(len(PUBLISHERS))
    stream.cancel()
    return [
        {
            "payload": each.payload, "attributes": dict(each.attributes), "at_ms": each.timestamp,
            "id": UUID(each.message_id).hex, "sequence": each.sequence,
        }
        for each in found
    ]  # fmt: skip


def _consumed(house: House, path: str, group: str) -> list[Shown]:
    body = {"topic_id": TOPIC, "group_id": group, "start": "Earliest", "limit": _MORE}
    rows: list[Shown] = house.post(path, body)["messages"]
    return rows


def read_kalam(house: House) -> list[Shown]:
    return _of_json(_consumed(house, "/v1/api/topics/consume", "doors-kalam"))


def read_kalam_designed(house: House) -> list[Shown]:
    """The path of the first design, whose `message_id` is the id of the message."""
    rows = _consumed(house, "/api/topics/consume", "doors-designed")
    return _of_json([row | {"id": row["message_id"]} for row in rows])


def read_consume(house: House) -> list[Shown]:
    return _of_json(house.sql(f"CONSUME FROM {TOPIC} GROUP 'doors-sql' FROM EARLIEST LIMIT 100"))


def read_select(house: House) -> list[Shown]:
    rows = house.sql(f"SELECT * FROM topic('{TOPIC}') ORDER BY \"offset\"")
    for row in rows:
        row["ts"] = round(datetime.fromisoformat(row["ts"]).timestamp() * 1000)
    return _of_json(rows)


READERS: dict[str, tuple[Callable[[House], list[Shown]], str]] = {
    "rpc": (read_rpc, "offset payload key attributes at_ms id sequence"),
    "rpc tail": (read_rpc_tail, "offset payload key attributes at_ms id sequence"),
    "subscription": (read_subscription, "offset payload key attributes at_ms id sequence"),
    "shared subscription": (
        read_shared_subscription, "offset payload key attributes at_ms id sequence"
    ),
    "deliveries": (read_deliveries, "offset payload key attributes at_ms id sequence"),
    "consumed": (read_consumed, "offset payload key attributes at_ms id sequence"),
    "shared group": (read_shared_group, "payload key attributes"),
    "http": (read_http, "offset payload key attributes at_ms id sequence"),
    "tail": (read_tail, "offset payload key attributes at_ms id sequence"),
    "http group": (read_http_group, "offset payload key attributes"),
    "stream": (read_stream, "payload"),
    "stream long poll": (read_stream_long_poll, "payload"),
    "stream sse": (read_stream_sse, "payload"),
    "records": (read_records, "offset payload key at_ms"),
    "grpc": (read_grpc, "payload attributes at_ms id sequence"),
    "kalam": (read_kalam, "offset payload key at_ms"),
    "kalam as designed": (read_kalam_designed, "offset payload at_ms id"),
    "sql consume": (read_consume, "offset payload key at_ms"),
    "sql select": (read_select, "offset payload key attributes at_ms id sequence"),
}  # fmt: skip
"""How each door is read, and which columns it has."""
