"""`/live` over HTTP: what a page is told, and what ends it."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from tests.support.http import GatewayProcess, running_gateway

_numbers = count()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address, name="tests") as connected:
        yield connected


@pytest.fixture
def queue(client: queueber.Client) -> queueber.Queue:
    return client.queue(f"live-{next(_numbers)}")


class Events:
    """The events of one stream."""

    def __init__(self, response: Any) -> None:
        self.status = response.status
        self.headers = response.headers
        self._response = response

    def next(self, name: str) -> Any:
        """The data of the next event of that name."""
        event = ""
        while line := self._response.readline().decode():
            field, _, text = line.rstrip("\n").partition(": ")
            if field == "event":
                event = text
            elif field == "data" and event == name:
                return json.loads(text)
        raise EOFError(name)

    def until(self, name: str, field: str, wanted: object) -> dict[str, Any]:
        """What is known of the values once a field of one has reached what is wanted."""
        known: dict[str, Any] = {}
        for _ in range(20):
            known |= dict(self.next(name)["rows"])
            if any(isinstance(v, dict) and v.get(field) == wanted for v in known.values()):
                return known
        raise AssertionError(known)


@contextlib.contextmanager
def watching(gateway: GatewayProcess, query: str) -> Iterator[Events]:
    with contextlib.closing(gateway.connection(20)) as connection:
        connection.request("GET", f"/live?{query}")
        yield Events(connection.getresponse())


def rows_of(change: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row[0]: dict(zip(change["fields"], row, strict=True)) for row in change["rows"]}


def test_the_overview_has_all_queues_first_and_then_those_that_changed(
    gateway: GatewayProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 5)
    queue.poll(2)
    with watching(gateway, "view=overview") as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        assert events.headers["cache-control"] == "no-store"
        first = events.next("queues")
        assert first["all"]
        assert {"default", queue.name} <= set(rows_of(first))
        found = rows_of(first)[queue.name]
        assert (found["ready"], found["leased"], found["dead"]) == (3, 2, 0)

        queue.add([b"y"] * 7)
        change = events.next("queues")
        while queue.name not in rows_of(change) or rows_of(change)[queue.name]["ready"] < 10:
            change = events.next("queues")
        assert not change["all"]
        assert rows_of(change)[queue.name]["added_per_s"] > 0


def test_topics_are_shown_page_by_page_with_the_lag_of_their_groups(
    gateway: GatewayProcess, client: queueber.Client
) -> None:
    for number in range(3):
        topic = client.topic(f"shown/{number}")
        topic.create_group("readers")
        topic.publish([b"message"] * (number + 1))

    with watching(gateway, "topics_prefix=shown/") as events:
        found = rows_of(events.next("topics"))
        assert [(name, row["messages"], row["lag"]) for name, row in found.items()] == [
            ("shown/0", 1, 1),
            ("shown/1", 2, 2),
            ("shown/2", 3, 3),
        ]
    with watching(gateway, "topics_prefix=shown/&topics_after=shown/1") as events:
        assert list(rows_of(events.next("topics"))) == ["shown/2"]


def test_a_queue_is_shown_with_its_leases_and_batches(
    gateway: GatewayProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 3, batch="b")
    lease = queue.poll(2, lease=60)
    with watching(gateway, f"view=queue&queue={queue.name}") as events:
        known = events.until("queue", "ready", 1)
        (held,) = known["leases"]["leases"]
        assert (held["lease"], held["items"]) == (lease.id.hex(), 2)
        assert held["holder"].startswith("tests (127.0.0.1:")
        (batch,) = known["batches"]["batches"]
        assert (batch["batch"], batch["added"], batch["live"]) == ("b", 3, 3)

        lease.remove()
        known = events.until("queue", "leased", 0)
        assert known["leases"] == {"leases": [], "more": False}


def test_a_topic_is_shown_with_its_partitions_and_groups(
    gateway: GatewayProcess, client: queueber.Client
) -> None:
    client.create_topic("whole", partitions=2)
    topic = client.topic("whole")
    topic.create_group("readers", kind="shared")
    topic.publish([(b"m", str(n)) for n in range(10)])
    topic.pause("readers")
    with watching(gateway, "view=topic&topic=whole") as events:
        known = events.until("topic", "messages", 10)
        assert len(known["topic"]["partitions"]) == 2
        (group,) = known["groups"]["groups"]
        assert (group["name"], group["kind"], group["lag"]) == ("readers", "shared", 10)
        assert group["paused_until_ms"] > 0


def test_what_is_missing_is_told_on_the_stream(gateway: GatewayProcess) -> None:
    with watching(gateway, "view=queue&queue=missing") as events:
        told = events.next("problem")
        assert (told["subject"], told["problem"]["code"]) == ("queue", "NOT_FOUND")


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("view=queue", "query: queue: name the queue"),
        ("view=topic", "query: topic: name the topic"),
        ("view=other", "query: view: Invalid enum value 'other'"),
        ("nonsense=1", "query: Object contains unknown field `nonsense`"),
    ],
)
def test_a_wrong_question_is_refused(gateway: GatewayProcess, query: str, detail: str) -> None:
    answer = gateway.ask("GET", f"/live?{query}")

    assert (answer.status, answer.code) == (400, "INVALID_ARGUMENT")
    assert answer.json["detail"] == detail


def test_the_server_is_asked_only_while_somebody_looks(
    gateway: GatewayProcess, client: queueber.Client
) -> None:
    def listed() -> float:
        (family,) = [f for f in client.metrics() if f.name == "queueber_calls_total"]
        return sum(s.value for s in family.samples if s.label_values[0] == "Service.listQueues")

    with watching(gateway, "view=overview") as one, watching(gateway, "view=overview") as two:
        one.next("queues")
        two.next("queues")
    time.sleep(1.2)
    before = listed()
    time.sleep(2.2)

    assert listed() == before > 0


def test_a_server_that_goes_away_is_told(tmp_path: Any) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    options = ("--listen", address, "--data-dir", str(tmp_path / "data"))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running_server(*options))
        gateway = stack.enter_context(running_gateway(server.address))
        with watching(gateway, "view=overview") as events:
            assert events.next("queues")["all"]
            assert server.process is not None
            server.process.kill()
            server.process.wait(10)
            assert events.next("problem")["problem"]["code"] == "UNAVAILABLE"


def test_a_gateway_that_stops_ends_its_streams(server: ServerProcess) -> None:
    with running_gateway(server.address) as gateway, watching(gateway, "view=overview") as events:
        events.next("queues")
        begun = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - begun < 5


def test_sparklines_of_a_page_come_in_one_answer(
    gateway: GatewayProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")

    answer = gateway.ask("POST", "/live/histories", {"queues": [queue.name, "default"]})

    assert answer.status == 200
    assert set(answer.json["queues"]) == {queue.name, "default"}
    assert answer.json["topics"] == {}
    many = gateway.ask("POST", "/live/histories", {"queues": ["q"] * 101})
    assert (many.status, many.code) == (400, "INVALID_ARGUMENT")


def test_the_history_of_a_queue_and_of_a_topic(
    gateway: GatewayProcess, queue: queueber.Queue, client: queueber.Client
) -> None:
    queue.add(b"x")
    client.topic("whole-history").publish(b"x")

    for path in (f"/v1/queues/{queue.name}/history", "/v1/topics/whole-history/history"):
        answer = gateway.ask("GET", f"{path}?span=day&points=3")
        assert answer.status == 200
        assert set(answer.json) == {"end_ms", "step_ms", "series"}
        assert gateway.ask("GET", f"{path}?span=year").status == 400
