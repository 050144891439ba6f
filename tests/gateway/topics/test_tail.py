"""The live tail: server-sent events that a caller can resume."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from queueber.testing import ServerProcess
from tests.support.http import GatewayProcess, running_gateway, to_base64


@dataclass
class Event:
    fields: dict[str, str] = field(default_factory=dict)
    comment: str = ""

    @property
    def data(self) -> Any:
        return json.loads(self.fields["data"])

    @property
    def kind(self) -> str:
        return self.fields.get("event", "message")

    @property
    def payload(self) -> str:
        return str(self.data["payload"])


def read_events(response: http.client.HTTPResponse) -> Iterator[Event]:
    """As a browser would; the first event, which has only `retry`, is left out."""
    event = Event()
    while line := response.readline():
        text = line.decode().removesuffix("\n")
        if not text:
            if "retry" not in event.fields:
                yield event
            event = Event()
        elif text.startswith(":"):
            event.comment = text[1:].strip()
        else:
            name, _, value = text.partition(": ")
            event.fields[name] = value


@contextlib.contextmanager
def tail(
    gateway: GatewayProcess, path: str, last_event_id: str | None = None
) -> Iterator[Iterator[Event]]:
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    with contextlib.closing(gateway.connection(30)) as connection:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.getheader("content-type", "").startswith("text/event-stream")
        assert response.getheader("cache-control") == "no-store"
        yield read_events(response)
        response.close()


def publish(gateway: GatewayProcess, topic: str, *payloads: bytes, **options: object) -> None:
    messages = [{"payload": to_base64(each)} for each in payloads]
    answer = gateway.ask("POST", f"{topic}/messages", {"messages": messages, **options})
    assert answer.status == 201, answer.body


def test_messages_come_as_they_are_published_and_as_a_read_shows_them(
    gateway: GatewayProcess, topic: str
) -> None:
    publish(gateway, topic, b"old")

    with tail(gateway, f"{topic}/tail") as events:
        publish(gateway, topic, b"one")
        first = next(events)
        publish(gateway, topic, b"two", b"three")
        second, third = next(events), next(events)

    ids = [each.fields["id"] for each in (first, second, third)]
    assert ids == ["0:1", "0:2", "0:3"]
    page = gateway.ask("GET", f"{topic}/messages?from=1").json
    assert [first.data, second.data, third.data] == page["messages"]


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        ("from=earliest&messages_max=3", [0, 1, 2]),
        ("from=1&messages_max=1", [1]),
        ("from=last:2&messages_max=2", [1, 2]),
        ("from=time:0&messages_max=1", [0]),
        ("from=99&moves=true&messages_max=1", [3]),
    ],
)
def test_a_tail_begins_where_it_is_told_and_ends_after_so_many(
    gateway: GatewayProcess, topic: str, query: str, offsets: list[int]
) -> None:
    publish(gateway, topic, b"a", b"b", b"c")

    with tail(gateway, f"{topic}/tail?{query}") as events:
        publish(gateway, topic, b"d")
        found = [each.data["offset"] for each in events]

    assert found == offsets


def test_a_tail_of_many_partitions_goes_on_behind_what_was_seen_of_each(
    gateway: GatewayProcess, topic: str
) -> None:
    gateway.ask("PUT", topic, {"partitions": 3})
    publish(gateway, topic, b"0a", b"0b", partition=0)
    publish(gateway, topic, b"2a", partition=2)

    with tail(gateway, f"{topic}/tail?from=0") as events:
        seen = [next(events) for _ in range(2)]
    with tail(gateway, f"{topic}/tail?from=0", seen[-1].fields["id"]) as events:
        publish(gateway, topic, b"1a", partition=1)
        seen += [next(events) for _ in range(2)]

    assert sorted(each.payload for each in seen) == sorted(
        map(to_base64, (b"0a", b"0b", b"1a", b"2a"))
    )
    last = dict(pair.split(":") for pair in seen[-1].fields["id"].split(","))
    assert last == {"0": "1", "1": "0", "2": "0"}


def test_a_tail_of_some_partitions_shows_no_others(gateway: GatewayProcess, topic: str) -> None:
    gateway.ask("PUT", topic, {"partitions": 3})
    for partition in range(3):
        publish(gateway, topic, b"x", partition=partition)

    with tail(gateway, f"{topic}/tail?from=0&partitions=2,0&messages_max=2") as events:
        found = sorted(each.data["partition"] for each in events)

    assert found == [0, 2]


def test_a_tail_goes_on_after_its_gateway_was_killed(
    server: ServerProcess, gateway: GatewayProcess, topic: str
) -> None:
    payloads = [b"%d" % number for number in range(300)]
    publish(gateway, topic, payloads[0])

    def publish_rest() -> None:
        for each in payloads[1:]:
            publish(gateway, topic, each)

    rest = threading.Thread(target=publish_rest)
    seen: list[Event] = []
    with (
        running_gateway(server.address) as first,
        tail(first, f"{topic}/tail?from=earliest") as events,
    ):
        rest.start()
        with contextlib.suppress(OSError, http.client.HTTPException):
            for event in events:
                seen.append(event)
                if len(seen) == 40:
                    first.process.kill()
                    first.process.wait(30)
    killed_after = len(seen)
    with running_gateway(server.address) as second:
        path = f"{topic}/tail?messages_max={300 - killed_after}"
        with tail(second, path, seen[-1].fields["id"]) as events:
            seen += events
    rest.join()

    assert 40 <= killed_after < 300
    assert [each.payload for each in seen] == [to_base64(each) for each in payloads]


def test_a_quiet_tail_has_heartbeats(gateway: GatewayProcess, topic: str) -> None:
    gateway.ask("PUT", topic, {})
    gateway.ask("PUT", f"{topic}-many", {"partitions": 4})

    for path in (topic, f"{topic}-many"):
        begun = time.monotonic()
        with tail(gateway, f"{path}/tail?heartbeat_ms=200") as events:
            beats = [next(events).comment for _ in range(3)]

        assert beats == ["heartbeat"] * 3
        assert 0.5 < time.monotonic() - begun < 10


def test_the_end_of_a_closed_topic_is_told_and_then_nothing_follows(
    gateway: GatewayProcess, topic: str
) -> None:
    publish(gateway, topic, b"a", b"b", close=True)

    with tail(gateway, f"{topic}/tail?from=earliest") as events:
        first, second, end = events
    again = gateway.ask("GET", f"{topic}/tail", headers={"Last-Event-ID": "0:1"})
    rest = gateway.ask("GET", f"{topic}/tail", headers={"Last-Event-ID": "0:0"})

    assert [first.payload, second.payload] == [to_base64(b"a"), to_base64(b"b")]
    assert (end.kind, end.data) == ("closed", {})
    assert (again.status, again.body) == (204, b"")
    assert rest.body.count(b"\nid: ") == 1


def test_what_was_deleted_meanwhile_is_told(gateway: GatewayProcess, topic: str) -> None:
    publish(gateway, topic, *(b"%d" % number for number in range(6)))
    gateway.ask("POST", f"{topic}/trim", {"to": 4})

    with tail(gateway, f"{topic}/tail?messages_max=1", "0:0") as events:
        missed, message = events

    assert (missed.kind, missed.data) == ("missed", {"partition": 0, "missed": 3})
    assert message.fields["id"] == "0:4"


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_topic_that_is_deleted_ends_its_tails_with_a_problem(
    gateway: GatewayProcess, topic: str, partitions: int
) -> None:
    gateway.ask("PUT", topic, {"partitions": partitions})

    with tail(gateway, f"{topic}/tail?heartbeat_ms=300") as events:
        assert gateway.ask("DELETE", topic).status == 204
        *_, last = events

    assert (last.kind, last.data["code"]) == ("problem", "NOT_FOUND")


@pytest.mark.parametrize(
    ("query", "last_event_id", "status", "detail"),
    [
        ("from=9", "", 416, "offset is 9"),
        ("from=never", "", 400, "query: from: "),
        ("from=last:", "", 400, "query: from: "),
        ("from=group:g", "", 400, "query: from: "),
        ("partitions=0,0", "", 400, "query: partitions: one is named twice"),
        ("partitions=1", "", 400, "query: partitions: the topic has 1"),
        ("partitions=x", "", 400, "query: partitions: "),
        ("heartbeat_ms=99", "", 400, "query: heartbeat_ms: "),
        ("heartbeat_ms=300001", "", 400, "query: heartbeat_ms: "),
        ("messages_max=0", "", 400, "query: messages_max: "),
        ("", "x", 400, "last-event-id: b'x' is not"),
        ("", "0:1:2", 400, "last-event-id: "),
        ("", "256:0", 400, "last-event-id: "),
        ("", "0:-2", 400, "last-event-id: "),
        ("", f"0:{1 << 63}", 400, "last-event-id: "),
    ],
)
def test_a_wrong_tail_is_refused(
    gateway: GatewayProcess, topic: str, query: str, last_event_id: str, status: int, detail: str
) -> None:
    gateway.ask("PUT", topic, {})
    headers = {"Last-Event-ID": last_event_id} if last_event_id else None

    refused = gateway.ask("GET", f"{topic}/tail?{query}", headers=headers)

    assert refused.status == status
    assert refused.json["detail"].startswith(detail)


def test_the_head_of_a_tail_is_answered_at_once(gateway: GatewayProcess, topic: str) -> None:
    gateway.ask("PUT", topic, {})

    answer = gateway.ask("HEAD", f"{topic}/tail")

    assert (answer.status, answer.body) == (200, b"")


def test_a_gateway_that_stops_ends_its_tails(server: ServerProcess, topic: str) -> None:
    with running_gateway(server.address) as gateway:
        gateway.ask("PUT", topic, {})
        with tail(gateway, f"{topic}/tail") as events:
            begun = time.monotonic()
            assert gateway.stop() == 0
            assert list(events) == []

    assert time.monotonic() - begun < 5
