"""Workers that take the messages of a topic as a shared group."""

import threading
from collections.abc import Iterator

import pytest

import queueber
from queueber import InvalidArgument, Worker
from queueber.testing import ServerProcess, running_server
from queueber.worker.pool.source import WorkMessage


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


def test_a_handler_gets_every_message_with_its_place(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        client.create_topic("orders", partitions=2)
        topic = client.topic("orders")
        for n in range(30):
            topic.publish(queueber.NewMessage(b"%d" % n, f"key {n}", {"n": str(n)}))
        stored = {
            (partition, m.offset): (m.payload, m.key, dict(m.attributes))
            for partition in (0, 1)
            for m in topic.messages(partition)
        }
        seen: dict[tuple[int, int], object] = {}

        def handle(item: queueber.WorkItem) -> None:
            assert isinstance(item, WorkMessage)
            place = (item.partition, item.offset)
            seen[place] = (item.payload, item.key, dict(item.attributes))

        worker = Worker(
            server.address, topic="orders", group="mail", handler=handle, progress=False
        )
        stats = worker.run(until="empty")

        assert (stats.done, stats.failed, seen) == (30, 0, stored)
        assert topic.describe_group("mail").lag == 0


def test_a_message_whose_handler_fails_comes_back(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        client.topic("failing").publish([b"bad", b"good"])
        attempts: list[tuple[bytes, int]] = []
        lock = threading.Lock()

        def handle(item: queueber.WorkItem) -> bytes:
            with lock:
                attempts.append((item.contents, item.attempt))
            if item.contents == b"bad" and item.attempt == 1:
                raise queueber.Retry("once more", delay=0)
            return b"a result is not kept"

        worker = Worker(
            server.address, topic="failing", group="mail", handler=handle, progress=False
        )
        worker.run(until="empty")

        assert sorted(attempts) == [(b"bad", 1), (b"bad", 2), (b"good", 1)]
        assert client.topic("failing").describe_group("mail").lag == 0


def test_a_group_that_exists_keeps_its_settings(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        topic = client.topic("settings")
        topic.publish([b"old", b"new"])
        topic.create_group("mail", kind="shared", attempts_max=3, start=1)
        seen: list[bytes] = []

        Worker(
            server.address,
            topic="settings",
            group="mail",
            handler=lambda item: seen.append(item.contents),
            progress=False,
        ).run(until="empty")

        assert seen == [b"new"]
        assert topic.describe_group("mail").settings.leases.attempts_max == 3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"topic": "t"}, "group: it is empty"),
        ({"group": "g"}, "group: it is that of a topic; give topic=, too"),
        ({"topic": "t", "group": "g", "queue": "q"}, "topic: a queue was given, too"),
        ({"topic": "a b", "group": "g"}, "topic: 'a b' is not the name of a topic"),
    ],
)
def test_wrong_arguments_are_refused_with_a_reason(given: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Worker(handler=print, **given)  # type: ignore[arg-type]

    assert told in str(refused.value)
