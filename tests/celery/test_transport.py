"""What kombu's producers and consumers see, without workers."""

import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kombu import Connection, Exchange, Queue
from kombu.exceptions import ChannelError

import queueber
from queueber.testing import ServerProcess


@pytest.fixture
def connection(server: ServerProcess) -> Iterator[Any]:
    with Connection(
        f"queueber://{server.address}", transport_options={"visibility_timeout": 1}
    ) as opened:
        yield opened


@pytest.fixture
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as opened:
        yield opened


def queue_of(name: str) -> Any:
    return Queue(name, Exchange(name), routing_key=name)


def publish(connection: Any, queue: Any, *bodies: Any, **options: Any) -> None:
    producer = connection.Producer()
    for body in bodies:
        producer.publish(
            body, exchange=queue.exchange, routing_key=queue.routing_key, declare=[queue], **options
        )


def drain(connection: Any, seconds: float = 1.0) -> None:
    """Deliver what comes, until nothing has come for a while."""
    try:
        while True:
            connection.drain_events(timeout=seconds)
    except TimeoutError:
        pass


class Received(list[Any]):
    """A consumer's messages."""

    def __call__(self, body: Any, message: Any) -> None:
        self.append(message)

    @property
    def bodies(self) -> list[Any]:
        return [message.payload for message in self]


def consumer(channel: Any, queue: Any, received: Received, **options: Any) -> Any:
    prefetch = options.pop("prefetch", 0)
    made = channel.Consumer(queue, callbacks=[received], **options)
    made.qos(prefetch_count=prefetch)
    made.consume()
    return made


def test_acknowledged_message_is_gone(connection: Any, client: queueber.Client) -> None:
    queue = queue_of("acks")
    publish(connection, queue, {"n": 1}, "text", b"\x00\xff")
    publish(connection, queue, ["x"] * 1000, compression="gzip")
    received = Received()
    consumer(connection.default_channel, queue, received)

    drain(connection)
    assert received.bodies == [{"n": 1}, "text", b"\x00\xff", ["x"] * 1000]
    assert client.queue("acks").stats().leased == 4
    for message in received:
        message.ack()

    stats = client.queue("acks").stats()
    assert (stats.ready, stats.leased, stats.dead) == (0, 0, 0)


def test_requeued_message_comes_again_and_rejected_one_does_not(connection: Any) -> None:
    queue = queue_of("rejects")
    publish(connection, queue, "again", "away")
    received = Received()
    consumer(connection.default_channel, queue, received)
    drain(connection)
    again, away = received
    away.reject()
    again.requeue()

    drain(connection)

    assert received.bodies == ["again", "away", "again"]


def test_prefetch_count_is_kept_over_several_queues(
    connection: Any, client: queueber.Client
) -> None:
    queues = [queue_of("many-1"), queue_of("many-2")]
    for queue in queues:
        publish(connection, queue, *range(10))
    received = Received()
    consumer(connection.default_channel, queues, received, prefetch=3)

    drain(connection)
    assert len(received) == 3
    assert sum(client.queue(each.name).stats().leased for each in queues) == 3

    for message in list(received):
        message.ack()
    drain(connection)
    assert len(received) == 6
    for message in received[3:]:
        message.ack()
    while len(received) < 20:
        connection.drain_events(timeout=5)
        received[-1].ack()


def test_message_that_is_held_is_not_delivered_again(
    connection: Any, server: ServerProcess, client: queueber.Client
) -> None:
    """Its lease lasts a second, and is extended."""
    queue = queue_of("held")
    publish(connection, queue, "one")
    received = Received()
    consumer(connection.default_channel, queue, received, prefetch=1)  # it asks for no more
    drain(connection)

    assert not client.queue("held").poll(wait=2.5)

    received[0].ack()
    assert received.bodies == ["one"]


def test_closing_a_connection_gives_messages_back(
    server: ServerProcess, client: queueber.Client
) -> None:
    queue = queue_of("closed")
    with Connection(f"queueber://{server.address}") as connection:
        publish(connection, queue, "one", "two")
        consumer(connection.default_channel, queue, received := Received())
        drain(connection)
        assert len(received) == 2

    lease = client.queue("closed").poll(10)
    assert [item.attempt for item in lease] == [1, 1]


def test_cancelled_consumer_gives_back_what_it_did_not_read(
    connection: Any, client: queueber.Client
) -> None:
    queue = queue_of("cancelled")
    publish(connection, queue, "one", "two")
    cancelled = consumer(connection.default_channel, queue, Received())
    while client.queue("cancelled").stats().leased < 2:
        time.sleep(0.01)

    cancelled.cancel()

    first = client.queue("cancelled").poll(wait=5)  # a call under way may bring them back later
    second = client.queue("cancelled").poll(wait=5)
    assert len(first) + len(second) == 2


