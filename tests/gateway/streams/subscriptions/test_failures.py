"""Several gateways, gateways that are killed, and servers that restart: no wake is lost."""

import contextlib
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from tests.gateway.streams.subscriptions.conftest import Subscriber, eventually, tails
from tests.support.http import GatewayProcess, running_gateway
from tests.support.webhooks import running_receiver

pytestmark = pytest.mark.recovery


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


@contextlib.contextmanager
def subscriber_at(gateway: GatewayProcess, server: ServerProcess) -> Iterator[Subscriber]:
    with queueber.connect(server.address) as client:
        made = Subscriber(gateway, client, 0)
        client.create_topic(made.wake_stream, content_type="application/json")
        yield made


@contextlib.contextmanager
def deaf_listener() -> Iterator[tuple[socket.socket, str]]:
    """A socket on which connections wait: a webhook is sent, and nobody reads it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening, f"http://127.0.0.1:{listening.getsockname()[1]}/hook"


def wake_of(subscriber: Subscriber) -> dict[str, int]:
    """The wake as the record has it, and its generation."""
    page = subscriber.client.topic(f"__ds/subscriptions/{subscriber.id}").read(last=1)
    if not page.payloads:
        return {"generation": 0}  # the record is being replaced
    record = json.loads(page.payloads[-1])
    return {**record.get("wake", {}), "generation": record.get("generation", 0)}


def is_acknowledged(subscriber: Subscriber, offset: int) -> bool:
    return {at[17:] for _, at in subscriber.links().values()} == {f"{offset:016d}"}


@pytest.mark.parametrize("has_another", [True, False])
def test_a_wake_of_a_gateway_that_is_killed_is_sent_by_another(
    server: ServerProcess, has_another: bool
) -> None:
    """The gateway has won the wake, and its webhook has not arrived."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(running_gateway(server.address))
        if has_another:
            second = stack.enter_context(running_gateway(server.address))
        subscriber = stack.enter_context(subscriber_at(first, server))
        with deaf_listener() as (_, url):
            port = int(url.rsplit(":", 1)[1].partition("/")[0])
            assert subscriber.create(url=url, lease_ttl_ms=2000).status == 201
            subscriber.put_stream("a", [1, 2])
            won = eventually(lambda: wake_of(subscriber), lambda each: each["generation"] == 1)
            first.process.kill()
            first.process.wait()

        done = running_receiver(lambda got: (200, {"done": True}), port=port)
        receiver = stack.enter_context(done)
        if not has_another:
            second = stack.enter_context(running_gateway(server.address))
        subscriber.gateway = second
        woken = receiver.next().json

        assert woken["generation"] > won["generation"]
        assert woken["streams"][0]["tail_offset"].endswith("_" + "2".zfill(16))
        eventually(lambda: is_acknowledged(subscriber, 2), bool)


def test_an_append_that_no_gateway_has_seen_wakes_when_one_runs_again(
    server: ServerProcess,
) -> None:
    with running_receiver(lambda got: (200, {"done": True})) as receiver:
        with running_gateway(server.address) as gateway, subscriber_at(gateway, server) as before:
            assert before.create(url=receiver.url).status == 201
            path = before.put_stream("a")
            gateway.process.kill()
            gateway.process.wait()
            before.append(path, 3)
        with running_gateway(server.address) as gateway, queueber.connect(server.address) as client:
            after = Subscriber(gateway, client, 0)

            assert receiver.next().json["generation"] == 1
            eventually(lambda: is_acknowledged(after, 3), bool)


def test_two_gateways_serve_one_subscription(server: ServerProcess) -> None:
    """Claims, acks and releases go to either of them, and one of many workers wins each time."""
    with (
        running_gateway(server.address) as one,
        running_gateway(server.address) as other,
        subscriber_at(one, server) as first,
        queueber.connect(server.address) as client,
    ):
        second = Subscriber(other, client, 0)
        assert [first.create().status, second.create().status] == [201, 200]
        path = first.put_stream("a", [1])
        for number in range(2, 6):
            eventually(lambda: len(second.events()), (number - 1).__eq__)
            with ThreadPoolExecutor(6) as pool:
                asked = [(first, "a"), (second, "b")] * 3
                claims = list(pool.map(lambda each: each[0].claim(each[1]), asked))
            won = [each.json for each in claims if each.status == 200]
            assert len(won) == 1
            assert second.ack(won[0]).status == first.ack(won[0]).status == 200
            first.append(path)
            ack = {"stream": path, "offset": f"{0:016d}_{number - 1:016d}"}
            done = second.ack(won[0], [ack], done=True)
            assert done.json == {"ok": True, "next_wake": True}

        generations = [each["generation"] for each in first.events()]
        assert generations == [1, 2, 3, 4, 5]
        last = first.claim().json
        assert second.release(last).status == 204


def test_two_gateways_send_a_webhook_once(server: ServerProcess) -> None:
    with (
        running_receiver(lambda got: (200, {"done": True})) as receiver,
        running_gateway(server.address) as one,
        running_gateway(server.address) as other,
        subscriber_at(one, server) as first,
        queueber.connect(server.address) as client,
    ):
        second = Subscriber(other, client, 0)
        first.create(url=receiver.url, lease_ttl_ms=30_000)
        path = first.put_stream("a", [1])
        for number in range(1, 6):
            assert receiver.next().json["generation"] == number
            eventually(partial(is_acknowledged, first, number), bool)
            (second if number % 2 else first).append(path)

        assert receiver.next().json["generation"] == 6
        assert receiver.is_quiet(4)  # both have looked at it since


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_server_that_restarts_loses_no_subscription(
    server: ServerProcess, is_killed: bool
) -> None:
    with (
        running_receiver(lambda got: (503, {})) as receiver,
        running_gateway(server.address) as gateway,
        subscriber_at(gateway, server) as subscriber,
    ):
        subscriber.create(url=receiver.url)
        subscriber.put_stream("a", [1])
        before = receiver.next().json
        shown = subscriber.ask("GET").json
        if is_killed:
            server.kill()
        else:
            server.stop()
        receiver.answering = lambda got: (200, {"done": True})
        server.start()

        woken = receiver.next().json

        assert woken["generation"] >= before["generation"]
        eventually(lambda: subscriber.ask("GET").status, lambda status: status == 200)
        eventually(lambda: is_acknowledged(subscriber, 1), bool)
        after = subscriber.ask("GET").json
        assert {**after, "streams": [], "status": ""} == {**shown, "streams": [], "status": ""}


def test_a_claim_outlives_the_server_and_the_gateway(server: ServerProcess) -> None:
    with (
        running_gateway(server.address) as gateway,
        subscriber_at(gateway, server) as subscriber,
    ):
        subscriber.create(lease_ttl_ms=30_000)
        subscriber.put_stream("a", [1])
        claimed = subscriber.claim_soon("one")
        gateway.process.kill()
        gateway.process.wait()
        server.kill()
        server.start()
        with running_gateway(server.address) as later, queueber.connect(server.address) as client:
            again = Subscriber(later, client, 0)

            assert again.claim("two").json["error"]["current_holder"] == "one"
            acked = again.ack(claimed, tails(claimed), done=True)

            assert acked.json == {"ok": True, "next_wake": False}
