"""Webhooks: what is sent and signed, answers, callbacks, retries."""

import base64
import time
from typing import Any

import jwt
import pytest
from cryptography.exceptions import InvalidSignature

from queueber.gateway.streams.subscriptions.webhooks.sender import backoff_ms
from tests.gateway.streams.subscriptions.conftest import Subscriber, code_of, eventually, tails
from tests.support.http import GatewayProcess
from tests.support.webhooks import Received, running_receiver


def is_signed(gateway: GatewayProcess, got: Received, body: bytes) -> bool:
    """As a receiver checks it, with another library."""
    parts = dict(each.split("=", 1) for each in got.headers["webhook-signature"].split(","))
    keys = gateway.ask("GET", "/v1/stream/__ds/jwks.json").json["keys"]
    (key,) = [jwt.PyJWK(each) for each in keys if each["kid"] == parts["kid"]]
    assert abs(int(parts["t"]) - time.time()) < 60
    signature = base64.urlsafe_b64decode(parts["ed25519"] + "==")
    try:
        key.key.verify(signature, parts["t"].encode() + b"." + body)
    except InvalidSignature:
        return False
    return True


def acked(subscriber: Subscriber, woken: Any) -> bool:
    """Whether all that a webhook was about is acknowledged."""
    told = {each["path"]: each["tail_offset"] for each in woken["streams"]}
    return {path: at for path, (_, at) in subscriber.links().items()} == told


def test_a_webhook_says_what_is_pending_and_is_signed(subscriber: Subscriber) -> None:
    with running_receiver(lambda got: (200, {"done": True})) as receiver:
        assert subscriber.create(url=receiver.url + "?a=b").status == 201
        path = subscriber.put_stream("a", [1, 2])
        got = receiver.next()

        woken = got.json
        (told,) = woken["streams"]
        assert got.path == "/hook?a=b"
        assert got.headers["content-type"] == "application/json"
        assert got.headers["host"] == f"127.0.0.1:{receiver.port}"
        assert {**woken, "wake_id": "", "callback_token": "", "streams": []} == {
            "subscription_id": subscriber.id, "wake_id": "", "generation": 1, "streams": [],
            "callback_token": "",
            "callback_url": f"http://{subscriber.gateway.address}"
            f"/v1/stream/__ds/subscriptions/{subscriber.id}/callback",
        }  # fmt: skip
        assert (told["path"], told["link_type"], told["has_pending"]) == (path, "glob", True)
        assert (told["acked_offset"][17:], told["tail_offset"][17:]) == ("0" * 16, "2".zfill(16))
        assert is_signed(subscriber.gateway, got, got.body)
        assert not is_signed(subscriber.gateway, got, got.body + b" ")
        eventually(lambda: acked(subscriber, woken), bool)
        assert receiver.is_quiet(1.5)


def test_what_comes_after_the_snapshot_wakes_again(subscriber: Subscriber) -> None:
    path = f"{subscriber.root}/a"

    def append_and_be_done(got: Received) -> tuple[int, object]:
        if got.json["generation"] == 1:
            subscriber.append(path)
        return 200, {"done": True}

    with running_receiver(append_and_be_done) as receiver:
        subscriber.create(url=receiver.url)
        subscriber.put_stream("a", [1])
        first, second = receiver.next().json, receiver.next().json

        assert (first["generation"], second["generation"]) == (1, 2)
        assert first["wake_id"] != second["wake_id"]
        assert second["streams"][0]["acked_offset"] == first["streams"][0]["tail_offset"]
        eventually(lambda: acked(subscriber, second), bool)


def test_a_callback_acknowledges_and_is_fenced_afterwards(subscriber: Subscriber) -> None:
    with running_receiver() as receiver:
        subscriber.create(url=receiver.url)
        subscriber.put_stream("a", [1])
        woken = receiver.next().json

        called = subscriber.callback(woken, tails(woken), done=True)

        assert (called.status, called.json) == (200, {"ok": True, "next_wake": False})
        assert acked(subscriber, woken)
        assert code_of(subscriber.callback(woken, tails(woken), done=True)) == (409, "FENCED")
        assert receiver.is_quiet(1.5)