def test_higher_priorities_come_first(connection: Any) -> None:
    queue = queue_of("priorities")
    for priority in (0, 4, 9):
        publish(connection, queue, priority, priority=priority)

    found = [queue(connection.default_channel).get(no_ack=True).payload for _ in range(3)]

    assert found == [9, 4, 0]
    assert queue(connection.default_channel).get() is None


def test_eta_is_a_delay_of_the_server(connection: Any, client: queueber.Client) -> None:
    queue = queue_of("eta")
    soon = datetime.now(UTC) + timedelta(seconds=1)
    publish(connection, queue, "later", headers={"eta": soon.isoformat()})
    publish(connection, queue, "past", headers={"eta": "2020-01-01T00:00:00+00:00"})
    publish(connection, queue, "local", headers={"eta": "2090-01-01T00:00:00"})

    stats = client.queue("eta").stats()
    assert (stats.ready, stats.delayed) == (2, 1)
    item = client.queue("eta").peek("delayed").items[0]
    assert b"later" in item.contents
    lease = client.queue("eta").poll(2)
    lease.remove()
    assert client.queue("eta").poll(wait=5)
    assert datetime.now(UTC) >= soon


def test_declare_purge_and_delete(connection: Any, client: queueber.Client) -> None:
    queue = queue_of("declared")(connection.default_channel)
    with pytest.raises(ChannelError, match="declared"):
        queue.queue_declare(passive=True)
    queue.declare()
    publish(connection, queue_of("declared"), "one", "two")
    publish(connection, queue_of("declared"), "x", headers={"eta": "2090-01-01T00:00:00+00:00"})
    assert queue.queue_declare(passive=True).message_count == 2

    assert queue.purge() == 3
    assert queue.queue_declare(passive=True).message_count == 0
    queue.delete()

    assert "declared" not in [each.name for each in client.queues()]


def test_exchanges_route_by_key(connection: Any) -> None:
    exchange = Exchange("animals", "topic")
    queues = {key: Queue(f"animals-{key[0]}", exchange, key) for key in ("cat.*", "dog.#")}
    producer = connection.Producer()
    for key in ("cat.small", "dog.large.old", "cat.large.old"):
        producer.publish(key, exchange=exchange, routing_key=key, declare=list(queues.values()))

    found = {
        key: queue(connection.default_channel).get(no_ack=True).payload
        for key, queue in queues.items()
    }

    assert found == {"cat.*": "cat.small", "dog.#": "dog.large.old"}
    assert queues["cat.*"](connection.default_channel).get() is None


def test_fanout_reaches_all_who_are_bound_and_leaves_no_queues(
    connection: Any, server: ServerProcess, client: queueber.Client
) -> None:
    exchange = Exchange("news", "fanout")
    publish(connection, Queue("x", exchange), "before anybody listens")
    received = [Received(), Received()]
    for number, each in enumerate(received):
        queue = Queue(f"news@{number}", exchange, auto_delete=True, durable=False)
        consumer(connection.default_channel, queue, each, no_ack=True)

    with Connection(f"queueber://{server.address}") as other:
        other.Producer().publish("extra", exchange=exchange, declare=[exchange])
    drain(connection)

    assert [each.bodies for each in received] == [["extra"], ["extra"]]
    assert not [each.name for each in client.queues() if each.name.startswith("news")]


def test_item_that_is_no_message_is_failed_and_others_go_on(
    connection: Any, client: queueber.Client
) -> None:
    client.create_queue("foreign", attempts_max=1)
    client.queue("foreign").add(b"not from kombu", priority=9)
    queue = queue_of("foreign")
    publish(connection, queue, "a message")
    received = Received()
    consumer(connection.default_channel, queue, received)

    drain(connection)

    assert received.bodies == ["a message"]
    [dead] = client.queue("foreign").peek("dead").items
    assert "not a message of kombu" in dead.last_error


def test_prefix_keeps_projects_apart(server: ServerProcess, client: queueber.Client) -> None:
    options = {"queue_name_prefix": "shop-"}
    with Connection(f"queueber://{server.address}", transport_options=options) as connection:
        publish(connection, queue_of("orders"), "one")

    assert client.queue("shop-orders").stats().ready == 1


def test_peek_shows_which_task_an_item_is(connection: Any, client: queueber.Client) -> None:
    publish(connection, queue_of("shown"), "x", headers={"task": "shop.pay", "id": "17"})

    [item] = client.queue("shown").peek("ready").items

    assert dict(item.attributes) == {"task": "shop.pay", "task_id": "17"}


def test_address_where_nobody_listens_is_a_connection_error(server: ServerProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = {"connect_timeout": 0.5}
    connection = Connection(f"queueber://127.0.0.1:{port}", transport_options=options)

    with pytest.raises(connection.connection_errors):
        connection.connect()
