"""Workers of pull-wake subscriptions: claims, acknowledgements, leases, releases."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import queueber
from tests.gateway.streams.subscriptions.conftest import Subscriber, code_of, eventually, tails
from tests.support.http import GatewayProcess


def test_a_worker_is_told_claims_and_acknowledges(subscriber: Subscriber) -> None:
    assert subscriber.create().status == 201
    path = subscriber.make_stream("a")
    subscriber.append(path, 3)
    (event,) = eventually(subscriber.events, bool)

    claimed = subscriber.claim("one").json
    acked = subscriber.ack(claimed, tails(claimed), done=True)

    assert {**event, "ts": 0} == {
        "type": "wake", "subscription_id": subscriber.id, "stream": path, "generation": 1, "ts": 0,
    }  # fmt: skip
    assert (claimed["generation"], claimed["lease_ttl_ms"]) == (1, 1000)
    (told,) = claimed["streams"]
    assert told["path"] == path
    assert told["link_type"] == "glob"
    assert told["has_pending"] is True
    assert told["acked_offset"][:16] == told["tail_offset"][:16]
    assert (told["acked_offset"][17:], told["tail_offset"][17:]) == ("0" * 16, "3".zfill(16))
    assert (acked.status, acked.json) == (200, {"ok": True, "next_wake": False})
    assert subscriber.links() == {path: ("glob", told["tail_offset"])}
    assert code_of(subscriber.claim()) == (409, "NO_PENDING_WORK")


def pending(subscriber: Subscriber) -> str:
    """A stream with three messages that nobody has acknowledged; workers have been told."""
    assert subscriber.create().status == 201
    path = subscriber.put_stream("a", [1, 2, 3])
    eventually(subscriber.events, bool)
    return path


def test_a_second_worker_is_told_who_has_claimed(subscriber: Subscriber) -> None:
    pending(subscriber)
    subscriber.claim_soon("one")

    busy = subscriber.claim("two")

    assert code_of(busy) == (409, "ALREADY_CLAIMED")
    error = busy.json["error"]
    assert (error["current_holder"], error["generation"]) == ("one", 1)


def test_an_ack_that_is_not_done_extends_the_lease(subscriber: Subscriber) -> None:
    path = pending(subscriber)
    claimed = subscriber.claim_soon()
    origin = claimed["streams"][0]["tail_offset"][:16]

    for offset in range(1, 4):  # 1.8 seconds, of a lease of 1 second
        time.sleep(0.6)
        at = f"{origin}_{offset:016d}"
        acked = subscriber.ack(claimed, [{"stream": path, "offset": at}])
        assert (acked.status, acked.json) == (200, {"ok": True, "next_wake": False})
        assert subscriber.links() == {path: ("glob", at)}

    assert code_of(subscriber.claim("two")) == (409, "ALREADY_CLAIMED")
    assert subscriber.ack(claimed, done=True).json == {"ok": True, "next_wake": False}


def test_done_with_messages_left_begins_the_next_wake(subscriber: Subscriber) -> None:
    path = pending(subscriber)
    claimed = subscriber.claim_soon()
    subscriber.append(path)

    done = subscriber.ack(claimed, tails(claimed), done=True)

    assert done.json == {"ok": True, "next_wake": True}
    assert [each["generation"] for each in subscriber.events()] == [1, 2]
    again = subscriber.claim().json
    assert again["generation"] == 2
    assert again["streams"][0]["acked_offset"] == claimed["streams"][0]["tail_offset"]


def test_a_lease_that_ends_wakes_another_worker_and_fences_the_first(
    subscriber: Subscriber,
) -> None:
    path = pending(subscriber)
    claimed = subscriber.claim_soon("one")

    events = eventually(subscriber.events, lambda each: len(each) == 2)
    again = subscriber.claim("two").json

    assert [each["generation"] for each in events] == [1, 2]
    assert again["generation"] == 2
    for refused in (
        subscriber.ack(claimed, tails(claimed), done=True),
        subscriber.ack(claimed),
        subscriber.release(claimed),
    ):
        assert code_of(refused) == (409, "FENCED")
    assert subscriber.links()[path][1].endswith("_" + "0" * 16)
    assert subscriber.ack(again, tails(again), done=True).json == {"ok": True, "next_wake": False}


def test_an_ack_after_the_lease_is_refused_though_nobody_else_was_woken(
    subscriber: Subscriber,
) -> None:
    pending(subscriber)
    claimed = subscriber.claim_soon()
    time.sleep(1.0)

    assert code_of(subscriber.ack(claimed, tails(claimed))) == (409, "FENCED")


def test_a_release_wakes_another_worker_and_acknowledges_nothing(subscriber: Subscriber) -> None:
    path = pending(subscriber)
    claimed = subscriber.claim_soon()

    released = subscriber.release(claimed)

    assert (released.status, released.body) == (204, b"")
    assert [each["generation"] for each in subscriber.events()] == [1, 2]
    assert code_of(subscriber.release(claimed)) == (409, "FENCED")
    assert subscriber.links()[path][1].endswith("_" + "0" * 16)
    assert subscriber.claim().json["generation"] == 2


def test_a_wake_that_is_done_is_over(subscriber: Subscriber) -> None:
    pending(subscriber)
    claimed = subscriber.claim_soon()
    subscriber.ack(claimed, tails(claimed), done=True)

    assert code_of(subscriber.ack(claimed, tails(claimed), done=True)) == (409, "FENCED")
    assert code_of(subscriber.release(claimed)) == (409, "FENCED")


@pytest.mark.parametrize("wrong", ["wake_id", "generation"])
def test_another_wake_is_fenced_though_the_token_is_right(
    subscriber: Subscriber, wrong: str
) -> None:
    pending(subscriber)
    claimed = subscriber.claim_soon()
    other = {**claimed, "wake_id": "w_other"} if wrong == "wake_id" else {**claimed, wrong: 2}

    assert code_of(subscriber.ack(other)) == (409, "FENCED")
    assert code_of(subscriber.release(other)) == (409, "FENCED")


def test_a_wrong_token_is_refused(subscriber: Subscriber) -> None:
    pending(subscriber)
    claimed = subscriber.claim_soon()
    right = claimed["token"]
    _, generation, begun, signature = right.split("_", 3)
    wrong = [
        "x",
        "qbr_f10fb4d0c5a4_secret",
        right[:-1],
        right + "A",
        f"dsw_{generation}_{int(begun) + 1}_{signature}",
        f"dsw_2_{begun}_{signature}",
        right.swapcase(),
    ]

    for token in wrong:
        other = {**claimed, "token": token}
        assert code_of(subscriber.ack(other, tails(claimed), done=True)) == (401, "TOKEN_INVALID")
        assert code_of(subscriber.release(other)) == (401, "TOKEN_INVALID")
    without = subscriber.ask("POST", "/ack", {"wake_id": claimed["wake_id"], "generation": 1})
    assert code_of(without) == (401, "TOKEN_INVALID")
    assert subscriber.ack(claimed).status == 200


def test_a_token_of_another_subscription_is_refused(
    subscriber: Subscriber, gateway: GatewayProcess, client: queueber.Client
) -> None:
    pending(subscriber)
    claimed = subscriber.claim_soon()
    other = Subscriber(gateway, client, 10_000)
    other.root, other.wake_stream = subscriber.root, subscriber.wake_stream
    assert other.create().status == 201

    assert code_of(other.ack(claimed)) == (401, "TOKEN_INVALID")
    other.ask("DELETE")


@pytest.mark.parametrize(
    "offset", ["{origin}_0000000000000004", "{origin}_9999999999999999", "-1", "now", "", "x",
               "1_2", "9999999999999999_0000000000000002", "{origin}_0000000000000000"],
)  # fmt: skip
def test_an_ack_behind_or_beyond_is_refused_and_changes_nothing(
    subscriber: Subscriber, offset: str
) -> None:
    path = pending(subscriber)
    claimed = subscriber.claim_soon()
    origin = claimed["streams"][0]["tail_offset"][:16]
    at = f"{origin}_{1:016d}"
    assert subscriber.ack(claimed, [{"stream": path, "offset": at}]).status == 200

    wrong = {"stream": path, "offset": offset.format(origin=origin)}
    right = {"stream": path, "offset": f"{origin}_{2:016d}"}
    refused = subscriber.ack(claimed, [right, wrong], done=True)

    assert code_of(refused) == (409, "INVALID_OFFSET")
    assert subscriber.links() == {path: ("glob", at)}
    assert subscriber.ack(claimed, [right]).status == 200


def test_an_ack_of_a_stream_that_is_not_linked_is_refused(subscriber: Subscriber) -> None:
    pending(subscriber)
    claimed = subscriber.claim_soon()
    offset = claimed["streams"][0]["tail_offset"]

    for ack in ({"stream": "other", "offset": offset}, {"offset": offset}):
        assert code_of(subscriber.ack(claimed, [ack])) == (409, "INVALID_OFFSET")


def test_an_offset_without_an_origin_and_a_path_are_understood(subscriber: Subscriber) -> None:
    path = pending(subscriber)
    claimed = subscriber.claim_soon()

    acked = subscriber.ack(
        claimed, [{"path": f"/{path}", "offset": f"{0:016d}_{3:016d}"}], done=True
    )

    assert acked.json == {"ok": True, "next_wake": False}
    assert subscriber.links() == {path: ("glob", claimed["streams"][0]["tail_offset"])}


@pytest.mark.parametrize("body", [{}, {"worker": ""}, {"worker": 7}, {"worker": "x" * 256},
                                  {"worker": "a\nb"}, []])  # fmt: skip
def test_a_claim_needs_a_worker(subscriber: Subscriber, body: object) -> None:
    subscriber.create()

    assert code_of(subscriber.ask("POST", "/claim", body)) == (400, "INVALID_REQUEST")


def test_webhooks_and_pull_wakes_have_calls_of_their_own(subscriber: Subscriber) -> None:
    pending(subscriber)
    claimed = subscriber.claim_soon()

    refused = subscriber.callback({**claimed, "callback_token": claimed["token"]})

    assert code_of(refused) == (400, "INVALID_REQUEST")


def test_a_deleted_subscription_takes_no_acks(subscriber: Subscriber) -> None:
    pending(subscriber)
    claimed = subscriber.claim_soon()
    assert subscriber.ask("DELETE").status == 204

    assert code_of(subscriber.ack(claimed)) == (404, "SUBSCRIPTION_NOT_FOUND")
    assert code_of(subscriber.claim()) == (404, "SUBSCRIPTION_NOT_FOUND")
    assert subscriber.create().status == 201
    assert code_of(subscriber.ack(claimed)) == (409, "FENCED")


def test_of_many_workers_one_claims(subscriber: Subscriber) -> None:
    pending(subscriber)

    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(subscriber.claim, [f"w{number}" for number in range(8)]))

    assert sorted(each.status for each in claims) == [200] + [409] * 7
    (holder,) = {each.json["error"]["current_holder"] for each in claims if each.status == 409}
    assert holder in {f"w{number}" for number in range(8)}


def test_without_its_wake_stream_nobody_is_told_and_a_claim_is_possible(
    subscriber: Subscriber,
) -> None:
    subscriber.client.delete_topic(subscriber.wake_stream)
    assert subscriber.create().status == 201
    subscriber.put_stream("a", [1])

    claimed = subscriber.claim_soon()

    assert claimed["generation"] == 1
    with pytest.raises(queueber.NotFound):
        subscriber.client.topic(subscriber.wake_stream, must_exist=True).read()


@pytest.mark.parametrize("has_schema", [False, True])
def test_work_goes_on_if_the_wake_stream_takes_no_events(
    subscriber: Subscriber, has_schema: bool
) -> None:
    path = pending(subscriber)
    claimed = subscriber.claim_soon()
    wake_stream = subscriber.client.topic(subscriber.wake_stream)
    if has_schema:
        wake_stream.set_schema(b"{}")
    else:
        wake_stream.close()
    subscriber.append(path)

    done = subscriber.ack(claimed, tails(claimed), done=True)

    assert (done.status, done.json) == (200, {"ok": True, "next_wake": False})
    again = subscriber.claim("two").json
    assert again["generation"] == 2
    assert subscriber.ack(again, tails(again), done=True).json == {"ok": True, "next_wake": False}
    assert [each["generation"] for each in subscriber.events()] == [1]