def test_callbacks_extend_the_lease_and_its_end_wakes_again(subscriber: Subscriber) -> None:
    with running_receiver() as receiver:
        subscriber.create(url=receiver.url)
        subscriber.put_stream("a", [1])
        woken = receiver.next().json
        for _ in range(3):
            time.sleep(0.6)
            assert subscriber.callback(woken).json == {"ok": True, "next_wake": False}
        assert receiver.received.empty()

        again = receiver.next().json

        assert again["generation"] == 2
        assert code_of(subscriber.callback(woken, tails(woken))) == (409, "FENCED")
        assert subscriber.callback(again, tails(again), done=True).status == 200


def test_a_callback_in_the_midst_of_the_webhook_counts(subscriber: Subscriber) -> None:
    def call_back(got: Received) -> tuple[int, object]:
        woken = got.json
        assert subscriber.callback(woken, tails(woken), done=True).status == 200
        return 500, {}

    with running_receiver(call_back) as receiver:
        subscriber.create(url=receiver.url)
        subscriber.put_stream("a", [1])
        woken = receiver.next().json

        eventually(lambda: acked(subscriber, woken), bool)
        assert receiver.is_quiet(1.5)
        assert subscriber.ask("GET").json["status"] == "active"


@pytest.mark.parametrize("status", [302, 400, 404, 410, 429, 500, 503])
def test_a_failed_webhook_is_sent_again_and_shown(subscriber: Subscriber, status: int) -> None:
    answers = [(status, {"done": True}), (200, {"done": True})]
    with running_receiver(lambda got: answers.pop(0)) as receiver:
        subscriber.create(url=receiver.url, lease_ttl_ms=30_000)
        subscriber.put_stream("a", [1])
        first, begun = receiver.next().json, time.monotonic()
        eventually(lambda: subscriber.ask("GET").json["status"], lambda each: each == "failed")
        second = receiver.next().json

        assert 0.7 < time.monotonic() - begun < 4
        assert (second["wake_id"], second["callback_token"]) == (
            first["wake_id"],
            first["callback_token"],
        )
        eventually(lambda: acked(subscriber, second), bool)
        assert subscriber.ask("GET").json["status"] == "active"


def test_a_retry_after_the_lease_is_a_new_wake(subscriber: Subscriber) -> None:
    answers = [(500, {}), (500, {}), (200, {"done": True})]
    with running_receiver(lambda got: answers.pop(0)) as receiver:
        subscriber.create(url=receiver.url)
        subscriber.put_stream("a", [1])
        times, generations = [], []
        for _ in range(3):
            generations.append(receiver.next().json["generation"])
            times.append(time.monotonic())

        assert generations[0] == 1
        assert generations[2] >= 2
        assert times[1] - times[0] > 0.7
        assert times[2] - times[1] > 1.5


def test_retries_wait_a_second_doubled_up_to_a_minute_give_or_take_a_fifth() -> None:
    for failures, usual in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (10_000, 60)]:
        found = [backoff_ms(failures) for _ in range(300)]
        assert usual * 800 <= min(found) < usual * 900
        assert usual * 1100 < max(found) <= usual * 1200


def test_a_receiver_that_is_away_gets_it_later(subscriber: Subscriber) -> None:
    with running_receiver() as receiver:
        url, port = receiver.url, receiver.port
    subscriber.create(url=url)
    subscriber.put_stream("a", [1])
    eventually(lambda: subscriber.ask("GET").json["status"], lambda each: each == "failed")

    with running_receiver(lambda got: (200, {"done": True}), port=port) as receiver:
        woken = receiver.next().json
        eventually(lambda: acked(subscriber, woken), bool)


def test_a_webhook_has_no_claims(subscriber: Subscriber) -> None:
    with running_receiver() as receiver:
        subscriber.create(url=receiver.url)

        assert code_of(subscriber.claim()) == (400, "INVALID_REQUEST")
